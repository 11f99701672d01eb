//! A service of one instance.

use std::sync::Arc;
use std::time::Duration;

use tokio::task::JoinSet;
use uuid::Uuid;

use super::super::StartupError;
use super::Wiring;
use crate::alerts::{self, Alerts};
use crate::audit::chain::Head;
use crate::clock::{Clock, Lead};
use crate::cluster::Cluster;
use crate::cluster::change_feed::AuditTailer;
use crate::cluster::sole::Sole;
use crate::commands::{self, Jobs};
use crate::effects;
use crate::feeds::Feeds;
use crate::fleet::Fleet;
use crate::notify::senders::{OnlySender, Senders};
use crate::registry::{NoPeers, RemoteRouter};
use crate::state::State;
use crate::store::Store;

/// There is no other instance.
pub(super) struct Alone {
    cluster: Cluster,
    /// The last entry of the audit log when this instance started.
    head_at_start: Head,
}

impl Alone {
    /// Makes sure that no other instance uses the database, and brings its schema up to date.
    pub async fn begin(store: &Store) -> Result<Self, StartupError> {
        let cluster = if store.has_sample_table() {
            Cluster::in_place(take_place(store).await?)
        } else {
            // An embedded database cannot be used by others.
            store.migrate().await?;
            Cluster::alone()
        };
        // Sessions in the database are leftovers of an earlier process.
        store.forget_sessions().await?;
        let head_at_start = store.audit_head().await?;
        Ok(Self { cluster, head_at_start })
    }
}

/// Takes the only place on a PostgreSQL database. A schema in use is changed only after that.
async fn take_place(store: &Store) -> Result<Sole, StartupError> {
    if !store.is_outdated().await? {
        // It is current, or new: then it has no table for the place yet.
        store.migrate().await?;
    }
    let sole = Sole::take(store.clone(), Uuid::now_v7()).await?;
    match super::migrate(store).await {
        Ok(()) => Ok(sole),
        Err(error) => {
            sole.give_up().await;
            Err(error)
        }
    }
}

impl Wiring for Alone {
    fn cluster(&self) -> &Cluster {
        &self.cluster
    }

    fn lead(&self) -> Lead {
        Lead::Machine
    }

    fn live(&self, _: &Clock) -> (Fleet, Feeds) {
        (Fleet::default(), Feeds::default())
    }

    fn senders(&self) -> Box<dyn Senders> {
        Box::new(OnlySender)
    }

    fn alerts(&self, parts: alerts::Parts) -> Alerts {
        Alerts::alone(parts)
    }

    fn elsewhere(&self) -> Arc<dyn RemoteRouter> {
        Arc::new(NoPeers)
    }

    fn jobs(&self, parts: commands::Parts) -> Jobs {
        Jobs::alone(parts)
    }

    fn usual_drain(&self) -> Duration {
        Duration::ZERO
    }

    fn keep(&self, state: &State, work: &mut JoinSet<()>) {
        let follower = AuditTailer::from(state.store.clone(), self.head_at_start.clone());
        let followed = state.clone();
        work.spawn_local(follower.keep_beside(move |change| {
            let state = followed.clone();
            actix_web::rt::spawn(async move { effects::apply(&state, change).await });
        }));
        let jobs = state.jobs.clone();
        work.spawn_local(async move { jobs.batches().keep_resuming().await });
    }
}
