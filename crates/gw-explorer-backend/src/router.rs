//! The routes, and the layers around them.

use crate::{forward, health, page, sign_in, state::Backend, view_as};
use axum::{
    Router,
    response::{IntoResponse as _, Response},
    routing::any,
};
use gw_http::{ApiError, Cors, SecureHeaders, method_not_allowed, route_not_found};
use std::{any::Any, sync::Arc};
use tower::ServiceBuilder;
use tower_http::catch_panic::CatchPanicLayer;

/// The routes of the backend. The caller adds [`gw_http::Correlate`] and its request log around them.
///
/// There is no `/ws`: streams are not offered in privacy deployments (E6).
pub fn router(backend: Backend) -> Router {
    let inner = &backend.0;
    let stack = ServiceBuilder::new()
        .layer(SecureHeaders::new(inner.production)) // also covers the responses of the layers below
        .layer(Cors::new(Arc::clone(&inner.origins))) // answers preflight requests
        .layer(CatchPanicLayer::custom(panicked)); // a panic affects only its own request
    Router::new()
        .route("/api/{*path}", any(forward::forward))
        .merge(sign_in::router())
        .merge(view_as::router())
        .merge(health::router(inner.readiness.clone()))
        .merge(page::router())
        .fallback(route_not_found)
        .method_not_allowed_fallback(method_not_allowed)
        .layer(stack)
        .with_state(backend)
}

/// The response to a request whose handler panicked. The panic payload is not logged, because it may contain secrets.
fn panicked(_: Box<dyn Any + Send>) -> Response {
    tracing::error!("a request handler panicked");
    ApiError::internal().into_response()
}
