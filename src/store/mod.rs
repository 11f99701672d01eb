//! What is kept: the only module that names the database.
//!
//! Queries are owner-first (`find(owner, id)`), so that somebody else's row cannot be reached by forgetting a filter.
//! A function that changes several rows is one transaction, run again when the database ends it for another one's sake
//! ([`Store::retried`]), and what a user changes has its entry in the audit log in it. SQLite and PostgreSQL run the same
//! code, but for some of the history: what is only ever done to SQLite needs no second attempt, and whoever seals goes by
//! what the first came to.
//!
//! SQLite has one writer at a time: every write goes through a pool of one connection, where it queues in order,
//! instead of through many that answer `database is locked` to each other. Reads have a pool of their own and, in WAL
//! mode, never wait for a write.

mod alert_lists;
mod alert_rules;
mod alerts;
mod api_keys;
mod audit;
mod batches;
mod channels;
mod claims;
mod commands;
mod connect;
mod connections;
mod failure;
mod fence;
mod held;
pub mod history;
mod instances;
mod line;
mod logins;
mod outbox;
mod presence;
mod reminders;
mod routing;
mod servers;
mod share;
mod silences;
mod thresholds;
mod turn;
mod unattended;
mod users;

use std::path::Path;

use connections::Connections;
use sea_orm::{ConnectionTrait, DbErr, SqlErr, Statement};

pub use alert_lists::{AlertCount, AlertFilter};
pub use alert_rules::{RuleScope, WatchedServer};
pub use alerts::{AlertChange, AlertChanges};
pub use api_keys::{KnownKey, NewApiKey};
pub use audit::AuditFilter;
pub use batches::{BatchItem, BatchStanding};
pub use channels::{ChannelPatch, MAX_CHANNELS, NewChannel, SealedSettings};
pub use claims::{Attempt, Claim, Due};
pub use commands::{CommandChange, CommandEnd, CommandWrite};
pub use connect::{DatabaseSettings, POSTGRES_CONNECTIONS, Pooler};
pub use entity::alert::Model as Alert;
pub use entity::alert_event::Model as AlertEvent;
pub use entity::alert_threshold::Model as Threshold;
pub use entity::api_key::Model as ApiKey;
pub use entity::command::Model as Command;
pub use entity::command_batch::Model as CommandBatch;
pub use entity::login::Model as Login;
pub use entity::notification::Model as Notification;
pub use entity::notification_channel::Model as Channel;
pub use entity::server::Model as ServerRecord;
pub use entity::silence::Model as Silence;
pub use entity::user::Model as User;
pub use fence::Fence;
pub use held::SessionRow;
pub use instances::{Beat, Entered, NewInstance, Swept};
pub use logins::{Caller, Exchange, NewLogin, Rotation};
pub use outbox::{Delivery, DeliveryFilter, Told, alert_view};
pub use presence::{Claim as SessionClaim, Commit, Committed, Connected, Disconnected};
pub use reminders::AlertToNotify;
pub use routing::channel_tags;
pub use servers::{NewServer, OwnServer, Server, ServerFilter, ServerPatch, StatusFilter};
pub use share::{SHARDS, Share, shard_of};
pub use silences::{MOST_SILENCES, SilenceTerms, WeeklySchedule};
pub use thresholds::{MOST_THRESHOLDS, Reach, ThresholdFilter, ThresholdTerms};
pub use unattended::Unattended;
pub use users::{NewUser, Registration, UserPatch};

/// Free pages that stay in the file of a small SQLite database: 8 MB.
const KEPT_PAGES: i64 = 2_048;

/// Pages that are given back in one transaction: 8 MB.
const SHRUNK_AT_ONCE: i64 = 2_048;

/// What SQLite calls the mode in which free pages can be given back.
const INCREMENTAL: i64 = 2;

/// The database, behind cheap clones.
#[derive(Clone)]
pub struct Store {
    read: Connections,
    write: Connections,
    partitions: history::Partitions,
}

/// Why the store did not do what it was asked.
#[derive(Debug, thiserror::Error)]
pub enum StoreError {
    #[error("database: {0}")]
    Database(#[from] DbErr),
    #[error("the database URL is not understood; it must begin with postgres:// or sqlite://")]
    BadUrl,
    #[error("the e-mail address is taken")]
    EmailTaken,
    #[error("the user name is taken")]
    UsernameTaken,
    #[error("registration is closed")]
    RegistrationClosed,
    #[error("only a SQLite database can be backed up to a file")]
    NotSqlite,
    #[error("the schema could not be brought up to date: another instance is at it, or a table is in use; try again")]
    MigrationBlocked,
}

/// A part of a list, and how long the whole list is.
#[derive(Debug, Clone, PartialEq)]
pub struct Page<T> {
    pub items: Vec<T>,
    pub total: u64,
}

/// Which part of a list.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct PageRequest {
    pub limit: u64,
    pub offset: u64,
}

impl Store {
    /// Connects to a database that is there, and leaves its schema as it is.
    pub async fn connect(url: &str, settings: DatabaseSettings) -> Result<Self, StoreError> {
        connect::open(url, settings).await
    }

    /// Connects and brings the schema up to date.
    pub async fn open(url: &str, settings: DatabaseSettings) -> Result<Self, StoreError> {
        let store = Self::connect(url, settings).await?;
        store.migrate().await?;
        Ok(store)
    }

    /// Brings the schema up to date. Gives the names of the migrations that were missing.
    pub async fn migrate(&self) -> Result<Vec<String>, StoreError> {
        connect::migrate(&self.write).await
    }

    /// Whether the database answers.
    pub async fn ping(&self) -> Result<(), StoreError> {
        Ok(self.read.ping().await?)
    }

    /// Writes a consistent copy of a SQLite database to `file`, which must not exist yet, while others read and write.
    pub async fn backup(&self, file: &Path) -> Result<(), StoreError> {
        let backend = self.write.get_database_backend();
        if backend != sea_orm::DatabaseBackend::Sqlite {
            return Err(StoreError::NotSqlite);
        }
        let target = file.to_string_lossy().into_owned();
        self.write.execute_raw(Statement::from_sql_and_values(backend, "VACUUM INTO ?", [target.into()])).await?;
        Ok(())
    }

    /// Gives pages of a SQLite file that are free back to the system, some at a time, when they are many. A part stays:
    /// it is needed again in an hour.
    pub async fn shrink(&self) -> Result<(), StoreError> {
        let backend = self.write.get_database_backend();
        if backend != sea_orm::DatabaseBackend::Sqlite {
            return Ok(());
        }
        let number = |pragma: &'static str| async move {
            let row = self.write.query_one_raw(Statement::from_string(backend, format!("PRAGMA {pragma}"))).await?;
            row.map_or(Ok(0), |row| row.try_get_by_index::<i64>(0))
        };
        loop {
            let (free, all) = (number("freelist_count").await?, number("page_count").await?);
            let kept = KEPT_PAGES.max(all / 16);
            // A database that was made without it gives nothing back.
            if free <= kept || number("auto_vacuum").await? != INCREMENTAL {
                return Ok(());
            }
            let some = (free - kept).min(SHRUNK_AT_ONCE);
            self.write.execute_unprepared(&format!("PRAGMA incremental_vacuum({some})")).await?;
            if number("freelist_count").await? >= free {
                return Ok(());
            }
        }
    }

    /// Lets running statements end and closes the connections.
    pub async fn close(self) {
        let Self { read, write, .. } = self;
        for pool in [write, read] {
            if let Err(error) = pool.close().await {
                tracing::warn!(%error, "the database did not close cleanly");
            }
        }
    }
}

/// Names the taken column behind a unique violation; any other error stays what it is.
fn taken(error: DbErr) -> StoreError {
    match error.sql_err() {
        Some(SqlErr::UniqueConstraintViolation(message)) if message.contains("username_key") => {
            StoreError::UsernameTaken
        }
        Some(SqlErr::UniqueConstraintViolation(message)) if message.contains("email_key") => StoreError::EmailTaken,
        _ => StoreError::Database(error),
    }
}
