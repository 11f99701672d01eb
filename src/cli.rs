//! The command line. Every flag is an environment variable too.

use std::convert::Infallible;
use std::net::SocketAddr;
use std::path::PathBuf;
use std::time::Duration;

use clap::{Args, Parser, Subcommand};
use ipnet::IpNet;
use secrecy::SecretString;

use crate::audit::chain::{Expectation, HASH_LENGTH, parse_hex};
use crate::config::{Config, MIN_FREE_BYTES, NatsConfig, PASSWORD_ITERATIONS, Registration, Retention, WebInterface};
use crate::health::{HealthError, Question, url_of};
use crate::networks::network;
use crate::observe::LogFormat;
use crate::store::{DatabaseSettings, POSTGRES_CONNECTIONS, Pooler};

/// See and run all your servers from one self-hosted service.
#[derive(Debug, Parser)]
#[command(name = "signalbox", version, args_conflicts_with_subcommands = true)]
pub struct Cli {
    #[command(subcommand)]
    pub command: Option<Command>,
    #[command(flatten)]
    pub serve: ServeArgs,
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
          value_parser = clap::value_parser!(u32).range(2..=1_000))]
    pub database_connections: u32,
    /// What stands between the service and PostgreSQL: a pooler that lends connections for one transaction
    #[arg(long, env = "SIGNALBOX_DATABASE_POOLER", value_enum, default_value = "none")]
    pub database_pooler: Pooler,
    /// What to log: error, warn, info, debug, trace, or a filter such as info,signalbox=debug
    #[arg(long, env = "SIGNALBOX_LOG", default_value = "info")]
    pub log: String,
    /// How to write log lines
    #[arg(long, env = "SIGNALBOX_LOG_FORMAT", value_enum, default_value = "text")]
    pub log_format: LogFormat,
}

#[derive(Debug, Args)]
pub struct ServeArgs {
    /// Where to listen; port 0 takes a free one
    #[arg(long, env = "SIGNALBOX_LISTEN", default_value = "127.0.0.1:8000")]
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
    /// Seconds for which /readyz says that this instance ends, before it takes no more requests [default: 3 with --nats-url, else 0]
    #[arg(long, env = "SIGNALBOX_DRAIN", value_name = "SECONDS", value_parser = clap::value_parser!(u64).range(..=5))]
    pub drain: Option<u64>,
    /// The address under which people reach the service, when a proxy stands in front of it: its pages may sign in, and
    /// links lead there
    #[arg(long, env = "SIGNALBOX_PUBLIC_URL")]
    pub public_url: Option<String>,
    /// Networks or addresses of the proxies in front, separated by commas: of whom they were asked by, X-Forwarded-For or
    /// Forwarded, the audit log and the list of sign-ins tell [default: none, they tell who connects]
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
    #[arg(long, env = "SIGNALBOX_ALLOWED_ORIGINS", value_delimiter = ',')]
    pub allowed_origins: Vec<String>,
    /// PBKDF2 rounds for passwords; a higher number renews older hashes at login
    #[arg(long, env = "SIGNALBOX_PASSWORD_ITERATIONS", default_value_t = PASSWORD_ITERATIONS,
          value_parser = clap::value_parser!(u32).range(i64::from(PASSWORD_ITERATIONS)..))]
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
    /// Megabytes that must stay free on the disk of the embedded database; with less no samples are taken
    #[arg(long, env = "SIGNALBOX_MIN_FREE_DISK", value_name = "MB", default_value_t = MIN_FREE_BYTES / MEGABYTE,
          value_parser = clap::value_parser!(u64).range(..=MAX_FREE_MEGABYTES))]
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
    /// The server that takes e-mail: smtps://user:password@host, or smtp://host:587 for STARTTLS [default: no e-mail]
    #[arg(long, env = "SIGNALBOX_SMTP_URL", hide_env_values = true, value_parser = secret, requires = "smtp_from")]
    pub smtp_url: Option<SecretString>,
    /// Who e-mail is from, such as signalbox@example.com
    #[arg(long, env = "SIGNALBOX_SMTP_FROM")]
    pub smtp_from: Option<String>,
    /// Where the agents' programs lie that the service hands out, as signalbox-agent-linux-x86_64 [default: agents beside the executable]
    #[arg(long, env = "SIGNALBOX_INSTALL_DIR", value_name = "DIR")]
    pub install_dir: Option<PathBuf>,
    /// HTTP worker threads [default: one a core]
    #[arg(long, env = "SIGNALBOX_WORKERS", value_parser = clap::value_parser!(u16).range(1..=1024))]
    pub workers: Option<u16>,
}

#[derive(Debug, Args)]
pub struct DemoArgs {
    /// Where to listen; port 0 takes a free one
    #[arg(long, env = "SIGNALBOX_LISTEN", default_value = "127.0.0.1:8000")]
    pub listen: SocketAddr,
    /// Keep the data here [default: a temporary directory that is removed at the end]
    #[arg(long, env = "SIGNALBOX_DATA_DIR")]
    pub data_dir: Option<PathBuf>,
    /// Simulated servers beside this machine
    #[arg(long, default_value_t = 0, value_parser = clap::value_parser!(u16).range(0..=1000))]
    pub fleet: u16,
    /// What to log
    #[arg(long, env = "SIGNALBOX_LOG", default_value = "warn")]
    pub log: String,
    /// How to write log lines
    #[arg(long, env = "SIGNALBOX_LOG_FORMAT", value_enum, default_value = "text")]
    pub log_format: LogFormat,
}

#[derive(Debug, Args)]
pub struct HealthArgs {
    /// Where the service on this machine listens
    #[arg(long, env = "SIGNALBOX_LISTEN", default_value = "127.0.0.1:8000")]
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
    #[arg(long, value_name = "N", requires = "expect_hash", value_parser = clap::value_parser!(i64).range(1..))]
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
            retention: Retention {
                raw_days: self.retention_raw,
                minute_days: self.retention_1m,
                quarter_days: self.retention_15m,
                hour_days: self.retention_1h,
            },
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

/// How long something may be kept: a century at the most.
fn days() -> clap::builder::RangedI64ValueParser<u32> {
    clap::value_parser!(u32).range(1..=36_500)
}

/// Takes anything: a parser that refused would print the value, password and all. It is looked at when it is used.
fn secret(text: &str) -> Result<SecretString, Infallible> {
    Ok(text.into())
}

/// Takes the first parts of a NATS subject.
fn subject(text: &str) -> Result<String, &'static str> {
    let is_part = |part: &str| {
        !part.is_empty() && part.bytes().all(|byte| byte.is_ascii_alphanumeric() || matches!(byte, b'-' | b'_'))
    };
    let is_sound = text.len() <= 64 && text.split('.').all(is_part);
    is_sound.then(|| text.to_owned()).ok_or("a prefix has letters, digits, - and _, with dots between its parts")
}

fn hash(text: &str) -> Result<[u8; HASH_LENGTH], &'static str> {
    parse_hex(text).ok_or("a hash has 64 hexadecimal digits")
}

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
