//! Partitions of the history on PostgreSQL. They are created when something is written that needs them, and dropped when
//! nothing in them is retained: dropping a table costs nothing, deleting its rows does.
//!
//! Attaching a partition blocks no reader or writer. Dropping one blocks everybody for a moment; if it does not get that moment
//! soon, it gives up and tries again later.

use std::collections::HashSet;
use std::sync::Arc;

use parking_lot::{Mutex, MutexGuard};
use sea_orm::{ConnectionTrait, DbErr, RuntimeErr, Statement};
use signalbox_protocol::Timestamp;

use super::Tier;
use crate::{Store, StoreError};

/// Held while a partition is created or dropped. An arbitrary number that must be the same in every instance.
const PARTITION_LOCK: i64 = 0x5349_474e_5041;

/// How long other transactions may have to wait for a partition to be dropped.
const LOCK_TIMEOUT: &str = "SET LOCAL lock_timeout = '100ms'; SET LOCAL statement_timeout = '1s'";

/// Each of the last hours has samples all the time and gets a partition of its own; older hours have few, and there may be any
/// number of them.
const FINE_HOURS: i64 = 48;

/// How many hours one partition of older samples has: an agent that was away for months creates as many partitions as days.
const LATE_WIDTH: i64 = 24;

/// How often a write is repeated because another instance dropped the partition at that moment.
const TRIES: usize = 3;

/// The SQLSTATE of a violated check constraint.
const CHECK_VIOLATION: &str = "23514";
const UNDEFINED_TABLE: &str = "42P01";
const QUERY_CANCELED: &str = "57014";
const LOCK_NOT_AVAILABLE: &str = "55P03";
const DEADLOCK: &str = "40P01";

/// The partitioned tables.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub(crate) enum Parted {
    Samples,
    Blocks(Tier),
}

impl Parted {
    fn table(self) -> String {
        match self {
            Self::Samples => "history_samples".to_owned(),
            Self::Blocks(tier) => format!("history_blocks_{}", tier as i16),
        }
    }

    /// How many hours one partition has, except for late samples.
    fn width(self) -> i64 {
        match self {
            Self::Samples => 1,
            Self::Blocks(Tier::Raw) => 24,
            Self::Blocks(Tier::Minute | Tier::Quarter | Tier::Hour | Tier::Processes) => 32 * 24,
        }
    }

    /// The partition that an hour belongs to, if it is created today.
    pub(crate) fn partition(self, hour: i64) -> Partition {
        let width = match self {
            Self::Samples if hour < this_hour() - FINE_HOURS => LATE_WIDTH,
            Self::Samples | Self::Blocks(_) => self.width(),
        };
        Partition { of: self, start: hour.div_euclid(width) * width, width }
    }
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub(crate) struct Partition {
    of: Parted,
    /// In hours since the epoch.
    pub(super) start: i64,
    /// In hours.
    width: i64,
}

impl Partition {
    pub(super) fn until(self) -> i64 {
        self.start + self.width
    }

    fn name(self) -> String {
        let (table, start, width) = (self.of.table(), self.start, self.width);
        if width == self.of.width() { format!("\"{table}_{start}\"") } else { format!("\"{table}_{start}_{width}\"") }
    }

    fn of_name(of: Parted, name: &str) -> Option<Self> {
        let rest = name.strip_prefix(&of.table())?.strip_prefix('_')?;
        let (start, width) = match rest.split_once('_') {
            Some((start, width)) => (start, width.parse().ok()?),
            None => (rest, of.width()),
        };
        Some(Self { of, start: start.parse().ok()?, width })
    }

    /// The parts of it that are in none of the others: all of it, or the hours in between.
    fn without(self, others: &[Self]) -> Vec<Self> {
        let overlap = |hour: i64| others.iter().any(|other| (other.start..other.until()).contains(&hour));
        if !(self.start..self.until()).any(overlap) {
            return vec![self];
        }
        let missing = (self.start..self.until()).filter(|hour| !overlap(*hour));
        missing.map(|start| Self { start, width: 1, ..self }).collect()
    }
}

/// The partitions that some blocks belong into, by the numbers of their tiers and the hours in which they begin.
pub(crate) fn of_blocks(blocks: &[(i16, i64)]) -> HashSet<Partition> {
    let partition = |(tier, start): &(i16, i64)| Some(Parted::Blocks(Tier::from_number(*tier)?).partition(*start));
    blocks.iter().filter_map(partition).collect()
}

/// The partitions that this instance has found or created.
#[derive(Clone, Default)]
pub(crate) struct Known(Arc<Mutex<HashSet<Partition>>>);

impl Known {
    fn lock(&self) -> MutexGuard<'_, HashSet<Partition>> {
        self.0.lock()
    }
}

impl Store {
    /// Runs a write that needs some partitions, and creates the missing ones.
    pub(crate) async fn in_partitions<T>(
        &self,
        needed: &HashSet<Partition>,
        write: impl AsyncFn() -> Result<T, StoreError>,
    ) -> Result<T, StoreError> {
        for _ in 1..TRIES {
            self.make(needed).await?;
            match write().await {
                Err(StoreError::Database(error)) if lacks_partition(&error) => {
                    // Another instance dropped it.
                    self.partitions.lock().clear();
                }
                written => return written,
            }
        }
        self.make(needed).await?;
        write().await
    }

    async fn make(&self, needed: &HashSet<Partition>) -> Result<(), StoreError> {
        let mut missing: Vec<Partition> = {
            let known = self.partitions.lock();
            needed.iter().filter(|partition| !known.contains(partition)).copied().collect()
        };
        missing.sort_unstable();
        for partition in missing {
            self.make_one(partition).await?;
            self.partitions.lock().insert(partition);
        }
        Ok(())
    }

    /// Creates a partition, unless another instance was faster.
    async fn make_one(&self, partition: Partition) -> Result<(), StoreError> {
        self.retried(|| async {
            if is_there(&self.write, partition).await? {
                return Ok(());
            }
            let table = partition.of.table();
            let transaction = self.write.begin().await?;
            transaction.execute_unprepared(&format!("SELECT pg_advisory_xact_lock({PARTITION_LOCK})")).await?;
            let others = list(&transaction, partition.of).await?;
            for partition in partition.without(&others) {
                let (name, from, until) = (partition.name(), partition.start, partition.until());
                transaction.execute_unprepared(&format!("CREATE TABLE {name} (LIKE {table} INCLUDING ALL)")).await?;
                let attach =
                    format!("ALTER TABLE {table} ATTACH PARTITION {name} FOR VALUES FROM ({from}) TO ({until})");
                transaction.execute_unprepared(&attach).await?;
            }
            Ok(transaction.commit().await?)
        })
        .await
    }

    /// The existing partitions, oldest first; none where nothing is partitioned.
    pub(super) async fn partitions_of(&self, of: Parted) -> Result<Vec<Partition>, StoreError> {
        list(&self.read, of).await
    }

    /// Drops a partition with everything in it. Returns whether it did: another instance may be doing it, or somebody reads.
    pub(super) async fn drop_partition(&self, partition: Partition) -> Result<bool, StoreError> {
        let drop = [format!("DROP TABLE {}", partition.name())];
        self.try_drop(partition, &drop, None).await
    }

    /// Drops an empty partition. Returns whether it did.
    pub(super) async fn drop_empty_partition(&self, partition: Partition) -> Result<bool, StoreError> {
        let name = partition.name();
        let look = format!("SELECT 1 FROM {name} LIMIT 1");
        let backend = self.write.get_database_backend();
        // Scanning deleted rows that were not vacuumed may take a while, so the first look takes no lock.
        match self.read.query_one_raw(Statement::from_string(backend, look.clone())).await {
            Ok(None) => {}
            Ok(Some(_)) => return Ok(false),
            Err(error) if is_in_the_way(&error) => return Ok(false),
            Err(error) => return Err(error.into()),
        }
        let (lock, drop) = (format!("LOCK TABLE {name} IN ACCESS EXCLUSIVE MODE"), format!("DROP TABLE {name}"));
        self.try_drop(partition, &[lock, drop], Some(&look)).await
    }

    /// Runs `look` before the last statement, which is only executed when it finds nothing.
    async fn try_drop(
        &self,
        partition: Partition,
        statements: &[String],
        look: Option<&str>,
    ) -> Result<bool, StoreError> {
        let transaction = self.write.begin().await?;
        let dropped = async {
            let backend = transaction.get_database_backend();
            let lock = format!("SELECT pg_try_advisory_xact_lock({PARTITION_LOCK}) AS got");
            let row = transaction.query_one_raw(Statement::from_string(backend, lock)).await?;
            if !row.map_or(Ok(false), |row| row.try_get("", "got"))? {
                return Ok(false);
            }
            transaction.execute_unprepared(LOCK_TIMEOUT).await?;
            let Some((drop, before)) = statements.split_last() else { return Ok(false) };
            for statement in before {
                transaction.execute_unprepared(statement).await?;
            }
            if let Some(look) = look
                && transaction.query_one_raw(Statement::from_string(backend, look)).await?.is_some()
            {
                return Ok(false);
            }
            transaction.execute_unprepared(drop).await?;
            Ok(true)
        };
        match dropped.await {
            Ok(true) => {
                transaction.commit().await?;
                self.partitions.lock().remove(&partition);
                Ok(true)
            }
            Ok(false) => Ok(false),
            Err(error) if is_in_the_way(&error) => Ok(false),
            Err(error) => Err(error.into()),
        }
    }
}

async fn list(connection: &impl ConnectionTrait, of: Parted) -> Result<Vec<Partition>, StoreError> {
    let query = "SELECT relname::text AS name FROM pg_inherits JOIN pg_class ON pg_class.oid = inhrelid \
                 WHERE inhparent = to_regclass($1)";
    let backend = connection.get_database_backend();
    let statement = Statement::from_sql_and_values(backend, query, [of.table().into()]);
    let mut partitions = Vec::new();
    for row in connection.query_all_raw(statement).await? {
        let name: String = row.try_get("", "name")?;
        partitions.extend(Partition::of_name(of, &name));
    }
    partitions.sort_unstable();
    Ok(partitions)
}

async fn is_there(connection: &impl ConnectionTrait, partition: Partition) -> Result<bool, StoreError> {
    let backend = connection.get_database_backend();
    let query = "SELECT to_regclass($1) IS NOT NULL AS there";
    let row =
        connection.query_one_raw(Statement::from_sql_and_values(backend, query, [partition.name().into()])).await?;
    Ok(row.map_or(Ok(false), |row| row.try_get("", "there"))?)
}

pub(super) fn this_hour() -> i64 {
    Timestamp::now().as_millis().div_euclid(3_600_000)
}

fn lacks_partition(error: &DbErr) -> bool {
    // These tables have no other check constraint, and the message is in the server's language.
    is_any(error, &[CHECK_VIOLATION])
}

/// Whether another transaction holds the lock or was faster.
fn is_in_the_way(error: &DbErr) -> bool {
    is_any(error, &[LOCK_NOT_AVAILABLE, DEADLOCK, UNDEFINED_TABLE, QUERY_CANCELED])
}

/// Whether PostgreSQL refused a statement with one of these codes.
pub(super) fn is_any(error: &DbErr, codes: &[&str]) -> bool {
    let (DbErr::Exec(RuntimeErr::SqlxError(error)) | DbErr::Query(RuntimeErr::SqlxError(error))) = error else {
        return false;
    };
    let code = error.as_database_error().and_then(|error| error.code());
    code.is_some_and(|code| codes.contains(&code.as_ref()))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn partition(start: i64, width: i64) -> Partition {
        Partition { of: Parted::Samples, start, width }
    }

    #[test]
    fn a_partition_takes_the_hours_that_others_left() {
        let day = partition(48, 24);
        let inside = [partition(50, 1), partition(60, 1)];

        assert_eq!(day.without(&[partition(24, 24), partition(72, 1)]), [day]);
        assert_eq!(day.without(&inside).len(), 22);
        assert_eq!(partition(50, 1).without(&[day]), []);
    }

    #[test]
    fn names_say_what_a_partition_holds() {
        for partition in [partition(-24, 24), partition(500_000, 1), Parted::Blocks(Tier::Raw).partition(30)] {
            let name = partition.name();
            assert_eq!(Partition::of_name(partition.of, name.trim_matches('"')), Some(partition), "{name}");
        }
    }
}
