//! A clock of a program's own, which a test sets while the program runs.

use std::fs;
use std::os::unix::fs::{FileExt, PermissionsExt};
use std::path::{Path, PathBuf};
use std::process::Command;

use rustix::time::{ClockId, clock_gettime};
use signalbox_protocol::Timestamp;
use tempfile::TempDir;

/// The library's source.
const SOURCE: &str = include_str!("clock.c");

/// The layout of the file; see there.
const AHEAD: u64 = 0;
const PAUSED: u64 = 8;
const DRIFT: u64 = 16;
const DRIFTS_SINCE: u64 = 24;

fn monotonic_ms() -> i64 {
    let time = clock_gettime(ClockId::Monotonic);
    time.tv_sec * 1_000 + time.tv_nsec / 1_000_000
}

pub struct TestClock {
    directory: TempDir,
}

impl TestClock {
    /// Shows the right time until it is set.
    pub fn new() -> Self {
        let directory = TempDir::new().unwrap();
        // An agent's user is another one than the test's.
        fs::set_permissions(&directory, fs::Permissions::from_mode(0o755)).unwrap();
        let clock = Self { directory };
        fs::write(clock.path(), [0; 32]).unwrap();
        let source = clock.directory.path().join("clock.c");
        fs::write(&source, SOURCE).unwrap();
        let built = Command::new("cc")
            .args(["-shared", "-fPIC", "-O1", "-o"])
            .arg(clock.library())
            .arg(source)
            .status()
            .expect("the tests need a C compiler");
        assert!(built.success(), "the clock's library does not compile");
        clock
    }

    /// Has a program go by it.
    pub fn rule(&self, command: &mut Command) {
        command.env("LD_PRELOAD", self.library()).env("SIGNALBOX_TEST_CLOCK", self.path());
    }

    /// Sets the wall clock this many milliseconds ahead from now on, or behind.
    pub fn set_ms(&self, ahead_ms: i64) {
        self.write(0, DRIFT);
        self.write(ahead_ms, AHEAD);
    }

    /// Makes the wall clock run fast by this many millionths from now on, or slow.
    pub fn drift(&self, parts_per_million: i64) {
        self.set_ms(self.ahead_ms());
        self.write(monotonic_ms(), DRIFTS_SINCE);
        self.write(parts_per_million, DRIFT);
    }

    /// The program finds that it has not run for this long.
    pub fn skip_ms(&self, paused_ms: i64) {
        self.write(paused_ms, PAUSED);
        self.write(paused_ms, AHEAD);
    }

    /// How far it is ahead.
    pub fn ahead_ms(&self) -> i64 {
        self.read(AHEAD) + (monotonic_ms() - self.read(DRIFTS_SINCE)) * self.read(DRIFT) / 1_000_000
    }

    /// The time that it shows.
    pub fn now(&self) -> Timestamp {
        Timestamp::now().plus_millis(self.ahead_ms())
    }

    fn write(&self, millis: i64, place: u64) {
        let file = fs::OpenOptions::new().write(true).open(self.path()).unwrap();
        file.write_all_at(&millis.to_le_bytes(), place).unwrap();
    }

    fn read(&self, place: u64) -> i64 {
        let mut bytes = [0; 8];
        fs::File::open(self.path()).unwrap().read_exact_at(&mut bytes, place).unwrap();
        i64::from_le_bytes(bytes)
    }

    fn path(&self) -> PathBuf {
        self.directory.path().join("offsets")
    }

    fn library(&self) -> PathBuf {
        Path::new(self.directory.path()).join("clock.so")
    }
}
