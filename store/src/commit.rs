//! Group commits: what several agents cause to be written, in one transaction.

mod parts;

use std::collections::{BTreeMap, BTreeSet, HashSet};

use entity::{Millis, api_key, server};
use sea_orm::sea_query::Expr;
use sea_orm::{ColumnTrait, ConnectionTrait, DbErr, EntityTrait, QueryFilter, QuerySelect, Statement, Value};
use signalbox_protocol::Timestamp;
use uuid::Uuid;

use super::history::{FreshSample, LeftOut, insert_journal, insert_samples, partitions_of_samples};
use super::{Store, StoreError, server_events, status_changes};

/// An agent authenticated.
#[derive(Debug, Clone)]
pub struct Connected {
    /// The server.
    pub server_id: Uuid,
    /// The new session.
    pub session_id: Uuid,
    /// The key that the agent showed.
    pub key_id: Uuid,
    /// The agent's description of itself, as JSON.
    pub agent: String,
    /// When.
    pub at: Timestamp,
    /// The claim to the server, where there are several instances.
    pub claim: Option<Claim>,
}

/// An instance's claim to a server: it succeeds if no session has taken the server since the instance looked.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Claim {
    /// The instance.
    pub instance_id: Uuid,
    /// The server's epoch when the agent's key was looked up.
    pub epoch: i64,
}

/// An agent's session ended.
#[derive(Debug, Clone)]
pub struct Disconnected {
    /// The server.
    pub server_id: Uuid,
    /// The session.
    pub session_id: Uuid,
    /// Sessions that it took the server over from: the row still names one of them if all newer ones failed half-way.
    pub replaced: Vec<Uuid>,
    /// When the service last heard from the agent.
    pub last_seen_at: Timestamp,
    /// Why.
    pub why: Departure,
}

/// Why an agent's session ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Departure {
    /// The connection ended.
    Left,
    /// Nothing was heard from the agent for too long.
    Silent,
    /// Its key was revoked or has expired.
    Revoked,
    /// The service stops, and does not see what becomes of the server.
    Stopping,
}

/// The description of a connected agent has changed.
#[derive(Debug, Clone)]
pub struct Redescribed {
    /// The server.
    pub server_id: Uuid,
    /// The session.
    pub session_id: Uuid,
    /// When.
    pub at: Timestamp,
    /// The description, as in [`Connected`].
    pub agent: String,
}

/// Everything that one group commit writes.
#[derive(Debug, Default)]
pub struct Commit {
    /// Samples, as a row of the journal; none without any.
    pub journal: Option<Vec<u8>>,
    /// Samples, where they are in a table.
    pub samples: Vec<FreshSample>,
    /// Sessions that began.
    pub connected: Vec<Connected>,
    /// Agents whose description changed.
    pub redescribed: Vec<Redescribed>,
    /// Sessions that ended.
    pub disconnected: Vec<Disconnected>,
    /// Servers and when the service last heard from their agents.
    pub seen: Vec<(Uuid, Timestamp)>,
}

/// The result of a group commit.
#[derive(Debug, Default, Clone, PartialEq, Eq)]
pub struct Committed {
    /// The number of the journal's row, if there was one to write.
    pub journal: Option<i64>,
    /// Sessions whose samples were not written.
    pub left_out: Vec<LeftOut>,
    /// Sessions that did not get their server, because another was faster.
    pub refused: Vec<Uuid>,
    /// Sessions whose machine has rebooted since the previous one.
    pub rebooted: Vec<Uuid>,
}

impl Commit {
    /// Whether there is nothing to write.
    pub fn is_empty(&self) -> bool {
        let Self { journal, samples, connected, redescribed, disconnected, seen } = self;
        let is_without_samples = journal.is_none() && samples.is_empty();
        is_without_samples
            && connected.is_empty()
            && redescribed.is_empty()
            && disconnected.is_empty()
            && seen.is_empty()
    }

    /// Every server of which more than samples is written, in order.
    fn servers(&self) -> Vec<Uuid> {
        let connected = self.connected.iter().map(|connected| connected.server_id);
        let redescribed = self.redescribed.iter().map(|redescribed| redescribed.server_id);
        let disconnected = self.disconnected.iter().map(|disconnected| disconnected.server_id);
        let seen = self.seen.iter().map(|(server_id, _)| *server_id);
        connected.chain(redescribed).chain(disconnected).chain(seen).collect::<BTreeSet<_>>().into_iter().collect()
    }
}

/// Several commits of several instances lock rows in the same order, so at worst they wait for each other.
const HOLD_SERVERS: &str = "SELECT id FROM servers WHERE id = ANY ($1::uuid[]) ORDER BY id FOR NO KEY UPDATE";

/// How much the instances' readings of their shared time may differ. An agent that moves at once is no slow handshake.
const SESSIONS_APART_MS: u64 = 2_000;

/// The epoch counts the sessions of a server. A session is refused if its instance has not seen the latest epoch, or if it is
/// clearly older than the present one (its id begins with the time that all instances share), because its handshake took long.
/// An epoch of -1 skips both checks, and so does a session that was written before, when only the answer was lost.
const CONNECTED: &str = "\
    UPDATE servers SET session_id = new.session_id, agent = new.agent, last_seen_at = new.at, \
        instance_id = NULLIF(new.instance_id, $7), session_epoch = session_epoch + 1 \
    FROM unnest($1::uuid[], $2::uuid[], $3::text[], $4::bigint[], $5::uuid[], $6::bigint[], $8::uuid[]) \
        AS new (id, session_id, agent, at, instance_id, epoch, takes_before) \
    WHERE servers.id = new.id AND (new.epoch = -1 OR (servers.session_epoch = new.epoch \
        AND (servers.session_id IS NULL OR servers.session_id < new.takes_before)) \
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
    /// Records how many series of a recent sample the history omitted. Written only where the number changes.
    pub async fn note_series_dropped(&self, id: Uuid, dropped: u32) -> Result<(), StoreError> {
        let dropped = i32::try_from(dropped).unwrap_or(i32::MAX);
        let noted: Option<i32> = server::Entity::find_by_id(id)
            .select_only()
            .column(server::Column::SeriesDropped)
            .into_tuple()
            .one(&self.read)
            .await?;
        if noted.is_none_or(|noted| noted == dropped) {
            return Ok(());
        }
        server::Entity::update_many()
            .col_expr(server::Column::SeriesDropped, Expr::value(dropped))
            .filter(server::Column::Id.eq(id))
            .exec(&self.write)
            .await?;
        Ok(())
    }

    /// Writes everything or nothing.
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
        // In the order in which they happened: a session that began and ended in one commit is recorded as ended.
        if self.has_sample_table() {
            hold(&transaction, commit).await?;
        }
        let before = status_changes::before(&transaction, commit).await?;
        if self.has_sample_table() {
            committed.refused = write_all_connected(&transaction, &commit.connected).await?;
        } else if let [connected] = commit.connected.as_slice() {
            write_connected(&transaction, connected).await?;
        } else {
            parts::write_connected(&transaction, &commit.connected).await?;
        }
        for redescribed in &commit.redescribed {
            write_redescribed(&transaction, redescribed).await?;
        }
        if self.has_sample_table() || commit.disconnected.len() == 1 {
            for disconnected in &commit.disconnected {
                write_disconnected(&transaction, disconnected).await?;
            }
        } else {
            parts::write_disconnected(&transaction, &commit.disconnected).await?;
        }
        committed.rebooted = status_changes::record(&transaction, before, commit, &committed.refused).await?;
        if self.has_sample_table() {
            write_all_seen(&transaction, &commit.seen).await?;
        } else {
            parts::write_seen(&transaction, &commit.seen).await?;
        }
        transaction.commit().await?;
        Ok(committed)
    }

    /// Marks every server offline: after a start no earlier session can exist.
    pub async fn forget_sessions(&self) -> Result<(), StoreError> {
        let transaction = self.write.begin().await?;
        let held = server::Entity::find()
            .select_only()
            .columns([server::Column::Id, server::Column::LastSeenAt])
            .filter(server::Column::SessionId.is_not_null());
        let held: Vec<(Uuid, Option<Millis>)> = held.into_tuple().all(&transaction).await?;
        let abandoned = held.into_iter().map(|(id, seen)| status_changes::abandoned(id, seen.map(Timestamp::from)));
        server_events::insert(&transaction, abandoned.collect()).await?;
        server::Entity::update_many()
            .col_expr(server::Column::SessionId, Expr::value(None::<Uuid>))
            .col_expr(server::Column::InstanceId, Expr::value(None::<Uuid>))
            .filter(server::Column::SessionId.is_not_null())
            .exec(&transaction)
            .await?;
        Ok(transaction.commit().await?)
    }
}

async fn hold(connection: &impl ConnectionTrait, commit: &Commit) -> Result<(), StoreError> {
    let servers = commit.servers();
    if servers.is_empty() { Ok(()) } else { execute(connection, HOLD_SERVERS, [Value::from(servers)]).await }
}

/// The first id of the sessions that this one is clearly older than (RFC 9562, 5.7: the id begins with 48 bits of
/// milliseconds).
fn takes_before(session_id: Uuid) -> Uuid {
    let at_ms = session_id.as_u128() >> 80;
    Uuid::from_u128((at_ms + u128::from(SESSIONS_APART_MS)) << 80)
}

/// Whether the session that holds a server has replaced this one. If it is clearly older it was there before, and the database has
/// forgotten this one, as after a failover that lost the last commits.
pub fn has_replaced(holder: Uuid, session_id: Uuid) -> bool {
    session_id < takes_before(holder)
}

/// Returns the sessions that did not get their server.
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
    let values: [Value; 8] = [
        last.iter().map(|new| new.server_id).collect::<Vec<_>>().into(),
        last.iter().map(|new| new.session_id).collect::<Vec<_>>().into(),
        last.iter().map(|new| new.agent.clone()).collect::<Vec<_>>().into(),
        last.iter().map(times).collect::<Vec<_>>().into(),
        last.iter().map(instance).collect::<Vec<_>>().into(),
        last.iter().map(epoch).collect::<Vec<_>>().into(),
        Uuid::nil().into(),
        last.iter().map(|new| takes_before(new.session_id)).collect::<Vec<_>>().into(),
    ];
    let statement = Statement::from_sql_and_values(connection.get_database_backend(), CONNECTED, values);
    let rows = connection.query_all_raw(statement).await?;
    let held = rows.iter().map(|row| row.try_get_by_index(0)).collect::<Result<HashSet<Uuid>, DbErr>>()?;
    // A deleted server has no session either, and its agent learns that in another way.
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

async fn write_redescribed(connection: &impl ConnectionTrait, redescribed: &Redescribed) -> Result<(), StoreError> {
    server::Entity::update_many()
        .col_expr(server::Column::Agent, redescribed.agent.clone().into())
        .filter(server::Column::Id.eq(redescribed.server_id))
        .filter(server::Column::SessionId.eq(redescribed.session_id))
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
        // Only the session that still holds the server may release it.
        .filter(server::Column::SessionId.is_in(disconnected.replaced.iter().copied().chain([disconnected.session_id])))
        .exec(connection)
        .await?;
    Ok(())
}
