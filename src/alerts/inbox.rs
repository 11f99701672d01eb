//! The input queue of an evaluator. When it is full, or the samples of all evaluators take too much memory, newer samples
//! replace older ones, which are counted.

use std::collections::VecDeque;
use std::sync::atomic::{AtomicBool, AtomicI64, Ordering};
use std::sync::{Arc, OnceLock};

use actix::{Message, Recipient};
use parking_lot::{Mutex, MutexGuard};
use signalbox_protocol::Timestamp;
use signalbox_protocol::agent::Event;
use tokio::sync::{Notify, oneshot};

use super::assignment::Assignment;
use super::sample_budget::{Reservation, SampleBudget, bytes_of};
use super::{Beside, Freshness};
use crate::fleet::Snapshot;
use crate::store::{Alert, WatchedServer};

/// Samples and events that wait for one evaluator: the largest message of an agent that catches up, and some more. An
/// evaluator needs microseconds for each, and waits only for the database.
const MAX_WAITING: usize = signalbox_protocol::agent::MAX_SAMPLES + 256;

/// Changes made by people that wait for one evaluator.
const MAX_ORDERS: usize = 1_024;

/// Tells an evaluator that its inbox has something for it.
#[derive(Debug, Clone, Copy, Message)]
#[rtype(result = "()")]
pub(super) struct Wake;

/// Something that happened on the server.
pub(super) enum Input {
    Sample {
        snapshot: Arc<Snapshot>,
        beside: Beside,
        freshness: Freshness,
    },
    Event(Event),
    /// The latest list of containers, which the agent sent before the evaluator began.
    KeptStates(Event),
    /// The machine rebooted; `at` is the time of the recorded event.
    Rebooted {
        at: Timestamp,
    },
}

/// Something that people changed.
pub(super) enum Change {
    Rules(Box<WatchedServer>),
    Acted(Box<Alert>),
    /// The server was deleted with its alerts, or another evaluator begins in place of this one, here or on another instance.
    Gone,
}

/// The next thing to evaluate.
pub(super) enum Next {
    /// The sender is answered when the evaluator has carried out the change.
    Order(Change, oneshot::Sender<()>),
    Input(Input),
}

/// Everything that arrived since the inbox was last emptied.
#[derive(Default)]
pub(super) struct InboxContents {
    orders: VecDeque<(Change, oneshot::Sender<()>)>,
    inputs: VecDeque<Waiting>,
}

/// An input that waits. Only samples reserve memory: sessions limit how many events they pass on.
struct Waiting {
    input: Input,
    _reservation: Option<Reservation>,
}

#[derive(Default)]
struct Queue {
    taken: InboxContents,
    is_closed: bool,
}

pub(super) struct Inbox {
    /// Why this instance evaluates the server.
    pub assignment: Assignment,
    /// Shared by all inboxes.
    sample_budget: Arc<SampleBudget>,
    queue: Mutex<Queue>,
    /// It has an evaluator, or will have one in a moment.
    is_evaluated: AtomicBool,
    /// Set when the evaluator has started.
    wake: OnceLock<Recipient<Wake>>,
    woken: AtomicBool,
    /// How old a late sample may be to matter.
    late_window_ms: AtomicI64,
    /// The evaluator is still working on what it took.
    is_working: AtomicBool,
    idle: Notify,
}

/// The evaluator has ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Closed;

impl Inbox {
    /// Accepts late samples up to `late_window_ms` old.
    pub fn new(assignment: Assignment, late_window_ms: i64, sample_budget: Arc<SampleBudget>) -> Self {
        Self {
            assignment,
            sample_budget,
            queue: Mutex::default(),
            is_evaluated: AtomicBool::new(false),
            wake: OnceLock::new(),
            woken: AtomicBool::new(false),
            late_window_ms: AtomicI64::new(late_window_ms),
            is_working: AtomicBool::new(false),
            idle: Notify::new(),
        }
    }

    /// Records that it gets an evaluator whose rules were read a moment ago: what was ordered about them before is done.
    pub fn set_evaluated(&self) {
        self.is_evaluated.store(true, Ordering::SeqCst);
        self.lock().taken.orders.retain(|(change, _)| matches!(change, Change::Acted(_)));
    }

    /// Returns whether it has an evaluator. Otherwise it waits until thresholds are loaded.
    pub fn is_evaluated(&self) -> bool {
        self.is_evaluated.load(Ordering::SeqCst)
    }

    /// Records that the evaluator has started. It reads what is already waiting without a `Wake`.
    pub fn opened(&self, wake: Recipient<Wake>) {
        _ = self.wake.set(wake);
    }

    /// Queues something that happened on the server.
    pub fn put(&self, input: Input) {
        {
            let mut queue = self.lock();
            if queue.is_closed {
                return;
            }
            if queue.taken.inputs.len() >= MAX_WAITING {
                queue.taken.make_room();
            }
            let reservation = match &input {
                Input::Sample { snapshot, beside, .. } => {
                    let bytes = bytes_of(snapshot, beside);
                    // The newest sample of a server always has room: the fleet holds it, too.
                    while !self.sample_budget.has_room(bytes) && queue.taken.skip_sample() {}
                    Some(Reservation::new(&self.sample_budget, bytes))
                }
                Input::Event(_) | Input::KeptStates(_) | Input::Rebooted { .. } => None,
            };
            queue.taken.inputs.push_back(Waiting { input, _reservation: reservation });
        }
        self.wake();
    }

    /// Queues a change made by people. The receiver resolves when the evaluator has carried it out.
    pub fn order(&self, change: Change) -> Result<oneshot::Receiver<()>, Closed> {
        let (done, is_done) = oneshot::channel();
        {
            let mut queue = self.lock();
            if queue.is_closed {
                return Err(Closed);
            }
            if queue.taken.orders.len() >= MAX_ORDERS {
                // Dropping the oldest is safe: each `Rules` replaces the one before, and the evaluator learns that an
                // alert was resolved when it recovers.
                queue.taken.orders.pop_front();
            }
            queue.taken.orders.push_back((change, done));
        }
        self.wake();
        Ok(is_done)
    }

    /// Takes everything that is waiting.
    pub fn take(&self) -> InboxContents {
        // Cleared before the queue is emptied: an input in between sends another `Wake`, at worst a needless one.
        self.woken.store(false, Ordering::SeqCst);
        let mut queue = self.lock();
        let taken = std::mem::take(&mut queue.taken);
        self.is_working.store(true, Ordering::SeqCst);
        taken
    }

    /// Records that the evaluator has finished what it took.
    pub fn done(&self) {
        self.is_working.store(false, Ordering::SeqCst);
        self.idle.notify_waiters();
    }

    /// Closes the inbox unless a change is waiting. Returns whether it is closed.
    pub fn close_if_empty(&self) -> bool {
        let mut queue = self.lock();
        queue.is_closed = queue.taken.orders.is_empty();
        queue.is_closed
    }

    /// Closes the inbox and drops what is waiting.
    pub fn close(&self) {
        *self.lock() = Queue { taken: InboxContents::default(), is_closed: true };
        self.idle.notify_waiters();
    }

    /// Returns whether the evaluator has ended.
    pub fn is_closed(&self) -> bool {
        self.lock().is_closed
    }

    /// Wakes the evaluator, also for a change that is not in the inbox.
    pub fn wake(&self) {
        // At most one `Wake` is on its way, so the mailbox never fills. If it is refused nevertheless, the next input
        // tries again.
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

    /// Returns whether an input is waiting or being evaluated.
    pub fn is_busy(&self) -> bool {
        // Under the lock, because `take` sets the flag under it: otherwise an input being taken would be in neither place.
        let queue = self.lock();
        self.is_working.load(Ordering::SeqCst) || !queue.taken.inputs.is_empty()
    }

    /// Resolves when no input is waiting or being evaluated.
    pub async fn idle(&self) {
        loop {
            let idle = self.idle.notified();
            tokio::pin!(idle);
            // From here on a call of `done` is not missed.
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

impl InboxContents {
    pub fn is_empty(&self) -> bool {
        self.orders.is_empty() && self.inputs.is_empty()
    }

    /// Returns the next thing to evaluate: changes made by people come first.
    pub fn next(&mut self) -> Option<Next> {
        if let Some((change, done)) = self.orders.pop_front() {
            return Some(Next::Order(change, done));
        }
        self.inputs.pop_front().map(|waiting| Next::Input(waiting.input))
    }

    /// Drops the oldest late sample, else the oldest sample, else the oldest event.
    fn make_room(&mut self) {
        if !self.skip_sample() {
            self.skip(0);
        }
    }

    /// Drops the oldest late sample, else the oldest sample. Returns whether there was one.
    fn skip_sample(&mut self) -> bool {
        let is_late = |it: &Waiting| matches!(it.input, Input::Sample { freshness: Freshness::Late, .. });
        let is_sample = |it: &Waiting| matches!(it.input, Input::Sample { .. });
        let place = self.inputs.iter().position(is_late).or_else(|| self.inputs.iter().position(is_sample));
        place.inspect(|at| self.skip(*at)).is_some()
    }

    fn skip(&mut self, place: usize) {
        metrics::counter!("signalbox_alert_inputs_skipped_total").increment(1);
        self.inputs.remove(place);
    }
}

#[cfg(test)]
mod tests {
    use signalbox_protocol::Sample;
    use uuid::Uuid;

    use super::*;

    /// A sample that was taken at this second. All of them are of the same size.
    fn snapshot(second: i64) -> Snapshot {
        let timestamp = Timestamp::from_millis(second * 1_000);
        Snapshot::new(Uuid::nil(), Sample { timestamp, ..Sample::default() })
    }

    fn inbox(budget: &Arc<SampleBudget>) -> Inbox {
        Inbox::new(Assignment::Sole, 0, budget.clone())
    }

    /// Room for this many samples.
    fn budget(samples: usize) -> Arc<SampleBudget> {
        Arc::new(SampleBudget::new(samples * bytes_of(&snapshot(0), &Beside::default())))
    }

    fn put(inbox: &Inbox, second: i64, freshness: Freshness) {
        inbox.put(Input::Sample { snapshot: Arc::new(snapshot(second)), beside: Beside::default(), freshness });
    }

    /// When the samples that wait were taken, in seconds.
    fn seconds(mut contents: InboxContents) -> Vec<i64> {
        let mut seconds = Vec::new();
        while let Some(next) = contents.next() {
            if let Next::Input(Input::Sample { snapshot, .. }) = next {
                seconds.push(snapshot.sample.timestamp.as_millis() / 1_000);
            }
        }
        seconds
    }

    #[test]
    fn samples_of_all_servers_share_one_budget_and_each_keeps_its_newest() {
        let budget = budget(3);
        let (first, second, third) = (inbox(&budget), inbox(&budget), inbox(&budget));
        for at in 1..=3 {
            put(&first, at, Freshness::Live);
        }

        put(&second, 4, Freshness::Live);
        put(&second, 5, Freshness::Live);
        third.put(Input::Rebooted { at: Timestamp::from_millis(6_000) });
        put(&third, 7, Freshness::Live);
        put(&first, 8, Freshness::Live);

        assert_eq!(seconds(first.take()), [8]);
        assert_eq!(seconds(second.take()), [5]);
        assert!(matches!(third.take().next(), Some(Next::Input(Input::Rebooted { .. }))));
    }

    #[test]
    fn beyond_the_budget_late_samples_go_first() {
        let inbox = inbox(&budget(2));
        put(&inbox, 10, Freshness::Live);
        put(&inbox, 1, Freshness::Late);

        put(&inbox, 11, Freshness::Live);

        assert_eq!(seconds(inbox.take()), [10, 11]);
    }

    #[test]
    fn samples_count_until_they_are_evaluated_or_dropped() {
        let budget = budget(2);
        let (busy, closed) = (inbox(&budget), inbox(&budget));
        put(&busy, 1, Freshness::Live);
        put(&closed, 2, Freshness::Live);

        let taken = busy.take();
        put(&busy, 3, Freshness::Live);
        put(&busy, 4, Freshness::Live);
        let while_taken = seconds(busy.take());
        closed.close();
        drop(taken);
        put(&busy, 5, Freshness::Live);
        put(&busy, 6, Freshness::Live);

        assert_eq!((while_taken, seconds(busy.take())), (vec![4], vec![5, 6]));
        assert!(budget.has_room(2 * bytes_of(&snapshot(0), &Beside::default())));
    }

    #[test]
    fn rules_of_before_the_evaluator_are_done() {
        let inbox = inbox(&budget(1));
        let gone = inbox.order(Change::Gone).unwrap();
        assert!(!inbox.is_evaluated());

        inbox.set_evaluated();

        assert!(inbox.is_evaluated() && inbox.take().is_empty());
        assert!(gone.blocking_recv().is_err(), "nobody waits for it");
    }
}
