//! Limits how many callers are inside at the same time; the others wait for the turn of their share.

use std::collections::HashMap;
use std::fmt;
use std::sync::Arc;
use std::time::{Duration, Instant};

use parking_lot::{Mutex, MutexGuard};
use tokio::sync::oneshot;

use super::line::{Arrival, Limits, Line, Ticket};
use super::share::{Part, Share};

/// There is no room in the line either.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[error("too many requests are waiting")]
pub struct Full;

/// A bounded pool, and the line in front of it.
#[derive(Clone)]
pub struct Gate(Arc<Shared>);

struct Shared {
    pool: &'static str,
    state: Mutex<State>,
}

struct State {
    line: Line,
    waiting: HashMap<Ticket, oneshot::Sender<Permit>>,
}

/// Permission to be inside, until dropped.
pub struct Permit {
    gate: Gate,
    share: Share,
}

/// A waiting caller; leaves the line when dropped.
struct Waiting<'a> {
    gate: &'a Gate,
    ticket: Ticket,
}

impl Gate {
    /// A gate whose metrics have the label `pool`.
    pub fn new(pool: &'static str, limits: Limits) -> Self {
        let state = Mutex::new(State { line: Line::new(limits), waiting: HashMap::new() });
        Self(Arc::new(Shared { pool, state }))
    }

    /// Enters for a share when its turn comes. A caller that drops the future leaves the line.
    pub async fn enter(&self, share: Share) -> Result<Permit, Full> {
        self.enter_part(share, Part::default()).await
    }

    /// As [`Self::enter`], for a part of a share: parts take turns within their share.
    pub async fn enter_part(&self, share: Share, part: Part) -> Result<Permit, Full> {
        let (waiting, permit) = match self.arrive(share, part) {
            Ok(permit) => return Ok(permit),
            Err(waiting) => waiting.ok_or(Full)?,
        };
        let since = Instant::now();
        let entered = permit.await;
        drop(waiting);
        metrics::histogram!("signalbox_share_wait_seconds", "pool" => self.0.pool)
            .record(since.elapsed().as_secs_f64());
        // A displaced caller gets an error: no sender is left for its permit.
        entered.map_err(|_| Full)
    }

    /// As [`Self::enter`], for a caller that waits no longer than `patience`.
    pub async fn enter_within(&self, share: Share, patience: Duration) -> Result<Permit, Full> {
        match tokio::time::timeout(patience, self.enter(share)).await {
            Ok(entered) => entered,
            Err(_) => {
                self.count_refused();
                Err(Full)
            }
        }
    }

    /// Enters if there is a place now, and otherwise fails.
    pub fn try_enter(&self, share: Share) -> Result<Permit, Full> {
        if self.state().line.enter_now(share) {
            return Ok(Permit { gate: self.clone(), share });
        }
        self.count_refused();
        Err(Full)
    }

    /// How many callers are inside.
    pub fn inside(&self) -> usize {
        self.state().line.inside()
    }

    /// How many callers wait.
    pub fn waiting(&self) -> usize {
        self.state().line.waiting()
    }

    #[allow(clippy::type_complexity, reason = "a waiter and its answer, taken apart at once")]
    fn arrive(&self, share: Share, part: Part) -> Result<Permit, Option<(Waiting<'_>, oneshot::Receiver<Permit>)>> {
        let mut state = self.state();
        match state.line.arrive(share, part) {
            Arrival::Enters => Ok(Permit { gate: self.clone(), share }),
            Arrival::Refused => {
                drop(state);
                self.count_refused();
                Err(None)
            }
            Arrival::Waits { ticket, displaced } => {
                let (sender, permit) = oneshot::channel();
                state.waiting.insert(ticket, sender);
                let displaced = displaced.and_then(|displaced| state.waiting.remove(&displaced));
                drop(state);
                if displaced.is_some() {
                    self.count_refused();
                }
                Err(Some((Waiting { gate: self, ticket }, permit)))
            }
        }
    }

    fn count_refused(&self) {
        metrics::counter!("signalbox_shares_refused_total", "pool" => self.0.pool).increment(1);
    }

    fn state(&self) -> MutexGuard<'_, State> {
        self.0.state.lock()
    }

    /// Admits all callers that may enter now.
    fn admit(&self) {
        loop {
            let mut state = self.state();
            let Some((ticket, share)) = state.line.admit() else { return };
            let sender = state.waiting.remove(&ticket);
            // Not while the state is locked: a permit whose caller has gone returns its place immediately.
            drop(state);
            let permit = Permit { gate: self.clone(), share };
            _ = sender.map(|sender| sender.send(permit));
        }
    }
}

impl Permit {
    /// Counts for another share from now on, because the caller has been identified.
    pub fn change(&mut self, to: Share) {
        self.gate.state().line.change(self.share, to);
        self.share = to;
        self.gate.admit();
    }
}

impl fmt::Debug for Permit {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("Permit").field(&self.gate.0.pool).finish()
    }
}

impl Drop for Permit {
    fn drop(&mut self) {
        self.gate.state().line.leave(self.share);
        self.gate.admit();
    }
}

impl Drop for Waiting<'_> {
    fn drop(&mut self) {
        let mut state = self.gate.state();
        state.line.cancel(self.ticket);
        // A caller that was admitted in the meantime is no longer here; its permit is dropped with the channel.
        let sender = state.waiting.remove(&self.ticket);
        drop(state);
        drop(sender);
    }
}

#[cfg(test)]
mod tests {
    use std::future::Future;
    use std::pin::pin;
    use std::task::{Context, Poll, Waker};

    use super::super::line::Stay;
    use super::*;

    fn gate(places: usize, waiting: usize) -> Gate {
        Gate::new("test", Limits { places, waiting, stay: Stay::Brief })
    }

    const ONE: Share = Share::Host(1);
    const OTHER: Share = Share::Host(2);

    fn poll<T>(future: std::pin::Pin<&mut impl Future<Output = T>>) -> Poll<T> {
        future.poll(&mut Context::from_waker(Waker::noop()))
    }

    #[tokio::test]
    async fn a_freed_place_goes_to_the_next_caller() {
        let gate = gate(1, 10);
        let first = gate.enter(ONE).await.unwrap();
        let mut second = pin!(gate.enter(OTHER));
        assert!(poll(second.as_mut()).is_pending());

        drop(first);

        let second = second.await.unwrap();
        assert_eq!((gate.inside(), gate.waiting()), (1, 0));
        drop(second);
        assert_eq!(gate.inside(), 0);
    }

    #[tokio::test]
    async fn a_caller_that_stops_waiting_leaves_nothing_behind() {
        let gate = gate(1, 10);
        let held = gate.enter(ONE).await.unwrap();
        {
            let mut gone = pin!(gate.enter(OTHER));
            assert!(poll(gone.as_mut()).is_pending());
            assert_eq!(gate.waiting(), 1);
        }

        assert_eq!(gate.waiting(), 0);
        drop(held);
        assert_eq!(gate.inside(), 0);
        assert!(gate.state().waiting.is_empty());
    }

    #[tokio::test]
    async fn a_place_of_a_caller_that_has_gone_goes_to_the_next() {
        let gate = gate(1, 10);
        let held = gate.enter(ONE).await.unwrap();
        let mut next = pin!(gate.enter(OTHER));
        {
            let mut gone = pin!(gate.enter(ONE));
            assert!(poll(gone.as_mut()).is_pending());
            assert!(poll(next.as_mut()).is_pending());
            // Admitted, and never polled.
            drop(held);
            assert!(gate.inside() == 1);
        }

        assert!(next.await.is_ok());
        assert_eq!(gate.inside(), 0);
    }

    #[tokio::test]
    async fn a_full_line_refuses_newcomers_and_displaced_callers() {
        let gate = gate(1, 2);
        let held = gate.enter(ONE).await.unwrap();
        let mut first = pin!(gate.enter(ONE));
        let mut second = pin!(gate.enter(ONE));
        assert!(poll(first.as_mut()).is_pending() && poll(second.as_mut()).is_pending());

        assert!(gate.enter(ONE).await.is_err());
        let mut other = pin!(gate.enter(OTHER));
        assert!(poll(other.as_mut()).is_pending());

        assert!(second.await.is_err());
        drop(held);
        assert!(other.await.is_ok());
        assert!(first.await.is_ok());
    }

    #[tokio::test(start_paused = true)]
    async fn a_caller_that_waits_too_long_is_refused_and_leaves_nothing_behind() {
        let gate = gate(1, 10);
        let held = gate.enter(ONE).await.unwrap();

        assert!(gate.enter_within(OTHER, Duration::from_secs(30)).await.is_err());

        assert_eq!(gate.waiting(), 0);
        drop(held);
        assert!(gate.enter_within(OTHER, Duration::from_secs(30)).await.is_ok());
    }

    #[tokio::test]
    async fn a_caller_that_does_not_wait_leaves_no_trace_in_the_line() {
        let gate = gate(1, 10);
        let _held = gate.try_enter(ONE).unwrap();

        assert!(gate.try_enter(OTHER).is_err());

        assert_eq!(gate.waiting(), 0);
    }
}
