//! Everything a handler or a socket may use, behind cheap clones.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};

use tokio::sync::Semaphore;

use crate::alerts::Alerts;
use crate::auth::access::Access;
use crate::auth::account::Accounts;
use crate::cluster::Cluster;
use crate::commands::Jobs;
use crate::config::Config;
use crate::disk::DiskGuard;
use crate::feeds::Feeds;
use crate::fleet::Fleet;
use crate::install::Programs;
use crate::logs::Logs;
use crate::metrics::archive::ArchiveHandle;
use crate::metrics::pipeline::Pipeline;
use crate::metrics::query::History;
use crate::metrics::recorder::RecorderHandle;
use crate::metrics::tail::Tail;
use crate::notify::Notifier;
use crate::registry::RegistryHandle;
use crate::store::Store;

#[derive(Clone)]
pub struct State {
    pub config: Arc<Config>,
    pub cluster: Cluster,
    pub store: Store,
    pub accounts: Accounts,
    pub access: Access,
    pub fleet: Fleet,
    pub feeds: Feeds,
    pub registry: RegistryHandle,
    pub jobs: Jobs,
    pub recorder: RecorderHandle,
    pub pipeline: Pipeline,
    pub history: History,
    pub tail: Tail,
    pub logs: Logs,
    pub alerts: Alerts,
    pub notifier: Notifier,
    pub archive: ArchiveHandle,
    pub disk: DiskGuard,
    /// What machines install.
    pub programs: Programs,
    /// Places for agents that have not authenticated yet.
    pub handshakes: Arc<Semaphore>,
    pub sockets: Sockets,
    /// Whether the log has told of a page of another origin.
    pub has_told_origin: Arc<AtomicBool>,
}

/// Counts open sockets, so that the end of the service knows when they have said goodbye.
#[derive(Clone, Default)]
pub struct Sockets(Arc<AtomicUsize>);

impl Sockets {
    pub fn count(&self) -> usize {
        self.0.load(Ordering::Relaxed)
    }

    /// One more, until the guard is dropped.
    pub fn opened(&self) -> OpenSocket {
        self.0.fetch_add(1, Ordering::Relaxed);
        OpenSocket(self.clone())
    }
}

/// An open socket.
pub struct OpenSocket(Sockets);

impl Drop for OpenSocket {
    fn drop(&mut self) {
        self.0.0.fetch_sub(1, Ordering::Relaxed);
    }
}
