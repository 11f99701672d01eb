//! Durability: the service is killed again and again while it takes samples, seals and compacts, and nothing
//! acknowledged may be missing, doubled or changed.

use std::collections::HashMap;
use std::time::Duration;

use clap::Args;
use signalbox_protocol::{Sample, Timestamp};
use tokio::sync::mpsc;
use tokio::task::JoinSet;
use tokio::time::sleep;

use super::history::wait_until_settled;
use super::join_all;
use crate::agent::{DeliveryReport, Resilient, ResilientPlan, Schedule, connect_all};
use crate::bucket::Bucket;
use crate::data::hour_of;
use crate::fixture::{Enrolled, Fixture};
use crate::report::{Report, progress};
use crate::rest::Rest;
use crate::service::ServiceOptions;
use crate::stop::{Stop, StopSource};
use crate::template::{Changing, Template};

/// Samples in a message.
pub const BATCH: i64 = 10;
/// Between two messages of an agent.
const INTERVAL: Duration = Duration::from_millis(20);
/// Messages an agent keeps while the service is away.
const KEPT: usize = 200;
/// Samples are a tenth of a second apart: fifty kills come to some minutes of each stretch of time.
pub const STEP_MS: i64 = 100;
/// Ranges begin a little before the end of a past hour, so that a run writes both to hours that are finished and to those that
/// become so, on past days and on the current one.
const STRETCHES_AGO_HOURS: [i64; 5] = [3, 6, 27, 50, 73];
const BEFORE_THE_HOUR_MS: i64 = 2 * 60_000;
/// One more runs up to the present, and passes it by no more than the service allows.
const PRESENT_AGO_MS: i64 = 20 * 60_000;
/// How long the service may take to seal everything afterwards.
const SETTLE_TIMEOUT: Duration = Duration::from_secs(300);
/// The service runs for a random time between these before it is killed: sometimes it has hardly begun.
const SHORTEST_RUN: Duration = Duration::from_millis(200);
const LONGEST_RUN: Duration = Duration::from_millis(2500);
/// Batches in one history request: 5,000 samples, a quarter of the limit.
const BATCHES_A_PAGE: usize = 500;

#[derive(Debug, Args)]
pub struct KillArgs {
    #[arg(long, default_value_t = 50)]
    pub rounds: u32,
    #[arg(long, default_value_t = 20)]
    pub agents: usize,
}

/// What the history contains of one server's acknowledged samples.
#[derive(Debug, Default, PartialEq, Eq)]
pub struct Verdict {
    pub acknowledged: u64,
    pub missing: u64,
    pub doubled: u64,
    /// Stored with other values than were sent.
    pub changed: u64,
}

impl Verdict {
    fn add(&mut self, other: &Self) {
        self.acknowledged += other.acknowledged;
        self.missing += other.missing;
        self.doubled += other.doubled;
        self.changed += other.changed;
    }
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
    judge(&mut fixture.rest, ledgers, args).await?.finish()
}

/// Where each stretch of time begins.
fn schedule(now: Timestamp) -> Schedule {
    let ago = |hours: i64| hour_of(now).plus_millis(-hours * 3_600_000 - BEFORE_THE_HOUR_MS);
    Schedule::in_turns(STRETCHES_AGO_HOURS.map(ago).into_iter().chain([now.plus_millis(-PRESENT_AGO_MS)]))
}

async fn start_agents(fixture: &Fixture, stop: &Stop) -> anyhow::Result<JoinSet<(Enrolled, DeliveryReport)>> {
    let plan = ResilientPlan {
        template: Template::new(usize::try_from(BATCH)?)?,
        batch: BATCH,
        interval: INTERVAL,
        schedule: schedule(Timestamp::now()),
        step_ms: STEP_MS,
        kept: KEPT,
    };
    // Nobody receives the events here.
    let (events, _) = mpsc::channel(1);
    let address = fixture.service.address();
    let mut agents = JoinSet::new();
    let sockets = connect_all(address, &fixture.fleet).await?;
    for (number, (socket, enrolled)) in sockets.into_iter().zip(fixture.fleet.iter().cloned()).enumerate() {
        let (plan, events, stop) = (plan.clone(), events.clone(), stop.clone());
        let agent = Resilient { plan, number, addresses: vec![address], enrolled: enrolled.clone(), events };
        agents.spawn(async move { (enrolled, agent.run(socket, stop).await) });
    }
    Ok(agents)
}

async fn judge(
    rest: &mut Rest,
    mut ledgers: Vec<(Enrolled, DeliveryReport)>,
    args: &KillArgs,
) -> anyhow::Result<Report> {
    let mut report = Report::new(format!("kill: {} times kill -9 under {} sending agents", args.rounds, args.agents));
    // Batches came from several stretches in turns.
    ledgers.iter_mut().for_each(|(_, ledger)| ledger.acknowledged.sort_unstable());
    rest.renew().await?;
    progress("reading the history back");
    note(&mut report, "at once", &read_all_back(rest, &ledgers).await?);
    progress("waiting until everything is sealed");
    report.note("sealing and compacting", wait_until_settled(rest, SETTLE_TIMEOUT).await?);
    rest.renew().await?;
    progress("reading the history back again");
    note(&mut report, "when sealed", &read_all_back(rest, &ledgers).await?);
    let mut wrong = 0;
    for (enrolled, ledger) in &ledgers {
        wrong += wrong_minutes(rest, enrolled, ledger).await?;
    }
    report.must_be_zero("minutes whose mean, minimum or maximum is not that of their samples", wrong);
    let unacknowledged: usize = ledgers.iter().map(|(_, ledger)| ledger.unacknowledged.len()).sum();
    report.must_be_zero("samples never acknowledged", unacknowledged as u64 * BATCH as u64);
    if let Some(failure) = ledgers.iter().find_map(|(_, ledger)| ledger.last_failure.as_ref()) {
        report.note("the last failure of a connection", failure);
    }
    Ok(report)
}

fn note(report: &mut Report, when: &str, total: &Verdict) {
    report.note(format!("samples acknowledged, {when}"), total.acknowledged);
    report.must_be_zero(format!("of them missing, {when}"), total.missing);
    report.must_be_zero(format!("of them stored more than once, {when}"), total.doubled);
    report.must_be_zero(format!("of them stored with other values, {when}"), total.changed);
}

/// Looks for every acknowledged sample of all servers.
pub async fn read_all_back(rest: &Rest, ledgers: &[(Enrolled, DeliveryReport)]) -> anyhow::Result<Verdict> {
    let mut total = Verdict::default();
    for (enrolled, ledger) in ledgers {
        total.add(&read_back(rest, enrolled, ledger).await?);
    }
    Ok(total)
}

/// Looks for every acknowledged sample of a server, page by page.
async fn read_back(rest: &Rest, enrolled: &Enrolled, ledger: &DeliveryReport) -> anyhow::Result<Verdict> {
    let mut verdict = Verdict::default();
    for batches in ledger.acknowledged.chunks(BATCHES_A_PAGE) {
        let due: Vec<Timestamp> = batches.iter().flat_map(|first| times(*first)).collect();
        let (Some(start), Some(end)) = (due.iter().min(), due.iter().max()) else { continue };
        // Then it does not matter whether the end itself belongs to the answer.
        let stored = rest.raw_history(enrolled.server_id, *start, end.plus_millis(1)).await?;
        verdict.add(&compare(&due, &stored));
    }
    Ok(verdict)
}

/// The times of a batch's samples.
fn times(first: Timestamp) -> impl Iterator<Item = Timestamp> {
    (0..BATCH).map(move |number| first.plus_millis(number * STEP_MS))
}

fn compare(due: &[Timestamp], stored: &[Sample]) -> Verdict {
    let mut found: HashMap<Timestamp, Vec<&Sample>> = HashMap::new();
    for sample in stored {
        found.entry(sample.timestamp).or_default().push(sample);
    }
    let mut verdict = Verdict { acknowledged: due.len() as u64, ..Verdict::default() };
    for time in due {
        match found.get(time).map(Vec::as_slice) {
            None | Some([]) => verdict.missing += 1,
            Some([sample]) if Changing::of(sample) == Some(Changing::at(*time)) => {}
            Some([_]) => verdict.changed += 1,
            Some(_) => verdict.doubled += 1,
        }
    }
    verdict
}

/// Minutes of a server that differ from their samples: the service returns other values, values without samples, or none for
/// samples.
async fn wrong_minutes(rest: &Rest, enrolled: &Enrolled, ledger: &DeliveryReport) -> anyhow::Result<u64> {
    let mut due = minutes(&ledger.acknowledged);
    let (Some(first), Some(last)) = (due.keys().min().copied(), due.keys().max().copied()) else { return Ok(0) };
    let (start, end) = (Timestamp::from_millis(first * 1000), Timestamp::from_millis((last + 60) * 1000 - 1));
    let told = rest.series(enrolled.server_id, start, end, "1m", "cpu_percent").await?;
    let Some(column) = told.series.get("cpu_percent") else { return Ok(due.len() as u64) };
    let mut wrong = 0;
    for (index, begin) in told.timestamps.iter().enumerate() {
        let is_told = column.avg.get(index).is_some_and(Option::is_some);
        wrong += match due.remove(begin) {
            Some(bucket) => u64::from(!bucket.is_told_by(column, index)),
            // A gap may be returned as an empty point.
            None => u64::from(is_told),
        };
    }
    Ok(wrong + due.len() as u64)
}

/// The percentages of some batches by the minute in which their samples were taken.
fn minutes(batches: &[Timestamp]) -> HashMap<i64, Bucket> {
    let mut minutes: HashMap<i64, Bucket> = HashMap::new();
    for time in batches.iter().flat_map(|first| times(*first)) {
        let value = Changing::at(time).cpu_percent;
        let minute = time.as_seconds().div_euclid(60) * 60;
        minutes.entry(minute).and_modify(|bucket| bucket.add(value)).or_insert_with(|| Bucket::of(value));
    }
    minutes
}

#[cfg(test)]
mod tests {
    use signalbox_protocol::agent::AgentMessage;
    use signalbox_protocol::{Decoded, Encoding};

    use super::*;

    fn sample_at(millis: i64) -> Sample {
        let message = Template::new(1).unwrap().message(1, Timestamp::from_millis(millis), 0);
        let Decoded::Known(AgentMessage::Metrics(metrics)) = Encoding::MessagePack.decode(&message).unwrap() else {
            panic!("not a metrics message");
        };
        metrics.samples.into_iter().next().unwrap()
    }

    #[test]
    fn every_acknowledged_sample_must_be_there_exactly_once_and_as_it_was_sent() {
        let due = [1, 2, 3, 4].map(Timestamp::from_millis);
        let mut changed = sample_at(4);
        changed.memory_used += 1;
        // 9 was stored without an ack that arrived, which is correct.
        let stored = [sample_at(1), sample_at(2), sample_at(2), changed, sample_at(9)];

        let verdict = compare(&due, &stored);

        assert_eq!(verdict, Verdict { acknowledged: 4, missing: 1, doubled: 1, changed: 1 });
    }

    #[test]
    fn a_batch_is_ten_samples_a_step_apart() {
        let all: Vec<i64> = times(Timestamp::from_millis(1000)).map(Timestamp::as_millis).collect();

        assert_eq!(all, [1000, 1100, 1200, 1300, 1400, 1500, 1600, 1700, 1800, 1900]);
    }

    #[test]
    fn samples_belong_to_the_minute_they_were_taken_in() {
        let batches = [59_500, 119_000].map(Timestamp::from_millis);

        let minutes = minutes(&batches);

        let value = |millis| Changing::at(Timestamp::from_millis(millis)).cpu_percent;
        let mut first = Bucket::of(value(59_500));
        (1..5).for_each(|number| first.add(value(59_500 + number * 100)));
        assert_eq!(minutes.len(), 2);
        assert_eq!(minutes.get(&0), Some(&first));
    }
}
