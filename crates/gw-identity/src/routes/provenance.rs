//! From where a request comes and what it is called, for records of it.

use crate::state::IdentityState;
use axum::extract::FromRequestParts;
use gw_http::{ClientAddress, CorrelationId};
use gw_store::Actor;
use http::request::Parts;
use std::convert::Infallible;

/// Client address and correlation id of one request.
#[derive(Clone, Debug)]
pub(crate) struct Provenance {
    pub(crate) client: ClientAddress,
    pub(crate) correlation: CorrelationId,
}

impl Provenance {
    /// The actor, acting through this request.
    pub(crate) fn act(&self, actor: Actor) -> Actor {
        actor.from_request(Some(self.client.0), Some(self.correlation.as_str().to_owned()))
    }
}

impl FromRequestParts<IdentityState> for Provenance {
    type Rejection = Infallible;

    async fn from_request_parts(parts: &mut Parts, state: &IdentityState) -> Result<Self, Infallible> {
        let Ok(client) = ClientAddress::from_request_parts(parts, state).await;
        let Ok(correlation) =
            <CorrelationId as FromRequestParts<IdentityState>>::from_request_parts(parts, state).await;
        Ok(Self { client, correlation })
    }
}
