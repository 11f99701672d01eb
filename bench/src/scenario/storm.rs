//! The service restarts under a connected fleet: how long until every agent is served again, and what users notice.

use std::time::{Duration, Instant};

use clap::{Args, ValueEnum};
use signalbox_protocol::Timestamp;
use tokio::sync::mpsc;
use tokio::task::JoinSet;
use tokio::time::{sleep, timeout};

use super::{join_all, seconds};
use crate::agent::{DeliveryReport, Event, Resilient, ResilientPlan, Schedule, connect_all};
use crate::figures::Row;
use crate::fixture::Fixture;
use crate::limits::check_connections;
use crate::probe::{self, Probe, Question};
use crate::report::{Report, megabytes, progress, rounded};
use crate::service::{Service, ServiceOptions};
use crate::stop::{Stop, StopSource};
use crate::template::Template;

/// Many times the aim; agents that are not back by then count as lost.
const PATIENCE: Duration = Duration::from_secs(120);
/// Before the service ends, so that probes and agents are in their stride; and after all are back.
const CALM: Duration = Duration::from_secs(8);
const SERVERS_EVERY: Duration = Duration::from_millis(100);
const LOGIN_EVERY: Duration = Duration::from_secs(1);
/// Batches an agent keeps while the service is away.
const KEPT: usize = 100;

#[derive(Debug, Args)]
pub struct StormArgs {
    #[arg(long, default_value_t = 5_000)]
    pub agents: usize,
    /// Seconds between two samples of an agent.
    #[arg(long, default_value = "5", value_parser = seconds)]
    pub interval: Duration,
    /// How the service ends; both by default, one after the other.
    #[arg(long, value_enum, value_delimiter = ',', default_values_t = [End::Kill, End::Terminate])]
    pub ends: Vec<End>,
}

#[derive(Debug, Clone, Copy, ValueEnum)]
pub enum End {
    /// kill -9.
    Kill,
    /// SIGTERM.
    Terminate,
}

/// One restart: when the service was made to end, and when it listened again.
struct Restart {
    ended_at: Instant,
    listening_at: Instant,
}

/// When each agent was first served again, by its number.
pub struct Returns {
    pub authenticated: Vec<Option<Instant>>,
    pub acknowledged: Vec<Option<Instant>>,
}

pub async fn run(options: &ServiceOptions, args: &StormArgs) -> anyhow::Result<()> {
    check_connections(args.agents)?;
    let mut fixture = Fixture::start(options, args.agents).await?;
    // Room for both events of two connections of every agent, so that sending them never blocks an agent.
    let (events, mut listener) = mpsc::channel((args.agents * 4).max(1));
    let (source, stop) = StopSource::new();
    let agents = start_agents(&fixture, args, &events, &stop).await?;
    let returns = collect(&mut listener, args.agents, Instant::now()).await;
    anyhow::ensure!(returns.missing() == 0, "the fleet was not served even before the storm");

    let mut result = Ok(());
    for end in &args.ends {
        sleep(CALM).await;
        let report = one_storm(&mut fixture, *end, args, &mut listener).await?;
        // A fault of one restart does not hide the figures of the next.
        result = result.and(report.finish());
    }
    source.stop();
    let failed: u64 = join_all(agents).await?.iter().map(|ledger| ledger.failed_attempts).sum();
    progress(format_args!("{failed} attempts to connect failed in all"));
    result
}

async fn start_agents(
    fixture: &Fixture,
    args: &StormArgs,
    events: &mpsc::Sender<Event>,
    stop: &Stop,
) -> anyhow::Result<JoinSet<DeliveryReport>> {
    progress(format_args!("connecting {} agents", args.agents));
    let plan = ResilientPlan {
        template: Template::new(1)?,
        batch: 1,
        interval: args.interval,
        schedule: Schedule::from(Timestamp::now()),
        step_ms: i64::try_from(args.interval.as_millis())?.max(1),
        kept: KEPT,
    };
    let mut agents = JoinSet::new();
    let sockets = connect_all(fixture.service.address(), &fixture.fleet).await?;
    for (number, (socket, enrolled)) in sockets.into_iter().zip(&fixture.fleet).enumerate() {
        let (plan, enrolled, events) = (plan.clone(), enrolled.clone(), events.clone());
        let addresses = vec![fixture.service.address()];
        let agent = Resilient { plan, number, addresses, enrolled, events };
        agents.spawn(agent.run(socket, stop.clone()));
    }
    Ok(agents)
}

async fn one_storm(
    fixture: &mut Fixture,
    end: End,
    args: &StormArgs,
    listener: &mut mpsc::Receiver<Event>,
) -> anyhow::Result<Report> {
    progress(format_args!("{} at {} agents", end.name(), args.agents));
    let (source, stop) = StopSource::new();
    let servers = probe::spawn(fixture.rest.clone(), Question::Servers, SERVERS_EVERY, stop.clone());
    let logins = probe::spawn(fixture.rest.clone(), Question::Login, LOGIN_EVERY, stop);
    sleep(CALM).await;
    let restart = end_and_restart(&mut fixture.service, end).await?;
    let returns = collect(listener, args.agents, restart.ended_at).await;
    sleep(CALM).await;
    source.stop();

    let mut report = Report::new(format!("storm: {} under {} connected agents", end.name(), args.agents));
    report.note("service away, s", rounded((restart.listening_at - restart.ended_at).as_secs_f64()));
    note_returns(end, &returns, &restart, &mut report);
    note_probes("GET /servers", &servers.await?, &restart, &mut report);
    note_probes("login", &logins.await?, &restart, &mut report);
    report.note("RSS afterwards, MB", format!("{:.1}", megabytes(fixture.service.memory()?.rss)));
    Ok(report)
}

async fn end_and_restart(service: &mut Service, end: End) -> anyhow::Result<Restart> {
    let ended_at = Instant::now();
    match end {
        End::Kill => service.kill().await?,
        End::Terminate => {
            service.terminate().await?;
        }
    }
    service.restart().await?;
    Ok(Restart { ended_at, listening_at: Instant::now() })
}

/// Listens until every agent was authenticated and acknowledged after `since`, or patience ends.
pub async fn collect(listener: &mut mpsc::Receiver<Event>, agents: usize, since: Instant) -> Returns {
    let mut returns = Returns { authenticated: vec![None; agents], acknowledged: vec![None; agents] };
    let all = async {
        while returns.missing() > 0 {
            let Some(event) = listener.recv().await else { return };
            returns.note(event, since);
        }
    };
    // The result shows which are missing.
    timeout(PATIENCE, all).await.ok();
    returns
}

fn note_returns(end: End, returns: &Returns, restart: &Restart, report: &mut Report) {
    let after = |moments: &[Option<Instant>]| {
        let last = moments.iter().flatten().max();
        last.map(|last| last.saturating_duration_since(restart.ended_at).as_secs_f64())
    };
    if let Some(last) = after(&returns.authenticated) {
        report.note("all authenticated again, s after the end", rounded(last));
    }
    if let Some(last) = after(&returns.acknowledged) {
        report.key_figure("all acknowledged again, s after the end", end.row(), last);
    }
    report.must_be_zero(format!("agents not back within {} s", PATIENCE.as_secs()), returns.missing() as u64);
}

/// Requests made while nothing listened cannot be answered; those made afterwards must be.
fn note_probes(name: &str, probes: &[Probe], restart: &Restart, report: &mut Report) {
    let (calm, calm_failures) = probe::summarize(probes.iter().filter(|probe| probe.at < restart.ended_at));
    let (storm, failures) = probe::summarize(probes.iter().filter(|probe| probe.at >= restart.listening_at));
    if let Some(calm) = calm {
        report.note(format!("{name} before"), calm);
    }
    if let Some(storm) = storm {
        report.note(format!("{name} after the restart"), storm);
    }
    // A request in flight at the end is aborted, which is no fault.
    let cut = probes.iter().filter(|probe| probe.at < restart.ended_at && probe.at + probe.took >= restart.ended_at);
    let cut_failures = cut.filter(|probe| probe.failure.is_some()).count() as u64;
    report.must_be_zero(format!("{name} failed before"), calm_failures - cut_failures);
    report.must_be_zero(format!("{name} failed after the restart"), failures);
}

impl End {
    fn name(self) -> &'static str {
        match self {
            Self::Kill => "kill -9",
            Self::Terminate => "SIGTERM",
        }
    }

    fn row(self) -> Row {
        match self {
            Self::Kill => Row::StormKill,
            Self::Terminate => Row::StormTerminate,
        }
    }
}

impl Returns {
    fn note(&mut self, event: Event, since: Instant) {
        let (moments, agent, at) = match event {
            Event::Authenticated { agent, at } => (&mut self.authenticated, agent, at),
            Event::Acknowledged { agent, at } => (&mut self.acknowledged, agent, at),
        };
        if let Some(moment) = moments.get_mut(agent)
            && at >= since
        {
            moment.get_or_insert(at);
        }
    }

    /// How many agents are not both authenticated and acknowledged. An ack needs an authenticated connection.
    pub fn missing(&self) -> usize {
        self.acknowledged.iter().filter(|moment| moment.is_none()).count()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test]
    async fn a_fleet_is_back_when_each_agent_is_acknowledged_after_the_restart() {
        let (events, mut listener) = mpsc::channel(8);
        let before = Instant::now();
        let since = before + Duration::from_secs(1);
        let later = since + Duration::from_secs(2);
        for event in [
            Event::Acknowledged { agent: 1, at: before },
            Event::Authenticated { agent: 0, at: since },
            Event::Acknowledged { agent: 0, at: since },
            Event::Acknowledged { agent: 1, at: later },
            Event::Acknowledged { agent: 0, at: later },
        ] {
            events.try_send(event).unwrap();
        }

        let returns = collect(&mut listener, 2, since).await;

        assert_eq!(returns.missing(), 0);
        assert_eq!(returns.acknowledged, [Some(since), Some(later)]);
    }
}
