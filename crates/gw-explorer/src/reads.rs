//! Limits of the reads of one viewer, so that one viewer cannot take all connections to the store.

use gw_http::{ConcurrencyLimiter, ConcurrencyPermit, LimitKey};
use std::{
    collections::HashMap,
    sync::{Arc, Mutex, PoisonError, Weak},
};
use tokio::sync::{OwnedSemaphorePermit, Semaphore};

/// The most connections of one viewer are the pool's, divided by this.
const SHARE: u32 = 4;
/// The most reads of one viewer that run or wait.
const MAX_READS: usize = 64;

/// Limits the reads of each viewer: some run at the same time, more wait for their turn, and further ones are refused.
#[derive(Debug)]
pub struct ViewerReads {
    /// The reads of one viewer that run at the same time.
    share: usize,
    requests: Arc<ConcurrencyLimiter>,
    turns: Mutex<HashMap<LimitKey, Weak<Semaphore>>>,
}

/// The permit of one read.
#[derive(Debug)]
pub(crate) struct ReadPermit {
    _turn: OwnedSemaphorePermit,
    _request: ConcurrencyPermit,
}

/// The viewer has as many reads as the limit allows.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct TooManyReads;

impl ViewerReads {
    /// The limits for a store with this many connections for queries: one viewer uses at most a quarter of them.
    pub fn new(connections: u32) -> Self {
        Self {
            share: usize::try_from(connections / SHARE).unwrap_or(usize::MAX).max(1),
            requests: ConcurrencyLimiter::new(MAX_READS, MAX_READS),
            turns: Mutex::default(),
        }
    }

    /// Waits until a read of this viewer may run.
    ///
    /// # Errors
    /// [`TooManyReads`] if too many reads of the viewer run or wait.
    pub(crate) async fn acquire(&self, viewer: LimitKey) -> Result<ReadPermit, TooManyReads> {
        let request = self.requests.try_acquire(viewer).ok_or(TooManyReads)?;
        let turns = self.turns(viewer);
        // Nobody closes the semaphore.
        let turn = turns.acquire_owned().await.map_err(|_| TooManyReads)?;
        Ok(ReadPermit {
            _turn: turn,
            _request: request,
        })
    }

    /// The turns of a viewer. They are forgotten with the last read.
    fn turns(&self, viewer: LimitKey) -> Arc<Semaphore> {
        let mut turns = self.turns.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(known) = turns.get(&viewer).and_then(Weak::upgrade) {
            return known;
        }
        turns.retain(|_, semaphore| semaphore.strong_count() > 0);
        let semaphore = Arc::new(Semaphore::new(self.share));
        turns.insert(viewer, Arc::downgrade(&semaphore));
        semaphore
    }
}
