//! The start of a program: which build runs.

use std::fs::File;
use std::io::{self, Read};
use std::os::fd::AsRawFd;
use std::os::unix::process::CommandExt;
use std::path::Path;
use std::process::Command;
use std::sync::mpsc::{SendError, sync_channel};
use std::time::Duration;

use aws_lc_rs::digest::{Context, SHA256};
use signalbox_protocol::Timestamp;
use signalbox_signing::Signers;

use super::build::{Build, Refusal};
use super::record::{Blame, FailedBuild, Record, Taken, Trial, changing, directory, path_of};
use super::running::{Role, Running, VARIABLE};
use super::version::Version;
use crate::config::Config;
use crate::state::{StateDir, open_regular};
use crate::text::hex;

/// How often a build may be started without staying connected, before the installed program takes its place again.
const MAX_STARTS: u32 = 3;

/// The time for the disk, before the installed program starts without what is on it.
const WAIT: Duration = Duration::from_secs(10);

/// Why the installed program runs although a build was taken.
#[derive(Debug, thiserror::Error)]
enum Unfit {
    #[error("the policy's `updates` is off")]
    Off,
    #[error("{0}")]
    Refused(#[from] Refusal),
    #[error("it was started {MAX_STARTS} times in a row and never stayed connected")]
    NeverConnected,
    #[error("its file cannot be used: {0}")]
    File(io::Error),
    #[error("its start cannot be recorded: {0}")]
    Unrecorded(io::Error),
}

/// What was found in the state directory.
#[derive(Default)]
struct Found {
    failed: Vec<FailedBuild>,
    /// The build to run in place of this program.
    build: Option<(File, Version)>,
}

/// Finds out which build this process is and what it is to know. The installed program does not return from this if it was
/// replaced by a build that still is genuine.
pub fn start(config: &mut Config) {
    let running = Running::of_environment();
    let (role, version) = (running.role, running.version.clone());
    config.updates.running = running;
    let Some(state_dir) = config.state_dir.clone() else { return };
    let signers = config.updates.signers.clone();
    let directory = directory(&state_dir);
    let found = match role {
        Role::Installed => {
            let state = StateDir::new(&state_dir);
            config.updates.earlier = state.usage();
            let late = directory.clone();
            let forget = move |found: Found| found.build.into_iter().for_each(|_| uncount_start(&late));
            in_time(move || choose(state, &directory, signers.as_deref(), &version), forget)
        }
        Role::Taken | Role::Trial => in_time(move || remembered(&directory), drop),
    };
    let Found { failed, build } = found;
    config.updates.failed = failed;
    if let Some((file, version)) = build {
        tracing::info!(%version, "runs a build that was taken in place of the installed one");
        let error = exec(&file, &version);
        tracing::warn!(%version, %error, "the installed program runs, because the build cannot be executed");
    }
}

/// The result of `find`, or nothing if the disk hangs. `late` gets a result that comes after that.
fn in_time(find: impl FnOnce() -> Found + Send + 'static, late: impl FnOnce(Found) + Send + 'static) -> Found {
    let (sender, found) = sync_channel(1);
    let thread = std::thread::Builder::new().name("updates".to_owned()).spawn(move || {
        if let Err(SendError(found)) = sender.send(find()) {
            late(found);
        }
    });
    if thread.is_ok()
        && let Ok(found) = found.recv_timeout(WAIT)
    {
        return found;
    }
    tracing::warn!("the disk of the state directory hangs: nothing is known of builds");
    Found::default()
}

fn remembered(directory: &Path) -> Found {
    let failed = Record::read(directory).map(|record| record.failed).unwrap_or_default();
    Found { failed, build: None }
}

/// Decides what runs in place of the installed program.
fn choose(state: StateDir, directory: &Path, signers: Option<&Signers>, installed: &Version) -> Found {
    if !directory.exists() {
        return Found::default();
    }
    let _changing = changing();
    // An agent that runs already has it, and this one will say so and end: that counts as no start.
    if state.claim().is_err() {
        return Found::default();
    }
    let mut record = match Record::read(directory) {
        Ok(record) => record,
        Err(error) => {
            tracing::warn!(%error, "the installed program runs, because the record of updates cannot be read");
            return Found::default();
        }
    };
    let before = record.clone();
    if let Some(trial) = record.trial.take() {
        record.fail(trial, "the agent or the machine ended while it was tried", Blame::Unknown);
    }
    let build = record.taken.take().and_then(|taken| consider(taken, &mut record, directory, signers, installed));
    if build.is_none() && record != before {
        _ = record.write(directory).inspect_err(|error| tracing::warn!(%error, "cannot record what became of updates"));
    }
    record.tidy(directory);
    Found { failed: record.failed, build }
}

/// Opens a build that was taken if it may run. Puts it back into the record unless it is over with it.
fn consider(
    taken: Taken,
    record: &mut Record,
    directory: &Path,
    signers: Option<&Signers>,
    installed: &Version,
) -> Option<(File, Version)> {
    let version = taken.version.clone();
    match open(&taken, record, directory, signers, installed) {
        Ok(found) => return Some(found),
        Err(Unfit::Refused(Refusal::NotNewer { .. })) => {
            tracing::info!(%version, "the installed program runs: it is not older than the build that was taken");
        }
        Err(unfit @ Unfit::NeverConnected) => {
            tracing::warn!(%version, reason = %unfit, "the installed program runs, because a build was given up");
            record.fail(Trial::from(&taken), &unfit.to_string(), Blame::Build);
        }
        // Perhaps the owner puts it right.
        Err(unfit @ (Unfit::Off | Unfit::Refused(_) | Unfit::File(_) | Unfit::Unrecorded(_))) => {
            tracing::warn!(%version, reason = %unfit, "the installed program runs, and not the build that was taken");
            record.taken = Some(taken);
        }
    }
    None
}

fn open(
    taken: &Taken,
    record: &mut Record,
    directory: &Path,
    signers: Option<&Signers>,
    installed: &Version,
) -> Result<(File, Version), Unfit> {
    let signers = signers.ok_or(Unfit::Off)?;
    let build = Build::verify(taken.offer.clone(), signers, Timestamp::now())?;
    build.expect_progress(installed, &record.failed)?;
    if taken.starts >= MAX_STARTS {
        return Err(Unfit::NeverConnected);
    }
    let file = open_genuine(directory, &build).map_err(Unfit::File)?;
    record.taken = Some(Taken { starts: taken.starts + 1, ..taken.clone() });
    record.write(directory).map_err(Unfit::Unrecorded)?;
    Ok((file, build.version))
}

/// Opens the program of a build, and checks that it is the one that was signed.
pub fn open_genuine(directory: &Path, build: &Build) -> io::Result<File> {
    let file = open_regular(&path_of(directory, &build.sha256))?;
    if file.metadata()?.len() != build.bytes {
        return Err(io::Error::other("it has another length than the release says"));
    }
    let mut hash = Context::new(&SHA256);
    let (mut reader, mut buffer) = ((&file).take(build.bytes), vec![0; 64 * 1024]);
    loop {
        let length = reader.read(&mut buffer)?;
        let Some(piece) = buffer.get(..length).filter(|piece| !piece.is_empty()) else { break };
        hash.update(piece);
    }
    let is_genuine = hex(hash.finish().as_ref()) == build.sha256;
    if is_genuine { Ok(file) } else { Err(io::Error::other("it is not the program that was signed")) }
}

/// The command that runs an open program with the arguments and the environment of this one. The file must stay open until
/// then: it is the file that was hashed, whatever its path names by now.
pub fn command(file: &File, marker: String) -> Command {
    let mut arguments = std::env::args_os();
    let name = arguments.next();
    let mut command = Command::new(format!("/proc/self/fd/{}", file.as_raw_fd()));
    if let Some(name) = name {
        command.arg0(name);
    }
    command.args(arguments).env(VARIABLE, marker);
    command
}

/// Runs a build in place of this program, under the same process id. Returns only if that failed.
pub fn exec(file: &File, version: &Version) -> io::Error {
    command(file, Running::taken(version)).exec()
}

/// Records that the build that was taken did not start after all.
fn uncount_start(directory: &Path) {
    let changed = Record::change(directory, |record| {
        record.taken.as_mut().map(|taken| taken.starts = taken.starts.saturating_sub(1)).is_some()
    });
    _ = changed.inspect_err(|error| tracing::warn!(%error, "cannot record that a build did not start"));
}

/// Records that the build that was taken has stayed connected, or has ended because it was asked to.
pub fn forget_starts(directory: &Path) {
    let changed = Record::change(directory, |record| {
        record.taken.as_mut().is_some_and(|taken| std::mem::take(&mut taken.starts) > 0)
    });
    _ = changed.inspect_err(|error| tracing::warn!(%error, "cannot record that a build works"));
}
