//! Reports that this instance is alive, takes its shards of the work that must happen once, and ends the sessions that
//! dead instances left behind.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

use parking_lot::{Mutex, RwLock};
use tokio::sync::watch;
use tokio::time::timeout;
use uuid::Uuid;

use crate::periodic::every;
use crate::shards::Shards;
use crate::store::{Beat, DEAD_AFTER_MS, Entered, NewInstance, Store, StoreError, Swept};

/// How often an instance reports that it is alive.
const BEAT_EVERY: Duration = Duration::from_secs(2);

/// How long a heartbeat may take.
const BEAT_WITHIN: Duration = Duration::from_secs(3);

/// How long the announcement of the end may delay the end.
const DRAIN_WITHIN: Duration = Duration::from_secs(1);

/// How long after its last heartbeat an instance still uses its shards: well before others consider it dead.
const TRUSTED_FOR: Duration = Duration::from_secs(6);

/// An instance without a heartbeat for this long is dead.
const DEAD_AFTER: Duration = Duration::from_millis(DEAD_AFTER_MS.unsigned_abs());

/// The longest time between two heartbeats here in which those of the others cannot have expired, too: the last one of
/// another instance may be a period older, and its next one a period later.
const LONGEST_GAP: Duration = DEAD_AFTER.saturating_sub(BEAT_EVERY.saturating_mul(2));

/// How long the others have to report again after a database that was away from all of them.
const STEADY_AFTER: Duration = DEAD_AFTER.saturating_add(BEAT_EVERY);

/// Why an instance cannot join the others.
#[derive(Debug, thiserror::Error)]
pub enum EnterError {
    #[error(
        "other instances on this database have other secrets: all need the same --jwt-secret-file and --encryption-key-file, and the same --push-key-file or none"
    )]
    OtherSecrets,
    #[error(
        "another instance uses this database: give each of them --nats-url, or wait some seconds if it has just ended"
    )]
    NotAlone,
    #[error("cannot join the other instances: {0}")]
    Store(#[from] StoreError),
}

impl EnterError {
    /// Fails unless the instance may start.
    pub fn check(entered: Entered) -> Result<(), Self> {
        match entered {
            Entered::Yes => Ok(()),
            Entered::OtherSecrets => Err(Self::OtherSecrets),
            Entered::NotAlone => Err(Self::NotAlone),
        }
    }
}

/// The instances of the deployment. Clones are cheap.
#[derive(Clone)]
pub struct Members {
    store: Store,
    new: Arc<NewInstance>,
    shards: Shards,
    alive: Arc<RwLock<Vec<Uuid>>>,
    is_draining: Arc<AtomicBool>,
    has_left: Arc<AtomicBool>,
    /// Counts how often other instances considered this one dead: all its sessions must be checked then.
    lost: Arc<watch::Sender<u64>>,
    heartbeats: Arc<Mutex<Heartbeats>>,
}

/// When this instance could report that it is alive.
struct Heartbeats {
    last: Instant,
    /// Since then none was late.
    steady_since: Instant,
}

impl Heartbeats {
    fn begin(now: Instant) -> Self {
        Self { last: now, steady_since: now }
    }

    /// Notes a heartbeat that succeeded.
    fn beat(&mut self, at: Instant) {
        if at.saturating_duration_since(self.last) > LONGEST_GAP {
            self.steady_since = at;
        }
        self.last = at;
    }

    /// Whether instances without a heartbeat are dead, and not only without the database, as this one was or is.
    fn are_steady(&self, now: Instant) -> bool {
        now.saturating_duration_since(self.last) <= LONGEST_GAP
            && now.saturating_duration_since(self.steady_since) >= STEADY_AFTER
    }
}

impl Members {
    /// Registers this instance, and takes its first shards.
    pub async fn enter(store: Store, new: NewInstance) -> Result<Self, EnterError> {
        let members = Self {
            store,
            new: Arc::new(new),
            shards: Shards::none(),
            alive: Arc::default(),
            is_draining: Arc::default(),
            has_left: Arc::default(),
            lost: Arc::new(watch::Sender::new(0)),
            heartbeats: Arc::new(Mutex::new(Heartbeats::begin(Instant::now()))),
        };
        members.enter_again().await?;
        members.beat().await?;
        // Starts now, because the rest of the start may take a while.
        actix::spawn(members.clone().keep());
        Ok(members)
    }

    pub fn shards(&self) -> Shards {
        self.shards.clone()
    }

    /// All instances that are alive, including this one.
    pub fn alive(&self) -> Vec<Uuid> {
        self.alive.read().clone()
    }

    /// Changes when others considered this instance dead.
    pub fn lost(&self) -> watch::Receiver<u64> {
        self.lost.subscribe()
    }

    /// Announces that this instance ends soon: it takes no more shards.
    pub async fn drain(&self) {
        self.is_draining.store(true, Ordering::SeqCst);
        // The next heartbeat repeats the announcement.
        match timeout(DRAIN_WITHIN, self.beat()).await {
            Ok(Ok(())) => {}
            Ok(Err(error)) => {
                tracing::warn!(%error, "cannot announce to the other instances that this one is stopping")
            }
            Err(_) => {
                tracing::warn!("cannot announce in time that this instance is stopping: the database is too slow")
            }
        }
    }

    /// Removes this instance, which has ended.
    pub async fn leave(&self) {
        // A heartbeat that then finds no row must not conclude that others considered this instance dead.
        self.has_left.store(true, Ordering::SeqCst);
        self.shards.lose();
        if let Err(error) = self.store.leave(self.new.id).await {
            tracing::warn!(%error, "cannot announce to the other instances that this one has ended");
        }
    }

    /// Sends heartbeats for as long as this instance lives.
    async fn keep(self) {
        let failure = "heartbeat failed, will retry";
        every(BEAT_EVERY, async || {
            in_time(self.beat(), failure).await;
            // Those of the last heartbeat that succeeded are not used any more.
            if self.shards.share().is_empty() {
                metrics::gauge!("signalbox_shards_held").set(0.0);
            }
        })
        .await;
    }

    /// Looks for dead instances periodically. Calls `swept` with the servers whose sessions they left.
    pub async fn sweep(self, swept: impl Fn(Vec<Swept>)) {
        let failure = "cannot end the sessions of dead instances, will retry";
        every(BEAT_EVERY, async || in_time(self.sweep_dead(&swept), failure).await).await;
    }

    async fn beat(&self) -> Result<(), EnterError> {
        // Taken before the query: shards are valid from the moment of the query.
        let asked = Instant::now();
        let beat = self.store.beat(self.new.id, self.is_draining.load(Ordering::SeqCst)).await?;
        self.heartbeats.lock().beat(asked);
        if self.has_left.load(Ordering::SeqCst) {
            return Ok(());
        }
        let Some(Beat { alive, shards }) = beat else {
            tracing::warn!("other instances considered this one dead, rejoining");
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
        EnterError::check(self.store.enter(&self.new).await?)
    }

    async fn sweep_dead(&self, swept: &impl Fn(Vec<Swept>)) -> Result<(), EnterError> {
        while self.heartbeats.lock().are_steady(Instant::now()) {
            let some = self.store.sweep_dead().await?;
            if some.is_empty() {
                break;
            }
            tracing::warn!(servers = some.len(), "ended the sessions of a dead instance");
            swept(some);
        }
        Ok(())
    }
}

/// Runs some work for at most [`BEAT_WITHIN`]. The next round repeats work that fails or takes too long.
async fn in_time(work: impl Future<Output = Result<(), EnterError>>, failure: &str) {
    match timeout(BEAT_WITHIN, work).await {
        Ok(Ok(())) => {}
        Ok(Err(error)) => tracing::error!(%error, "{failure}"),
        Err(_) => tracing::error!("the database is too slow: {failure}"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn others_count_as_dead_only_after_steady_heartbeats_here() {
        let start = Instant::now();
        let at = |seconds| start + Duration::from_secs(seconds);
        let mut heartbeats = Heartbeats::begin(start);
        (2..10).step_by(2).for_each(|second| heartbeats.beat(at(second)));
        assert!(!heartbeats.are_steady(at(9)), "it has just started");
        heartbeats.beat(at(10));
        assert!(heartbeats.are_steady(at(10)));

        assert!(!heartbeats.are_steady(at(60)), "its own heartbeat is late, too");
        heartbeats.beat(at(60));
        assert!(!heartbeats.are_steady(at(60)));
        (62..70).step_by(2).for_each(|second| heartbeats.beat(at(second)));
        assert!(!heartbeats.are_steady(at(69)));

        heartbeats.beat(at(70));
        assert!(heartbeats.are_steady(at(70)));
        heartbeats.beat(at(74));
        assert!(heartbeats.are_steady(at(74)), "no heartbeat of another instance can have expired in that time");
    }
}
