use std::collections::{HashMap, HashSet};

use entity::{Millis, command, command_batch, server};
use sea_orm::sea_query::Expr;
use sea_orm::{ColumnTrait, Condition, EntityTrait, PaginatorTrait, QueryFilter, QueryOrder, QuerySelect};
use signalbox_protocol::Timestamp;
use uuid::Uuid;

use super::{Command, Page, PageRequest, Store, StoreError};

/// Rows that one statement inserts: SQLite accepts 32,766 values.
pub(super) const ROWS_AT_ONCE: usize = 500;

/// Rows that one transaction removes, so that other writers get their turn.
const FORGOTTEN_AT_ONCE: u64 = 500;

/// How many long-running commands are read at once.
const LOOKED_AT_AT_ONCE: u64 = 2_000;

impl Store {
    /// Finds a command of a server, with its output.
    pub async fn find_command(&self, server_id: Uuid, id: Uuid) -> Result<Option<Command>, StoreError> {
        let query = command::Entity::find_by_id(id).filter(command::Column::ServerId.eq(server_id));
        Ok(query.one(&self.read).await?)
    }

    /// Lists the commands of a server, newest first, without their output.
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

    /// The commands of a server that were sent and have not ended, and of those in `held` the ones that were given up.
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

    /// The statuses of these commands; deleted ones are missing.
    pub async fn standings(&self, ids: &[Uuid]) -> Result<HashMap<Uuid, String>, StoreError> {
        let mut standings = HashMap::with_capacity(ids.len());
        for some in ids.chunks(ROWS_AT_ONCE) {
            let query = command::Entity::find()
                .select_only()
                .columns([command::Column::Id, command::Column::Status])
                .filter(command::Column::Id.is_in(some.iter().copied()));
            standings.extend(query.into_tuple::<(Uuid, String)>().all(&self.read).await?);
        }
        Ok(standings)
    }

    /// Some of the commands that were sent before `before` and have not ended.
    pub async fn running_since(&self, before: Timestamp) -> Result<Vec<Command>, StoreError> {
        let query = command::Entity::find()
            .filter(command::Column::Status.eq("running"))
            .filter(command::Column::StartedAt.lt(Millis::from(before)))
            .order_by_asc(command::Column::Id)
            .limit(LOOKED_AT_AT_ONCE);
        Ok(without_output(query).all(&self.read).await?)
    }

    /// Which of these servers have a session, on any instance.
    pub async fn held_among(&self, server_ids: &[Uuid]) -> Result<HashSet<Uuid>, StoreError> {
        let mut held = HashSet::new();
        for some in server_ids.chunks(ROWS_AT_ONCE) {
            let query = server::Entity::find()
                .select_only()
                .column(server::Column::Id)
                .filter(server::Column::Id.is_in(some.iter().copied()))
                .filter(server::Column::SessionId.is_not_null());
            held.extend(query.into_tuple::<Uuid>().all(&self.read).await?);
        }
        Ok(held)
    }

    /// Marks commands that were sent before `before` and never ended as lost. Returns how many.
    pub async fn give_up_commands(&self, before: Timestamp, now: Timestamp) -> Result<u64, StoreError> {
        self.retried(|| async {
            let given_up = command::Entity::update_many()
                .col_expr(command::Column::Status, Expr::value("lost"))
                .col_expr(command::Column::FinishedAt, Millis::from(now).into())
                .filter(command::Column::Status.eq("running"))
                .filter(command::Column::StartedAt.lt(Millis::from(before)));
            Ok(given_up.exec(&self.write).await?.rows_affected)
        })
        .await
    }

    /// Removes some of the commands and batches that were created before `before`. Returns how many.
    pub async fn forget_commands(&self, before: Timestamp) -> Result<u64, StoreError> {
        self.retried(|| async {
            let old = command::Entity::find()
                .select_only()
                .column(command::Column::Id)
                .filter(command::Column::CreatedAt.lt(Millis::from(before)))
                .filter(command::Column::FinishedAt.is_not_null())
                .limit(FORGOTTEN_AT_ONCE);
            let ids: Vec<Uuid> = old.into_tuple().all(&self.read).await?;
            let commands =
                command::Entity::delete_many().filter(command::Column::Id.is_in(ids)).exec(&self.write).await?;
            if commands.rows_affected > 0 {
                return Ok(commands.rows_affected);
            }
            let batches = command_batch::Entity::delete_many()
                .filter(command_batch::Column::CreatedAt.lt(Millis::from(before)))
                .filter(command_batch::Column::FinishedAt.is_not_null());
            Ok(batches.exec(&self.write).await?.rows_affected)
        })
        .await
    }
}

/// Omits the output, which may be a megabyte.
pub(super) fn without_output(query: sea_orm::Select<command::Entity>) -> sea_orm::Select<command::Entity> {
    use command::Column;
    let kept =
        <Column as sea_orm::Iterable>::iter().filter(|column| !matches!(column, Column::Output | Column::OutputParts));
    query
        .select_only()
        .columns(kept)
        .column_as(Expr::value(None::<Vec<u8>>), "output")
        .column_as(Expr::value(None::<String>), "output_parts")
}
