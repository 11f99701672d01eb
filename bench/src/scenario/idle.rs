//! Connected agents that send nothing: memory for each, and what is freed when they disconnect.

use std::time::Duration;

use clap::Args;
use tokio::task::JoinSet;
use tokio::time::sleep;

use super::{join_all, seconds};
use crate::agent::{AgentSocket, connect_all};
use crate::figures::Row;
use crate::fixture::Fixture;
use crate::limits::check_connections;
use crate::report::{Report, megabytes, progress, rounded};
use crate::service::{Service, ServiceOptions};
use crate::stop::{Stop, StopSource};

/// After connecting and disconnecting, until everything that was begun is done.
const SETTLE: Duration = Duration::from_secs(5);
/// When memory is read after the agents have disconnected.
const LOOKS: [Duration; 2] = [Duration::from_secs(10), LAST_LOOK];
const LAST_LOOK: Duration = Duration::from_secs(30);

#[derive(Debug, Args)]
pub struct IdleArgs {
    #[arg(long, default_value_t = 10_000)]
    pub agents: usize,
    /// How long the agents stay.
    #[arg(long, default_value = "25", value_parser = seconds)]
    pub hold: Duration,
    /// How often all of them come and leave: memory that only grows shows in the second wave.
    #[arg(long, default_value_t = 2)]
    pub waves: u32,
}

pub async fn run(options: &ServiceOptions, args: &IdleArgs) -> anyhow::Result<()> {
    check_connections(args.agents)?;
    let fixture = Fixture::start(options, args.agents).await?;
    sleep(SETTLE).await;
    let before = fixture.service.memory()?.rss;

    let mut report = Report::new(format!("idle: {} connected agents that say nothing", args.agents));
    report.note("RSS before, MB", format!("{:.1}", megabytes(before)));
    for wave in 1..=args.waves.max(1) {
        one_wave(&fixture, args, before, wave, &mut report).await?;
    }
    report.finish()
}

async fn one_wave(
    fixture: &Fixture,
    args: &IdleArgs,
    before: u64,
    wave: u32,
    report: &mut Report,
) -> anyhow::Result<()> {
    progress(format_args!("wave {wave}: connecting {} agents", args.agents));
    let (source, stop) = StopSource::new();
    let mut agents = JoinSet::new();
    for socket in connect_all(fixture.service.address(), &fixture.fleet).await? {
        agents.spawn(hold(socket, stop.clone()));
    }
    sleep(args.hold.max(SETTLE)).await;
    let connected = fixture.service.memory()?;
    note_connected(connected.rss.saturating_sub(before), args.agents, wave, report);
    report.note(format!("wave {wave}: PSS with agents, MB"), format!("{:.1}", megabytes(connected.pss)));

    source.stop();
    let lost = join_all(agents).await?.into_iter().filter(|stayed| !stayed).count();
    report.must_be_zero(format!("wave {wave}: agents that lost their connection"), lost as u64);
    note_given_back(&fixture.service, connected.rss, before, wave, report).await
}

fn note_connected(grown: u64, agents: usize, wave: u32, report: &mut Report) {
    report.note(format!("wave {wave}: RSS grown by, MB"), format!("{:.1}", megabytes(grown)));
    let per_agent = grown as f64 / agents.max(1) as f64 / 1e3;
    report.key_figure(format!("wave {wave}: memory of one agent connection, KB"), Row::IdleConnection, per_agent);
}

async fn note_given_back(
    service: &Service,
    connected: u64,
    before: u64,
    wave: u32,
    report: &mut Report,
) -> anyhow::Result<()> {
    let mut waited = Duration::ZERO;
    for look in LOOKS {
        sleep(look.saturating_sub(waited)).await;
        waited = look;
        let rss = service.memory()?.rss;
        let after = format!("wave {wave}: {} s after they left", look.as_secs());
        report.note(format!("{after}: RSS, MB"), format!("{:.1}", megabytes(rss)));
        let grown = connected.saturating_sub(before).max(1);
        let given_back = connected.saturating_sub(rss) as f64 / grown as f64 * 100.0;
        let title = format!("{after}: given back, % of what was grown");
        match look == LAST_LOOK {
            true => report.key_figure(title, Row::IdleGivenBack, given_back),
            false => report.note(title, rounded(given_back)),
        }
    }
    Ok(())
}

/// Keeps a connection alive. Answers whether it lasted until the end.
async fn hold(mut socket: AgentSocket, mut stop: Stop) -> bool {
    loop {
        tokio::select! {
            () = stop.requested() => break,
            message = socket.next() => {
                if message.is_err() {
                    return false;
                }
            }
        }
    }
    socket.close().await;
    true
}
