//! Changes of stored commands.

use entity::{Millis, command, command_batch};
use sea_orm::sea_query::{Expr, Query};
use sea_orm::{ActiveModelTrait, ColumnTrait, Condition, ConnectionTrait, EntityTrait, IntoActiveModel, QueryFilter};
use signalbox_protocol::Timestamp;
use uuid::Uuid;

use super::audit_log::record_all_in;
use super::command_storage::row_bytes;
use super::commands::ROWS_AT_ONCE;
use super::failure::no_server;
use super::once::{Once, is_first};
use super::refused_approvals::settle;
use super::{Command, CommandBatch, Quota, Store, StoreError};
use crate::audit::Entry;

/// A change and its audit entries.
#[derive(Debug, Clone)]
pub struct CommandChange {
    /// The change.
    pub write: CommandWrite,
    /// The audit entries.
    pub entries: Vec<Entry>,
    /// Whether nobody waits for it, so that it may be written with later ones.
    pub can_wait: bool,
}

/// A change of stored commands.
#[derive(Debug, Clone)]
pub enum CommandWrite {
    /// A new command.
    New(Box<Command>),
    /// A new batch and its commands. With what must happen once, only the first attempt writes it.
    NewBatch(Box<CommandBatch>, Vec<Command>, Option<Once>),
    /// No change, only audit entries.
    AuditOnly,
    /// These commands are sent, while this instance runs their batch.
    Started {
        /// The commands.
        ids: Vec<Uuid>,
        /// When they are sent.
        at: Timestamp,
        /// This instance, where there are several.
        by: Option<Uuid>,
    },
    /// A command ended.
    Ended(Box<CommandEnd>),
    /// The commands of a batch that still wait never run.
    Skipped {
        /// The batch.
        batch_id: Uuid,
        /// The status that they get.
        status: &'static str,
        /// When this was decided.
        at: Timestamp,
        /// This instance, where there are several.
        by: Option<Uuid>,
    },
    /// A command that still waits never runs.
    Dropped {
        /// The command.
        id: Uuid,
        /// The command's server.
        server_id: Uuid,
        /// When this was decided.
        at: Timestamp,
    },
    /// All commands of a batch have ended.
    BatchEnded {
        /// The batch.
        batch_id: Uuid,
        /// When the last one ended.
        at: Timestamp,
        /// This instance, where there are several.
        by: Option<Uuid>,
    },
    /// A user asked to end a command that was sent, and has not ended.
    CancelRequested {
        /// The command.
        id: Uuid,
    },
    /// A user cancelled a batch that has not ended.
    BatchCancelled {
        /// The batch.
        batch_id: Uuid,
    },
    /// A user cancelled the batch of a command that was running. Without effect where somebody has asked to end it before.
    CancelledWithBatch {
        /// The command.
        id: Uuid,
    },
}

/// How a command ended.
#[derive(Debug, Clone)]
pub struct CommandEnd {
    /// The command.
    pub id: Uuid,
    /// The command's server.
    pub server_id: Uuid,
    /// The status that it gets.
    pub status: &'static str,
    /// Its exit code; none when it did not run to an end.
    pub exit_code: Option<i32>,
    /// How long it ran, in milliseconds.
    pub duration_ms: Option<i64>,
    /// Whether its output was cut.
    pub is_truncated: bool,
    /// The stored text of both streams, in the order in which it came.
    pub output: Option<Vec<u8>>,
    /// How the bytes of the output are divided, as JSON.
    pub output_parts: Option<String>,
    /// Code and detail of the reason why it did not run.
    pub error: Option<(String, String)>,
    /// Why a signature did not suffice, for programs.
    pub error_reason: Option<String>,
    /// When the service learned of it.
    pub at: Timestamp,
}

/// The states in which a command can still end. `lost` is one of them: the agent may still return with the result.
const MAY_END: [&str; 3] = ["queued", "running", "lost"];

impl Store {
    /// Makes these changes and writes their audit entries, all or none. Returns for each whether it changed anything; the audit
    /// log omits changes without effect.
    ///
    /// # Errors
    ///
    /// [`StoreError::NoServer`] when the server of a new command was deleted.
    pub async fn write_commands(&self, changes: &[CommandChange]) -> Result<Vec<bool>, StoreError> {
        self.retried(|| async {
            let transaction = self.write.begin().await?;
            let mut made = vec![true; changes.len()];
            let mut reopened = Vec::new();
            for (change, is_made) in changes.iter().zip(&mut made) {
                match &change.write {
                    CommandWrite::New(command) => insert(&transaction, std::slice::from_ref(command)).await?,
                    CommandWrite::NewBatch(batch, commands, once) => {
                        if let Some(once) = once
                            && !is_first(&transaction, *once, batch.id).await?
                        {
                            *is_made = false;
                            continue;
                        }
                        self.expect_room(&transaction, batch.owner_id, Quota::Batches).await?;
                        let texts = |it: &Command| it.command.len() + it.stdin.as_ref().map_or(0, String::len);
                        let adding = commands.iter().map(|it| row_bytes(texts(it))).sum();
                        self.command_room_in(&transaction, batch.owner_id, adding).await?;
                        let row = CommandBatch::clone(batch).into_active_model().reset_all();
                        command_batch::Entity::insert(row).exec_without_returning(&transaction).await?;
                        insert(&transaction, commands).await?;
                    }
                    CommandWrite::AuditOnly => {}
                    CommandWrite::Started { ids, at, by } => start(&transaction, ids, *at, *by).await?,
                    CommandWrite::Ended(end) => {
                        // Stored before, for example by the instance that held the agent then; the audit log has it once.
                        *is_made = finish(&transaction, end).await? > 0;
                    }
                    CommandWrite::Skipped { batch_id, status, at, by } => {
                        let all = Condition::all().add(command::Column::BatchId.eq(*batch_id));
                        skip(&transaction, all.add_option(by.map(of_batches_of)), status, *at).await?;
                    }
                    CommandWrite::Dropped { id, server_id, at } => {
                        let it = Condition::all().add(command::Column::Id.eq(*id));
                        let it = it.add(command::Column::ServerId.eq(*server_id));
                        *is_made = skip(&transaction, it, "cancelled", *at).await? > 0;
                    }
                    CommandWrite::BatchEnded { batch_id, at, by } => {
                        let its = Condition::all().add(command_batch::Column::Id.eq(*batch_id));
                        let its = its.add_option(by.map(|by| command_batch::Column::InstanceId.eq(by)));
                        let ended = command_batch::Entity::update_many()
                            .col_expr(command_batch::Column::FinishedAt, Millis::from(*at).into());
                        if ended.filter(its).exec(&transaction).await?.rows_affected > 0 {
                            reopened.extend(settle(&transaction, *batch_id, *at).await?);
                        }
                    }
                    CommandWrite::CancelRequested { id } => {
                        let requested = command::Entity::update_many()
                            .col_expr(command::Column::IsCancelRequested, Expr::value(true));
                        let requested = requested
                            .filter(command::Column::Id.eq(*id))
                            .filter(command::Column::Status.is_in(MAY_END));
                        requested.exec(&transaction).await?;
                    }
                    CommandWrite::BatchCancelled { batch_id } => {
                        let cancelled = command_batch::Entity::update_many()
                            .col_expr(command_batch::Column::IsCancelled, Expr::value(true))
                            .filter(command_batch::Column::Id.eq(*batch_id))
                            .filter(command_batch::Column::FinishedAt.is_null())
                            .filter(command_batch::Column::IsCancelled.eq(false));
                        *is_made = cancelled.exec(&transaction).await?.rows_affected > 0;
                    }
                    CommandWrite::CancelledWithBatch { id } => {
                        // Whatever its status: it may have ended since it was read as running.
                        let requested = command::Entity::update_many()
                            .col_expr(command::Column::IsCancelRequested, Expr::value(true))
                            .filter(command::Column::Id.eq(*id))
                            .filter(command::Column::IsCancelRequested.eq(false));
                        *is_made = requested.exec(&transaction).await?.rows_affected > 0;
                    }
                }
            }
            let told = changes.iter().zip(&made).filter(|(_, is_made)| **is_made);
            let entries = told.flat_map(|(change, _)| &change.entries).chain(&reopened).cloned();
            record_all_in(&transaction, entries.collect()).await?;
            transaction.commit().await?;
            Ok(made)
        })
        .await
    }
}

async fn insert(
    connection: &impl ConnectionTrait,
    commands: &[impl std::borrow::Borrow<Command>],
) -> Result<(), StoreError> {
    for some in commands.chunks(ROWS_AT_ONCE) {
        let rows = some.iter().map(|command| command.borrow().clone().into_active_model().reset_all());
        command::Entity::insert_many(rows).exec_without_returning(connection).await.map_err(no_server)?;
    }
    Ok(())
}

async fn start(
    connection: &impl ConnectionTrait,
    ids: &[Uuid],
    at: Timestamp,
    by: Option<Uuid>,
) -> Result<(), StoreError> {
    for some in ids.chunks(ROWS_AT_ONCE) {
        command::Entity::update_many()
            .col_expr(command::Column::Status, Expr::value("running"))
            .col_expr(command::Column::Stdin, Expr::value(None::<String>))
            .col_expr(command::Column::StartedAt, Millis::from(at).into())
            .filter(command::Column::Id.is_in(some.iter().copied()))
            .filter(Condition::all().add(command::Column::Status.eq("queued")).add_option(by.map(of_batches_of)))
            .exec(connection)
            .await?;
    }
    Ok(())
}

/// Requires that this instance runs the command's batch. Another one may have taken it over.
pub(super) fn of_batches_of(instance_id: Uuid) -> Expr {
    let own = Query::select()
        .column(command_batch::Column::Id)
        .from(command_batch::Entity)
        .and_where(command_batch::Column::InstanceId.eq(instance_id))
        .to_owned();
    command::Column::BatchId.in_subquery(own)
}

/// Returns how many commands had not ended before.
async fn finish(connection: &impl ConnectionTrait, end: &CommandEnd) -> Result<u64, StoreError> {
    let (error_code, error_detail) = end.error.clone().unzip();
    let finished = command::Entity::update_many()
        .col_expr(command::Column::Status, Expr::value(end.status))
        .col_expr(command::Column::Stdin, Expr::value(None::<String>))
        .col_expr(command::Column::ExitCode, Expr::value(end.exit_code))
        .col_expr(command::Column::DurationMs, Expr::value(end.duration_ms))
        .col_expr(command::Column::IsTruncated, Expr::value(end.is_truncated))
        .col_expr(command::Column::Output, Expr::value(end.output.clone()))
        .col_expr(command::Column::OutputParts, Expr::value(end.output_parts.clone()))
        .col_expr(command::Column::ErrorCode, Expr::value(error_code))
        .col_expr(command::Column::ErrorDetail, Expr::value(error_detail))
        .col_expr(command::Column::ErrorReason, Expr::value(end.error_reason.as_deref()))
        .col_expr(command::Column::FinishedAt, Millis::from(end.at).into())
        .filter(command::Column::Id.eq(end.id))
        .filter(command::Column::ServerId.eq(end.server_id))
        .filter(command::Column::Status.is_in(MAY_END))
        .exec(connection)
        .await?;
    Ok(finished.rows_affected)
}

async fn skip(
    connection: &impl ConnectionTrait,
    which: Condition,
    status: &'static str,
    at: Timestamp,
) -> Result<u64, StoreError> {
    let skipped = command::Entity::update_many()
        .col_expr(command::Column::Status, Expr::value(status))
        .col_expr(command::Column::Stdin, Expr::value(None::<String>))
        .col_expr(command::Column::FinishedAt, Millis::from(at).into())
        .filter(which)
        .filter(command::Column::Status.eq("queued"))
        .exec(connection)
        .await?;
    Ok(skipped.rows_affected)
}
