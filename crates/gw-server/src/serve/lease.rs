//! That this instance is alone, where it must be (HD24): one without a shared cache shares its store with nobody.
//!
//! An embedded store needs no lease: its directory is held by a lock that ends with the process.

use super::fault::Fault;
use anyhow::Context as _;
use gw_store::{InstanceLease, Store, StoreError};
use gw_types::Seconds;
use std::time::Duration;
use tokio::time::{Instant, sleep};

/// How long a lease lives without being renewed, and how often it is.
const LIFE: Seconds = Seconds(10);
const RENEW: Duration = Duration::from_secs(3);
/// An instance that was killed leaves its lease behind; longer than that nobody waits for it to end.
const PATIENCE: Duration = Duration::from_secs(15);

/// The lease of a running instance.
#[derive(Debug)]
pub(super) struct Lease {
    store: Store,
    held: InstanceLease,
}

impl Lease {
    /// Takes it, waiting a little for one that was left behind. With a shared cache, others that share it may live.
    pub(super) async fn take(store: &Store, shared_cache: bool) -> Result<Self, Fault> {
        let name = format!("process {}", std::process::id());
        let start = Instant::now();
        loop {
            match store.take_lease(&name, shared_cache, LIFE).await {
                Ok(held) => {
                    return Ok(Self {
                        store: store.clone(),
                        held,
                    });
                }
                Err(error @ StoreError::OtherInstance(_)) if start.elapsed() > PATIENCE => return Err(held(error)),
                Err(StoreError::OtherInstance(_)) => sleep(Duration::from_secs(1)).await,
                Err(error) => {
                    return Err(anyhow::Error::from(error)
                        .context("the instance's lease cannot be taken")
                        .into());
                }
            }
        }
    }

    /// Whether no other instance was alive when this one began.
    pub(super) const fn began_alone(&self) -> bool {
        self.held.began_alone()
    }

    /// Renews it until it is lost: then another instance may have started, and this one must end.
    pub(super) async fn keep(&self) -> Fault {
        loop {
            sleep(RENEW).await;
            match self.store.renew_lease(self.held, LIFE).await {
                Ok(()) => {}
                Err(error @ StoreError::OtherInstance(_)) => return held(error),
                // Policy is stale by then, so nothing is served; the lease lives on if the store comes back in time.
                Err(error) => tracing::warn!(error = &error as &dyn core::error::Error, "the lease was not renewed"),
            }
        }
    }

    /// Gives it back, so that a successor need not wait.
    pub(super) async fn release(self) {
        let released = self
            .store
            .release_lease(self.held)
            .await
            .context("the lease was not given back");
        if let Err(error) = released {
            tracing::warn!(
                error = format!("{error:#}"),
                "a successor will wait for this instance's lease to end"
            );
        }
    }
}

fn held(error: StoreError) -> Fault {
    Fault::Held(format!(
        "DATABASE_URL: {error}; instances share a store only where each has REDIS_URL"
    ))
}
