//! What is noted before a message is handed over. From then on it may have arrived, whatever becomes of this process.

use std::future::Future;
use std::pin::Pin;

use crate::store::Progress;

/// Notes that a message is about to be handed over.
pub trait HandOver: Send + Sync {
    /// `progress` is how the recipients stand if there is never an answer. Gives false where it could not be noted, or
    /// somebody else sends the message: it must not be handed over then.
    fn begins<'a>(&'a self, progress: &'a Progress) -> Noting<'a>;
}

pub type Noting<'a> = Pin<Box<dyn Future<Output = bool> + Send + 'a>>;

/// For a message that nobody keeps.
#[derive(Debug, Clone, Copy, Default)]
pub struct Unkept;

impl HandOver for Unkept {
    fn begins<'a>(&'a self, _: &'a Progress) -> Noting<'a> {
        Box::pin(std::future::ready(true))
    }
}
