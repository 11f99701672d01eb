//! Work that one instance does at a time, while the others skip it; and work that is serialised for one owner.

use entity::user;
use sea_orm::{ConnectionTrait, DatabaseBackend, EntityTrait, QuerySelect, Statement};
use uuid::Uuid;

use super::StoreError;

/// The work that instances take turns at.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum LockKey {
    Logins,
    Alerts,
    Notifications,
}

impl LockKey {
    /// An arbitrary number, the same in every instance and different from all other locks.
    fn lock(self) -> i64 {
        0x5349_474e_5400
            + match self {
                Self::Logins => 1,
                Self::Alerts => 2,
                Self::Notifications => 3,
            }
    }
}

/// Whether this instance may do the work until the transaction ends.
pub(super) async fn try_lock(transaction: &impl ConnectionTrait, work: LockKey) -> Result<bool, StoreError> {
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

/// Serialises transactions of one owner until they end, so that counts of the owner's things are right although several are
/// created at once. Nothing is added to an account that was deleted a moment ago.
pub(super) async fn lock_owner(transaction: &impl ConnectionTrait, owner_id: Uuid) -> Result<(), StoreError> {
    let owner = user::Entity::find_by_id(owner_id).lock_exclusive().one(transaction).await?;
    owner.map(|_| ()).ok_or(StoreError::NoAccount)
}
