//! The limits of open connections.

use crate::limits::{ConcurrencyLimiter, ConcurrencyPermit, LimitKey};
use std::sync::Arc;
use tokio::sync::{OwnedSemaphorePermit, Semaphore};
use tokio_util::sync::CancellationToken;

/// The most connections of one user, and of one address before its clients have authenticated.
const PER_USER: usize = 16;
const PER_ADDRESS: usize = 64;
/// The most connections of this instance.
const PER_INSTANCE: usize = 4096;

/// Limits the open connections.
#[derive(Debug)]
pub(crate) struct ConnectionLimiter {
    open: Arc<ConcurrencyLimiter>,
    room: Arc<Semaphore>,
    pub(crate) end: CancellationToken,
}

/// The permit of one connection.
#[derive(Debug)]
pub(crate) struct ConnectionPermit {
    _owner_permit: ConcurrencyPermit,
    _instance_permit: Arc<OwnedSemaphorePermit>,
}

impl ConnectionLimiter {
    pub(crate) fn new(end: CancellationToken) -> Self {
        Self {
            open: ConcurrencyLimiter::new(PER_USER, PER_ADDRESS),
            room: Arc::new(Semaphore::new(PER_INSTANCE)),
            end,
        }
    }

    /// The permit of a new connection; `None` if the owner or the instance has the most connections.
    pub(crate) fn try_acquire(&self, limit_key: LimitKey) -> Option<ConnectionPermit> {
        let room = Arc::clone(&self.room).try_acquire_owned().ok()?;
        Some(ConnectionPermit {
            _owner_permit: self.open.try_acquire(limit_key)?,
            _instance_permit: Arc::new(room),
        })
    }

    /// The permit of the user that a connection has authenticated as; it replaces the permit of the address.
    pub(crate) fn transfer(&self, permit: &ConnectionPermit, limit_key: LimitKey) -> Option<ConnectionPermit> {
        Some(ConnectionPermit {
            _owner_permit: self.open.try_acquire(limit_key)?,
            _instance_permit: Arc::clone(&permit._instance_permit),
        })
    }
}
