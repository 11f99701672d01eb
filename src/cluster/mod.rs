//! Several instances of the service on one database. It makes no difference to which of them an agent or a person is
//! connected.
//!
//! - [`change_feed`]: changes made by other instances, read from the audit log
//! - [`relay`]: carries events to subscribers on other instances; [`interest`]: which topics they subscribe to
//! - [`company`]: what an instance asks of the others; a lone instance asks nothing
//! - [`members`]: which instances are alive
//! - [`sole`]: the claim of an instance that is alone
//! - [`remote`]: servers whose agents are connected to other instances

pub mod change_feed;
pub mod company;
pub mod interest;
pub mod members;
pub mod relay;
pub mod remote;
pub mod sole;

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use uuid::Uuid;

use crate::shards::Shards;
use change_feed::ChangeSignal;
use company::{Company, Nobody, Others};
use sole::Sole;

/// What this instance knows of the others. Clones are cheap.
#[derive(Clone)]
pub struct Cluster {
    /// The id of this run of the service.
    pub instance_id: Uuid,
    pub shards: Shards,
    /// The other instances, if there are any.
    pub company: Arc<dyn Company>,
    change_signal: ChangeSignal,
    is_draining: Arc<AtomicBool>,
}

impl Cluster {
    /// A cluster of one, in which no other instance can exist.
    pub fn alone() -> Self {
        Self::of(Uuid::now_v7(), Shards::all(), Arc::new(Nobody))
    }

    /// A cluster of one that other instances could replace.
    pub fn in_place(sole: Sole) -> Self {
        Self::of(sole.id(), Shards::all(), Arc::new(sole))
    }

    /// A cluster of several instances.
    pub fn among(others: Others) -> Self {
        Self::of(others.bus_client.instance_id, others.members.shards(), Arc::new(others))
    }

    fn of(instance_id: Uuid, shards: Shards, company: Arc<dyn Company>) -> Self {
        Self { instance_id, shards, company, change_signal: ChangeSignal::default(), is_draining: Arc::default() }
    }

    /// Signals the other instances to read the audit log, after a change here.
    pub fn change_signal(&self) -> &ChangeSignal {
        &self.change_signal
    }

    /// Announces that this instance ends soon.
    pub async fn drain(&self) {
        self.is_draining.store(true, Ordering::SeqCst);
        self.company.drain().await;
    }

    pub fn is_draining(&self) -> bool {
        self.is_draining.load(Ordering::SeqCst)
    }
}
