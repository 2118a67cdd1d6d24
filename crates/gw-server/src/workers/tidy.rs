//! Clears away what has no meaning any more: expired tokens, spent revocations, long settled reservations.

use gw_store::Store;
use std::time::Duration;
use tokio::time::sleep;
use tokio_util::sync::CancellationToken;

/// How often (spec/85 section 6.3).
const BETWEEN: Duration = Duration::from_secs(3600);

/// Tidies until told to end. Nothing depends on it: expiry is judged at use.
pub(crate) async fn tidy(store: Store, end: CancellationToken) {
    while end.run_until_cancelled(sleep(BETWEEN)).await.is_some() {
        if let Err(error) = store.tidy().await {
            tracing::warn!(error = &error as &dyn core::error::Error, "the store was not tidied");
        }
    }
}
