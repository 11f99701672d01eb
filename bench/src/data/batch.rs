//! `metrics` messages of a server's samples.

use bytes::Bytes;
use signalbox_protocol::agent::{AgentMessage, Metrics};
use signalbox_protocol::{Encoding, Sample, Timestamp};

use super::Machine;

/// Encodes a server's samples, message by message, without encoding their names each time.
#[derive(Debug)]
pub struct Batches {
    machine: Machine,
    samples: Vec<Sample>,
}

impl Batches {
    pub fn new(machine: Machine) -> Self {
        Self { machine, samples: Vec::new() }
    }

    /// The next `count` samples.
    pub fn message(&mut self, seq: u64, count: usize) -> anyhow::Result<Bytes> {
        self.resize(count);
        for sample in &mut self.samples {
            self.machine.fill(sample);
        }
        self.encode(seq)
    }

    /// One sample taken at `at`.
    pub fn message_at(&mut self, seq: u64, at: Timestamp) -> anyhow::Result<Bytes> {
        self.resize(1);
        for sample in &mut self.samples {
            self.machine.fill_at(at, sample);
        }
        self.encode(seq)
    }

    fn resize(&mut self, count: usize) {
        let machine = &self.machine;
        self.samples.resize_with(count, || machine.blank());
    }

    fn encode(&mut self, seq: u64) -> anyhow::Result<Bytes> {
        let samples = std::mem::take(&mut self.samples);
        let message = AgentMessage::Metrics(Metrics { seq, samples, sent_at: None });
        let bytes = Encoding::MessagePack.encode(&message)?;
        if let AgentMessage::Metrics(metrics) = message {
            self.samples = metrics.samples;
        }
        Ok(bytes)
    }
}

#[cfg(test)]
mod tests {
    use signalbox_protocol::Decoded;

    use super::*;

    #[test]
    fn messages_carry_the_machine_s_samples_in_their_order() {
        let machine = Machine::new(3, 1, Timestamp::from_millis(1_795_000_000_000), 5000);
        let mut batches = Batches::new(machine.clone());
        let bytes = [batches.message(1, 3).unwrap(), batches.message(2, 2).unwrap()];

        let decoded = bytes.iter().flat_map(|bytes| match Encoding::MessagePack.decode(bytes).unwrap() {
            Decoded::Known(AgentMessage::Metrics(metrics)) => metrics.samples,
            other => panic!("not a metrics message: {other:?}"),
        });
        let decoded: Vec<Sample> = decoded.collect();

        let mut machine = machine;
        let expected: Vec<Sample> = (0..5)
            .map(|_| {
                let mut sample = machine.blank();
                machine.fill(&mut sample);
                sample
            })
            .collect();
        assert_eq!(decoded, expected);
    }
}
