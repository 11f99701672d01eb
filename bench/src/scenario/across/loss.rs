//! An instance is killed: how long until its agents are at others, and whether anything acknowledged is gone.

use std::time::{Duration, Instant};

use anyhow::Context;
use signalbox_protocol::Timestamp;
use tokio::sync::mpsc;
use tokio::task::JoinSet;
use tokio::time::sleep;

use super::AcrossArgs;
use crate::agent::{DeliveryReport, Resilient, ResilientPlan, Schedule, connect_all};
use crate::cluster::Cluster;
use crate::figures::Row;
use crate::fixture::Enrolled;
use crate::report::{Report, rounded};
use crate::scenario::join_all;
use crate::scenario::kill::{BATCH, STEP_MS, read_all_back};
use crate::scenario::storm::collect;
use crate::stop::{Stop, StopSource};
use crate::template::Template;

/// The one that is killed.
const KILLED: usize = 2;
/// A message is as long as the samples in it: live.
const INTERVAL: Duration = Duration::from_millis((BATCH * STEP_MS) as u64);
/// Before the end, and after all are back.
const CALM: Duration = Duration::from_secs(5);
/// Messages that an agent keeps while it is away.
const KEPT: usize = 200;

pub async fn measure(
    cluster: &mut Cluster,
    args: &AcrossArgs,
    first_server: usize,
    report: &mut Report,
) -> anyhow::Result<()> {
    let fleet = cluster.fleet.get(first_server..first_server + args.spread).context("there are fewer servers")?;
    let instances = cluster.addresses().len();
    // Those of the instance that is killed come first, because their events are read.
    let lost = args.spread / instances.max(1);
    let (events, mut listener) = mpsc::channel((args.spread * 4).max(1));
    let (source, stop) = StopSource::new();
    let mut agents = JoinSet::new();
    for (part, of_part) in fleet.chunks(lost.max(1)).enumerate() {
        let instance = (KILLED + part) % instances;
        start_agents(cluster, instance, of_part, part * lost, &events, &stop, &mut agents).await?;
    }
    let before = collect(&mut listener, lost, Instant::now()).await;
    anyhow::ensure!(before.missing() == 0, "agents were not served even before the end of an instance");
    sleep(CALM).await;

    let killed_at = Instant::now();
    cluster.kill(KILLED).await?;
    let returns = collect(&mut listener, lost, killed_at).await;
    sleep(CALM).await;
    source.stop();
    let mut ledgers = join_all(agents).await?;
    let after = |moments: &[Option<Instant>]| {
        let last = moments.iter().flatten().max();
        last.map(|last| last.saturating_duration_since(killed_at).as_secs_f64())
    };
    report.note("agents of the instance that is killed, and of the others", format!("{lost}, {}", args.spread - lost));
    if let Some(last) = after(&returns.authenticated) {
        report.note("kill -9 of an instance: all its agents at others, s", rounded(last));
    }
    if let Some(last) = after(&returns.acknowledged) {
        report.key_figure("kill -9 of an instance: all of them acknowledged there, s", Row::AcrossKill, last);
    }
    report.must_be_zero("agents that did not come back", returns.missing() as u64);

    ledgers.iter_mut().for_each(|(_, ledger)| ledger.acknowledged.sort_unstable());
    let verdict = read_all_back(&cluster.rest(0)?, &ledgers).await?;
    report.note("samples acknowledged before and after it", verdict.acknowledged);
    report.must_be_zero("of them missing", verdict.missing);
    report.must_be_zero("of them stored more than once", verdict.doubled);
    report.must_be_zero("of them stored with other values", verdict.changed);
    let unacknowledged: usize = ledgers.iter().map(|(_, ledger)| ledger.unacknowledged.len()).sum();
    report.must_be_zero("samples never acknowledged", unacknowledged as u64 * BATCH.unsigned_abs());
    if let Some(failure) = ledgers.iter().find_map(|(_, ledger)| ledger.last_failure.as_ref()) {
        report.note("the last failure of a connection", failure);
    }
    Ok(())
}

/// Agents of one instance. Lost, they go through the others in turns, and through their own.
async fn start_agents(
    cluster: &Cluster,
    instance: usize,
    fleet: &[Enrolled],
    first_number: usize,
    events: &mpsc::Sender<crate::agent::Event>,
    stop: &Stop,
    agents: &mut JoinSet<(Enrolled, DeliveryReport)>,
) -> anyhow::Result<()> {
    let plan = ResilientPlan {
        template: Template::new(usize::try_from(BATCH)?)?,
        batch: BATCH,
        interval: INTERVAL,
        schedule: Schedule::from(Timestamp::now()),
        step_ms: STEP_MS,
        kept: KEPT,
    };
    let mut addresses = cluster.addresses();
    addresses.rotate_left(instance);
    let sockets = connect_all(cluster.address(instance)?, fleet).await?;
    for (number, (socket, enrolled)) in (first_number..).zip(sockets.into_iter().zip(fleet.iter().cloned())) {
        let (plan, events, stop, mut addresses) = (plan.clone(), events.clone(), stop.clone(), addresses.clone());
        // Not all of them to the same instance.
        if let Some((_, others)) = addresses.split_first_mut() {
            others.rotate_left(number % others.len().max(1));
        }
        let agent = Resilient { plan, number, addresses, enrolled: enrolled.clone(), events };
        agents.spawn(async move { (enrolled, agent.run(socket, stop).await) });
    }
    Ok(())
}
