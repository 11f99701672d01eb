//! `signalbox import sqlite-to-postgres`: the data of a service moves while no service runs on either database.

use std::fmt;
use std::path::PathBuf;

use uuid::Uuid;

use super::{AdminError, open_filled, walk_audit};
use crate::audit::chain::{Broken, Head, hex};
use crate::auth::secret::{ENCRYPTION, SIGNING};
use crate::cluster::members::EnterError;
use crate::cluster::sole::Sole;
use crate::config::Config;
use crate::startup::directory;
use crate::store::import::{Import, ImportError, MovedTable, PlannedTable, Standing};
use crate::store::{self, Store};

/// What an import would do.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Plan {
    from: PathBuf,
    /// The target's address and name.
    to: String,
    standing: Standing,
    tables: Vec<PlannedTable>,
}

/// What an import has done.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Imported {
    from: PathBuf,
    tables: Vec<MovedTable>,
    audit: Result<Head, Broken>,
}

/// Says what would be moved from the SQLite database of `source` to the PostgreSQL database of `target`, and whether it
/// could be. Changes nothing, and works while a service runs.
pub async fn check(source: &Config, target: &Config) -> Result<Plan, AdminError> {
    let (from, to) = file_and_place(source, target)?;
    let (old, new) = open_both(source, target).await?;
    let planned = plan(&old, &new).await;
    close(old, new).await;
    let (standing, tables) = planned?;
    Ok(Plan { from, to, standing, tables })
}

/// Moves everything from the SQLite database of `source` to the PostgreSQL database of `target`, and compares both. What an
/// earlier run has moved already is not moved again.
pub async fn run(source: &Config, target: &Config) -> Result<Imported, AdminError> {
    let (from, to) = file_and_place(source, target)?;
    // No service runs on the source until this ends.
    let _directories = directory::take(source)?;
    let (old, new) = open_both(source, target).await?;
    let moved = move_to(&old, &new, &to).await;
    close(old, new).await;
    let (tables, audit) = moved?;
    Ok(Imported { from, tables, audit })
}

impl Imported {
    /// Whether the audit log is whole. It is what it was in the source: one that is broken was so before.
    pub fn audit(&self) -> Result<(), Broken> {
        self.audit.clone().map(|_| ())
    }
}

async fn plan(old: &Store, new: &Store) -> Result<(Standing, Vec<PlannedTable>), AdminError> {
    let import = Import::between(old.clone(), new.clone()).await?;
    Ok((import.standing().await?, import.plan().await?))
}

type Moved = (Vec<MovedTable>, Result<Head, Broken>);

async fn move_to(old: &Store, new: &Store, to: &str) -> Result<Moved, AdminError> {
    let import = Import::between(old.clone(), new.clone()).await?;
    // Before its schema is changed: it may be somebody else's.
    import.standing().await?;
    new.migrate().await?;
    // No service starts on the target while this place is taken.
    let sole = match Sole::take(new.clone(), Uuid::now_v7()).await {
        Ok(sole) => sole,
        Err(EnterError::NotAlone) => return Err(AdminError::TargetInUse(to.to_owned())),
        Err(error @ (EnterError::OtherSecrets | EnterError::Store(_))) => return Err(error.into()),
    };
    let moved = move_and_verify(&import, new).await;
    sole.give_up().await;
    moved
}

async fn move_and_verify(import: &Import, new: &Store) -> Result<Moved, AdminError> {
    if import.begin().await? == Standing::Unfinished {
        tracing::info!("the target has an unfinished import of this source: it continues");
    }
    import.move_rows().await?;
    let tables = import.verify().await?;
    import.finish().await?;
    let audit = match walk_audit(new, None, |_| ()).await {
        Ok(head) => Ok(head),
        Err(AdminError::AuditBroken(broken)) => Err(broken),
        Err(error) => return Err(error),
    };
    Ok((tables, audit))
}

/// The file that data comes from, which must be there, and the place that it goes to, for people.
fn file_and_place(source: &Config, target: &Config) -> Result<(PathBuf, String), AdminError> {
    if target.is_embedded() {
        return Err(ImportError::TargetNotPostgres.into());
    }
    let file = source.database_file().ok_or(ImportError::SourceNotSqlite)?;
    // Before the directory is locked, which would make it.
    match file.try_exists() {
        Ok(true) => {}
        Ok(false) => return Err(AdminError::NoDatabase(file.display().to_string())),
        Err(error) => return Err(AdminError::Unreadable { path: file.display().to_string(), source: error }),
    }
    Ok((file, store::place_of(&target.database_url())?))
}

async fn open_both(source: &Config, target: &Config) -> Result<(Store, Store), AdminError> {
    let old = open_filled(source).await?;
    match Store::connect(&target.database_url(), target.database).await {
        Ok(new) => Ok((old, new)),
        Err(error) => {
            old.close().await;
            Err(error.into())
        }
    }
}

async fn close(old: Store, new: Store) {
    new.close().await;
    old.close().await;
}

/// Columns of the list of tables: the longest name has 21 letters.
const NAME_WIDTH: usize = 22;
const COUNT_WIDTH: usize = 16;

fn counted(rows: u64) -> String {
    if rows == 1 { "1 row".to_owned() } else { format!("{rows} rows") }
}

impl fmt::Display for Plan {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        writeln!(f, "from {}", self.from.display())?;
        let standing = match self.standing {
            Standing::Empty => "which is empty",
            Standing::Unfinished => "which has an unfinished import of this source",
        };
        writeln!(f, "to   {}, {standing}", self.to)?;
        for PlannedTable { name, rows, moved } in &self.tables {
            write!(f, "{name:<NAME_WIDTH$} {:>COUNT_WIDTH$}", counted(*rows))?;
            if *moved > 0 {
                write!(f, ", {moved} of them moved already")?;
            }
            writeln!(f)?;
        }
        let rows = self.tables.iter().map(|table| table.rows).sum();
        write!(f, "{} tables, {}; nothing was changed", self.tables.len(), counted(rows))
    }
}

impl fmt::Display for Imported {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for MovedTable { name, rows, hash } in &self.tables {
            writeln!(f, "{name:<NAME_WIDTH$} {:>COUNT_WIDTH$}  {}", counted(*rows), hex(hash))?;
        }
        let rows = self.tables.iter().map(|table| table.rows).sum();
        writeln!(f, "moved and verified: {} tables, {}", self.tables.len(), counted(rows))?;
        if let Ok(head) = &self.audit {
            writeln!(f, "audit log is whole: {} entries, last hash {}", head.seq, hex(&head.hash))?;
        }
        writeln!(f)?;
        writeln!(f, "Next:")?;
        writeln!(
            f,
            "1. Start the service with --database-url (SIGNALBOX_DATABASE_URL) and the secrets that it had: the"
        )?;
        writeln!(f, "   same --data-dir, or copies of its files {} and {}", SIGNING.file_name, ENCRYPTION.file_name)?;
        writeln!(f, "   (--jwt-secret-file, --encryption-key-file). With another {}", SIGNING.file_name)?;
        writeln!(f, "   everybody must sign in again; with another {} no notification", ENCRYPTION.file_name)?;
        writeln!(f, "   can be sent.")?;
        writeln!(f, "2. Do not start a service on {} again: keep it as a", self.from.display())?;
        write!(f, "   backup until you trust the new database.")
    }
}
