//! For the machine's owner: what anybody can do here, whose signatures count, and (in `examine`) whether a signed payload
//! would run.

use std::fmt::Write as _;
use std::io;
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};

use clap::{Parser, Subcommand};
use signalbox_protocol::agent::RELEASE_NAMESPACE;
use signalbox_signing::signers::{Key, MAX_FILE_BYTES as MAX_SIGNERS_BYTES};
use signalbox_signing::ssh::fingerprint;
use signalbox_signing::{NAMESPACE, Signer, Signers, SignersError};

use super::{Demands, DemandsError, examine};
use crate::policy::{DockerAccess, Permit, Policy, PolicyError, Switch};
use crate::updates::{self, ReleaseSignersError};

/// The policy file that install.sh writes.
const POLICY_FILE: &str = "/etc/signalbox-agent/policy.toml";

/// The state directory of the agent that install.sh sets up.
const STATE_DIR: &str = "/var/lib/signalbox-agent";

/// Explains the agent's policy, without an agent or a service.
#[derive(Debug, Parser)]
#[command(name = "signalbox-agent", version)]
pub struct Owner {
    #[command(subcommand)]
    question: Question,
}

#[derive(Debug, Subcommand)]
enum Question {
    /// Says in words what the service, and who signs, can do on this server
    CheckPolicy {
        /// Policy file (TOML)
        #[arg(long, env = "SIGNALBOX_AGENT_POLICY", value_name = "FILE", default_value = POLICY_FILE)]
        policy: PathBuf,

        /// The agent's state directory, whose owner is the user that the agent runs as
        #[arg(long, env = "SIGNALBOX_AGENT_STATE_DIR", value_name = "DIR", default_value = STATE_DIR)]
        state_dir: PathBuf,
    },
    /// Lists the signers in a file, with the fingerprints of their keys. Refuses a file that the agent would refuse
    CheckSigners {
        /// Those who sign builds of the agent, in place of those who sign commands
        #[arg(long)]
        releases: bool,
        /// File in OpenSSH's format of allowed signers
        file: PathBuf,
    },
    /// Says whether this server would run what a file contains: JSON with `payload` and `signatures`, as the API takes it
    Verify {
        /// The file
        file: PathBuf,
        /// Policy file (TOML)
        #[arg(long, env = "SIGNALBOX_AGENT_POLICY", value_name = "FILE", default_value = POLICY_FILE)]
        policy: PathBuf,

        /// The agent's state directory, whose record says what has run. It is only read
        #[arg(long, env = "SIGNALBOX_AGENT_STATE_DIR", value_name = "DIR", default_value = STATE_DIR)]
        state_dir: PathBuf,
    },
}

/// The words that begin a question of the owner.
const QUESTIONS: [&str; 3] = ["check-policy", "check-signers", "verify"];

/// Why a question has no answer.
#[derive(Debug, thiserror::Error)]
pub enum ExplainError {
    #[error(transparent)]
    Policy(#[from] PolicyError),
    #[error(transparent)]
    Demands(#[from] DemandsError),
    #[error(transparent)]
    ReleaseSigners(#[from] ReleaseSignersError),
    #[error("{}: {source}", .path.display())]
    Io { path: PathBuf, source: io::Error },
    #[error("{} is not JSON with payload and signatures: {detail}", .path.display())]
    NotSigned { path: PathBuf, detail: String },
    #[error("{}: {source}", .path.display())]
    Signers { path: PathBuf, source: SignersError },
    #[error("{} names nobody whose signatures count: it is empty, or its keys are for other namespaces", .0.display())]
    NoSigners(PathBuf),
    #[error("the policy {} asks for no signatures", .0.display())]
    AsksForNone(PathBuf),
}

/// An answer, and whether it is a good one.
#[derive(Debug, PartialEq, Eq)]
pub struct Answer {
    pub text: String,
    pub is_good: bool,
}

impl Owner {
    /// Whether a command line asks such a question. Everything else starts the agent.
    pub fn is_asked(first_argument: Option<&str>) -> bool {
        first_argument.is_some_and(|word| QUESTIONS.contains(&word))
    }

    pub fn answer(&self) -> Result<Answer, ExplainError> {
        match &self.question {
            Question::CheckPolicy { policy, state_dir } => check_policy(policy, state_dir),
            Question::CheckSigners { releases: false, file } => check_signers(file, NAMESPACE),
            Question::CheckSigners { releases: true, file } => check_signers(file, RELEASE_NAMESPACE),
            Question::Verify { file, policy, state_dir } => examine::verify(file, policy, state_dir),
        }
    }
}

fn check_policy(path: &Path, state_dir: &Path) -> Result<Answer, ExplainError> {
    let policy = Policy::read(path)?;
    let demands = Demands::read(path, &policy)?;
    let release_signers = updates::read(path, &policy)?;
    let mut meaning = lines(&policy, demands.as_ref());
    meaning.extend(releases(release_signers.as_ref()));
    meaning.extend(demands.and_then(|_| root_warning(&policy, state_dir)));
    let mut text = String::new();
    for line in meaning {
        _ = writeln!(text, "{line}");
    }
    Ok(Answer { text, is_good: true })
}

/// That what runs once with a signature can end the need for signatures, where the agent runs as root. Its state directory
/// belongs to its user.
fn root_warning(policy: &Policy, state_dir: &Path) -> Option<String> {
    let runs_programs = policy.commands.grade != Switch::Off || policy.terminal.grade != Switch::Off;
    let is_root = std::fs::metadata(state_dir).is_ok_and(|metadata| metadata.uid() == 0);
    (runs_programs && is_root).then(|| {
        format!(
            "WARNING: {} belongs to root, so the agent runs as root: what runs in a signed command or terminal can also change \
             the policy and the signers.",
            state_dir.display()
        )
    })
}

/// One line for each key: whose it is, its type and its fingerprint.
fn check_signers(path: &Path, namespace: &str) -> Result<Answer, ExplainError> {
    let text = read_bounded(path, MAX_SIGNERS_BYTES as u64)?;
    let text = String::from_utf8(text).map_err(|error| ExplainError::Io {
        path: path.to_owned(),
        source: io::Error::new(io::ErrorKind::InvalidData, error.utf8_error()),
    })?;
    let signers = Signers::parse_for(&text, namespace)
        .map_err(|source| ExplainError::Signers { path: path.to_owned(), source })?;
    // A passkey signs no release.
    let counts = |signer: &Signer| namespace == NAMESPACE || matches!(signer.key, Key::Ssh { .. });
    if !signers.all().iter().any(counts) {
        return Err(ExplainError::NoSigners(path.to_owned()));
    }
    let mut text = String::new();
    for signer in signers.all() {
        // A list may come from elsewhere, and what it names must not control a terminal.
        let names = signer.principals.escape_debug();
        _ = writeln!(text, "{names} {}", key_words(&signer.key));
    }
    Ok(Answer { text, is_good: true })
}

/// The type of a key, and its fingerprint.
fn key_words(key: &Key) -> String {
    match key {
        Key::Ssh { kind, bytes } => format!("{kind} {}", fingerprint(bytes)),
        Key::Passkey { cose, relying_party } => {
            format!("passkey for {} {}", relying_party.escape_debug(), fingerprint(cose))
        }
    }
}

/// Reads a file, unless it is longer than it can be.
pub fn read_bounded(path: &Path, max_bytes: u64) -> Result<Vec<u8>, ExplainError> {
    let failed = |source| ExplainError::Io { path: path.to_owned(), source };
    if std::fs::metadata(path).map_err(failed)?.len() > max_bytes {
        return Err(failed(io::Error::other("the file is too long")));
    }
    std::fs::read(path).map_err(failed)
}

/// What the policy means, one sentence or two a line.
fn lines(policy: &Policy, demands: Option<&Demands>) -> Vec<String> {
    let mut lines = vec![
        "An attacker who controls the service, or an account that has the rights, can do this here:".to_owned(),
        for_people(&policy.commands, commands),
        for_people(&policy.terminal, terminal),
        match &policy.docker.people {
            Some(people) => {
                format!("Containers: see them with their logs; start, stop and restart any for {people} alone.")
            }
            None => containers(policy.docker.grade).to_owned(),
        },
        match (policy.logs, policy.log_paths.is_empty()) {
            (Switch::Off, _) => "Logs: nothing of the system or of files.".to_owned(),
            (_, true) => "Logs: read the system's log.".to_owned(),
            (_, false) => format!("Logs: read the system's log and {}.", paths(&policy.log_paths)),
        },
        match policy.processes {
            Switch::Off => "Processes: nothing.".to_owned(),
            Switch::Signed | Switch::On => {
                "Processes: see programs and users of those that use the most, never arguments.".to_owned()
            }
        },
    ];
    if policy.record == Switch::On {
        lines.insert(3, RECORDINGS.to_owned());
    }
    lines.extend(demands.map(signatures).into_iter().flatten());
    let names_people =
        policy.commands.people.is_some() || policy.terminal.people.is_some() || policy.docker.people.is_some();
    if names_people {
        let line =
            "The service says who asks. A list of people keeps accounts out, and nobody who controls the service.";
        lines.push(line.to_owned());
    }
    let is_open = policy.commands.grade == Switch::On || policy.terminal.grade == Switch::On;
    if is_open && policy.asks_for_signatures() {
        lines.push("WARNING: what is \"on\" needs no signature, so the signatures protect nothing.".to_owned());
    }
    lines
}

/// What is recorded, where it is, and who can read it.
const RECORDINGS: &str = "Recordings: each terminal is recorded in `recordings` of the agent's state directory (with install.sh \
    /var/lib/signalbox-agent/recordings): what it shows, never what is typed. Read them, without a signature.";

/// What a permission means, and to which people it is limited.
fn for_people(permit: &Permit<Switch>, meaning: fn(Switch) -> &'static str) -> String {
    let meaning = meaning(permit.grade);
    match &permit.people {
        Some(people) => format!("{meaning} For {people} alone."),
        None => meaning.to_owned(),
    }
}

fn commands(switch: Switch) -> &'static str {
    match switch {
        Switch::Off => "Commands: none.",
        Switch::Signed => "Commands: run what signers have signed for this server, and what `allow` lists.",
        Switch::On => "Commands: run any, as the user of the agent.",
    }
}

fn terminal(switch: Switch) -> &'static str {
    match switch {
        Switch::Off => "Terminal: none.",
        Switch::Signed => {
            "Terminal: open one that signers have signed. While it is open, an attacker who controls the service can type in it."
        }
        Switch::On => "Terminal: open one, as the user of the agent.",
    }
}

fn containers(access: DockerAccess) -> &'static str {
    match access {
        DockerAccess::Off => "Containers: nothing.",
        DockerAccess::Read => "Containers: see them with their logs, change none.",
        DockerAccess::Signed => {
            "Containers: see them with their logs; start, stop and restart what signers have signed."
        }
        DockerAccess::Control => "Containers: see them with their logs; start, stop and restart any.",
    }
}

fn signatures(demands: &Demands) -> Vec<String> {
    let Demands { name, signers, approvals, allowed } = demands;
    let people = match approvals {
        1 => "one person has".to_owned(),
        count => format!("{count} different people have"),
    };
    let mut lines = vec![format!("Signatures: {people} to sign, for the server `{name}`. Signers:")];
    lines.extend(signers.all().iter().map(|signer| format!("  {} with {}", signer.principals, signer.key)));
    lines.push(
        "What they sign holds once, for a day at most; a command that recurs holds for 366 days at most, once each time it is due."
            .to_owned(),
    );
    if !allowed.patterns().is_empty() {
        lines.push(
            "Without a signature, without a shell and without input (`*` is one word that is no option):".to_owned(),
        );
        lines.extend(allowed.patterns().iter().map(|words| format!("  {}", words.join(" "))));
    }
    lines
}

/// Which builds of the agent the service can make this server run.
fn releases(signers: Option<&Signers>) -> Vec<String> {
    let Some(signers) = signers else { return vec!["Updates: none.".to_owned()] };
    let head = "Updates: make the agent run newer builds of itself that one of these keys has signed, and no others:";
    // A passkey signs no release.
    let keys = signers.all().iter().filter(|signer| matches!(signer.key, Key::Ssh { .. }));
    let keys = keys.map(|signer| format!("  {} with {}", signer.principals.escape_debug(), key_words(&signer.key)));
    std::iter::once(head.to_owned()).chain(keys).collect()
}

fn paths(paths: &[PathBuf]) -> String {
    paths.iter().map(|path| path.display().to_string()).collect::<Vec<_>>().join(", ")
}
