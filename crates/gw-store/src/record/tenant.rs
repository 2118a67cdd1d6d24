//! Directory tenants that may vouch for users (spec/10 section 6, spec/80 section 9).

use gw_types::{AllowedTenantId, GroupId, OrgId, TenantId, Timestamp};

/// A tenant on the list.
#[derive(Clone, Debug, PartialEq)]
pub struct AllowedTenant {
    /// Row id.
    pub id: AllowedTenantId,
    /// The tenant.
    pub tenant: TenantId,
    /// Display label.
    pub label: String,
    /// Whether unknown users of the tenant get an account at their first login (DS-8).
    pub auto_provision: bool,
    /// Whether its users are temporarily locked out.
    pub disabled: bool,
    /// The organization of its new users.
    pub default_org: Option<OrgId>,
    /// The group of its new users; belongs to that organization.
    pub default_group: Option<GroupId>,
    /// When the row was created.
    pub created_at: Timestamp,
    /// When it last changed.
    pub updated_at: Timestamp,
}

/// Input for adding a tenant to the list.
#[derive(Clone, Debug)]
pub struct NewTenant {
    /// The tenant.
    pub tenant: TenantId,
    /// Display label.
    pub label: String,
    /// Whether unknown users get an account.
    pub auto_provision: bool,
    /// Whether its users are locked out from the start.
    pub disabled: bool,
    /// The organization of its new users.
    pub default_org: Option<OrgId>,
    /// The group of its new users.
    pub default_group: Option<GroupId>,
}

/// A partial change of a tenant.
#[derive(Clone, Debug, Default)]
pub struct TenantPatch {
    /// Replacement tenant: users of the old one are locked out from then on.
    pub tenant: Option<TenantId>,
    /// New label.
    pub label: Option<String>,
    /// New value of `auto_provision`.
    pub auto_provision: Option<bool>,
    /// New value of `disabled`.
    pub disabled: Option<bool>,
    /// New organization; `Some(None)` clears it.
    pub default_org: Option<Option<OrgId>>,
    /// New group; `Some(None)` clears it.
    pub default_group: Option<Option<GroupId>>,
}

/// Result of removing a tenant.
#[derive(Clone, Debug, PartialEq)]
pub struct TenantRemoval {
    /// The removed tenant.
    pub tenant: AllowedTenant,
    /// Number of users banned.
    pub users: u64,
    /// Number of refresh tokens revoked.
    pub refresh_tokens: u64,
}
