//! Explains a decision to administrators (spec/20 V1, V4).
//!
//! This module decides nothing: it reports the rows that the decision depended on, by the same look-ups. It leaves out
//! what belongs to an organization other than the one that the decision was made in.

use super::{
    permit::{AccessRequest, Decision, Permit, Plan},
    resource::Signed,
};
use crate::{
    principal::{Functions, Principal, TargetStatus, held_grants, target_status},
    snapshot::{Contract, ContractGrant, Group, GroupAccess, Membership, Snapshot},
};
use gw_evm::{Call, Class, Method, MethodLookup};
use gw_types::{Address, Claim, Claims, DenyReason, OrgId};
use std::sync::Arc;

/// The check that determined a decision, in the order of spec/20 §17.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum DecidingCheck {
    /// The name of the method.
    Method,
    /// The caller's identity: no token, unknown user, or banned.
    Identity,
    /// KYC.
    Kyc,
    /// The user's right to send is suspended until an administrator lifts the suspension (HD2).
    Suspension,
    /// The organization (O2 to O4).
    Organization,
    /// The allow lists of the groups.
    MethodList,
    /// The parameters.
    Parameters,
    /// Multicall contracts (M1).
    Multicall,
    /// Access to historical blocks (H1).
    History,
    /// The status of the target address (§10).
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
    /// The evaluation of the trace (§11).
    Trace,
    /// Compliance screening.
    Compliance,
    /// A rate or concurrency limit.
    Limit,
    /// A failure of the node, the policy or the journal.
    Service,
    /// Every check passed.
    Passed,
}

impl DecidingCheck {
    /// The code of the check in API responses.
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

    /// The check that refuses with this reason.
    pub const fn from_reason(reason: DenyReason, lookup: &MethodLookup) -> Self {
        match reason {
            DenyReason::MethodUnknown => Self::Method,
            DenyReason::MethodNotAllowed => match lookup {
                MethodLookup::Blocked | MethodLookup::Unknown => Self::Method,
                MethodLookup::Registered(_) | MethodLookup::Custom(_) => Self::MethodList,
            },
            DenyReason::AuthRequired | DenyReason::UnknownUser | DenyReason::Banned => Self::Identity,
            DenyReason::KycRequired => Self::Kyc,
            // HD2: before any trace this reason means a suspension only.
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
            | DenyReason::StateUnavailable
            | DenyReason::UpstreamError
            | DenyReason::InternalError
            | DenyReason::PolicyStale
            | DenyReason::AuditUnavailable => Self::Service,
        }
    }
}

/// The explanation of a decision.
#[derive(Clone, Debug)]
pub struct Explanation<'s> {
    /// The check that determined the decision.
    pub rule: DecidingCheck,
    /// The organization of the decision.
    pub org: Option<OrgId>,
    /// The user's groups in that organization.
    pub groups: Vec<GroupExplanation<'s>>,
    /// The addresses that the call targets.
    pub targets: Vec<TargetExplanation<'s>>,
}

/// The contribution of one of the user's groups.
#[derive(Clone, Debug)]
pub struct GroupExplanation<'s> {
    /// The group.
    pub group: &'s Group,
    /// The membership in it.
    pub membership: Membership,
    /// Whether the membership and the group's access are active now.
    pub active: bool,
    /// Whether the group's allow list contains the method.
    pub lists_method: bool,
    /// Claims of the group.
    pub claims: Claims,
}

/// The user's access to one target address.
#[derive(Clone, Debug)]
pub struct TargetExplanation<'s> {
    /// The address.
    pub address: Address,
    /// The contract at the address, if it belongs to the organization.
    pub contract: Option<&'s Contract>,
    /// The basis of the user's access.
    pub way: AccessPath,
    /// All grants on the contract, whether the user holds them or not.
    pub grants: Vec<GrantExplanation<'s>>,
}

/// The basis of a user's access to an address. Contracts of other organizations and unknown addresses are both
/// [`AccessPath::None`] (T2).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum AccessPath {
    /// The zero address or a precompile.
    Public,
    /// The address is linked to the user.
    Own,
    /// Shared infrastructure.
    Shared,
    /// The user administers the owning organization.
    OrgAdmin,
    /// The user deployed the contract.
    Deployer,
    /// The user holds a grant.
    Grant,
    /// The address is reserved for a deployment of the organization.
    Reserved,
    /// No access.
    None,
}

impl AccessPath {
    /// The code of the access path in API responses.
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

/// The contribution of one grant on the target.
#[derive(Clone, Debug)]
pub struct GrantExplanation<'s> {
    /// The grant.
    pub grant: &'s ContractGrant,
    /// The group that holds it.
    pub group: &'s Group,
    /// Whether the user holds it through an active membership of the group.
    pub is_held_by_user: bool,
    /// Whether it permits the function of the call, regardless of parameters; `None` if the call names no function.
    pub opens_function: Option<bool>,
}

/// Explains `decision`, the result of [`super::decide`] on this request and snapshot.
pub fn explain<'s>(snapshot: &'s Snapshot, request: &AccessRequest<'_>, decision: &Decision) -> Explanation<'s> {
    let (rule, org) = match decision {
        Decision::Allow(permit) => (DecidingCheck::Passed, permit.org()),
        Decision::Deny(denial) => (DecidingCheck::from_reason(denial.reason, &request.lookup), denial.org),
        Decision::Invalid(invalid) => (DecidingCheck::from_reason(invalid.reason, &request.lookup), invalid.org),
    };
    let without_rows = Explanation {
        rule,
        org,
        groups: Vec::new(),
        targets: Vec::new(),
    };
    let (Some(user), Some(org)) = (request.caller.user(), org) else {
        return without_rows;
    };
    let principal = Principal::impersonated(snapshot, user.id, request.now, request.caller.impersonation())
        .restricted_to(request.named_org.org());
    let groups = groups(snapshot, request, &principal, org);
    let addresses = request.call.map(target_addresses).unwrap_or_default();
    let targets = addresses
        .into_iter()
        .map(|address| target(snapshot, request, &principal, org, address))
        .collect();
    Explanation {
        groups,
        targets,
        ..without_rows
    }
}

fn groups<'s>(
    snapshot: &'s Snapshot,
    request: &AccessRequest<'_>,
    principal: &Principal,
    org: OrgId,
) -> Vec<GroupExplanation<'s>> {
    let active: Vec<_> = snapshot
        .active_memberships(principal.user, request.now)
        .map(|(membership, _)| membership.id)
        .collect();
    let is_active = |membership: &Membership| active.contains(&membership.id);
    let explain_group = |membership: &Membership| {
        let group = snapshot.group(membership.group).filter(|group| group.org == org)?;
        let access = snapshot.access(group.id);
        Some(GroupExplanation {
            group,
            membership: *membership,
            active: is_active(membership) && access.is_none_or(|access| access.active(request.now)),
            lists_method: access.is_some_and(|access| lists(access, &request.lookup)),
            claims: access.map_or(Claims::NONE, |access| access.claims),
        })
    };
    snapshot
        .memberships(principal.user)
        .iter()
        .filter_map(explain_group)
        .collect()
}

fn lists(access: &GroupAccess, lookup: &MethodLookup) -> bool {
    let methods = access.methods;
    match lookup {
        MethodLookup::Registered(Method::SendRawTransaction) => {
            methods.has(Method::SendRawTransaction) || methods.has(Method::SendTransaction)
        }
        MethodLookup::Registered(method) => methods.has(*method) || method.class() == Class::Meta,
        MethodLookup::Custom(custom) => {
            access.custom_methods.lists(custom).is_some()
                || custom.method().is_some_and(|method| method.class() == Class::Meta)
        }
        MethodLookup::Blocked | MethodLookup::Unknown => false,
    }
}

fn target<'s>(
    snapshot: &'s Snapshot,
    request: &AccessRequest<'_>,
    principal: &Principal,
    org: OrgId,
    address: Address,
) -> TargetExplanation<'s> {
    let status = target_status(snapshot, principal, address, request.policy_settings);
    let contract = status.contract.filter(|contract| contract.org == org);
    let grants = contract
        .map(|contract| grants(snapshot, request, principal, contract))
        .unwrap_or_default();
    let path = access_path(principal, org, &status, contract, &grants);
    TargetExplanation {
        address,
        contract: contract.map(|contract| &**contract),
        way: path,
        grants,
    }
}

fn access_path(
    principal: &Principal,
    org: OrgId,
    status: &TargetStatus<'_>,
    contract: Option<&Arc<Contract>>,
    grants: &[GrantExplanation<'_>],
) -> AccessPath {
    if status.public {
        return AccessPath::Public;
    }
    if status.owned {
        return AccessPath::Own;
    }
    if let (Some(contract), Some(_)) = (contract, &status.access) {
        return if principal
            .rights_in(org)
            .is_some_and(|rights| rights.permissions.is_org_admin)
        {
            AccessPath::OrgAdmin
        } else if grants.iter().any(|grant| grant.is_held_by_user) {
            AccessPath::Grant
        } else if contract.deployer == Some(principal.user) {
            AccessPath::Deployer
        } else {
            AccessPath::None
        };
    }
    if status.shared.is_some() {
        AccessPath::Shared
    } else if status.reserved_in.contains(&org) {
        AccessPath::Reserved
    } else {
        AccessPath::None
    }
}

fn grants<'s>(
    snapshot: &'s Snapshot,
    request: &AccessRequest<'_>,
    principal: &Principal,
    contract: &'s Arc<Contract>,
) -> Vec<GrantExplanation<'s>> {
    let selector = request.call.ok().and_then(selector);
    let held_ids: Vec<_> = held_grants(snapshot, principal, contract)
        .map(|(grant, _)| grant.id)
        .collect();
    let explain_grant = |grant: &'s Arc<ContractGrant>| {
        let group = snapshot.group(grant.group).filter(|group| group.org == contract.org)?;
        let claims = grant
            .claims
            .union(snapshot.access(group.id).map_or(Claims::NONE, |access| access.claims));
        let opens = |selector: [u8; 4]| match Functions::of_grant(grant.functions.as_deref()) {
            Functions::All => true,
            Functions::Only(rules) => claims.has(Claim::Admin) || rules.iter().any(|rule| rule.selector == selector),
        };
        let opens_function = selector.map(opens);
        Some(GrantExplanation {
            grant,
            group,
            is_held_by_user: held_ids.contains(&grant.id),
            opens_function,
        })
    };
    snapshot.grants(contract.id).iter().filter_map(explain_grant).collect()
}

fn selector(call: &Call) -> Option<[u8; 4]> {
    if let Call::Simulate(simulation) = call {
        return simulation.request.selector();
    }
    Signed::from_call(call).and_then(|signed| signed.request.selector())
}

/// The target addresses of a call.
fn target_addresses(call: &Call) -> Vec<Address> {
    if let Call::Logs(filter) = call {
        return filter.addresses.clone();
    }
    if let Call::Simulate(simulation) = call {
        return simulation.request.to.into_iter().collect();
    }
    if let Some(signed) = Signed::from_call(call) {
        return signed.request.to.into_iter().collect();
    }
    super::history::state_of(call).into_iter().collect()
}

impl Permit {
    /// The plan as a code in API responses for administrators.
    pub const fn plan_name(&self) -> &'static str {
        match self.call.plan {
            Plan::Local => "local",
            Plan::Subscription => "live",
            Plan::Forward => "forward",
            Plan::ZeroQuantity => "constant_zero",
            Plan::CodeCheck => "code_check",
            Plan::Simulate => "trace",
            Plan::Untraced => "untraced",
            Plan::Send => "send",
            Plan::Passthrough => "unexamined",
        }
    }
}
