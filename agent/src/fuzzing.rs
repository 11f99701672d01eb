//! The functions that fuzzers call, and the test that replays what they found. Each function accepts any bytes and panics where
//! a promise is broken.

use signalbox_protocol::agent::ServiceMessage;
use signalbox_protocol::{Decoded, Encoding};

use crate::buffer::record::{self, Kind};
use crate::buffer::segment;
use crate::buffer::series::SeriesIds;
use crate::catalog::Catalog;
use crate::docker::frames::{Frames, Framing, Record};
use crate::policy::Policy;

/// A message of the service, in both encodings.
pub fn service_message(data: &[u8]) {
    let Some((first, message)) = data.split_first() else { return };
    let encoding = if first % 2 == 0 { Encoding::Json } else { Encoding::MessagePack };
    let Ok(Decoded::Known(message)) = encoding.decode::<ServiceMessage>(message) else { return };
    let Ok(written) = Encoding::MessagePack.encode(&message) else { return };
    let read = Encoding::MessagePack.decode::<ServiceMessage>(&written);
    assert!(matches!(read, Ok(Decoded::Known(_))), "a message that was written cannot be read");
}

/// A file of the buffer, damaged in any way: the records up to the damage are read, and they are what was written.
pub fn segment(data: &[u8]) {
    let mut reader = data;
    if let Ok((first, acked)) = segment::read_head(&mut reader) {
        let numbers = [first.to_le_bytes(), acked.to_le_bytes()].concat();
        assert_eq!(data.get(8..24), Some(numbers.as_slice()), "a head changes by being read");
    }
    let mut rest = data;
    let (mut payload, mut written) = (Vec::new(), Vec::new());
    loop {
        let before = rest;
        match record::read(&mut rest, &mut payload) {
            Ok(Some(kind)) => {
                if kind == Kind::Series {
                    descriptions(&payload);
                }
                assert!(record::encode(kind, &payload, &mut written).is_ok(), "a record is too long to be written");
                assert!(before.starts_with(&written), "a record changes by being read");
            }
            Ok(None) | Err(_) => break,
        }
    }
    // Fuzzers do not find payloads with a correct checksum: any payload, written and read.
    for (kind, payload) in [(Kind::Sample, data), (Kind::Ack, data), (Kind::Series, data), (Kind::Unknown(9), data)] {
        if record::encode(kind, payload, &mut written).is_ok() {
            let mut read = Vec::new();
            let kind_read = record::read(&mut written.as_slice(), &mut read);
            assert!(matches!(kind_read, Ok(Some(found)) if found == kind), "a record that was written cannot be read");
            assert_eq!(read, payload, "a payload changes by being read");
        }
    }
}

/// Whatever descriptions say, a catalog accepts only what the service would.
fn descriptions(payload: &[u8]) {
    let catalog = Catalog::default();
    let ids: Vec<u16> = SeriesIds::read(payload, &catalog).known().collect();
    let described = catalog.describe(&ids);
    assert!(described.iter().all(|series| series.validate().is_ok()), "a description that the service would refuse");
}

/// A container's log, as an engine sends it: the same records however it is cut into chunks. The first byte says how.
pub fn docker_log(data: &[u8]) {
    let Some((first, log)) = data.split_first() else { return };
    let framing = if first % 2 == 0 { Framing::Framed } else { Framing::Raw };
    let size = usize::from(first / 2).max(1);
    let (whole, pieces) = (records(framing, [log]), records(framing, log.chunks(size)));
    assert_eq!(whole, pieces, "chunks of {size} bytes make other records");
}

/// None where the stream is malformed: then the chunks decide how much was read before.
fn records<'a>(framing: Framing, chunks: impl IntoIterator<Item = &'a [u8]>) -> Option<Vec<Record>> {
    let mut frames = Frames::new(framing);
    let mut records = Vec::new();
    for chunk in chunks {
        frames.push(chunk);
        while let Some(record) = frames.next().ok()? {
            records.push(record);
        }
    }
    records.extend(frames.rest());
    Some(records)
}

/// A policy file: read or refused in one line, and it permits nothing that changes the machine unless it says so.
pub fn policy(data: &[u8]) {
    let Ok(text) = std::str::from_utf8(data) else { return };
    match Policy::parse(text) {
        Ok(policy) => {
            let says = |word: &str| text.contains(word);
            let capabilities = policy.capabilities();
            for (capability, key) in [("commands", "commands"), ("terminal", "terminal"), ("logs", "logs")] {
                let is_allowed = capabilities.iter().any(|name| name == capability);
                assert!(!is_allowed || says(key) || text.contains('\\'), "{capability} is allowed by nothing");
            }
        }
        Err(detail) => assert!(!detail.contains('\n') && !detail.is_empty(), "an error of several lines: {detail}"),
    }
}
