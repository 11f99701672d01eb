//! Which tables an import moves, in an order in which no row comes before the one that it refers to. Names, columns, types
//! and keys are those of the entities.

use entity::{
    alert, alert_bucket, alert_count, alert_event, alert_threshold, api_key, approval, approval_server,
    approval_signature, audit_entry, audit_head, claim, clock, command, command_batch, enrolled_server, enrolment,
    external_identity, external_login, grant, history_block, history_journal, history_piece, invitation, login,
    logout_token, notification, notification_channel, passkey, program_token, recovery_code, sample, schedule,
    schedule_run, series_help, server, server_event, server_tag, silence, spent_challenge, team, team_member, totp,
    update_rollout, update_rollout_server, user, view,
};
use sea_orm::sea_query::ColumnType;
use sea_orm::{ColumnTrait, EntityTrait, IdenStatic, Iterable, PrimaryKeyToColumn};

/// The table that lies in partitions on PostgreSQL.
pub(super) const BLOCKS: &str = "history_blocks";

/// How a column is read and written. Both databases have the same kinds; they differ in how they keep them.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Kind {
    Uuid,
    Text,
    Small,
    Int,
    Big,
    Bool,
    Double,
    Bytes,
}

impl Kind {
    fn of(column_type: &ColumnType) -> Self {
        match column_type {
            ColumnType::Uuid => Self::Uuid,
            ColumnType::SmallInteger => Self::Small,
            ColumnType::Integer => Self::Int,
            ColumnType::BigInteger => Self::Big,
            ColumnType::Boolean => Self::Bool,
            ColumnType::Double => Self::Double,
            ColumnType::Blob | ColumnType::Binary(_) | ColumnType::VarBinary(_) => Self::Bytes,
            // A type that no entity has yet fails when it is read as text.
            _ => Self::Text,
        }
    }
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Column {
    pub name: &'static str,
    pub kind: Kind,
}

/// What becomes of a table.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Role {
    /// Its rows are moved; a database that has any is in use.
    Moved,
    /// Its only row takes the place of the one that a new database has.
    Single,
    /// Triggers of PostgreSQL count its rows from those that are moved. They are compared, and not moved.
    Counted,
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Table {
    pub name: &'static str,
    pub columns: Vec<Column>,
    /// Where in `columns` the primary key is, in its order.
    pub key: Vec<usize>,
    pub role: Role,
    /// How many rows are in memory, and in one transaction.
    pub batch: usize,
}

impl Table {
    fn of<E: EntityTrait>(role: Role, batch: usize) -> Self {
        let described =
            |column: E::Column| Column { name: column.as_str(), kind: Kind::of(column.def().get_column_type()) };
        let columns: Vec<Column> = E::Column::iter().map(described).collect();
        let names = E::PrimaryKey::iter().map(|key| key.into_column().as_str());
        let key = names.filter_map(|name| columns.iter().position(|column| column.name == name)).collect();
        Self { name: E::default().table_name(), columns, key, role, batch }
    }

    /// Where a column is.
    pub fn place(&self, name: &str) -> Option<usize> {
        self.columns.iter().position(|column| column.name == name)
    }

    /// The columns of the primary key.
    pub fn key_columns(&self) -> impl Iterator<Item = Column> + '_ {
        self.key.iter().filter_map(|place| self.columns.get(*place)).copied()
    }
}

/// Rows of some hundred bytes. PostgreSQL takes 65,535 values in a statement, and the widest of these tables has 28 columns.
const SHORT: usize = 1_000;

/// Rows that may have some kilobytes.
const LONG: usize = 256;

/// Blocks have some 32 KiB.
const BLOCKS_AT_ONCE: usize = 128;

/// The output of a command may have a megabyte, as may a server's samples of an hour.
const LARGE: usize = 16;

/// A row of the journal is what one commit took: mostly 100 KB, and 32 MB at most. There are some hundred.
const JOURNAL: usize = 1;

/// Every table that a SQLite database has, but the list of its migrations. `instances` and `shards` are not here: they say
/// which processes run on PostgreSQL, and SQLite leaves them empty. `history_samples` is on PostgreSQL only: the service
/// fills it from the journal at its next start.
pub(super) fn all() -> Vec<Table> {
    use Role::{Counted, Moved, Single};
    vec![
        Table::of::<user::Entity>(Moved, SHORT),
        Table::of::<claim::Entity>(Moved, SHORT),
        Table::of::<login::Entity>(Moved, SHORT),
        Table::of::<program_token::Entity>(Moved, SHORT),
        Table::of::<enrolment::Entity>(Moved, LARGE),
        Table::of::<totp::Entity>(Moved, SHORT),
        Table::of::<recovery_code::Entity>(Moved, SHORT),
        Table::of::<passkey::Entity>(Moved, SHORT),
        Table::of::<spent_challenge::Entity>(Moved, SHORT),
        Table::of::<invitation::Entity>(Moved, SHORT),
        Table::of::<external_identity::Entity>(Moved, LONG),
        Table::of::<external_login::Entity>(Moved, SHORT),
        Table::of::<logout_token::Entity>(Moved, SHORT),
        Table::of::<server::Entity>(Moved, SHORT),
        Table::of::<server_tag::Entity>(Moved, SHORT),
        Table::of::<team::Entity>(Moved, SHORT),
        Table::of::<team_member::Entity>(Moved, SHORT),
        Table::of::<grant::Entity>(Moved, SHORT),
        Table::of::<api_key::Entity>(Moved, SHORT),
        Table::of::<enrolled_server::Entity>(Moved, SHORT),
        Table::of::<series_help::Entity>(Moved, SHORT),
        Table::of::<server_event::Entity>(Moved, SHORT),
        Table::of::<alert_threshold::Entity>(Moved, SHORT),
        Table::of::<alert::Entity>(Moved, SHORT),
        Table::of::<alert_event::Entity>(Moved, SHORT),
        Table::of::<alert_count::Entity>(Counted, SHORT),
        Table::of::<alert_bucket::Entity>(Counted, SHORT),
        Table::of::<silence::Entity>(Moved, SHORT),
        Table::of::<view::Entity>(Moved, LONG),
        Table::of::<notification_channel::Entity>(Moved, LONG),
        Table::of::<notification::Entity>(Moved, LONG),
        Table::of::<command_batch::Entity>(Moved, LONG),
        Table::of::<command::Entity>(Moved, LARGE),
        Table::of::<approval::Entity>(Moved, LARGE),
        Table::of::<approval_server::Entity>(Moved, SHORT),
        Table::of::<approval_signature::Entity>(Moved, LONG),
        Table::of::<schedule::Entity>(Moved, LONG),
        Table::of::<schedule_run::Entity>(Moved, SHORT),
        Table::of::<update_rollout::Entity>(Moved, LONG),
        Table::of::<update_rollout_server::Entity>(Moved, SHORT),
        Table::of::<audit_entry::Entity>(Moved, SHORT),
        Table::of::<audit_head::Entity>(Single, SHORT),
        Table::of::<clock::Entity>(Single, SHORT),
        Table::of::<sample::Entity>(Moved, LONG),
        Table::of::<history_journal::Entity>(Moved, JOURNAL),
        Table::of::<history_piece::Entity>(Moved, LARGE),
        Table::of::<history_block::Entity>(Moved, BLOCKS_AT_ONCE),
    ]
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use sea_orm::{ConnectionTrait, DatabaseBackend, Statement};

    use super::*;
    use crate::{DatabaseSettings, Store};

    /// Tables of SQLite that an import leaves where they are.
    const LEFT: [&str; 4] = ["instances", "shards", "seaql_migrations", "sqlite_sequence"];

    async fn texts(store: &Store, query: String) -> BTreeSet<String> {
        let rows = store.read.query_all_raw(Statement::from_string(DatabaseBackend::Sqlite, query)).await.unwrap();
        rows.iter().map(|row| row.try_get_by_index(0).unwrap()).collect()
    }

    async fn migrated(directory: &tempfile::TempDir) -> Store {
        let url = format!("sqlite://{}?mode=rwc", directory.path().join("signalbox.db").display());
        Store::open(&url, DatabaseSettings::default()).await.unwrap()
    }

    #[tokio::test]
    async fn every_table_and_column_of_sqlite_is_moved_or_left_on_purpose() {
        let directory = tempfile::tempdir().unwrap();
        let store = migrated(&directory).await;

        let mut there = texts(&store, "SELECT name FROM sqlite_schema WHERE type = 'table'".to_owned()).await;
        LEFT.iter().for_each(|name| _ = there.remove(*name));

        let tables = all();
        assert_eq!(tables.iter().map(|table| table.name.to_owned()).collect::<BTreeSet<_>>(), there);
        for table in tables {
            let columns = texts(&store, format!("SELECT name FROM pragma_table_info('{}')", table.name)).await;
            let known: BTreeSet<String> = table.columns.iter().map(|column| column.name.to_owned()).collect();
            assert_eq!(known, columns, "{}", table.name);
        }
    }

    #[tokio::test]
    async fn a_table_comes_after_those_that_it_refers_to() {
        let directory = tempfile::tempdir().unwrap();
        let store = migrated(&directory).await;

        let mut before = BTreeSet::new();
        for table in all() {
            let query = format!("SELECT \"table\" FROM pragma_foreign_key_list('{}')", table.name);
            let referred = texts(&store, query).await;
            assert!(referred.is_subset(&before), "{} refers to {referred:?}", table.name);
            before.insert(table.name.to_owned());
        }
    }

    #[test]
    fn a_key_is_in_the_order_of_the_table() {
        let tables = all();
        let key = |name: &str| {
            let table = tables.iter().find(|table| table.name == name).unwrap();
            table.key_columns().map(|column| column.name).collect::<Vec<_>>()
        };

        assert_eq!(key(BLOCKS), ["server_id", "tier", "span", "start", "part"]);
        assert_eq!(key("server_tags"), ["server_id", "tag"]);
        assert!(tables.iter().all(|table| !table.key.is_empty() && table.columns.len() * table.batch < 65_535));
    }
}
