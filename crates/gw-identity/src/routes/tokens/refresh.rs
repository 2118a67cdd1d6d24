//! `POST /refresh`: exchanges a refresh token for a new pair (TK-4, TK-5).

use crate::{
    error::spawn_tracked,
    request_info::RequestInfo,
    routes::cookies,
    security,
    state::IdentityState,
    tokens::{AuthResponse, Family, TokenPair, hash, revoked_until},
};
use axum::{Json, extract::State, response::IntoResponse};
use gw_audit::SecurityKind;
use gw_http::{ApiError, ErrorBody, ErrorCode, JsonBody, RefreshClaims, TokenError, described_error};
use gw_journal::JournalError;
use gw_store::{Actor, StoreError, record::Rotation};
use gw_types::{Seconds, Secret, TokenId};
use http::HeaderMap;
use serde::Deserialize;

/// A refresh token.
#[derive(Deserialize, utoipa::ToSchema)]
pub(crate) struct RefreshRequest {
    /// The token.
    refresh_token: String,
}

/// Why a refresh is rejected.
#[derive(Debug, thiserror::Error)]
pub(crate) enum RefreshError {
    /// Not a valid refresh token.
    #[error("no valid refresh token")]
    Invalid,
    /// The token or its family has expired.
    #[error("the refresh token has expired")]
    Expired,
    /// The token is not in the store.
    #[error("the refresh token is unknown")]
    Unknown,
    /// It was used or revoked.
    #[error("the refresh token is revoked")]
    Revoked,
    /// The account is banned.
    #[error("the account is banned")]
    Banned,
    /// The user's directory tenant is no longer allowed.
    #[error("the directory tenant is not allowed")]
    Tenant,
    /// The family refreshes too often.
    #[error("the family refreshes too often")]
    TooOften(Seconds),
    /// The store failed.
    #[error("the store failed")]
    Store(#[from] StoreError),
    /// The event could not be recorded.
    #[error("no room to record")]
    Unrecorded(#[from] JournalError),
}

impl From<TokenError> for RefreshError {
    fn from(error: TokenError) -> Self {
        match error {
            TokenError::Invalid => Self::Invalid,
            TokenError::Expired => Self::Expired,
        }
    }
}

impl From<RefreshError> for ApiError {
    fn from(error: RefreshError) -> Self {
        match error {
            RefreshError::Invalid => Self::unauthorized("invalid refresh token"),
            RefreshError::Expired => Self::unauthorized("refresh token expired"),
            RefreshError::Unknown => Self::unauthorized("refresh token not found"),
            RefreshError::Revoked => Self::unauthorized("refresh token revoked"),
            RefreshError::Banned => Self::forbidden("account is banned"),
            RefreshError::Tenant => Self::forbidden("tenant is not authorized"),
            RefreshError::TooOften(wait) => Self::rate_limited(wait),
            RefreshError::Store(error) => {
                let _logged = crate::error::storage(&error);
                Self::unavailable("token store unavailable")
            }
            RefreshError::Unrecorded(_) => Self::audit_unavailable(),
        }
    }
}

described_error!(
    RefreshError,
    "APIError",
    [
        ErrorCode::Unauthorized.answer(),
        ErrorCode::Forbidden.answer(),
        ErrorCode::RateLimited.answer(),
        ErrorCode::Unavailable.answer(),
    ]
);

/// Refresh tokens
///
/// The old refresh token is used up. Using it again later ends the whole login.
#[utoipa::path(
    post,
    path = "/refresh",
    operation_id = "refreshTokens",
    tag = "tokens",
    request_body = RefreshRequest,
    responses(
        (status = 200, body = AuthResponse),
        RefreshError,
        (status = 400, body = ErrorBody),
    ),
)]
pub(crate) async fn refresh(
    State(state): State<IdentityState>,
    request_info: RequestInfo,
    headers: HeaderMap,
    JsonBody(body): JsonBody<RefreshRequest>,
) -> Result<impl IntoResponse, ApiError> {
    let token = Secret::new(body.refresh_token);
    let claims = state
        .http_context
        .tokens
        .refresh(token.expose(), state.http_context.now())
        .map_err(RefreshError::from)?;
    state
        .inner
        .limits
        .refresh_of(claims.session)
        .await
        .map_err(RefreshError::TooOften)?;
    let worker = state.clone();
    let pair = spawn_tracked(&state.tasks, async move {
        rotate(&worker, &token, claims, &request_info).await
    })
    .await?;
    let tokens = AuthResponse::new(pair, state.http_context.now());
    Ok((
        cookies::set_access(&state.http_context, &headers, &tokens),
        Json(tokens),
    ))
}

/// Rotates the token in one transaction, from the lookup of the old token to its successor: of parallel refreshes one
/// wins.
async fn rotate(
    state: &IdentityState,
    token: &Secret,
    claims: RefreshClaims,
    request_info: &RequestInfo,
) -> Result<TokenPair, RefreshError> {
    let actor = request_info.actor(Actor::named(claims.subject.as_str()));
    let mut reservation = state.journal.reserve(1)?;
    let mut tx = state.store.begin(&actor).await?;
    let old = hash(token);
    let user = tx
        .read()
        .find_user_by_external_id(&claims.subject)
        .await?
        .ok_or(RefreshError::Unknown)?;
    let stored = tx.read().find_refresh_token(old).await?;
    if user.banned {
        if stored.is_some() {
            tx.revoke_family(claims.session, revoked_until(tx.now())).await?;
            tx.commit().await?;
        }
        return Err(RefreshError::Banned);
    }
    // TK-5. The family is kept: if the tenant is allowed again, its users are still logged in.
    if let Some(tenant) = user.auth_tenant_id
        && tx
            .read()
            .find_tenant(tenant)
            .await?
            .is_none_or(|tenant| tenant.disabled)
    {
        return Err(RefreshError::Tenant);
    }
    let Some(stored) = stored.filter(|stored| stored.user == user.id) else {
        let ended = state
            .http_context
            .policy
            .pin()
            .is_some_and(|now| now.revocation(TokenId(claims.session.0)).is_some());
        return Err(if ended {
            RefreshError::Revoked
        } else {
            RefreshError::Unknown
        });
    };
    if user.tokens_valid_from.is_some_and(|from| stored.created_at < from) {
        return Err(RefreshError::Revoked);
    }
    let family = Family {
        id: claims.session,
        login: stored.login,
        started: stored.family_started,
        amr: claims.amr,
    };
    let (pair, successor) = state.inner.issuer.issue(&user, family, tx.now());
    match tx.rotate_refresh_token(old, successor).await? {
        Rotation::Done => {
            // A refresh accepts the user's only invitation, as a login does.
            tx.accept_only_offer(user.id).await?;
            tx.commit().await?;
            Ok(pair)
        }
        Rotation::Unknown => Err(RefreshError::Unknown),
        Rotation::Expired => Err(RefreshError::Expired),
        Rotation::JustUsed => Err(RefreshError::Revoked),
        Rotation::Reused => {
            tx.commit().await?;
            let mut event = security::event(SecurityKind::RefreshTokenReuse, request_info);
            event.external_id = Some(claims.subject);
            event.user_id = Some(user.id);
            event.session_id = Some(claims.session);
            reservation.append(event)?;
            Err(RefreshError::Revoked)
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use gw_http::DescribedError as _;

    #[test]
    fn tk4_every_refusal_has_its_status_and_text() {
        let table = [
            (RefreshError::Invalid, 401, "invalid refresh token"),
            (RefreshError::Expired, 401, "refresh token expired"),
            (RefreshError::Unknown, 401, "refresh token not found"),
            (RefreshError::Revoked, 401, "refresh token revoked"),
            (RefreshError::Banned, 403, "account is banned"),
            (RefreshError::Tenant, 403, "tenant is not authorized"),
            (RefreshError::TooOften(Seconds(6)), 429, "rate limit exceeded"),
            (
                RefreshError::Store(StoreError::NotPrimary),
                503,
                "token store unavailable",
            ),
            (RefreshError::Unrecorded(JournalError::Full), 503, "audit unavailable"),
        ];
        let answers = table.map(|(error, status, text)| {
            // A new variant stops the build here: add it to the table.
            match error {
                RefreshError::Invalid
                | RefreshError::Expired
                | RefreshError::Unknown
                | RefreshError::Revoked
                | RefreshError::Banned
                | RefreshError::Tenant
                | RefreshError::TooOften(_)
                | RefreshError::Store(_)
                | RefreshError::Unrecorded(_) => {}
            }
            let answer = ApiError::from(error);
            assert_eq!((answer.code().status().as_u16(), answer.text()), (status, text));
            answer.code().answer()
        });
        assert!(RefreshError::lists_exactly(answers));
    }
}
