//! The traffic over NATS: with no dashboard, with one that watches one server at another instance, and with one that watches
//! all.

use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::time::Duration;

use anyhow::Context;
use tokio::task::JoinSet;
use tokio::time::sleep;

use super::AcrossArgs;
use crate::agent::{Outcome, Regular, RegularPlan, Source, connect_all};
use crate::cluster::{self, Cluster, Spent};
use crate::dashboard::Dashboard;
use crate::feed_reader;
use crate::figures::Row;
use crate::report::{Report, rounded};
use crate::scenario::join_all;
use crate::sent_times::SentTimes;
use crate::stop::StopSource;
use crate::template::Template;

/// Until every instance knows what has begun or ended: instances repeat their interest within 5 s.
const SETTLE: Duration = Duration::from_secs(6);
/// Where the agents are, and from where they are watched.
const HOME: usize = 0;
const ELSEWHERE: usize = 1;
/// All servers, live.
const FLEET: &str = "/api/v1/ws/fleet";

pub async fn measure(
    cluster: &Cluster,
    args: &AcrossArgs,
    first_server: usize,
    report: &mut Report,
) -> anyhow::Result<()> {
    let fleet = cluster.fleet.get(first_server..first_server + args.senders).context("there are fewer servers")?;
    let watched = fleet.first().context("nobody sends")?;
    sleep(SETTLE).await;
    let idle = cluster::watch(cluster, args.duration).await?;
    let (source, stop) = StopSource::new();
    let plan = RegularPlan { interval: args.interval, acknowledged: Arc::default() };
    let sent_times: Arc<SentTimes> = Arc::default();
    let template = Template::new(1)?;
    let mut agents = JoinSet::new();
    for (number, socket) in connect_all(cluster.address(HOME)?, fleet).await?.into_iter().enumerate() {
        let source = Source::Template(template.clone());
        let sent_times = (number == 0).then(|| sent_times.clone());
        agents.spawn(Regular { plan: plan.clone(), source, socket, sent_times }.run(stop.clone()));
    }
    sleep(SETTLE).await;
    let acknowledged = || plan.acknowledged.load(Ordering::Relaxed);
    let before = acknowledged();
    let nobody = cluster::watch(cluster, args.duration).await?;
    let samples = acknowledged() - before;

    let (address, rest) = (cluster.address(ELSEWHERE)?, cluster.rest(ELSEWHERE)?);
    let (reader_source, reader_stop) = StopSource::new();
    let reader = feed_reader::open(address, FLEET, rest.token(), reader_stop).await?;
    sleep(SETTLE).await;
    let all = cluster::watch(cluster, args.duration).await?;
    reader_source.stop();
    let read = reader.await?;

    let (dashboard_source, dashboard_stop) = StopSource::new();
    let dashboard = Dashboard::open(address, watched.server_id, rest.token(), sent_times).await?;
    let dashboard = tokio::spawn(dashboard.run(dashboard_stop));
    sleep(SETTLE).await;
    let one = cluster::watch(cluster, args.duration).await?;
    source.stop();
    let mut outcome = Outcome::default();
    join_all(agents).await?.into_iter().for_each(|one| outcome.merge(one));
    // It reads until nothing comes any more.
    dashboard_source.stop();
    let seen = dashboard.await?;

    let senders = format!("{} servers, a sample every {} s", args.senders, args.interval.as_secs_f64());
    report.note("servers that send", senders);
    note(report, "idle", &idle, None);
    note_clockwork(report, &idle);
    note_connections(cluster, report).await?;
    note(report, "nobody watches", &nobody, Some(&idle));
    note(report, "one server is watched at another instance", &one, Some(&idle));
    note(report, "all are watched at another instance", &all, Some(&idle));
    let beyond = published_bytes(&nobody) - published_bytes(&idle);
    let a_sample = (beyond * nobody.elapsed.as_secs_f64() / samples.max(1) as f64).max(0.0);
    // Less than the aim is periodic traffic, which differs between periods.
    report.key_figure("bytes over NATS per sample that nobody watches, beyond idle", Row::AcrossUnwatched, a_sample);
    if let Some(latency) = seen.latencies.summary() {
        report.note("sample sent to a dashboard at another instance", latency);
    }
    report.must_be_zero("messages that the dashboard missed", seen.dropped);
    report.must_be_zero("dashboards that saw nothing at another instance", u64::from(seen.received == 0));
    // The first message has all servers, the next ones their changes.
    report.must_be_zero("readers of all that saw nothing new", u64::from(read.messages < 2));
    report.note("messages and bytes that the reader of all got", format!("{} and {}", read.messages, read.bytes));
    report.must_be_zero("samples not acknowledged", outcome.samples_sent - outcome.samples_acknowledged);
    if let Some(failure) = outcome.failure.or(seen.failure).or(read.failure) {
        report.note("a connection failed", failure);
    }
    Ok(())
}

/// A second.
fn published_bytes(spent: &Spent) -> f64 {
    spent.a_second(spent.traffic.published_bytes)
}

fn note(report: &mut Report, title: &str, spent: &Spent, idle: Option<&Spent>) {
    let published = [spent.a_second(spent.traffic.published), published_bytes(spent)];
    let delivered = [spent.a_second(spent.traffic.delivered), spent.a_second(spent.traffic.delivered_bytes)];
    let [messages, bytes] = published.map(rounded);
    let mut text = format!("{messages} messages and {bytes} bytes published");
    if let Some(idle) = idle {
        let beyond = [published[0] - idle.a_second(idle.traffic.published), published[1] - published_bytes(idle)];
        let [messages, bytes] = beyond.map(rounded);
        text.push_str(&format!(" (beyond idle {messages} and {bytes})"));
    }
    let [messages, bytes] = delivered.map(rounded);
    report.note(format!("NATS a second, {title}"), format!("{text}, {messages} and {bytes} delivered"));
    spent.note(report, title);
}

/// The cost of instances that have nothing to do.
fn note_clockwork(report: &mut Report, idle: &Spent) {
    report.note("write-ahead log a second, idle, bytes", rounded(idle.a_second(idle.wal)));
}

async fn note_connections(cluster: &Cluster, report: &mut Report) -> anyhow::Result<()> {
    let mut connections = cluster.nats.connections().await?;
    connections.sort_unstable_by_key(|one| std::cmp::Reverse(one.published_bytes));
    let each: Vec<String> = connections
        .iter()
        .map(|one| format!("{} ({} bytes in, {} out)", one.subscriptions, one.published_bytes, one.delivered_bytes))
        .collect();
    report.note("subscriptions of each connection to NATS, and its bytes so far", each.join(", "));
    Ok(())
}
