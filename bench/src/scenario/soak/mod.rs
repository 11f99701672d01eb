//! Everything at once, for an hour, so that leaks, losses and false reports show in time.

mod clock;
mod figures;
mod hostile;
mod people;

use std::time::{Duration, Instant};

use clap::Args;
use serde_json::json;
use signalbox_protocol::Timestamp;
use tokio::sync::mpsc;
use tokio::task::JoinSet;
use tokio::time::sleep;

use self::clock::{MovingClock, OF_AN_AGENT, OF_THE_SERVICE};
use self::figures::Figures;
use self::people::{Outages, People};
use super::join_all;
use super::kill::{BATCH, STEP_MS, read_all_back};
use crate::agent::{DeliveryReport, Resilient, ResilientPlan, Schedule, connect_all};
use crate::data::hour_of;
use crate::fixture::{Enrolled, Fixture};
use crate::real_agent::{AgentOptions, RealAgent, flag};
use crate::report::{Aim, Report, progress, rounded};
use crate::rest::TAG;
use crate::service::ServiceOptions;
use crate::stop::{Stop, StopSource};
use crate::template::Template;

/// A batch is a second of samples, so that live samples stay in the present.
const INTERVAL: Duration = Duration::from_secs(1);
/// Where agents with a backlog begin, in hours before the current one.
const STRETCHES_AGO_HOURS: [i64; 3] = [6, 27, 50];
/// Batches an agent keeps while the service is away: longer than any restart.
const KEPT: usize = 600;
/// The time that counts as the beginning: pools are full, caches are warm.
const WARM_UP: Duration = Duration::from_secs(120);
/// Longer than any restart here, and shorter than the absence of a lost agent.
const OFFLINE_AFTER_SECONDS: u32 = 120;
/// The growth that is accepted between beginning and end: the history's tail and the allocator's variation.
const MAX_GROWTH: f64 = 1.25;

#[derive(Debug, Args)]
pub struct SoakArgs {
    #[arg(long, default_value_t = 60)]
    pub minutes: u32,
    /// Simulated agents that send ten samples a second.
    #[arg(long, default_value_t = 50)]
    pub agents: usize,
    /// Simulated agents that send a backlog at the same time.
    #[arg(long, default_value_t = 5)]
    pub backfill: usize,
    /// Real agents with commands; one more has a clock that moves.
    #[arg(long, default_value_t = 3)]
    pub real_agents: usize,
    #[arg(long, default_value_t = 30)]
    pub dashboards: usize,
    /// Minutes between two restarts: SIGTERM and kill -9 in turns.
    #[arg(long, default_value_t = 10)]
    pub restart_every: u32,
    #[command(flatten)]
    pub agent: AgentOptions,
}

/// The assignment of the fixture's servers.
struct Fleet {
    sending: Vec<Enrolled>,
    backfill: Vec<Enrolled>,
    real: Vec<Enrolled>,
    moving: Vec<Enrolled>,
    hostile: Vec<Enrolled>,
}

impl Fleet {
    fn of(args: &SoakArgs, mut servers: Vec<Enrolled>) -> Self {
        let mut take = |count: usize| servers.drain(..count.min(servers.len())).collect();
        Self {
            sending: take(args.agents),
            backfill: take(args.backfill),
            real: take(args.real_agents),
            moving: take(1),
            hostile: take(1),
        }
    }
}

pub async fn run(options: &ServiceOptions, args: &SoakArgs) -> anyhow::Result<()> {
    let servers = args.agents + args.backfill + args.real_agents + 2;
    let of_service = MovingClock::new(&options.work_dir, OF_THE_SERVICE)?;
    let options = ServiceOptions { variables: of_service.variables(), ..options.clone() };
    let mut fixture = Fixture::start(&options, servers).await?;
    let fleet = Fleet::of(args, fixture.fleet.clone());
    fixture.rest.create_threshold(&threshold("offline", "gt", f64::from(OFFLINE_AFTER_SECONDS))).await?;
    fixture.rest.create_threshold(&threshold("cpu", "gt", 100.0)).await?;

    let (source, stop) = StopSource::new();
    let mut senders = JoinSet::new();
    let now = Timestamp::now();
    start(&fixture, &fleet.sending, Schedule::from(now), &stop, &mut senders).await?;
    let past = STRETCHES_AGO_HOURS.map(|hours| hour_of(now).plus_millis(-hours * 3_600_000));
    start(&fixture, &fleet.backfill, Schedule::in_turns(past), &stop, &mut senders).await?;
    let commands = flag("--commands", "on");
    let mut real = Vec::new();
    for enrolled in &fleet.real {
        real.push(RealAgent::start(&args.agent, &fixture, enrolled, &commands).await?);
    }
    let of_agent = MovingClock::new(fixture.service.work_dir(), OF_AN_AGENT)?;
    for enrolled in &fleet.moving {
        let (folder, rest) = (fixture.service.work_dir(), &fixture.rest);
        real.push(RealAgent::start_with(&args.agent, folder, rest, enrolled, &[], &of_agent.variables()).await?);
    }
    let outages = Outages::default();
    let people = People::start(&fixture, &fleet.sending, &fleet.real, args.dashboards, &outages, &stop);
    let hostile =
        fleet.hostile.iter().cloned().map(|enrolled| hostile::start(fixture.service.address(), enrolled, &stop));
    let hostile: Vec<_> = hostile.collect();

    let figures = go_on(&mut fixture, args, &real, &[of_agent, of_service], &outages).await?;
    source.stop();
    let ledgers = join_all(senders).await?;
    let asked = people.end().await?;
    let mut attacks = 0;
    for attacker in hostile {
        attacks += attacker.await?;
    }
    for agent in real {
        agent.stop().await?;
    }

    let mut report = Report::new(format!("soak: {} minutes of everything at once", args.minutes));
    figures.note(&mut report, MAX_GROWTH);
    report.note("restarts, SIGTERM and kill -9 in turns", outages.count());
    report.note("attacks of the hostile agent", attacks);
    asked.note(&mut report);
    fixture.rest.renew().await?;
    report.must_be_zero("alerts, of which none is true", fixture.rest.alert_count().await?);
    progress("reading the history back");
    let verdict = read_all_back(&fixture.rest, &ledgers).await?;
    report.note("samples acknowledged", verdict.acknowledged);
    report.must_be_zero("of them missing", verdict.missing);
    report.must_be_zero("of them stored more than once", verdict.doubled);
    report.must_be_zero("of them stored with other values", verdict.changed);
    let open: usize = ledgers.iter().map(|(_, ledger)| ledger.unacknowledged.len()).sum();
    report.must_be_zero("samples never acknowledged", open as u64 * BATCH as u64);
    report.finish()
}

/// Of all servers of the run.
fn threshold(metric: &str, comparison: &str, value: f64) -> serde_json::Value {
    json!({
        "tag": TAG, "metric_type": metric, "comparison": comparison, "threshold_value": value, "enabled": true,
    })
}

async fn start(
    fixture: &Fixture,
    servers: &[Enrolled],
    schedule: Schedule,
    stop: &Stop,
    senders: &mut JoinSet<(Enrolled, DeliveryReport)>,
) -> anyhow::Result<()> {
    let plan = ResilientPlan {
        template: Template::new(usize::try_from(BATCH)?)?,
        batch: BATCH,
        interval: INTERVAL,
        schedule,
        step_ms: STEP_MS,
        kept: KEPT,
    };
    // Nobody receives the events here.
    let (events, _) = mpsc::channel(1);
    let address = fixture.service.address();
    let sockets = connect_all(address, servers).await?;
    for (number, (socket, enrolled)) in sockets.into_iter().zip(servers.iter().cloned()).enumerate() {
        let (plan, events, stop) = (plan.clone(), events.clone(), stop.clone());
        let agent = Resilient { plan, number, addresses: vec![address], enrolled: enrolled.clone(), events };
        senders.spawn(async move { (enrolled, agent.run(socket, stop).await) });
    }
    Ok(())
}

/// Waits: restarts the service, moves the clock, and takes the figures.
async fn go_on(
    fixture: &mut Fixture,
    args: &SoakArgs,
    real: &[RealAgent],
    clocks: &[MovingClock],
    outages: &Outages,
) -> anyhow::Result<Figures> {
    let (began, all) = (Instant::now(), Duration::from_secs(u64::from(args.minutes) * 60));
    let every = Duration::from_secs(u64::from(args.restart_every.max(1)) * 60);
    let mut figures = Figures::default();
    let warm_up = WARM_UP.min(all / 4);
    while began.elapsed() < warm_up {
        sleep(Duration::from_secs(1)).await;
        figures.look(fixture, real).await?;
    }
    figures.take("beginning");
    let (mut restarts, mut next_restart) = (0_u32, began + every);
    let mut is_halved = false;
    while began.elapsed() < all {
        sleep(Duration::from_secs(1)).await;
        clocks.iter().try_for_each(|clock| clock.move_on(began.elapsed()))?;
        figures.look(fixture, real).await?;
        if !is_halved && began.elapsed() >= all / 2 {
            is_halved = true;
            figures.take("middle");
        }
        // The last period is undisturbed, so that no loss is attributed to a restart.
        if Instant::now() >= next_restart && began.elapsed() + every / 2 < all {
            restarts += 1;
            next_restart += every;
            let outage = outages.begin();
            if restarts % 2 == 1 {
                let took = fixture.service.terminate().await?;
                progress(format_args!("SIGTERM took {} s", rounded(took.as_secs_f64())));
            } else {
                progress("kill -9");
                fixture.service.kill().await?;
            }
            fixture.service.restart().await?;
            outage.end();
        }
    }
    figures.take("end");
    Ok(figures)
}

/// A share of how much something has grown.
fn growth(from: f64, to: f64) -> f64 {
    if from > 0.0 { to / from } else { 1.0 }
}

/// Shows a growth with its aim.
fn note_growth(report: &mut Report, what: &str, from: f64, to: f64, most: f64) {
    report.figure(format!("{what}, end by beginning"), growth(from, to), Aim::AtMost(most));
}
