//! Personal RPC URLs (HD17).

use gw_policy::snapshot::UrlReach;
use gw_types::{B256, OrgId, PersonalUrlId, SessionId, Timestamp, UserId};

/// A personal URL. Its secret is not stored.
#[derive(Clone, Debug, PartialEq)]
pub struct PersonalUrl {
    /// Row id.
    pub id: PersonalUrlId,
    /// SHA-256 of the secret.
    pub secret: B256,
    /// The owner.
    pub user: UserId,
    /// The only organization in which it acts.
    pub org: OrgId,
    /// Display name for its owner.
    pub name: String,
    /// Its scope.
    pub reach: UrlReach,
    /// When it was created.
    pub created_at: Timestamp,
    /// When it expires.
    pub expires_at: Timestamp,
    /// The login that created it, and with which it ends (HD35); `None` for URLs older than this field.
    pub login: Option<SessionId>,
}

/// Input for creating a personal URL.
#[derive(Clone, Debug)]
pub struct NewPersonalUrl {
    /// SHA-256 of the secret.
    pub secret: B256,
    /// The owner.
    pub user: UserId,
    /// The only organization in which it acts.
    pub org: OrgId,
    /// Display name for its owner.
    pub name: String,
    /// Its scope.
    pub reach: UrlReach,
    /// When it expires.
    pub expires_at: Timestamp,
    /// The login that creates it.
    pub login: Option<SessionId>,
}

impl PersonalUrl {
    /// Returns the column text of the scope.
    pub const fn scope(&self) -> &'static str {
        scope_text(&self.reach)
    }
}

/// Returns the column text of a scope.
pub(crate) const fn scope_text(reach: &UrlReach) -> &'static str {
    match reach {
        UrlReach::Wallet => "wallet",
        UrlReach::Contracts(_) => "contracts",
        UrlReach::All => "all",
    }
}
