//! Commands for many servers, as they are kept.

use entity::{Millis, command, command_batch, server};
use sea_orm::sea_query::Expr;
use sea_orm::{
    ColumnTrait, Condition, ConnectionTrait, DatabaseBackend, EntityTrait, PaginatorTrait, QueryFilter, QueryOrder,
    QuerySelect, RelationTrait, Statement,
};
use uuid::Uuid;

use super::commands::{ROWS_AT_ONCE, of_batches_of, without_output};
use super::instances::{DEAD_AFTER_MS, NOW};
use super::{Command, CommandBatch, Page, PageRequest, Store, StoreError};

/// Bytes of each command's output that a batch shows.
const PREVIEW_BYTES: u32 = 4_096;

/// Batches that one instance takes over at a time, so that others get some too.
const CLAIMED_AT_ONCE: i64 = 4;

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

/// How a batch stands that an instance runs, or ran.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct BatchStanding {
    pub id: Uuid,
    pub instance_id: Option<Uuid>,
    pub is_cancelled: bool,
}

impl Store {
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

    /// Which of these commands are to run, as long as their batch is this instance's.
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

    /// Takes over some of the batches that nobody runs, for an instance that is alive and runs `these`: those whose
    /// instance is not alive any more, and its own that it lost. Only where there are several.
    pub async fn claim_batches(&self, instance_id: Uuid, these: &[Uuid]) -> Result<Vec<CommandBatch>, StoreError> {
        let claim = format!(
            "UPDATE command_batches SET instance_id = $1 WHERE id IN (SELECT id FROM command_batches \
             WHERE finished_at IS NULL AND id <> ALL ($3::uuid[]) \
             AND EXISTS (SELECT 1 FROM instances WHERE id = $1) \
             AND (instance_id = $1 OR NOT EXISTS (SELECT 1 FROM instances \
                 WHERE instances.id = command_batches.instance_id AND seen_at > {NOW} - {DEAD_AFTER_MS})) \
             ORDER BY id LIMIT $2 FOR UPDATE SKIP LOCKED) RETURNING id"
        );
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

    /// How these batches stand.
    pub async fn batch_standings(&self, ids: &[Uuid]) -> Result<Vec<BatchStanding>, StoreError> {
        let mut standings = Vec::with_capacity(ids.len());
        for some in ids.chunks(ROWS_AT_ONCE) {
            let query = command_batch::Entity::find().filter(command_batch::Column::Id.is_in(some.iter().copied()));
            standings.extend(query.all(&self.read).await?.into_iter().map(|batch| BatchStanding {
                id: batch.id,
                instance_id: batch.instance_id,
                is_cancelled: batch.is_cancelled,
            }));
        }
        Ok(standings)
    }
}
