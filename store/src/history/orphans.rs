//! History of deleted servers. No foreign key leads from the history to the servers, because removing a large one takes longer
//! than a transaction may last. So the history is removed after its server, and this finds what a crash left of it.

use entity::server;
use sea_orm::{ColumnTrait, ConnectionTrait, DbErr, EntityTrait, QueryFilter, QuerySelect, Statement, Value};
use uuid::Uuid;

use crate::{Store, StoreError};

/// Servers that one statement finds. Each takes one search of the table's index; on PostgreSQL one in each partition.
const LOOKED_AT: usize = 64;

/// A table of the history.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum HistoryTable {
    /// Blocks.
    Blocks,
    /// Pieces.
    Pieces,
    /// Unsealed samples; only PostgreSQL has this table.
    Samples,
}

/// The result of one search.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Orphans {
    /// Servers that have rows in the table and do not exist.
    pub server_ids: Vec<Uuid>,
    /// Where to continue; none at the end of the table.
    pub after: Option<Uuid>,
}

impl HistoryTable {
    /// Every table.
    pub const ALL: [Self; 3] = [Self::Blocks, Self::Pieces, Self::Samples];

    fn name(self) -> &'static str {
        match self {
            Self::Blocks => "history_blocks",
            Self::Pieces => "history_pieces",
            Self::Samples => "history_samples",
        }
    }

    /// Finds each server in the index, without reading its rows.
    fn servers(self) -> String {
        let table = self.name();
        format!(
            "WITH RECURSIVE found (server_id) AS ( \
                 SELECT * FROM (SELECT server_id FROM {table} WHERE server_id > $1 ORDER BY server_id LIMIT 1) AS first \
                 UNION ALL \
                 SELECT (SELECT next.server_id FROM {table} AS next WHERE next.server_id > found.server_id \
                     ORDER BY next.server_id LIMIT 1) \
                 FROM found WHERE found.server_id IS NOT NULL) \
             SELECT server_id FROM found WHERE server_id IS NOT NULL LIMIT {LOOKED_AT}"
        )
    }
}

impl Store {
    /// Examines some of the servers with rows in a table, those after `after`.
    pub async fn orphans(&self, table: HistoryTable, after: Uuid) -> Result<Orphans, StoreError> {
        if table == HistoryTable::Samples && !self.has_sample_table() {
            return Ok(Orphans { server_ids: Vec::new(), after: None });
        }
        let statement =
            Statement::from_sql_and_values(self.read.get_database_backend(), table.servers(), [Value::from(after)]);
        let rows = self.read.query_all_raw(statement).await?;
        let mut found: Vec<Uuid> = rows.iter().map(|row| row.try_get_by_index(0)).collect::<Result<_, DbErr>>()?;
        let after = found.last().copied().filter(|_| found.len() == LOOKED_AT);
        // After reading the rows: a server exists before it has any, and its id is never reused.
        let there: Vec<Uuid> = server::Entity::find()
            .select_only()
            .column(server::Column::Id)
            .filter(server::Column::Id.is_in(found.iter().copied()))
            .into_tuple()
            .all(&self.read)
            .await?;
        found.retain(|id| !there.contains(id));
        Ok(Orphans { server_ids: found, after })
    }
}
