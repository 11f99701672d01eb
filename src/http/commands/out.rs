//! How a command is told.

use paperclip::actix::Apiv2Schema;
use serde::Serialize;
use serde_json::json;
use signalbox_protocol::Timestamp;

use crate::commands::JobStatus;
use crate::commands::job::{End, Job};
use crate::commands::output::{Rendered, Stored};
use crate::http::extract::field::described;
use crate::http::field_out::{Id, Moment};
use crate::store::Command;

/// Where a command stands: `queued` and `skipped` are of batches alone, `lost` means that it was sent and its
/// outcome is not known.
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

/// Why a command came to nothing.
#[derive(Debug, Clone, Serialize, Apiv2Schema)]
pub struct CommandErrorOut {
    /// Such as `agent_refused` or `agent_offline`.
    code: String,
    detail: String,
}

impl CommandErrorOut {
    pub fn of(code: Option<String>, detail: Option<String>) -> Option<Self> {
        code.map(|code| Self { code, detail: detail.unwrap_or_default() })
    }
}

/// A command and its output.
#[derive(Debug, Serialize, Apiv2Schema)]
pub struct CommandOut {
    #[serde(flatten)]
    summary: CommandSummaryOut,
    /// Both streams, in the order they came. Over 1 MiB the middle is left out, and a line says so.
    output: String,
    stdout: String,
    stderr: String,
}

/// A command without its output.
#[derive(Debug, Serialize, Apiv2Schema)]
pub struct CommandSummaryOut {
    command_id: Id,
    server_id: Id,
    /// The batch that it is of.
    batch_id: Option<Id>,
    command: String,
    status: StatusOut,
    /// 128 + n when signal n ended it, 124 when it took too long; null while it runs, and when it is not known.
    exit_code: Option<i32>,
    /// While it runs: so far.
    duration_ms: i64,
    /// The output was longer than is kept.
    truncated: bool,
    error: Option<CommandErrorOut>,
    timeout_seconds: i32,
    /// Who ran it, as they were called then, and from where.
    user_id: Id,
    username: String,
    address: String,
    created_at: Moment,
    started_at: Option<Moment>,
    finished_at: Option<Moment>,
}

impl CommandOut {
    /// What is known of a job at this moment.
    pub fn of_job(job: &Job) -> Self {
        Self::with(CommandSummaryOut::of_job(job), job.output().to_stored().render())
    }

    /// What is stored of a command.
    pub fn of_row(row: Command) -> Self {
        let rendered = Stored::of(&row).render();
        Self::with(row.into(), rendered)
    }

    fn with(summary: CommandSummaryOut, Rendered { output, stdout, stderr }: Rendered) -> Self {
        Self { summary, output, stdout, stderr }
    }
}

impl CommandSummaryOut {
    /// What is known of a job at this moment: its row, and what the database does not know yet.
    pub fn of_job(job: &Job) -> Self {
        let mut row = job.row.clone();
        row.started_at = job.started_at().map(Into::into);
        if job.is_sent() {
            row.status = JobStatus::Running.name().to_owned();
        }
        let mut summary = Self::from(row);
        if let Some(end) = job.ended() {
            summary.end(end, job.output().is_cut());
        }
        summary
    }

    fn end(&mut self, end: End, is_cut: bool) {
        self.status = end.status.into();
        self.exit_code = end.exit_code;
        self.duration_ms = end.duration_ms.map_or(0, |millis| i64::try_from(millis).unwrap_or(i64::MAX));
        self.truncated = end.is_truncated || is_cut;
        self.error = end.error.map(|error| CommandErrorOut { code: error.code, detail: error.detail });
        self.finished_at = Some(Moment(end.at));
    }
}

impl From<Command> for CommandSummaryOut {
    fn from(row: Command) -> Self {
        let status = JobStatus::of(&row.status);
        let started_at = row.started_at.map(Timestamp::from);
        let so_far = || match status {
            JobStatus::Running => started_at.map_or(0, |started_at| Timestamp::now().millis_since(started_at)),
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
            error: CommandErrorOut::of(row.error_code, row.error_detail),
            timeout_seconds: row.timeout_seconds,
            user_id: Id(row.user_id),
            username: row.username,
            address: row.address,
            created_at: Moment(row.created_at.into()),
            started_at: started_at.map(Moment),
            finished_at: row.finished_at.map(|at| Moment(at.into())),
        }
    }
}
