//! The command line. Every flag is an environment variable too.

mod audit;
mod import;
mod limits;
mod oidc;
mod proofs;
mod users;
mod values;

use std::net::SocketAddr;
use std::path::PathBuf;
use std::time::Duration;

use clap::{Args, Parser, Subcommand};
use ipnet::IpNet;
use secrecy::SecretString;
use signalbox_agent::environment::{self, Names, UnknownVariable};

use crate::config::{
    Config, EVENT_DAYS, MIN_FREE_BYTES, MIN_PASSWORD_ITERATIONS, NatsConfig, PASSWORD_ITERATIONS, Registration,
    Retention, WebInterface,
};
use crate::health::{HealthError, Question, url_of};
use crate::networks::network;
use crate::observe::LogFormat;
use crate::store::{DatabaseSettings, POSTGRES_CONNECTIONS, Pooler};
pub use audit::{AuditCommand, VerifyArgs};
pub use import::{ImportCommand, SqliteToPostgresArgs};
pub use users::{AdminArgs, InviteArgs, ListUsersArgs, UserArgs, UserCommand};
use values::{days, directory, listen, log_filter, origin, public_url, secret, subject, whole};

/// Headings of `--help`, and of the tables in docs/reference/flags.md.
mod heading {
    pub const DATA: &str = "Data and logs";
    pub const SECRETS: &str = "Secrets";
    pub const INSTANCES: &str = "Several instances";
    pub const RETENTION: &str = "Retention";
    pub const NOTIFICATIONS: &str = "Notifications";
    pub const LIMITS: &str = "Limits";
    pub const SIGN_IN: &str = "Single sign-on";
}

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
        "SIGNALBOX_CA_FILE",
        "SIGNALBOX_CHROMIUM",
        "SIGNALBOX_ENROLMENT_TOKEN",
        "SIGNALBOX_FIREFOX",
        "SIGNALBOX_IMAGE",
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
    /// Run the service with a ready account, a live agent of this machine and, with --fleet, simulated servers
    Demo(Box<DemoArgs>),
    /// Ask a running service how it is; exit code 0 means well, 1 means not
    Health(HealthArgs),
    /// Print the OpenAPI document
    Openapi,
    /// Write a consistent copy of the SQLite database, also while the service runs
    Backup(BackupArgs),
    /// Bring the schema of the database up to date, and end
    Migrate(MigrateArgs),
    /// Move a service to another kind of database
    #[command(subcommand)]
    Import(ImportCommand),
    /// Manage accounts
    #[command(subcommand)]
    User(UserCommand),
    /// Check the audit log
    #[command(subcommand)]
    Audit(AuditCommand),
}

/// What every command that opens the database needs.
#[derive(Debug, Args)]
pub struct DataArgs {
    /// Directory of the embedded database and the generated secrets
    #[arg(long, env = "SIGNALBOX_DATA_DIR", value_name = "DIR", help_heading = heading::DATA, default_value = "./data")]
    pub data_dir: PathBuf,
    /// The database: postgres://... or sqlite://... [default: SQLite in the data directory]
    #[arg(long, env = "SIGNALBOX_DATABASE_URL", value_name = "URL", help_heading = heading::DATA, hide_env_values = true,
          value_parser = secret)]
    pub database_url: Option<SecretString>,
    /// Maximum number of connections to PostgreSQL
    #[arg(long, env = "SIGNALBOX_DATABASE_CONNECTIONS", value_name = "N", help_heading = heading::DATA,
          default_value_t = POSTGRES_CONNECTIONS, value_parser = whole::<u32>(2, 1_000))]
    pub database_connections: u32,
    /// Connection pooler between the service and PostgreSQL; transaction: PgBouncer in transaction mode
    #[arg(long, env = "SIGNALBOX_DATABASE_POOLER", value_name = "POOLER", help_heading = heading::DATA, value_enum,
          default_value = "none")]
    pub database_pooler: Pooler,
    /// What to log: error, warn, info, debug, trace, off, or a filter such as info,signalbox=debug
    #[arg(long, env = "SIGNALBOX_LOG", value_name = "FILTER", help_heading = heading::DATA, default_value = "info",
          value_parser = log_filter)]
    pub log: String,
    /// Format of log lines; json: one object per line
    #[arg(long, env = "SIGNALBOX_LOG_FORMAT", value_name = "FORMAT", help_heading = heading::DATA, value_enum,
          default_value = "text")]
    pub log_format: LogFormat,
}

#[derive(Debug, Args)]
pub struct ServeArgs {
    /// IP address and port to listen on; port 0 takes a free one
    #[arg(long, env = "SIGNALBOX_LISTEN", value_name = "ADDRESS", default_value = "127.0.0.1:8000", value_parser = listen)]
    pub listen: SocketAddr,
    /// Address at which people reach the service, such as https://signalbox.example.com, without a path. Pages of this
    /// address may sign in, notifications link to it, and the first account needs the setup code [default: none]
    #[arg(long, env = "SIGNALBOX_PUBLIC_URL", value_name = "URL", value_parser = public_url)]
    pub public_url: Option<String>,
    /// Networks or addresses of proxies, separated by commas. Their X-Forwarded-For or Forwarded names the client in the
    /// audit log and the list of sign-ins, and they may pass on any host name [default: none]
    #[arg(long, env = "SIGNALBOX_TRUSTED_PROXIES", value_name = "CIDR", value_delimiter = ',', value_parser = network)]
    pub trusted_proxies: Vec<IpNet>,
    /// Origins of other pages, such as https://dashboard.example.com, separated by commas. These pages may open WebSockets
    /// and send the refresh token's cookie [default: none]
    #[arg(long, env = "SIGNALBOX_ALLOWED_ORIGINS", value_name = "ORIGIN", value_delimiter = ',', value_parser = origin)]
    pub allowed_origins: Vec<String>,
    /// Who can create an account; closed: only the first account can be created
    #[arg(long, env = "SIGNALBOX_REGISTRATION", value_name = "MODE", value_enum, default_value = "open")]
    pub registration: Registration,
    #[command(flatten)]
    pub proofs: proofs::ProofArgs,
    /// The web interface; off: the API only
    #[arg(long, env = "SIGNALBOX_WEB", value_name = "SWITCH", value_enum, default_value = "on")]
    pub web: WebInterface,
    /// Directory of the agents' programs that the service offers, named like signalbox-agent-linux-x86_64 [default: agents
    /// beside the executable]
    #[arg(long, env = "SIGNALBOX_INSTALL_DIR", value_name = "DIR", value_parser = directory)]
    pub install_dir: Option<PathBuf>,
    /// PBKDF2 rounds for passwords; a higher number renews older hashes at the next login
    #[arg(long, env = "SIGNALBOX_PASSWORD_ITERATIONS", value_name = "N", default_value_t = PASSWORD_ITERATIONS,
          value_parser = whole::<u32>(MIN_PASSWORD_ITERATIONS.into(), u32::MAX.into()))]
    pub password_iterations: u32,
    /// HTTP worker threads [default: one per core]
    #[arg(long, env = "SIGNALBOX_WORKERS", value_name = "N", value_parser = whole::<u16>(1, 1_024))]
    pub workers: Option<u16>,
    #[command(flatten)]
    pub data: DataArgs,
    /// File with the secret that signs tokens, at least 32 bytes [default: generated in the data directory]
    #[arg(long, env = "SIGNALBOX_JWT_SECRET_FILE", value_name = "FILE", help_heading = heading::SECRETS)]
    pub jwt_secret_file: Option<PathBuf>,
    /// File with the key that encrypts notification channels and secrets of authenticator apps, at least 32 bytes [default: generated in the data directory]
    #[arg(long, env = "SIGNALBOX_ENCRYPTION_KEY_FILE", value_name = "FILE", help_heading = heading::SECRETS)]
    pub encryption_key_file: Option<PathBuf>,
    /// File with the key for push messages to browsers, 32 bytes in base64 [default: generated in the data directory if
    /// anything else is kept there, otherwise browsers get no push messages]
    #[arg(long, env = "SIGNALBOX_PUSH_KEY_FILE", value_name = "FILE", help_heading = heading::SECRETS)]
    pub push_key_file: Option<PathBuf>,
    /// NATS servers that connect several instances, separated by commas: nats://user:password@host:port or tls://...
    /// [default: none, a single instance]
    #[arg(long, env = "SIGNALBOX_NATS_URL", value_name = "URL", help_heading = heading::INSTANCES, hide_env_values = true,
          value_parser = secret)]
    pub nats_url: Option<SecretString>,
    /// File with the token and key of a NATS user, as NATS' own tools write it [default: none]
    #[arg(long, env = "SIGNALBOX_NATS_CREDENTIALS_FILE", value_name = "FILE", help_heading = heading::INSTANCES,
          requires = "nats_url")]
    pub nats_credentials_file: Option<PathBuf>,
    /// CA certificates (PEM) to trust in addition to the system's for connections to NATS [default: none]
    #[arg(long, env = "SIGNALBOX_NATS_CA_FILE", value_name = "FILE", help_heading = heading::INSTANCES, requires = "nats_url")]
    pub nats_ca_file: Option<PathBuf>,
    /// Prefix of all NATS subjects, for several deployments on one NATS server
    #[arg(long, env = "SIGNALBOX_NATS_PREFIX", value_name = "PREFIX", help_heading = heading::INSTANCES,
          default_value = "signalbox", value_parser = subject)]
    pub nats_prefix: String,
    /// Seconds during shutdown in which /readyz answers 503 (draining) while requests are still served [default: 3 with
    /// --nats-url, else 0]
    #[arg(long, env = "SIGNALBOX_DRAIN", value_name = "SECONDS", help_heading = heading::INSTANCES,
          value_parser = whole::<u64>(0, 5))]
    pub drain: Option<u64>,
    /// Days to keep every sample
    #[arg(long, env = "SIGNALBOX_RETENTION_RAW", value_name = "DAYS", help_heading = heading::RETENTION,
          default_value_t = Retention::default().raw_days, value_parser = days())]
    pub retention_raw: u32,
    /// Days to keep the mean, minimum and maximum of each minute, and the top processes
    #[arg(long, env = "SIGNALBOX_RETENTION_1M", value_name = "DAYS", help_heading = heading::RETENTION,
          default_value_t = Retention::default().minute_days, value_parser = days())]
    pub retention_1m: u32,
    /// Days to keep the mean, minimum and maximum of each quarter of an hour
    #[arg(long, env = "SIGNALBOX_RETENTION_15M", value_name = "DAYS", help_heading = heading::RETENTION,
          default_value_t = Retention::default().quarter_days, value_parser = days())]
    pub retention_15m: u32,
    /// Days to keep the mean, minimum and maximum of each hour
    #[arg(long, env = "SIGNALBOX_RETENTION_1H", value_name = "DAYS", help_heading = heading::RETENTION,
          default_value_t = Retention::default().hour_days, value_parser = days())]
    pub retention_1h: u32,
    /// Days to keep commands and their output
    #[arg(long, env = "SIGNALBOX_RETENTION_COMMANDS", value_name = "DAYS", help_heading = heading::RETENTION,
          default_value_t = 90, value_parser = days())]
    pub retention_commands: u32,
    /// Days to keep resolved alerts
    #[arg(long, env = "SIGNALBOX_RETENTION_ALERTS", value_name = "DAYS", help_heading = heading::RETENTION,
          default_value_t = 365, value_parser = days())]
    pub retention_alerts: u32,
    /// Days to keep server events: connections, reboots, containers, versions
    #[arg(long, env = "SIGNALBOX_RETENTION_EVENTS", value_name = "DAYS", help_heading = heading::RETENTION,
          default_value_t = EVENT_DAYS, value_parser = days())]
    pub retention_events: u32,
    /// Private, loopback or link-local networks that notifications may go to, such as 10.0.0.0/8, separated by commas
    /// [default: none]
    #[arg(long, env = "SIGNALBOX_NOTIFICATION_NETWORKS", value_name = "CIDR", help_heading = heading::NOTIFICATIONS,
          value_delimiter = ',', value_parser = network)]
    pub notification_networks: Vec<IpNet>,
    /// CA certificates (PEM) to trust in addition to the system's when notifications are sent [default: none]
    #[arg(long, env = "SIGNALBOX_NOTIFICATION_CA_FILE", value_name = "FILE", help_heading = heading::NOTIFICATIONS)]
    pub notification_ca_file: Option<PathBuf>,
    /// Mail server: smtps://user:password@host, smtp://host:587 for STARTTLS, or smtp://host:25?tls=none without encryption
    /// [default: none, no e-mail]
    #[arg(long, env = "SIGNALBOX_SMTP_URL", value_name = "URL", help_heading = heading::NOTIFICATIONS, hide_env_values = true,
          value_parser = secret, requires = "smtp_from")]
    pub smtp_url: Option<SecretString>,
    /// Sender of e-mail, such as signalbox@example.com [default: none]
    #[arg(long, env = "SIGNALBOX_SMTP_FROM", value_name = "ADDRESS", help_heading = heading::NOTIFICATIONS,
          requires = "smtp_url")]
    pub smtp_from: Option<String>,
    #[command(flatten)]
    pub oidc: oidc::OidcArgs,
    #[command(flatten)]
    pub limits: limits::LimitArgs,
    /// Megabytes that must stay free on the disk of the embedded database; with less, the service stores no samples
    #[arg(long, env = "SIGNALBOX_MIN_FREE_DISK", value_name = "MB", help_heading = heading::LIMITS,
          default_value_t = MIN_FREE_BYTES / MEGABYTE, value_parser = whole::<u64>(0, MAX_FREE_MEGABYTES))]
    pub min_free_disk: u64,
}

#[derive(Debug, Args)]
pub struct DemoArgs {
    /// IP address and port to listen on; port 0 takes a free one
    #[arg(long, env = "SIGNALBOX_LISTEN", value_name = "ADDRESS", default_value = "127.0.0.1:8000", value_parser = listen)]
    pub listen: SocketAddr,
    /// Directory in which to keep the data: a new one, or that of an earlier demo. SIGNALBOX_DATA_DIR has no effect
    /// [default: a temporary directory that is removed at the end]
    // No variable: where one is set, such as in the image, it names the data of a service.
    #[arg(long, value_name = "DIR")]
    pub data_dir: Option<PathBuf>,
    /// Simulated servers in addition to this machine; the first 48 have 30 days of history, further ones that of today
    #[arg(long, env = "SIGNALBOX_FLEET", value_name = "N", default_value_t = 0, value_parser = whole::<u16>(0, 1_000))]
    pub fleet: u16,
    /// What to log: error, warn, info, debug, trace, off, or a filter such as info,signalbox=debug
    #[arg(long, env = "SIGNALBOX_LOG", value_name = "FILTER", default_value = "warn", value_parser = log_filter)]
    pub log: String,
    /// Format of log lines; json: one object per line
    #[arg(long, env = "SIGNALBOX_LOG_FORMAT", value_name = "FORMAT", value_enum, default_value = "text")]
    pub log_format: LogFormat,
}

#[derive(Debug, Args)]
pub struct HealthArgs {
    /// IP address and port at which the service on this machine listens
    #[arg(long, env = "SIGNALBOX_LISTEN", value_name = "ADDRESS", default_value = "127.0.0.1:8000", value_parser = listen)]
    pub listen: SocketAddr,
    /// The service's address, if it runs on another machine [default: that of --listen]
    #[arg(long, value_name = "URL")]
    pub url: Option<String>,
    /// Ask whether the service is ready to serve (/readyz) instead of whether it is up (/healthz)
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
    /// The copy to write, which must not exist yet
    pub file: PathBuf,
    #[command(flatten)]
    pub data: DataArgs,
}

#[derive(Debug, Args)]
pub struct MigrateArgs {
    #[command(flatten)]
    pub data: DataArgs,
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
            password_login: self.oidc.password_login,
            oidc: self.oidc.config(),
            web: self.web,
            second_factor: self.proofs.second_factor,
            step_up: self.proofs.step_up(),
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
            push_key_file: self.push_key_file,
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
