//! A service of one instance.

use std::sync::Arc;
use std::time::Duration;

use tokio::task::JoinSet;
use uuid::Uuid;

use super::super::StartupError;
use super::Wiring;
use crate::alerts::{self, Alerts};
use crate::audit::chain::{BEGINNING, Head};
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
    /// Makes sure that no other instance uses the database.
    pub async fn begin(store: &Store) -> Result<Self, StartupError> {
        // An embedded database cannot be used by others.
        let cluster = if store.has_sample_table() {
            Cluster::in_place(Sole::take(store.clone(), Uuid::now_v7()).await?)
        } else {
            Cluster::alone()
        };
        // Sessions in the database are leftovers of an earlier process.
        store.forget_sessions().await?;
        // A database with an unfinished import may lack the head, and is refused next.
        let is_unfinished = store.has_unfinished_import().await?;
        let beginning = Head { seq: 0, hash: BEGINNING.into() };
        let head_at_start = if is_unfinished { beginning } else { store.audit_head().await? };
        Ok(Self { cluster, head_at_start })
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
