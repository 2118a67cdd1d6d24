//! `GET /auth/session/{id}/status`: the page asks whether its login is done (ZK-14, HD19).

use super::{callback::parse_session, request::SECRET_HEADER};
use crate::{
    login::{LoginError, Reason, Status},
    routes::{Provenance, cookies},
    state::IdentityState,
    tokens::AuthResponse,
};
use axum::{
    Json,
    extract::{Path, State},
    response::IntoResponse,
};
use gw_http::{ApiError, ErrorBody, auth::cookie};
use http::HeaderMap;
use serde::Serialize;

/// How far a login is.
#[derive(Debug, Serialize, utoipa::ToSchema)]
pub(crate) struct SessionStatusResponse {
    /// Whether tokens are here.
    completed: bool,
    /// The tokens, once completed.
    #[serde(skip_serializing_if = "Option::is_none")]
    tokens: Option<AuthResponse>,
    /// Whether the last proof was rejected.
    #[serde(skip_serializing_if = "Option::is_none")]
    failed: Option<bool>,
    /// Why it was rejected.
    #[serde(skip_serializing_if = "Option::is_none")]
    reason: Option<Reason>,
    /// Where to get the credential that was missing.
    #[serde(skip_serializing_if = "Option::is_none")]
    verify_url: Option<String>,
}

/// Poll a login
///
/// Tokens are given to whoever shows the session's secret (`X-Login-Secret` or the `pp_login` cookie), or asks from
/// the address that opened the session; to others the session looks pending.
#[utoipa::path(
    get,
    path = "/auth/session/{id}/status",
    operation_id = "loginStatus",
    tag = "auth",
    params(("id" = String, Path, description = "The login session")),
    responses(
        (status = 200, body = SessionStatusResponse),
        (status = 401, body = ErrorBody, description = "Unknown or expired"),
        (status = 429, body = ErrorBody),
        (status = 503, body = ErrorBody),
    ),
)]
pub(crate) async fn status(
    State(state): State<IdentityState>,
    provenance: Provenance,
    Path(id): Path<String>,
    headers: HeaderMap,
) -> Result<impl IntoResponse, ApiError> {
    let (now, inner) = (state.edge.now(), &state.inner);
    let id = parse_session(&id)?;
    inner.limits.poll_of(id).await?;
    let in_header = headers.get(SECRET_HEADER).and_then(|value| value.to_str().ok());
    let secrets: Vec<&str> = [in_header, cookie(&headers, cookies::LOGIN)].into_iter().flatten().collect();
    let status = inner.sessions.status(id, &secrets, provenance.client).await.map_err(LoginError::from)?;
    let status = status.ok_or(LoginError::SessionOver)?;
    let (tokens, refused) = match status {
        Status::Completed(sealed) => (Some(inner.vault.open(id, &sealed).ok_or(LoginError::Unsealed)?), None),
        Status::Pending { refused } => (None, refused),
    };
    let lacking = refused == Some(Reason::HumanityRequired);
    let verify_url = lacking.then(|| inner.config.humanity_verify_url.clone()).flatten();
    let tokens = tokens.map(|pair| AuthResponse::new(pair, now));
    let answer = tokens.as_ref().map(|tokens| cookies::set_access(&state.edge, &headers, tokens));
    Ok((
        answer.unwrap_or_default(),
        Json(SessionStatusResponse {
            completed: tokens.is_some(),
            tokens,
            failed: refused.map(|_| true),
            reason: refused,
            verify_url,
        }),
    ))
}
