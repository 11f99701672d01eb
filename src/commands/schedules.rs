//! Commands that recur.
//!
//! Each instance looks for schedules that are due. Which one starts a run is decided by the database, in the transaction that
//! stores the batch: it moves the schedule on to its next time, if nobody has. From then on the run is a batch like any other, and
//! the right to each command is asked when it is sent.
//!
//! A run that is late is not started: at another time than people expect, it may do harm. It is counted, and told.
//!
//! What fails or is missed opens an alert on each server, which the next success there ends ([`Alarms`]).

use std::collections::HashSet;
use std::future::Future;
use std::pin::Pin;
use std::sync::Arc;
use std::time::Duration;

use chrono_tz::Tz;
use serde_json::json;
use signalbox_protocol::Timestamp;
use signalbox_signing::Recurrence;
use uuid::Uuid;

use super::JobStatus;
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

/// A run begins at most so late; after that it is missed. Agents take a signed command within five minutes.
const LATE_MS: i64 = 90 * 1_000;

/// How many missed runs are counted at once: of one each minute, those of a month.
const MAX_MISSED: u32 = 50_000;

/// The servers of one run.
const MAX_SERVERS: usize = 10_000;

/// The failures of one run of which alerts are opened, in one transaction: people who get so many need no more to act.
const MAX_ALERTS: usize = 500;

/// The kind of the events of servers on which a run failed.
const FAILED_EVENT: &str = "schedule_failed";

/// What is to be done about a schedule that is due.
#[derive(Debug, Clone, PartialEq, Eq)]
struct Plan {
    occurrence: Occurrence,
    /// Whether the time that is due now has just come.
    is_on_time: bool,
}

/// How a run ended on a server.
#[derive(Debug, Clone, PartialEq, Eq)]
enum Ending {
    Succeeded,
    /// With what an alert says about it.
    Failed(String),
    /// It says nothing about whether the command works there.
    Unclear,
    /// The owner of the schedule may not run commands there any more.
    Forbidden,
}

/// Makes alerts of failures. Implemented outside, because alerts are of the same layer.
pub trait Alarms {
    /// The alerts of servers on which a run failed, each with what happened there, and whose channels to notify.
    fn raise<'a>(&'a self, schedule: &'a Schedule, failures: &'a [(Uuid, String)], at: Timestamp) -> Raising<'a>;

    /// Publishes alerts that were opened or ended, and wakes what notifies people.
    fn publish<'a>(&'a self, alerts: &'a [Alert]) -> Publishing<'a>;
}

/// The future of [`Alarms::raise`].
pub type Raising<'a> = Pin<Box<dyn Future<Output = Result<Vec<(Alert, AlertAudience)>, StoreError>> + 'a>>;

/// The future of [`Alarms::publish`].
pub type Publishing<'a> = Pin<Box<dyn Future<Output = ()> + 'a>>;

/// Starts what is due, and tells how it ended; cheap to clone.
#[derive(Clone)]
pub struct Schedules {
    pub(super) clock: Clock,
    pub(super) store: Store,
    pub(super) access: Access,
    pub(super) batches: Arc<Batches>,
    pub(super) cluster: Cluster,
}

/// When a schedule is due after `time`; none if it ends before.
pub fn next_after(recurrence: &Recurrence<Tz>, time: Timestamp, until: Option<Timestamp>) -> Option<Timestamp> {
    recurrence.next_after(time).filter(|next| until.is_none_or(|until| *next < until))
}

impl Schedules {
    /// Starts what is due, for as long as this instance runs.
    pub async fn keep(&self, alarms: &dyn Alarms) {
        every(LOOK_EVERY, async || {
            if let Err(error) = self.look(alarms).await {
                tracing::warn!(%error, "schedules could not be checked, will try again");
            }
        })
        .await;
    }

    async fn look(&self, alarms: &dyn Alarms) -> Result<(), StoreError> {
        // A clock that is in doubt may show a time that has not come: what ran then would not run again.
        if self.cluster.is_draining() || self.clock.doubt().is_some() {
            return Ok(());
        }
        let now = self.clock.now();
        let mut due = self.store.due_schedules(now).await?;
        // What was missed can wait, and what is due now would be late.
        due.sort_by_cached_key(|schedule| !plan(schedule, now).is_some_and(|plan| plan.is_on_time));
        for schedule in due {
            if let Err(error) = self.take(&schedule, now, alarms).await {
                tracing::warn!(schedule.id = %schedule.id, %error, "a schedule could not run, will try again");
            }
        }
        for run in self.store.ended_runs().await? {
            self.note(&run, now, alarms).await?;
        }
        alarms.publish(&self.store.settle_schedule_alerts(now).await?).await;
        Ok(())
    }

    /// Starts a schedule that is due, or counts it as missed.
    async fn take(&self, schedule: &Schedule, now: Timestamp, alarms: &dyn Alarms) -> Result<(), RunError> {
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
            return self.pass(schedule, occurrence, "still_running", &servers, alarms).await;
        }
        if servers.is_empty() {
            return self.pass(schedule, occurrence, "no_server", &servers, alarms).await;
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
            Err(RunError::Store(StoreError::QuotaExceeded { .. })) => {
                self.pass(schedule, occurrence, "quota_exceeded", &servers, alarms).await
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
        alarms: &dyn Alarms,
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

    /// Notes that a schedule is due and cannot run.
    async fn pass(
        &self,
        schedule: &Schedule,
        occurrence: Occurrence,
        outcome: &'static str,
        servers: &[BatchServer],
        alarms: &dyn Alarms,
    ) -> Result<(), RunError> {
        let detail = json!({ "name": schedule.name, "command": schedule.command, "due_at": occurrence.due_at });
        let refused = entry(action::SCHEDULE_RUN, schedule, Actor::service(""));
        let refused = refused.outcome(Outcome::Failed(outcome.into())).detail(detail);
        let why =
            if outcome == "still_running" { "the run before had not ended" } else { "too many batches were running" };
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
        alarms: &dyn Alarms,
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

    /// Notes how a run ended, with an event and an alert of each server on which it failed.
    async fn note(&self, run: &EndedRun, now: Timestamp, alarms: &dyn Alarms) -> Result<(), StoreError> {
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

/// How a run ended on a server that did not succeed.
fn ending(failed: &FailedOn) -> Ending {
    let FailedOn { status, exit_code, error_code, .. } = failed;
    Ending::Failed(match (JobStatus::of(status), error_code.as_deref(), exit_code) {
        // Somebody cancelled it, or it failed on another server, which has an alert.
        (JobStatus::Cancelled | JobStatus::Skipped, ..) => return Ending::Unclear,
        (_, Some("forbidden"), _) => return Ending::Forbidden,
        (_, Some("agent_offline"), _) => "did not run: its agent was not connected".to_owned(),
        (_, Some("agent_refused"), _) => "did not run: the agent refused it".to_owned(),
        (JobStatus::TimedOut, ..) => "took too long and was ended".to_owned(),
        (JobStatus::Running | JobStatus::Lost, ..) => "was started, and how it ended is not known".to_owned(),
        (_, Some(code), _) => format!("failed ({code})"),
        (_, None, Some(code)) => format!("failed with exit code {code}"),
        (_, None, None) => "failed".to_owned(),
    })
}

/// The same failure on all of these servers.
fn all(servers: &[BatchServer], what: &str) -> Vec<(Uuid, Ending)> {
    servers.iter().map(|server| (server.server_id, Ending::Failed(what.to_owned()))).collect()
}

/// What is to be done about a schedule now; none if it is not due.
fn plan(schedule: &Schedule, now: Timestamp) -> Option<Plan> {
    let expected = Timestamp::from(schedule.next_at?);
    if now < expected {
        return None;
    }
    let until = schedule.until_at.map(Timestamp::from);
    // It was checked when it was stored. With a zone that a later version does not know any more, it is missed, and never due again.
    let zone = schedule.time_zone.parse::<Tz>().ok();
    let Some(recurrence) = zone.and_then(|zone| Recurrence::parse(&schedule.cron, zone).ok()) else {
        let never = Occurrence { missed: 1, missed_at: Some(expected), ..occurrence(schedule.id, expected, now) };
        return Some(Plan { occurrence: never, is_on_time: false });
    };
    let latest = until.map_or(now, |until| now.min(until.plus_millis(-1)));
    let due_at = recurrence.last_until(latest).map_or(expected, |last| last.max(expected));
    let is_on_time = now.millis_since(due_at) <= LATE_MS;
    let (mut missed, mut missed_at, mut time) = (0, None, Some(expected));
    while let Some(passed) = time.filter(|time| *time < due_at || (*time == due_at && !is_on_time)) {
        if missed >= MAX_MISSED {
            missed_at = Some(due_at);
            break;
        }
        missed += 1;
        missed_at = Some(passed);
        time = recurrence.next_after(passed);
    }
    let next_at = next_after(&recurrence, due_at, until);
    let occurrence = Occurrence { due_at, next_at, missed, missed_at, ..occurrence(schedule.id, expected, now) };
    Some(Plan { occurrence, is_on_time })
}

fn occurrence(schedule_id: Uuid, expected: Timestamp, now: Timestamp) -> Occurrence {
    Occurrence { schedule_id, expected, due_at: expected, next_at: None, missed: 0, missed_at: None, now }
}

/// The servers that a schedule names.
pub fn named(schedule: &Schedule) -> Vec<Uuid> {
    serde_json::from_str(&schedule.server_ids).unwrap_or_default()
}

fn entry(action: &'static str, schedule: &Schedule, actor: Actor) -> Entry {
    Entry::new(action, schedule.owner_id, actor).target(schedule.id)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn at(text: &str) -> Timestamp {
        Timestamp::parse(text).unwrap()
    }

    fn daily(next_at: &str, until: Option<&str>) -> Schedule {
        let now = at("2026-01-01T00:00:00Z").into();
        Schedule {
            id: Uuid::nil(),
            owner_id: Uuid::nil(),
            username: "ada".to_owned(),
            name: "backup".to_owned(),
            command: "true".to_owned(),
            server_ids: "[]".to_owned(),
            tag: None,
            timeout_seconds: 60,
            concurrency: 1,
            stop_on_failure: false,
            signed: None,
            cron: "0 3 * * *".to_owned(),
            time_zone: "UTC".to_owned(),
            is_enabled: true,
            severity: "warning".to_owned(),
            until_at: until.map(|until| at(until).into()),
            next_at: Some(at(next_at).into()),
            missed: 0,
            missed_at: None,
            created_at: now,
            updated_at: now,
        }
    }

    #[test]
    fn what_is_due_runs_once_and_then_the_day_after() {
        let schedule = daily("2026-11-26T03:00:00Z", None);

        assert_eq!(plan(&schedule, at("2026-11-26T02:59:59.999Z")), None);
        let plan = plan(&schedule, at("2026-11-26T03:00:01Z")).unwrap();
        assert!(plan.is_on_time);
        assert_eq!(plan.occurrence.due_at, at("2026-11-26T03:00:00Z"));
        assert_eq!(plan.occurrence.next_at, Some(at("2026-11-27T03:00:00Z")));
        assert_eq!((plan.occurrence.missed, plan.occurrence.missed_at), (0, None));
    }

    #[test]
    fn what_was_due_while_the_service_was_away_is_counted_and_not_run() {
        let schedule = daily("2026-11-23T03:00:00Z", None);

        let plan_late = plan(&schedule, at("2026-11-26T09:00:00Z")).unwrap();
        let plan_back = plan(&schedule, at("2026-11-26T03:00:30Z")).unwrap();

        assert!(!plan_late.is_on_time);
        assert_eq!(plan_late.occurrence.missed, 4);
        assert_eq!(plan_late.occurrence.missed_at, Some(at("2026-11-26T03:00:00Z")));
        assert_eq!(plan_late.occurrence.next_at, Some(at("2026-11-27T03:00:00Z")));
        assert!(plan_back.is_on_time, "the last one has just come");
        assert_eq!(plan_back.occurrence.missed, 3);
        assert_eq!(plan_back.occurrence.missed_at, Some(at("2026-11-25T03:00:00Z")));
    }

    #[test]
    fn the_end_is_exclusive() {
        let schedule = daily("2026-11-26T03:00:00Z", Some("2026-11-27T03:00:00Z"));

        let plan_last = plan(&schedule, at("2026-11-26T03:00:01Z")).unwrap();
        let plan_after = plan(&schedule, at("2026-12-26T03:00:01Z")).unwrap();

        assert_eq!((plan_last.is_on_time, plan_last.occurrence.next_at), (true, None));
        assert_eq!((plan_after.is_on_time, plan_after.occurrence.next_at), (false, None));
        assert_eq!(plan_after.occurrence.missed, 1);
    }

    #[test]
    fn a_schedule_that_cannot_be_read_any_more_is_missed_and_never_due_again() {
        let unknown_zone = Schedule { time_zone: "Moon/Tycho".to_owned(), ..daily("2026-11-26T03:00:00Z", None) };
        let no_cron = Schedule { cron: "@moon".to_owned(), ..daily("2026-11-26T03:00:00Z", None) };

        for schedule in [unknown_zone, no_cron] {
            let Plan { occurrence, is_on_time } = plan(&schedule, at("2026-11-26T03:00:01Z")).unwrap();

            assert_eq!((is_on_time, occurrence.next_at, occurrence.missed), (false, None, 1));
            assert_eq!(occurrence.missed_at, Some(at("2026-11-26T03:00:00Z")), "so that it is noted, and moved on");
        }
    }

    #[test]
    fn an_alert_says_why_a_run_failed_and_some_endings_open_none() {
        let on = |status: &str, exit_code, error_code: Option<&str>| {
            let error_code = error_code.map(str::to_owned);
            ending(&FailedOn { server_id: Uuid::nil(), status: status.to_owned(), exit_code, error_code })
        };
        let says = |what: &str| Ending::Failed(what.to_owned());

        assert_eq!(on("failed", Some(3), None), says("failed with exit code 3"));
        assert_eq!(on("failed", None, Some("agent_refused")), says("did not run: the agent refused it"));
        assert_eq!(on("failed", None, Some("agent_offline")), says("did not run: its agent was not connected"));
        assert_eq!(on("failed", None, Some("agent_error")), says("failed (agent_error)"));
        assert_eq!(on("timed_out", Some(124), None), says("took too long and was ended"));
        assert_eq!(on("running", None, None), says("was started, and how it ended is not known"));
        assert_eq!(on("lost", None, None), says("was started, and how it ended is not known"));
        assert_eq!(on("failed", None, Some("forbidden")), Ending::Forbidden);
        assert_eq!(on("skipped", None, None), Ending::Unclear);
        assert_eq!(on("cancelled", Some(130), None), Ending::Unclear);
    }

    #[test]
    fn a_clock_that_went_back_starts_nothing_again() {
        let schedule = daily("2026-11-27T03:00:00Z", None);

        assert_eq!(plan(&schedule, at("2026-11-26T03:00:01Z")), None);
    }
}
