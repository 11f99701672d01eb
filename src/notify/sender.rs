//! Sends a message on a channel, once, and says what came of it.
//!
//! Who makes a channel chooses where the service connects to. So every address is checked where it is connected to
//! ([`Guard`], [`Resolver`]), on each redirect anew, no proxy of the environment steps in between, and nothing of an
//! answer but its status goes back to whoever made the channel.

use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

use ipnet::IpNet;
use signalbox_protocol::Timestamp;

use super::channel::Settings;
use super::format::{self, Outgoing};
use super::guard::Guard;
use super::http::Http;
use super::mail::{Mailer, SmtpConfig};
use super::message::Message;
use super::trust;

/// How messages are sent.
pub struct SenderConfig {
    /// What may be reached although it is not public.
    pub networks: Vec<IpNet>,
    /// Authorities to trust beside the system's.
    pub ca_file: Option<PathBuf>,
    pub smtp: Option<SmtpConfig>,
    /// Where people reach the service, for links.
    pub public_url: Option<String>,
    /// For everything from the look-up of the name to the answer's status.
    pub timeout: Duration,
}

/// Why nothing can be sent at all.
#[derive(Debug, thiserror::Error)]
pub enum SenderError {
    #[error("--notification-ca-file {}: {detail}", .path.display())]
    CaFile { path: PathBuf, detail: String },
    #[error("--smtp-url: {0}")]
    SmtpUrl(&'static str),
    #[error("--smtp-from: {0:?} is not an e-mail address")]
    SmtpFrom(String),
    #[error("sending cannot be set up: {0}")]
    Setup(String),
}

/// The message was taken.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Receipt {
    /// For the delivery log: who took it.
    pub detail: String,
}

/// The message was not taken.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{detail}")]
pub struct Refused {
    pub kind: Refusal,
    /// For the delivery log: a sentence that holds no path, no query and no secret.
    pub detail: String,
    /// When the receiver wants to be asked again.
    pub retry_after: Option<Duration>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Refusal {
    /// Nobody answered, or not now. It may go better the next time.
    Unreachable,
    /// The receiver does not want this message.
    Rejected,
    /// The address is none that the service may connect to.
    Forbidden,
    /// The settings make no request, or the service lacks a mail server.
    Misconfigured,
}

impl Refused {
    pub(super) fn new(kind: Refusal, detail: impl Into<String>) -> Self {
        Self { kind, detail: detail.into(), retry_after: None }
    }
}

/// Sends messages, behind cheap clones.
#[derive(Clone)]
pub struct Sender {
    inner: Arc<Inner>,
}

struct Inner {
    http: Http,
    mailer: Option<Mailer>,
    public_url: Option<String>,
}

impl Sender {
    pub fn new(config: SenderConfig) -> Result<Self, SenderError> {
        let extra_roots = match config.ca_file {
            Some(path) => Some(trust::extra_roots(&path).map_err(|detail| SenderError::CaFile { path, detail })?),
            None => None,
        };
        let tls =
            trust::client_config(extra_roots.as_deref()).map_err(|error| SenderError::Setup(error.to_string()))?;
        let http = Http::new(Arc::new(Guard::new(config.networks)), tls, config.timeout)
            .map_err(|error| SenderError::Setup(error.to_string()))?;
        let mailer = match config.smtp {
            Some(smtp) => Some(Mailer::new(&smtp, extra_roots.as_deref(), config.timeout)?),
            None => None,
        };
        Ok(Self { inner: Arc::new(Inner { http, mailer, public_url: config.public_url }) })
    }

    /// Whether there is a mail server.
    pub fn sends_mail(&self) -> bool {
        self.inner.mailer.is_some()
    }

    /// Sends a message once.
    pub async fn send(&self, settings: &Settings, message: &Message) -> Result<Receipt, Refused> {
        let rendered = format::render(settings, message, self.inner.public_url.as_deref(), Timestamp::now());
        match rendered.map_err(|unfit| Refused::new(Refusal::Misconfigured, unfit.to_string()))? {
            Outgoing::Request(request) => self.inner.http.post(&request).await,
            Outgoing::Mail(mail) => match &self.inner.mailer {
                Some(mailer) => mailer.send(&mail, message).await,
                None => Err(Refused::new(Refusal::Misconfigured, "the service has no mail server")),
            },
        }
    }

    /// Whether a channel may have this URL, as far as it can be told without looking its name up.
    pub fn check_url(&self, url: &str) -> Result<(), String> {
        self.inner.http.admit(url).map(drop).map_err(|refused| refused.detail)
    }
}
