//! `GET /oauth/session/{id}/info`: what a sign-in page shows (OA-9).

use super::session;
use crate::{login::LoginId, state::IdentityState};
use axum::{
    Json,
    extract::{Path, State},
};
use gw_http::{ApiError, ErrorBody};
use serde::Serialize;
use serde_json::Value;

/// What a sign-in page shows.
#[derive(Debug, Serialize, utoipa::ToSchema)]
pub(crate) struct OauthSessionInfoResponse {
    /// The message for the wallet.
    #[schema(value_type = Object)]
    auth_request: Value,
    /// Whether mock logins are accepted.
    allow_mock: bool,
    /// The application that asks.
    client_id: String,
    /// Whether somebody was logged in when it began, who may complete it silently.
    silent: bool,
}

/// Describe an OAuth session
#[utoipa::path(
    get,
    path = "/oauth/session/{id}/info",
    operation_id = "oauthSessionInfo",
    tag = "oauth",
    params(("id" = String, Path, description = "The OAuth session")),
    responses(
        (status = 200, body = OauthSessionInfoResponse),
        (status = 404, body = ErrorBody),
        (status = 429, body = ErrorBody),
        (status = 503, body = ErrorBody),
    ),
)]
pub(crate) async fn info(
    State(state): State<IdentityState>,
    Path(id): Path<String>,
) -> Result<Json<OauthSessionInfoResponse>, ApiError> {
    let (_, found) = session(&state, &id).await?;
    state.inner.limits.poll_of(LoginId(found.login)).await?;
    Ok(Json(OauthSessionInfoResponse {
        auth_request: found.auth_request,
        allow_mock: state.inner.oauth.allow_mock,
        client_id: found.client,
        silent: found.initiator.is_some(),
    }))
}
