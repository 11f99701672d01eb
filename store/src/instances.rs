//! The instances that share a database: which are alive, which shards each owns, and which sessions dead ones left.
//!
//! All times are the database's, so that the clocks of instances need not agree. Only PostgreSQL supports several instances.

use sea_orm::{ConnectionTrait, DatabaseBackend, DbErr, Statement, Value};
use signalbox_protocol::Timestamp;
use uuid::Uuid;

use super::server_events::NewServerEvent;
use super::{SHARDS, Store, StoreError, server_events, status_changes};

/// An instance that was not seen for this long is dead, and others may take what it held.
pub const DEAD_AFTER_MS: i64 = 8_000;

/// A sole instance reports more often that it is alive, so that its successor need not wait for long.
pub const SOLE_DEAD_AFTER_MS: i64 = 5_000;

/// The value of a sole instance in the column where others have the mark of their secrets.
const ALONE: &str = "alone";

/// The database's clock, in milliseconds since the epoch. It advances within a transaction.
pub(super) const NOW: &str = "(extract(epoch FROM clock_timestamp()) * 1000)::bigint";

/// Sessions of a dead instance that one transaction ends.
const SWEPT_AT_ONCE: i64 = 2_000;

/// An arbitrary number that must be the same in every instance.
const ENTER_LOCK: i64 = 0x5349_474e_414d;

/// An instance that starts.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct NewInstance {
    /// The instance's id.
    pub id: Uuid,
    /// The version that it runs.
    pub version: &'static str,
    /// Identifies its secrets, which all instances must share.
    pub mark: String,
}

/// Whether an instance may start.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Entered {
    /// It may.
    Yes,
    /// Another live instance has other secrets.
    OtherSecrets,
    /// Another live instance requires the database for itself.
    NotAlone,
}

/// What an instance learns when it reports that it is alive.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Beat {
    /// All live instances, including this one.
    pub alive: Vec<Uuid>,
    /// The shards that this one owns.
    pub shards: Vec<i16>,
}

/// A server whose session was lost with its instance.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Swept {
    /// The server.
    pub server_id: Uuid,
    /// The server's owner.
    pub owner_id: Uuid,
    /// The instance that held it.
    pub instance_id: Uuid,
}

impl Store {
    /// Whether an instance could register now. Changes nothing.
    pub async fn may_enter(&self, mark: &str) -> Result<Entered, StoreError> {
        self.retried(|| async { Ok(refusal(&self.read, mark).await?.unwrap_or(Entered::Yes)) }).await
    }

    /// Registers an instance that starts.
    pub async fn enter(&self, new: &NewInstance) -> Result<Entered, StoreError> {
        self.retried(|| self.try_enter(new)).await
    }

    async fn try_enter(&self, new: &NewInstance) -> Result<Entered, StoreError> {
        let transaction = self.write.begin().await?;
        run(&transaction, "SELECT pg_advisory_xact_lock($1)", [ENTER_LOCK.into()]).await?;
        if let Some(refused) = refusal(&transaction, &new.mark).await? {
            return Ok(refused);
        }
        // A dead sole instance must not return while this one runs.
        run(&transaction, "DELETE FROM instances WHERE mark = $1", [ALONE.into()]).await?;
        let insert = format!(
            "INSERT INTO instances (id, version, mark, is_draining, started_at, seen_at) \
             VALUES ($1, $2, $3, false, {NOW}, {NOW}) ON CONFLICT (id) DO UPDATE SET seen_at = excluded.seen_at"
        );
        run(&transaction, &insert, [new.id.into(), new.version.into(), new.mark.clone().into()]).await?;
        let shards = "INSERT INTO shards (shard, expires_at) SELECT shard, 0 FROM generate_series(0, $1) shard \
                      ON CONFLICT DO NOTHING";
        run(&transaction, shards, [(i32::from(SHARDS) - 1).into()]).await?;
        transaction.commit().await?;
        Ok(Entered::Yes)
    }

    /// Registers an instance that requires the database for itself. Returns the other instances that use it, with the time when
    /// each was last seen by the database's clock; then the instance is not registered. Nobody else can use an embedded
    /// database.
    pub async fn enter_alone(&self, id: Uuid, version: &'static str) -> Result<Vec<(Uuid, i64)>, StoreError> {
        if self.write.get_database_backend() != DatabaseBackend::Postgres {
            return Ok(Vec::new());
        }
        self.retried(|| self.try_enter_alone(id, version)).await
    }

    async fn try_enter_alone(&self, id: Uuid, version: &'static str) -> Result<Vec<(Uuid, i64)>, StoreError> {
        let transaction = self.write.begin().await?;
        run(&transaction, "SELECT pg_advisory_xact_lock($1)", [ENTER_LOCK.into()]).await?;
        let others = format!(
            "SELECT id, seen_at FROM instances WHERE id <> $1 AND seen_at > {NOW} - \
             CASE WHEN mark = $2 THEN {SOLE_DEAD_AFTER_MS} ELSE {DEAD_AFTER_MS} END"
        );
        let others = rows(&transaction, &others, [id.into(), ALONE.into()]).await?;
        let others = others.iter().map(|row| Ok((row.try_get_by_index(0)?, row.try_get_by_index(1)?)));
        let others = others.collect::<Result<Vec<(Uuid, i64)>, DbErr>>()?;
        if others.is_empty() {
            // Removes dead predecessors: one that wakes up finds that it has lost its place.
            run(&transaction, "DELETE FROM instances WHERE mark = $1", [ALONE.into()]).await?;
            let insert = format!(
                "INSERT INTO instances (id, version, mark, is_draining, started_at, seen_at) \
                 VALUES ($1, $2, $3, false, {NOW}, {NOW})"
            );
            run(&transaction, &insert, [id.into(), version.into(), ALONE.into()]).await?;
            transaction.commit().await?;
        }
        Ok(others)
    }

    /// Reports that the sole instance is alive. Returns whether it still owns the database.
    pub async fn beat_alone(&self, id: Uuid) -> Result<bool, StoreError> {
        let seen = format!("UPDATE instances SET seen_at = {NOW} WHERE id = $1");
        self.retried(|| async { Ok(run(&self.write, &seen, [id.into()]).await? > 0) }).await
    }

    /// Reports that an instance is alive, and assigns it its shards. None where the others took it for dead.
    pub async fn beat(&self, id: Uuid, is_draining: bool) -> Result<Option<Beat>, StoreError> {
        self.retried(|| self.try_beat(id, is_draining)).await
    }

    async fn try_beat(&self, id: Uuid, is_draining: bool) -> Result<Option<Beat>, StoreError> {
        let transaction = self.write.begin().await?;
        let seen = format!("UPDATE instances SET seen_at = {NOW}, is_draining = $2 WHERE id = $1");
        if run(&transaction, &seen, [id.into(), is_draining.into()]).await? == 0 {
            return Ok(None);
        }
        let alive =
            format!("SELECT id, is_draining FROM instances WHERE seen_at > {NOW} - {DEAD_AFTER_MS} ORDER BY id");
        let alive: Vec<(Uuid, bool)> = rows(&transaction, &alive, [])
            .await?
            .iter()
            .map(|row| Ok((row.try_get_by_index(0)?, row.try_get_by_index(1)?)))
            .collect::<Result<_, DbErr>>()?;
        let working = alive.iter().filter(|(_, is_draining)| !is_draining).count();
        let fair = if is_draining { 0 } else { usize::from(SHARDS.unsigned_abs()).div_ceil(working.max(1)) };
        let shards = divide(&transaction, id, fair).await?;
        transaction.commit().await?;
        Ok(Some(Beat { alive: alive.into_iter().map(|(id, _)| id).collect(), shards }))
    }

    /// Ends some of the sessions that dead instances left, and removes the instances without any. Returns the servers; there
    /// may be more until it returns none.
    pub async fn sweep_dead(&self) -> Result<Vec<Swept>, StoreError> {
        self.retried(|| self.try_sweep()).await
    }

    async fn try_sweep(&self) -> Result<Vec<Swept>, StoreError> {
        let transaction = self.write.begin().await?;
        let dead = format!(
            "SELECT id, seen_at FROM instances WHERE seen_at < {NOW} - {DEAD_AFTER_MS} \
             ORDER BY id LIMIT 1 FOR UPDATE SKIP LOCKED"
        );
        let Some(row) = rows(&transaction, &dead, []).await?.pop() else { return Ok(Vec::new()) };
        let (dead, seen_at): (Uuid, i64) = (row.try_get_by_index(0)?, row.try_get_by_index(1)?);
        // The instance held them until it was last seen.
        let sweep = "UPDATE servers SET session_id = NULL, instance_id = NULL, \
                     last_seen_at = GREATEST(last_seen_at, $2) \
                     WHERE id IN (SELECT id FROM servers WHERE instance_id = $1 ORDER BY id LIMIT $3 FOR NO KEY UPDATE) \
                     RETURNING id, owner_id, last_seen_at";
        let swept = rows(&transaction, sweep, [dead.into(), seen_at.into(), SWEPT_AT_ONCE.into()]).await?;
        if swept.is_empty() {
            forget(&transaction, dead).await?;
        }
        let abandoned = swept.iter().map(|row| abandoned_by(row, 2)).collect::<Result<Vec<_>, _>>()?;
        server_events::insert(&transaction, abandoned).await?;
        transaction.commit().await?;
        let swept = swept.iter().map(|row| {
            Ok(Swept { server_id: row.try_get_by_index(0)?, owner_id: row.try_get_by_index(1)?, instance_id: dead })
        });
        Ok(swept.collect::<Result<_, DbErr>>()?)
    }

    /// Removes an instance that has ended, with all that it held.
    pub async fn leave(&self, id: Uuid) -> Result<(), StoreError> {
        self.retried(|| self.try_leave(id)).await
    }

    async fn try_leave(&self, id: Uuid) -> Result<(), StoreError> {
        let transaction = self.write.begin().await?;
        // In order, like every transaction that locks several.
        let sessions = "UPDATE servers SET session_id = NULL, instance_id = NULL WHERE id IN \
                        (SELECT id FROM servers WHERE instance_id = $1 ORDER BY id FOR NO KEY UPDATE) \
                        RETURNING id, last_seen_at";
        let left = rows(&transaction, sessions, [id.into()]).await?;
        let abandoned = left.iter().map(|row| abandoned_by(row, 1)).collect::<Result<Vec<_>, _>>()?;
        server_events::insert(&transaction, abandoned).await?;
        forget(&transaction, id).await?;
        Ok(transaction.commit().await?)
    }
}

/// Renews the shards of an instance, releases those above its fair number, and takes free ones where it has too few.
async fn divide(transaction: &impl ConnectionTrait, id: Uuid, fair: usize) -> Result<Vec<i16>, StoreError> {
    let shards = |rows: Vec<sea_orm::QueryResult>| {
        rows.iter().map(|row| row.try_get_by_index::<i16>(0)).collect::<Result<Vec<i16>, DbErr>>()
    };
    let renew = format!(
        "UPDATE shards SET expires_at = {NOW} + {DEAD_AFTER_MS} WHERE instance_id = $1 AND expires_at > {NOW} \
         RETURNING shard"
    );
    let mut own = shards(rows(transaction, &renew, [id.into()]).await?)?;
    own.sort_unstable();
    if own.len() > fair {
        let surplus = own.split_off(fair);
        let give = "UPDATE shards SET instance_id = NULL, expires_at = 0 WHERE instance_id = $1 AND shard = ANY($2)";
        let surplus: Vec<Value> = surplus.into_iter().map(Value::from).collect();
        let surplus = Value::Array(sea_orm::sea_query::ArrayType::SmallInt, Some(Box::new(surplus)));
        run(transaction, give, [id.into(), surplus]).await?;
    } else if own.len() < fair {
        let take = format!(
            "UPDATE shards SET instance_id = $1, expires_at = {NOW} + {DEAD_AFTER_MS} WHERE shard IN \
             (SELECT shard FROM shards WHERE expires_at < {NOW} ORDER BY shard LIMIT $2 FOR UPDATE SKIP LOCKED) \
             RETURNING shard"
        );
        let lacking = i64::try_from(fair - own.len()).unwrap_or_default();
        own.extend(shards(rows(transaction, &take, [id.into(), lacking.into()]).await?)?);
    }
    Ok(own)
}

async fn forget(transaction: &impl ConnectionTrait, id: Uuid) -> Result<(), StoreError> {
    run(transaction, "UPDATE shards SET instance_id = NULL, expires_at = 0 WHERE instance_id = $1", [id.into()])
        .await?;
    run(transaction, "DELETE FROM instances WHERE id = $1", [id.into()]).await?;
    Ok(())
}

/// The event of a server whose instance vanished. The row has the server's id first, and the time when it was last seen at
/// `seen_at`.
fn abandoned_by(row: &sea_orm::QueryResult, seen_at: usize) -> Result<NewServerEvent, DbErr> {
    let seen: Option<i64> = row.try_get_by_index(seen_at)?;
    Ok(status_changes::abandoned(row.try_get_by_index(0)?, seen.map(Timestamp::from_millis)))
}

/// Why an instance with this mark may not start, if so.
async fn refusal(connection: &impl ConnectionTrait, mark: &str) -> Result<Option<Entered>, StoreError> {
    let alone = format!("SELECT 1 FROM instances WHERE mark = $1 AND seen_at > {NOW} - {SOLE_DEAD_AFTER_MS} LIMIT 1");
    if !rows(connection, &alone, [ALONE.into()]).await?.is_empty() {
        return Ok(Some(Entered::NotAlone));
    }
    let others =
        format!("SELECT 1 FROM instances WHERE mark NOT IN ($1, $2) AND seen_at > {NOW} - {DEAD_AFTER_MS} LIMIT 1");
    let others = rows(connection, &others, [mark.into(), ALONE.into()]).await?;
    Ok((!others.is_empty()).then_some(Entered::OtherSecrets))
}

/// Returns how many rows were changed.
async fn run(
    connection: &impl ConnectionTrait,
    sql: &str,
    values: impl IntoIterator<Item = Value>,
) -> Result<u64, StoreError> {
    let statement = Statement::from_sql_and_values(DatabaseBackend::Postgres, sql, values);
    Ok(connection.execute_raw(statement).await?.rows_affected())
}

async fn rows(
    connection: &impl ConnectionTrait,
    sql: &str,
    values: impl IntoIterator<Item = Value>,
) -> Result<Vec<sea_orm::QueryResult>, StoreError> {
    let statement = Statement::from_sql_and_values(DatabaseBackend::Postgres, sql, values);
    Ok(connection.query_all_raw(statement).await?)
}
