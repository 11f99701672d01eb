//! A program that is started for every run.

use std::ffi::OsString;
use std::fs::File;
use std::path::PathBuf;
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

use anyhow::Context;

use crate::child::tail;

/// How it is started.
#[derive(Debug, Clone)]
pub struct Program {
    pub program: PathBuf,
    pub arguments: Vec<OsString>,
    pub environment: Vec<(&'static str, OsString)>,
    /// Where its standard error goes.
    pub log: PathBuf,
}

impl Program {
    /// The least that running a command can take: a shell of this program's own.
    pub fn shell(log: PathBuf) -> Self {
        let arguments = ["-c", "true"].map(OsString::from).to_vec();
        Self { program: "/bin/sh".into(), arguments, environment: Vec::new(), log }
    }

    pub async fn run(&self) -> anyhow::Result<Duration> {
        let errors = File::options().create(true).append(true).open(&self.log).context("cannot write the log")?;
        let mut command = Command::new(&self.program);
        command.args(&self.arguments).envs(self.environment.iter().map(|(name, value)| (name, value)));
        command.stdin(Stdio::null()).stdout(Stdio::null()).stderr(errors);
        // Waited for on a thread that blocks, so that waking this program's runtime is not part of the time.
        let (status, took) = tokio::task::spawn_blocking(move || {
            let start = Instant::now();
            command.status().map(|status| (status, start.elapsed()))
        })
        .await?
        .with_context(|| format!("cannot start {}", self.program.display()))?;
        anyhow::ensure!(
            status.success(),
            "{} ended with {status}; its log:\n{}",
            self.program.display(),
            tail(&self.log)
        );
        Ok(took)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test]
    async fn a_program_that_fails_shows_its_log() {
        let folder = tempfile::tempdir().unwrap();
        let mut program = Program::shell(folder.path().join("log"));
        assert!(program.run().await.is_ok());
        program.arguments = ["-c", "echo no route >&2; exit 3"].map(OsString::from).to_vec();

        let error = program.run().await.unwrap_err().to_string();

        assert_eq!(error, "/bin/sh ended with exit status: 3; its log:\nno route");
    }
}
