//! Follows the audit log for what other instances change.
//!
//! Every change that matters elsewhere is an entry of the log, which has no gaps and is in the order of the commits. So it
//! is enough to read on from where one was: once a second, and at once when another instance rings. What rings says
//! nothing itself, so it can neither forge a change nor lose one.

use std::sync::Arc;
use std::time::Duration;

use tokio::sync::Notify;
use tokio::time::sleep;

use crate::bus::Subscription;
use crate::bus::post::Post;
use crate::change::Change;
use crate::periodic::ticks;
use crate::store::{Store, StoreError};

/// How often the log is looked at though nobody rang.
const LOOK_EVERY: Duration = Duration::from_secs(1);

/// How long those who ring are gathered: a thousand changes ring a few times.
const RING_EVERY: Duration = Duration::from_millis(20);

/// Entries that are read at once.
const AT_ONCE: u64 = 500;

/// Tells the others that there is something to read, behind cheap clones.
#[derive(Clone, Default)]
pub struct Bell(Arc<Notify>);

impl Bell {
    /// Something was changed here.
    pub fn ring(&self) {
        self.0.notify_one();
    }

    /// Rings at the others for as long as this instance lives.
    pub async fn keep(self, post: Post) {
        loop {
            self.0.notified().await;
            // Nobody hears it while the bus is away: they look by themselves.
            _ = post.tell(post.subjects.notice(), &()).await;
            sleep(RING_EVERY).await;
        }
    }
}

/// A place in the log.
pub struct Follower {
    store: Store,
    /// Everything up to here was handed on.
    seq: i64,
}

impl Follower {
    /// From behind an entry on.
    pub fn from(store: Store, seq: i64) -> Self {
        Self { store, seq }
    }

    /// Hands on what is new for as long as this instance lives. `apply` must not wait: an evaluator that stands still would
    /// hold up the news that a key was revoked.
    pub async fn keep(mut self, post: Post, apply: impl Fn(Change)) {
        let rung = Arc::new(Notify::new());
        tokio::spawn(listen(post, rung.clone()));
        let mut ticks = ticks(LOOK_EVERY);
        loop {
            tokio::select! {
                _ = ticks.tick() => {}
                () = rung.notified() => {}
            }
            if let Err(error) = self.read(&apply).await {
                tracing::warn!(%error, "what other instances changed could not be read, will try again");
            }
        }
    }

    /// Hands on what is new, a part at a time: what was handed on is not lost when the next part cannot be read.
    async fn read(&mut self, apply: &impl Fn(Change)) -> Result<(), StoreError> {
        loop {
            let (records, up_to) = self.store.audit_changes(self.seq, &Change::ACTIONS, AT_ONCE).await?;
            records.iter().filter_map(Change::of).for_each(apply);
            self.seq = up_to;
            if (records.len() as u64) < AT_ONCE {
                return Ok(());
            }
        }
    }
}

async fn listen(post: Post, rung: Arc<Notify>) {
    let rung = &rung;
    let hear = |mut notices: Subscription| async move {
        while notices.next().await.is_some() {
            rung.notify_one();
        }
    };
    post.serve(post.subjects.notice(), hear).await;
}
