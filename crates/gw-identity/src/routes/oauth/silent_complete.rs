//! `POST /oauth/session/{id}/silent-complete`: a user who is logged in already completes the session without a wallet
//! (OA-10).

use super::{SessionError, completed, other_browser, session, status::OAuthSessionStatusResponse};
use crate::{
    error::{spawn_tracked, storage},
    login::LoginId,
    login::OpenerEvidence,
    oauth::{CompleteError, GrantedLogin, OauthId, OauthSession, Progress},
    request_info::RequestInfo,
    security,
    state::IdentityState,
    tokens::{Family, revoked_until},
};
use axum::{
    Json,
    extract::{Path, State},
};
use gw_audit::SecurityKind;
use gw_http::{
    AccessClaims, ApiError, AuthError, Credentials, ErrorBody, ErrorCode, auth::access_cookie, described_error,
};
use gw_journal::JournalError;
use gw_policy::access::identify;
use gw_store::{Actor, StoreError, record::Application};
use gw_types::Seconds;
use http::{HeaderMap, header};
use sha2::{Digest, Sha256};

/// Lifetime of the first refresh token, equal to that of the code: no client has the token, and redeeming the code
/// exchanges it.
const UNREDEEMED: Seconds = Seconds(300);

/// Why a session is not completed silently (OA-10).
#[derive(Debug, thiserror::Error)]
pub(crate) enum SilentCompleteError {
    /// The session was not found.
    #[error("the session was not found")]
    Session(#[from] SessionError),
    /// Another browser began the session.
    #[error("the session was started in another browser")]
    OtherBrowser,
    /// The session has its code already.
    #[error("the session is completed")]
    Done,
    /// The caller has no valid token.
    #[error("the caller is not authenticated")]
    Caller(#[from] AuthError),
    /// A foreign page sent the request.
    #[error("the request comes from a foreign page")]
    ForeignPage,
    /// Another user or an anonymous caller began the session, or its client no longer exists.
    #[error("the session is not the caller's")]
    NotTheirs,
    /// The account is banned.
    #[error("the account is banned")]
    Banned,
    /// The caller's login has ended.
    #[error("the login has ended")]
    LoginOver,
    /// The store failed.
    #[error("the store failed")]
    Store(#[from] StoreError),
    /// The event could not be recorded.
    #[error("no room to record")]
    Unrecorded(#[from] JournalError),
}

impl From<CompleteError> for SilentCompleteError {
    fn from(error: CompleteError) -> Self {
        match error {
            CompleteError::Over => Self::Done,
            CompleteError::Unavailable => Self::Session(SessionError::Unavailable),
        }
    }
}

impl From<SilentCompleteError> for ApiError {
    fn from(error: SilentCompleteError) -> Self {
        match error {
            SilentCompleteError::Session(error) => error.into(),
            SilentCompleteError::OtherBrowser => other_browser(),
            SilentCompleteError::Done => completed(),
            SilentCompleteError::Caller(error) => error.into(),
            SilentCompleteError::ForeignPage => Self::forbidden("origin not allowed"),
            SilentCompleteError::NotTheirs => Self::forbidden("session was not started by this user"),
            SilentCompleteError::Banned => Self::forbidden("account is banned"),
            SilentCompleteError::LoginOver => Self::unauthorized("token revoked"),
            SilentCompleteError::Store(error) => storage(&error),
            SilentCompleteError::Unrecorded(_) => Self::audit_unavailable(),
        }
    }
}

described_error!(
    SilentCompleteError,
    "APIError",
    [
        ErrorCode::Unauthorized.answer(),
        ErrorCode::Forbidden.answer(),
        ErrorCode::NotFound.answer(),
        ErrorCode::Conflict.answer(),
        ErrorCode::Internal.answer(),
        ErrorCode::Unavailable.answer()
    ]
);

/// Complete an OAuth session silently
///
/// For the user who was logged in when the session began, with a Bearer token or the `pp_access` cookie.
#[utoipa::path(
    post,
    path = "/oauth/session/{id}/silent-complete",
    operation_id = "oauthSilentComplete",
    tag = "oauth",
    params(("id" = String, Path, description = "The OAuth session")),
    responses(
        (status = 200, body = OAuthSessionStatusResponse),
        SilentCompleteError,
        (status = 403, body = ErrorBody, description = "Another user or browser, a foreign page, or a banned account"),
        (status = 409, body = ErrorBody, description = "Completed already"),
        (status = 429, body = ErrorBody),
    ),
)]
pub(crate) async fn silent_complete(
    State(state): State<IdentityState>,
    request_info: RequestInfo,
    Path(id): Path<String>,
    headers: HeaderMap,
) -> Result<Json<OAuthSessionStatusResponse>, ApiError> {
    let caller = caller(&state, &headers)?;
    let (id, session) = session(&state, &id).await?;
    if !session
        .opener
        .is(&OpenerEvidence::from_headers(&headers, request_info.client))
    {
        return Err(SilentCompleteError::OtherBrowser.into());
    }
    if session.progress != Progress::Pending {
        return Err(SilentCompleteError::Done.into());
    }
    if state.http_context.origins.sent_by_foreign_page(&headers) {
        return Err(SilentCompleteError::ForeignPage.into());
    }
    let registered = state.inner.oauth.secrets.clients().get(&session.client).is_some();
    // Compared exactly: base58 is case-sensitive.
    if !registered || session.initiator.as_ref() != Some(&caller.subject) {
        return Err(SilentCompleteError::NotTheirs.into());
    }
    let worker = state.clone();
    let redirect_url = spawn_tracked(&state.tasks, async move {
        finish(&worker, &id, &session, caller, &request_info).await
    })
    .await?;
    Ok(Json(OAuthSessionStatusResponse::done(redirect_url)))
}

/// The caller's claims. The cookie counts here unless a foreign page sent it (decision 4).
fn caller(state: &IdentityState, headers: &HeaderMap) -> Result<AccessClaims, SilentCompleteError> {
    let http_context = &*state.http_context;
    let token = match Credentials::from_headers(headers, &http_context.origins)? {
        Credentials::Bearer(token) | Credentials::Cookie(token) => token,
        Credentials::Nothing if headers.contains_key(header::ORIGIN) => return Err(AuthError::Missing.into()),
        Credentials::Nothing => access_cookie(headers).ok_or(AuthError::Missing)?,
    };
    let claims = http_context
        .tokens
        .access(token, http_context.now())
        .map_err(AuthError::from)?;
    let snapshot = http_context.policy.pin().ok_or(AuthError::PolicyStale)?;
    identify(&snapshot, &claims.facts()).map_err(AuthError::from)?;
    Ok(claims)
}

/// Starts a login for the application, records it, and then creates the code.
async fn finish(
    state: &IdentityState,
    id: &OauthId,
    oauth_session: &OauthSession,
    caller: AccessClaims,
    request_info: &RequestInfo,
) -> Result<String, SilentCompleteError> {
    let actor = request_info.actor(Actor::named(caller.subject.as_str()));
    let mut reservation = state.journal.reserve(1)?;
    let mut tx = state.store.begin(&actor).await?;
    let user = tx.read().find_user_by_external_id(&caller.subject).await?;
    let user = user.ok_or(SilentCompleteError::Caller(AuthError::UnknownUser))?;
    if user.banned {
        return Err(SilentCompleteError::Banned);
    }
    // The new login is as old as the caller's, so that a chain of logins does not live forever (TK-5).
    let families = tx.read().list_families(user.id, tx.now()).await?;
    let vouching = families
        .into_iter()
        .find(|family| family.id == caller.session)
        .ok_or(SilentCompleteError::LoginOver)?;
    let fresh = state.inner.issuer.new_family(caller.amr, tx.now());
    let family = Family {
        started: vouching.started,
        login: vouching.login,
        ..fresh
    };
    let (_, mut first) = state.inner.issuer.issue(&user, family, tx.now());
    first.expires_at = first.expires_at.min(tx.now().plus(UNREDEEMED));
    let login = GrantedLogin::new(
        caller.subject.clone(),
        caller.amr,
        family.id,
        family.started,
        first.hash,
    );
    let redirect = Sha256::digest(oauth_session.redirect_uri.as_str().as_bytes());
    tx.store_application_token(
        first,
        &Application {
            client: &oauth_session.client,
            redirect: redirect.into(),
        },
    )
    .await?;
    tx.commit().await?;

    let mut event = security::event(SecurityKind::SilentSso, request_info);
    event.external_id = Some(user.external_id);
    event.user_id = Some(user.id);
    event.session_id = Some(family.id);
    event.provider = Some(caller.amr.as_str().into());
    reservation.append(event)?;
    let issuer = &state.inner.config.base_url;
    let completed = state
        .inner
        .oauth
        .sessions
        .complete(id, oauth_session, login, issuer, state.http_context.now())
        .await;
    if completed.is_ok() {
        // The session waits for no wallet any more, so it stops counting against the limit (HD34). If removal fails it
        // expires.
        if let Err(error) = state.inner.sessions.remove(LoginId(oauth_session.login)).await {
            tracing::warn!(
                error = &error as &dyn std::error::Error,
                "the wallet's session of a silent sign-in stays open"
            );
        }
    } else {
        let mut tx = state.store.begin(&actor).await?;
        tx.revoke_family(family.id, revoked_until(tx.now())).await?;
        tx.commit().await?;
    }
    completed.map_err(|error: CompleteError| error.into())
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
                SilentCompleteError::Session(SessionError::Unknown),
                404,
                "session not found or expired",
            ),
            (
                SilentCompleteError::from(CompleteError::Unavailable),
                503,
                "session store unavailable",
            ),
            (
                SilentCompleteError::OtherBrowser,
                403,
                "this sign-in was started in another browser",
            ),
            (
                SilentCompleteError::from(CompleteError::Over),
                409,
                "session already completed",
            ),
            (
                SilentCompleteError::Caller(AuthError::Missing),
                401,
                "missing Authorization header",
            ),
            (SilentCompleteError::ForeignPage, 403, "origin not allowed"),
            (
                SilentCompleteError::NotTheirs,
                403,
                "session was not started by this user",
            ),
            (SilentCompleteError::Banned, 403, "account is banned"),
            (SilentCompleteError::LoginOver, 401, "token revoked"),
            (
                SilentCompleteError::Store(StoreError::NotPrimary),
                503,
                "the policy store is temporarily unavailable",
            ),
            (SilentCompleteError::Store(StoreError::Detached), 500, "internal error"),
            (
                SilentCompleteError::Unrecorded(JournalError::Full),
                503,
                "audit unavailable",
            ),
        ];
        let answers = table.map(|(error, status, text)| {
            // A new variant stops the build here: add it to the table.
            match error {
                SilentCompleteError::Session(_)
                | SilentCompleteError::OtherBrowser
                | SilentCompleteError::Done
                | SilentCompleteError::Caller(_)
                | SilentCompleteError::ForeignPage
                | SilentCompleteError::NotTheirs
                | SilentCompleteError::Banned
                | SilentCompleteError::LoginOver
                | SilentCompleteError::Store(_)
                | SilentCompleteError::Unrecorded(_) => {}
            }
            let answer = ApiError::from(error);
            assert_eq!((answer.code().status().as_u16(), answer.text()), (status, text));
            answer.code().answer()
        });
        assert!(SilentCompleteError::lists_exactly(answers));
    }
}
