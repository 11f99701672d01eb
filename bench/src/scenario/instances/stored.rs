//! The size of a sample in the database: unsealed and sealed.

use std::sync::Arc;
use std::time::{Duration, Instant};

use anyhow::Context;
use signalbox_protocol::Timestamp;
use tokio::task::JoinSet;
use tokio::time::sleep;

use crate::agent::{Backfill, BackfillPlan, Outcome, connect_spread};
use crate::cluster::{Cluster, Postgres, Stretch};
use crate::data::{Dataset, hour_of};
use crate::report::{Report, progress, rounded};
use crate::scenario::join_all;
use crate::stop::StopSource;

const INTERVAL_MS: i64 = 5000;
const HOUR_MS: i64 = 3_600_000;
/// Samples per message, and messages in flight, of an agent that sends its backlog.
const BATCH: u64 = 256;
const WINDOW: usize = 2;
const LOOK_EVERY: Duration = Duration::from_secs(1);

/// The agents and their samples.
pub struct StoredPlan {
    /// The first of these servers among all.
    pub first_server: usize,
    pub servers: usize,
    /// Whole hours, the last of which is over.
    pub hours: u8,
    pub seed: u64,
    /// How long sealing may take.
    pub patience: Duration,
}

/// In bytes; of the sent samples unless stated otherwise.
pub struct Sizes {
    samples: u64,
    wal: u64,
    fresh: u64,
    /// Of the present hour's samples, which the loads before have left, and how many these are.
    live: u64,
    live_samples: u64,
    sealed: Option<Sealed>,
}

struct Sealed {
    took: Duration,
    /// Data of raw blocks, and samples in them.
    raw: u64,
    raw_samples: u64,
    /// All blocks with their indexes.
    all: u64,
    /// Write-ahead log of the sealing, that of the service's clockwork included.
    wal: u64,
}

pub async fn measure(cluster: &Cluster, plan: &StoredPlan) -> anyhow::Result<Sizes> {
    let postgres = &cluster.postgres;
    let open_hour = hour_of(Timestamp::now());
    let days = f64::from(plan.hours) / 24.0;
    let data = Dataset::ending_at(open_hour, plan.seed, plan.servers, days, INTERVAL_MS);
    progress(format_args!("{} servers hand over {} hours each", plan.servers, plan.hours));
    let stretch = Stretch::begin(cluster).await?;
    let samples = feed(cluster, plan, &data).await?;
    let wal = stretch.end(cluster).await?.wal;
    let open = open_hour.as_millis() / HOUR_MS;
    let (fresh, _) = weigh(postgres, &format!("hour < {open}")).await.context("there is no table of fresh samples")?;
    let (live, live_samples) = weigh(postgres, &format!("hour >= {open}")).await?;
    let sealed = seal(cluster, plan, open).await?;
    Ok(Sizes { samples, wal, fresh, live, live_samples, sealed })
}

async fn feed(cluster: &Cluster, plan: &StoredPlan, data: &Dataset) -> anyhow::Result<u64> {
    let last_server = plan.first_server + plan.servers;
    let fleet = cluster.fleet.get(plan.first_server..last_server).context("there are fewer servers")?;
    let backfill = BackfillPlan { batch: BATCH, window: WINDOW, samples_a_second: None, acknowledged: Arc::default() };
    let (_source, stop) = StopSource::new();
    let mut agents = JoinSet::new();
    for (number, socket) in connect_spread(&cluster.addresses(), fleet).await?.into_iter().enumerate() {
        let agent = Backfill { plan: backfill.clone(), machine: data.machine(number), samples: data.samples, socket };
        agents.spawn(agent.run(stop.clone()));
    }
    let mut outcome = Outcome::default();
    join_all(agents).await?.into_iter().for_each(|one| outcome.merge(one));
    match outcome.failure {
        Some(failure) => anyhow::bail!("an agent failed: {failure}"),
        None => Ok(outcome.samples_acknowledged),
    }
}

/// Bytes of the partitions with these samples, indexes included, and how many samples they have.
async fn weigh(postgres: &Postgres, which: &str) -> anyhow::Result<(u64, u64)> {
    let partitions = format!("SELECT DISTINCT tableoid FROM history_samples WHERE {which}");
    let bytes = format!("SELECT sum(pg_total_relation_size(tableoid))::bigint FROM ({partitions}) AS partitions");
    let count = format!("SELECT count(*) FROM history_samples WHERE {which}");
    Ok((postgres.number(&bytes).await?, postgres.number(&count).await?))
}

/// Waits until no sample of the past is left. None when it takes too long.
async fn seal(cluster: &Cluster, plan: &StoredPlan, open: i64) -> anyhow::Result<Option<Sealed>> {
    let postgres = &cluster.postgres;
    progress(format_args!("waiting until they are sealed, {} s at most", plan.patience.as_secs()));
    let (stretch, start) = (Stretch::begin(cluster).await?, Instant::now());
    while postgres.number(&format!("SELECT count(*) FROM history_samples WHERE hour < {open}")).await? > 0 {
        if start.elapsed() > plan.patience {
            return Ok(None);
        }
        sleep(LOOK_EVERY).await;
    }
    let took = start.elapsed();
    let wal = stretch.end(cluster).await?.wal;
    let raw = postgres.number("SELECT sum(pg_column_size(data))::bigint FROM history_blocks WHERE tier = 0").await?;
    let raw_samples = postgres.number("SELECT sum(rows)::bigint FROM history_blocks WHERE tier = 0").await?;
    let all = postgres
        .number(
            "SELECT sum(pg_total_relation_size(tableoid))::bigint \
             FROM (SELECT DISTINCT tableoid FROM history_blocks) AS partitions",
        )
        .await?;
    Ok(Some(Sealed { took, raw, raw_samples, all, wal }))
}

impl Sizes {
    pub fn note(&self, report: &mut Report) {
        let each = |bytes: u64, samples: u64| rounded(bytes as f64 / samples.max(1) as f64);
        report.note("realistic samples handed over, all of hours that are over", self.samples);
        report.note("bytes of write-ahead log for each of them", each(self.wal, self.samples));
        report.note("bytes of history_samples for each of them, index included", each(self.fresh, self.samples));
        report.note("the same of the present hour's samples", each(self.live, self.live_samples));
        let Some(sealed) = &self.sealed else {
            report.note("sealing", "was not done in time");
            return;
        };
        report.note("sealing, from the last ack on, s", rounded(sealed.took.as_secs_f64()));
        report.note("bytes of raw blocks per sample", each(sealed.raw, sealed.raw_samples));
        report.note(
            "bytes of history_blocks per sample, all tiers, indexes included",
            each(sealed.all, sealed.raw_samples),
        );
        report.note("bytes of write-ahead log per sample while it was sealed", each(sealed.wal, sealed.raw_samples));
    }
}
