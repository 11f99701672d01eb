//! Simulated servers, whose agents connect like real ones.

use std::future::Future;

use signalbox_agent::{Config, Exit, Source};
use signalbox_protocol::agent::AgentInfo;
use signalbox_protocol::sample::{DiskUsage, NetworkUsage};
use signalbox_protocol::{Sample, Timestamp};

const GIB: u64 = 1024 * 1024 * 1024;

/// Runs the agent of the simulated server `number`.
pub async fn run(config: Config, number: u16, shutdown: impl Future<Output = ()> + Send) -> Exit {
    let info = AgentInfo {
        version: env!("CARGO_PKG_VERSION").to_owned(),
        hostname: format!("simulated-{number:03}"),
        os: "Simulated Linux".to_owned(),
        kernel: "6.1.0".to_owned(),
        arch: "x86_64".to_owned(),
        cpu_count: 4,
        boot_id: uuid::Uuid::new_v4().to_string(),
        machine_id: String::new(),
        capabilities: vec!["metrics".to_owned()],
    };
    signalbox_agent::run_with(config, info, Simulated::new(number), shutdown).await
}

/// A load that rises and falls over minutes, differently on each server.
struct Simulated {
    phase: f64,
    started: Timestamp,
}

impl Simulated {
    fn new(number: u16) -> Self {
        Self { phase: f64::from(number), started: Timestamp::now() }
    }
}

impl Source for Simulated {
    async fn sample(&mut self) -> Option<Sample> {
        let now = Timestamp::now();
        let seconds = now.millis_since(self.started) as f64 / 1000.0;
        // Two waves whose length depends on the server: slow enough to follow, and never quite repeating.
        let slow = (seconds / (90.0 + self.phase % 60.0) + self.phase).sin();
        let quick = (seconds / 11.0 + self.phase * 2.0).sin();
        let cpu_percent = 35.0 + 25.0 * slow + 8.0 * quick;
        let memory_percent = 50.0 + 15.0 * (slow / 2.0 + self.phase).sin();
        let disk_percent = 20.0 + self.phase * 7.0 % 70.0;
        let total = 64 * GIB;
        let used = (total as f64 * disk_percent / 100.0) as u64;
        Some(Sample {
            timestamp: now,
            cpu_percent,
            cpu_per_core: vec![cpu_percent; 4],
            load_average: [cpu_percent / 25.0; 3],
            memory_percent,
            memory_total: 16 * GIB,
            memory_used: (16.0 * GIB as f64 * memory_percent / 100.0) as u64,
            disk_usage: vec![DiskUsage { path: "/".into(), total, used, free: total - used, percent: disk_percent }],
            network: vec![NetworkUsage {
                interface: "eth0".into(),
                bytes_sent: (seconds * 20_000.0) as u64,
                bytes_recv: (seconds * 90_000.0) as u64,
                in_total: None,
            }],
            uptime_seconds: seconds as u64,
            process_count: 120,
            ..Sample::default()
        })
    }
}
