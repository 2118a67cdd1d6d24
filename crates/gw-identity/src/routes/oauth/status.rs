//! `GET /oauth/session/{id}/status`: the page polls for the completion of its session (OA-9).

use super::{SessionError, polled};
use crate::{
    login::{LoginId, Reason, Status},
    oauth::Progress,
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

/// The state of an OAuth session.
#[derive(Debug, Default, Serialize, utoipa::ToSchema)]
pub(crate) struct OAuthSessionStatusResponse {
    /// Whether the user has logged in.
    pub(super) completed: bool,
    /// The redirect URL with the code, until the code is used.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) redirect_url: Option<String>,
    /// Whether the last proof was rejected.
    #[serde(skip_serializing_if = "Option::is_none")]
    failed: Option<bool>,
    /// Why it was rejected.
    #[serde(skip_serializing_if = "Option::is_none")]
    reason: Option<Reason>,
}

/// Poll an OAuth session
///
/// Only the opener gets the URL with the code. The opener shows the session's secret (`X-Login-Secret` or the
/// `pp_login` cookie). If no browser opened the session, a request without a secret from the same address also counts,
/// unless a browser sends it. To other clients the session looks pending.
#[utoipa::path(
    get,
    path = "/oauth/session/{id}/status",
    operation_id = "oauthSessionStatus",
    tag = "oauth",
    params(("id" = String, Path, description = "The OAuth session")),
    responses(
        (status = 200, body = OAuthSessionStatusResponse),
        SessionError,
        (status = 429, body = ErrorBody),
    ),
)]
pub(crate) async fn status(
    State(state): State<IdentityState>,
    request_info: RequestInfo,
    Path(id): Path<String>,
    headers: HeaderMap,
) -> Result<impl IntoResponse, ApiError> {
    let (id, oauth_session, by_opener) = polled(&state, &id, &headers, &request_info).await?;
    let (now, inner, login) = (state.http_context.now(), &state.inner, LoginId(oauth_session.login));
    let of_login = inner.sessions.find(login).await.map_err(SessionError::from)?;
    let of_login = of_login.map(|session| session.status(by_opener));
    let mut body = OAuthSessionStatusResponse::default();
    let mut answer = HeaderMap::new();
    match (oauth_session.progress, of_login) {
        (Progress::Pending, Some(Status::Pending { refused })) => {
            body.failed = refused.map(|_| true);
            body.reason = refused;
        }
        (Progress::Pending, Some(Status::Completed(_)) | None) => {}
        (Progress::Completed | Progress::Redeemed, _) if !by_opener => {}
        (progress, of_login) => {
            body.completed = true;
            if progress == Progress::Completed {
                body.redirect_url = inner
                    .oauth
                    .sessions
                    .redirect_url(&id, &oauth_session, &inner.config.base_url);
            }
            // The page's own token pair of the same login. Its cookie lets the next application log in silently (TK-9).
            if let Some(Status::Completed(sealed)) = of_login
                && let Some(pair) = inner.vault.open(login, &sealed)
                && !has_ended(&state.http_context, &pair)?
            {
                answer = cookies::set_access(&state.http_context, &headers, &AuthResponse::new(pair, now));
            }
        }
    }
    Ok((answer, Json(body)))
}

impl OAuthSessionStatusResponse {
    /// A session that has its code.
    pub(super) fn done(redirect_url: String) -> Self {
        Self {
            completed: true,
            redirect_url: Some(redirect_url),
            failed: None,
            reason: None,
        }
    }
}
