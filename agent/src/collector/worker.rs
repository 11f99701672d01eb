//! A thread that reads collectors one after the other, and is abandoned with the one that hangs.
//!
//! The task that waits for a round checks how long the present collector has taken. Past the deadline it abandons the round:
//! collectors that had no turn yet move to a new thread, the stuck one keeps the old. The stuck collector returns when the
//! kernel releases it; until then nobody holds it, so it cannot be read again and blocks one thread, never two.

use std::collections::VecDeque;
use std::io;
use std::sync::Arc;
use std::sync::mpsc::{Receiver, SyncSender, sync_channel};
use std::thread;
use std::time::{Duration, Instant};

use parking_lot::{Mutex, MutexGuard};
use tokio::sync::Notify;

use super::Collector;

/// Collectors keep their buffers on the heap; the functions they call need a few kilobytes.
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
    /// The name of the collector that is being read, and since when.
    current: Option<(String, Instant)>,
    finished: Vec<Finished>,
}

/// The result of a round.
pub struct Outcome {
    pub finished: Vec<Finished>,
    /// The collectors that had no turn.
    pub waiting: VecDeque<Box<dyn Collector>>,
    /// The collector that hangs, with the round through which it will return.
    pub stuck: Option<Stuck>,
}

/// A collector that did not return in time.
pub struct Stuck {
    pub name: String,
    round: Arc<Round>,
}

impl Stuck {
    /// The collector, once it has returned.
    pub fn returned(&self) -> Option<Finished> {
        self.round.lock().finished.pop()
    }
}

/// The thread. It ends when this is dropped and its last collector has returned.
pub struct Worker {
    rounds: SyncSender<Arc<Round>>,
}

impl Worker {
    pub fn start() -> io::Result<Self> {
        let (rounds, receiver) = sync_channel(1);
        thread::Builder::new().name("collectors".to_owned()).stack_size(STACK_BYTES).spawn(move || work(&receiver))?;
        Ok(Self { rounds })
    }

    /// Reads every collector, until one exceeds `deadline`.
    pub async fn read(&self, collectors: VecDeque<Box<dyn Collector>>, deadline: Duration) -> Outcome {
        let state = State { waiting: collectors, ..State::default() };
        let round = Arc::new(Round { state: Mutex::new(state), done: Notify::new() });
        let sent = Instant::now();
        if self.rounds.try_send(round.clone()).is_err() {
            // The thread is gone. Its successor gets the same collectors.
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

    /// Whether the present collector, or the first before its turn, has exceeded its deadline.
    fn is_late(&self, sent: Instant, deadline: Duration) -> bool {
        self.lock().current.as_ref().map_or(sent, |(_, since)| *since).elapsed() >= deadline
    }

    /// Takes all collectors except the one that is being read.
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
