//! Client address and correlation id of a request, for its records.

use axum::extract::{FromRef, FromRequestParts};
use gw_http::{ClientAddress, CorrelationId, HttpContext};
use gw_store::Actor;
use http::request::Parts;
use std::{convert::Infallible, sync::Arc};

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

impl<S> FromRequestParts<S> for RequestInfo
where
    S: Send + Sync,
    Arc<HttpContext>: FromRef<S>,
{
    type Rejection = Infallible;

    async fn from_request_parts(parts: &mut Parts, state: &S) -> Result<Self, Infallible> {
        let Ok(client) = ClientAddress::from_request_parts(parts, state).await;
        let Ok(correlation) = <CorrelationId as FromRequestParts<S>>::from_request_parts(parts, state).await;
        Ok(Self { client, correlation })
    }
}
