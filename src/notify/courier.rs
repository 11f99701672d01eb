//! The actor that sends what lies in the outbox. It sleeps until something is due or somebody wakes it.
//!
//! The first message of a channel goes out at once. What comes for the same channel in the next seconds is gathered, and
//! goes out as one. Channels do not wait for each other; on each there is one message at a time, the oldest first. What
//! is claimed, retried and given up stands in the database: a process that dies leaves nothing behind that the next one
//! would not find. Where there are several instances, each sends on the channels of its share.

use std::collections::{HashMap, HashSet};
use std::sync::Arc;
use std::time::{Duration, Instant};

use actix::{Actor, ActorFutureExt, AsyncContext, Context, Handler, Message, ResponseFuture, SpawnHandle, WrapFuture};
use signalbox_protocol::Timestamp;
use tokio::sync::oneshot;
use uuid::Uuid;

use super::desk::{Desk, RETRY_AFTER};
use super::notifier::{Bell, Silences};
use crate::cluster::Shards;
use crate::store::{Due, Share, Store, StoreError};

/// Messages that are on their way at the same time: a dead destination keeps its place for some seconds.
const MOST_AT_ONCE: usize = 16;

/// Alerts that are looked at in one go.
const REMINDED_AT_ONCE: u64 = 100;

/// The clock of the machine may be put right while this sleeps.
const LONGEST_SLEEP: Duration = Duration::from_secs(60);

/// The same where other instances queue for channels of this one: a nudge from there may be lost.
const LONGEST_SLEEP_AMONG_OTHERS: Duration = Duration::from_secs(2);

const TIDY_EVERY: Duration = Duration::from_secs(3_600);

/// How long the delivery log goes back, in milliseconds.
const KEPT_MS: i64 = 30 * 24 * 3_600 * 1_000;

/// Something may lie in the outbox.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Message)]
#[rtype(result = "()")]
pub(super) struct Wake;

/// Take nothing new, and say when the last message on its way has ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Message)]
#[rtype(result = "()")]
pub(super) struct Stop;

pub(super) struct Courier {
    pub desk: Desk,
    pub silences: Arc<dyn Silences>,
    /// Which channels, and which alerts to look at again, are this instance's.
    pub shards: Shards,
    pub is_alone: bool,
    pub bell: Bell,
    /// The channels on which a message is on its way.
    pub busy: HashSet<Uuid>,
    /// Until when what comes for a channel is gathered.
    pub gathering: HashMap<Uuid, Instant>,
    pub progress: Progress,
}

#[derive(Default)]
pub(super) struct Progress {
    is_looking: bool,
    /// Somebody rang while it was looking.
    looks_again: bool,
    is_reminding: bool,
    timer: Option<SpawnHandle>,
    is_stopping: bool,
    /// Who wait for the last message to end.
    waiting: Vec<oneshot::Sender<()>>,
}

/// What there is to do.
struct Survey {
    due: Vec<Due>,
    next_alert: Option<Timestamp>,
}

impl Survey {
    async fn make(store: &Store, share: &Share) -> Result<Self, StoreError> {
        if share.is_empty() {
            return Ok(Self { due: Vec::new(), next_alert: None });
        }
        Ok(Self { due: store.channels_due(share).await?, next_alert: store.next_alert_to_notify(share).await? })
    }
}

impl Courier {
    fn look(&mut self, ctx: &mut Context<Self>) {
        if self.progress.is_stopping {
            return;
        }
        if self.progress.is_looking {
            self.progress.looks_again = true;
            return;
        }
        self.progress.is_looking = true;
        let (store, share) = (self.desk.store.clone(), self.shards.share());
        let survey = async move { Survey::make(&store, &share).await };
        ctx.spawn(survey.into_actor(self).map(|survey, courier, ctx| {
            courier.progress.is_looking = false;
            if courier.progress.is_stopping {
                return;
            }
            let sleep = match survey {
                Ok(survey) => courier.act(survey, ctx),
                Err(error) => {
                    tracing::error!(%error, "the outbox could not be read, will try again");
                    RETRY_AFTER
                }
            };
            if std::mem::take(&mut courier.progress.looks_again) {
                courier.look(ctx);
            } else {
                courier.sleep(sleep, ctx);
            }
        }));
    }

    /// Does what is due, and gives how long nothing else is.
    fn act(&mut self, survey: Survey, ctx: &mut Context<Self>) -> Duration {
        let (now, instant) = (Timestamp::now(), Instant::now());
        self.gathering.retain(|_, until| *until > instant);
        let mut sleep = if self.is_alone { LONGEST_SLEEP } else { LONGEST_SLEEP_AMONG_OTHERS };
        for due in survey.due {
            if self.busy.contains(&due.channel_id) {
                continue;
            }
            let wait = self.wait(&due, now, instant);
            if !wait.is_zero() {
                sleep = sleep.min(wait);
            } else if self.busy.len() < MOST_AT_ONCE {
                self.send(due.channel_id, ctx);
            } else {
                // The end of any of those on their way looks again.
                break;
            }
        }
        if let Some(next) = survey.next_alert
            && !self.progress.is_reminding
        {
            let wait = until(next, now);
            if wait.is_zero() {
                self.remind(now, ctx);
            } else {
                sleep = sleep.min(wait);
            }
        }
        sleep
    }

    /// How long what is due on a channel has to wait yet.
    fn wait(&self, due: &Due, now: Timestamp, instant: Instant) -> Duration {
        // What is tried again has its own time, and nothing joins it.
        let gathering = self.gathering.get(&due.channel_id).filter(|_| !due.is_held);
        let gathered = gathering.map_or(Duration::ZERO, |until| until.saturating_duration_since(instant));
        until(due.at, now).max(gathered)
    }

    fn send(&mut self, channel_id: Uuid, ctx: &mut Context<Self>) {
        self.busy.insert(channel_id);
        self.gathering.insert(channel_id, Instant::now() + self.desk.pace.grouping);
        let desk = self.desk.clone();
        let sent = async move { desk.send_due(channel_id).await };
        ctx.spawn(sent.into_actor(self).map(move |sent, courier, ctx| {
            courier.busy.remove(&channel_id);
            match sent {
                Ok(true) => courier.look(ctx),
                // Somebody else was faster, or the channel has just gone. Not at once: what was seen and what is there
                // may differ for some other reason.
                Ok(false) => courier.put_off(channel_id, ctx),
                Err(error) => {
                    tracing::error!(channel.id = %channel_id, %error, "a message could not be claimed, will try again");
                    courier.put_off(channel_id, ctx);
                }
            }
            courier.end_if_last();
        }));
    }

    /// Queues what is to be told again.
    fn remind(&mut self, now: Timestamp, ctx: &mut Context<Self>) {
        self.progress.is_reminding = true;
        let (store, silences, share) = (self.desk.store.clone(), self.silences.clone(), self.shards.share());
        let reminded = async move {
            for alert in store.alerts_to_notify(&share, now, REMINDED_AT_ONCE).await? {
                let held_until = silences.held_until(&alert, now).await?;
                store.remind(&alert, held_until, now).await?;
            }
            Ok::<_, StoreError>(())
        };
        ctx.spawn(reminded.into_actor(self).map(|reminded, courier, ctx| {
            courier.progress.is_reminding = false;
            match reminded {
                Ok(()) => courier.look(ctx),
                Err(error) => {
                    tracing::error!(%error, "reminders could not be queued, will try again");
                    courier.sleep_at_most(RETRY_AFTER, ctx);
                }
            }
        }));
    }

    /// Looks again later, and forgets when it meant to look before.
    fn sleep(&mut self, duration: Duration, ctx: &mut Context<Self>) {
        if let Some(timer) = self.progress.timer.take() {
            ctx.cancel_future(timer);
        }
        self.progress.timer = Some(ctx.run_later(duration, |courier, ctx| {
            courier.progress.timer = None;
            courier.look(ctx);
        }));
    }

    /// Nothing was sent on a channel: looks again in a moment.
    fn put_off(&mut self, channel_id: Uuid, ctx: &mut Context<Self>) {
        self.gathering.remove(&channel_id);
        self.sleep_at_most(RETRY_AFTER, ctx);
    }

    /// Looks again later, besides whatever else it is waiting for.
    fn sleep_at_most(&mut self, duration: Duration, ctx: &mut Context<Self>) {
        ctx.run_later(duration, |courier, ctx| courier.look(ctx));
    }

    fn end_if_last(&mut self) {
        if self.progress.is_stopping && self.busy.is_empty() {
            for waiting in self.progress.waiting.drain(..) {
                // Whoever waited may have given up.
                _ = waiting.send(());
            }
        }
    }

    fn tidy(&mut self, ctx: &mut Context<Self>) {
        let (store, expiry) = (self.desk.store.clone(), self.desk.pace.expiry);
        let tidied = async move {
            let now = Timestamp::now();
            let expired = now.plus_millis(-i64::try_from(expiry.as_millis()).unwrap_or(i64::MAX));
            let outcome = async {
                store.give_up_notifications(expired, now).await?;
                while store.forget_notifications(now.plus_millis(-KEPT_MS)).await? > 0 {}
                Ok::<_, StoreError>(())
            };
            if let Err(error) = outcome.await {
                tracing::warn!(%error, "old notifications could not be removed");
            }
        };
        ctx.spawn(tidied.into_actor(self));
    }
}

impl Actor for Courier {
    type Context = Context<Self>;

    fn started(&mut self, ctx: &mut Self::Context) {
        self.progress.is_looking = true;
        let (store, is_alone) = (self.desk.store.clone(), self.is_alone);
        let released = async move {
            // What others are sending is theirs, and what one of them left behind is free when its time has come.
            if is_alone { store.release_claims(Timestamp::now()).await } else { Ok(()) }
        };
        ctx.spawn(released.into_actor(self).map(|released, courier, ctx| {
            if let Err(error) = released {
                // They are sent all the same, some seconds later.
                tracing::warn!(%error, "what was being sent when the service ended waits for its time");
            }
            courier.progress.is_looking = false;
            courier.look(ctx);
        }));
        self.tidy(ctx);
        ctx.run_interval(TIDY_EVERY, Self::tidy);
    }
}

impl Handler<Wake> for Courier {
    type Result = ();

    fn handle(&mut self, _: Wake, ctx: &mut Self::Context) {
        self.bell.heard();
        self.look(ctx);
    }
}

impl Handler<Stop> for Courier {
    type Result = ResponseFuture<()>;

    fn handle(&mut self, _: Stop, _: &mut Self::Context) -> Self::Result {
        let (waiting, ended) = oneshot::channel();
        self.progress.is_stopping = true;
        self.progress.waiting.push(waiting);
        self.end_if_last();
        Box::pin(async move { _ = ended.await })
    }
}

fn until(at: Timestamp, now: Timestamp) -> Duration {
    Duration::from_millis(u64::try_from(at.millis_since(now)).unwrap_or(0))
}
