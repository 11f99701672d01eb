//! The agent, a small program that runs on every server: it reads the machine, stores its samples until the service has them,
//! and connects to the service.
//!
//! The path of a sample: [`collector`] reads `/proc` and `/sys` → [`sampler`] checks and rounds it and writes it into the
//! [`backlog`] (a bounded file, [`buffer`]) → [`connection`] sends what is not acknowledged yet → the service's `ack` frees it.
//! Sampling never waits for the connection, nor the connection for the sampling. While somebody watches the server, [`live`]
//! passes samples of the moment from the sampler to the connection, and no buffer keeps them.
//!
//! [`run`] is the agent of this machine, [`run_with`] one with another source of samples; both end with an [`Exit`]. Any number
//! of agents can run in one process.
//!
//! The machine's owner decides in [`policy`] what the service may do with the machine: [`commands`] runs shell commands,
//! [`terminal`] opens terminals, which [`recordings`] records, [`requests`] answers questions. What they may do with a signature
//! only, [`signed`] decides. Which new builds of the agent take the place of this one, [`updates`] decides.

#[cfg(not(target_os = "linux"))]
compile_error!("signalbox-agent reads Linux' /proc and /sys and runs on Linux only");

mod backlog;
mod backoff;
mod buffer;
pub mod catalog;
pub mod cli;
mod collector;
mod commands;
mod config;
mod connection;
mod controls;
pub mod docker;
pub mod environment;
mod events;
mod exit;
#[doc(hidden)]
pub mod fuzzing;
#[doc(hidden)]
pub mod guard;
mod identity;
mod info;
mod live;
mod logs;
pub mod policy;
mod process;
pub mod program;
mod proxy;
mod recordings;
mod requests;
mod sampler;
pub mod secret_file;
pub mod signed;
mod source;
mod state;
mod streams;
mod suspend;
mod terminal;
mod text;
pub mod tls_words;
pub mod updates;
mod url;
mod wire;

pub use catalog::Catalog;
pub use collector::Machine;
pub use config::{ApiKey, BufferLimits, Config, ConfigError, Interval, LiveSamples, RecordingLimits, Roots, Timing};
pub use exit::Exit;
pub use proxy::Proxy;
pub use source::Source;
pub use url::{ServiceUrl, UrlError};

use backlog::Backlog;
use connection::Connector;
use controls::Controls;
use docker::{Docker, RunningContainers};
use events::Events;
use policy::{DockerAccess, Policy};
use signalbox_protocol::agent::AgentInfo;
use signed::Gate;
use state::StateDir;
use tokio::sync::watch;
use updates::{Ending, Updates};

/// Runs the agent of this machine until `shutdown` resolves or the service refuses it for good.
pub async fn run(config: Config, shutdown: impl Future<Output = ()> + Send) -> Exit {
    let state = config.state_dir.as_deref().map(StateDir::new);
    run_in(config, state, shutdown).await
}

/// Runs the agent of this machine with this state directory.
async fn run_in(config: Config, state: Option<StateDir>, shutdown: impl Future<Output = ()> + Send) -> Exit {
    let running = RunningContainers::default();
    let machine = Machine::new(&config, running.clone());
    let info = AgentInfo {
        version: config.updates.running.version.to_string(),
        failed_update: config.updates.failed_update(),
        ..info::read(&config.roots, &config.policy, config.demands.as_deref())
    };
    let gate = Gate::open(&config, state.clone());
    let (docker, events) = (Docker::new(&config.policy, gate.clone()), Events::default());
    tokio::select! {
        exit = run_agent(config, info, machine, Own { state, gate, docker: docker.clone() }, events.clone(), shutdown) => exit,
        () = docker.watch(&events, &running) => Exit::Stopped,
    }
}

/// Runs an agent that describes itself with `info` and sends the samples of `source`.
pub async fn run_with(
    config: Config,
    info: AgentInfo,
    source: impl Source,
    shutdown: impl Future<Output = ()> + Send,
) -> Exit {
    // This machine's containers are not those of a simulated one.
    let state = config.state_dir.as_deref().map(StateDir::new);
    let gate = Gate::open(&config, state.clone());
    let docker = Docker::new(&Policy { docker: DockerAccess::Off.into(), ..Policy::default() }, gate.clone());
    run_agent(config, info, source, Own { state, gate, docker }, Events::default(), shutdown).await
}

/// What one agent's parts share.
struct Own {
    state: Option<StateDir>,
    gate: Gate,
    docker: Docker,
}

async fn run_agent(
    config: Config,
    info: AgentInfo,
    source: impl Source,
    own: Own,
    events: Events,
    shutdown: impl Future<Output = ()> + Send,
) -> Exit {
    let Own { state, gate, docker } = own;
    if config.updates.signers.is_some() && config.state_dir.is_none() {
        return Exit::Misconfigured("updates = \"signed\" needs a state directory".to_owned());
    }
    let backlog = match Backlog::open(&config, state.clone(), source.catalog()) {
        Ok(backlog) => backlog,
        Err(error) => return Exit::Misconfigured(error.to_string()),
    };
    let controls = Controls::open(&config, state, gate);
    let updates = Updates::new(&config);
    let (interval, intervals) = watch::channel(config.interval);
    let connector = match Connector::new(config, info, interval, docker, events.clone(), updates.clone()) {
        Ok(connector) => connector,
        Err(error) => return Exit::Misconfigured(error.to_string()),
    };
    let shutdown = async {
        tokio::select! {
            biased;
            () = shutdown => {}
            () = updates.ending(connector.endpoint(), &controls, &events) => {}
        }
    };
    let exit = tokio::select! {
        exit = connection::stay_connected(&connector, &backlog, &controls, shutdown) => exit,
        () = sampler::sample_forever(source, &backlog, intervals, &controls.live) => Exit::Stopped,
        error = backlog.refused() => Exit::Misconfigured(error.to_string()),
    };
    tokio::join!(controls.commands.stop(), controls.recordings.stop());
    match (exit, updates.chosen()) {
        (Exit::Stopped, Some(Ending::Update(build))) => Exit::Update(build),
        (Exit::Stopped, Some(Ending::Works)) => Exit::Works,
        (exit, _) => exit,
    }
}
