//! Checks that apply only to sends: the owner of the sender address (HD13), the nonce, the recipients of a `visibleTo`
//! list (W4), and the addresses that the send will create (R1, HD14).

use super::{
    permit::{CheckError, Permit},
    resource::Signed,
    trace::TraceVerdict,
};
use crate::{
    principal::owns,
    settings::{PolicySettings, RawSenderPolicy},
    snapshot::{AddressLink, LinkKind, Snapshot, User},
};
use gw_evm::{CallRequest, ParamError, VisibleTo};
use gw_types::{Address, DenyReason, ExternalId, OrgId, UserId};
use std::cmp::Reverse;

/// The longest DID accepted as a recipient, in bytes (W4).
const MAX_RECIPIENT_LEN: usize = 240;

/// The error for a sender that is not linked to the caller. It names the route that links it (X10, decision 38).
pub(super) fn invalid_sender() -> CheckError {
    let text = "invalid sender: not linked to you; link it first, see /eth/link/challenge";
    CheckError::Invalid(ParamError::invalid(text), DenyReason::SenderNotLinked)
}

/// Checks that the caller may forward transactions of this sender (HD13).
///
/// `own_only` is set for creations and sends with `visibleTo`, whose effect goes beyond one transaction. Under every
/// policy they need a sender that the caller owns, or that was never linked to any user: a later owner of an address
/// must not forward what a former owner signed.
///
/// `orgs` are the organizations in scope of the call. Their bans and KYC decisions count in addition to those of the
/// platform.
///
/// # Errors
/// `SenderNotOwned`.
pub(super) fn check_sender(
    snapshot: &Snapshot,
    user: UserId,
    sender: Address,
    own_only: bool,
    orgs: &[OrgId],
    policy_settings: &PolicySettings,
) -> Result<(), DenyReason> {
    let links = snapshot.links_at(sender);
    // Sends require KYC under either gate: transactions of a proved owner who may not send must not be forwarded by
    // others either.
    let is_barred = |owner: UserId| {
        let may_not_send = |owner: &User| {
            let is_verified = owner.kyc || orgs.iter().any(|org| snapshot.is_verified_in(owner.id, *org));
            let is_banned = snapshot.is_excluded(owner) || orgs.iter().any(|org| snapshot.is_banned_in(owner.id, *org));
            is_banned || !is_verified || snapshot.is_suspended(owner.id)
        };
        snapshot.user(owner).is_none_or(|owner| may_not_send(owner))
    };
    if links
        .iter()
        .any(|link| link.kind == LinkKind::User && link.user != user && is_barred(link.user))
    {
        return Err(DenyReason::SenderNotOwned);
    }
    let is_owned = owns(snapshot, user, sender);
    // HD37: a person must not evade a ban or suspension by unlinking the address or deleting the account and having
    // others forward the transactions.
    if !is_owned && links.is_empty() && snapshot.was_unlinked(sender) {
        return Err(DenyReason::SenderNotOwned);
    }
    let is_allowed_by_policy = match policy_settings.raw_sender_policy {
        RawSenderPolicy::Owner => is_owned,
        RawSenderPolicy::Unclaimed => is_owned || links.is_empty(),
        RawSenderPolicy::Any => true,
    };
    let is_allowed = is_allowed_by_policy && (is_owned || !own_only || !snapshot.was_ever_linked(sender));
    if is_allowed {
        Ok(())
    } else {
        Err(DenyReason::SenderNotOwned)
    }
}

/// Checks the nonce of a send against `pending`, the sender's next nonce.
///
/// HD13: the nonce of a signed transaction must not be far ahead, since the transaction could outlive a revocation of
/// the sender's rights while it waits.
///
/// HD28: the nonce of a transaction that calls code must not be ahead at all. The transaction would run on other state
/// than its trace, so it could wait for a block in which it does something else, and several such transactions could
/// wait before the first violation is detected. A payment without data to an address without code runs no code, so its
/// nonce may be ahead. The nonce of a creation may be ahead, too (HD14), because tools deploy in parallel: the created
/// contract is validated in its block and belongs to the sender's organization whether it was reserved or not (HD27).
///
/// # Errors
/// The text for the caller.
pub fn check_nonce(
    permit: &Permit,
    verdict: &TraceVerdict,
    pending: u64,
    policy_settings: &PolicySettings,
) -> Result<(), ParamError> {
    let Some(signed) = Signed::from_call(permit.call()) else {
        return Ok(());
    };
    // The node signs with the next nonce. A request for another nonce may be a repetition, which must not be sent
    // twice.
    if signed.signed_nonce.is_none() && signed.request.nonce.is_some_and(|nonce| nonce != pending) {
        return Err(ParamError::invalid(
            "nonce: not the sender's next one; leave it out to take that",
        ));
    }
    let Some(nonce) = signed.signed_nonce.filter(|nonce| *nonce > pending) else {
        return Ok(());
    };
    if nonce > pending.saturating_add(policy_settings.raw_nonce_gap_max) {
        return Err(ParamError::invalid("nonce too far ahead of the pending transactions"));
    }
    let has_code = |to: &Address| {
        verdict
            .trace()
            .touched
            .get(to)
            .is_some_and(|account| !account.code.is_empty())
    };
    let request = signed.request;
    let calls_code = request
        .to
        .as_ref()
        .is_some_and(|to| !request.input.is_empty() || has_code(to));
    if calls_code || !request.authorization_list.is_empty() {
        let text = "nonce ahead of the pending transactions: a contract is called in its turn only, send what comes \
                    before it first";
        return Err(ParamError::invalid(text));
    }
    Ok(())
}

/// The unparsed recipients of a send, whose number is checked before any look-up (`VisibleTo::MAX`).
///
/// # Errors
/// Too many entries, or the send is not a contract call as far as the call alone shows (decision 57).
pub(super) fn names_recipients<'a>(
    visible_to: &'a VisibleTo,
    request: &CallRequest,
) -> Result<&'a [String], ParamError> {
    let entries = visible_to.entries()?;
    if request.to.is_some() && !request.input.is_empty() {
        Ok(entries)
    } else {
        Err(not_a_call())
    }
}

fn not_a_call() -> ParamError {
    ParamError::invalid("visibleTo: only for contract calls")
}

/// The recipients who may see the transaction besides its parties (W4, R26). Computed after the trace and before the
/// send is forwarded.
///
/// # Errors
/// The send has `visibleTo` entries but is not a contract call, or has too many entries.
pub fn recipients(snapshot: &Snapshot, permit: &Permit, verdict: &TraceVerdict) -> Result<Vec<ExternalId>, ParamError> {
    if permit.call.visible_to.is_empty() {
        return Ok(Vec::new());
    }
    let signed = Signed::from_call(permit.call()).ok_or_else(not_a_call)?;
    let entries = names_recipients(&permit.call.visible_to, signed.request)?;
    if !verdict.target_has_code {
        return Err(not_a_call());
    }
    let mut recipients: Vec<ExternalId> = Vec::with_capacity(entries.len());
    for entry in entries {
        let recipient = match entry.parse::<Address>() {
            Ok(address) => holder(snapshot, address)
                .and_then(|link| snapshot.user(link.user))
                .map(|user| user.external_id.clone()),
            Err(_) if entry.len() <= MAX_RECIPIENT_LEN => ExternalId::new(entry).ok().filter(ExternalId::is_did),
            Err(_) => None,
        };
        if let Some(recipient) = recipient
            && !recipients.contains(&recipient)
        {
            recipients.push(recipient);
        }
    }
    Ok(recipients)
}

/// The addresses that a permitted send will create, to be reserved before it is forwarded (R1). Empty for a nonce above
/// the pending one (HD14).
///
/// The trace ran with the sender's current nonce, so the address of a top-level creation is computed from the
/// transaction's own nonce instead.
pub fn created_addresses(permit: &Permit, verdict: &TraceVerdict, pending: u64) -> Vec<Address> {
    let Some(signed) = Signed::from_call(permit.call()) else {
        return Vec::new();
    };
    let nonce = signed.signed_nonce.unwrap_or(pending);
    if nonce > pending {
        return Vec::new();
    }
    let top_level = signed.request.to.is_none().then(|| signed.sender.create(nonce));
    top_level
        .into_iter()
        .chain(verdict.created_inside().iter().copied())
        .collect()
}

/// The link that determines the holder of an address: proved links before inferred ones, then the newest (LK-5, W4).
fn holder(snapshot: &Snapshot, address: Address) -> Option<&AddressLink> {
    snapshot
        .links_at(address)
        .iter()
        .max_by_key(|link| (link.kind, link.verified_at, Reverse(link.id)))
}
