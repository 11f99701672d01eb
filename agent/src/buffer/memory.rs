//! The samples in memory, for an agent that cannot write its state directory.

use std::collections::VecDeque;

use super::Batch;

#[derive(Debug)]
pub struct MemoryLog {
    samples: VecDeque<(u64, Box<[u8]>)>,
    bytes: usize,
    most_bytes: usize,
}

impl MemoryLog {
    pub fn new(most_bytes: usize) -> Self {
        Self { samples: VecDeque::new(), bytes: 0, most_bytes }
    }

    pub fn is_empty(&self) -> bool {
        self.samples.is_empty()
    }

    /// Adds a sample. Returns how many of the oldest had to make room for it. The newest is always kept.
    pub fn append(&mut self, seq: u64, sample: &[u8]) -> u64 {
        self.bytes += sample.len();
        self.samples.push_back((seq, sample.into()));
        let mut dropped = 0;
        while self.bytes > self.most_bytes && self.samples.len() > 1 {
            self.remove_oldest();
            dropped += 1;
        }
        dropped
    }

    /// The oldest samples with their numbers: at least one, and as many as fit into this many bytes.
    pub fn oldest(&self, most_bytes: usize) -> Vec<(u64, Box<[u8]>)> {
        let mut bytes = 0;
        let fits = |(_, sample): &&(u64, Box<[u8]>)| {
            let is_first = bytes == 0;
            bytes += sample.len();
            is_first || bytes <= most_bytes
        };
        self.samples.iter().take_while(fits).cloned().collect()
    }

    /// Adds to `batch` the samples after number `after` up to `until`, until it is full or there are no more.
    pub fn read(&self, after: u64, until: u64, batch: &mut Batch) {
        let start = self.samples.partition_point(|(seq, _)| *seq <= after);
        for (seq, sample) in self.samples.range(start..) {
            if batch.is_full() || *seq > until {
                return;
            }
            batch.push(*seq, sample);
        }
    }

    /// Removes every sample up to `seq`.
    pub fn ack(&mut self, seq: u64) {
        while self.samples.front().is_some_and(|(oldest, _)| *oldest <= seq) {
            self.remove_oldest();
        }
    }

    /// Increases the number of each sample by this.
    pub fn renumber(&mut self, by: u64) {
        self.samples.iter_mut().for_each(|(seq, _)| *seq += by);
    }

    fn remove_oldest(&mut self) {
        if let Some((_, sample)) = self.samples.pop_front() {
            self.bytes -= sample.len();
        }
    }
}
