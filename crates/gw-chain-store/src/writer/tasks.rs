//! The queue of work.

use super::ChainWriter;
use crate::{
    ChainStoreError, Job, JobKind, Task,
    dialect::{Engine, Transaction},
    entity::tasks,
};
use gw_types::{Address, Seconds, Timestamp};
use sea_orm::{
    ActiveModelTrait, ColumnTrait, Condition, EntityTrait, ExprTrait, IntoActiveModel, PaginatorTrait, QueryFilter,
    QueryOrder, QuerySelect,
    sea_query::{Expr, OnConflict},
};
use std::collections::BTreeSet;

/// The longest time until a failed job is tried again.
const LONGEST_DELAY: u32 = 3600;
/// The balances of a token that are due at once after a block.
const AT_ONCE: i64 = 50;
/// The time between the further ones, in microseconds.
const BETWEEN_BALANCES: i64 = 1_000;

impl ChainWriter {
    /// Puts jobs into the queue; a job that is there already is done once, after this request.
    ///
    /// # Errors
    /// [`ChainStoreError::LeaseLost`] if another instance took the lease; any database error.
    pub async fn enqueue(&self, jobs: &[Job]) -> Result<(), ChainStoreError> {
        let tx = self.begin().await?;
        enqueue(&tx, jobs.iter().copied().collect(), self.config.clock.now()).await?;
        Ok(tx.commit().await?)
    }

    /// Takes at most `limit` due tasks of a kind, the longest due first. They are due again after `hold`, unless they
    /// are finished or retried by then: a task outlives a crash of its worker.
    ///
    /// # Errors
    /// [`ChainStoreError::LeaseLost`] if another instance took the lease; any database error.
    pub async fn take_tasks(&self, kind: JobKind, limit: u32, hold: Seconds) -> Result<Vec<Task>, ChainStoreError> {
        let now = self.config.clock.now();
        let due = tasks::Entity::find()
            .filter(tasks::Column::Kind.eq(kind.column()))
            .filter(tasks::Column::DueAt.lte(now.micros()))
            .order_by_asc(tasks::Column::DueAt)
            .limit(u64::from(limit));
        // An empty queue costs no write.
        let read = self.pools.begin_read().await?;
        if due.clone().count(&read).await? == 0 {
            return Ok(Vec::new());
        }
        drop(read);
        let tx = self.begin().await?;
        let rows = due.all(&tx).await?;
        let keys: Vec<Vec<u8>> = rows.iter().map(|row| row.key.clone()).collect();
        for batch in keys.chunks(Engine::for_connection(&tx).batch_size(1)) {
            tasks::Entity::update_many()
                .col_expr(tasks::Column::DueAt, Expr::value(now.plus(hold).micros()))
                .filter(tasks::Column::Kind.eq(kind.column()))
                .filter(tasks::Column::Key.is_in(batch.to_vec()))
                .exec(&tx)
                .await?;
        }
        tx.commit().await?;
        rows.iter().map(task).collect()
    }

    /// Removes finished tasks from the queue. A job that was requested again since the task was taken stays, and is due
    /// at once.
    ///
    /// # Errors
    /// [`ChainStoreError::LeaseLost`] if another instance took the lease; any database error.
    pub async fn finish_tasks(&self, done: &[Task]) -> Result<(), ChainStoreError> {
        let tx = self.begin().await?;
        finish(&tx, done, self.config.clock.now()).await?;
        Ok(tx.commit().await?)
    }

    /// Returns failed tasks to the queue. The time until they are due doubles with each failure, from two seconds to an
    /// hour.
    ///
    /// # Errors
    /// [`ChainStoreError::LeaseLost`] if another instance took the lease; any database error.
    pub async fn retry_tasks(&self, failed: &[Task]) -> Result<(), ChainStoreError> {
        let tx = self.begin().await?;
        for task in failed {
            let due = self.config.clock.now().plus(delay(task.attempts));
            let attempts = tasks::Column::Attempts;
            tasks::Entity::update_many()
                .col_expr(attempts, Expr::col(attempts).add(1))
                .col_expr(tasks::Column::DueAt, Expr::value(due.micros()))
                .filter(is_about(&task.job))
                .exec(&tx)
                .await?;
        }
        Ok(tx.commit().await?)
    }
}

/// Puts jobs into the queue. Of many balances in one token, each is due a little later than the one before it, so that
/// they do not delay those of other tokens.
pub(crate) async fn enqueue(tx: &Transaction, jobs: BTreeSet<Job>, now: Timestamp) -> Result<(), ChainStoreError> {
    let jobs: Vec<Job> = jobs.into_iter().collect();
    let again = OnConflict::columns([tasks::Column::Kind, tasks::Column::Key])
        .value(
            tasks::Column::Version,
            Expr::col((tasks::Entity, tasks::Column::Version)).add(1),
        )
        .to_owned();
    let mut turn = Turn::default();
    for batch in jobs.chunks(Engine::for_connection(tx).batch_size(5)) {
        let rows = batch.iter().map(|job| {
            let mut row = model(job, now);
            row.due_at = row.due_at.saturating_add(turn.next(job));
            row.into_active_model().reset_all()
        });
        tasks::Entity::insert_many(rows)
            .on_conflict(again.clone())
            .exec_without_returning(tx)
            .await?;
    }
    Ok(())
}

/// Ends the claims of the writers before this one, which cannot finish their tasks any more: their tasks are due at
/// once, and those that failed before at the latest when they would be due after another failure.
pub(super) async fn release_claims(tx: &Transaction, now: Timestamp) -> Result<(), ChainStoreError> {
    let kinds = JobKind::ALL.map(JobKind::column);
    for attempts in 0..LONGEST_DELAY.ilog2() {
        let due = match attempts {
            0 => now,
            attempts => now.plus(delay(attempts - 1)),
        };
        tasks::Entity::update_many()
            .col_expr(tasks::Column::DueAt, Expr::value(due.micros()))
            .filter(tasks::Column::Kind.is_in(kinds))
            .filter(tasks::Column::DueAt.gt(due.micros()))
            .filter(tasks::Column::Attempts.eq(i64::from(attempts)))
            .exec(tx)
            .await?;
    }
    Ok(())
}

/// The turn of a token's next balance. Jobs are sorted, so those of a token follow each other.
#[derive(Debug, Default)]
struct Turn {
    token: Option<Address>,
    balances: i64,
}

impl Turn {
    /// How much later than others this job is due, in microseconds.
    fn next(&mut self, job: &Job) -> i64 {
        let Job::TokenBalance { token, .. } = job else { return 0 };
        if self.token.replace(*token) != Some(*token) {
            self.balances = 0;
        }
        let later = std::cmp::max(self.balances.saturating_sub(AT_ONCE), 0);
        let delay = later.saturating_mul(BETWEEN_BALANCES);
        self.balances = self.balances.saturating_add(1);
        delay
    }
}

pub(super) async fn finish(tx: &Transaction, done: &[Task], now: Timestamp) -> Result<(), ChainStoreError> {
    for task in done {
        let deleted = tasks::Entity::delete_many()
            .filter(is_about(&task.job))
            .filter(tasks::Column::Version.eq(task.version))
            .exec(tx)
            .await?;
        if deleted.rows_affected == 0 {
            tasks::Entity::update_many()
                .col_expr(tasks::Column::DueAt, Expr::value(now.micros()))
                .col_expr(tasks::Column::Attempts, Expr::value(0_i64))
                .filter(is_about(&task.job))
                .exec(tx)
                .await?;
        }
    }
    Ok(())
}

fn is_about(job: &Job) -> Condition {
    Condition::all()
        .add(tasks::Column::Kind.eq(job.kind().column()))
        .add(tasks::Column::Key.eq(job.key()))
}

fn model(job: &Job, now: Timestamp) -> tasks::Model {
    tasks::Model {
        kind: job.kind().column(),
        key: job.key(),
        attempts: 0,
        due_at: now.micros(),
        version: 1,
    }
}

fn task(row: &tasks::Model) -> Result<Task, ChainStoreError> {
    Ok(Task {
        job: Job::from_columns(row.kind, &row.key)?,
        attempts: u32::try_from(row.attempts).unwrap_or(u32::MAX),
        version: row.version,
    })
}

fn delay(attempts: u32) -> Seconds {
    Seconds(std::cmp::min(
        2_u32.saturating_pow(attempts.saturating_add(1)),
        LONGEST_DELAY,
    ))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn x12_the_balances_of_a_token_with_many_holders_are_due_one_after_the_other() {
        let mut turn = Turn::default();
        let mut delays_of = |token, holders: u8| -> Vec<i64> {
            let jobs = (0..holders).map(|holder| Job::TokenBalance {
                token: Address::repeat_byte(token),
                holder: Address::repeat_byte(holder),
                token_id: None,
            });
            jobs.map(|job| turn.next(&job)).collect()
        };
        let delays = delays_of(1, 53);
        assert!(delays[..51].iter().all(|delay| *delay == 0));
        assert_eq!(delays[51..], [1_000, 2_000]);
        assert_eq!(delays_of(2, 2), [0, 0]);
    }

    #[test]
    fn the_delay_doubles_up_to_an_hour() {
        let delays = [0, 1, 2, 10, 11, u32::MAX].map(|attempts| delay(attempts).0);
        assert_eq!(delays, [2, 4, 8, 2048, 3600, 3600]);
    }
}
