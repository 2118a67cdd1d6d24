//! Impersonation of a user by an administrator (spec/20 V1, V2).

use gw_types::{ExternalId, OrgId, UserId};

/// An impersonation as the administrator requested it; recorded before it is granted.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Impersonation {
    /// The impersonated user.
    pub user: UserId,
    /// The user's external id.
    pub external_id: ExternalId,
    /// The organization.
    pub org: OrgId,
    /// `dry_run` or `view_as`.
    pub way: &'static str,
    /// The called method, or the path that is read.
    pub what: String,
    /// A keyed digest of the parameters (HD12).
    pub params_digest: String,
}
