//! `POST /revoke`: ends a login and everything it made (TK-6, HD35). Takes effect at the next request, on this instance
//! before the answer.

use crate::{
    error::{spawn_tracked, storage},
    request_info::RequestInfo,
    routes::cookies,
    security,
    state::IdentityState,
    tokens::revoked_until,
};
use axum::{extract::State, response::IntoResponse};
use gw_audit::SecurityKind;
use gw_http::{AccessClaims, ApiError, ErrorCode, JsonBody, Message, RefreshClaims, described_error, token::SKEW};
use gw_journal::JournalError;
use gw_store::{Actor, StoreError, record::LoginUrls};
use serde::Deserialize;

/// The tokens to end.
#[derive(Deserialize, utoipa::ToSchema)]
pub(crate) struct RevokeRequest {
    /// The refresh token. Its whole login ends: the browser's and the wallet's tokens, those of applications that
    /// signed in by it, and the personal URLs that it made.
    refresh_token: String,
    /// An access token to end as well.
    access_token: Option<String>,
}

/// Why a login could not be ended.
#[derive(Debug, thiserror::Error)]
pub(crate) enum RevokeError {
    /// The store failed.
    #[error("the store failed")]
    Store(#[from] StoreError),
    /// The event could not be recorded.
    #[error("no room to record")]
    Unrecorded(#[from] JournalError),
}

impl From<RevokeError> for ApiError {
    fn from(error: RevokeError) -> Self {
        match error {
            RevokeError::Store(error) => storage(&error),
            RevokeError::Unrecorded(_) => Self::audit_unavailable(),
        }
    }
}

described_error!(
    RevokeError,
    "APIError",
    [ErrorCode::Internal.answer(), ErrorCode::Unavailable.answer()]
);

/// Revoke tokens
///
/// Answers 200 for tokens that are unknown or already ended, too.
#[utoipa::path(
    post,
    path = "/revoke",
    operation_id = "revokeTokens",
    tag = "tokens",
    request_body = RevokeRequest,
    responses(
        (status = 200, body = Message),
        RevokeError,
        (status = 400),
        (status = 403),
        (status = 429),
    ),
)]
pub(crate) async fn revoke(
    State(state): State<IdentityState>,
    request_info: RequestInfo,
    JsonBody(body): JsonBody<RevokeRequest>,
) -> Result<impl IntoResponse, ApiError> {
    let now = state.http_context.now();
    // Only tokens that the gateway signed are stored, so that invented tokens cannot fill the table.
    let refresh = state.http_context.tokens.refresh(&body.refresh_token, now).ok();
    let access = body
        .access_token
        .and_then(|token| state.http_context.tokens.access(&token, now).ok());
    let worker = state.clone();
    spawn_tracked(&state.tasks, async move {
        end(&worker, refresh, access, &request_info).await
    })
    .await?;
    Ok((
        cookies::clear_access(&state.http_context),
        Message::new("token revoked"),
    ))
}

async fn end(
    state: &IdentityState,
    refresh: Option<RefreshClaims>,
    access: Option<AccessClaims>,
    request_info: &RequestInfo,
) -> Result<(), RevokeError> {
    let subject = refresh
        .as_ref()
        .map(|claims| &claims.subject)
        .or(access.as_ref().map(|claims| &claims.subject));
    let Some(subject) = subject.cloned() else { return Ok(()) };
    let mut reservation = state.journal.reserve(1)?;
    let mut tx = state
        .store
        .begin(&request_info.actor(Actor::named(subject.as_str())))
        .await?;
    let mut ended = Vec::new();
    if let Some(claims) = &refresh
        // A family without rows was ended before.
        && tx.read().find_family(claims.session).await?.is_some()
    {
        ended = tx
            .revoke_login(claims.session, revoked_until(tx.now()), LoginUrls::End)
            .await?;
    }
    if let Some(claims) = &access {
        tx.revoke_access_token(claims.token, claims.expires_at.plus(SKEW))
            .await?;
    }
    tx.commit().await?;
    if let (false, Some(claims)) = (ended.is_empty(), &refresh) {
        let session = claims.session;
        let mut event = security::event(SecurityKind::SessionRevoked, request_info);
        event.external_id = Some(subject);
        event.session_id = Some(session);
        reservation.append(event)?;
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;
    use gw_http::DescribedError as _;

    /// House rule 17.
    #[test]
    fn every_error_has_its_status_and_text() {
        let table = [
            (
                RevokeError::Store(StoreError::NotPrimary),
                503,
                "the policy store is temporarily unavailable",
            ),
            (RevokeError::Store(StoreError::Detached), 500, "internal error"),
            (RevokeError::Unrecorded(JournalError::Full), 503, "audit unavailable"),
        ];
        let answers = table.map(|(error, status, text)| {
            // A new variant stops the build here: add it to the table.
            match error {
                RevokeError::Store(_) | RevokeError::Unrecorded(_) => {}
            }
            let answer = ApiError::from(error);
            assert_eq!((answer.code().status().as_u16(), answer.text()), (status, text));
            answer.code().answer()
        });
        assert!(RevokeError::lists_exactly(answers));
    }
}
