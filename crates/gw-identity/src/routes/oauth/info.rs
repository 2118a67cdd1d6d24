//! `GET /oauth/session/{id}/info`: what a sign-in page shows (OA-9).

use super::{SessionError, polled};
use crate::{login::OpenerEvidence, routes::Provenance, state::IdentityState};
use axum::{
    Json,
    extract::{Path, State},
};
use gw_http::{ApiError, ErrorBody};
use http::HeaderMap;
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
    /// Who goes on to the application: who logged in, or, before, who was logged in when it began.
    #[serde(skip_serializing_if = "Option::is_none")]
    did: Option<String>,
}

/// Describe an OAuth session
///
/// For the page that began it: it shows the session's secret (`X-Login-Secret` or the `pp_login` cookie). A sign-in that
/// somebody else began is not shown: whoever completed it would sign that somebody in. The address alone is never enough.
#[utoipa::path(
    get,
    path = "/oauth/session/{id}/info",
    operation_id = "oauthSessionInfo",
    tag = "oauth",
    params(("id" = String, Path, description = "The OAuth session")),
    responses(
        (status = 200, body = OauthSessionInfoResponse),
        (status = 403, body = ErrorBody, description = "Started in another browser"),
        (status = 404, body = ErrorBody),
        (status = 429, body = ErrorBody),
        (status = 503, body = ErrorBody),
    ),
)]
pub(crate) async fn info(
    State(state): State<IdentityState>,
    provenance: Provenance,
    Path(id): Path<String>,
    headers: HeaderMap,
) -> Result<Json<OauthSessionInfoResponse>, ApiError> {
    let (_, found, _) = polled(&state, &id, &headers, &provenance).await?;
    if !found
        .opener
        .has_shown_secret(&OpenerEvidence::of(&headers, provenance.client))
    {
        return Err(SessionError::OtherBrowser.into());
    }
    let silent = found.initiator.is_some();
    Ok(Json(OauthSessionInfoResponse {
        auth_request: found.auth_request,
        allow_mock: state.inner.oauth.allow_mock,
        client_id: found.client,
        silent,
        did: found
            .completed_by
            .or(found.initiator)
            .map(|did| did.as_str().to_owned()),
    }))
}
