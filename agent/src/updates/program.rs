//! The life of a process: an agent, the trial of a new build when that agent has ended for it, and then that build or the agent
//! again.

use std::fs::File;
use std::io::{self, ErrorKind};
use std::path::Path;
use std::pin::{Pin, pin};
use std::thread;
use std::time::Duration;

use futures_util::FutureExt;
use rustix::process::{Signal, set_parent_process_death_signal};
use tokio::sync::oneshot;
use tokio::time::{sleep, timeout};

use super::build::Build;
use super::record::{Blame, FailedBuild, Record, Taken, Trial, directory};
use super::running::Role;
use super::trial::{self, Outcome};
use super::{launch, record};
use crate::config::{Config, Timing};
use crate::exit::Exit;
use crate::state::{StateDir, Usage};

/// What the kernel shows as the name of the process. It would be that of a descriptor in a build that was started.
const PROCESS_NAME: &str = "signalbox-agent";

/// The time for the disk during an attempt, in which no agent runs.
const DISK: Duration = Duration::from_secs(10);

/// The time after that of its trial in which a build ends that nobody has ended.
const OVERTIME: Duration = Duration::from_secs(5);

/// The time for the disk when the process is to end.
const LAST_WORDS: Duration = Duration::from_millis(500);

/// The time for the files of the agent that has just ended to be closed.
const UNUSED_WITHIN: Duration = Duration::from_secs(5);
const LOOK_EVERY: Duration = Duration::from_millis(20);

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
    let running = &config.updates.running;
    // The kernel tells only of an end after the start of this process.
    if running.is_orphaned() {
        tracing::warn!(version = %running.version, "this build is on trial, and the program that tries it has ended");
        return Exit::Stopped;
    }
    let trial = (running.role == Role::Trial).then_some(config.timing.trial + OVERTIME);
    let stop = async {
        match trial {
            Some(length) => _ = timeout(length, stop).await,
            None => stop.await,
        }
    };
    // It may be polled again after it has resolved: then it never resolves.
    let mut stop = pin!(stop.fuse());
    let mut earlier = config.updates.earlier.clone();
    loop {
        let state = config.state_dir.as_deref().map(|path| StateDir::after(path, earlier));
        earlier = state.as_ref().map(StateDir::usage).unwrap_or_default();
        let exit = crate::run_in(config.clone(), state, stop.as_mut()).await;
        match (exit, config.state_dir.clone()) {
            (Exit::Update(build), Some(state_dir)) => {
                if attempt(*build, &mut config, &directory(&state_dir), &earlier, stop.as_mut()).await {
                    return Exit::Stopped;
                }
            }
            (exit, state_dir) => {
                let role = config.updates.running.role;
                if let (true, Role::Taken, Some(state_dir)) = (is_orderly(&exit), role, state_dir) {
                    let forget = move || {
                        launch::forget_starts(&directory(&state_dir));
                        Ok(())
                    };
                    _ = on_disk(LAST_WORDS, forget).await;
                }
                return exit;
            }
        }
    }
}

/// Whether an agent that ends like this works: it was asked to end, also by a service that does not know it any more. Otherwise
/// such a service could make it count as one that does not work.
fn is_orderly(exit: &Exit) -> bool {
    match exit {
        Exit::Stopped | Exit::KeyRefused(_) | Exit::ServerDeleted => true,
        Exit::Misconfigured(_) | Exit::Update(_) | Exit::Works => false,
    }
}

/// Tries a build, and becomes it if it works. Otherwise returns whether this program was asked to stop.
async fn attempt(
    build: Build,
    config: &mut Config,
    directory: &Path,
    earlier: &Usage,
    mut stop: Pin<&mut (impl Future<Output = ()> + Send)>,
) -> bool {
    let version = build.version.clone();
    tracing::info!(%version, "tries a build");
    let outcome = tokio::select! {
        () = stop.as_mut() => Outcome::Stopped,
        begun = begun(&build, directory, earlier) => match begun {
            Ok(file) => match trial::run(&file, &version, &config.timing, stop.as_mut()).await {
                Outcome::Works => become_it(&file, &build, directory, stop.as_mut()).await,
                other => other,
            },
            Err(error) => Outcome::Untried(error),
        },
    };
    let (is_stopped, failure, limit) = match outcome {
        Outcome::Works => (false, None, DISK),
        Outcome::Unproven(reason) => {
            tracing::error!(%version, reason, "a build did not prove that it works, and the one before continues");
            (false, Some((reason, Blame::Unknown)), DISK)
        }
        Outcome::Stopped => (true, None, LAST_WORDS),
        Outcome::Failed(reason) => {
            tracing::error!(%version, reason, "a build did not work, and the one before continues");
            (false, Some((reason, Blame::Build)), DISK)
        }
        Outcome::Untried(error) => {
            tracing::warn!(%version, %error, "a build could not be tried, and may be offered again");
            let Timing { update_pause, update_pause_most, .. } = config.timing;
            config.updates.pauses.begin(&build.sha256, update_pause, update_pause_most);
            // Its thread comes after the one that hangs, and nobody waits for either.
            (false, None, Duration::ZERO)
        }
    };
    if let Some((reason, blame)) = &failure {
        // Whether or not the disk takes it.
        FailedBuild::add(&mut config.updates.failed, Trial::from(&build), reason, *blame);
    }
    let place = directory.to_owned();
    let mut ended = pin!(on_disk(limit, move || end(&place, &build, failure)));
    tokio::select! {
        () = stop => {
            _ = timeout(LAST_WORDS, ended.as_mut()).await;
            true
        }
        ended = ended.as_mut() => {
            if !limit.is_zero() {
                _ = ended.inspect_err(|error| tracing::warn!(%error, "cannot record what became of a build"));
            }
            is_stopped
        }
    }
}

/// Records that a build is being tried, once no part of the agent that has ended here uses the state directory any more.
async fn begun(build: &Build, directory: &Path, earlier: &Usage) -> io::Result<File> {
    let unused = async {
        while !earlier.is_over() {
            sleep(LOOK_EVERY).await;
        }
    };
    timeout(UNUSED_WITHIN, unused).await.map_err(|_| hangs())?;
    let (directory, build) = (directory.to_owned(), build.clone());
    on_disk(DISK, move || begin(&directory, &build)).await
}

/// Records the build and runs it in place of this program. Returns only if that failed, or if this program was asked to stop.
async fn become_it(
    file: &File,
    build: &Build,
    directory: &Path,
    mut stop: Pin<&mut (impl Future<Output = ()> + Send)>,
) -> Outcome {
    let (place, taken) = (directory.to_owned(), build.clone());
    let kept = tokio::select! {
        biased;
        () = stop.as_mut() => return Outcome::Stopped,
        kept = on_disk(DISK, move || keep(&place, &taken)) => kept,
    };
    if let Err(error) = kept {
        return Outcome::Unproven(format!("it cannot be recorded: {error}"));
    }
    if stop.now_or_never().is_some() {
        return Outcome::Stopped;
    }
    tracing::info!(version = %build.version, "a build works, and takes the place of this one");
    Outcome::Unproven(format!("it cannot be executed: {}", launch::exec(file, &build.version)))
}

/// Does something with the directory of builds on a thread of its own, so that a disk that hangs delays this program for `limit`
/// at most. The thread continues after that.
async fn on_disk<T: Send + 'static>(
    limit: Duration,
    act: impl FnOnce() -> io::Result<T> + Send + 'static,
) -> io::Result<T> {
    let (sender, done) = oneshot::channel();
    thread::Builder::new().name("updates".to_owned()).spawn(move || _ = sender.send(act()))?;
    match timeout(limit, done).await {
        Ok(Ok(result)) => result,
        Ok(Err(_)) => Err(io::Error::other("its thread has ended")),
        Err(_) => Err(hangs()),
    }
}

fn hangs() -> io::Error {
    io::Error::new(ErrorKind::TimedOut, "the disk of the state directory hangs")
}

/// Records that a build is being tried, so that a crash counts against it, and opens it.
fn begin(directory: &Path, build: &Build) -> io::Result<File> {
    let _changing = record::changing();
    let file = launch::open_genuine(directory, build)?;
    let mut record = Record::read(directory).unwrap_or_default();
    record.trial = Some(build.into());
    record.write(directory)?;
    Ok(file)
}

/// Records that a build works.
fn keep(directory: &Path, build: &Build) -> io::Result<()> {
    let _changing = record::changing();
    let mut record = Record::read(directory).unwrap_or_default();
    record.trial = None;
    record.taken = Some(Taken::from(build));
    record.failed.retain(|failed| failed.sha256 != build.sha256);
    record.write(directory)?;
    record.tidy(directory);
    Ok(())
}

/// Records that a trial is over, and why the build did not work, if that is so.
fn end(directory: &Path, build: &Build, failure: Option<(String, Blame)>) -> io::Result<()> {
    let _changing = record::changing();
    let mut record = Record::read(directory).unwrap_or_default();
    record.trial = None;
    let has_failed = failure.is_some();
    if let Some((reason, blame)) = failure {
        record.taken.take_if(|taken| taken.sha256 == build.sha256);
        record.fail(build.into(), &reason, blame);
    }
    record.write(directory)?;
    if has_failed {
        record.tidy(directory);
    }
    Ok(())
}
