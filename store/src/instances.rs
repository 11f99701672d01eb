//! The instances that share a database: which of them are alive, what each looks after, and whose sessions are left over.
//!
//! All times are the database's, so that the clocks of instances need not agree. Only PostgreSQL has several instances.

use sea_orm::{ConnectionTrait, DatabaseBackend, DbErr, Statement, Value};
use signalbox_protocol::Timestamp;
use uuid::Uuid;

use super::server_events::NewServerEvent;
use super::{SHARDS, Store, StoreError, server_events, turns};

/// An instance that was not seen for so long is dead, and what it held is anybody's.
pub const DEAD_AFTER_MS: i64 = 8_000;

/// An instance that is alone says more often that it is alive, so that its successor need not wait for long.
pub const SOLE_DEAD_AFTER_MS: i64 = 5_000;

/// What the row of an instance that is alone has where others have the mark of their secrets.
const ALONE: &str = "alone";

/// The database's clock, in milliseconds since the epoch. It goes on within a transaction.
pub(super) const NOW: &str = "(extract(epoch FROM clock_timestamp()) * 1000)::bigint";

/// Sessions of a dead instance that are ended in one transaction.
const SWEPT_AT_ONCE: i64 = 2_000;

/// Any number will do, as long as every instance takes the same one.
const ENTER_LOCK: i64 = 0x5349_474e_414d;

/// An instance that begins.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct NewInstance {
    pub id: Uuid,
    pub version: &'static str,
    /// What its secrets are known by: the same for all.
    pub mark: String,
}

/// Why an instance may not begin.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Entered {
    Yes,
    /// Another one that is alive has other secrets.
    OtherSecrets,
    /// Another one that is alive wants the database for itself.
    NotAlone,
}

/// What an instance learns when it says that it is alive.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Beat {
    /// All that are alive, this one among them.
    pub alive: Vec<Uuid>,
    /// What this one looks after.
    pub shards: Vec<i16>,
}

/// A server whose session was lost with its instance.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Swept {
    pub server_id: Uuid,
    pub owner_id: Uuid,
    /// The instance that held it.
    pub instance_id: Uuid,
}

impl Store {
    /// Writes that an instance begins.
    pub async fn enter(&self, new: &NewInstance) -> Result<Entered, StoreError> {
        self.retried(|| self.try_enter(new)).await
    }

    async fn try_enter(&self, new: &NewInstance) -> Result<Entered, StoreError> {
        let transaction = self.write.begin().await?;
        run(&transaction, "SELECT pg_advisory_xact_lock($1)", [ENTER_LOCK.into()]).await?;
        let alone =
            format!("SELECT 1 FROM instances WHERE mark = $1 AND seen_at > {NOW} - {SOLE_DEAD_AFTER_MS} LIMIT 1");
        if !rows(&transaction, &alone, [ALONE.into()]).await?.is_empty() {
            return Ok(Entered::NotAlone);
        }
        // One that is dead must not come back beside this one.
        run(&transaction, "DELETE FROM instances WHERE mark = $1", [ALONE.into()]).await?;
        let others = format!("SELECT 1 FROM instances WHERE mark <> $1 AND seen_at > {NOW} - {DEAD_AFTER_MS} LIMIT 1");
        if !rows(&transaction, &others, [new.mark.clone().into()]).await?.is_empty() {
            return Ok(Entered::OtherSecrets);
        }
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

    /// Writes that an instance begins that wants the database for itself. Gives which others use it and when each was last
    /// seen, by the database's clock: then it has not begun. Nobody else can use an embedded database.
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
            // Those before this one that are dead: one that wakes up again finds that it has lost its place.
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

    /// Writes that the instance is alive that has the database for itself. Gives whether it still has.
    pub async fn beat_alone(&self, id: Uuid) -> Result<bool, StoreError> {
        let seen = format!("UPDATE instances SET seen_at = {NOW} WHERE id = $1");
        self.retried(|| async { Ok(run(&self.write, &seen, [id.into()]).await? > 0) }).await
    }

    /// Writes that an instance is alive, and gives it its part of the shards. None where it was taken for dead.
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

    /// Ends some of the sessions that dead instances left, and forgets those that have none left. Gives the servers; as
    /// long as there are some, there may be more.
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
        // Until it was last seen it held them.
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

    /// Writes that an instance has ended, with all it held.
    pub async fn leave(&self, id: Uuid) -> Result<(), StoreError> {
        self.retried(|| self.try_leave(id)).await
    }

    async fn try_leave(&self, id: Uuid) -> Result<(), StoreError> {
        let transaction = self.write.begin().await?;
        // In order, as everybody does who locks several.
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

/// Renews the shards of an instance, gives up those that it has too many of, and takes free ones where it has too few.
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

/// The event of a server that an instance let go of without a word. Its id comes first, when it was seen last at a place.
fn abandoned_by(row: &sea_orm::QueryResult, seen_at: usize) -> Result<NewServerEvent, DbErr> {
    let seen: Option<i64> = row.try_get_by_index(seen_at)?;
    Ok(turns::abandoned(row.try_get_by_index(0)?, seen.map(Timestamp::from_millis)))
}

/// Gives how many rows were changed.
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
