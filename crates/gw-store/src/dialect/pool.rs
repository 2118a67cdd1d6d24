//! Connection pools; every statement of this crate runs through this module.

use super::{
    Transaction,
    liveness::Liveness,
    session::{Session, WaitLimits},
};
use sea_orm::{ConnectionTrait, DatabaseConnection, DbBackend, DbErr, ExecResult, QueryResult, Statement};
use sea_orm_migration::async_trait;
use std::sync::{
    Arc,
    atomic::{AtomicBool, Ordering},
};

/// Connections of one kind to one database; cheap to clone.
#[derive(Clone, Debug)]
pub(crate) struct Pool {
    pub(super) db: DatabaseConnection,
    pub(crate) liveness: Arc<Liveness>,
    /// Set when a write failed: the next released connection is closed (RL1).
    pub(super) suspect: Arc<AtomicBool>,
}

impl Pool {
    pub(super) fn new(db: DatabaseConnection, liveness: Arc<Liveness>, suspect: Arc<AtomicBool>) -> Self {
        Self { db, liveness, suspect }
    }

    /// Waits for a statement as long as the database answers, and records a failure.
    pub(super) async fn run<T>(&self, work: impl Future<Output = Result<T, DbErr>>) -> Result<T, DbErr> {
        self.run_in(None, Some(super::POOL_BOUND), work).await
    }

    /// Waits for work on one connection within `bound`, and records a failure.
    pub(super) async fn run_in<T>(
        &self,
        session: Option<Session>,
        bound: Option<WaitLimits>,
        work: impl Future<Output = Result<T, DbErr>>,
    ) -> Result<T, DbErr> {
        let result = match bound {
            Some(bound) => self.liveness.wait_in(session, bound, work).await,
            None => self.liveness.wait_for(work).await,
        };
        if let Err(error) = &result
            && super::violation(error).is_none()
        {
            self.suspect.store(true, Ordering::Release);
        }
        result
    }

    /// Checks that the database answers.
    pub(crate) async fn ping(&self) -> Result<(), DbErr> {
        self.run(self.db.ping()).await
    }
}

#[async_trait::async_trait]
impl ConnectionTrait for Pool {
    fn get_database_backend(&self) -> DbBackend {
        self.db.get_database_backend()
    }

    async fn execute_raw(&self, statement: Statement) -> Result<ExecResult, DbErr> {
        self.run(self.db.execute_raw(statement)).await
    }

    async fn execute_unprepared(&self, sql: &str) -> Result<ExecResult, DbErr> {
        self.run(self.db.execute_unprepared(sql)).await
    }

    async fn query_one_raw(&self, statement: Statement) -> Result<Option<QueryResult>, DbErr> {
        self.run(self.db.query_one_raw(statement)).await
    }

    async fn query_all_raw(&self, statement: Statement) -> Result<Vec<QueryResult>, DbErr> {
        self.run(self.db.query_all_raw(statement)).await
    }
}

/// Where queries run: a pool or an open transaction.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Executor<'a> {
    Pool(&'a Pool),
    Transaction(&'a Transaction),
}

impl<'a> From<&'a Pool> for Executor<'a> {
    fn from(pool: &'a Pool) -> Self {
        Self::Pool(pool)
    }
}

impl<'a> From<&'a Transaction> for Executor<'a> {
    fn from(tx: &'a Transaction) -> Self {
        Self::Transaction(tx)
    }
}

#[async_trait::async_trait]
impl ConnectionTrait for Executor<'_> {
    fn get_database_backend(&self) -> DbBackend {
        match self {
            Self::Pool(pool) => pool.get_database_backend(),
            Self::Transaction(tx) => tx.get_database_backend(),
        }
    }

    async fn execute_raw(&self, statement: Statement) -> Result<ExecResult, DbErr> {
        match self {
            Self::Pool(pool) => pool.execute_raw(statement).await,
            Self::Transaction(tx) => tx.execute_raw(statement).await,
        }
    }

    async fn execute_unprepared(&self, sql: &str) -> Result<ExecResult, DbErr> {
        match self {
            Self::Pool(pool) => pool.execute_unprepared(sql).await,
            Self::Transaction(tx) => tx.execute_unprepared(sql).await,
        }
    }

    async fn query_one_raw(&self, statement: Statement) -> Result<Option<QueryResult>, DbErr> {
        match self {
            Self::Pool(pool) => pool.query_one_raw(statement).await,
            Self::Transaction(tx) => tx.query_one_raw(statement).await,
        }
    }

    async fn query_all_raw(&self, statement: Statement) -> Result<Vec<QueryResult>, DbErr> {
        match self {
            Self::Pool(pool) => pool.query_all_raw(statement).await,
            Self::Transaction(tx) => tx.query_all_raw(statement).await,
        }
    }
}
