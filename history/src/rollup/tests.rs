use signalbox_protocol::sample::{DiskUsage, NetworkUsage};
use signalbox_protocol::{Sample, Timestamp};

use super::*;

fn sample(seconds: i64, cpu_percent: f64, bytes: u64, disks: &[(&str, f64)]) -> Row {
    let disk = |(path, percent): &(&str, f64)| DiskUsage {
        path: (*path).to_owned(),
        percent: *percent,
        ..DiskUsage::default()
    };
    let sample = Sample {
        timestamp: Timestamp::from_millis(seconds * 1000),
        cpu_percent,
        cpu_per_core: vec![cpu_percent; 2],
        network: vec![NetworkUsage { interface: "eth0".into(), bytes_sent: 0, bytes_recv: bytes, in_total: None }],
        disk_usage: disks.iter().map(disk).collect(),
        ..Sample::default()
    };
    let shape = Arc::new(Shape::of(&sample));
    Row::of(&sample, shape)
}

fn stats(row: &Row, field: Field) -> Vec<i64> {
    let mut start = 0;
    for slot in row.shape.slots() {
        let stats = Granularity::Rolled.stats(slot.field);
        if slot.field == field {
            return row.values[start..start + stats].to_vec();
        }
        start += stats;
    }
    panic!("no {field:?}");
}

#[test]
fn gauges_have_mean_and_extremes_and_counters_their_last_value_and_rate() {
    let rows = [sample(60, 10.0, 500, &[]), sample(65, 20.0, 1_000, &[]), sample(70, 60.0, 3_000, &[])];

    let rolled = roll(&rows, Granularity::Raw, 60_000, None);

    assert_eq!((rolled.len(), rolled[0].at, rolled[0].count), (1, 60_000, 3));
    assert_eq!(stats(&rolled[0], Field::CPU), [3_000, 1_000, 6_000, 0]);
    assert_eq!(stats(&rolled[0], Field::NETWORK_RECEIVED), [3_000, 25_000, 10_000, 40_000, 1]);
}

#[test]
fn a_counter_that_was_reset_and_a_gap_have_no_rate() {
    let rows = [sample(60, 0.0, 5_000, &[]), sample(65, 0.0, 10, &[]), sample(100, 0.0, 9_000, &[])];

    let rolled = roll(&rows, Granularity::Raw, 60_000, None);

    assert_eq!(stats(&rolled[0], Field::NETWORK_RECEIVED), [9_000, NO_RATE, NO_RATE, NO_RATE, 3]);
}

#[test]
fn what_comes_and_goes_is_averaged_over_the_time_it_was_there() {
    let rows = [sample(0, 0.0, 0, &[("/", 10.0), ("/usb", 50.0)]), sample(5, 0.0, 0, &[("/", 30.0)])];

    let mean = roll(&rows, Granularity::Raw, 60_000, None)[0].sample(Granularity::Rolled);

    let disks: Vec<_> = mean.disk_usage.iter().map(|disk| (disk.path.as_str(), disk.percent)).collect();
    assert_eq!(disks, [("/", 20.0), ("/usb", 50.0)]);
}

#[test]
fn rolling_up_in_two_steps_is_rolling_up_in_one() {
    let rows: Vec<Row> = (0..720).map(|i| sample(i * 5, (i * 7 % 50) as f64, (i * 100) as u64, &[])).collect();

    let at_once = roll(&rows, Granularity::Raw, 3_600_000, None);
    let minutes = roll(&rows, Granularity::Raw, 60_000, None);
    let in_steps = roll(&minutes, Granularity::Rolled, 3_600_000, None);

    assert_eq!(minutes.len(), 60);
    assert_eq!(in_steps, at_once);
}

#[test]
fn bytes_beyond_the_signed_range_are_averaged_as_what_they_are() {
    let mut row = sample(0, 0.0, 0, &[]);
    let place = row.shape.slots().position(|slot| slot.field == Field::MEMORY_USED).unwrap();
    let values: Vec<i64> = row.values.iter().enumerate().map(|(i, v)| if i == place { -1 } else { *v }).collect();
    row.values = values.into();

    let rolled = roll(&[row], Granularity::Raw, 60_000, None);

    assert_eq!(stats(&rolled[0], Field::MEMORY_USED), [-1, -1, -1, 0]);
}
