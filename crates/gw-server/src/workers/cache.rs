//! Asks the shared cache now and then, so that its state is known where nobody logs in.

use gw_cache::Cache;
use std::time::Duration;
use tokio::time::sleep;
use tokio_util::sync::CancellationToken;

const BETWEEN: Duration = Duration::from_secs(1);

/// Asks until told to end. What it finds shows at `/ready`.
pub(crate) async fn watch(cache: Cache, end: CancellationToken) {
    while cache.is_shared() && end.run_until_cancelled(sleep(BETWEEN)).await.is_some() {
        let _noted = cache.check().await;
    }
}
