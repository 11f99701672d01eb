//! The actor that looks at everything that happens on one server, and sees to it that what comes of it is written
//! before it looks at the next.

use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::time::Duration;

use actix::{Actor, ActorContext, ActorFutureExt, AsyncContext, Context, Handler, SpawnHandle, WrapFuture};
use signalbox_protocol::Timestamp;
use signalbox_protocol::frontend::ServerStatus;
use tokio::sync::oneshot;

use super::desk::{Desk, Past, Written};
use super::inbox::{Change, Inbox, Input, Next, Taken, Wake};
use super::seat::Seat;
use super::watch::Watch;
use crate::store::{Alert, AlertChange};

/// Inputs that are looked at before others have their turn on the thread.
const AT_ONCE: usize = 64;

/// What was measured before the restart is of now for so long.
const OF_NOW_MS: i64 = 60 * 1000;

pub(super) struct Evaluator {
    desk: Desk,
    watch: Watch,
    inbox: Arc<Inbox>,
    /// Looks first at what was measured before the service restarted.
    replays: bool,
    /// Taken, and not looked at yet.
    taken: Taken,
    /// Nothing is looked at meanwhile.
    is_writing: bool,
    /// Who waits for what was taken to be written.
    waiting: Vec<oneshot::Sender<()>>,
    timer: Option<SpawnHandle>,
    /// Nothing is watched here any more, whatever else is told.
    is_over: bool,
}

/// Where the agent is.
enum Whereabouts {
    There,
    /// Away since then.
    Away(Timestamp),
    /// Not known before this: after a restart agents take a while to come back.
    Unknown {
        until: Timestamp,
    },
    /// It has never been there.
    Never,
    /// Not known any more: the service ends.
    Stopping,
}

impl Evaluator {
    pub fn new(desk: Desk, watch: Watch, inbox: Arc<Inbox>, replays: bool) -> Self {
        let taken = Taken::default();
        let (waiting, timer) = (Vec::new(), None);
        Self { desk, watch, inbox, replays, taken, is_writing: false, waiting, timer, is_over: false }
    }

    /// Looks at what waits, until something has to be written or nothing is left.
    fn look(&mut self, ctx: &mut Context<Self>) {
        if self.is_writing {
            return;
        }
        for _ in 0..AT_ONCE {
            if self.taken.is_empty() {
                self.taken = self.inbox.take();
            }
            let changes = match self.taken.next() {
                Some(Next::Order(change, done)) => {
                    self.waiting.push(done);
                    self.change(change)
                }
                Some(Next::Input(input)) => self.input(input),
                None => return self.rest(ctx),
            };
            if !changes.is_empty() {
                return self.write(changes, ctx);
            }
        }
        // The rest in a while: others are on this thread, too.
        let later = tokio::task::yield_now();
        ctx.spawn(later.into_actor(self).map(|(), evaluator, ctx| evaluator.look(ctx)));
    }

    fn input(&mut self, input: Input) -> Vec<AlertChange> {
        let now = Timestamp::now();
        match input {
            Input::Sample { snapshot, processes, lane } => self.watch.sample(&snapshot, processes.as_ref(), lane, now),
            Input::Event(event) => self.watch.happened(&event, now),
        }
    }

    fn change(&mut self, change: Change) -> Vec<AlertChange> {
        let changes = match change {
            Change::Rules(_) if self.is_over => Vec::new(),
            Change::Rules(rules) => self.watch.set_rules(*rules, Timestamp::now()),
            Change::Gone => {
                self.end();
                Vec::new()
            }
            Change::Acted(alert) => {
                self.watch.acted(&alert);
                Vec::new()
            }
        };
        self.inbox.set_late_window_ms(self.watch.late_window_ms());
        changes
    }

    /// Watches nothing any more.
    fn end(&mut self) {
        self.is_over = true;
        self.watch.forget();
    }

    /// Nothing waits: where is the agent, and when is that to be looked at again?
    fn rest(&mut self, ctx: &mut Context<Self>) {
        if let Some(timer) = self.timer.take() {
            ctx.cancel_future(timer);
        }
        let now = Timestamp::now();
        let (changes, next) = match self.whereabouts(now) {
            Whereabouts::There => (self.watch.absence(None, now), None),
            Whereabouts::Away(since) => (self.watch.absence(Some(since), now), self.watch.next_look(Some(since))),
            Whereabouts::Unknown { until } => (Vec::new(), Some(until)),
            Whereabouts::Never | Whereabouts::Stopping => (Vec::new(), None),
        };
        if !changes.is_empty() {
            return self.write(changes, ctx);
        }
        if let Some(next) = next {
            let millis = next.millis_since(now).max(1);
            let pause = Duration::from_millis(millis.unsigned_abs());
            self.timer = Some(ctx.run_later(pause, |evaluator, ctx| evaluator.look(ctx)));
        }
        for done in self.waiting.drain(..) {
            _ = done.send(());
        }
        self.inbox.done();
        if self.watch.is_empty() && self.inbox.close_if_empty() {
            self.desk.ended(self.watch.server.id, &self.inbox);
            ctx.stop();
        }
    }

    fn whereabouts(&self, now: Timestamp) -> Whereabouts {
        if self.desk.is_stopping.load(Ordering::SeqCst) {
            return Whereabouts::Stopping;
        }
        match self.inbox.seat {
            Seat::Alone => {}
            Seat::Home(_) => return Whereabouts::There,
            Seat::Share { last_seen_at, patient_until } => {
                return match (patient_until.filter(|until| now < *until), last_seen_at) {
                    (Some(until), _) => Whereabouts::Unknown { until },
                    (None, since) => since.map_or(Whereabouts::Never, Whereabouts::Away),
                };
            }
        }
        if let Some(presence) = self.desk.fleet.presence(self.watch.server.id) {
            return match presence.status {
                ServerStatus::Online => Whereabouts::There,
                _ => presence.last_seen_at.map_or(Whereabouts::Never, Whereabouts::Away),
            };
        }
        match self.watch.server.last_seen_at {
            None => Whereabouts::Never,
            Some(_) if now < self.desk.patient_until => Whereabouts::Unknown { until: self.desk.patient_until },
            Some(last_seen_at) => Whereabouts::Away(last_seen_at),
        }
    }

    fn write(&mut self, changes: Vec<AlertChange>, ctx: &mut Context<Self>) {
        self.is_writing = true;
        let (desk, server, seat) = (self.desk.clone(), self.watch.server.clone(), self.inbox.seat);
        let written = async move { desk.write(&server, seat, changes).await };
        ctx.spawn(written.into_actor(self).map(|written, evaluator, ctx| {
            evaluator.is_writing = false;
            let came = match written {
                Written::Done(came) => came,
                Written::Pointless => Vec::new(),
                Written::Refused => {
                    evaluator.desk.refused(evaluator.watch.server.id, &evaluator.inbox);
                    evaluator.end();
                    Vec::new()
                }
            };
            let again: Vec<AlertChange> =
                came.iter().filter_map(|(change, alert)| evaluator.settle(change, alert.as_ref())).collect();
            if again.is_empty() { evaluator.look(ctx) } else { evaluator.write(again, ctx) }
        }));
    }

    /// Takes in what came of a change. Gives another where somebody was faster.
    fn settle(&mut self, change: &AlertChange, came: Option<&Alert>) -> Option<AlertChange> {
        match (change, came) {
            (AlertChange::Opened { alert, .. }, Some(open)) if open.id != alert.id => {
                self.watch.adopt(alert.id, open);
                None
            }
            // It was resolved by hand a moment before it recovered.
            (AlertChange::Resolved { id, sample_at, at, .. }, None) => {
                Some(AlertChange::Rearmed { id: *id, sample_at: *sample_at, at: *at })
            }
            _ => None,
        }
    }

    /// Takes in what was measured before the restart, and opens what should be open.
    fn recall(&mut self, past: Past) -> Vec<AlertChange> {
        for (threshold_id, at) in past.settled {
            self.watch.settled_up_to(threshold_id, at);
        }
        let now = Timestamp::now();
        self.watch.recall(past.samples, |sample| now.millis_since(sample.timestamp) <= OF_NOW_MS, now)
    }
}

impl Actor for Evaluator {
    type Context = Context<Self>;

    fn started(&mut self, ctx: &mut Self::Context) {
        self.inbox.opened(ctx.address().recipient());
        let orphans = self.watch.take_orphans();
        let window_ms = self.watch.replay_window_ms().filter(|_| self.replays);
        self.is_writing = true;
        let (desk, server_id) = (self.desk.clone(), self.watch.server.id);
        let past = async move {
            match window_ms {
                Some(window_ms) => desk.past(server_id, window_ms).await,
                None => Past::default(),
            }
        };
        ctx.spawn(past.into_actor(self).map(|past, evaluator, ctx| {
            evaluator.is_writing = false;
            let mut changes = orphans;
            changes.extend(evaluator.recall(past));
            if changes.is_empty() { evaluator.look(ctx) } else { evaluator.write(changes, ctx) }
        }));
    }
}

impl Handler<Wake> for Evaluator {
    type Result = ();

    fn handle(&mut self, _: Wake, ctx: &mut Self::Context) {
        self.look(ctx);
    }
}
