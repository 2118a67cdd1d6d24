//! The routers of the listeners: which listener serves which routes, and the common layers.

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
    ApiError, Correlate, Cors, HttpContext, KnownQueries, SecureHeaders, internal_hosts_only, known_queries,
    method_not_allowed, private_only, route_not_found,
};
use http::{HeaderValue, header};
use std::{any::Any, sync::Arc};
use tower::ServiceBuilder;
use tower_http::catch_panic::CatchPanicLayer;
use utoipa::openapi::OpenApi;

/// The routers of the listeners.
pub(super) struct ListenerRouters {
    /// For the listener on PORT.
    pub(super) public: Router,
    /// For the listener on INTERNAL_BIND_ADDR.
    pub(super) internal: Router,
}

/// Assigns the routes to the listeners. If there is an internal listener, metrics and administration are not served on
/// the public one (HD16).
pub(super) fn listener_routers(
    features: Features,
    ready: ReadyState,
    metrics: Metrics,
    api: Arc<str>,
    has_internal: bool,
) -> ListenerRouters {
    let http_context = Arc::clone(&ready.http_context);
    // Callers of the admin API have a token of their own. On the public listener they use its public name.
    let hosts_only = |routes: Router| routes.layer(from_fn_with_state(Arc::clone(&ready.hosts), internal_hosts_only));
    let probes = |ready: ReadyState| {
        Router::new()
            .route("/health", get(ready::health))
            .route("/ready", get(ready::ready).with_state(ready))
            .route_layer(from_fn_with_state(
                KnownQueries::from_api(&self::api(), &[]),
                known_queries,
            ))
    };
    let metrics = Router::new()
        .route("/metrics", get(render).with_state(metrics))
        .layer(from_fn_with_state(Arc::clone(&http_context), private_only));
    let public = probes(ready.clone().for_public(has_internal))
        .route("/openapi.json", get(move || api_document(Arc::clone(&api))))
        .merge(features.public);
    let public = if has_internal {
        public
    } else {
        public.merge(hosts_only(metrics.clone())).merge(features.admin.clone())
    };
    let internal = hosts_only(metrics.merge(features.admin));
    let with_layers = |routes: Router| with_common_layers(routes.fallback(route_not_found), &http_context);
    ListenerRouters {
        public: with_layers(public),
        internal: with_layers(probes(ready).merge(internal)),
    }
}

/// The API description of `/health` and `/ready`.
pub(super) fn api() -> OpenApi {
    #[derive(utoipa::OpenApi)]
    #[openapi(paths(ready::health, ready::ready))]
    struct Operation;
    <Operation as utoipa::OpenApi>::openapi()
}

/// The routes until the start is complete: `/health`, `/ready`, and 503 for everything else.
pub(super) fn starting_router(ready: &ReadyState) -> Router {
    let http_context = Arc::clone(&ready.http_context);
    let routes = Router::new()
        .route("/health", get(ready::health))
        .route("/ready", get(ready::ready).with_state(ready.clone()))
        .fallback(async || ApiError::unavailable("starting"));
    with_common_layers(routes, &http_context)
}

/// Adds the layers of all routes, outermost first.
fn with_common_layers(routes: Router, http_context: &HttpContext) -> Router {
    let stack = ServiceBuilder::new()
        .layer(Correlate::new(Arc::clone(&http_context.entropy))) // sets the correlation id for all layers below
        .layer(Observe) // observes every response, including those of panics
        .layer(SecureHeaders::new(http_context.production)) // also covers the responses of the layers below
        .layer(Cors::new(Arc::clone(&http_context.origins))) // answers preflight requests
        .layer(CatchPanicLayer::custom(panicked)); // a panic affects only its own request
    routes.method_not_allowed_fallback(method_not_allowed).layer(stack)
}

/// The response to a request whose handler panicked. The panic payload is not logged, because it may contain secrets.
fn panicked(_: Box<dyn Any + Send>) -> Response {
    tracing::error!("a request handler panicked");
    ApiError::internal().into_response()
}

/// The metrics in the Prometheus text format.
async fn render(State(metrics): State<Metrics>) -> Response {
    const FORMAT: HeaderValue = HeaderValue::from_static("text/plain; version=0.0.4; charset=utf-8");
    ([(header::CONTENT_TYPE, FORMAT)], metrics.render()).into_response()
}

/// The generated API document.
async fn api_document(text: Arc<str>) -> Response {
    const JSON: HeaderValue = HeaderValue::from_static("application/json");
    ([(header::CONTENT_TYPE, JSON)], text.to_string()).into_response()
}
