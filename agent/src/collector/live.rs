//! The cheap collectors once more, for live samples. They have readings of their own: the use of a processor is the difference
//! between two, and in a sample that is kept it is that of the whole interval, whether somebody watches or not.

use std::collections::{BTreeMap, HashSet, VecDeque};
use std::time::{Duration, Instant};

use signalbox_protocol::{Sample, Timestamp};

use super::Collector;
use super::containers::Containers;
use super::cpu::Cpu;
use super::disk_io::DiskIo;
use super::load::Load;
use super::memory::Memory;
use super::network::Network;
use super::worker::{Finished, Outcome, Stuck};
use crate::catalog::{Catalog, Values};
use crate::config::Roots;
use crate::docker::RunningContainers;

/// Two readings further apart are not of the moment: the later one is the first of the next two.
const MAX_APART: Duration = Duration::from_secs(30);

/// One that hangs is left out until it is back. If it hangs at two readings in a row, and there are live samples without it, it
/// is given up: after each slow reading those who watch wait for a minute, and the samples that are kept say the same.
#[derive(Default)]
pub struct LiveCollectors {
    collectors: VecDeque<Box<dyn Collector>>,
    stuck: Vec<Stuck>,
    /// The names of those that hung at their last reading.
    late: HashSet<String>,
    read_at: Option<Instant>,
}

impl LiveCollectors {
    /// All that reads nothing but a few files of the kernel; containers only where they may be read.
    pub fn new(roots: &Roots, containers: Option<RunningContainers>) -> Self {
        let cheap: [Box<dyn Collector>; 5] = [
            Box::new(Cpu::new(roots)),
            Box::new(Memory::new(roots)),
            Box::new(Load::new(roots)),
            Box::new(DiskIo::new(roots)),
            Box::new(Network::new(roots)),
        ];
        let mut collectors = VecDeque::from(cheap);
        if let Some(running) = containers {
            collectors.push_back(Box::new(Containers::new(roots, running)));
        }
        Self { collectors, ..Self::default() }
    }

    /// The collectors, to be read, with those that are back.
    pub fn take(&mut self) -> VecDeque<Box<dyn Collector>> {
        let Self { collectors, stuck, read_at, .. } = self;
        stuck.retain(|stuck| {
            let Some(finished) = stuck.returned() else { return true };
            collectors.push_back(finished.collector);
            // Its reading is old, so the next one is the first of two.
            *read_at = None;
            false
        });
        std::mem::take(collectors)
    }

    /// Takes the collectors back, and combines what they read with the rest of the newest sample. None at the first reading.
    pub fn finish(&mut self, outcome: Outcome, latest: &Sample, catalog: &Catalog) -> Option<Sample> {
        let before = self.read_at.replace(Instant::now());
        let sample = combined(&outcome.finished, latest, catalog);
        for Finished { collector, .. } in outcome.finished {
            self.late.remove(collector.name());
            self.collectors.push_back(collector);
        }
        self.collectors.extend(outcome.waiting);
        let stuck = outcome.stuck.filter(|stuck| self.late.insert(stuck.name.clone()) || is_essential(&stuck.name));
        self.stuck.extend(stuck);
        before.filter(|before| before.elapsed() <= MAX_APART).and(sample)
    }
}

/// None without the use of processors and memory, as in a sample that is kept.
fn combined(finished: &[Finished], latest: &Sample, catalog: &Catalog) -> Option<Sample> {
    let mut sample = Sample { timestamp: Timestamp::now(), processes: None, unread: Vec::new(), ..latest.clone() };
    let (mut values, mut essentials) = (Values::new(catalog), 0);
    for Finished { collector, outcome } in finished {
        if outcome.is_err() {
            continue;
        }
        essentials += usize::from(is_essential(collector.name()));
        clear(collector.name(), &mut sample);
        collector.fill(&mut sample);
        collector.values(&mut values);
    }
    let mut by_id: BTreeMap<u16, f64> = sample.values.iter().copied().collect();
    by_id.extend(values.finish());
    sample.values = by_id.into_iter().collect();
    (essentials == 2).then_some(sample)
}

/// Whether there is no live sample without this collector.
fn is_essential(collector: &str) -> bool {
    matches!(collector, "cpu" | "memory")
}

/// Empties the lists to which a collector adds. It replaces everything else.
fn clear(collector: &str, sample: &mut Sample) {
    match collector {
        "cpu" => sample.cpu_per_core.clear(),
        "disk_io" => sample.disk_io.clear(),
        "network" => sample.network.clear(),
        _ => {}
    }
}

#[cfg(test)]
mod tests {
    use std::io;
    use std::sync::mpsc::{Receiver, Sender, channel};

    use signalbox_protocol::sample::{DiskUsage, TopProcesses};

    use super::super::fixture::{roots, write};
    use super::super::worker::Worker;
    use super::*;

    const MEMINFO: &str = "MemTotal: 1000 kB\nMemFree: 200 kB\nMemAvailable: 600 kB\nBuffers: 0 kB\nCached: 0 kB\n\
                           SReclaimable: 0 kB\nShmem: 0 kB\nSwapTotal: 0 kB\nSwapFree: 0 kB\n";

    async fn next(live: &mut LiveCollectors, latest: &Sample) -> Option<Sample> {
        let outcome = Worker::start().unwrap().read(live.take(), Duration::from_secs(60)).await;
        live.finish(outcome, latest, &Catalog::default())
    }

    /// A collector whose first reading hangs until it is released, if there is something to wait for.
    struct Hanging {
        name: &'static str,
        release: Option<Receiver<()>>,
    }

    impl Collector for Hanging {
        fn name(&self) -> &str {
            self.name
        }

        fn read(&mut self) -> io::Result<()> {
            self.release.take().map_or(Ok(()), |release| release.recv().map_err(io::Error::other))
        }
    }

    /// Collectors of which the first one hangs.
    fn with_first_hanging(names: &[&'static str]) -> (LiveCollectors, Sender<()>) {
        let (release, released) = channel();
        let mut released = Some(released);
        let collector = |name| -> Box<dyn Collector> { Box::new(Hanging { name, release: released.take() }) };
        let collectors = names.iter().copied().map(collector).collect();
        (LiveCollectors { collectors, ..LiveCollectors::default() }, release)
    }

    async fn until_the_first_hangs(live: &mut LiveCollectors) {
        let all = live.collectors.len();
        while live.collectors.len() == all {
            let outcome = Worker::start().unwrap().read(live.take(), Duration::from_millis(10)).await;
            assert_eq!(live.finish(outcome, &Sample::default(), &Catalog::default()), None);
        }
    }

    #[tokio::test]
    async fn a_collector_that_hung_is_read_again_when_it_is_back() {
        let (mut live, release) = with_first_hanging(&["cpu", "memory"]);
        until_the_first_hangs(&mut live).await;

        let during = next(&mut live, &Sample::default()).await;
        release.send(()).unwrap();
        let back = tokio::time::timeout(Duration::from_secs(60), async {
            loop {
                let sample = next(&mut live, &Sample::default()).await;
                if live.stuck.is_empty() {
                    return sample;
                }
            }
        });
        let first = back.await.unwrap();
        let second = next(&mut live, &Sample::default()).await;

        assert_eq!((during, first), (None, None), "the use of a processor needs two readings");
        assert!(second.is_some());
    }

    #[tokio::test]
    async fn a_collector_that_hangs_twice_in_a_row_is_given_up() {
        let (mut live, _release) = with_first_hanging(&["network", "cpu", "memory"]);
        live.late.insert("network".to_owned());
        until_the_first_hangs(&mut live).await;

        next(&mut live, &Sample::default()).await;
        let second = next(&mut live, &Sample::default()).await;

        assert!(second.is_some() && live.stuck.is_empty());
    }

    #[tokio::test]
    async fn a_live_sample_has_new_readings_and_the_rest_of_the_one_before() {
        let dir = tempfile::tempdir().unwrap();
        let proc = dir.path().join("proc");
        let at = |busy: u32, idle: u32, received: u32| {
            write(&proc.join("stat"), &format!("cpu {busy} 0 0 {idle} 0 0 0 0\ncpu0 {busy} 0 0 {idle} 0 0 0 0\n"));
            write(&proc.join("meminfo"), MEMINFO);
            let row = format!("eth0: {received} 1 0 0 0 0 0 0 7 1 0 0 0 0 0 0");
            write(&proc.join("net/dev"), &format!("head\nhead\n{row}\n"));
        };
        let mut live = LiveCollectors::new(&roots(dir.path()), None);
        let latest = Sample {
            timestamp: Timestamp::from_millis(1),
            cpu_percent: 99.0,
            cpu_per_core: vec![99.0, 98.0],
            disk_usage: vec![DiskUsage { path: "/".into(), ..DiskUsage::default() }],
            processes: Some(TopProcesses::default()),
            values: vec![(65_000, 1.5)],
            ..Sample::default()
        };

        at(100, 100, 1);
        let first = next(&mut live, &latest).await;
        at(150, 150, 2);
        let second = next(&mut live, &latest).await.unwrap();

        assert_eq!(first, None, "the use of a processor needs two readings");
        assert_eq!((second.cpu_percent, second.cpu_per_core), (50.0, vec![50.0]));
        assert_eq!(second.network.iter().map(|row| row.bytes_recv).collect::<Vec<_>>(), [2]);
        assert_eq!((second.disk_usage, second.processes), (latest.disk_usage, None));
        assert!(second.timestamp > latest.timestamp && second.memory_percent > 0.0);
        assert!(second.values.contains(&(65_000, 1.5)));
    }

    #[tokio::test]
    async fn a_machine_that_cannot_be_read_has_no_live_sample() {
        let dir = tempfile::tempdir().unwrap();
        let mut live = LiveCollectors::new(&roots(dir.path()), None);

        for _ in 0..3 {
            assert_eq!(next(&mut live, &Sample::default()).await, None);
        }
    }
}
