//! What is kept: the only part of the service that names the database.
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

mod alert_filter;
mod alert_lists;
mod alert_rules;
mod alert_span;
mod alert_totals;
mod alerts;
mod api_keys;
pub mod audit;
mod audit_log;
mod backup;
mod batches;
mod channels;
mod claims;
mod clock;
mod command_storage;
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
mod progress;
mod quotas;
mod reach;
mod reminders;
mod routing;
mod series_help;
mod server_events;
mod servers;
mod share;
mod silences;
mod target;
mod thresholds;
mod turn;
mod turns;
mod unattended;
mod users;

use std::path::PathBuf;

use connections::Connections;
use sea_orm::{ConnectionTrait, DbErr, SqlErr, Statement};

pub use alert_filter::AlertFilter;
pub use alert_lists::AlertCount;
pub use alert_rules::{RuleScope, WatchedServer};
pub use alerts::{AlertChange, AlertChanges};
pub use api_keys::{KnownKey, NewApiKey};
pub use audit_log::AuditFilter;
pub use batches::{BatchItem, BatchStanding};
pub use channels::{ChannelPatch, NewChannel, SealedSettings};
pub use claims::{Attempt, Claim, Due};
pub use clock::SavedClock;
pub use command_storage::Trimmed;
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
pub use entity::server_event::Model as ServerEvent;
pub use entity::silence::Model as Silence;
pub use entity::user::Model as User;
pub use fence::Fence;
pub use held::SessionRow;
pub use instances::{Beat, Entered, NewInstance, SOLE_DEAD_AFTER_MS, Swept};
pub use logins::{Caller, Exchange, NewLogin, Rotation};
pub use outbox::{Delivery, DeliveryFilter, Told, alert_view};
pub use presence::{Claim as SessionClaim, Commit, Committed, Connected, Departure, Disconnected, Redescribed};
pub use progress::{MAX_HAND_OVERS, Progress, Standing, Verdict};
pub use quotas::{Quota, Quotas, Usage};
pub use reach::Unreachable;
pub use reminders::AlertToNotify;
pub use routing::channel_tags;
pub use server_events::{NewServerEvent, ServerEventFilter, presence as presence_kind};
pub use servers::{NewServer, OwnServer, Server, ServerFilter, ServerPatch, StatusFilter};
pub use share::{SHARDS, Share, shard_of};
pub use silences::{SilenceTerms, WeeklySchedule};
pub use target::{check, place_of, sqlite_file};
pub use thresholds::{Reach, ThresholdFilter, ThresholdTerms};
pub use turns::CLOCK_IS_WRONG;
pub use unattended::Unattended;
pub use users::{NewUser, Registration, UserPatch};

/// Free pages that stay in the file of a small SQLite database: 8 MB.
const KEPT_PAGES: i64 = 2_048;

/// Pages that are given back in one transaction: 8 MB.
const SHRUNK_AT_ONCE: i64 = 2_048;

/// Frees what a connection keeps in memory and does not use.
const FORGET_PAGES: &str = "PRAGMA shrink_memory";

/// What SQLite calls the mode in which free pages can be given back.
const INCREMENTAL: i64 = 2;

/// The database, behind cheap clones.
#[derive(Clone)]
pub struct Store {
    read: Connections,
    write: Connections,
    partitions: history::Partitions,
    quotas: Quotas,
}

/// Why the store did not do what it was asked.
#[derive(Debug, thiserror::Error)]
pub enum StoreError {
    /// Its source is not named: it would repeat this in the driver's words.
    #[error("database: {}", failure::words(.0))]
    Database(DbErr),
    #[error("the database URL must begin with postgres:// or sqlite://")]
    BadScheme,
    /// In the driver's words, which do not repeat the URL.
    #[error("the database URL is not understood: {0}")]
    BadUrl(String),
    #[error(
        "a database in memory is not supported: name a file, such as sqlite:///var/lib/signalbox/signalbox.db?mode=rwc"
    )]
    InMemory,
    #[error("there is no database at {0}; ?mode=rwc at the end of its URL makes a new one")]
    NoFile(PathBuf),
    #[error("cannot use {path}: {detail}")]
    CannotOpen { path: PathBuf, detail: String },
    #[error(transparent)]
    Unreachable(#[from] reach::Unreachable),
    #[error("no permission to read and write {0}: use the account that the service runs as")]
    NoPermission(PathBuf),
    #[error("cannot write {path}: {source}")]
    Copy { path: PathBuf, source: std::io::Error },
    #[error("the e-mail address is taken")]
    EmailTaken,
    #[error("the user name is taken")]
    UsernameTaken,
    #[error("registration is closed")]
    RegistrationClosed,
    #[error("the account's quota of {} is reached: {limit}", quota.name())]
    QuotaExceeded { quota: Quota, limit: u64 },
    #[error("only a SQLite database can be backed up to a file")]
    NotSqlite,
    #[error("the schema could not be brought up to date: another instance is at it, or a table is in use; try again")]
    MigrationBlocked,
}

impl From<DbErr> for StoreError {
    fn from(error: DbErr) -> Self {
        Self::Database(error)
    }
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

    /// Whether there is a schema, of whatever version.
    pub async fn is_migrated(&self) -> Result<bool, StoreError> {
        connect::is_migrated(&self.read).await
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

    /// Lets go of the pages that SQLite's connections keep in memory. A reader that needs one takes it from the system's cache.
    /// One at a time: those who read do not wait for it.
    pub async fn forget_pages(&self) -> Result<(), StoreError> {
        if self.write.get_database_backend() != sea_orm::DatabaseBackend::Sqlite {
            return Ok(());
        }
        self.write.execute_unprepared(FORGET_PAGES).await?;
        // The pool hands out the connection that has been idle for longest: each comes once where they are not in use.
        for _ in 0..connect::SQLITE_READERS {
            self.read.execute_unprepared(FORGET_PAGES).await?;
        }
        Ok(())
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
