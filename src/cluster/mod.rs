//! Several instances of the service on one database. Which of them an agent or a person is connected to makes no
//! difference to anybody.
//!
//! - [`follow`]: what others change, as the audit log tells it
//! - [`exchange`]: what happens, to whoever watches it on another instance; [`interest`]: who does
//! - [`company`]: what an instance asks of the others: of none, where it is alone
//! - [`members`]: which instances are alive
//! - [`sole`]: the place of an instance that is alone
//! - [`remote`]: servers whose agents other instances hold

pub mod company;
pub mod exchange;
pub mod follow;
pub mod interest;
pub mod members;
pub mod remote;
pub mod sole;

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use uuid::Uuid;

use crate::shards::Shards;
use company::{Company, Nobody, Others};
use follow::Bell;
use sole::Sole;

/// What this instance knows of the others, behind cheap clones.
#[derive(Clone)]
pub struct Cluster {
    /// Names this run of the service.
    pub instance_id: Uuid,
    pub shards: Shards,
    /// The others, or that there are none.
    pub company: Arc<dyn Company>,
    bell: Bell,
    is_draining: Arc<AtomicBool>,
}

impl Cluster {
    /// There is no other instance, and there cannot be one.
    pub fn alone() -> Self {
        Self::of(Uuid::now_v7(), Shards::all(), Arc::new(Nobody))
    }

    /// There is no other instance, in a place that others could take.
    pub fn in_place(sole: Sole) -> Self {
        Self::of(sole.id(), Shards::all(), Arc::new(sole))
    }

    /// One of several.
    pub fn among(others: Others) -> Self {
        Self::of(others.post.instance_id, others.members.shards(), Arc::new(others))
    }

    fn of(instance_id: Uuid, shards: Shards, company: Arc<dyn Company>) -> Self {
        Self { instance_id, shards, company, bell: Bell::default(), is_draining: Arc::default() }
    }

    /// Something was changed here that the audit log tells: the others look at once.
    pub fn bell(&self) -> &Bell {
        &self.bell
    }

    /// This instance ends soon.
    pub async fn drain(&self) {
        self.is_draining.store(true, Ordering::SeqCst);
        self.company.drain().await;
    }

    pub fn is_draining(&self) -> bool {
        self.is_draining.load(Ordering::SeqCst)
    }
}
