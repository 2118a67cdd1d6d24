//! `POST /auth/verify`: a page sends the proof instead of a wallet; development only.

use super::callback::parse_session;
use crate::{
    complete_login::{LoginAttempt, complete},
    request_info::RequestInfo,
    routes::cookies,
    state::IdentityState,
    tokens::AuthResponse,
};
use axum::{Json, extract::State, response::IntoResponse};
use gw_http::{ApiError, ErrorBody, JsonBody};
use http::HeaderMap;
use serde::Deserialize;

/// A proof and its session.
#[derive(Debug, Deserialize, utoipa::ToSchema)]
pub(crate) struct AuthVerifyRequest {
    /// The proof.
    #[schema(required)]
    jwz_token: Option<String>,
    /// The login session.
    #[schema(required)]
    session_id: Option<String>,
}

/// Complete a login from a page
///
/// Development only; in production the path answers 404.
#[utoipa::path(
    post,
    path = "/auth/verify",
    operation_id = "verifyLogin",
    tag = "auth",
    request_body = AuthVerifyRequest,
    responses(
        (status = 200, body = AuthResponse),
        (status = 400, body = ErrorBody),
        (status = 401, body = ErrorBody),
        (status = 403, body = ErrorBody),
        (status = 404, body = ErrorBody, description = "Production"),
        (status = 429, body = ErrorBody),
        (status = 500, body = ErrorBody),
        (status = 503, body = ErrorBody),
    ),
)]
pub(crate) async fn verify(
    State(state): State<IdentityState>,
    request_info: RequestInfo,
    headers: HeaderMap,
    body: Result<JsonBody<AuthVerifyRequest>, ApiError>,
) -> Result<impl IntoResponse, ApiError> {
    if state.http_context.production {
        return Err(ApiError::not_found("not found"));
    }
    let JsonBody(body) = body?;
    let given = |text: Option<String>| text.filter(|text| !text.trim().is_empty());
    let token = given(body.jwz_token).ok_or_else(|| ApiError::bad_request("jwz_token required"))?;
    let session = given(body.session_id).ok_or_else(|| ApiError::bad_request("session parameter required"))?;
    let attempt = LoginAttempt {
        session: parse_session(&session)?,
        token: Ok(token.trim().to_owned()),
        request_info,
    };
    let tokens = AuthResponse::new(complete(&state, attempt).await?, state.http_context.now());
    Ok((
        cookies::set_access(&state.http_context, &headers, &tokens),
        Json(tokens),
    ))
}
