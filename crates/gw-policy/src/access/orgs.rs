//! Resolves the organization whose rights apply to a call (spec/20 §8, decision 40).

use super::permit::NamedOrg;
use crate::{
    principal::{OrgRights, Permissions, Principal},
    snapshot::Organization,
};
use gw_evm::Method;
use gw_types::{Claim, DenyReason, OrgId};

/// The organizations whose rights apply to one call: exactly one, or any of several.
#[derive(Clone, Copy, Debug)]
pub(super) struct OrgScope<'m> {
    rights: &'m [OrgRights],
    /// Whether the call must not be recorded for any organization (HD32).
    is_unrecorded: bool,
}

impl<'m> OrgScope<'m> {
    fn single(rights: &'m OrgRights) -> Self {
        Self {
            rights: std::slice::from_ref(rights),
            is_unrecorded: false,
        }
    }

    /// The organization for which the call is recorded, if the scope is a single one.
    pub(super) fn org(&self) -> Option<OrgId> {
        match self.rights {
            [only] if !self.is_unrecorded => Some(only.org),
            _ => None,
        }
    }

    /// The organizations in scope.
    pub(super) fn orgs(&self) -> impl Iterator<Item = OrgId> {
        self.rights.iter().map(|rights| rights.org)
    }

    /// Whether any of the organizations grants the method.
    pub(super) fn allows(&self, method: Method) -> bool {
        self.any(|permissions| permissions.allows(method))
    }

    /// Whether the caller administers any of the organizations.
    pub(super) fn is_org_admin(&self) -> bool {
        self.any(|permissions| permissions.is_org_admin)
    }

    /// Whether the caller holds a claim. Always `false` if the scope has several organizations.
    pub(super) fn has_claim(&self, claim: Claim) -> bool {
        matches!(self.rights, [only] if only.permissions.claims.has(claim))
    }

    fn any(&self, test: impl Fn(&Permissions) -> bool) -> bool {
        self.rights.iter().any(|rights| test(&rights.permissions))
    }
}

/// The organizations that apply if the request names none: the default organization only if there is no other.
pub(super) fn candidates(principal: &Principal) -> &[OrgRights] {
    match principal.rights.as_slice() {
        [others @ .., last] if !others.is_empty() && last.org == Organization::DEFAULT => others,
        rights => rights,
    }
}

/// The organization for which a denial is recorded before one is resolved: the named one if the caller is a member of
/// it, else the caller's only one, else none (L2, HD12).
pub(super) fn audit_org(principal: &Principal, named: NamedOrg) -> Option<OrgId> {
    match named {
        NamedOrg::Org(org) => principal.rights_in(org).map(|rights| rights.org),
        NamedOrg::Unreadable => None,
        NamedOrg::Unnamed => candidate_scope(principal).org(),
    }
}

fn candidate_scope(principal: &Principal) -> OrgScope<'_> {
    OrgScope {
        rights: candidates(principal),
        is_unrecorded: principal.is_undecided,
    }
}

fn named_scope(principal: &Principal, org: OrgId) -> Result<OrgScope<'_>, DenyReason> {
    principal
        .rights_in(org)
        .map(OrgScope::single)
        .ok_or(DenyReason::OrgMismatch)
}

/// Which organization's rights a call requires, by the owner of its target or reservation.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum OrgRequirement {
    /// No organization owns the target, or its owner must make no difference: the rights in any organization suffice.
    Nobody,
    /// This organization owns the target.
    Org(OrgId),
    /// No organization owns the target, and the call belongs to exactly one organization: sends and deployments.
    OneOfMine,
}

/// The organizations whose rights apply (O2-O4).
///
/// # Errors
/// `OrgMismatch`, `ForeignOrg` or `OrgAmbiguous`.
pub(super) fn resolve(
    principal: &Principal,
    named_org: NamedOrg,
    owner: OrgRequirement,
) -> Result<OrgScope<'_>, DenyReason> {
    match (owner, named_org) {
        (_, NamedOrg::Unreadable) => Err(DenyReason::OrgMismatch),
        (OrgRequirement::Org(owner), NamedOrg::Unnamed) => principal
            .rights_in(owner)
            .map(OrgScope::single)
            .ok_or(DenyReason::ForeignOrg),
        (OrgRequirement::Org(owner), NamedOrg::Org(org)) => named_scope(principal, org).and_then(|scope| {
            if org == owner {
                Ok(scope)
            } else if principal.is_elsewhere(owner) {
                Err(DenyReason::OrgMismatch)
            } else {
                Err(DenyReason::ForeignOrg)
            }
        }),
        (OrgRequirement::Nobody | OrgRequirement::OneOfMine, NamedOrg::Org(org)) => named_scope(principal, org),
        (OrgRequirement::Nobody, NamedOrg::Unnamed) => Ok(candidate_scope(principal)),
        (OrgRequirement::OneOfMine, NamedOrg::Unnamed) => match candidates(principal) {
            [_, _, ..] => Err(DenyReason::OrgAmbiguous),
            // HD32: a user who accepted none of several inviting organizations must name one to send or deploy.
            [_] if principal.is_undecided => Err(DenyReason::OrgAmbiguous),
            [] | [_] => Ok(candidate_scope(principal)),
        },
    }
}
