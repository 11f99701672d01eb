use std::time::Duration;

use super::*;

const ID: &str = "7503721b446d71204cec9017252b6154d0c4da3aadba2d5b9ab7ba97d229463b";

const HYBRID: &str = "\
30 24 0:26 / /sys/fs/cgroup/memory rw - cgroup cgroup rw,memory
31 24 0:27 / /sys/fs/cgroup/cpu,cpuacct rw - cgroup cgroup rw,cpu,cpuacct
32 24 0:28 / /sys/fs/cgroup/unified rw - cgroup2 cgroup2 rw
";
const UNIFIED: &str = "32 24 0:28 / /sys/fs/cgroup rw - cgroup2 cgroup2 rw\n";

const NET_DEV: &str = "\
Inter-|   Receive                                                |  Transmit
 face |bytes    packets errs drop fifo frame compressed multicast|bytes    packets errs drop fifo colls carrier compressed
    lo:    3193      29    0    0    0     0          0         0     3193      29    0    0    0     0       0          0
  eth0:    1000       1    0    0    0     0          0         0     2000       1    0    0    0     0       0          0
  eth1:      10       1    0    0    0     0          0         0       20       1    0    0    0     0       0          0
";

/// A machine made of files, with one container whose first process is 42.
struct Fixture {
    dir: tempfile::TempDir,
    running: RunningContainers,
}

impl Fixture {
    fn new(mountinfo: &str, membership: &str) -> Self {
        let fixture = Self { dir: tempfile::tempdir().unwrap(), running: RunningContainers::default() };
        fixture.write("proc/self/mountinfo", mountinfo);
        fixture.write("proc/42/cgroup", membership);
        fixture.write("proc/42/net/dev", NET_DEV);
        fixture.run(42, true);
        fixture
    }

    fn write(&self, path: &str, text: &str) {
        let path = self.dir.path().join(path);
        fs::create_dir_all(path.parent().unwrap()).unwrap();
        fs::write(path, text).unwrap();
    }

    fn run(&self, pid: u32, has_own_network: bool) {
        self.running.set(vec![Running { id: ID.to_owned(), name: "web".to_owned(), pid, has_own_network }]);
    }

    fn collector(&self) -> Containers {
        let root = |name| self.dir.path().join(name);
        let roots = Roots { proc: root("proc"), sys: root("sys"), etc: root("etc"), ..Roots::default() };
        Containers::new(&roots, self.running.clone())
    }

    fn write_v2(&self, dir: &str, usage_usec: u64) {
        self.write(&format!("sys/fs/cgroup{dir}/cpu.stat"), &format!("usage_usec {usage_usec}\nuser_usec 1\n"));
        self.write(&format!("sys/fs/cgroup{dir}/memory.current"), "5000\n");
        self.write(&format!("sys/fs/cgroup{dir}/memory.stat"), "anon 1\ninactive_file 2000\nactive_file 500\n");
    }
}

fn usage(cpu_percent: f64, memory_bytes: u64) -> ContainerUsage {
    ContainerUsage {
        id: ID.to_owned(),
        name: "web".to_owned(),
        cpu_percent,
        memory_bytes,
        network_rx_bytes: 1010,
        network_tx_bytes: 2020,
    }
}

#[test]
fn version_1_of_the_cgroupfs_driver() {
    let membership = format!("5:memory:/docker/{ID}\n4:cpu,cpuacct:/docker/{ID}\n0::/\n");
    let fixture = Fixture::new(HYBRID, &membership);
    fixture.write(&format!("sys/fs/cgroup/cpu,cpuacct/docker/{ID}/cpuacct.usage"), "1000000000\n");
    fixture.write(&format!("sys/fs/cgroup/memory/docker/{ID}/memory.usage_in_bytes"), "9000\n");
    fixture
        .write(&format!("sys/fs/cgroup/memory/docker/{ID}/memory.stat"), "inactive_file 1\ntotal_inactive_file 4000\n");
    let mut collector = fixture.collector();
    let began = Instant::now();

    collector.read_at(began);
    assert_eq!(collector.rows, [], "one reading says nothing of a share");
    fixture.write(&format!("sys/fs/cgroup/cpu,cpuacct/docker/{ID}/cpuacct.usage"), "4000000000\n");
    collector.read_at(began + Duration::from_secs(2));

    assert_eq!(collector.rows, [usage(150.0, 5000)]);
}

#[test]
fn version_2_of_either_driver_and_of_podman() {
    let places = [
        (format!("/system.slice/docker-{ID}.scope"), String::new()),
        (format!("/docker/{ID}"), String::new()),
        (format!("/machine.slice/libpod-{ID}.scope"), "/container".to_owned()),
        (format!("/libpod_parent/libpod-{ID}"), String::new()),
        (format!("/kubepods/pod1/{ID}"), "/init.scope".to_owned()),
    ];
    for (own, below) in places {
        let fixture = Fixture::new(UNIFIED, &format!("0::{own}{below}\n"));
        fixture.write_v2(&own, 1_000_000);
        let mut collector = fixture.collector();
        let began = Instant::now();

        collector.read_at(began);
        fixture.write_v2(&own, 1_500_000);
        collector.read_at(began + Duration::from_secs(5));

        assert_eq!(collector.rows, [usage(10.0, 3000)], "{own}");
    }
}

#[test]
fn a_process_of_another_container_yields_nothing() {
    let fixture = Fixture::new(UNIFIED, "0::/system.slice/cron.service\n");
    fixture.write_v2("/system.slice", 1);
    let mut collector = fixture.collector();

    collector.read_at(Instant::now());
    collector.read_at(Instant::now());

    assert_eq!(collector.rows, []);
}

#[test]
fn a_container_that_ended_or_restarted_starts_over() {
    let own = format!("/docker/{ID}");
    let fixture = Fixture::new(UNIFIED, &format!("0::{own}\n"));
    fixture.write_v2(&own, 9_000_000);
    let mut collector = fixture.collector();
    collector.read_at(Instant::now());

    fixture.write("proc/43/cgroup", &format!("0::{own}\n"));
    fixture.write_v2(&own, 1);
    fixture.run(43, true);
    collector.read_at(Instant::now());
    assert_eq!(collector.rows, []);

    fs::remove_dir_all(fixture.dir.path().join("sys")).unwrap();
    collector.read_at(Instant::now());
    assert_eq!(collector.rows, []);
    fixture.running.set(Vec::new());
    collector.read_at(Instant::now());
    assert!(collector.seen.is_empty());
}

#[test]
fn traffic_of_the_hosts_network_is_not_the_containers() {
    let own = format!("/docker/{ID}");
    let fixture = Fixture::new(UNIFIED, &format!("0::{own}\n"));
    fixture.write_v2(&own, 1);
    fixture.run(42, false);
    let mut collector = fixture.collector();
    let began = Instant::now();

    collector.read_at(began);
    collector.read_at(began + Duration::from_secs(1));

    let row = collector.rows.first().unwrap();
    assert_eq!((row.network_rx_bytes, row.network_tx_bytes), (0, 0));
}
