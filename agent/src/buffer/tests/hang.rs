//! A disk that does not respond.

use super::*;
use crate::buffer::fixture::HangingFile;

/// A disk that hangs: a thread that opens the next file waits until the test reads from it.
struct Hang(PathBuf);

impl Hang {
    fn new(dir: &Path, number: u64) -> Self {
        let path = dir.join(format!("{number:020}.samples"));
        let made = std::process::Command::new("mkfifo").arg(&path).status().unwrap();
        assert!(made.success());
        Self(path)
    }

    /// Releases the waiting thread with an error: a pipe cannot be truncated.
    fn end(self, buffer: &mut Buffer) {
        let _reader = std::fs::File::open(&self.0).unwrap();
        fs::remove_file(&self.0).unwrap();
        while !buffer.welcome_back() {
            std::thread::yield_now();
        }
    }
}

#[test]
fn a_disk_that_hangs_delays_nothing_and_is_used_again_when_it_is_back() {
    let dir = state_dir();
    let mut buffer = open(dir.path(), BufferLimits { memory_bytes: 1_000, ..small() });
    let hang = Hang::new(dir.path(), START);

    let began = std::time::Instant::now();
    append(&mut buffer, 0..10);
    let waited = began.elapsed();
    let while_it_hung = unacked(&mut buffer);
    buffer.ack(START + 9);
    hang.end(&mut buffer);
    append(&mut buffer, 10..12);

    // Once ([`WAIT`]), and not once for each sample.
    assert!(waited < 8 * WAIT, "{waited:?}");
    assert_eq!(while_it_hung, (0..10).collect::<Vec<_>>());
    assert_eq!(unacked(&mut buffer), [10, 11]);
    assert!(buffer.memory.is_empty(), "back on the disk");
}

#[test]
fn samples_taken_during_a_hang_go_to_the_disk_without_acknowledgements() {
    let dir = state_dir();
    let mut buffer = open(dir.path(), BufferLimits { memory_bytes: 1_000, ..small() });
    let hang = Hang::new(dir.path(), START);
    append(&mut buffer, 0..10);

    hang.end(&mut buffer);
    append(&mut buffer, 10..12);

    assert!(buffer.memory.is_empty(), "on the disk");
    drop(buffer);
    let mut reopened =
        Buffer::open(Some(StateDir::new(dir.path())), small(), Catalog::default(), START + 5000).unwrap();
    assert_eq!(unacked(&mut reopened), (0..12).collect::<Vec<_>>());
}

#[test]
fn samples_on_a_disk_that_hangs_are_neither_skipped_nor_lost() {
    let dir = state_dir();
    let mut buffer = open(dir.path(), BufferLimits { memory_bytes: 1_000, ..small() });
    // A segment has room for nine.
    let hang = Hang::new(dir.path(), START + 9);

    append(&mut buffer, 0..23);
    let (unreadable, before_it) = (buffer.unreadable_until(), buffer.batch(START, u64::MAX));
    let after_it = contents(&mut buffer, unreadable);
    hang.end(&mut buffer);

    assert_eq!((unreadable, before_it), (START + 8, Err(Away)));
    assert_eq!(after_it, (9..23).collect::<Vec<_>>());
    assert_eq!(unacked(&mut buffer), (0..23).collect::<Vec<_>>());
}

#[test]
fn samples_that_are_read_too_late_are_read_again() {
    let dir = state_dir();
    let mut buffer = open(dir.path(), small());
    append(&mut buffer, 0..5);
    let hang = HangingFile::oldest(dir.path());

    let too_late = buffer.batch(START, u64::MAX);
    hang.release();
    while !buffer.welcome_back() {
        std::thread::yield_now();
    }

    assert_eq!(too_late, Err(Away));
    assert_eq!(unacked(&mut buffer), (0..5).collect::<Vec<_>>());
}

/// A buffer in a directory with samples 0 to 4, whose disk hangs at the start until the test sends something.
fn hanging(dir: &Path, unix_millis: u64) -> (Buffer, std::sync::mpsc::Sender<()>) {
    append(&mut open(dir, small()), 0..5);
    let (state, release) = StateDir::hanging(dir);
    let limits = BufferLimits { memory_bytes: 1_000, ..small() };
    (Buffer::open(Some(state), limits, Catalog::default(), unix_millis).unwrap(), release)
}

fn wait_for_files(buffer: &mut Buffer) {
    while matches!(buffer.files.disk, Disk::Opening(..)) {
        std::thread::yield_now();
        buffer.epoch();
    }
}

#[test]
fn a_disk_that_hangs_at_the_start_delays_nothing_and_its_samples_are_sent_later() {
    let (dir, now) = (state_dir(), START + 1_000);

    let began = std::time::Instant::now();
    let (mut buffer, release) = hanging(dir.path(), now);
    append(&mut buffer, 5..8);
    let waited = began.elapsed();
    let (unreadable, older) = (buffer.unreadable_until(), buffer.batch(0, now - 1));
    let live = contents(&mut buffer, unreadable);
    release.send(()).unwrap();
    wait_for_files(&mut buffer);
    let epoch = buffer.epoch();
    append(&mut buffer, 8..9);
    let all = unacked(&mut buffer);
    buffer.ack(now + 3);
    append(&mut buffer, 9..10);

    assert!(waited < Duration::from_secs(20), "{waited:?}");
    assert_eq!((unreadable, older), (now - 1, Err(Away)));
    assert_eq!(live, [5, 6, 7]);
    assert_eq!((epoch, all), (0, (0..9).collect()));
    assert_eq!(unacked(&mut buffer), [9]);
    assert!(buffer.memory.is_empty(), "on the disk");
}

#[test]
fn samples_taken_during_a_hang_are_sent_last_even_when_the_clock_was_behind() {
    let dir = state_dir();
    let (mut buffer, release) = hanging(dir.path(), 5);
    append(&mut buffer, 5..8);
    let before = buffer.number_message();

    release.send(()).unwrap();
    wait_for_files(&mut buffer);
    append(&mut buffer, 8..9);

    assert_eq!(buffer.epoch(), 1);
    assert_eq!(unacked(&mut buffer), (0..9).collect::<Vec<_>>());
    assert_eq!(buffer.newest(), START + 8);
    assert!(buffer.number_message() > before.max(START + 8));
}

#[test]
fn a_directory_of_another_agent_is_refused_once_that_is_known() {
    let dir = state_dir();
    let (mut buffer, release) = hanging(dir.path(), START + 1_000);
    let _other = open(dir.path(), small());

    release.send(()).unwrap();
    wait_for_files(&mut buffer);
    append(&mut buffer, 5..6);

    assert!(matches!(buffer.refusal(), Some(OpenError::Locked { .. })), "{:?}", buffer.refusal());
    assert_eq!(unacked(&mut buffer), [5]);
}
