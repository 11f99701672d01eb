//! A service of several instances.

use std::sync::Arc;
use std::time::Duration;

use tokio::task::JoinSet;
use uuid::Uuid;

use super::super::StartupError;
use super::Wiring;
use crate::alerts::{self, Alerts};
use crate::audit::chain::Head;
use crate::bus::Subscription;
use crate::bus::client::BusClient;
use crate::bus::nats::{NatsBus, NatsConfig};
use crate::bus::subject::Subjects;
use crate::clock::{Clock, Lead};
use crate::cluster::Cluster;
use crate::cluster::change_feed::AuditTailer;
use crate::cluster::company::Others;
use crate::cluster::members::{EnterError, Members};
use crate::cluster::relay::ClusterRelay;
use crate::cluster::remote::Remote;
use crate::commands::{self, Jobs};
use crate::effects;
use crate::feeds::Feeds;
use crate::fleet::Fleet;
use crate::notify::Notifier;
use crate::notify::senders::{OneOfSenders, Senders};
use crate::peer_server::{self, PeerServer};
use crate::reconciler::Reconciler;
use crate::registry::RemoteRouter;
use crate::state::State;
use crate::store::{NewInstance, Store};

/// How long a load balancer may take to notice that an instance ends.
const DRAIN: Duration = Duration::from_secs(3);

/// How long signals to other instances are gathered.
const NUDGE_EVERY: Duration = Duration::from_millis(20);

/// There may be other instances.
pub(super) struct Several {
    cluster: Cluster,
    others: Others,
    /// The end of the audit log when this instance started.
    head_at_start: Head,
}

impl Several {
    /// Joins the other instances, and brings the schema up to date. `mark` identifies the secrets that all instances must
    /// share.
    pub async fn join(nats: &NatsConfig, prefix: &str, store: &Store, mark: String) -> Result<Self, StartupError> {
        let instance_id = Uuid::now_v7();
        let bus = NatsBus::connect(nats, &format!("signalbox {instance_id}")).await?;
        let bus_client = BusClient::open(Arc::new(bus), Subjects::new(prefix), instance_id).await?;
        let new = NewInstance { id: instance_id, version: env!("CARGO_PKG_VERSION"), mark };
        if store.is_outdated().await? {
            EnterError::check(store.may_enter(&new.mark).await?)?;
        }
        super::migrate(store).await?;
        let members = Members::enter(store.clone(), new).await?;
        // Changes after this entry are followed, and everything that is read later is at least as new.
        let head_at_start = store.audit_head().await?;
        let others = Others { store: store.clone(), remote: Remote::new(bus_client.clone()), bus_client, members };
        Ok(Self { cluster: Cluster::among(others.clone()), others, head_at_start })
    }
}

impl Wiring for Several {
    fn cluster(&self) -> &Cluster {
        &self.cluster
    }

    fn lead(&self) -> Lead {
        Lead::Database
    }

    fn live(&self, clock: &Clock) -> (Fleet, Feeds) {
        let (fleet, remote_cache) = Fleet::among_others();
        let relay = ClusterRelay::new(self.others.bus_client.clone(), (fleet.clone(), remote_cache), clock.clone());
        (fleet, Feeds::among_others(Arc::new(relay)))
    }

    fn senders(&self) -> Box<dyn Senders> {
        Box::new(OneOfSenders)
    }

    fn alerts(&self, parts: alerts::Parts) -> Alerts {
        Alerts::among_others(parts, self.cluster.shards.clone())
    }

    fn elsewhere(&self) -> Arc<dyn RemoteRouter> {
        Arc::new(self.others.remote.clone())
    }

    fn jobs(&self, parts: commands::Parts) -> Jobs {
        Jobs::among_others(parts, self.others.remote.clone())
    }

    fn usual_drain(&self) -> Duration {
        DRAIN
    }

    fn keep(&self, state: &State, work: &mut JoinSet<()>) {
        let Others { bus_client, members, remote, .. } = &self.others;
        let reconciler = reconciler(state);
        remote.open(Arc::new(PeerServer::new(peer_server::Parts {
            bus_client: bus_client.clone(),
            registry: state.registry.here(),
            jobs: state.jobs.published(remote.clone()),
            logs: state.logs.clone(),
            reconciler: reconciler.clone(),
        })));
        let follower = AuditTailer::from(state.store.clone(), self.head_at_start.clone());
        work.spawn_local(reconciler.keep(members.lost()));
        actix_web::rt::spawn(nudge_others(state.notifier.clone(), bus_client.clone()));
        actix_web::rt::spawn(heed_nudges(state.notifier.clone(), bus_client.clone()));
        actix_web::rt::spawn(self.cluster.change_signal().clone().keep(bus_client.clone()));
        let followed = state.clone();
        work.spawn_local(follower.keep(bus_client.clone(), move |change| {
            let state = followed.clone();
            actix_web::rt::spawn(async move { effects::apply(&state, change).await });
        }));
        let feeds = state.feeds.clone();
        work.spawn_local(members.clone().sweep(move |swept| {
            swept.into_iter().for_each(|swept| feeds.publish_swept(swept));
        }));
        work.spawn_local(state.jobs.clone().keep_company(remote.clone()));
    }
}

/// Compares what this instance holds with the database.
fn reconciler(state: &State) -> Reconciler {
    Reconciler {
        store: state.store.clone(),
        registry: state.registry.clone(),
        feeds: state.feeds.clone(),
        logins: state.accounts.logins.clone(),
    }
}

/// Signals the other instances that the outbox may have notifications for their channels.
async fn nudge_others(notifier: Notifier, bus_client: BusClient) {
    loop {
        notifier.nudged().await;
        // Lost while the bus is away: the others check the outbox periodically anyway.
        _ = bus_client.tell(bus_client.subjects.outbox(), &()).await;
        tokio::time::sleep(NUDGE_EVERY).await;
    }
}

async fn heed_nudges(notifier: Notifier, bus_client: BusClient) {
    let notifier = &notifier;
    let heed = |mut nudges: Subscription| async move {
        while nudges.next().await.is_some() {
            notifier.nudge_here();
        }
    };
    bus_client.serve(bus_client.subjects.outbox(), heed).await;
}
