//! The store's connections: SQLite's unchanged, PostgreSQL's with two additions.
//!
//! A caller that waits for a database that is away fails at once ([`HealthProbe`]). And behind a pooler that lends a connection for
//! one transaction, every statement is a transaction: the driver prepares a statement and runs it in two steps, between which
//! such a pooler may lend another connection. Prepared statements stay there, under names that other clients use, too. So each
//! transaction begins by removing them, and by repeating the settings that a session would remember.

use std::future::Future;
use std::sync::Arc;
use std::time::Duration;

use parking_lot::RwLock;
use sea_orm::prelude::async_trait::async_trait;
use sea_orm::{
    ConnectionTrait, DatabaseBackend, DatabaseConnection, DatabaseTransaction, DbErr, ExecResult, QueryResult,
    SqliteTransactionMode, Statement, TransactionOptions, TransactionTrait,
};

use super::health_probe::{HealthProbe, away};

/// How long replaced connections may take to close: those that hang do so until the system gives them up.
const OLD_GOODBYE: Duration = Duration::from_secs(60);

/// How long a health check waits for a connection: probes give up after a few seconds.
const FREE_WITHIN: Duration = Duration::from_secs(1);

/// The connections to one database; cheap to clone.
#[derive(Clone)]
pub(super) struct Connections {
    shared: Arc<Shared>,
}

pub(super) struct Shared {
    pool: RwLock<DatabaseConnection>,
    backend: DatabaseBackend,
    line: HealthProbe,
    /// The first statements of each transaction; only behind a pooler.
    prologue: Option<String>,
    mode: Mode,
}

/// How transactions begin on SQLite; PostgreSQL does not distinguish.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Mode {
    /// The transaction only reads.
    Read,
    /// The transaction takes the write lock first. If it read before, it could not write after another process, such as a
    /// command line, has written: SQLite refuses that at once, however long the timeout is.
    Write,
}

/// A transaction on one of the connections.
#[derive(Debug)]
pub(super) struct Transaction {
    inner: DatabaseTransaction,
    line: HealthProbe,
}

impl Connections {
    pub fn new(pool: DatabaseConnection, line: HealthProbe, prologue: Option<String>, mode: Mode) -> Self {
        let backend = pool.get_database_backend();
        Self { shared: Arc::new(Shared { pool: RwLock::new(pool), backend, line, prologue, mode }) }
    }

    pub fn shared(&self) -> &Arc<Shared> {
        &self.shared
    }

    /// Whether the database answers. When all connections to PostgreSQL are busy for a moment, it is not necessarily away; then
    /// the line's knowledge counts.
    pub async fn ping(&self) -> Result<(), DbErr> {
        let (line, pool) = (&self.shared.line, self.shared.pool());
        let answer = line.unless_away(pool.ping());
        if self.shared.backend != DatabaseBackend::Postgres {
            return answer.await;
        }
        match tokio::time::timeout(FREE_WITHIN, answer).await {
            Ok(answer) => answer,
            Err(_) if line.is_away() => Err(away()),
            Err(_) => Ok(()),
        }
    }

    pub async fn close(&self) -> Result<(), DbErr> {
        self.shared.line.hang_up();
        self.shared.pool().close_by_ref().await
    }

    pub async fn begin(&self) -> Result<Transaction, DbErr> {
        let sqlite_transaction_mode = match self.shared.mode {
            Mode::Read => None,
            Mode::Write => Some(SqliteTransactionMode::Immediate),
        };
        let options = TransactionOptions { sqlite_transaction_mode, ..Default::default() };
        self.begun(self.shared.pool().begin_with_options(options)).await
    }

    /// A transaction around one statement, where each needs one.
    async fn around_one(&self) -> Result<Option<Transaction>, DbErr> {
        match self.shared.prologue {
            Some(_) => Ok(Some(self.begin().await?)),
            None => Ok(None),
        }
    }

    async fn begun(
        &self,
        begin: impl Future<Output = Result<DatabaseTransaction, DbErr>>,
    ) -> Result<Transaction, DbErr> {
        let line = self.shared.line.clone();
        let begun = async {
            let inner = begin.await?;
            if let Some(prologue) = &self.shared.prologue {
                inner.execute_unprepared(prologue).await?;
            }
            Ok(inner)
        };
        let inner = line.unless_away(begun).await?;
        Ok(Transaction { inner, line })
    }
}

impl Shared {
    fn pool(&self) -> DatabaseConnection {
        self.pool.read().clone()
    }

    /// Replaces the connections, of which some may hang for a quarter of an hour.
    pub fn replace(&self, pool: DatabaseConnection) {
        let old = std::mem::replace(&mut *self.pool.write(), pool);
        tokio::spawn(async move { tokio::time::timeout(OLD_GOODBYE, old.close()).await });
    }
}

impl Transaction {
    /// The driver's transaction, which migrations require.
    pub fn inner(&self) -> &DatabaseTransaction {
        &self.inner
    }

    /// Commits. Where the database goes away in the process, the outcome is unknown.
    pub async fn commit(self) -> Result<(), DbErr> {
        self.line.unless_away(self.inner.commit()).await
    }

    pub async fn rollback(self) -> Result<(), DbErr> {
        self.line.unless_away(self.inner.rollback()).await
    }
}

#[async_trait]
impl ConnectionTrait for Connections {
    fn get_database_backend(&self) -> DatabaseBackend {
        self.shared.backend
    }

    async fn execute_raw(&self, statement: Statement) -> Result<ExecResult, DbErr> {
        let Some(transaction) = self.around_one().await? else {
            return self.shared.line.unless_away(self.shared.pool().execute_raw(statement)).await;
        };
        let done = transaction.execute_raw(statement).await?;
        transaction.commit().await?;
        Ok(done)
    }

    async fn execute_unprepared(&self, sql: &str) -> Result<ExecResult, DbErr> {
        let Some(transaction) = self.around_one().await? else {
            return self.shared.line.unless_away(self.shared.pool().execute_unprepared(sql)).await;
        };
        let done = transaction.execute_unprepared(sql).await?;
        transaction.commit().await?;
        Ok(done)
    }

    async fn query_one_raw(&self, statement: Statement) -> Result<Option<QueryResult>, DbErr> {
        let Some(transaction) = self.around_one().await? else {
            return self.shared.line.unless_away(self.shared.pool().query_one_raw(statement)).await;
        };
        let row = transaction.query_one_raw(statement).await?;
        transaction.commit().await?;
        Ok(row)
    }

    async fn query_all_raw(&self, statement: Statement) -> Result<Vec<QueryResult>, DbErr> {
        let Some(transaction) = self.around_one().await? else {
            return self.shared.line.unless_away(self.shared.pool().query_all_raw(statement)).await;
        };
        let rows = transaction.query_all_raw(statement).await?;
        transaction.commit().await?;
        Ok(rows)
    }
}

#[async_trait]
impl ConnectionTrait for Transaction {
    fn get_database_backend(&self) -> DatabaseBackend {
        self.inner.get_database_backend()
    }

    async fn execute_raw(&self, statement: Statement) -> Result<ExecResult, DbErr> {
        self.line.unless_away(self.inner.execute_raw(statement)).await
    }

    async fn execute_unprepared(&self, sql: &str) -> Result<ExecResult, DbErr> {
        self.line.unless_away(self.inner.execute_unprepared(sql)).await
    }

    async fn query_one_raw(&self, statement: Statement) -> Result<Option<QueryResult>, DbErr> {
        self.line.unless_away(self.inner.query_one_raw(statement)).await
    }

    async fn query_all_raw(&self, statement: Statement) -> Result<Vec<QueryResult>, DbErr> {
        self.line.unless_away(self.inner.query_all_raw(statement)).await
    }
}
