//! Terminals and their recordings, as far as the audit log knows them: the terminal that somebody opened, what became of it, and
//! the hash of its recording.

use entity::audit_entry::{self, Column};
use sea_orm::{ColumnTrait, ConnectionTrait, EntityTrait, QueryFilter, QueryOrder, QuerySelect, Select};
use serde_json::{Value, json};
use uuid::Uuid;

use super::audit_log::{advance, insert};
use super::{Store, StoreError};
use crate::audit::chain::Record;
use crate::audit::{Actor, ByToken, Entry, Outcome, action};

/// What became of a terminal.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct TerminalNote {
    /// `terminal.open` for its end, or what happened to it before.
    pub action: &'static str,
    /// The result.
    pub outcome: Outcome,
    /// Why a signature did not suffice, where that is why it was not opened.
    pub reason: Option<String>,
}

impl TerminalNote {
    /// A note without a reason.
    pub fn new(action: &'static str, outcome: Outcome) -> Self {
        Self { action, outcome, reason: None }
    }
}

/// What became of a report of a recording.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum RecordingNote {
    /// The log has an entry of it now.
    New,
    /// The log had one already.
    Known,
    /// Nobody opened such a terminal on this server.
    NoTerminal,
}

impl Store {
    /// Writes the entry of a recording, once, in the name of the person who opened the terminal.
    pub async fn note_recording(
        &self,
        (owner_id, server_id): (Uuid, Uuid),
        stream_id: Uuid,
        detail: Value,
    ) -> Result<RecordingNote, StoreError> {
        let opened = of_terminal(server_id, stream_id, action::TERMINAL_OPEN).filter(Column::Outcome.eq("started"));
        let Some(opened) = opened.one(&self.read).await? else { return Ok(RecordingNote::NoTerminal) };
        let after = opened.seq;
        if is_noted(&self.read, server_id, stream_id, after).await? {
            return Ok(RecordingNote::Known);
        }
        let entry = Entry::new(action::TERMINAL_RECORDED, owner_id, actor_of(opened.into()))
            .on_server(server_id)
            .target(stream_id)
            .detail(detail);
        self.retried(|| async {
            let transaction = self.write.begin().await?;
            let place = advance(&transaction, &entry).await?;
            // Nobody else can append now, and what others appended before is visible.
            if is_noted(&transaction, server_id, stream_id, after).await? {
                transaction.rollback().await?;
                return Ok(RecordingNote::Known);
            }
            insert(&transaction, entry.clone(), place).await?;
            transaction.commit().await?;
            Ok(RecordingNote::New)
        })
        .await
    }
}

impl Store {
    /// Writes what became of a terminal, in the name of the person who opened it. Nothing is written after its end.
    pub async fn note_terminal(
        &self,
        (owner_id, server_id): (Uuid, Uuid),
        terminal_id: Uuid,
        note: TerminalNote,
    ) -> Result<(), StoreError> {
        let TerminalNote { action, outcome, reason } = note;
        let opened = of_terminal(server_id, terminal_id, action::TERMINAL_OPEN).filter(Column::Outcome.eq("started"));
        let Some(opened) = opened.one(&self.read).await? else { return Ok(()) };
        let after = opened.seq;
        let entry = Entry::new(action, owner_id, actor_of(opened.into())).on_server(server_id).target(terminal_id);
        let entry = entry.outcome(outcome).reason(reason.as_deref());
        self.retried(|| async {
            let transaction = self.write.begin().await?;
            let place = advance(&transaction, &entry).await?;
            // As above: two that say how it ended come one after the other.
            let ended = of_terminal(server_id, terminal_id, action::TERMINAL_OPEN).filter(Column::Seq.gt(after));
            if ended.one(&transaction).await?.is_some() {
                return transaction.rollback().await.map_err(StoreError::from);
            }
            insert(&transaction, entry.clone(), place).await?;
            transaction.commit().await?;
            Ok(())
        })
        .await
    }
}

/// The newest entry of this action on a terminal.
fn of_terminal(server_id: Uuid, stream_id: Uuid, action: &str) -> Select<audit_entry::Entity> {
    audit_entry::Entity::find()
        .filter(Column::ServerId.eq(server_id))
        .filter(Column::Target.eq(stream_id.to_string()))
        .filter(Column::Action.eq(action))
        .order_by_desc(Column::Seq)
        .limit(1)
}

/// Whether the log has the recording of a terminal that was opened with the entry `after`.
async fn is_noted(
    connection: &impl ConnectionTrait,
    server_id: Uuid,
    stream_id: Uuid,
    after: i64,
) -> Result<bool, StoreError> {
    let entry = of_terminal(server_id, stream_id, action::TERMINAL_RECORDED).filter(Column::Seq.gt(after));
    Ok(entry.one(connection).await?.is_some())
}

/// Who an entry says did it.
fn actor_of(record: Record) -> Actor {
    let detail: Value = serde_json::from_str(&record.detail).unwrap_or(json!({}));
    let field = |name: &str| detail.get("token").and_then(|token| token.get(name)).and_then(Value::as_str);
    let token = field("id").and_then(|id| Uuid::parse_str(id).ok()).zip(field("name"));
    Actor {
        user_id: record.user_id,
        username: record.username.into(),
        login_id: record.login_id,
        token: token.map(|(id, name)| ByToken { id, name: name.into() }),
        address: record.address,
    }
}
