//! The condition under which an instance writes what it measured on a server: another one may hold the server by now.

use std::collections::HashMap;

use entity::{Millis, server};
use sea_orm::sea_query::LockType;
use sea_orm::{ColumnTrait, ConnectionTrait, DatabaseBackend, EntityTrait, QueryFilter, QueryOrder, QuerySelect};
use signalbox_protocol::Timestamp;
use uuid::Uuid;

use super::StoreError;

/// What must be true of a server while a transaction writes about it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Fence {
    /// Nothing: there is no other instance.
    Open,
    /// This session holds it.
    Session(Uuid),
    /// No session holds it, and none has since it was last seen at this time.
    Absent(Option<Timestamp>),
}

impl Fence {
    fn lets_through(self, row: &FenceRow) -> bool {
        match self {
            Self::Open => true,
            Self::Session(id) => row.session_id == Some(id),
            Self::Absent(last_seen_at) => {
                row.session_id.is_none() && row.last_seen_at.map(Timestamp::from) == last_seen_at
            }
        }
    }
}

#[derive(sea_orm::FromQueryResult)]
struct FenceRow {
    id: Uuid,
    session_id: Option<Uuid>,
    last_seen_at: Option<Millis>,
}

/// Which of these servers pass. Until the transaction ends, no session takes or leaves those.
pub(super) async fn pass(
    connection: &impl ConnectionTrait,
    servers: impl Iterator<Item = (Uuid, Fence)> + Clone,
) -> Result<Vec<bool>, StoreError> {
    // SQLite has one writer and one instance.
    if connection.get_database_backend() != DatabaseBackend::Postgres {
        return Ok(servers.map(|_| true).collect());
    }
    // A single instance locks no more than the rows that it writes, but before them and in order.
    let is_alone = servers.clone().all(|(_, fence)| fence == Fence::Open);
    let rows: Vec<FenceRow> = server::Entity::find()
        .select_only()
        .columns([server::Column::Id, server::Column::SessionId, server::Column::LastSeenAt])
        .filter(server::Column::Id.is_in(servers.clone().map(|(id, _)| id)))
        .order_by_asc(server::Column::Id)
        .lock(if is_alone { LockType::KeyShare } else { LockType::Share })
        .into_model()
        .all(connection)
        .await?;
    let rows: HashMap<Uuid, FenceRow> = rows.into_iter().map(|row| (row.id, row)).collect();
    let passes = |(id, fence): (Uuid, Fence)| match rows.get(&id) {
        Some(row) => fence.lets_through(row),
        // A deleted server: writing about it fails as it always does.
        None => fence == Fence::Open,
    };
    Ok(servers.map(passes).collect())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn row(session_id: Option<Uuid>, last_seen_at: i64) -> FenceRow {
        FenceRow { id: Uuid::nil(), session_id, last_seen_at: Some(Millis(last_seen_at)) }
    }

    #[test]
    fn a_session_writes_while_it_holds_the_server() {
        let (own, other) = (Uuid::from_u128(1), Uuid::from_u128(2));

        assert!(Fence::Session(own).lets_through(&row(Some(own), 5)));
        assert!(!Fence::Session(own).lets_through(&row(Some(other), 5)));
        assert!(!Fence::Session(own).lets_through(&row(None, 5)));
    }

    #[test]
    fn an_absence_ends_with_the_next_session_even_if_that_has_gone_again() {
        let absent = Fence::Absent(Some(Timestamp::from_millis(5)));

        assert!(absent.lets_through(&row(None, 5)));
        assert!(!absent.lets_through(&row(Some(Uuid::nil()), 5)));
        assert!(!absent.lets_through(&row(None, 6)));
    }
}
