//! `GET /auth/session/{id}/status`: the page polls for the completion of its login (ZK-14, HD19).

use super::callback::parse_session;
use crate::{
    login::{LoginError, OpenerEvidence, Reason, Status},
    request_info::RequestInfo,
    routes::cookies,
    state::IdentityState,
    tokens::{AuthResponse, has_ended},
};
use axum::{
    Json,
    extract::{Path, State},
    response::IntoResponse,
};
use gw_http::{ApiError, ErrorBody};
use http::HeaderMap;
use serde::Serialize;

/// The state of a login.
#[derive(Debug, Serialize, utoipa::ToSchema)]
pub(crate) struct SessionStatusResponse {
    /// Whether the login is completed.
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
/// Only the opener gets the tokens and the reason of a rejected proof. The opener shows the session's secret
/// (`X-Login-Secret` or the `pp_login` cookie). If no browser opened the session, a request without a secret from the
/// same address also counts, unless a browser sends it. To other clients the session looks pending.
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
    request_info: RequestInfo,
    Path(id): Path<String>,
    headers: HeaderMap,
) -> Result<impl IntoResponse, ApiError> {
    let (now, inner) = (state.http_context.now(), &state.inner);
    let shown = OpenerEvidence::from_headers(&headers, request_info.client);
    let opened = match parse_session(&id) {
        Ok(id) => inner
            .sessions
            .find(id)
            .await
            .map_err(LoginError::from)?
            .map(|session| (id, session)),
        Err(_) => None,
    };
    let Some((id, session)) = opened else {
        inner.limits.poll_from(request_info.client).await?;
        return Err(LoginError::SessionOver.into());
    };
    let by_opener = session.opener.is(&shown);
    inner.limits.poll_of(id, by_opener, request_info.client).await?;
    let status = session.status(by_opener);
    let (tokens, refused) = match status {
        Status::Completed(sealed) => {
            let pair = inner.vault.open(id, &sealed).ok_or(LoginError::Unsealed)?;
            if has_ended(&state.http_context, &pair)? {
                inner.sessions.remove(id).await.map_err(LoginError::from)?;
                return Err(LoginError::SessionOver.into());
            }
            (Some(pair), None)
        }
        Status::Pending { refused } => (None, refused),
    };
    let lacking = refused == Some(Reason::HumanityRequired);
    let verify_url = lacking.then(|| inner.config.humanity_verify_url.clone()).flatten();
    let tokens = tokens.map(|pair| AuthResponse::new(pair, now));
    let answer = tokens
        .as_ref()
        .map(|tokens| cookies::set_access(&state.http_context, &headers, tokens));
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
