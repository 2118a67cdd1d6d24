//! Authentication of the admin API: the gates of 80 §1, in their order.
//!
//! [`guard`] adds gates 1 and 2 (network, body size) to the router's root; the [`AdminCaller`] extractor checks gates 3
//! to 6; each operation asks [`AdminCaller`] what the caller may do with a resource (gate 7 and later).

use crate::{
    admin_gate::TokenHolder,
    auth::{AuthError, Credentials},
    client::ClientAddress,
    error::{ApiError, Challenge},
    http_context::HttpContext,
    json::BODY_LIMIT,
    private_only::private_only,
};
use axum::{
    Router,
    extract::{DefaultBodyLimit, FromRef, FromRequestParts},
    middleware::from_fn_with_state,
};
use gw_policy::{
    Snapshot,
    access::{TokenFacts, admin, identify},
    snapshot::User,
};
use gw_types::{OrgId, Timestamp};
use http::{HeaderMap, HeaderName, request::Parts};
use std::sync::Arc;

/// The header of the machine and bootstrap token.
pub const HEADER: HeaderName = HeaderName::from_static("x-admin-token");

/// The caller of the admin API.
#[derive(Clone, Debug)]
pub enum AdminCaller {
    /// ADMIN_API_TOKEN.
    Super,
    /// OPERATOR_API_TOKEN.
    Operator,
    /// A user with a token of their own.
    User(AdminUser),
}

/// An authenticated user who administers at least one organization.
#[derive(Clone, Debug)]
pub struct AdminUser {
    /// The user.
    pub user: Arc<User>,
    /// Organizations with full administration.
    pub full: Vec<OrgId>,
    /// Organizations with read-only administration.
    pub readonly: Vec<OrgId>,
    /// The snapshot that the user was checked against.
    pub snapshot: Arc<Snapshot>,
    /// Whether the token came in a cookie.
    pub by_cookie: bool,
    /// The facts of the user's token, for [`AdminUser::reauthorize`].
    token: TokenFacts,
}

impl AdminUser {
    /// Checks, by the newest policy, that the user still has all the rights that they had at the start of the request
    /// (HD20). A user who has lost any of them is rejected.
    ///
    /// # Errors
    /// The error of [`AdminCaller::authenticate`], or 403 if the user has lost a right.
    pub fn reauthorize(&self, http_context: &HttpContext) -> Result<(), ApiError> {
        let now = AdminCaller::by_facts(http_context, &self.token, self.by_cookie, http_context.now())?;
        let reads = |org: &OrgId| now.full.contains(org) || now.readonly.contains(org);
        let keeps = self.full.iter().all(|org| now.full.contains(org)) && self.readonly.iter().all(reads);
        if keeps {
            Ok(())
        } else {
            Err(ApiError::forbidden("insufficient permissions"))
        }
    }
}

impl AdminCaller {
    /// Whether the caller is the super administrator.
    pub fn is_super(&self) -> bool {
        matches!(self, Self::Super)
    }

    /// Whether the caller may read the administration of `org`.
    pub fn may_read(&self, org: OrgId) -> bool {
        match self {
            Self::Super => true,
            Self::Operator => false,
            Self::User(admin) => admin.full.contains(&org) || admin.readonly.contains(&org),
        }
    }

    /// Whether the caller may change `org`.
    pub fn may_write(&self, org: OrgId) -> bool {
        match self {
            Self::Super => true,
            Self::Operator => false,
            Self::User(admin) => admin.full.contains(&org),
        }
    }

    /// Accepts the super administrator only.
    ///
    /// # Errors
    /// 403 for every other caller.
    pub fn require_super(&self) -> Result<(), ApiError> {
        match self {
            Self::Super => Ok(()),
            Self::Operator | Self::User(_) => Err(ApiError::forbidden("insufficient permissions")),
        }
    }

    /// Accepts users only: some operations need an accountable person (80 §2 rule 5).
    ///
    /// # Errors
    /// 403 for callers with a platform token.
    pub fn require_user(&self) -> Result<&AdminUser, ApiError> {
        match self {
            Self::User(admin) => Ok(admin),
            Self::Super | Self::Operator => Err(ApiError::forbidden("insufficient permissions")),
        }
    }

    /// Authenticates a request by its headers: gates 3 to 6.
    ///
    /// # Errors
    /// 401 without valid credentials, 403 for a user who administers no organization, 429 after too many wrong platform
    /// tokens.
    pub fn authenticate(
        http_context: &HttpContext,
        client: ClientAddress,
        headers: &HeaderMap,
    ) -> Result<Self, ApiError> {
        let now = http_context.now();
        let mut presented = headers.get_all(HEADER).iter();
        if let Some(first) = presented.next() {
            let token = match presented.next() {
                None => first.to_str().ok(),
                Some(_) => None,
            };
            return match http_context.admin.authenticate(token, client, now) {
                Ok(Some(TokenHolder::Super)) => Ok(Self::Super),
                Ok(Some(TokenHolder::Operator)) => Ok(Self::Operator),
                Ok(None) => Err(ApiError::unauthorized("invalid or missing X-Admin-Token")),
                Err(wait) => Err(ApiError::rate_limited(wait)),
            };
        }
        let (token, by_cookie) = match Credentials::from_headers(headers, &http_context.origins) {
            Ok(Credentials::Bearer(token)) => (token, false),
            Ok(Credentials::Cookie(token)) => (token, true),
            Ok(Credentials::Nothing) | Err(_) => return Err(ApiError::unauthorized("admin authentication required")),
        };
        let claims = http_context
            .tokens
            .access(token, now)
            .map_err(|bad| refusal(bad.into()))?;
        Self::by_facts(http_context, &claims.facts(), by_cookie, now).map(Self::User)
    }

    /// Checks the caller again, by the newest policy. For requests that waited after authentication, for a body or for
    /// their turn (HD20).
    ///
    /// # Errors
    /// The error of [`AdminCaller::authenticate`], or 403 if the user has lost a right.
    pub fn reauthorize(&self, http_context: &HttpContext) -> Result<(), ApiError> {
        match self {
            Self::Super | Self::Operator => Ok(()),
            Self::User(admin) => admin.reauthorize(http_context),
        }
    }

    fn by_facts(
        http_context: &HttpContext,
        token: &TokenFacts,
        by_cookie: bool,
        now: Timestamp,
    ) -> Result<AdminUser, ApiError> {
        let snapshot = http_context
            .policy
            .pin()
            .ok_or(AuthError::PolicyStale)
            .map_err(refusal)?;
        let user = identify(&snapshot, token).map_err(|refused| refusal(refused.into()))?;
        let admin::AdminStatus { full, readonly } = http_context.admin.status(&snapshot, user.id, now);
        if full.is_empty() && readonly.is_empty() {
            return Err(ApiError::forbidden("insufficient permissions"));
        }
        Ok(AdminUser {
            user,
            full,
            readonly,
            snapshot,
            by_cookie,
            token: token.clone(),
        })
    }
}

/// Maps to the error texts of the admin API (80 §1 gate 5).
fn refusal(error: AuthError) -> ApiError {
    match error {
        AuthError::Missing | AuthError::Format => ApiError::unauthorized("admin authentication required"),
        AuthError::Invalid | AuthError::Expired => {
            ApiError::unauthorized("invalid or expired token").challenging(Challenge::InvalidToken)
        }
        AuthError::Banned => ApiError::forbidden("user is banned"),
        AuthError::Revoked | AuthError::UnknownUser | AuthError::TenantNotAllowed | AuthError::PolicyStale => {
            error.into()
        }
    }
}

impl<S> FromRequestParts<S> for AdminCaller
where
    S: Send + Sync,
    Arc<HttpContext>: FromRef<S>,
{
    type Rejection = ApiError;

    async fn from_request_parts(parts: &mut Parts, state: &S) -> Result<Self, ApiError> {
        let http_context = Arc::<HttpContext>::from_ref(state);
        let client = http_context.client(&parts.extensions, &parts.headers);
        Self::authenticate(&http_context, client, &parts.headers)
    }
}

/// Adds gates 1 and 2 to the root of the admin router, so that no route below can bypass them (80 rule 1.2).
pub fn guard(router: Router, http_context: Arc<HttpContext>) -> Router {
    router
        .layer(DefaultBodyLimit::max(BODY_LIMIT))
        .layer(from_fn_with_state(http_context, private_only))
}
