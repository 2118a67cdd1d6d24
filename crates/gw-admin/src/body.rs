//! The body of an administrative request.

use crate::record::CallerSlot;
use axum::extract::{FromRef, FromRequest, OptionalFromRequest, Request};
use gw_http::{ApiError, Edge};
use serde::de::DeserializeOwned;
use std::sync::Arc;

/// A JSON object of type `T`, from somebody who is an administrator when it is there (HD20): a body can take its time, and
/// who was banned or removed meanwhile must not finish what they began. As `Option<JsonBody<T>>` it may be missing.
#[derive(Clone, Copy, Debug)]
pub(crate) struct JsonBody<T>(pub(crate) T);

impl<S, T> FromRequest<S> for JsonBody<T>
where
    S: Send + Sync,
    T: DeserializeOwned,
    Arc<Edge>: FromRef<S>,
{
    type Rejection = ApiError;

    async fn from_request(request: Request, state: &S) -> Result<Self, ApiError> {
        let who = request.extensions().get::<CallerSlot>().cloned().unwrap_or_default();
        let body = <gw_http::JsonBody<T> as FromRequest<S>>::from_request(request, state).await;
        who.still(&Arc::<Edge>::from_ref(state))?;
        body.map(|gw_http::JsonBody(body)| Self(body))
    }
}

impl<S, T> OptionalFromRequest<S> for JsonBody<T>
where
    S: Send + Sync,
    T: DeserializeOwned,
    Arc<Edge>: FromRef<S>,
{
    type Rejection = ApiError;

    async fn from_request(request: Request, state: &S) -> Result<Option<Self>, ApiError> {
        let who = request.extensions().get::<CallerSlot>().cloned().unwrap_or_default();
        let body = <gw_http::JsonBody<T> as OptionalFromRequest<S>>::from_request(request, state).await;
        who.still(&Arc::<Edge>::from_ref(state))?;
        Ok(body?.map(|gw_http::JsonBody(body)| Self(body)))
    }
}
