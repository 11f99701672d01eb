//! A child process with a process group of its own, so that its children end with it.

use std::fs::File;
use std::path::Path;
use std::process::Stdio;

use anyhow::Context;
use rustix::process::{Pid, Signal, kill_process_group};
use tokio::process::{Child, ChildStdin, ChildStdout, Command};

use crate::child::tail;

/// A running child. It and everything that it started is killed when this is dropped.
#[derive(Debug)]
pub struct Group {
    child: Child,
    group: Option<Pid>,
}

impl Group {
    /// Starts a command that says nothing; its standard error goes to the end of `log`.
    pub fn start(command: Command, log: &Path) -> anyhow::Result<Self> {
        Self::spawn(command, log, Stdio::null, Stdio::null)
    }

    /// Starts a command that is talked to.
    pub fn start_talking(command: Command, log: &Path) -> anyhow::Result<(Self, ChildStdin, ChildStdout)> {
        let mut group = Self::spawn(command, log, Stdio::piped, Stdio::piped)?;
        let stdin = group.child.stdin.take().context("the child has no standard input")?;
        let stdout = group.child.stdout.take().context("the child has no standard output")?;
        Ok((group, stdin, stdout))
    }

    fn spawn(mut command: Command, log: &Path, stdin: fn() -> Stdio, stdout: fn() -> Stdio) -> anyhow::Result<Self> {
        let program = command.as_std().get_program().to_owned();
        let errors = File::options().create(true).append(true).open(log).context("cannot write the log")?;
        let child = command
            .stdin(stdin())
            .stdout(stdout())
            .stderr(errors)
            .process_group(0)
            .spawn()
            .with_context(|| format!("cannot start {}", program.display()))?;
        let group = child.id().and_then(|pid| i32::try_from(pid).ok()).and_then(Pid::from_raw);
        Ok(Self { child, group })
    }

    /// Fails when the child has ended, with the end of its log.
    pub fn check(&mut self, log: &Path) -> anyhow::Result<()> {
        match self.child.try_wait()? {
            Some(status) => anyhow::bail!("it ended with {status}; its log:\n{}", tail(log)),
            None => Ok(()),
        }
    }
}

impl Drop for Group {
    fn drop(&mut self) {
        // The id belongs to the group while any of its processes is alive, whether or not the child itself has ended. It is
        // fine if none is left.
        if let Some(group) = self.group {
            kill_process_group(group, Signal::KILL).ok();
        }
    }
}
