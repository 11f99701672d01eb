//! Pages of SQLite that nobody needs any more: free ones of the file, and those that its connections keep in memory.

use sea_orm::{ConnectionTrait, DatabaseBackend, Statement};

use super::connect::SQLITE_READERS;
use super::{Store, StoreError};

/// Free pages that stay in the file of a small SQLite database: 8 MB.
const KEPT_PAGES: i64 = 2_048;

/// Pages that one transaction returns to the system: 8 MB.
const SHRUNK_AT_ONCE: i64 = 2_048;

/// Frees the memory that a connection holds and does not use.
const FORGET_PAGES: &str = "PRAGMA shrink_memory";

/// SQLite's number for the mode in which free pages can be returned.
const INCREMENTAL: i64 = 2;

impl Store {
    /// Returns free pages of a SQLite file to the system, some at a time, when there are many. Some stay, because the file
    /// needs them again within an hour.
    pub async fn shrink(&self) -> Result<(), StoreError> {
        let backend = self.write.get_database_backend();
        if backend != DatabaseBackend::Sqlite {
            return Ok(());
        }
        let number = |pragma: &'static str| async move {
            let row = self.write.query_one_raw(Statement::from_string(backend, format!("PRAGMA {pragma}"))).await?;
            row.map_or(Ok(0), |row| row.try_get_by_index::<i64>(0))
        };
        loop {
            let (free, all) = (number("freelist_count").await?, number("page_count").await?);
            let kept = KEPT_PAGES.max(all / 16);
            // A database that was created without this mode cannot return anything.
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

    /// Frees the pages that SQLite's connections keep in memory. A reader that needs one finds it in the system's cache. It
    /// frees one connection at a time, so that readers do not wait for it.
    pub async fn forget_pages(&self) -> Result<(), StoreError> {
        if self.write.get_database_backend() != DatabaseBackend::Sqlite {
            return Ok(());
        }
        self.write.execute_unprepared(FORGET_PAGES).await?;
        // The pool hands out the connection that has been idle for longest, so idle ones come once each.
        for _ in 0..SQLITE_READERS {
            self.read.execute_unprepared(FORGET_PAGES).await?;
        }
        Ok(())
    }
}
