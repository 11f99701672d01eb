//! Operations without a call of the disk's thread.

use super::*;

#[test]
fn the_newest_sample_is_sent_without_reading_a_file() {
    let dir = state_dir();
    let mut buffer = open(dir.path(), BufferLimits::default());
    append(&mut buffer, 0..3);
    files(dir.path()).iter().for_each(|path| fs::write(path, "").unwrap());

    let newest = buffer.batch(START + 1, u64::MAX);
    let before_it = buffer.batch(START + 1, START + 1);

    assert_eq!(newest, Ok(Some(Batch { last: START + 2, count: 1, samples: sample(2) })));
    assert_eq!(before_it, Ok(None));
}

#[test]
fn a_complete_acknowledgement_is_written_with_the_next_sample() {
    let dir = state_dir();
    let mut buffer = open(dir.path(), BufferLimits::default());
    append(&mut buffer, 0..2);

    let before = bytes(dir.path());
    buffer.ack(START + 1);
    let owed = bytes(dir.path());
    append(&mut buffer, 2..3);

    assert_eq!(owed, before);
    let records = record::length(size_of::<u64>()) + record::length(sample(2).len());
    assert_eq!(bytes(dir.path()), before + records as u64);
    assert_eq!(unacked(&mut buffer), [2]);
}
