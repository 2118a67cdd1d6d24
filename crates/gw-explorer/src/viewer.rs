//! The viewer of a request (spec/40 section 2): the target of an impersonation, else the subject of the token, else an
//! anonymous viewer.

use crate::{error::ExplorerError, record::CallerSlot, state::ExplorerState};
use axum::extract::FromRequestParts;
use gw_audit::AuthMethod;
use gw_http::{AuthError, ClientAddress, Credentials, LimitKey};
use gw_policy::{
    PolicySettings, Snapshot, Viewer,
    access::{TokenFacts, identify},
};
use gw_types::{OrgId, Timestamp, UserId};
use http::request::Parts;

/// An administrator looks at what a member sees. The route below the admin API that checks the right to it puts this
/// into the extensions of the request; without it the caller looks for themselves.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Impersonation {
    /// The member.
    pub target: UserId,
    /// The administrator.
    pub impersonator: UserId,
    /// The organization that both belong to.
    pub org: OrgId,
}

/// The credentials of a request, before they are compared with the policy.
#[derive(Clone, Debug)]
pub(crate) enum Caller {
    Anonymous,
    Token(Box<TokenFacts>),
    Impersonation(Impersonation),
}

/// A viewer, in the form that keys of caches and cursors need.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(crate) enum ViewerId {
    Anonymous,
    User(UserId),
    Impersonation(Impersonation),
}

impl Caller {
    /// The viewer by this snapshot.
    ///
    /// # Errors
    /// 401 if the user may not log in any more.
    pub(crate) fn identify(&self, snapshot: &Snapshot) -> Result<ViewerId, ExplorerError> {
        Ok(match self {
            Self::Anonymous => ViewerId::Anonymous,
            Self::Token(token) => ViewerId::User(identify(snapshot, token).map_err(AuthError::from)?.id),
            Self::Impersonation(impersonation) => ViewerId::Impersonation(*impersonation),
        })
    }
}

impl ViewerId {
    pub(crate) fn viewer<'s>(
        self,
        snapshot: &'s Snapshot,
        now: Timestamp,
        policy_settings: &'s PolicySettings,
    ) -> Viewer<'s> {
        let viewer = |user| Viewer::new(snapshot, user, now, policy_settings);
        match self {
            Self::Anonymous => viewer(None),
            Self::User(user) => viewer(Some(user)),
            Self::Impersonation(Impersonation {
                target,
                impersonator,
                org,
            }) => viewer(Some(target))
                .scoped_to_org(Some(org))
                .restricted_to(impersonator),
        }
    }

    /// The key under which the reads of the viewer are counted; those of anonymous viewers under their address.
    pub(crate) fn limit_key(self, address: ClientAddress) -> LimitKey {
        match self {
            Self::Anonymous => LimitKey::Address(address.into()),
            Self::User(user) => LimitKey::User(user),
            Self::Impersonation(impersonation) => LimitKey::User(impersonation.impersonator),
        }
    }

    /// Names the viewer in the associated data of cursors.
    pub(crate) fn cursor_scope(self) -> String {
        match self {
            Self::Anonymous => "anonymous".to_owned(),
            Self::User(user) => format!("user {user}"),
            Self::Impersonation(Impersonation {
                target,
                impersonator,
                org,
            }) => format!("view {target} {org} by {impersonator}"),
        }
    }
}

impl FromRequestParts<ExplorerState> for Caller {
    type Rejection = ExplorerError;

    async fn from_request_parts(parts: &mut Parts, state: &ExplorerState) -> Result<Self, ExplorerError> {
        if let Some(impersonation) = parts.extensions.get::<Impersonation>() {
            let snapshot = state.http_context.policy.pin().ok_or(AuthError::PolicyStale)?;
            if let (Some(slot), Some(impersonator)) = (
                parts.extensions.get::<CallerSlot>(),
                snapshot.user(impersonation.impersonator),
            ) {
                slot.set(impersonator.external_id.clone(), AuthMethod::Bearer);
            }
            return Ok(Self::Impersonation(*impersonation));
        }
        let context = &state.http_context;
        let (claims, auth_method) = match Credentials::from_headers(&parts.headers, &context.origins)? {
            Credentials::Nothing => return Ok(Self::Anonymous),
            Credentials::Bearer(token) => (context.tokens.access(token, context.now()), AuthMethod::Bearer),
            // TK-9: where anonymous callers are served, an invalid cookie counts as none.
            Credentials::Cookie(token) => match context.tokens.access(token, context.now()) {
                Ok(claims) => (Ok(claims), AuthMethod::Cookie),
                Err(_) => return Ok(Self::Anonymous),
            },
        };
        let claims = claims.map_err(AuthError::from)?;
        if let Some(slot) = parts.extensions.get::<CallerSlot>() {
            slot.set(claims.subject.clone(), auth_method);
        }
        Ok(Self::Token(Box::new(claims.facts())))
    }
}
