//! `/audit`: the audit log.

use deserr::Deserr;
use paperclip::actix::web::{Resource, get};
use paperclip::actix::{Apiv2Schema, api_v2_operation};
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value, json};
use uuid::Uuid;

use super::error::{ApiError, ErrorCode};
use super::extract::cross_check::{CrossCheck, CrossChecked, Fields};
use super::extract::fault::Faults;
use super::extract::field::described;
use super::extract::param::{
    Flag, Id as IdParam, MAX_OFFSET, SearchText, TimeParam as MomentParam, Whole, in_order, page,
};
use super::extract::{Checked, SignedIn};
use super::field_out::{Id, TimeOut};
use super::path::at;
use super::reply::Listed;
use crate::audit::chain::{Record, hex};
use crate::auth::Caller;
use crate::auth::access::{AccessError, Action};
use crate::shares::Share;
use crate::state::State;
use crate::store::AuditFilter;

/// An entry of the audit log.
#[derive(Debug, Serialize, Apiv2Schema)]
pub struct AuditEntryOut {
    /// The number of the entry in the whole log, from 1 without gaps.
    seq: i64,
    at: TimeOut,
    /// The account that it concerns.
    owner_id: Id,
    /// The user who did it; null for the service, its operator, and attempts with a wrong password.
    user_id: Option<Id>,
    /// The user's name at that time.
    username: String,
    /// The session in which it was done.
    login_id: Option<Id>,
    /// The client's address; empty on the service's own machine.
    address: String,
    /// The action, such as `server.create`.
    action: String,
    server_id: Option<Id>,
    /// The server's name at that time.
    server_name: Option<String>,
    /// The object of the action: the id of a key, a session, a container, a command.
    target: Option<String>,
    /// `ok`, `started`, `refused`, or `failed: ` and an error code.
    outcome: String,
    /// The token of the program that did it, with its name at that time; null for people.
    token: Option<AuditTokenOut>,
    detail: Detail,
    hash: Hash,
}

/// The token of a program.
#[derive(Debug, Serialize, Deserialize, Apiv2Schema)]
pub struct AuditTokenOut {
    id: Id,
    name: String,
}

/// More about an entry.
#[derive(Debug, Serialize)]
#[serde(transparent)]
pub struct Detail(Map<String, Value>);

described!(
    Detail,
    json!({ "type": "object", "description": "More about the entry. The fields depend on the action.",
            "additionalProperties": true, "example": { "host": "203.0.113.7", "port": 22 } })
);

/// The SHA-256 of an entry.
#[derive(Debug, Serialize)]
#[serde(transparent)]
pub struct Hash(String);

described!(
    Hash,
    json!({ "type": "string", "description": "SHA-256 of the entry and the previous entry's hash, in hexadecimal digits.",
            "pattern": "^[0-9a-f]*$" })
);

impl From<Record> for AuditEntryOut {
    fn from(record: Record) -> Self {
        // Malformed only if someone changed the table outside of the service.
        let mut detail: Map<String, Value> = serde_json::from_str(&record.detail).unwrap_or_default();
        let token = detail.remove("token").and_then(|token| serde_json::from_value(token).ok());
        Self {
            seq: record.seq,
            at: TimeOut(record.at),
            owner_id: Id(record.owner_id),
            user_id: record.user_id.map(Id),
            username: record.username,
            login_id: record.login_id.map(Id),
            address: record.address,
            action: record.action,
            server_id: record.server_id.map(Id),
            server_name: record.server_name,
            target: record.target,
            outcome: record.outcome,
            token,
            detail: Detail(detail),
            hash: Hash(hex(&record.hash)),
        }
    }
}

#[derive(Debug, Deserr, Apiv2Schema)]
#[deserr(error = Faults)]
pub struct AuditQuery {
    #[deserr(default)]
    server_id: Option<IdParam>,
    /// The beginning of the action: `server.` finds `server.create` and all others.
    #[deserr(default)]
    action: Option<SearchText>,
    /// The start of the range.
    #[deserr(default)]
    since: Option<MomentParam>,
    /// The end of the range, exclusive.
    #[deserr(default)]
    until: Option<MomentParam>,
    /// Whether to include the entries of all accounts, for administrators.
    #[deserr(default)]
    all: Option<Flag>,
    /// Maximum number of entries. Defaults to 100.
    #[deserr(default)]
    limit: Option<Whole<1, 500>>,
    /// Number of entries to skip. Defaults to 0.
    #[deserr(default)]
    offset: Option<Whole<0, { MAX_OFFSET }>>,
}

impl CrossCheck for AuditQuery {
    fn cross_check(fields: &Fields<'_>) -> Result<(), Faults> {
        in_order(fields.sound("since"), fields.sound("until"))
    }
}

/// List the audit log
///
/// Every change and control action that concerns your account, newest first. An action that takes a while has two
/// entries with the same target: `started`, and its outcome. Entries outlive the objects that they describe. With `server_id`, also
/// those of a server that you manage.
#[api_v2_operation(tags(Audit), operation_id = "list_audit")]
pub async fn list(ask: Checked<SignedIn, CrossChecked<AuditQuery>>) -> Result<Listed<AuditEntryOut>, ApiError> {
    let (caller, CrossChecked(query)) = (ask.subject.caller, ask.query);
    let wants_all = query.all.is_some_and(|Flag(all)| all);
    if wants_all && !caller.is_admin {
        return Err(ApiError::code(ErrorCode::Forbidden));
    }
    let server_id = query.server_id.map(|IdParam(id)| id);
    let owner_id = match server_id {
        _ if wants_all => None,
        Some(id) => Some(readable_owner(&ask.state, &caller, id).await?),
        None => {
            ask.state.accounts.access.account(&caller, None, Action::Manage)?;
            Some(caller.user_id)
        }
    };
    let filter = AuditFilter {
        owner_id,
        server_id,
        action: query.action.map(|SearchText(text)| text.to_lowercase()),
        since: query.since.map(|MomentParam(since)| since),
        until: query.until.map(|MomentParam(until)| until),
    };
    let _permit = ask.state.limits.shares.reads.enter(Share::Account(caller.user_id)).await?;
    let found = ask.state.store.list_audit(filter, page(query.limit, query.offset)).await?;
    Ok(Listed { items: found.items.into_iter().map(AuditEntryOut::from).collect(), total: found.total })
}

/// The account whose entries about a server the caller may read: of a server that they manage its owner, otherwise themselves.
async fn readable_owner(state: &State, caller: &Caller, server_id: Uuid) -> Result<Uuid, ApiError> {
    match state.accounts.access.server(caller, server_id, Action::Manage).await {
        Ok(access) => Ok(access.owner_id()),
        // It may be one of their own that was deleted.
        Err(AccessError::NotFound | AccessError::Forbidden | AccessError::TokenNotAllowed) => {
            state.accounts.access.account(caller, None, Action::Manage)?;
            Ok(caller.user_id)
        }
        Err(AccessError::Store(error)) => Err(error.into()),
    }
}

/// The routes. Fixed paths come before those with parameters that would match them.
pub fn routes() -> Vec<Resource> {
    vec![at("/audit").route(get().to(list))]
}
