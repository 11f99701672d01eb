//! What the service may do with this machine. The machine's owner decides it here; the service can read it, never change it.

mod permit;

use std::path::{Path, PathBuf};

use clap::ValueEnum;
use serde::de::Deserializer;
use serde::{Deserialize, Serialize};

use self::permit::{Graded, word, word_or_people};
pub use self::permit::{People, Permit};
use crate::docker::socket_of;
use crate::{signed, updates};

/// The owner's decisions. Everything that could change the machine is off by default.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct Policy {
    /// May the agent name the processes that use the most, with their users? Never their arguments.
    pub processes: Switch,
    /// May the service run shell commands here?
    pub commands: Permit<Switch>,
    pub docker: Permit<DockerAccess>,
    /// The container engine's address; none for the one that is found.
    pub docker_host: Option<String>,
    /// May the service read the system's log, and the files of `log_paths`? Containers' logs go with `docker`.
    pub logs: Switch,
    /// The files, or directories of files, that may be read as logs.
    pub log_paths: Vec<PathBuf>,
    /// May the service open an interactive terminal here?
    pub terminal: Permit<Switch>,
    /// Does the agent record what terminals show, and may the service read it?
    pub record: Switch,
    /// Does the agent take new builds of itself from the service?
    #[serde(skip_serializing_if = "Updates::is_off")]
    pub updates: Updates,
    /// The file with those who sign releases, in OpenSSH's format of allowed signers.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub release_signers: Option<PathBuf>,
    /// What those who sign commands call this server.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub name: Option<String>,
    /// The file with those whose signatures count, in OpenSSH's format of allowed signers.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub signers: Option<PathBuf>,
    /// How many different people have to sign; one if absent.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub approvals: Option<u32>,
    /// Commands that run without a signature, and without a shell; `*` is one word.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub allow: Vec<String>,
}

impl Default for Policy {
    fn default() -> Self {
        Self {
            processes: Switch::On,
            commands: Permit::default(),
            docker: Permit::default(),
            docker_host: None,
            logs: Switch::default(),
            log_paths: Vec::new(),
            terminal: Permit::default(),
            record: Switch::default(),
            updates: Updates::default(),
            release_signers: None,
            name: None,
            signers: None,
            approvals: None,
            allow: Vec::new(),
        }
    }
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, ValueEnum)]
#[serde(rename_all = "lowercase")]
pub enum Switch {
    #[default]
    Off,
    /// Only what this server's signers have signed. Of commands and terminals.
    #[value(skip)]
    Signed,
    On,
}

/// Which builds of itself the agent takes from the service.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Updates {
    /// None: its owner installs them.
    #[default]
    Off,
    /// Newer ones that a pinned key has signed.
    Signed,
}

impl Updates {
    fn is_off(&self) -> bool {
        *self == Self::Off
    }
}

/// The words for what the service may do with containers.
const DOCKER_WORDS: (&[&str], &[DockerAccess]) = (
    &["off", "read", "signed", "control"],
    &[DockerAccess::Off, DockerAccess::Read, DockerAccess::Signed, DockerAccess::Control],
);

/// What the service may do with containers: each step includes those before it.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Default, Serialize, ValueEnum)]
#[serde(rename_all = "lowercase")]
pub enum DockerAccess {
    Off,
    /// List them, read their metrics and logs.
    #[default]
    Read,
    /// Also what this server's signers have signed.
    #[value(skip)]
    Signed,
    /// Also start, stop, restart and pause them.
    Control,
}

impl<'de> Deserialize<'de> for Switch {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        word(deserializer, &["off", "on"], &[Self::Off, Self::On])
    }
}

impl Graded for Switch {
    const HIGHEST: Self = Self::On;

    fn read<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Permit<Self>, D::Error> {
        word_or_people(deserializer, &["off", "signed", "on"], &[Self::Off, Self::Signed, Self::On])
    }
}

impl Graded for DockerAccess {
    const HIGHEST: Self = Self::Control;

    fn read<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Permit<Self>, D::Error> {
        let (words, values) = DOCKER_WORDS;
        word_or_people(deserializer, words, values)
    }
}

/// Why a policy file is refused.
#[derive(Debug, thiserror::Error)]
pub enum PolicyError {
    #[error("policy file {}: {source}", .path.display())]
    Unreadable { path: PathBuf, source: std::io::Error },
    #[error("policy file {}: {detail}", .path.display())]
    Invalid { path: PathBuf, detail: String },
}

impl Policy {
    /// Reads a TOML file. An unknown key is an error: a misspelt one must not pass for a decision.
    pub fn read(path: &Path) -> Result<Self, PolicyError> {
        let text = std::fs::read_to_string(path)
            .map_err(|source| PolicyError::Unreadable { path: path.to_owned(), source })?;
        Self::parse(&text).map_err(|detail| PolicyError::Invalid { path: path.to_owned(), detail })
    }

    /// Reads the text of such a file; an error is one line and names the line of the file.
    pub fn parse(text: &str) -> Result<Self, String> {
        let policy: Self = toml::from_str(text).map_err(|error| one_line(&error, text))?;
        if let Some(address) = &policy.docker_host {
            socket_of(address).map_err(|error| format!("docker_host: {error}"))?;
        }
        if let Some(path) = policy.log_paths.iter().find(|path| !path.is_absolute()) {
            return Err(format!("log_paths: `{}` is not an absolute path", path.display()));
        }
        signed::check(&policy)?;
        updates::check(&policy)?;
        Ok(policy)
    }

    /// Whether anything needs a signature.
    pub fn asks_for_signatures(&self) -> bool {
        self.commands.grade == Switch::Signed
            || self.terminal.grade == Switch::Signed
            || self.docker.grade == DockerAccess::Signed
    }

    /// What the agent reports as its capabilities: permitted here, and part of this build.
    pub fn capabilities(&self) -> Vec<String> {
        let processes = (self.processes == Switch::On).then_some("processes");
        let logs = (self.logs == Switch::On).then_some("logs");
        let (docker, commands, terminal) = (self.docker.grade, self.commands.grade, self.terminal.grade);
        let signed_docker = (docker == DockerAccess::Signed).then_some("docker_signed");
        let signed_commands = (commands == Switch::Signed).then_some("commands_signed");
        let signed_terminal = (terminal == Switch::Signed).then_some("terminal_signed");
        let docker_control = (docker >= DockerAccess::Signed).then_some("docker_control");
        let docker = (docker >= DockerAccess::Read).then_some("docker");
        let commands = (commands != Switch::Off).then_some("commands");
        let terminal = (terminal != Switch::Off).then_some("terminal");
        let recordings = (self.record == Switch::On).then_some("recordings");
        let updates = (self.updates == Updates::Signed).then_some("updates");
        let permitted = [processes, docker, docker_control, commands, logs, terminal, recordings, updates];
        let signed = [signed_docker, signed_commands, signed_terminal];
        let allowed = permitted.into_iter().chain(signed).flatten();
        ["metrics"].into_iter().chain(allowed).map(str::to_owned).collect()
    }
}

fn one_line(error: &toml::de::Error, text: &str) -> String {
    let before = error.span().and_then(|span| text.get(..span.start)).unwrap_or_default();
    let line = before.matches('\n').count() + 1;
    format!("line {line}: {}", error.message().replace('\n', " "))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn nothing_that_changes_the_machine_is_allowed_by_default() {
        let expected = Policy {
            processes: Switch::On,
            commands: Switch::Off.into(),
            docker: DockerAccess::Read.into(),
            docker_host: None,
            logs: Switch::Off,
            log_paths: Vec::new(),
            terminal: Switch::Off.into(),
            record: Switch::Off,
            ..Policy::default()
        };

        assert_eq!(Policy::parse(""), Ok(expected.clone()));
        assert_eq!(Policy::default(), expected);
    }

    #[test]
    fn a_file_can_express_every_flag() {
        let text = r#"
            processes = "off"
            commands = "on"
            docker = "control"
            docker_host = "unix:///run/podman/podman.sock"
            logs = "on"
            log_paths = ["/var/log/nginx", "/srv/app.log"]
            terminal = "on"
            record = "on"
        "#;

        let expected = Policy {
            processes: Switch::Off,
            commands: Switch::On.into(),
            docker: DockerAccess::Control.into(),
            docker_host: Some("unix:///run/podman/podman.sock".to_owned()),
            logs: Switch::On,
            log_paths: vec!["/var/log/nginx".into(), "/srv/app.log".into()],
            terminal: Switch::On.into(),
            record: Switch::On,
            ..Policy::default()
        };
        assert_eq!(Policy::parse(text), Ok(expected));
    }

    #[test]
    fn a_disabled_feature_is_no_capability() {
        let without = Policy { processes: Switch::Off, docker: DockerAccess::Off.into(), ..Policy::default() };
        let with = Policy { docker: DockerAccess::Control.into(), ..Policy::default() };
        let with_logs = Policy { logs: Switch::On, ..Policy::default() };

        assert_eq!(Policy::default().capabilities(), ["metrics", "processes", "docker"]);
        assert_eq!(without.capabilities(), ["metrics"]);
        assert_eq!(with.capabilities(), ["metrics", "processes", "docker", "docker_control"]);
        assert_eq!(with_logs.capabilities(), ["metrics", "processes", "docker", "logs"]);
    }

    #[test]
    fn an_enabled_feature_is_a_capability() {
        let policy = Policy { commands: Switch::On.into(), terminal: Switch::On.into(), ..Policy::default() };
        let recorded = Policy { record: Switch::On, ..policy.clone() };
        let updated = Policy { updates: Updates::Signed, ..Policy::default() };

        assert_eq!(policy.capabilities(), ["metrics", "processes", "docker", "commands", "terminal"]);
        assert_eq!(recorded.capabilities(), ["metrics", "processes", "docker", "commands", "terminal", "recordings"]);
        assert_eq!(updated.capabilities(), ["metrics", "processes", "docker", "updates"]);
    }

    #[test]
    fn builds_are_taken_by_their_signature_or_not_at_all() {
        let parse = |text: &str| Policy::parse(text).map(|policy| (policy.updates, policy.release_signers));

        assert_eq!(parse("updates = \"off\""), Ok((Updates::Off, None)));
        assert_eq!(parse("updates = \"signed\""), Ok((Updates::Signed, None)));
        let named = "updates = \"signed\"\nrelease_signers = \"/etc/keys\"";
        assert_eq!(parse(named), Ok((Updates::Signed, Some("/etc/keys".into()))));
        for (text, expected) in [
            ("updates = \"on\"", "line 1: unknown variant `on`, expected `off` or `signed`"),
            ("release_signers = \"/etc/keys\"", "release_signers needs updates = \"signed\""),
            ("updates = \"signed\"\nrelease_signers = \"keys\"", "release_signers: `keys` is not an absolute path"),
        ] {
            assert_eq!(parse(text), Err(expected.to_owned()), "{text}");
        }
    }

    #[test]
    fn a_misspelt_key_is_named_with_its_line() {
        let refusal = Policy::parse("docker = \"off\"\ncomands = \"off\"\n").unwrap_err();

        assert!(refusal.starts_with("line 2: unknown field `comands`"), "{refusal}");
    }

    #[test]
    fn a_bad_value_is_named_with_its_choices() {
        let refusal = Policy::parse("docker = \"maybe\"").unwrap_err();

        assert_eq!(refusal, "line 1: unknown variant `maybe`, expected one of `off`, `read`, `signed`, `control`");
    }

    #[test]
    fn the_error_of_a_value_without_quotes_names_the_words_there_are() {
        let cases = [
            (
                "commands = true",
                "line 1: invalid type: boolean `true`, expected one of \"off\", \"signed\", \"on\", or a list of people",
            ),
            (
                "\ndocker = 1",
                "line 2: invalid type: integer `1`, expected one of \"off\", \"read\", \"signed\", \"control\", or a list of people",
            ),
        ];

        for (text, expected) in cases {
            assert_eq!(Policy::parse(text).unwrap_err(), expected);
        }
    }

    #[test]
    fn an_engine_that_is_not_on_this_host_is_refused() {
        let refusal = Policy::parse("docker_host = \"tcp://10.0.0.1:2375\"").unwrap_err();

        assert!(refusal.starts_with("docker_host: `tcp://10.0.0.1:2375` is not"), "{refusal}");
    }

    #[test]
    fn a_relative_log_path_is_refused() {
        let refusal = Policy::parse("log_paths = [\"logs/app.log\"]").unwrap_err();

        assert_eq!(refusal, "log_paths: `logs/app.log` is not an absolute path");
    }
}
