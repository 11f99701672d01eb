//! The everyday load: many agents, one sample each every few seconds, a few dashboards.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use clap::Args;
use tokio::task::JoinSet;
use tokio::time::sleep;

use super::{join_all, seconds};
use crate::agent::{Outcome, Regular, RegularPlan, Source, connect_all};
use crate::dashboard::{Dashboard, DashboardReport};
use crate::figures::Row;
use crate::fixture::Fixture;
use crate::limits::check_connections;
use crate::process::Memory;
use crate::report::{Report, megabytes, progress};
use crate::sent_times::SentTimes;
use crate::service::ServiceOptions;
use crate::stop::{Stop, StopSource};
use crate::template::Template;
use crate::usage::{self, Usage};

#[derive(Debug, Args)]
pub struct SteadyArgs {
    #[arg(long, default_value_t = 10_000)]
    pub agents: usize,
    /// Seconds between two samples of an agent.
    #[arg(long, default_value = "5", value_parser = seconds)]
    pub interval: Duration,
    /// Seconds that are measured.
    #[arg(long, default_value = "60", value_parser = seconds)]
    pub duration: Duration,
    /// Seconds of the same load before that.
    #[arg(long, default_value = "15", value_parser = seconds)]
    pub warm_up: Duration,
    /// Servers that have a dashboard each.
    #[arg(long, default_value_t = 50)]
    pub watched: usize,
}

/// What the service did in the measured time.
struct Measured {
    usage: Usage,
    acknowledged: u64,
    memory: Memory,
}

pub async fn run(options: &ServiceOptions, args: &SteadyArgs) -> anyhow::Result<()> {
    check_connections(args.agents + args.watched)?;
    let fixture = Fixture::start(options, args.agents).await?;
    let (source, stop) = StopSource::new();
    let watched: Vec<Arc<SentTimes>> = (0..args.watched.min(args.agents)).map(|_| Arc::default()).collect();
    let dashboards = open_dashboards(&fixture, &watched, &stop).await?;
    let acknowledged = Arc::new(AtomicU64::new(0));
    let agents = start_agents(&fixture, args, &watched, &acknowledged, &stop).await?;

    progress(format_args!("{} agents send; measuring for {} s", args.agents, args.duration.as_secs()));
    sleep(args.warm_up).await;
    let before = acknowledged.load(Ordering::Relaxed);
    let usage = usage::watch(&fixture.service, args.duration).await?;
    let measured = Measured {
        usage,
        acknowledged: acknowledged.load(Ordering::Relaxed) - before,
        memory: fixture.service.memory()?,
    };
    source.stop();

    let mut outcome = Outcome::default();
    join_all(agents).await?.into_iter().for_each(|one| outcome.merge(one));
    let mut seen = DashboardReport::default();
    join_all(dashboards).await?.into_iter().for_each(|one| seen.merge(one));
    let due = watched.iter().map(|sent_times| sent_times.count() as u64).sum();
    report(args, &measured, outcome, seen, due).finish()
}

async fn open_dashboards(
    fixture: &Fixture,
    watched: &[Arc<SentTimes>],
    stop: &Stop,
) -> anyhow::Result<JoinSet<DashboardReport>> {
    let mut dashboards = JoinSet::new();
    for (enrolled, sent_times) in fixture.fleet.iter().zip(watched) {
        let (address, token) = (fixture.service.address(), fixture.rest.token());
        let dashboard = Dashboard::open(address, enrolled.server_id, token, sent_times.clone()).await?;
        dashboards.spawn(dashboard.run(stop.clone()));
    }
    Ok(dashboards)
}

async fn start_agents(
    fixture: &Fixture,
    args: &SteadyArgs,
    watched: &[Arc<SentTimes>],
    acknowledged: &Arc<AtomicU64>,
    stop: &Stop,
) -> anyhow::Result<JoinSet<Outcome>> {
    progress(format_args!("connecting {} agents", args.agents));
    let plan = RegularPlan { interval: args.interval, acknowledged: acknowledged.clone() };
    let template = Template::new(1)?;
    let mut agents = JoinSet::new();
    for (number, socket) in connect_all(fixture.service.address(), &fixture.fleet).await?.into_iter().enumerate() {
        let agent = Regular {
            plan: plan.clone(),
            source: Source::Template(template.clone()),
            socket,
            sent_times: watched.get(number).cloned(),
        };
        agents.spawn(agent.run(stop.clone()));
    }
    Ok(agents)
}

fn report(args: &SteadyArgs, measured: &Measured, outcome: Outcome, seen: DashboardReport, due: u64) -> Report {
    let Measured { usage, acknowledged, memory } = measured;
    let rate = *acknowledged as f64 / usage.elapsed.as_secs_f64();
    let mut report =
        Report::new(format!("steady: {} agents, a sample every {} s", args.agents, args.interval.as_secs_f64()));
    report.key_figure("service CPU, % of one core", Row::SteadyCpu, usage.cpu_percent());
    usage.note(&mut report);
    report.key_figure("RSS, MB", Row::SteadyRss, megabytes(memory.rss));
    report.note("PSS, MB", format!("{:.1}", megabytes(memory.pss)));
    report.note("samples acknowledged per second", format!("{rate:.0}"));
    if let Some(latency) = outcome.ack_latencies.summary() {
        report.note("sample sent to acknowledged", latency);
    }
    if let Some(latency) = seen.latencies.summary() {
        report.note("sample sent to dashboard received", latency);
        report.key_figure("sample to dashboard p99, ms", Row::SteadyDashboard, latency.p99.as_secs_f64() * 1000.0);
    }
    report.must_be_zero("samples not acknowledged", outcome.samples_sent - outcome.samples_acknowledged);
    report.must_be_zero("samples missing on a dashboard", due.abs_diff(seen.received));
    if let Some(failure) = outcome.failure.or(seen.failure) {
        report.note("a connection failed", failure);
    }
    report
}
