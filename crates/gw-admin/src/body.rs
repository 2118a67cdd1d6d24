//! The body of an administrative request.

use crate::record::CallerSlot;
use axum::extract::{FromRef, FromRequest, OptionalFromRequest, Request};
use gw_http::{ApiError, HttpContext};
use serde::de::DeserializeOwned;
use std::sync::Arc;

/// A JSON object of type `T`. The caller is authorized again after the body has arrived, because an administrator who
/// was banned or removed in the meantime must not finish the request (HD20). `Option<JsonBody<T>>` accepts an empty
/// body.
#[derive(Clone, Copy, Debug)]
pub(crate) struct JsonBody<T>(pub(crate) T);

impl<S, T> FromRequest<S> for JsonBody<T>
where
    S: Send + Sync,
    T: DeserializeOwned,
    Arc<HttpContext>: FromRef<S>,
{
    type Rejection = ApiError;

    async fn from_request(request: Request, state: &S) -> Result<Self, ApiError> {
        let caller = caller(&request);
        let body = <gw_http::JsonBody<T> as FromRequest<S>>::from_request(request, state).await;
        caller.reauthorize(&Arc::<HttpContext>::from_ref(state))?;
        body.map(|gw_http::JsonBody(body)| Self(body))
    }
}

impl<S, T> OptionalFromRequest<S> for JsonBody<T>
where
    S: Send + Sync,
    T: DeserializeOwned,
    Arc<HttpContext>: FromRef<S>,
{
    type Rejection = ApiError;

    async fn from_request(request: Request, state: &S) -> Result<Option<Self>, ApiError> {
        let caller = caller(&request);
        let body = <gw_http::JsonBody<T> as OptionalFromRequest<S>>::from_request(request, state).await;
        caller.reauthorize(&Arc::<HttpContext>::from_ref(state))?;
        Ok(body?.map(|gw_http::JsonBody(body)| Self(body)))
    }
}

fn caller(request: &Request) -> CallerSlot {
    request.extensions().get::<CallerSlot>().cloned().unwrap_or_default()
}
