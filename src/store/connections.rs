//! What the store speaks through: SQLite as it is, PostgreSQL with two things added.
//!
//! Whoever waits for a database that is away is told so at once ([`Line`]). And behind a pooler that lends a connection
//! for one transaction, every statement is a transaction: the driver prepares a statement and runs it in two steps,
//! between which such a pooler may lend it another connection. What was prepared stays there, under names that other
//! clients use too, so each transaction begins by clearing that away; and what a session would remember, it says anew.

use std::future::Future;
use std::pin::Pin;
use std::sync::{Arc, PoisonError, RwLock};
use std::time::Duration;

use sea_orm::prelude::async_trait::async_trait;
use sea_orm::{
    AccessMode, ConnectionTrait, DatabaseBackend, DatabaseConnection, DatabaseTransaction, DbErr, ExecResult,
    IsolationLevel, QueryResult, Statement, TransactionError, TransactionOptions, TransactionSession, TransactionTrait,
};

use super::line::Line;

/// How long connections that are replaced may take to close: those that hang do so until the system gives them up.
const OLD_GOODBYE: Duration = Duration::from_secs(60);

/// The connections to one database, behind cheap clones.
#[derive(Clone)]
pub(super) struct Connections {
    shared: Arc<Shared>,
}

pub(super) struct Shared {
    pool: RwLock<DatabaseConnection>,
    backend: DatabaseBackend,
    line: Line,
    /// What each transaction says first; only behind a pooler.
    prologue: Option<String>,
}

/// A transaction on one of the connections.
#[derive(Debug)]
pub(super) struct Transaction {
    inner: DatabaseTransaction,
    line: Line,
}

impl Connections {
    pub fn new(pool: DatabaseConnection, line: Line, prologue: Option<String>) -> Self {
        let backend = pool.get_database_backend();
        Self { shared: Arc::new(Shared { pool: RwLock::new(pool), backend, line, prologue }) }
    }

    pub fn shared(&self) -> &Arc<Shared> {
        &self.shared
    }

    pub async fn ping(&self) -> Result<(), DbErr> {
        self.shared.line.unless_away(self.shared.pool().ping()).await
    }

    pub async fn close(&self) -> Result<(), DbErr> {
        self.shared.line.hang_up();
        self.shared.pool().close_by_ref().await
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
        self.pool.read().unwrap_or_else(PoisonError::into_inner).clone()
    }

    /// Takes new connections instead of those of before, of which some may hang for a quarter of an hour.
    pub fn replace(&self, pool: DatabaseConnection) {
        let old = std::mem::replace(&mut *self.pool.write().unwrap_or_else(PoisonError::into_inner), pool);
        tokio::spawn(async move { tokio::time::timeout(OLD_GOODBYE, old.close()).await });
    }
}

impl Transaction {
    /// The engine's own, for migrations, which take no other.
    pub fn inner(&self) -> &DatabaseTransaction {
        &self.inner
    }

    /// Makes it durable. Where the database goes away meanwhile nobody can say whether it is.
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

#[async_trait]
impl TransactionSession for Transaction {
    async fn commit(self) -> Result<(), DbErr> {
        Self::commit(self).await
    }

    async fn rollback(self) -> Result<(), DbErr> {
        Self::rollback(self).await
    }
}

/// What a callback of SeaORM's own transactions gives.
type Outcome<'c, T, E> = Pin<Box<dyn Future<Output = Result<T, E>> + Send + 'c>>;

async fn run<F, T, E>(transaction: Transaction, callback: F) -> Result<T, TransactionError<E>>
where
    F: for<'c> FnOnce(&'c Transaction) -> Outcome<'c, T, E> + Send,
    E: std::fmt::Display + std::fmt::Debug,
{
    // Dropped without a commit it is rolled back.
    let done = callback(&transaction).await.map_err(TransactionError::Transaction)?;
    transaction.commit().await.map_err(TransactionError::Connection)?;
    Ok(done)
}

#[async_trait]
impl TransactionTrait for Connections {
    type Transaction = Transaction;

    async fn begin(&self) -> Result<Transaction, DbErr> {
        let pool = self.shared.pool();
        self.begun(pool.begin()).await
    }

    async fn begin_with_config(
        &self,
        isolation_level: Option<IsolationLevel>,
        access_mode: Option<AccessMode>,
    ) -> Result<Transaction, DbErr> {
        let pool = self.shared.pool();
        self.begun(pool.begin_with_config(isolation_level, access_mode)).await
    }

    async fn begin_with_options(&self, options: TransactionOptions) -> Result<Transaction, DbErr> {
        let pool = self.shared.pool();
        self.begun(pool.begin_with_options(options)).await
    }

    async fn transaction<F, T, E>(&self, callback: F) -> Result<T, TransactionError<E>>
    where
        F: for<'c> FnOnce(&'c Transaction) -> Outcome<'c, T, E> + Send,
        T: Send,
        E: std::fmt::Display + std::fmt::Debug + Send,
    {
        run(self.begin().await.map_err(TransactionError::Connection)?, callback).await
    }

    async fn transaction_with_config<F, T, E>(
        &self,
        callback: F,
        isolation_level: Option<IsolationLevel>,
        access_mode: Option<AccessMode>,
    ) -> Result<T, TransactionError<E>>
    where
        F: for<'c> FnOnce(&'c Transaction) -> Outcome<'c, T, E> + Send,
        T: Send,
        E: std::fmt::Display + std::fmt::Debug + Send,
    {
        let begun = self.begin_with_config(isolation_level, access_mode).await;
        run(begun.map_err(TransactionError::Connection)?, callback).await
    }
}

#[async_trait]
impl TransactionTrait for Transaction {
    type Transaction = Self;

    async fn begin(&self) -> Result<Self, DbErr> {
        let inner = self.line.unless_away(self.inner.begin()).await?;
        Ok(Self { inner, line: self.line.clone() })
    }

    async fn begin_with_config(
        &self,
        isolation_level: Option<IsolationLevel>,
        access_mode: Option<AccessMode>,
    ) -> Result<Self, DbErr> {
        let inner = self.line.unless_away(self.inner.begin_with_config(isolation_level, access_mode)).await?;
        Ok(Self { inner, line: self.line.clone() })
    }

    async fn begin_with_options(&self, options: TransactionOptions) -> Result<Self, DbErr> {
        let inner = self.line.unless_away(self.inner.begin_with_options(options)).await?;
        Ok(Self { inner, line: self.line.clone() })
    }

    async fn transaction<F, T, E>(&self, callback: F) -> Result<T, TransactionError<E>>
    where
        F: for<'c> FnOnce(&'c Self) -> Outcome<'c, T, E> + Send,
        T: Send,
        E: std::fmt::Display + std::fmt::Debug + Send,
    {
        run(self.begin().await.map_err(TransactionError::Connection)?, callback).await
    }

    async fn transaction_with_config<F, T, E>(
        &self,
        callback: F,
        isolation_level: Option<IsolationLevel>,
        access_mode: Option<AccessMode>,
    ) -> Result<T, TransactionError<E>>
    where
        F: for<'c> FnOnce(&'c Self) -> Outcome<'c, T, E> + Send,
        T: Send,
        E: std::fmt::Display + std::fmt::Debug + Send,
    {
        let begun = self.begin_with_config(isolation_level, access_mode).await;
        run(begun.map_err(TransactionError::Connection)?, callback).await
    }
}
