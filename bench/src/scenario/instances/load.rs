//! Agents spread over the instances, and what they and all processes did during that time.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use anyhow::Context;
use signalbox_protocol::Timestamp;
use tokio::task::JoinSet;
use tokio::time::sleep;

use super::InstancesArgs;
use crate::agent::{Burst, BurstPlan, Outcome, Regular, RegularPlan, Source, connect_spread};
use crate::cluster::{self, Cluster, Spent};
use crate::fixture::Enrolled;
use crate::scenario::join_all;
use crate::stop::StopSource;
use crate::template::Template;

/// The load before the measurement; at a fixed pace one interval more, until every agent has begun.
const WARM_UP: Duration = Duration::from_secs(2);
/// Samples are of now, as live ones are, and no two of a server may share a time: it may send a thousand a second.
const STEP_MS: i64 = 1;

/// What happened in the measured time.
pub struct Measured {
    pub spent: Spent,
    pub acknowledged: u64,
    /// RSS of each instance, in bytes.
    pub memory: Vec<u64>,
    /// Including the time before and after it.
    pub outcome: Outcome,
}

impl Measured {
    pub fn rate(&self) -> f64 {
        self.spent.a_second(self.acknowledged)
    }

    pub fn a_sample(&self, value: f64) -> f64 {
        value / self.acknowledged.max(1) as f64
    }

    pub fn unacknowledged(&self) -> u64 {
        self.outcome.samples_sent - self.outcome.samples_acknowledged
    }
}

pub async fn as_fast_as_it_goes(cluster: &Cluster, args: &InstancesArgs) -> anyhow::Result<Measured> {
    let (source, stop) = StopSource::new();
    let acknowledged = Arc::new(AtomicU64::new(0));
    let sockets = connect_spread(&cluster.addresses(), fleet(cluster, args.agents)?).await?;
    let plan = BurstPlan {
        template: Template::new(usize::try_from(args.batch)?)?,
        batch: args.batch,
        window: args.window.into(),
        first: Timestamp::now(),
        step_ms: STEP_MS,
        acknowledged: acknowledged.clone(),
    };
    let mut agents = JoinSet::new();
    for socket in sockets {
        agents.spawn(Burst { plan: plan.clone(), socket }.run(stop.clone()));
    }
    sleep(WARM_UP).await;
    measure(cluster, args.duration, &acknowledged, source, agents).await
}

pub async fn at_a_pace(cluster: &Cluster, args: &InstancesArgs) -> anyhow::Result<Measured> {
    let (source, stop) = StopSource::new();
    let plan = RegularPlan { interval: args.interval, acknowledged: Arc::default() };
    let acknowledged = plan.acknowledged.clone();
    let template = Template::new(1)?;
    let mut agents = JoinSet::new();
    for socket in connect_spread(&cluster.addresses(), fleet(cluster, args.steady_agents)?).await? {
        let source = Source::Template(template.clone());
        agents.spawn(Regular { plan: plan.clone(), source, socket, sent_times: None }.run(stop.clone()));
    }
    sleep(WARM_UP + args.interval).await;
    measure(cluster, args.steady_duration, &acknowledged, source, agents).await
}

async fn measure(
    cluster: &Cluster,
    duration: Duration,
    acknowledged: &AtomicU64,
    source: StopSource,
    agents: JoinSet<Outcome>,
) -> anyhow::Result<Measured> {
    let before = acknowledged.load(Ordering::Relaxed);
    let spent = cluster::watch(cluster, duration).await?;
    let acknowledged = acknowledged.load(Ordering::Relaxed) - before;
    let memory = cluster.memory()?;
    source.stop();
    let mut outcome = Outcome::default();
    join_all(agents).await?.into_iter().for_each(|one| outcome.merge(one));
    Ok(Measured { spent, acknowledged, memory, outcome })
}

fn fleet(cluster: &Cluster, agents: usize) -> anyhow::Result<&[Enrolled]> {
    cluster.fleet.get(..agents).context("there are fewer servers")
}
