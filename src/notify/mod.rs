//! Telling people of alerts: channels, the outbox and what sends it.
//!
//! What is to be told is written to the outbox in the transaction that opens or resolves an alert. The notifier, an
//! actor, sends it at least once, each message with a key by which a receiver knows a repetition.

pub mod channel;
pub mod format;
pub mod guard;
mod http;
pub mod mail;
pub mod message;
mod resolver;
pub mod sender;
mod trust;

/// Wakes whoever sends, behind cheap clones.
#[derive(Clone, Default)]
pub struct Notifier {}

impl Notifier {
    /// Something may lie in the outbox.
    pub fn nudge(&self) {}
}
