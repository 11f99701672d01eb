//! Load generator for the Signalbox service: real WebSocket agents and dashboards against a real service, which it
//! starts itself on loopback with a throw-away database.
//!
//! Standard output carries one Markdown table a scenario, standard error says what is going on. A missed aim is a
//! figure like any other; a lost or doubled sample, an unanswered request, an agent that does not come back end the
//! program with an error. `bench/README.md` says what each scenario measures.

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
mod template;
mod usage;
mod webhook;
mod wrk;

use std::process::ExitCode;

use clap::{Parser, Subcommand};
use tokio::signal::unix::{SignalKind, signal};

use crate::hello::HelloArgs;
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
use crate::scenario::rest::RestArgs;
use crate::scenario::soak::SoakArgs;
use crate::scenario::steady::SteadyArgs;
use crate::scenario::storm::StormArgs;
use crate::scenario::thresholds::ThresholdsArgs;
use crate::service::ServiceOptions;

/// Load generator for the Signalbox service.
#[derive(Debug, Parser)]
#[command(name = "signalbox-bench", version)]
struct Cli {
    #[command(flatten)]
    service: ServiceOptions,
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
    /// An hour of everything at once: agents, dashboards, commands, backfill, restarts, a hostile agent, a moving clock.
    Soak(SoakArgs),
    /// The bare server that `rest` compares with.
    Hello(HelloArgs),
}

fn main() -> ExitCode {
    // Whether reqwest brings one depends on what else is built with it.
    _ = rustls::crypto::aws_lc_rs::default_provider().install_default();
    match start(&Cli::parse()) {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            eprintln!("error: {error:#}");
            ExitCode::FAILURE
        }
    }
}

fn start(cli: &Cli) -> anyhow::Result<()> {
    limits::raise_open_files()?;
    if let Scenario::Hello(args) = &cli.scenario {
        // The framework brings its own runtime.
        return hello::serve(args);
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
        Scenario::Soak(args) => scenario::soak::run(&cli.service, args).await,
        Scenario::Hello(_) => anyhow::bail!("hello is no scenario"),
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
