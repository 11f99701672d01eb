//! A thread on which collectors are read one after the other, and left alone with the one that hangs.
//!
//! Whoever waits for a round of collectors looks at how long the present one has taken. Past its deadline the round is
//! abandoned: the collectors that had no turn yet go to a new thread, the stuck one keeps the old. It comes back when the
//! kernel lets go of it; until then nobody holds it, so it cannot be asked again and ties up one thread, never two.

use std::collections::VecDeque;
use std::io;
use std::sync::Arc;
use std::sync::mpsc::{Receiver, SyncSender, sync_channel};
use std::thread;
use std::time::{Duration, Instant};

use parking_lot::{Mutex, MutexGuard};
use tokio::sync::Notify;

use super::Collector;

/// Collectors keep their buffers on the heap; what they call needs a few kilobytes.
const STACK_BYTES: usize = 128 * 1024;

/// A collector after its turn.
pub struct Finished {
    pub collector: Box<dyn Collector>,
    pub outcome: io::Result<()>,
}

/// Collectors that are read together.
pub struct Round {
    state: Mutex<State>,
    done: Notify,
}

#[derive(Default)]
struct State {
    waiting: VecDeque<Box<dyn Collector>>,
    /// Name of the one that has its turn, and since when.
    current: Option<(String, Instant)>,
    finished: Vec<Finished>,
}

/// How a round ended.
pub struct Outcome {
    pub finished: Vec<Finished>,
    /// Those that had no turn.
    pub waiting: VecDeque<Box<dyn Collector>>,
    /// The one that hangs, with the round through which it will come back.
    pub stuck: Option<Stuck>,
}

/// A collector that did not come back in time.
pub struct Stuck {
    pub name: String,
    round: Arc<Round>,
}

impl Stuck {
    /// The collector, once it came back. What it read by then is old and not to be used.
    pub fn returned(&self) -> Option<Box<dyn Collector>> {
        self.round.lock().finished.pop().map(|finished| finished.collector)
    }
}

/// The thread. It ends when this is dropped and its last collector came back.
pub struct Lane {
    rounds: SyncSender<Arc<Round>>,
}

impl Lane {
    pub fn start() -> io::Result<Self> {
        let (rounds, receiver) = sync_channel(1);
        thread::Builder::new().name("collectors".to_owned()).stack_size(STACK_BYTES).spawn(move || work(&receiver))?;
        Ok(Self { rounds })
    }

    /// Reads every collector, until one takes longer than `deadline`.
    pub async fn read(&self, collectors: VecDeque<Box<dyn Collector>>, deadline: Duration) -> Outcome {
        let state = State { waiting: collectors, ..State::default() };
        let round = Arc::new(Round { state: Mutex::new(state), done: Notify::new() });
        let sent = Instant::now();
        if self.rounds.try_send(round.clone()).is_err() {
            // The thread is gone. Its successor takes the same collectors.
            return round.abandon();
        }
        loop {
            let started = round.lock().current.as_ref().map_or(sent, |(_, since)| *since);
            let remaining = (started + deadline).saturating_duration_since(Instant::now());
            if tokio::time::timeout(remaining, round.done.notified()).await.is_ok() || round.is_late(sent, deadline) {
                return round.abandon();
            }
        }
    }
}

fn work(rounds: &Receiver<Arc<Round>>) {
    for round in rounds {
        while let Some(mut collector) = round.next() {
            let outcome = collector.read();
            round.finish(Finished { collector, outcome });
        }
        round.done.notify_one();
    }
}

impl Round {
    fn next(&self) -> Option<Box<dyn Collector>> {
        let mut state = self.lock();
        let collector = state.waiting.pop_front()?;
        state.current = Some((collector.name().to_owned(), Instant::now()));
        Some(collector)
    }

    fn finish(&self, finished: Finished) {
        let mut state = self.lock();
        state.finished.push(finished);
        state.current = None;
    }

    /// Whether the present collector, or the first before its turn, is past its deadline.
    fn is_late(&self, sent: Instant, deadline: Duration) -> bool {
        self.lock().current.as_ref().map_or(sent, |(_, since)| *since).elapsed() >= deadline
    }

    /// Takes everything out except the collector that has its turn.
    fn abandon(self: Arc<Self>) -> Outcome {
        let mut state = self.lock();
        let finished = std::mem::take(&mut state.finished);
        let waiting = std::mem::take(&mut state.waiting);
        let name = state.current.as_ref().map(|(name, _)| name.clone());
        drop(state);
        Outcome { finished, waiting, stuck: name.map(|name| Stuck { name, round: self }) }
    }

    fn lock(&self) -> MutexGuard<'_, State> {
        self.state.lock()
    }
}
