//! Stored batches: commands for many servers.

use entity::{Millis, command, command_batch, server};
use sea_orm::sea_query::Expr;
use sea_orm::{
    ColumnTrait, Condition, ConnectionTrait, DatabaseBackend, EntityTrait, PaginatorTrait, QueryFilter, QueryOrder,
    QuerySelect, RelationTrait, Statement,
};
use uuid::Uuid;

use super::command_writes::of_batches_of;
use super::commands::{ROWS_AT_ONCE, without_output};
use super::{Caller, Command, CommandBatch, Page, PageRequest, Store, StoreError, Visibility};

/// How many bytes of each command's output a batch shows.
const PREVIEW_BYTES: u32 = 4_096;

/// How many batches one instance takes over at a time, so that others get some, too.
const CLAIMED_AT_ONCE: i64 = 4;

/// A command of a batch, as the batch shows it.
#[derive(Debug, Clone, PartialEq, Eq, sea_orm::FromQueryResult)]
pub struct BatchItem {
    /// The command.
    pub id: Uuid,
    /// The server.
    pub server_id: Uuid,
    /// None when the server was deleted.
    pub server_name: Option<String>,
    /// The command's status.
    pub status: String,
    /// Its exit code.
    pub exit_code: Option<i32>,
    /// How long it ran, in milliseconds.
    pub duration_ms: Option<i64>,
    /// Whether its output was cut.
    pub is_truncated: bool,
    /// Why it did not run, for programs.
    pub error_code: Option<String>,
    /// Why it did not run, for people.
    pub error_detail: Option<String>,
    /// Why a signature did not suffice, for programs.
    pub error_reason: Option<String>,
    /// The first 4 KiB of its output.
    pub preview: Option<Vec<u8>>,
    /// When it was sent to the agent.
    pub started_at: Option<Millis>,
    /// When it ended.
    pub finished_at: Option<Millis>,
}

/// The state of a batch that an instance runs, or ran.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct BatchStanding {
    /// The batch.
    pub id: Uuid,
    /// The instance that runs it.
    pub instance_id: Option<Uuid>,
    /// Whether a user cancelled it.
    pub is_cancelled: bool,
    /// Whether all its commands have ended.
    pub has_ended: bool,
}

/// The batches of a user; for a token those that it started itself, because others may be for servers that it is not for.
fn started_by(caller: &Caller) -> Condition {
    let token = caller.token.as_ref().map(|token| command_batch::Column::TokenId.eq(token.id));
    Condition::all().add(command_batch::Column::OwnerId.eq(caller.user_id)).add_option(token)
}

impl Store {
    /// Finds a batch of a caller.
    pub async fn find_batch(&self, caller: &Caller, id: Uuid) -> Result<Option<CommandBatch>, StoreError> {
        Ok(command_batch::Entity::find_by_id(id).filter(started_by(caller)).one(&self.read).await?)
    }

    /// Lists the batches of a caller, newest first.
    pub async fn list_batches(&self, caller: &Caller, page: PageRequest) -> Result<Page<CommandBatch>, StoreError> {
        let query = command_batch::Entity::find().filter(started_by(caller));
        let total = query.clone().count(&self.read).await?;
        let query = query.order_by_desc(command_batch::Column::Id).limit(page.limit).offset(page.offset);
        Ok(Page { items: query.all(&self.read).await?, total })
    }

    /// The commands of a batch on these servers with their results so far, in the order in which they run.
    pub async fn batch_items(&self, batch_id: Uuid, visible: &Visibility) -> Result<Vec<BatchItem>, StoreError> {
        let columns = [
            command::Column::Id,
            command::Column::ServerId,
            command::Column::Status,
            command::Column::ExitCode,
            command::Column::DurationMs,
            command::Column::IsTruncated,
            command::Column::ErrorCode,
            command::Column::ErrorDetail,
            command::Column::ErrorReason,
            command::Column::StartedAt,
            command::Column::FinishedAt,
        ];
        let preview = Expr::cust(format!("substr(commands.output, 1, {PREVIEW_BYTES})"));
        let seen = self.branches(visible).await?.any();
        let items = command::Entity::find()
            .select_only()
            .columns(columns)
            .column_as(preview, "preview")
            .column_as(server::Column::Name, "server_name")
            .join(sea_orm::JoinType::LeftJoin, command::Relation::Server.def())
            .filter(command::Column::BatchId.eq(batch_id))
            .filter(seen)
            .order_by_asc(command::Column::Id)
            .into_model::<BatchItem>();
        Ok(items.all(&self.read).await?)
    }

    /// Batches that have not ended.
    pub async fn unfinished_batches(&self) -> Result<Vec<CommandBatch>, StoreError> {
        Ok(command_batch::Entity::find().filter(command_batch::Column::FinishedAt.is_null()).all(&self.read).await?)
    }

    /// Which of these commands are running, while this instance still runs their batch.
    pub async fn running_among(&self, ids: &[Uuid], by: Option<Uuid>) -> Result<Vec<Uuid>, StoreError> {
        let mut running = Vec::with_capacity(ids.len());
        for some in ids.chunks(ROWS_AT_ONCE) {
            let query = command::Entity::find()
                .select_only()
                .column(command::Column::Id)
                .filter(command::Column::Id.is_in(some.iter().copied()))
                .filter(Condition::all().add(command::Column::Status.eq("running")).add_option(by.map(of_batches_of)));
            running.extend(query.into_tuple::<Uuid>().all(&self.read).await?);
        }
        Ok(running)
    }

    /// The commands of a batch, without their output.
    pub async fn batch_commands(&self, batch_id: Uuid) -> Result<Vec<Command>, StoreError> {
        let query = command::Entity::find().filter(command::Column::BatchId.eq(batch_id));
        Ok(without_output(query).order_by_asc(command::Column::Id).all(&self.read).await?)
    }

    /// Takes over some of the batches that no instance runs, for a live instance that runs `these`: batches whose instance was
    /// removed, because it has ended or is dead, and its own that it lost. Only where there are several instances.
    pub async fn claim_batches(&self, instance_id: Uuid, these: &[Uuid]) -> Result<Vec<CommandBatch>, StoreError> {
        let claim = "UPDATE command_batches SET instance_id = $1 WHERE id IN (SELECT id FROM command_batches \
                     WHERE finished_at IS NULL AND id <> ALL ($3::uuid[]) \
                     AND EXISTS (SELECT 1 FROM instances WHERE id = $1) \
                     AND (instance_id = $1 OR NOT EXISTS (SELECT 1 FROM instances \
                         WHERE instances.id = command_batches.instance_id)) \
                     ORDER BY id LIMIT $2 FOR UPDATE SKIP LOCKED) RETURNING id";
        let values = [instance_id.into(), CLAIMED_AT_ONCE.into(), these.to_vec().into()];
        let claim = Statement::from_sql_and_values(DatabaseBackend::Postgres, claim, values);
        let claimed = self.write.query_all_raw(claim).await?;
        if claimed.is_empty() {
            return Ok(Vec::new());
        }
        let ids = claimed.iter().map(|row| row.try_get_by_index::<Uuid>(0)).collect::<Result<Vec<_>, _>>()?;
        let query = command_batch::Entity::find()
            .filter(command_batch::Column::Id.is_in(ids))
            .filter(command_batch::Column::FinishedAt.is_null());
        Ok(query.all(&self.write).await?)
    }

    /// The state of these batches.
    pub async fn batch_standings(&self, ids: &[Uuid]) -> Result<Vec<BatchStanding>, StoreError> {
        let mut standings = Vec::with_capacity(ids.len());
        for some in ids.chunks(ROWS_AT_ONCE) {
            let query = command_batch::Entity::find().filter(command_batch::Column::Id.is_in(some.iter().copied()));
            standings.extend(query.all(&self.read).await?.into_iter().map(|batch| BatchStanding {
                id: batch.id,
                instance_id: batch.instance_id,
                is_cancelled: batch.is_cancelled,
                has_ended: batch.finished_at.is_some(),
            }));
        }
        Ok(standings)
    }
}
