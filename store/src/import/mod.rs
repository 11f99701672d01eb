//! A whole service moved from SQLite to PostgreSQL.
//!
//! 1. No service runs on either database: the caller holds the source's directory and the target's only place.
//! 2. The source has the schema of this program, and the target is brought to it.
//! 3. The target is empty, or has a part of this very source ([`progress`]): a mark of the source tells.
//! 4. [`tables`] lists what is moved; a test compares the list with the schema.
//! 5. Rows are read by primary key, a bounded batch at a time, and written in the order of foreign keys.
//! 6. A batch, and how far its table has come with it, are one transaction: what is killed is continued.
//! 7. What counts alerts on PostgreSQL is counted there, by its triggers. Journal and pieces are moved as they are: the
//!    service makes rows of the journal at its next start, and seals pieces, as it does after an upgrade.
//! 8. Then every table is read again from both databases: as many rows, and the same sum of their hashes ([`rows`]).
//! 9. The last transaction sets the sequence and drops what the import remembered. Until then no service starts there.
//! 10. The source is never written.

mod progress;
mod rows;
mod tables;

use std::collections::HashSet;
use std::time::{Duration, Instant};

use migration::{Migrator, MigratorTrait};
use sea_orm::{ConnectionTrait, DatabaseBackend, DbErr, Statement};
use sha2::{Digest, Sha256};
use uuid::Uuid;

use super::audit::chain::hex;
use super::{Store, StoreError};
pub use progress::Standing;
use rows::Sum;
use tables::{Role, Table};

/// How often the log says how far a large table is.
const TELL_EVERY: Duration = Duration::from_secs(10);

/// What every service that runs changes: with the numbers of rows they tell whether a source is what it was.
const MARKED: [&str; 5] = ["users", "logins", "servers", "audit_head", "clock"];

/// Why an import ended.
#[derive(Debug, thiserror::Error)]
pub enum ImportError {
    /// The data would come from another engine.
    #[error("the source is no SQLite database: name its data directory (--data-dir) or its file (--from)")]
    SourceNotSqlite,
    /// The data would go to another engine.
    #[error("the target is no PostgreSQL database: give --database-url postgres://user:password@host/name")]
    TargetNotPostgres,
    /// The source lacks migrations of this program.
    #[error(
        "the source has the schema of an older version (migrations missing: {missing}): make a backup, and run \
         `signalbox migrate` on it first"
    )]
    SourceOlder {
        /// How many.
        missing: usize,
    },
    /// A database has a migration that this program does not have.
    #[error("the {which} has the schema of a newer version (migration {migration}): use the signalbox of that version")]
    Newer {
        /// `source` or `target`.
        which: &'static str,
        /// Its name.
        migration: String,
    },
    /// The target cannot store every text.
    #[error("the target database has the encoding {0}: create one with ENCODING 'UTF8'")]
    Encoding(String),
    /// The target has data, and not from an import.
    #[error("the target database is not empty: its table {table} has rows; create a new database for the import")]
    NotEmpty {
        /// The first table that has rows.
        table: &'static str,
    },
    /// The target has a part of other data.
    #[error(
        "the target database has an unfinished import of another source, or of this one before a service changed it: \
         create a new database for the import"
    )]
    OtherSource,
    /// The target has a part of the data, and not how much.
    #[error(
        "the target database does not say where its import of table {table} stopped: create a new one for the import"
    )]
    BadProgress {
        /// The table in question.
        table: &'static str,
    },
    /// Another run continues this import.
    #[error("another import has taken over the target database")]
    Displaced,
    /// A text of the source has a character that no text of the target can have.
    #[error("table {table}, row {key}: column {column} has a NUL character, which PostgreSQL cannot store")]
    Nul {
        /// The table of the text.
        table: &'static str,
        /// The primary key of its row, as JSON.
        key: String,
        /// Its column.
        column: &'static str,
    },
    /// A table has other rows in the target than in the source.
    #[error(
        "table {table} differs: {source_rows} rows in the source, {target_rows} in the target, hashes {source_hash} and \
         {target_hash}; do not use the target: create a new database and import again"
    )]
    Different {
        /// The first table that differs.
        table: &'static str,
        /// How many rows the source has.
        source_rows: u64,
        /// How many rows the target has.
        target_rows: u64,
        /// The sum of the hashes of the source's rows, in hexadecimal.
        source_hash: String,
        /// The same of the target's rows.
        target_hash: String,
    },
    /// A database failed.
    #[error(transparent)]
    Store(#[from] StoreError),
}

impl From<DbErr> for ImportError {
    fn from(error: DbErr) -> Self {
        Self::Store(error.into())
    }
}

/// A table before it is moved.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct PlannedTable {
    /// Its name in both databases.
    pub name: &'static str,
    /// How many rows the source has.
    pub rows: u64,
    /// How many of them an earlier run has moved.
    pub moved: u64,
}

/// A table of which both databases have the same rows.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct MovedTable {
    /// Its name in both databases.
    pub name: &'static str,
    /// How many rows each database has.
    pub rows: u64,
    /// The sum of the rows' SHA-256 hashes, in four numbers of 64 bits.
    pub hash: Vec<u8>,
}

/// From one database to another.
pub struct Import {
    source: Store,
    target: Store,
    tables: Vec<Table>,
    /// Tells this run from others.
    run: Uuid,
    /// Tells the source, as it is now, from others.
    mark: String,
}

/// The schema of a database, seen from this program.
enum Schema {
    Current,
    Older { missing: usize },
    Newer { migration: String },
}

impl Import {
    /// Between two databases that one can lead between; the target's schema may be missing or old. Writes nothing.
    pub async fn between(source: Store, target: Store) -> Result<Self, ImportError> {
        if source.write.get_database_backend() != DatabaseBackend::Sqlite {
            return Err(ImportError::SourceNotSqlite);
        }
        if target.write.get_database_backend() != DatabaseBackend::Postgres {
            return Err(ImportError::TargetNotPostgres);
        }
        match schema_of(&source).await? {
            Schema::Current => {}
            Schema::Older { missing } => return Err(ImportError::SourceOlder { missing }),
            Schema::Newer { migration } => return Err(ImportError::Newer { which: "source", migration }),
        }
        if let Schema::Newer { migration } = schema_of(&target).await? {
            return Err(ImportError::Newer { which: "target", migration });
        }
        let encoding = encoding_of(&target).await?;
        if encoding != "UTF8" {
            return Err(ImportError::Encoding(encoding));
        }
        let tables = tables::all();
        let mark = mark_of(&source, &tables).await?;
        Ok(Self { source, target, tables, run: Uuid::now_v7(), mark })
    }

    /// How the target stands; an error where it has data that is not of this source. Writes nothing.
    pub async fn standing(&self) -> Result<Standing, ImportError> {
        self.look_at_target(&self.target.read).await
    }

    /// What would be moved. Writes nothing.
    pub async fn plan(&self) -> Result<Vec<PlannedTable>, ImportError> {
        let standing = self.standing().await?;
        let mut planned = Vec::new();
        for table in self.moved_tables() {
            let moved = match standing {
                Standing::Empty => 0,
                Standing::Unfinished => self.progress(table).await?.rows,
            };
            planned.push(PlannedTable { name: table.name, rows: rows::count(&self.source.read, table).await?, moved });
        }
        Ok(planned)
    }

    /// Moves what the target does not have yet. After [`Import::begin`].
    pub async fn move_rows(&self) -> Result<(), ImportError> {
        for table in self.moved_tables() {
            self.move_table(table).await?;
        }
        Ok(())
    }

    async fn move_table(&self, table: &Table) -> Result<(), ImportError> {
        let mut progress = self.progress(table).await?;
        let mut told = Instant::now();
        loop {
            let batch = rows::page(&self.source.read, table, progress.after.as_deref()).await?;
            let Some(last) = batch.last() else { break };
            if let Some((row, column)) = rows::nul(table, &batch) {
                return Err(ImportError::Nul { table: table.name, key: shown(table, row), column });
            }
            let key = rows::key_of(table, last);
            self.write(table, &batch, &key).await?;
            progress.rows += batch.len() as u64;
            progress.after = Some(key);
            if told.elapsed() >= TELL_EVERY {
                tracing::info!(table = table.name, rows = progress.rows, "rows moved so far");
                told = Instant::now();
            }
        }
        tracing::info!(table = table.name, rows = progress.rows, "table moved");
        Ok(())
    }

    /// Reads every table from both databases and compares them; an error names the first that differs.
    pub async fn verify(&self) -> Result<Vec<MovedTable>, ImportError> {
        let mut verified = Vec::new();
        for table in &self.tables {
            let source = rows::sum(&self.source.read, table).await?;
            let target = rows::sum(&self.target.read, table).await?;
            if source != target {
                return Err(different(table, &source, &target));
            }
            tracing::info!(table = table.name, rows = source.rows, "table verified");
            verified.push(MovedTable { name: table.name, rows: source.rows, hash: source.bytes() });
        }
        Ok(verified)
    }

    fn moved_tables(&self) -> impl Iterator<Item = &Table> {
        self.tables.iter().filter(|table| table.role != Role::Counted)
    }
}

fn different(table: &Table, source: &Sum, target: &Sum) -> ImportError {
    ImportError::Different {
        table: table.name,
        source_rows: source.rows,
        target_rows: target.rows,
        source_hash: hex(&source.bytes()),
        target_hash: hex(&target.bytes()),
    }
}

/// The key of a row, for people.
fn shown(table: &Table, row: &[rows::Field]) -> String {
    let key = rows::key_of(table, row).iter().map(rows::Field::to_json).collect();
    serde_json::Value::Array(key).to_string()
}

async fn schema_of(store: &Store) -> Result<Schema, ImportError> {
    let known: HashSet<String> =
        Migrator::get_migration_files().iter().map(|migration| migration.name().to_owned()).collect();
    if !store.is_migrated().await? {
        return Ok(Schema::Older { missing: known.len() });
    }
    let query = "SELECT version FROM seaql_migrations ORDER BY version";
    let rows = store.read.query_all_raw(Statement::from_string(store.read.get_database_backend(), query)).await?;
    let applied: Vec<String> = rows.iter().map(|row| row.try_get_by_index(0)).collect::<Result<_, DbErr>>()?;
    if let Some(migration) = applied.iter().find(|version| !known.contains(*version)) {
        return Ok(Schema::Newer { migration: migration.clone() });
    }
    let missing = known.len().saturating_sub(applied.len());
    Ok(if missing == 0 { Schema::Current } else { Schema::Older { missing } })
}

async fn encoding_of(store: &Store) -> Result<String, ImportError> {
    let query = Statement::from_string(DatabaseBackend::Postgres, "SELECT current_setting('server_encoding')");
    let row = store.read.query_one_raw(query).await?;
    Ok(row.map_or(Ok(String::new()), |row| row.try_get_by_index(0))?)
}

/// What a source that no service has used since has again.
async fn mark_of(store: &Store, tables: &[Table]) -> Result<String, ImportError> {
    let mut hasher = Sha256::new();
    for table in tables {
        hasher.update(table.name);
        if MARKED.contains(&table.name) {
            hasher.update(rows::sum(&store.read, table).await?.bytes());
        }
        hasher.update(rows::count(&store.read, table).await?.to_be_bytes());
    }
    let hash: [u8; 32] = hasher.finalize().into();
    Ok(hex(&hash))
}
