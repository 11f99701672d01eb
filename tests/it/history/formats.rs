//! The formats of this version, as files that every later version reads; and the measurements of another version, which pass
//! through every step of the history unchanged.

use std::sync::Arc;

use signalbox::store::Commit;
use signalbox::store::history::{FreshSample, Span, Tier};
use signalbox_history::frame::{Granularity, Row};
use signalbox_history::metric::{Field, Kind, Scale, Series};
use signalbox_history::shape::{ColumnRef, Entry, List, Schema, Shape};
use signalbox_history::{block, codec, journal, processes, rollup};
use signalbox_protocol::Sample;
use signalbox_protocol::sample::{ProcessUsage, TopProcesses};
use uuid::Uuid;

use super::scene::{DAY, HOUR, MINUTE, SECOND, Scene, days_ago, rich};

/// A field of the machine and one of each disk that no build knows.
const UNKNOWN: Field = Field::new(900, Kind::Gauge, Scale::Parts(1_000));
const UNKNOWN_OF_DISKS: Field = Field::new(901, Kind::Counter, Scale::Whole);

/// A list that no build knows.
const UNKNOWN_LIST: List = List(77);

fn series(name: &str, unit: &str, kind: Kind, target: Option<&str>) -> Arc<Series> {
    let target = target.map(str::to_owned);
    Arc::new(Series { name: name.to_owned(), unit: unit.to_owned(), kind, target })
}

/// A sample as the first build of version 2 kept it. Its fields were those of version 1; there may be more by now.
fn row_of_the_first_build(sample: &Sample) -> Row {
    let today = Row::of(sample, Arc::new(Shape::of(sample)));
    let (cores, entries) = (today.shape.cores, today.shape.entries.clone());
    let shape = Arc::new(Shape::with(Schema::version_1(), cores, entries, Vec::new()));
    let columns: Vec<(ColumnRef<'_>, i64)> = today.shape.slots().zip(today.values.iter().copied()).collect();
    let value = |slot: ColumnRef<'_>| columns.iter().find(|(own, _)| *own == slot).unwrap().1;
    let values = shape.slots().map(value).collect();
    Row { at: today.at, count: 1, shape, values }
}

/// What another version might measure: the first build's metrics, some that no build knows, and open series.
fn shape_of_another_version(sample: &Sample) -> Arc<Shape> {
    let mut schema = Schema::clone(&Schema::version_1());
    schema.machine.insert(1, UNKNOWN);
    schema.lists.iter_mut().filter(|(list, _)| *list == List::DISKS).for_each(|(_, of)| of.push(UNKNOWN_OF_DISKS));
    schema.lists.push((UNKNOWN_LIST, vec![UNKNOWN]));
    let known = Shape::of(sample);
    let (mut entries, name) = (known.entries.clone(), "gpu0".to_owned());
    entries.push(Arc::new(Entry { list: UNKNOWN_LIST, name, id: String::new(), nth: 0 }));
    let open = vec![
        series("fan_speed", "rpm", Kind::Gauge, Some("1")),
        series("jobs_done", "per_second", Kind::Counter, None),
        series("certificate_left", "days", Kind::Last, Some("example.org")),
    ];
    Arc::new(Shape::with(Arc::new(schema), known.cores, entries, open))
}

/// A sample of [`rich`] as another version would store it, with a different value for every unknown field.
fn row_of_another_version(at: i64) -> Row {
    let sample = rich(at);
    let known = row_of_the_first_build(&sample);
    let shape = shape_of_another_version(&sample);
    let (number, mut rest) = (at / SECOND, known.values.iter().copied());
    let float = |value: f64| value.to_bits().cast_signed();
    let mut value = |field: Field| match field {
        UNKNOWN => -(number % 1_000) * 7,
        UNKNOWN_OF_DISKS => number * 4_096,
        Field { scale: Scale::Float, kind: Kind::Gauge, .. } => float(1_000.5 + (number % 97) as f64 / 8.0),
        Field { scale: Scale::Float, kind: Kind::Counter, .. } => float(number as f64 * 0.25),
        Field { scale: Scale::Float, kind: Kind::Last, .. } => float(89.0 - (number % 10) as f64),
        _ => rest.next().unwrap(),
    };
    let values = shape.slots().map(|slot| value(slot.field)).collect();
    Row { at, count: 1, shape, values }
}

/// Two hundred rows in a fixed day; every third is only of this version, every seventh missing.
fn golden_rows() -> Vec<Row> {
    let start = 1_795_000_020_000;
    let of = |number: i64| {
        let at = start + number * 5 * SECOND;
        if number % 3 == 0 { row_of_the_first_build(&rich(at)) } else { row_of_another_version(at) }
    };
    (0..200).filter(|number| number % 7 != 6).map(of).collect()
}

fn golden_lists() -> Vec<processes::At> {
    let process = |pid: u32| ProcessUsage {
        pid,
        name: format!("worker-{pid}"),
        user: "www-data".to_owned(),
        cpu_percent: 12.5,
        memory_bytes: u64::MAX,
    };
    let list = |minute: i64| {
        let top = TopProcesses { by_cpu: vec![process(1), process(minute as u32)], by_memory: vec![process(7)] };
        (1_795_000_020_000 + minute * MINUTE, top)
    };
    (0..60).map(list).collect()
}

/// Parts as a file: each after its length.
fn parts_of(mut file: &[u8]) -> Vec<&[u8]> {
    let mut parts = Vec::new();
    while let Some((length, rest)) = file.split_first_chunk::<4>() {
        let (part, rest) = rest.split_at(u32::from_le_bytes(*length) as usize);
        parts.push(part);
        file = rest;
    }
    parts
}

#[test]
fn files_of_version_2_are_read() {
    let raw = include_bytes!("../../fixtures/block-raw-v2.bin");
    let rolled = include_bytes!("../../fixtures/block-minutes-v2.bin");
    let lists = include_bytes!("../../fixtures/processes-v2.bin");
    let journaled = include_bytes!("../../fixtures/journal-v2.bin");
    let rows = golden_rows();

    assert_eq!(block::read(&parts_of(raw)).unwrap().rows(), rows);
    assert_eq!(block::read(&parts_of(rolled)).unwrap().rows(), rollup::roll(&rows, Granularity::Raw, MINUTE, None));
    assert_eq!(processes::read(lists).unwrap(), golden_lists());
    let mut read = Vec::new();
    for (server_id, sample) in journal::read(journaled).unwrap() {
        assert_eq!(server_id, Uuid::from_u128(7));
        read.push(sample.decode(None).unwrap().row);
    }
    assert_eq!(read, rows[..30]);
}

#[test]
fn a_row_of_the_journal_that_says_its_shapes_once_is_read() {
    let file = include_bytes!("../../fixtures/journal-v3.bin");
    let rows = &golden_rows()[..30];

    let read = journal::read(file).unwrap();
    let found: Vec<Row> = read.iter().map(|(_, sample)| sample.decode(None).unwrap().row).collect();

    assert!(read.iter().all(|(server_id, _)| *server_id == Uuid::from_u128(7)));
    assert_eq!(found, rows);
    assert_eq!(journal_of(Uuid::from_u128(7), rows).unwrap(), file, "it is still written like this");
}

/// A row of the journal in which rows of one shape share it, as samples of one machine do.
fn journal_of(server_id: Uuid, rows: &[Row]) -> Option<Vec<u8>> {
    let mut writer = journal::Writer::default();
    let mut shapes: Vec<Arc<Shape>> = Vec::new();
    for row in rows {
        if !shapes.contains(&row.shape) {
            shapes.push(row.shape.clone());
        }
        let shape = shapes.iter().find(|shape| **shape == row.shape).unwrap();
        writer.add_shaped(server_id, shape, &codec::encode(&Sample::default(), row).unwrap());
    }
    writer.finish()
}

/// Stores rows as an instance of another version does.
async fn store(scene: &Scene, rows: &[Row]) {
    let server_id = scene.site.server_id;
    let encoded = |row: &Row| codec::encode(&Sample::default(), row).unwrap();
    let mut commit = Commit::default();
    if scene.site.service.state.config.is_embedded() {
        commit.journal = journal_of(server_id, rows);
    } else {
        let sample = |row: &Row| FreshSample { server_id, session_id: Uuid::nil(), at: row.at, data: encoded(row) };
        commit.samples = rows.iter().map(sample).collect();
    }
    scene.site.service.state.store.commit(Uuid::now_v7(), &commit).await.unwrap();
}

/// The samples in the blocks of this span, unchanged.
async fn sealed(scene: &Scene, span: Span, range: (i64, i64)) -> Vec<Row> {
    let (first, last) = (span.start_of(range.0.div_euclid(HOUR)), range.1.div_euclid(HOUR));
    let store = &scene.site.service.state.store;
    let blocks = store.blocks(scene.site.server_id, (Tier::Raw, span), (first, last), None).await.unwrap();
    let rows = blocks.iter().flat_map(|block| {
        let parts: Vec<&[u8]> = block.parts.values().map(Vec::as_slice).collect();
        block::read(&parts).unwrap().rows()
    });
    rows.collect()
}

#[actix_web::test]
async fn what_another_version_measures_survives_sealing_and_merging_to_the_bit() {
    let mut scene = Scene::of_interval(MINUTE).await;
    let start = days_ago(3);
    let range = (start, start + DAY - 1);
    let of = |minute: i64| row_of_another_version(start + minute * MINUTE);
    let rows: Vec<Row> = (0..6 * 60).step_by(3).map(of).collect();
    store(&scene, &rows).await;
    // This version's samples between them.
    let own: Vec<Sample> = (0..6 * 60).step_by(9).map(|minute| rich(start + minute * MINUTE + 7 * SECOND)).collect();
    scene.send(own.clone()).await;
    rows.iter().for_each(|row| scene.model.add(&rich(row.at)));

    scene = scene.restart().await;
    scene.settle().await;

    let mut all = sealed(&scene, Span::Hour, range).await;
    all.extend(sealed(&scene, Span::Day, range).await);
    let theirs: Vec<Row> = all.iter().filter(|row| row.at % MINUTE == 0).cloned().collect();
    assert_eq!(theirs, rows);
    assert_eq!(all.len(), rows.len() + own.len());
    scene.assert_raw("this version's samples and what it knows of the others", range).await;

    let names = scene.answer("names", range, "").await.json();
    let found = |name: &str| names["names"].as_array().unwrap().iter().find(|it| it["name"] == name).cloned();
    for (name, unit) in [("fan_speed:1", "rpm"), ("jobs_done", "per_second"), ("certificate_left:example.org", "days")]
    {
        assert_eq!(found(name).unwrap_or_else(|| panic!("{name} in {names}"))["unit"], unit);
    }
    let series = scene.series(range, "names=fan_speed:1&resolution=raw").await;
    let speeds: Vec<f64> = series["series"]["fan_speed:1"]["avg"]
        .as_array()
        .unwrap()
        .iter()
        .filter_map(serde_json::Value::as_f64)
        .collect();
    let expected: Vec<f64> = rows.iter().map(|row| 1_000.5 + (row.at / SECOND % 97) as f64 / 8.0).collect();
    assert_eq!(speeds, expected);
    let minutes = scene.series(range, "names=fan_speed:1&resolution=15m").await;
    assert!(minutes["series"]["fan_speed:1"]["max"].as_array().unwrap().iter().any(|max| max.as_f64() > Some(1_011.0)));
}
