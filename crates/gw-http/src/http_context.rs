//! The state that all extractors and gates use.

use crate::{
    admin_gate::AdminGate,
    client::{self, ClientAddress, TrustedProxies},
    network::PrivateNetwork,
    origin::AllowedOrigins,
    token::TokenCodec,
};
use axum::extract::{FromRef, FromRequestParts};
use gw_policy::Snapshot;
use gw_types::{Clock, Entropy, Timestamp};
use http::{Extensions, HeaderMap, request::Parts};
use std::{convert::Infallible, sync::Arc};

/// What every HTTP surface shares. Router states provide it through `FromRef` as `Arc<HttpContext>`.
#[derive(Debug)]
pub struct HttpContext {
    /// Signs and checks tokens.
    pub tokens: TokenCodec,
    /// The source of policy snapshots.
    pub policy: PolicySource,
    /// The wall clock.
    pub clock: Arc<dyn Clock>,
    /// The source of random bytes.
    pub entropy: Arc<dyn Entropy>,
    /// The origins of allowed pages.
    pub origins: Arc<AllowedOrigins>,
    /// The proxies whose forwarding headers count.
    pub proxies: TrustedProxies,
    /// The internal addresses, for the private-network gate.
    pub network: PrivateNetwork,
    /// The tokens of the admin API.
    pub admin: AdminGate,
    /// ENVIRONMENT=production.
    pub production: bool,
}

impl HttpContext {
    /// The present time.
    pub fn now(&self) -> Timestamp {
        self.clock.now()
    }

    /// The client address of a request.
    pub fn client(&self, extensions: &Extensions, headers: &HeaderMap) -> ClientAddress {
        self.proxies.client(client::peer(extensions), headers)
    }
}

impl<S> FromRequestParts<S> for ClientAddress
where
    S: Send + Sync,
    Arc<HttpContext>: FromRef<S>,
{
    type Rejection = Infallible;

    async fn from_request_parts(parts: &mut Parts, state: &S) -> Result<Self, Infallible> {
        Ok(Arc::<HttpContext>::from_ref(state).client(&parts.extensions, &parts.headers))
    }
}

/// The source of the current snapshot. It returns none while policy is stale, so that requests are rejected.
#[derive(Clone)]
pub struct PolicySource(Arc<dyn Fn() -> Option<Arc<Snapshot>> + Send + Sync>);

impl PolicySource {
    /// Creates a source that calls `pin` each time.
    pub fn new(pin: impl Fn() -> Option<Arc<Snapshot>> + Send + Sync + 'static) -> Self {
        Self(Arc::new(pin))
    }

    /// The current snapshot; `None` while it cannot be trusted.
    pub fn pin(&self) -> Option<Arc<Snapshot>> {
        (self.0)()
    }
}

impl core::fmt::Debug for PolicySource {
    fn fmt(&self, f: &mut core::fmt::Formatter<'_>) -> core::fmt::Result {
        f.write_str("PolicySource")
    }
}
