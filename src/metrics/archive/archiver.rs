//! The actor that compacts the history. It does one thing at a time, so that it never takes more than one core from
//! serving, and its transactions are small, so that group commits get their turn.

use std::sync::Arc;
use std::time::Duration;

use actix::{Actor, ActorContext, Addr, AsyncContext, Context, Handler, Message, ResponseFuture, WrapFuture};
use tokio::sync::Mutex;
use uuid::Uuid;

use super::RetentionPolicy;
use super::flusher::{Flusher, ReplayError};
use super::work::Work;
use crate::metrics::tail::Tail;
use crate::shards::Shards;
use crate::store::Store;

/// When the steps are done.
#[derive(Debug, Clone)]
pub struct Schedule {
    /// How often to check whether a step is due.
    pub every: Duration,
    /// How long after its end an hour is sealed, and after the end of a day its blocks are compacted, because clocks differ.
    pub settle: Duration,
    /// The shortest time between two flushes of the tail for samples of past hours, and how long no sample may arrive for
    /// such an hour before it is sealed. It is sealed when the next hour begins at the latest.
    pub move_every: Duration,
    /// How often blocks are compacted, and expired ones dropped.
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

/// A handle to the archiver; cheap to clone.
#[derive(Clone)]
pub struct ArchiveHandle {
    address: Arc<Addr<Archiver>>,
}

/// The archiver has stopped, or its mailbox is full.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[error("the archive is busy")]
pub struct Busy;

impl ArchiveHandle {
    /// Replays the journal, and starts an archiver on the arbiter of the calling thread. `writer` names this process in the
    /// journal, `shards` are the servers that it compacts.
    pub async fn start(
        store: Store,
        tail: Tail,
        writer: Uuid,
        shards: Shards,
        policy: RetentionPolicy,
        schedule: Schedule,
    ) -> Result<Self, ReplayError> {
        let mut flusher = Flusher::new(store.clone(), tail, policy.clone(), writer);
        let samples = flusher.replay().await?;
        if samples > 0 {
            tracing::info!(samples, "the journal was replayed");
        }
        let every = schedule.every;
        let work = Arc::new(Mutex::new(Work::new(store, flusher, shards, policy, schedule)));
        Ok(Self { address: Arc::new(Archiver { work, every }.start()) })
    }

    /// Does all steps now, as far as possible, whatever the schedule says. Returns when they are done.
    pub async fn settle(&self) -> Result<(), Busy> {
        self.address.send(Settle).await.map_err(|_| Busy)
    }

    /// Ends the archiver where it is: each of its transactions is whole, or did not happen.
    pub async fn stop(&self) {
        // If the archiver has stopped already, there is nothing to end.
        _ = self.address.send(Stop).await;
    }
}

#[derive(Message)]
#[rtype(result = "()")]
struct Settle;

#[derive(Message)]
#[rtype(result = "()")]
struct Stop;

struct Archiver {
    /// Locked during a step.
    work: Arc<Mutex<Work>>,
    every: Duration,
}

impl Archiver {
    fn look(&mut self, ctx: &mut Context<Self>) {
        // A step that takes longer than the interval continues, and no other waits for it.
        let Ok(mut work) = self.work.clone().try_lock_owned() else { return };
        ctx.spawn(async move { work.step(false).await }.into_actor(self));
    }
}

impl Actor for Archiver {
    type Context = Context<Self>;

    fn started(&mut self, ctx: &mut Self::Context) {
        ctx.run_interval(self.every, |archiver, ctx| archiver.look(ctx));
    }
}

impl Handler<Settle> for Archiver {
    type Result = ResponseFuture<()>;

    fn handle(&mut self, _: Settle, _: &mut Self::Context) -> Self::Result {
        let work = self.work.clone();
        Box::pin(async move { work.lock().await.step(true).await })
    }
}

impl Handler<Stop> for Archiver {
    type Result = ();

    fn handle(&mut self, _: Stop, ctx: &mut Self::Context) {
        ctx.stop();
    }
}
