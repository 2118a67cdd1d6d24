//! Deletes rows that are no longer needed: expired tokens, spent revocations and long settled reservations.

use gw_store::Store;
use std::time::Duration;
use tokio::time::sleep;
use tokio_util::sync::CancellationToken;

/// Time between two purges (spec/85 section 6.3).
const INTERVAL: Duration = Duration::from_secs(3600);

/// Purges the store until `end` is cancelled. Correctness does not depend on it, because every use checks the expiry.
pub(crate) async fn purge_expired(store: Store, end: CancellationToken) {
    while end.run_until_cancelled(sleep(INTERVAL)).await.is_some() {
        if let Err(error) = store.purge_expired().await {
            tracing::warn!(
                error = &error as &dyn core::error::Error,
                "expired rows of the policy store were not deleted; the next attempt is in an hour"
            );
        }
    }
}
