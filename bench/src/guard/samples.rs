//! Samples that are the same in every run but for their times.

use signalbox::metrics::recorder::NewSample;
use signalbox::metrics::tail::{Fresh, Tail};
use signalbox_history::codec;
use signalbox_history::frame::Row;
use signalbox_history::open::Open;
use signalbox_protocol::sample::{DiskIo, DiskUsage, NetworkUsage, Temperature};
use signalbox_protocol::{Sample, Timestamp};
use uuid::Uuid;

/// An ordinary machine. All but the time follows from `index`.
pub fn sample(at_ms: i64, index: u64) -> Sample {
    let number = |salt: u64, below: u64| scattered(index * 64 + salt) % below;
    let percent = |salt: u64| number(salt, 10_001) as f64 / 100.0;
    let total = |salt: u64| 1_000_000_000 + index * 5_000 + number(salt, 5_000);
    let disk = |path: &str, salt: u64| DiskUsage {
        path: path.to_owned(),
        total: 100_000_000_000,
        used: 40_000_000_000 + number(salt, 1_000_000),
        free: 50_000_000_000,
        percent: percent(salt + 1),
    };
    let network = |interface: &str, salt: u64| NetworkUsage {
        interface: interface.to_owned(),
        bytes_sent: total(salt),
        bytes_recv: total(salt + 1),
        in_total: Some(true),
    };
    let sensor = |label: &str, salt: u64| Temperature {
        label: label.to_owned(),
        celsius: 40.0 + number(salt, 200) as f64 / 10.0,
    };
    Sample {
        timestamp: Timestamp::from_millis(at_ms),
        cpu_percent: percent(1),
        cpu_per_core: (2..6).map(percent).collect(),
        load_average: [6, 7, 8].map(|salt| number(salt, 400) as f64 / 100.0),
        memory_percent: percent(9),
        memory_total: 16_000_000_000,
        memory_used: 8_000_000_000 + number(10, 1_000_000_000),
        swap_total: 2_000_000_000,
        swap_used: number(11, 1_000_000),
        disk_usage: vec![disk("/", 12), disk("/srv", 14)],
        disk_io: vec![DiskIo { device: "nvme0n1".to_owned(), read_bytes: total(16), write_bytes: total(17) }],
        network: vec![network("eth0", 18), network("eth1", 20)],
        temperatures: vec![sensor("Package id 0", 22), sensor("Composite", 23)],
        uptime_seconds: 1_000_000 + index * 5,
        process_count: 200 + number(24, 50),
        ..Sample::default()
    }
}

/// The same, as the recorder receives it.
pub fn new_sample(tail: &Tail, server_id: Uuid, at_ms: i64, index: u64) -> NewSample {
    let sample = sample(at_ms, index);
    let row = Row::of(&sample, tail.shape(server_id, &sample, &Open::default()));
    let encoded = codec::encode(&sample, &row).unwrap();
    NewSample { server_id, fresh: Fresh { row, processes: None }, encoded }
}

/// A number that looks random, always the same for one `seed`.
fn scattered(seed: u64) -> u64 {
    let spread = (seed + 1).wrapping_mul(0x9E37_79B9_7F4A_7C15);
    (spread ^ (spread >> 31)).wrapping_mul(0xD6E8_FEB8_6659_FD93) >> 11
}
