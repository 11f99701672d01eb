//! The real agent as a child process.

use std::ffi::OsString;
use std::fs::File;
use std::path::{Path, PathBuf};
use std::process::Stdio;
use std::time::{Duration, Instant};

use anyhow::Context;
use clap::Args;
use tempfile::TempDir;
use tokio::process::{Child, Command};
use tokio::time::sleep;

use crate::child::{tail, terminate};
use crate::fixture::{Enrolled, Fixture};
use crate::peer::write_private;
use crate::process::{Cpu, Memory, peak_rss};
use crate::rest::Rest;

const START_TIMEOUT: Duration = Duration::from_secs(30);
const STOP_TIMEOUT: Duration = Duration::from_secs(20);
const POLL: Duration = Duration::from_millis(20);

/// Where the agent's binary is.
#[derive(Debug, Clone, Args)]
pub struct AgentOptions {
    /// The agent to measure; a release build.
    #[arg(long, default_value = "target/release/signalbox-agent")]
    pub agent: PathBuf,
}

/// A running agent. Dropping it kills the process and removes its data.
#[derive(Debug)]
pub struct RealAgent {
    child: Child,
    pid: u32,
    folder: TempDir,
}

impl RealAgent {
    /// Starts the agent of a server, with further flags, and waits until the service shows it as online.
    pub async fn start(
        options: &AgentOptions,
        fixture: &Fixture,
        enrolled: &Enrolled,
        flags: &[OsString],
    ) -> anyhow::Result<Self> {
        Self::start_at(options, fixture.service.work_dir(), &fixture.rest, enrolled, flags).await
    }

    /// The same with any instance; its data is below `work_dir`.
    pub async fn start_at(
        options: &AgentOptions,
        work_dir: &Path,
        rest: &Rest,
        enrolled: &Enrolled,
        flags: &[OsString],
    ) -> anyhow::Result<Self> {
        Self::start_with(options, work_dir, rest, enrolled, flags, &[]).await
    }

    /// The same with variables in its environment.
    pub async fn start_with(
        options: &AgentOptions,
        work_dir: &Path,
        rest: &Rest,
        enrolled: &Enrolled,
        flags: &[OsString],
        variables: &[(&str, OsString)],
    ) -> anyhow::Result<Self> {
        let folder = tempfile::Builder::new().prefix("agent-").tempdir_in(work_dir)?;
        let key_file = folder.path().join("key");
        write_private(&key_file, &enrolled.key).context("cannot write the key")?;
        let mut command = Command::new(&options.agent);
        command.args(["--url", rest.root(), "--log", "warn", "--key-file"]);
        command.arg(&key_file).arg("--state-dir").arg(folder.path().join("state")).args(flags);
        let child = command
            .envs(variables.iter().map(|(name, value)| (name, value)))
            .stdin(Stdio::null())
            .stdout(Stdio::null())
            .stderr(File::create(log_file(folder.path()))?)
            .kill_on_drop(true)
            .spawn()
            .with_context(|| format!("cannot start {}", options.agent.display()))?;
        let pid = child.id().context("the agent has no id")?;
        let mut agent = Self { child, pid, folder };
        agent.wait_until_online(rest, enrolled).await?;
        Ok(agent)
    }

    async fn wait_until_online(&mut self, rest: &Rest, enrolled: &Enrolled) -> anyhow::Result<()> {
        let start = Instant::now();
        while !rest.is_online(enrolled.server_id).await? {
            let log = || tail(&log_file(self.folder.path()));
            if let Some(status) = self.child.try_wait()? {
                anyhow::bail!("the agent ended with {status}; its log:\n{}", log());
            }
            anyhow::ensure!(start.elapsed() < START_TIMEOUT, "the agent was not online in time; its log:\n{}", log());
            sleep(POLL).await;
        }
        Ok(())
    }

    pub fn pid(&self) -> u32 {
        self.pid
    }

    /// CPU time with that of the children that it has waited for.
    pub fn cpu(&self) -> anyhow::Result<Cpu> {
        Cpu::with_children(self.pid)
    }

    pub fn memory(&self) -> anyhow::Result<Memory> {
        Memory::of(self.pid)
    }

    /// The highest RSS so far, in bytes.
    pub fn peak_rss(&self) -> anyhow::Result<u64> {
        peak_rss(self.pid)
    }

    /// Stops it as its operator would.
    pub async fn stop(mut self) -> anyhow::Result<()> {
        let status = terminate(&mut self.child, STOP_TIMEOUT).await?;
        anyhow::ensure!(status.success(), "the agent ended with {status} at SIGTERM");
        Ok(())
    }
}

/// A flag and its value.
pub fn flag(name: &str, value: impl Into<OsString>) -> [OsString; 2] {
    [name.into(), value.into()]
}

fn log_file(folder: &Path) -> PathBuf {
    folder.join("log")
}
