//! The command line. Every flag is an environment variable too.

mod limits;
mod values;

use std::net::SocketAddr;
use std::path::PathBuf;
use std::time::Duration;

use clap::{Args, Parser, Subcommand};
use ipnet::IpNet;
use secrecy::SecretString;
use signalbox_agent::environment::{self, Names, UnknownVariable};

use crate::audit::chain::{Expectation, HASH_LENGTH};
use crate::config::{
    Config, EVENT_DAYS, MIN_FREE_BYTES, MIN_PASSWORD_ITERATIONS, NatsConfig, PASSWORD_ITERATIONS, Registration,
    Retention, WebInterface,
};
use crate::health::{HealthError, Question, url_of};
use crate::networks::network;
use crate::observe::LogFormat;
use crate::store::{DatabaseSettings, POSTGRES_CONNECTIONS, Pooler};
use values::{days, directory, hash, listen, log_filter, origin, public_url, secret, subject, whole};

/// See and run all your servers from one self-hosted service.
#[derive(Debug, Parser)]
#[command(name = "signalbox", version, args_conflicts_with_subcommands = true)]
pub struct Cli {
    #[command(subcommand)]
    pub command: Option<Command>,
    #[command(flatten)]
    pub serve: ServeArgs,
}

/// Variables that begin as ours do and are for others: the agent, the program for people, install.sh, the build and its
/// tests.
const NAMES: Names = Names {
    prefix: "SIGNALBOX_",
    others: &[
        "SIGNALBOX_AGENT_",
        "SIGNALBOX_TEST_",
        "SIGNALBOX_ROOT",
        "SIGNALBOX_TOKEN",
        "SIGNALBOX_URL",
        "SIGNALBOX_WEB_DIST",
    ],
};

impl Cli {
    /// Reads the flags and variables of this process.
    pub fn read() -> Result<Self, clap::Error> {
        environment::parse()
    }

    /// Whether every variable that looks like a flag is one.
    pub fn check_environment() -> Result<(), UnknownVariable> {
        environment::check::<Self>(NAMES)
    }
}

#[derive(Debug, Subcommand)]
pub enum Command {
    /// Run the service (also what happens without a command)
    Serve(Box<ServeArgs>),
    /// Run the service with a ready account and a live agent of this machine
    Demo(Box<DemoArgs>),
    /// Ask a running service how it is: exit code 0 if it is well, else 1
    Health(HealthArgs),
    /// Print the OpenAPI document
    Openapi,
    /// Write a consistent copy of the SQLite database, also while the service runs
    Backup(BackupArgs),
    /// Bring the schema of the database up to date and end, before instances of a new version start
    Migrate(MigrateArgs),
    /// Look after accounts
    #[command(subcommand)]
    User(UserCommand),
    /// Look after the audit log
    #[command(subcommand)]
    Audit(AuditCommand),
}

#[derive(Debug, Subcommand)]
pub enum AuditCommand {
    /// Check that nothing in the audit log was changed, moved or removed, also while the service runs
    Verify(VerifyArgs),
}

#[derive(Debug, Subcommand)]
pub enum UserCommand {
    /// Give a user a new random password, and end their sessions
    ResetPassword(ResetPasswordArgs),
}

/// What every command that opens the database needs.
#[derive(Debug, Args)]
pub struct DataArgs {
    /// Where the embedded database and the generated secrets live
    #[arg(long, env = "SIGNALBOX_DATA_DIR", default_value = "./data")]
    pub data_dir: PathBuf,
    /// postgres://... or sqlite://... [default: SQLite in the data directory]
    #[arg(long, env = "SIGNALBOX_DATABASE_URL", hide_env_values = true, value_parser = secret)]
    pub database_url: Option<SecretString>,
    /// The most connections to PostgreSQL
    #[arg(long, env = "SIGNALBOX_DATABASE_CONNECTIONS", value_name = "N", default_value_t = POSTGRES_CONNECTIONS,
          value_parser = whole::<u32>(2, 1_000))]
    pub database_connections: u32,
    /// What stands between the service and PostgreSQL: a pooler that lends connections for one transaction
    #[arg(long, env = "SIGNALBOX_DATABASE_POOLER", value_enum, default_value = "none")]
    pub database_pooler: Pooler,
    /// What to log: error, warn, info, debug, trace, or a filter such as info,signalbox=debug
    #[arg(long, env = "SIGNALBOX_LOG", default_value = "info", value_parser = log_filter)]
    pub log: String,
    /// How to write log lines
    #[arg(long, env = "SIGNALBOX_LOG_FORMAT", value_enum, default_value = "text")]
    pub log_format: LogFormat,
}

#[derive(Debug, Args)]
pub struct ServeArgs {
    /// Where to listen; port 0 takes a free one
    #[arg(long, env = "SIGNALBOX_LISTEN", default_value = "127.0.0.1:8000", value_parser = listen)]
    pub listen: SocketAddr,
    #[command(flatten)]
    pub data: DataArgs,
    /// The NATS server that connects several instances: nats://user:password@host:port or tls://..., several with commas
    /// [default: none, a single instance]
    #[arg(long, env = "SIGNALBOX_NATS_URL", hide_env_values = true, value_parser = secret)]
    pub nats_url: Option<SecretString>,
    /// The file with the token and the key of a NATS user, as NATS' own tools make it
    #[arg(long, env = "SIGNALBOX_NATS_CREDENTIALS_FILE", value_name = "FILE", requires = "nats_url")]
    pub nats_credentials_file: Option<PathBuf>,
    /// Certificates (PEM) of authorities to trust besides the system's when NATS is connected to
    #[arg(long, env = "SIGNALBOX_NATS_CA_FILE", value_name = "FILE", requires = "nats_url")]
    pub nats_ca_file: Option<PathBuf>,
    /// What NATS subjects of this deployment begin with, where several share a server
    #[arg(long, env = "SIGNALBOX_NATS_PREFIX", default_value = "signalbox", value_parser = subject)]
    pub nats_prefix: String,
    /// Seconds for which /readyz reports draining (503) during shutdown while requests are still served
    /// [default: 3 with --nats-url, else 0]
    #[arg(long, env = "SIGNALBOX_DRAIN", value_name = "SECONDS", value_parser = whole::<u64>(0, 5))]
    pub drain: Option<u64>,
    /// The address under which people reach the service, such as https://signalbox.example.com, when a proxy stands in
    /// front of it: its pages may sign in, links lead there, and the first account needs the setup code
    #[arg(long, env = "SIGNALBOX_PUBLIC_URL", value_name = "URL", value_parser = public_url)]
    pub public_url: Option<String>,
    /// Networks or addresses of the proxies in front, separated by commas. Their X-Forwarded-For or Forwarded names the
    /// client in the audit log and the list of sign-ins, and they may pass on any host name [default: none]
    #[arg(long, env = "SIGNALBOX_TRUSTED_PROXIES", value_name = "CIDR", value_delimiter = ',', value_parser = network)]
    pub trusted_proxies: Vec<IpNet>,
    /// The file with the secret that signs tokens, at least 32 bytes [default: one is generated in the data directory]
    #[arg(long, env = "SIGNALBOX_JWT_SECRET_FILE")]
    pub jwt_secret_file: Option<PathBuf>,
    /// Whether people may make accounts by themselves; the first account can always be made
    #[arg(long, env = "SIGNALBOX_REGISTRATION", value_enum, default_value = "open")]
    pub registration: Registration,
    /// Whether to serve the web interface beside the API
    #[arg(long, env = "SIGNALBOX_WEB", value_enum, default_value = "on")]
    pub web: WebInterface,
    /// Origins of other web pages that may open WebSockets and send the refresh token's cookie, separated by commas
    #[arg(long, env = "SIGNALBOX_ALLOWED_ORIGINS", value_name = "ORIGIN", value_delimiter = ',', value_parser = origin)]
    pub allowed_origins: Vec<String>,
    /// PBKDF2 rounds for passwords; a higher number renews older hashes at login
    #[arg(long, env = "SIGNALBOX_PASSWORD_ITERATIONS", default_value_t = PASSWORD_ITERATIONS,
          value_parser = whole::<u32>(MIN_PASSWORD_ITERATIONS.into(), u32::MAX.into()))]
    pub password_iterations: u32,
    /// Days for which every sample is kept
    #[arg(long, env = "SIGNALBOX_RETENTION_RAW", value_name = "DAYS", default_value_t = Retention::default().raw_days, value_parser = days())]
    pub retention_raw: u32,
    /// Days for which the mean, least and greatest of each minute are kept, and the top processes
    #[arg(long, env = "SIGNALBOX_RETENTION_1M", value_name = "DAYS", default_value_t = Retention::default().minute_days, value_parser = days())]
    pub retention_1m: u32,
    /// Days for which those of each quarter of an hour are kept
    #[arg(long, env = "SIGNALBOX_RETENTION_15M", value_name = "DAYS", default_value_t = Retention::default().quarter_days, value_parser = days())]
    pub retention_15m: u32,
    /// Days for which those of each hour are kept
    #[arg(long, env = "SIGNALBOX_RETENTION_1H", value_name = "DAYS", default_value_t = Retention::default().hour_days, value_parser = days())]
    pub retention_1h: u32,
    /// Days for which commands that were run, and their output, are kept
    #[arg(long, env = "SIGNALBOX_RETENTION_COMMANDS", value_name = "DAYS", default_value_t = 90, value_parser = days())]
    pub retention_commands: u32,
    /// Days for which resolved alerts are kept
    #[arg(long, env = "SIGNALBOX_RETENTION_ALERTS", value_name = "DAYS", default_value_t = 365, value_parser = days())]
    pub retention_alerts: u32,
    /// Days for which server events are kept: connections, reboots, containers, versions
    #[arg(long, env = "SIGNALBOX_RETENTION_EVENTS", value_name = "DAYS", default_value_t = EVENT_DAYS, value_parser = days())]
    pub retention_events: u32,
    #[command(flatten)]
    pub limits: limits::LimitArgs,
    /// Megabytes that must stay free on the disk of the embedded database; with less no samples are taken
    #[arg(long, env = "SIGNALBOX_MIN_FREE_DISK", value_name = "MB", default_value_t = MIN_FREE_BYTES / MEGABYTE,
          value_parser = whole::<u64>(0, MAX_FREE_MEGABYTES))]
    pub min_free_disk: u64,
    /// The file with the key that encrypts where notifications go, at least 32 bytes [default: one is generated in the data directory]
    #[arg(long, env = "SIGNALBOX_ENCRYPTION_KEY_FILE")]
    pub encryption_key_file: Option<PathBuf>,
    /// Networks that notifications may go to although they are private, loopback or link-local, such as 10.0.0.0/8, separated by commas
    #[arg(long, env = "SIGNALBOX_NOTIFICATION_NETWORKS", value_name = "CIDR", value_delimiter = ',', value_parser = network)]
    pub notification_networks: Vec<IpNet>,
    /// Certificates (PEM) of authorities to trust besides the system's when notifications are sent
    #[arg(long, env = "SIGNALBOX_NOTIFICATION_CA_FILE", value_name = "FILE")]
    pub notification_ca_file: Option<PathBuf>,
    /// The server that takes e-mail: smtps://user:password@host, smtp://host:587 for STARTTLS, or smtp://host:25?tls=none
    /// for no encryption [default: no e-mail]
    #[arg(long, env = "SIGNALBOX_SMTP_URL", hide_env_values = true, value_parser = secret, requires = "smtp_from")]
    pub smtp_url: Option<SecretString>,
    /// Who e-mail is from, such as signalbox@example.com
    #[arg(long, env = "SIGNALBOX_SMTP_FROM", value_name = "ADDRESS", requires = "smtp_url")]
    pub smtp_from: Option<String>,
    /// Where the agents' programs lie that the service hands out, as signalbox-agent-linux-x86_64 [default: agents beside the executable]
    #[arg(long, env = "SIGNALBOX_INSTALL_DIR", value_name = "DIR", value_parser = directory)]
    pub install_dir: Option<PathBuf>,
    /// HTTP worker threads [default: one a core]
    #[arg(long, env = "SIGNALBOX_WORKERS", value_name = "N", value_parser = whole::<u16>(1, 1_024))]
    pub workers: Option<u16>,
}

#[derive(Debug, Args)]
pub struct DemoArgs {
    /// Where to listen; port 0 takes a free one
    #[arg(long, env = "SIGNALBOX_LISTEN", default_value = "127.0.0.1:8000", value_parser = listen)]
    pub listen: SocketAddr,
    /// Keep the data here [default: a temporary directory that is removed at the end]
    #[arg(long, env = "SIGNALBOX_DATA_DIR")]
    pub data_dir: Option<PathBuf>,
    /// Simulated servers beside this machine
    #[arg(long, default_value_t = 0, value_parser = whole::<u16>(0, 1_000))]
    pub fleet: u16,
    /// What to log
    #[arg(long, env = "SIGNALBOX_LOG", default_value = "warn", value_parser = log_filter)]
    pub log: String,
    /// How to write log lines
    #[arg(long, env = "SIGNALBOX_LOG_FORMAT", value_enum, default_value = "text")]
    pub log_format: LogFormat,
}

#[derive(Debug, Args)]
pub struct HealthArgs {
    /// Where the service on this machine listens
    #[arg(long, env = "SIGNALBOX_LISTEN", default_value = "127.0.0.1:8000", value_parser = listen)]
    pub listen: SocketAddr,
    /// The service's address, if it is not on this machine [default: that of --listen]
    #[arg(long, value_name = "URL")]
    pub url: Option<String>,
    /// Ask whether it can serve (/readyz), and not only whether it is up (/healthz)
    #[arg(long)]
    pub ready: bool,
}

impl HealthArgs {
    /// The service that is asked.
    pub fn service(&self) -> Result<String, HealthError> {
        self.url.clone().map_or_else(|| url_of(self.listen), Ok)
    }

    pub fn question(&self) -> Question {
        if self.ready { Question::Ready } else { Question::Alive }
    }
}

#[derive(Debug, Args)]
pub struct BackupArgs {
    /// The copy, which must not exist yet
    pub file: PathBuf,
    #[command(flatten)]
    pub data: DataArgs,
}

#[derive(Debug, Args)]
pub struct MigrateArgs {
    #[command(flatten)]
    pub data: DataArgs,
}

#[derive(Debug, Args)]
pub struct ResetPasswordArgs {
    /// User name or e-mail address
    pub name: String,
    #[command(flatten)]
    pub data: DataArgs,
}

#[derive(Debug, Args)]
pub struct VerifyArgs {
    /// The hash of an entry that was written down earlier
    #[arg(long, value_name = "HEX", requires = "expect_seq", value_parser = hash)]
    pub expect_hash: Option<[u8; HASH_LENGTH]>,
    /// The number of that entry
    #[arg(long, value_name = "N", requires = "expect_hash", value_parser = whole::<i64>(1, i64::MAX.unsigned_abs()))]
    pub expect_seq: Option<i64>,
    #[command(flatten)]
    pub data: DataArgs,
}

impl VerifyArgs {
    /// The entry that must be in the log.
    pub fn expectation(&self) -> Option<Expectation> {
        Some(Expectation { seq: self.expect_seq?, hash: self.expect_hash? })
    }
}

impl DataArgs {
    /// A configuration that knows where the data is.
    pub fn config(&self) -> Config {
        let database = DatabaseSettings { connections: self.database_connections, pooler: self.database_pooler };
        Config { database_url: self.database_url.clone(), database, ..Config::new(&self.data_dir) }
    }
}

impl ServeArgs {
    pub fn config(self) -> Config {
        Config {
            listen: self.listen,
            nats: self.nats_url.map(|url| NatsConfig {
                url,
                credentials_file: self.nats_credentials_file,
                ca_file: self.nats_ca_file,
            }),
            nats_prefix: self.nats_prefix,
            drain: self.drain.map(Duration::from_secs),
            public_url: self.public_url,
            trusted_proxies: self.trusted_proxies,
            jwt_secret_file: self.jwt_secret_file,
            registration: self.registration,
            web: self.web,
            allowed_origins: self.allowed_origins,
            password_iterations: self.password_iterations,
            install_dir: self.install_dir,
            workers: self.workers.map(usize::from),
            command_days: self.retention_commands,
            alert_days: self.retention_alerts,
            event_days: self.retention_events,
            retention: Retention {
                raw_days: self.retention_raw,
                minute_days: self.retention_1m,
                quarter_days: self.retention_15m,
                hour_days: self.retention_1h,
            },
            quotas: self.limits.quotas(),
            memory_budget: self.limits.memory_budget,
            min_free_bytes: self.min_free_disk.saturating_mul(MEGABYTE),
            encryption_key_file: self.encryption_key_file,
            notification_networks: self.notification_networks,
            notification_ca_file: self.notification_ca_file,
            smtp_url: self.smtp_url,
            smtp_from: self.smtp_from,
            ..self.data.config()
        }
    }
}

const MEGABYTE: u64 = 1024 * 1024;

/// An exabyte: no disk has so much free, and in bytes it is still a number.
const MAX_FREE_MEGABYTES: u64 = 1 << 40;

#[cfg(test)]
mod tests {
    use clap::CommandFactory;

    use super::*;

    #[test]
    fn the_command_line_is_consistent() {
        Cli::command().debug_assert();
    }

    #[test]
    fn serving_is_what_happens_without_a_command() {
        let cli = Cli::parse_from(["signalbox", "--listen", "127.0.0.1:0"]);

        assert!(cli.command.is_none());
        assert_eq!(cli.serve.listen.port(), 0);
    }
}
