//! Sends a message on a channel, once, and says what came of it.
//!
//! Who makes a channel chooses where the service connects to. So every address is checked where it is connected to
//! ([`Guard`], [`Resolver`](super::resolver::Resolver)), again on each redirect, no proxy of the environment steps in between, and nothing of an
//! answer but its status goes back to the owner of the channel.

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
use crate::store::Progress;
use crate::tls;

/// How messages are sent.
pub struct SenderConfig {
    /// What may be reached although it is not public.
    pub networks: Vec<IpNet>,
    /// Authorities to trust beside the system's.
    pub ca_file: Option<PathBuf>,
    pub smtp: Option<SmtpConfig>,
    /// Where people reach the service, for links.
    pub public_url: Option<String>,
    /// How long each stage of a delivery may take.
    pub limits: Limits,
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

/// Nobody is left who has to be sent the message.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Receipt {
    /// For the delivery log: who took it, and who did not.
    pub detail: String,
    pub progress: Progress,
}

/// Somebody is left who has to be sent the message.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{detail}")]
pub struct Refused {
    pub kind: Refusal,
    /// For the delivery log: a sentence that holds no path, no query and no secret.
    pub detail: String,
    /// When the receiver wants to be asked again.
    pub retry_after: Option<Duration>,
    /// How each recipient stands.
    pub progress: Progress,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Refusal {
    /// Nobody answered, or nobody who takes messages. It was not handed over, and may go better the next time.
    Unreachable,
    /// The receiver answered that it cannot take this message now.
    Deferred,
    /// The message was handed over, and there was no answer in time: it may have arrived.
    Perhaps,
    /// The receiver does not want this message.
    Rejected,
    /// The address is none that the service may connect to.
    Forbidden,
    /// The settings make no request, or the service lacks a mail server.
    Misconfigured,
}

impl Refused {
    pub fn new(kind: Refusal, detail: impl Into<String>) -> Self {
        Self { kind, detail: detail.into(), retry_after: None, progress: Progress::default() }
    }

    /// The same, with how the recipients stand.
    pub fn with(self, progress: Progress) -> Self {
        Self { progress, ..self }
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
        Ok(Self { inner: Arc::new(Inner { http, mailer, public_url: config.public_url }) })
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
            Outgoing::Mail(mail) => match &self.inner.mailer {
                Some(mailer) => mailer.send(&mail, message, before, hand_over).await,
                None => Err(misfit("the service has no mail server".to_owned())),
            },
        }
    }

    /// Whether a channel may have this URL, as far as it can be told without looking its name up.
    pub fn check_url(&self, url: &str) -> Result<(), String> {
        self.inner.http.admit(url).map(drop).map_err(|refused| refused.detail)
    }
}
