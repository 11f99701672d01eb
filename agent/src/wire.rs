//! Samples as the bytes they are sent in, so that each is encoded once: into the buffer, and from there unchanged into
//! whatever `metrics` message carries it, tonight or tomorrow.

use bytes::Bytes;
use serde::Serialize;
use signalbox_protocol::{Encoding, Sample};

/// What every agent speaks. The service answers in it; a service's text frames are understood all the same.
pub const ENCODING: Encoding = Encoding::MessagePack;

/// `{"type": "metrics", "data": {"seq": ` in MessagePack.
const METRICS_HEAD: &[u8] = b"\x82\xa4type\xa7metrics\xa4data\x82\xa3seq";
/// `, "samples": ` in MessagePack.
const SAMPLES_KEY: &[u8] = b"\xa7samples";

/// Writes `sample` into `buffer`, in the form that the protocol's MessagePack messages have: maps, times as text.
pub fn encode_sample(sample: &Sample, buffer: &mut Vec<u8>) -> Result<(), rmp_serde::encode::Error> {
    buffer.clear();
    sample.serialize(&mut rmp_serde::Serializer::new(buffer).with_struct_map().with_human_readable())
}

/// A `metrics` message of `count` samples that lie encoded in `samples`, one after the other.
pub fn metrics_message(seq: u64, count: u16, samples: &[u8]) -> Bytes {
    let mut message = Vec::with_capacity(METRICS_HEAD.len() + SAMPLES_KEY.len() + samples.len() + 12);
    message.extend_from_slice(METRICS_HEAD);
    message.push(0xcf);
    message.extend_from_slice(&seq.to_be_bytes());
    message.extend_from_slice(SAMPLES_KEY);
    message.push(0xdc);
    message.extend_from_slice(&count.to_be_bytes());
    message.extend_from_slice(samples);
    Bytes::from(message)
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
        let seq = 1_795_166_130_120;

        let message = metrics_message(seq, 20, &all);

        let expected = AgentMessage::Metrics(Metrics { seq, samples });
        assert_eq!(message, ENCODING.encode(&expected).unwrap());
        assert_eq!(ENCODING.decode::<AgentMessage>(&message).unwrap(), Decoded::Known(expected));
    }
}
