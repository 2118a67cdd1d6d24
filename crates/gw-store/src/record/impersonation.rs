//! An administrator who looks through a user's eyes (spec/20 V1, V2).

use gw_types::{ExternalId, OrgId, UserId};

/// What an administrator asked for, before they get it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Impersonation {
    /// Through whose eyes.
    pub user: UserId,
    /// Their name.
    pub external_id: ExternalId,
    /// In which organization.
    pub org: OrgId,
    /// `dry_run` or `view_as`.
    pub way: &'static str,
    /// The method that is called, or the path that is read.
    pub what: String,
    /// A keyed digest of the parameters (HD12).
    pub params_digest: String,
}
