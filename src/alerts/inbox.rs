//! What waits for an evaluator. Samples that it cannot look at in time give way to newer ones, and are counted.

use std::collections::VecDeque;
use std::sync::atomic::{AtomicBool, AtomicI64, Ordering};
use std::sync::{Arc, OnceLock};

use actix::{Message, Recipient};
use parking_lot::{Mutex, MutexGuard};
use signalbox_protocol::Timestamp;
use signalbox_protocol::agent::Event;
use tokio::sync::{Notify, oneshot};

use super::seat::Seat;
use super::{Beside, Lane};
use crate::fleet::Snapshot;
use crate::store::{Alert, WatchedServer};

/// Samples and events that wait for one evaluator: a whole message of an agent that catches up. It looks at one in
/// microseconds, and waits for nothing but the database.
const MOST_WAITING: usize = signalbox_protocol::agent::MAX_SAMPLES + 256;

/// Changes by people that wait for one evaluator.
const MOST_ORDERS: usize = 1_024;

/// Something lies in the inbox: take it.
#[derive(Debug, Clone, Copy, Message)]
#[rtype(result = "()")]
pub(super) struct Wake;

/// What happened on the server.
pub(super) enum Input {
    Sample {
        snapshot: Arc<Snapshot>,
        beside: Beside,
        lane: Lane,
    },
    Event(Event),
    /// The machine was started again, as was written down then.
    Rebooted {
        at: Timestamp,
    },
}

/// What people changed.
pub(super) enum Change {
    Rules(Box<WatchedServer>),
    Acted(Box<Alert>),
    /// The server was deleted, and its alerts with it; or somebody else watches it.
    Gone,
}

/// What is looked at next.
pub(super) enum Next {
    /// Whoever waits is told when the evaluator goes by it.
    Order(Change, oneshot::Sender<()>),
    Input(Input),
}

/// All that came since the last time.
#[derive(Default)]
pub(super) struct Taken {
    orders: VecDeque<(Change, oneshot::Sender<()>)>,
    inputs: VecDeque<Input>,
}

#[derive(Default)]
struct Queue {
    taken: Taken,
    is_closed: bool,
}

pub(super) struct Inbox {
    /// By what right its server is watched here.
    pub seat: Seat,
    queue: Mutex<Queue>,
    /// Set when the evaluator has begun.
    wake: OnceLock<Recipient<Wake>>,
    woken: AtomicBool,
    /// For how long before now late samples are worth a look.
    late_window_ms: AtomicI64,
    /// The evaluator has not done with what it took.
    is_working: AtomicBool,
    idle: Notify,
}

/// The evaluator has ended: there is nothing to watch any more.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Closed;

impl Inbox {
    /// Takes late samples that are not older than this.
    pub fn new(seat: Seat, late_window_ms: i64) -> Self {
        Self {
            seat,
            queue: Mutex::default(),
            wake: OnceLock::new(),
            woken: AtomicBool::new(false),
            late_window_ms: AtomicI64::new(late_window_ms),
            is_working: AtomicBool::new(false),
            idle: Notify::new(),
        }
    }

    /// The evaluator has begun, and looks by itself at what has come already.
    pub fn opened(&self, wake: Recipient<Wake>) {
        _ = self.wake.set(wake);
    }

    /// Something happened on the server.
    pub fn put(&self, input: Input) {
        {
            let mut queue = self.lock();
            if queue.is_closed {
                return;
            }
            if queue.taken.inputs.len() >= MOST_WAITING {
                metrics::counter!("signalbox_alert_inputs_skipped_total").increment(1);
                queue.taken.make_room();
            }
            queue.taken.inputs.push_back(input);
        }
        self.wake();
    }

    /// People changed something. Resolves when the evaluator goes by it.
    pub fn order(&self, change: Change) -> Result<oneshot::Receiver<()>, Closed> {
        let (done, is_done) = oneshot::channel();
        {
            let mut queue = self.lock();
            if queue.is_closed {
                return Err(Closed);
            }
            if queue.taken.orders.len() >= MOST_ORDERS {
                // Rules are told whole, and the newest count; an alert that was resolved is found when it recovers.
                queue.taken.orders.pop_front();
            }
            queue.taken.orders.push_back((change, done));
        }
        self.wake();
        Ok(is_done)
    }

    /// Everything that came since the last time.
    pub fn take(&self) -> Taken {
        // Lowered before the queue is emptied: what comes in between wakes once more, for nothing at worst.
        self.woken.store(false, Ordering::SeqCst);
        let mut queue = self.lock();
        let taken = std::mem::take(&mut queue.taken);
        self.is_working.store(true, Ordering::SeqCst);
        taken
    }

    /// The evaluator has done with what it took.
    pub fn done(&self) {
        self.is_working.store(false, Ordering::SeqCst);
        self.idle.notify_waiters();
    }

    /// Takes nothing any more, if nothing waits. Gives whether that is so.
    pub fn close_if_empty(&self) -> bool {
        let mut queue = self.lock();
        queue.is_closed = queue.taken.orders.is_empty();
        queue.is_closed
    }

    /// Takes nothing any more, whatever waits.
    pub fn close(&self) {
        *self.lock() = Queue { taken: Taken::default(), is_closed: true };
        self.idle.notify_waiters();
    }

    /// Whether the evaluator has ended.
    pub fn is_closed(&self) -> bool {
        self.lock().is_closed
    }

    /// Wakes the evaluator to look at what lies elsewhere.
    pub fn wake(&self) {
        // At most one `Wake` is on its way, so that the mailbox never fills. Should it be refused all the same, the
        // next input tries again.
        let Some(wake) = self.wake.get() else { return };
        if !self.woken.swap(true, Ordering::SeqCst) && wake.try_send(Wake).is_err() {
            self.woken.store(false, Ordering::SeqCst);
        }
    }

    pub fn late_window_ms(&self) -> i64 {
        self.late_window_ms.load(Ordering::Relaxed)
    }

    pub fn set_late_window_ms(&self, window_ms: i64) {
        self.late_window_ms.store(window_ms, Ordering::Relaxed);
    }

    /// Whether something waits or is being written.
    pub fn is_busy(&self) -> bool {
        // Under the lock, as it is raised: what is being taken is in neither place otherwise.
        let queue = self.lock();
        self.is_working.load(Ordering::SeqCst) || !queue.taken.inputs.is_empty()
    }

    /// Resolves when nothing waits and nothing is being written.
    pub async fn idle(&self) {
        loop {
            let idle = self.idle.notified();
            tokio::pin!(idle);
            // From here on no end of work is missed.
            idle.as_mut().enable();
            if !self.is_busy() {
                return;
            }
            idle.await;
        }
    }

    fn lock(&self) -> MutexGuard<'_, Queue> {
        self.queue.lock()
    }
}

impl Taken {
    pub fn is_empty(&self) -> bool {
        self.orders.is_empty() && self.inputs.is_empty()
    }

    /// What people changed comes first.
    pub fn next(&mut self) -> Option<Next> {
        if let Some((change, done)) = self.orders.pop_front() {
            return Some(Next::Order(change, done));
        }
        self.inputs.pop_front().map(Next::Input)
    }

    /// Drops the oldest late sample, else the oldest sample, else the oldest event.
    fn make_room(&mut self) {
        let is_late = |input: &Input| matches!(input, Input::Sample { lane: Lane::Late, .. });
        let is_sample = |input: &Input| matches!(input, Input::Sample { .. });
        let place = self.inputs.iter().position(is_late).or_else(|| self.inputs.iter().position(is_sample));
        self.inputs.remove(place.unwrap_or_default());
    }
}
