//! The state all extractors and gates draw on.

use crate::{
    admin::AdminGate,
    client::{self, ClientAddress, TrustedProxies},
    network::PrivateNetwork,
    origin::OwnOrigins,
    token::TokenCodec,
};
use gw_policy::Snapshot;
use gw_types::{Clock, Entropy, Timestamp};
use http::{Extensions, HeaderMap};
use std::sync::Arc;

/// What every HTTP surface shares. States of routers give it out through `FromRef` as `Arc<Edge>`.
#[derive(Debug)]
pub struct Edge {
    /// Signs and checks tokens.
    pub tokens: TokenCodec,
    /// The policy to judge by.
    pub policy: PolicySource,
    /// The present.
    pub clock: Arc<dyn Clock>,
    /// Chance.
    pub entropy: Arc<dyn Entropy>,
    /// Our own pages.
    pub origins: Arc<OwnOrigins>,
    /// Whose forwarding headers count.
    pub proxies: TrustedProxies,
    /// What is inside, for the private gate.
    pub network: PrivateNetwork,
    /// The tokens of the admin API.
    pub admin: AdminGate,
    /// ENVIRONMENT=production.
    pub production: bool,
}

impl Edge {
    /// The present time.
    pub fn now(&self) -> Timestamp {
        self.clock.now()
    }

    /// From where a request comes.
    pub fn client(&self, extensions: &Extensions, headers: &HeaderMap) -> ClientAddress {
        self.proxies.client(client::peer(extensions), headers)
    }
}

/// Where the current snapshot comes from. It gives nothing while policy is stale: stale is closed.
#[derive(Clone)]
pub struct PolicySource(Arc<dyn Fn() -> Option<Arc<Snapshot>> + Send + Sync>);

impl PolicySource {
    /// A source that asks `pin` each time.
    pub fn new(pin: impl Fn() -> Option<Arc<Snapshot>> + Send + Sync + 'static) -> Self {
        Self(Arc::new(pin))
    }

    /// The snapshot of this moment, or nothing while it cannot be trusted.
    pub fn pin(&self) -> Option<Arc<Snapshot>> {
        (self.0)()
    }
}

impl core::fmt::Debug for PolicySource {
    fn fmt(&self, f: &mut core::fmt::Formatter<'_>) -> core::fmt::Result {
        f.write_str("PolicySource")
    }
}
