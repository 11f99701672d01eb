//! What agents cause to be written, several of them in one transaction.

use entity::{Millis, api_key, sample, server};
use sea_orm::sea_query::Expr;
use sea_orm::{ColumnTrait, ConnectionTrait, EntityTrait, QueryFilter, Set, TransactionTrait};
use signalbox_protocol::Timestamp;
use uuid::Uuid;

use super::{Store, StoreError, StoredSample};

/// An agent authenticated.
#[derive(Debug, Clone)]
pub struct Connected {
    pub server_id: Uuid,
    pub session_id: Uuid,
    pub key_id: Uuid,
    /// What the agent said of itself, as JSON.
    pub agent: String,
    pub at: Timestamp,
}

/// An agent's session ended.
#[derive(Debug, Clone)]
pub struct Disconnected {
    pub server_id: Uuid,
    pub session_id: Uuid,
    /// The session that it took the server over from: written still, if the newer one ended half-way.
    pub replaced: Option<Uuid>,
    pub last_seen_at: Timestamp,
}

/// Everything that one group commit writes.
#[derive(Debug, Default)]
pub struct Commit {
    pub samples: Vec<StoredSample>,
    pub connected: Vec<Connected>,
    pub disconnected: Vec<Disconnected>,
    pub seen: Vec<(Uuid, Timestamp)>,
}

impl Commit {
    pub fn is_empty(&self) -> bool {
        self.samples.is_empty() && self.connected.is_empty() && self.disconnected.is_empty() && self.seen.is_empty()
    }
}

/// Rows an INSERT carries, the largest that fits first: a few statements, which stay prepared, make up any number.
const ROWS_PER_INSERT: [usize; 5] = [256, 64, 16, 4, 1];

impl Store {
    /// Writes all of it or nothing. A sample that is there already (same server, same time) is left as it is.
    pub async fn commit(&self, commit: &Commit) -> Result<(), StoreError> {
        let transaction = self.write.begin().await?;
        let mut rest = commit.samples.as_slice();
        for rows in ROWS_PER_INSERT {
            while let Some((samples, behind)) = rest.split_at_checked(rows) {
                insert_samples(&transaction, samples).await?;
                rest = behind;
            }
        }
        // In the order in which they happened: a session that came and went in one commit ends as gone.
        for connected in &commit.connected {
            write_connected(&transaction, connected).await?;
        }
        for disconnected in &commit.disconnected {
            write_disconnected(&transaction, disconnected).await?;
        }
        for (server_id, at) in &commit.seen {
            server::Entity::update_many()
                .col_expr(server::Column::LastSeenAt, Millis::from(*at).into())
                .filter(server::Column::Id.eq(*server_id))
                .exec(&transaction)
                .await?;
        }
        transaction.commit().await?;
        Ok(())
    }

    /// Marks every server offline: after a start no session can be left from before.
    pub async fn forget_sessions(&self) -> Result<(), StoreError> {
        server::Entity::update_many()
            .col_expr(server::Column::SessionId, Expr::value(None::<Uuid>))
            .filter(server::Column::SessionId.is_not_null())
            .exec(&self.write)
            .await?;
        Ok(())
    }
}

async fn insert_samples(connection: &impl ConnectionTrait, samples: &[StoredSample]) -> Result<(), StoreError> {
    let rows = samples.iter().map(|stored| sample::ActiveModel {
        server_id: Set(stored.server_id),
        at: Set(stored.at.into()),
        data: Set(stored.data.clone()),
    });
    sample::Entity::insert_many(rows)
        .on_conflict_do_nothing_on([sample::Column::ServerId, sample::Column::At])
        .exec_without_returning(connection)
        .await?;
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
        .col_expr(server::Column::LastSeenAt, Millis::from(disconnected.last_seen_at).into())
        .filter(server::Column::Id.eq(disconnected.server_id))
        // Only the session that still holds the server may let go of it.
        .filter(
            server::Column::SessionId
                .is_in([Some(disconnected.session_id), disconnected.replaced].into_iter().flatten()),
        )
        .exec(connection)
        .await?;
    Ok(())
}
