//! One command on a whole fleet.

use std::sync::Arc;
use std::time::{Duration, Instant};

use anyhow::Context;
use clap::Args;
use tokio::task::JoinSet;
use tokio::time::sleep;
use uuid::Uuid;

use super::join_all;
use crate::agent::{CommandTimes, OUTPUT, Obedient, Obeyed, connect_all};
use crate::figures::Row;
use crate::fixture::Fixture;
use crate::limits::check_connections;
use crate::process::Cpu;
use crate::report::{Report, megabytes, progress};
use crate::rest::{Rest, TAG};
use crate::service::ServiceOptions;
use crate::stats::median;
use crate::stop::{Stop, StopSource};

/// The pause between two polls of a batch, or as long as the last one took: each answer names every server, so polling costs
/// the service something.
const LOOK_EVERY: Duration = Duration::from_millis(20);
/// A batch that has not ended by then never will.
const PATIENCE: Duration = Duration::from_secs(120);
/// After the last batch, for the acks of its results.
const SETTLE: Duration = Duration::from_secs(2);
/// The aim is for a fleet of at most this size.
const AIM_AGENTS: usize = 1000;

#[derive(Debug, Args)]
pub struct FleetCommandArgs {
    #[arg(long, default_value_t = 1000)]
    pub agents: usize,
    /// How many of them run the command at a time; 1,000 is the most that the service takes.
    #[arg(long, default_value_t = 1000)]
    pub concurrency: u16,
    /// Batches, one after the other.
    #[arg(long, default_value_t = 5)]
    pub rounds: usize,
}

/// How one batch went.
struct Round {
    /// From the request until it was answered.
    accepted: Duration,
    /// Until the last agent received it.
    told: Duration,
    /// Until an answer said that all had succeeded.
    succeeded: Duration,
    cpu: Duration,
    missing: u64,
    wrong: u64,
}

pub async fn run(options: &ServiceOptions, args: &FleetCommandArgs) -> anyhow::Result<()> {
    check_connections(args.agents)?;
    let fixture = Fixture::start(options, args.agents).await?;
    let (source, stop) = StopSource::new();
    let told = Arc::new(CommandTimes::new());
    let agents = start_agents(&fixture, &told, &stop).await?;
    let mut rounds = Vec::new();
    for number in 1..=args.rounds.max(1) {
        progress(format_args!("batch {number} of {}", args.rounds));
        rounds.push(one_batch(&fixture, args, &told).await?);
    }
    sleep(SETTLE).await;
    source.stop();
    let mut obeyed = Obeyed::default();
    join_all(agents).await?.into_iter().for_each(|one| obeyed.merge(one));
    let rss = fixture.service.peak_rss()?;
    report(args, &rounds, obeyed, rss)?.finish()
}

async fn start_agents(fixture: &Fixture, told: &Arc<CommandTimes>, stop: &Stop) -> anyhow::Result<JoinSet<Obeyed>> {
    progress(format_args!("connecting {} agents", fixture.fleet.len()));
    let mut agents = JoinSet::new();
    for socket in connect_all(fixture.service.address(), &fixture.fleet).await? {
        agents.spawn(Obedient { socket, told: told.clone() }.run(stop.clone()));
    }
    Ok(agents)
}

async fn one_batch(fixture: &Fixture, args: &FleetCommandArgs, told: &CommandTimes) -> anyhow::Result<Round> {
    let (rest, total) = (&fixture.rest, args.agents as u64);
    let before = fixture.service.cpu()?;
    let start = Instant::now();
    let id = rest.start_batch(TAG, "uname -a", args.concurrency).await?;
    let accepted = start.elapsed();
    let succeeded_count = wait_for_end(rest, id, total, start).await?;
    let succeeded = start.elapsed();
    let told = told.last().saturating_duration_since(start);
    let cpu = cpu_since(fixture.service.cpu()?, before);
    let results = rest.batch_results(id).await?.results;
    let right = results.iter().filter(|result| result.preview == OUTPUT).count() as u64;
    Ok(Round { accepted, told, succeeded, cpu, missing: total - succeeded_count, wrong: total.abs_diff(right) })
}

/// Polls the batch until all of it has ended, and returns how many commands succeeded.
async fn wait_for_end(rest: &Rest, id: Uuid, total: u64, start: Instant) -> anyhow::Result<u64> {
    loop {
        let asked = Instant::now();
        let batch = rest.batch_counts(id).await?;
        if batch.open() == 0 || batch.succeeded() == total {
            return Ok(batch.succeeded().min(total));
        }
        anyhow::ensure!(start.elapsed() < PATIENCE, "the batch has not ended: {:?}", batch.counts);
        sleep(asked.elapsed().max(LOOK_EVERY)).await;
    }
}

fn cpu_since(now: Cpu, before: Cpu) -> Duration {
    now.since(before).total()
}

fn report(args: &FleetCommandArgs, rounds: &[Round], obeyed: Obeyed, rss: u64) -> anyhow::Result<Report> {
    let FleetCommandArgs { agents, concurrency, .. } = args;
    let mut report = Report::new(format!("fleet-command: a batch on {agents} agents, {concurrency} at a time"));
    let seconds =
        |of: fn(&Round) -> Duration| -> Vec<f64> { rounds.iter().map(|round| of(round).as_secs_f64()).collect() };
    let middle = |values: &[f64]| median(values).context("there was no batch");
    let all = seconds(|round| round.succeeded);
    let title = "from the request until all have succeeded, s (median)";
    match *agents <= AIM_AGENTS {
        true => report.key_figure(title, Row::FleetCommand, middle(&all)?),
        false => report.note(title, format!("{:.2}", middle(&all)?)),
    }
    report.note("the same, every batch, s", all.iter().map(|s| format!("{s:.2}")).collect::<Vec<_>>().join(", "));
    report
        .note("until the batch was accepted, s (median)", format!("{:.3}", middle(&seconds(|round| round.accepted))?));
    report
        .note("until the last agent received it, s (median)", format!("{:.2}", middle(&seconds(|round| round.told))?));
    let cpu = middle(&seconds(|round| round.cpu))? / *agents as f64 * 1e3;
    report.note("service CPU a command, ms (median)", format!("{cpu:.2}"));
    report.note("peak RSS of the service, MB", format!("{:.1}", megabytes(rss)));
    let due = (agents * rounds.len()) as u64;
    report.must_be_zero("commands that did not succeed", rounds.iter().map(|round| round.missing).sum());
    report.must_be_zero("outputs that are not what was sent", rounds.iter().map(|round| round.wrong).sum());
    report.must_be_zero("commands that no agent received, or twice", due.abs_diff(obeyed.commands) + obeyed.repeated);
    report.must_be_zero("results not acknowledged", obeyed.commands.saturating_sub(obeyed.settled));
    if let Some(failure) = obeyed.failure {
        report.note("a connection failed", failure);
    }
    Ok(report)
}
