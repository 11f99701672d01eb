//! A clock of one process that moves while it runs: Debian's libfaketime, which reads the offset from a file.

use std::ffi::OsString;
use std::fs;
use std::path::{Path, PathBuf};
use std::time::Duration;

use anyhow::Context;
use tempfile::TempDir;

/// Debian's paths, by architecture.
const LIBRARIES: &[&str] =
    &["/usr/lib/x86_64-linux-gnu/faketime/libfaketime.so.1", "/usr/lib/aarch64-linux-gnu/faketime/libfaketime.so.1"];

/// How a clock moves.
#[derive(Debug, Clone, Copy)]
pub struct Moves {
    /// How far ahead it is, in seconds, in turns.
    offsets: &'static [i64],
    every: Duration,
}

/// Steps, and back.
const OFFSETS: &[i64] = &[0, 61, 0, -61, 0, 7_200, 0, -7_200, 0, 172_800, 0];
pub const OF_AN_AGENT: Moves = Moves { offsets: OFFSETS, every: Duration::from_secs(150) };
/// Another rhythm, so that the two are wrong together and separately, and restarts find the service's clock right and wrong.
pub const OF_THE_SERVICE: Moves = Moves { offsets: OFFSETS, every: Duration::from_secs(170) };

pub struct MovingClock {
    library: &'static str,
    moves: Moves,
    folder: TempDir,
}

impl MovingClock {
    pub fn new(work_dir: &Path, moves: Moves) -> anyhow::Result<Self> {
        fs::create_dir_all(work_dir)?;
        let library = LIBRARIES.iter().find(|path| Path::new(path).exists());
        let library = library.context("libfaketime is missing: install Debian's faketime")?;
        let folder = tempfile::Builder::new().prefix("clock-").tempdir_in(work_dir)?;
        let clock = Self { library, moves, folder };
        clock.move_on(Duration::ZERO)?;
        Ok(clock)
    }

    fn file(&self) -> PathBuf {
        self.folder.path().join("offset")
    }

    /// The environment of a process with this clock. Timers use the true time.
    pub fn variables(&self) -> Vec<(&'static str, OsString)> {
        vec![
            ("LD_PRELOAD", self.library.into()),
            ("FAKETIME_TIMESTAMP_FILE", self.file().into()),
            ("FAKETIME_CACHE_DURATION", "1".into()),
            ("FAKETIME_DONT_FAKE_MONOTONIC", "1".into()),
        ]
    }

    /// Sets the clock's offset for this time of the run.
    pub fn move_on(&self, elapsed: Duration) -> anyhow::Result<()> {
        let turn = (elapsed.as_secs() / self.moves.every.as_secs()) as usize;
        let offset = self.moves.offsets.iter().cycle().nth(turn).copied().unwrap_or_default();
        // Written to another file and renamed: a half-written one would be no time.
        let beside = self.folder.path().join("offset.new");
        fs::write(&beside, format!("{offset:+}\n"))?;
        fs::rename(&beside, self.file())?;
        Ok(())
    }
}
