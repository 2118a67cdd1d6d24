//! `POST /oauth/callback?session=&oauth_session=`: the wallet sends its proof (OA-5).

use super::session;
use crate::{
    complete_login::{LoginAttempt, complete},
    error::spawn_tracked,
    login::LoginError,
    oauth::{CompleteError, GrantedLogin, Progress},
    request_info::RequestInfo,
    routes::{
        auth::callback::{known_members, parameter, parse_session, proof_in},
        oauth::SessionError,
    },
    state::IdentityState,
    tokens::{hash, revoked_until},
};
use axum::{
    Json,
    extract::{RawQuery, Request, State},
};
use gw_http::{ApiError, ErrorCode, described_error, read_body};
use gw_store::{Actor, StoreError, record::LoginUrls};
use serde::Serialize;

/// The result of a completed flow.
#[derive(Debug, Serialize, utoipa::ToSchema)]
pub(crate) struct OauthCallbackResponse {
    /// `completed`.
    status: &'static str,
    /// The redirect URL with the code.
    redirect_url: String,
}

/// Why a proof does not complete the flow.
#[derive(Debug, thiserror::Error)]
pub(crate) enum CallbackError {
    #[error("no OAuth session was named")]
    NoSession,
    #[error("the sessions do not belong together")]
    Mismatch,
    #[error(transparent)]
    Login(#[from] LoginError),
    #[error(transparent)]
    Session(#[from] SessionError),
    #[error("the session is completed")]
    Done,
}

impl From<StoreError> for CallbackError {
    fn from(error: StoreError) -> Self {
        Self::Login(error.into())
    }
}

impl From<CompleteError> for CallbackError {
    fn from(error: CompleteError) -> Self {
        match error {
            CompleteError::Over => Self::Done,
            CompleteError::Unavailable => Self::Session(SessionError::Unavailable),
        }
    }
}

impl From<CallbackError> for ApiError {
    fn from(error: CallbackError) -> Self {
        match error {
            CallbackError::NoSession => Self::bad_request("oauth_session parameter required"),
            CallbackError::Mismatch => Self::unauthorized("session mismatch"),
            CallbackError::Login(error) => error.into(),
            // A wallet does not distinguish the two kinds of session.
            CallbackError::Session(SessionError::Unknown) | CallbackError::Done => LoginError::SessionOver.into(),
            CallbackError::Session(error) => error.into(),
        }
    }
}

described_error!(
    CallbackError,
    "APIError",
    [
        ErrorCode::BadRequest.answer(),
        ErrorCode::Unauthorized.answer(),
        ErrorCode::Forbidden.answer(),
        ErrorCode::RateLimited.answer(),
        ErrorCode::Internal.answer(),
        ErrorCode::Unavailable.answer(),
    ]
);

/// Complete the flow with a proof
///
/// The body is the token as text, or JSON `{"token": …}` or `{"jwz_token": …}`.
#[utoipa::path(
    post,
    path = "/oauth/callback",
    operation_id = "oauthCallback",
    tag = "oauth",
    params(
        ("session" = String, Query, description = "The login session"),
        ("oauth_session" = String, Query, description = "The OAuth session"),
    ),
    request_body(content = String, description = "The proof, as text or in a JSON object"),
    responses(
        (status = 200, body = OauthCallbackResponse),
        CallbackError,
        (status = 403, description = "Banned, or the humanity credential is missing"),
    ),
)]
pub(crate) async fn callback(
    State(state): State<IdentityState>,
    request_info: RequestInfo,
    RawQuery(query): RawQuery,
    request: Request,
) -> Result<Json<OauthCallbackResponse>, ApiError> {
    let query = query.unwrap_or_default();
    let login = parameter(&query, "session").ok_or(LoginError::NoSession)?;
    let oauth = parameter(&query, "oauth_session").ok_or(CallbackError::NoSession)?;
    let login = parse_session(&login)?;
    let body = read_body(request.into_body()).await?;
    known_members(&body)?;
    let token = proof_in(&body);
    let attempt = LoginAttempt {
        session: login,
        token,
        request_info,
    };
    let redirect_url = finish(&state, &oauth, attempt).await?;
    Ok(Json(OauthCallbackResponse {
        status: "completed",
        redirect_url,
    }))
}

/// Completes the flow with a mock proof.
#[cfg(feature = "mock-login")]
pub(super) async fn run(state: &IdentityState, oauth: &str, attempt: LoginAttempt) -> Result<String, ApiError> {
    Ok(finish(state, oauth, attempt).await?)
}

/// Completes the login and then the OAuth session. Runs to its end after the first token is issued (HD21).
async fn finish(state: &IdentityState, oauth: &str, attempt: LoginAttempt) -> Result<String, CallbackError> {
    let (id, oauth_session) = session(state, oauth).await?;
    if oauth_session.progress != Progress::Pending || !is_open(state, &attempt).await? {
        return Err(CallbackError::Done);
    }
    if oauth_session.login != attempt.session.0 {
        return Err(CallbackError::Mismatch);
    }
    let worker = state.clone();
    spawn_tracked(&state.tasks, async move {
        let request_info = attempt.request_info.clone();
        // The wallet's token pair is not sent. The application's tokens continue the login from its first refresh
        // token.
        let pair = match complete(&worker, attempt).await {
            Ok(pair) => pair,
            Err(error) => {
                if error.is_own_fault() {
                    worker
                        .inner
                        .oauth
                        .sessions
                        .set_aside(&id, &oauth_session, worker.http_context.now())
                        .await;
                }
                return Err(error.into());
            }
        };
        let claims = worker
            .http_context
            .tokens
            .access(pair.access.expose(), worker.http_context.now());
        let claims = claims.map_err(|_| LoginError::Unsealed)?;
        let family = claims.session;
        let login = GrantedLogin::new(
            claims.subject.clone(),
            claims.amr,
            family,
            claims.issued_at,
            hash(&pair.refresh),
        );
        let issuer = &worker.inner.config.base_url;
        let completed = worker
            .inner
            .oauth
            .sessions
            .complete(&id, &oauth_session, login, issuer, worker.http_context.now())
            .await;
        if completed.is_err() {
            let actor = request_info.actor(Actor::named(claims.subject.as_str()));
            let mut tx = worker.store.begin(&actor).await?;
            tx.revoke_login(family, revoked_until(tx.now()), LoginUrls::End).await?;
            tx.commit().await?;
        }
        Ok(completed?)
    })
    .await
}

async fn is_open(state: &IdentityState, attempt: &LoginAttempt) -> Result<bool, LoginError> {
    Ok(state.inner.sessions.pending(attempt.session).await?.is_some())
}

#[cfg(test)]
mod tests {
    use super::*;
    use gw_http::DescribedError as _;
    use gw_types::Seconds;

    /// House rule 17. The errors of a login have a table of their own.
    #[test]
    fn every_error_has_its_status() {
        let table: Vec<(CallbackError, u16)> = vec![
            (CallbackError::NoSession, 400),
            (CallbackError::Mismatch, 401),
            (LoginError::NoToken.into(), 400),
            (LoginError::Banned.into(), 403),
            (LoginError::TooManyFailures(Seconds(9)).into(), 429),
            (StoreError::Detached.into(), 500),
            (StoreError::NotPrimary.into(), 503),
            (SessionError::Unknown.into(), 401),
            (CompleteError::Over.into(), 401),
            (CompleteError::Unavailable.into(), 503),
        ];
        let answers: Vec<_> = table
            .into_iter()
            .map(|(error, status)| {
                // A new variant stops the build here: add it to the table.
                match &error {
                    CallbackError::NoSession
                    | CallbackError::Mismatch
                    | CallbackError::Login(_)
                    | CallbackError::Session(SessionError::Unknown | SessionError::Unavailable)
                    | CallbackError::Done => {}
                }
                let name = format!("{error:?}");
                let answer = ApiError::from(error);
                assert_eq!(answer.code().status().as_u16(), status, "{name}");
                answer.code().answer()
            })
            .collect();
        assert!(CallbackError::lists_exactly(answers));
    }
}
