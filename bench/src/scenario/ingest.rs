//! What realistic samples cost the service: as fast as it can, and for how many servers.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use clap::Args;
use signalbox_protocol::Timestamp;
use signalbox_protocol::agent::MAX_SAMPLES;
use tokio::task::JoinSet;
use tokio::time::sleep;

use super::{join_all, seconds};
use crate::agent::{Backfill, BackfillPlan, Outcome, Regular, RegularPlan, Source, connect_all};
use crate::data::{Batches, Dataset};
use crate::figures::Row;
use crate::fixture::Fixture;
use crate::limits::check_connections;
use crate::report::{Report, megabytes, progress, rounded};
use crate::service::ServiceOptions;
use crate::stop::StopSource;
use crate::usage::{self, Usage};

/// The most that an agent stores while the service is away, and sends when it is back.
const BACKLOG_MS: i64 = 24 * 3600 * 1000;

#[derive(Debug, Args)]
pub struct IngestArgs {
    /// Agents that catch up at a time.
    #[arg(long, default_value_t = 100)]
    pub agents: usize,
    /// Samples in a message of theirs.
    #[arg(long, default_value_t = 256, value_parser = clap::value_parser!(u64).range(1..=MAX_SAMPLES as u64))]
    pub batch: u64,
    /// Fleets that send one sample at a time, all of them together as many a second.
    #[arg(long, default_values_t = [100, 1_000, 10_000])]
    pub fleets: Vec<usize>,
    /// How many that are: 10,000 servers with one every 5 s.
    #[arg(long, default_value_t = 2_000.0)]
    pub rate: f64,
    /// Seconds that are measured each time.
    #[arg(long, default_value = "30", value_parser = seconds)]
    pub duration: Duration,
    /// Seconds of the same load before that.
    #[arg(long, default_value = "10", value_parser = seconds)]
    pub warm_up: Duration,
    #[arg(long, default_value_t = 42)]
    pub seed: u64,
}

/// What the service did in the measured time.
struct Measured {
    usage: Usage,
    acknowledged: u64,
    /// RSS, in bytes.
    memory: u64,
    outcome: Outcome,
}

pub async fn run(options: &ServiceOptions, args: &IngestArgs) -> anyhow::Result<()> {
    check_connections(args.fleets.iter().copied().max().unwrap_or(0).max(args.agents))?;
    let values = Dataset::ending_at(Timestamp::now(), args.seed, 1, 1.0, 5000).values_a_sample() as f64;
    let mut report = Report::new(format!("ingest: samples of {values} values"));
    let burst = catch_up(options, args).await?;
    report_burst(&mut report, args, &burst, values);
    let mut lost = unacknowledged(&burst);
    let mut costs = Vec::new();
    for servers in args.fleets.iter().copied() {
        let measured = live(options, args, servers).await?;
        costs.push(report_fleet(&mut report, servers, &measured));
        lost += unacknowledged(&measured);
    }
    if let (Some(first), Some(last)) = (costs.first(), costs.last()) {
        report.key_figure("CPU a sample, the last fleet by the first", Row::IngestFlat, last / first);
    }
    report.must_be_zero("samples not acknowledged", lost);
    report.finish()
}

/// Agents that hand over a day of samples, as fast as the acks allow.
async fn catch_up(options: &ServiceOptions, args: &IngestArgs) -> anyhow::Result<Measured> {
    let fixture = Fixture::start(options, args.agents).await?;
    // A second apart, so that a run does not reach their end.
    let first = Timestamp::now().plus_millis(-BACKLOG_MS);
    let data = Dataset { seed: args.seed, servers: args.agents, first, interval_ms: 1000, samples: 86_400 };
    let acknowledged = Arc::new(AtomicU64::new(0));
    let plan =
        BackfillPlan { batch: args.batch, window: 2, samples_a_second: None, acknowledged: acknowledged.clone() };
    let (source, stop) = StopSource::new();
    let mut agents = JoinSet::new();
    for (number, socket) in connect_all(fixture.service.address(), &fixture.fleet).await?.into_iter().enumerate() {
        let agent = Backfill { plan: plan.clone(), machine: data.machine(number), samples: data.samples, socket };
        agents.spawn(agent.run(stop.clone()));
    }
    progress(format_args!("{} agents catch up; measuring for {} s", args.agents, args.duration.as_secs()));
    measure(&fixture, args, &acknowledged, agents, source).await
}

/// Agents that send one sample an interval, which is the longer the more there are of them.
async fn live(options: &ServiceOptions, args: &IngestArgs, servers: usize) -> anyhow::Result<Measured> {
    let fixture = Fixture::start(options, servers).await?;
    let interval = Duration::from_secs_f64(servers as f64 / args.rate);
    let now = Timestamp::now();
    let interval_ms = i64::try_from(interval.as_millis())?.max(1);
    let data = Dataset { seed: args.seed, servers, first: now, interval_ms, samples: 0 };
    let acknowledged = Arc::new(AtomicU64::new(0));
    let plan = RegularPlan { interval, acknowledged: acknowledged.clone() };
    let (stop_source, stop) = StopSource::new();
    let mut agents = JoinSet::new();
    for (number, socket) in connect_all(fixture.service.address(), &fixture.fleet).await?.into_iter().enumerate() {
        let source = Source::Machine(Box::new(Batches::new(data.machine(number))));
        let agent = Regular { plan: plan.clone(), source, socket, sent_times: None };
        agents.spawn(agent.run(stop.clone()));
    }
    progress(format_args!("{servers} agents send; measuring for {} s", args.duration.as_secs()));
    measure(&fixture, args, &acknowledged, agents, stop_source).await
}

async fn measure(
    fixture: &Fixture,
    args: &IngestArgs,
    acknowledged: &AtomicU64,
    agents: JoinSet<Outcome>,
    stop: StopSource,
) -> anyhow::Result<Measured> {
    sleep(args.warm_up).await;
    let before = acknowledged.load(Ordering::Relaxed);
    let usage = usage::watch(&fixture.service, args.duration).await?;
    let acknowledged = acknowledged.load(Ordering::Relaxed) - before;
    let memory = fixture.service.memory()?.rss;
    stop.stop();
    let mut outcome = Outcome::default();
    join_all(agents).await?.into_iter().for_each(|one| outcome.merge(one));
    Ok(Measured { usage, acknowledged, memory, outcome })
}

fn unacknowledged(measured: &Measured) -> u64 {
    measured.outcome.samples_sent - measured.outcome.samples_acknowledged
}

fn report_burst(report: &mut Report, args: &IngestArgs, measured: &Measured, values: f64) {
    let Measured { usage, acknowledged, memory, outcome } = measured;
    let all = *acknowledged as f64 * values;
    report.note("catching up", format!("{} agents, batches of {}", args.agents, args.batch));
    report.note("values/s made durable", rounded(all / usage.elapsed.as_secs_f64()));
    report.key_figure(
        "values/s made durable per core of the service",
        Row::IngestPerCore,
        all / usage.cpu_seconds().max(f64::EPSILON),
    );
    report.note("service CPU, % of one core", format!("{:.0}", usage.cpu_percent()));
    usage.note(report);
    report.note("RSS, MB", format!("{:.1}", megabytes(*memory)));
    if let Some(latency) = outcome.ack_latencies.clone().summary() {
        report.note("batch sent to acknowledged", latency);
    }
    if let Some(failure) = &outcome.failure {
        report.note("a connection failed", failure);
    }
}

/// Answers the CPU time a sample, in microseconds.
fn report_fleet(report: &mut Report, servers: usize, measured: &Measured) -> f64 {
    let Measured { usage, acknowledged, memory, outcome } = measured;
    let micros = usage.cpu_seconds() * 1e6 / (*acknowledged as f64).max(1.0);
    let rate = *acknowledged as f64 / usage.elapsed.as_secs_f64();
    report.note(format!("{servers} servers: CPU µs a sample"), rounded(micros));
    let latency = outcome.ack_latencies.clone().summary();
    let latency = latency.map_or_else(String::new, |latency| format!("; sample sent to acknowledged {latency}"));
    let load = format!("{rate:.0} samples/s, RSS {:.1} MB{latency}", megabytes(*memory));
    report.note(format!("{servers} servers: load"), load);
    if let Some(failure) = &outcome.failure {
        report.note(format!("{servers} servers: a connection failed"), failure);
    }
    micros
}
