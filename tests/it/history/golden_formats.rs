//! Each stored format separately, as every version so far wrote it: see tests/fixtures/README.md. The values are those that
//! were sent, or those that the service of that time returned.

use signalbox_history::block;
use signalbox_history::codec;
use signalbox_history::frame::Granularity;
use signalbox_history::journal;
use signalbox_history::processes;
use signalbox_protocol::sample::TopProcesses;
use signalbox_protocol::{Sample, Timestamp};
use uuid::Uuid;

use crate::support::fixtures::{bytes, json, parts};

fn samples_of(parts: &[impl AsRef<[u8]>], grain: Granularity) -> Vec<Sample> {
    block::read(parts).unwrap().rows().iter().map(|row| row.sample(grain)).collect()
}

#[track_caller]
fn assert_same(found: &[Sample], expected: &[Sample]) {
    assert!(!expected.is_empty(), "there is something to compare");
    for (found, expected) in found.iter().zip(expected) {
        assert_eq!(found, expected);
    }
    assert_eq!(found.len(), expected.len());
}

#[test]
fn a_block_of_samples_is_read() {
    assert_same(&samples_of(&parts("block-v1"), Granularity::Raw), &json::<Vec<Sample>>("block-v1.json.gz"));
}

#[test]
fn a_block_of_several_parts_is_read() {
    let parts = parts("wide-block-v1");

    assert!(parts.len() > 1, "{} parts", parts.len());
    assert_same(&samples_of(&parts, Granularity::Raw), &json::<Vec<Sample>>("wide-block-v1.json.gz"));
}

#[test]
fn a_block_of_minutes_is_read() {
    let parts = parts("minute-v1");

    assert_same(&samples_of(&parts, Granularity::Rolled), &json::<Vec<Sample>>("minute-v1.json.gz"));
}

#[test]
fn a_piece_is_read() {
    let piece = bytes("piece-v1.bin");

    let parts = signalbox::metrics::archive::pieces::split(&piece).unwrap();

    assert_same(&samples_of(&parts, Granularity::Raw), &json::<Vec<Sample>>("piece-v1.json"));
}

#[test]
fn a_row_of_the_journal_is_read() {
    let row = bytes("journal-v1.bin");

    let read = journal::read(&row).unwrap();
    let found: Vec<(Uuid, Sample)> =
        read.into_iter().map(|(server_id, encoded)| (server_id, encoded.decode(None).unwrap().sample())).collect();

    let expected: Vec<(Uuid, Sample)> = json("journal-v1.json");
    assert!(expected.len() > 1, "{} samples", expected.len());
    assert_eq!(found, expected);
}

#[test]
fn a_sample_is_read() {
    let sample = codec::decode(&bytes("sample-v1.bin"), None).unwrap().sample();

    assert!(sample.processes.is_some(), "with what it had beside the API's fields");
    assert_eq!(sample, json::<Sample>("sample-v1.json"));
}

#[derive(serde::Deserialize)]
struct Listed {
    timestamp: Timestamp,
    #[serde(flatten)]
    processes: TopProcesses,
}

#[test]
fn a_block_of_top_processes_is_read() {
    let found = processes::read(&bytes("processes-v1.bin")).unwrap();

    let expected: Vec<Listed> = json("processes-v1.json.gz");
    let expected: Vec<_> = expected.into_iter().map(|one| (one.timestamp.as_millis(), one.processes)).collect();
    assert!(expected.len() > 1, "{} lists", expected.len());
    assert_eq!(found, expected);
}
