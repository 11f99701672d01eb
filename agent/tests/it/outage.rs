//! Outages of days on a driven clock: what is stored, how much space it takes, and what is sent first afterwards.

use std::fs;
use std::path::Path;
use std::time::Duration;

use signalbox_agent::{Config, Exit, Interval, Timing};
use signalbox_protocol::Sample;
use signalbox_protocol::sample::{DiskIo, DiskUsage, NetworkUsage};
use tempfile::TempDir;
use tokio::net::TcpStream;

use crate::agent::{Agent, config, numbers, state_dir};
use crate::service::{Peer, Service, accepted};

const INTERVAL: Duration = Duration::from_secs(5);
/// Samples of 24 hours.
const DAY: i64 = 24 * 3600 / 5;

/// As large as those of an ordinary server: some 700 bytes.
fn ordinary() -> Sample {
    Sample {
        cpu_percent: 50.0,
        cpu_per_core: vec![49.99; 8],
        memory_percent: 25.0,
        disk_usage: vec![DiskUsage {
            path: "/srv".into(),
            total: 1 << 40,
            used: 1 << 39,
            free: 1 << 39,
            percent: 50.0,
        }],
        disk_io: vec![DiskIo { device: "nvme0n1".into(), read_bytes: 1 << 40, write_bytes: 1 << 40 }; 2],
        network: vec![
            NetworkUsage {
                interface: "eth0".into(),
                bytes_sent: 1 << 40,
                bytes_recv: 1 << 40,
                in_total: None
            };
            2
        ],
        ..Sample::default()
    }
}

/// An agent that was started while no service answers.
struct Outage {
    service: Service,
    state: TempDir,
    agent: Agent,
}

impl Outage {
    async fn start() -> Self {
        let (service, state) = (Service::start().await, state_dir());
        let config = Config {
            interval: Interval::of(INTERVAL),
            state_dir: Some(state.path().into()),
            // A real agent tries once a minute; with every attempt a test of days would take minutes.
            timing: Timing { backoff_most: Duration::from_secs(600), ..Timing::default() },
            ..config(&service.url())
        };
        let agent = Agent::start_with(config, 0, ordinary());
        Self { service, state, agent }
    }

    /// Advances the clock until this many samples were taken.
    async fn last(&mut self, samples: i64) {
        // Far longer than tests wait otherwise: the clock jumps from timer to timer.
        let limit = INTERVAL * u32::try_from(samples + 10).unwrap();
        let taken = tokio::time::timeout(limit, async {
            while self.agent.taken() < samples {
                tokio::time::sleep(INTERVAL).await;
            }
        });
        tokio::select! {
            taken = taken => taken.expect("samples are taken"),
            () = self.service.refuse_everybody() => unreachable!(),
        }
    }

    /// Ends the outage. With the agent's next attempt the clock runs normally again.
    async fn end(&mut self) -> Peer<TcpStream> {
        loop {
            let stream = self.service.accept_sometime().await;
            tokio::time::resume();
            // It may be an attempt that the agent has given up.
            if let Ok(socket) = tokio_tungstenite::accept_async(stream).await {
                let mut peer = Peer { socket };
                if peer.frame().await.is_some() {
                    peer.send(&accepted(None)).await;
                    return peer;
                }
            }
            tokio::time::pause();
        }
    }
}

/// Receives everything up to the newest sample. Returns the newest, which comes first, and the rest in the order of arrival.
async fn catch_up(peer: &mut Peer<TcpStream>) -> (i64, Vec<i64>) {
    let first = peer.metrics().await;
    let newest = numbers(&first);
    assert_eq!(newest.len(), 1, "the newest alone comes first");
    peer.ack(first.seq).await;
    let mut rest = Vec::new();
    while rest.last().is_none_or(|last| last + 1 < newest[0]) {
        let metrics = peer.metrics().await;
        rest.extend(numbers(&metrics).into_iter().filter(|number| *number < newest[0]));
        peer.ack(metrics.seq).await;
    }
    (newest[0], rest)
}

/// Bytes of the state directory's files.
fn bytes(state: &Path) -> u64 {
    fs::read_dir(state).unwrap().map(|entry| entry.unwrap().metadata().unwrap().len()).sum()
}

/// Bytes of memory that this process holds.
fn resident_bytes() -> u64 {
    let status = fs::read_to_string("/proc/self/status").unwrap();
    let line = status.lines().find_map(|line| line.strip_prefix("VmRSS:")).unwrap();
    line.split_whitespace().next().unwrap().parse::<u64>().unwrap() * 1024
}

#[tokio::test(start_paused = true)]
async fn after_a_day_without_the_service_no_sample_is_missing_and_the_newest_comes_first() {
    let mut outage = Outage::start().await;
    outage.last(DAY).await;

    let mut peer = outage.end().await;
    let (newest, rest) = catch_up(&mut peer).await;

    assert!(newest >= DAY);
    assert_eq!(rest, (1..newest).collect::<Vec<_>>());
    assert_eq!(outage.agent.stop().await, Exit::Stopped);
}

#[tokio::test(start_paused = true)]
async fn after_ten_days_the_last_day_is_whole_and_memory_and_files_are_as_bounded_as_before() {
    let mut outage = Outage::start().await;
    outage.last(DAY / 10).await;
    let early = resident_bytes();
    outage.last(10 * DAY).await;
    let grown = resident_bytes().saturating_sub(early);
    let kept_bytes = bytes(outage.state.path());

    let mut peer = outage.end().await;
    let (newest, rest) = catch_up(&mut peer).await;

    // The samples that it was given have more than 100 MB.
    assert!(grown < 8 << 20, "{grown} bytes");
    assert!(kept_bytes <= (64 << 20) + (1 << 20), "{kept_bytes} bytes");
    assert!(newest >= 10 * DAY);
    assert!(rest[0] > 1 && rest.len() as i64 >= DAY, "{} samples from {}", rest.len(), rest[0]);
    assert_eq!(rest, (rest[0]..newest).collect::<Vec<_>>(), "the oldest were dropped, and no other");
    assert_eq!(outage.agent.stop().await, Exit::Stopped);
}
