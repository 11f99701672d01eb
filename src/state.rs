//! Everything that handlers and sockets may use. Clones are cheap.

use std::ops::Deref;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};

use signalbox_protocol::Timestamp;

use crate::alerts::Alerts;
use crate::auth::account::Accounts;
use crate::auth::oidc::Oidc;
use crate::clock::Clock;
use crate::cluster::Cluster;
use crate::commands::Jobs;
use crate::config::Config;
use crate::disk::DiskGuard;
use crate::events::ServerEvents;
use crate::feeds::Feeds;
use crate::fleet::Fleet;
use crate::ingest::Pipeline;
use crate::install::Programs;
use crate::logs::Logs;
use crate::memory::Memory;
use crate::metrics::archive::ArchiveHandle;
use crate::metrics::query::History;
use crate::metrics::recorder::RecorderHandle;
use crate::metrics::tail::Tail;
use crate::notify::Notifier;
use crate::registry::RegistryHandle;
use crate::shares::Shares;
use crate::store::Store;

/// All components, shared: every request has a clone, so a clone counts one reference and not one for each component.
#[derive(Clone)]
pub struct State(Arc<Parts>);

impl State {
    pub fn new(parts: Parts) -> Self {
        Self(Arc::new(parts))
    }
}

impl Deref for State {
    type Target = Parts;

    fn deref(&self) -> &Parts {
        &self.0
    }
}

/// The components of the service.
pub struct Parts {
    pub config: Arc<Config>,
    pub clock: Clock,
    /// When this process started.
    pub started_at: Timestamp,
    pub cluster: Cluster,
    pub store: Store,
    /// Shared, because every socket holds it.
    pub accounts: Arc<Accounts>,
    /// The identity provider that people may sign in at.
    pub oidc: Option<Oidc>,
    pub fleet: Fleet,
    pub feeds: Feeds,
    pub registry: RegistryHandle,
    pub jobs: Jobs,
    pub metrics: Metrics,
    pub logs: Logs,
    pub alerts: Alerts,
    pub events: ServerEvents,
    pub notifier: Notifier,
    /// The agent programs that machines install.
    pub programs: Programs,
    pub limits: Limits,
}

/// The components of metrics, from incoming samples to queries.
#[derive(Clone)]
pub struct Metrics {
    pub pipeline: Pipeline,
    pub recorder: RecorderHandle,
    pub tail: Tail,
    pub archive: ArchiveHandle,
    pub history: History,
}

/// Limited resources.
#[derive(Clone)]
pub struct Limits {
    pub disk: DiskGuard,
    pub memory: Memory,
    /// The fair shares of scarce resources.
    pub shares: Shares,
    pub requests: Requests,
    pub sockets: Counter,
    /// All connections, whatever they are used for.
    pub connections: Counter,
}

/// Counts the requests that are being answered, so that the service can wait at its end for those that began before it.
#[derive(Clone, Default)]
pub struct Requests {
    running: Counter,
    is_ending: Arc<AtomicBool>,
}

impl Requests {
    /// Counts one more request until the guard is dropped, unless the service is ending.
    pub fn began(&self) -> Option<Counted> {
        (!self.is_ending.load(Ordering::Relaxed)).then(|| self.running.opened())
    }

    /// Takes in that the service is ending. Returns the count of those that began before.
    pub fn end(&self) -> &Counter {
        self.is_ending.store(true, Ordering::Relaxed);
        &self.running
    }
}

/// Counts what is open, so that the service can wait at its end until it is closed.
#[derive(Clone, Default)]
pub struct Counter(Arc<AtomicUsize>);

impl Counter {
    pub fn count(&self) -> usize {
        self.0.load(Ordering::Relaxed)
    }

    /// Counts one more until the guard is dropped.
    pub fn opened(&self) -> Counted {
        self.0.fetch_add(1, Ordering::Relaxed);
        Counted(self.clone())
    }
}

/// Something open that is counted.
pub struct Counted(Counter);

impl Drop for Counted {
    fn drop(&mut self) {
        self.0.0.fetch_sub(1, Ordering::Relaxed);
    }
}
