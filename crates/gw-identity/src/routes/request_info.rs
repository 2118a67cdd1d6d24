//! Client address and correlation id of a request, for its records.

use crate::state::IdentityState;
use axum::extract::FromRequestParts;
use gw_http::{ClientAddress, CorrelationId};
use gw_store::Actor;
use http::request::Parts;
use std::convert::Infallible;

/// Client address and correlation id of one request.
#[derive(Clone, Debug)]
pub(crate) struct RequestInfo {
    pub(crate) client: ClientAddress,
    pub(crate) correlation: CorrelationId,
}

impl RequestInfo {
    /// Adds the request's address and correlation id to an actor.
    pub(crate) fn actor(&self, actor: Actor) -> Actor {
        actor.from_request(Some(self.client.0), Some(self.correlation.as_str().to_owned()))
    }
}

impl FromRequestParts<IdentityState> for RequestInfo {
    type Rejection = Infallible;

    async fn from_request_parts(parts: &mut Parts, state: &IdentityState) -> Result<Self, Infallible> {
        let Ok(client) = ClientAddress::from_request_parts(parts, state).await;
        let Ok(correlation) =
            <CorrelationId as FromRequestParts<IdentityState>>::from_request_parts(parts, state).await;
        Ok(Self { client, correlation })
    }
}
