//! The CPU that the service uses in a period.

use std::time::{Duration, Instant};

use tokio::time::sleep;

use crate::process::Cpu;
use crate::report::Report;
use crate::service::Service;

/// CPU time within a period.
#[derive(Debug, Clone, Copy)]
pub struct Usage {
    pub elapsed: Duration,
    pub cpu: Cpu,
    /// For this program, which shares the cores: if it is close to the rest of them, the generator was measured and not the
    /// service.
    pub generator: Cpu,
}

/// A period that has begun.
#[derive(Debug)]
pub struct Stretch {
    start: Instant,
    service: Cpu,
    generator: Cpu,
}

/// Watches the service for `duration`.
pub async fn watch(service: &Service, duration: Duration) -> anyhow::Result<Usage> {
    let stretch = Stretch::begin(service)?;
    sleep(duration).await;
    stretch.end(service)
}

impl Stretch {
    pub fn begin(service: &Service) -> anyhow::Result<Self> {
        Ok(Self { start: Instant::now(), service: service.cpu()?, generator: Cpu::of(std::process::id())? })
    }

    pub fn end(self, service: &Service) -> anyhow::Result<Usage> {
        Ok(Usage {
            elapsed: self.start.elapsed(),
            cpu: service.cpu()?.since(self.service),
            generator: Cpu::of(std::process::id())?.since(self.generator),
        })
    }
}

impl Usage {
    pub fn cpu_seconds(&self) -> f64 {
        self.cpu.total().as_secs_f64()
    }

    /// 100 is one core.
    pub fn cpu_percent(&self) -> f64 {
        self.cpu_seconds() / self.elapsed.as_secs_f64() * 100.0
    }

    /// The rows that every scenario shows in addition to its own figures.
    pub fn note(&self, report: &mut Report) {
        let generator = self.generator.total().as_secs_f64() / self.elapsed.as_secs_f64() * 100.0;
        let (user, system) = (self.cpu.user.as_secs_f64(), self.cpu.system.as_secs_f64());
        report.note("service CPU in the measured time", format!("{user:.2} s user, {system:.2} s system"));
        report.note("generator CPU, % of one core", format!("{generator:.0}"));
    }
}
