//! Whether the database answers readers.

use sea_orm::DbErr;
use std::sync::{
    Arc,
    atomic::{AtomicBool, Ordering},
};
use tokio::sync::Mutex;

/// Refuses readers at once while the database does not answer, so that they do not all wait for the limit of the pool.
/// One reader at a time still tries the database, and its success admits all.
#[derive(Clone, Debug, Default)]
pub(crate) struct Reachability(Arc<State>);

#[derive(Debug, Default)]
struct State {
    is_lost: AtomicBool,
    /// Held by the reader that tries a lost database.
    trial: Mutex<()>,
}

impl Reachability {
    /// Whether the last reader reached the database.
    pub(crate) fn is_reachable(&self) -> bool {
        !self.0.is_lost.load(Ordering::Acquire)
    }

    /// Begins a read with `begin`, and notes whether the database answered.
    ///
    /// # Errors
    /// The error of `begin`; a timeout if the database is lost and another reader tries it already.
    pub(crate) async fn begin<T>(&self, begin: impl Future<Output = Result<T, DbErr>>) -> Result<T, DbErr> {
        let _trial = if self.is_reachable() {
            None
        } else {
            Some(self.0.trial.try_lock().map_err(|_| super::timed_out())?)
        };
        let result = begin.await;
        self.0.is_lost.store(result.is_err(), Ordering::Release);
        result
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::{
        future::{pending, ready},
        pin::pin,
        task::{Context, Poll, Waker},
    };

    fn poll<T>(future: impl Future<Output = T>) -> Poll<T> {
        pin!(future).poll(&mut Context::from_waker(Waker::noop()))
    }

    #[test]
    fn e1_one_reader_at_a_time_tries_a_lost_database() {
        let reachability = Reachability::default();
        let fails = || ready(Err::<(), _>(crate::dialect::timed_out()));
        let is_refused = |result: Poll<Result<(), DbErr>>| matches!(result, Poll::Ready(Err(_)));
        assert!(is_refused(poll(reachability.begin(fails()))));
        assert!(!reachability.is_reachable());
        {
            let mut trial = pin!(reachability.begin(pending::<Result<(), DbErr>>()));
            let mut context = Context::from_waker(Waker::noop());
            assert!(trial.as_mut().poll(&mut context).is_pending());
            // The others do not wait for it, although the database would answer them.
            for _ in 0..3 {
                assert!(is_refused(poll(reachability.begin(ready(Ok(()))))));
            }
            assert!(!reachability.is_reachable());
        }
        // A trial that is given up makes room for another, and its success admits all.
        assert!(matches!(poll(reachability.begin(ready(Ok(())))), Poll::Ready(Ok(()))));
        assert!(reachability.is_reachable());
    }

    #[test]
    fn readers_of_a_reachable_database_do_not_wait_for_each_other() {
        let reachability = Reachability::default();
        let mut context = Context::from_waker(Waker::noop());
        let mut slow = pin!(reachability.begin(pending::<Result<(), DbErr>>()));
        assert!(slow.as_mut().poll(&mut context).is_pending());
        assert!(matches!(poll(reachability.begin(ready(Ok(())))), Poll::Ready(Ok(()))));
    }
}
