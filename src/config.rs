//! What can be set, with the reason for each default. The command line and the environment are read in `cli`.

use std::net::{Ipv4Addr, SocketAddr};
use std::path::{Path, PathBuf};
use std::time::Duration;

use ipnet::IpNet;
use secrecy::{ExposeSecret, SecretString};

use crate::address::{authority_of, host_of, is_loopback};
pub use crate::auth::factors::SecondFactorPolicy;
use crate::auth::oidc::OidcSetupError;
pub use crate::auth::oidc::{OidcConfig, PasswordLogin};
pub use crate::bus::nats::NatsConfig;
use crate::install::Limits;
pub use crate::metrics::archive::{Retention, Schedule};
pub use crate::notify::pace::Pace;
use crate::shares::Sizes;
use crate::store::{self, DatabaseSettings};
pub use crate::store::{Quotas, Registration};
pub use crate::updates::Pace as UpdatePace;

/// All settings of the service.
#[derive(Debug, Clone)]
pub struct Config {
    /// Where to listen; port 0 takes a free one.
    pub listen: SocketAddr,
    /// Where the embedded database and the generated secrets live.
    pub data_dir: PathBuf,
    /// Whose data that is. A directory with data of the other kind is refused.
    pub data_kind: DataKind,
    /// `postgres://...` or `sqlite://...`; none means SQLite in the data directory. May hold a password.
    pub database_url: Option<SecretString>,
    /// How PostgreSQL is connected to.
    pub database: DatabaseSettings,
    /// Where the message bus is; none means that this is the only instance.
    pub nats: Option<NatsConfig>,
    /// What the subjects of this deployment begin with, where several share a message bus.
    pub nats_prefix: String,
    /// How long an instance says that it ends before it does; none means as long as a load balancer needs to notice where
    /// there are several instances, and not at all where there is one.
    pub drain: Option<Duration>,
    /// The address under which people reach the service, when a proxy stands in front.
    pub public_url: Option<String>,
    /// Proxies that are believed whom they were asked by.
    pub trusted_proxies: Vec<IpNet>,
    /// The file with the key that signs tokens; none means one generated in the data directory.
    pub jwt_secret_file: Option<PathBuf>,
    pub registration: Registration,
    /// The identity provider that people may sign in at.
    pub oidc: Option<OidcConfig>,
    pub password_login: PasswordLogin,
    pub web: WebInterface,
    /// Who must have proved a second factor.
    pub second_factor: SecondFactorPolicy,
    /// How long a proof of identity counts for commands, terminals and keys; none if it counts as long as its login.
    pub step_up: Option<Duration>,
    /// Origins of other web pages whose scripts may open WebSockets, and use the refresh token's cookie as far as their
    /// browser lets them.
    pub allowed_origins: Vec<String>,
    /// PBKDF2 rounds for a new password hash.
    pub password_iterations: u32,
    /// Where the agents' programs lie that the service hands out; none means `agents` beside the executable, so that an
    /// archive with both works wherever it is unpacked.
    pub install_dir: Option<PathBuf>,
    /// HTTP worker threads; none means one a core.
    pub workers: Option<usize>,
    pub retention: Retention,
    /// How many days commands and their output are kept.
    pub command_days: u32,
    /// How many days resolved alerts are kept.
    pub alert_days: u32,
    /// Bytes of memory that the service may take; none means a quarter of the machine's or its cgroup's.
    pub memory_budget: Option<u64>,
    /// The most of everything that one account may have.
    pub quotas: Quotas,
    /// How many days what happened on servers is kept.
    pub event_days: u32,
    /// Bytes that must stay free on the disk of the embedded database; with less no samples are taken.
    pub min_free_bytes: u64,
    /// The file with the key that encrypts what is secret in the database; none means one generated in the data directory.
    pub encryption_key_file: Option<PathBuf>,
    /// The file with the key for push messages to browsers; none means one generated in the data directory, if the service
    /// keeps anything else there, otherwise that no browser gets push messages.
    pub push_key_file: Option<PathBuf>,
    /// Networks that notifications may go to although they are private, loopback or link-local.
    pub notification_networks: Vec<IpNet>,
    /// Certificates of authorities that are trusted besides the system's when notifications are sent.
    pub notification_ca_file: Option<PathBuf>,
    /// The server that takes e-mail: `smtps://user:password@host`, `smtp://host:587`; none means that no e-mail is sent.
    pub smtp_url: Option<SecretString>,
    /// Who e-mail is from.
    pub smtp_from: Option<String>,
    pub timing: Timing,
    /// How large the pools are that are shared out.
    pub shares: Sizes,
}

/// The embedded database in the data directory.
pub const DATABASE_FILE: &str = "signalbox.db";

/// What kind of data a directory holds.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum DataKind {
    /// That of people who use the service.
    Service,
    /// What `signalbox demo` has made.
    Demo,
}

/// Whether the web interface is served.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, clap::ValueEnum)]
pub enum WebInterface {
    #[default]
    On,
    /// The API alone.
    Off,
}

/// Durations that are promised or chosen, in one place so that tests can shorten them.
#[derive(Debug, Clone)]
pub struct Timing {
    pub access_token: Duration,
    pub refresh_token: Duration,
    /// How long a client that lost the answer may repeat a refresh.
    pub refresh_grace: Duration,
    /// How long a terminal waits for a client that has lost its connection.
    pub terminal_kept: Duration,
    /// How long before the end of its token a dashboard receives a notice.
    pub expiry_notice: Duration,
    /// How long an agent may take to authenticate.
    pub auth_deadline: Duration,
    /// Proxies cut sockets that are idle for 60 to 100 s.
    pub ping_interval: Duration,
    /// A peer that has said nothing for so long is gone.
    pub silence_limit: Duration,
    /// How often a dashboard of all servers reads which there are, for what another instance did.
    pub server_list: Duration,
    /// The minimum time between two notices to a dashboard that the list has changed: when a script creates hundreds of
    /// servers, one notice stands for several.
    pub list_news: Duration,
    /// How long after a start an agent may take to come back before it counts as missing: it tries once a minute at
    /// least.
    pub offline_patience: Duration,
    /// For how long the samples of an agent lack a disk, an interface or a sensor before its alert ends.
    pub target_gone: Duration,
    /// How long a sample may wait for others to be committed with.
    pub commit_interval: Duration,
    /// When the history is moved on.
    pub archive: Schedule,
    /// How often the free space of the disk is measured.
    pub disk_look: Duration,
    /// How often the used memory is measured, and how long an expensive read waits while it is too much.
    pub memory_look: Duration,
    pub memory_patience: Duration,
    /// For how long a client may take nothing of a long answer of the history before it is cut off, because the answer holds memory.
    pub answer_pause: Duration,
    /// How fast notifications follow each other, and how long one is tried.
    pub notify: Pace,
    /// How long those who download an agent may take.
    pub downloads: Limits,
    /// How fast releases of the agent are rolled out.
    pub updates: UpdatePace,
}

/// A year and what is needed to compare it with the one before.
pub const EVENT_DAYS: u32 = 400;

/// OWASP's recommendation for PBKDF2-HMAC-SHA256 (Password Storage Cheat Sheet, 2023).
pub const PASSWORD_ITERATIONS: u32 = 600_000;

/// The fewest rounds that an operator may set. A debug build serves only tests and development, and each test that starts
/// the program would pay for every password at its full price.
pub const MIN_PASSWORD_ITERATIONS: u32 = if cfg!(debug_assertions) { 1_000 } else { PASSWORD_ITERATIONS };

/// Enough for the log of one large transaction and the sealing of what is open.
pub const MIN_FREE_BYTES: u64 = 256 * 1024 * 1024;

impl Default for Timing {
    fn default() -> Self {
        Self {
            access_token: Duration::from_secs(30 * 60),
            refresh_token: Duration::from_secs(7 * 24 * 3600),
            refresh_grace: Duration::from_secs(10),
            terminal_kept: Duration::from_secs(120),
            expiry_notice: Duration::from_secs(60),
            auth_deadline: Duration::from_secs(10),
            ping_interval: Duration::from_secs(20),
            silence_limit: Duration::from_secs(60),
            server_list: Duration::from_secs(30),
            list_news: Duration::from_millis(250),
            offline_patience: Duration::from_secs(75),
            target_gone: Duration::from_secs(5 * 60),
            commit_interval: Duration::from_millis(250),
            archive: Schedule::default(),
            disk_look: Duration::from_secs(2),
            memory_look: Duration::from_secs(1),
            memory_patience: Duration::from_secs(10),
            answer_pause: Duration::from_secs(60),
            notify: Pace::default(),
            downloads: Limits::default(),
            updates: UpdatePace::default(),
        }
    }
}

/// A path as the path of a URL: absolute, and whatever means something in a URL percent-encoded.
fn as_url_path(path: &Path) -> String {
    let absolute = std::path::absolute(path).unwrap_or_else(|_| path.to_owned());
    let bytes = absolute.as_os_str().as_encoded_bytes();
    bytes.iter().fold(String::new(), |mut encoded, byte| {
        match byte {
            b'/' | b'-' | b'_' | b'.' | b'~' => encoded.push(char::from(*byte)),
            byte if byte.is_ascii_alphanumeric() => encoded.push(char::from(*byte)),
            byte => encoded.push_str(&format!("%{byte:02X}")),
        }
        encoded
    })
}

impl Config {
    /// All defaults of the command line, with this data directory.
    pub fn new(data_dir: impl Into<PathBuf>) -> Self {
        Self {
            listen: SocketAddr::from((Ipv4Addr::LOCALHOST, 8000)),
            data_dir: data_dir.into(),
            data_kind: DataKind::Service,
            database_url: None,
            database: DatabaseSettings::default(),
            nats: None,
            nats_prefix: "signalbox".to_owned(),
            drain: None,
            public_url: None,
            trusted_proxies: Vec::new(),
            jwt_secret_file: None,
            registration: Registration::Open,
            oidc: None,
            password_login: PasswordLogin::On,
            web: WebInterface::On,
            second_factor: SecondFactorPolicy::Off,
            step_up: None,
            allowed_origins: Vec::new(),
            password_iterations: PASSWORD_ITERATIONS,
            install_dir: None,
            workers: None,
            retention: Retention::default(),
            command_days: 90,
            alert_days: 365,
            memory_budget: None,
            quotas: Quotas::default(),
            event_days: EVENT_DAYS,
            min_free_bytes: MIN_FREE_BYTES,
            encryption_key_file: None,
            push_key_file: None,
            notification_networks: Vec::new(),
            notification_ca_file: None,
            smtp_url: None,
            smtp_from: None,
            timing: Timing::default(),
            shares: Sizes::default(),
        }
    }

    /// Knows an embedded database of any name, and takes its directory for the data directory.
    pub fn of_file(file: &Path) -> Self {
        let url = format!("sqlite://{}", as_url_path(file));
        let directory = file.parent().filter(|parent| !parent.as_os_str().is_empty()).unwrap_or(Path::new("."));
        Self { database_url: Some(url.into()), ..Self::new(directory) }
    }

    /// The database to open, with its password if it has one.
    pub fn database_url(&self) -> String {
        match &self.database_url {
            Some(url) => url.expose_secret().to_owned(),
            None => format!("sqlite://{}?mode=rwc", as_url_path(&self.data_dir.join(DATABASE_FILE))),
        }
    }

    /// The file of the embedded database; none where another engine keeps the data.
    pub fn database_file(&self) -> Option<PathBuf> {
        match &self.database_url {
            Some(url) => store::sqlite_file(url.expose_secret()),
            None => Some(self.data_dir.join(DATABASE_FILE)),
        }
    }

    /// Where the embedded database lies; none where another engine keeps the data.
    pub fn database_directory(&self) -> Option<PathBuf> {
        let file = self.database_file()?;
        let parent = file.parent().filter(|parent| !parent.as_os_str().is_empty());
        Some(parent.map_or_else(|| PathBuf::from("."), Path::to_owned))
    }

    /// Whether only this machine can reach the service.
    pub fn is_on_loopback(&self) -> bool {
        self.listen.ip().to_canonical().is_loopback()
    }

    /// Whether only people on this machine are to come: nothing speaks of a proxy or of a name for others.
    pub fn is_local(&self) -> bool {
        let is_public = self.public_url.as_ref().is_some_and(|url| !is_loopback(host_of(authority_of(url))));
        self.is_on_loopback() && !is_public && self.trusted_proxies.is_empty()
    }

    /// Refuses settings of an identity provider that do not fit the others.
    pub fn check_oidc(&self) -> Result<(), OidcSetupError> {
        if self.oidc.is_none() && self.password_login != PasswordLogin::On {
            return Err(OidcSetupError::NeedsIssuer(self.password_login.word()));
        }
        // Elsewhere any client could name another host, and have the provider send people there.
        if self.oidc.is_some() && self.public_url.is_none() && !self.is_on_loopback() {
            return Err(OidcSetupError::NeedsPublicUrl);
        }
        Ok(())
    }

    /// Whether anything at all is kept in the data directory.
    pub fn needs_data_directory(&self) -> bool {
        self.is_embedded() || self.jwt_secret_file.is_none() || self.encryption_key_file.is_none()
    }

    /// Whether nothing but the data directory is needed to keep data.
    pub fn is_embedded(&self) -> bool {
        self.database_url.as_ref().is_none_or(|url| url.expose_secret().starts_with("sqlite:"))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_directory_of_any_name_gives_a_url() {
        let url = Config::new("/srv/my data/50%?#").database_url();

        assert_eq!(url, "sqlite:///srv/my%20data/50%25%3F%23/signalbox.db?mode=rwc");
    }

    #[test]
    fn only_a_service_that_nothing_makes_public_is_local() {
        let is_local = |adjust: fn(&mut Config)| {
            let mut config = Config::new("/srv/box");
            adjust(&mut config);
            config.is_local()
        };

        assert!(is_local(|_| {}));
        assert!(is_local(|config| config.listen = "[::1]:0".parse().unwrap()));
        assert!(is_local(|config| config.public_url = Some("http://localhost:8000".to_owned())));
        assert!(!is_local(|config| config.listen = "0.0.0.0:8000".parse().unwrap()));
        assert!(!is_local(|config| config.public_url = Some("https://box.example.com".to_owned())));
        assert!(!is_local(|config| config.trusted_proxies = vec!["127.0.0.1/32".parse().unwrap()]));
    }

    #[test]
    fn the_database_lies_where_its_url_says() {
        let file = |url: Option<&str>| {
            let config = Config { database_url: url.map(Into::into), ..Config::new("/srv/box") };
            config.database_file().zip(config.database_directory())
        };
        let at = |file: &str, directory: &str| Some((PathBuf::from(file), PathBuf::from(directory)));

        assert_eq!(file(None), at("/srv/box/signalbox.db", "/srv/box"));
        assert_eq!(file(Some("sqlite:///var/my%20data/a.db?mode=rwc")), at("/var/my data/a.db", "/var/my data"));
        assert_eq!(file(Some("sqlite://a.db")), at("a.db", "."));
        assert_eq!(file(Some("postgres://ada@db/box")), None);
    }
}
