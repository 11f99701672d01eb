//! The record made before a message is handed over. From then on it may have arrived, even if this process dies.

use std::future::Future;
use std::pin::Pin;

use crate::store::Progress;

/// Records that a message is about to be handed over.
pub trait HandOver: Send + Sync {
    /// `progress` is how the recipients stand if no answer ever arrives. Returns false if it could not be recorded, or if
    /// another instance sends the message: the message must not be handed over then.
    fn begins<'a>(&'a self, progress: &'a Progress) -> Noting<'a>;
}

pub type Noting<'a> = Pin<Box<dyn Future<Output = bool> + Send + 'a>>;

/// For a message that is not in the outbox.
#[derive(Debug, Clone, Copy, Default)]
pub struct Unkept;

impl HandOver for Unkept {
    fn begins<'a>(&'a self, _: &'a Progress) -> Noting<'a> {
        Box::pin(std::future::ready(true))
    }
}
