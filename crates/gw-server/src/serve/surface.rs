//! The HTTP surface: which routes stand on which listener, and the layers around them.

use super::{
    features::Features,
    ready::{self, ReadyState},
};
use crate::telemetry::{Metrics, Observe};
use axum::{
    Router,
    extract::State,
    middleware::from_fn_with_state,
    response::{IntoResponse as _, Response},
    routing::get,
};
use gw_http::{
    ApiError, Correlate, Cors, Edge, KnownQueries, SecureHeaders, known_queries, method_not_allowed, network,
    route_not_found,
};
use http::{HeaderValue, header};
use std::{any::Any, sync::Arc};
use tower::ServiceBuilder;
use tower_http::catch_panic::CatchPanicLayer;
use utoipa::openapi::OpenApi;

/// The routers of the listeners.
pub(super) struct Surface {
    /// PORT.
    pub(super) public: Router,
    /// INTERNAL_BIND_ADDR.
    pub(super) internal: Router,
}

/// Puts every route where it belongs. With an internal listener, metrics and administration leave the public one
/// (HD16).
pub(super) fn surface(
    features: Features,
    ready: ReadyState,
    metrics: Metrics,
    api: Arc<str>,
    internal: bool,
) -> Surface {
    let edge = Arc::clone(&ready.edge);
    let operation = |ready: ReadyState| {
        Router::new()
            .route("/health", get(ready::health))
            .route("/ready", get(ready::ready).with_state(ready))
            .route_layer(from_fn_with_state(KnownQueries::of(&self::api(), &[]), known_queries))
    };
    let inside = Router::new()
        .route("/metrics", get(render).with_state(metrics))
        .layer(from_fn_with_state(Arc::clone(&edge), network::private_only))
        .merge(features.admin);
    let public = operation(ready.clone().for_public(internal))
        .route("/openapi.json", get(move || api_document(Arc::clone(&api))))
        .merge(features.public);
    let public = if internal { public } else { public.merge(inside.clone()) };
    let finish = |routes: Router| dress(routes.fallback(route_not_found), &edge);
    Surface {
        public: finish(public),
        internal: finish(operation(ready).merge(inside)),
    }
}

/// The description of the operator's routes.
pub(super) fn api() -> OpenApi {
    #[derive(utoipa::OpenApi)]
    #[openapi(paths(ready::health, ready::ready))]
    struct Operation;
    <Operation as utoipa::OpenApi>::openapi()
}

/// What is served until the node was reached once: that the process lives, and that it is not ready.
pub(super) fn not_yet(ready: &ReadyState) -> Router {
    let edge = Arc::clone(&ready.edge);
    let routes = Router::new()
        .route("/health", get(ready::health))
        .route("/ready", get(ready::ready).with_state(ready.clone()))
        .fallback(async || ApiError::unavailable("starting"));
    dress(routes, &edge)
}

/// The layers every answer passes, outermost first.
fn dress(routes: Router, edge: &Edge) -> Router {
    let stack = ServiceBuilder::new()
        .layer(Correlate::new(Arc::clone(&edge.entropy))) // names the request for everything below
        .layer(Observe) // sees every outcome, panics too
        .layer(SecureHeaders::new(edge.production)) // also on the answers of the layers below
        .layer(Cors::new(Arc::clone(&edge.origins))) // preflights end here
        .layer(CatchPanicLayer::custom(panicked)); // a fault in one handler costs one answer
    routes.method_not_allowed_fallback(method_not_allowed).layer(stack)
}

/// The answer in place of a handler's that panicked. What it said goes to the log without its payload: that may hold
/// anything.
fn panicked(_: Box<dyn Any + Send>) -> Response {
    tracing::error!("a request handler panicked");
    ApiError::internal().into_response()
}

/// Metrics for Prometheus.
async fn render(State(metrics): State<Metrics>) -> Response {
    const FORMAT: HeaderValue = HeaderValue::from_static("text/plain; version=0.0.4; charset=utf-8");
    ([(header::CONTENT_TYPE, FORMAT)], metrics.render()).into_response()
}

/// The generated API document.
async fn api_document(text: Arc<str>) -> Response {
    const JSON: HeaderValue = HeaderValue::from_static("application/json");
    ([(header::CONTENT_TYPE, JSON)], text.to_string()).into_response()
}
