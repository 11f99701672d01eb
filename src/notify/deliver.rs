//! The trait through which the notifier delivers a message, so that it is tested without a network.

use std::future::Future;
use std::pin::Pin;

use super::channel::Settings;
use super::hand_over::HandOver;
use super::message::Message;
use super::sender::{Receipt, Refusal, Refused, Sender};
use crate::store::Progress;

/// Delivers messages.
pub trait Deliver: Send + Sync + 'static {
    /// Sends the message once to each recipient who does not have it yet. Returns within the limits of its stages.
    fn send<'a>(
        &'a self,
        settings: &'a Settings,
        message: &'a Message,
        before: &'a Progress,
        hand_over: &'a dyn HandOver,
    ) -> Delivering<'a>;

    /// Returns the public key for the subscriptions of browsers, if the service can send to them.
    fn push_key(&self) -> Option<&str>;

    /// Checks whether a channel may have this URL. The error says why not, for people to read.
    fn check_url(&self, url: &str) -> Result<(), String>;
}

/// A delivery on its way.
pub type Delivering<'a> = Pin<Box<dyn Future<Output = Result<Receipt, Refused>> + 'a>>;

/// After this many attempts that the receiver answered with a failure, a message no longer holds up the next ones: the
/// receiver may be unable to process this message alone. The ends of its alerts still wait for it.
const MAX_HOLDING_ATTEMPTS: i32 = 3;

impl Refusal {
    /// Returns the word for it in the audit log.
    pub fn word(self) -> &'static str {
        match self {
            Self::Unreachable => "unreachable",
            Self::Deferred => "deferred",
            Self::Perhaps => "perhaps",
            Self::Rejected | Self::TooLarge => "rejected",
            Self::Gone => "gone",
            Self::Forbidden => "forbidden",
            Self::Misconfigured => "misconfigured",
        }
    }
}

impl Refused {
    /// Returns whether later messages of the channel have to wait, because they would fail the same way. `attempts` is how
    /// often this message was sent.
    pub fn holds_others(&self, attempts: i32) -> bool {
        if self.progress.has_begun() {
            return false;
        }
        match self.kind {
            Refusal::Unreachable | Refusal::Forbidden | Refusal::Misconfigured => true,
            Refusal::Deferred => self.retry_after.is_some() || attempts < MAX_HOLDING_ATTEMPTS,
            Refusal::Perhaps | Refusal::Rejected | Refusal::Gone | Refusal::TooLarge => false,
        }
    }

    /// Returns whether the items of this message are sent again in smaller messages. A single one cannot be divided: it is
    /// retried like any message that was rejected.
    pub fn splits(&self, items: usize) -> bool {
        self.kind == Refusal::TooLarge && items > 1
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

    fn push_key(&self) -> Option<&str> {
        self.push_key()
    }

    fn check_url(&self, url: &str) -> Result<(), String> {
        self.check_url(url)
    }
}
