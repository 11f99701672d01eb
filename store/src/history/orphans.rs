//! History of servers that are gone. No foreign key leads from it to the servers, because a large one takes longer to
//! remove than a transaction may last: so it is removed after the server, and what a crash leaves of it is found here.

use entity::server;
use sea_orm::{ColumnTrait, ConnectionTrait, DbErr, EntityTrait, QueryFilter, QuerySelect, Statement, Value};
use uuid::Uuid;

use crate::{Store, StoreError};

/// Servers that are looked at in one statement. Each is one look into the index of the table; on PostgreSQL one into
/// that of each partition.
const LOOKED_AT: usize = 64;

/// A table of the history.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum HistoryTable {
    Blocks,
    Pieces,
    /// Of samples that are not sealed; only PostgreSQL has it.
    Samples,
}

/// What one look came to.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Orphans {
    /// Servers that have rows in the table and are not there any more.
    pub server_ids: Vec<Uuid>,
    /// Where to go on; none at the end of the table.
    pub after: Option<Uuid>,
}

impl HistoryTable {
    pub const ALL: [Self; 3] = [Self::Blocks, Self::Pieces, Self::Samples];

    fn name(self) -> &'static str {
        match self {
            Self::Blocks => "history_blocks",
            Self::Pieces => "history_pieces",
            Self::Samples => "history_samples",
        }
    }

    /// Finds each server in the index, and reads none of its rows.
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
    /// Looks through some of the servers that a table has rows of, those behind `after`.
    pub async fn orphans(&self, table: HistoryTable, after: Uuid) -> Result<Orphans, StoreError> {
        if table == HistoryTable::Samples && !self.has_sample_table() {
            return Ok(Orphans { server_ids: Vec::new(), after: None });
        }
        let statement =
            Statement::from_sql_and_values(self.read.get_database_backend(), table.servers(), [Value::from(after)]);
        let rows = self.read.query_all_raw(statement).await?;
        let mut found: Vec<Uuid> = rows.iter().map(|row| row.try_get_by_index(0)).collect::<Result<_, DbErr>>()?;
        let after = found.last().copied().filter(|_| found.len() == LOOKED_AT);
        // After the rows: a server is there before it has any, and its id is never used again.
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
