//! Samples as the bytes in which they are sent. Each is encoded once, into the buffer, and copied unchanged into the `metrics`
//! message that carries it, tonight or tomorrow.

use std::io;

use bytes::Bytes;
use serde::de::IgnoredAny;
use serde::{Deserialize, Serialize};
use signalbox_protocol::{Encoding, Sample, Timestamp};

/// The encoding of every agent. The service answers in it; the agent also understands text frames.
pub const ENCODING: Encoding = Encoding::MessagePack;

/// `{"type": "metrics", "data": {"seq": ` in MessagePack.
const METRICS_HEAD: &[u8] = b"\x82\xa4type\xa7metrics\xa4data\x83\xa3seq";
/// `, "samples": ` in MessagePack.
const SAMPLES_KEY: &[u8] = b"\xa7samples";
/// `, "sent_at": ` in MessagePack.
const SENT_AT_KEY: &[u8] = b"\xa7sent_at";

/// Appends `sample` to `buffer` in the form of the protocol's MessagePack messages: maps, times as text.
pub fn encode_sample(sample: &Sample, buffer: &mut Vec<u8>) -> Result<(), rmp_serde::encode::Error> {
    buffer.clear();
    sample.serialize(&mut rmp_serde::Serializer::new(buffer).with_struct_map().with_human_readable())
}

/// A `metrics` message, sent now, of `count` samples whose encodings are in `samples`, one after the other.
pub fn metrics_message(seq: u64, count: u16, samples: &[u8], now: Timestamp) -> Bytes {
    let mut message = Vec::with_capacity(METRICS_HEAD.len() + samples.len() + 64);
    message.extend_from_slice(METRICS_HEAD);
    message.push(0xcf);
    message.extend_from_slice(&seq.to_be_bytes());
    message.extend_from_slice(SAMPLES_KEY);
    message.push(0xdc);
    message.extend_from_slice(&count.to_be_bytes());
    message.extend_from_slice(samples);
    message.extend_from_slice(SENT_AT_KEY);
    let sent_at = now.to_string();
    // Always 24 characters: a short string.
    message.push(0xa0 | (sent_at.len() as u8 & 0x1f));
    message.extend_from_slice(sent_at.as_bytes());
    Bytes::from(message)
}

/// No sample is nested deeper: bytes from a file must not exhaust a thread's stack.
const MAX_DEPTH: usize = 32;

/// The part of a sample that names its open series.
#[derive(Deserialize)]
struct Named {
    #[serde(default)]
    values: Vec<(u16, IgnoredAny)>,
}

/// The ids of the open series with values in `count` encoded samples: in order, each once.
pub fn series_of(count: u16, samples: &[u8]) -> Vec<u16> {
    let mut reader = rmp_serde::Deserializer::from_read_ref(samples);
    reader.set_max_depth(MAX_DEPTH);
    let mut ids = Vec::new();
    for _ in 0..count {
        let Ok(Named { values }) = Named::deserialize(&mut reader) else { break };
        ids.extend(values.iter().map(|(id, _)| *id));
    }
    ids.sort_unstable();
    ids.dedup();
    ids
}

/// An encoded sample with other ids for its series. Values of series without one are removed.
pub fn renumber_series(sample: &[u8], id_of: impl Fn(u16) -> Option<u16>) -> io::Result<Vec<u8>> {
    let mut reader = rmp_serde::Deserializer::from_read_ref(sample).with_human_readable();
    reader.set_max_depth(MAX_DEPTH);
    let mut sample = Sample::deserialize(&mut reader).map_err(io::Error::other)?;
    sample.values = sample.values.into_iter().filter_map(|(id, value)| Some((id_of(id)?, value))).collect();
    let mut renumbered = Vec::new();
    encode_sample(&sample, &mut renumbered).map_err(io::Error::other)?;
    Ok(renumbered)
}

#[cfg(test)]
mod tests {
    use signalbox_protocol::agent::{AgentMessage, Metrics};
    use signalbox_protocol::{Decoded, Timestamp};

    use super::*;

    #[test]
    fn a_message_put_together_from_samples_is_the_protocols_message() {
        let samples: Vec<Sample> = (0..20)
            .map(|number| Sample {
                timestamp: Timestamp::from_millis(1_700_000_000_000 + number),
                cpu_percent: 12.5,
                cpu_per_core: vec![1.0, 24.0],
                ..Sample::default()
            })
            .collect();
        let (mut one, mut all) = (Vec::new(), Vec::new());
        for sample in &samples {
            encode_sample(sample, &mut one).unwrap();
            all.extend_from_slice(&one);
        }
        let (seq, now) = (1_795_166_130_120, Timestamp::from_millis(1_795_166_130_120));

        let message = metrics_message(seq, 20, &all, now);

        let expected = AgentMessage::Metrics(Metrics { seq, samples, sent_at: Some(now) });
        assert_eq!(message, ENCODING.encode(&expected).unwrap());
        assert_eq!(ENCODING.decode::<AgentMessage>(&message).unwrap(), Decoded::Known(expected));
    }

    fn encoded(values: &[(u16, f64)]) -> Vec<u8> {
        let mut bytes = Vec::new();
        encode_sample(&Sample { values: values.to_vec(), ..Sample::default() }, &mut bytes).unwrap();
        bytes
    }

    #[test]
    fn the_series_of_several_samples_are_known_by_their_ids() {
        let samples = [encoded(&[(300, 1.5), (2, 1.0)]), encoded(&[]), encoded(&[(2, -7.0), (65_535, 1e300)])].concat();

        assert_eq!(series_of(3, &samples), [2, 300, 65_535]);
        assert_eq!(series_of(1, &samples), [2, 300]);
        assert_eq!(series_of(1, b"no sample"), [0; 0]);
        assert_eq!(series_of(1, &[0x91; 100_000]), [0; 0], "nested arrays");
    }

    #[test]
    fn a_sample_gets_other_ids_and_loses_values_without_one() {
        let sample = encoded(&[(0, 1.5), (1, 2.0), (2, 3.0)]);

        let renumbered = renumber_series(&sample, |id| (id != 1).then_some(id + 300)).unwrap();

        assert_eq!(renumbered, encoded(&[(300, 1.5), (302, 3.0)]));
        assert!(renumber_series(b"no sample", Some).is_err());
    }
}
