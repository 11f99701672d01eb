//! A machine as the real agent's program sees it: a folder that its user may write, and processes that the test can find.

use std::fs::{self, File};
use std::net::SocketAddr;
use std::os::unix::fs::PermissionsExt;
use std::path::PathBuf;
use std::process::Command;

use tempfile::TempDir;
use uuid::Uuid;

use super::command_line::Launched;
use super::eventually;
use crate::real_agent::{agent_program, unprivileged};

pub struct Machine {
    room: TempDir,
    /// In the command line or the environment of everything that a test starts here, and nowhere else.
    pub marker: String,
}

impl Machine {
    pub fn new() -> Self {
        // In memory: on a disk under load a call may take the agent as long as on one that hangs.
        let room = TempDir::new_in("/dev/shm").unwrap();
        // The agent's user is another one than the test's.
        fs::set_permissions(&room, fs::Permissions::from_mode(0o777)).unwrap();
        Self { room, marker: format!("marker-{}", Uuid::now_v7().simple()) }
    }

    /// The agent's program as an unprivileged user; a second one continues where the first was.
    pub fn agent(&self, address: SocketAddr, key: &str, flags: &[&str]) -> Launched {
        let mut command = unprivileged(&agent_program());
        let programs = self.room.path().join("bin");
        command.env_clear().env("PATH", format!("{}:/usr/bin:/bin", programs.display()));
        command.args(["--url", &format!("http://{address}"), "--key", key]);
        command.arg("--state-dir").arg(self.room.path().join("state")).args(["--interval", "0.5"]).args(flags);
        Launched::start(command)
    }

    /// A script that commands find before the machine's own program of this name.
    pub fn program(&self, name: &str, script: &str) {
        let directory = self.room.path().join("bin");
        fs::create_dir_all(&directory).unwrap();
        fs::write(directory.join(name), script).unwrap();
        fs::set_permissions(directory.join(name), fs::Permissions::from_mode(0o755)).unwrap();
    }

    /// A file that commands and the test may both write.
    pub fn path(&self, name: &str) -> PathBuf {
        self.room.path().join(name)
    }

    /// Commands wait at it until the test opens it.
    pub fn gate(&self) -> Gate {
        let path = self.path("gate");
        let file = File::create(&path).unwrap();
        file.lock().unwrap();
        Gate { path, file }
    }

    /// The contents of a file, as soon as it has a whole line.
    pub async fn until_written(&self, name: &str) -> String {
        let written = || fs::read_to_string(self.path(name)).ok().filter(|text| text.ends_with('\n'));
        eventually("a file is written", async || written()).await
    }

    /// The processes that carry the marker.
    pub fn processes(&self) -> Vec<u32> {
        let carries = |pid: &u32| {
            let of = |file| fs::read(format!("/proc/{pid}/{file}")).unwrap_or_default();
            [of("cmdline"), of("environ")].iter().any(|text| String::from_utf8_lossy(text).contains(&self.marker))
        };
        all_processes().into_iter().filter(carries).collect()
    }

    pub async fn until_processes(&self, count: usize) {
        eventually("processes start", async || (self.processes().len() >= count).then_some(())).await;
    }

    pub async fn until_no_process(&self) {
        eventually("the processes are gone", async || self.processes().is_empty().then_some(())).await;
    }
}

/// A lock that the test holds.
pub struct Gate {
    path: PathBuf,
    file: File,
}

impl Gate {
    /// The shell's words for waiting at it.
    pub fn wait(&self) -> String {
        format!("flock -s {} true", self.path.display())
    }

    pub fn open(self) {
        self.file.unlock().unwrap();
    }
}

impl Drop for Machine {
    fn drop(&mut self) {
        for pid in self.processes() {
            // It may have ended.
            let _ = Command::new("kill").args(["-s", "KILL", &pid.to_string()]).status();
        }
    }
}

fn all_processes() -> Vec<u32> {
    let entries = fs::read_dir("/proc").unwrap().filter_map(Result::ok);
    entries.filter_map(|entry| entry.file_name().to_str()?.parse().ok()).collect()
}

/// Whether a process has or had a child.
pub fn has_had_child(pid: u32) -> bool {
    let is_child = |of: u32| stat(of, 4) == Some(pid.into());
    // The page faults of children that have ended: no program starts without one.
    all_processes().into_iter().any(is_child) || stat(pid, 11) != Some(0)
}

/// How many threads the user of this process has.
pub fn threads_of_its_user(pid: u32) -> u64 {
    let user = status(pid, "Uid:");
    let of_user = all_processes().into_iter().filter(|of| status(*of, "Uid:") == user);
    of_user.filter_map(|of| status(of, "Threads:")).sum()
}

/// The first number of a line in `/proc/PID/status`.
fn status(pid: u32, name: &str) -> Option<u64> {
    let text = fs::read_to_string(format!("/proc/{pid}/status")).ok()?;
    let line = text.lines().find_map(|line| line.strip_prefix(name))?;
    line.split_whitespace().next()?.parse().ok()
}

/// A number in `/proc/PID/stat`, counted as in proc(5). None for a process that has ended.
fn stat(pid: u32, field: usize) -> Option<u64> {
    let text = fs::read_to_string(format!("/proc/{pid}/stat")).ok()?;
    // The second field is a name that may hold anything.
    text.rsplit_once(')')?.1.split_whitespace().nth(field - 3)?.parse().ok()
}
