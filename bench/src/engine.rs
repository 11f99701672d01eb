//! A container engine of its own, by `scripts/engine`.

use std::collections::HashMap;
use std::ffi::OsStr;
use std::fs;
use std::os::unix::ffi::OsStrExt;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::time::Duration;

use anyhow::Context;
use clap::ValueEnum;
use tempfile::TempDir;

use crate::process::Cpu;

const SCRIPT: &str = "scripts/engine";
/// The image that the script creates.
const IMAGE: &str = "docker.io/library/busybox:test";

#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub enum Kind {
    Docker,
    Podman,
}

/// A running engine. Dropping it ends it with its containers and removes its data.
#[derive(Debug)]
pub struct Engine {
    kind: Kind,
    folder: TempDir,
}

/// CPU time of each of its processes.
#[derive(Debug)]
pub struct EngineCpu(HashMap<u32, Duration>);

impl Kind {
    pub fn name(self) -> &'static str {
        match self {
            Self::Docker => "docker",
            Self::Podman => "podman",
        }
    }
}

impl Engine {
    pub async fn start(kind: Kind) -> anyhow::Result<Self> {
        // Its sockets need a short path.
        let engine = Self { kind, folder: tempfile::Builder::new().prefix("signalbox-engine-").tempdir()? };
        let mut up = engine.script("up");
        let output = tokio::task::spawn_blocking(move || up.output()).await?.context("cannot run scripts/engine")?;
        anyhow::ensure!(output.status.success(), "scripts/engine: {}", String::from_utf8_lossy(&output.stderr).trim());
        Ok(engine)
    }

    /// Where it listens.
    pub fn address(&self) -> String {
        format!("unix://{}", self.folder.path().join("engine.sock").display())
    }

    /// Runs a shell command in a container of its own.
    pub async fn run_container(&self, name: &str, command: &str) -> anyhow::Result<()> {
        // Docker's client works with both engines.
        let mut run = tokio::process::Command::new("docker");
        run.args(["--host", &self.address(), "run", "--detach", "--network", "none", "--name", name, IMAGE]);
        let output = run.args(["sh", "-c", command]).kill_on_drop(true).output().await.context("cannot run docker")?;
        anyhow::ensure!(output.status.success(), "docker run: {}", String::from_utf8_lossy(&output.stderr).trim());
        Ok(())
    }

    /// CPU time so far of every process whose command line names the engine's folder, except some: its daemons and the monitors
    /// of each container, with the children that they have waited for. Processes in the containers are not included.
    pub fn cpu(&self, but: &[u32]) -> anyhow::Result<EngineCpu> {
        let mut times = HashMap::new();
        for entry in fs::read_dir("/proc")?.flatten() {
            let Some(pid) = entry.file_name().to_str().and_then(|name| name.parse().ok()) else { continue };
            if but.contains(&pid) || !names(&entry.path(), self.folder.path()) {
                continue;
            }
            // A process that ends at this moment has not used much.
            if let Ok(cpu) = Cpu::with_children(pid) {
                times.insert(pid, cpu.total());
            }
        }
        anyhow::ensure!(!times.is_empty(), "the engine has ended");
        Ok(EngineCpu(times))
    }

    fn script(&self, action: &str) -> Command {
        let mut command = Command::new(PathBuf::from(SCRIPT));
        command.args([action, self.kind.name()]).arg(self.folder.path()).stdin(Stdio::null()).stdout(Stdio::null());
        command
    }
}

impl Drop for Engine {
    fn drop(&mut self) {
        // Nothing more can be done about an engine that does not end; its folder says where it is.
        self.script("down").stderr(Stdio::null()).status().ok();
    }
}

impl EngineCpu {
    /// What was used since `earlier`, new processes included.
    pub fn since(&self, earlier: &Self) -> Duration {
        let used = self.0.iter().map(|(pid, now)| now.saturating_sub(earlier.0.get(pid).copied().unwrap_or_default()));
        used.sum()
    }
}

/// Whether the command line of a process names `folder`.
fn names(process: &Path, folder: &Path) -> bool {
    let line = fs::read(process.join("cmdline")).unwrap_or_default();
    let folder = folder.as_os_str().as_bytes();
    line.split(|byte| *byte == 0).any(|argument| is_within(argument, folder))
}

fn is_within(argument: &[u8], folder: &[u8]) -> bool {
    argument.windows(folder.len().max(1)).any(|window| OsStr::from_bytes(window) == OsStr::from_bytes(folder))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_process_of_the_engine_names_its_folder() {
        let is_engine = |argument: &str| is_within(argument.as_bytes(), b"/tmp/signalbox-engine-x");

        assert!(is_engine("unix:///tmp/signalbox-engine-x/engine.sock"));
        assert!(!is_engine("/tmp/signalbox-engine-y/exec"));
        assert!(!is_engine(""));
    }

    #[test]
    fn a_process_that_came_later_counts_whole_and_one_that_ended_not_at_all() {
        let seconds = Duration::from_secs;
        let before = EngineCpu(HashMap::from([(1, seconds(10)), (2, seconds(5))]));
        let after = EngineCpu(HashMap::from([(1, seconds(12)), (3, seconds(4))]));

        assert_eq!(after.since(&before), seconds(6));
    }
}
