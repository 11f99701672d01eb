//! Signed commands that wait until enough people have signed them.

use std::collections::HashMap;

use actix_web::web::Json;
use base64::Engine;
use base64::prelude::BASE64_STANDARD;
use deserr::{Deserr, IntoValue, Value, ValuePointerRef};
use paperclip::actix::{Apiv2Schema, CreatedJson, api_v2_operation};
use serde::Serialize;
use serde_json::json;
use signalbox_protocol::signed::{Signature, Signed};
use signalbox_signing::Asked;

use super::order::{
    Concurrency, RUN, TimeoutSeconds, approvals_for, concurrency, expect_room, readable, refused, runnable, seconds,
    selection,
};
use super::out::ReasonOut;
use crate::auth::access::{AccessError, Action};
use crate::commands::RunError;
use crate::commands::approvals::{ApprovalStatus, NewRequest, SignError};
use crate::http::error::{ApiError, ErrorCode};
use crate::http::extract::cross_check::CrossChecked;
use crate::http::extract::fault::{Faults, not_a_member};
use crate::http::extract::field::{References, ShellCommand, Stdin, Tag, described, string};
use crate::http::extract::param::{MAX_OFFSET, Whole, page};
use crate::http::extract::{self, CallerAt, Checked, IdPath, NoQuery, Recent, SignedIn};
use crate::http::field_out::{Id, TimeOut};
use crate::http::reply::{Done, Listed};
use crate::http::signed_in::{SignatureIn, SignedOrder};
use crate::http::task::run_detached;
use crate::state::State;
use crate::store::{Approval, ApprovalSignature, Caller};

#[derive(Debug, Deserr, Apiv2Schema)]
#[deserr(error = Faults)]
pub struct ApprovalIn {
    /// The servers to run the command on, in addition to those of `tag`.
    #[deserr(default)]
    server_ids: Option<References>,
    /// All servers that have this tag now, and on which you may run commands.
    #[deserr(default)]
    tag: Option<Tag>,
    /// The command, exactly as the payload has it.
    command: ShellCommand,
    /// Seconds after which the command and all its child processes are ended, as in the payload. Defaults to 60.
    #[deserr(default)]
    timeout_seconds: Option<TimeoutSeconds>,
    /// Standard input of the command on each server. Empty by default.
    #[deserr(default)]
    stdin: Option<Stdin>,
    /// What is signed, with the signatures that there are already.
    signed: SignedOrder,
    /// How many servers run the command at the same time. Defaults to 50.
    #[deserr(default)]
    concurrency: Option<Concurrency>,
    /// Whether a failure stops the servers that still wait from running the command. Defaults to false.
    #[deserr(default)]
    stop_on_failure: Option<bool>,
}

impl Deserr<Faults> for ApprovalStatus {
    fn deserialize_from_value<V: IntoValue>(value: Value<V>, location: ValuePointerRef<'_>) -> Result<Self, Faults> {
        let given = string(value, location)?;
        let found = Self::ALL.into_iter().find(|status| status.name() == given);
        found.ok_or_else(|| not_a_member(&Self::ALL.map(Self::name), location))
    }
}

described!(ApprovalStatus, json!({ "type": "string", "enum": ApprovalStatus::ALL.map(ApprovalStatus::name) }));

#[derive(Debug, Deserr, Apiv2Schema)]
#[deserr(error = Faults)]
pub struct ApprovalsQuery {
    /// Only those with this status.
    #[deserr(default)]
    status: Option<ApprovalStatus>,
    /// Maximum number of entries. Defaults to 100.
    #[deserr(default)]
    limit: Option<Whole<1, 500>>,
    /// Number of entries to skip. Defaults to 0.
    #[deserr(default)]
    offset: Option<Whole<0, { MAX_OFFSET }>>,
}

/// `awaiting_approval` until enough people have signed; then `approved`, and the command runs as the batch `batch_id`. If all agents
/// that were asked refuse the signatures, it is `awaiting_approval` again.
#[derive(Debug, Clone, Copy, Serialize)]
#[serde(transparent)]
pub struct ApprovalStatusOut(&'static str);

described!(
    ApprovalStatusOut,
    json!({ "type": "string", "example": "awaiting_approval", "enum": ApprovalStatus::ALL.map(ApprovalStatus::name) })
);

/// A signature, and who brought it.
#[derive(Debug, Serialize, Apiv2Schema)]
pub struct ApprovalSignatureOut {
    /// The fingerprint of the SSH key, as `ssh-keygen -l` shows it; or `passkey of` and the id of an account.
    signer: String,
    username: String,
    signed_at: TimeOut,
}

/// A command that waits for signatures, or has waited.
#[derive(Debug, Serialize, Apiv2Schema)]
pub struct ApprovalSummaryOut {
    id: Id,
    status: ApprovalStatusOut,
    command: String,
    timeout_seconds: i32,
    concurrency: i32,
    stop_on_failure: bool,
    /// The user who asked, with the name at that time. The command runs with this user's rights.
    user_id: Id,
    username: String,
    /// How many signatures it needs: of as many different people as the agents said when it was asked. If agents have refused the
    /// signatures that there were, one more than those. They alone decide.
    needed: i32,
    /// How many signatures are missing.
    missing: i32,
    /// Why the agents refused the signatures that there were, if it waits again for that reason.
    refused_reason: Option<ReasonOut>,
    signatures: Vec<ApprovalSignatureOut>,
    /// The command runs at this time at the earliest.
    not_before: TimeOut,
    /// It expires then.
    expires_at: TimeOut,
    created_at: TimeOut,
    ended_at: Option<TimeOut>,
    /// The batch, once it runs: `GET /commands/batches/{id}`. The first one has the id of the approval.
    batch_id: Option<Id>,
}

/// A server of a command that waits.
#[derive(Debug, Serialize, Apiv2Schema)]
pub struct ApprovalServerOut {
    server_id: Id,
    server_name: String,
}

/// A command that waits, with what is signed.
#[derive(Debug, Serialize, Apiv2Schema)]
pub struct ApprovalOut {
    #[serde(flatten)]
    summary: ApprovalSummaryOut,
    servers: Vec<ApprovalServerOut>,
    /// The bytes that are signed, in base64.
    payload: String,
    /// The standard input, while the command waits.
    stdin: Option<String>,
}

impl ApprovalSummaryOut {
    fn of(row: Approval, signatures: Vec<ApprovalSignature>) -> Self {
        let status = ApprovalStatus::of(&row.status);
        let signed = i32::try_from(signatures.len()).unwrap_or(i32::MAX);
        let out = |row: ApprovalSignature| ApprovalSignatureOut {
            signer: row.signer,
            username: row.username,
            signed_at: TimeOut(row.signed_at.into()),
        };
        Self {
            id: Id(row.id),
            status: ApprovalStatusOut(status.name()),
            command: row.command,
            timeout_seconds: row.timeout_seconds,
            concurrency: row.concurrency,
            stop_on_failure: row.stop_on_failure,
            user_id: Id(row.user_id),
            username: row.username,
            needed: row.needed,
            missing: (row.needed - signed).max(0),
            refused_reason: row.refused_reason.map(ReasonOut::of),
            signatures: signatures.into_iter().map(out).collect(),
            not_before: TimeOut(row.not_before.into()),
            expires_at: TimeOut(row.expires_at.into()),
            created_at: TimeOut(row.created_at.into()),
            ended_at: row.ended_at.map(|at| TimeOut(at.into())),
            batch_id: (status == ApprovalStatus::Approved).then_some(Id(row.batch_id.unwrap_or(row.id))),
        }
    }
}

/// Ask for signatures of a command
///
/// For servers whose agents ask for more signatures than there are yet. The command waits until enough people have signed the
/// same payload, and then runs once, as a batch; it expires with its payload. If there are enough signatures, it runs at once.
/// If all agents that were asked refuse the signatures, because they are of too few people whom they know, it waits for more.
/// An account has at most 50 commands that wait.
#[api_v2_operation(tags(Commands), operation_id = "create_approval")]
pub async fn create_approval(
    ask: Checked<Recent<SignedIn>, NoQuery, extract::Json<ApprovalIn>>,
) -> Result<CreatedJson<ApprovalOut>, ApiError> {
    let extract::Json(input) = ask.body;
    let Recent(SignedIn { caller, actor }) = ask.subject;
    let servers = runnable(&ask.state, &caller, selection(input.server_ids, input.tag)).await?;
    let stdin = input.stdin.map(|Stdin(text)| text);
    let signed = Signed::from(input.signed);
    expect_room(&input.command.0, stdin.as_deref(), Some(&signed), servers.len())?;
    let timeout_seconds = seconds(input.timeout_seconds);
    let asked = Asked::Command { command: &input.command.0, stdin: stdin.as_deref(), timeout_seconds };
    let (payload, bytes) = readable(&signed, asked, ask.state.clock.now())?;
    if payload.repeat.is_some() {
        return Err(refused("a payload with `repeat` is for a schedule: send it to /schedules"));
    }
    let mut needed = 1;
    for server in &servers {
        let approvals = approvals_for(&ask.state, &payload, server).await?;
        needed = needed.max(approvals.map_or(1, |(_, approvals)| approvals));
    }
    let new = NewRequest {
        actor,
        user_id: caller.user_id,
        servers: servers.iter().map(|it| it.server_id()).collect(),
        command: input.command.0,
        stdin,
        timeout_seconds,
        concurrency: concurrency(input.concurrency),
        stop_on_failure: input.stop_on_failure.unwrap_or_default(),
        bytes,
        payload,
        signatures: signed.signatures,
        needed,
    };
    run_detached(async move {
        let id = ask.state.jobs.approvals().ask(new).await?;
        let row = find(&ask.state, &caller, id).await?;
        Ok(CreatedJson(told(&ask.state, row).await?))
    })
    .await
}

/// List commands that wait for signatures
///
/// Yours, and those for servers on all of which you may run commands. Newest first, also those that wait no more.
#[api_v2_operation(tags(Commands), operation_id = "list_approvals")]
pub async fn list_approvals(ask: Checked<SignedIn, ApprovalsQuery>) -> Result<Listed<ApprovalSummaryOut>, ApiError> {
    let (caller, store) = (&ask.subject.caller, &ask.state.store);
    let usable = ask.state.accounts.access.where_allowed(caller, RUN);
    let wanted = page(ask.query.limit, ask.query.offset);
    let found =
        store.list_approvals(caller.user_id, &usable, ask.query.status.map(ApprovalStatus::name), wanted).await?;
    let ids: Vec<_> = found.items.iter().map(|row| row.id).collect();
    let mut signatures: HashMap<_, Vec<ApprovalSignature>> = HashMap::new();
    for row in store.approval_signatures(&ids).await? {
        signatures.entry(row.approval_id).or_default().push(row);
    }
    let out = |row: Approval| {
        let signatures = signatures.remove(&row.id).unwrap_or_default();
        ApprovalSummaryOut::of(row, signatures)
    };
    Ok(Listed { items: found.items.into_iter().map(out).collect(), total: found.total })
}

/// Get a command that waits for signatures
///
/// With the payload: check that it says what you want to sign.
#[api_v2_operation(tags(Commands), operation_id = "read_approval")]
pub async fn read_approval(ask: Checked<CallerAt<IdPath>>) -> Result<Json<ApprovalOut>, ApiError> {
    let row = find(&ask.state, &ask.subject.caller, ask.subject.path.id.0).await?;
    Ok(Json(told(&ask.state, row).await?))
}

/// Sign a command that waits
///
/// Adds a signature of the same payload bytes. With the last one that is missing, the command runs. A signature by a key that has
/// signed already is refused; each account can bring one signature of a passkey.
#[api_v2_operation(tags(Commands), operation_id = "sign_approval")]
pub async fn sign_approval(
    ask: Checked<Recent<CallerAt<IdPath>>, NoQuery, extract::Json<CrossChecked<SignatureIn>>>,
) -> Result<Json<ApprovalOut>, ApiError> {
    let extract::Json(CrossChecked(input)) = ask.body;
    let Recent(CallerAt { caller, actor, path }) = ask.subject;
    run_detached(async move {
        let state = &ask.state;
        let row = find(state, &caller, path.id.0).await?;
        expect(state, &caller, &row, RUN).await?;
        state.jobs.approvals().sign(&row, &Signature::from(input), actor).await?;
        let row = find(state, &caller, path.id.0).await?;
        Ok(Json(told(state, row).await?))
    })
    .await
}

/// Withdraw a command that waits
///
/// By the user who asked, or by somebody who manages all its servers.
#[api_v2_operation(tags(Commands), operation_id = "withdraw_approval")]
pub async fn withdraw_approval(ask: Checked<CallerAt<IdPath>>) -> Result<Done, ApiError> {
    let CallerAt { caller, actor, path } = ask.subject;
    run_detached(async move {
        let row = find(&ask.state, &caller, path.id.0).await?;
        if row.user_id != caller.user_id {
            expect(&ask.state, &caller, &row, Action::Manage).await?;
        }
        if ask.state.jobs.approvals().withdraw(&row, actor).await? {
            Ok(Done("Command withdrawn"))
        } else {
            Err(SignError::Over.into())
        }
    })
    .await
}

async fn find(state: &State, caller: &Caller, id: uuid::Uuid) -> Result<Approval, ApiError> {
    let usable = state.accounts.access.where_allowed(caller, RUN);
    let found = state.store.find_approval(caller.user_id, &usable, id).await?;
    found.ok_or(ApiError::not_found("Approval not found"))
}

/// Checks that the caller may do this to all servers of a command that they may see.
async fn expect(state: &State, caller: &Caller, row: &Approval, action: Action) -> Result<(), ApiError> {
    for server in state.store.approval_servers(row.id).await? {
        match state.accounts.access.server(caller, server.id, action).await {
            Ok(_) => {}
            // They see the command, and so the server exists for them.
            Err(AccessError::NotFound | AccessError::Forbidden | AccessError::TokenNotAllowed) => {
                return Err(ApiError::code(ErrorCode::Forbidden));
            }
            Err(AccessError::Store(error)) => return Err(error.into()),
        }
    }
    Ok(())
}

async fn told(state: &State, row: Approval) -> Result<ApprovalOut, ApiError> {
    let signatures = state.store.approval_signatures(&[row.id]).await?;
    let servers = state.store.approval_servers(row.id).await?;
    let is_waiting = ApprovalStatus::of(&row.status) == ApprovalStatus::Waiting;
    let (payload, stdin) = (BASE64_STANDARD.encode(&row.payload), row.stdin.clone().filter(|_| is_waiting));
    Ok(ApprovalOut {
        summary: ApprovalSummaryOut::of(row, signatures),
        servers: servers
            .into_iter()
            .map(|it| ApprovalServerOut { server_id: Id(it.id), server_name: it.name })
            .collect(),
        payload,
        stdin,
    })
}

impl From<SignError> for ApiError {
    fn from(error: SignError) -> Self {
        match error {
            SignError::Form(_) | SignError::Twice(_) | SignError::Again | SignError::Full | SignError::Over => {
                refused(error.to_string())
            }
            SignError::Run(RunError::Store(error)) => error.into(),
            SignError::Run(error) => error.into(),
        }
    }
}
