//! Files that cannot be read, for a moment or for ever, and those of other versions.

use std::os::unix::fs::symlink;
use std::time::Instant;

use super::*;

/// A file that nobody can open until the test restores it: not even root can open a link to itself.
struct Unreadable {
    path: PathBuf,
    /// The path of its contents until then.
    contents: PathBuf,
}

impl Unreadable {
    fn new(path: PathBuf) -> Self {
        let contents = path.with_extension("contents");
        fs::rename(&path, &contents).unwrap();
        symlink(&path, &path).unwrap();
        Self { path, contents }
    }

    fn exists(&self) -> bool {
        self.path.symlink_metadata().is_ok()
    }

    fn restore(self) {
        fs::rename(&self.contents, &self.path).unwrap();
    }
}

#[test]
fn a_file_that_cannot_be_read_at_the_start_is_sent_after_a_later_one() {
    let dir = state_dir();
    append(&mut open(dir.path(), small()), 0..20);
    // A segment has room for nine.
    let unreadable = Unreadable::new(files(dir.path())[1].clone());

    let mut without = reopen(dir.path(), START + 5000);
    append(&mut without, 20..22);
    let sent = unacked(&mut without);
    without.ack(START + 5001);
    drop(without);
    let stays = unreadable.exists();
    unreadable.restore();
    let mut with = reopen(dir.path(), START + 10_000);
    let sent_later = unacked(&mut with);
    with.ack(START + 5001);
    drop(with);

    assert_eq!(sent, (0..9).chain(18..22).collect::<Vec<_>>());
    assert!(stays, "it was removed");
    assert_eq!(sent_later, (9..18).chain(20..22).collect::<Vec<_>>(), "with the last file's samples once more");
    assert_eq!(files(dir.path()).len(), 0, "nothing is left to keep");
}

#[test]
fn a_file_of_a_later_version_stays_and_its_number_is_not_used_again() {
    let dir = state_dir();
    let path = dir.path().join(format!("{START:020}.samples"));
    let later = b"SBSAMP03 and what else a later agent writes";
    fs::write(&path, later).unwrap();

    let mut buffer = open(dir.path(), small());
    append(&mut buffer, 0..3);

    assert_eq!(contents(&mut buffer, 0), [0, 1, 2]);
    assert_eq!(fs::read(&path).unwrap(), later);
    assert_eq!(files(dir.path()).len(), 2);
}

#[test]
fn a_file_that_cannot_be_read_for_a_moment_costs_nothing_and_holds_up_no_new_sample() {
    let dir = state_dir();
    let mut buffer = open(dir.path(), small());
    append(&mut buffer, 0..20);
    let unreadable = Unreadable::new(files(dir.path())[0].clone());

    let during = buffer.batch(0, u64::MAX);
    let until = buffer.unreadable_until();
    append(&mut buffer, 20..21);
    let new = contents(&mut buffer, until);
    unreadable.restore();
    let all = unacked(&mut buffer);

    assert_eq!((during, until), (Err(Away), START + 19));
    assert_eq!(new, [20]);
    assert_eq!(all, (0..21).collect::<Vec<_>>());
    assert_eq!((buffer.unreadable_until(), buffer.dropped), (0, 0));
}

#[test]
fn a_file_that_stays_unreadable_is_skipped_until_a_later_start() {
    let dir = state_dir();
    let mut buffer = open(dir.path(), small());
    append(&mut buffer, 0..20);
    let unreadable = Unreadable::new(files(dir.path())[0].clone());

    let began = Instant::now();
    while buffer.batch(0, u64::MAX) == Err(Away) {
        assert!(began.elapsed() < Duration::from_secs(20), "it is still tried again");
        std::thread::yield_now();
    }
    let sent = unacked(&mut buffer);
    buffer.ack(START + 19);
    drop(buffer);
    unreadable.restore();

    assert_eq!(sent, (9..20).collect::<Vec<_>>());
    let sent_later = unacked(&mut reopen(dir.path(), START + 5000));
    assert_eq!(sent_later, (0..9).chain(18..20).collect::<Vec<_>>(), "with the last file's samples once more");
}

#[test]
fn a_file_that_stays_unreadable_makes_room_for_new_samples() {
    let dir = state_dir();
    append(&mut open(dir.path(), small()), 0..9);
    let unreadable = Unreadable::new(files(dir.path())[0].clone());

    let mut reopened = reopen(dir.path(), START + 5000);
    append(&mut reopened, 9..12);
    let stays = unreadable.exists();
    append(&mut reopened, 12..100);

    assert!(stays, "it was removed too early");
    assert!(!unreadable.exists(), "it stays");
    assert_eq!(unacked(&mut reopened).last(), Some(&99));
    assert!(bytes(dir.path()) <= 800 + 200, "{} bytes", bytes(dir.path()));
}
