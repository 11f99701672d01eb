use proptest::prelude::*;
use signalbox_protocol::Timestamp;
use signalbox_protocol::sample::{DiskIo, DiskUsage, NetworkUsage, ProcessUsage, Temperature, Unread};

use super::*;
use crate::frame::Column;
use crate::metric::{Kind, Series};
use crate::shape::Schema;
use crate::shape::tests::shapes;

/// [`golden_sample`] as the builds of version 1 wrote it, in hexadecimal.
const VERSION_1: &str = include_str!("before_in_total.hex");

/// [`golden_sample`] with marks and processes as the first build of version 2 wrote it, in hexadecimal.
const VERSION_2: &str = include_str!("version_2.hex");

fn golden_sample() -> Sample {
    Sample {
        timestamp: Timestamp::from_millis(1_700_000_000_123),
        cpu_percent: 12.34,
        cpu_per_core: vec![10.0, 14.68],
        load_average: [0.5, 0.25, 0.13],
        memory_percent: 50.0,
        memory_total: 1 << 34,
        memory_used: 1 << 33,
        disk_usage: vec![DiskUsage { path: "/".into(), total: 10, used: 4, free: 6, percent: 40.0 }],
        disk_io: vec![DiskIo { device: "sda".into(), read_bytes: 5, write_bytes: 6 }],
        network: vec![
            NetworkUsage { interface: "eth0".into(), bytes_sent: 1, bytes_recv: u64::MAX, in_total: None },
            NetworkUsage { interface: "br0".into(), bytes_sent: 1, bytes_recv: 2, in_total: None },
        ],
        temperatures: vec![Temperature { label: "cpu".into(), celsius: 41.5 }],
        uptime_seconds: 86_400,
        process_count: 200,
        ..Sample::default()
    }
}

fn marked_sample(marks: [Option<bool>; 2]) -> Sample {
    let mut sample = golden_sample();
    sample.network.iter_mut().zip(marks).for_each(|(one, mark)| one.in_total = mark);
    sample
}

fn with_processes(sample: Sample) -> Sample {
    let process = ProcessUsage { pid: 7, name: "nginx".into(), user: "www-data".into(), ..ProcessUsage::default() };
    let top = TopProcesses { by_cpu: vec![process], by_memory: Vec::new() };
    Sample { processes: Some(top), ..sample }
}

fn bytes_of(hexadecimal: &str) -> Vec<u8> {
    let digits = hexadecimal.trim().as_bytes().chunks(2);
    digits.map(|pair| u8::from_str_radix(std::str::from_utf8(pair).unwrap(), 16).unwrap()).collect()
}

fn read_sample(bytes: &[u8]) -> Sample {
    decode(bytes, None).unwrap().sample()
}

#[test]
fn a_sample_comes_back_to_the_bit() {
    for marks in [[None, None], [Some(true), Some(false)], [Some(true), None], [None, Some(false)]] {
        for sample in [marked_sample(marks), with_processes(marked_sample(marks))] {
            assert_eq!(read_sample(&encode_alone(&sample).unwrap()), sample);
        }
    }
}

#[test]
fn what_earlier_builds_wrote_is_read() {
    // Its last load was an eighth, which is stored as 0.13.
    let mut of_version_1 = golden_sample();
    of_version_1.load_average[2] = 0.125;
    of_version_1.round();
    assert_eq!(read_sample(&bytes_of(VERSION_1)), of_version_1);

    let of_version_2 = with_processes(marked_sample([Some(true), None]));
    assert_eq!(read_sample(&bytes_of(VERSION_2)), of_version_2);
    // With the columns of the build that wrote it: later builds may have more.
    let row = decode(&bytes_of(VERSION_2), None).unwrap().row;
    assert_eq!(encode(&of_version_2, &row).unwrap(), bytes_of(VERSION_2), "the format changed without a new version");
    let columns = |row: &Row| row.shape.slots().map(Column::from).zip(row.values.to_vec()).collect::<Vec<_>>();
    let today = columns(&Row::of(&of_version_2, Arc::new(Shape::of(&of_version_2))));
    assert!(columns(&row).iter().all(|column| today.contains(column)), "a column changed its meaning");
}

#[test]
fn marks_of_version_1_are_read_after_the_sample_and_within_its_interfaces() {
    let mut behind = bytes_of(VERSION_1);
    rmp_serde::encode::write(&mut behind, "+-").unwrap();
    let in_total = |bytes: &[u8]| decode(bytes, None).unwrap().in_total;

    assert_eq!(in_total(&behind), [Some(true), Some(false)]);
    assert_eq!(in_total(&bytes_of(VERSION_1)), [None, None]);
    behind.pop();
    assert!(matches!(decode(&behind, None), Err(CodecError::Read(_))), "cut off within the marks");
}

#[test]
fn samples_that_follow_share_their_shape() {
    let first = decode(&encode_alone(&golden_sample()).unwrap(), None).unwrap();

    for bytes in [encode_alone(&golden_sample()).unwrap(), bytes_of(VERSION_1)] {
        let next = decode(&bytes, Some(&first.row.shape)).unwrap();

        assert!(Arc::ptr_eq(&next.row.shape, &first.row.shape));
    }
}

#[test]
fn unread_entries_are_not_stored_and_take_no_space() {
    let unread = vec![Unread { list: "disk_usage".into(), name: None }];
    let sample = Sample { unread, ..golden_sample() };

    assert_eq!(encode_alone(&sample).unwrap(), encode_alone(&golden_sample()).unwrap());
}

#[test]
fn a_section_of_a_later_version_is_skipped() {
    let mut later = Writer(encode_alone(&golden_sample()).unwrap());
    section(99, b"whatever it says", &mut later);
    section(MARKS, b"+-", &mut later);

    assert_eq!(read_sample(&later.0), marked_sample([Some(true), Some(false)]));
}

#[test]
fn bytes_of_another_version_are_refused() {
    assert!(matches!(decode(&[9, 0], None), Err(CodecError::Version(Some(9)))));
    assert!(matches!(decode(&[], None), Err(CodecError::Version(None))));
}

/// A row of any shape, with a value for each of its columns.
fn row() -> impl Strategy<Value = Row> {
    shapes().prop_flat_map(|shapes| {
        let shape = shapes.into_iter().next().unwrap_or_else(|| Arc::new(Shape::new(0, Vec::new())));
        let values = prop::collection::vec(any::<i64>(), shape.width());
        (any::<i64>(), Just(shape), values).prop_map(|(at, shape, values)| Row {
            at,
            count: 1,
            shape,
            values: values.into(),
        })
    })
}

proptest! {
    #[test]
    fn a_row_of_any_build_comes_back_to_the_bit_and_is_written_the_same_again(row in row()) {
        let bytes = encode(&Sample::default(), &row).unwrap();

        let stored = decode(&bytes, None).unwrap();

        prop_assert_eq!(&stored.row, &row);
        prop_assert_eq!(encode(&Sample::default(), &stored.row).unwrap(), bytes);
    }

    #[test]
    fn a_truncated_sample_is_an_error(row in row(), place in any::<prop::sample::Index>()) {
        let bytes = encode(&Sample::default(), &row).unwrap();

        prop_assert!(decode(&bytes[..place.index(bytes.len())], None).is_err());
    }

    #[test]
    fn nonsense_is_survived(mut bytes in prop::collection::vec(any::<u8>(), 1..300)) {
        bytes[0] = VERSION;

        let _ = decode(&bytes, None).map(|stored| stored.sample());
    }
}

#[test]
fn unknown_metrics_are_kept_and_the_sample_lacks_them() {
    let mut schema = Schema::clone(&Schema::current());
    schema.machine.insert(3, Field::new(900, Kind::Gauge, Scale::Parts(1_000)));
    let open = Series { name: "fan_speed".into(), unit: "rpm".into(), kind: Kind::Gauge, target: Some("1".into()) };
    let known = Row::of(&golden_sample(), Arc::new(Shape::of(&golden_sample())));
    let Shape { cores, entries, .. } = &*known.shape;
    let shape = Shape::with(Arc::new(schema), *cores, entries.clone(), vec![Arc::new(open)]);
    let mut values = known.values.to_vec();
    values.insert(3, -42);
    values.push(0.000_012_3_f64.to_bits().cast_signed());
    let row = Row { shape: Arc::new(shape), values: values.into(), ..known };

    let stored = decode(&encode(&Sample::default(), &row).unwrap(), None).unwrap();

    assert_eq!(stored.row, row);
    assert_eq!(stored.sample(), golden_sample());
}
