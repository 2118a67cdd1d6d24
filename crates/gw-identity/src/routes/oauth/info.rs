//! `GET /oauth/session/{id}/info`: what a sign-in page shows (OA-9).

use super::{SessionError, polled};
use crate::{login::OpenerEvidence, request_info::RequestInfo, state::IdentityState};
use axum::{
    Json,
    extract::{Path, State},
};
use gw_http::{ApiError, ErrorBody};
use http::HeaderMap;
use serde::Serialize;
use serde_json::Value;

/// The data that a sign-in page shows.
#[derive(Debug, Serialize, utoipa::ToSchema)]
pub(crate) struct OauthSessionInfoResponse {
    /// The message for the wallet.
    #[schema(value_type = Object)]
    auth_request: Value,
    /// Whether mock logins are accepted.
    allow_mock: bool,
    /// The application that asks.
    client_id: String,
    /// Whether a user was logged in when the session began. That user may complete it silently.
    silent: bool,
    /// The user who logged in, or, before that, the user who was logged in when the session began.
    #[serde(skip_serializing_if = "Option::is_none")]
    did: Option<String>,
}

/// Describe an OAuth session
///
/// For the page that began the session, which shows its secret (`X-Login-Secret` or the `pp_login` cookie). A
/// request from the same address does not suffice: completing the sign-in of another person would log that person in.
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
    request_info: RequestInfo,
    Path(id): Path<String>,
    headers: HeaderMap,
) -> Result<Json<OauthSessionInfoResponse>, ApiError> {
    let (_, session, _) = polled(&state, &id, &headers, &request_info).await?;
    if !session
        .opener
        .has_shown_secret(&OpenerEvidence::from_headers(&headers, request_info.client))
    {
        return Err(SessionError::OtherBrowser.into());
    }
    let silent = session.initiator.is_some();
    Ok(Json(OauthSessionInfoResponse {
        auth_request: session.auth_request,
        allow_mock: state.inner.oauth.allow_mock,
        client_id: session.client,
        silent,
        did: session
            .completed_by
            .or(session.initiator)
            .map(|did| did.as_str().to_owned()),
    }))
}
