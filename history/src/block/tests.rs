use std::sync::Arc;

use proptest::prelude::*;

use super::*;
use crate::frame::Run;
use crate::frame::{NO_RATE, Row};
use crate::metric::{Field, Kind, MACHINE};
use crate::shape::tests::shapes;
use crate::shape::{Entry, List, Schema, Shape};

fn value() -> impl Strategy<Value = i64> {
    // The mark of a hole is no value: no machine reports a u64 with nothing but the highest bit.
    let any = any::<i64>().prop_filter("the mark of a hole", |value| *value != NO_RATE);
    prop_oneof![4 => 0_i64..10_000, 2 => Just(42), 1 => any, 1 => Just(-1), 1 => Just(i64::MAX)]
}

fn rows(granularity: Granularity) -> impl Strategy<Value = Vec<Row>> {
    shapes()
        .prop_flat_map(move |shapes| {
            let row = (0..shapes.len(), 1_i64..100_000, 1_i64..20).prop_flat_map(move |(shape, step, count)| {
                let shape = shapes[shape].clone();
                let width: usize = shape.slots().map(|slot| granularity.stats(slot.field)).sum();
                let values = prop::collection::vec(value(), width);
                (Just(shape), Just(step), Just(count), values)
            });
            prop::collection::vec(row, 0..48)
        })
        .prop_map(move |rows| {
            let mut at = 1_795_000_000_000;
            let row = |(shape, step, count, values): (Arc<Shape>, i64, i64, Vec<i64>)| {
                at += step;
                let count = if granularity == Granularity::Raw { 1 } else { count };
                Row { at, count, shape, values: values.into() }
            };
            rows.into_iter().map(row).collect()
        })
}

proptest! {
    #[test]
    fn samples_come_back_to_the_bit(rows in rows(Granularity::Raw)) {
        let parts = write(Frame::from_rows(Granularity::Raw, &rows)).unwrap();

        prop_assert_eq!(read(&parts).unwrap().rows(), rows);
    }

    #[test]
    fn aggregates_come_back_to_the_bit(rows in rows(Granularity::Rolled)) {
        let parts = write(Frame::from_rows(Granularity::Rolled, &rows)).unwrap();

        prop_assert_eq!(read(&parts).unwrap().rows(), rows);
    }

    #[test]
    fn one_column_read_alone_is_that_column(rows in rows(Granularity::Rolled), choice in any::<prop::sample::Index>()) {
        let frame = Frame::from_rows(Granularity::Rolled, &rows);
        prop_assume!(!frame.columns.is_empty());
        let parts = write(frame.clone()).unwrap();
        let head = Head::read(&parts[0]).unwrap();
        let chosen = frame.columns[choice.index(frame.columns.len())].clone();
        let wanted = |column: &Column| *column == chosen;

        let needed = head.parts(&wanted);
        let some = |number: usize| (number == 0 || needed.contains(&number)).then(|| parts[number].as_slice());
        let read = head.clone().into_frame(some, &wanted).unwrap();

        for ((column, all), some) in frame.columns.iter().zip(&frame.vectors).zip(&read.vectors) {
            prop_assert_eq!(some.as_ref(), if *column == chosen { all.as_ref() } else { None });
        }
    }

    #[test]
    fn rates_with_holes_come_back(known in prop::collection::vec(prop::option::of(0_i64..1_000), 1..200)) {
        let values: Vec<i64> = known.iter().map(|rate| rate.unwrap_or(NO_RATE)).collect();
        let mut out = Writer::default();
        vector::write(&values, Values::Integers, &mut out).unwrap();

        prop_assert_eq!(vector::read(&out.0, values.len()).unwrap(), values);
    }

    #[test]
    fn a_damaged_block_is_an_error_and_never_a_lie(
        rows in rows(Granularity::Raw), place in any::<prop::sample::Index>(), bit in 0..8_u32,
    ) {
        let mut parts = write(Frame::from_rows(Granularity::Raw, &rows)).unwrap();
        let part = place.index(parts.len());
        let byte = place.index(parts[part].len());
        parts[part][byte] ^= 1 << bit;

        prop_assert!(read(&parts).is_err());
    }

    #[test]
    fn nonsense_is_an_error(bytes in prop::collection::vec(any::<u8>(), 0..300)) {
        prop_assert!(read(&[bytes]).is_err());
    }

    #[test]
    fn nonsense_with_a_correct_checksum_is_survived(bytes in prop::collection::vec(any::<u8>(), 0..300)) {
        let sealed = part(None, &Writer(bytes));

        // Whatever the bytes are taken for, reading ends and stays within bounds.
        let _ = Head::read(&sealed).map(|head| head.rows() <= MAX_ROWS);
    }
}

#[test]
fn a_wide_block_has_several_parts_and_each_is_checked() {
    let shape = Arc::new(Shape::new(64, Vec::new()));
    let mut state = 1_u64;
    let mut noise = || {
        state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1);
        (state >> 40) as i64
    };
    let rows: Vec<Row> = (0..1_000)
        .map(|i| Row {
            at: i * 5_000,
            count: 1,
            shape: shape.clone(),
            values: (0..shape.width()).map(|_| noise()).collect(),
        })
        .collect();
    let mut parts = write(Frame::from_rows(Granularity::Raw, &rows)).unwrap();
    assert!(parts.len() > 3, "{} parts", parts.len());

    parts[2][100] ^= 1;

    let head = Head::read(&parts[0]).unwrap();
    let bytes = |number: usize| parts.get(number).map(Vec::as_slice);
    let cpu = |column: &Column| column.field == Field::CPU;
    assert!(head.clone().into_frame(bytes, &cpu).is_ok(), "the first part is sound");
    let damaged = head.into_frame(bytes, &|_| true);
    assert_eq!(damaged, Err(BlockError::Corrupt("the checksum is another")));
}

#[test]
fn columns_that_follow_from_others_take_next_to_nothing() {
    let shape = Arc::new(Shape::new(0, Vec::new()));
    let row = |i: i64| {
        let used = 4_000_000_000 + (i * 7_919_317 % 1_000_003) * 4_096;
        let total = 16_000_000_000_i64;
        let percent = (used as f64 / total as f64 * 10_000.0).round() as i64;
        let values = shape.slots().map(|slot| match slot.field {
            Field::MEMORY_USED => used,
            Field::MEMORY_TOTAL => total,
            Field::MEMORY_PERCENT => percent,
            Field::UPTIME => i * 5 + 77,
            _ => 0,
        });
        Row { at: i * 5_000, count: 1, shape: shape.clone(), values: values.collect() }
    };
    let rows: Vec<Row> = (0..720).map(row).collect();
    let mut frame = Frame::from_rows(Granularity::Raw, &rows);

    derived::take_off(&mut frame, &derived::predictions());

    for field in [Field::MEMORY_PERCENT, Field::UPTIME] {
        let place = frame.columns.iter().position(|column| column.field == field).unwrap();
        let left = frame.vectors[place].as_ref().unwrap()[0].clone();
        assert!(left.iter().all(|value| *value == left[0]), "{field:?}: {left:?}");
        assert_ne!(field.kind, Kind::Counter);
    }
}

/// One raw row as it is written, whatever the layout says.
fn one_row(entries: &[&str], of_shape: &[usize]) -> Vec<Vec<u8>> {
    let entry =
        |name: &&str| Arc::new(Entry { list: List::TEMPERATURES, name: name.to_string(), id: String::new(), nth: 0 });
    let entries: Vec<Arc<Entry>> = entries.iter().map(entry).collect();
    let shape = Shape::new(0, of_shape.iter().map(|place| entries[*place].clone()).collect());
    let layout =
        Layout { entries, series: Vec::new(), shapes: vec![Arc::new(shape)], runs: vec![Run { shape: 0, rows: 1 }] };
    let columns = layout.columns();
    let vectors = columns.iter().map(|_| Some(vec![vec![7]])).collect();
    let (times, counts) = (vec![1_795_000_000_000], Vec::new());
    write(Frame { granularity: Granularity::Raw, is_lead: false, times, counts, layout, columns, vectors }).unwrap()
}

#[test]
fn a_duplicate_entry_is_an_error() {
    let twice = Err(BlockError::Corrupt("an entry is there twice"));

    assert!(read(&one_row(&["core", "board"], &[0, 1])).is_ok());
    // Its rows could be read, but no block could be written from them.
    assert_eq!(read(&one_row(&["core", "board"], &[0, 0])), twice);
    assert_eq!(read(&one_row(&["core", "core"], &[0, 1])), twice);
}

/// The head of a raw block without predictions and entries, with one run for each shape, up to the lengths of the columns.
fn head_of(rows: u64, cores: u64, shapes: u64) -> Writer {
    let mut head = Writer::default();
    [0, rows, 0, 1].into_iter().for_each(|number| head.number(number));
    head.schema(&Schema::current());
    [0, 0, shapes].into_iter().for_each(|number| head.number(number));
    (0..shapes).for_each(|_| [0, cores, 0, 0].into_iter().for_each(|number| head.number(number)));
    head.number(shapes);
    (0..shapes).for_each(|shape| [shape, rows / shapes].into_iter().for_each(|number| head.number(number)));
    head
}

fn sealed(mut head: Writer, lengths: &[u64]) -> Vec<u8> {
    lengths.iter().for_each(|length| head.number(*length));
    // Values that are all equal take two bytes, however many there are.
    part(Some(head), &Writer([0, 0].repeat(lengths.len())))
}

#[test]
fn a_few_bytes_that_claim_to_be_huge_are_an_error() {
    let too_much = Err(BlockError::Corrupt("there is too much of something"));
    let vectors = |cores: usize| vec![4; 1 + MACHINE.len() + cores];

    assert_eq!(read(&[sealed(head_of(720, 4, 1), &vectors(4))]).unwrap().cells(), 720 * (MACHINE.len() + 4));
    // Three hundred bytes would take 10 GB, and fifty kilobytes 2 GB before the first value.
    assert_eq!(read(&[sealed(head_of(1 << 24, 64, 1), &vectors(64))]), too_much);
    assert_eq!(read(&[sealed(head_of(8_000, 40_000, 8_000), &vectors(40_000))]), too_much);
    // Cores without columns.
    let too_early = Err(BlockError::Corrupt("it ends too early"));
    assert_eq!(read(&[sealed(head_of(720, 65_536, 1), &vectors(4))]), too_early);
}

#[test]
fn lengths_beyond_everything_are_an_error() {
    let lengths = vec![u64::MAX - 1; 1 + MACHINE.len()];

    assert_eq!(read(&[sealed(head_of(1, 0, 1), &lengths)]), Err(BlockError::Corrupt("it ends too early")));
}
