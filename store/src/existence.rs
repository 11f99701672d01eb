//! Which of the ids that an instance holds still exist in the database, for reconciliation.

use std::collections::{HashMap, HashSet};

use entity::{api_key, login, program_token, server};
use sea_orm::{ColumnTrait, ConnectionTrait, EntityTrait, QueryFilter, QuerySelect};
use uuid::Uuid;

use super::{Store, StoreError};

/// Ids of one statement.
const IDS_AT_ONCE: usize = 5_000;

/// A server's session, as the database knows it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct SessionRow {
    /// The session that holds the server; none while its agent is disconnected.
    pub session_id: Option<Uuid>,
}

impl Store {
    /// Which session holds each of these servers, as the database knows it.
    pub async fn session_rows(&self, ids: &[Uuid]) -> Result<HashMap<Uuid, SessionRow>, StoreError> {
        let mut rows = HashMap::with_capacity(ids.len());
        for some in ids.chunks(IDS_AT_ONCE) {
            let query = server::Entity::find()
                .select_only()
                .columns([server::Column::Id, server::Column::SessionId])
                .filter(server::Column::Id.is_in(some.iter().copied()));
            let found: Vec<(Uuid, Option<Uuid>)> = query.into_tuple().all(&self.read).await?;
            rows.extend(found.into_iter().map(|(id, session_id)| (id, SessionRow { session_id })));
        }
        Ok(rows)
    }

    /// Which of these servers exist.
    pub async fn servers_among(&self, ids: &[Uuid]) -> Result<HashSet<Uuid>, StoreError> {
        among::<server::Entity>(&self.read, server::Column::Id, ids).await
    }

    /// Which of these keys exist.
    pub async fn keys_among(&self, ids: &[Uuid]) -> Result<HashSet<Uuid>, StoreError> {
        among::<api_key::Entity>(&self.read, api_key::Column::Id, ids).await
    }

    /// Which of these logins have not ended, and which of these tokens were not revoked.
    pub async fn logins_among(&self, ids: &[Uuid]) -> Result<HashSet<Uuid>, StoreError> {
        let mut there = among::<login::Entity>(&self.read, login::Column::Id, ids).await?;
        there.extend(among::<program_token::Entity>(&self.read, program_token::Column::Id, ids).await?);
        Ok(there)
    }
}

async fn among<E: EntityTrait>(
    connection: &impl ConnectionTrait,
    id: E::Column,
    ids: &[Uuid],
) -> Result<HashSet<Uuid>, StoreError> {
    let mut there = HashSet::with_capacity(ids.len());
    for some in ids.chunks(IDS_AT_ONCE) {
        let query = E::find().select_only().column(id).filter(id.is_in(some.iter().copied()));
        there.extend(query.into_tuple::<Uuid>().all(connection).await?);
    }
    Ok(there)
}
