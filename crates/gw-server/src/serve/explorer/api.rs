//! The routers of the data API: the routes themselves, the routes while the explorer is unavailable, and the checks of
//! the public listener.

use super::IndexParts;
use axum::{
    Router,
    extract::{Request, State},
    middleware::{Next, from_fn_with_state},
    response::Response,
    routing::{MethodFilter, MethodRouter},
};
use gw_audit::{AccessRecord, AuthMethod};
use gw_explorer::Impersonation;
use gw_http::{ApiError, AuthError, Challenge, Credentials, HttpContext, RequestRecorder, private_only};
use gw_journal::Journal;
use gw_types::{ExternalId, Secret};
use http::{HeaderMap, HeaderName, StatusCode};
use std::sync::Arc;
use tokio::sync::watch;
use tokio_util::task::TaskTracker;
use utoipa::openapi::PathItem;

/// The header of EXPLORER_BACKEND_KEY.
pub(super) const KEY_HEADER: HeaderName = HeaderName::from_static("x-explorer-key");

/// Why the data API answers 503.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Unavailable {
    /// EXPLORER_DATABASE_URL is not set (E1).
    NotConfigured,
    /// The database is not open yet.
    Opening,
    /// The database cannot be opened, or failed.
    Failed,
    /// The stored blocks are not those of the node's chain, and an operator must decide (X6).
    OtherChain,
}

impl Unavailable {
    /// The text of the answer.
    pub(crate) const fn text(self) -> &'static str {
        match self {
            Self::NotConfigured => "explorer store not configured",
            Self::Opening => "explorer index is behind",
            Self::Failed => "explorer store is temporarily unavailable",
            Self::OtherChain => "explorer index is stopped",
        }
    }
}

/// The data API as it is served now.
#[derive(Clone, Debug)]
pub(in crate::serve) struct ApiState {
    /// The routes, without the checks of the public listener.
    pub(in crate::serve) routes: Router,
    /// The index that they read, and its database, or why there is none.
    pub(in crate::serve) index: Result<IndexParts, Unavailable>,
}

/// The data API, whose state changes while the gateway runs.
#[derive(Clone, Debug)]
pub(in crate::serve) struct ExplorerApi {
    state: watch::Sender<ApiState>,
    recording: Recording,
    backend_key: Option<Secret>,
}

/// What a record of a request needs.
#[derive(Clone, Debug)]
struct Recording {
    http_context: Arc<HttpContext>,
    journal: Arc<Journal>,
    tasks: TaskTracker,
}

impl ExplorerApi {
    /// The data API before the database is open, or without one.
    pub(in crate::serve) fn new(
        reason: Unavailable,
        backend_key: Option<Secret>,
        http_context: Arc<HttpContext>,
        journal: Arc<Journal>,
        tasks: TaskTracker,
    ) -> Self {
        let recording = Recording {
            http_context,
            journal,
            tasks,
        };
        let state = ApiState {
            routes: unavailable_routes(reason, &recording),
            index: Err(reason),
        };
        Self {
            state: watch::Sender::new(state),
            recording,
            backend_key,
        }
    }

    /// The present state.
    pub(in crate::serve) fn state(&self) -> ApiState {
        self.state.borrow().clone()
    }

    /// The changes of the state.
    pub(in crate::serve) fn changes(&self) -> watch::Receiver<ApiState> {
        self.state.subscribe()
    }

    /// From now on, answers from this index.
    pub(super) fn serve(&self, routes: Router, index: IndexParts) {
        self.state.send_replace(ApiState {
            routes,
            index: Ok(index),
        });
    }

    /// From now on, answers 503.
    pub(super) fn suspend(&self, reason: Unavailable) {
        self.state.send_if_modified(|state| {
            let is_new = state.index.as_ref().err() != Some(&reason);
            if is_new {
                state.routes = unavailable_routes(reason, &self.recording);
                state.index = Err(reason);
            }
            is_new
        });
    }

    /// The routes for the public listener. They are reachable from the private network only (E7), and only for a user
    /// or the backend of the explorer (HD16).
    pub(in crate::serve) fn public_routes(&self) -> Router {
        let credentials = CredentialCheck {
            http_context: Arc::clone(&self.recording.http_context),
            backend_key: self.backend_key.clone(),
        };
        let context = Arc::clone(&self.recording.http_context);
        self.state()
            .routes
            .route_layer(from_fn_with_state(credentials, require_credentials))
            .route_layer(from_fn_with_state(context, private_only))
    }
}

#[derive(Clone, Debug)]
struct CredentialCheck {
    http_context: Arc<HttpContext>,
    backend_key: Option<Secret>,
}

/// Rejects requests without the key of the backend and without a valid token, if there is a key (HD16). A wrong key is
/// rejected in any case.
async fn require_credentials(
    State(check): State<CredentialCheck>,
    request: Request,
    next: Next,
) -> Result<Response, ApiError> {
    if let Some(key) = &check.backend_key {
        let mut presented = request.headers().get_all(KEY_HEADER).iter();
        let is_authenticated = match (presented.next(), presented.next()) {
            (Some(value), None) => value.to_str().is_ok_and(|value| key.matches(value)),
            (Some(_), Some(_)) => false,
            (None, _) => caller(&check.http_context, request.headers())?.is_some(),
        };
        if !is_authenticated {
            return Err(ApiError::unauthorized("a user's token or the explorer key is required"));
        }
    }
    Ok(next.run(request).await)
}

/// The subject of a valid token; `None` for an anonymous caller. The account's state is checked with the policy.
///
/// # Errors
/// 401 for a token that is not valid (E10).
fn caller(context: &HttpContext, headers: &HeaderMap) -> Result<Option<(ExternalId, AuthMethod)>, ApiError> {
    let (claims, method) = match Credentials::from_headers(headers, &context.origins)? {
        Credentials::Nothing => return Ok(None),
        Credentials::Bearer(token) => (context.tokens.access(token, context.now()), AuthMethod::Bearer),
        // TK-9: where anonymous callers are served, an invalid cookie counts as none.
        Credentials::Cookie(token) => match context.tokens.access(token, context.now()) {
            Ok(claims) => (Ok(claims), AuthMethod::Cookie),
            Err(_) => return Ok(None),
        },
    };
    let claims = claims.map_err(AuthError::from)?;
    let facts = claims.facts();
    let snapshot = context.policy.pin().ok_or(AuthError::PolicyStale)?;
    gw_policy::access::identify(&snapshot, &facts).map_err(|error| {
        let banned = |text| ApiError::unauthorized(text).challenging(Challenge::InvalidToken);
        match AuthError::from(error) {
            AuthError::Banned => banned("account is banned"),
            AuthError::TenantNotAllowed => banned("tenant is not authorized"),
            error => error.into(),
        }
    })?;
    Ok(Some((claims.subject, method)))
}

/// Every route of the data API, answered with 503.
fn unavailable_routes(reason: Unavailable, recording: &Recording) -> Router {
    let state = UnavailableState {
        reason,
        recording: recording.clone(),
    };
    let mut routes = Router::new();
    for (path, item) in &gw_explorer::api().paths.paths {
        let mut methods = MethodRouter::new();
        for filter in methods_of(item) {
            methods = methods.on(filter, answer_unavailable);
        }
        routes = routes.route(path, methods);
    }
    routes
        .route_layer(from_fn_with_state(state.clone(), record_unavailable))
        .with_state(state)
}

/// The methods that a described route has.
fn methods_of(item: &PathItem) -> impl Iterator<Item = MethodFilter> {
    let methods = [
        (&item.get, MethodFilter::GET),
        (&item.post, MethodFilter::POST),
        (&item.put, MethodFilter::PUT),
        (&item.delete, MethodFilter::DELETE),
    ];
    methods
        .into_iter()
        .filter_map(|(operation, filter)| operation.is_some().then_some(filter))
}

/// The state of [`unavailable_routes`].
#[derive(Clone, Debug)]
struct UnavailableState {
    reason: Unavailable,
    recording: Recording,
}

async fn answer_unavailable(State(state): State<UnavailableState>, request: Request) -> ApiError {
    if request.extensions().get::<Impersonation>().is_none()
        && let Err(error) = caller(&state.recording.http_context, request.headers())
    {
        return error;
    }
    ApiError::unavailable(state.reason.text())
}

/// Writes the access record of a refused request (E12).
async fn record_unavailable(State(state): State<UnavailableState>, request: Request, next: Next) -> Response {
    let Recording {
        http_context,
        journal,
        tasks,
    } = &state.recording;
    let caller = caller(http_context, request.headers()).ok().flatten();
    let complete = move |record: &mut AccessRecord, _: StatusCode| {
        if let Some((external_id, auth_method)) = caller {
            record.external_id = Some(external_id);
            record.auth_method = auth_method;
        }
    };
    let recorder = RequestRecorder {
        context: http_context,
        journal,
        tasks,
    };
    recorder.record(request, next, complete).await
}

/// The route of the data API that serves a path, without the values in it. A route without parameters is preferred.
pub(super) fn route_of(path: &str) -> Option<String> {
    let api = gw_explorer::api();
    let routes = api.paths.paths.keys().filter(|route| matches(route, path));
    let parameters = |route: &&String| route.matches('{').count();
    routes.min_by_key(parameters).cloned()
}

fn matches(route: &str, path: &str) -> bool {
    let (mut route, mut path) = (route.split('/'), path.split('/'));
    loop {
        match (route.next(), path.next()) {
            (None, None) => return true,
            (Some(part), Some(value)) if part == value || (part.starts_with('{') && !value.is_empty()) => {}
            _ => return false,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn e11_a_path_has_the_most_specific_route() {
        for (path, route) in [
            ("/api/v1/explorer/blocks", Some("/api/v1/explorer/blocks")),
            ("/api/v1/explorer/blocks/7", Some("/api/v1/explorer/blocks/{number}")),
            (
                "/api/v1/explorer/transactions/paginated",
                Some("/api/v1/explorer/transactions/paginated"),
            ),
            (
                "/api/v1/explorer/addresses/0xab/logs",
                Some("/api/v1/explorer/addresses/{address}/logs"),
            ),
            ("/api/v1/explorer/blocks/", None),
            ("/api/v1/explorer/ws", None),
            ("/api/v1/explorer", None),
        ] {
            assert_eq!(route_of(path).as_deref(), route, "{path}");
        }
    }

    #[test]
    fn every_described_method_is_served_while_the_explorer_is_unavailable() {
        for (path, item) in gw_explorer::api().paths.paths {
            assert!(
                item.patch.is_none() && item.head.is_none() && item.options.is_none(),
                "{path}"
            );
            assert!(methods_of(&item).next().is_some(), "{path}");
        }
    }
}
