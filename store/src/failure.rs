//! Classifies failures of the database: try again at once, try again later, or our fault.

use std::future::Future;
use std::time::Duration;

use sea_orm::sqlx;
use sea_orm::{ConnAcquireErr, DbErr, RuntimeErr, SqlErr};
use uuid::Uuid;

use super::{Store, StoreError};

/// Attempts at a transaction that the database ends in favour of another. Two that lock in different orders both succeed after
/// one has paused; this many failures mean that something else is wrong.
const MAX_ATTEMPTS: u32 = 6;

/// The longest pause before the second attempt; it doubles for each further one.
const FIRST_PAUSE: Duration = Duration::from_millis(10);

const SERIALIZATION_FAILURE: &str = "40001";
const DEADLOCK_DETECTED: &str = "40P01";
const LOCK_NOT_AVAILABLE: &str = "55P03";
pub(super) const TOO_MANY_CONNECTIONS: &str = "53300";

/// An administrator ends connections or the server, it crashed, or it is still starting.
const SHUTTING_DOWN: [&str; 3] = ["57P01", "57P02", "57P03"];

/// The class of connection errors, which a pooler also uses for a database that it cannot reach.
const CONNECTION_CLASS: &str = "08";

/// PostgreSQL ended an idle transaction, with its connection.
const IDLE_IN_TRANSACTION: &str = "25P03";
/// The statement exceeded its time limit.
const QUERY_CANCELED: &str = "57014";
/// After a failover to another server, before the connections have followed.
const READ_ONLY: &str = "25006";
const DISK_FULL: &str = "53100";
const OUT_OF_MEMORY: &str = "53200";

/// Other transactions were in the way, or a statement took too long: what locks other rows may succeed.
const OF_SOME_ROWS: [&str; 4] = [SERIALIZATION_FAILURE, DEADLOCK_DETECTED, LOCK_NOT_AVAILABLE, QUERY_CANCELED];

/// SQLite's result codes for a lock that another connection or process holds, and for a full disk. Extended codes have one of
/// them in their low byte.
const PRIMARY: u32 = 0xff;
const SQLITE_BUSY: u32 = 5;
const SQLITE_LOCKED: u32 = 6;
const SQLITE_FULL: u32 = 13;

/// Another connection has written since this transaction read; begun again, it succeeds.
const SQLITE_BUSY_SNAPSHOT: u32 = 517;

impl Store {
    /// Runs a transaction, and repeats it when the database ended it in favour of another.
    pub(super) async fn retried<T, F>(&self, transaction: impl Fn() -> F) -> Result<T, StoreError>
    where
        F: Future<Output = Result<T, StoreError>>,
    {
        let mut attempts = 1;
        loop {
            match transaction().await {
                Err(error) if attempts < MAX_ATTEMPTS && error.is_contention() => {
                    metrics::counter!("signalbox_transaction_retries_total").increment(1);
                    tracing::debug!(%error, attempts, "a transaction is tried again");
                    tokio::time::sleep(pause(attempts)).await;
                    attempts += 1;
                }
                outcome => return outcome,
            }
        }
    }
}

impl StoreError {
    /// Whether the store was closed, because the service ends.
    pub fn is_closed(&self) -> bool {
        matches!(self, Self::Database(DbErr::ConnectionAcquire(ConnAcquireErr::ConnectionClosed)))
    }

    /// Whether the same may succeed a little later: no connection was free in time, or the database is away.
    pub fn is_busy(&self) -> bool {
        match self {
            Self::Database(DbErr::ConnectionAcquire(_) | DbErr::Conn(_)) => true,
            Self::Database(error) => driver_error(error).is_some_and(is_passing),
            Self::MigrationBlocked | Self::Unreachable(_) => true,
            Self::BadScheme
            | Self::BadUrl(_)
            | Self::InMemory
            | Self::NoPermission(_)
            | Self::NoFile(_)
            | Self::CannotOpen { .. }
            | Self::Copy { .. }
            | Self::EmailTaken
            | Self::UsernameTaken
            | Self::TeamNameTaken
            | Self::RegistrationClosed
            | Self::InvitationInvalid
            | Self::TooManyInvitations
            | Self::TooManyApprovals
            | Self::TooManySchedules
            | Self::NotAdministrator
            | Self::LastAdministrator
            | Self::OwnsServers
            | Self::EnabledAgain
            | Self::NoRecipient
            | Self::NoAccount
            | Self::NoServer
            | Self::QuotaExceeded { .. }
            | Self::NotSqlite => false,
        }
    }

    /// The same error for another change, which would fail alike: the database is away, full, or locked as a whole. None where
    /// the change or its rows may be the cause.
    pub fn for_another(&self) -> Option<Self> {
        let Self::Database(error) = self else { return None };
        let is_of_all = self.is_busy() && self.state().is_none_or(|state| !OF_SOME_ROWS.contains(&state.as_str()));
        is_of_all.then(|| Self::Database(error.clone()))
    }

    /// Whether the disk of the database is full.
    pub fn is_disk_full(&self) -> bool {
        let Self::Database(error) = self else { return false };
        driver_error(error).and_then(sqlite_code).is_some_and(|code| code & PRIMARY == SQLITE_FULL)
            || self.state().is_some_and(|state| state == DISK_FULL)
    }

    /// Whether another transaction was in the way.
    fn is_contention(&self) -> bool {
        let Self::Database(error) = self else { return false };
        let state = self.state();
        state.is_some_and(|state| state == SERIALIZATION_FAILURE || state == DEADLOCK_DETECTED)
            || driver_error(error).and_then(sqlite_code) == Some(SQLITE_BUSY_SNAPSHOT)
    }

    /// Whether a lock was not free in time.
    pub(super) fn is_lock_timeout(&self) -> bool {
        self.state().is_some_and(|state| state == LOCK_NOT_AVAILABLE)
    }

    /// PostgreSQL's SQLSTATE.
    fn state(&self) -> Option<String> {
        match self {
            Self::Database(error) => driver_error(error).and_then(state_of),
            _ => None,
        }
    }
}

/// Whether the failure is not about the statement: the connection broke, the server stops, or others are in the way.
fn is_passing(error: &sqlx::Error) -> bool {
    match error {
        sqlx::Error::Io(_) | sqlx::Error::PoolTimedOut | sqlx::Error::PoolClosed | sqlx::Error::WorkerCrashed => true,
        error if sqlite_code(error).is_some() => {
            sqlite_code(error).is_some_and(|code| matches!(code & PRIMARY, SQLITE_BUSY | SQLITE_LOCKED | SQLITE_FULL))
        }
        error => state_of(error).is_some_and(|state| {
            let passing = [
                SERIALIZATION_FAILURE,
                DEADLOCK_DETECTED,
                LOCK_NOT_AVAILABLE,
                TOO_MANY_CONNECTIONS,
                IDLE_IN_TRANSACTION,
                QUERY_CANCELED,
                READ_ONLY,
                DISK_FULL,
                OUT_OF_MEMORY,
            ];
            let state = state.as_str();
            state.starts_with(CONNECTION_CLASS) || SHUTTING_DOWN.contains(&state) || passing.contains(&state)
        }),
    }
}

/// Whether the session may only read.
pub(super) fn is_read_only(error: &DbErr) -> bool {
    driver_error(error).and_then(state_of).is_some_and(|state| state == READ_ONLY)
}

/// The database's message, without the source line that it adds, and without the driver's text around it.
pub(super) fn words(error: &DbErr) -> String {
    match driver_error(error) {
        Some(sqlx::Error::Database(said)) => said.message().to_owned(),
        Some(error) => error.to_string(),
        None => error.to_string(),
    }
}

fn driver_error(error: &DbErr) -> Option<&sqlx::Error> {
    match error {
        DbErr::Conn(RuntimeErr::SqlxError(error))
        | DbErr::Exec(RuntimeErr::SqlxError(error))
        | DbErr::Query(RuntimeErr::SqlxError(error)) => Some(error),
        _ => None,
    }
}

/// The extended result code of an error of SQLite.
fn sqlite_code(error: &sqlx::Error) -> Option<u32> {
    let error = error.as_database_error()?;
    error.try_downcast_ref::<sqlx::sqlite::SqliteError>()?;
    error.code()?.parse().ok()
}

/// The SQLSTATE of an error of PostgreSQL. None of SQLite's codes looks like one.
pub(super) fn state_of(error: &sqlx::Error) -> Option<String> {
    match error {
        sqlx::Error::Database(error) => error.code().map(std::borrow::Cow::into_owned),
        _ => None,
    }
}

/// Whether a pooler has no connection left, or none became free in time. PgBouncer reports both as a protocol violation, with a
/// text that no setting translates.
pub(super) fn is_pooler_full(error: &sqlx::Error) -> bool {
    let words = ["max_client_conn", "query_wait_timeout"];
    matches!(error, sqlx::Error::Database(error) if words.iter().any(|words| error.message().contains(words)))
}

/// A random part of a limit that doubles with each attempt: two transactions that collided must not meet again.
fn pause(attempts: u32) -> Duration {
    let mut random = [0; 2];
    // Without randomness the pause is the longest one.
    let share =
        getrandom::fill(&mut random).map_or(1.0, |()| f64::from(u16::from_le_bytes(random)) / f64::from(u16::MAX));
    (FIRST_PAUSE * 2_u32.pow(attempts.min(MAX_ATTEMPTS))).mul_f64(share)
}

/// Names the taken column behind a unique violation; any other error stays what it is.
pub(super) fn taken(error: DbErr) -> StoreError {
    match error.sql_err() {
        Some(SqlErr::UniqueConstraintViolation(message)) if message.contains("username_key") => {
            StoreError::UsernameTaken
        }
        Some(SqlErr::UniqueConstraintViolation(message)) if message.contains("email_key") => StoreError::EmailTaken,
        _ => StoreError::Database(error),
    }
}

/// Names the deleted server behind a violated foreign key of a row that is for one; any other error stays what it is. The row's
/// account, team or approval is locked during that time, or new. The owner of a grant that somebody else gives is not, but once they are
/// deleted, the server is not theirs either.
pub(super) fn no_server(error: DbErr) -> StoreError {
    match error.sql_err() {
        Some(SqlErr::ForeignKeyConstraintViolation(_)) => StoreError::NoServer,
        _ => StoreError::Database(error),
    }
}

/// As [`no_server`], for a row that may be for a tag or for all servers: then a violated foreign key concerns something else.
pub(super) fn no_server_of(server_id: Option<Uuid>) -> fn(DbErr) -> StoreError {
    if server_id.is_some() { no_server } else { StoreError::Database }
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use sea_orm::{ConnectionTrait, Database};

    use super::*;

    #[tokio::test]
    async fn an_error_has_the_words_of_the_database_and_no_more() {
        let database = Database::connect("sqlite::memory:").await.unwrap();
        let error = database.execute_unprepared("SELECT * FROM nothing_here").await.unwrap_err();

        assert_eq!(words(&error), "no such table: nothing_here");
        assert_eq!(StoreError::from(error).to_string(), "database: no such table: nothing_here");
        let closed = DbErr::Conn(RuntimeErr::SqlxError(Arc::new(sqlx::Error::PoolClosed)));
        assert_eq!(words(&closed), sqlx::Error::PoolClosed.to_string());
        assert_eq!(words(&DbErr::Custom("no driver".to_owned())), "Custom Error: no driver");
    }
}
