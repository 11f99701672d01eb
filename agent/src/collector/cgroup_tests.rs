use super::*;

/// A machine whose `/proc/self` and `/sys/fs/cgroup` a test defines.
struct Fixture(tempfile::TempDir);

impl Fixture {
    fn new(membership: &str, mountinfo: &str) -> Self {
        let fixture = Self(tempfile::tempdir().unwrap());
        fixture.write("proc/self/cgroup", membership);
        fixture.write("proc/self/mountinfo", mountinfo);
        fixture
    }

    fn write(&self, path: &str, text: &str) {
        let path = self.0.path().join(path);
        fs::create_dir_all(path.parent().unwrap()).unwrap();
        fs::write(path, text).unwrap();
    }

    fn cgroups(&self) -> Cgroups {
        let root = self.0.path();
        Cgroups::new(&Roots {
            proc: root.join("proc"),
            sys: root.join("sys"),
            etc: root.join("etc"),
            ..Roots::default()
        })
    }
}

const V2_MOUNT: &str = "30 23 0:26 / /sys/fs/cgroup rw - cgroup2 cgroup2 rw\n";
const V1_MOUNTS: &str = "32 31 0:29 / /sys/fs/cgroup/cpu,cpuacct rw - cgroup cgroup rw,cpu,cpuacct\n\
                         33 31 0:30 / /sys/fs/cgroup/cpuset rw - cgroup cgroup rw,cpuset\n\
                         34 31 0:31 / /sys/fs/cgroup/memory rw - cgroup cgroup rw,memory\n\
                         41 31 0:38 / /sys/fs/cgroup/unified rw - cgroup2 cgroup2 rw\n";

const GIB: u64 = 1 << 30;

#[test]
fn an_unlimited_machine_has_no_limit() {
    let fixture = Fixture::new("0::/init.scope\n", V2_MOUNT);
    fixture.write("sys/fs/cgroup/init.scope/memory.max", "max\n");
    fixture.write("sys/fs/cgroup/init.scope/cpu.max", "max 100000\n");

    assert_eq!(fixture.cgroups().memory_limit(8 * GIB), None);
    assert_eq!(fixture.cgroups().cpu_limit(4), None);
}

#[test]
fn version_2_counts_what_is_not_file_cache() {
    let fixture = Fixture::new("0::/\n", V2_MOUNT);
    fixture.write("sys/fs/cgroup/memory.max", "1073741824\n");
    fixture.write("sys/fs/cgroup/memory.current", "700\n");
    fixture.write("sys/fs/cgroup/memory.stat", "anon 300\nfile 400\ninactive_file 250\nactive_file 100\n");
    fixture.write("sys/fs/cgroup/memory.swap.max", "max\n");
    fixture.write("sys/fs/cgroup/memory.swap.current", "5\n");

    let expected = MemoryLimit { limit: GIB, used: 350, swap: Some((u64::MAX, 5)) };
    assert_eq!(fixture.cgroups().memory_limit(8 * GIB), Some(expected));
}

#[test]
fn version_1_beside_an_empty_version_2_is_read_with_its_totals() {
    let fixture = Fixture::new("4:memory:/box\n1:cpu,cpuacct:/\n0::/\n", V1_MOUNTS);
    fixture.write("sys/fs/cgroup/memory/memory.limit_in_bytes", "9223372036854771712\n");
    fixture.write("sys/fs/cgroup/memory/box/memory.limit_in_bytes", "1073741824\n");
    fixture.write("sys/fs/cgroup/memory/box/memory.usage_in_bytes", "900\n");
    fixture.write(
        "sys/fs/cgroup/memory/box/memory.stat",
        "inactive_file 1\nactive_file 1\ntotal_inactive_file 200\ntotal_active_file 300\n",
    );

    let expected = MemoryLimit { limit: GIB, used: 400, swap: None };
    assert_eq!(fixture.cgroups().memory_limit(8 * GIB), Some(expected));
}

#[test]
fn the_tightest_limit_above_the_agent_counts() {
    let fixture = Fixture::new("0::/pod/container\n", V2_MOUNT);
    fixture.write("sys/fs/cgroup/pod/memory.max", "1000\n");
    fixture.write("sys/fs/cgroup/pod/memory.current", "600\n");
    fixture.write("sys/fs/cgroup/pod/container/memory.max", "2000\n");
    fixture.write("sys/fs/cgroup/pod/container/memory.current", "100\n");
    fixture.write("sys/fs/cgroup/pod/cpu.max", "150000 100000\n");
    fixture.write("sys/fs/cgroup/pod/cpu.stat", "usage_usec 77\nuser_usec 1\n");
    fixture.write("sys/fs/cgroup/pod/container/cpu.max", "200000 100000\n");
    fixture.write("sys/fs/cgroup/pod/container/cpu.stat", "usage_usec 5\n");

    assert_eq!(fixture.cgroups().memory_limit(GIB), Some(MemoryLimit { limit: 1000, used: 600, swap: None }));
    let expected = CpuLimit { cores: 1.5, allowed: None, usage_nanos: Some(77_000) };
    assert_eq!(fixture.cgroups().cpu_limit(4), Some(expected));
}

#[test]
fn the_agents_own_unit_is_no_limit_of_the_machine() {
    let fixture = Fixture::new("0::/system.slice/signalbox-agent.service\n", V2_MOUNT);
    fixture.write("sys/fs/cgroup/system.slice/signalbox-agent.service/memory.max", "67108864\n");
    fixture.write("sys/fs/cgroup/system.slice/signalbox-agent.service/memory.current", "1\n");
    fixture.write("sys/fs/cgroup/system.slice/signalbox-agent.service/cpu.max", "5000 100000\n");

    assert_eq!(fixture.cgroups().memory_limit(8 * GIB), None);
    assert_eq!(fixture.cgroups().cpu_limit(4), None);
}

#[test]
fn version_1_quota_and_usage_are_read_at_the_same_level() {
    let fixture = Fixture::new("2:cpu,cpuacct:/box\n", V1_MOUNTS);
    fixture.write("sys/fs/cgroup/cpu,cpuacct/box/cpu.cfs_quota_us", "50000\n");
    fixture.write("sys/fs/cgroup/cpu,cpuacct/box/cpu.cfs_period_us", "100000\n");
    fixture.write("sys/fs/cgroup/cpu,cpuacct/box/cpuacct.usage", "123456\n");

    let expected = CpuLimit { cores: 0.5, allowed: None, usage_nanos: Some(123_456) };
    assert_eq!(fixture.cgroups().cpu_limit(4), Some(expected));
}

#[test]
fn a_version_1_group_without_a_quota_is_no_limit() {
    let fixture = Fixture::new("2:cpu,cpuacct:/box\n", V1_MOUNTS);
    fixture.write("sys/fs/cgroup/cpu,cpuacct/box/cpu.cfs_quota_us", "-1\n");
    fixture.write("sys/fs/cgroup/cpu,cpuacct/box/cpu.cfs_period_us", "100000\n");

    assert_eq!(fixture.cgroups().cpu_limit(4), None);
}

#[test]
fn a_set_of_cores_is_a_limit_and_a_quota_within_it_a_tighter_one() {
    let fixture = Fixture::new("0::/box\n", V2_MOUNT);
    fixture.write("sys/fs/cgroup/box/cpuset.cpus.effective", "1,3-4\n");
    fixture.write("sys/fs/cgroup/box/cpu.stat", "usage_usec 9\n");

    let by_set = fixture.cgroups().cpu_limit(8);
    fixture.write("sys/fs/cgroup/box/cpu.max", "400000 100000\n");
    let loose_quota = fixture.cgroups().cpu_limit(8);
    fixture.write("sys/fs/cgroup/box/cpu.max", "100000 100000\n");
    let tight_quota = fixture.cgroups().cpu_limit(8);

    let limit = |cores| Some(CpuLimit { cores, allowed: Some(HashSet::from([1, 3, 4])), usage_nanos: Some(9000) });
    assert_eq!((by_set, loose_quota, tight_quota), (limit(3.0), limit(3.0), limit(1.0)));
    assert!(limit(3.0).is_some_and(|limit| limit.allows(3) && !limit.allows(2)));
}

#[test]
fn a_container_that_sees_its_own_group_as_the_mounts_root_is_limited_there() {
    let mount = "34 31 0:31 /docker/abc /sys/fs/cgroup/memory ro - cgroup cgroup rw,memory\n";
    let inside = hierarchy("4:memory:/docker/abc\n", mount.as_bytes(), Path::new("/fixture"), "memory");
    let outside = hierarchy("4:memory:/../other\n", mount.as_bytes(), Path::new("/fixture"), "memory");

    let expected = Hierarchy { version: Version::V1, levels: vec!["/fixture/fs/cgroup/memory".into()] };
    assert_eq!(inside, Some(expected.clone()));
    assert_eq!(outside, Some(expected));
}

#[test]
fn levels_go_from_the_agents_group_to_the_highest_visible() {
    let found = hierarchy("0::/a/b\n", V2_MOUNT.as_bytes(), Path::new("/s"), "memory");

    let levels = ["/s/fs/cgroup/a/b", "/s/fs/cgroup/a", "/s/fs/cgroup"].map(PathBuf::from).to_vec();
    assert_eq!(found, Some(Hierarchy { version: Version::V2, levels }));
}

#[test]
fn an_agent_that_is_moved_to_another_group_follows() {
    let fixture = Fixture::new("0::/one\n", V2_MOUNT);
    fixture.write("sys/fs/cgroup/two/memory.max", "500\n");
    fixture.write("sys/fs/cgroup/two/memory.current", "5\n");
    let mut cgroups = fixture.cgroups();

    let before = cgroups.memory_limit(GIB);
    fixture.write("proc/self/cgroup", "0::/two\n");
    let after = (0..LOOK_EVERY).find_map(|_| cgroups.memory_limit(GIB));
    let next = cgroups.memory_limit(GIB);

    assert_eq!((before, after.map(|limit| limit.limit), next), (None, Some(500), after));
}

#[test]
fn lists_of_cores_are_ranges_and_numbers() {
    assert_eq!(parse_cpu_list("0-2,7\n"), HashSet::from([0, 1, 2, 7]));
    assert_eq!(parse_cpu_list("\n"), HashSet::new());
}
