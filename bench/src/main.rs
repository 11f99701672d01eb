//! Load generator for the Signalbox service: real WebSocket agents and dashboards against a real service, which it
//! starts itself on loopback with a throw-away database.
//! Standard output has one Markdown table per scenario, standard error reports progress. A missed aim is a figure like any
//! other; a lost or doubled sample, an unanswered request or an agent that does not return end the program with an error.
//! `bench/README.md` says what each scenario measures.

#![allow(clippy::print_stdout, reason = "the report is what this program is for")]
#![allow(clippy::print_stderr, reason = "progress is for the person who waits for the report")]

mod agent;
mod alert_feed;
mod backoff;
mod bucket;
mod child;
mod cluster;
mod dashboard;
mod data;
mod delay;
mod engine;
mod feed_reader;
mod figures;
mod fixture;
mod group;
mod hello;
mod limits;
mod loopback;
mod peer;
mod probe;
mod process;
mod question;
mod real_agent;
mod remote;
mod report;
mod rest;
mod scenario;
mod sent_times;
mod service;
mod socket;
mod sqlite;
mod stats;
mod stop;
mod store;
mod table;
mod template;
mod usage;
mod webhook;
mod wrk;

use std::path::PathBuf;
use std::process::ExitCode;

use anyhow::Context;
use clap::{CommandFactory, FromArgMatches, Parser, Subcommand};
use tokio::signal::unix::{SignalKind, signal};

use crate::figures::Line;
use crate::hello::HelloArgs;
use crate::report::in_one_line;
use crate::scenario::abuse::AbuseArgs;
use crate::scenario::across::AcrossArgs;
use crate::scenario::alert::AlertArgs;
use crate::scenario::alert_burst::AlertBurstArgs;
use crate::scenario::alert_lists::AlertListsArgs;
use crate::scenario::burst::BurstArgs;
use crate::scenario::command::CommandArgs;
use crate::scenario::containers::ContainersArgs;
use crate::scenario::fanout::FanoutArgs;
use crate::scenario::fleet_command::FleetCommandArgs;
use crate::scenario::history::HistoryArgs;
use crate::scenario::idle::IdleArgs;
use crate::scenario::ingest::IngestArgs;
use crate::scenario::inserts::InsertsArgs;
use crate::scenario::instances::InstancesArgs;
use crate::scenario::kill::KillArgs;
use crate::scenario::logs::LogsArgs;
use crate::scenario::machine::MachineArgs;
use crate::scenario::rest::RestArgs;
use crate::scenario::shared::SharedArgs;
use crate::scenario::signed::SignedArgs;
use crate::scenario::soak::SoakArgs;
use crate::scenario::steady::SteadyArgs;
use crate::scenario::storm::StormArgs;
use crate::scenario::thresholds::ThresholdsArgs;
use crate::service::ServiceOptions;
use crate::table::TableArgs;

/// Load generator for the Signalbox service.
#[derive(Debug, Parser)]
#[command(name = "signalbox-bench", version)]
struct Cli {
    #[command(flatten)]
    service: ServiceOptions,
    /// Where the figures of the table of all are appended, a JSON object a line.
    #[arg(long, global = true, env = "BENCH_FIGURES")]
    figures: Option<PathBuf>,
    #[command(subcommand)]
    scenario: Scenario,
}

#[derive(Debug, Subcommand)]
enum Scenario {
    /// Memory of connected agents that say nothing, and what is given back when they leave.
    Idle(IdleArgs),
    /// CPU and memory under many agents that send one sample every few seconds.
    Steady(SteadyArgs),
    /// Samples acknowledged per core while agents catch up.
    Burst(BurstArgs),
    /// CPU per delivery when many dashboards watch one server.
    Fanout(FanoutArgs),
    /// GET /metrics/{id} beside a bare hello of the same framework.
    Rest(RestArgs),
    /// How long a fleet needs to come back after a restart.
    Storm(StormArgs),
    /// Whether every acknowledged sample survives kill -9.
    Kill(KillArgs),
    /// The history of metrics beside VictoriaMetrics and Prometheus: bytes a value, and the same questions.
    History(HistoryArgs),
    /// What taking realistic samples costs, and whether that grows with the number of servers.
    Ingest(IngestArgs),
    /// The round trip of `true` beside ssh, Salt and Ansible.
    Command(CommandArgs),
    /// What a signature costs: `true` signed and unsigned, over REST and by signalboxctl, beside ssh with the same key.
    Signed(SignedArgs),
    /// One command on a whole fleet.
    FleetCommand(FleetCommandArgs),
    /// A log of one real agent on many dashboards.
    Logs(LogsArgs),
    /// What watching containers costs an agent and the engine.
    Containers(ContainersArgs),
    /// From a sample that crosses a threshold to the alert on a socket and at a webhook, beside Prometheus with
    /// Alertmanager.
    Alert(AlertArgs),
    /// Many servers that cross a threshold within a second.
    AlertBurst(AlertBurstArgs),
    /// What thresholds cost a sample and a server.
    Thresholds(ThresholdsArgs),
    /// Ways to write samples into PostgreSQL: what SeaORM writes, arrays, COPY.
    Inserts(InsertsArgs),
    /// One instance beside two and three on PostgreSQL and NATS: what they take, and what a sample costs.
    Instances(InstancesArgs),
    /// Three instances: commands and calls through another one, what goes over NATS, and one that is killed.
    Across(AcrossArgs),
    /// What honest people notice of silent sockets and wrong passwords by the hundred.
    Abuse(AbuseArgs),
    /// How long lists and counts of alerts take beside a year of resolved ones, on both databases.
    AlertLists(AlertListsArgs),
    /// Servers that are shared by a tag, as somebody else and as their owner lists and watches them.
    Shared(SharedArgs),
    /// An hour of everything at once: agents, dashboards, commands, backfill, restarts, a hostile agent, a moving clock.
    Soak(SoakArgs),
    /// What else the machine does, and how fast it is.
    Machine(MachineArgs),
    /// The bare server that `rest` compares with.
    Hello(HelloArgs),
    /// Makes the table of all figures from what the scenarios have appended.
    Table(TableArgs),
}

fn main() -> ExitCode {
    // Whether reqwest includes one depends on what else is built with it.
    _ = rustls::crypto::aws_lc_rs::default_provider().install_default();
    let matches = Cli::command().get_matches();
    let cli = Cli::from_arg_matches(&matches).unwrap_or_else(|error| error.exit());
    match start(&cli) {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            eprintln!("error: {error:#}");
            if let Some(scenario) = matches.subcommand_name().filter(|_| cli.scenario.has_figures()) {
                note_failure(scenario, &error);
            }
            ExitCode::FAILURE
        }
    }
}

/// So that the table can say why rows are missing.
fn note_failure(scenario: &str, error: &anyhow::Error) {
    /// The rest is in the printed report.
    const SHOWN: usize = 200;

    let why: String = in_one_line(error).chars().take(SHOWN).collect();
    if let Err(error) = figures::append([Line::not_measured(scenario, &why)]) {
        eprintln!("error: {error:#}");
    }
}

impl Scenario {
    fn has_figures(&self) -> bool {
        !matches!(self, Self::Hello(_) | Self::Table(_))
    }
}

fn start(cli: &Cli) -> anyhow::Result<()> {
    if let Scenario::Table(args) = &cli.scenario {
        let figures = cli.figures.as_ref().context("--figures says of what the table is made")?;
        return table::make(args, figures);
    }
    limits::raise_open_files()?;
    if let Scenario::Hello(args) = &cli.scenario {
        // The framework brings its own runtime.
        return hello::serve(args);
    }
    if let Some(file) = &cli.figures {
        figures::write_to(file.clone());
    }
    let runtime = tokio::runtime::Builder::new_multi_thread().enable_all().build()?;
    runtime.block_on(async {
        // Dropping the scenario kills the children that it started.
        tokio::select! {
            result = run(cli) => result,
            signal = interrupted() => signal.and_then(|()| anyhow::bail!("interrupted")),
        }
    })
}

async fn run(cli: &Cli) -> anyhow::Result<()> {
    match &cli.scenario {
        Scenario::Idle(args) => scenario::idle::run(&cli.service, args).await,
        Scenario::Steady(args) => scenario::steady::run(&cli.service, args).await,
        Scenario::Burst(args) => scenario::burst::run(&cli.service, args).await,
        Scenario::Fanout(args) => scenario::fanout::run(&cli.service, args).await,
        Scenario::Rest(args) => scenario::rest::run(&cli.service, args).await,
        Scenario::Storm(args) => scenario::storm::run(&cli.service, args).await,
        Scenario::Kill(args) => scenario::kill::run(&cli.service, args).await,
        Scenario::History(args) => scenario::history::run(&cli.service, args).await,
        Scenario::Ingest(args) => scenario::ingest::run(&cli.service, args).await,
        Scenario::Command(args) => scenario::command::run(&cli.service, args).await,
        Scenario::Signed(args) => scenario::signed::run(&cli.service, args).await,
        Scenario::FleetCommand(args) => scenario::fleet_command::run(&cli.service, args).await,
        Scenario::Logs(args) => scenario::logs::run(&cli.service, args).await,
        Scenario::Containers(args) => scenario::containers::run(&cli.service, args).await,
        Scenario::Alert(args) => scenario::alert::run(&cli.service, args).await,
        Scenario::AlertBurst(args) => scenario::alert_burst::run(&cli.service, args).await,
        Scenario::Thresholds(args) => scenario::thresholds::run(&cli.service, args).await,
        Scenario::Inserts(args) => scenario::inserts::run(&cli.service, args).await,
        Scenario::Instances(args) => scenario::instances::run(&cli.service, args).await,
        Scenario::Across(args) => scenario::across::run(&cli.service, args).await,
        Scenario::Abuse(args) => scenario::abuse::run(&cli.service, args).await,
        Scenario::AlertLists(args) => scenario::alert_lists::run(&cli.service, args).await,
        Scenario::Shared(args) => scenario::shared::run(&cli.service, args).await,
        Scenario::Soak(args) => scenario::soak::run(&cli.service, args).await,
        Scenario::Machine(args) => scenario::machine::run(&cli.service, args).await,
        Scenario::Hello(_) | Scenario::Table(_) => anyhow::bail!("this is no scenario"),
    }
}

/// Waits for Ctrl-C or SIGTERM.
async fn interrupted() -> anyhow::Result<()> {
    let mut terminate = signal(SignalKind::terminate())?;
    tokio::select! {
        result = tokio::signal::ctrl_c() => Ok(result?),
        _ = terminate.recv() => Ok(()),
    }
}
