//! The entry points of fuzzers, which a test also calls to replay the corpus. Each function accepts any bytes, and panics
//! if a guarantee of the format does not hold.

use std::sync::Arc;

use signalbox_history::codec::Encoded;
use signalbox_history::frame::{Frame, Granularity, Row};
use signalbox_history::shape::Shape;
use signalbox_history::{block, codec, journal, processes};
use signalbox_protocol::agent::AgentMessage;
use signalbox_protocol::{Decoded, Encoding, Sample};
use uuid::Uuid;

use super::archive::pieces;

/// Checks a message of an agent, in either encoding: a message that can be decoded can be encoded and decoded again, and a
/// valid sample passes through journal and history unchanged.
pub fn agent_message(data: &[u8]) {
    let Some((first, message)) = data.split_first() else { return };
    let encoding = if first % 2 == 0 { Encoding::Json } else { Encoding::MessagePack };
    let Ok(Decoded::Known(message)) = encoding.decode::<AgentMessage>(message) else { return };
    // Compared in MessagePack only: it can carry NaN, which JSON cannot, and such a sample is not valid.
    if let Ok(written) = Encoding::MessagePack.encode(&message) {
        let Ok(Decoded::Known(read)) = Encoding::MessagePack.decode::<AgentMessage>(&written) else {
            unreadable("a message that was written cannot be read")
        };
        assert_eq!(Encoding::MessagePack.encode(&read).ok(), Some(written), "a message changes by being read");
    }
    match message {
        AgentMessage::Metrics(metrics) => {
            metrics.samples.into_iter().filter(|sample| sample.validate().is_ok()).for_each(survives);
        }
        AgentMessage::Series { series } => {
            series.into_iter().filter(|series| series.validate().is_ok()).for_each(|mut series| {
                series.clean();
                assert_eq!(series.validate(), Ok(()), "a description is not valid any more when it is cleaned");
            });
        }
        _ => {}
    }
}

/// Checks that a sample is stored and read unchanged.
fn survives(mut sample: Sample) {
    sample.round();
    // Removed as in `ingest`: they are not stored with a sample.
    sample.unread.clear();
    sample.values.clear();
    let row = Row::of(&sample, Arc::new(Shape::of(&sample)));
    let Ok(encoded) = codec::encode(&sample, &row) else { unreadable("a sample cannot be kept") };
    let Ok(stored) = codec::decode(&encoded, Some(&row.shape)) else { unreadable("a kept sample cannot be read") };
    assert_eq!(stored.row, row, "the journal changes a row");
    assert_eq!(stored.sample(), sample, "the journal changes a sample");

    let frame = Frame::from_rows(Granularity::Raw, std::slice::from_ref(&row));
    let read = block::write(frame).and_then(|parts| block::read(&parts));
    let Ok(read) = read else { unreadable("a sample's block cannot be read") };
    assert_eq!(read.rows(), [row], "the history changes a sample");
}

/// A block with more values would test nothing more of the decoder.
const MAX_CELLS: usize = 1 << 20;

/// Checks a block, whose parts follow their lengths as in a piece. The checksums are corrected first, so that the fuzzer
/// reaches the decoder.
pub fn block(data: &[u8]) {
    let Ok(parts) = pieces::split(data) else { return };
    for version in [1, 2] {
        let parts: Vec<Vec<u8>> = parts.iter().map(|part| with_checksum(&[&[version], *part].concat())).collect();
        if parts.first().is_some_and(|first| block::Head::read(first).is_ok_and(|head| head.cells() > MAX_CELLS)) {
            continue;
        }
        let Ok(frame) = block::read(&parts) else { continue };
        let rows = frame.rows();
        let granularity = frame.granularity;
        let again = block::write(Frame::from_rows(granularity, &rows)).and_then(|parts| block::read(&parts));
        let Ok(again) = again else { unreadable("a block that was read cannot be written") };
        assert_eq!(again.rows(), rows, "a block changes by being read");
    }
}

/// Checks a piece, with its lengths and checksums unchanged.
pub fn piece(data: &[u8]) {
    let Ok(parts) = pieces::split(data) else { return };
    let joined = pieces::join(parts.iter().map(|part| part.to_vec()).collect());
    assert_eq!(joined, data, "a piece changes by being taken apart");
    _ = block::read(&parts);
}

/// Checks the top processes of many minutes.
pub fn processes(data: &[u8]) {
    for version in [1, 2] {
        let Ok(lists) = processes::read(&with_checksum(&[&[version], data].concat())) else { continue };
        let Ok(written) = processes::write(&lists) else { unreadable("lists that were read cannot be written") };
        assert!(processes::read(&written).is_ok(), "lists that were written cannot be read");
    }
}

/// Checks a row of the journal and its samples. The checksum is corrected first, as for a block.
pub fn journal(data: &[u8]) {
    let data = if data.first() == Some(&2) { with_checksum(data) } else { data.to_vec() };
    let Ok(samples) = journal::read(&data) else { return };
    let mut writer = journal::Writer::default();
    for (server_id, sample) in &samples {
        let Ok(stored) = sample.decode(None) else {
            writer.add(*server_id, &sample.whole());
            continue;
        };
        writer.add_shaped(*server_id, &stored.row.shape, &sample.whole());
        let row = stored.row.clone();
        let Ok(written) = codec::encode(&stored.sample(), &row) else {
            unreadable("a sample that was read cannot be kept")
        };
        assert_eq!(
            codec::decode(&written, None).ok().map(|stored| stored.row),
            Some(row),
            "a sample changes by being read"
        );
    }
    let Some(written) = writer.finish() else { return };
    let Ok(again) = journal::read(&written) else {
        unreadable("a row of the journal that was read cannot be read again")
    };
    let rows = |samples: &[(Uuid, Encoded<'_>)]| -> Vec<(Uuid, Option<Row>)> {
        samples
            .iter()
            .map(|(server_id, sample)| (*server_id, sample.decode(None).ok().map(|stored| stored.row)))
            .collect()
    };
    assert_eq!(rows(&again), rows(&samples), "a row of the journal changes by being read");
}

fn with_checksum(bytes: &[u8]) -> Vec<u8> {
    [bytes, &crc32fast::hash(bytes).to_le_bytes()].concat()
}

/// Panics, which is how a fuzzer learns of a failure.
#[allow(clippy::panic, reason = "fuzzers and the replay of their corpus report a broken promise by a panic")]
fn unreadable(promise: &str) -> ! {
    panic!("{promise}")
}
