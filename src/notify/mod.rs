//! Notifies people of alerts: channels, the outbox, and the actor that sends its messages.
//!
//! The transaction that opens or resolves an alert also writes the notification to the outbox. The [`dispatcher`], an actor
//! that the [`Notifier`] addresses, sends each message until the receiver accepts it, with a key by which a receiver
//! recognises a duplicate. A message that was handed over without an answer is sent once more. [`delivery`] sends one message,
//! [`gathering`] and [`pace`] decide when messages follow each other, [`limits`] how long one may take, [`sizes`] remembers how many alerts the
//! receiver of a channel accepts in one, [`deliver`] is the trait that
//! delivers them, [`push`] encrypts for browsers, [`hand_over`] records that one may have arrived, [`seal`] encrypts the settings of channels, and
//! [`senders`] describes other instances that send.

pub mod channel;
pub mod deliver;
mod delivery;
mod dispatcher;
pub mod format;
mod gathering;
pub mod guard;
pub mod hand_over;
mod http;
pub mod limits;
pub mod mail;
pub mod message;
mod notifier;
mod on_the_way;
pub mod pace;
pub mod push;
mod resolver;
pub mod seal;
pub mod sender;
pub mod senders;
mod sizes;

pub use notifier::{Holding, Notifier, Parts, Silences, TestError, Tested};
