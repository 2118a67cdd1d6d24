//! Requests and grants of disclosure in audit entries.

use super::audit::Auditable;
use crate::record::{DisclosureGrant, DisclosureRequest};
use gw_audit::ResourceType;
use gw_policy::{
    disclosure::{GrantStatus, scope::level_text},
    snapshot::DisclosureScope,
};
use serde_json::{Value, json};

/// A grant in an audit entry.
pub(super) struct GrantChange<'a> {
    pub(super) grant: &'a DisclosureGrant,
    /// The status at the time of the entry.
    pub(super) status: GrantStatus,
    /// Whether its secret was encrypted anew.
    pub(super) is_renewed: bool,
}

impl Auditable for DisclosureRequest {
    const RESOURCE: ResourceType = ResourceType::DisclosureRequest;
    fn resource_id(&self) -> String {
        self.id.to_string()
    }
    fn resource_name(&self) -> String {
        String::new()
    }
    fn image(&self) -> Value {
        json!({
            "requester_user_id": self.requester,
            "requester_did": self.requester_did,
            "target_user_id": self.target,
            "scope": scope_image(&self.scope),
            "reason": self.reason,
            "legal_basis": self.legal_basis,
            "status": self.status.as_str(),
            "expires_at": self.expires_at,
            "decided_by_user_id": self.decided_by,
            "decision_reason": self.decision_reason,
        })
    }
}

impl Auditable for GrantChange<'_> {
    const RESOURCE: ResourceType = ResourceType::DisclosureGrant;
    fn resource_id(&self) -> String {
        self.grant.id.to_string()
    }
    fn resource_name(&self) -> String {
        String::new()
    }
    fn image(&self) -> Value {
        let secret = if self.is_renewed {
            json!({ "changed": true, "set": self.grant.has_secret })
        } else {
            json!({ "set": self.grant.has_secret })
        };
        json!({
            "request_id": self.grant.request,
            "owner_user_id": self.grant.owner,
            "grantee_did": self.grant.grantee,
            "scope": scope_image(&self.grant.scope),
            "include_future_addresses": self.grant.include_future_addresses,
            "status": self.status.as_str(),
            "expires_at": self.grant.expires_at,
            "revoked_at": self.grant.revoked_at,
            "revoked_reason": self.grant.revoked_reason,
            "secret": secret,
        })
    }
}

/// An address in a scope may be one that only the owner named: readers of the audit log get its number, not the
/// addresses.
fn scope_image(scope: &DisclosureScope) -> Value {
    json!({
        "methods": scope.methods,
        "address_count": scope.addresses.as_ref().map(Vec::len),
        "date_range": scope.dates.map(|(start, end)| json!({ "start": start, "end": end })),
        "disclosure_level": level_text(scope.level),
    })
}
