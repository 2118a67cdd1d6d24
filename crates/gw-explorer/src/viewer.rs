//! The viewer of a request (spec/40 section 2): the target of an impersonation, else the subject of the token, else an
//! anonymous viewer.

use crate::{error::ExplorerError, record::CallerSlot, state::ExplorerState};
use axum::extract::FromRequestParts;
use gw_audit::AuthMethod;
use gw_http::{AuthError, ClientAddress, Credentials, LimitKey};
use gw_policy::{
    PolicySettings, Snapshot, Viewer,
    access::{NamedOrg, TokenFacts, identify},
    visibility::GrantUses,
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
    User {
        user: UserId,
        /// The organization that the request names: the user's rights in others do not count (HD39).
        org: Option<OrgId>,
    },
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
            Self::Token(token) => ViewerId::User {
                user: identify(snapshot, token).map_err(AuthError::from)?.id,
                org: None,
            },
            Self::Impersonation(impersonation) => ViewerId::Impersonation(*impersonation),
        })
    }
}

impl ViewerId {
    /// The viewer in the organization that the request names (HD39).
    ///
    /// # Errors
    /// 404 unless the viewer is a member of it, whatever the reason: as on `/rpc`.
    pub(crate) fn in_org(
        self,
        org: NamedOrg,
        snapshot: &Snapshot,
        now: Timestamp,
        policy_settings: &PolicySettings,
    ) -> Result<Self, ExplorerError> {
        let org = match org {
            NamedOrg::Unnamed => return Ok(self),
            NamedOrg::Org(org) => Some(org),
            NamedOrg::Unreadable => None,
        };
        let viewer = self.viewer(snapshot, now, policy_settings);
        let org = org.filter(|org| viewer.is_member_of(*org));
        match (self, org) {
            // The path names the organization, and the header no other one.
            (Self::Impersonation(_), _) => Ok(self),
            (Self::User { user, .. }, Some(_)) => Ok(Self::User { user, org }),
            (Self::Anonymous, _) | (Self::User { .. }, None) => Err(ExplorerError::not_found("organization not found")),
        }
    }

    /// The organization that the request names.
    pub(crate) const fn org(self) -> Option<OrgId> {
        match self {
            Self::Anonymous | Self::Impersonation(_) => None,
            Self::User { org, .. } => org,
        }
    }

    pub(crate) fn viewer<'s>(
        self,
        snapshot: &'s Snapshot,
        now: Timestamp,
        policy_settings: &'s PolicySettings,
    ) -> Viewer<'s> {
        self.collecting_viewer(snapshot, now, policy_settings, None)
    }

    /// [`Self::viewer`], which also collects the grants of disclosure that the answer needs.
    pub(crate) fn collecting_viewer<'s>(
        self,
        snapshot: &'s Snapshot,
        now: Timestamp,
        policy_settings: &'s PolicySettings,
        uses: Option<&GrantUses>,
    ) -> Viewer<'s> {
        let viewer = |user| Viewer::new(snapshot, user, now, policy_settings).collecting(uses);
        match self {
            Self::Anonymous => viewer(None),
            Self::User { user, org } => viewer(Some(user)).scoped_to_org(org),
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
            Self::User { user, .. } => LimitKey::User(user),
            Self::Impersonation(impersonation) => LimitKey::User(impersonation.impersonator),
        }
    }

    /// Names the viewer in the associated data of cursors.
    pub(crate) fn cursor_scope(self) -> String {
        match self {
            Self::Anonymous => "anonymous".to_owned(),
            Self::User { user, org: None } => format!("user {user}"),
            Self::User { user, org: Some(org) } => format!("user {user} {org}"),
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
