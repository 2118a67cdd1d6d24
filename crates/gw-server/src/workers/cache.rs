//! Checks the shared cache regularly, so that its state is known even if nobody logs in.

use gw_cache::Cache;
use std::time::Duration;
use tokio::time::sleep;
use tokio_util::sync::CancellationToken;

/// Time between two checks.
const INTERVAL: Duration = Duration::from_secs(1);

/// Checks the cache until `end` is cancelled. `/ready` shows the result.
pub(crate) async fn watch(cache: Cache, end: CancellationToken) {
    while cache.is_shared() && end.run_until_cancelled(sleep(INTERVAL)).await.is_some() {
        let _result = cache.check().await;
    }
}
