//! Follows the audit log for what other instances change.
//!
//! Every change that matters elsewhere is an entry of the log, which has no gaps and is in the order of the commits. So it
//! is enough to read on from where one was: once a second, and at once when another instance rings. What rings says
//! nothing itself, so it can neither forge a change nor lose one.

use std::sync::Arc;
use std::time::Duration;

use tokio::sync::Notify;
use tokio::time::{MissedTickBehavior, interval, sleep};

use crate::audit::news::News;
use crate::bus::post::Post;
use crate::store::{Store, StoreError};

/// How often the log is looked at though nobody rang.
const LOOK_EVERY: Duration = Duration::from_secs(1);

/// How long those who ring are gathered: a thousand changes ring a few times.
const RING_EVERY: Duration = Duration::from_millis(20);

/// Entries that are read at once.
const AT_ONCE: u64 = 500;

/// When to look again at a subject that could not be listened on.
const LISTEN_AGAIN_AFTER: Duration = Duration::from_secs(2);

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
    /// Everything up to here was heeded.
    seq: i64,
}

impl Follower {
    /// From behind an entry on.
    pub fn from(store: Store, seq: i64) -> Self {
        Self { store, seq }
    }

    /// Hands on what is new for as long as this instance lives.
    pub async fn keep<F: Future<Output = ()>>(mut self, post: Post, heed: impl Fn(News) -> F) {
        let rung = Arc::new(Notify::new());
        tokio::spawn(listen(post, rung.clone()));
        let mut ticks = interval(LOOK_EVERY);
        ticks.set_missed_tick_behavior(MissedTickBehavior::Delay);
        loop {
            tokio::select! {
                _ = ticks.tick() => {}
                () = rung.notified() => {}
            }
            if let Err(error) = self.read(&heed).await {
                tracing::warn!(%error, "what other instances changed could not be read, will try again");
            }
        }
    }

    /// Hands on what is new, a part at a time: what was handed on is not lost when the next part cannot be read.
    async fn read<F: Future<Output = ()>>(&mut self, heed: &impl Fn(News) -> F) -> Result<(), StoreError> {
        loop {
            let (records, up_to) = self.store.audit_news(self.seq, &News::ACTIONS, AT_ONCE).await?;
            for news in records.iter().filter_map(News::of) {
                heed(news).await;
            }
            self.seq = up_to;
            if (records.len() as u64) < AT_ONCE {
                return Ok(());
            }
        }
    }
}

async fn listen(post: Post, rung: Arc<Notify>) {
    loop {
        match post.listen(post.subjects.notice()).await {
            Ok(mut notices) => {
                while notices.next().await.is_some() {
                    rung.notify_one();
                }
            }
            Err(error) => tracing::warn!(%error, "notices of other instances cannot be heard, will try again"),
        }
        sleep(LISTEN_AGAIN_AFTER).await;
    }
}
