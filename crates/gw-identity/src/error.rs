//! Error handling that all operations share: how internal faults are logged and answered.

use gw_cache::Unavailable;
use gw_http::ApiError;
use gw_store::StoreError;
use gw_types::Seconds;
use std::time::Duration;
use tokio_util::task::TaskTracker;

/// Logs a store error and converts it: 503 while the store cannot be reached (RTO8), otherwise an internal error
/// without details (house rule 17).
pub(crate) fn storage(error: &StoreError) -> ApiError {
    if error.is_unavailable() {
        tracing::warn!(
            error = error as &dyn std::error::Error,
            "the policy store cannot be reached"
        );
        return ApiError::unavailable("the policy store is temporarily unavailable");
    }
    tracing::error!(error = error as &dyn std::error::Error, "the policy store failed");
    ApiError::internal()
}

/// The 503 for an unreachable cache of logins and challenges. Operations that do not need the cache still work (spec/85
/// section 6, rule 4).
pub(crate) fn away() -> ApiError {
    ApiError::unavailable("login temporarily unavailable").retry_after(Seconds(5))
}

/// Runs `work` to its end even if the client disconnects (HD21): after its first effect it must not stop half-way.
/// Shutdown waits for it.
pub(crate) async fn spawn_tracked<T, E>(
    tasks: &TaskTracker,
    work: impl Future<Output = Result<T, E>> + Send + 'static,
) -> Result<T, E>
where
    T: Send + 'static,
    E: From<StoreError> + Send + 'static,
{
    tasks
        .spawn(work)
        .await
        .unwrap_or_else(|_| Err(StoreError::Detached.into()))
}

/// Retries `work` in the background until the cache answers, for 30 seconds at most: the entries that it cleans up
/// expire soon after.
pub(crate) fn once_the_cache_answers<F>(work: impl Fn() -> F + Send + 'static)
where
    F: Future<Output = Result<(), Unavailable>> + Send,
{
    tokio::spawn(async move {
        for pause in [1, 2, 4, 8, 15] {
            tokio::time::sleep(Duration::from_secs(pause)).await;
            if work().await.is_ok() {
                return;
            }
        }
    });
}
