//! Commands whose signatures agents did not take: they wait for more.
//!
//! The service counts signatures, and agents count people whom they know: a stranger's key, or the second one of a person, can
//! complete a command for the service alone. The transaction that ends the batch decides whether the command waits again, so that
//! exactly one instance does, and none has to look for it.

use entity::{approval, approval_signature, command, command_batch};
use sea_orm::sea_query::Expr;
use sea_orm::{ColumnTrait, ConnectionTrait, EntityTrait, PaginatorTrait, QueryFilter, QuerySelect};
use serde_json::json;
use signalbox_protocol::Timestamp;
use signalbox_protocol::signed::Signed;
use uuid::Uuid;

use super::StoreError;
use super::approvals::{APPROVED, MAX_SIGNATURES, WAITING};
use crate::audit::{Actor, Entry, action};

/// Somebody is missing.
const TOO_FEW: &str = "not_enough_approvals";

/// Nobody whom the server knows has signed.
const STRANGERS: &str = "unknown_signer";

/// Takes in that a batch has ended. If it was a command that has waited, whose signatures were not enough for any agent that was asked,
/// it waits again, for one more: returns the entry for the audit log.
pub(super) async fn settle(
    connection: &impl ConnectionTrait,
    batch_id: Uuid,
    at: Timestamp,
) -> Result<Option<Entry>, StoreError> {
    let it = approval::Entity::find()
        .filter(approval::Column::BatchId.eq(batch_id))
        .filter(approval::Column::Status.eq(APPROVED));
    let Some(approval) = it.one(connection).await? else { return Ok(None) };
    let of_it = approval_signature::Column::ApprovalId.eq(approval.id);
    let signatures = approval_signature::Entity::find().filter(of_it).count(connection).await?;
    let could_run = Timestamp::from(approval.expires_at) > at && signatures < MAX_SIGNATURES;
    let reason = if could_run { refusal_of(connection, batch_id).await? } else { None };
    let Some(reason) = reason else {
        // It may be a secret, and is not needed any more.
        approval::Entity::update_many()
            .col_expr(approval::Column::Stdin, Expr::value(None::<String>))
            .filter(approval::Column::Id.eq(approval.id))
            .exec(connection)
            .await?;
        return Ok(None);
    };
    // All signatures stay: which of them an agent counts, it does not say. With as many as were sent it is not sent again. One more may
    // have come since.
    let needed = sent(connection, batch_id).await?.saturating_add(1);
    let reopened = approval::Entity::update_many()
        .col_expr(approval::Column::Status, Expr::value(WAITING))
        .col_expr(approval::Column::EndedAt, Expr::value(None::<i64>))
        .col_expr(approval::Column::Needed, Expr::value(needed))
        .col_expr(approval::Column::RefusedReason, Expr::value(reason))
        .filter(approval::Column::Id.eq(approval.id))
        .exec(connection)
        .await?;
    if reopened.rows_affected == 0 {
        return Ok(None);
    }
    let detail = json!({ "command": approval.command, "reason": reason, "batch_id": batch_id, "needed": needed });
    let entry = Entry::new(action::APPROVAL_REOPEN, approval.user_id, Actor::service(""));
    Ok(Some(entry.target(approval.id).detail(detail)))
}

/// How many signatures a batch carried.
async fn sent(connection: &impl ConnectionTrait, batch_id: Uuid) -> Result<i32, StoreError> {
    let signed = command::Entity::find()
        .select_only()
        .column(command::Column::Signed)
        .filter(command::Column::BatchId.eq(batch_id))
        .limit(1);
    let signed = signed.into_tuple::<Option<String>>().one(connection).await?.flatten();
    let signed = signed.and_then(|text| serde_json::from_str::<Signed>(&text).ok());
    Ok(signed.map_or(0, |signed| i32::try_from(signed.signatures.len()).unwrap_or(i32::MAX)))
}

/// Why no agent of a batch ran it, if more signatures can change that. One that was not asked does not count.
async fn refusal_of(connection: &impl ConnectionTrait, batch_id: Uuid) -> Result<Option<&'static str>, StoreError> {
    let batch = command_batch::Entity::find_by_id(batch_id).one(connection).await?;
    if batch.is_none_or(|batch| batch.is_cancelled) {
        return Ok(None);
    }
    let commands = command::Entity::find()
        .select_only()
        .columns([command::Column::Status, command::Column::ErrorCode, command::Column::ErrorReason])
        .filter(command::Column::BatchId.eq(batch_id));
    let commands = commands.into_tuple::<(String, Option<String>, Option<String>)>().all(connection).await?;
    let mut found = None;
    for (status, code, reason) in &commands {
        match (status.as_str(), code.as_deref(), reason.as_deref()) {
            ("failed", Some("agent_refused"), Some(STRANGERS)) => found = Some(STRANGERS),
            ("failed", Some("agent_refused"), Some(TOO_FEW)) => found = found.or(Some(TOO_FEW)),
            ("failed", Some("agent_offline" | "forbidden"), _) | ("skipped", ..) => {}
            _ => return Ok(None),
        }
    }
    Ok(found)
}
