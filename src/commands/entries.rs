//! The audit log's entries for commands: one when a command is about to be sent, and one when it has ended.

use serde_json::json;
use signalbox_protocol::signed::Signed;

use super::JobStatus;
use crate::audit::{Actor, ByToken, Entry, Outcome, action};
use crate::store::{Command, CommandBatch, CommandEnd};

/// A command is about to be sent.
pub fn started(row: &Command) -> Entry {
    let mut detail = json!({ "command": row.command, "batch_id": row.batch_id });
    if let (Some(signed), Some(fields)) = (signed(row), detail.as_object_mut()) {
        fields.insert("signed".to_owned(), json!(signed));
    }
    of(row).outcome(Outcome::Started).detail(detail)
}

/// A command has ended.
pub fn ended(row: &Command, end: &CommandEnd) -> Entry {
    let error = end.error.as_ref().map(|(code, _)| code.clone());
    let outcome = match (JobStatus::of(end.status), &error) {
        (JobStatus::Succeeded, _) => Outcome::Ok,
        (_, Some(code)) if code == "agent_refused" || code == "forbidden" => Outcome::Refused,
        (_, Some(code)) => Outcome::Failed(code.clone().into()),
        (status, None) => Outcome::Failed(status.name().into()),
    };
    let detail = json!({ "exit_code": end.exit_code, "duration_ms": end.duration_ms });
    of(row).outcome(outcome).detail(detail).reason(end.error_reason.as_deref())
}

/// Somebody cancels a command.
pub fn cancelled(row: &Command, actor: Actor) -> Entry {
    Entry::new(action::COMMAND_CANCEL, row.owner_id, actor).on_server(row.server_id).target(row.id)
}

/// Somebody cancels a batch.
pub fn batch_cancelled(batch: &CommandBatch, actor: Actor) -> Entry {
    Entry::new(action::BATCH_CANCEL, batch.owner_id, actor).target(batch.id)
}

/// A batch is about to start.
pub fn batch_started(batch: &CommandBatch, actor: Actor, servers: usize) -> Entry {
    let detail = json!({ "command": batch.command, "servers": servers });
    Entry::new(action::BATCH_START, batch.owner_id, actor).target(batch.id).outcome(Outcome::Started).detail(detail)
}

/// Returns the person or program that ran a command.
pub fn actor(row: &Command) -> Actor {
    let token = row.login_id.zip(row.token_name.as_deref()).map(|(id, name)| ByToken { id, name: name.into() });
    Actor {
        user_id: Some(row.user_id),
        username: row.username.as_str().into(),
        login_id: row.login_id.filter(|_| token.is_none()),
        token,
        address: row.address.clone(),
    }
}

/// Returns what operators signed for a command.
pub fn signed(row: &Command) -> Option<Signed> {
    row.signed.as_deref().and_then(|text| serde_json::from_str(text).ok())
}

fn of(row: &Command) -> Entry {
    Entry::new(action::COMMAND_RUN, row.owner_id, actor(row)).on_server(row.server_id).target(row.id)
}
