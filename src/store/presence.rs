//! What agents cause to be written, several of them in one transaction.

use entity::{Millis, api_key, server};
use sea_orm::sea_query::Expr;
use sea_orm::{ColumnTrait, ConnectionTrait, EntityTrait, QueryFilter, TransactionTrait};
use signalbox_protocol::Timestamp;
use uuid::Uuid;

use super::history::insert_journal;
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
    /// Samples, as a row of the journal; none when there are none.
    pub journal: Option<Vec<u8>>,
    pub connected: Vec<Connected>,
    pub disconnected: Vec<Disconnected>,
    pub seen: Vec<(Uuid, Timestamp)>,
}

impl Commit {
    pub fn is_empty(&self) -> bool {
        self.journal.is_none() && self.connected.is_empty() && self.disconnected.is_empty() && self.seen.is_empty()
    }
}

impl Store {
    /// Writes all of it or nothing. Gives the number of the row of the journal, if there was one to write.
    pub async fn commit(&self, writer: Uuid, commit: &Commit) -> Result<Option<i64>, StoreError> {
        let transaction = self.write.begin().await?;
        let journal = match &commit.journal {
            Some(data) => Some(insert_journal(&transaction, writer, data.clone()).await?),
            None => None,
        };
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
        Ok(journal)
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
