//! Why a call was decided as it was, for administrators (spec/20 V1, V4).
//!
//! Nothing is decided here: it says which rows the decision stood on, by the same look-ups. What belongs to another
//! organization than the one in question is left out.

use super::{
    functions::Functions,
    permit::{Decision, Permit, Plan, Question},
    subject::Signed,
    target::{Member, Standing, standing},
};
use crate::snapshot::{Contract, ContractGrant, Group, GroupAccess, Membership, Snapshot};
use gw_evm::{Call, Class, Lookup, Method};
use gw_types::{Address, Claim, Claims, DenyReason, OrgId};
use std::sync::Arc;

/// The check that settled a decision, in the order of spec/20 §17.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Rule {
    /// The name of the method.
    Method,
    /// Who calls: no token, unknown, banned.
    Identity,
    /// KYC.
    Kyc,
    /// Sends are suspended until an administrator has looked (HD2).
    Suspension,
    /// The organization (O2 to O4).
    Organization,
    /// The methods of the groups.
    MethodList,
    /// The parameters.
    Parameters,
    /// Multicall contracts (M1).
    Multicall,
    /// Blocks of the past (H1).
    History,
    /// What the address is (§10).
    Target,
    /// The grants on the contract.
    Grant,
    /// The functions of the grants (F1, F2).
    Function,
    /// The parameter rules of the grants, or the storage slot (F3, §9).
    ParamRule,
    /// A claim.
    Claim,
    /// The sender (X10, HD13).
    Sender,
    /// The pinned code of shared infrastructure (X6).
    Pin,
    /// The execution itself (§11).
    Trace,
    /// Compliance.
    Compliance,
    /// A limit.
    Limit,
    /// Something is out of order: node, policy, journal.
    Service,
    /// Every check was passed.
    Passed,
}

impl Rule {
    /// The code of the rule.
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Method => "method",
            Self::Identity => "identity",
            Self::Kyc => "kyc",
            Self::Suspension => "suspension",
            Self::Organization => "organization",
            Self::MethodList => "method_list",
            Self::Parameters => "parameters",
            Self::Multicall => "multicall",
            Self::History => "history",
            Self::Target => "target",
            Self::Grant => "grant",
            Self::Function => "function",
            Self::ParamRule => "param_rule",
            Self::Claim => "claim",
            Self::Sender => "sender",
            Self::Pin => "pin",
            Self::Trace => "trace",
            Self::Compliance => "compliance",
            Self::Limit => "limit",
            Self::Service => "service",
            Self::Passed => "passed",
        }
    }

    /// The check that refuses for this reason.
    pub const fn of(reason: DenyReason, lookup: &Lookup) -> Self {
        match reason {
            DenyReason::MethodUnknown => Self::Method,
            DenyReason::MethodNotAllowed => match lookup {
                Lookup::Blocked | Lookup::Unknown => Self::Method,
                Lookup::Known(_) | Lookup::Extra(_) => Self::MethodList,
            },
            DenyReason::AuthRequired | DenyReason::UnknownUser | DenyReason::Banned => Self::Identity,
            DenyReason::KycRequired => Self::Kyc,
            DenyReason::TraceMismatch => Self::Suspension,
            DenyReason::OrgAmbiguous | DenyReason::OrgMismatch => Self::Organization,
            DenyReason::InvalidRequestShape => Self::Parameters,
            DenyReason::Multicall => Self::Multicall,
            DenyReason::HistoryNotPermitted => Self::History,
            DenyReason::ForeignOrg | DenyReason::Unregistered => Self::Target,
            DenyReason::ContractNotPermitted | DenyReason::GrantScope => Self::Grant,
            DenyReason::FunctionNotPermitted => Self::Function,
            DenyReason::ParamRule => Self::ParamRule,
            DenyReason::DeployClaimRequired | DenyReason::UpgradeClaimRequired => Self::Claim,
            DenyReason::SenderNotLinked | DenyReason::SenderNotOwned => Self::Sender,
            DenyReason::CodehashMismatch => Self::Pin,
            DenyReason::CrossOrg | DenyReason::DelegateSharedInfra | DenyReason::TraceDepthExceeded => Self::Trace,
            DenyReason::ComplianceBlocked => Self::Compliance,
            DenyReason::RateLimited | DenyReason::ConcurrencyLimited => Self::Limit,
            DenyReason::TracingUnavailable
            | DenyReason::UpstreamError
            | DenyReason::InternalError
            | DenyReason::PolicyStale
            | DenyReason::AuditUnavailable => Self::Service,
        }
    }
}

/// What a decision stood on.
#[derive(Clone, Debug)]
pub struct Explanation<'s> {
    /// The check that settled it.
    pub rule: Rule,
    /// The organization it was judged in.
    pub org: Option<OrgId>,
    /// The user's groups there.
    pub groups: Vec<GroupSays<'s>>,
    /// What the call addresses.
    pub targets: Vec<TargetSays<'s>>,
}

/// What one of the user's groups contributes.
#[derive(Clone, Debug)]
pub struct GroupSays<'s> {
    /// The group.
    pub group: &'s Group,
    /// The membership in it.
    pub membership: Membership,
    /// Whether the membership and the group's access count now.
    pub active: bool,
    /// Whether it lists the method.
    pub lists_method: bool,
    /// Its claims.
    pub claims: Claims,
}

/// What an address is to the user.
#[derive(Clone, Debug)]
pub struct TargetSays<'s> {
    /// The address.
    pub address: Address,
    /// The contract there, if it is the organization's.
    pub contract: Option<&'s Contract>,
    /// How the user reaches it.
    pub way: Way,
    /// The grants on the contract, held or not.
    pub grants: Vec<GrantSays<'s>>,
}

/// How somebody reaches an address; nothing tells the foreign from the unknown (T2).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Way {
    /// Zero address or precompile.
    Public,
    /// Linked to the user.
    Own,
    /// Shared infrastructure.
    Shared,
    /// As administrator of the owning organization.
    OrgAdmin,
    /// As the one who deployed it.
    Deployer,
    /// By a grant.
    Grant,
    /// Reserved for a deployment of the organization.
    Reserved,
    /// Not at all.
    None,
}

impl Way {
    /// The code of the way.
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Public => "public",
            Self::Own => "own_address",
            Self::Shared => "shared_infrastructure",
            Self::OrgAdmin => "org_admin",
            Self::Deployer => "deployer",
            Self::Grant => "grant",
            Self::Reserved => "reservation",
            Self::None => "none",
        }
    }
}

/// What one grant on the target contributes.
#[derive(Clone, Debug)]
pub struct GrantSays<'s> {
    /// The grant.
    pub grant: &'s ContractGrant,
    /// Who holds it.
    pub group: &'s Group,
    /// Whether the user does, through an active membership.
    pub held: bool,
    /// Whether it opens the function of the call, parameters aside; `None` if the call names no function.
    pub opens_function: Option<bool>,
}

/// Reads off what `decision` stood on.
pub fn explain<'s>(snapshot: &'s Snapshot, q: &Question<'_>, decision: &Decision) -> Explanation<'s> {
    let (rule, org) = match decision {
        Decision::Allow(permit) => (Rule::Passed, permit.org()),
        Decision::Deny(denial) => (Rule::of(denial.reason, &q.lookup), denial.org),
        Decision::Invalid(invalid) => (Rule::of(invalid.reason, &q.lookup), invalid.org),
    };
    // HD2: the only reason of this code before any trace.
    let none = Explanation {
        rule,
        org,
        groups: Vec::new(),
        targets: Vec::new(),
    };
    let (Some(user), Some(org)) = (q.caller.user(), org) else {
        return none;
    };
    let member = Member::beside(snapshot, user.id, q.now, q.caller.beside()).restricted_to(q.named_org.org());
    let groups = groups(snapshot, q, &member, org);
    let addresses = q.call.map(addressed).unwrap_or_default();
    let targets = addresses
        .into_iter()
        .map(|address| target(snapshot, q, &member, org, address))
        .collect();
    Explanation {
        groups,
        targets,
        ..none
    }
}

fn groups<'s>(snapshot: &'s Snapshot, q: &Question<'_>, member: &Member, org: OrgId) -> Vec<GroupSays<'s>> {
    let active: Vec<_> = snapshot
        .active_memberships(member.user, q.now)
        .map(|(held, _)| held.id)
        .collect();
    let counts = |membership: &Membership| active.contains(&membership.id);
    let of = |membership: &Membership| {
        let group = snapshot.group(membership.group).filter(|group| group.org == org)?;
        let access = snapshot.access(group.id);
        Some(GroupSays {
            group,
            membership: *membership,
            active: counts(membership) && access.is_none_or(|access| access.active(q.now)),
            lists_method: access.is_some_and(|access| lists(access, &q.lookup)),
            claims: access.map_or(Claims::NONE, |access| access.claims),
        })
    };
    snapshot.memberships(member.user).iter().filter_map(of).collect()
}

fn lists(access: &GroupAccess, lookup: &Lookup) -> bool {
    let methods = access.methods;
    match lookup {
        Lookup::Known(Method::SendRawTransaction) => {
            methods.has(Method::SendRawTransaction) || methods.has(Method::SendTransaction)
        }
        Lookup::Known(method) => methods.has(*method) || method.class() == Class::Meta,
        Lookup::Extra(extra) => {
            access.extras.lists(extra).is_some() || extra.row().is_some_and(|row| row.class() == Class::Meta)
        }
        Lookup::Blocked | Lookup::Unknown => false,
    }
}

fn target<'s>(
    snapshot: &'s Snapshot,
    q: &Question<'_>,
    member: &Member,
    org: OrgId,
    address: Address,
) -> TargetSays<'s> {
    let standing = standing(snapshot, member, address, q.knobs);
    let contract = standing.contract.filter(|contract| contract.org == org);
    let grants = contract
        .map(|contract| grants(snapshot, q, member, contract))
        .unwrap_or_default();
    let way = way(member, org, &standing, contract, &grants);
    TargetSays {
        address,
        contract: contract.map(|contract| &**contract),
        way,
        grants,
    }
}

fn way(
    member: &Member,
    org: OrgId,
    standing: &Standing<'_>,
    contract: Option<&Arc<Contract>>,
    grants: &[GrantSays<'_>],
) -> Way {
    if standing.public {
        return Way::Public;
    }
    if standing.owned {
        return Way::Own;
    }
    if let (Some(contract), Some(_)) = (contract, &standing.reach) {
        return if member
            .rights_in(org)
            .is_some_and(|rights| rights.permissions.is_org_admin)
        {
            Way::OrgAdmin
        } else if grants.iter().any(|grant| grant.held) {
            Way::Grant
        } else if contract.deployer == Some(member.user) {
            Way::Deployer
        } else {
            Way::None
        };
    }
    if standing.shared.is_some() {
        Way::Shared
    } else if standing.reserved_in.contains(&org) {
        Way::Reserved
    } else {
        Way::None
    }
}

fn grants<'s>(
    snapshot: &'s Snapshot,
    q: &Question<'_>,
    member: &Member,
    contract: &'s Arc<Contract>,
) -> Vec<GrantSays<'s>> {
    let selector = q.call.ok().and_then(selector);
    let held: Vec<_> = super::held_grants(snapshot, member, contract)
        .map(|(grant, _)| grant.id)
        .collect();
    let of = |grant: &'s Arc<ContractGrant>| {
        let group = snapshot.group(grant.group).filter(|group| group.org == contract.org)?;
        let admin = grant
            .claims
            .union(snapshot.access(group.id).map_or(Claims::NONE, |access| access.claims));
        let opens = |selector: [u8; 4]| match Functions::of_grant(grant.functions.as_deref()) {
            Functions::All => true,
            Functions::Only(rules) => admin.has(Claim::Admin) || rules.iter().any(|rule| rule.selector == selector),
        };
        let opens_function = selector.map(opens);
        Some(GrantSays {
            grant,
            group,
            held: held.contains(&grant.id),
            opens_function,
        })
    };
    snapshot.grants(contract.id).iter().filter_map(of).collect()
}

fn selector(call: &Call) -> Option<[u8; 4]> {
    if let Call::Simulate(simulation) = call {
        return simulation.request.selector();
    }
    Signed::of(call).and_then(|signed| signed.request.selector())
}

/// The addresses a call is about.
fn addressed(call: &Call) -> Vec<Address> {
    if let Call::Logs(filter) = call {
        return filter.addresses.clone();
    }
    if let Call::Simulate(simulation) = call {
        return simulation.request.to.into_iter().collect();
    }
    if let Some(signed) = Signed::of(call) {
        return signed.request.to.into_iter().collect();
    }
    super::history::state_of(call).into_iter().collect()
}

impl Permit {
    /// How the call is answered, in one word for administrators.
    pub const fn plan_name(&self) -> &'static str {
        match self.plan {
            Plan::Local => "local",
            Plan::Live => "live",
            Plan::Forward => "forward",
            Plan::ZeroQuantity => "constant_zero",
            Plan::CodeCheck => "code_check",
            Plan::Simulate => "trace",
            Plan::Untraced => "untraced",
            Plan::Send => "send",
            Plan::Unexamined => "unexamined",
        }
    }
}
