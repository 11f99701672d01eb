mod calls;
mod hang;
mod late;
mod room;
mod series;
mod unreadable;

use std::fs;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use super::*;

const START: u64 = 1_700_000_000_000;

/// Segments of a few samples, and room for about four of them.
fn small() -> BufferLimits {
    BufferLimits {
        segment_bytes: 200,
        disk_bytes: 800,
        disk_samples: 0,
        disk_bytes_at_most: 100_000,
        read_again_for: Duration::from_millis(100),
        open_again_after: Duration::from_secs(60),
        memory_bytes: 100,
    }
}

/// A directory in memory: on a disk under load a call may take as long as on one that hangs.
fn state_dir() -> tempfile::TempDir {
    tempfile::tempdir_in("/dev/shm").unwrap()
}

fn open(dir: &Path, limits: BufferLimits) -> Buffer {
    Buffer::open(Some(StateDir::new(dir)), limits, Catalog::default(), START).unwrap()
}

/// Opens it once more at a later time. The thread of the one before may need a moment to end, on a machine under load.
fn reopen(dir: &Path, now: u64) -> Buffer {
    let began = std::time::Instant::now();
    loop {
        match Buffer::open(Some(StateDir::new(dir)), small(), Catalog::default(), now) {
            Err(OpenError::Locked { .. }) if began.elapsed() < Duration::from_secs(20) => std::thread::yield_now(),
            opened => return opened.unwrap(),
        }
    }
}

fn sample(number: u64) -> Vec<u8> {
    format!("sample {number:04}").into_bytes()
}

fn append(buffer: &mut Buffer, numbers: std::ops::Range<u64>) {
    numbers.for_each(|number| buffer.append(&sample(number)));
}

/// The numbers of all samples after `after`, read batch by batch.
fn contents(buffer: &mut Buffer, mut after: u64) -> Vec<u64> {
    let mut numbers = Vec::new();
    while let Some(batch) = buffer.batch(after, u64::MAX).unwrap() {
        after = batch.last;
        let text = String::from_utf8(batch.samples).unwrap();
        numbers.extend(text.split("sample ").skip(1).map(|number| number.parse::<u64>().unwrap()));
    }
    numbers
}

fn unacked(buffer: &mut Buffer) -> Vec<u64> {
    let acked = buffer.acked();
    contents(buffer, acked)
}

fn files(dir: &Path) -> Vec<PathBuf> {
    segment::Segment::paths(dir).unwrap()
}

fn bytes(dir: &Path) -> u64 {
    files(dir).iter().map(|path| fs::metadata(path).unwrap().len()).sum()
}

#[test]
fn samples_come_out_in_order_and_stay_until_they_are_acknowledged() {
    let dir = state_dir();
    let mut buffer = open(dir.path(), small());
    append(&mut buffer, 0..10);

    let before = unacked(&mut buffer);
    buffer.ack(START + 3);
    let after = unacked(&mut buffer);

    assert_eq!(before, (0..10).collect::<Vec<_>>());
    assert_eq!(after, (4..10).collect::<Vec<_>>());
}

#[test]
fn a_batch_knows_its_last_samples_number() {
    let dir = state_dir();
    let mut buffer = open(dir.path(), small());
    append(&mut buffer, 0..3);

    let batch = buffer.batch(START, u64::MAX).unwrap().unwrap();

    assert_eq!(batch, Batch { last: START + 2, count: 2, samples: [sample(1), sample(2)].concat() });
}

#[test]
fn a_batch_has_at_most_256_samples_and_some_128_kib() {
    let dir = state_dir();
    let mut buffer = open(dir.path(), BufferLimits::default());
    append(&mut buffer, 0..300);
    (0..5).for_each(|_| buffer.append(&[7; 60_000]));

    let by_count = buffer.batch(0, u64::MAX).unwrap().unwrap();
    let by_size = buffer.batch(START + 299, u64::MAX).unwrap().unwrap();

    assert_eq!((by_count.count, by_count.last), (256, START + 255));
    assert_eq!((by_size.count, by_size.samples.len()), (3, 180_000));
}

#[test]
fn unacknowledged_samples_survive_a_restart_and_numbers_rise() {
    let dir = state_dir();
    let mut buffer = open(dir.path(), small());
    append(&mut buffer, 0..10);
    buffer.ack(START + 3);
    drop(buffer);

    let mut reopened = reopen(dir.path(), START + 5000);
    reopened.append(&sample(10));

    assert_eq!(unacked(&mut reopened), (4..11).collect::<Vec<_>>());
    assert_eq!(reopened.batch(START + 9, u64::MAX).unwrap().map(|batch| batch.last), Some(START + 5000));
}

#[test]
fn a_clock_that_went_back_does_not_reuse_a_number() {
    let dir = state_dir();
    let mut buffer = open(dir.path(), small());
    append(&mut buffer, 0..3);
    drop(buffer);

    let mut reopened = reopen(dir.path(), 5);
    reopened.append(&sample(3));

    assert_eq!(reopened.batch(START + 2, u64::MAX).unwrap().map(|batch| batch.last), Some(START + 3));
}

#[test]
fn a_kill_in_the_middle_of_a_write_costs_only_that_sample() {
    let whole = state_dir();
    append(&mut open(whole.path(), small()), 0..3);
    let [path] = files(whole.path()).try_into().unwrap();
    let file = fs::read(&path).unwrap();
    let record = record::length(sample(0).len());

    for cut in 1..record {
        let dir = state_dir();
        fs::write(dir.path().join(path.file_name().unwrap()), &file[..file.len() - cut]).unwrap();
        let mut buffer = reopen(dir.path(), START + 5000);
        buffer.append(&sample(9));

        assert_eq!(contents(&mut buffer, 0), [0, 1, 9], "{cut} bytes short");
    }
}

#[test]
fn a_file_that_is_damaged_while_it_is_used_costs_no_other() {
    let dir = state_dir();
    let mut buffer = open(dir.path(), small());
    append(&mut buffer, 0..20);
    let second = files(dir.path())[1].clone();
    fs::write(&second, vec![0xff; fs::metadata(&second).unwrap().len() as usize]).unwrap();

    let kept = contents(&mut buffer, 0);

    let lost = 20 - kept.len();
    assert!((1..=10).contains(&lost), "{kept:?}");
    assert_eq!(kept.last(), Some(&19));
    assert_eq!(kept.first(), Some(&0));
}

#[test]
fn a_file_of_something_else_is_removed() {
    let dir = state_dir();
    fs::write(dir.path().join("0001.samples"), "not a buffer").unwrap();

    let mut buffer = open(dir.path(), small());
    append(&mut buffer, 0..1);

    assert_eq!(contents(&mut buffer, 0), [0]);
    assert_eq!(files(dir.path()).len(), 1);
}

#[test]
fn a_full_buffer_drops_the_oldest_and_stays_within_its_bound() {
    let dir = state_dir();
    let mut buffer = open(dir.path(), small());

    append(&mut buffer, 0..500);

    let kept = contents(&mut buffer, 0);
    assert_eq!(kept, (500 - kept.len() as u64..500).collect::<Vec<_>>(), "the newest, without a gap");
    assert_eq!(buffer.dropped, 500 - kept.len() as u64);
    assert!(bytes(dir.path()) <= 800 + 200, "{} bytes", bytes(dir.path()));
}

/// The lines that `work` logs.
fn logged(work: impl FnOnce()) -> Vec<String> {
    let file = tempfile::NamedTempFile::new().unwrap();
    let writer = Arc::new(file.reopen().unwrap());
    let subscriber = tracing_subscriber::fmt().with_ansi(false).with_writer(writer).finish();
    tracing::subscriber::with_default(subscriber, work);
    let text = fs::read_to_string(file.path()).unwrap();
    text.lines().map(str::to_owned).collect()
}

#[test]
fn the_log_reports_a_full_buffer_and_the_end_of_the_outage() {
    let dir = state_dir();
    for mut buffer in [open(dir.path(), small()), Buffer::open(None, small(), Catalog::default(), START).unwrap()] {
        let during = logged(|| append(&mut buffer, 0..500));
        let newest = buffer.newest();
        let after = logged(|| {
            buffer.ack(newest - 1);
            buffer.ack(newest);
            append(&mut buffer, 500..502);
            buffer.ack(newest + 2);
        });

        assert_eq!(during.len(), 1, "{during:?}");
        assert!(during[0].contains("the buffer is full"));
        assert_eq!(after.len(), 1, "{after:?}");
        assert!(after[0].contains(&format!("dropped={}", buffer.dropped)), "{after:?}");
    }
}

#[test]
fn a_batch_ends_where_it_should() {
    let dir = state_dir();
    for mut buffer in [open(dir.path(), small()), Buffer::open(None, small(), Catalog::default(), START).unwrap()] {
        append(&mut buffer, 0..5);

        let batch = buffer.batch(START, START + 2);
        let nothing = buffer.batch(START + 2, START + 2);

        assert_eq!(batch, Ok(Some(Batch { last: START + 2, count: 2, samples: [sample(1), sample(2)].concat() })));
        assert_eq!(nothing, Ok(None));
    }
}

#[test]
fn the_newest_sample_is_known_after_a_restart_too() {
    let dir = state_dir();
    append(&mut open(dir.path(), small()), 0..10);

    let mut reopened = reopen(dir.path(), START + 5000);
    let kept = reopened.newest();
    reopened.append(&sample(10));

    assert_eq!((kept, reopened.newest()), (START + 9, START + 5000));
}

#[test]
fn messages_are_numbered_higher_than_in_any_run_before() {
    let dir = state_dir();
    let mut buffer = open(dir.path(), small());
    append(&mut buffer, 0..3);
    let first = [buffer.number_message(), buffer.number_message()];
    drop(buffer);

    let mut reopened = reopen(dir.path(), START + 5000);

    assert!(START < first[0] && first[0] < first[1] && first[1] < reopened.number_message());
}

#[test]
fn a_connected_agents_directory_stays_small() {
    let dir = state_dir();
    let mut buffer = open(dir.path(), BufferLimits::default());

    for number in 0..2000 {
        buffer.append(&[1; 600]);
        buffer.ack(START + number);
    }

    assert_eq!(files(dir.path()).len(), 1);
    assert!(bytes(dir.path()) < 70_000, "{} bytes", bytes(dir.path()));
    assert_eq!(buffer.batch(buffer.acked(), u64::MAX), Ok(None));
}

#[test]
fn an_acknowledgement_survives_a_restart() {
    let dir = state_dir();
    let mut buffer = open(dir.path(), small());
    append(&mut buffer, 0..3);
    buffer.ack(START + 2);
    drop(buffer);

    let mut reopened = reopen(dir.path(), START + 5000);

    assert_eq!(reopened.batch(0, u64::MAX), Ok(None));
    assert_eq!(files(dir.path()).len(), 0, "nothing is left to keep");
}

#[test]
fn an_acknowledgement_of_unsent_samples_is_ignored() {
    let dir = state_dir();
    let mut buffer = open(dir.path(), small());
    append(&mut buffer, 0..3);

    buffer.ack(START + 3);

    assert_eq!(unacked(&mut buffer), [0, 1, 2]);
}

#[test]
fn two_agents_cannot_share_a_directory() {
    let dir = state_dir();
    let _first = open(dir.path(), small());

    let second = Buffer::open(Some(StateDir::new(dir.path())), small(), Catalog::default(), START);

    let expected = format!(
        "another agent, process {}, uses the state directory {}; give each its own --state-dir",
        std::process::id(),
        dir.path().display()
    );
    assert_eq!(second.unwrap_err().to_string(), expected);
}

#[test]
fn a_file_as_state_directory_is_refused() {
    let dir = state_dir();
    let file = dir.path().join("file");
    fs::write(&file, "").unwrap();

    for path in [file.clone(), file.join("state")] {
        let refused = Buffer::open(Some(StateDir::new(&path)), small(), Catalog::default(), START).unwrap_err();
        assert_eq!(refused.to_string(), format!("--state-dir: {} is not a directory", path.display()));
    }
}

#[test]
fn without_a_directory_the_buffer_in_memory_is_bounded() {
    // No user can create a directory there, not even root.
    let mut buffer = open(Path::new("/proc/self/state"), small());

    append(&mut buffer, 0..50);
    buffer.ack(START + 44);

    assert_eq!(unacked(&mut buffer), [45, 46, 47, 48, 49]);
    assert_eq!(buffer.dropped, 50 - 100 / sample(0).len() as u64);
}

#[test]
fn a_disk_that_fails_for_a_while_costs_no_sample_and_no_order() {
    let dir = state_dir();
    let state = dir.path().join("state");
    // Every sample needs a new file, so each append meets the missing directory.
    let mut buffer = open(&state, BufferLimits { segment_bytes: 1, ..small() });
    append(&mut buffer, 0..2);

    fs::rename(&state, dir.path().join("away")).unwrap();
    append(&mut buffer, 2..4);
    fs::rename(dir.path().join("away"), &state).unwrap();
    append(&mut buffer, 4..5);
    let during = unacked(&mut buffer);
    buffer.ack(START + 4);
    append(&mut buffer, 5..6);

    assert_eq!(during, [0, 1, 2, 3, 4]);
    assert_eq!(unacked(&mut buffer), [5]);
    assert!(buffer.memory.is_empty(), "back on the disk");
}
