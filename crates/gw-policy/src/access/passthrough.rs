//! Decisions on passthrough calls, which the gateway forwards without examining them (spec/20 N3): who may make them,
//! and which addresses they may name.
//!
//! The gateway does not know whether such a method reads or writes, so it requires everything: an account with KYC that
//! may send, an allow list with the method, and no personal URL. In the parameters only addresses can be recognized. A
//! string in address form must be an address that the caller has access to, so that no decision reveals whether it is
//! linked to a user (HD6). Twenty bytes that may be part of a number are refused only if they are a contract or a
//! reservation out of reach: a decision that distinguished wallets from numbers would reveal linked wallets.

use super::{
    custom_methods::allow_list_match,
    identify::Caller,
    orgs::{self, OrgRequirement},
    permit::{AccessRequest, CheckError, NamedOrg, Permit, Plan},
};
use crate::{
    principal::{Principal, target_status},
    snapshot::{Snapshot, User},
};
use gw_evm::{Call, CustomMethod, Passthrough, call::AddressInParams};
use gw_types::{Address, DenyReason, OrgId};
use std::{collections::BTreeSet, sync::Arc};

/// The checks of spec/20 §17 in order, for a method that is not in the registry.
///
/// # Errors
/// The first refusal, with the organization of its audit record.
pub(super) fn decide_passthrough(
    snapshot: &Snapshot,
    request: &AccessRequest<'_>,
    custom: &Arc<CustomMethod>,
    user: &User,
    principal: Principal,
) -> Result<Permit, (CheckError, Option<OrgId>)> {
    let audit_org = orgs::audit_org(&principal, request.named_org);
    let refuse = |reason: DenyReason| (CheckError::from(reason), audit_org);
    let principal = &super::decide::verified(snapshot, user, principal, request.named_org).map_err(refuse)?;
    // HD2: the call may be a send.
    if snapshot.is_suspended(user.id) {
        return Err(refuse(DenyReason::TraceMismatch));
    }
    // HD17: web pages that a wallet is connected to get no unexamined calls.
    if matches!(request.caller, Caller::Url(..)) {
        return Err(refuse(DenyReason::MethodNotAllowed));
    }
    let named_owners = match request.call {
        Ok(Call::Passthrough(call)) => owners(snapshot, request, principal, call),
        Ok(_) => return Err(refuse(DenyReason::MethodNotAllowed)),
        Err(_) => Ok(BTreeSet::new()),
    };
    let owner = match named_owners.as_ref().map(|owners| (owners.len(), owners.first())) {
        Ok((1, Some(only))) => OrgRequirement::Org(*only),
        Ok(_) | Err(_) => OrgRequirement::Nobody,
    };
    let scope = orgs::resolve(principal, request.named_org, owner).map_err(refuse)?;
    let org = scope.org();
    let Some(list_match) = allow_list_match(snapshot, principal, &scope, custom) else {
        return Err((DenyReason::MethodNotAllowed.into(), org));
    };
    let call = request.require_valid_params().map_err(|error| (error, org))?;
    let owners = named_owners.map_err(|reason| (reason.into(), org))?;
    // A call that names contracts of several organizations belongs to none of them (O3).
    if owners.len() > 1 {
        let reason = if request.named_org == NamedOrg::Unnamed {
            DenyReason::OrgAmbiguous
        } else {
            DenyReason::OrgMismatch
        };
        return Err((reason.into(), org));
    }
    let mut permit = Permit::new(
        snapshot,
        request,
        None,
        (Some(user.id), org),
        Plan::Passthrough,
        call.clone(),
    );
    permit.grant.allow_list_match = Some(list_match);
    Ok(permit)
}

/// The organizations whose contracts the call names.
///
/// # Errors
/// The call names an address that the caller may not name.
fn owners(
    snapshot: &Snapshot,
    request: &AccessRequest<'_>,
    principal: &Principal,
    call: &Passthrough,
) -> Result<BTreeSet<OrgId>, DenyReason> {
    let mut owners = BTreeSet::new();
    let is_protected = |address: Address| {
        snapshot.owner(address).is_some()
            || !snapshot.reservations(address).is_empty()
            || principal.is_closed(snapshot, address)
    };
    call.mentions(|mention| match mention {
        AddressInParams::Address(address) => {
            owners.extend(reachable_owner(snapshot, request, principal, address)?);
            Ok(())
        }
        AddressInParams::Bytes(address) if is_protected(address) => {
            owners.extend(reachable_owner(snapshot, request, principal, address)?);
            Ok(())
        }
        AddressInParams::Bytes(_) => Ok(()),
    })?;
    Ok(owners)
}

/// The organization that owns the address, if any.
///
/// # Errors
/// The caller has no access to the address.
fn reachable_owner(
    snapshot: &Snapshot,
    request: &AccessRequest<'_>,
    principal: &Principal,
    address: Address,
) -> Result<Option<OrgId>, DenyReason> {
    let status = target_status(snapshot, principal, address, request.policy_settings);
    if let Some(contract) = status.contract {
        return match status.access {
            Some(_) => Ok(Some(contract.org)),
            None if principal.rights_in(contract.org).is_none() => Err(DenyReason::ForeignOrg),
            None => Err(DenyReason::ContractNotPermitted),
        };
    }
    if status.retired.is_some() || status.closed {
        return Err(DenyReason::ContractNotPermitted);
    }
    // The code pin of a shared address cannot be checked, since an unexamined call has no trace.
    let is_unpinned_shared = status.shared.is_some_and(|shared| shared.pin.is_none());
    if status.public || status.owned || is_unpinned_shared {
        return Ok(None);
    }
    let is_foreign = snapshot
        .reservations(address)
        .iter()
        .any(|reservation| principal.rights_in(reservation.org).is_none());
    Err(if is_foreign {
        DenyReason::ForeignOrg
    } else {
        DenyReason::Unregistered
    })
}
