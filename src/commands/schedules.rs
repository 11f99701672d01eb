//! Commands that recur.
//!
//! Each instance looks for schedules that are due. Which one starts a run is decided by the database, in the transaction that
//! stores the batch: it moves the schedule on to its next time, if nobody has. From then on the run is a batch like any other, and
//! the right to each command is asked when it is sent.
//!
//! A run that is late is not started: at another time than people expect, it may do harm. It is counted, and told.
//!
//! What fails or is missed opens an alert on each server, which the next success there ends ([`Alarms`]).

mod ending;
mod plan;

use std::collections::HashSet;
use std::future::Future;
use std::sync::Arc;
use std::time::Duration;

use serde_json::json;
use signalbox_protocol::Timestamp;
use uuid::Uuid;

use self::ending::{Ending, all, ending};
pub use self::plan::next_after;
use self::plan::{LATE_MS, Plan, plan};
use super::batch::{BatchServer, Batches, NewBatch};
use super::jobs::RunError;
use crate::audit::{Actor, Entry, Outcome, action};
use crate::auth::access::{Access, Action, Right};
use crate::clock::Clock;
use crate::cluster::Cluster;
use crate::periodic::every;
use crate::store::{
    Alert, AlertAudience, EndedRun, FailedOn, NewServerEvent, Occurrence, Once, Schedule, ScheduleAlerts, Store,
    StoreError,
};

/// How often to look for schedules that are due: how late a run begins at most, usually.
const LOOK_EVERY: Duration = Duration::from_secs(4);

/// The servers of one run.
const MAX_SERVERS: usize = 10_000;

/// The failures of one run of which alerts are opened, in one transaction: people who get so many need no more to act.
const MAX_ALERTS: usize = 500;

/// The kind of the events of servers on which a run failed.
const FAILED_EVENT: &str = "schedule_failed";

/// Makes alerts of failures. Implemented outside, because alerts are of the same layer.
pub trait Alarms {
    /// The alerts of servers on which a run failed, each with what happened there, and whose channels to notify.
    fn raise(
        &self,
        schedule: &Schedule,
        failures: &[(Uuid, String)],
        at: Timestamp,
    ) -> impl Future<Output = Result<Vec<(Alert, AlertAudience)>, StoreError>>;

    /// Publishes alerts that were opened or ended, and wakes what notifies people.
    fn publish(&self, alerts: &[Alert]) -> impl Future<Output = ()>;
}

/// Starts what is due, and tells how it ended; cheap to clone.
#[derive(Clone)]
pub struct Schedules {
    pub(super) clock: Clock,
    pub(super) store: Store,
    pub(super) access: Access,
    pub(super) batches: Arc<Batches>,
    pub(super) cluster: Cluster,
}

impl Schedules {
    /// Starts what is due, for as long as this instance runs.
    pub async fn keep(&self, alarms: &impl Alarms) {
        every(LOOK_EVERY, async || {
            if let Err(error) = self.look(alarms).await {
                tracing::warn!(%error, "schedules could not be checked, will try again");
            }
        })
        .await;
    }

    async fn look(&self, alarms: &impl Alarms) -> Result<(), StoreError> {
        // A clock that is in doubt may show a time that has not come: what ran then would not run again.
        if self.cluster.is_draining() || self.clock.doubt().is_some() {
            return Ok(());
        }
        // Before what is due: the success of a run must not end the alert of the next one.
        let noted = self.note_ended(alarms).await;
        let now = self.clock.now();
        let mut due = self.store.due_schedules(now, now.plus_millis(-LATE_MS)).await?;
        // What was missed can wait, and what is due now would be late.
        due.sort_by_cached_key(|schedule| !plan(schedule, now).is_some_and(|plan| plan.is_on_time));
        for schedule in due {
            if let Err(error) = self.take(&schedule, now, alarms).await {
                tracing::warn!(schedule.id = %schedule.id, %error, "a schedule could not run, will try again");
            }
        }
        alarms.publish(&self.store.settle_schedule_alerts(now).await?).await;
        noted
    }

    /// Starts a schedule that is due, or counts it as missed.
    async fn take(&self, schedule: &Schedule, now: Timestamp, alarms: &impl Alarms) -> Result<(), RunError> {
        let Some(plan) = plan(schedule, now) else { return Ok(()) };
        let servers = self.servers(schedule).await?;
        if let Some(missed_at) = plan.occurrence.missed_at {
            self.miss(schedule, &plan, missed_at, &servers, alarms).await?;
        }
        if !plan.is_on_time {
            return Ok(());
        }
        // What was missed is noted: the schedule stands at the time that is due now.
        let expected = plan.occurrence.due_at;
        let occurrence = Occurrence { expected, missed: 0, missed_at: None, ..plan.occurrence };
        if self.store.is_schedule_running(schedule.id).await? {
            let refusal = ("still_running", "the run before had not ended");
            return self.pass(schedule, occurrence, refusal, &servers, alarms).await;
        }
        if servers.is_empty() {
            return self.pass(schedule, occurrence, ("no_server", "it has no server"), &servers, alarms).await;
        }
        let actor = Actor {
            user_id: Some(schedule.owner_id),
            username: schedule.username.as_str().into(),
            login_id: None,
            address: String::new(),
            token: None,
        };
        let detail = json!({ "name": schedule.name, "command": schedule.command, "due_at": occurrence.due_at });
        let entry = entry(action::SCHEDULE_RUN, schedule, actor.clone()).outcome(Outcome::Started).detail(detail);
        let new = NewBatch {
            owner_id: schedule.owner_id,
            actor,
            servers: servers.clone(),
            command: schedule.command.clone(),
            stdin: None,
            signed: schedule.signed.as_deref().and_then(|text| serde_json::from_str(text).ok()),
            timeout_seconds: u32::try_from(schedule.timeout_seconds).unwrap_or(1),
            concurrency: u16::try_from(schedule.concurrency).unwrap_or(1),
            stop_on_failure: schedule.stop_on_failure,
        };
        match self.batches.start_once(Uuid::now_v7(), new, Once::Occurrence(occurrence), vec![entry]).await {
            Ok(_) => Ok(()),
            Err(RunError::Store(error @ StoreError::QuotaExceeded { .. })) => {
                let why = error.to_string();
                self.pass(schedule, occurrence, ("quota_exceeded", &why), &servers, alarms).await
            }
            Err(error) => Err(error),
        }
    }

    /// Counts what was missed, and moves the schedule on: to the time that is due now, if that has just come.
    async fn miss(
        &self,
        schedule: &Schedule,
        plan: &Plan,
        missed_at: Timestamp,
        servers: &[BatchServer],
        alarms: &impl Alarms,
    ) -> Result<(), StoreError> {
        let Occurrence { due_at, next_at, missed, now, .. } = plan.occurrence;
        let next_at = if plan.is_on_time { Some(due_at) } else { next_at };
        let detail = json!({
            "name": schedule.name, "command": schedule.command, "missed": missed, "missed_at": missed_at,
        });
        let entry = entry(action::SCHEDULE_MISS, schedule, Actor::service("")).detail(detail);
        let what = format!("did not run: it was due at {missed_at}, when the service could not start it");
        let alerts = self.alerts(schedule, all(servers, &what), now, alarms).await?;
        let occurrence = Occurrence { next_at, ..plan.occurrence };
        alarms.publish(&self.store.pass_schedule(occurrence, None, vec![entry], alerts).await?).await;
        Ok(())
    }

    /// Notes that a schedule is due and cannot run, with the outcome of the run and the reason for people.
    async fn pass(
        &self,
        schedule: &Schedule,
        occurrence: Occurrence,
        (outcome, why): (&'static str, &str),
        servers: &[BatchServer],
        alarms: &impl Alarms,
    ) -> Result<(), RunError> {
        let detail = json!({ "name": schedule.name, "command": schedule.command, "due_at": occurrence.due_at });
        let refused = entry(action::SCHEDULE_RUN, schedule, Actor::service(""));
        let refused = refused.outcome(Outcome::Failed(outcome.into())).detail(detail);
        let endings = all(servers, &format!("did not run: {why}"));
        let alerts = self.alerts(schedule, endings, occurrence.now, alarms).await?;
        let changed = self.store.pass_schedule(occurrence, Some(outcome), vec![refused], alerts).await?;
        alarms.publish(&changed).await;
        Ok(())
    }

    /// What the endings of a run mean for alerts. Where the owner of the schedule may not run commands, it opens none, and ends one
    /// that is there.
    async fn alerts(
        &self,
        schedule: &Schedule,
        endings: Vec<(Uuid, Ending)>,
        at: Timestamp,
        alarms: &impl Alarms,
    ) -> Result<ScheduleAlerts, StoreError> {
        let (mut failures, mut recovered, mut unchanged) = (Vec::new(), Vec::new(), Vec::new());
        let mut asked = 0;
        for (server_id, ending) in endings {
            match ending {
                Ending::Succeeded => recovered.push(server_id),
                Ending::Failed(what) if schedule.is_enabled && asked < MAX_ALERTS => {
                    asked += 1;
                    if self.access.may_still((schedule.owner_id, None), server_id, Action::Use(Right::Commands)).await?
                    {
                        failures.push((server_id, what));
                    }
                }
                // What is paused tells nothing more.
                Ending::Failed(_) | Ending::Unclear => unchanged.push(server_id),
                Ending::Forbidden => {}
            }
        }
        let failed = alarms.raise(schedule, &failures, at).await?;
        Ok(ScheduleAlerts { schedule_id: schedule.id, at, failed, recovered, unchanged })
    }

    /// The servers of a run, as they are now: the named ones that exist, and those of the tag on which its owner may run
    /// commands. The right to each is asked when its command is sent.
    async fn servers(&self, schedule: &Schedule) -> Result<Vec<BatchServer>, StoreError> {
        let mut ids = named(schedule);
        if let Some(tag) = &schedule.tag {
            let usable = self.access.usable_by(schedule.owner_id, Action::Use(Right::Commands));
            ids.extend(self.store.servers_with_tag(&usable, tag).await?);
        }
        let mut seen = HashSet::new();
        let mut servers = Vec::with_capacity(ids.len());
        for server_id in ids.into_iter().filter(|id| seen.insert(*id)).take(MAX_SERVERS) {
            if let Some(owner_id) = self.store.owner_of_server(server_id).await? {
                servers.push(BatchServer { server_id, owner_id });
            }
        }
        Ok(servers)
    }

    /// Notes how runs ended. One that cannot be noted holds up no other.
    async fn note_ended(&self, alarms: &impl Alarms) -> Result<(), StoreError> {
        let now = self.clock.now();
        for run in self.store.ended_runs().await? {
            if let Err(error) = self.note(&run, now, alarms).await {
                let id = run.schedule.id;
                tracing::warn!(schedule.id = %id, %error, "the end of a run could not be noted, will try again");
            }
        }
        Ok(())
    }

    /// Notes how a run ended, with an event and an alert of each server on which it failed.
    async fn note(&self, run: &EndedRun, now: Timestamp, alarms: &impl Alarms) -> Result<(), StoreError> {
        let EndedRun { schedule, due_at, batch_id, succeeded, failed } = run;
        let is_well = failed.is_empty();
        let event = |FailedOn { server_id, status, .. }: &FailedOn| {
            let detail = json!({
                "schedule_id": schedule.id, "schedule_owner_id": schedule.owner_id, "name": schedule.name,
                "batch_id": batch_id, "due_at": due_at, "status": status,
            });
            NewServerEvent::new(*server_id, FAILED_EVENT, now, detail)
        };
        let events = failed.iter().map(event).collect();
        let detail = json!({
            "name": schedule.name, "batch_id": batch_id, "due_at": due_at,
            "succeeded": succeeded.len(), "failed": failed.len(),
        });
        let outcome = if is_well { Outcome::Ok } else { Outcome::Failed("command_failed".into()) };
        let ended = entry(action::SCHEDULE_RUN, schedule, Actor::service("")).outcome(outcome).detail(detail);
        let outcome = if is_well { "succeeded" } else { "failed" };
        let endings = failed.iter().map(|failed| (failed.server_id, ending(failed)));
        let endings = endings.chain(succeeded.iter().map(|server_id| (*server_id, Ending::Succeeded)));
        let alerts = self.alerts(schedule, endings.collect(), now, alarms).await?;
        alarms.publish(&self.store.end_run(run, outcome, vec![ended], events, alerts).await?).await;
        Ok(())
    }
}

/// The servers that a schedule names.
pub fn named(schedule: &Schedule) -> Vec<Uuid> {
    serde_json::from_str(&schedule.server_ids).unwrap_or_default()
}

fn entry(action: &'static str, schedule: &Schedule, actor: Actor) -> Entry {
    Entry::new(action, schedule.owner_id, actor).target(schedule.id)
}
