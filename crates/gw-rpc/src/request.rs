//! The context of a request apart from its body: client address, correlation id, caller, named organization.

use crate::{
    limits::LimitKey,
    outcome::{BodyError, RpcOutcome},
    registry::Message,
};
use ::http::{HeaderMap, header};
use gw_audit::AuthMethod;
use gw_http::{
    AddressKey, AuthError, ClientAddress, CorrelationId, Credentials, HttpContext, TwoOrganizations, named_org,
    token::SKEW,
};
use gw_node::AnswerHold;
use gw_policy::{
    Snapshot,
    access::{Caller, IdentityError, Impersonation, NamedOrg, TokenFacts, identify, identify_url},
};
use gw_types::{B256, DenyReason, ExternalId, PersonalUrlId, Timestamp, UserId};
use sha2::{Digest as _, Sha256};
use std::sync::Arc;

/// The context of a request.
#[derive(Clone, Debug)]
pub(crate) struct RequestContext {
    pub(crate) client: ClientAddress,
    pub(crate) correlation_id: Option<CorrelationId>,
    pub(crate) auth: AuthMethod,
    pub(crate) named_org: NamedOrg,
    /// The message of a WebSocket connection; `None` over HTTP, where there are no subscriptions.
    pub(crate) message: Option<Arc<Message>>,
    /// The memory that is charged to the request for the node's answers.
    pub(crate) hold: Arc<AnswerHold>,
    token: Option<TokenFacts>,
    /// When the token expires.
    expires_at: Option<Timestamp>,
    url: Option<Url>,
    /// The user that an administrator impersonates (HD7).
    impersonation: Option<(UserId, Impersonation)>,
}

/// The personal URL of a request. Of its secret only the hash is kept.
#[derive(Clone, Debug)]
struct Url {
    secret: B256,
    id: PersonalUrlId,
    subject: ExternalId,
}

impl RequestContext {
    /// An anonymous request.
    pub(crate) fn new(client: ClientAddress, correlation_id: Option<CorrelationId>) -> Self {
        let (auth, named_org) = (AuthMethod::Anonymous, NamedOrg::Unnamed);
        Self {
            client,
            correlation_id,
            auth,
            named_org,
            message: None,
            hold: Arc::default(),
            token: None,
            expires_at: None,
            url: None,
            impersonation: None,
        }
    }

    /// Makes this the request of an administrator who impersonates the user.
    pub(crate) fn impersonate(&mut self, user: UserId, impersonation: Impersonation) {
        self.named_org = NamedOrg::Org(impersonation.org());
        self.impersonation = Some((user, impersonation));
    }

    /// Verifies the token (J1, decision 4). The user is looked up anew for each call (HD20).
    ///
    /// # Errors
    /// The error for a bad token in the header. A bad cookie leaves the request anonymous instead.
    pub(crate) fn authenticate(
        &mut self,
        http: &HttpContext,
        headers: &HeaderMap,
        now: Timestamp,
    ) -> Result<(), AuthError> {
        // Some clients send an empty header when they have no token.
        if headers.get(header::AUTHORIZATION).is_some_and(|value| value.is_empty()) {
            return Ok(());
        }
        let (claims, auth) = match Credentials::from_headers(headers, &http.origins)? {
            Credentials::Nothing => return Ok(()),
            Credentials::Bearer(token) => (http.tokens.access(token, now)?, AuthMethod::Bearer),
            Credentials::Cookie(token) => match http.tokens.access(token, now) {
                Ok(claims) => (claims, AuthMethod::Cookie),
                Err(_) => return Ok(()),
            },
        };
        self.token = Some(claims.facts());
        self.expires_at = Some(claims.expires_at);
        self.auth = auth;
        Ok(())
    }

    /// Authenticates the request as the owner of a personal URL, in the organization of the URL. Returns whether the
    /// URL exists and may be used.
    pub(crate) fn authenticate_personal_url(&mut self, snapshot: &Snapshot, secret: &str, now: Timestamp) -> bool {
        let secret = B256::from_slice(&Sha256::digest(secret.as_bytes()));
        let Some(url) = snapshot.personal_url(secret) else {
            return false;
        };
        let Some(user) = snapshot.user(url.user) else {
            return false;
        };
        // A banned owner gets the denial of every method, as with a token.
        if matches!(
            identify_url(snapshot, secret, now),
            Err(IdentityError::Revoked | IdentityError::UnknownUser)
        ) {
            return false;
        }
        self.auth = AuthMethod::PersonalUrl;
        self.named_org = NamedOrg::Org(url.org);
        self.url = Some(Url {
            secret,
            id: url.id,
            subject: user.external_id.clone(),
        });
        true
    }

    /// The id of the personal URL.
    pub(crate) fn url_id(&self) -> Option<PersonalUrlId> {
        self.url.as_ref().map(|url| url.id)
    }

    /// Verifies the token of a WebSocket connection (WS-1), from the header or else from the subprotocol. The cookie is
    /// not used, because a browser sends it for a connection that any page opens.
    ///
    /// # Errors
    /// The error for a bad token.
    pub(crate) fn authenticate_connection(
        &mut self,
        http: &HttpContext,
        headers: &HeaderMap,
        protocol: Option<&str>,
        now: Timestamp,
    ) -> Result<(), AuthError> {
        let header = headers.get(header::AUTHORIZATION).filter(|value| !value.is_empty());
        let token = match (header, protocol) {
            (Some(_), _) => match Credentials::from_headers(headers, &http.origins)? {
                Credentials::Bearer(token) => token,
                Credentials::Nothing | Credentials::Cookie(_) => return Err(AuthError::Format),
            },
            (None, Some(token)) => token,
            (None, None) => return Ok(()),
        };
        self.authenticate_token(http, token, now)
    }

    /// Authenticates the request by this token.
    ///
    /// # Errors
    /// The error for a bad token.
    pub(crate) fn authenticate_token(
        &mut self,
        http: &HttpContext,
        token: &str,
        now: Timestamp,
    ) -> Result<(), AuthError> {
        let claims = http.tokens.access(token, now)?;
        self.token = Some(claims.facts());
        self.expires_at = Some(claims.expires_at);
        self.auth = AuthMethod::Bearer;
        Ok(())
    }

    /// The context of one message of the connection.
    pub(crate) fn with_message(&self, message: &Arc<Message>) -> Self {
        Self {
            message: Some(Arc::clone(message)),
            hold: Arc::default(),
            ..self.clone()
        }
    }

    /// Whether the token is not expired; false without a token.
    pub(crate) fn is_token_valid(&self, now: Timestamp) -> bool {
        self.expires_at.is_some_and(|end| now < end.plus(SKEW))
    }

    /// Reads the organization that the request names (O2); it may not exist.
    ///
    /// # Errors
    /// [`BodyError::TwoOrganizations`] if path and headers name different organizations.
    pub(crate) fn name_org(&mut self, path: Option<&str>, headers: &HeaderMap) -> Result<(), BodyError> {
        let named = named_org(self.named_org, path, headers);
        self.named_org = named.map_err(|TwoOrganizations| BodyError::TwoOrganizations)?;
        Ok(())
    }

    /// The caller, looked up in this snapshot (A9, A10).
    ///
    /// # Errors
    /// The outcome for a revoked, unknown or banned caller.
    pub(crate) fn caller(&self, snapshot: &Snapshot, now: Timestamp) -> Result<Caller, RpcOutcome> {
        if let Some((user, impersonation)) = &self.impersonation {
            let user = snapshot
                .user(*user)
                .ok_or_else(|| RpcOutcome::denied(DenyReason::UnknownUser, None))?;
            return Ok(Caller::Impersonated(Arc::clone(user), *impersonation));
        }
        if let Some(url) = &self.url {
            return match identify_url(snapshot, url.secret, now) {
                Ok((user, url)) => Ok(Caller::Url(user, url)),
                Err(IdentityError::Revoked | IdentityError::UnknownUser) => {
                    Err(RpcOutcome::denied(DenyReason::AuthRequired, None))
                }
                Err(IdentityError::Banned | IdentityError::TenantNotAllowed) => {
                    Err(RpcOutcome::denied(DenyReason::Banned, None))
                }
            };
        }
        let Some(token) = &self.token else {
            return Ok(Caller::Anonymous);
        };
        match identify(snapshot, token) {
            Ok(user) => Ok(Caller::User(user)),
            Err(IdentityError::Revoked) if self.auth == AuthMethod::Cookie => Ok(Caller::Anonymous),
            Err(IdentityError::Revoked) => Err(RpcOutcome::Unauthorized(AuthError::Revoked)),
            Err(IdentityError::UnknownUser) => Err(RpcOutcome::denied(DenyReason::UnknownUser, None)),
            // All excluded callers get the same reason.
            Err(IdentityError::Banned | IdentityError::TenantNotAllowed) => {
                Err(RpcOutcome::denied(DenyReason::Banned, None))
            }
        }
    }

    /// The subject of the token, or the owner of the personal URL.
    pub(crate) fn subject(&self) -> Option<&ExternalId> {
        let by_url = || self.url.as_ref().map(|url| &url.subject);
        self.token.as_ref().map(|token| &token.subject).or_else(by_url)
    }

    /// The key under which the limits of this caller are counted.
    pub(crate) fn limit_key(&self, caller: &Caller) -> LimitKey {
        match caller {
            Caller::User(user) => LimitKey::User(user.id),
            Caller::Url(_, url) => LimitKey::Url(url.id),
            // An impersonated call counts for the administrator.
            Caller::Impersonated(_, impersonation) => LimitKey::User(impersonation.impersonator()),
            Caller::Anonymous => LimitKey::Address(AddressKey::from(self.client)),
        }
    }
}
