//! The life of a process: an agent, the trial of a new build when that agent has ended for it, and then that build or the agent
//! again.

use std::fs::File;
use std::io;
use std::path::{Path, PathBuf};
use std::pin::{Pin, pin};

use futures_util::FutureExt;
use rustix::process::{Signal, set_parent_process_death_signal};
use tokio::task::spawn_blocking;

use super::build::Build;
use super::record::{FailedBuild, Record, Taken, Trial, directory};
use super::running::Role;
use super::trial::{self, Outcome};
use super::{launch, trial::until_unlocked};
use crate::config::Config;
use crate::exit::Exit;

/// What the kernel shows as the name of the process. It would be that of a descriptor in a build that was started.
const PROCESS_NAME: &str = "signalbox-agent";

/// Finds out which build this process is. The installed program may be replaced by a build that was taken, and then does not
/// return from this.
pub fn start(config: &mut Config) {
    launch::start(config);
    match config.updates.running.role {
        Role::Installed => return,
        Role::Taken => {}
        // A build on trial does not outlive the program that tries it.
        Role::Trial => _ = set_parent_process_death_signal(Some(Signal::KILL)),
    }
    // Only `ps` shows it.
    _ = std::fs::write("/proc/self/comm", PROCESS_NAME);
}

/// Runs agents of this machine until one ends for another reason than a new build.
pub async fn run(mut config: Config, stop: impl Future<Output = ()> + Send) -> Exit {
    let mut stop = pin!(stop);
    loop {
        let exit = crate::run(config.clone(), stop.as_mut()).await;
        match (exit, config.state_dir.clone()) {
            (Exit::Update(build), Some(state_dir)) => {
                if attempt(*build, &mut config, &state_dir, stop.as_mut()).await {
                    return Exit::Stopped;
                }
            }
            (exit, state_dir) => {
                if let (Exit::Stopped, Role::Taken, Some(state_dir)) = (&exit, config.updates.running.role, state_dir) {
                    _ = spawn_blocking(move || launch::forget_starts(&directory(&state_dir))).await;
                }
                return exit;
            }
        }
    }
}

/// Tries a build, and becomes it if it works. Otherwise returns whether this program was asked to stop.
async fn attempt(
    build: Build,
    config: &mut Config,
    state_dir: &Path,
    mut stop: Pin<&mut (impl Future<Output = ()> + Send)>,
) -> bool {
    let directory = directory(state_dir);
    let version = build.version.clone();
    tracing::info!(%version, "tries a build");
    until_unlocked(state_dir).await;
    let outcome = match on_disk(&directory, &build, begin).await {
        Ok(file) => match trial::run(&file, &version, &config.timing, stop.as_mut()).await {
            Outcome::Works => become_it(&file, &build, &directory, stop.as_mut()).await,
            other => other,
        },
        Err(error) => Outcome::Failed(format!("it cannot be tried: {error}")),
    };
    let (is_stopped, reason) = match outcome {
        Outcome::Stopped => (true, None),
        Outcome::Failed(reason) => (false, Some(reason)),
        Outcome::Works => (false, None),
    };
    if let Some(reason) = &reason {
        tracing::error!(%version, reason, "a build did not work, and the one before continues");
        let Trial { version, sha256 } = Trial::from(&build);
        // Whether or not the disk takes it.
        config.updates.failed.push(FailedBuild { version, sha256, reason: reason.clone() });
    }
    until_unlocked(state_dir).await;
    let ended = on_disk(&directory, &build, move |directory, build| end(directory, build, reason.as_deref())).await;
    _ = ended.inspect_err(|error| tracing::warn!(%error, "cannot record what became of a build"));
    is_stopped
}

/// Records the build and runs it in place of this program. Returns only if that failed, or if this program was asked to stop.
async fn become_it(
    file: &File,
    build: &Build,
    directory: &Path,
    stop: Pin<&mut (impl Future<Output = ()> + Send)>,
) -> Outcome {
    if let Err(error) = on_disk(directory, build, keep).await {
        return Outcome::Failed(format!("it cannot be recorded: {error}"));
    }
    if stop.now_or_never().is_some() {
        return Outcome::Stopped;
    }
    tracing::info!(version = %build.version, "a build works, and takes the place of this one");
    Outcome::Failed(format!("it cannot be executed: {}", launch::exec(file, &build.version)))
}

/// Does something with the directory of builds where the disk delays nobody.
async fn on_disk<T: Send + 'static>(
    directory: &Path,
    build: &Build,
    act: impl FnOnce(&Path, &Build) -> io::Result<T> + Send + 'static,
) -> io::Result<T> {
    let (directory, build): (PathBuf, Build) = (directory.to_owned(), build.clone());
    spawn_blocking(move || act(&directory, &build)).await.unwrap_or_else(|error| Err(io::Error::other(error)))
}

/// Records that a build is being tried, so that a crash counts against it, and opens it.
fn begin(directory: &Path, build: &Build) -> io::Result<File> {
    let file = launch::open_genuine(directory, build)?;
    let mut record = Record::read(directory).unwrap_or_default();
    record.trial = Some(build.into());
    record.write(directory)?;
    Ok(file)
}

/// Records that a build works.
fn keep(directory: &Path, build: &Build) -> io::Result<()> {
    let mut record = Record::read(directory).unwrap_or_default();
    record.trial = None;
    record.taken = Some(Taken::from(build));
    record.write(directory)?;
    record.tidy(directory);
    Ok(())
}

/// Records that a trial is over, and why the build does not work, if that is so.
fn end(directory: &Path, build: &Build, reason: Option<&str>) -> io::Result<()> {
    let mut record = Record::read(directory).unwrap_or_default();
    record.trial = None;
    if let Some(reason) = reason {
        record.taken.take_if(|taken| taken.sha256 == build.sha256);
        record.fail(build.into(), reason);
    }
    record.write(directory)?;
    if reason.is_some() {
        record.tidy(directory);
    }
    Ok(())
}
