//! Directory tenants that may vouch for users (spec/10 section 6, spec/80 section 9).

use gw_types::{AllowedTenantId, GroupId, OrgId, TenantId, Timestamp};

/// A tenant on the list.
#[derive(Clone, Debug, PartialEq)]
pub struct AllowedTenant {
    /// Row id.
    pub id: AllowedTenantId,
    /// The tenant.
    pub tenant: TenantId,
    /// For people.
    pub label: String,
    /// Whether unknown users of the tenant get an account at their first login (DS-8).
    pub auto_provision: bool,
    /// Whether its users are shut out for the time being.
    pub disabled: bool,
    /// The organization of its new users.
    pub default_org: Option<OrgId>,
    /// The group of its new users; of that organization.
    pub default_group: Option<GroupId>,
    /// When the row was made.
    pub created_at: Timestamp,
    /// When it last changed.
    pub updated_at: Timestamp,
}

/// What puts a tenant on the list.
#[derive(Clone, Debug)]
pub struct NewTenant {
    /// The tenant.
    pub tenant: TenantId,
    /// For people.
    pub label: String,
    /// Whether unknown users get an account.
    pub auto_provision: bool,
    /// Whether its users are shut out from the start.
    pub disabled: bool,
    /// The organization of its new users.
    pub default_org: Option<OrgId>,
    /// The group of its new users.
    pub default_group: Option<GroupId>,
}

/// A partial change of a tenant.
#[derive(Clone, Debug, Default)]
pub struct TenantPatch {
    /// Another tenant in its place: users of the old one are shut out from then on.
    pub tenant: Option<TenantId>,
    /// New label.
    pub label: Option<String>,
    /// New provisioning.
    pub auto_provision: Option<bool>,
    /// Shut out or let in again.
    pub disabled: Option<bool>,
    /// New organization; `Some(None)` clears it.
    pub default_org: Option<Option<OrgId>>,
    /// New group; `Some(None)` clears it.
    pub default_group: Option<Option<GroupId>>,
}

/// What the removal of a tenant took along.
#[derive(Clone, Debug, PartialEq)]
pub struct TenantEnd {
    /// The tenant that was on the list.
    pub tenant: AllowedTenant,
    /// How many users were banned.
    pub users: u64,
    /// How many refresh tokens died.
    pub refresh_tokens: u64,
}
