//! What crosses instances: short messages on named subjects, and nothing that must not be lost.
//!
//! A [`Bus`] carries bytes. Whoever asks on a subject that nobody listens on knows so at once; whoever tells on one does
//! not care. There is [`nats`]; unit tests join instances of one process by `local`.

pub mod blob;
#[cfg(test)]
pub mod local;
pub mod nats;
pub mod post;
pub mod subject;

use std::future::Future;
use std::pin::Pin;
use std::time::Duration;

use bytes::Bytes;
use tokio::sync::{mpsc, oneshot};

/// A future of a [`Bus`].
pub type BusFuture<'a, T> = Pin<Box<dyn Future<Output = Result<T, BusError>> + Send + 'a>>;

/// Deliveries of one subscription that may wait; what comes then is lost, and whoever asked is told by the deadline.
pub const MOST_WAITING: usize = 1_024;

/// Carries messages between instances.
pub trait Bus: Send + Sync + 'static {
    /// Tells whoever listens. Nobody knows whether it arrives.
    fn publish(&self, subject: String, payload: Bytes) -> BusFuture<'_, ()>;

    /// Asks the one who listens, and waits for the answer until `deadline` has passed.
    fn request(&self, subject: String, payload: Bytes, deadline: Duration) -> BusFuture<'_, Bytes>;

    /// Listens. When this resolves nothing that is sent later is missed.
    fn subscribe(&self, subject: String) -> BusFuture<'_, Subscription>;

    /// Whether messages can be carried at this moment.
    fn is_up(&self) -> bool;

    /// The most bytes of one message.
    fn most_bytes(&self) -> usize;
}

/// Why a message was not carried.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub enum BusError {
    #[error("nobody listens on the subject")]
    NoResponder,
    #[error("no answer came in time")]
    Timeout,
    #[error("the message bus does not answer")]
    Away,
    #[error("the message is too large for the message bus")]
    TooLarge,
    #[error("the message cannot be read")]
    Malformed,
}

/// A message that came.
pub struct Delivery {
    pub payload: Bytes,
    answer: Option<Answer>,
}

/// The way back to whoever asked.
type Answer = Box<dyn FnOnce(Bytes) + Send>;

impl Delivery {
    pub(self) fn new(payload: Bytes, answer: Option<Answer>) -> Self {
        Self { payload, answer }
    }

    /// Answers, if somebody asked.
    pub fn answer(self, payload: Bytes) {
        if let Some(answer) = self.answer {
            answer(payload);
        }
    }

    /// The message and the way to answer it.
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

/// A place on a subject, given up when dropped.
pub struct Subscription {
    deliveries: mpsc::Receiver<Delivery>,
    /// Closed by the drop, which ends whatever feeds the channel.
    _ends: oneshot::Sender<()>,
}

impl Subscription {
    /// The next message; none when the bus has ended.
    pub async fn next(&mut self) -> Option<Delivery> {
        self.deliveries.recv().await
    }
}
