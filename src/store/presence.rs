//! What agents cause to be written, several of them in one transaction.

use std::collections::{BTreeMap, BTreeSet, HashSet};

use entity::{Millis, api_key, server};
use sea_orm::sea_query::Expr;
use sea_orm::{ColumnTrait, ConnectionTrait, DbErr, EntityTrait, QueryFilter, Statement, Value};
use signalbox_protocol::Timestamp;
use uuid::Uuid;

use super::history::{FreshSample, LeftOut, insert_journal, insert_samples, partitions_of_samples};
use super::{Store, StoreError};

/// An agent authenticated.
#[derive(Debug, Clone)]
pub struct Connected {
    pub server_id: Uuid,
    pub session_id: Uuid,
    pub key_id: Uuid,
    /// What the agent said of itself, as JSON.
    pub agent: String,
    pub at: Timestamp,
    /// Where there are several instances.
    pub claim: Option<Claim>,
}

/// What an instance goes by that takes hold of a server: nobody has since it looked.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Claim {
    pub instance_id: Uuid,
    /// The server's when the agent's key was looked up.
    pub epoch: i64,
}

/// An agent's session ended.
#[derive(Debug, Clone)]
pub struct Disconnected {
    pub server_id: Uuid,
    pub session_id: Uuid,
    /// Sessions that it took the server over from: one of them is written still, if all newer ones ended half-way.
    pub replaced: Vec<Uuid>,
    pub last_seen_at: Timestamp,
}

/// Everything that one group commit writes.
#[derive(Debug, Default)]
pub struct Commit {
    /// Samples, as a row of the journal; none when there are none.
    pub journal: Option<Vec<u8>>,
    /// Samples, where they lie in a table.
    pub samples: Vec<FreshSample>,
    pub connected: Vec<Connected>,
    pub disconnected: Vec<Disconnected>,
    pub seen: Vec<(Uuid, Timestamp)>,
}

/// What became of a group commit.
#[derive(Debug, Default, Clone, PartialEq, Eq)]
pub struct Committed {
    /// The number of the row of the journal, if there was one to write.
    pub journal: Option<i64>,
    /// Whose samples were not written.
    pub left_out: Vec<LeftOut>,
    /// Sessions that did not take hold of their server: another was faster.
    pub refused: Vec<Uuid>,
}

impl Commit {
    pub fn is_empty(&self) -> bool {
        let Self { journal, samples, connected, disconnected, seen } = self;
        journal.is_none() && samples.is_empty() && connected.is_empty() && disconnected.is_empty() && seen.is_empty()
    }

    /// Every server of which something else than samples is written, in order.
    fn servers(&self) -> Vec<Uuid> {
        let connected = self.connected.iter().map(|connected| connected.server_id);
        let disconnected = self.disconnected.iter().map(|disconnected| disconnected.server_id);
        let seen = self.seen.iter().map(|(server_id, _)| *server_id);
        connected.chain(disconnected).chain(seen).collect::<BTreeSet<_>>().into_iter().collect()
    }
}

/// Several commits at once, of several instances, take rows in the same order and so wait for each other at most.
const HOLD_SERVERS: &str = "SELECT id FROM servers WHERE id = ANY ($1::uuid[]) ORDER BY id FOR NO KEY UPDATE";

/// The epoch counts who took hold of a server. Whoever has not seen the last of them is refused, and so is a session that
/// is older than the one there (its id begins with its time): its handshake took long. Of -1 neither is asked, nor of
/// what was written before, where only the answer was lost.
const CONNECTED: &str = "\
    UPDATE servers SET session_id = new.session_id, agent = new.agent, last_seen_at = new.at, \
        instance_id = NULLIF(new.instance_id, $7), session_epoch = session_epoch + 1 \
    FROM unnest($1::uuid[], $2::uuid[], $3::text[], $4::bigint[], $5::uuid[], $6::bigint[]) \
        AS new (id, session_id, agent, at, instance_id, epoch) \
    WHERE servers.id = new.id AND (new.epoch = -1 OR (servers.session_epoch = new.epoch \
        AND (servers.session_id IS NULL OR servers.session_id < new.session_id)) \
        OR servers.session_id = new.session_id) \
    RETURNING servers.session_id";

const KEYS_USED: &str = "\
    WITH held AS (SELECT id FROM api_keys WHERE id = ANY ($1::uuid[]) ORDER BY id FOR NO KEY UPDATE) \
    UPDATE api_keys SET last_used_at = new.at FROM unnest($1::uuid[], $2::bigint[]) AS new (id, at), held \
    WHERE api_keys.id = held.id AND held.id = new.id";

const SEEN: &str = "\
    UPDATE servers SET last_seen_at = GREATEST(last_seen_at, new.at) FROM unnest($1::uuid[], $2::bigint[]) AS new (id, at) \
    WHERE servers.id = new.id";

impl Store {
    /// Writes all of it or nothing.
    pub async fn commit(&self, writer: Uuid, commit: &Commit) -> Result<Committed, StoreError> {
        let needed = partitions_of_samples(&commit.samples);
        self.in_partitions(&needed, async || self.retried(|| self.try_commit(writer, commit)).await).await
    }

    async fn try_commit(&self, writer: Uuid, commit: &Commit) -> Result<Committed, StoreError> {
        let transaction = self.write.begin().await?;
        let mut committed = Committed::default();
        if let Some(data) = &commit.journal {
            committed.journal = Some(insert_journal(&transaction, writer, data.clone()).await?);
        }
        committed.left_out = insert_samples(&transaction, &commit.samples).await?;
        // In the order in which they happened: a session that came and went in one commit ends as gone.
        if self.has_sample_table() {
            hold(&transaction, commit).await?;
            committed.refused = write_all_connected(&transaction, &commit.connected).await?;
        } else {
            for connected in &commit.connected {
                write_connected(&transaction, connected).await?;
            }
        }
        for disconnected in &commit.disconnected {
            write_disconnected(&transaction, disconnected).await?;
        }
        if self.has_sample_table() {
            write_all_seen(&transaction, &commit.seen).await?;
        } else {
            for (server_id, at) in &commit.seen {
                server::Entity::update_many()
                    .col_expr(server::Column::LastSeenAt, Millis::from(*at).into())
                    .filter(server::Column::Id.eq(*server_id))
                    .exec(&transaction)
                    .await?;
            }
        }
        transaction.commit().await?;
        Ok(committed)
    }

    /// Marks every server offline: after a start no session can be left from before.
    pub async fn forget_sessions(&self) -> Result<(), StoreError> {
        server::Entity::update_many()
            .col_expr(server::Column::SessionId, Expr::value(None::<Uuid>))
            .col_expr(server::Column::InstanceId, Expr::value(None::<Uuid>))
            .filter(server::Column::SessionId.is_not_null())
            .exec(&self.write)
            .await?;
        Ok(())
    }
}

async fn hold(connection: &impl ConnectionTrait, commit: &Commit) -> Result<(), StoreError> {
    let servers = commit.servers();
    if servers.is_empty() { Ok(()) } else { execute(connection, HOLD_SERVERS, [Value::from(servers)]).await }
}

/// Gives the sessions that did not take hold of their server.
async fn write_all_connected(
    connection: &impl ConnectionTrait,
    connected: &[Connected],
) -> Result<Vec<Uuid>, StoreError> {
    if connected.is_empty() {
        return Ok(Vec::new());
    }
    // The last one counts.
    let by_server: BTreeMap<Uuid, &Connected> = connected.iter().map(|new| (new.server_id, new)).collect();
    let last: Vec<&Connected> = by_server.into_values().collect();
    let times = |new: &&Connected| new.at.as_millis();
    let instance = |new: &&Connected| new.claim.map_or(Uuid::nil(), |claim| claim.instance_id);
    let epoch = |new: &&Connected| new.claim.map_or(-1, |claim| claim.epoch);
    let values: [Value; 7] = [
        last.iter().map(|new| new.server_id).collect::<Vec<_>>().into(),
        last.iter().map(|new| new.session_id).collect::<Vec<_>>().into(),
        last.iter().map(|new| new.agent.clone()).collect::<Vec<_>>().into(),
        last.iter().map(times).collect::<Vec<_>>().into(),
        last.iter().map(instance).collect::<Vec<_>>().into(),
        last.iter().map(epoch).collect::<Vec<_>>().into(),
        Uuid::nil().into(),
    ];
    let statement = Statement::from_sql_and_values(connection.get_database_backend(), CONNECTED, values);
    let rows = connection.query_all_raw(statement).await?;
    let held = rows.iter().map(|row| row.try_get_by_index(0)).collect::<Result<HashSet<Uuid>, DbErr>>()?;
    // Of a server that is gone nothing is held either, and its session is told so in another way.
    let claimed = connected.iter().filter(|new| new.claim.is_some()).map(|new| new.session_id);
    let refused = claimed.filter(|session_id| !held.contains(session_id)).collect();
    let by_key: BTreeMap<Uuid, &Connected> = connected.iter().map(|new| (new.key_id, new)).collect();
    let (keys, times): (Vec<Uuid>, Vec<i64>) = by_key.iter().map(|(key_id, new)| (*key_id, times(new))).unzip();
    execute(connection, KEYS_USED, [keys.into(), times.into()]).await?;
    Ok(refused)
}

async fn write_all_seen(connection: &impl ConnectionTrait, seen: &[(Uuid, Timestamp)]) -> Result<(), StoreError> {
    if seen.is_empty() {
        return Ok(());
    }
    let (servers, times): (Vec<Uuid>, Vec<i64>) =
        seen.iter().map(|(server_id, at)| (*server_id, at.as_millis())).unzip();
    execute(connection, SEEN, [servers.into(), times.into()]).await
}

async fn execute<const N: usize>(
    connection: &impl ConnectionTrait,
    statement: &str,
    values: [Value; N],
) -> Result<(), StoreError> {
    let backend = connection.get_database_backend();
    connection.execute_raw(Statement::from_sql_and_values(backend, statement, values)).await?;
    Ok(())
}

async fn write_connected(connection: &impl ConnectionTrait, connected: &Connected) -> Result<(), StoreError> {
    server::Entity::update_many()
        .col_expr(server::Column::SessionId, connected.session_id.into())
        .col_expr(server::Column::Agent, connected.agent.clone().into())
        .col_expr(server::Column::LastSeenAt, Millis::from(connected.at).into())
        .filter(server::Column::Id.eq(connected.server_id))
        .exec(connection)
        .await?;
    api_key::Entity::update_many()
        .col_expr(api_key::Column::LastUsedAt, Millis::from(connected.at).into())
        .filter(api_key::Column::Id.eq(connected.key_id))
        .exec(connection)
        .await?;
    Ok(())
}

async fn write_disconnected(connection: &impl ConnectionTrait, disconnected: &Disconnected) -> Result<(), StoreError> {
    server::Entity::update_many()
        .col_expr(server::Column::SessionId, Expr::value(None::<Uuid>))
        .col_expr(server::Column::InstanceId, Expr::value(None::<Uuid>))
        .col_expr(server::Column::LastSeenAt, Millis::from(disconnected.last_seen_at).into())
        .filter(server::Column::Id.eq(disconnected.server_id))
        // Only the session that still holds the server may let go of it.
        .filter(server::Column::SessionId.is_in(disconnected.replaced.iter().copied().chain([disconnected.session_id])))
        .exec(connection)
        .await?;
    Ok(())
}
