//! The bus between instances: short messages on named subjects. Nothing that must not be lost goes through it.
//!
//! A [`Bus`] carries bytes. A request on a subject without listeners fails at once; a published message is then dropped
//! silently. Production uses [`nats`]; unit tests join the instances of one process with `local`.

pub mod blob;
pub mod client;
#[cfg(test)]
pub mod local;
pub mod nats;
pub mod subject;

use std::future::Future;
use std::pin::Pin;
use std::time::Duration;

use bytes::Bytes;
use tokio::sync::{mpsc, oneshot};

/// The future that a [`Bus`] returns.
pub type BusFuture<'a, T> = Pin<Box<dyn Future<Output = Result<T, BusError>> + Send + 'a>>;

/// Deliveries that may wait in one subscription. Later ones are lost; a caller that asked learns of it by its deadline.
pub const MAX_WAITING: usize = 1_024;

/// Carries messages between instances.
pub trait Bus: Send + Sync + 'static {
    /// Publishes to all listeners. The sender does not learn whether the message arrives.
    fn publish(&self, subject: String, payload: Bytes) -> BusFuture<'_, ()>;

    /// Asks one listener, and waits for the answer for at most `deadline`. [`BusError::Away`] means that the question was not
    /// sent.
    fn request(&self, subject: String, payload: Bytes, deadline: Duration) -> BusFuture<'_, Bytes>;

    /// Subscribes to a subject. Once this resolves, nothing that is sent later is missed.
    fn subscribe(&self, subject: String) -> BusFuture<'_, Subscription>;

    /// Whether the bus can carry messages at this moment.
    fn is_up(&self) -> bool;

    /// How often it has connected: what was sent before the last time may be lost.
    fn connects(&self) -> u64;

    /// How many messages that arrived were lost, because their receivers were too slow.
    fn lost(&self) -> u64;

    /// The size limit of one message, in bytes.
    fn most_bytes(&self) -> usize;
}

/// Why a message was not carried.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub enum BusError {
    #[error("no instance listens on the subject")]
    NoResponder,
    #[error("no answer in time")]
    Timeout,
    #[error("the message bus does not answer")]
    Away,
    #[error("the message is too large for the message bus")]
    TooLarge,
    #[error("the message cannot be read")]
    Malformed,
}

/// A message that arrived.
pub struct Delivery {
    pub payload: Bytes,
    answer: Option<Answer>,
}

/// The way back to the caller.
type Answer = Box<dyn FnOnce(Bytes) + Send>;

impl Delivery {
    pub(self) fn new(payload: Bytes, answer: Option<Answer>) -> Self {
        Self { payload, answer }
    }

    /// Answers, if the sender asked for an answer.
    pub fn answer(self, payload: Bytes) {
        if let Some(answer) = self.answer {
            answer(payload);
        }
    }

    /// The message, and the function that answers it.
    pub fn into_parts(self) -> (Bytes, impl FnOnce(Bytes) + Send) {
        let answer = self.answer;
        let reply = move |payload| {
            if let Some(answer) = answer {
                answer(payload);
            }
        };
        (self.payload, reply)
    }
}

/// A subscription to one subject; dropping it unsubscribes.
pub struct Subscription {
    deliveries: mpsc::Receiver<Delivery>,
    /// Dropping it ends the task that fills the channel.
    _ends: oneshot::Sender<()>,
}

impl Subscription {
    /// Returns the next message, or `None` when the bus has ended.
    pub async fn next(&mut self) -> Option<Delivery> {
        self.deliveries.recv().await
    }
}
