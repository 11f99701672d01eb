//! What the agents' sessions need of the service. All share one value: its handles take some 3 KB.

use std::sync::Arc;
use std::time::Duration;

use crate::alerts::Alerts;
use crate::clock::Clock;
use crate::commands::reports::AgentReports;
use crate::events::ServerEvents;
use crate::feeds::Feeds;
use crate::fleet::Fleet;
use crate::ingest::Pipeline;
use crate::memory::Memory;
use crate::metrics::recorder::RecorderHandle;
use crate::registry::RegistryHandle;
use crate::shares::{Gate, Seats};
use crate::state::{Counter, State};
use crate::store::Store;
use crate::ws::authenticate::Handshake;

/// Where an agent's messages go, and what admits it.
pub struct Services {
    pub handshake: Handshake,
    pub clock: Clock,
    pub store: Store,
    pub fleet: Fleet,
    pub feeds: Feeds,
    pub registry: RegistryHandle,
    pub reports: Arc<AgentReports>,
    pub pipeline: Pipeline,
    pub recorder: RecorderHandle,
    pub alerts: Alerts,
    pub events: ServerEvents,
    pub memory: Memory,
    /// Seats of peers that have sent nothing yet.
    pub silent: Seats,
    /// The open sockets of accounts: a terminal without its client counts as one.
    pub dashboards: Gate,
    pub sockets: Counter,
    pub timing: Timing,
}

/// Time limits of an agent's connection.
#[derive(Debug, Clone, Copy)]
pub struct Timing {
    /// Until it has sent its key.
    pub auth_deadline: Duration,
    /// Between two pings.
    pub ping_interval: Duration,
    /// For how long a terminal waits for a client that has lost its connection.
    pub terminal_kept: Duration,
}

impl Services {
    pub fn of(state: &State) -> Self {
        let (timing, handshake) = (&state.config.timing, Handshake::of(state));
        Self {
            clock: state.clock.clone(),
            store: state.store.clone(),
            fleet: state.fleet.clone(),
            feeds: state.feeds.clone(),
            registry: state.registry.clone(),
            reports: state.jobs.reports().clone(),
            pipeline: state.metrics.pipeline.clone(),
            recorder: state.metrics.recorder.clone(),
            alerts: state.alerts.clone(),
            events: state.events.clone(),
            memory: state.limits.memory.clone(),
            silent: state.limits.shares.silent_agents.clone(),
            dashboards: state.limits.shares.dashboards.clone(),
            sockets: state.limits.sockets.clone(),
            timing: Timing {
                auth_deadline: timing.auth_deadline,
                ping_interval: timing.ping_interval,
                terminal_kept: timing.terminal_kept,
            },
            handshake,
        }
    }
}
