//! Personal RPC URLs (HD17).

use gw_policy::snapshot::UrlReach;
use gw_types::{B256, OrgId, PersonalUrlId, SessionId, Timestamp, UserId};

/// A personal URL. Its secret is not kept.
#[derive(Clone, Debug, PartialEq)]
pub struct PersonalUrl {
    /// Row id.
    pub id: PersonalUrlId,
    /// SHA-256 of the secret.
    pub secret: B256,
    /// Whose it is.
    pub user: UserId,
    /// The one organization it acts in.
    pub org: OrgId,
    /// For its owner.
    pub name: String,
    /// How far it reaches.
    pub reach: UrlReach,
    /// When it was made.
    pub created_at: Timestamp,
    /// When it ends.
    pub expires_at: Timestamp,
    /// The login that made it, and with which it ends (HD35); unknown for those made before it was noted.
    pub login: Option<SessionId>,
}

/// What makes a personal URL.
#[derive(Clone, Debug)]
pub struct NewPersonalUrl {
    /// SHA-256 of the secret.
    pub secret: B256,
    /// Whose it is.
    pub user: UserId,
    /// The one organization it acts in.
    pub org: OrgId,
    /// For its owner.
    pub name: String,
    /// How far it reaches.
    pub reach: UrlReach,
    /// When it ends.
    pub expires_at: Timestamp,
    /// The login that makes it.
    pub login: Option<SessionId>,
}

impl PersonalUrl {
    /// The scope's word.
    pub const fn scope(&self) -> &'static str {
        scope_text(&self.reach)
    }
}

/// The column text of a scope.
pub(crate) const fn scope_text(reach: &UrlReach) -> &'static str {
    match reach {
        UrlReach::Wallet => "wallet",
        UrlReach::Contracts(_) => "contracts",
        UrlReach::All => "all",
    }
}
