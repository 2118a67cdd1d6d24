//! `GET /oauth/session/{id}/restart`: starts the session again for a user who has logged in by another method
//! meanwhile, for example by the organization's directory. Only the user who is logged in when a session begins may
//! complete it silently (OA-10).

use super::{SessionError, base_path, session};
use crate::{login::OpenerEvidence, oauth::Progress, request_info::RequestInfo, state::IdentityState};
use axum::{
    extract::{Path, State},
    response::IntoResponse,
};
use gw_http::{ApiError, ErrorBody};
use http::{HeaderMap, HeaderValue, StatusCode, header};

/// Restart an OAuth session
///
/// Only for the session's opener, because the redirect contains the application's `state`.
#[utoipa::path(
    get,
    path = "/oauth/session/{id}/restart",
    operation_id = "oauthRestart",
    tag = "oauth",
    params(("id" = String, Path, description = "The OAuth session")),
    responses(
        (status = 302, description = "To `/oauth/authorize` with the parameters of the application's request"),
        (status = 403),
        (status = 404, body = ErrorBody),
        (status = 409, body = ErrorBody, description = "Completed already"),
        (status = 429, body = ErrorBody),
        (status = 503, body = ErrorBody),
    ),
)]
pub(crate) async fn restart(
    State(state): State<IdentityState>,
    request_info: RequestInfo,
    Path(id): Path<String>,
    headers: HeaderMap,
) -> Result<impl IntoResponse, ApiError> {
    let (_, session) = session(&state, &id).await?;
    if !session
        .opener
        .is(&OpenerEvidence::from_headers(&headers, request_info.client))
    {
        return Err(SessionError::Unknown.into());
    }
    if session.progress != Progress::Pending {
        return Err(SessionError::Done.into());
    }
    let mut query = form_urlencoded::Serializer::new(String::new());
    query
        .append_pair("client_id", &session.client)
        .append_pair("redirect_uri", session.redirect_uri.as_str())
        .append_pair("state", &session.state)
        .append_pair("response_type", "code");
    if let Some(challenge) = session.challenge {
        query
            .append_pair("code_challenge", &challenge.to_text())
            .append_pair("code_challenge_method", "S256");
    }
    let to = HeaderValue::from_str(&format!("{}/oauth/authorize?{}", base_path(&state), query.finish()));
    Ok((
        StatusCode::FOUND,
        [(header::LOCATION, to.map_err(|_| ApiError::internal())?)],
    ))
}
