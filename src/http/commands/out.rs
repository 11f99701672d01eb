//! The commands of responses.

use paperclip::actix::Apiv2Schema;
use serde::Serialize;
use serde_json::json;
use signalbox_protocol::Timestamp;
use signalbox_signing::Reason;

use crate::commands::JobStatus;
use crate::commands::job::{End, Job};
use crate::commands::output::{Rendered, Stored};
use crate::http::extract::field::described;
use crate::http::field_out::{Id, TimeOut};
use crate::store::Command;

/// The state of a command. Only commands of batches can be `queued` or `skipped`; `lost` means that the command was
/// sent and its outcome is unknown.
#[derive(Debug, Clone, Copy, Serialize)]
#[serde(transparent)]
pub struct StatusOut(&'static str);

described!(
    StatusOut,
    json!({ "type": "string", "example": "succeeded",
            "enum": ["queued", "running", "succeeded", "failed", "timed_out", "cancelled", "lost", "skipped"] })
);

impl From<JobStatus> for StatusOut {
    fn from(status: JobStatus) -> Self {
        Self(status.name())
    }
}

/// Why a command failed.
#[derive(Debug, Clone, Serialize, Apiv2Schema)]
pub struct CommandErrorOut {
    /// An error code, such as `agent_refused` or `agent_offline`.
    code: String,
    detail: String,
    /// With `agent_refused`, why a signature did not suffice.
    #[serde(skip_serializing_if = "Option::is_none")]
    reason: Option<ReasonOut>,
}

/// Why a signature did not suffice.
#[derive(Debug, Clone, Serialize)]
#[serde(transparent)]
pub struct ReasonOut(String);

impl ReasonOut {
    pub fn of(reason: String) -> Self {
        Self(reason)
    }
}

described!(ReasonOut, json!({ "type": "string", "enum": Reason::ALL.map(Reason::name) }));

impl CommandErrorOut {
    pub fn of(code: Option<String>, detail: Option<String>, reason: Option<String>) -> Option<Self> {
        code.map(|code| Self { code, detail: detail.unwrap_or_default(), reason: reason.map(ReasonOut::of) })
    }
}

/// A command with its output.
#[derive(Debug, Serialize, Apiv2Schema)]
pub struct CommandOut {
    #[serde(flatten)]
    summary: CommandSummaryOut,
    /// Both streams in the order in which they arrived. Over 1 MiB, or while all output takes too much memory, the middle is
    /// omitted, and a line says so.
    output: String,
    stdout: String,
    stderr: String,
}

/// A command without its output.
#[derive(Debug, Serialize, Apiv2Schema)]
pub struct CommandSummaryOut {
    command_id: Id,
    server_id: Id,
    /// The batch that the command belongs to.
    batch_id: Option<Id>,
    command: String,
    status: StatusOut,
    /// 128 + n if signal n ended it, 124 if it exceeded its time limit; null while it runs, and if it is unknown.
    exit_code: Option<i32>,
    /// While it runs, the time so far.
    duration_ms: i64,
    /// Whether a part of the output was not kept.
    truncated: bool,
    error: Option<CommandErrorOut>,
    timeout_seconds: i32,
    /// The user who ran it, with the name at that time, and the client's address.
    user_id: Id,
    username: String,
    address: String,
    created_at: TimeOut,
    started_at: Option<TimeOut>,
    finished_at: Option<TimeOut>,
}

impl CommandOut {
    /// The present state of a job. `now` is by the clock that all instances share.
    pub fn of_job(job: &Job, now: Timestamp) -> Self {
        let mut summary = CommandSummaryOut::of_job(job, now);
        // Read after the state: once the end is known, the output is complete. Until then it may be cut in between.
        let output = job.output();
        summary.truncated |= output.is_cut();
        Self::with(summary, output.to_stored().render())
    }

    /// The stored state of a command.
    pub fn of_row(row: Command, now: Timestamp) -> Self {
        let rendered = Stored::of(&row).render();
        Self::with(CommandSummaryOut::of_row(row, now), rendered)
    }

    fn with(summary: CommandSummaryOut, Rendered { output, stdout, stderr }: Rendered) -> Self {
        Self { summary, output, stdout, stderr }
    }
}

impl CommandSummaryOut {
    /// The present state of a job: its row, and what the database does not know yet.
    pub fn of_job(job: &Job, now: Timestamp) -> Self {
        let mut row = job.row.clone();
        row.started_at = job.started_at().map(Into::into);
        if job.is_sent() {
            row.status = JobStatus::Running.name().to_owned();
        }
        let mut summary = Self::of_row(row, now);
        if let Some(end) = job.ended() {
            summary.end(end);
        }
        summary.truncated |= job.is_cut();
        summary
    }

    fn end(&mut self, end: End) {
        self.status = end.status.into();
        self.exit_code = end.exit_code;
        self.duration_ms = end.duration_ms.map_or(0, |millis| i64::try_from(millis).unwrap_or(i64::MAX));
        self.truncated |= end.is_truncated;
        self.error =
            end.error.and_then(|error| CommandErrorOut::of(Some(error.code), Some(error.detail), error.reason));
        self.finished_at = Some(TimeOut(end.at));
    }

    /// The stored state of a command.
    pub fn of_row(row: Command, now: Timestamp) -> Self {
        let status = JobStatus::of(&row.status);
        let started_at = row.started_at.map(Timestamp::from);
        let so_far = || match status {
            // The instance that started it may have read the shared clock a little differently.
            JobStatus::Running => started_at.map_or(0, |started_at| now.millis_since(started_at).max(0)),
            _ => 0,
        };
        Self {
            command_id: Id(row.id),
            server_id: Id(row.server_id),
            batch_id: row.batch_id.map(Id),
            command: row.command,
            status: status.into(),
            exit_code: row.exit_code,
            duration_ms: row.duration_ms.unwrap_or_else(so_far),
            truncated: row.is_truncated,
            error: CommandErrorOut::of(row.error_code, row.error_detail, row.error_reason),
            timeout_seconds: row.timeout_seconds,
            user_id: Id(row.user_id),
            username: row.username,
            address: row.address,
            created_at: TimeOut(row.created_at.into()),
            started_at: started_at.map(TimeOut),
            finished_at: row.finished_at.map(|at| TimeOut(at.into())),
        }
    }
}

#[cfg(test)]
mod tests {
    use signalbox_protocol::agent::{CommandOutput, Stream};
    use uuid::Uuid;

    use super::*;
    use crate::commands::NewJob;
    use crate::commands::output::HALF;

    fn job(now: Timestamp) -> Job {
        Job::new(NewJob::of_make(Uuid::now_v7(), Uuid::nil()).into_row(JobStatus::Running, None, now))
    }

    fn says(job: &Job, data: String) {
        job.add(&CommandOutput { command_id: job.id(), stream: Stream::Stdout, data, offset: None });
    }

    #[test]
    fn a_running_command_says_that_its_output_is_cut() {
        let now = Timestamp::from_millis(1_795_000_000_000);
        let job = job(now);
        let truncated =
            || (CommandOut::of_job(&job, now).summary.truncated, CommandSummaryOut::of_job(&job, now).truncated);

        says(&job, "x".repeat(2 * HALF));
        assert_eq!(truncated(), (false, false));

        says(&job, "x".to_owned());
        assert_eq!(truncated(), (true, true));
        let out = CommandOut::of_job(&job, now);
        assert!(out.output.contains("[... 1 bytes left out ...]") && out.summary.finished_at.is_none());
    }

    #[test]
    fn the_time_so_far_is_by_the_clock_of_the_start_and_never_negative() {
        let started_at = Timestamp::from_millis(1_795_000_000_000);
        let job = job(started_at);
        let so_far = |millis| {
            let now = started_at.plus_millis(millis);
            let rows = CommandSummaryOut::of_row(job.row.clone(), now).duration_ms;
            (CommandSummaryOut::of_job(&job, now).duration_ms, rows)
        };

        assert_eq!(so_far(1_500), (1_500, 1_500));
        assert_eq!(so_far(-3_600_000), (0, 0));
    }
}
