//! The disk of the state directory hangs: a pipe in the place of a file blocks who opens it. Or it is full: a link in the place of
//! a new file leads to a device without space.

use std::fs::{self, File, OpenOptions};
use std::path::PathBuf;
use std::process::Command;
use std::time::{Duration, Instant};

use crate::host::{Host, INSTALLED, eventually, failure, sha256};
use crate::programs;

/// A file that nobody can open until it is released.
struct Hang(PathBuf);

impl Hang {
    fn new(path: PathBuf) -> Self {
        fs::create_dir_all(path.parent().unwrap()).unwrap();
        let began = Instant::now();
        // The agent may be writing that file, and moves it away.
        while !Command::new("mkfifo").arg(&path).status().unwrap().success() {
            assert!(began.elapsed() < Duration::from_secs(60), "{} stays", path.display());
        }
        Self(path)
    }

    /// Lets those who wait to write continue, with an error.
    fn end_for_writer(self) {
        let _reader = File::open(&self.0).unwrap();
        // The agent tidies up as well.
        _ = fs::remove_file(&self.0);
    }

    /// Lets those who wait to read continue, with an empty file.
    fn end_for_reader(self) {
        let _writer = OpenOptions::new().write(true).open(&self.0).unwrap();
        fs::remove_file(&self.0).unwrap();
    }
}

#[tokio::test]
async fn the_installed_program_runs_while_the_start_of_a_build_hangs() {
    let mut host = Host::stopped("updates = \"signed\"\n").await;
    host.has_taken("99.0.0", &programs::agent());
    let hang = Hang::new(host.updates().join("state.new"));

    let auth = host.run().await;
    // It would end by its own lock.
    assert_eq!((auth.agent.version.as_str(), failure(&auth)), (INSTALLED, None));
    let info = host.request("agent.info", serde_json::Value::Null).await.unwrap();
    assert_eq!(info["version"].as_str(), Some(INSTALLED));
    hang.end_for_writer();
    let lock = host.path("state/lock");
    eventually("its own lock", || {
        let holder = fs::read_to_string(&lock).ok()?;
        let samples = fs::read_dir(host.path("state")).unwrap().flatten().count() > 2;
        (samples && holder.trim() == host.pid().to_string()).then_some(())
    })
    .await;

    assert_eq!(host.restart().await.agent.version, "99.0.0");
}

#[tokio::test]
async fn a_build_is_not_tried_while_the_agent_before_still_uses_the_directory() {
    let mut host = Host::stopped("updates = \"signed\"\n").await;
    let hang = Hang::new(host.path("state/00000000000000000001.samples"));
    host.run().await;
    let (pid, program) = (host.pid(), programs::agent());
    let offer = host.genuine("99.0.0", &program);
    assert_eq!(host.offer(&offer).await, Ok("99.0.0".to_owned()));
    host.disconnected().await;

    let auth = host.connected().await;

    assert_eq!((auth.agent.version.as_str(), host.pid(), failure(&auth)), (INSTALLED, pid, None));
    hang.end_for_reader();
    // Another one, because nobody waits here until the same is taken again.
    let other = [program.as_slice(), b"other"].concat();
    assert_eq!(host.update("99.0.1", &other).await.agent.version, "99.0.1");
    assert_eq!(host.kept(), [sha256(&other).as_str(), "state.json"]);
}

#[tokio::test]
async fn a_disk_that_hangs_during_an_attempt_delays_neither_a_stop_nor_the_agent() {
    let mut host = Host::start().await;
    let program = programs::exits();
    for is_stopped in [false, true] {
        let hang = Hang::new(host.updates().join("state.new"));
        let program = [program.as_slice(), &[u8::from(is_stopped)]].concat();
        let offer = host.genuine("99.0.0", &program);
        assert_eq!(host.offer(&offer).await, Ok("99.0.0".to_owned()));
        host.disconnected().await;
        if is_stopped {
            // The agent says so when the attempt begins, and closes its connection before that.
            let tries = |host: &Host| host.log().matches("tries a build").count();
            eventually("a second attempt", || (tries(&host) == 2).then_some(())).await;
            let began = Instant::now();
            host.stop().await;
            assert!(began.elapsed() < Duration::from_secs(9), "{:?}", began.elapsed());
            return;
        }
        let auth = host.connected().await;
        assert_eq!((auth.agent.version.as_str(), failure(&auth)), (INSTALLED, None));
        hang.end_for_writer();
    }
}

/// Leaves no space for a new record. The next start of the installed program removes the link.
fn fill(host: &Host) {
    std::os::unix::fs::symlink("/dev/full", host.updates().join("state.new")).unwrap();
}

#[tokio::test]
async fn a_build_that_works_runs_on_a_full_disk() {
    let mut host = Host::start().await;
    host.update("99.0.0", &programs::agent()).await;

    // More often than a build may start that never works.
    for start in 1..=4 {
        fill(&host);
        assert_eq!(host.restart().await.agent.version, "99.0.0", "start {start}");
    }
}

#[tokio::test]
async fn a_build_that_never_connects_is_given_up_on_a_full_disk_as_well() {
    let mut host = Host::stopped("updates = \"signed\"\n").await;
    host.has_taken("99.0.0", &programs::exits());

    for start in 1..=3 {
        assert_eq!(host.run_to_the_end().await.code(), Some(0), "start {start} is one of /bin/true");
        fill(&host);
    }
    let auth = host.run().await;

    assert_eq!(auth.agent.version, INSTALLED);
    assert!(failure(&auth).unwrap().reason.contains("never stayed connected"));
}
