//! The descriptions of open series in the buffer's files, and the files of earlier agents.

use std::collections::BTreeSet;

use signalbox_protocol::agent::AgentMessage;
use signalbox_protocol::series::{SeriesKind, Unit};
use signalbox_protocol::{Decoded, Encoding, Sample, Timestamp};

use super::*;
use crate::buffer::record::Kind;
use crate::catalog::Metric;
use crate::wire::{encode_sample, metrics_message};

const BUSY: Metric<'_> = Metric::gauge("disk_busy", Unit::Percent, "Share of the time in which a device had requests.");
const SWITCHES: Metric<'_> = Metric {
    name: "context_switches",
    unit: Unit::PerSecond,
    kind: SeriesKind::Counter,
    help: "How often a processor went from one task to another.",
};

fn fixture(name: &str) -> Vec<u8> {
    fs::read(Path::new(env!("CARGO_MANIFEST_DIR")).join("../tests/fixtures").join(name)).unwrap()
}

/// A directory with this file, under the name that its head requires.
fn directory_of(kept: &[u8]) -> tempfile::TempDir {
    let first = u64::from_le_bytes(kept[8..16].try_into().unwrap());
    let dir = state_dir();
    fs::write(dir.path().join(format!("{first:020}.samples")), kept).unwrap();
    dir
}

fn with_values(number: i64, values: &[(u16, f64)]) -> Vec<u8> {
    let timestamp = Timestamp::from_millis(1_700_000_000_000 + number);
    let mut encoded = Vec::new();
    encode_sample(&Sample { timestamp, values: values.to_vec(), ..Sample::default() }, &mut encoded).unwrap();
    encoded
}

/// All unacknowledged samples, as a service reads them.
fn samples(buffer: &mut Buffer) -> Vec<Sample> {
    let Some(batch) = buffer.batch(buffer.acked(), u64::MAX).unwrap() else { return Vec::new() };
    let message = metrics_message(1, batch.count, &batch.samples, Timestamp::from_millis(0));
    let Ok(Decoded::Known(AgentMessage::Metrics(metrics))) = Encoding::MessagePack.decode(&message) else {
        panic!("the samples are not those of a message")
    };
    metrics.samples
}

/// Values by the meaning of their ids: name, unit, kind and target.
fn meanings(samples: &[Sample], catalog: &Catalog) -> Vec<Vec<(String, f64)>> {
    let meaning = |(id, value): &(u16, f64)| {
        let [series] = catalog.describe(&[*id]).try_into().unwrap();
        let (unit, kind) = (series.unit.as_str(), series.kind.as_str());
        (format!("{} {unit} {kind} {}", series.name, series.target.unwrap_or_default()), *value)
    };
    samples.iter().map(|sample| sample.values.iter().map(meaning).collect()).collect()
}

fn open_with(dir: &Path, catalog: &Catalog) -> Buffer {
    Buffer::open(Some(StateDir::new(dir)), BufferLimits::default(), catalog.clone(), START).unwrap()
}

fn busy(target: &str, value: f64) -> (String, f64) {
    (format!("disk_busy percent gauge {target}"), value)
}

/// The samples in the file of version 2, as its agent encoded them: today's may have more fields.
fn samples_of_v2() -> Vec<Vec<u8>> {
    let kept = fixture("agent-segment-v2.bin");
    let (mut reader, mut payload, mut samples) = (&kept[28..], Vec::new(), Vec::new());
    while let Some(kind) = record::read(&mut reader, &mut payload).unwrap() {
        if kind == Kind::Sample {
            samples.push(payload.clone());
        }
    }
    samples
}

/// The fields of an encoded sample.
fn fields(sample: &[u8]) -> serde_json::Map<String, serde_json::Value> {
    rmp_serde::from_slice(sample).unwrap()
}

/// Writes what the first agent of version 2 wrote: two devices, then a third and a counter.
fn write_v2(dir: &Path) -> Catalog {
    let catalog = Catalog::default();
    let mut buffer = open_with(dir, &catalog);
    let mut samples = samples_of_v2().into_iter();
    let mut sample = |number: i64, values: &[(u16, f64)]| {
        let (then, today) = (samples.next().unwrap(), fields(&with_values(number, values)));
        assert!(fields(&then).iter().all(|(name, value)| today.get(name) == Some(value)), "sample {number}");
        then
    };
    let ids = ["sda", "sdb"].map(|target| catalog.id_of(BUSY, Some(target)).unwrap());
    buffer.append(&sample(1, &[(ids[0], 12.5), (ids[1], 100.0)]));
    buffer.append(&sample(2, &[]));
    let switches = catalog.id_of(SWITCHES, None).unwrap();
    let third = catalog.id_of(BUSY, Some("nvme0n1 ü")).unwrap();
    buffer.append(&sample(3, &[(switches, 123_456_789.0), (third, 0.25), (ids[1], 3.0)]));
    buffer.ack(START);
    catalog
}

fn what_v2_means() -> Vec<Vec<(String, f64)>> {
    let switches = ("context_switches per_second counter ".to_owned(), 123_456_789.0);
    vec![vec![], vec![switches, busy("nvme0n1 ü", 0.25), busy("sdb", 3.0)]]
}

#[test]
fn a_file_of_version_2_is_sent_and_written_unchanged() {
    let kept = fixture("agent-segment-v2.bin");
    let (read, written, catalog) = (directory_of(&kept), state_dir(), Catalog::default());

    let samples = samples(&mut open_with(read.path(), &catalog));
    write_v2(written.path());

    assert_eq!(meanings(&samples, &catalog), what_v2_means());
    let timestamps: Vec<_> = samples.iter().map(|sample| sample.timestamp.as_millis() % 10).collect();
    assert_eq!(timestamps, [2, 3], "the first was acknowledged");
    let [path] = files(written.path()).try_into().unwrap();
    assert_eq!(fs::read(path).unwrap(), kept);
}

#[test]
fn samples_of_an_earlier_run_mean_the_same_series_under_other_ids() {
    let dir = state_dir();
    write_v2(dir.path());
    let catalog = Catalog::default();
    let ids = [catalog.id_of(SWITCHES, None), catalog.id_of(BUSY, Some("sdc")), catalog.id_of(BUSY, Some("sdb"))];

    let mut buffer = open_with(dir.path(), &catalog);
    buffer.append(&with_values(4, &[(1, 7.0)]));
    let samples = samples(&mut buffer);

    assert_eq!(ids, [Some(0), Some(1), Some(2)]);
    let expected = [what_v2_means(), vec![vec![busy("sdc", 7.0)]]].concat();
    assert_eq!(meanings(&samples, &catalog), expected);
}

#[test]
fn each_file_describes_its_own_samples() {
    let (dir, catalog) = (state_dir(), Catalog::default());
    let limits = BufferLimits { segment_bytes: 1_000, ..BufferLimits::default() };
    let state = || Some(StateDir::new(dir.path()));
    let mut buffer = Buffer::open(state(), limits, catalog.clone(), START).unwrap();
    let id = catalog.id_of(BUSY, Some("sda")).unwrap();
    (0..10).for_each(|number| buffer.append(&with_values(number, &[(id, number as f64)])));
    drop(buffer);
    assert!(files(dir.path()).len() > 2, "{} files", files(dir.path()).len());

    let other = Catalog::default();
    other.id_of(SWITCHES, None).unwrap();
    let mut buffer = Buffer::open(state(), limits, other.clone(), START).unwrap();

    let expected: Vec<_> = (0..10).map(|number| vec![busy("sda", f64::from(number))]).collect();
    assert_eq!(meanings(&samples(&mut buffer), &other), expected);
}

#[test]
fn many_descriptions_do_not_make_a_file_for_each_sample() {
    let (dir, catalog) = (state_dir(), Catalog::default());
    let mut buffer = open_with(dir.path(), &catalog);
    let target = |number: u16| format!("{number:0>120}");
    let values: Vec<(u16, f64)> =
        (0..600).map(|number| (catalog.id_of(BUSY, Some(&target(number))).unwrap(), 1.0)).collect();

    let mut names = BTreeSet::new();
    for number in 0..5 {
        buffer.append(&with_values(number, &values));
        buffer.ack(u64::try_from(number).unwrap() + 1);
        names.extend(files(dir.path()));
    }

    assert_eq!(names.len(), 1, "{names:?}");
}

/// A file of version 2 with these records.
fn file_of(records: &[(Kind, &[u8])]) -> Vec<u8> {
    let mut file = fixture("agent-segment-v2.bin")[..28].to_vec();
    let mut record = Vec::new();
    for (kind, payload) in records {
        record::encode(*kind, payload, &mut record).unwrap();
        file.extend_from_slice(&record);
    }
    file
}

#[test]
fn records_of_a_later_version_are_skipped_and_undescribed_values_removed() {
    let catalog = Catalog::default();
    let id = catalog.id_of(BUSY, Some("sda")).unwrap();
    let description = crate::buffer::series::encode(&catalog.describe(&[id])).unwrap();
    let file = file_of(&[
        (Kind::Unknown(77), b"of a later version"),
        (Kind::Sample, &with_values(1, &[(id, 1.0)])),
        (Kind::Series, b"\xc1 damaged, or with a unit of a later version"),
        (Kind::Series, &description),
        (Kind::Unknown(78), b""),
        (Kind::Sample, &with_values(2, &[(id, 2.0), (9, 9.0)])),
    ]);
    let (dir, other) = (directory_of(&file), Catalog::default());

    let samples = samples(&mut open_with(dir.path(), &other));

    assert_eq!(meanings(&samples, &other), [vec![], vec![busy("sda", 2.0)]]);
}

/// A file that the agent of commit c0502cd left behind when it was killed, and what the service of that time then had of
/// it: tests/fixtures/README.md.
#[test]
fn a_file_of_an_earlier_agent_is_sent_unchanged() {
    let kept = fixture("agent-segment-v1.bin");
    let expected: Vec<Sample> = serde_json::from_slice(&fixture("agent-segment-v1.json")).unwrap();
    let dir = directory_of(&kept);

    let mut buffer = open(dir.path(), BufferLimits::default());
    let batch = buffer.batch(buffer.acked(), u64::MAX).unwrap().unwrap();
    let message = metrics_message(1, batch.count, &batch.samples, Timestamp::from_millis(0));

    let Ok(Decoded::Known(AgentMessage::Metrics(metrics))) = Encoding::MessagePack.decode(&message) else {
        panic!("the samples are not those of a message")
    };
    assert!(expected.len() > 3, "{} samples", expected.len());
    assert!(expected.iter().any(|sample| sample.processes.is_some()), "with top processes");
    assert_eq!(metrics.samples, expected);
    buffer.append(&sample(1));
    assert_eq!(buffer.newest().max(batch.last), buffer.newest(), "new samples follow it");
}
