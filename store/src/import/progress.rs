//! What a target remembers of an import until all of it is there: from which source, which run writes, and how far each
//! table has come. Each batch is one transaction with its progress, so a run that is killed at any point can be continued.
//!
//! The two tables are no part of the schema: the first transaction of an import makes them, and its last one drops them. As
//! long as they are there no service starts on the target.

use sea_orm::{ConnectionTrait, DatabaseBackend, DbErr, Statement, Value};

use super::rows::{self, Field, Row};
use super::tables::{BLOCKS, Role, Table};
use super::{Import, ImportError};
use crate::connections::Transaction;
use crate::history::partitions_of_blocks;
use crate::{Store, StoreError};

const IS_THERE: &str = "SELECT to_regclass('import_source') IS NOT NULL";

const MAKE: [&str; 2] = [
    "CREATE TABLE import_source (id smallint PRIMARY KEY, mark text NOT NULL, run uuid NOT NULL)",
    "CREATE TABLE import_progress (table_name text PRIMARY KEY, row_count bigint NOT NULL, last_key text NOT NULL)",
];

/// A run that takes over from one that hangs waits until the batch of that one is written; that one finds no row here then.
const HOLD: &str = "SELECT 1 FROM import_source WHERE run = $1 FOR SHARE";

const ADVANCE: &str = "INSERT INTO import_progress (table_name, row_count, last_key) VALUES ($1, $2, $3) \
                       ON CONFLICT (table_name) DO UPDATE SET last_key = excluded.last_key, \
                       row_count = import_progress.row_count + excluded.row_count";

/// Rows that were written with their numbers do not count the number of the next one up.
const NUMBER: &str = "SELECT setval(pg_get_serial_sequence('history_journal', 'id'), COALESCE(MAX(id), 1), \
                      MAX(id) IS NOT NULL) FROM history_journal";

/// How a target stands before an import.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Standing {
    /// It has no data.
    Empty,
    /// It has a part of this source.
    Unfinished,
}

/// How far a table has come.
#[derive(Debug, Clone, PartialEq, Default)]
pub(super) struct Progress {
    pub rows: u64,
    /// The key of the last row that is there.
    pub after: Option<Vec<Field>>,
}

impl Store {
    /// Whether this is the target of an import that has not ended, and so lacks a part of its data.
    pub async fn has_unfinished_import(&self) -> Result<bool, StoreError> {
        if self.write.get_database_backend() != DatabaseBackend::Postgres {
            return Ok(false);
        }
        Ok(is_begun(&self.read).await?)
    }
}

async fn is_begun(connection: &impl ConnectionTrait) -> Result<bool, DbErr> {
    let row = connection.query_one_raw(Statement::from_string(DatabaseBackend::Postgres, IS_THERE)).await?;
    row.map_or(Ok(false), |row| row.try_get_by_index(0))
}

async fn execute(connection: &impl ConnectionTrait, sql: &str, values: Vec<Value>) -> Result<u64, DbErr> {
    let statement = Statement::from_sql_and_values(DatabaseBackend::Postgres, sql, values);
    Ok(connection.execute_raw(statement).await?.rows_affected())
}

/// Whether a table is there and has a row.
async fn has_rows(connection: &impl ConnectionTrait, table: &Table) -> Result<bool, DbErr> {
    let name = table.name;
    let there = Statement::from_string(DatabaseBackend::Postgres, format!("SELECT to_regclass('{name}') IS NOT NULL"));
    let row = connection.query_one_raw(there).await?;
    if !row.map_or(Ok(false), |row| row.try_get_by_index(0))? {
        return Ok(false);
    }
    let some = Statement::from_string(DatabaseBackend::Postgres, format!("SELECT 1 FROM {name} LIMIT 1"));
    Ok(connection.query_one_raw(some).await?.is_some())
}

impl Import {
    /// How the target stands; an error where it has data that is not of this source.
    pub(super) async fn look_at_target(&self, connection: &impl ConnectionTrait) -> Result<Standing, ImportError> {
        if is_begun(connection).await? {
            let query = "SELECT mark FROM import_source";
            let row = connection.query_one_raw(Statement::from_string(DatabaseBackend::Postgres, query)).await?;
            let mark: Option<String> = row.map(|row| row.try_get_by_index(0)).transpose()?;
            return if mark.as_ref() == Some(&self.mark) {
                Ok(Standing::Unfinished)
            } else {
                Err(ImportError::OtherSource)
            };
        }
        for table in self.tables.iter().filter(|table| table.role != Role::Single) {
            if has_rows(connection, table).await? {
                return Err(ImportError::NotEmpty { table: table.name });
            }
        }
        Ok(Standing::Empty)
    }

    /// Makes this the run that writes: from the beginning, or from where the one before it came to.
    pub async fn begin(&self) -> Result<Standing, ImportError> {
        let transaction = self.target.write.begin().await?;
        let standing = self.look_at_target(&transaction).await?;
        match standing {
            Standing::Empty => {
                for statement in MAKE {
                    transaction.execute_unprepared(statement).await?;
                }
                for table in self.tables.iter().filter(|table| table.role == Role::Single) {
                    transaction.execute_unprepared(&format!("DELETE FROM {}", table.name)).await?;
                }
                let insert = "INSERT INTO import_source (id, mark, run) VALUES (1, $1, $2)";
                execute(&transaction, insert, vec![self.mark.clone().into(), self.run.into()]).await?;
            }
            Standing::Unfinished => {
                execute(&transaction, "UPDATE import_source SET run = $1", vec![self.run.into()]).await?;
            }
        }
        transaction.commit().await?;
        Ok(standing)
    }

    /// How far a table has come.
    pub(super) async fn progress(&self, table: &Table) -> Result<Progress, ImportError> {
        let query = "SELECT row_count, last_key FROM import_progress WHERE table_name = $1";
        let statement = Statement::from_sql_and_values(DatabaseBackend::Postgres, query, [Value::from(table.name)]);
        let Some(row) = self.target.read.query_one_raw(statement).await? else { return Ok(Progress::default()) };
        let (rows, key): (i64, String) = (row.try_get_by_index(0)?, row.try_get_by_index(1)?);
        let fields: Option<Vec<serde_json::Value>> = serde_json::from_str(&key).ok();
        let columns = table.key_columns().map(|column| column.kind);
        let after = fields.filter(|fields| fields.len() == table.key.len()).and_then(|fields| {
            fields.iter().zip(columns).map(|(field, kind)| Field::parse(field, kind)).collect::<Option<Vec<Field>>>()
        });
        // With another key the rows would be written once more.
        let after = Some(after.ok_or(ImportError::BadProgress { table: table.name })?);
        Ok(Progress { rows: rows.unsigned_abs(), after })
    }

    /// Writes a batch, and that it is there.
    pub(super) async fn write(&self, table: &Table, batch: &[Row], last: &[Field]) -> Result<(), ImportError> {
        let needed = partitions_of_blocks(&blocks(table, batch));
        let write = async || self.target.retried(|| self.try_write(table, batch, last)).await;
        if self.target.in_partitions(&needed, write).await? { Ok(()) } else { Err(ImportError::Displaced) }
    }

    /// Whether this is still the run that writes.
    async fn holds(&self, transaction: &Transaction) -> Result<bool, DbErr> {
        let statement = Statement::from_sql_and_values(DatabaseBackend::Postgres, HOLD, [Value::from(self.run)]);
        Ok(transaction.query_one_raw(statement).await?.is_some())
    }

    async fn try_write(&self, table: &Table, batch: &[Row], last: &[Field]) -> Result<bool, StoreError> {
        let transaction = self.target.write.begin().await?;
        if !self.holds(&transaction).await? {
            return Ok(false);
        }
        rows::insert(&transaction, table, batch).await?;
        let key = serde_json::Value::Array(last.iter().map(Field::to_json).collect()).to_string();
        let count = i64::try_from(batch.len()).unwrap_or(i64::MAX);
        execute(&transaction, ADVANCE, vec![table.name.into(), count.into(), key.into()]).await?;
        transaction.commit().await?;
        Ok(true)
    }

    /// Ends the import: the target is a database like any other.
    pub async fn finish(&self) -> Result<(), ImportError> {
        let is_ours = self.target.retried(|| self.try_finish()).await?;
        if !is_ours {
            return Err(ImportError::Displaced);
        }
        // What a service that was killed left behind is over, whichever service starts next.
        Ok(self.target.forget_sessions().await?)
    }

    async fn try_finish(&self) -> Result<bool, StoreError> {
        let transaction = self.target.write.begin().await?;
        if !self.holds(&transaction).await? {
            return Ok(false);
        }
        for statement in [NUMBER, "DROP TABLE import_progress", "DROP TABLE import_source"] {
            transaction.execute_unprepared(statement).await?;
        }
        transaction.commit().await?;
        Ok(true)
    }
}

/// The tiers and beginnings of the blocks among some rows.
fn blocks(table: &Table, batch: &[Row]) -> Vec<(i16, i64)> {
    if table.name != BLOCKS {
        return Vec::new();
    }
    let (Some(tier_at), Some(start_at)) = (table.place("tier"), table.place("start")) else { return Vec::new() };
    let block = |row: &Row| {
        let tier = i16::try_from(row.get(tier_at)?.integer()?).ok()?;
        Some((tier, row.get(start_at)?.integer()?))
    };
    batch.iter().filter_map(block).collect()
}
