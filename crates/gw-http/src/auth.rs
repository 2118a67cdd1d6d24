//! Who calls a REST route: from the presented token to the user row (spec/10 TK-8, decision 4).

use crate::{
    edge::Edge,
    error::{ApiError, Challenge},
    origin::OwnOrigins,
    token::{AccessClaims, TokenError},
};
use axum::extract::{FromRef, FromRequestParts};
use gw_policy::{
    Snapshot,
    access::{Refused, identify},
    snapshot::User,
};
use http::{HeaderMap, header, request::Parts};
use std::sync::Arc;

/// The name of the cookie that holds an access token (decision 4).
pub const COOKIE: &str = "pp_access";
/// The same for this host alone: browsers take it from no neighbour (RFC 6265bis §4.1.3.2). Set beside the other one where
/// we are served over https, and preferred to it.
pub const HOST_COOKIE: &str = "__Host-pp_access";

/// How a request names its caller.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Presented<'a> {
    /// Not at all.
    Nothing,
    /// By `Authorization: Bearer`.
    Bearer(&'a str),
    /// By the cookie, from a page of ours. Where anonymous callers are served, a stale one is anonymous (TK-9).
    Cookie(&'a str),
}

/// Why a request has no caller.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum AuthError {
    /// No token at all.
    #[error("no token presented")]
    Missing,
    /// An Authorization header that is no Bearer token.
    #[error("the Authorization header is no Bearer token")]
    Format,
    /// No token of ours, or not for this use.
    #[error("no valid token")]
    Invalid,
    /// The token is over.
    #[error("the token has expired")]
    Expired,
    /// The token or its family was revoked.
    #[error("the token is revoked")]
    Revoked,
    /// Nobody known.
    #[error("the subject has no user row")]
    UnknownUser,
    /// The account is banned.
    #[error("the account is banned")]
    Banned,
    /// The directory tenant that vouched for the user is not allowed any more.
    #[error("the directory tenant is not allowed")]
    TenantNotAllowed,
    /// The policy to judge by cannot be trusted now.
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

impl From<Refused> for AuthError {
    fn from(refused: Refused) -> Self {
        match refused {
            Refused::Revoked => Self::Revoked,
            Refused::UnknownUser => Self::UnknownUser,
            Refused::Banned => Self::Banned,
            Refused::TenantNotAllowed => Self::TenantNotAllowed,
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

impl<'a> Presented<'a> {
    /// What the headers present. An Authorization header decides alone.
    pub fn of(headers: &'a HeaderMap, own: &OwnOrigins) -> Result<Self, AuthError> {
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

/// The value of a cookie. Sent twice with different values it is nobody's: a neighbour site may have planted one.
pub fn cookie<'a>(headers: &'a HeaderMap, name: &str) -> Option<&'a str> {
    let mut found = None;
    for value in headers.get_all(header::COOKIE) {
        for pair in value.to_str().ok()?.split(';') {
            if let Some((key, value)) = pair.trim().split_once('=')
                && key == name
            {
                match found {
                    Some(other) if other != value => return None,
                    Some(_) | None => found = Some(value),
                }
            }
        }
    }
    found.filter(|value| !value.is_empty())
}

/// A caller with a valid token, a user row and no ban, and the policy they were found in.
#[derive(Clone, Debug)]
pub struct Authenticated {
    /// The user.
    pub user: Arc<User>,
    /// What their token says.
    pub claims: AccessClaims,
    /// The snapshot the request was judged by.
    pub snapshot: Arc<Snapshot>,
    /// Whether the token came in a cookie.
    pub by_cookie: bool,
}

impl Authenticated {
    /// Who calls, by the headers of a request.
    pub fn of(edge: &Edge, headers: &HeaderMap) -> Result<Self, AuthError> {
        let (token, by_cookie) = match Presented::of(headers, &edge.origins)? {
            Presented::Bearer(token) => (token, false),
            Presented::Cookie(token) => (token, true),
            Presented::Nothing => return Err(AuthError::Missing),
        };
        let claims = edge.tokens.access(token, edge.now())?;
        let snapshot = edge.policy.pin().ok_or(AuthError::PolicyStale)?;
        let user = identify(&snapshot, &claims.facts())?;
        Ok(Self {
            user,
            claims,
            snapshot,
            by_cookie,
        })
    }
}

impl<S> FromRequestParts<S> for Authenticated
where
    S: Send + Sync,
    Arc<Edge>: FromRef<S>,
{
    type Rejection = ApiError;

    async fn from_request_parts(parts: &mut Parts, state: &S) -> Result<Self, ApiError> {
        Ok(Self::of(&Arc::<Edge>::from_ref(state), &parts.headers)?)
    }
}
