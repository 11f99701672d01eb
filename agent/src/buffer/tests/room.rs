//! How many samples the disk keeps.

use super::*;

#[test]
fn a_day_of_samples_is_kept_even_where_they_are_large() {
    let dir = state_dir();
    let mut buffer = open(dir.path(), BufferLimits { disk_samples: 300, ..small() });

    append(&mut buffer, 0..500);

    assert!((300..320).contains(&contents(&mut buffer, 0).len()));
}

#[test]
fn a_day_of_a_shorter_interval_is_kept_too_and_stays_when_the_interval_is_longer_again() {
    let dir = state_dir();
    let mut buffer = open(dir.path(), small());

    for samples in [300, 10] {
        buffer.expect_every(Interval::of(Duration::from_secs(24 * 3600) / samples));
        append(&mut buffer, 0..500);
    }

    assert!((300..320).contains(&contents(&mut buffer, 0).len()));
}

#[test]
fn a_backlog_of_a_shorter_interval_is_kept_after_a_restart_too() {
    let dir = state_dir();
    append(&mut open(dir.path(), BufferLimits { disk_samples: 300, ..small() }), 0..500);

    let mut reopened = reopen(dir.path(), START + 5000);
    append(&mut reopened, 500..510);

    assert!((300..320).contains(&contents(&mut reopened, 0).len()));
}

#[test]
fn restarts_with_a_large_backlog_need_no_more_room_and_drop_no_more() {
    let dir = state_dir();
    append(&mut open(dir.path(), BufferLimits { disk_samples: 300, ..small() }), 0..500);

    for restart in 1..=30 {
        // Less than a file has room for.
        let mut reopened = reopen(dir.path(), START + restart * 5000);
        append(&mut reopened, 500..505);

        let kept = contents(&mut reopened, 0).len();
        assert!((300..320).contains(&kept), "{kept} samples after {restart} restarts");
    }
}

#[test]
fn restarts_while_the_service_is_away_need_no_more_room() {
    let dir = state_dir();
    append(&mut open(dir.path(), small()), 0..100);

    for restart in 1..=10 {
        append(&mut reopen(dir.path(), START + restart * 5000), 0..100);

        assert!(bytes(dir.path()) <= 800 + 200, "{} bytes after {restart} restarts", bytes(dir.path()));
    }
}

#[test]
fn the_default_bounds_hold_a_day_of_ordinary_samples() {
    let limits = BufferLimits::default();

    assert_eq!(limits.disk_samples, 24 * 3600 / 5);
    assert!(limits.disk_bytes / limits.disk_samples >= 3800);
}
