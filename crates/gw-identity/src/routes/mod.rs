//! The HTTP routes. Each operation has its own file, whose path mirrors the URL.

mod auth;
pub(crate) mod cookies;
mod eth;
mod me;
mod oauth;
mod pages;
mod tokens;

use crate::{
    limits::{PerAddress, own_pages_and_links_only, own_pages_only, per_address},
    security::record,
    state::IdentityState,
};
use axum::middleware::{from_fn, from_fn_with_state};
use gw_http::{KnownQueries, SecureHeaders, known_queries};
use std::sync::Arc;
use utoipa::openapi::OpenApi;
use utoipa_axum::{router::OpenApiRouter, routes};

/// All routes of this crate. Those of logins, tokens and links exist with and without `/api/v1` (spec/10 §1); the API
/// description contains the versioned ones.
pub fn router(state: IdentityState) -> OpenApiRouter {
    let queries = queries();
    let limit = |routes, limit| limited(routes, limit, &state, &queries);
    let aliases: axum::Router = both_ways(limit).with_state(state.clone()).into();
    let own = if state.inner.config.personal_urls {
        versioned_only().merge(rpc_urls())
    } else {
        versioned_only()
    };
    let own = own.route_layer(from_fn_with_state(queries.clone(), known_queries));
    let own = own.route_layer(from_fn_with_state(state.clone(), record));
    let versioned = both_ways(limit).merge(own).with_state(state.clone());
    // The layer is set here too, so that token responses can never be cached, however the router is mounted (TK-10).
    let oauth = oauth(limit).with_state(state.clone());
    #[cfg(feature = "mock-login")]
    let oauth = oauth.merge(OpenApiRouter::from(mock_only(&state, &queries)));
    OpenApiRouter::from(aliases)
        .nest("/api/v1", versioned)
        .merge(oauth)
        .layer(SecureHeaders::new(state.http_context.production))
}

/// The API description of all routes, without handlers' state.
pub fn api() -> OpenApi {
    OpenApiRouter::<IdentityState>::new()
        .nest(
            "/api/v1",
            both_ways(|routes, _| routes).merge(versioned_only()).merge(rpc_urls()),
        )
        .merge(oauth(|routes, _| routes))
        .into_openapi()
}

/// The accepted query parameters of every route. Two endpoints ignore unknown parameters (RFC 6749 sections 3.1 and
/// 3.2).
fn queries() -> KnownQueries {
    KnownQueries::from_api(&api(), &["/oauth/authorize", "/oauth/token"])
}

/// How a group of routes is limited, and which pages may call it.
#[derive(Clone, Copy, Debug)]
enum Limited {
    /// Rejects foreign pages. Limited per address.
    Auth,
    /// Rejects foreign pages, except for links from them. Browsers get an error page instead of JSON.
    Navigated,
    /// Accepts every page: a wallet may be a web page.
    Proofs,
    Revocations,
    Polls,
    /// Limited per session, in the handlers.
    OwnPolls,
    Refreshes,
    /// Limited like refreshes. Foreign pages are rejected before the application's failures are counted.
    Applications,
    /// Limited per user, in the extractor. Reads and changes the caller's own data, with an access record.
    Links,
}

fn limited(
    routes: OpenApiRouter<IdentityState>,
    limit: Limited,
    state: &IdentityState,
    queries: &KnownQueries,
) -> OpenApiRouter<IdentityState> {
    let limits = &state.inner.limits;
    let routes = routes.route_layer(from_fn_with_state(queries.clone(), known_queries));
    let counted = |routes: OpenApiRouter<IdentityState>, rate| {
        routes.route_layer(from_fn_with_state(
            PerAddress::new(&state.http_context, limits, rate),
            per_address,
        ))
    };
    let own = || from_fn_with_state(Arc::clone(&state.http_context), own_pages_only);
    // The layer that is added last runs first.
    match limit {
        Limited::Auth => counted(routes, limits.auth).route_layer(own()),
        Limited::Navigated => counted(routes, limits.auth)
            .route_layer(from_fn_with_state(
                Arc::clone(&state.http_context),
                own_pages_and_links_only,
            ))
            .route_layer(from_fn(pages::for_browsers)),
        Limited::Proofs => counted(routes, limits.proofs),
        Limited::Revocations => counted(routes, limits.revocations).route_layer(own()),
        Limited::Polls => counted(routes, limits.polls),
        Limited::OwnPolls => routes,
        Limited::Refreshes => counted(routes, limits.refreshes),
        Limited::Applications => counted(routes, limits.refreshes).route_layer(own()),
        Limited::Links => routes.route_layer(from_fn_with_state(state.clone(), record)),
    }
}

fn both_ways(
    limit: impl Fn(OpenApiRouter<IdentityState>, Limited) -> OpenApiRouter<IdentityState>,
) -> OpenApiRouter<IdentityState> {
    let auth = OpenApiRouter::new()
        .routes(routes!(auth::request::request))
        .routes(routes!(auth::verify::verify))
        .routes(routes!(auth::directory::url::url))
        .routes(routes!(auth::directory::callback::callback))
        .routes(routes!(auth::directory::service_principal::service_principal))
        .routes(routes!(tokens::introspect::introspect));
    let proofs = OpenApiRouter::new().routes(routes!(auth::callback::callback));
    let revocations = OpenApiRouter::new()
        .routes(routes!(tokens::revoke::revoke))
        .routes(routes!(tokens::logout::logout));
    let polls = OpenApiRouter::new().routes(routes!(auth::providers::providers));
    let own_polls = OpenApiRouter::new()
        .routes(routes!(auth::status::status))
        .routes(routes!(auth::qr::qr));
    let refresh = OpenApiRouter::new().routes(routes!(tokens::refresh::refresh));
    let links = OpenApiRouter::new()
        .routes(routes!(eth::challenge::challenge))
        .routes(routes!(eth::verify::verify))
        .routes(routes!(eth::list::list))
        .routes(routes!(eth::unlink::unlink))
        .routes(routes!(eth::refresh_ens::refresh_ens));
    limit(auth, Limited::Auth)
        .merge(limit(proofs, Limited::Proofs))
        .merge(limit(revocations, Limited::Revocations))
        .merge(limit(polls, Limited::Polls))
        .merge(limit(own_polls, Limited::OwnPolls))
        .merge(limit(refresh, Limited::Refreshes))
        .merge(limit(links, Limited::Links))
}

fn versioned_only() -> OpenApiRouter<IdentityState> {
    OpenApiRouter::new()
        .routes(routes!(me::admin_status::admin_status))
        .routes(routes!(me::orgs::orgs))
        .routes(routes!(me::invitations::list))
        .routes(routes!(me::invitations::accept))
        .routes(routes!(me::invitations::leave))
        .routes(routes!(me::sessions::list))
        .routes(routes!(me::sessions::end))
}

/// Exists only with PERSONAL_RPC_URLS.
fn rpc_urls() -> OpenApiRouter<IdentityState> {
    OpenApiRouter::new()
        .routes(routes!(me::rpc_urls::list, me::rpc_urls::create))
        .routes(routes!(me::rpc_urls::end))
}

/// The OAuth routes have one path each: clients use the configured URL.
fn oauth(
    limit: impl Fn(OpenApiRouter<IdentityState>, Limited) -> OpenApiRouter<IdentityState>,
) -> OpenApiRouter<IdentityState> {
    let auth = OpenApiRouter::new().routes(routes!(oauth::silent_complete::silent_complete));
    let navigated = OpenApiRouter::new()
        .routes(routes!(oauth::authorize::authorize))
        .routes(routes!(oauth::restart::restart));
    let proofs = OpenApiRouter::new().routes(routes!(oauth::callback::callback));
    let polls = OpenApiRouter::new()
        .routes(routes!(oauth::key_set::key_set))
        .routes(routes!(oauth::metadata::metadata));
    let own_polls = OpenApiRouter::new()
        .routes(routes!(oauth::info::info))
        .routes(routes!(oauth::status::status));
    // An application exchanges the codes of all its users from one address, so it is limited like refreshes (decision
    // 54); its failures have a limit of their own.
    let token = OpenApiRouter::new().routes(routes!(oauth::token::token));
    limit(auth, Limited::Auth)
        .merge(limit(navigated, Limited::Navigated))
        .merge(limit(proofs, Limited::Proofs))
        .merge(limit(polls, Limited::Polls))
        .merge(limit(own_polls, Limited::OwnPolls))
        .merge(limit(token, Limited::Applications))
}

/// Routes that no release has, and that no API description contains.
#[cfg(feature = "mock-login")]
fn mock_only(state: &IdentityState, queries: &KnownQueries) -> axum::Router {
    let path = "/oauth/session/{id}/mock-complete";
    let route = axum::Router::new().route(path, axum::routing::post(oauth::mock_complete::mock_complete));
    limited(OpenApiRouter::from(route), Limited::Auth, state, queries)
        .with_state(state.clone())
        .into()
}
