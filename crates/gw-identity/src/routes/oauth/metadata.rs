//! `GET /.well-known/oauth-authorization-server`: the metadata that client libraries read first (RFC 8414).

use crate::state::IdentityState;
use axum::{Json, extract::State};
use gw_http::ErrorBody;
use serde::Serialize;

/// The OAuth endpoints and their capabilities.
#[derive(Debug, Serialize, utoipa::ToSchema)]
pub(crate) struct OauthMetadata {
    issuer: String,
    authorization_endpoint: String,
    token_endpoint: String,
    jwks_uri: String,
    response_types_supported: [&'static str; 1],
    response_modes_supported: [&'static str; 1],
    grant_types_supported: [&'static str; 1],
    token_endpoint_auth_methods_supported: [&'static str; 2],
    code_challenge_methods_supported: [&'static str; 1],
    authorization_response_iss_parameter_supported: bool,
}

/// Describe the OAuth routes
#[utoipa::path(
    get,
    path = "/.well-known/oauth-authorization-server",
    operation_id = "oauthMetadata",
    tag = "oauth",
    responses((status = 200, body = OauthMetadata), (status = 400, body = ErrorBody), (status = 429)),
)]
pub(crate) async fn metadata(State(state): State<IdentityState>) -> Json<OauthMetadata> {
    let base = &state.inner.config.base_url;
    Json(OauthMetadata {
        issuer: base.clone(),
        authorization_endpoint: format!("{base}/oauth/authorize"),
        token_endpoint: format!("{base}/oauth/token"),
        jwks_uri: format!("{base}/.well-known/jwks.json"),
        response_types_supported: ["code"],
        response_modes_supported: ["query"],
        grant_types_supported: ["authorization_code"],
        token_endpoint_auth_methods_supported: ["client_secret_basic", "client_secret_post"],
        code_challenge_methods_supported: ["S256"],
        authorization_response_iss_parameter_supported: true,
    })
}
