//! The same questions at the instance that holds the agent, and at another one.

use std::fmt;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::{Duration, Instant};

use anyhow::Context;
use tokio::task::JoinSet;
use uuid::Uuid;

use super::{AcrossArgs, INSTANCES};
use crate::agent::{CONTAINERS, CommandTimes, Obedient, Obeyed, connect_spread};
use crate::cluster::{self, Cluster};
use crate::figures::Row;
use crate::real_agent::{RealAgent, flag};
use crate::remote::Ours;
use crate::report::{Aim, Report, in_one_line, progress, rounded};
use crate::rest::Rest;
use crate::scenario::join_all;
use crate::stats::{Latencies, median};
use crate::stop::{Stop, StopSource};

/// Servers that are needed: the real agent's, and simulated ones, as many at each instance.
pub const AGENTS: usize = 1 + 2 * INSTANCES;
/// The instance that holds the agent, and the others that are asked for it.
const HOME: usize = 0;
const ELSEWHERE: usize = 1;
/// Runs that do not count.
const WARM_UP: usize = 10;
/// The additional time of asking another instance, in milliseconds.
const AIM: Aim = Aim::AtMost(1.0);

/// The kind of call.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Kind {
    /// `true`, of an agent that claims to have run it.
    Simulated,
    /// `true`, of the real one.
    Real,
    /// The containers, of an agent that has them ready.
    Containers,
}

/// From which instance to which one.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Way {
    /// All at one instance, which holds the agents.
    One,
    /// All at one instance, another of which holds the agents.
    Other,
    /// At every instance, for agents of the next.
    Spread,
}

/// One kind in both places.
struct Pair {
    kind: Kind,
    server_id: Uuid,
    home: Latencies,
    elsewhere: Latencies,
    /// Set when it failed; then only the others continue.
    failure: Option<String>,
}

/// The results of one way, each time.
struct Calls {
    way: Way,
    rates: Vec<f64>,
    /// Milliseconds of CPU a call, of the instances together.
    costs: Vec<f64>,
    /// Bytes over NATS a call, as they were published.
    bytes: Vec<f64>,
}

pub async fn measure(cluster: &Cluster, args: &AcrossArgs, report: &mut Report) -> anyhow::Result<()> {
    let (source, stop) = StopSource::new();
    let agents = start_agents(cluster, &stop).await?;
    let real = cluster.server(0)?;
    let rest = cluster.rest(HOME)?;
    let agent = RealAgent::start_at(&args.agent, cluster.work_dir(), &rest, real, &flag("--commands", "on")).await;
    let mut pairs = vec![
        Pair::new(Kind::Simulated, cluster.server(1)?.server_id),
        Pair::new(Kind::Containers, cluster.server(1)?.server_id),
    ];
    match &agent {
        Ok(_) => pairs.push(Pair::new(Kind::Real, real.server_id)),
        Err(error) => report.note(Kind::Real.to_string(), format!("absent: {}", in_one_line(error))),
    }
    in_turns(cluster, &mut pairs, args.turns).await?;
    if let Ok(agent) = agent {
        agent.stop().await?;
    }
    pairs.into_iter().for_each(|pair| pair.note(report));

    let mut ways = [Way::One, Way::Other, Way::Spread].map(Calls::new);
    for round in 1..=args.rounds {
        progress(format_args!("{} clients, round {round} of {}", args.clients, args.rounds));
        for calls in &mut ways {
            calls.count(cluster, args).await?;
        }
    }
    note_calls(report, args, &ways);
    source.stop();
    let mut obeyed = Obeyed::default();
    join_all(agents).await?.into_iter().for_each(|one| obeyed.merge(one));
    report.must_be_zero("commands that an agent received twice", obeyed.repeated);
    if let Some(failure) = obeyed.failure {
        report.note("a connection failed", failure);
    }
    Ok(())
}

/// Two at each instance: server 1 at the first of them, 2 at the next, and so on.
async fn start_agents(cluster: &Cluster, stop: &Stop) -> anyhow::Result<JoinSet<Obeyed>> {
    let fleet = cluster.fleet.get(1..AGENTS).context("there are fewer servers")?;
    let told = Arc::new(CommandTimes::new());
    let mut agents = JoinSet::new();
    for socket in connect_spread(&cluster.addresses(), fleet).await? {
        agents.spawn(Obedient { socket, told: told.clone() }.run(stop.clone()));
    }
    Ok(agents)
}

/// Each kind in each place, again and again.
async fn in_turns(cluster: &Cluster, pairs: &mut [Pair], turns: usize) -> anyhow::Result<()> {
    let (home, elsewhere) = (cluster.rest(HOME)?, cluster.rest(ELSEWHERE)?);
    for turn in 0..WARM_UP + turns {
        for pair in pairs.iter_mut().filter(|pair| pair.failure.is_none()) {
            match pair.turn(&home, &elsewhere).await {
                Ok([at_home, at_another]) if turn >= WARM_UP => {
                    pair.home.record(at_home);
                    pair.elsewhere.record(at_another);
                }
                Ok(_) => {}
                Err(error) => pair.failure = Some(in_one_line(&error)),
            }
        }
    }
    Ok(())
}

async fn ask(kind: Kind, rest: &Rest, server_id: Uuid) -> anyhow::Result<Duration> {
    match kind {
        Kind::Real => Ours { rest: rest.clone(), server_id, signer: None }.run().await,
        Kind::Simulated => {
            let start = Instant::now();
            let end = rest.run_command(server_id, "true").await?;
            anyhow::ensure!(end.status == "succeeded", "`true` ended as {end:?}");
            Ok(start.elapsed())
        }
        Kind::Containers => {
            let start = Instant::now();
            let found = rest.containers(server_id).await?;
            anyhow::ensure!(found == CONTAINERS, "the agent has {CONTAINERS} containers and not {found}");
            Ok(start.elapsed())
        }
    }
}

impl Pair {
    fn new(kind: Kind, server_id: Uuid) -> Self {
        Self { kind, server_id, home: Latencies::default(), elsewhere: Latencies::default(), failure: None }
    }

    /// One in each place.
    async fn turn(&self, home: &Rest, elsewhere: &Rest) -> anyhow::Result<[Duration; 2]> {
        let at_home = ask(self.kind, home, self.server_id).await.context("at its agent's instance")?;
        let at_another = ask(self.kind, elsewhere, self.server_id).await.context("at another instance")?;
        Ok([at_home, at_another])
    }

    fn note(self, report: &mut Report) {
        let Self { kind, home, elsewhere, failure, .. } = self;
        report.must_be_zero(format!("{kind}: failed"), failure.iter().len() as u64);
        if let Some(failure) = failure {
            report.note(format!("{kind}: why"), failure);
        }
        let (Some(home), Some(elsewhere)) = (home.summary(), elsewhere.summary()) else { return };
        report.note(format!("{kind}, at its agent's instance"), home);
        report.note(format!("{kind}, at another one"), elsewhere);
        let more = |at: Duration, than: Duration| (at.as_secs_f64() - than.as_secs_f64()) * 1e3;
        let (p50, p99) = (more(elsewhere.p50, home.p50), more(elsewhere.p99, home.p99));
        let [p50_title, p99_title] =
            ["p50", "p99"].map(|which| format!("{kind}: {which} at another one beyond that, ms"));
        match kind {
            Kind::Real => {
                report.key_figure(p50_title, Row::AcrossCommand, p50);
                report.key_figure(p99_title, Row::AcrossCommandP99, p99);
            }
            Kind::Containers => {
                report.key_figure(p50_title, Row::AcrossContainers, p50);
                report.figure(p99_title, p99, AIM);
            }
            Kind::Simulated => {
                report.figure(p50_title, p50, AIM);
                report.figure(p99_title, p99, AIM);
            }
        }
    }
}

impl Calls {
    fn new(way: Way) -> Self {
        Self { way, rates: Vec::new(), costs: Vec::new(), bytes: Vec::new() }
    }

    /// Runs all clients for a while.
    async fn count(&mut self, cluster: &Cluster, args: &AcrossArgs) -> anyhow::Result<()> {
        let done = Arc::new(AtomicU64::new(0));
        let (source, stop) = StopSource::new();
        let mut clients = JoinSet::new();
        for number in 0..args.clients {
            let (instance, agent) = self.way.of(number);
            let (rest, server_id) = (cluster.rest(instance)?, cluster.server(agent)?.server_id);
            let (done, stop) = (done.clone(), stop.clone());
            clients.spawn(async move {
                while !stop.is_requested() {
                    ask(Kind::Containers, &rest, server_id).await?;
                    done.fetch_add(1, Ordering::Relaxed);
                }
                anyhow::Ok(())
            });
        }
        let spent = cluster::watch(cluster, args.call_duration).await?;
        let calls = done.load(Ordering::Relaxed);
        source.stop();
        join_all(clients).await?.into_iter().collect::<anyhow::Result<()>>()?;
        self.rates.push(spent.a_second(calls));
        self.bytes.push(spent.traffic.published_bytes as f64 / calls.max(1) as f64);
        self.costs.push(spent.service.as_secs_f64() * 1e3 / calls.max(1) as f64);
        Ok(())
    }
}

impl Way {
    /// Which instance a client asks, and for which server.
    fn of(self, client: usize) -> (usize, usize) {
        // One of the two of its instance.
        let server = |instance: usize| 1 + instance + INSTANCES * (client / INSTANCES % 2);
        match self {
            Self::One => (HOME, server(HOME)),
            Self::Other => (ELSEWHERE, server(HOME)),
            Self::Spread => (client % INSTANCES, server((client + 1) % INSTANCES)),
        }
    }
}

fn note_calls(report: &mut Report, args: &AcrossArgs, ways: &[Calls]) {
    let mut one = None;
    for Calls { way, rates, costs, bytes } in ways {
        let rate = median(rates).unwrap_or_default();
        let base = *one.get_or_insert(rate);
        let by_one = if base > 0.0 { rate / base } else { 0.0 };
        let title = format!("docker.list, {} clients, {way}", args.clients);
        report.note(format!("{title}: calls per second, median"), format!("{rate:.0} ({by_one:.2} of the first)"));
        let rounds: Vec<String> = rates.iter().map(|rate| format!("{rate:.0}")).collect();
        report.note(format!("{title}: the same, each round"), rounds.join(", "));
        let cost = median(costs).unwrap_or_default();
        let bytes = median(bytes).unwrap_or_default();
        report.note(format!("{title}: bytes over NATS a call, median"), rounded(bytes));
        report.note(format!("{title}: CPU of all instances a call, ms, median"), rounded(cost));
    }
}

impl fmt::Display for Kind {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Simulated => "`true`, simulated agent",
            Self::Real => "`true`, real agent",
            Self::Containers => "docker.list, simulated agent",
        })
    }
}

impl fmt::Display for Way {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::One => "one instance",
            Self::Other => "through another instance",
            Self::Spread => "through all three to the next",
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn clients_ask_for_agents_where_they_are() {
        // Server 1 is at the first instance, 2 at the second, 4 at the first again.
        let holder = |server: usize| (server - 1) % INSTANCES;

        for client in 0..16 {
            let (asked, server) = Way::One.of(client);
            assert_eq!((asked, holder(server)), (0, 0));
            let (asked, server) = Way::Other.of(client);
            assert_eq!((asked, holder(server)), (1, 0));
            let (asked, server) = Way::Spread.of(client);
            assert_eq!(holder(server), (asked + 1) % INSTANCES);
            assert!(server < AGENTS);
        }
    }
}
