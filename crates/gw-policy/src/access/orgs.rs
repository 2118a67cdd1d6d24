//! Under which organization a call is judged (spec/20 §8, decision 40).

use super::{
    permissions::{OrgRights, Permissions},
    permit::NamedOrg,
    target::Member,
};
use crate::snapshot::Organization;
use gw_evm::Method;
use gw_types::{Claim, DenyReason, OrgId};

/// The organizations whose rights count for one call: one, or any of several.
#[derive(Clone, Copy, Debug)]
pub(super) struct Scope<'m> {
    rights: &'m [OrgRights],
    /// Whether none of them may have the call on its record (HD32).
    unfiled: bool,
}

impl<'m> Scope<'m> {
    fn one(rights: &'m OrgRights) -> Self {
        Self {
            rights: std::slice::from_ref(rights),
            unfiled: false,
        }
    }

    /// The one organization, if it is one: what the call is filed under.
    pub(super) fn org(&self) -> Option<OrgId> {
        match self.rights {
            [only] if !self.unfiled => Some(only.org),
            _ => None,
        }
    }

    /// The organizations.
    pub(super) fn orgs(&self) -> impl Iterator<Item = OrgId> {
        self.rights.iter().map(|rights| rights.org)
    }

    /// Whether any of the organizations grants the method.
    pub(super) fn allows(&self, method: Method) -> bool {
        self.any(|permissions| permissions.allows(method))
    }

    /// Whether the caller administers any of them.
    pub(super) fn is_org_admin(&self) -> bool {
        self.any(|permissions| permissions.is_org_admin)
    }

    /// Whether the caller holds a claim; only where it is clear in which organization.
    pub(super) fn has_claim(&self, claim: Claim) -> bool {
        matches!(self.rights, [only] if only.permissions.claims.has(claim))
    }

    fn any(&self, test: impl Fn(&Permissions) -> bool) -> bool {
        self.rights.iter().any(|rights| test(&rights.permissions))
    }
}

/// The organizations that count when none is named: the default one only if there is no other.
pub(super) fn counting(member: &Member) -> &[OrgRights] {
    match member.rights.as_slice() {
        [others @ .., last] if !others.is_empty() && last.org == Organization::DEFAULT => others,
        all => all,
    }
}

/// Where a denial is filed before an organization is chosen: the named one if the caller is in it, else their only
/// one, else nowhere (L2, HD12).
pub(super) fn filed_under(member: &Member, named: NamedOrg) -> Option<OrgId> {
    match named {
        NamedOrg::Org(org) => member.rights_in(org).map(|rights| rights.org),
        NamedOrg::Unreadable => None,
        NamedOrg::Unnamed => any(member).org(),
    }
}

fn any(member: &Member) -> Scope<'_> {
    Scope {
        rights: counting(member),
        unfiled: member.is_undecided,
    }
}

fn named(member: &Member, org: OrgId) -> Result<Scope<'_>, DenyReason> {
    member.rights_in(org).map(Scope::one).ok_or(DenyReason::OrgMismatch)
}

/// Whose rights judge a call. `owner` is the organization that must judge it: of the target, or of the reservation.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Owner {
    /// Nobody owns the target, or who does must make no difference; any organization that allows is enough.
    Nobody,
    /// This organization owns the target.
    Org(OrgId),
    /// Nobody owns the target, and the call belongs to exactly one organization: sends and deployments.
    OneOfMine,
}

/// The organizations whose rights count (O2-O4).
pub(super) fn resolve(member: &Member, named_org: NamedOrg, owner: Owner) -> Result<Scope<'_>, DenyReason> {
    match (owner, named_org) {
        (_, NamedOrg::Unreadable) => Err(DenyReason::OrgMismatch),
        (Owner::Org(owner), NamedOrg::Unnamed) => member.rights_in(owner).map(Scope::one).ok_or(DenyReason::ForeignOrg),
        (Owner::Org(owner), NamedOrg::Org(org)) => named(member, org).and_then(|scope| {
            if org == owner {
                Ok(scope)
            } else if member.is_elsewhere(owner) {
                Err(DenyReason::OrgMismatch)
            } else {
                Err(DenyReason::ForeignOrg)
            }
        }),
        (Owner::Nobody | Owner::OneOfMine, NamedOrg::Org(org)) => named(member, org),
        (Owner::Nobody, NamedOrg::Unnamed) => Ok(any(member)),
        (Owner::OneOfMine, NamedOrg::Unnamed) => match counting(member) {
            [_, _, ..] => Err(DenyReason::OrgAmbiguous),
            // HD32: who has yet to choose deploys and pays in nobody's name unchosen.
            [_] if member.is_undecided => Err(DenyReason::OrgAmbiguous),
            [] | [_] => Ok(any(member)),
        },
    }
}
