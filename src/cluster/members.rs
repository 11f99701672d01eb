//! Says that this instance is alive, takes its part of the work that must happen once, and ends the sessions that dead
//! instances left.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

use parking_lot::RwLock;
use tokio::sync::watch;
use tokio::time::timeout;
use uuid::Uuid;

use crate::periodic::every;
use crate::shards::Shards;
use crate::store::{Beat, Entered, NewInstance, Store, StoreError, Swept};

/// How often an instance says that it is alive.
const BEAT_EVERY: Duration = Duration::from_secs(2);

/// How long saying so may take.
const BEAT_WITHIN: Duration = Duration::from_secs(3);

/// How long saying that it ends may hold up the end.
const DRAIN_WITHIN: Duration = Duration::from_secs(1);

/// How long after it last said so an instance still goes by what it was given: well before others take it for dead.
const TRUSTED_FOR: Duration = Duration::from_secs(6);

/// Why an instance cannot be one of several.
#[derive(Debug, thiserror::Error)]
pub enum EnterError {
    #[error(
        "other instances on this database have other secrets: all need the same --jwt-secret-file and --encryption-key-file"
    )]
    OtherSecrets,
    #[error(
        "another instance uses this database: give each of them --nats-url, or wait some seconds if it has just ended"
    )]
    NotAlone,
    #[error("cannot join the other instances: {0}")]
    Store(#[from] StoreError),
}

/// Which instances there are, behind cheap clones.
#[derive(Clone)]
pub struct Members {
    store: Store,
    new: Arc<NewInstance>,
    shards: Shards,
    alive: Arc<RwLock<Vec<Uuid>>>,
    is_draining: Arc<AtomicBool>,
    has_left: Arc<AtomicBool>,
    /// Counts how often this instance was taken for dead: all its sessions have to be looked at then.
    lost: Arc<watch::Sender<u64>>,
}

impl Members {
    /// Makes this instance known, and gives it its first part of the work.
    pub async fn enter(store: Store, new: NewInstance) -> Result<Self, EnterError> {
        let members = Self {
            store,
            new: Arc::new(new),
            shards: Shards::none(),
            alive: Arc::default(),
            is_draining: Arc::default(),
            has_left: Arc::default(),
            lost: Arc::new(watch::Sender::new(0)),
        };
        members.enter_again().await?;
        members.beat().await?;
        // From now on: what is left of the start may take a while.
        actix::spawn(members.clone().keep());
        Ok(members)
    }

    pub fn shards(&self) -> Shards {
        self.shards.clone()
    }

    /// All instances that are alive, this one among them.
    pub fn alive(&self) -> Vec<Uuid> {
        self.alive.read().clone()
    }

    /// Changes when others took this instance for dead.
    pub fn lost(&self) -> watch::Receiver<u64> {
        self.lost.subscribe()
    }

    /// This instance ends soon: it takes no more part.
    pub async fn drain(&self) {
        self.is_draining.store(true, Ordering::SeqCst);
        // The next beat says so again.
        match timeout(DRAIN_WITHIN, self.beat()).await {
            Ok(Ok(())) => {}
            Ok(Err(error)) => tracing::warn!(%error, "the other instances could not be told that this one ends"),
            Err(_) => tracing::warn!("the database was too slow to be told that this instance ends"),
        }
    }

    /// This instance has ended.
    pub async fn leave(&self) {
        // A beat that finds nothing any more must not take that for having been given up.
        self.has_left.store(true, Ordering::SeqCst);
        self.shards.lose();
        if let Err(error) = self.store.leave(self.new.id).await {
            tracing::warn!(%error, "the other instances could not be told that this one has ended");
        }
    }

    /// Says that this instance is alive for as long as it is.
    async fn keep(self) {
        let failure = "the other instances could not be told that this one is alive";
        every(BEAT_EVERY, async || in_time(self.beat(), failure).await).await;
    }

    /// Looks for instances that are not alive any more. `swept` is told of servers whose sessions were lost.
    pub async fn sweep(self, swept: impl Fn(Vec<Swept>)) {
        let failure = "sessions of dead instances could not be ended";
        every(BEAT_EVERY, async || in_time(self.sweep_dead(&swept), failure).await).await;
    }

    async fn beat(&self) -> Result<(), EnterError> {
        // Before the question: what is given is given from then on.
        let asked = Instant::now();
        let beat = self.store.beat(self.new.id, self.is_draining.load(Ordering::SeqCst)).await?;
        if self.has_left.load(Ordering::SeqCst) {
            return Ok(());
        }
        let Some(Beat { alive, shards }) = beat else {
            tracing::warn!("other instances took this one for dead");
            self.shards.lose();
            self.enter_again().await?;
            self.lost.send_modify(|count| *count += 1);
            return Ok(());
        };
        metrics::gauge!("signalbox_instances_alive").set(alive.len() as f64);
        metrics::gauge!("signalbox_shards_held").set(shards.len() as f64);
        self.shards.set(shards, asked + TRUSTED_FOR);
        *self.alive.write() = alive;
        Ok(())
    }

    async fn enter_again(&self) -> Result<(), EnterError> {
        match self.store.enter(&self.new).await? {
            Entered::Yes => Ok(()),
            Entered::OtherSecrets => Err(EnterError::OtherSecrets),
            Entered::NotAlone => Err(EnterError::NotAlone),
        }
    }

    async fn sweep_dead(&self, swept: &impl Fn(Vec<Swept>)) -> Result<(), EnterError> {
        loop {
            let some = self.store.sweep_dead().await?;
            if some.is_empty() {
                return Ok(());
            }
            tracing::warn!(servers = some.len(), "sessions of an instance that died were ended");
            swept(some);
        }
    }
}

/// Does something for as long as it may take. What takes too long, or fails, is tried the next time.
async fn in_time(work: impl Future<Output = Result<(), EnterError>>, failure: &str) {
    match timeout(BEAT_WITHIN, work).await {
        Ok(Ok(())) => {}
        Ok(Err(error)) => tracing::error!(%error, "{failure}"),
        Err(_) => tracing::error!("the database was too slow: {failure}"),
    }
}
