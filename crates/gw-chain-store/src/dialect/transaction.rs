//! Transactions that no statement outlives.
//!
//! Invariant: after a failed statement no other statement runs in the transaction, and nothing of it is committed. Both
//! engines may have rolled it back by themselves by then, and later statements would be committed alone.

use sea_orm::{ConnectionTrait, DatabaseTransaction, DbBackend, DbErr, ExecResult, QueryResult, Statement};
use sea_orm_migration::async_trait;
use std::{
    sync::{
        Arc,
        atomic::{AtomicBool, Ordering},
    },
    time::Duration,
};
use tokio::time::timeout;

/// The statements that ran, for the test of their plans.
#[cfg(test)]
pub(crate) static STATEMENTS: std::sync::Mutex<Vec<Statement>> = std::sync::Mutex::new(Vec::new());

#[cfg(test)]
fn record_statement(statement: &Statement) {
    STATEMENTS.lock().unwrap().push(statement.clone());
}

/// An open transaction; dropping it rolls back.
#[derive(Debug)]
pub(crate) struct Transaction {
    db: DatabaseTransaction,
    /// The flag of the pool that owns the connection.
    suspect: Arc<AtomicBool>,
    failed: AtomicBool,
    /// How long each statement may take; `None` for migrations.
    limit: Option<Duration>,
}

impl Transaction {
    pub(super) fn new(db: DatabaseTransaction, suspect: &Arc<AtomicBool>, limit: Option<Duration>) -> Self {
        Self {
            db,
            suspect: Arc::clone(suspect),
            failed: AtomicBool::new(false),
            limit,
        }
    }

    /// Runs `work` on the raw transaction, for APIs that require it.
    pub(crate) async fn with_raw<T>(
        &self,
        work: impl AsyncFnOnce(&DatabaseTransaction) -> Result<T, DbErr>,
    ) -> Result<T, DbErr> {
        self.run(work(&self.db)).await
    }

    /// # Errors
    /// If the transaction was not committed, or the connection was lost during the commit.
    pub(crate) async fn commit(self) -> Result<(), DbErr> {
        if self.failed.load(Ordering::Acquire) {
            // Dropping `db` rolls back.
            return Err(after_failure());
        }
        let Self { db, suspect, limit, .. } = self;
        let committed = bounded(limit, db.commit()).await;
        if committed.is_err() {
            suspect.store(true, Ordering::Release);
        }
        committed
    }

    async fn run<T>(&self, work: impl Future<Output = Result<T, DbErr>>) -> Result<T, DbErr> {
        if self.failed.load(Ordering::Acquire) {
            return Err(after_failure());
        }
        let result = bounded(self.limit, work).await;
        if result.is_err() {
            self.failed.store(true, Ordering::Release);
            self.suspect.store(true, Ordering::Release);
        }
        result
    }
}

async fn bounded<T>(limit: Option<Duration>, work: impl Future<Output = Result<T, DbErr>>) -> Result<T, DbErr> {
    match limit {
        // The server ends the statement first, if it answers at all.
        Some(limit) => timeout(limit.saturating_add(super::LOCK_TIMEOUT), work)
            .await
            .unwrap_or_else(|_| Err(super::timed_out())),
        None => work.await,
    }
}

fn after_failure() -> DbErr {
    DbErr::Custom("an earlier statement of the transaction failed".to_owned())
}

#[async_trait::async_trait]
impl ConnectionTrait for Transaction {
    fn get_database_backend(&self) -> DbBackend {
        self.db.get_database_backend()
    }

    async fn execute_raw(&self, statement: Statement) -> Result<ExecResult, DbErr> {
        #[cfg(test)]
        record_statement(&statement);
        self.run(self.db.execute_raw(statement)).await
    }

    async fn execute_unprepared(&self, sql: &str) -> Result<ExecResult, DbErr> {
        self.run(self.db.execute_unprepared(sql)).await
    }

    async fn query_one_raw(&self, statement: Statement) -> Result<Option<QueryResult>, DbErr> {
        #[cfg(test)]
        record_statement(&statement);
        self.run(self.db.query_one_raw(statement)).await
    }

    async fn query_all_raw(&self, statement: Statement) -> Result<Vec<QueryResult>, DbErr> {
        #[cfg(test)]
        record_statement(&statement);
        self.run(self.db.query_all_raw(statement)).await
    }
}
