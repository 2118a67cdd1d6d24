//! Transactions that detect a rollback by the engine (RL1).
//!
//! Invariants: after a failed statement no other statement runs in the transaction, and nothing of it is committed.
//! Both engines may have rolled it back by themselves by then (SQLite on a full disk, PostgreSQL on any error), and
//! later statements would be committed alone or not at all. And [`Transaction::commit`] succeeds only once another
//! connection has seen the committed data.

use super::{
    Engine, HistoryId, Pool, postgres,
    session::{self, Session, Settlement, WaitLimits},
    sqlite,
};
use crate::StoreError;
use gw_types::Epoch;
use sea_orm::{ConnectionTrait, DatabaseTransaction, DbBackend, DbErr, ExecResult, QueryResult, Statement};
use sea_orm_migration::async_trait;
use std::{
    collections::BTreeSet,
    sync::{
        Mutex, PoisonError,
        atomic::{AtomicBool, Ordering},
    },
    time::Duration,
};
use tokio::{sync::OwnedSemaphorePermit, time::timeout};

/// Timeout for another connection's look at a commit.
const LOOK: Duration = Duration::from_secs(3);

/// An open transaction; dropping it rolls back.
#[derive(Debug)]
pub(crate) struct Transaction {
    db: DatabaseTransaction,
    /// The pool that owns the connection.
    pool: Pool,
    /// The pool that verifies the commit.
    reader: Pool,
    failed: AtomicBool,
    /// The tables of which it changed rows.
    changed: Mutex<BTreeSet<String>>,
    /// PostgreSQL: how the server knows the transaction, except for migrations.
    session: Option<Session>,
    /// Bounds of its statements; `None` for migrations, which may take long, and on SQLite.
    bound: Option<WaitLimits>,
    /// The mutation's place in the queue; released when the transaction has ended.
    turn: Option<OwnedSemaphorePermit>,
}

/// How another connection recognizes that a transaction was committed.
#[derive(Debug)]
pub(super) enum Receipt {
    /// The epoch that it raised, and the epoch's stamp, which no other history has.
    Epoch(Epoch, HistoryId),
    /// SQLite: the version in the file's header, raised by the transaction.
    Version(i32),
    /// PostgreSQL: the transaction's id.
    Number(String),
    /// The transaction wrote nothing.
    Nothing,
}

impl Transaction {
    pub(super) fn new(db: DatabaseTransaction, pool: &Pool, reader: &Pool) -> Self {
        Self {
            db,
            pool: pool.clone(),
            reader: reader.clone(),
            failed: AtomicBool::new(false),
            changed: Mutex::default(),
            session: None,
            bound: None,
            turn: None,
        }
    }

    /// Bounds the waits of a transaction on PostgreSQL whose locks are limited to `lock_wait`. Sets these limits if the
    /// transaction `writes`; the session has those of other transactions.
    pub(super) async fn in_session(mut self, lock_wait: Duration, writes: bool) -> Result<Self, DbErr> {
        self.bound = Some(WaitLimits::for_statements(lock_wait, postgres::STATEMENT_TIMEOUT));
        self.session = Some(postgres::session(&self, writes.then_some(lock_wait)).await?);
        Ok(self)
    }

    #[cfg(test)]
    pub(super) const fn session(&self) -> Option<Session> {
        self.session
    }

    /// Holds the mutation's place in the queue until the transaction has ended.
    pub(super) fn in_turn(self, turn: OwnedSemaphorePermit) -> Self {
        Self {
            turn: Some(turn),
            ..self
        }
    }

    /// Runs `work` on the raw transaction, for APIs that require it; its waits are not limited.
    pub(crate) async fn with_raw<T>(
        &self,
        work: impl AsyncFnOnce(&DatabaseTransaction) -> Result<T, DbErr>,
    ) -> Result<T, DbErr> {
        self.refuse_after_failure()?;
        let result = work(&self.db).await;
        if result.is_err() {
            self.failed.store(true, Ordering::Release);
            self.pool.suspect.store(true, Ordering::Release);
        }
        result
    }

    /// Commits, and returns when another connection has seen the commit.
    ///
    /// # Errors
    /// [`StoreError::Unconfirmed`] if it is unknown whether the commit succeeded; any other error means that it did
    /// not.
    pub(crate) async fn commit(self) -> Result<(), StoreError> {
        let receipt = self.receipt(None).await?;
        self.keep(&receipt).await
    }

    /// Commits a policy mutation that may have raised the epoch; returns the epoch and its stamp.
    ///
    /// # Errors
    /// As [`Transaction::commit`].
    pub(crate) async fn commit_epoch(self, raised: Option<Epoch>) -> Result<Option<(Epoch, HistoryId)>, StoreError> {
        let receipt = self.receipt(raised).await?;
        self.keep(&receipt).await?;
        Ok(match receipt {
            Receipt::Epoch(epoch, stamp) => Some((epoch, stamp)),
            Receipt::Version(_) | Receipt::Number(_) | Receipt::Nothing => None,
        })
    }

    async fn keep(self, receipt: &Receipt) -> Result<(), StoreError> {
        let Self {
            db,
            pool,
            reader,
            failed,
            session,
            bound,
            turn,
            changed: _,
        } = self;
        if failed.into_inner() {
            // Dropping `db` rolls back.
            return Err(after_failure().into());
        }
        let committed = pool
            .run_in(session, bound.map(|_| WaitLimits::COMMIT), db.commit())
            .await;
        match committed.map_err(StoreError::from) {
            // The next mutation need not wait for the read-back.
            Ok(()) => drop(turn),
            // If the connection was lost, the commit may have succeeded; if the database refused, it has not.
            Err(error) if error.is_unavailable() => {
                tracing::warn!(
                    error = &error as &dyn std::error::Error,
                    "the connection failed during a commit; checking whether the commit succeeded"
                );
                if turn.is_some() {
                    pool.liveness.note_refusal();
                }
                let settlement = match session {
                    Some(session) => pool.liveness.settle(session).await,
                    None => Settlement::Ended,
                };
                // The next mutation finds the locks released, if the server could be told.
                drop(turn);
                return match look(&reader, receipt).await {
                    // The server may have committed just before it was told to end the session, without the standby.
                    Ok(true) if settlement == Settlement::Terminated => {
                        Err(StoreError::Unconfirmed("the commit was not answered"))
                    }
                    Ok(true) => Ok(()),
                    // SQLite has no server that could still be committing.
                    Ok(false) if pool_engine(&pool) == Engine::Sqlite => Err(error),
                    Ok(false) | Err(_) => Err(StoreError::Unconfirmed("the commit was not answered")),
                };
            }
            Err(error) => return Err(error),
        }
        match look(&reader, receipt).await {
            Ok(true) => Ok(()),
            Ok(false) => {
                pool.suspect.store(true, Ordering::Release);
                tracing::error!(
                    ?receipt,
                    "the database confirmed a commit and does not show it: the change is answered 503; the likely \
                     cause is a failover or a faulty disk; check the database server"
                );
                Err(StoreError::Unconfirmed("the database does not show the commit"))
            }
            Err(error) => {
                tracing::warn!(
                    error = &error as &dyn std::error::Error,
                    "a commit was confirmed but could not be read back: the change is answered 503 and may be in force"
                );
                Err(StoreError::Unconfirmed("the commit could not be read back"))
            }
        }
    }

    /// Rolls back now, rather than on drop.
    pub(crate) async fn rollback(self) -> Result<(), DbErr> {
        let Self {
            db,
            pool,
            failed,
            session,
            bound,
            turn: _turn,
            ..
        } = self;
        if failed.into_inner() {
            // There may be nothing left to roll back; the drop tries, and the pool checks the released connection.
            return Ok(());
        }
        pool.run_in(session, bound, db.rollback()).await
    }

    async fn receipt(&self, raised: Option<Epoch>) -> Result<Receipt, StoreError> {
        if let Some(epoch) = raised {
            let stamp = super::stamp(self, epoch)
                .await?
                .ok_or(StoreError::Schema("without epoch stamps"))?;
            return Ok(Receipt::Epoch(epoch, stamp));
        }
        match pool_engine(&self.pool) {
            Engine::Sqlite => Ok(Receipt::Version(sqlite::raise_version(self).await?)),
            Engine::Postgres => Ok(postgres::number(self).await?.map_or(Receipt::Nothing, Receipt::Number)),
        }
    }

    /// The tables of which it changed rows; those that only a trigger or a foreign key changed are left out.
    pub(super) fn changed_tables(&self) -> BTreeSet<String> {
        self.changed.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }

    fn note_changed(&self, sql: &str, rows: u64) {
        if rows > 0
            && let Some(table) = written_table(sql)
        {
            let mut changed = self.changed.lock().unwrap_or_else(PoisonError::into_inner);
            if !changed.contains(table) {
                changed.insert(table.to_owned());
            }
        }
    }

    async fn run<T>(&self, work: impl Future<Output = Result<T, DbErr>>) -> Result<T, DbErr> {
        self.refuse_after_failure()?;
        let result = self.pool.run_in(self.session, self.bound, work).await;
        if let Err(error) = &result {
            self.failed.store(true, Ordering::Release);
            // Mutations that queue behind this one would fail alike (RL14).
            if self.turn.is_some() && crate::error::is_unavailable(error) {
                self.pool.liveness.note_refusal();
            }
            // Nobody waits for the locks of a session whose connection is silent.
            if session::is_unanswered(error)
                && let Some(session) = self.session
            {
                self.pool.liveness.settle(session).await;
            }
        }
        result
    }

    fn refuse_after_failure(&self) -> Result<(), DbErr> {
        if self.failed.load(Ordering::Acquire) {
            Err(after_failure())
        } else {
            Ok(())
        }
    }
}

/// The table that a statement writes.
fn written_table(sql: &str) -> Option<&str> {
    let mut words = sql.split([' ', '(', '\n']).filter(|word| !word.is_empty());
    let table = match words.next()? {
        "UPDATE" => words.next()?,
        "INSERT" | "DELETE" => words.nth(1)?,
        _ => return None,
    };
    Some(table.trim_matches('"'))
}

fn after_failure() -> DbErr {
    DbErr::Custom("an earlier statement of the transaction failed".to_owned())
}

fn pool_engine(pool: &Pool) -> Engine {
    Engine::for_connection(pool)
}

/// Like [`is_kept`], within [`LOOK`].
async fn look(reader: &Pool, receipt: &Receipt) -> Result<bool, StoreError> {
    timeout(LOOK, is_kept(reader, receipt))
        .await
        .unwrap_or(Err(StoreError::Unconfirmed("the commit could not be read back")))
}

/// Whether a connection of `reader` sees the transaction of this receipt.
async fn is_kept(reader: &Pool, receipt: &Receipt) -> Result<bool, StoreError> {
    match receipt {
        Receipt::Epoch(epoch, stamp) => Ok(super::stamp(reader, *epoch).await? == Some(*stamp)),
        Receipt::Version(version) => Ok(sqlite::has_version(reader, *version).await?),
        Receipt::Number(number) => Ok(postgres::is_committed(reader, number).await?),
        Receipt::Nothing => Ok(true),
    }
}

#[async_trait::async_trait]
impl ConnectionTrait for Transaction {
    fn get_database_backend(&self) -> DbBackend {
        self.db.get_database_backend()
    }

    async fn execute_raw(&self, statement: Statement) -> Result<ExecResult, DbErr> {
        let sql = statement.sql.clone();
        let result = self.run(self.db.execute_raw(statement)).await?;
        self.note_changed(&sql, result.rows_affected());
        Ok(result)
    }

    async fn execute_unprepared(&self, sql: &str) -> Result<ExecResult, DbErr> {
        let result = self.run(self.db.execute_unprepared(sql)).await?;
        self.note_changed(sql, result.rows_affected());
        Ok(result)
    }

    async fn query_one_raw(&self, statement: Statement) -> Result<Option<QueryResult>, DbErr> {
        let sql = statement.sql.clone();
        let row = self.run(self.db.query_one_raw(statement)).await?;
        self.note_changed(&sql, u64::from(row.is_some()));
        Ok(row)
    }

    async fn query_all_raw(&self, statement: Statement) -> Result<Vec<QueryResult>, DbErr> {
        let sql = statement.sql.clone();
        let rows = self.run(self.db.query_all_raw(statement)).await?;
        self.note_changed(&sql, u64::from(!rows.is_empty()));
        Ok(rows)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::dialect::full_disk;

    #[test]
    fn the_written_table_of_a_statement_is_known() {
        for (sql, table) in [
            (r#"INSERT INTO "users" ("id") VALUES ($1)"#, Some("users")),
            ("INSERT INTO users(id) VALUES (1)", Some("users")),
            (r#"UPDATE "users" SET "banned" = $1"#, Some("users")),
            (r#"DELETE FROM "users" WHERE 1 = 1"#, Some("users")),
            (r#"SELECT * FROM "users""#, None),
        ] {
            assert_eq!(written_table(sql), table, "{sql}");
        }
    }

    /// An epoch lost in a failover and its successor have the same number: the stamp distinguishes them.
    #[tokio::test]
    async fn rl1_another_historys_epoch_or_an_older_file_confirms_nothing() {
        let place = full_disk::place();
        let store = full_disk::open(&place.1).await;
        store.migrate().await.unwrap();
        let pools = &store.inner.pools;
        let head = super::super::head(&pools.reader).await.unwrap();
        let is_committed = |receipt: Receipt| async move { is_kept(&pools.reader, &receipt).await.unwrap() };
        assert!(is_committed(Receipt::Epoch(head.epoch, head.stamp)).await);
        assert!(
            !is_committed(Receipt::Epoch(head.epoch, HistoryId(uuid::Uuid::from_u128(1)))).await,
            "another history"
        );
        assert!(
            !is_committed(Receipt::Epoch(Epoch(head.epoch.0 + 1), head.stamp)).await,
            "not there"
        );

        let tx = pools.begin_write().await.unwrap();
        let Receipt::Version(version) = tx.receipt(None).await.unwrap() else {
            panic!("a file has versions")
        };
        assert!(
            !is_committed(Receipt::Version(version)).await,
            "open, so nobody else sees it"
        );
        tx.rollback().await.unwrap();
        assert!(is_committed(Receipt::Version(version - 1)).await && !is_committed(Receipt::Version(version)).await);
    }
}
