//! What carries a message to its destination, as the notifier sees it: so it is tested without a network.

use std::future::Future;
use std::pin::Pin;

use super::channel::Settings;
use super::message::Message;
use super::sender::{Refusal, Refused, Sender};

/// Carries messages.
pub trait Deliver: Send + Sync + 'static {
    /// Sends it once, and comes back within seconds.
    fn send<'a>(&'a self, settings: &'a Settings, message: &'a Message) -> Delivering<'a>;

    /// Whether this may be the address of a channel; why not, for a person.
    fn check_url(&self, url: &str) -> Result<(), String>;
}

/// A delivery on its way.
pub type Delivering<'a> = Pin<Box<dyn Future<Output = Result<(), Refused>> + 'a>>;

impl Refusal {
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

impl Deliver for Sender {
    fn send<'a>(&'a self, settings: &'a Settings, message: &'a Message) -> Delivering<'a> {
        Box::pin(async move { self.send(settings, message).await.map(drop) })
    }

    fn check_url(&self, url: &str) -> Result<(), String> {
        self.check_url(url)
    }
}
