use std::io;
use std::sync::Arc;
use std::sync::atomic::{AtomicU32, Ordering};
use std::sync::mpsc::{Receiver, Sender, channel};

use parking_lot::Mutex;
use signalbox_protocol::sample::{NetworkUsage, Temperature as Sensor};
use signalbox_protocol::series::Unit;

use super::*;
use crate::catalog::Metric;
use crate::config::{Roots, Timing};
use crate::docker::RunningContainers;
use crate::policy::Policy;

/// Enough for a collector that answers at once, on a machine under load.
const DEADLINE: Duration = Duration::from_secs(2);

/// A collector that answers at once, under any name.
struct Prompt(&'static str);

impl Collector for Prompt {
    fn name(&self) -> &str {
        self.0
    }

    fn read(&mut self) -> io::Result<()> {
        Ok(())
    }

    fn fill(&self, sample: &mut Sample) {
        sample.network.push(NetworkUsage { interface: self.0.to_owned(), ..NetworkUsage::default() });
    }
}

/// A collector that hangs at each reading until it is released.
struct Hanging {
    name: &'static str,
    release: Arc<Mutex<Receiver<()>>>,
    readings: Arc<AtomicU32>,
}

impl Collector for Hanging {
    fn name(&self) -> &str {
        self.name
    }

    fn read(&mut self) -> io::Result<()> {
        self.readings.fetch_add(1, Ordering::SeqCst);
        self.release.lock().recv().map_err(io::Error::other)
    }

    fn fill(&self, sample: &mut Sample) {
        sample.temperatures.push(Sensor { label: self.name.to_owned(), celsius: 1.0 });
    }

    fn values(&self, values: &mut Values<'_>) {
        values.push(BEATS, Some(self.name), 1.0);
    }
}

const BEATS: Metric<'_> = Metric::gauge("beats", Unit::Count, "What a collector of the tests measures.");

fn hanging(name: &'static str) -> (Box<dyn Collector>, Sender<()>, Arc<AtomicU32>) {
    let (release, receiver) = channel();
    let readings = Arc::new(AtomicU32::new(0));
    let collector = Hanging { name, release: Arc::new(Mutex::new(receiver)), readings: readings.clone() };
    (Box::new(collector), release, readings)
}

fn machine(collectors: Vec<Box<dyn Collector>>) -> Machine {
    let nowhere = Roots {
        proc: "/nonexistent".into(),
        sys: "/nonexistent".into(),
        etc: "/nonexistent".into(),
        ..Roots::default()
    };
    Machine::with_collectors(MountTable::new(&nowhere), collectors.into(), DEADLINE)
}

fn prompt(name: &'static str) -> Box<dyn Collector> {
    Box::new(Prompt(name))
}

fn answered(sample: Option<Sample>) -> Vec<String> {
    let mut names: Vec<_> = sample.unwrap().network.into_iter().map(|row| row.interface).collect();
    names.sort();
    names
}

#[tokio::test]
async fn a_hanging_collector_affects_no_other() {
    let (hanging, _release, _) = hanging("mount");
    let mut machine = machine(vec![prompt("cpu"), hanging, prompt("memory"), prompt("network")]);

    let sample = machine.read().await;

    assert_eq!(sample.as_ref().map(|sample| sample.temperatures.len()), Some(0));
    assert_eq!(answered(sample), ["cpu", "memory", "network"]);
}

#[tokio::test]
async fn a_hanging_collector_delays_one_sample_and_is_not_asked_again() {
    let (hanging, _release, readings) = hanging("mount");
    let mut machine = machine(vec![prompt("cpu"), prompt("memory"), hanging]);

    let started = Instant::now();
    machine.read().await.unwrap();
    let first = started.elapsed();
    for _ in 0..20 {
        machine.read().await.unwrap();
    }

    assert!(first >= DEADLINE);
    assert!(started.elapsed() - first < DEADLINE * 10, "{:?}", started.elapsed());
    assert_eq!(readings.load(Ordering::SeqCst), 1);
    assert_eq!(machine.stuck.len(), 1);
}

#[tokio::test]
async fn a_collector_that_comes_back_is_asked_again() {
    let (hanging, release, readings) = hanging("mount");
    let mut machine = machine(vec![prompt("cpu"), prompt("memory"), hanging]);
    machine.read().await.unwrap();

    release.send(()).unwrap();
    release.send(()).unwrap();
    let sample = tokio::time::timeout(Duration::from_secs(60), async {
        loop {
            let sample = machine.read().await.unwrap();
            if !sample.temperatures.is_empty() {
                return sample;
            }
        }
    });

    assert_eq!(sample.await.unwrap().temperatures, [Sensor { label: "mount".into(), celsius: 1.0 }]);
    assert_eq!(readings.load(Ordering::SeqCst), 2);
}

#[tokio::test]
async fn a_collector_that_is_late_each_time_is_part_of_some_samples() {
    let (slow, release, readings) = hanging("mount");
    let mut machine = machine(vec![prompt("cpu"), prompt("memory"), slow]);

    let mut released = 0;
    let sample = tokio::time::timeout(Duration::from_secs(60), async {
        loop {
            let sample = machine.read().await.unwrap();
            if !sample.temperatures.is_empty() {
                return sample;
            }
            // It answers only after the sample that asked it.
            while released < readings.load(Ordering::SeqCst) {
                release.send(()).unwrap();
                released += 1;
            }
        }
    });

    assert_eq!(sample.await.unwrap().temperatures, [Sensor { label: "mount".into(), celsius: 1.0 }]);
    assert_eq!((readings.load(Ordering::SeqCst), machine.stuck.len()), (2, 0));
}

#[tokio::test]
async fn hanging_and_failing_collectors_are_unread_until_they_are_gone() {
    let dir = tempfile::tempdir().unwrap();
    std::fs::create_dir(dir.path().join("self")).unwrap();
    let roots = Roots { proc: dir.path().into(), ..Roots::default() };
    let write = |text: &str| std::fs::write(dir.path().join("self/mountinfo"), text).unwrap();
    let [nas, broken] =
        ["/mnt/nas", "/nonexistent"].map(|path| Unread { list: "disk_usage".into(), name: Some(path.into()) });
    let network = Unread { list: "network".into(), name: None };
    write("1 0 8:1 / / rw - ext4 a rw\n2 1 0:9 / /mnt/nas rw - nfs4 b rw\n3 1 8:3 / /nonexistent rw - ext4 c rw\n");
    let (mount, _release, _) = hanging("disk_usage 0:9 /mnt/nas");
    let (counters, _release_too, _) = hanging("network");
    let collectors = VecDeque::from([prompt("cpu"), prompt("memory"), prompt("temperature"), mount, counters]);
    let mut machine = Machine::with_collectors(MountTable::new(&roots), collectors, DEADLINE);

    // A collector that hangs is known after its deadline, one that fails at once: neither order is certain.
    let sorted = |mut unread: Vec<Unread>| {
        unread.sort_by_key(|unread| unread.name.clone());
        unread
    };

    let sample = machine.read().await.unwrap();
    assert_eq!(sample.disk_usage.iter().map(|disk| disk.path.as_str()).collect::<Vec<_>>(), ["/"]);
    assert_eq!(sorted(sample.unread), [network.clone(), nas.clone(), broken.clone()]);
    let sample = machine.read().await.unwrap();
    assert_eq!(sorted(sample.unread), [network.clone(), nas, broken.clone()], "it hangs still");

    write("1 0 8:1 / / rw - ext4 a rw\n3 1 8:3 / /nonexistent rw - ext4 c rw\n");
    machine.mounts = MountTable::new(&roots);
    assert_eq!(sorted(machine.read().await.unwrap().unread), [network, broken]);
}

#[tokio::test]
async fn the_series_of_a_hanging_collector_are_unread() {
    let (fans, release, _) = hanging("fans");
    let mut machine = machine(vec![prompt("cpu"), prompt("memory"), fans]);
    release.send(()).unwrap();
    let sample = machine.read().await.unwrap();
    assert_eq!((sample.values.len(), sample.unread), (1, Vec::new()));

    let sample = machine.read().await.unwrap();

    assert_eq!(sample.values, []);
    assert_eq!(sample.unread, [Unread { list: "series".into(), name: Some("beats:fans".into()) }]);
}

#[tokio::test]
async fn several_hanging_collectors_each_keep_one_thread() {
    let (one, _release_one, readings_one) = hanging("one");
    let (two, _release_two, readings_two) = hanging("two");
    let mut machine = machine(vec![one, prompt("cpu"), two, prompt("memory"), prompt("network")]);

    let first = answered(machine.read().await);
    let second = answered(machine.read().await);

    assert_eq!(first, ["cpu", "memory", "network"]);
    assert_eq!(second, first);
    assert_eq!(machine.stuck.len(), 2);
    assert_eq!((readings_one.load(Ordering::SeqCst), readings_two.load(Ordering::SeqCst)), (1, 1));
}

#[tokio::test]
async fn without_processors_or_memory_there_is_no_sample() {
    assert_eq!(machine(vec![prompt("cpu"), prompt("network")]).read().await, None);
    assert_eq!(machine(vec![prompt("memory"), prompt("network")]).read().await, None);
}

#[tokio::test]
async fn collectors_follow_the_mount_table() {
    let dir = tempfile::tempdir().unwrap();
    std::fs::create_dir(dir.path().join("self")).unwrap();
    let roots = Roots { proc: dir.path().into(), ..Roots::default() };
    let write = |text: &str| std::fs::write(dir.path().join("self/mountinfo"), text).unwrap();
    let names = |machine: &Machine| -> Vec<String> {
        machine.collectors.iter().map(|collector| collector.name().to_owned()).collect()
    };
    write("1 0 8:1 / / rw - ext4 a rw\n2 1 8:2 / /data rw - ext4 b rw\n");
    let mut machine = Machine::with_collectors(MountTable::new(&roots), VecDeque::new(), DEADLINE);

    machine.follow_mounts();
    machine.follow_mounts();
    let before = names(&machine);
    write("1 0 8:1 / / rw - ext4 a rw\n3 1 8:3 / /more rw - ext4 c rw\n");
    machine.mounts = MountTable::new(&roots);
    machine.follow_mounts();

    assert_eq!(before, ["disk_usage 8:1 /", "disk_usage 8:2 /data"]);
    assert_eq!(names(&machine), ["disk_usage 8:1 /", "disk_usage 8:3 /more"]);
}

#[tokio::test]
async fn a_sample_of_a_machine_with_very_many_mounts_is_valid() {
    let dir = tempfile::tempdir().unwrap();
    std::fs::create_dir(dir.path().join("self")).unwrap();
    let roots = Roots { proc: dir.path().into(), ..Roots::default() };
    let mount = |minor: usize| {
        let path = dir.path().join(format!("mount{minor}"));
        std::fs::create_dir(&path).unwrap();
        format!("1 0 8:{minor} / {} rw - ext4 a rw\n", path.display())
    };
    let table: String = (0..MAX_LIST + 76).map(mount).collect();
    std::fs::write(dir.path().join("self/mountinfo"), table).unwrap();
    let collectors = VecDeque::from([prompt("cpu"), prompt("memory")]);
    let mut machine = Machine::with_collectors(MountTable::new(&roots), collectors, DEADLINE);

    let sample = machine.read().await.unwrap();

    assert_eq!((sample.validate(), sample.disk_usage.len()), (Ok(()), MAX_LIST));
}

#[test]
fn processes_are_only_read_where_the_policy_permits_it() {
    let looks = |processes| {
        let policy = Policy { processes, ..Policy::default() };
        let machine = Machine::new(&Config { policy, ..Config::default() }, RunningContainers::default());
        machine.collectors.iter().any(|collector| collector.name() == "top_processes")
    };

    assert_eq!((looks(Switch::On), looks(Switch::Off)), (true, false));
}

#[tokio::test]
async fn this_machines_first_sample_is_whole_and_valid() {
    let timing = Timing { collector: Duration::from_secs(60), ..Timing::default() };
    let mut machine = Machine::new(&Config { timing, ..Config::default() }, RunningContainers::default());

    let mut sample = machine.sample().await.unwrap();
    sample.round();

    assert_eq!(sample.validate(), Ok(()));
    assert!(sample.memory_total > 0 && sample.memory_used > 0 && sample.memory_used < sample.memory_total);
    assert!(!sample.cpu_per_core.is_empty() && sample.process_count > 0 && sample.uptime_seconds > 0);
    assert!(sample.disk_usage.iter().all(|disk| disk.total > 0), "{:?}", sample.disk_usage);
    assert!(sample.network.iter().all(|row| row.interface != "lo"));
    let ids: Vec<u16> = sample.values.iter().map(|(id, _)| *id).collect();
    let described = machine.catalog().describe(&ids);
    assert_eq!(described.len(), ids.len(), "each value is described");
    assert_eq!(ids.iter().collect::<HashSet<_>>().len(), ids.len(), "and none is there twice");
    for name in ["cpu_mode", "context_switches", "memory_page_cache", "tcp_sockets", "file_handles"] {
        assert!(described.iter().any(|series| series.name == name), "{name}");
    }
}
