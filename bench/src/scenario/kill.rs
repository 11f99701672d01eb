//! Durability: the service is killed again and again while it takes samples, and nothing acknowledged may be missing.

use std::collections::HashMap;
use std::time::Duration;

use clap::Args;
use signalbox_protocol::Timestamp;
use tokio::sync::mpsc;
use tokio::task::JoinSet;
use tokio::time::sleep;

use super::join_all;
use crate::agent::{Ledger, Resilient, ResilientPlan, connect_all};
use crate::fixture::{Enrolled, Fixture};
use crate::report::{Report, progress};
use crate::rest::Rest;
use crate::service::ServiceOptions;
use crate::stop::{Stop, StopSource};
use crate::template::Template;

/// Samples in a message.
const BATCH: i64 = 10;
/// Between two messages of an agent.
const INTERVAL: Duration = Duration::from_millis(20);
/// Messages an agent keeps while the service is away.
const KEPT: usize = 200;
/// Samples are a tenth of a second apart and start a day ago, so that none is in the future.
const STEP_MS: i64 = 100;
const FIRST_SAMPLE_AGO_MS: i64 = 24 * 3600 * 1000;
/// The service runs for a random time between these before it is killed: sometimes it has hardly begun.
const SHORTEST_RUN: Duration = Duration::from_millis(200);
const LONGEST_RUN: Duration = Duration::from_millis(2500);
/// Batches that one history request covers: 5,000 samples, a quarter of what it may hold.
const BATCHES_A_PAGE: usize = 500;

#[derive(Debug, Args)]
pub struct KillArgs {
    #[arg(long, default_value_t = 10)]
    pub rounds: u32,
    #[arg(long, default_value_t = 20)]
    pub agents: usize,
}

/// What the history says of one server's acknowledged samples.
#[derive(Debug, Default, PartialEq, Eq)]
struct Verdict {
    acknowledged: u64,
    missing: u64,
    doubled: u64,
}

pub async fn run(options: &ServiceOptions, args: &KillArgs) -> anyhow::Result<()> {
    let mut fixture = Fixture::start(options, args.agents).await?;
    let (source, stop) = StopSource::new();
    let agents = start_agents(&fixture, &stop).await?;
    for round in 1..=args.rounds {
        sleep(SHORTEST_RUN + (LONGEST_RUN - SHORTEST_RUN).mul_f64(fastrand::f64())).await;
        progress(format_args!("kill {round} of {}", args.rounds));
        fixture.service.kill().await?;
        fixture.service.restart().await?;
    }
    sleep(LONGEST_RUN).await;
    source.stop();
    let ledgers = join_all(agents).await?;
    judge(&fixture.rest, &ledgers, args).await?.finish()
}

async fn start_agents(fixture: &Fixture, stop: &Stop) -> anyhow::Result<JoinSet<(Enrolled, Ledger)>> {
    let plan = ResilientPlan {
        template: Template::new(usize::try_from(BATCH)?)?,
        batch: BATCH,
        interval: INTERVAL,
        first: Timestamp::now().plus_millis(-FIRST_SAMPLE_AGO_MS),
        step_ms: STEP_MS,
        kept: KEPT,
    };
    // Nobody listens to the events here.
    let (events, _) = mpsc::channel(1);
    let address = fixture.service.address();
    let mut agents = JoinSet::new();
    let sockets = connect_all(address, &fixture.fleet).await?;
    for (number, (socket, enrolled)) in sockets.into_iter().zip(fixture.fleet.iter().cloned()).enumerate() {
        let (plan, events, stop) = (plan.clone(), events.clone(), stop.clone());
        let agent = Resilient { plan, number, address, enrolled: enrolled.clone(), events };
        agents.spawn(async move { (enrolled, agent.run(socket, stop).await) });
    }
    Ok(agents)
}

async fn judge(rest: &Rest, ledgers: &[(Enrolled, Ledger)], args: &KillArgs) -> anyhow::Result<Report> {
    progress("reading the history back");
    let mut total = Verdict::default();
    for (enrolled, ledger) in ledgers {
        let verdict = read_back(rest, enrolled, ledger).await?;
        total.acknowledged += verdict.acknowledged;
        total.missing += verdict.missing;
        total.doubled += verdict.doubled;
    }
    let unacknowledged: usize = ledgers.iter().map(|(_, ledger)| ledger.unacknowledged.len()).sum();
    let mut report = Report::new(format!("kill: {} times kill -9 under {} sending agents", args.rounds, args.agents));
    report.note("samples acknowledged", total.acknowledged);
    report.must_be_zero("acknowledged samples missing", total.missing);
    report.must_be_zero("acknowledged samples stored more than once", total.doubled);
    report.must_be_zero("samples never acknowledged", unacknowledged as u64 * BATCH as u64);
    if let Some(failure) = ledgers.iter().find_map(|(_, ledger)| ledger.last_failure.as_ref()) {
        report.note("the last failure of a connection", failure);
    }
    Ok(report)
}

/// Looks for every acknowledged sample of a server, page by page.
async fn read_back(rest: &Rest, enrolled: &Enrolled, ledger: &Ledger) -> anyhow::Result<Verdict> {
    let mut verdict = Verdict::default();
    for batches in ledger.acknowledged.chunks(BATCHES_A_PAGE) {
        let due: Vec<Timestamp> = batches.iter().flat_map(|first| times(*first)).collect();
        let (Some(start), Some(end)) = (due.iter().min(), due.iter().max()) else { continue };
        // Whether the end itself belongs to the answer does not matter this way.
        let stored = rest.raw_history(enrolled.server_id, *start, end.plus_millis(1)).await?;
        let page = compare(&due, stored.into_iter().map(|snapshot| snapshot.timestamp));
        verdict.acknowledged += page.acknowledged;
        verdict.missing += page.missing;
        verdict.doubled += page.doubled;
    }
    Ok(verdict)
}

/// The times of a batch's samples.
fn times(first: Timestamp) -> impl Iterator<Item = Timestamp> {
    (0..BATCH).map(move |number| first.plus_millis(number * STEP_MS))
}

fn compare(due: &[Timestamp], stored: impl Iterator<Item = Timestamp>) -> Verdict {
    let mut counts: HashMap<Timestamp, u64> = HashMap::new();
    for time in stored {
        *counts.entry(time).or_default() += 1;
    }
    let mut verdict = Verdict { acknowledged: due.len() as u64, ..Verdict::default() };
    for time in due {
        match counts.get(time) {
            None => verdict.missing += 1,
            Some(1) => {}
            Some(_) => verdict.doubled += 1,
        }
    }
    verdict
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_acknowledged_sample_must_be_there_exactly_once() {
        let at = Timestamp::from_millis;
        let due = [at(1), at(2), at(3)];
        // 9 was stored without its ack having arrived, which is nobody's fault.
        let stored = [at(1), at(2), at(2), at(9)];

        let verdict = compare(&due, stored.into_iter());

        assert_eq!(verdict, Verdict { acknowledged: 3, missing: 1, doubled: 1 });
    }

    #[test]
    fn a_batch_is_ten_samples_a_step_apart() {
        let all: Vec<i64> = times(Timestamp::from_millis(1000)).map(Timestamp::as_millis).collect();

        assert_eq!(all, [1000, 1100, 1200, 1300, 1400, 1500, 1600, 1700, 1800, 1900]);
    }
}
