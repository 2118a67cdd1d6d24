//! Authentication of REST requests: from the token to the user row (spec/10 TK-8, decision 4).

use crate::{
    error::{ApiError, Challenge},
    http_context::HttpContext,
    origin::AllowedOrigins,
    token::{AccessClaims, TokenError},
};
use axum::extract::{FromRef, FromRequestParts};
use gw_policy::{
    Snapshot,
    access::{IdentityError, identify},
    snapshot::User,
};
use http::{HeaderMap, header, request::Parts};
use std::sync::Arc;

/// The name of the cookie that holds an access token (decision 4).
pub const COOKIE: &str = "pp_access";
/// The cookie for this host alone: browsers accept it from no sibling host (RFC 6265bis §4.1.3.2). Set as well as the
/// other one if the gateway is served over https, and preferred to it.
pub const HOST_COOKIE: &str = "__Host-pp_access";

/// The credentials of a request.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Credentials<'a> {
    /// No credentials.
    Nothing,
    /// A token in `Authorization: Bearer`.
    Bearer(&'a str),
    /// A token in the cookie, from an allowed page. Where anonymous callers are served, an invalid one counts as
    /// anonymous (TK-9).
    Cookie(&'a str),
}

/// Why a request is not authenticated.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum AuthError {
    /// The request has no token.
    #[error("no token presented")]
    Missing,
    /// The Authorization header is not a Bearer token.
    #[error("the Authorization header is no Bearer token")]
    Format,
    /// The token is not valid, or not for this use.
    #[error("no valid token")]
    Invalid,
    /// The token has expired.
    #[error("the token has expired")]
    Expired,
    /// The token or its family was revoked.
    #[error("the token is revoked")]
    Revoked,
    /// The subject has no user row.
    #[error("the subject has no user row")]
    UnknownUser,
    /// The account is banned.
    #[error("the account is banned")]
    Banned,
    /// The user's directory tenant is no longer allowed.
    #[error("the directory tenant is not allowed")]
    TenantNotAllowed,
    /// No current policy snapshot is available.
    #[error("policy is stale")]
    PolicyStale,
}

impl From<TokenError> for AuthError {
    fn from(error: TokenError) -> Self {
        match error {
            TokenError::Invalid => Self::Invalid,
            TokenError::Expired => Self::Expired,
        }
    }
}

impl From<IdentityError> for AuthError {
    fn from(refused: IdentityError) -> Self {
        match refused {
            IdentityError::Revoked => Self::Revoked,
            IdentityError::UnknownUser => Self::UnknownUser,
            IdentityError::Banned => Self::Banned,
            IdentityError::TenantNotAllowed => Self::TenantNotAllowed,
        }
    }
}

impl From<AuthError> for ApiError {
    fn from(error: AuthError) -> Self {
        match error {
            AuthError::Missing => Self::unauthorized("missing Authorization header"),
            AuthError::Format => {
                Self::unauthorized("invalid Authorization header format").challenging(Challenge::InvalidRequest)
            }
            AuthError::Invalid => Self::unauthorized("invalid token").challenging(Challenge::InvalidToken),
            AuthError::Expired => Self::unauthorized("token expired").challenging(Challenge::InvalidToken),
            AuthError::Revoked => Self::unauthorized("token revoked").challenging(Challenge::InvalidToken),
            AuthError::UnknownUser => Self::unauthorized("user not found").challenging(Challenge::InvalidToken),
            AuthError::Banned => Self::forbidden("account is banned"),
            AuthError::TenantNotAllowed => Self::forbidden("tenant is not authorized"),
            AuthError::PolicyStale => Self::policy_unavailable(),
        }
    }
}

impl<'a> Credentials<'a> {
    /// Reads the credentials. If there is an Authorization header, the cookie is ignored.
    ///
    /// # Errors
    /// [`AuthError::Format`] for a malformed Authorization header, or for several.
    pub fn from_headers(headers: &'a HeaderMap, own: &AllowedOrigins) -> Result<Self, AuthError> {
        let mut authorization = headers.get_all(header::AUTHORIZATION).iter();
        match (authorization.next(), authorization.next()) {
            (Some(value), None) => bearer(value.to_str().map_err(|_| AuthError::Format)?).map(Self::Bearer),
            (Some(_), Some(_)) => Err(AuthError::Format),
            (None, _) => Ok(match access_cookie(headers) {
                Some(token) if own.sent_by_own_page(headers) => Self::Cookie(token),
                Some(_) | None => Self::Nothing,
            }),
        }
    }
}

fn bearer(value: &str) -> Result<&str, AuthError> {
    match value.split_once(' ') {
        Some((scheme, token)) if scheme.eq_ignore_ascii_case("bearer") => {
            let token = token.trim();
            if token.is_empty() || token.contains(' ') {
                Err(AuthError::Format)
            } else {
                Ok(token)
            }
        }
        Some(_) | None => Err(AuthError::Format),
    }
}

/// The access token in a cookie.
pub fn access_cookie(headers: &HeaderMap) -> Option<&str> {
    cookie(headers, HOST_COOKIE).or_else(|| cookie(headers, COOKIE))
}

/// The value of a cookie. A cookie sent twice with different values is ignored: a sibling host may have set one.
pub fn cookie<'a>(headers: &'a HeaderMap, name: &str) -> Option<&'a str> {
    let mut unique = None;
    for value in headers.get_all(header::COOKIE) {
        for pair in value.to_str().ok()?.split(';') {
            if let Some((key, value)) = pair.trim().split_once('=')
                && key == name
            {
                match unique {
                    Some(other) if other != value => return None,
                    Some(_) | None => unique = Some(value),
                }
            }
        }
    }
    unique.filter(|value| !value.is_empty())
}

/// A caller with a valid token and a user row, who is not banned, and the policy snapshot of that check.
#[derive(Clone, Debug)]
pub struct AuthenticatedUser {
    /// The user.
    pub user: Arc<User>,
    /// The claims of their token.
    pub claims: AccessClaims,
    /// The snapshot that the request was checked against.
    pub snapshot: Arc<Snapshot>,
    /// Whether the token came in a cookie.
    pub by_cookie: bool,
}

impl AuthenticatedUser {
    /// Authenticates a request by its headers.
    ///
    /// # Errors
    /// [`AuthError`] if there is no valid token, the policy is stale, or the user may not log in.
    pub fn authenticate(http_context: &HttpContext, headers: &HeaderMap) -> Result<Self, AuthError> {
        let (token, by_cookie) = match Credentials::from_headers(headers, &http_context.origins)? {
            Credentials::Bearer(token) => (token, false),
            Credentials::Cookie(token) => (token, true),
            Credentials::Nothing => return Err(AuthError::Missing),
        };
        let claims = http_context.tokens.access(token, http_context.now())?;
        let snapshot = http_context.policy.pin().ok_or(AuthError::PolicyStale)?;
        let user = identify(&snapshot, &claims.facts())?;
        Ok(Self {
            user,
            claims,
            snapshot,
            by_cookie,
        })
    }
}

impl<S> FromRequestParts<S> for AuthenticatedUser
where
    S: Send + Sync,
    Arc<HttpContext>: FromRef<S>,
{
    type Rejection = ApiError;

    async fn from_request_parts(parts: &mut Parts, state: &S) -> Result<Self, ApiError> {
        Ok(Self::authenticate(
            &Arc::<HttpContext>::from_ref(state),
            &parts.headers,
        )?)
    }
}
