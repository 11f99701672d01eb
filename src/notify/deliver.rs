//! What carries a message to its destination, as the notifier sees it: so it is tested without a network.

use std::future::Future;
use std::pin::Pin;
use std::time::Duration;

use super::channel::Settings;
use super::message::Message;

/// Carries messages.
pub trait Deliver: Send + Sync + 'static {
    /// Sends it once, and comes back within seconds.
    fn send<'a>(&'a self, settings: &'a Settings, message: &'a Message) -> Delivering<'a>;

    /// Whether this may be the address of a channel; why not, for a person.
    fn check_url(&self, url: &str) -> Result<(), String>;
}

/// A delivery on its way.
pub type Delivering<'a> = Pin<Box<dyn Future<Output = Result<(), Refused>> + 'a>>;

/// Why a message was not taken.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Refused {
    pub kind: RefusedKind,
    /// For the owner's delivery log: without addresses and secrets.
    pub detail: String,
    /// When the destination wants to be asked again.
    pub retry_after: Option<Duration>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum RefusedKind {
    /// Nobody is there, or cannot take anything now.
    Unreachable,
    /// The destination does not take this message.
    Rejected,
    /// It lies where the configuration does not let anybody send.
    Forbidden,
    /// Something is missing here.
    Misconfigured,
}

impl RefusedKind {
    /// As the audit log is told.
    pub fn word(self) -> &'static str {
        match self {
            Self::Unreachable => "unreachable",
            Self::Rejected => "rejected",
            Self::Forbidden => "forbidden",
            Self::Misconfigured => "misconfigured",
        }
    }

    /// As whoever tests a channel is told: nothing by which the network could be explored.
    pub fn sentence(self) -> &'static str {
        match self {
            Self::Unreachable => "the destination could not be reached",
            Self::Rejected => "the destination refused the message",
            Self::Forbidden => "the destination lies in a network that is not allowed",
            Self::Misconfigured => "the channel cannot be used as it is set up",
        }
    }

    /// Whether what comes after it would fare the same, and has to wait.
    pub fn holds_others(self) -> bool {
        match self {
            Self::Unreachable | Self::Forbidden | Self::Misconfigured => true,
            Self::Rejected => false,
        }
    }
}

impl Refused {
    pub fn new(kind: RefusedKind, detail: impl Into<String>) -> Self {
        Self { kind, detail: detail.into(), retry_after: None }
    }
}
