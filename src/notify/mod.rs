//! Telling people of alerts: channels, the outbox and what sends it.
//!
//! What is to be told is written to the outbox in the transaction that opens or resolves an alert. The [`courier`], an
//! actor behind the [`Notifier`], sends it until it is taken, each message with a key by which a receiver knows a
//! repetition; where it was handed over and nobody answered, once more. [`desk`] is one message, [`pace`] how fast they
//! follow each other, [`limits`] how long one may take, [`deliver`] what carries them, [`hand_over`] what is noted before,
//! [`seal`] how their destinations are kept, [`senders`] who else sends.

pub mod channel;
mod courier;
pub mod deliver;
mod desk;
pub mod format;
pub mod guard;
pub mod hand_over;
mod http;
pub mod limits;
pub mod mail;
pub mod message;
mod notifier;
mod on_the_way;
pub mod pace;
mod resolver;
pub mod seal;
pub mod sender;
pub mod senders;

pub use notifier::{Holding, Notifier, Parts, Silences, TestError, Tested};
