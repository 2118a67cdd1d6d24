//! Long computations on blocking threads, a limited number at a time: proofs of logins, hashes of client secrets.
//!
//! The pool sets no deadline. Each caller limits its own wait with a timeout.

use std::sync::Arc;
use tokio::sync::{OwnedSemaphorePermit, Semaphore};

/// Limits the number of computations that run at the same time.
#[derive(Clone, Debug)]
pub(crate) struct BlockingPool(Arc<Semaphore>);

/// The permit to run one computation.
#[derive(Debug)]
pub(crate) struct BlockingPermit {
    _permit: OwnedSemaphorePermit,
}

impl BlockingPool {
    /// Creates a pool for this number of parallel computations.
    pub(crate) fn new(parallel: usize) -> Self {
        Self(Arc::new(Semaphore::new(parallel)))
    }

    /// Waits until fewer than the maximum run; `None` if the runtime shuts down.
    pub(crate) async fn acquire(&self) -> Option<BlockingPermit> {
        let _permit = Arc::clone(&self.0).acquire_owned().await.ok()?;
        Some(BlockingPermit { _permit })
    }
}

impl BlockingPermit {
    /// Runs `work` to its end, even if the future is dropped, and returns the permit then. `None` if `work` panicked.
    pub(crate) async fn run<T: Send + 'static>(self, work: impl FnOnce() -> T + Send + 'static) -> Option<T> {
        let work = move || {
            let result = work();
            drop(self);
            result
        };
        tokio::task::spawn_blocking(work).await.ok()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::{sync::mpsc, time::Duration};
    use tokio::time::timeout;

    #[tokio::test]
    async fn work_that_nobody_waits_for_keeps_its_permit_until_it_ends() {
        let pool = BlockingPool::new(1);
        let (end, ended) = mpsc::channel::<()>();
        let work = pool.acquire().await.unwrap().run(move || ended.recv());
        assert!(timeout(Duration::ZERO, work).await.is_err());
        assert_eq!(pool.0.available_permits(), 0);
        end.send(()).unwrap();
        let next = pool.acquire().await.unwrap();
        assert_eq!(next.run(|| 7).await, Some(7));
        assert_eq!(pool.0.available_permits(), 1);
    }
}
