//! An agent in this process whose samples are numbered.

use std::time::Duration;

use signalbox_agent::{Catalog, Config, Exit, Interval, Source, Timing, run_with};
use signalbox_protocol::agent::{AgentInfo, Metrics};
use signalbox_protocol::{Sample, Timestamp};
use tempfile::TempDir;
use tokio::sync::{oneshot, watch};
use tokio::task::JoinHandle;

pub const KEY: &str = "sbk_0123456789abcdef";

/// Fails a test that waits for something that never comes; far longer than anything takes on a machine under load.
pub const PATIENCE: Duration = Duration::from_secs(60);

/// Everything that need not be waited for takes less, even on a machine under load.
pub const AT_ONCE: Duration = Duration::from_secs(20);

pub struct Agent {
    running: JoinHandle<Exit>,
    stop: oneshot::Sender<()>,
    taken: watch::Receiver<i64>,
}

/// Yields samples with the timestamps 1, 2, 3 ... milliseconds, and counts them.
struct Counting {
    taken: watch::Sender<i64>,
    like: Sample,
    catalog: Catalog,
}

impl Source for Counting {
    async fn sample(&mut self) -> Option<Sample> {
        self.taken.send_modify(|taken| *taken += 1);
        let timestamp = Timestamp::from_millis(*self.taken.borrow());
        Some(Sample { timestamp, ..self.like.clone() })
    }

    fn catalog(&self) -> Catalog {
        self.catalog.clone()
    }
}

/// A configuration that retries at once, so that tests need not wait, and never gives an attempt up because a test is slow.
pub fn config(url: &str) -> Config {
    let timing = Timing {
        handshake_step: PATIENCE,
        backoff_first: Duration::from_millis(1),
        backoff_most: Duration::from_millis(50),
        backoff_busy: Duration::from_millis(50),
        ..Timing::default()
    };
    Config { interval: Interval::of(Duration::from_millis(20)), timing, ..Config::new(url, KEY).unwrap() }
}

/// A directory in memory: on a disk under load a call may take as long as on one that hangs.
pub fn state_dir() -> TempDir {
    tempfile::tempdir_in("/dev/shm").unwrap()
}

pub fn info() -> AgentInfo {
    AgentInfo { version: "1.2.3".into(), hostname: "web-1".into(), ..AgentInfo::default() }
}

impl Agent {
    pub fn start(config: Config) -> Self {
        Self::start_at(config, 0)
    }

    /// Its first sample has the timestamp after `taken`.
    pub fn start_at(config: Config, taken: i64) -> Self {
        let like = Sample { cpu_percent: 50.0, memory_percent: 25.0, ..Sample::default() };
        Self::start_with(config, taken, like)
    }

    /// All of its samples are like this one, except for their timestamps.
    pub fn start_with(config: Config, taken: i64, like: Sample) -> Self {
        Self::start_with_series(config, taken, like, Catalog::default())
    }

    /// The same with descriptions of its values' ids.
    pub fn start_with_series(config: Config, taken: i64, like: Sample, catalog: Catalog) -> Self {
        let (stop, stopped) = oneshot::channel();
        let (sender, taken) = watch::channel(taken);
        let source = Counting { taken: sender, like, catalog };
        let running = tokio::spawn(run_with(config, info(), source, async {
            let _ = stopped.await;
        }));
        Self { running, stop, taken }
    }

    /// Waits until this many samples were taken.
    pub async fn has_taken(&mut self, count: i64) {
        let waited = tokio::time::timeout(PATIENCE, self.taken.wait_for(|taken| *taken >= count));
        waited.await.expect("samples are taken").expect("the agent runs");
    }

    pub fn taken(&self) -> i64 {
        *self.taken.borrow()
    }

    pub async fn stop(self) -> Exit {
        let _ = self.stop.send(());
        Self::end(self.running).await
    }

    /// Waits until the agent ends.
    pub async fn ended(self) -> Exit {
        let _stays_open = self.stop;
        Self::end(self.running).await
    }

    async fn end(running: JoinHandle<Exit>) -> Exit {
        tokio::time::timeout(PATIENCE, running).await.expect("the agent ends").unwrap()
    }
}

/// The numbers of a batch's samples.
pub fn numbers(metrics: &Metrics) -> Vec<i64> {
    metrics.samples.iter().map(|sample| sample.timestamp.as_millis()).collect()
}
