//! `metrics` messages that cost the generator little: encoded once, then patched.
//!
//! The generator shares its cores with the service, so that every microsecond it spends on encoding is one that the
//! service does not get. A message with the wanted number of samples is encoded by the protocol crate with marker
//! values in the fields that change, the places of the markers are remembered, and each message is then a copy with
//! these places overwritten. All of them have a fixed width in MessagePack: eight-byte numbers and a 24-byte time.

use std::io::Write as _;
use std::sync::Arc;

use anyhow::Context;
use bytes::Bytes;
use signalbox_protocol::agent::{AgentMessage, Metrics};
use signalbox_protocol::sample::{DiskIo, DiskUsage, NetworkUsage, Temperature};
use signalbox_protocol::{Encoding, Sample, Timestamp};

// Each needs eight bytes, so that MessagePack writes it with a fixed width, and no two are alike.
const SEQ: u64 = 0x5eed_0000_0000_0001;
const MEMORY_USED: u64 = 0x5eed_0000_0000_0002;
const BYTES_SENT: u64 = 0x5eed_0000_0000_0003;
const BYTES_RECV: u64 = 0x5eed_0000_0000_0004;
const CPU_PERCENT: f64 = 12.345_678_9;
/// `1999-12-31T23:59:59.999Z`: nothing else in the sample reads like it.
const TIMESTAMP_MS: i64 = 946_684_799_999;

/// A message with a fixed number of samples. Clones share it.
#[derive(Debug, Clone)]
pub struct Template {
    bytes: Arc<[u8]>,
    seq: usize,
    samples: Arc<[Places]>,
}

/// Where the changing fields of one sample are.
#[derive(Debug)]
struct Places {
    timestamp: usize,
    cpu_percent: usize,
    memory_used: usize,
    bytes_sent: usize,
    bytes_recv: usize,
}

/// The values that differ from sample to sample. They follow from its time: the percentage jumps about, the counters
/// rise.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Changing {
    pub cpu_percent: f64,
    pub memory_used: u64,
    /// Of `eth0`.
    pub bytes_sent: u64,
    pub bytes_recv: u64,
}

impl Changing {
    /// Of the sample taken at `time`.
    pub fn at(time: Timestamp) -> Self {
        let millis = time.as_millis().unsigned_abs();
        Self {
            cpu_percent: (millis.wrapping_mul(2_654_435_761) % 10_000) as f64 / 100.0,
            memory_used: 4_000_000_000 + millis % 1_000_000_000,
            bytes_sent: millis * 31,
            bytes_recv: millis * 131,
        }
    }

    /// The values in a sample of the template.
    pub fn of(sample: &Sample) -> Option<Self> {
        let interface = sample.network.first()?;
        Some(Self {
            cpu_percent: sample.cpu_percent,
            memory_used: sample.memory_used,
            bytes_sent: interface.bytes_sent,
            bytes_recv: interface.bytes_recv,
        })
    }
}

impl Template {
    pub fn new(samples: usize) -> anyhow::Result<Self> {
        let message =
            AgentMessage::Metrics(Metrics { seq: SEQ, samples: vec![marked_sample(); samples], sent_at: None });
        let bytes = Encoding::MessagePack.encode(&message)?;
        let mut seq = places(&bytes, &SEQ.to_be_bytes());
        let mut timestamp = places(&bytes, Timestamp::from_millis(TIMESTAMP_MS).to_string().as_bytes());
        let mut cpu_percent = places(&bytes, &CPU_PERCENT.to_be_bytes());
        let mut memory_used = places(&bytes, &MEMORY_USED.to_be_bytes());
        let mut bytes_sent = places(&bytes, &BYTES_SENT.to_be_bytes());
        let mut bytes_recv = places(&bytes, &BYTES_RECV.to_be_bytes());
        let mut next_sample = || {
            Some(Places {
                timestamp: timestamp.next()?,
                cpu_percent: cpu_percent.next()?,
                memory_used: memory_used.next()?,
                bytes_sent: bytes_sent.next()?,
                bytes_recv: bytes_recv.next()?,
            })
        };
        let samples = (0..samples).map(|_| next_sample()).collect::<Option<_>>();
        Ok(Self {
            seq: seq.next().context("seq is not encoded as eight bytes")?,
            samples: samples.context("a field of a sample is not encoded with its fixed width")?,
            bytes: Arc::from(bytes.as_ref()),
        })
    }

    /// A message whose samples were taken at `first` and every `step_ms` after it. Only [`Changing`] differs.
    pub fn message(&self, seq: u64, first: Timestamp, step_ms: i64) -> Bytes {
        let mut bytes = self.bytes.to_vec();
        patch(&mut bytes, self.seq, &seq.to_be_bytes());
        let mut time = first;
        for places in self.samples.iter() {
            let Changing { cpu_percent, memory_used, bytes_sent, bytes_recv } = Changing::at(time);
            patch_time(&mut bytes, places.timestamp, time);
            patch(&mut bytes, places.cpu_percent, &cpu_percent.to_be_bytes());
            patch(&mut bytes, places.memory_used, &memory_used.to_be_bytes());
            patch(&mut bytes, places.bytes_sent, &bytes_sent.to_be_bytes());
            patch(&mut bytes, places.bytes_recv, &bytes_recv.to_be_bytes());
            time = time.plus_millis(step_ms);
        }
        Bytes::from(bytes)
    }
}

/// A message with one sample that has this CPU usage; everything else in it is constant.
pub fn busy_message(seq: u64, at: Timestamp, cpu_percent: f64) -> anyhow::Result<Bytes> {
    let sample = Sample { timestamp: at, cpu_percent, memory_used: 4_000_000_000, ..marked_sample() };
    Ok(Encoding::MessagePack.encode(&AgentMessage::Metrics(Metrics { seq, samples: vec![sample], sent_at: None }))?)
}

/// Where `needle` occurs, first to last.
fn places(haystack: &[u8], needle: &[u8]) -> std::vec::IntoIter<usize> {
    let windows = haystack.windows(needle.len()).enumerate();
    let places: Vec<usize> = windows.filter(|(_, window)| *window == needle).map(|(place, _)| place).collect();
    places.into_iter()
}

fn patch(bytes: &mut [u8], place: usize, value: &[u8]) {
    if let Some(field) = bytes.get_mut(place..place + value.len()) {
        field.copy_from_slice(value);
    }
}

fn patch_time(bytes: &mut [u8], place: usize, time: Timestamp) {
    if let Some(mut field) = bytes.get_mut(place..) {
        // Writes exactly the 24 bytes of a time between the years 0000 and 9999; a slice of memory never fails.
        write!(field, "{time}").ok();
    }
}

/// A middling server: eight cores, four file systems, two interfaces, two disks, two sensors.
fn marked_sample() -> Sample {
    let disk = |path: &str, total: u64| DiskUsage {
        path: path.to_owned(),
        total,
        used: total / 3,
        free: total - total / 3,
        percent: 33.33,
    };
    let interface = |name: &str, bytes_sent: u64, bytes_recv: u64| NetworkUsage {
        interface: name.to_owned(),
        bytes_sent,
        bytes_recv,
        in_total: None,
    };
    let device =
        |name: &str| DiskIo { device: name.to_owned(), read_bytes: 918_273_645_546, write_bytes: 2_736_455_463_728 };
    let sensor = |label: &str, celsius: f64| Temperature { label: label.to_owned(), celsius };
    Sample {
        timestamp: Timestamp::from_millis(TIMESTAMP_MS),
        cpu_percent: CPU_PERCENT,
        cpu_per_core: vec![12.5, 3.25, 48.75, 7.5, 0.25, 91.75, 22.5, 15.25],
        load_average: [0.71, 0.64, 0.58],
        memory_percent: 41.27,
        memory_total: 33_567_543_296,
        memory_used: MEMORY_USED,
        swap_total: 8_589_930_496,
        swap_used: 104_857_600,
        disk_usage: vec![
            disk("/", 105_089_261_568),
            disk("/boot", 1_020_702_720),
            disk("/home", 500_107_862_016),
            disk("/var/lib/data", 2_000_398_934_016),
        ],
        disk_io: vec![device("nvme0n1"), device("sda")],
        network: vec![interface("eth0", BYTES_SENT, BYTES_RECV), interface("wg0", 1_234_567_890, 9_876_543_210)],
        temperatures: vec![sensor("Package id 0", 54.0), sensor("Composite", 38.9)],
        uptime_seconds: 1_209_600,
        process_count: 312,
        ..Sample::default()
    }
}

#[cfg(test)]
mod tests {
    use signalbox_protocol::Decoded;

    use super::*;

    #[test]
    fn a_patched_message_reads_like_an_encoded_one() {
        let first = Timestamp::from_millis(1_795_166_130_120);
        let expected_sample = |time: Timestamp, cpu_percent: f64, millis: u64| {
            let mut sample = marked_sample();
            sample.timestamp = time;
            sample.cpu_percent = cpu_percent;
            sample.memory_used = 4_000_000_000 + millis % 1_000_000_000;
            sample.network[0].bytes_sent = millis * 31;
            sample.network[0].bytes_recv = millis * 131;
            sample
        };

        let bytes = Template::new(2).unwrap().message(7, first, 5000);

        let Decoded::Known(AgentMessage::Metrics(metrics)) = Encoding::MessagePack.decode(&bytes).unwrap() else {
            panic!("not a metrics message");
        };
        let cpu: Vec<f64> = metrics.samples.iter().map(|sample| sample.cpu_percent).collect();
        let second = first.plus_millis(5000);
        assert_eq!(metrics.seq, 7);
        assert_eq!(
            metrics.samples,
            [expected_sample(first, cpu[0], 1_795_166_130_120), expected_sample(second, cpu[1], 1_795_166_135_120)]
        );
        assert_ne!(cpu[0], cpu[1]);
        assert_eq!(Changing::of(&metrics.samples[1]), Some(Changing::at(second)));
    }

    #[test]
    fn a_busy_machine_says_so() {
        let at = Timestamp::from_millis(1_795_166_130_120);

        let bytes = busy_message(7, at, 97.5).unwrap();

        let Decoded::Known(AgentMessage::Metrics(metrics)) = Encoding::MessagePack.decode(&bytes).unwrap() else {
            panic!("not a metrics message");
        };
        let sample = &metrics.samples[0];
        assert_eq!((metrics.seq, sample.timestamp, sample.cpu_percent), (7, at, 97.5));
        assert!(sample.validate().is_ok());
    }

    #[test]
    fn every_sample_is_valid() {
        let bytes = Template::new(100).unwrap().message(1, Timestamp::now(), 1);

        let Decoded::Known(AgentMessage::Metrics(metrics)) = Encoding::MessagePack.decode(&bytes).unwrap() else {
            panic!("not a metrics message");
        };
        assert_eq!(metrics.samples.len(), 100);
        assert!(metrics.samples.iter().all(|sample| sample.validate().is_ok()));
    }
}
