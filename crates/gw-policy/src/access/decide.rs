//! The decision: spec/20 §17 from the method's name to the sender, in one place and in its order.
//!
//! Invariant: an `Allow` is reached only by passing every check below; whatever none of them settles is denied.

use super::{
    beside::Beside,
    checks::{Checks, Refused},
    extras::listed,
    identify::Caller,
    orgs,
    permit::{Decision, Denial, Invalid, NamedOrg, Permit, Plan, Question},
    subject::{StateAge, Subject, effective},
    target::Member,
    unexamined,
    url::{apply_url_scope, check_url_scope, check_url_sender},
};
use crate::{
    knobs::KycGate,
    snapshot::{Group, Snapshot, User},
};
use gw_evm::{Call, Class, Lookup, Method, VisibleTo};
use gw_types::{DenyReason, OrgId, Timestamp, UserId};
use std::sync::Arc;

/// May this call go on, and how?
///
/// Pure and without I/O. The same question asked of a newer snapshot may get another answer; whoever waited between
/// the answer and its use asks again (HD20).
pub fn decide(snapshot: &Snapshot, question: &Question<'_>) -> Decision {
    match judge(snapshot, question) {
        Ok(permit) => Decision::Allow(permit),
        Err((Refused::Deny(reason), org)) => Decision::Deny(Denial { reason, org }),
        Err((Refused::Invalid(error, reason), org)) => Decision::Invalid(Invalid { error, reason, org }),
    }
}

/// The order of spec/20 §17. Each step may only refuse; the second part tells where the refusal is filed.
fn judge(snapshot: &Snapshot, q: &Question<'_>) -> Result<Permit, (Refused, Option<OrgId>)> {
    // The name, before anything about the caller.
    let (method, extra) = match &q.lookup {
        Lookup::Known(method) => (Some(*method), None),
        Lookup::Extra(extra) => (extra.row(), Some(extra)),
        Lookup::Blocked => return Err((DenyReason::MethodNotAllowed.into(), None)),
        Lookup::Unknown => return Err((DenyReason::MethodUnknown.into(), None)),
    };
    // The caller as this snapshot knows them: a ban holds for metadata too (A10).
    let Some(user) = current_user(snapshot, q.caller, q.now).map_err(|reason| (reason.into(), None))? else {
        return anonymous(snapshot, q, method).map_err(|refused| (refused, None));
    };
    let beside = beside(snapshot, q).map_err(|reason| (reason.into(), None))?;
    let member = Member::beside(snapshot, user.id, q.now, beside).restricted_to(q.named_org.org());
    let method = match (method, extra) {
        (Some(method), _) => method,
        (None, Some(extra)) => return unexamined::judge(snapshot, q, extra, user, member),
        (None, None) => return Err((DenyReason::MethodUnknown.into(), None)),
    };
    let filed = orgs::filed_under(&member, q.named_org);
    // Metadata is open to everybody who is not banned.
    if method.class() == Class::Meta {
        let call = held(q).map_err(|refused| (refused, filed))?;
        return Ok(permit(
            snapshot,
            q,
            Some(method),
            Some(user.id),
            filed,
            Plan::Forward,
            call.clone(),
        ));
    }
    // KYC, before anything that depends on the target (decision 3).
    let member = if kyc_gated(q.knobs.kyc_gate, method) {
        verified(snapshot, user, member, q.named_org).map_err(|reason| (reason.into(), filed))?
    } else {
        member
    };
    // HD2: who slipped past a trace sends nothing more until somebody has looked at it.
    if method.class() == Class::Write && snapshot.is_suspended(user.id) {
        return Err((DenyReason::TraceMismatch.into(), filed));
    }
    // The organization, then its list, then the error held so far: who may not use a method is told nothing about
    // parameters.
    let subject = q
        .call
        .map_or(Subject::Nothing, |call| Subject::of(snapshot, &member, call, q.knobs));
    let scope =
        orgs::resolve(&member, q.named_org, subject.owner(q.named_org)).map_err(|reason| (reason.into(), filed))?;
    let org = scope.org();
    // What is beside the registry is listed by its own name (G3).
    let listed = extra.and_then(|extra| listed(snapshot, &member, &scope, extra));
    if if extra.is_some() {
        listed.is_none()
    } else {
        !scope.allows(method)
    } {
        return Err((DenyReason::MethodNotAllowed.into(), org));
    }
    let call = held(q).map_err(|refused| (refused, org))?;
    // How far a personal URL reaches of what its owner may.
    let url = if let Caller::Url(_, url) = q.caller {
        Some(&**url)
    } else {
        None
    };
    if let Some(url) = url {
        check_url_scope(url, method, call).map_err(|reason| (reason.into(), org))?;
        check_url_sender(snapshot, url, call).map_err(|refused| (refused, org))?;
    }
    // Multicall, history, target, grant, slot or selector, parameters, upgrade, claims; at last the sender.
    let checks = Checks {
        snapshot,
        q,
        member: &member,
        scope,
    };
    let (plan, shared_logs_only) = checks.call(call, &subject).map_err(|refused| (refused, org))?;
    let (age, rests_on_pin) = (checks.state_age(&subject), checks.rests_on_pin(&subject));
    let call = effective(call, subject.is_owned());
    let mut permit = permit(snapshot, q, Some(method), Some(user.id), org, plan, call);
    permit.listed = listed;
    (permit.shared_logs_only, permit.age, permit.rests_on_pin) = (shared_logs_only, age, rests_on_pin);
    if let Some(url) = url {
        let scope = apply_url_scope(url, &permit.call, &subject, permit.plan);
        (permit.plan, permit.own_only, permit.no_revert_data) = (scope.plan, scope.own_only, scope.no_revert_data);
        permit.picked = scope.picked;
    }
    Ok(permit)
}

/// The caller's present row; `None` is an anonymous caller.
fn current_user<'s>(
    snapshot: &'s Snapshot,
    caller: &Caller,
    now: Timestamp,
) -> Result<Option<&'s Arc<User>>, DenyReason> {
    let Some(then) = caller.user() else { return Ok(None) };
    if let Caller::Url(_, url) = caller {
        let present = snapshot.personal_url(url.secret).is_some_and(|now| now == url);
        if !present || url.user != then.id || !snapshot.is_member(url.user, url.org, now) {
            return Err(DenyReason::AuthRequired);
        }
    }
    let user = snapshot.user(then.id).ok_or(DenyReason::UnknownUser)?;
    if snapshot.shuts_out(user) {
        Err(DenyReason::Banned)
    } else {
        Ok(Some(user))
    }
}

/// Who looks over the caller's shoulder, as long as that is an administrator of the organization in question. The signer
/// of a transaction is taken to be the caller.
fn beside(snapshot: &Snapshot, q: &Question<'_>) -> Result<Option<Beside>, DenyReason> {
    let Some(beside) = q.caller.beside() else {
        return Ok(None);
    };
    if q.named_org != NamedOrg::Org(beside.org()) || !beside.administers(snapshot, q.now) {
        return Err(DenyReason::OrgMismatch);
    }
    Ok(Some(signed_by(beside, q)))
}

fn signed_by(beside: Beside, q: &Question<'_>) -> Beside {
    if let Ok(Call::SendRaw(raw)) = q.call {
        beside.sending_from(raw.sender)
    } else {
        beside
    }
}

/// The anonymous list, narrowed to what may ever be in force there (A3).
fn anonymous(snapshot: &Snapshot, q: &Question<'_>, method: Option<Method>) -> Result<Permit, Refused> {
    let Some(method) = method else {
        return Err(DenyReason::AuthRequired.into());
    };
    // Of what is beside the registry only metadata: no list of theirs can name the rest.
    if matches!(q.lookup, Lookup::Extra(_)) && method.class() != Class::Meta {
        return Err(DenyReason::AuthRequired.into());
    }
    let grantable = match method.class() {
        // Nobody in particular owns no address to have sent from.
        Class::Meta | Class::Chain | Class::Block | Class::Tx => method != Method::GetTransactionBySenderAndNonce,
        Class::State | Class::Sim | Class::Log | Class::Write | Class::Trace | Class::Live => false,
    };
    if !grantable
        || !snapshot
            .access(Group::ANONYMOUS)
            .is_some_and(|access| access.methods.has(method))
    {
        return Err(DenyReason::AuthRequired.into());
    }
    // A named organization is one the caller is not in (O3); metadata needs none (O1).
    if method.class() != Class::Meta && q.named_org != NamedOrg::Unnamed {
        return Err(DenyReason::OrgMismatch.into());
    }
    let call = held(q)?;
    Ok(permit(
        snapshot,
        q,
        Some(method),
        None,
        None,
        plain_plan(call),
        call.clone(),
    ))
}

/// The parsed call, or the error held until here.
pub(super) fn held<'a>(q: &Question<'a>) -> Result<&'a Call, Refused> {
    q.call
        .map_err(|error| Refused::Invalid(error.clone(), DenyReason::InvalidRequestShape))
}

/// The caller's rights where KYC is completed: everywhere if by the platform, in one organization if by that (RT24).
pub(super) fn verified(
    snapshot: &Snapshot,
    user: &User,
    mut member: Member,
    named: NamedOrg,
) -> Result<Member, DenyReason> {
    if user.kyc {
        return Ok(member);
    }
    member.retain_verified(snapshot);
    let unverified = matches!(named, NamedOrg::Org(org) if member.rights_in(org).is_none());
    if member.rights.is_empty() || unverified {
        Err(DenyReason::KycRequired)
    } else {
        Ok(member)
    }
}

/// Whether a method needs KYC.
pub(super) fn kyc_gated(gate: KycGate, method: Method) -> bool {
    match gate {
        KycGate::All => true,
        KycGate::Writes => method.class() == Class::Write,
    }
}

pub(super) fn permit(
    snapshot: &Snapshot,
    q: &Question<'_>,
    method: Option<Method>,
    user: Option<UserId>,
    org: Option<OrgId>,
    plan: Plan,
    call: Call,
) -> Permit {
    let sends = method.is_some_and(|method| method.class() == Class::Write);
    let extra = if let Lookup::Extra(extra) = &q.lookup {
        Some(Arc::clone(extra))
    } else {
        None
    };
    let visible_to = if sends {
        q.visible_to.clone()
    } else {
        VisibleTo::default()
    };
    let (epoch, shared_logs_only) = (snapshot.epoch(), Vec::new());
    Permit {
        call,
        method,
        extra,
        listed: None,
        plan,
        user,
        org,
        named: q.named_org.org(),
        epoch,
        visible_to,
        shared_logs_only,
        age: StateAge::Present,
        head: q.head.number,
        rests_on_pin: false,
        own_only: false,
        no_revert_data: false,
        picked: None,
        beside: q.caller.beside().map(|beside| Box::new(signed_by(beside, q))),
    }
}

/// How a call without a target is answered.
pub(super) fn plain_plan(call: &Call) -> Plan {
    if matches!(call, Call::Live(_)) {
        return Plan::Live;
    }
    let local = Call::Plain(Method::Accounts) == *call
        || Call::Plain(Method::Coinbase) == *call
        || matches!(call, Call::Sha3(_) | Call::UncleCount | Call::Uncle);
    if local { Plan::Local } else { Plan::Forward }
}
