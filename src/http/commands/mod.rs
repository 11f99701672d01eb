//! `/commands`: shell commands on servers.

pub(super) mod approvals;
pub(super) mod batches;
pub(super) mod order;
mod out;

use std::time::{Duration, Instant};

use actix_web::web::Json;
use deserr::Deserr;
use paperclip::actix::web::{Resource, delete as remove, get, post};
use paperclip::actix::{Apiv2Schema, api_v2_operation};
use signalbox_protocol::agent::RequestError;
use signalbox_protocol::signed::Signed;
use uuid::Uuid;

use super::error::{ApiError, ErrorCode};
use super::extract::fault::Faults;
use super::extract::field::{ShellCommand, Stdin};
use super::extract::param::{Id, PageQuery, Whole};
use super::extract::{self, Checked, NoQuery, OnServer, Recent, ServerPath, UseCommands};
use super::path::at;
use super::reply::Listed;
use super::signed_in::{SignedOrder, checked_signing};
use super::task::run_detached;
use crate::commands::job::Job;
use crate::commands::{JobStatus, Jobs, NewJob, RunError};
use crate::registry::CallError;
use crate::state::State;
pub use approvals::{create_approval, list_approvals, read_approval, sign_approval, withdraw_approval};
pub use batches::{cancel_batch, list_batches, read_batch, start_batch};
use order::{SIGNED_COMMANDS, TimeoutSeconds, seconds};
use out::{CommandOut, CommandSummaryOut};

/// The longest time in seconds that a request waits for its command: proxies cut connections after 100.
const LONGEST_WAIT_SECONDS: u64 = 90;

#[derive(Debug, Deserr, Apiv2Schema)]
#[deserr(error = Faults)]
pub struct CommandIn {
    /// The command, which runs in `/bin/sh -c`.
    command: ShellCommand,
    /// Seconds after which the command and all its child processes are ended. Defaults to 60.
    #[deserr(default)]
    timeout_seconds: Option<TimeoutSeconds>,
    /// Standard input of the command. Empty by default.
    #[deserr(default)]
    stdin: Option<Stdin>,
    /// What operators signed for this command, for a server that asks for signatures.
    #[deserr(default)]
    signed: Option<SignedOrder>,
}

#[derive(Debug, Deserr, Apiv2Schema)]
#[deserr(error = Faults)]
pub struct WaitQuery {
    /// Maximum number of seconds to wait for the end of the command, at most `timeout_seconds` plus 10. Defaults to 90;
    /// 0 returns immediately.
    #[deserr(default)]
    wait: Option<Whole<0, { LONGEST_WAIT_SECONDS }>>,
}

/// `/commands/{server_id}/{command_id}`
#[derive(Debug, Clone, Copy, Deserr, Apiv2Schema)]
#[deserr(error = Faults)]
pub struct CommandPath {
    server_id: Id,
    pub command_id: Id,
}

impl ServerPath for CommandPath {
    fn server_id(&self) -> Uuid {
        self.server_id.0
    }
}

/// Run a command
///
/// Returns when the command has ended, or with `status: "running"` 10 s after its `timeout_seconds`, and after at most
/// 90 s; `wait=0` returns immediately. The command runs at most once. It continues if the connection to its agent
/// breaks; its result can then be read by its id.
#[api_v2_operation(tags(Commands), operation_id = "run_command")]
pub async fn run(
    ask: Checked<Recent<OnServer<UseCommands>>, WaitQuery, extract::Json<CommandIn>>,
) -> Result<Json<CommandOut>, ApiError> {
    let extract::Json(input) = ask.body;
    let Recent(OnServer { access, actor, .. }) = ask.subject;
    let signed = input.signed.map(Signed::from);
    if signed.is_some() {
        checked_signing(&ask.state, access.owner_id(), access.server_id(), SIGNED_COMMANDS).await?;
    }
    let new = NewJob {
        server_id: access.server_id(),
        owner_id: access.owner_id(),
        actor,
        command: input.command.0,
        stdin: input.stdin.map(|Stdin(text)| text),
        signed,
        timeout_seconds: seconds(input.timeout_seconds),
    };
    let wait = Duration::from_secs(ask.query.wait.map_or(LONGEST_WAIT_SECONDS, |Whole(seconds)| seconds));
    let (began, limit) = (Instant::now(), wait.min(Jobs::answer_within(new.timeout_seconds)));
    let job = ask.state.jobs.run(new, limit).await?;
    ask.state.jobs.wait(&job, limit.saturating_sub(began.elapsed())).await?;
    match job.ended().and_then(|end| end.error) {
        Some(error) => Err(refusal(error)),
        None => Ok(Json(CommandOut::of_job(&job, ask.state.clock.now()))),
    }
}

/// List the commands of a server
///
/// Newest first, without their output.
#[api_v2_operation(tags(Commands), operation_id = "list_commands")]
pub async fn list(ask: Checked<OnServer<UseCommands>, PageQuery>) -> Result<Listed<CommandSummaryOut>, ApiError> {
    let server_id = ask.subject.access.server_id();
    let page = ask.state.store.list_commands(server_id, ask.query.into()).await?;
    let now = ask.state.clock.now();
    let newest = |row: crate::store::Command| match ask.state.jobs.find(server_id, row.id) {
        // It may have ended a moment ago, which the row does not show yet.
        Some(job) => CommandSummaryOut::of_job(&job, now),
        None => CommandSummaryOut::of_row(row, now),
    };
    Ok(Listed { items: page.items.into_iter().map(newest).collect(), total: page.total })
}

/// Get a command
///
/// While it runs, with its output so far.
#[api_v2_operation(tags(Commands), operation_id = "read_command")]
pub async fn read(ask: Checked<OnServer<UseCommands, CommandPath>>) -> Result<Json<CommandOut>, ApiError> {
    let (server_id, id) = (ask.subject.access.server_id(), ask.subject.path.command_id.0);
    let jobs = &ask.state.jobs;
    if let Some(job) = jobs.find(server_id, id) {
        return Ok(Json(CommandOut::of_job(&job, ask.state.clock.now())));
    }
    let row = ask.state.store.find_command(server_id, id).await?.ok_or(not_found())?;
    // Only then: looking for it reads its row, with all its output, again.
    if JobStatus::of(&row.status) == JobStatus::Running
        && let Some(job) = jobs.find_anywhere(server_id, id).await?
    {
        return Ok(Json(CommandOut::of_job(&job, ask.state.clock.now())));
    }
    Ok(Json(CommandOut::of_row(row, ask.state.clock.now())))
}

/// Cancel a command
///
/// Ends the command and all its child processes. Returns when it has ended, or after 10 s with its present state. A
/// command that has already ended does not change.
#[api_v2_operation(tags(Commands), operation_id = "cancel_command")]
pub async fn cancel(ask: Checked<OnServer<UseCommands, CommandPath>, NoQuery>) -> Result<Json<CommandOut>, ApiError> {
    let (server_id, id) = (ask.subject.access.server_id(), ask.subject.path.command_id.0);
    run_detached(async move {
        let jobs = &ask.state.jobs;
        if let Some(job) = jobs.find_anywhere(server_id, id).await?.filter(|job| job.is_sent()) {
            jobs.cancel(&job, ask.subject.actor).await?;
            return asked_to_end(&ask.state, &job).await;
        }
        let row = jobs.cancel_queued(server_id, id, ask.subject.actor).await?.ok_or(not_found())?;
        // It was already on its way to its agent, and runs by now.
        if JobStatus::of(&row.status) == JobStatus::Running
            && let Some(job) = jobs.find_anywhere(server_id, id).await?
        {
            return asked_to_end(&ask.state, &job).await;
        }
        Ok(Json(CommandOut::of_row(row, ask.state.clock.now())))
    })
    .await
}

/// Returns a command that was asked to end once it has ended, or as it is if that takes too long.
async fn asked_to_end(state: &State, job: &Job) -> Result<Json<CommandOut>, ApiError> {
    match state.jobs.wait(job, CANCEL_WAIT).await {
        // The agent gets the request when it reconnects.
        Ok(()) | Err(RunError::Call(CallError::Disconnected)) => Ok(Json(CommandOut::of_job(job, state.clock.now()))),
        Err(error) => Err(error.into()),
    }
}

/// Agents end a command with SIGTERM, and with SIGKILL after a grace period.
const CANCEL_WAIT: Duration = Duration::from_secs(10);

fn not_found() -> ApiError {
    ApiError::not_found("Command not found")
}

/// The error for the caller of a command that did not run.
fn refusal(error: RequestError) -> ApiError {
    match error.code.as_str() {
        "agent_offline" => ApiError::code(ErrorCode::AgentOffline),
        "agent_disconnected" => ApiError::code(ErrorCode::AgentDisconnected),
        "busy" | "agent_busy" => ApiError::code(ErrorCode::Busy),
        "agent_error" => ApiError::of_agent(error),
        // In whatever words: an agent that does not take a command refuses it.
        _ => ApiError::agent_refused(error),
    }
}

impl From<RunError> for ApiError {
    fn from(error: RunError) -> Self {
        match error {
            RunError::Call(error) => error.into(),
            RunError::TooMany => Self::Refused { code: ErrorCode::Busy, detail: error.to_string().into() },
            RunError::Store(error) => error.into(),
            RunError::Stopping => Self::code(ErrorCode::Busy),
        }
    }
}

/// The routes. Fixed paths come before those with parameters that would match them.
pub fn routes() -> Vec<Resource> {
    vec![
        at("/commands").route(post().to(start_batch)),
        at("/commands/approvals").route(get().to(list_approvals)).route(post().to(create_approval)),
        at("/commands/approvals/{id}").route(get().to(read_approval)).route(remove().to(withdraw_approval)),
        at("/commands/approvals/{id}/signatures").route(post().to(sign_approval)),
        at("/commands/batches").route(get().to(list_batches)),
        at("/commands/batches/{id}").route(get().to(read_batch)),
        at("/commands/batches/{id}/cancel").route(post().to(cancel_batch)),
        at("/commands/{server_id}").route(get().to(list)).route(post().to(run)),
        at("/commands/{server_id}/{command_id}").route(get().to(read)),
        at("/commands/{server_id}/{command_id}/cancel").route(post().to(cancel)),
    ]
}
