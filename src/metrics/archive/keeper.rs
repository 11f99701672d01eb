//! The actor that moves the history on. One thing at a time, so that it never takes more than one core from those who
//! serve, and each transaction small, so that group commits get their turn.

use std::sync::Arc;
use std::time::Duration;

use actix::{Actor, Addr, AsyncContext, Context, Handler, Message, ResponseFuture, WrapFuture};
use tokio::sync::Mutex;
use uuid::Uuid;

use super::RetentionPolicy;
use super::mover::{Mover, ReplayError};
use super::work::Work;
use crate::metrics::tail::Tail;
use crate::shards::Shards;
use crate::store::Store;

/// When things are done.
#[derive(Debug, Clone)]
pub struct Schedule {
    /// How often to look whether something is to be done.
    pub every: Duration,
    /// How long after its end an hour is sealed, and after the day's end its blocks are put together: clocks differ.
    pub settle: Duration,
    /// How often at most the tail is moved because of samples of hours that are over, and for how long nothing may come
    /// until such an hour is sealed; at the latest it is when another hour begins.
    pub move_every: Duration,
    /// How often longer blocks are made, and what is too old is dropped.
    pub compact_every: Duration,
}

impl Default for Schedule {
    fn default() -> Self {
        Self {
            every: Duration::from_millis(500),
            settle: Duration::from_secs(60),
            move_every: Duration::from_secs(60),
            compact_every: Duration::from_secs(60),
        }
    }
}

/// Reaches the keeper, behind cheap clones.
#[derive(Clone)]
pub struct ArchiveHandle {
    address: Arc<Addr<Keeper>>,
}

/// The keeper has stopped, or has too much to do.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[error("the archive is busy")]
pub struct Busy;

impl ArchiveHandle {
    /// Brings what is in the journal back to where fresh samples are, and starts a keeper on the arbiter of the calling
    /// thread. `writer` names this process in the journal, `shards` are what it looks after.
    pub async fn start(
        store: Store,
        tail: Tail,
        writer: Uuid,
        shards: Shards,
        policy: RetentionPolicy,
        schedule: Schedule,
    ) -> Result<Self, ReplayError> {
        let mut mover = Mover::new(store.clone(), tail, policy.clone(), writer);
        let samples = mover.replay().await?;
        if samples > 0 {
            tracing::info!(samples, "samples that are not sealed yet were read again");
        }
        let every = schedule.every;
        let work = Arc::new(Mutex::new(Work::new(store, mover, shards, policy, schedule)));
        Ok(Self { address: Arc::new(Keeper { work, every }.start()) })
    }

    /// Moves everything on as far as it goes, now, whatever the schedule says. Comes back when it is done.
    pub async fn settle(&self) -> Result<(), Busy> {
        self.address.send(Settle).await.map_err(|_| Busy)
    }
}

#[derive(Message)]
#[rtype(result = "()")]
struct Settle;

struct Keeper {
    /// Locked while it is being done.
    work: Arc<Mutex<Work>>,
    every: Duration,
}

impl Keeper {
    fn look(&mut self, ctx: &mut Context<Self>) {
        // What takes longer than the interval goes on, and nothing queues behind it.
        let Ok(mut work) = self.work.clone().try_lock_owned() else { return };
        ctx.spawn(async move { work.step(false).await }.into_actor(self));
    }
}

impl Actor for Keeper {
    type Context = Context<Self>;

    fn started(&mut self, ctx: &mut Self::Context) {
        ctx.run_interval(self.every, |keeper, ctx| keeper.look(ctx));
    }
}

impl Handler<Settle> for Keeper {
    type Result = ResponseFuture<()>;

    fn handle(&mut self, _: Settle, _: &mut Self::Context) -> Self::Result {
        let work = self.work.clone();
        Box::pin(async move { work.lock().await.step(true).await })
    }
}
