//! Storage: the only part of the service that knows the database.
//!
//! Queries are owner-first (`find(owner, id)`), so that nobody reaches another user's row because a filter was forgotten. A
//! function that changes several rows is one transaction, which is repeated when the database ends it in favour of another
//! ([`Store::retried`]), and a user's change has its audit entry in the same transaction. SQLite and PostgreSQL run the same
//! code, except for parts of the history: what only SQLite runs needs no second attempt, and sealing depends on the outcome of
//! the first.
//!
//! SQLite has one writer at a time. Every write goes through a pool of one connection, where writes queue in order, instead of
//! through many that answer `database is locked` to each other. Reads have a pool of their own and, in WAL mode, never wait for
//! a write.

#![deny(missing_docs)]

mod accounts;
mod advisory_lock;
mod alert_filter;
mod alert_lists;
mod alert_notes;
mod alert_rules;
mod alert_span;
mod alert_totals;
mod alerts;
mod annotations;
mod api_keys;
mod approvals;
pub mod audit;
mod audit_log;
mod backup;
mod batches;
mod channels;
mod claims;
mod clock;
mod command_storage;
mod command_writes;
mod commands;
mod commit;
mod connect;
mod connections;
mod due;
mod ended_channels;
mod enrolling;
mod enrolments;
mod existence;
mod external_identities;
mod external_logins;
mod factors;
mod failure;
mod fence;
mod fleet_events;
mod fleet_presence;
mod grants;
mod health_probe;
pub mod history;
pub mod import;
mod instances;
mod invitations;
mod invited_grants;
mod logins;
mod offline_servers;
mod once;
mod outbox;
mod past;
mod program_tokens;
mod progress;
mod provider_teams;
mod quotas;
mod reach;
mod recordings;
mod refused_approvals;
mod reminders;
mod roles;
pub mod rollouts;
mod routing;
mod schedule_alerts;
mod schedules;
mod series_help;
mod server_events;
mod server_filter;
mod server_lists;
mod servers;
mod share;
mod shared_alerts;
mod silences;
mod sqlite_pages;
mod status_changes;
mod target;
mod teams;
mod thresholds;
mod transfer;
mod users;
mod views;
mod visibility;
mod withdrawals;

use std::path::PathBuf;

use connections::Connections;
use migration::{Migrator, MigratorTrait};
use sea_orm::DbErr;

pub use accounts::{Account, AccountDeletion, AccountPatch, DeletedAccount};
pub use alert_filter::AlertFilter;
pub use alert_lists::AlertCount;
pub use alert_notes::{MAX_NOTES, Noted};
pub use alert_rules::{RuleScope, WatchedServer};
pub use alerts::{AlertChange, AlertChanges};
pub use annotations::MAX_ANNOTATIONS;
pub use api_keys::{KnownKey, NewApiKey};
pub use approvals::{ApprovalServer, MAX_WAITING, NewApproval, Signing};
pub use audit_log::{AuditChanges, AuditFilter};
pub use batches::{BatchItem, BatchStanding};
pub use channels::{ChannelPatch, NewChannel, SealedSettings};
pub use claims::{Attempt, Claim};
pub use clock::SavedClock;
pub use command_storage::Trimmed;
pub use command_writes::{CommandChange, CommandEnd, CommandWrite};
pub use commit::{
    Claim as SessionClaim, Commit, Committed, Connected, Departure, Disconnected, Redescribed, has_replaced,
};
pub use connect::{DatabaseSettings, POSTGRES_CONNECTIONS, Pooler};
pub use due::Due;
pub use enrolling::{Enrolled, Enrolling, Newcomer};
pub use enrolments::{Enrolment, EnrolmentGrant, EnrolmentTerms, KnownEnrolment, NewEnrolment};
pub use entity::alert::Model as Alert;
pub use entity::alert_event::Model as AlertEvent;
pub use entity::alert_threshold::Model as Threshold;
pub use entity::api_key::Model as ApiKey;
pub use entity::approval::Model as Approval;
pub use entity::approval_signature::Model as ApprovalSignature;
pub use entity::command::Model as Command;
pub use entity::command_batch::Model as CommandBatch;
pub use entity::external_identity::Model as ExternalIdentity;
pub use entity::invitation::Model as Invitation;
pub use entity::login::Model as Login;
pub use entity::notification::Model as Notification;
pub use entity::notification_channel::Model as Channel;
pub use entity::passkey::Model as Passkey;
pub use entity::schedule::Model as Schedule;
pub use entity::schedule_run::Model as ScheduleRun;
pub use entity::server::Model as ServerRecord;
pub use entity::server_event::Model as ServerEvent;
pub use entity::silence::Model as Silence;
pub use entity::team::Model as Team;
pub use entity::totp::Model as Totp;
pub use entity::user::Model as User;
pub use entity::view::Model as View;
pub use existence::SessionRow;
pub use external_identities::{FirstSignIn, IdentityLink, NewIdentity, Removal};
pub use external_logins::{LogoutNotice, ProviderLogin};
pub use factors::passkeys::{Answered, MAX_PASSKEYS, NewPasskey, PasskeyUse, Signed, SpentChallenge};
pub use factors::totp::{CODES, Throttle};
pub use factors::{Means, Proof, SecondFactors};
pub use fence::Fence;
pub use grants::{Grant, GrantNames, GrantScope, GrantSubject, GrantsAndMembers, NewGrant};
pub use instances::{Beat, DEAD_AFTER_MS, Entered, NewInstance, SOLE_DEAD_AFTER_MS, Swept};
pub use invitations::{MAX_INVITATIONS, NewInvitation, OpenInvitation};
pub use invited_grants::InvitedGrant;
pub use logins::{Caller, NewLogin, Rotation, TokenRotation};
pub use offline_servers::OfflineServers;
pub use once::Once;
pub use outbox::{AlertAudience, Delivery, DeliveryFilter, NotificationContent, alert_view};
pub use program_tokens::{KnownToken, NewProgramToken, ProgramToken, TokenLimits, TokenScope};
pub use progress::{MAX_HAND_OVERS, Progress, Standing, Verdict};
pub use provider_teams::{MAX_PROVIDER_MEMBERS, MAX_PROVIDER_TEAMS, TeamsChange};
pub use quotas::{Quota, Quotas, Usage};
pub use reach::Unreachable;
pub use recordings::{RecordingNote, TerminalNote};
pub use reminders::AlertToNotify;
pub use roles::{Right, Rights, Role};
pub use routing::channel_tags;
pub use schedule_alerts::{SCHEDULE, ScheduleAlerts};
pub use schedules::{EndedRun, FailedOn, KEPT_RUNS, MAX_SCHEDULES, Occurrence};
pub use server_events::{NewServerEvent, ServerEventFilter, presence as presence_kind};
pub use server_filter::{ServerFilter, StatusFilter};
pub use server_lists::VisibleServer;
pub use servers::{DEFAULT_PORT, NewServer, Server, ServerPatch};
pub use share::{SHARDS, Share, shard_of};
pub use silences::{SilenceTerms, WeeklySchedule};
pub use status_changes::CLOCK_IS_WRONG;
pub use target::{check, place_of, sqlite_file};
pub use teams::{Joined, Left, MAX_MEMBERS, Renamed, TeamMember, TeamWithMembers};
pub use thresholds::{Reach, ThresholdFilter, ThresholdTerms};
pub use users::{Admission, NewUser, Registration, UserPatch};
pub use views::{NewView, OwnedView, SharedWith, ViewKind, ViewPatch, ViewReader};
pub use visibility::{Shares, Visibility};

/// The migration that makes the table of instances. A program enters it before it migrates, so no later migration may change it
/// in a way that this needs.
const INSTANCES: &str = "m20261124_000002_instances";

/// The database; cheap to clone.
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
    /// The database failed. The driver's error is not the source, because it would repeat this in the driver's words.
    #[error("database: {}", failure::words(.0))]
    Database(DbErr),
    /// The URL is of another kind of database.
    #[error("the database URL must begin with postgres:// or sqlite://")]
    BadScheme,
    /// The URL is not understood, in the driver's words, which do not repeat the URL.
    #[error("the database URL is not understood: {0}")]
    BadUrl(String),
    /// The URL names a SQLite database in memory.
    #[error(
        "a database in memory is not supported: name a file, such as sqlite:///var/lib/signalbox/signalbox.db?mode=rwc"
    )]
    InMemory,
    /// The SQLite file does not exist.
    #[error("there is no database at {0}; ?mode=rwc at the end of its URL makes a new one")]
    NoFile(PathBuf),
    /// The SQLite file cannot be used.
    #[error("cannot use {path}: {detail}")]
    CannotOpen {
        /// The file.
        path: PathBuf,
        /// Why, in the system's or SQLite's words.
        detail: String,
    },
    /// PostgreSQL cannot be used.
    #[error(transparent)]
    Unreachable(#[from] reach::Unreachable),
    /// This account may not read and write the SQLite file.
    #[error("no permission to read and write {0}: use the account that the service runs as")]
    NoPermission(PathBuf),
    /// A copy of the database could not be written.
    #[error("cannot write {path}: {source}")]
    Copy {
        /// The file to write.
        path: PathBuf,
        /// Why it failed.
        source: std::io::Error,
    },
    /// Another account has the e-mail address.
    #[error("the e-mail address is taken")]
    EmailTaken,
    /// Another account has the user name.
    #[error("the user name is taken")]
    UsernameTaken,
    /// Another team has the name.
    #[error("the team name is taken")]
    TeamNameTaken,
    /// Only the first account may be created, and it exists.
    #[error("registration is closed")]
    RegistrationClosed,
    /// The invitation is unknown, used, expired, or for another address.
    #[error("the invitation is not valid")]
    InvitationInvalid,
    /// Too many invitations are open.
    #[error("{MAX_INVITATIONS} invitations are open")]
    TooManyInvitations,
    /// The account has too many schedules.
    #[error("the account has {MAX_SCHEDULES} schedules")]
    TooManySchedules,
    /// Too many commands of the account wait for signatures.
    #[error("{MAX_WAITING} commands of the account wait for signatures")]
    TooManyApprovals,
    /// The caller was an administrator when the request began, and is none any more.
    #[error("the caller is no administrator any more")]
    NotAdministrator,
    /// No enabled administrator would remain.
    #[error("the service needs an administrator who can sign in")]
    LastAdministrator,
    /// The account to delete has servers.
    #[error("the account has servers")]
    OwnsServers,
    /// Somebody has enabled the account while its history moved.
    #[error("the account was enabled again")]
    EnabledAgain,
    /// The account that should get the servers does not exist.
    #[error("the account for the servers does not exist")]
    NoRecipient,
    /// The account of the caller was deleted a moment ago.
    #[error("the account does not exist any more")]
    NoAccount,
    /// The server that something is for was deleted a moment ago.
    #[error("the server does not exist any more")]
    NoServer,
    /// The account may not have more of something.
    #[error("the account's quota of {} is reached: {limit}", quota.name())]
    QuotaExceeded {
        /// The quota.
        quota: Quota,
        /// Its value.
        limit: u64,
    },
    /// The operation is for SQLite databases only.
    #[error("only a SQLite database can be backed up to a file")]
    NotSqlite,
    /// The migrations did not get the locks that they need.
    #[error("the schema could not be brought up to date: another instance is at it, or a table is in use; try again")]
    MigrationBlocked,
}

impl From<DbErr> for StoreError {
    fn from(error: DbErr) -> Self {
        Self::Database(error)
    }
}

/// A page of a list, and the length of the whole list.
#[derive(Debug, Clone, PartialEq)]
pub struct Page<T> {
    /// The items of the page.
    pub items: Vec<T>,
    /// The length of the whole list.
    pub total: u64,
}

/// Which page of a list.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct PageRequest {
    /// At most this many items.
    pub limit: u64,
    /// How many items to skip.
    pub offset: u64,
}

impl Store {
    /// Connects to an existing database without changing its schema.
    pub async fn connect(url: &str, settings: DatabaseSettings) -> Result<Self, StoreError> {
        connect::open(url, settings).await
    }

    /// Whether there is a schema, of any version.
    pub async fn is_migrated(&self) -> Result<bool, StoreError> {
        connect::is_migrated(&self.read).await
    }

    /// Whether the schema is that of an older version, and has the table of instances: one that runs may rely on it.
    pub async fn is_outdated(&self) -> Result<bool, StoreError> {
        let missing = Migrator::get_pending_migrations_read_only(&self.read).await?;
        Ok(!missing.is_empty() && missing.iter().all(|migration| migration.name() != INSTANCES))
    }

    /// Connects and brings the schema up to date.
    pub async fn open(url: &str, settings: DatabaseSettings) -> Result<Self, StoreError> {
        let store = Self::connect(url, settings).await?;
        store.migrate().await?;
        Ok(store)
    }

    /// Brings the schema up to date. Returns the names of the migrations that were missing.
    pub async fn migrate(&self) -> Result<Vec<String>, StoreError> {
        connect::migrate(&self.write).await
    }

    /// Whether the database answers.
    pub async fn ping(&self) -> Result<(), StoreError> {
        Ok(self.read.ping().await?)
    }

    /// Waits for running statements and closes the connections.
    pub async fn close(self) {
        let Self { read, write, .. } = self;
        for pool in [write, read] {
            if let Err(error) = pool.close().await {
                tracing::warn!(%error, "the database did not close cleanly");
            }
        }
    }
}
