//! What can be set, with the reason for each default. The command line and the environment are read in `cli`.

use std::net::{Ipv4Addr, SocketAddr};
use std::path::{Path, PathBuf};
use std::time::Duration;

use ipnet::IpNet;
use secrecy::{ExposeSecret, SecretString};

pub use crate::bus::nats::NatsConfig;
use crate::install::Limits;
pub use crate::metrics::archive::Schedule;
pub use crate::notify::pace::Pace;
use crate::store::DatabaseSettings;
pub use crate::store::Registration;

/// Everything the service is told at its start.
#[derive(Debug, Clone)]
pub struct Config {
    /// Where to listen; port 0 takes a free one.
    pub listen: SocketAddr,
    /// Where the embedded database and the generated secrets live.
    pub data_dir: PathBuf,
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
    pub web: WebInterface,
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
    /// Bytes that must stay free on the disk of the embedded database; with less no samples are taken.
    pub min_free_bytes: u64,
    /// The file with the key that encrypts what is secret in the database; none means one generated in the data directory.
    pub encryption_key_file: Option<PathBuf>,
    /// Networks that notifications may go to although they are private, loopback or link-local.
    pub notification_networks: Vec<IpNet>,
    /// Certificates of authorities that are trusted besides the system's when notifications are sent.
    pub notification_ca_file: Option<PathBuf>,
    /// The server that takes e-mail: `smtps://user:password@host`, `smtp://host:587`; none means that no e-mail is sent.
    pub smtp_url: Option<SecretString>,
    /// Who e-mail is from.
    pub smtp_from: Option<String>,
    pub timing: Timing,
}

/// Whether the web interface is served.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, clap::ValueEnum)]
pub enum WebInterface {
    #[default]
    On,
    /// The API alone.
    Off,
}

/// How many days of each tier of the metric history are kept.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Retention {
    /// Every sample.
    pub raw_days: u32,
    /// A mean of each minute, and the top processes.
    pub minute_days: u32,
    /// Of each quarter of an hour.
    pub quarter_days: u32,
    /// Of each hour.
    pub hour_days: u32,
}

impl Default for Retention {
    fn default() -> Self {
        Self { raw_days: 14, minute_days: 90, quarter_days: 365, hour_days: 5 * 365 }
    }
}

impl Retention {
    /// Whether what is coarser is kept for longer.
    pub fn is_ordered(&self) -> bool {
        let days = [self.raw_days, self.minute_days, self.quarter_days, self.hour_days];
        days.is_sorted()
    }
}

/// Durations that are promised or chosen, in one place so that tests can shorten them.
#[derive(Debug, Clone)]
pub struct Timing {
    pub access_token: Duration,
    pub refresh_token: Duration,
    /// How long a client that lost the answer may repeat a refresh.
    pub refresh_grace: Duration,
    /// How long before the end of its token a dashboard is told.
    pub expiry_notice: Duration,
    /// How long an agent may take to authenticate.
    pub auth_deadline: Duration,
    /// Proxies cut sockets that are idle for 60 to 100 s.
    pub ping_interval: Duration,
    /// A peer that has said nothing for so long is gone.
    pub silence_limit: Duration,
    /// How often a dashboard of all servers reads which there are, for what another instance did.
    pub server_list: Duration,
    /// How long after telling a dashboard that the list has changed it is told again: when hundreds of servers are made
    /// by a script, some are told together.
    pub list_news: Duration,
    /// How long after a start an agent may take to come back before it counts as missing: it tries once a minute at
    /// least.
    pub offline_patience: Duration,
    /// How long a sample may wait for others to be committed with.
    pub commit_interval: Duration,
    /// When the history is moved on.
    pub archive: Schedule,
    /// How often the free space of the disk is looked at.
    pub disk_look: Duration,
    /// How fast notifications follow each other, and how long one is tried.
    pub notify: Pace,
    /// How long those who download an agent may take.
    pub downloads: Limits,
}

/// OWASP's recommendation for PBKDF2-HMAC-SHA256 (Password Storage Cheat Sheet, 2023).
pub const PASSWORD_ITERATIONS: u32 = 600_000;

/// Enough for the log of one large transaction and the sealing of what is open.
pub const MIN_FREE_BYTES: u64 = 256 * 1024 * 1024;

impl Default for Timing {
    fn default() -> Self {
        Self {
            access_token: Duration::from_secs(30 * 60),
            refresh_token: Duration::from_secs(7 * 24 * 3600),
            refresh_grace: Duration::from_secs(10),
            expiry_notice: Duration::from_secs(60),
            auth_deadline: Duration::from_secs(10),
            ping_interval: Duration::from_secs(20),
            silence_limit: Duration::from_secs(60),
            server_list: Duration::from_secs(30),
            list_news: Duration::from_millis(250),
            offline_patience: Duration::from_secs(75),
            commit_interval: Duration::from_millis(250),
            archive: Schedule::default(),
            disk_look: Duration::from_secs(2),
            notify: Pace::default(),
            downloads: Limits::default(),
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
            database_url: None,
            database: DatabaseSettings::default(),
            nats: None,
            nats_prefix: "signalbox".to_owned(),
            drain: None,
            public_url: None,
            trusted_proxies: Vec::new(),
            jwt_secret_file: None,
            registration: Registration::Open,
            web: WebInterface::On,
            allowed_origins: Vec::new(),
            password_iterations: PASSWORD_ITERATIONS,
            install_dir: None,
            workers: None,
            retention: Retention::default(),
            command_days: 90,
            alert_days: 365,
            min_free_bytes: MIN_FREE_BYTES,
            encryption_key_file: None,
            notification_networks: Vec::new(),
            notification_ca_file: None,
            smtp_url: None,
            smtp_from: None,
            timing: Timing::default(),
        }
    }

    /// The database to open, with its password if it has one.
    pub fn database_url(&self) -> String {
        match &self.database_url {
            Some(url) => url.expose_secret().to_owned(),
            None => format!("sqlite://{}?mode=rwc", as_url_path(&self.data_dir.join("signalbox.db"))),
        }
    }

    /// Where the embedded database lies; none where another engine keeps the data.
    pub fn database_directory(&self) -> Option<PathBuf> {
        let Some(url) = &self.database_url else { return Some(self.data_dir.clone()) };
        let path = url.expose_secret().strip_prefix("sqlite:")?.trim_start_matches("//");
        let path = path.split('?').next().unwrap_or_default();
        let parent = Path::new(path).parent().filter(|parent| !parent.as_os_str().is_empty());
        Some(parent.map_or_else(|| PathBuf::from("."), Path::to_owned))
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
}
