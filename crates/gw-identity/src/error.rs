//! What every operation's error has in common: how faults of ours are logged and answered.

use gw_cache::Unavailable;
use gw_http::ApiError;
use gw_store::StoreError;
use gw_types::Seconds;
use std::time::Duration;
use tokio_util::task::TaskTracker;

/// A fault of the store, logged here: 503 while it cannot be reached (RTO8); otherwise the caller learns no more than that
/// the fault was ours (house rule 17).
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

/// The cache of logins and challenges is away; what runs without it goes on (spec/85 section 6, rule 4).
pub(crate) fn away() -> ApiError {
    ApiError::unavailable("login temporarily unavailable").retry_after(Seconds(5))
}

/// Runs `work` to its end even if the client hangs up (HD21): from the first effect on, nothing may stop half-way, and
/// the process waits for it before it ends.
pub(crate) async fn detached<T, E>(
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

/// Repeats `work` beside the request until the cache answers, for half a minute at most: by then what it tidies up has not
/// long to live.
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
