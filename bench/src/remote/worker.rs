//! A library in a process of its own: it receives a line per request, and answers with a line that says how long its run took.

use std::path::{Path, PathBuf};
use std::time::Duration;

use anyhow::Context;
use tokio::io::{AsyncBufReadExt, AsyncWriteExt, BufReader, Lines};
use tokio::process::{ChildStdin, ChildStdout, Command};
use tokio::time::timeout;

use crate::child::tail;
use crate::group::Group;

/// Far longer than the slowest of them takes to start or to run something.
const PATIENCE: Duration = Duration::from_secs(90);

/// A running process that answers `ready` at first, and then the microseconds of each run.
#[derive(Debug)]
pub struct Worker {
    stdin: ChildStdin,
    lines: Lines<BufReader<ChildStdout>>,
    log: PathBuf,
    _group: Group,
}

impl Worker {
    /// Starts a Python script, and waits until it is ready.
    pub async fn start(python: &Path, script: &str, arguments: &[String], log: PathBuf) -> anyhow::Result<Self> {
        let mut command = Command::new(python);
        command.args(["-c", script]).args(arguments);
        let (group, stdin, stdout) = Group::start_talking(command, &log)?;
        let mut worker = Self { stdin, lines: BufReader::new(stdout).lines(), log, _group: group };
        let line = worker.line().await?;
        anyhow::ensure!(line == "ready", "it said {line:?} instead of ready");
        Ok(worker)
    }

    pub async fn run(&mut self) -> anyhow::Result<Duration> {
        self.stdin.write_all(b"run\n").await?;
        let line = self.line().await?;
        let micros = line.parse().ok().with_context(|| format!("a run failed: {line}"))?;
        Ok(Duration::from_micros(micros))
    }

    async fn line(&mut self) -> anyhow::Result<String> {
        let next = async { self.lines.next_line().await?.context("it ended") };
        let line = timeout(PATIENCE, next).await.context("it did not answer in time").flatten();
        line.with_context(|| format!("its log:\n{}", tail(&self.log)))
    }
}
