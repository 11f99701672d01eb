//! Telling people of alerts: channels, the outbox and what sends it.
//!
//! What is to be told is written to the outbox in the transaction that opens or resolves an alert. The [`courier`], an
//! actor behind the [`Notifier`], sends it at least once, each message with a key by which a receiver knows a
//! repetition. [`desk`] is one message, [`pace`] how fast they follow each other, [`deliver`] what carries them, [`seal`]
//! how their destinations are kept.

pub mod channel;
mod courier;
pub mod deliver;
mod desk;
pub mod format;
pub mod guard;
mod http;
pub mod mail;
pub mod message;
mod notifier;
pub mod pace;
mod resolver;
pub mod seal;
pub mod sender;
pub mod trust;

pub use notifier::{Holding, Notifier, Parts, Silences, TestError, Tested};
