//! The cost of thresholds: the same load without and with them, in turns, because the machine's speed varies.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::{Duration, Instant};

use anyhow::Context;
use clap::Args;
use serde_json::{Value, json};
use tokio::task::JoinSet;
use tokio::time::sleep;
use uuid::Uuid;

use super::{join_all, seconds};
use crate::agent::{Outcome, Regular, RegularPlan, Source, connect_all};
use crate::figures::Row;
use crate::fixture::Fixture;
use crate::limits::check_connections;
use crate::report::{Report, megabytes, progress, rounded};
use crate::service::ServiceOptions;
use crate::stats::median;
use crate::stop::{Stop, StopSource};
use crate::template::Template;
use crate::usage::{Usage, watch};

/// For each server: metric, comparison, value, and for how many seconds. No sample crosses any of them.
const THRESHOLDS: [(&str, &str, f64, u32); 10] = [
    ("cpu", "gt", 100.0, 0),
    ("cpu", "gte", 100.0, 300),
    ("memory", "gt", 90.0, 0),
    ("memory", "lt", 1.0, 600),
    ("swap", "gt", 80.0, 60),
    ("disk", "gt", 90.0, 0),
    ("load", "gt", 16.0, 300),
    ("network_in", "gt", 1e9, 0),
    ("network_out", "gt", 1e9, 60),
    ("temperature", "gt", 90.0, 0),
];

#[derive(Debug, Args)]
pub struct ThresholdsArgs {
    #[arg(long, default_value_t = 10_000)]
    pub agents: usize,
    /// Seconds between two samples of an agent.
    #[arg(long, default_value = "5", value_parser = seconds)]
    pub interval: Duration,
    /// How often the load is measured without and with thresholds.
    #[arg(long, default_value_t = 4)]
    pub rounds: usize,
    /// Seconds that are measured each time.
    #[arg(long, default_value = "30", value_parser = seconds)]
    pub duration: Duration,
    /// Seconds of the same load before that.
    #[arg(long, default_value = "10", value_parser = seconds)]
    pub warm_up: Duration,
}

/// What the service did in a measured time.
struct Measured {
    usage: Usage,
    acknowledged: u64,
    /// RSS, in bytes.
    memory: u64,
}

struct Round {
    without: Measured,
    with: Measured,
    /// Until all thresholds were created and applied, and until all were gone.
    made: Duration,
    gone: Duration,
}

/// A running load.
struct Site<'a> {
    fixture: &'a Fixture,
    args: &'a ThresholdsArgs,
    acknowledged: Arc<AtomicU64>,
}

pub async fn run(options: &ServiceOptions, args: &ThresholdsArgs) -> anyhow::Result<()> {
    check_connections(args.agents)?;
    let mut fixture = Fixture::start(options, args.agents).await?;
    let (source, stop) = StopSource::new();
    let acknowledged = Arc::new(AtomicU64::new(0));
    let agents = start_agents(&fixture, args, &acknowledged, &stop).await?;
    let mut rounds = Vec::new();
    for number in 1..=args.rounds.max(1) {
        progress(format_args!("round {number} of {}", args.rounds));
        // Making ten thousand servers, and a few rounds, take longer than a token lasts.
        fixture.rest.renew().await?;
        rounds.push(Site { fixture: &fixture, args, acknowledged: acknowledged.clone() }.round().await?);
    }
    source.stop();
    let mut outcome = Outcome::default();
    join_all(agents).await?.into_iter().for_each(|one| outcome.merge(one));
    report(args, &rounds, outcome, fixture.rest.alert_count().await?)?.finish()
}

async fn start_agents(
    fixture: &Fixture,
    args: &ThresholdsArgs,
    acknowledged: &Arc<AtomicU64>,
    stop: &Stop,
) -> anyhow::Result<JoinSet<Outcome>> {
    progress(format_args!("connecting {} agents", args.agents));
    let plan = RegularPlan { interval: args.interval, acknowledged: acknowledged.clone() };
    let template = Template::new(1)?;
    let mut agents = JoinSet::new();
    for socket in connect_all(fixture.service.address(), &fixture.fleet).await? {
        let source = Source::Template(template.clone());
        agents.spawn(Regular { plan: plan.clone(), source, socket, sent_times: None }.run(stop.clone()));
    }
    Ok(agents)
}

impl Site<'_> {
    async fn round(&self) -> anyhow::Result<Round> {
        let without = self.measure().await?;
        let start = Instant::now();
        let mut made_ids = Vec::new();
        for threshold in THRESHOLDS {
            made_ids.push(self.fixture.rest.create_threshold(&template(threshold)).await?);
        }
        let made = start.elapsed();
        let with = self.measure().await?;
        let gone = self.remove(&made_ids).await?;
        Ok(Round { without, with, made, gone })
    }

    async fn remove(&self, ids: &[Uuid]) -> anyhow::Result<Duration> {
        let start = Instant::now();
        for id in ids {
            self.fixture.rest.delete_threshold(*id).await?;
        }
        Ok(start.elapsed())
    }

    async fn measure(&self) -> anyhow::Result<Measured> {
        sleep(self.args.warm_up).await;
        let before = self.acknowledged.load(Ordering::Relaxed);
        let usage = watch(&self.fixture.service, self.args.duration).await?;
        let acknowledged = self.acknowledged.load(Ordering::Relaxed) - before;
        Ok(Measured { usage, acknowledged, memory: self.fixture.service.memory()?.rss })
    }
}

/// One threshold for all servers.
fn template((metric_type, comparison, value, seconds): (&str, &str, f64, u32)) -> Value {
    json!({
        "all": true, "metric_type": metric_type, "comparison": comparison, "threshold_value": value, "enabled": true,
        "duration_seconds": seconds,
    })
}

impl Measured {
    /// CPU time of the service a sample, in microseconds.
    fn micros(&self) -> f64 {
        self.usage.cpu_seconds() * 1e6 / (self.acknowledged as f64).max(1.0)
    }
}

fn report(args: &ThresholdsArgs, rounds: &[Round], outcome: Outcome, alerts: u64) -> anyhow::Result<Report> {
    let ThresholdsArgs { agents, interval, .. } = args;
    let count = THRESHOLDS.len();
    let mut report = Report::new(format!(
        "thresholds: {count} of each of {agents} servers, a sample every {} s",
        interval.as_secs_f64()
    ));
    let each = |of: &dyn Fn(&Round) -> f64| -> Vec<f64> { rounds.iter().map(of).collect() };
    let middle = |values: &[f64]| median(values).context("there was no round");
    let without = each(&|round| round.without.micros());
    let with = each(&|round| round.with.micros());
    let cost = each(&|round| (round.with.micros() - round.without.micros()) / count as f64);
    report.note("service CPU a sample without, µs (median)", rounded(middle(&without)?));
    report.note("with, µs (median)", rounded(middle(&with)?));
    let title = "a threshold, µs a sample (median of the rounds' differences)";
    report.key_figure(title, Row::ThresholdsCost, middle(&cost)?);
    report.note("the same, every round, µs", listed(&cost));
    report.note("without, every round, µs", listed(&without));
    report.note("with, every round, µs", listed(&with));
    let rate = each(&|round| round.with.acknowledged as f64 / round.with.usage.elapsed.as_secs_f64());
    report.note("samples acknowledged per second, with", rounded(middle(&rate)?));
    let percent = each(&|round| round.with.usage.cpu_percent());
    report.note("service CPU with, % of one core", rounded(middle(&percent)?));
    let memory = |measured: &Measured| megabytes(measured.memory);
    report.note("RSS without, every round, MB", listed(&each(&|round| memory(&round.without))));
    report.note("RSS with, every round, MB", listed(&each(&|round| memory(&round.with))));
    // Of the first round: the next ones reuse the memory that evaluators have freed.
    let grown = rounds.first().map(|round| memory(&round.with) - memory(&round.without)).unwrap_or_default();
    let of_a_server = grown * 1e3 / *agents as f64;
    report.key_figure("memory a server in the first round, KB", Row::ThresholdsMemory, of_a_server);
    report.note("until all thresholds were applied, s", listed(&each(&|round| round.made.as_secs_f64())));
    report.note("until all were gone, s", listed(&each(&|round| round.gone.as_secs_f64())));
    if let Some(latency) = outcome.ack_latencies.summary() {
        report.note("sample sent to acknowledged, with changes of thresholds", latency);
    }
    report.must_be_zero("samples not acknowledged", outcome.samples_sent - outcome.samples_acknowledged);
    report.must_be_zero("alerts that nothing gave cause for", alerts);
    if let Some(failure) = outcome.failure {
        report.note("a connection failed", failure);
    }
    Ok(report)
}

fn listed(values: &[f64]) -> String {
    values.iter().map(|value| rounded(*value)).collect::<Vec<_>>().join(", ")
}
