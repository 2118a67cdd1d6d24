//! The lease of the policy store. An instance without a shared cache must be the only one on its store (HD24).
//!
//! An embedded store needs no lease: the process locks its directory, and the lock ends with the process.

use super::fault::ServeError;
use anyhow::Context as _;
use gw_store::{InstanceLease, Store, StoreError};
use gw_types::Seconds;
use std::time::Duration;
use tokio::time::{Instant, sleep};

/// How long a lease is valid without a renewal.
const TTL: Seconds = Seconds(10);
/// How often the lease is renewed.
const RENEWAL_INTERVAL: Duration = Duration::from_secs(3);
/// How long to wait for the lease of another instance. Longer than [`TTL`], so that the lease of a killed instance
/// expires in this time.
const ACQUIRE_TIMEOUT: Duration = Duration::from_secs(15);

/// The lease that this instance holds.
#[derive(Debug)]
pub(super) struct Lease {
    store: Store,
    lease: InstanceLease,
}

impl Lease {
    /// Takes the lease, and waits up to 15 s for that of another instance to expire. With `shared_cache`, other
    /// instances that have a shared cache may hold leases at the same time.
    ///
    /// # Errors
    /// If another instance still holds the store, or the store fails.
    pub(super) async fn take(store: &Store, shared_cache: bool) -> Result<Self, ServeError> {
        let name = format!("process {}", std::process::id());
        let start = Instant::now();
        loop {
            match store.take_lease(&name, shared_cache, TTL).await {
                Ok(lease) => {
                    return Ok(Self {
                        store: store.clone(),
                        lease,
                    });
                }
                Err(error @ StoreError::OtherInstance(_)) if start.elapsed() > ACQUIRE_TIMEOUT => {
                    return Err(lease_held(error));
                }
                Err(StoreError::OtherInstance(_)) => sleep(Duration::from_secs(1)).await,
                Err(error) => {
                    return Err(anyhow::Error::from(error)
                        .context("the instance lease cannot be taken in the policy store")
                        .into());
                }
            }
        }
    }

    /// Whether no other instance was running when this one took its lease.
    pub(super) const fn began_alone(&self) -> bool {
        self.lease.began_alone()
    }

    /// Renews the lease until it is lost. Then another instance may have started, and this one must end.
    pub(super) async fn keep(&self) -> ServeError {
        loop {
            sleep(RENEWAL_INTERVAL).await;
            match self.store.renew_lease(self.lease, TTL).await {
                Ok(()) => {}
                Err(error @ StoreError::OtherInstance(_)) => return lease_held(error),
                // While the store is down, the policy snapshot becomes stale and nothing is served. The lease stays
                // valid if the store is back in time.
                Err(error) => tracing::warn!(
                    error = &error as &dyn core::error::Error,
                    "the instance lease could not be renewed; it is retried"
                ),
            }
        }
    }

    /// Releases the lease, so that a successor need not wait.
    pub(super) async fn release(self) {
        let released = self
            .store
            .release_lease(self.lease)
            .await
            .context("the instance lease could not be released");
        if let Err(error) = released {
            tracing::warn!(
                error = format!("{error:#}"),
                "the next instance must wait until this instance's lease expires"
            );
        }
    }
}

fn lease_held(error: StoreError) -> ServeError {
    ServeError::Held(format!(
        "DATABASE_URL: {error}; several instances may share a store only if each has REDIS_URL"
    ))
}
