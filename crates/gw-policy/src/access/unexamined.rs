//! Calls that pass through unexamined (spec/20 N3): who may make them, and which addresses they may name.
//!
//! Nothing is known of such a method, not even whether it reads or writes, so all that may be asked of a caller is asked:
//! an account with KYC that may send, a list that names it, no personal URL. Of its parameters the addresses are known. One
//! that is written as an address must be within the caller's reach, whatever it is otherwise, so that no answer tells
//! whether somebody has it (HD6); where twenty bytes may be part of a number, only another's contract or reservation is
//! refused: an answer that told wallets from numbers would tell who has one.

use super::{
    checks::Refused,
    extras::listed,
    identify::Caller,
    orgs::{self, Owner},
    permit::{NamedOrg, Permit, Plan, Question},
    target::{Member, standing},
};
use crate::snapshot::{Snapshot, User};
use gw_evm::{Call, Extra, Unexamined, call::Mention};
use gw_types::{Address, DenyReason, OrgId};
use std::{collections::BTreeSet, sync::Arc};

/// The order of spec/20 §17 for a method without a row.
pub(super) fn judge(
    snapshot: &Snapshot,
    q: &Question<'_>,
    extra: &Arc<Extra>,
    user: &User,
    member: Member,
) -> Result<Permit, (Refused, Option<OrgId>)> {
    let filed = orgs::filed_under(&member, q.named_org);
    let early = |reason: DenyReason| (Refused::from(reason), filed);
    let member = &super::decide::verified(snapshot, user, member, q.named_org).map_err(early)?;
    // HD2: it may be a send.
    if snapshot.is_suspended(user.id) {
        return Err(early(DenyReason::TraceMismatch));
    }
    // HD17: the page behind a wallet gets nothing that nobody examines.
    if matches!(q.caller, Caller::Url(..)) {
        return Err(early(DenyReason::MethodNotAllowed));
    }
    let named = match q.call {
        Ok(Call::Unexamined(call)) => owners(snapshot, q, member, call),
        Ok(_) => return Err(early(DenyReason::MethodNotAllowed)),
        Err(_) => Ok(BTreeSet::new()),
    };
    let owner = match named.as_ref().map(|owners| (owners.len(), owners.first())) {
        Ok((1, Some(only))) => Owner::Org(*only),
        Ok(_) | Err(_) => Owner::Nobody,
    };
    let scope = orgs::resolve(member, q.named_org, owner).map_err(early)?;
    let org = scope.org();
    let Some(by) = listed(snapshot, member, &scope, extra) else {
        return Err((DenyReason::MethodNotAllowed.into(), org));
    };
    let call = super::decide::held(q).map_err(|refused| (refused, org))?;
    let owners = named.map_err(|reason| (reason.into(), org))?;
    // Contracts of several organizations in one call are no one organization's matter (O3).
    if owners.len() > 1 {
        let reason = if q.named_org == NamedOrg::Unnamed {
            DenyReason::OrgAmbiguous
        } else {
            DenyReason::OrgMismatch
        };
        return Err((reason.into(), org));
    }
    let permit = super::decide::permit(snapshot, q, None, Some(user.id), org, Plan::Unexamined, call.clone());
    Ok(Permit {
        listed: Some(by),
        ..permit
    })
}

/// The organizations whose contracts the call names; an error if it names what the caller may not.
fn owners(
    snapshot: &Snapshot,
    q: &Question<'_>,
    member: &Member,
    call: &Unexamined,
) -> Result<BTreeSet<OrgId>, DenyReason> {
    let mut owners = BTreeSet::new();
    let deployed = |address: Address| {
        snapshot.owner(address).is_some()
            || !snapshot.reservations(address).is_empty()
            || member.is_closed(snapshot, address)
    };
    call.mentions(|mention| match mention {
        Mention::Address(address) => {
            owners.extend(within(snapshot, q, member, address)?);
            Ok(())
        }
        Mention::Bytes(address) if deployed(address) => {
            owners.extend(within(snapshot, q, member, address)?);
            Ok(())
        }
        Mention::Bytes(_) => Ok(()),
    })?;
    Ok(owners)
}

/// The owner of an address within reach, if an organization owns it.
fn within(
    snapshot: &Snapshot,
    q: &Question<'_>,
    member: &Member,
    address: Address,
) -> Result<Option<OrgId>, DenyReason> {
    let standing = standing(snapshot, member, address, q.knobs);
    if let Some(contract) = standing.contract {
        return match standing.reach {
            Some(_) => Ok(Some(contract.org)),
            None if member.rights_in(contract.org).is_none() => Err(DenyReason::ForeignOrg),
            None => Err(DenyReason::ContractNotPermitted),
        };
    }
    if standing.retired.is_some() || standing.closed {
        return Err(DenyReason::ContractNotPermitted);
    }
    // A pin cannot be held against code that nobody looks at.
    let utility = standing.shared.is_some_and(|shared| shared.pin.is_none());
    if standing.public || standing.owned || utility {
        return Ok(None);
    }
    let foreign = snapshot
        .reservations(address)
        .iter()
        .any(|reservation| member.rights_in(reservation.org).is_none());
    Err(if foreign {
        DenyReason::ForeignOrg
    } else {
        DenyReason::Unregistered
    })
}
