//! Tries a build: starts it as a child, which has to connect and to stay connected for some seconds.

use std::fs::File;
use std::io;
use std::os::unix::process::ExitStatusExt;
use std::pin::Pin;
use std::process::ExitStatus;
use std::time::Duration;

use rustix::io::Errno;
use rustix::process::{Pid, Signal, kill_process};
use tokio::process::{Child, Command};
use tokio::time::timeout;

use super::launch;
use super::running::Running;
use super::version::Version;
use crate::config::Timing;
use crate::exit::Exit;

/// The time that a child has to end after SIGTERM: an agent takes less than 2 s.
const GRACE: Duration = Duration::from_secs(3);

/// A stop of the machine ends the child as well, perhaps a moment before this program learns of it.
const SAME_MOMENT: Duration = Duration::from_millis(300);

/// What became of a trial.
#[derive(Debug)]
pub enum Outcome {
    Works,
    /// The build is to blame. With the reason, for people.
    Failed(String),
    /// Perhaps something else is to blame. With the reason, for people.
    Unproven(String),
    /// It did not begin, for a reason outside the build.
    Untried(io::Error),
    /// This program was asked to stop, and the child has ended.
    Stopped,
}

/// Runs a build until it says that it works, or the time is over.
pub async fn run(
    file: &File,
    version: &Version,
    timing: &Timing,
    mut stop: Pin<&mut (impl Future<Output = ()> + Send)>,
) -> Outcome {
    let mut command = Command::from(launch::command(file, Running::trial(version)));
    let mut child = match command.kill_on_drop(true).spawn() {
        Ok(child) => child,
        Err(error) => return unexecuted(&error),
    };
    let ended = tokio::select! {
        () = stop.as_mut() => {
            end(&mut child).await;
            return Outcome::Stopped;
        }
        ended = timeout(timing.trial, child.wait()) => ended,
    };
    let outcome = match ended {
        Ok(Ok(status)) if status.code() == Some(i32::from(Exit::Works.code())) => return Outcome::Works,
        // The code of one that a service has refused.
        Ok(Ok(status)) if status.code() == Some(i32::from(Exit::ServerDeleted.code())) => {
            Outcome::Unproven(how(status))
        }
        Ok(Ok(status)) => Outcome::Failed(how(status)),
        Ok(Err(error)) => Outcome::Unproven(format!("its end is unknown: {error}")),
        Err(_) => {
            // Where a disk hangs, it may take long. Until then it uses the state directory.
            tokio::select! {
                () = stop => return Outcome::Stopped,
                _ = child.kill() => {}
            }
            return Outcome::Unproven(format!("it did not connect within {} s", timing.trial.as_secs_f64()));
        }
    };
    match timeout(SAME_MOMENT, stop).await {
        Ok(()) => Outcome::Stopped,
        Err(_) => outcome,
    }
}

/// Only what is no program is to blame for that: a machine may be out of memory or processes.
fn unexecuted(error: &io::Error) -> Outcome {
    let reason = format!("it cannot be executed: {error}");
    let is_to_blame = error.raw_os_error() == Some(Errno::NOEXEC.raw_os_error());
    if is_to_blame { Outcome::Failed(reason) } else { Outcome::Unproven(reason) }
}

/// How a child ended that does not work.
fn how(status: ExitStatus) -> String {
    match (status.code(), status.signal()) {
        (Some(code), _) => format!("it ended with the exit code {code}"),
        (None, Some(signal)) => format!("it ended by the signal {signal}"),
        (None, None) => "it ended".to_owned(),
    }
}

async fn end(child: &mut Child) {
    let pid = child.id().and_then(|id| Pid::from_raw(i32::try_from(id).ok()?));
    if let Some(pid) = pid {
        // A failure means that it has ended.
        _ = kill_process(pid, Signal::TERM);
    }
    if timeout(GRACE, child.wait()).await.is_err() {
        _ = timeout(GRACE, child.kill()).await;
    }
}
