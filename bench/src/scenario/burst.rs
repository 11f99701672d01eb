//! Agents that catch up: how many samples a core of the service can make durable.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use clap::Args;
use signalbox_protocol::Timestamp;
use signalbox_protocol::agent::MAX_SAMPLES;
use tokio::task::JoinSet;
use tokio::time::sleep;

use super::{join_all, seconds};
use crate::agent::{Burst, BurstPlan, Outcome, connect_all};
use crate::figures::Row;
use crate::fixture::Fixture;
use crate::limits::check_connections;
use crate::report::{Report, megabytes, progress};
use crate::service::ServiceOptions;
use crate::stop::{Stop, StopSource};
use crate::template::Template;
use crate::usage::{self, Usage};

/// Samples start a day ago, since an agent keeps a day of them, and are a second apart: a run may send two days of
/// them before it meets the service's limit for times in the future.
const FIRST_SAMPLE_AGO_MS: i64 = 24 * 3600 * 1000;
const STEP_MS: i64 = 1000;

#[derive(Debug, Args)]
pub struct BurstArgs {
    #[arg(long, default_value_t = 100)]
    pub agents: usize,
    /// Samples in a message.
    #[arg(long, default_value_t = 100, value_parser = clap::value_parser!(u64).range(1..=MAX_SAMPLES as u64))]
    pub batch: u64,
    /// Messages an agent may have unacknowledged.
    #[arg(long, default_value_t = 4, value_parser = clap::value_parser!(u8).range(1..))]
    pub window: u8,
    /// Seconds that are measured.
    #[arg(long, default_value = "20", value_parser = seconds)]
    pub duration: Duration,
    /// Seconds of the same load before that.
    #[arg(long, default_value = "3", value_parser = seconds)]
    pub warm_up: Duration,
}

/// What the service did in the measured time, and stored in all.
struct Measured {
    usage: Usage,
    acknowledged: u64,
    /// RSS under load, and the size of the data folder; bytes.
    memory: u64,
    stored: u64,
}

pub async fn run(options: &ServiceOptions, args: &BurstArgs) -> anyhow::Result<()> {
    check_connections(args.agents)?;
    let fixture = Fixture::start(options, args.agents).await?;
    let acknowledged = Arc::new(AtomicU64::new(0));
    let (source, stop) = StopSource::new();
    let agents = start_agents(&fixture, args, &acknowledged, &stop).await?;

    progress(format_args!("{} agents send batches; measuring for {} s", args.agents, args.duration.as_secs()));
    sleep(args.warm_up).await;
    let before = acknowledged.load(Ordering::Relaxed);
    let usage = usage::watch(&fixture.service, args.duration).await?;
    let acknowledged = acknowledged.load(Ordering::Relaxed) - before;
    let memory = fixture.service.memory()?.rss;
    source.stop();
    let mut outcome = Outcome::default();
    join_all(agents).await?.into_iter().for_each(|one| outcome.merge(one));
    let measured = Measured { usage, acknowledged, memory, stored: fixture.service.data_bytes() };
    report(args, &measured, outcome).finish()
}

async fn start_agents(
    fixture: &Fixture,
    args: &BurstArgs,
    acknowledged: &Arc<AtomicU64>,
    stop: &Stop,
) -> anyhow::Result<JoinSet<Outcome>> {
    let plan = BurstPlan {
        template: Template::new(usize::try_from(args.batch)?)?,
        batch: args.batch,
        window: args.window.into(),
        first: Timestamp::now().plus_millis(-FIRST_SAMPLE_AGO_MS),
        step_ms: STEP_MS,
        acknowledged: acknowledged.clone(),
    };
    let mut agents = JoinSet::new();
    for socket in connect_all(fixture.service.address(), &fixture.fleet).await? {
        agents.spawn(Burst { plan: plan.clone(), socket }.run(stop.clone()));
    }
    Ok(agents)
}

fn report(args: &BurstArgs, measured: &Measured, outcome: Outcome) -> Report {
    let Measured { usage, acknowledged, memory, stored } = measured;
    let samples = *acknowledged as f64;
    let mut report =
        Report::new(format!("burst: {} agents, batches of {}, window {}", args.agents, args.batch, args.window));
    report.note("samples acknowledged per second", format!("{:.0}", samples / usage.elapsed.as_secs_f64()));
    report.note("service CPU, % of one core", format!("{:.0}", usage.cpu_percent()));
    usage.note(&mut report);
    report.key_figure(
        "samples acknowledged per second and core of the service",
        Row::Burst,
        samples / usage.cpu_seconds().max(f64::EPSILON),
    );
    report.note("RSS, MB", format!("{:.1}", megabytes(*memory)));
    let per_sample = *stored as f64 / outcome.samples_acknowledged.max(1) as f64;
    report.note("bytes on disk per sample, everything counted", format!("{per_sample:.0}"));
    if let Some(latency) = outcome.ack_latencies.summary() {
        report.note("batch sent to acknowledged", latency);
    }
    report.must_be_zero("samples not acknowledged", outcome.samples_sent - outcome.samples_acknowledged);
    if let Some(failure) = outcome.failure {
        report.note("a connection failed", failure);
    }
    report
}
