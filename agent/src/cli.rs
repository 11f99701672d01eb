//! The command line and the environment.

use std::ffi::OsStr;
use std::path::PathBuf;
use std::sync::Arc;

use clap::builder::{PathBufValueParser, TypedValueParser};
use clap::parser::ValueSource;
use clap::{Arg, Command, Parser};

use crate::config::{ApiKey, Config, ConfigError, Interval, LiveSamples};
use crate::docker::{AddressError, socket_of};
use crate::environment::{self, Names, UnknownVariable};
use crate::policy::{DockerAccess, Policy, PolicyError, Switch};
use crate::proxy::{Proxy, ProxyError};
use crate::secret_file::{self, SecretFileError};
use crate::signed::{Demands, DemandsError};
use crate::updates::{self, ReleaseSignersError};
use crate::url::ServiceUrl;

/// Heading of `--help`, and of a table in docs/reference/flags.md.
const POLICY: &str = "Policy";

/// Watches this server for a Signalbox service. Every flag is also an environment variable.
#[derive(Debug, Parser)]
#[command(name = "signalbox-agent", version)]
pub struct Cli {
    /// The service's address: http(s)://host:port or ws(s)://host:port, with a path if a proxy in front of the service adds
    /// one. HTTPS_PROXY, HTTP_PROXY, ALL_PROXY and NO_PROXY select an HTTP proxy
    #[arg(long, env = "SIGNALBOX_AGENT_URL", value_name = "URL")]
    url: ServiceUrl,

    /// The agent's key. Other users of this machine can see it in the list of processes: prefer --key-file
    /// [default: none]
    #[arg(long, env = "SIGNALBOX_AGENT_KEY", value_name = "KEY", hide_env_values = true, conflicts_with = "key_file")]
    key: Option<String>,

    /// File that contains the agent's key [default: none]
    #[arg(long, env = "SIGNALBOX_AGENT_KEY_FILE", value_name = "FILE")]
    key_file: Option<PathBuf>,

    /// Seconds between two samples, 0.5 to 3600; the service may ask for another interval
    #[arg(long, env = "SIGNALBOX_AGENT_INTERVAL", value_name = "SECONDS", default_value_t = 5.0,
          value_parser = seconds)]
    interval: f64,

    /// Whether the service may ask for a sample each second while somebody looks at this server
    #[arg(long, env = "SIGNALBOX_AGENT_LIVE", value_name = "off|on", default_value = "on")]
    live: Switch,

    /// Directory in which samples wait to be sent [default: systemd's $STATE_DIRECTORY, else
    /// $XDG_STATE_HOME/signalbox-agent, else ~/.local/state/signalbox-agent]
    #[arg(long, env = "SIGNALBOX_AGENT_STATE_DIR", value_name = "DIR")]
    state_dir: Option<PathBuf>,

    /// File with the CA certificates (PEM) to trust, and no others [default: those of the system]
    #[arg(long, env = "SIGNALBOX_AGENT_CA_FILE", value_name = "FILE")]
    ca_file: Option<PathBuf>,

    /// Policy file (TOML), in place of the other flags of the policy [default: none]
    #[arg(
        long, env = "SIGNALBOX_AGENT_POLICY", value_name = "FILE", help_heading = POLICY,
        conflicts_with_all = ["processes", "commands", "docker", "docker_host", "logs", "log_path", "terminal", "record"]
    )]
    policy: Option<PathBuf>,

    /// Whether the agent names the processes that use the most: program, user, CPU and memory, never arguments [default: on]
    #[arg(long, env = "SIGNALBOX_AGENT_PROCESSES", value_name = "off|on", help_heading = POLICY)]
    processes: Option<Switch>,

    /// Whether the service may run commands on this server [default: off]
    #[arg(long, env = "SIGNALBOX_AGENT_COMMANDS", value_name = "off|on", help_heading = POLICY)]
    commands: Option<Switch>,

    /// What the service may do with containers: nothing, see them, or also start and stop them [default: read]
    #[arg(long, env = "SIGNALBOX_AGENT_DOCKER", value_name = "off|read|control", help_heading = POLICY)]
    docker: Option<DockerAccess>,

    /// Address of the container engine, such as unix:///run/podman/podman.sock [default: $DOCKER_HOST, else Docker's socket,
    /// else Podman's]
    #[arg(long, env = "SIGNALBOX_AGENT_DOCKER_HOST", value_name = "ADDRESS", help_heading = POLICY)]
    docker_host: Option<String>,

    /// Whether the service may read the system's log, and the files of --log-path [default: off]
    #[arg(long, env = "SIGNALBOX_AGENT_LOGS", value_name = "off|on", help_heading = POLICY)]
    logs: Option<Switch>,

    /// Log file, or directory of log files, that the service may read; repeatable (in the variable: separated by colons)
    /// [default: none]
    #[arg(long, env = "SIGNALBOX_AGENT_LOG_PATH", value_name = "PATH", help_heading = POLICY,
          value_parser = LogPathsParser)]
    log_path: Vec<LogPaths>,

    /// Whether the service may open a terminal on this server [default: off]
    #[arg(long, env = "SIGNALBOX_AGENT_TERMINAL", value_name = "off|on", help_heading = POLICY)]
    terminal: Option<Switch>,

    /// Whether the agent records what terminals show, for those who may open terminals [default: off]
    #[arg(long, env = "SIGNALBOX_AGENT_RECORD", value_name = "off|on", help_heading = POLICY)]
    record: Option<Switch>,

    /// What to log to standard error
    #[arg(long, env = "SIGNALBOX_AGENT_LOG", value_name = "LEVEL", default_value = "info")]
    pub log: LogLevel,

    /// Format of log lines; json: one object per line
    #[arg(long, env = "SIGNALBOX_AGENT_LOG_FORMAT", value_name = "text|json", default_value = "text")]
    pub log_format: LogFormat,
}

/// The paths of one value of `--log-path`.
#[derive(Debug, Clone)]
struct LogPaths(Vec<PathBuf>);

/// Colons separate paths in the variable only: it cannot be repeated, and a path may contain one.
#[derive(Debug, Clone)]
struct LogPathsParser;

impl TypedValueParser for LogPathsParser {
    type Value = LogPaths;

    fn parse_ref(&self, command: &Command, arg: Option<&Arg>, value: &OsStr) -> Result<LogPaths, clap::Error> {
        PathBufValueParser::new().parse_ref(command, arg, value).map(|path| LogPaths(vec![path]))
    }

    fn parse_ref_(
        &self,
        command: &Command,
        arg: Option<&Arg>,
        value: &OsStr,
        source: ValueSource,
    ) -> Result<LogPaths, clap::Error> {
        if source != ValueSource::EnvVariable {
            return self.parse_ref(command, arg, value);
        }
        let paths = std::env::split_paths(value);
        let parsed = paths.map(|path| PathBufValueParser::new().parse_ref(command, arg, path.as_os_str()));
        parsed.collect::<Result<_, _>>().map(LogPaths)
    }
}

/// The level of the agent's own messages. Its libraries only log warnings, because some of them trace whatever is sent, keys
/// included.
#[derive(Debug, Clone, Copy, PartialEq, Eq, clap::ValueEnum)]
pub enum LogLevel {
    Error,
    Warn,
    Info,
    Debug,
    Trace,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, clap::ValueEnum)]
pub enum LogFormat {
    Text,
    Json,
}

/// Why the flags, taken together, are wrong.
#[derive(Debug, thiserror::Error)]
pub enum CliError {
    #[error(transparent)]
    Config(#[from] ConfigError),
    #[error(transparent)]
    Policy(#[from] PolicyError),
    #[error(transparent)]
    Demands(#[from] DemandsError),
    #[error(transparent)]
    ReleaseSigners(#[from] ReleaseSignersError),
    #[error("no key is given: use --key-file or --key")]
    NoKey,
    #[error("--key-file {}: {source}", .path.display())]
    KeyFile { path: PathBuf, source: SecretFileError },
    #[error(transparent)]
    Proxy(#[from] ProxyError),
    #[error("--docker-host: {0}")]
    DockerHost(#[from] AddressError),
    #[error("--log-path: `{}` is not an absolute path", .0.display())]
    RelativeLogPath(PathBuf),
    #[error("no place for --state-dir is known: neither STATE_DIRECTORY, XDG_STATE_HOME nor HOME is set")]
    NoStateDir,
}

impl Cli {
    /// Reads the flags and variables of this process.
    pub fn read() -> Result<Self, clap::Error> {
        environment::parse()
    }

    /// Checks that every variable that looks like a flag is one.
    pub fn check_environment() -> Result<(), UnknownVariable> {
        environment::check::<Self>(Names { prefix: "SIGNALBOX_AGENT_", others: &[] })
    }

    /// The configuration that the flags describe.
    pub fn into_config(self) -> Result<Config, CliError> {
        let interval = Interval::from_seconds(self.interval)?;
        let live = if self.live == Switch::On { LiveSamples::default() } else { LiveSamples::Off };
        let key = self.read_key()?;
        let policy = self.read_policy()?;
        let demands = self.policy.as_deref().map(|path| Demands::read(path, &policy)).transpose()?.flatten();
        let signers = self.policy.as_deref().map(|path| updates::read(path, &policy)).transpose()?.flatten();
        let state_dir = self.state_dir.or_else(default_state_dir).ok_or(CliError::NoStateDir)?;
        let proxy = Proxy::of_environment(&self.url, |name| std::env::var(name).ok())?;
        Ok(Config {
            url: self.url,
            key,
            proxy,
            interval,
            live,
            state_dir: Some(state_dir),
            ca_file: self.ca_file,
            policy,
            demands: demands.map(Arc::new),
            updates: updates::Settings::with(signers),
            ..Config::default()
        })
    }

    fn read_key(&self) -> Result<ApiKey, CliError> {
        match (&self.key, &self.key_file) {
            (Some(key), _) => Ok(ApiKey::new(key)?),
            (None, Some(path)) => {
                let text =
                    secret_file::read(path).map_err(|source| CliError::KeyFile { path: path.clone(), source })?;
                Ok(ApiKey::new(&text)?)
            }
            (None, None) => Err(CliError::NoKey),
        }
    }

    fn read_policy(&self) -> Result<Policy, CliError> {
        if let Some(path) = &self.policy {
            return Ok(Policy::read(path)?);
        }
        let log_paths: Vec<PathBuf> = self.log_path.iter().flat_map(|LogPaths(paths)| paths).cloned().collect();
        if let Some(path) = log_paths.iter().find(|path| !path.is_absolute()) {
            return Err(CliError::RelativeLogPath(path.clone()));
        }
        if let Some(address) = &self.docker_host {
            socket_of(address)?;
        }
        Ok(Policy {
            processes: self.processes.unwrap_or(Policy::default().processes),
            commands: self.commands.unwrap_or_default().into(),
            docker: self.docker.unwrap_or_default().into(),
            docker_host: self.docker_host.clone(),
            logs: self.logs.unwrap_or_default(),
            log_paths,
            terminal: self.terminal.unwrap_or_default().into(),
            record: self.record.unwrap_or_default(),
            ..Policy::default()
        })
    }
}

/// Parses a number. Its bounds are checked with the rest of the configuration.
fn seconds(text: &str) -> Result<f64, &'static str> {
    text.parse().map_err(|_| "a number of seconds from 0.5 to 3600 is needed")
}

fn default_state_dir() -> Option<PathBuf> {
    let variable = |name| std::env::var_os(name).filter(|value| !value.is_empty()).map(PathBuf::from);
    // systemd may name several directories, separated by colons; the first is the agent's own.
    let of_systemd = variable("STATE_DIRECTORY").and_then(|list| std::env::split_paths(&list).next());
    let of_user = || variable("XDG_STATE_HOME").or_else(|| variable("HOME").map(|home| home.join(".local/state")));
    of_systemd.or_else(|| of_user().map(|state| state.join("signalbox-agent")))
}
