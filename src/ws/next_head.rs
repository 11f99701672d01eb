//! How long a client may take for the head of its next request.

use std::pin::Pin;
use std::task::{Context, Poll, ready};
use std::time::Duration;

use tokio::time::{Instant, Sleep, sleep_until};

/// How long the head of the next request may take after an answer. The library itself limits only the head of a connection's first
/// request, and the pause before the first byte of the next one: each to 5 s.
pub const NEXT_HEAD: Duration = Duration::from_secs(10);

/// When the head of the next request must be there.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum NextHead {
    /// There was no request yet, or one is being answered.
    Unlimited,
    /// The answer has ended, but its client may read it slowly.
    OnceSent,
    Until(Instant),
}

/// Goes off when a head is late. It is not set for each request: when it goes off, it is moved to the deadline that counts then.
#[derive(Default)]
pub struct Alarm(Option<Pin<Box<Sleep>>>);

impl Alarm {
    /// Resolves when that head is late.
    pub fn poll(&mut self, next_head: NextHead, cx: &mut Context<'_>) -> Poll<()> {
        let NextHead::Until(deadline) = next_head else { return Poll::Pending };
        let alarm = self.0.get_or_insert_with(|| Box::pin(sleep_until(deadline)));
        ready!(alarm.as_mut().poll(cx));
        if alarm.deadline() < deadline {
            // It was set for an earlier request.
            alarm.as_mut().reset(deadline);
            ready!(alarm.as_mut().poll(cx));
        }
        Poll::Ready(())
    }
}
