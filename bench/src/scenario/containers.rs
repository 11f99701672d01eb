//! The cost of watching containers: the agent's own, and that of the work it causes in the engine.

use std::time::{Duration, Instant};

use anyhow::Context;
use clap::Args;
use tokio::time::sleep;

use super::seconds;
use crate::engine::{Engine, Kind};
use crate::figures::Row;
use crate::fixture::{Enrolled, Fixture};
use crate::real_agent::{AgentOptions, RealAgent, flag};
use crate::report::{Report, megabytes, progress};
use crate::service::ServiceOptions;

#[derive(Debug, Args)]
pub struct ContainersArgs {
    #[command(flatten)]
    pub agent: AgentOptions,
    #[arg(long, default_value_t = 10)]
    pub containers: usize,
    /// What runs in each. One that writes a line a second: `while :; do echo line; sleep 1; done`.
    #[arg(long, default_value = "sleep 1000000")]
    pub container_command: String,
    #[arg(long, value_enum, default_value = "docker")]
    pub engine: Kind,
    /// Seconds between two samples.
    #[arg(long, default_value_t = 5.0)]
    pub interval: f64,
    /// Seconds of each of the three stretches: without the agent, with it, and without it again.
    #[arg(long, default_value = "300", value_parser = seconds)]
    pub duration: Duration,
    /// Seconds before each stretch, in which starts and ends wear off.
    #[arg(long, default_value = "30", value_parser = seconds)]
    pub settle: Duration,
}

/// CPU seconds per hour in a stretch.
#[derive(Debug, Clone, Copy, Default)]
struct Rates {
    engine: f64,
    agent: f64,
}

pub async fn run(options: &ServiceOptions, args: &ContainersArgs) -> anyhow::Result<()> {
    let fixture = Fixture::start(options, 1).await?;
    let enrolled = fixture.fleet.first().context("there is no server")?;
    progress(format_args!("{} with {} containers", args.engine.name(), args.containers));
    let engine = Engine::start(args.engine).await?;
    for number in 0..args.containers {
        engine.run_container(&format!("container-{number}"), &args.container_command).await?;
    }

    let before = stretch(args, &engine, None).await?;
    let agent = start_agent(args, &fixture, enrolled, &engine).await?;
    let with = stretch(args, &engine, Some(&agent)).await?;
    let (rss, seen) = (agent.memory()?.rss, fixture.rest.latest(enrolled.server_id).await?.containers.len());
    agent.stop().await?;
    let after = stretch(args, &engine, None).await?;

    let mut report = Report::new(format!(
        "containers: {} on {}, a sample every {} s, stretches of {} s",
        args.containers,
        args.engine.name(),
        args.interval,
        args.duration.as_secs()
    ));
    let idle = f64::midpoint(before.engine, after.engine);
    report.key_figure("agent, CPU s per hour", Row::ContainersAgent, with.agent);
    report.key_figure("engine beyond idle, CPU s per hour", Row::ContainersEngine, with.engine - idle);
    let engines = [before, with, after].map(|rates| format!("{:.2}", rates.engine)).join(", ");
    report.note("engine without the agent, with it, without it, CPU s per hour", engines);
    report.note("RSS of the agent, MB", format!("{:.1}", megabytes(rss)));
    report.must_be_zero("containers missing in the latest sample", args.containers.abs_diff(seen) as u64);
    report.finish()
}

async fn start_agent(
    args: &ContainersArgs,
    fixture: &Fixture,
    enrolled: &Enrolled,
    engine: &Engine,
) -> anyhow::Result<RealAgent> {
    let flags = [
        flag("--docker", "read"),
        flag("--docker-host", engine.address()),
        flag("--interval", args.interval.to_string()),
    ];
    RealAgent::start(&args.agent, fixture, enrolled, &flags.concat()).await
}

/// The use of engine and agent in a period, once they have settled.
async fn stretch(args: &ContainersArgs, engine: &Engine, agent: Option<&RealAgent>) -> anyhow::Result<Rates> {
    sleep(args.settle).await;
    let how = if agent.is_some() { "with" } else { "without" };
    progress(format_args!("{how} the agent, for {} s", args.duration.as_secs()));
    // The agent's command line names the engine's socket, and with it the engine's folder.
    let but: Vec<u32> = agent.map(RealAgent::pid).into_iter().collect();
    let agent_cpu = || agent.map_or(Ok(Duration::ZERO), |agent| agent.cpu().map(|cpu| cpu.total()));
    let (start, engine_before, agent_before) = (Instant::now(), engine.cpu(&but)?, agent_cpu()?);
    sleep(args.duration).await;
    let hours = start.elapsed().as_secs_f64() / 3600.0;
    Ok(Rates {
        engine: engine.cpu(&but)?.since(&engine_before).as_secs_f64() / hours,
        agent: agent_cpu()?.saturating_sub(agent_before).as_secs_f64() / hours,
    })
}
