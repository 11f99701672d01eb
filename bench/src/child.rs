//! A child process that says where it listens.

use std::fs::File;
use std::net::SocketAddr;
use std::path::Path;
use std::process::{ExitStatus, Stdio};
use std::time::Duration;

use anyhow::Context;
use rustix::process::{Pid, Signal, kill_process};
use tokio::io::{AsyncBufReadExt, BufReader, Lines};
use tokio::process::{Child, ChildStdout, Command};
use tokio::time::timeout;

/// Far more than a start on a fresh or a crashed database takes.
const START_TIMEOUT: Duration = Duration::from_secs(60);
/// Twice what the service promises for a graceful stop.
const STOP_TIMEOUT: Duration = Duration::from_secs(20);

/// A running child. It is killed when this is dropped, and so at Ctrl-C.
#[derive(Debug)]
pub struct ListeningChild {
    child: Child,
    pid: u32,
    pub address: SocketAddr,
    /// Kept open: a write to a closed pipe would end the child.
    _stdout: Lines<BufReader<ChildStdout>>,
}

impl ListeningChild {
    /// Starts the command, and waits for the line `listening on http://ADDRESS` on its standard output. Its standard
    /// error goes to the end of `log`.
    pub async fn start(mut command: Command, log: &Path) -> anyhow::Result<Self> {
        let errors = File::options().create(true).append(true).open(log).context("cannot write the log")?;
        let program = command.as_std().get_program().to_owned();
        let mut child = command
            .stdin(Stdio::null())
            .stdout(Stdio::piped())
            .stderr(errors)
            .kill_on_drop(true)
            .spawn()
            .with_context(|| format!("cannot start {}", program.display()))?;
        let pid = child.id().context("the child has no id")?;
        let stdout = child.stdout.take().context("the child has no standard output")?;
        let mut lines = BufReader::new(stdout).lines();
        let address = timeout(START_TIMEOUT, read_address(&mut lines))
            .await
            .context("it did not say where it listens in time")
            .flatten()
            .with_context(|| format!("{} did not start; its log:\n{}", program.display(), tail(log)))?;
        Ok(Self { child, pid, address, _stdout: lines })
    }

    pub fn pid(&self) -> u32 {
        self.pid
    }

    /// SIGTERM, and waits for the end.
    pub async fn terminate(&mut self) -> anyhow::Result<ExitStatus> {
        terminate(&mut self.child, STOP_TIMEOUT).await
    }

    /// SIGKILL, and waits for the end.
    pub async fn kill(&mut self) -> anyhow::Result<()> {
        self.child.kill().await.context("cannot kill the child")
    }
}

/// SIGTERM to a child that has not been waited for, and waits for its end.
pub async fn terminate(child: &mut Child, patience: Duration) -> anyhow::Result<ExitStatus> {
    let pid = child.id().and_then(|pid| i32::try_from(pid).ok()).and_then(Pid::from_raw);
    kill_process(pid.context("the child ended already")?, Signal::TERM).context("cannot send SIGTERM")?;
    let status = timeout(patience, child.wait()).await.context("it did not stop at SIGTERM in time")?;
    Ok(status?)
}

async fn read_address(lines: &mut Lines<BufReader<ChildStdout>>) -> anyhow::Result<SocketAddr> {
    while let Some(line) = lines.next_line().await? {
        if let Some(address) = parse_address(&line) {
            return Ok(address);
        }
    }
    anyhow::bail!("it ended")
}

fn parse_address(line: &str) -> Option<SocketAddr> {
    line.trim().strip_prefix("listening on http://")?.trim_end_matches('/').parse().ok()
}

/// The last lines of a log, to show why a start failed.
pub fn tail(log: &Path) -> String {
    const SHOWN_LINES: usize = 10;

    let text = std::fs::read_to_string(log).unwrap_or_default();
    let lines: Vec<&str> = text.lines().collect();
    let skipped = lines.len().saturating_sub(SHOWN_LINES);
    lines.into_iter().skip(skipped).collect::<Vec<_>>().join("\n")
}

#[cfg(test)]
mod tests {
    use super::*;

    fn shell(script: &str) -> Command {
        let mut command = Command::new("/bin/sh");
        command.args(["-c", script]);
        command
    }

    #[test]
    fn the_address_is_read_from_the_line() {
        let parsed = parse_address("listening on http://127.0.0.1:8000");

        assert_eq!(parsed, Some(SocketAddr::from(([127, 0, 0, 1], 8000))));
        assert_eq!(parse_address("listening on port 8000"), None);
        assert_eq!(parse_address("2026-11-20 listening on http://127.0.0.1:8000"), None);
    }

    #[tokio::test]
    async fn a_child_is_listening_once_it_says_so() {
        let folder = tempfile::tempdir().unwrap();
        let script = "echo starting; echo listening on http://127.0.0.1:4242; exec sleep 60";

        let mut child = ListeningChild::start(shell(script), &folder.path().join("log")).await.unwrap();

        assert_eq!(child.address.port(), 4242);
        child.kill().await.unwrap();
    }

    #[tokio::test]
    async fn a_failed_start_shows_the_log() {
        let folder = tempfile::tempdir().unwrap();

        let error = ListeningChild::start(shell("echo database is gone >&2; exit 2"), &folder.path().join("log")).await;

        assert_eq!(format!("{:#}", error.unwrap_err()), "/bin/sh did not start; its log:\ndatabase is gone: it ended");
    }
}
