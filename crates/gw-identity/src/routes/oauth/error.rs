//! Errors of the OAuth routes: one enum per kind of route, with status, code and text (RFC 6749 §4.1.2.1, §5.2).

use crate::{
    login::LoginError,
    oauth::{Busy, OpenError},
};
use axum::{
    Json,
    response::{IntoResponse, Response},
};
use gw_cache::Unavailable;
use gw_http::{ApiError, ErrorBody, ErrorCode, described_error};
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

/// Why an OAuth session was not found.
#[derive(Debug, thiserror::Error)]
pub(crate) enum SessionError {
    /// The session is unknown or expired.
    #[error("the session is unknown")]
    Unknown,
    /// The cache cannot be reached.
    #[error("the cache is unavailable")]
    Unavailable,
}

impl From<Unavailable> for SessionError {
    fn from(_: Unavailable) -> Self {
        Self::Unavailable
    }
}

impl From<SessionError> for ApiError {
    fn from(error: SessionError) -> Self {
        match error {
            SessionError::Unknown => Self::not_found("session not found or expired"),
            SessionError::Unavailable => Self::unavailable("session store unavailable"),
        }
    }
}

described_error!(
    SessionError,
    "APIError",
    [ErrorCode::NotFound.answer(), ErrorCode::Unavailable.answer()]
);

/// The 403 for a session that another browser began: completing it would log another person in (HD34).
pub(in crate::routes) fn other_browser() -> ApiError {
    ApiError::forbidden("this sign-in was started in another browser")
}

/// The 409 for a session that has its code already.
pub(super) fn completed() -> ApiError {
    ApiError::conflict("session already completed")
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
    fn oa9_every_failed_look_up_has_its_status_and_text() {
        let table = [
            (SessionError::Unknown, 404, "session not found or expired"),
            (SessionError::from(Unavailable), 503, "session store unavailable"),
        ];
        let answers = table.map(|(error, status, text)| {
            // A new variant stops the build here: add it to the table.
            match error {
                SessionError::Unknown | SessionError::Unavailable => {}
            }
            let answer = ApiError::from(error);
            assert_eq!((answer.code().status().as_u16(), answer.text()), (status, text));
            answer.code().answer()
        });
        assert!(SessionError::lists_exactly(answers));
    }
}
