//! One instance compared with two and three on one PostgreSQL: their throughput, and the cost of each sample.

mod load;
mod stored;

use std::time::Duration;

use clap::Args;
use signalbox_protocol::Timestamp;
use signalbox_protocol::agent::MAX_SAMPLES;
use tokio::time::sleep;

use self::load::{Measured, as_fast_as_it_goes, at_a_pace};
use self::stored::{Sizes, StoredPlan};
use super::seconds;
use crate::cluster::{Cluster, Spent};
use crate::data::hour_of;
use crate::figures::Row;
use crate::limits::check_connections;
use crate::report::{Report, in_one_line, megabytes, progress, rounded};
use crate::service::ServiceOptions;
use crate::stats::median;

/// From the start of the scenario until all but the realistic samples is measured: three minutes, and some room.
const MEASURED_WITHIN: Duration = Duration::from_secs(5 * 60);

#[derive(Debug, Args)]
pub struct InstancesArgs {
    /// How many instances take their turns.
    #[arg(long, value_delimiter = ',', default_values_t = [1, 2, 3])]
    pub counts: Vec<usize>,
    /// How often each has its turn, as fast as it goes.
    #[arg(long, default_value_t = 3)]
    pub rounds: usize,
    /// Agents that send as fast as they are acknowledged.
    #[arg(long, default_value_t = 200)]
    pub agents: usize,
    /// Samples in a message of theirs.
    #[arg(long, default_value_t = 10, value_parser = clap::value_parser!(u64).range(1..=MAX_SAMPLES as u64))]
    pub batch: u64,
    /// Messages that each of them may have unacknowledged.
    #[arg(long, default_value_t = 2, value_parser = clap::value_parser!(u8).range(1..))]
    pub window: u8,
    /// Seconds that are measured in each of these turns.
    #[arg(long, default_value = "5", value_parser = seconds)]
    pub duration: Duration,
    /// Agents that send a sample at an interval.
    #[arg(long, default_value_t = 3_000)]
    pub steady_agents: usize,
    /// Seconds between two samples of these.
    #[arg(long, default_value = "5", value_parser = seconds)]
    pub interval: Duration,
    /// Seconds of it that are measured.
    #[arg(long, default_value = "15", value_parser = seconds)]
    pub steady_duration: Duration,
    /// Servers that hand over hours of realistic samples, which are then sealed.
    #[arg(long, default_value_t = 20)]
    pub old_servers: usize,
    /// Hours of these, all of them over.
    #[arg(long, default_value_t = 2)]
    pub old_hours: u8,
    /// How long sealing them may take.
    #[arg(long, default_value = "120", value_parser = seconds)]
    pub settle_timeout: Duration,
    #[arg(long, default_value_t = 42)]
    pub seed: u64,
}

/// The results of this many instances, each time.
struct Turns {
    count: usize,
    fast: Vec<Measured>,
    steady: Option<Measured>,
}

pub async fn run(options: &ServiceOptions, args: &InstancesArgs) -> anyhow::Result<()> {
    let live = args.agents.max(args.steady_agents);
    check_connections(live)?;
    wait_for_a_whole_hour().await;
    let mut cluster = Cluster::start(options, live + args.old_servers).await?;
    let mut turns: Vec<Turns> =
        args.counts.iter().map(|count| Turns { count: (*count).max(1), fast: Vec::new(), steady: None }).collect();
    // First, because what is sent as fast as it goes is put in order behind it: a sample at a pace would cost up to twice as much.
    for turn in &mut turns {
        progress(format_args!("a sample every {} s: {} instances", args.interval.as_secs_f64(), turn.count));
        cluster.resize(turn.count).await?;
        turn.steady = Some(at_a_pace(&cluster, args).await?);
    }
    for round in 1..=args.rounds {
        for turn in &mut turns {
            progress(format_args!("as fast as it goes, round {round} of {}: {} instances", args.rounds, turn.count));
            cluster.resize(turn.count).await?;
            turn.fast.push(as_fast_as_it_goes(&cluster, args).await?);
        }
    }
    cluster.renew().await?;
    let plan = StoredPlan {
        first_server: live,
        servers: args.old_servers,
        hours: args.old_hours,
        seed: args.seed,
        patience: args.settle_timeout,
    };
    // The table is useful without this.
    let sizes = stored::measure(&cluster, &plan).await;
    report(args, turns, sizes).finish()
}

/// An hour that ends while samples are measured is sealed at once, with all that was sent in it: a sample then cost up to six times
/// as much.
async fn wait_for_a_whole_hour() {
    let now = Timestamp::now();
    let end = hour_of(now).plus_millis(3_600_000);
    let left = Duration::from_millis(u64::try_from(end.as_millis() - now.as_millis()).unwrap_or_default());
    if left < MEASURED_WITHIN {
        progress(format_args!("{} s until the hour is over", left.as_secs() + 1));
        sleep(left + Duration::from_secs(1)).await;
    }
}

fn report(args: &InstancesArgs, turns: Vec<Turns>, sizes: anyhow::Result<Sizes>) -> Report {
    let InstancesArgs { agents, batch, window, .. } = args;
    let mut report = Report::new("instances: one beside two and three on one PostgreSQL and one NATS server");
    report.note("as fast as it goes", format!("{agents} agents, {batch} samples a message, window {window}"));
    let mut unacknowledged = 0;
    let mut one = None;
    for Turns { count, fast, .. } in &turns {
        let rate = middle(fast, Measured::rate);
        let base = *one.get_or_insert(rate);
        let by_one = if base > 0.0 { format!(" ({:.2} of the first)", rate / base) } else { String::new() };
        report.note(format!("{count}: samples acknowledged per second, median"), format!("{rate:.0}{by_one}"));
        match (base > 0.0, *count) {
            (true, 2) => report.record(Row::InstancesTwo, rate / base),
            (true, 3) => report.record(Row::InstancesThree, rate / base),
            _ => {}
        }
        let rounds: Vec<String> = fast.iter().map(|one| format!("{:.0}", one.rate())).collect();
        report.note(format!("{count}: the same, each round"), rounds.join(", "));
        note_costs(&mut report, &count.to_string(), fast);
    }
    let steady = format!("{} agents, a sample every {} s", args.steady_agents, args.interval.as_secs_f64());
    report.note("at a pace", steady);
    for Turns { count, fast, steady } in turns {
        unacknowledged += fast.iter().map(Measured::unacknowledged).sum::<u64>();
        fast.into_iter().filter_map(|one| one.outcome.failure).take(1).for_each(|failure| fail(&mut report, &failure));
        let Some(steady) = steady else { continue };
        let title = format!("{count}, at a pace");
        report.note(format!("{title}: samples acknowledged per second"), format!("{:.0}", steady.rate()));
        note_costs(&mut report, &title, std::slice::from_ref(&steady));
        if count == 1 {
            let a_thousand = |cpu: Duration| steady.a_sample(cpu.as_secs_f64() * 1e3);
            report.key_figure(
                format!("{title}: CPU s of the instance per 1,000 samples"),
                Row::PostgresInstance,
                a_thousand(steady.spent.service),
            );
            report.key_figure(
                format!("{title}: CPU s of PostgreSQL per 1,000 samples"),
                Row::PostgresDatabase,
                a_thousand(steady.spent.postgres),
            );
        }
        steady.spent.note(&mut report, &title);
        let rss: Vec<String> = steady.memory.iter().map(|bytes| rounded(megabytes(*bytes))).collect();
        report.note(format!("{title}: RSS of each instance, MB"), rss.join(", "));
        unacknowledged += steady.unacknowledged();
        if let Some(latency) = steady.outcome.ack_latencies.summary() {
            report.note(format!("{title}: sample sent to acknowledged"), latency);
        }
        steady.outcome.failure.iter().for_each(|failure| fail(&mut report, failure));
    }
    match sizes {
        Ok(sizes) => sizes.note(&mut report),
        Err(error) => report.note("what is stored was not measured", in_one_line(&error)),
    }
    report.must_be_zero("samples not acknowledged", unacknowledged);
    report
}

fn fail(report: &mut Report, failure: &str) {
    report.note("a connection failed", failure);
}

/// The cost of a sample in every process.
fn note_costs(report: &mut Report, title: &str, measured: &[Measured]) {
    let cpu = |of: fn(&Spent) -> Duration| middle(measured, |one| one.a_sample(of(&one.spent).as_secs_f64() * 1e3));
    let (service, postgres, nats) = (cpu(|spent| spent.service), cpu(|spent| spent.postgres), cpu(|spent| spent.nats));
    let costs = format!("instances {service:.4}, PostgreSQL {postgres:.4}, NATS {nats:.4}");
    report.note(format!("{title}: CPU s per 1,000 samples, median"), costs);
    let wal = middle(measured, |one| one.a_sample(one.spent.wal as f64));
    report.note(format!("{title}: bytes of write-ahead log per sample, median"), rounded(wal));
    let messages = middle(measured, |one| one.a_sample(one.spent.traffic.published_bytes as f64));
    report.note(format!("{title}: bytes over NATS per sample, the clockwork's included, median"), rounded(messages));
}

fn middle(measured: &[Measured], of: impl Fn(&Measured) -> f64) -> f64 {
    median(&measured.iter().map(of).collect::<Vec<_>>()).unwrap_or_default()
}
