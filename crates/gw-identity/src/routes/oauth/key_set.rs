//! `GET /.well-known/jwks.json`: the public keys of access tokens (RFC 7517; spec/85 section 7).

use crate::state::IdentityState;
use axum::{Json, extract::State};
use gw_http::{ErrorBody, KeySetDocument};

/// The keys that verify access tokens
#[utoipa::path(
    get,
    path = "/.well-known/jwks.json",
    operation_id = "oauthKeys",
    tag = "oauth",
    responses((status = 200, body = KeySetDocument), (status = 400, body = ErrorBody), (status = 429)),
)]
pub(crate) async fn key_set(State(state): State<IdentityState>) -> Json<KeySetDocument> {
    Json(state.http_context.tokens.public_keys().document())
}
