//! What an operator does on the command line, with or without a running service.

pub mod import;
pub mod signatures;
pub mod users;

use std::io::{self, ErrorKind};
use std::path::Path;

use base64::Engine;
use base64::prelude::BASE64_URL_SAFE_NO_PAD;
use secrecy::SecretString;

use crate::audit::chain::{Broken, Expectation, Head, Record, Verifier};
use crate::audit::{Actor, Entry, action};
use crate::auth::password::{Asker, PasswordError, Passwords};
use crate::cluster::members::EnterError;
use crate::config::{Config, DATABASE_FILE};
use crate::random;
use crate::startup::directory::DirectoryError;
use crate::store::import::ImportError;
use crate::store::{self, SecondFactors, Store, StoreError};

/// Entries of the audit log in one query: some 500 KB.
const VERIFIED_AT_ONCE: u64 = 1_000;

#[derive(Debug, thiserror::Error)]
pub enum AdminError {
    #[error("there is no database at {0}")]
    NoDatabase(String),
    #[error("cannot look for the database {path}: {source}")]
    Unreadable { path: String, source: io::Error },
    #[error("the database {0} holds no data of Signalbox; if it is the right one, run `signalbox migrate`")]
    NoData(String),
    #[error("there is no user called {0}")]
    NoUser(String),
    #[error("{0} already exists")]
    Exists(String),
    #[error("the backup was interrupted: {0} was not written")]
    Interrupted(String),
    #[error("the audit log is broken: {0}")]
    AuditBroken(#[from] Broken),
    #[error("the audit log has orders that are forged, altered, or without the signatures that servers ask for: {0}")]
    Forged(usize),
    #[error("{0}")]
    Allowed(String),
    #[error("cannot read the signers {path}: {detail}")]
    Signers { path: String, detail: String },
    #[error(transparent)]
    Store(#[from] StoreError),
    #[error(transparent)]
    Password(#[from] PasswordError),
    #[error("no random numbers: {0}")]
    NoRandomness(#[from] getrandom::Error),
    #[error(transparent)]
    Import(#[from] ImportError),
    #[error("a service uses the database {0}: stop it first; after a crash, wait some seconds")]
    TargetInUse(String),
    #[error("the database {0} has an unfinished import: run `signalbox import sqlite-to-postgres` again to finish it")]
    UnfinishedImport(String),
    #[error(transparent)]
    Directory(#[from] DirectoryError),
    #[error("cannot take the target database: {0}")]
    Enter(#[from] EnterError),
}

/// Writes a consistent copy of the database to `file`, unless `stop` resolves before it is there.
pub async fn backup(config: &Config, file: &Path, stop: impl Future<Output = ()>) -> Result<(), AdminError> {
    if file.exists() {
        return Err(AdminError::Exists(file.display().to_string()));
    }
    if !config.is_embedded() {
        // Checked before a connection to a database that may be away.
        return Err(StoreError::NotSqlite.into());
    }
    let store = open_filled(config).await?;
    let copied = tokio::select! {
        // Polled first: a copy that is complete is no failure.
        biased;
        copied = store.backup(file) => copied,
        // What was written is removed with the copy that is dropped. SQLite still writes, so closing would wait for that.
        () = stop => return Err(AdminError::Interrupted(file.display().to_string())),
    };
    store.close().await;
    match copied {
        Err(StoreError::Copy { path, source }) if source.kind() == ErrorKind::AlreadyExists => {
            Err(AdminError::Exists(path.display().to_string()))
        }
        copied => Ok(copied?),
    }
}

/// Brings the schema up to date. Returns the names of the migrations that were missing.
pub async fn migrate(config: &Config) -> Result<Vec<String>, AdminError> {
    let store = open(config).await?;
    let applied = store.migrate().await?;
    store.close().await;
    Ok(applied)
}

/// Sets a new random password for a user and ends their sessions. Returns the password.
pub async fn reset_password(config: &Config, name: &str) -> Result<String, AdminError> {
    let store = open_filled(config).await?;
    let user = store.find_user_by_name(name).await?.ok_or_else(|| AdminError::NoUser(name.to_owned()))?;
    let password = BASE64_URL_SAFE_NO_PAD.encode(random::bytes::<15>()?);
    let passwords = Passwords::new(config.password_iterations)?;
    let hash = passwords.hash(Asker::operator(), SecretString::from(password.as_str())).await?;
    // A running service notices within a second that the sessions are gone.
    let entry = Entry::new(action::PASSWORD_RESET, user.id, Actor::command_line());
    store.change_password(entry, hash, None, None).await?;
    store.close().await;
    Ok(password)
}

/// Removes all second factors of a user and ends their sessions. Returns what there was.
pub async fn reset_second_factor(config: &Config, name: &str) -> Result<SecondFactors, AdminError> {
    let store = open_filled(config).await?;
    let user = store.find_user_by_name(name).await?.ok_or_else(|| AdminError::NoUser(name.to_owned()))?;
    let entry = Entry::new(action::SECOND_FACTOR_RESET, user.id, Actor::command_line());
    let removed = store.reset_second_factors(entry).await?;
    store.close().await;
    Ok(removed)
}

/// Verifies the audit log from its first entry to its last, also while a service adds to it. Returns the last entry's
/// number and hash; `visit` sees each entry that is intact.
pub async fn verify_audit(
    config: &Config,
    expected: Option<Expectation>,
    visit: impl FnMut(&Record),
) -> Result<Head, AdminError> {
    let store = open_filled(config).await?;
    let verified = walk_audit(&store, expected, visit).await;
    store.close().await;
    verified
}

async fn walk_audit(
    store: &Store,
    expected: Option<Expectation>,
    mut visit: impl FnMut(&Record),
) -> Result<Head, AdminError> {
    let mut verifier = Verifier::new(expected);
    loop {
        // Read before the entries: entries that are added later come after this head, and the next round verifies them.
        let head = store.audit_head().await?;
        let records = store.audit_after(verifier.last(), VERIFIED_AT_ONCE).await?;
        if records.is_empty() {
            return Ok(verifier.finish(&head)?);
        }
        for record in &records {
            verifier.take(record)?;
            visit(record);
        }
    }
}

/// Opens a database that a service has used: on any other one, queries would fail for lack of a table. A database that an
/// unfinished import fills must not be changed.
async fn open_filled(config: &Config) -> Result<Store, AdminError> {
    let store = open(config).await?;
    let unusable = if !store.is_migrated().await? {
        AdminError::NoData
    } else if store.has_unfinished_import().await? {
        AdminError::UnfinishedImport
    } else {
        return Ok(store);
    };
    store.close().await;
    Err(unusable(store::place_of(&config.database_url())?))
}

/// Opens a database that exists already: a mistyped directory must not become an empty service.
async fn open(config: &Config) -> Result<Store, AdminError> {
    let file = config.data_dir.join(DATABASE_FILE);
    if config.database_url.is_none() {
        // Not `exists`, which is false where this user may not look: there may well be a database.
        match file.try_exists() {
            Ok(true) => {}
            Ok(false) => return Err(AdminError::NoDatabase(file.display().to_string())),
            Err(source) => return Err(AdminError::Unreadable { path: file.display().to_string(), source }),
        }
    }
    // Not migrated: a newer program must not change the schema while the old service still runs.
    Ok(Store::connect(&config.database_url(), config.database).await?)
}
