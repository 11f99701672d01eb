//! A state directory that cannot be used at the start.

use std::time::Instant;

use super::*;

/// A directory whose lock nobody can take until the test restores it: not even root can write to a directory.
struct Unusable(PathBuf);

impl Unusable {
    fn new(dir: &Path) -> Self {
        let lock = dir.join("lock");
        // Of an earlier run.
        _ = fs::remove_file(&lock);
        fs::create_dir(&lock).unwrap();
        Self(lock)
    }

    fn restore(self) {
        fs::remove_dir(self.0).unwrap();
    }
}

/// A buffer that tries its directory again at each call.
fn open_late(dir: &Path, now: u64) -> Buffer {
    let limits = BufferLimits { memory_bytes: 1_000, open_again_after: Duration::ZERO, ..small() };
    Buffer::open(Some(StateDir::new(dir)), limits, Catalog::default(), now).unwrap()
}

fn wait_until(buffer: &mut Buffer, is_there: fn(&Disk) -> bool) {
    let began = Instant::now();
    while !is_there(&buffer.files.disk) {
        assert!(began.elapsed() < Duration::from_secs(60), "it is not tried again: {buffer:?}");
        std::thread::yield_now();
        buffer.epoch();
    }
}

fn is_open(disk: &Disk) -> bool {
    matches!(disk, Disk::Open(_))
}

#[test]
fn a_directory_that_can_be_used_later_costs_no_sample_of_an_earlier_run_and_none_of_this_one() {
    let (dir, now) = (state_dir(), START + 1_000);
    append(&mut open(dir.path(), small()), 0..5);
    let unusable = Unusable::new(dir.path());
    let mut buffer = open_late(dir.path(), now);
    append(&mut buffer, 5..8);

    let without = unacked(&mut buffer);
    buffer.ack(now);
    unusable.restore();
    wait_until(&mut buffer, is_open);
    let (epoch, all) = (buffer.epoch(), unacked(&mut buffer));
    append(&mut buffer, 8..9);
    let is_on_disk = buffer.memory.is_empty();
    drop(buffer);

    assert_eq!(without, [5, 6, 7]);
    assert_eq!((epoch, all), (1, vec![0, 1, 2, 3, 4, 6, 7]));
    assert!(is_on_disk);
    assert_eq!(unacked(&mut reopen(dir.path(), START + 5000)), [0, 1, 2, 3, 4, 6, 7, 8]);
}

#[test]
fn an_acknowledgement_counts_for_what_earlier_runs_left_once_that_is_found() {
    let (dir, now) = (state_dir(), START + 1_000);
    append(&mut open(dir.path(), small()), 0..5);
    let unusable = Unusable::new(dir.path());
    let mut buffer = open_late(dir.path(), now);
    append(&mut buffer, 5..8);
    buffer.ack(now + 2);

    unusable.restore();
    wait_until(&mut buffer, is_open);
    let found = unacked(&mut buffer);
    buffer.ack(START + 2);
    let rest = unacked(&mut buffer);
    append(&mut buffer, 8..9);
    buffer.ack(now + 3);

    assert_eq!((found, rest), (vec![0, 1, 2, 3, 4], vec![3, 4]));
    assert_eq!((unacked(&mut buffer), buffer.acked()), (vec![], now + 3));
}

#[test]
fn samples_of_earlier_runs_are_sent_first_even_when_the_clock_was_behind() {
    let dir = state_dir();
    append(&mut open(dir.path(), small()), 0..5);
    let unusable = Unusable::new(dir.path());
    let mut buffer = open_late(dir.path(), 5);
    append(&mut buffer, 5..8);
    buffer.ack(5);
    let before = buffer.number_message();

    unusable.restore();
    wait_until(&mut buffer, is_open);
    append(&mut buffer, 8..9);

    assert_eq!(unacked(&mut buffer), [0, 1, 2, 3, 4, 6, 7, 8]);
    assert_eq!(buffer.newest(), START + 8);
    assert!(buffer.number_message() > before.max(START + 8));
}

#[test]
fn the_log_reports_a_directory_that_cannot_be_used_once_and_that_it_can_be_used() {
    let dir = state_dir();
    let unusable = Unusable::new(dir.path());
    let mut buffer = None;

    let during = logged(|| {
        let failing = buffer.insert(open_late(dir.path(), START));
        for _ in 0..3 {
            wait_until(failing, |disk| matches!(disk, Disk::Opening(..)));
            wait_until(failing, |disk| matches!(disk, Disk::Failed(..)));
        }
    });
    unusable.restore();
    let after = logged(|| wait_until(buffer.as_mut().unwrap(), is_open));

    assert_eq!(during.len(), 1, "{during:?}");
    assert!(during[0].contains("cannot use the state directory"), "{during:?}");
    assert_eq!(after.len(), 1, "{after:?}");
    assert!(after[0].contains("the state directory can be used"), "{after:?}");
}

#[test]
fn a_directory_that_another_agent_has_taken_by_then_does_not_end_this_one() {
    let dir = state_dir();
    let unusable = Unusable::new(dir.path());
    let mut buffer = open_late(dir.path(), START);
    append(&mut buffer, 0..1);

    // Whichever attempt runs at this moment.
    wait_until(&mut buffer, |disk| matches!(disk, Disk::Failed(..)));
    unusable.restore();
    let _other = open(dir.path(), small());
    wait_until(&mut buffer, |disk| matches!(disk, Disk::Missing));
    append(&mut buffer, 1..3);

    assert!(buffer.refusal().is_none());
    assert_eq!(unacked(&mut buffer), [0, 1, 2]);
}
