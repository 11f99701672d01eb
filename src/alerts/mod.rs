//! Thresholds and the alerts that they raise.
//!
//! [`rule`] says when one fires and when it has recovered, and is pure. A server that has thresholds has an evaluator,
//! an actor, which feeds it; what comes of it is written before anything else is looked at, together with what people
//! are to be told.

pub mod containers;
pub mod kind;
pub mod reading;
pub mod rule;
pub mod text;

use std::sync::Arc;

use signalbox_protocol::agent::Event;
use signalbox_protocol::frontend::ServerStatus;
use signalbox_protocol::sample::TopProcesses;
use uuid::Uuid;

use crate::audit::Actor;
use crate::fleet::Snapshot;
use crate::store::{Alert, Store, StoreError};

/// Whose rules have changed.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Scope {
    /// Of all servers of this owner.
    Owner(Uuid),
    Server(Uuid),
}

/// Whether a sample is of now.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Lane {
    Live,
    /// From an agent that catches up.
    Late,
}

/// The evaluators, behind cheap clones.
#[derive(Clone)]
pub struct Alerts {
    store: Store,
}

impl Alerts {
    pub fn new(store: Store) -> Self {
        Self { store }
    }

    /// A sample came.
    pub fn sample(&self, _snapshot: &Arc<Snapshot>, _processes: Option<&Arc<TopProcesses>>, _lane: Lane) {}

    /// An agent tells what happened on its machine.
    pub fn happened(&self, _server_id: Uuid, _event: &Event) {}

    /// An agent came or went.
    pub fn presence(&self, _server_id: Uuid, _status: ServerStatus) {}

    /// Thresholds, tags or servers have changed: comes back when the evaluators go by what the database says now.
    pub async fn rules_changed(&self, _scope: Scope) -> Result<(), StoreError> {
        Ok(())
    }

    /// Somebody looks after an alert. Gives it as it is then; none where the owner has no such alert. One that is
    /// acknowledged or resolved already stays as it is.
    pub async fn acknowledge(&self, owner_id: Uuid, id: Uuid, actor: &Actor) -> Result<Option<Alert>, StoreError> {
        self.store.acknowledge_alert(owner_id, id, actor).await
    }

    /// Somebody resolves an alert by hand; what is resolved already stays as it is.
    pub async fn resolve(&self, owner_id: Uuid, id: Uuid, actor: &Actor) -> Result<Option<Alert>, StoreError> {
        self.store.resolve_alert(owner_id, id, actor).await
    }
}
