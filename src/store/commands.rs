use entity::{Millis, command, command_batch, server};
use sea_orm::sea_query::{Expr, ExprTrait};
use sea_orm::{
    ActiveModelTrait, ColumnTrait, Condition, ConnectionTrait, EntityTrait, IntoActiveModel, PaginatorTrait,
    QueryFilter, QueryOrder, QuerySelect, RelationTrait, TransactionTrait,
};
use signalbox_protocol::Timestamp;
use uuid::Uuid;

use super::audit::record_in;
use super::{Command, CommandBatch, Page, PageRequest, Store, StoreError};
use crate::audit::Entry;

/// Bytes of each command's output that a batch shows.
const PREVIEW_BYTES: u32 = 4_096;

/// Rows that one statement inserts: SQLite takes 32,766 values.
const ROWS_AT_ONCE: usize = 500;

/// Rows that one transaction removes, so that others get their turn.
const FORGOTTEN_AT_ONCE: u64 = 500;

/// A change, and what the audit log is told of it.
#[derive(Debug, Clone)]
pub struct CommandChange {
    pub write: CommandWrite,
    pub entries: Vec<Entry>,
}

/// A change of the commands that are kept.
#[derive(Debug, Clone)]
pub enum CommandWrite {
    New(Box<Command>),
    NewBatch(Box<CommandBatch>, Vec<Command>),
    /// Nothing but what the audit log is told.
    Told,
    /// These wait no more: they are sent.
    Started {
        ids: Vec<Uuid>,
        at: Timestamp,
    },
    Ended(Box<CommandEnd>),
    /// Those of a batch that still wait never run.
    Skipped {
        batch_id: Uuid,
        status: &'static str,
        at: Timestamp,
    },
    /// One that still waits never runs.
    Dropped {
        id: Uuid,
        server_id: Uuid,
        at: Timestamp,
    },
    BatchEnded {
        batch_id: Uuid,
        at: Timestamp,
    },
    BatchCancelled {
        batch_id: Uuid,
    },
}

/// How a command ended.
#[derive(Debug, Clone)]
pub struct CommandEnd {
    pub id: Uuid,
    pub server_id: Uuid,
    pub status: &'static str,
    pub exit_code: Option<i32>,
    pub duration_ms: Option<i64>,
    pub is_truncated: bool,
    pub output: Option<Vec<u8>>,
    pub output_parts: Option<String>,
    pub error: Option<(String, String)>,
    pub at: Timestamp,
}

/// What a batch shows of one of its commands.
#[derive(Debug, Clone, PartialEq, Eq, sea_orm::FromQueryResult)]
pub struct BatchItem {
    pub id: Uuid,
    pub server_id: Uuid,
    /// None when the server was deleted meanwhile.
    pub server_name: Option<String>,
    pub status: String,
    pub exit_code: Option<i32>,
    pub duration_ms: Option<i64>,
    pub is_truncated: bool,
    pub error_code: Option<String>,
    pub error_detail: Option<String>,
    /// The first 4 KiB.
    pub preview: Option<Vec<u8>>,
    pub started_at: Option<Millis>,
    pub finished_at: Option<Millis>,
}

/// In which states a command can still end. `lost` is among them: its agent may come back with the result after all.
const MAY_END: [&str; 3] = ["queued", "running", "lost"];

impl Store {
    /// Makes these changes and tells the audit log of them, all or none.
    pub async fn write_commands(&self, changes: &[CommandChange]) -> Result<(), StoreError> {
        let transaction = self.write.begin().await?;
        for change in changes {
            match &change.write {
                CommandWrite::New(command) => insert(&transaction, std::slice::from_ref(command)).await?,
                CommandWrite::NewBatch(batch, commands) => {
                    let row = CommandBatch::clone(batch).into_active_model().reset_all();
                    command_batch::Entity::insert(row).exec_without_returning(&transaction).await?;
                    insert(&transaction, commands).await?;
                }
                CommandWrite::Told => {}
                CommandWrite::Started { ids, at } => start(&transaction, ids, *at).await?,
                CommandWrite::Ended(end) => finish(&transaction, end).await?,
                CommandWrite::Skipped { batch_id, status, at } => {
                    skip(&transaction, command::Column::BatchId.eq(*batch_id), status, *at).await?;
                }
                CommandWrite::Dropped { id, server_id, at } => {
                    let it = command::Column::Id.eq(*id).and(command::Column::ServerId.eq(*server_id));
                    skip(&transaction, it, "cancelled", *at).await?;
                }
                CommandWrite::BatchEnded { batch_id, at } => {
                    let ended = command_batch::Entity::update_many()
                        .col_expr(command_batch::Column::FinishedAt, Millis::from(*at).into());
                    ended.filter(command_batch::Column::Id.eq(*batch_id)).exec(&transaction).await?;
                }
                CommandWrite::BatchCancelled { batch_id } => {
                    let cancelled = command_batch::Entity::update_many()
                        .col_expr(command_batch::Column::IsCancelled, Expr::value(true));
                    cancelled.filter(command_batch::Column::Id.eq(*batch_id)).exec(&transaction).await?;
                }
            }
        }
        for entry in changes.iter().flat_map(|change| &change.entries) {
            record_in(&transaction, entry.clone()).await?;
        }
        Ok(transaction.commit().await?)
    }

    pub async fn find_command(&self, server_id: Uuid, id: Uuid) -> Result<Option<Command>, StoreError> {
        let query = command::Entity::find_by_id(id).filter(command::Column::ServerId.eq(server_id));
        Ok(query.one(&self.read).await?)
    }

    /// The commands of a server, newest first, without their output.
    pub async fn list_commands(&self, server_id: Uuid, page: PageRequest) -> Result<Page<Command>, StoreError> {
        let query = command::Entity::find().filter(command::Column::ServerId.eq(server_id));
        let total = query.clone().count(&self.read).await?;
        let items = without_output(query)
            .order_by_desc(command::Column::Id)
            .limit(page.limit)
            .offset(page.offset)
            .all(&self.read)
            .await?;
        Ok(Page { items, total })
    }

    /// The commands of a server that were sent and have not ended, and those that were given up and are among `held`.
    pub async fn commands_to_reconcile(&self, server_id: Uuid, held: &[Uuid]) -> Result<Vec<Command>, StoreError> {
        let running = command::Column::Status.eq("running");
        let returned = Condition::all()
            .add(command::Column::Status.eq("lost"))
            .add(command::Column::Id.is_in(held.iter().copied()));
        let query = command::Entity::find()
            .filter(command::Column::ServerId.eq(server_id))
            .filter(Condition::any().add(running).add(returned));
        Ok(without_output(query).all(&self.read).await?)
    }

    pub async fn find_batch(&self, owner_id: Uuid, id: Uuid) -> Result<Option<CommandBatch>, StoreError> {
        let query = command_batch::Entity::find_by_id(id).filter(command_batch::Column::OwnerId.eq(owner_id));
        Ok(query.one(&self.read).await?)
    }

    /// The batches of an owner, newest first.
    pub async fn list_batches(&self, owner_id: Uuid, page: PageRequest) -> Result<Page<CommandBatch>, StoreError> {
        let query = command_batch::Entity::find().filter(command_batch::Column::OwnerId.eq(owner_id));
        let total = query.clone().count(&self.read).await?;
        let query = query.order_by_desc(command_batch::Column::Id).limit(page.limit).offset(page.offset);
        Ok(Page { items: query.all(&self.read).await?, total })
    }

    /// What a batch came to so far, server by server, in the order in which they have their turn.
    pub async fn batch_items(&self, batch_id: Uuid) -> Result<Vec<BatchItem>, StoreError> {
        let columns = [
            command::Column::Id,
            command::Column::ServerId,
            command::Column::Status,
            command::Column::ExitCode,
            command::Column::DurationMs,
            command::Column::IsTruncated,
            command::Column::ErrorCode,
            command::Column::ErrorDetail,
            command::Column::StartedAt,
            command::Column::FinishedAt,
        ];
        let preview = Expr::cust(format!("substr(commands.output, 1, {PREVIEW_BYTES})"));
        let items = command::Entity::find()
            .select_only()
            .columns(columns)
            .column_as(preview, "preview")
            .column_as(server::Column::Name, "server_name")
            .join(sea_orm::JoinType::LeftJoin, command::Relation::Server.def())
            .filter(command::Column::BatchId.eq(batch_id))
            .order_by_asc(command::Column::Id)
            .into_model::<BatchItem>();
        Ok(items.all(&self.read).await?)
    }

    /// Batches that had not come to their end when the service ended.
    pub async fn unfinished_batches(&self) -> Result<Vec<CommandBatch>, StoreError> {
        Ok(command_batch::Entity::find().filter(command_batch::Column::FinishedAt.is_null()).all(&self.read).await?)
    }

    /// Which of these commands are to run.
    pub async fn running_among(&self, ids: &[Uuid]) -> Result<Vec<Uuid>, StoreError> {
        let mut running = Vec::with_capacity(ids.len());
        for some in ids.chunks(ROWS_AT_ONCE) {
            let query = command::Entity::find()
                .select_only()
                .column(command::Column::Id)
                .filter(command::Column::Id.is_in(some.iter().copied()))
                .filter(command::Column::Status.eq("running"));
            running.extend(query.into_tuple::<Uuid>().all(&self.read).await?);
        }
        Ok(running)
    }

    /// The commands of a batch, without their output.
    pub async fn batch_commands(&self, batch_id: Uuid) -> Result<Vec<Command>, StoreError> {
        let query = command::Entity::find().filter(command::Column::BatchId.eq(batch_id));
        Ok(without_output(query).order_by_asc(command::Column::Id).all(&self.read).await?)
    }

    /// Calls those lost that were sent before `before` and never ended, and gives how many.
    pub async fn give_up_commands(&self, before: Timestamp, now: Timestamp) -> Result<u64, StoreError> {
        let given_up = command::Entity::update_many()
            .col_expr(command::Column::Status, Expr::value("lost"))
            .col_expr(command::Column::FinishedAt, Millis::from(now).into())
            .filter(command::Column::Status.eq("running"))
            .filter(command::Column::StartedAt.lt(Millis::from(before)));
        Ok(given_up.exec(&self.write).await?.rows_affected)
    }

    /// Removes some of the commands, and batches, that were made before `before`, and gives how many.
    pub async fn forget_commands(&self, before: Timestamp) -> Result<u64, StoreError> {
        let old = command::Entity::find()
            .select_only()
            .column(command::Column::Id)
            .filter(command::Column::CreatedAt.lt(Millis::from(before)))
            .filter(command::Column::FinishedAt.is_not_null())
            .limit(FORGOTTEN_AT_ONCE);
        let ids: Vec<Uuid> = old.into_tuple().all(&self.read).await?;
        let commands = command::Entity::delete_many().filter(command::Column::Id.is_in(ids)).exec(&self.write).await?;
        if commands.rows_affected > 0 {
            return Ok(commands.rows_affected);
        }
        let batches = command_batch::Entity::delete_many()
            .filter(command_batch::Column::CreatedAt.lt(Millis::from(before)))
            .filter(command_batch::Column::FinishedAt.is_not_null());
        Ok(batches.exec(&self.write).await?.rows_affected)
    }
}

async fn insert(
    connection: &impl ConnectionTrait,
    commands: &[impl std::borrow::Borrow<Command>],
) -> Result<(), StoreError> {
    for some in commands.chunks(ROWS_AT_ONCE) {
        let rows = some.iter().map(|command| command.borrow().clone().into_active_model().reset_all());
        command::Entity::insert_many(rows).exec_without_returning(connection).await?;
    }
    Ok(())
}

async fn start(connection: &impl ConnectionTrait, ids: &[Uuid], at: Timestamp) -> Result<(), StoreError> {
    for some in ids.chunks(ROWS_AT_ONCE) {
        command::Entity::update_many()
            .col_expr(command::Column::Status, Expr::value("running"))
            .col_expr(command::Column::Stdin, Expr::value(None::<String>))
            .col_expr(command::Column::StartedAt, Millis::from(at).into())
            .filter(command::Column::Id.is_in(some.iter().copied()))
            .filter(command::Column::Status.eq("queued"))
            .exec(connection)
            .await?;
    }
    Ok(())
}

async fn finish(connection: &impl ConnectionTrait, end: &CommandEnd) -> Result<(), StoreError> {
    let (error_code, error_detail) = end.error.clone().unzip();
    command::Entity::update_many()
        .col_expr(command::Column::Status, Expr::value(end.status))
        .col_expr(command::Column::Stdin, Expr::value(None::<String>))
        .col_expr(command::Column::ExitCode, Expr::value(end.exit_code))
        .col_expr(command::Column::DurationMs, Expr::value(end.duration_ms))
        .col_expr(command::Column::IsTruncated, Expr::value(end.is_truncated))
        .col_expr(command::Column::Output, Expr::value(end.output.clone()))
        .col_expr(command::Column::OutputParts, Expr::value(end.output_parts.clone()))
        .col_expr(command::Column::ErrorCode, Expr::value(error_code))
        .col_expr(command::Column::ErrorDetail, Expr::value(error_detail))
        .col_expr(command::Column::FinishedAt, Millis::from(end.at).into())
        .filter(command::Column::Id.eq(end.id))
        .filter(command::Column::ServerId.eq(end.server_id))
        .filter(command::Column::Status.is_in(MAY_END))
        .exec(connection)
        .await?;
    Ok(())
}

async fn skip(
    connection: &impl ConnectionTrait,
    which: Expr,
    status: &'static str,
    at: Timestamp,
) -> Result<(), StoreError> {
    command::Entity::update_many()
        .col_expr(command::Column::Status, Expr::value(status))
        .col_expr(command::Column::Stdin, Expr::value(None::<String>))
        .col_expr(command::Column::FinishedAt, Millis::from(at).into())
        .filter(which)
        .filter(command::Column::Status.eq("queued"))
        .exec(connection)
        .await?;
    Ok(())
}

/// Leaves the output in the database, which may be a megabyte.
fn without_output(query: sea_orm::Select<command::Entity>) -> sea_orm::Select<command::Entity> {
    use command::Column;
    let kept =
        <Column as sea_orm::Iterable>::iter().filter(|column| !matches!(column, Column::Output | Column::OutputParts));
    query
        .select_only()
        .columns(kept)
        .column_as(Expr::value(None::<Vec<u8>>), "output")
        .column_as(Expr::value(None::<String>), "output_parts")
}
