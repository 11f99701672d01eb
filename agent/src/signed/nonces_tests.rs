use std::time::Duration;

use signalbox_signing::Reason;

use super::*;

const NONCE: &str = "0123456789abcdef0123456789abcdef";
const ID: Uuid = Uuid::from_u128(1);

fn at(seconds: i64) -> Timestamp {
    Timestamp::from_millis(1_000_000_000_000 + seconds * 1_000)
}

/// Of an agent that started at this time, by a clock that was right.
fn open(directory: &Path, started_at: i64) -> Nonces {
    let long_ago = Instant::now() - Duration::from_secs(3_600);
    Nonces::new(directory.to_owned(), None, Start { at: at(started_at), instant: long_ago })
}

fn used(nonces: &mut Nonces, nonce: &str, not_before: i64, expires_at: i64, now: i64) -> &'static str {
    match nonces.use_once(nonce, at(not_before), at(expires_at), ID, at(now)) {
        Ok(()) => "used",
        Err(UseError::Replayed(detail) | UseError::Expired(detail)) => in_words(&detail),
        Err(UseError::Io(_)) => "failed",
    }
}

/// The reason that clients know by the words alone.
fn in_words(detail: &str) -> &'static str {
    Reason::in_words(detail).map_or("unknown", Reason::name)
}

#[test]
fn a_nonce_is_used_once_across_restarts() {
    let directory = tempfile::tempdir().unwrap();
    let mut nonces = open(directory.path(), 0);

    assert_eq!(used(&mut nonces, NONCE, 1, 100, 2), "used");
    assert_eq!(used(&mut nonces, NONCE, 1, 100, 3), "replayed");
    for restart in 0..5 {
        let mut again = open(directory.path(), 10 + restart);
        assert_eq!(used(&mut again, NONCE, 1, 100, 10 + restart), "replayed");
        assert_eq!(used(&mut again, &format!("{NONCE}{restart}"), 1, 100, 10 + restart), "used");
    }
}

#[test]
fn a_forgotten_nonce_is_not_usable_when_the_clock_goes_back() {
    let directory = tempfile::tempdir().unwrap();
    let mut nonces = open(directory.path(), 0);
    for number in 0..=MAX_STALE {
        assert_eq!(used(&mut nonces, &format!("{NONCE}{number}"), 1, 100, 2), "used");
    }

    // The clock jumps a day, everything is forgotten, and the clock goes back.
    assert_eq!(used(&mut nonces, "later-later-later-later", 86_400, 86_500, 86_450), "used");
    assert_eq!(nonces.loaded.as_ref().unwrap().record.used.len(), 1);
    let mut again = open(directory.path(), 2);

    for nonces in [&mut nonces, &mut again] {
        assert_eq!(used(nonces, &format!("{NONCE}7"), 1, 100, 2), "expired");
        assert_eq!(used(nonces, "later-later-later-later", 86_400, 86_500, 86_450), "replayed");
    }
}

#[test]
fn a_lost_or_damaged_file_makes_everything_older_unusable() {
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join(FILE);
    assert_eq!(used(&mut open(directory.path(), 0), NONCE, 1, 100, 2), "used");
    let whole = fs::read(&path).unwrap();
    let head = whole.iter().position(|byte| *byte == b'\n').unwrap();

    for bit in 0..head * 8 {
        let mut damaged = whole.clone();
        damaged[bit / 8] ^= 1 << (bit % 8);
        fs::write(&path, damaged).unwrap();
        assert_eq!(used(&mut open(directory.path(), 50), NONCE, 1, 100, 51), "expired", "bit {bit}");
    }
    // So is the last line, if all of it is there.
    for bit in head * 8 + 8..(whole.len() - 1) * 8 {
        let mut damaged = whole.clone();
        damaged[bit / 8] ^= 1 << (bit % 8);
        fs::write(&path, damaged).unwrap();
        assert_eq!(used(&mut open(directory.path(), 50), NONCE, 1, 100, 51), "expired", "bit {bit}");
    }
    fs::remove_file(&path).unwrap();
    assert_eq!(used(&mut open(directory.path(), 50), NONCE, 1, 100, 51), "expired");
    assert_eq!(used(&mut open(directory.path(), 50), "another-another-another", 50, 100, 51), "used");
}

#[test]
fn a_truncated_last_line_counts_as_not_written_and_all_others_stay() {
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join(FILE);
    let mut nonces = open(directory.path(), 0);
    assert_eq!(used(&mut nonces, NONCE, 1, 100, 2), "used");
    let first = fs::read(&path).unwrap().len();
    let second = "fedcba9876543210fedcba9876543210";
    assert_eq!(used(&mut nonces, second, 1, 100, 2), "used");
    let whole = fs::read(&path).unwrap();

    for length in first..whole.len() {
        fs::write(&path, &whole[..length]).unwrap();
        let mut again = open(directory.path(), 3);
        assert_eq!(used(&mut again, NONCE, 1, 100, 3), "replayed", "cut at {length}");
        assert_eq!(used(&mut again, second, 1, 100, 3), "used", "cut at {length}");
    }
}

#[test]
fn what_cannot_be_written_is_refused_and_works_again_later() {
    let directory = tempfile::tempdir().unwrap();
    let missing = directory.path().join("missing");
    let mut nonces = open(&missing, 0);

    assert_eq!(used(&mut nonces, NONCE, 1, 100, 2), "failed");
    fs::create_dir(&missing).unwrap();
    assert_eq!(used(&mut nonces, NONCE, 1, 100, 2), "used");
    nonces.loaded.as_mut().unwrap().file = Some(File::open(missing.join(FILE)).unwrap());
    assert_eq!(used(&mut nonces, "another-another-another", 1, 100, 2), "failed");
    assert_eq!(used(&mut nonces, "another-another-another", 1, 100, 2), "used");
    assert_eq!(used(&mut nonces, NONCE, 1, 100, 2), "replayed");
}

#[test]
fn a_clock_that_was_behind_at_the_start_makes_nothing_usable_twice() {
    let directory = tempfile::tempdir().unwrap();
    let start = Start { at: at(-3_600), instant: Instant::now() };
    let mut nonces = Nonces::new(directory.path().to_owned(), None, start);

    // An agent before this one may have run it.
    assert_eq!(used(&mut nonces, NONCE, -1_800, 100, 0), "expired");
    assert_eq!(used(&mut nonces, NONCE, 2, 100, 2), "used");
}

#[test]
fn a_refused_order_begins_no_record_while_the_clock_is_behind() {
    for lost in [None, Some("damaged\n")] {
        let directory = tempfile::tempdir().unwrap();
        let path = directory.path().join(FILE);
        lost.iter().for_each(|text| fs::write(&path, text).unwrap());
        let start = Start { at: at(-3_600), instant: Instant::now() };
        let mut nonces = Nonces::new(directory.path().to_owned(), None, start);

        assert_eq!(used(&mut nonces, "another-another-another", -5_000, 100, -3_600), "expired");
        assert_eq!(fs::read_to_string(&path).ok().as_deref(), lost);
        // The clock is right. An agent before this one may have run it.
        assert_eq!(used(&mut nonces, NONCE, -1_800, 100, 0), "expired");
        assert_eq!(used(&mut nonces, NONCE, 2, 100, 2), "used");
        assert_eq!(used(&mut open(directory.path(), 3), NONCE, 2, 100, 3), "replayed");
        assert_eq!(used(&mut open(directory.path(), 3), "another-another-another", -1_800, 100, 3), "expired");
    }
}

#[test]
fn a_nonce_that_was_taken_back_is_usable_once_more() {
    let directory = tempfile::tempdir().unwrap();
    let mut nonces = open(directory.path(), 0);
    let kept = "fedcba9876543210fedcba9876543210";
    for nonce in [kept, NONCE] {
        assert_eq!(used(&mut nonces, nonce, 1, 100, 2), "used");
    }

    nonces.take_back(NONCE).unwrap();

    let on_disk = Record::read(directory.path()).unwrap();
    assert_eq!(on_disk.used.keys().collect::<Vec<_>>(), [kept]);
    assert_eq!(used(&mut nonces, kept, 1, 100, 3), "replayed");
    assert_eq!(used(&mut nonces, NONCE, 1, 100, 3), "used");
    assert_eq!(used(&mut nonces, NONCE, 1, 100, 3), "replayed");
}

#[test]
fn a_nonce_that_cannot_be_taken_back_stays_used() {
    let directory = tempfile::tempdir().unwrap();
    let mut nonces = open(directory.path(), 0);
    assert_eq!(used(&mut nonces, NONCE, 1, 100, 2), "used");

    fs::create_dir(directory.path().join(NEXT_FILE)).unwrap();

    assert!(nonces.take_back(NONCE).is_err());
    assert_eq!(used(&mut nonces, NONCE, 1, 100, 2), "replayed");
}
