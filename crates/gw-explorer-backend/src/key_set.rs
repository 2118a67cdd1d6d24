//! The gateway's public keys, by which access tokens are verified (spec/40 section 7, step 9).
//!
//! Invariant: keys are used for ten minutes after they were fetched, and no longer: a key that the gateway removed does
//! not verify. There is one fetch at a time, and at most one in thirty seconds, whatever tokens arrive.

use crate::upstream::Upstream;
use futures_util::{
    FutureExt as _,
    future::{BoxFuture, Shared},
};
use gw_http::{AccessClaims, PublicKeys, PublicTokenError, TokenError};
use gw_types::{Clock, Seconds, Secret, Timestamp};
use std::sync::{Arc, Mutex, PoisonError};
use tokio_util::task::TaskTracker;

/// How long fetched keys are used.
const LIFE: Seconds = Seconds(600);
/// The least time between two fetches.
const PAUSE: Seconds = Seconds(30);

/// Why a token is not verified.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub(crate) enum TokenCheckError {
    /// The gateway publishes no keys.
    #[error("the gateway publishes no keys: set ACCESS_TOKEN_ALGORITHM=EdDSA there")]
    NoKeys,
    /// The keys cannot be fetched now.
    #[error("the keys of the gateway cannot be fetched")]
    Unavailable,
    /// No key of the gateway signed the token, it is another gateway's, or it has expired.
    #[error("the token is not valid")]
    Rejected(#[source] PublicTokenError),
}

/// The outcome of a fetch: `None` if it failed.
type Fetch = Shared<BoxFuture<'static, Option<Arc<PublicKeys>>>>;

/// The keys of one gateway.
#[derive(Debug)]
pub(crate) struct KeySetCache {
    upstream: Upstream,
    /// What the gateway calls itself in its tokens.
    issuer: String,
    clock: Arc<dyn Clock>,
    tasks: TaskTracker,
    state: Arc<Mutex<CacheState>>,
}

#[derive(Debug, Default)]
struct CacheState {
    keys: Option<(Arc<PublicKeys>, Timestamp)>,
    fetch: Option<(Fetch, Timestamp)>,
}

impl KeySetCache {
    pub(crate) fn new(upstream: Upstream, issuer: String, clock: Arc<dyn Clock>, tasks: TaskTracker) -> Self {
        Self {
            upstream,
            issuer,
            clock,
            tasks,
            state: Arc::default(),
        }
    }

    /// Verifies an access token: its key, issuer, audience and life. If its key is unknown, the keys are fetched again.
    ///
    /// # Errors
    /// [`TokenCheckError`] if the token is not verified.
    pub(crate) async fn verify(&self, token: &Secret) -> Result<AccessClaims, TokenCheckError> {
        let now = self.clock.now();
        let keys = match self.cached(now) {
            Some(keys) => keys,
            None => self.fetch(now).await.ok_or(TokenCheckError::Unavailable)?,
        };
        match self.check(&keys, token) {
            Err(TokenCheckError::NoKeys | TokenCheckError::Rejected(PublicTokenError::UnknownKey)) => {
                // The gateway may have new keys.
                let keys = self.fetch(now).await.unwrap_or(keys);
                self.check(&keys, token)
            }
            verdict => verdict,
        }
    }

    fn check(&self, keys: &PublicKeys, token: &Secret) -> Result<AccessClaims, TokenCheckError> {
        let verdict = keys.verify(token.expose(), &self.issuer, self.clock.now());
        verdict.map_err(|error| match error {
            PublicTokenError::UnknownKey if keys.is_empty() => TokenCheckError::NoKeys,
            error @ (PublicTokenError::UnknownKey
            | PublicTokenError::Token(TokenError::Invalid | TokenError::Expired)) => TokenCheckError::Rejected(error),
        })
    }

    fn cached(&self, now: Timestamp) -> Option<Arc<PublicKeys>> {
        let state = self.state.lock().unwrap_or_else(PoisonError::into_inner);
        let (keys, since) = state.keys.as_ref()?;
        (*since <= now && now < since.plus(LIFE)).then(|| Arc::clone(keys))
    }

    /// Joins or begins a fetch. `None` if the last one was too short a time ago, or fails.
    async fn fetch(&self, now: Timestamp) -> Option<Arc<PublicKeys>> {
        let fetch = self.join_fetch(now)?;
        fetch.await
    }

    fn join_fetch(&self, now: Timestamp) -> Option<Fetch> {
        let mut state = self.state.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some((fetch, begun)) = &state.fetch {
            if fetch.peek().is_none() {
                return Some(fetch.clone());
            }
            if *begun <= now && now < begun.plus(PAUSE) {
                return None;
            }
        }
        let (upstream, shared) = (self.upstream.clone(), Arc::clone(&self.state));
        let task = self.tasks.spawn(async move {
            let keys = match upstream.key_set().await {
                Ok(keys) => Arc::new(keys),
                Err(error) => {
                    tracing::warn!(
                        error = &error as &dyn core::error::Error,
                        "the keys of the gateway could not be fetched"
                    );
                    return None;
                }
            };
            let mut state = shared.lock().unwrap_or_else(PoisonError::into_inner);
            state.keys = Some((Arc::clone(&keys), now));
            Some(keys)
        });
        let fetch = async move { task.await.ok().flatten() }.boxed().shared();
        state.fetch = Some((fetch.clone(), now));
        Some(fetch)
    }
}
