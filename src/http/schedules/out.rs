//! The schedules of responses.

use paperclip::actix::Apiv2Schema;
use serde::Serialize;
use serde_json::json;

use crate::commands::schedules::named;
use crate::http::alerts::words::SeverityOut;
use crate::http::extract::field::described;
use crate::http::field_out::{Id, TimeOut};
use crate::store::{Schedule, ScheduleRun};

/// How a run ended: `running` until it has. `still_running`, `no_server` and `quota_exceeded` did not start: the run before had
/// not ended, no server is left, or a quota of the account is reached.
#[derive(Debug, Clone, Serialize)]
#[serde(transparent)]
pub struct OutcomeOut(String);

described!(
    OutcomeOut,
    json!({ "type": "string", "example": "succeeded",
            "enum": ["running", "succeeded", "failed", "still_running", "no_server", "quota_exceeded"] })
);

/// A run of a schedule.
#[derive(Debug, Serialize, Apiv2Schema)]
pub struct ScheduleRunOut {
    /// The time at which it was due.
    due_at: TimeOut,
    started_at: TimeOut,
    outcome: OutcomeOut,
    /// The batch, with the output: `GET /commands/batches/{id}`. Null if the run did not start.
    batch_id: Option<Id>,
}

/// A schedule without its runs.
#[derive(Debug, Serialize, Apiv2Schema)]
pub struct ScheduleSummaryOut {
    id: Id,
    name: String,
    server_ids: Vec<Id>,
    tag: Option<String>,
    command: String,
    timeout_seconds: i32,
    concurrency: i32,
    stop_on_failure: bool,
    /// Whether operators have signed it.
    signed: bool,
    cron: String,
    time_zone: String,
    enabled: bool,
    /// How serious the alerts of runs that fail or are missed are.
    severity: SeverityOut,
    /// It does not run from then on.
    until: Option<TimeOut>,
    /// When it is due next. Null if it is paused or has ended.
    next_at: Option<TimeOut>,
    /// How often it was due while no instance of the service ran, and when that was last. Missed runs are not made up for.
    missed: i64,
    missed_at: Option<TimeOut>,
    /// Your name when you made or last changed it.
    username: String,
    created_at: TimeOut,
    updated_at: TimeOut,
}

/// A schedule with its last runs.
#[derive(Debug, Serialize, Apiv2Schema)]
pub struct ScheduleOut {
    #[serde(flatten)]
    summary: ScheduleSummaryOut,
    /// At most 100, newest first.
    runs: Vec<ScheduleRunOut>,
}

impl From<Schedule> for ScheduleSummaryOut {
    fn from(row: Schedule) -> Self {
        Self {
            id: Id(row.id),
            server_ids: named(&row).into_iter().map(Id).collect(),
            name: row.name,
            tag: row.tag,
            command: row.command,
            timeout_seconds: row.timeout_seconds,
            concurrency: row.concurrency,
            stop_on_failure: row.stop_on_failure,
            signed: row.signed.is_some(),
            cron: row.cron,
            time_zone: row.time_zone,
            enabled: row.is_enabled,
            severity: SeverityOut(row.severity),
            until: row.until_at.map(|at| TimeOut(at.into())),
            next_at: row.next_at.filter(|_| row.is_enabled).map(|at| TimeOut(at.into())),
            missed: row.missed,
            missed_at: row.missed_at.map(|at| TimeOut(at.into())),
            username: row.username,
            created_at: TimeOut(row.created_at.into()),
            updated_at: TimeOut(row.updated_at.into()),
        }
    }
}

impl ScheduleOut {
    pub fn new(row: Schedule, runs: Vec<ScheduleRun>) -> Self {
        let run = |run: ScheduleRun| ScheduleRunOut {
            due_at: TimeOut(run.due_at.into()),
            started_at: TimeOut(run.started_at.into()),
            outcome: OutcomeOut(run.outcome.unwrap_or_else(|| "running".to_owned())),
            batch_id: run.batch_id.map(Id),
        };
        Self { summary: row.into(), runs: runs.into_iter().map(run).collect() }
    }
}
