use std::fs;
use std::os::unix::fs::MetadataExt;

use super::*;

/// A machine whose processes a test defines.
struct Fixture {
    dir: tempfile::TempDir,
    collector: TopProcesses,
}

/// The use of a process so far.
struct Process {
    pid: u32,
    name: &'static str,
    /// Clock ticks.
    cpu: u64,
    /// Clock ticks after boot.
    started_at: u64,
    pages: u64,
}

const BOOT_SECONDS: u64 = 1000;

impl Fixture {
    fn new() -> Self {
        let dir = tempfile::tempdir().unwrap();
        let roots = Roots {
            proc: dir.path().join("proc"),
            sys: dir.path().join("sys"),
            etc: dir.path().join("etc"),
            ..Roots::default()
        };
        fs::create_dir_all(&roots.etc).unwrap();
        let fixture = Self { dir, collector: TopProcesses::new(&roots) };
        fixture.is(&init());
        fixture
    }

    /// Writes a process.
    fn is(&self, process: &Process) {
        let Process { pid, name, cpu, started_at, pages } = process;
        let line = format!("{pid} ({name}) S 1 1 1 0 -1 0 0 0 0 0 {cpu} 0 0 0 20 0 1 0 {started_at} 0 {pages} 0 0\n");
        self.write(&format!("proc/{pid}/stat"), &line);
    }

    fn write(&self, path: &str, text: &str) {
        let path = self.dir.path().join(path);
        fs::create_dir_all(path.parent().unwrap()).unwrap();
        fs::write(path, text).unwrap();
    }

    fn ends(&self, pid: u32) {
        fs::remove_dir_all(self.dir.path().join(format!("proc/{pid}"))).unwrap();
    }

    /// Takes a sample this many seconds after the agent's start.
    fn sample_at(&mut self, seconds: u64) -> io::Result<Option<Lists>> {
        let awake = Duration::from_secs(seconds);
        self.collector.read_at(ClockPair { awake, boot: Duration::from_secs(BOOT_SECONDS) + awake })?;
        let mut sample = Sample::default();
        self.collector.fill(&mut sample);
        Ok(sample.processes)
    }

    /// The lists of the sample at this time.
    fn lists_at(&mut self, seconds: u64) -> Lists {
        self.sample_at(seconds).unwrap().expect("lists are due")
    }
}

fn init() -> Process {
    process(1, "init", 0, 0)
}

/// A process that has run since boot.
fn process(pid: u32, name: &'static str, cpu: u64, pages: u64) -> Process {
    Process { pid, name, cpu, started_at: 1, pages }
}

fn ticks(seconds: u64) -> u64 {
    seconds * clock_ticks_per_second()
}

fn names(rows: &[ProcessUsage]) -> Vec<&str> {
    rows.iter().map(|row| row.name.as_str()).collect()
}

fn usage(rows: &[ProcessUsage]) -> Vec<(u32, f64)> {
    rows.iter().map(|row| (row.pid, row.cpu_percent)).collect()
}

#[test]
fn the_first_list_comes_with_the_second_look_and_then_once_a_minute() {
    let mut fixture = Fixture::new();

    let with_lists: Vec<u64> =
        (0..200).step_by(5).filter(|seconds| fixture.sample_at(*seconds).unwrap().is_some()).collect();

    assert_eq!(with_lists, [5, 65, 125, 185]);
}

#[test]
fn an_agent_that_samples_every_hour_has_a_list_in_each_sample_but_the_first() {
    let mut fixture = Fixture::new();

    let has_lists = [0, 3600, 7200].map(|seconds| fixture.sample_at(seconds).unwrap().is_some());

    assert_eq!(has_lists, [false, true, true]);
}

#[test]
fn a_row_has_the_process_and_its_use_since_the_previous_look() {
    let mut fixture = Fixture::new();
    let uid = fs::metadata(fixture.dir.path()).unwrap().uid();
    fixture.write("etc/passwd", &format!("ada:x:{uid}:{uid}::/:/bin/sh\n"));
    fixture.is(&process(7, "nginx", ticks(500), 100));
    fixture.sample_at(0).unwrap();
    fixture.lists_at(60);

    fixture.is(&process(7, "nginx", ticks(500) + ticks(90), 200));
    let lists = fixture.lists_at(120);

    let expected = ProcessUsage {
        pid: 7,
        name: "nginx".into(),
        user: "ada".into(),
        cpu_percent: 150.0,
        memory_bytes: 200 * page_size() as u64,
    };
    assert_eq!(lists, Lists { by_cpu: vec![expected.clone()], by_memory: vec![expected] });
}

#[test]
fn each_list_has_five_at_most_the_greediest_first_and_equals_by_pid() {
    let mut fixture = Fixture::new();
    fixture.sample_at(0).unwrap();
    for pid in 2..50 {
        let cpu = if pid == 30 { ticks(2) } else { ticks(1) };
        fixture.is(&Process { started_at: ticks(BOOT_SECONDS + 1), ..process(pid, "worker", cpu, u64::from(pid)) });
    }

    let lists = fixture.lists_at(10);

    assert_eq!(usage(&lists.by_cpu), [(30, 20.0), (2, 10.0), (3, 10.0), (4, 10.0), (5, 10.0)]);
    assert_eq!(lists.by_memory.iter().map(|row| row.pid).collect::<Vec<_>>(), [49, 48, 47, 46, 45]);
}

#[test]
fn idle_processes_and_kernel_threads_without_memory_are_not_listed() {
    let mut fixture = Fixture::new();
    fixture.is(&process(2, "idle", ticks(500), 100));
    fixture.is(&process(3, "kworker/0:1", 0, 0));
    fixture.sample_at(0).unwrap();
    fixture.is(&process(3, "kworker/0:1", ticks(1), 0));

    let lists = fixture.lists_at(10);

    assert_eq!((names(&lists.by_cpu), names(&lists.by_memory)), (vec!["kworker/0:1"], vec!["idle"]));
}

#[test]
fn a_reused_pid_is_no_spike() {
    let mut fixture = Fixture::new();
    fixture.is(&process(7, "old", ticks(5), 1));
    fixture.sample_at(0).unwrap();

    // It has more CPU time than the old one had, all of it its own.
    fixture.is(&Process { started_at: ticks(BOOT_SECONDS + 5), ..process(7, "new", ticks(6), 1) });
    let lists = fixture.lists_at(60);

    assert_eq!((names(&lists.by_cpu), usage(&lists.by_cpu)), (vec!["new"], vec![(7, 10.0)]));
}

#[test]
fn a_process_that_became_readable_does_not_count_with_its_whole_life() {
    let mut fixture = Fixture::new();
    fixture.sample_at(0).unwrap();

    fixture.is(&process(7, "hidden before", ticks(900), 1));
    let first = fixture.lists_at(10);
    fixture.is(&process(7, "hidden before", ticks(906), 1));
    let second = fixture.lists_at(70);

    assert_eq!(usage(&first.by_cpu), []);
    assert_eq!(usage(&second.by_cpu), [(7, 10.0)]);
}

#[test]
fn processes_that_end_or_cannot_be_read_are_skipped() {
    let mut fixture = Fixture::new();
    fixture.is(&process(7, "ends", ticks(1), 1));
    fixture.is(&process(8, "stays", ticks(1), 1));
    fixture.sample_at(0).unwrap();
    fixture.ends(7);
    // A process that ends while it is read: its directory exists, its file is missing or empty.
    fs::create_dir(fixture.dir.path().join("proc/9")).unwrap();
    fixture.write("proc/10/stat", "");
    fixture.is(&process(8, "stays", ticks(2), 1));

    let lists = fixture.lists_at(10);

    assert_eq!((names(&lists.by_cpu), names(&lists.by_memory)), (vec!["stays"], vec!["stays"]));
}

#[test]
fn where_others_processes_are_hidden_there_are_no_lists() {
    let mut fixture = Fixture::new();
    fixture.is(&process(7, "the agent itself", ticks(1), 1));
    fixture.ends(1);

    let refusal = fixture.sample_at(0).unwrap_err();
    let until_the_next_minute: Vec<_> = (5..55).step_by(5).map(|seconds| fixture.sample_at(seconds).unwrap()).collect();
    let after_it = fixture.sample_at(60).unwrap_err();
    fixture.is(&init());
    let shown = [120, 180].map(|seconds| fixture.sample_at(seconds).unwrap().is_some());

    assert_eq!((refusal.kind(), after_it.kind()), (io::ErrorKind::PermissionDenied, io::ErrorKind::PermissionDenied));
    assert!(until_the_next_minute.iter().all(Option::is_none), "and nothing to report");
    assert_eq!(shown, [false, true]);
}

#[test]
fn without_proc_there_are_no_lists() {
    let nowhere = Roots {
        proc: "/nonexistent".into(),
        sys: "/nonexistent".into(),
        etc: "/nonexistent".into(),
        ..Roots::default()
    };
    let mut collector = TopProcesses::new(&nowhere);
    let mut sample = Sample::default();

    let outcome = collector.read();
    collector.fill(&mut sample);

    assert_eq!((outcome.unwrap_err().kind(), sample.processes), (io::ErrorKind::NotFound, None));
}

#[test]
fn a_look_at_very_many_processes_continues_with_the_next_samples_and_stays_exact() {
    let mut fixture = Fixture::new();
    let last = 3 * AT_ONCE as u32;
    (2..=last).for_each(|pid| fixture.is(&process(pid, "worker", ticks(10), u64::from(pid))));
    fixture.collector.budget = Duration::ZERO;
    // The last processes are read ten seconds after the first.
    for seconds in [0, 5, 10, 15] {
        assert_eq!(fixture.sample_at(seconds).unwrap(), None);
    }

    fixture.is(&process(last, "worker", ticks(16), 1));
    let until_it_is_whole = [60, 65].map(|seconds| fixture.sample_at(seconds).unwrap());
    fixture.collector.budget = BUDGET;
    let lists = fixture.lists_at(70);

    assert_eq!(until_it_is_whole, [None, None]);
    assert_eq!(usage(&lists.by_cpu), [(last, 10.0)]);
    assert_eq!(lists.by_memory.len(), 5);
}

#[test]
fn names_are_unchanged_and_bounded() {
    let mut fixture = Fixture::new();
    let odd = ["tmux: server", "(sd-pam)", "ünïcödé"];
    for (pid, name) in (2..).zip(odd) {
        fixture.is(&process(pid, name, 0, 10 - u64::from(pid)));
    }
    let long: &'static str = "x".repeat(400).leak();
    fixture.is(&process(9, long, 0, 1));
    fixture.sample_at(0).unwrap();

    let lists = fixture.lists_at(10);

    assert_eq!(names(&lists.by_memory), [odd[0], odd[1], odd[2], &long[..MAX_NAME_BYTES]]);
    let sample = Sample { processes: Some(lists), ..Sample::default() };
    assert_eq!(sample.validate(), Ok(()));
}

#[test]
fn this_machines_processes_are_listed_with_their_users() {
    let mut collector = TopProcesses::new(&Roots::default());
    let boot = Duration::ZERO;
    collector.read_at(ClockPair { awake: Duration::ZERO, boot }).unwrap();

    // Other programs start and end; there are few enough for one look.
    collector.budget = Duration::from_secs(60);
    while collector.found.is_none() {
        let awake = collector.due_at;
        collector.read_at(ClockPair { awake, boot }).unwrap();
    }

    let lists = collector.found.unwrap();
    assert!(!lists.by_memory.is_empty() && lists.by_memory.len() <= 5);
    assert!(lists.by_memory.iter().all(|row| row.pid > 0 && !row.user.is_empty() && row.memory_bytes > 0));
    assert!(lists.by_memory.is_sorted_by(|one, other| one.memory_bytes >= other.memory_bytes));
}
