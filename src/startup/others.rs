//! What a start does about other instances.

use std::sync::Arc;
use std::time::Duration;

use uuid::Uuid;

use super::StartupError;
use crate::bus::nats::NatsBus;
use crate::bus::post::Post;
use crate::bus::subject::Subjects;
use crate::cluster::Cluster;
use crate::cluster::exchange::Exchange;
use crate::cluster::follow::Follower;
use crate::cluster::members::Members;
use crate::cluster::remote::home::Home;
use crate::cluster::vigil::Vigil;
use crate::config::Config;
use crate::feeds::Feeds;
use crate::fleet::Fleet;
use crate::news;
use crate::notify::Notifier;
use crate::state::State;
use crate::store::{NewInstance, Store};

/// How long a load balancer may take to notice that an instance ends.
const DRAIN_AMONG_OTHERS: Duration = Duration::from_secs(3);

/// How long those who queue something for another instance are gathered.
const NUDGE_EVERY: Duration = Duration::from_millis(20);

/// When to listen again where that failed.
const LISTEN_AGAIN_AFTER: Duration = Duration::from_secs(2);

/// Whether several instances could use what this one is told to.
pub(super) fn check(config: &Config) -> Result<(), StartupError> {
    if config.nats.is_none() {
        return Ok(());
    }
    if config.is_embedded() {
        return Err(StartupError::NeedsPostgres);
    }
    if config.jwt_secret_file.is_none() || config.encryption_key_file.is_none() {
        return Err(StartupError::NeedsSecrets);
    }
    Ok(())
}

/// Joins the other instances, or makes sure that there are none.
pub(super) async fn join(config: &Config, store: &Store, mark: String) -> Result<Cluster, StartupError> {
    let Some(nats) = &config.nats else {
        if store.has_instances().await? {
            return Err(StartupError::NotAlone);
        }
        // After a start no session can be left from before.
        store.forget_sessions().await?;
        return Ok(Cluster::alone());
    };
    let instance_id = Uuid::now_v7();
    let bus = NatsBus::connect(nats, &format!("signalbox {instance_id}")).await?;
    let post = Post::open(Arc::new(bus), Subjects::new(&config.nats_prefix), instance_id).await?;
    let new = NewInstance { id: instance_id, version: env!("CARGO_PKG_VERSION"), mark };
    let members = Members::enter(store.clone(), new).await?;
    // What is changed from here on is heeded, and nothing that is read later is older.
    let seq = store.audit_head().await?.seq;
    Ok(Cluster::among(post, members, seq))
}

/// What is known of servers at the moment, and who watches it.
pub(super) fn live(cluster: &Cluster) -> (Fleet, Feeds) {
    let Some(post) = cluster.post() else { return (Fleet::default(), Feeds::default()) };
    let fleet = Fleet::among_others();
    (fleet.clone(), Feeds::among_others(Exchange::new(post.clone(), fleet)))
}

/// How long the service says that it ends before it does.
pub(super) fn drain(config: &Config) -> Duration {
    let usual = if config.nats.is_some() { DRAIN_AMONG_OTHERS } else { Duration::ZERO };
    config.drain.unwrap_or(usual)
}

/// Begins what several instances owe each other; nothing where there is one.
pub(super) fn keep(state: &State) {
    let (Some(members), Some(post)) = (state.cluster.members(), state.cluster.post()) else { return };
    let vigil = vigil(state);
    state.cluster.open(Home {
        registry: state.registry.here(),
        jobs: state.jobs.clone(),
        logs: state.logs.clone(),
        vigil: vigil.clone(),
    });
    let follower = Follower::from(state.store.clone(), state.cluster.seq_at_start);
    actix_web::rt::spawn(vigil.clone().keep(members.lost()));
    actix_web::rt::spawn(nudge_others(state.notifier.clone(), post.clone()));
    actix_web::rt::spawn(heed_nudges(state.notifier.clone(), post.clone()));
    actix_web::rt::spawn(state.cluster.bell().clone().keep(post.clone()));
    let followed = state.clone();
    actix_web::rt::spawn(follower.keep(post.clone(), move |news| {
        let (state, vigil) = (followed.clone(), vigil.clone());
        async move { news::heed(&state, &vigil, news).await }
    }));
    let feeds = state.feeds.clone();
    actix_web::rt::spawn(members.clone().sweep(move |swept| {
        swept.into_iter().for_each(|swept| feeds.publish_swept(swept));
    }));
}

/// Compares what is held here with the database.
fn vigil(state: &State) -> Vigil {
    Vigil {
        store: state.store.clone(),
        registry: state.registry.clone(),
        feeds: state.feeds.clone(),
        logins: state.accounts.logins.clone(),
        sooner: Arc::default(),
    }
}

/// Something may lie in the outbox for a channel that another instance looks after.
async fn nudge_others(notifier: Notifier, post: Post) {
    loop {
        notifier.nudged().await;
        // While the bus is away they look by themselves.
        _ = post.tell(post.subjects.outbox(), &()).await;
        tokio::time::sleep(NUDGE_EVERY).await;
    }
}

async fn heed_nudges(notifier: Notifier, post: Post) {
    loop {
        match post.listen(post.subjects.outbox()).await {
            Ok(mut nudges) => {
                while nudges.next().await.is_some() {
                    notifier.nudge_here();
                }
            }
            Err(error) => tracing::warn!(%error, "other instances cannot nudge the notifier, will try again"),
        }
        tokio::time::sleep(LISTEN_AGAIN_AFTER).await;
    }
}
