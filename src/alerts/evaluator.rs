//! The actor that evaluates everything that happens on one server. It writes the changes that an input causes before it
//! takes the next input.

use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::time::Duration;

use actix::{Actor, ActorContext, ActorFutureExt, AsyncContext, Context, Handler, SpawnHandle, WrapFuture};
use signalbox_protocol::frontend::ServerStatus;
use signalbox_protocol::{Sample, Timestamp};
use tokio::sync::oneshot;

use super::alert_writer::{AlertWriter, Past, WriteOutcome};
use super::assignment::Assignment;
use super::inbox::{Change, Inbox, InboxContents, Input, Next, Wake};
use super::watch::Watch;
use crate::fleet::OF_NOW_MS;
use crate::store::{Alert, AlertChange};

/// Inputs that are evaluated before other tasks get their turn on the thread.
const AT_ONCE: usize = 64;

pub(super) struct Evaluator {
    writer: AlertWriter,
    watch: Watch,
    inbox: Arc<Inbox>,
    /// Whether it first evaluates what was recorded before it began, as after a restart of the service.
    replays: bool,
    /// Inputs taken from the inbox and not evaluated yet.
    taken: InboxContents,
    /// Changes are being written; no input is evaluated until then.
    is_writing: bool,
    /// Callers that wait until the orders taken so far are carried out.
    waiting: Vec<oneshot::Sender<()>>,
    timer: Option<SpawnHandle>,
    /// It has ended: further rules are ignored.
    is_over: bool,
}

/// Whether the agent is connected.
enum Whereabouts {
    There,
    /// Disconnected since this time.
    Away(Timestamp),
    /// Not known until this time: after a restart agents take a while to reconnect.
    Unknown {
        until: Timestamp,
    },
    /// It has never connected.
    Never,
    /// Not known any more: the service is stopping.
    Stopping,
}

impl Evaluator {
    pub fn new(writer: AlertWriter, watch: Watch, inbox: Arc<Inbox>, replays: bool) -> Self {
        let taken = InboxContents::default();
        let (waiting, timer) = (Vec::new(), None);
        Self { writer, watch, inbox, replays, taken, is_writing: false, waiting, timer, is_over: false }
    }

    /// Evaluates what is waiting, until a change has to be written or nothing is left.
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
        // Continues later, because other evaluators share this thread.
        let later = tokio::task::yield_now();
        ctx.spawn(later.into_actor(self).map(|(), evaluator, ctx| evaluator.look(ctx)));
    }

    fn input(&mut self, input: Input) -> Vec<AlertChange> {
        let now = self.now();
        match input {
            Input::Sample { snapshot, beside, freshness } => self.watch.sample(&snapshot, Some(beside), freshness, now),
            Input::Event(event) => self.watch.happened(&event, now),
            Input::KeptStates(list) => {
                let agent_now = now.plus_millis(self.clock_offset());
                self.watch.recall_containers(&list, agent_now, now)
            }
            Input::Rebooted { at } => self.watch.rebooted(at, now),
        }
    }

    fn change(&mut self, change: Change) -> Vec<AlertChange> {
        let changes = match change {
            Change::Rules(_) if self.is_over => Vec::new(),
            Change::Rules(rules) => {
                let now = self.now();
                self.watch.set_rules(*rules, now)
            }
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

    fn now(&self) -> Timestamp {
        self.writer.patience.clock.now()
    }

    /// Returns by how many milliseconds the agent's clock is ahead.
    fn clock_offset(&self) -> i64 {
        self.writer.fleet.clock_offset(self.watch.server.id).unwrap_or_default()
    }

    /// Stops evaluating.
    fn end(&mut self) {
        self.is_over = true;
        self.watch.forget();
    }

    /// Nothing is waiting: evaluates whether the agent is connected, and plans when to do that again.
    fn rest(&mut self, ctx: &mut Context<Self>) {
        if let Some(timer) = self.timer.take() {
            ctx.cancel_future(timer);
        }
        let now = self.now();
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
            self.writer.ended(self.watch.server.id, &self.inbox);
            ctx.stop();
        }
    }

    fn whereabouts(&self, now: Timestamp) -> Whereabouts {
        if self.writer.is_stopping.load(Ordering::SeqCst) {
            return Whereabouts::Stopping;
        }
        let patience = &self.writer.patience;
        let until = |left: Duration| now.plus_millis(i64::try_from(left.as_millis()).unwrap_or(i64::MAX).max(1));
        match self.inbox.assignment {
            Assignment::Sole => {}
            Assignment::SessionHolder(_) => return Whereabouts::There,
            Assignment::ShardOwner { last_seen_at, patient_until } => {
                let patient_until = patient_until.filter(|until| now < *until).max(patience.after_pause().map(until));
                return match (patient_until, last_seen_at) {
                    (Some(until), _) => Whereabouts::Unknown { until },
                    (None, since) => since.map_or(Whereabouts::Never, Whereabouts::Away),
                };
            }
        }
        if let Some(presence) = self.writer.fleet.presence(self.watch.server.id) {
            if presence.status == ServerStatus::Online {
                return Whereabouts::There;
            }
            if let Some(left) = patience.after_pause() {
                return Whereabouts::Unknown { until: until(left) };
            }
            // By the monotonic clock, which is never set.
            let unseen = self.writer.fleet.unseen_for(self.watch.server.id);
            let unseen_ms = unseen.map(|unseen| i64::try_from(unseen.as_millis()).unwrap_or(i64::MAX));
            return unseen_ms.map_or(Whereabouts::Never, |ms| Whereabouts::Away(now.plus_millis(-ms)));
        }
        match (self.watch.server.last_seen_at, patience.after_start()) {
            (None, _) => Whereabouts::Never,
            (Some(_), Some(left)) => Whereabouts::Unknown { until: until(left) },
            (Some(last_seen_at), None) => Whereabouts::Away(patience.away_since(last_seen_at, now)),
        }
    }

    fn write(&mut self, changes: Vec<AlertChange>, ctx: &mut Context<Self>) {
        self.is_writing = true;
        let (writer, server, assignment) = (self.writer.clone(), self.watch.server.clone(), self.inbox.assignment);
        let written = async move { writer.write(&server, assignment, changes).await };
        ctx.spawn(written.into_actor(self).map(|written, evaluator, ctx| {
            evaluator.is_writing = false;
            let came = match written {
                WriteOutcome::Done(came) => came,
                WriteOutcome::Pointless => Vec::new(),
                WriteOutcome::Refused => {
                    evaluator.writer.refused(evaluator.watch.server.id, &evaluator.inbox);
                    evaluator.end();
                    Vec::new()
                }
            };
            let again: Vec<AlertChange> =
                came.iter().filter_map(|(change, alert)| evaluator.settle(change, alert.as_ref())).collect();
            if again.is_empty() { evaluator.look(ctx) } else { evaluator.write(again, ctx) }
        }));
    }

    /// Takes in the outcome of a change. Returns another change if a person acted on the alert first.
    fn settle(&mut self, change: &AlertChange, came: Option<&Alert>) -> Option<AlertChange> {
        match (change, came) {
            (AlertChange::Opened { alert, .. }, Some(open)) if open.id != alert.id => {
                self.watch.adopt(alert.id, open);
                None
            }
            // Somebody resolved it a moment before it recovered.
            (AlertChange::Resolved { id, sample_at, at, .. }, None) => {
                Some(AlertChange::Rearmed { id: *id, sample_at: *sample_at, at: *at })
            }
            _ => None,
        }
    }

    /// Takes in what was recorded before the restart, and opens the alerts that should be open.
    fn recall(&mut self, past: Past) -> Vec<AlertChange> {
        for (threshold_id, at) in past.settled {
            self.watch.settled_up_to(threshold_id, at);
        }
        let now = self.now();
        let agent_now = now.plus_millis(self.clock_offset().min(0));
        let is_of_now = |sample: &Sample| agent_now.millis_since(sample.timestamp) <= OF_NOW_MS;
        let mut changes = self.watch.recall(past.samples, is_of_now, now);
        if let Some(reboot) = past.reboot {
            changes.extend(self.watch.recall_reboot(&reboot, now));
        }
        changes
    }
}

impl Actor for Evaluator {
    type Context = Context<Self>;

    fn started(&mut self, ctx: &mut Self::Context) {
        self.inbox.opened(ctx.address().recipient());
        let orphans = self.watch.take_orphans();
        let window_ms = self.watch.replay_window_ms().filter(|_| self.replays);
        self.is_writing = true;
        let awaits_reboots = self.replays && self.watch.awaits_reboots();
        let (writer, server_id) = (self.writer.clone(), self.watch.server.id);
        let past = async move {
            let past = match window_ms {
                Some(window_ms) => writer.past(server_id, window_ms).await,
                None => Past::default(),
            };
            let reboot = if awaits_reboots { writer.last_reboot(server_id).await } else { None };
            Past { reboot, ..past }
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
