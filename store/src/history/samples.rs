//! Unsealed samples in a table that every instance reads, on PostgreSQL. An embedded database has them in its journal and in
//! memory.

use std::collections::HashSet;

use entity::{Millis, history_journal, history_sample, sample};
use sea_orm::{
    ColumnTrait, Condition, ConnectionTrait, DatabaseBackend, DbErr, EntityTrait, ExprTrait, PaginatorTrait,
    QueryFilter, QueryOrder, QuerySelect, Statement, Value,
};
use uuid::Uuid;

use super::journal::ADOPT_ROWS;
use super::partitions::{Parted, Partition, this_hour};
use super::{Hours, PieceInfo};
use crate::{Share, Store, StoreError, has_replaced};

const HOUR_MS: i64 = 3_600_000;

/// Held while an instance converts what an earlier version left, so that instances that start together take turns. An arbitrary
/// number that must be the same in every instance.
const TAKE_OVER_LOCK: i64 = 0x5349_474e_5441;

/// For how many hours the table of a finished hour stays, empty or not: late samples mostly come soon.
const LINGERS_HOURS: i64 = 3;

/// One row per sample, in the order of the key, so that two instances that write the same wait for each other and never
/// deadlock. The first of two with one key counts. Returns the sessions whose samples were omitted, whether the server
/// exists, and which session holds it.
const INSERT: &str = "\
    WITH new AS (SELECT * FROM unnest($1::uuid[], $2::uuid[], $3::bigint[], $4::bigint[], $5::bytea[]) \
        WITH ORDINALITY AS new (server_id, session_id, hour, at, data, place)), \
    looked AS (SELECT come.server_id, come.session_id, id IS NOT NULL AS is_there, \
        servers.session_id AS holder, id IS NOT NULL AND (come.session_id = $6 OR servers.session_id IS NOT DISTINCT FROM come.session_id) AS is_held \
        FROM (SELECT DISTINCT server_id, session_id FROM new) AS come LEFT JOIN servers ON id = come.server_id), \
    written AS (INSERT INTO history_samples (server_id, hour, at, data) \
        SELECT server_id, hour, at, data FROM new JOIN looked USING (server_id, session_id) WHERE is_held \
        ORDER BY server_id, hour, at, place ON CONFLICT DO NOTHING) \
    SELECT server_id, session_id, is_there, holder FROM looked WHERE NOT is_held";

/// Each server is searched in the index, and none of its samples is counted.
const DUE: &str = "\
    WITH RECURSIVE due AS ( \
        (SELECT server_id FROM history_samples WHERE hour = $1 ORDER BY server_id LIMIT 1) \
        UNION ALL \
        SELECT (SELECT next.server_id FROM history_samples AS next \
            WHERE next.hour = $1 AND next.server_id > due.server_id ORDER BY next.server_id LIMIT 1) \
        FROM due WHERE due.server_id IS NOT NULL) \
    SELECT server_id FROM due WHERE server_id IS NOT NULL AND server_id <> ALL ($2::uuid[])";

const NEWEST: &str = "\
    SELECT newest.server_id, newest.at, newest.data FROM unnest($1::uuid[]) AS wanted (id) CROSS JOIN LATERAL \
        (SELECT server_id, at, data FROM history_samples WHERE server_id = wanted.id AND hour <= $2 AND at <= $3 \
        ORDER BY hour DESC, at DESC LIMIT 1) AS newest";

/// An unsealed sample.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct FreshSample {
    /// The server.
    pub server_id: Uuid,
    /// The session that sent it, which must hold the server when it is written; nil where that does not matter.
    pub session_id: Uuid,
    /// When it was taken, in milliseconds since the epoch.
    pub at: i64,
    /// The sample in the format of `signalbox_history::codec`.
    pub data: Vec<u8>,
}

impl FreshSample {
    /// In hours since the epoch.
    pub fn hour(&self) -> i64 {
        self.at.div_euclid(HOUR_MS)
    }
}

impl From<history_sample::Model> for FreshSample {
    fn from(row: history_sample::Model) -> Self {
        Self { server_id: row.server_id, session_id: Uuid::nil(), at: row.at, data: row.data }
    }
}

/// The partitions that these samples belong to.
pub(crate) fn partitions(samples: &[FreshSample]) -> HashSet<Partition> {
    samples.iter().map(|sample| Parted::Samples.partition(sample.hour())).collect()
}

/// Samples that were not written.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct LeftOut {
    /// The server.
    pub server_id: Uuid,
    /// The session that sent them.
    pub session_id: Uuid,
    /// Why.
    pub why: Why,
}

/// Why samples were not written.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Why {
    /// The server was deleted.
    Gone,
    /// Another session holds the server.
    Replaced,
    /// No session holds the server, because other instances took this one for dead. Or an earlier one does, because the database
    /// has forgotten this one, as after a failover.
    Released,
}

/// Writes samples, except those of deleted servers and of sessions that have lost their server, which it returns.
pub(crate) async fn insert(
    connection: &impl ConnectionTrait,
    samples: &[FreshSample],
) -> Result<Vec<LeftOut>, StoreError> {
    if samples.is_empty() {
        return Ok(Vec::new());
    }
    let values: [Value; 6] = [
        samples.iter().map(|sample| sample.server_id).collect::<Vec<_>>().into(),
        samples.iter().map(|sample| sample.session_id).collect::<Vec<_>>().into(),
        samples.iter().map(FreshSample::hour).collect::<Vec<_>>().into(),
        samples.iter().map(|sample| sample.at).collect::<Vec<_>>().into(),
        samples.iter().map(|sample| sample.data.clone()).collect::<Vec<_>>().into(),
        Uuid::nil().into(),
    ];
    let statement = Statement::from_sql_and_values(DatabaseBackend::Postgres, INSERT, values);
    let rows = connection.query_all_raw(statement).await?;
    let left_out = rows.iter().map(|row| {
        let session_id: Uuid = row.try_get("", "session_id")?;
        let holder: Option<Uuid> = row.try_get("", "holder")?;
        let why = match (row.try_get("", "is_there")?, holder) {
            (false, _) => Why::Gone,
            (true, Some(holder)) if has_replaced(holder, session_id) => Why::Replaced,
            (true, _) => Why::Released,
        };
        Ok(LeftOut { server_id: row.try_get("", "server_id")?, session_id, why })
    });
    Ok(left_out.collect::<Result<_, DbErr>>()?)
}

impl Store {
    /// Whether unsealed samples are in a table, where every instance finds them.
    pub fn has_sample_table(&self) -> bool {
        self.write.get_database_backend() == DatabaseBackend::Postgres
    }

    /// Samples of a server taken in `from..=to` (milliseconds since the epoch), oldest first, at most `limit`.
    pub async fn samples(
        &self,
        server_id: Uuid,
        (from, to): (i64, i64),
        limit: u64,
    ) -> Result<Vec<FreshSample>, StoreError> {
        let rows = history_sample::Entity::find()
            .filter(taken(server_id, from, to))
            .order_by_asc(history_sample::Column::Hour)
            .order_by_asc(history_sample::Column::At)
            .limit(limit)
            .all(&self.read)
            .await?;
        Ok(rows.into_iter().map(FreshSample::from).collect())
    }

    /// How many unsealed samples of a server were taken in `from..=to`.
    pub async fn count_samples(&self, server_id: Uuid, (from, to): (i64, i64)) -> Result<u64, StoreError> {
        Ok(history_sample::Entity::find().filter(taken(server_id, from, to)).count(&self.read).await?)
    }

    /// Which of some hours have unsealed samples.
    pub async fn sample_hours(&self, hours: Hours) -> Result<Vec<i64>, StoreError> {
        let found = history_sample::Entity::find()
            .select_only()
            .column(history_sample::Column::Hour)
            .filter(history_sample::Column::ServerId.eq(hours.server_id))
            .filter(history_sample::Column::Hour.gte(hours.from))
            .filter(history_sample::Column::Hour.lt(hours.until))
            .distinct()
            .into_tuple()
            .all(&self.read)
            .await?;
        Ok(found)
    }

    /// The newest unsealed sample of each of these servers up to `until` (milliseconds since the epoch).
    pub async fn newest_samples(&self, servers: &[Uuid], until: i64) -> Result<Vec<FreshSample>, StoreError> {
        let values: [Value; 3] = [servers.to_vec().into(), until.div_euclid(HOUR_MS).into(), until.into()];
        let statement = Statement::from_sql_and_values(DatabaseBackend::Postgres, NEWEST, values);
        let rows = self.read.query_all_raw(statement).await?;
        let fresh = rows.iter().map(|row| {
            let (server_id, at, data) =
                (row.try_get("", "server_id")?, row.try_get("", "at")?, row.try_get("", "data")?);
            Ok(FreshSample { server_id, session_id: Uuid::nil(), at, data })
        });
        Ok(fresh.collect::<Result<_, sea_orm::DbErr>>()?)
    }

    /// Hours before `before` that have samples, of any server of a share except these, oldest first. It does not count the
    /// samples.
    pub async fn due_samples(&self, before: i64, but: &[Uuid], share: &Share) -> Result<Vec<PieceInfo>, StoreError> {
        let mut due = Vec::new();
        for partition in self.partitions_of(Parted::Samples).await? {
            for hour in partition.start..Ord::min(partition.until(), before) {
                let values: [Value; 2] = [hour.into(), but.to_vec().into()];
                let statement = Statement::from_sql_and_values(DatabaseBackend::Postgres, DUE, values);
                for row in self.read.query_all_raw(statement).await? {
                    let server_id = row.try_get("", "server_id")?;
                    if share.holds(server_id) {
                        due.push(PieceInfo { server_id, hour, samples: 0, cells: 0 });
                    }
                }
            }
        }
        Ok(due)
    }

    /// Drops tables of samples that are empty or older than the retention: before `first_kept`, in hours since the epoch.
    pub async fn drop_samples(&self, first_kept: i64) -> Result<(), StoreError> {
        if !self.has_sample_table() {
            return Ok(());
        }
        let lingering = this_hour() - LINGERS_HOURS;
        for partition in self.partitions_of(Parted::Samples).await? {
            if partition.until() <= first_kept {
                self.drop_partition(partition).await?;
            } else if partition.until() <= lingering {
                self.drop_empty_partition(partition).await?;
            }
        }
        Ok(())
    }

    /// Writes the samples of rows of the journal, and deletes the rows. Returns whether it did; otherwise another instance was
    /// faster.
    pub async fn take_over_journal(&self, rows: &[i64], samples: &[FreshSample]) -> Result<bool, StoreError> {
        let take = || async {
            let transaction = self.write.begin().await?;
            transaction.execute_unprepared(&format!("SELECT pg_advisory_xact_lock({TAKE_OVER_LOCK})")).await?;
            let these = history_journal::Column::Id.is_in(rows.iter().copied());
            let gone = history_journal::Entity::delete_many().filter(these).exec(&transaction).await?.rows_affected;
            if gone != rows.len() as u64 {
                return Ok(false);
            }
            insert(&transaction, samples).await?;
            transaction.commit().await?;
            Ok(true)
        };
        self.in_partitions(&partitions(samples), async || self.retried(take).await).await
    }

    /// Moves some samples in the first format of the history, and deletes those from before `first_kept`, in hours since the
    /// epoch. Returns how many there were.
    pub async fn take_over_samples(&self, first_kept: i64) -> Result<usize, StoreError> {
        let rows = sample::Entity::find()
            .order_by_asc(sample::Column::ServerId)
            .order_by_asc(sample::Column::At)
            .limit(ADOPT_ROWS)
            .all(&self.read)
            .await?;
        let Some(last) = rows.last() else { return Ok(0) };
        let (server_id, at, count) = (last.server_id, last.at, rows.len());
        let mut samples: Vec<FreshSample> = rows
            .into_iter()
            .map(|row| FreshSample { server_id: row.server_id, session_id: Uuid::nil(), at: row.at.0, data: row.data })
            .collect();
        samples.retain(|sample| sample.hour() >= first_kept);
        let take = || async {
            let transaction = self.write.begin().await?;
            transaction.execute_unprepared(&format!("SELECT pg_advisory_xact_lock({TAKE_OVER_LOCK})")).await?;
            let earlier = sample::Column::ServerId.lt(server_id);
            let same = sample::Column::ServerId.eq(server_id).and(sample::Column::At.lte(Millis(at.0)));
            let gone = sample::Entity::delete_many().filter(earlier.or(same)).exec(&transaction).await?.rows_affected;
            // Otherwise another instance was faster.
            if gone == count as u64 {
                insert(&transaction, &samples).await?;
                transaction.commit().await?;
            }
            Ok(())
        };
        self.in_partitions(&partitions(&samples), async || self.retried(take).await).await?;
        Ok(count)
    }
}

fn taken(server_id: Uuid, from: i64, to: i64) -> Condition {
    Condition::all()
        .add(history_sample::Column::ServerId.eq(server_id))
        // Lets PostgreSQL select the partitions.
        .add(history_sample::Column::Hour.gte(from.div_euclid(HOUR_MS)))
        .add(history_sample::Column::Hour.lte(to.div_euclid(HOUR_MS)))
        .add(history_sample::Column::At.gte(from))
        .add(history_sample::Column::At.lte(to))
}
