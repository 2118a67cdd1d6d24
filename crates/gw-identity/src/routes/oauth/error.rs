//! Errors of the OAuth routes: one enum per kind of route, with status, code and text (RFC 6749 §4.1.2.1, §5.2).

use crate::{
    login::LoginError,
    oauth::{Busy, CompleteError, OpenError},
};
use axum::{
    Json,
    response::{IntoResponse, Response},
};
use gw_cache::Unavailable;
use gw_http::{ApiError, AuthError, ErrorBody, described_error};
use gw_journal::JournalError;
use gw_store::StoreError;
use gw_types::Seconds;
use http::{HeaderValue, StatusCode, header};
use serde::Serialize;

/// The `WWW-Authenticate` challenge for client authentication.
const CHALLENGE: HeaderValue = HeaderValue::from_static("Basic realm=\"oauth\", charset=\"UTF-8\"");

/// The body of an OAuth error.
#[derive(Debug, Serialize, utoipa::ToSchema)]
pub(crate) struct OAuthErrorResponse {
    /// The code.
    error: &'static str,
    /// The error in words.
    error_description: String,
}

/// An error of an OAuth route: the route's own error (RFC 6749 §5.2), or one of the layers that all routes share.
#[derive(Debug, Serialize, utoipa::ToSchema)]
#[serde(untagged)]
#[expect(dead_code, reason = "carries the description only")]
pub(crate) enum OAuthOrAPIError {
    OAuth(OAuthErrorResponse),
    Api(ErrorBody),
}

/// Why an authorization or token request is rejected.
#[derive(Debug, thiserror::Error)]
pub(crate) enum OauthError {
    #[error("{0} is required")]
    Missing(&'static str),
    #[error("{0} is given twice")]
    Repeated(&'static str),
    #[error("{0} is malformed")]
    Malformed(&'static str),
    #[error("the request body cannot be read")]
    Body,
    #[error("the request body is too large")]
    TooLarge,
    #[error("response_type must be code")]
    ResponseType,
    #[error("the client is not known")]
    UnknownClient,
    #[error("redirect_uri is not allowed for this client")]
    Redirect,
    #[error("code_challenge_method must be S256")]
    ChallengeMethod,
    #[error("grant_type must be authorization_code")]
    GrantType,
    #[error("client authentication failed")]
    Client,
    #[error("client credentials are given in more than one way")]
    TwoMethods,
    #[error("the code is not valid")]
    Grant,
    #[error("too many failures of this client")]
    TooManyFailures(Seconds),
    #[error("too many open sessions")]
    TooManySessions(Seconds),
    #[error("all places for sign-ins are taken")]
    Full(Seconds),
    #[error("VERIFIER_ID not configured")]
    NoVerifierId,
    #[error("not now, try again")]
    Unavailable,
    #[error("the store failed")]
    Store(#[from] StoreError),
    #[error("what happens could not be recorded")]
    Unrecorded(#[from] JournalError),
}

impl OauthError {
    /// The status and the code.
    pub(crate) fn answer(&self) -> (StatusCode, &'static str) {
        match self {
            Self::Missing(_)
            | Self::Repeated(_)
            | Self::Malformed(_)
            | Self::Body
            | Self::Redirect
            | Self::ChallengeMethod
            | Self::TwoMethods => (StatusCode::BAD_REQUEST, "invalid_request"),
            Self::TooLarge => (StatusCode::PAYLOAD_TOO_LARGE, "invalid_request"),
            Self::ResponseType => (StatusCode::BAD_REQUEST, "unsupported_response_type"),
            Self::UnknownClient => (StatusCode::BAD_REQUEST, "unauthorized_client"),
            Self::GrantType => (StatusCode::BAD_REQUEST, "unsupported_grant_type"),
            Self::Client => (StatusCode::UNAUTHORIZED, "invalid_client"),
            Self::Grant => (StatusCode::BAD_REQUEST, "invalid_grant"),
            Self::TooManyFailures(_) | Self::TooManySessions(_) => {
                (StatusCode::TOO_MANY_REQUESTS, "temporarily_unavailable")
            }
            Self::Store(error) if error.is_unavailable() => {
                (StatusCode::SERVICE_UNAVAILABLE, "temporarily_unavailable")
            }
            Self::NoVerifierId | Self::Store(_) => (StatusCode::INTERNAL_SERVER_ERROR, "server_error"),
            Self::Full(_) | Self::Unavailable | Self::Unrecorded(_) => {
                (StatusCode::SERVICE_UNAVAILABLE, "temporarily_unavailable")
            }
        }
    }
}

described_error!(
    OauthError,
    "OAuthErrorResponse",
    [
        (StatusCode::BAD_REQUEST, "invalid_request"),
        (StatusCode::BAD_REQUEST, "invalid_grant"),
        (StatusCode::BAD_REQUEST, "unauthorized_client"),
        (StatusCode::BAD_REQUEST, "unsupported_grant_type"),
        (StatusCode::BAD_REQUEST, "unsupported_response_type"),
        (StatusCode::UNAUTHORIZED, "invalid_client"),
        (StatusCode::PAYLOAD_TOO_LARGE, "invalid_request"),
        (StatusCode::TOO_MANY_REQUESTS, "temporarily_unavailable"),
        (StatusCode::INTERNAL_SERVER_ERROR, "server_error"),
        (StatusCode::SERVICE_UNAVAILABLE, "temporarily_unavailable"),
    ]
);

impl From<Unavailable> for OauthError {
    fn from(_: Unavailable) -> Self {
        Self::Unavailable
    }
}

impl From<Busy> for OauthError {
    fn from(_: Busy) -> Self {
        Self::Unavailable
    }
}

impl From<OpenError> for OauthError {
    fn from(error: OpenError) -> Self {
        match error {
            OpenError::Full(wait) => Self::Full(wait),
            OpenError::NetworkFull(wait) => Self::TooManySessions(wait),
            OpenError::Unavailable => Self::Unavailable,
        }
    }
}

impl IntoResponse for OauthError {
    fn into_response(self) -> Response {
        if let Self::Store(error) = &self {
            let _logged = crate::error::storage(error);
        }
        let (status, error) = self.answer();
        let body = OAuthErrorResponse {
            error,
            error_description: self.to_string(),
        };
        let mut response = (status, Json(body)).into_response();
        let headers = response.headers_mut();
        match self {
            Self::Client => {
                headers.insert(header::WWW_AUTHENTICATE, CHALLENGE);
            }
            Self::TooManyFailures(Seconds(wait)) | Self::TooManySessions(Seconds(wait)) | Self::Full(Seconds(wait)) => {
                headers.insert(header::RETRY_AFTER, HeaderValue::from(wait));
            }
            // Every 503 has a Retry-After header (RTO8).
            _ if status == StatusCode::SERVICE_UNAVAILABLE => {
                headers.insert(header::RETRY_AFTER, HeaderValue::from(1));
            }
            _ => {}
        }
        response
    }
}

/// Why an OAuth session is not shown, or not completed.
#[derive(Debug, thiserror::Error)]
pub(crate) enum SessionError {
    /// The session is unknown or expired.
    #[error("the session is unknown")]
    Unknown,
    /// Another browser began the session: completing it would log another person in (HD34).
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
    /// Mock logins are disabled.
    #[cfg(feature = "mock-login")]
    #[error("mock logins are off")]
    MockOff,
    /// The cache cannot be reached.
    #[error("the cache is unavailable")]
    Unavailable,
    /// The store failed.
    #[error("the store failed")]
    Store(#[from] StoreError),
    /// The event could not be recorded.
    #[error("what happens could not be recorded")]
    Unrecorded(#[from] JournalError),
}

impl From<Unavailable> for SessionError {
    fn from(_: Unavailable) -> Self {
        Self::Unavailable
    }
}

impl From<CompleteError> for SessionError {
    fn from(error: CompleteError) -> Self {
        match error {
            CompleteError::Over => Self::Done,
            CompleteError::Unavailable => Self::Unavailable,
        }
    }
}

impl From<SessionError> for ApiError {
    fn from(error: SessionError) -> Self {
        match error {
            SessionError::Unknown => Self::not_found("session not found or expired"),
            SessionError::OtherBrowser => Self::forbidden("this sign-in was started in another browser"),
            SessionError::Done => Self::conflict("session already completed"),
            SessionError::Caller(error) => error.into(),
            SessionError::ForeignPage => Self::forbidden("origin not allowed"),
            SessionError::NotTheirs => Self::forbidden("session was not started by this user"),
            SessionError::Banned => Self::forbidden("account is banned"),
            SessionError::LoginOver => Self::unauthorized("token revoked"),
            #[cfg(feature = "mock-login")]
            SessionError::MockOff => Self::forbidden("mock login is disabled"),
            SessionError::Unavailable => Self::unavailable("session store unavailable"),
            SessionError::Store(error) => crate::error::storage(&error),
            SessionError::Unrecorded(_) => Self::audit_unavailable(),
        }
    }
}

impl From<LoginError> for OauthError {
    fn from(error: LoginError) -> Self {
        match error {
            LoginError::NoVerifierId => Self::NoVerifierId,
            LoginError::TooManySessions(wait) => Self::TooManySessions(wait),
            LoginError::Busy(wait) => Self::Full(wait),
            LoginError::Store(error) => Self::Store(error),
            // `SessionsUnavailable` is temporary. The others do not occur when a session is opened.
            LoginError::NoSchema
            | LoginError::NoSession
            | LoginError::SessionOver
            | LoginError::TooManyFailures(_)
            | LoginError::NoToken
            | LoginError::Proof { .. }
            | LoginError::CredentialTaken
            | LoginError::Banned
            | LoginError::Unrecorded(_)
            | LoginError::Unsealed
            | LoginError::SessionsUnavailable(_) => Self::Unavailable,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use gw_http::DescribedError as _;

    #[test]
    fn oa1_oa7_every_refusal_has_its_status_and_code() {
        let table = [
            (OauthError::Missing("state"), 400, "invalid_request"),
            (OauthError::Repeated("state"), 400, "invalid_request"),
            (OauthError::Malformed("state"), 400, "invalid_request"),
            (OauthError::Body, 400, "invalid_request"),
            (OauthError::TooLarge, 413, "invalid_request"),
            (OauthError::ResponseType, 400, "unsupported_response_type"),
            (OauthError::UnknownClient, 400, "unauthorized_client"),
            (OauthError::Redirect, 400, "invalid_request"),
            (OauthError::ChallengeMethod, 400, "invalid_request"),
            (OauthError::GrantType, 400, "unsupported_grant_type"),
            (OauthError::Client, 401, "invalid_client"),
            (OauthError::TwoMethods, 400, "invalid_request"),
            (OauthError::Grant, 400, "invalid_grant"),
            (OauthError::TooManyFailures(Seconds(9)), 429, "temporarily_unavailable"),
            (OauthError::TooManySessions(Seconds(9)), 429, "temporarily_unavailable"),
            (OauthError::Full(Seconds(9)), 503, "temporarily_unavailable"),
            (OauthError::NoVerifierId, 500, "server_error"),
            (OauthError::Unavailable, 503, "temporarily_unavailable"),
            (
                OauthError::Store(StoreError::NotPrimary),
                503,
                "temporarily_unavailable",
            ),
            (OauthError::Store(StoreError::Detached), 500, "server_error"),
            (
                OauthError::Unrecorded(JournalError::Full),
                503,
                "temporarily_unavailable",
            ),
        ];
        let answers: Vec<_> = table.iter().map(|(error, ..)| error.answer()).collect();
        assert!(OauthError::lists_exactly(answers));
        for (error, status, code) in table {
            // A new variant stops the build here: add it to the table.
            match &error {
                OauthError::Missing(_)
                | OauthError::Repeated(_)
                | OauthError::Malformed(_)
                | OauthError::Body
                | OauthError::TooLarge
                | OauthError::ResponseType
                | OauthError::UnknownClient
                | OauthError::Redirect
                | OauthError::ChallengeMethod
                | OauthError::GrantType
                | OauthError::Client
                | OauthError::TwoMethods
                | OauthError::Grant
                | OauthError::TooManyFailures(_)
                | OauthError::TooManySessions(_)
                | OauthError::Full(_)
                | OauthError::NoVerifierId
                | OauthError::Unavailable
                | OauthError::Store(_)
                | OauthError::Unrecorded(_) => {}
            }
            let name = format!("{error:?}");
            let (status_sent, word) = error.answer();
            assert_eq!((status_sent.as_u16(), word), (status, code), "{name}");
            let is_client = word == "invalid_client";
            let headers = error.into_response().headers().clone();
            assert_eq!(headers.contains_key(header::WWW_AUTHENTICATE), is_client, "{name}");
            assert_eq!(
                headers.contains_key(header::RETRY_AFTER),
                matches!(status, 429 | 503),
                "{name}"
            );
        }
    }

    #[test]
    fn oa9_oa10_every_refusal_has_its_status_and_text() {
        let table = [
            (SessionError::Unknown, 404, "session not found or expired"),
            (
                SessionError::OtherBrowser,
                403,
                "this sign-in was started in another browser",
            ),
            (SessionError::Done, 409, "session already completed"),
            (
                SessionError::Caller(AuthError::Missing),
                401,
                "missing Authorization header",
            ),
            (SessionError::ForeignPage, 403, "origin not allowed"),
            (SessionError::NotTheirs, 403, "session was not started by this user"),
            (SessionError::Banned, 403, "account is banned"),
            (SessionError::LoginOver, 401, "token revoked"),
            (SessionError::Unavailable, 503, "session store unavailable"),
            (
                SessionError::Store(StoreError::NotPrimary),
                503,
                "the policy store is temporarily unavailable",
            ),
            (SessionError::Store(StoreError::Detached), 500, "internal error"),
            (SessionError::Unrecorded(JournalError::Full), 503, "audit unavailable"),
        ];
        for (error, status, text) in table {
            let name = format!("{error:?}");
            let answer = ApiError::from(error);
            assert_eq!(
                (answer.code().status().as_u16(), answer.text()),
                (status, text),
                "{name}"
            );
        }
    }
}
