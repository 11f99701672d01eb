//! One command for many servers.

use std::collections::BTreeMap;

use actix_web::web::Json;
use deserr::Deserr;
use paperclip::actix::{Apiv2Schema, CreatedJson, api_v2_operation};
use serde::Serialize;
use signalbox_protocol::signed::Signed;

use super::order::{
    Concurrency, RUN, SIGNED_COMMANDS, TimeoutSeconds, concurrency, expect_room, runnable, seconds, selection,
};
use super::out::{CommandErrorOut, StatusOut};
use crate::auth::access::ServerAccess;
use crate::change::Change;
use crate::commands::JobStatus;
use crate::commands::batch::{BatchPlace, BatchServer, NewBatch};
use crate::effects;
use crate::http::error::ApiError;
use crate::http::extract::fault::Faults;
use crate::http::extract::field::{References, ShellCommand, Stdin, Tag};
use crate::http::extract::param::PageQuery;
use crate::http::extract::{self, CallerAt, Checked, IdPath, NoQuery, Recent, SignedIn};
use crate::http::field_out::{Id, TimeOut};
use crate::http::reply::Listed;
use crate::http::signed_in::{SignedOrder, checked_signing};
use crate::http::task::run_detached;
use crate::state::State;
use crate::store::{BatchItem, Caller, CommandBatch};

#[derive(Debug, Deserr, Apiv2Schema)]
#[deserr(error = Faults)]
pub struct BatchIn {
    /// The servers to run the command on, in addition to those of `tag`.
    #[deserr(default)]
    server_ids: Option<References>,
    /// All servers that have this tag now, and on which you may run commands.
    #[deserr(default)]
    tag: Option<Tag>,
    /// The command, which runs in `/bin/sh -c`.
    command: ShellCommand,
    /// Seconds after which the command and all its child processes are ended. Defaults to 60.
    #[deserr(default)]
    timeout_seconds: Option<TimeoutSeconds>,
    /// Standard input of the command on each server. Empty by default.
    #[deserr(default)]
    stdin: Option<Stdin>,
    /// What operators signed, once for all servers of the batch, for servers that ask for signatures.
    #[deserr(default)]
    signed: Option<SignedOrder>,
    /// How many servers run the command at the same time. Defaults to 50.
    #[deserr(default)]
    concurrency: Option<Concurrency>,
    /// Whether a failure stops the servers that still wait from running the command. Defaults to false.
    #[deserr(default)]
    stop_on_failure: Option<bool>,
}

/// The number of a batch's commands in each state.
#[derive(Debug, Default, Serialize, Apiv2Schema)]
pub struct CountsOut {
    queued: u64,
    running: u64,
    succeeded: u64,
    failed: u64,
    timed_out: u64,
    cancelled: u64,
    lost: u64,
    skipped: u64,
}

/// A batch without the results of its servers.
#[derive(Debug, Serialize, Apiv2Schema)]
pub struct BatchSummaryOut {
    id: Id,
    command: String,
    timeout_seconds: i32,
    concurrency: i32,
    stop_on_failure: bool,
    /// Whether the batch was cancelled.
    cancelled: bool,
    username: String,
    created_at: TimeOut,
    /// When the batch finished.
    finished_at: Option<TimeOut>,
}

/// A batch with its results so far.
#[derive(Debug, Serialize, Apiv2Schema)]
pub struct BatchOut {
    #[serde(flatten)]
    summary: BatchSummaryOut,
    counts: CountsOut,
    /// The results of the servers, in the order in which they run the command.
    results: Vec<BatchResultOut>,
}

/// The result of a batch on one server.
#[derive(Debug, Serialize, Apiv2Schema)]
pub struct BatchResultOut {
    /// `GET /commands/{server_id}/{command_id}` returns the whole output.
    command_id: Id,
    server_id: Id,
    server_name: Option<String>,
    status: StatusOut,
    exit_code: Option<i32>,
    duration_ms: Option<i64>,
    truncated: bool,
    error: Option<CommandErrorOut>,
    /// The first 4 KiB of the output.
    preview: String,
    started_at: Option<TimeOut>,
    finished_at: Option<TimeOut>,
}

impl From<CommandBatch> for BatchSummaryOut {
    fn from(batch: CommandBatch) -> Self {
        Self {
            id: Id(batch.id),
            command: batch.command,
            timeout_seconds: batch.timeout_seconds,
            concurrency: batch.concurrency,
            stop_on_failure: batch.stop_on_failure,
            cancelled: batch.is_cancelled,
            username: batch.username,
            created_at: TimeOut(batch.created_at.into()),
            finished_at: batch.finished_at.map(|at| TimeOut(at.into())),
        }
    }
}

impl From<BatchItem> for BatchResultOut {
    fn from(item: BatchItem) -> Self {
        let preview = item.preview.unwrap_or_default();
        Self {
            command_id: Id(item.id),
            server_id: Id(item.server_id),
            server_name: item.server_name,
            status: JobStatus::of(&item.status).into(),
            exit_code: item.exit_code,
            duration_ms: item.duration_ms,
            truncated: item.is_truncated,
            error: CommandErrorOut::of(item.error_code, item.error_detail, item.error_reason),
            preview: whole_characters(&preview).into_owned(),
            started_at: item.started_at.map(|at| TimeOut(at.into())),
            finished_at: item.finished_at.map(|at| TimeOut(at.into())),
        }
    }
}

/// The text without an incomplete character at its end.
fn whole_characters(bytes: &[u8]) -> std::borrow::Cow<'_, str> {
    let whole = bytes.utf8_chunks().next().map_or(0, |chunk| chunk.valid().len());
    let is_cut_at_the_end = bytes.len().saturating_sub(whole) < 4;
    String::from_utf8_lossy(if is_cut_at_the_end { bytes.get(..whole).unwrap_or_default() } else { bytes })
}

impl CountsOut {
    fn of(items: &[BatchItem]) -> Self {
        let mut counts: BTreeMap<&str, u64> = BTreeMap::new();
        for item in items {
            *counts.entry(JobStatus::of(&item.status).name()).or_default() += 1;
        }
        let count = |status: JobStatus| counts.get(status.name()).copied().unwrap_or_default();
        Self {
            queued: count(JobStatus::Queued),
            running: count(JobStatus::Running),
            succeeded: count(JobStatus::Succeeded),
            failed: count(JobStatus::Failed),
            timed_out: count(JobStatus::TimedOut),
            cancelled: count(JobStatus::Cancelled),
            lost: count(JobStatus::Lost),
            skipped: count(JobStatus::Skipped),
        }
    }
}

/// Run a command on many servers
///
/// Select servers, a tag, or both; selecting none is an error and never means all. The response does not wait for the
/// commands. The batch runs in the background, and continues after a restart of the service.
#[api_v2_operation(tags(Commands), operation_id = "start_batch")]
pub async fn start_batch(
    ask: Checked<Recent<SignedIn>, NoQuery, extract::Json<BatchIn>>,
) -> Result<CreatedJson<BatchOut>, ApiError> {
    let extract::Json(input) = ask.body;
    let Recent(SignedIn { caller, actor }) = ask.subject;
    let selected = runnable(&ask.state, &caller, selection(input.server_ids, input.tag)).await?;
    let place = |access: ServerAccess| BatchServer { server_id: access.server_id(), owner_id: access.owner_id() };
    let servers: Vec<BatchServer> = selected.into_iter().map(place).collect();
    let stdin = input.stdin.map(|Stdin(text)| text);
    let signed = input.signed.map(Signed::from);
    if signed.is_some() {
        for server in &servers {
            checked_signing(&ask.state, server.owner_id, server.server_id, SIGNED_COMMANDS).await?;
        }
    }
    expect_room(&input.command.0, stdin.as_deref(), signed.as_ref(), servers.len())?;
    let new = NewBatch {
        owner_id: caller.user_id,
        actor,
        servers,
        command: input.command.0,
        stdin,
        signed,
        timeout_seconds: seconds(input.timeout_seconds),
        concurrency: concurrency(input.concurrency),
        stop_on_failure: input.stop_on_failure.unwrap_or_default(),
    };
    let (batch, places) = ask.state.jobs.batches().start(new).await?;
    // The batch has started, so an error here would make the caller start it again.
    let shown = ask.state.accounts.access.where_allowed(&caller, RUN);
    let items = ask.state.store.batch_items(batch.id, &shown).await.unwrap_or_else(|error| {
        tracing::warn!(%error, batch.id = %batch.id, "cannot read a batch that has started");
        places.into_iter().map(queued).collect()
    });
    Ok(CreatedJson(with(batch, items)))
}

/// List your batches
///
/// Newest first, without the results of their servers. A token sees those that it started.
#[api_v2_operation(tags(Commands), operation_id = "list_batches")]
pub async fn list_batches(ask: Checked<SignedIn, PageQuery>) -> Result<Listed<BatchSummaryOut>, ApiError> {
    let page = ask.state.store.list_batches(&ask.subject.caller, ask.query.into()).await?;
    Ok(Listed { items: page.items.into_iter().map(BatchSummaryOut::from).collect(), total: page.total })
}

/// Get a batch
///
/// With the results so far, for each server.
#[api_v2_operation(tags(Commands), operation_id = "read_batch")]
pub async fn read_batch(ask: Checked<CallerAt<IdPath>>) -> Result<Json<BatchOut>, ApiError> {
    let batch = find(&ask).await?;
    Ok(Json(told(&ask.state, &ask.subject.caller, batch).await?))
}

/// Cancel a batch
///
/// Servers that wait do not run the command any more, and running commands are ended.
#[api_v2_operation(tags(Commands), operation_id = "cancel_batch")]
pub async fn cancel_batch(ask: Checked<CallerAt<IdPath>>) -> Result<Json<BatchOut>, ApiError> {
    run_detached(async move {
        let batch = find(&ask).await?;
        let shown = ask.state.accounts.access.where_allowed(&ask.subject.caller, RUN);
        let before = ask.state.store.batch_items(batch.id, &shown).await?;
        ask.state.jobs.batches().cancel(&batch, ask.subject.actor.clone()).await?;
        effects::commit(&ask.state, Change::BatchCancelled { batch_id: batch.id }).await;
        let after = async {
            let batch = find(&ask).await?;
            told(&ask.state, &ask.subject.caller, batch).await
        };
        // A batch that had not ended is cancelled, even if it cannot be read now.
        let is_cancelled = batch.is_cancelled || batch.finished_at.is_none();
        Ok(Json(after.await.unwrap_or_else(|_| with(CommandBatch { is_cancelled, ..batch }, before))))
    })
    .await
}

async fn find(ask: &Checked<CallerAt<IdPath>>) -> Result<CommandBatch, ApiError> {
    let CallerAt { caller, path, .. } = &ask.subject;
    let batch = ask.state.store.find_batch(caller, path.id.0).await?;
    batch.ok_or(ApiError::not_found("Batch not found"))
}

/// Results on servers on which the caller may no longer run commands are left out.
async fn told(state: &State, caller: &Caller, batch: CommandBatch) -> Result<BatchOut, ApiError> {
    let shown = state.accounts.access.where_allowed(caller, RUN);
    let items = state.store.batch_items(batch.id, &shown).await?;
    Ok(with(batch, items))
}

fn with(batch: CommandBatch, items: Vec<BatchItem>) -> BatchOut {
    let counts = CountsOut::of(&items);
    BatchOut { summary: batch.into(), counts, results: items.into_iter().map(BatchResultOut::from).collect() }
}

/// A command that waits for its turn.
fn queued(BatchPlace { command_id, server_id }: BatchPlace) -> BatchItem {
    BatchItem {
        id: command_id,
        server_id,
        server_name: None,
        status: JobStatus::Queued.name().to_owned(),
        exit_code: None,
        duration_ms: None,
        is_truncated: false,
        error_code: None,
        error_detail: None,
        error_reason: None,
        preview: None,
        started_at: None,
        finished_at: None,
    }
}
