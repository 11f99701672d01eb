//! What all processes of a cluster use in a period.

use std::time::{Duration, Instant};

use tokio::time::sleep;

use super::{Cluster, Traffic};
use crate::process::Cpu;
use crate::report::Report;

/// A period that has begun.
#[derive(Debug)]
pub struct Stretch {
    start: Instant,
    wal: u64,
    traffic: Traffic,
    service: Cpu,
    postgres: Cpu,
    nats: Cpu,
    generator: Cpu,
}

/// What was used in a period.
#[derive(Debug, Clone, Copy)]
pub struct Spent {
    pub elapsed: Duration,
    /// CPU time of all instances together.
    pub service: Duration,
    pub postgres: Duration,
    pub nats: Duration,
    /// Of this program, which shares the cores.
    pub generator: Duration,
    /// Bytes of write-ahead log.
    pub wal: u64,
    pub traffic: Traffic,
}

/// Watches for `duration`.
pub async fn watch(cluster: &Cluster, duration: Duration) -> anyhow::Result<Spent> {
    let stretch = Stretch::begin(cluster).await?;
    sleep(duration).await;
    stretch.end(cluster).await
}

impl Stretch {
    /// The instances must stay the same until its end.
    pub async fn begin(cluster: &Cluster) -> anyhow::Result<Self> {
        let wal = cluster.postgres.wal().await?;
        let traffic = cluster.nats.traffic().await?;
        Ok(Self {
            start: Instant::now(),
            wal,
            traffic,
            service: cluster.service_cpu()?,
            postgres: cluster.postgres.cpu()?,
            nats: cluster.nats.cpu()?,
            generator: Cpu::of(std::process::id())?,
        })
    }

    pub async fn end(self, cluster: &Cluster) -> anyhow::Result<Spent> {
        let elapsed = self.start.elapsed();
        let service = cluster.service_cpu()?.since(self.service).total();
        let postgres = cluster.postgres.cpu()?.since(self.postgres).total();
        let nats = cluster.nats.cpu()?.since(self.nats).total();
        let generator = Cpu::of(std::process::id())?.since(self.generator).total();
        let traffic = cluster.nats.traffic().await?.since(self.traffic);
        let wal = cluster.postgres.wal().await?.saturating_sub(self.wal);
        Ok(Spent { elapsed, service, postgres, nats, generator, wal, traffic })
    }
}

impl Spent {
    /// Something counted, by the seconds of it.
    pub fn a_second(&self, count: u64) -> f64 {
        count as f64 / self.elapsed.as_secs_f64()
    }

    /// 100 is one core.
    fn percent(&self, cpu: Duration) -> f64 {
        cpu.as_secs_f64() / self.elapsed.as_secs_f64() * 100.0
    }

    /// A row with the use of the cores.
    pub fn note(&self, report: &mut Report, title: &str) {
        let [service, postgres, nats, generator] =
            [self.service, self.postgres, self.nats, self.generator].map(|cpu| self.percent(cpu));
        report.note(
            format!("{title}: CPU of instances, PostgreSQL, NATS and generator, % of one core"),
            format!("{service:.1}, {postgres:.1}, {nats:.1}, {generator:.1}"),
        );
    }
}
