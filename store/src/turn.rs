//! Work that one instance at a time does: who comes meanwhile leaves it to the other. And what people do one after the
//! other.

use entity::user;
use sea_orm::{ConnectionTrait, DatabaseBackend, EntityTrait, QuerySelect, Statement};
use uuid::Uuid;

use super::StoreError;

/// What is done in turns.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Work {
    Logins,
    Alerts,
    Notifications,
}

impl Work {
    /// Any number will do, as long as every instance takes the same one and nothing else does.
    fn lock(self) -> i64 {
        0x5349_474e_5400
            + match self {
                Self::Logins => 1,
                Self::Alerts => 2,
                Self::Notifications => 3,
            }
    }
}

/// Whether it is this instance's turn, until the transaction ends.
pub(super) async fn takes_turn(transaction: &impl ConnectionTrait, work: Work) -> Result<bool, StoreError> {
    if transaction.get_database_backend() != DatabaseBackend::Postgres {
        return Ok(true);
    }
    let lock = "SELECT pg_try_advisory_xact_lock($1)";
    let lock = Statement::from_sql_and_values(DatabaseBackend::Postgres, lock, [work.lock().into()]);
    match transaction.query_one_raw(lock).await? {
        Some(row) => Ok(row.try_get_by_index(0)?),
        None => Ok(false),
    }
}

/// Until the transaction ends nobody else comes this far for this owner: what they have of something is counted rightly,
/// though they make several at once.
pub(super) async fn counts_alone(transaction: &impl ConnectionTrait, owner_id: Uuid) -> Result<(), StoreError> {
    user::Entity::find_by_id(owner_id).lock_exclusive().one(transaction).await?;
    Ok(())
}
