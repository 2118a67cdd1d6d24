//! The decision about one call: the checks of spec/20 §17, from the method name to the sender, in their order.
//!
//! Invariant: only a call that passes every check below is allowed.

use super::{
    checks::CallChecks,
    custom_methods::allow_list_match,
    identify::Caller,
    orgs, passthrough,
    permit::{
        AccessRequest, CheckError, Decision, Denial, Invalid, NamedOrg, Permit, Plan, Restrictions, plan_without_target,
    },
    resource::{Resource, normalize_block},
    url::{apply_url_scope, check_url_scope, check_url_sender},
};
use crate::{
    principal::{Impersonation, Principal},
    settings::KycGate,
    snapshot::{Group, Snapshot, User},
};
use gw_evm::{Class, Method, MethodLookup};
use gw_types::{DenyReason, OrgId, Timestamp};
use std::sync::Arc;

/// Decides whether a call is allowed, and how it is answered.
///
/// The function is pure. A newer snapshot may give another decision: after every wait the caller decides the call again
/// (HD20).
pub fn decide(snapshot: &Snapshot, request: &AccessRequest<'_>) -> Decision {
    match decide_target(snapshot, request) {
        Ok(permit) => Decision::Allow(permit),
        Err((CheckError::Deny(reason), org)) => Decision::Deny(Denial { reason, org }),
        Err((CheckError::Invalid(error, reason), org)) => Decision::Invalid(Invalid { error, reason, org }),
    }
}

/// The checks of spec/20 §17 in order; each step may only refuse.
///
/// # Errors
/// The first refusal, with the organization of its audit record.
fn decide_target(snapshot: &Snapshot, request: &AccessRequest<'_>) -> Result<Permit, (CheckError, Option<OrgId>)> {
    // The method is checked before the caller.
    let (method, custom) = match &request.lookup {
        MethodLookup::Registered(method) => (Some(*method), None),
        MethodLookup::Custom(custom) => (custom.method(), Some(custom)),
        MethodLookup::Blocked => return Err((DenyReason::MethodNotAllowed.into(), None)),
        MethodLookup::Unknown => return Err((DenyReason::MethodUnknown.into(), None)),
    };
    // The caller is looked up in this snapshot: a ban applies to metadata, too (A10).
    let user = current_user(snapshot, request.caller, request.now).map_err(|reason| (reason.into(), None))?;
    let Some(user) = user else {
        return anonymous(snapshot, request, method).map_err(|error| (error, None));
    };
    let impersonation = impersonation(snapshot, request).map_err(|reason| (reason.into(), None))?;
    let principal = Principal::impersonated(snapshot, user.id, request.now, impersonation);
    let principal = principal.restricted_to(request.named_org.org());
    let method = match (method, custom) {
        (Some(method), _) => method,
        (None, Some(custom)) => return passthrough::decide_passthrough(snapshot, request, custom, user, principal),
        (None, None) => return Err((DenyReason::MethodUnknown.into(), None)),
    };
    let audit_org = orgs::audit_org(&principal, request.named_org);
    // Metadata is open to all callers except banned users.
    if method.class() == Class::Meta {
        let call = request.require_valid_params().map_err(|error| (error, audit_org))?;
        let grantee = (Some(user.id), audit_org);
        return Ok(Permit::new(
            snapshot,
            request,
            Some(method),
            grantee,
            Plan::Forward,
            call.clone(),
        ));
    }
    // KYC is checked before anything that depends on the target (decision 3).
    let principal = if kyc_gated(request.policy_settings.kyc_gate, method) {
        verified(snapshot, user, principal, request.named_org).map_err(|reason| (reason.into(), audit_org))?
    } else {
        principal
    };
    // HD2: a user who is suspended for a post-execution violation sends nothing until an administrator lifts the
    // suspension.
    if method.class() == Class::Write && snapshot.is_suspended(user.id) {
        return Err((DenyReason::TraceMismatch.into(), audit_org));
    }
    // The organization, then its method list, then the parameter error: a caller who may not use the method must not
    // get parameter errors.
    let resource = request.call.map_or(Resource::Nothing, |call| {
        Resource::for_call(snapshot, &principal, call, request.policy_settings)
    });
    let scope = orgs::resolve(&principal, request.named_org, resource.owner(request.named_org));
    let scope = scope.map_err(|reason| (reason.into(), audit_org))?;
    let org = scope.org();
    // A custom method is listed by its own name (G3).
    let list_match = custom.and_then(|custom| allow_list_match(snapshot, &principal, &scope, custom));
    if if custom.is_some() {
        list_match.is_none()
    } else {
        !scope.allows(method)
    } {
        return Err((DenyReason::MethodNotAllowed.into(), org));
    }
    let call = request.require_valid_params().map_err(|error| (error, org))?;
    let url = if let Caller::Url(_, url) = request.caller {
        Some(&**url)
    } else {
        None
    };
    if let Some(url) = url {
        check_url_scope(url, method, call).map_err(|reason| (reason.into(), org))?;
        check_url_sender(snapshot, url, call).map_err(|error| (error, org))?;
    }
    // Multicall, history, target, grant, slot or selector, parameters, upgrade, claims; the sender last.
    let checks = CallChecks {
        snapshot,
        request,
        principal: &principal,
        scope,
    };
    let (plan, shared_logs_only) = checks.call(call, &resource).map_err(|error| (error, org))?;
    let (age, requires_code_pin) = (checks.state_age(&resource), checks.requires_code_pin(&resource));
    let call = normalize_block(call, resource.is_owned());
    let mut permit = Permit::new(snapshot, request, Some(method), (Some(user.id), org), plan, call);
    permit.call.age = age;
    permit.grant.allow_list_match = list_match;
    permit.limits = Restrictions {
        shared_logs_only,
        requires_code_pin,
        ..Restrictions::default()
    };
    if let Some(url) = url {
        (permit.call.plan, permit.limits.url) = apply_url_scope(url, &permit.call.call, &resource, plan);
    }
    Ok(permit)
}

/// The caller's row in this snapshot; `None` for an anonymous caller.
fn current_user<'s>(
    snapshot: &'s Snapshot,
    caller: &Caller,
    now: Timestamp,
) -> Result<Option<&'s Arc<User>>, DenyReason> {
    let Some(caller_user) = caller.user() else {
        return Ok(None);
    };
    if let Caller::Url(_, url) = caller {
        let is_current = snapshot.personal_url(url.secret).is_some_and(|current| current == url);
        if !is_current || url.user != caller_user.id || !snapshot.is_member(url.user, url.org, now) {
            return Err(DenyReason::AuthRequired);
        }
    }
    let user = snapshot.user(caller_user.id).ok_or(DenyReason::UnknownUser)?;
    if snapshot.is_excluded(user) {
        Err(DenyReason::Banned)
    } else {
        Ok(Some(user))
    }
}

/// The impersonation that the call is part of, if any.
///
/// # Errors
/// `OrgMismatch` if the request does not name the impersonation's organization, or the impersonator does not administer
/// it now.
fn impersonation(snapshot: &Snapshot, request: &AccessRequest<'_>) -> Result<Option<Impersonation>, DenyReason> {
    let Some(impersonation) = request.caller.impersonation() else {
        return Ok(None);
    };
    let is_its_org = request.named_org == NamedOrg::Org(impersonation.org());
    if !is_its_org || !impersonation.administers(snapshot, request.now) {
        return Err(DenyReason::OrgMismatch);
    }
    Ok(Some(request.with_signer(impersonation)))
}

/// The permit of an anonymous caller: methods of the anonymous list, as far as they may be granted to anonymous callers
/// (A3).
fn anonymous(snapshot: &Snapshot, request: &AccessRequest<'_>, method: Option<Method>) -> Result<Permit, CheckError> {
    let Some(method) = method else {
        return Err(DenyReason::AuthRequired.into());
    };
    // Anonymous callers may use only metadata custom methods: the anonymous list cannot name others.
    if matches!(request.lookup, MethodLookup::Custom(_)) && method.class() != Class::Meta {
        return Err(DenyReason::AuthRequired.into());
    }
    let grantable = match method.class() {
        // An anonymous caller owns no sender address.
        Class::Meta | Class::Chain | Class::Block | Class::Tx => method != Method::GetTransactionBySenderAndNonce,
        Class::State | Class::Sim | Class::Log | Class::Write | Class::Trace | Class::Subscription => false,
    };
    if !grantable
        || !snapshot
            .access(Group::ANONYMOUS)
            .is_some_and(|access| access.methods.has(method))
    {
        return Err(DenyReason::AuthRequired.into());
    }
    // An anonymous caller is in no organization, so the request must not name one (O3); metadata needs none (O1).
    if method.class() != Class::Meta && request.named_org != NamedOrg::Unnamed {
        return Err(DenyReason::OrgMismatch.into());
    }
    let call = request.require_valid_params()?;
    Ok(Permit::new(
        snapshot,
        request,
        Some(method),
        (None, None),
        plan_without_target(call),
        call.clone(),
    ))
}

/// Restricts the principal to the organizations where KYC is completed (RT24): all of them if the platform completed
/// it, otherwise those that completed it themselves.
///
/// # Errors
/// `KycRequired` if no rights remain, or none in the named organization.
pub(super) fn verified(
    snapshot: &Snapshot,
    user: &User,
    mut principal: Principal,
    named: NamedOrg,
) -> Result<Principal, DenyReason> {
    if user.kyc {
        return Ok(principal);
    }
    principal.retain_verified(snapshot);
    let unverified = matches!(named, NamedOrg::Org(org) if principal.rights_in(org).is_none());
    if principal.rights.is_empty() || unverified {
        Err(DenyReason::KycRequired)
    } else {
        Ok(principal)
    }
}

/// Whether a method requires KYC.
pub(super) fn kyc_gated(gate: KycGate, method: Method) -> bool {
    match gate {
        KycGate::All => true,
        KycGate::Writes => method.class() == Class::Write,
    }
}
