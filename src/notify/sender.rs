//! Sends a message on a channel once, and returns the outcome.
//!
//! The owner of a channel chooses where the service connects to. So the service checks every address at the moment it
//! connects ([`Guard`], [`Resolver`](super::resolver::Resolver)) and again on each redirect, uses no proxy from the
//! environment, and shows the owner nothing of a response except its status.

use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

use ipnet::IpNet;
use signalbox_protocol::Timestamp;

use super::channel::Settings;
use super::format::{self, Outgoing};
use super::guard::Guard;
use super::hand_over::{HandOver, Unkept};
use super::http::Http;
use super::limits::Limits;
use super::mail::{Mailer, SmtpConfig};
use super::message::Message;
use super::push::{self, PushKey, PushKeyError};
use crate::store::Progress;
use crate::tls;

/// The settings of a [`Sender`].
pub struct SenderConfig {
    /// Networks that may be reached although they are not public.
    pub networks: Vec<IpNet>,
    /// Certificate authorities to trust in addition to the system's.
    pub ca_file: Option<PathBuf>,
    pub smtp: Option<SmtpConfig>,
    /// The key for push messages to browsers; without, none can be sent.
    pub push_key: Option<PushKey>,
    /// The address at which people reach the service, for links.
    pub public_url: Option<String>,
    /// How long each stage of a delivery may take.
    pub limits: Limits,
}

/// Why the sender cannot be set up.
#[derive(Debug, thiserror::Error)]
pub enum SenderError {
    #[error("--notification-ca-file {}: {detail}", .path.display())]
    CaFile { path: PathBuf, detail: String },
    #[error("--smtp-url: {0}")]
    SmtpUrl(&'static str),
    #[error("--smtp-from: {0:?} is not an e-mail address")]
    SmtpFrom(String),
    #[error(transparent)]
    PushKey(#[from] PushKeyError),
    #[error("notifications cannot be set up: {0}")]
    Setup(String),
}

/// The message does not have to be sent to anybody any more.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Receipt {
    /// For the delivery log: which recipients accepted it and which did not.
    pub detail: String,
    pub progress: Progress,
}

/// At least one recipient still has to get the message.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{detail}")]
pub struct Refused {
    pub kind: Refusal,
    /// For the delivery log: a sentence without a path, a query or a secret.
    pub detail: String,
    /// The pause that the receiver asks for.
    pub retry_after: Option<Duration>,
    /// The state of each recipient.
    pub progress: Progress,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Refusal {
    /// No receiver answered, or none that accepts messages. The message was not handed over; a retry may succeed.
    Unreachable,
    /// The receiver answered that it cannot take this message now.
    Deferred,
    /// The message was handed over, and there was no answer in time: it may have arrived.
    Perhaps,
    /// The receiver refuses this message for good.
    Rejected,
    /// The receiver has ended for good, and will never take a message again.
    Gone,
    /// The receiver refuses a message of this size.
    TooLarge,
    /// The service may not connect to this address.
    Forbidden,
    /// The settings are not valid, or the service has no mail server.
    Misconfigured,
}

impl Refused {
    pub fn new(kind: Refusal, detail: impl Into<String>) -> Self {
        Self { kind, detail: detail.into(), retry_after: None, progress: Progress::default() }
    }

    /// Returns the same refusal with the state of each recipient.
    pub fn with(self, progress: Progress) -> Self {
        Self { progress, ..self }
    }
}

/// Sends messages; cheap to clone.
#[derive(Clone)]
pub struct Sender {
    inner: Arc<Inner>,
}

struct Inner {
    http: Http,
    mailer: Option<Mailer>,
    push_key: Option<PushKey>,
    public_url: Option<String>,
}

impl Sender {
    pub fn new(config: SenderConfig) -> Result<Self, SenderError> {
        let extra_roots = match config.ca_file {
            Some(path) => Some(tls::extra_roots(&path).map_err(|detail| SenderError::CaFile { path, detail })?),
            None => None,
        };
        let tls = tls::client_config(extra_roots.as_deref()).map_err(|error| SenderError::Setup(error.to_string()))?;
        let http = Http::new(Arc::new(Guard::new(config.networks)), tls, config.limits)
            .map_err(|error| SenderError::Setup(error.to_string()))?;
        let mailer = match config.smtp {
            Some(smtp) => Some(Mailer::new(&smtp, extra_roots.as_deref(), config.limits)?),
            None => None,
        };
        let SenderConfig { push_key, public_url, .. } = config;
        Ok(Self { inner: Arc::new(Inner { http, mailer, push_key, public_url }) })
    }

    /// Sends a message once.
    pub async fn send(&self, settings: &Settings, message: &Message) -> Result<Receipt, Refused> {
        self.send_rest(settings, message, &Progress::default(), &Unkept).await
    }

    /// Sends a message once to those who do not have it yet.
    pub async fn send_rest(
        &self,
        settings: &Settings,
        message: &Message,
        before: &Progress,
        hand_over: &dyn HandOver,
    ) -> Result<Receipt, Refused> {
        let misfit = |detail: String| Refused::new(Refusal::Misconfigured, detail).with(before.clone());
        let rendered = format::render(settings, message, self.inner.public_url.as_deref(), Timestamp::now());
        match rendered.map_err(|unfit| misfit(unfit.to_string()))? {
            Outgoing::Request(request) => {
                let destination = settings.destination();
                self.inner.http.post(&request, &destination, before, hand_over).await
            }
            Outgoing::Push(push) => {
                let key = self.inner.push_key.as_ref();
                let key = key.ok_or_else(|| misfit("the service has no push key (--push-key-file)".to_owned()))?;
                let request = push::request(&push, key, self.inner.contact(), Timestamp::now());
                let request = request.map_err(|error| misfit(error.to_string()))?;
                self.inner.http.post(&request, &settings.destination(), before, hand_over).await
            }
            Outgoing::Mail(mail) => match &self.inner.mailer {
                Some(mailer) => mailer.send(&mail, message, before, hand_over).await,
                None => Err(misfit("the service has no mail server (--smtp-url)".to_owned())),
            },
        }
    }

    /// Returns the public key for the subscriptions of browsers, if the service can send to them.
    pub fn push_key(&self) -> Option<&str> {
        self.inner.push_key.as_ref().map(PushKey::public_key)
    }

    /// Checks whether a channel may have this URL, as far as that can be decided without resolving its host name.
    pub fn check_url(&self, url: &str) -> Result<(), String> {
        self.inner.http.admit(url).map(drop).map_err(|refused| refused.detail)
    }
}

impl Inner {
    /// The address of the operator, for push services. They accept only HTTPS.
    fn contact(&self) -> Option<&str> {
        self.public_url.as_deref().filter(|url| url.starts_with("https://"))
    }
}
