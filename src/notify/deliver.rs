//! What carries a message to its destination, as the notifier sees it: so it is tested without a network.

use std::future::Future;
use std::pin::Pin;

use super::channel::Settings;
use super::hand_over::HandOver;
use super::message::Message;
use super::sender::{Receipt, Refusal, Refused, Sender};
use crate::store::Progress;

/// Carries messages.
pub trait Deliver: Send + Sync + 'static {
    /// Sends it once to those who do not have it yet, and comes back within the limits of its stages.
    fn send<'a>(
        &'a self,
        settings: &'a Settings,
        message: &'a Message,
        before: &'a Progress,
        hand_over: &'a dyn HandOver,
    ) -> Delivering<'a>;

    /// Whether this may be the address of a channel; why not, for a person.
    fn check_url(&self, url: &str) -> Result<(), String>;
}

/// A delivery on its way.
pub type Delivering<'a> = Pin<Box<dyn Future<Output = Result<Receipt, Refused>> + 'a>>;

/// Attempts of a message after which one that was answered holds up nothing else any more: it may be the message that
/// its receiver cannot digest.
const MAX_HOLDING_ATTEMPTS: i32 = 3;

impl Refusal {
    /// As the audit log is told.
    pub fn word(self) -> &'static str {
        match self {
            Self::Unreachable => "unreachable",
            Self::Deferred => "deferred",
            Self::Perhaps => "perhaps",
            Self::Rejected => "rejected",
            Self::Forbidden => "forbidden",
            Self::Misconfigured => "misconfigured",
        }
    }
}

impl Refused {
    /// Whether what comes after it would fare the same, and has to wait. `attempts` is how often it was sent.
    pub fn holds_others(&self, attempts: i32) -> bool {
        if self.progress.has_begun() {
            return false;
        }
        match self.kind {
            Refusal::Unreachable | Refusal::Forbidden | Refusal::Misconfigured => true,
            Refusal::Deferred => self.retry_after.is_some() || attempts < MAX_HOLDING_ATTEMPTS,
            Refusal::Perhaps | Refusal::Rejected => false,
        }
    }
}

impl Deliver for Sender {
    fn send<'a>(
        &'a self,
        settings: &'a Settings,
        message: &'a Message,
        before: &'a Progress,
        hand_over: &'a dyn HandOver,
    ) -> Delivering<'a> {
        Box::pin(self.send_rest(settings, message, before, hand_over))
    }

    fn check_url(&self, url: &str) -> Result<(), String> {
        self.check_url(url)
    }
}
