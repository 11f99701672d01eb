//! The actor that sends the messages in the outbox. It sleeps until a message is due or a [`Wake`] arrives.
//!
//! The first message of a channel is sent at once. Events for the same channel in the next seconds are gathered into one
//! message ([`gathering`](super::gathering)). Channels do not wait for each other. Each channel sends one message at a time,
//! oldest first; when a message takes long or is refused, the next ones overtake it, without the ends of its alerts. Claims,
//! retries and expiry are recorded in the database, so that another process can continue after this one dies. With several
//! instances, each sends on the channels of its shard.

use std::cell::Cell;
use std::rc::Rc;
use std::sync::Arc;
use std::time::{Duration, Instant};

use actix::{Actor, ActorFutureExt, AsyncContext, Context, Handler, Message, ResponseFuture, SpawnHandle, WrapFuture};
use signalbox_protocol::Timestamp;
use tokio::sync::oneshot;
use uuid::Uuid;

use super::delivery::{Carried, DeliveryContext, RETRY_AFTER};
use super::gathering::Gathering;
use super::notifier::{Silences, WakeFlag};
use super::on_the_way::{OnTheWay, Overtaken};
use super::pace::after;
use super::senders::Senders;
use crate::clock::Clock;
use crate::shards::Shards;
use crate::store::{Due, Share, Store, StoreError};

/// Alerts read at once when reminders are queued.
const REMINDED_AT_ONCE: u64 = 100;

/// At startup, a retry planned later than this is taken for the work of a clock that was ahead, and moved forward. A
/// receiver that had asked for a longer pause gets one attempt too early. Alerts that are to be checked later than this are
/// checked once more, too.
const LONGEST_WAIT: Duration = Duration::from_secs(2 * 3_600);

/// Asks the dispatcher to read the outbox.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Message)]
#[rtype(result = "()")]
pub(super) struct Wake;

/// Asks the dispatcher to start no further message; answered when the last message on its way has ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Message)]
#[rtype(result = "()")]
pub(super) struct Stop;

pub(super) struct Dispatcher {
    pub context: DeliveryContext,
    pub silences: Arc<dyn Silences>,
    pub clock: Clock,
    /// Decides which channels and which reminders belong to this instance.
    pub shards: Shards,
    pub senders: Box<dyn Senders>,
    pub wake_flag: WakeFlag,
    pub on_the_way: OnTheWay,
    pub gathering: Gathering,
    pub progress: Progress,
}

pub(super) struct Progress {
    /// When planned retries were last moved after a jump of the clock: jumps before this moment are done with.
    hastened: Instant,
    is_looking: bool,
    /// A `Wake` arrived while the outbox was being read.
    looks_again: bool,
    is_reminding: bool,
    timer: Option<SpawnHandle>,
    is_stopping: bool,
    /// Callers of `Stop` that wait for the last message to end.
    waiting: Vec<oneshot::Sender<()>>,
}

impl Default for Progress {
    fn default() -> Self {
        Self {
            hastened: Instant::now(),
            is_looking: false,
            looks_again: false,
            is_reminding: false,
            timer: None,
            is_stopping: false,
            waiting: Vec::new(),
        }
    }
}

/// What is due in the outbox.
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

impl Dispatcher {
    fn look(&mut self, ctx: &mut Context<Self>) {
        if self.progress.is_stopping {
            return;
        }
        if self.progress.is_looking {
            self.progress.looks_again = true;
            return;
        }
        self.progress.is_looking = true;
        let (store, share) = (self.context.store.clone(), self.shards.share());
        let looked = Instant::now();
        // A retry or a reminder planned before the clock jumped waits for the old clock's time. Once for each jump:
        // otherwise an unreachable receiver would be tried without a pause.
        let put_off_before = self.clock.disturbed().is_some_and(|ago| ago < self.progress.hastened.elapsed());
        let now = self.clock.now();
        let survey = async move {
            if put_off_before {
                store.hasten_notifications(now, now).await?;
                store.hasten_alerts(now, now).await?;
            }
            Survey::make(&store, &share).await
        };
        ctx.spawn(survey.into_actor(self).map(move |survey, dispatcher, ctx| {
            dispatcher.progress.is_looking = false;
            if survey.is_ok() {
                dispatcher.progress.hastened = looked;
            }
            if dispatcher.progress.is_stopping {
                return;
            }
            let sleep = match survey {
                Ok(survey) => dispatcher.act(survey, ctx),
                Err(error) => {
                    tracing::error!(%error, "the outbox could not be read, will try again");
                    RETRY_AFTER
                }
            };
            if std::mem::take(&mut dispatcher.progress.looks_again) {
                dispatcher.look(ctx);
            } else {
                dispatcher.sleep(sleep, ctx);
            }
        }));
    }

    /// Starts what is due. Returns how long to sleep until the next message or reminder is due.
    fn act(&mut self, survey: Survey, ctx: &mut Context<Self>) -> Duration {
        let (now, instant) = (self.clock.now(), Instant::now());
        self.gathering.tidy(instant);
        let mut sleep = self.senders.longest_sleep();
        for due in survey.due {
            if !self.on_the_way.has_room(&due) {
                // The outbox is read again when a message ends and makes room.
                continue;
            }
            let wait = self.wait(&due, now, instant);
            if wait.is_zero() {
                self.send(due, ctx);
            } else {
                sleep = sleep.min(wait);
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

    /// Returns how long a message still has to wait.
    fn wait(&self, due: &Due, now: Timestamp, instant: Instant) -> Duration {
        // A retry has its own time, and no event joins it.
        let gathered = if due.is_held { Duration::ZERO } else { self.gathering.wait(due.channel_id, instant) };
        until(due.at, now).max(gathered)
    }

    fn send(&mut self, due: Due, ctx: &mut Context<Self>) {
        let channel_id = due.channel_id;
        self.on_the_way.begin(&due);
        self.gathering.sent(channel_id, Instant::now());
        let (context, was_overtaken) = (self.context.clone(), Rc::new(Cell::new(Overtaken::No)));
        let (overtake, overtaken) = oneshot::channel();
        let letting = was_overtaken.clone();
        ctx.spawn(overtaken.into_actor(self).map(move |overtaken, dispatcher, ctx| {
            // An error means that the message ended first; its end has read the outbox.
            if overtaken.is_ok() {
                letting.set(Overtaken::Yes);
                dispatcher.on_the_way.overtake(&due);
                dispatcher.look(ctx);
            }
        }));
        let sent = async move { context.send_due(channel_id, overtake).await };
        ctx.spawn(sent.into_actor(self).map(move |sent, dispatcher, ctx| {
            dispatcher.on_the_way.end(&due, was_overtaken.get());
            match sent {
                Ok(Carried::All) => dispatcher.look(ctx),
                // What is left was gathered already.
                Ok(Carried::Full) => {
                    dispatcher.gathering.full(channel_id, Instant::now());
                    dispatcher.look(ctx);
                }
                // Another instance was faster, or the channel has just been deleted. Waits, because the survey may
                // disagree with the claim for another reason, and this would spin.
                Ok(Carried::Nothing) => dispatcher.put_off(channel_id, ctx),
                Err(error) => {
                    tracing::error!(channel.id = %channel_id, %error, "a message could not be claimed, will try again");
                    dispatcher.put_off(channel_id, ctx);
                }
            }
            dispatcher.end_if_last();
        }));
    }

    /// Queues the reminders that are due.
    fn remind(&mut self, now: Timestamp, ctx: &mut Context<Self>) {
        self.progress.is_reminding = true;
        let (store, access) = (self.context.store.clone(), self.context.access.clone());
        let (silences, share) = (self.silences.clone(), self.shards.share());
        let reminded = async move {
            for mut alert in store.alerts_to_notify(&share, now, REMINDED_AT_ONCE).await? {
                alert.audience.viewers = access.viewers_of(alert.alert.server_id).await?;
                let held_until = silences.held_until(&alert, now).await?;
                store.remind(&alert, held_until, now).await?;
            }
            Ok::<_, StoreError>(())
        };
        ctx.spawn(reminded.into_actor(self).map(|reminded, dispatcher, ctx| {
            dispatcher.progress.is_reminding = false;
            match reminded {
                Ok(()) => dispatcher.look(ctx),
                // The next start queues them.
                Err(_) if dispatcher.progress.is_stopping => {}
                Err(error) => {
                    tracing::error!(%error, "reminders could not be queued, will try again");
                    dispatcher.sleep_at_most(RETRY_AFTER, ctx);
                }
            }
        }));
    }

    /// Reads the outbox after `duration`. Replaces an earlier timer.
    fn sleep(&mut self, duration: Duration, ctx: &mut Context<Self>) {
        if let Some(timer) = self.progress.timer.take() {
            ctx.cancel_future(timer);
        }
        self.progress.timer = Some(ctx.run_later(duration, |dispatcher, ctx| {
            dispatcher.progress.timer = None;
            dispatcher.look(ctx);
        }));
    }

    /// Reads the outbox again after a moment, because nothing was sent on a channel.
    fn put_off(&mut self, channel_id: Uuid, ctx: &mut Context<Self>) {
        self.gathering.forget(channel_id);
        self.sleep_at_most(RETRY_AFTER, ctx);
    }

    /// Reads the outbox after `duration`, and leaves the other timer alone.
    fn sleep_at_most(&mut self, duration: Duration, ctx: &mut Context<Self>) {
        ctx.run_later(duration, |dispatcher, ctx| dispatcher.look(ctx));
    }

    fn end_if_last(&mut self) {
        if self.progress.is_stopping && self.on_the_way.is_empty() {
            for waiting in self.progress.waiting.drain(..) {
                // The caller may have given up.
                _ = waiting.send(());
            }
        }
    }
}

impl Actor for Dispatcher {
    type Context = Context<Self>;

    fn started(&mut self, ctx: &mut Self::Context) {
        self.progress.is_looking = true;
        let (store, now) = (self.context.store.clone(), self.clock.now());
        let taken_over = self.senders.take_over(store.clone(), now);
        let released = async move {
            taken_over.await?;
            // The clock may have been ahead when a retry or a reminder was planned.
            let latest = after(now, LONGEST_WAIT);
            store.hasten_notifications(latest, now).await?;
            store.hasten_alerts(latest, now).await
        };
        ctx.spawn(released.into_actor(self).map(|released, dispatcher, ctx| {
            if let Err(error) = released
                && !dispatcher.progress.is_stopping
            {
                // They are sent anyway, when their claims expire.
                tracing::warn!(%error, "claims of the previous run could not be released, their messages wait until the claims expire");
            }
            dispatcher.progress.is_looking = false;
            dispatcher.look(ctx);
        }));
    }
}

impl Handler<Wake> for Dispatcher {
    type Result = ();

    fn handle(&mut self, _: Wake, ctx: &mut Self::Context) {
        self.wake_flag.heard();
        self.look(ctx);
    }
}

impl Handler<Stop> for Dispatcher {
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
