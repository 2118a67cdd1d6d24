//! What only sends ask: whose transaction it is (HD13), how far ahead its nonce is, who may see it (W4), and which
//! addresses it will create (R1, HD14).

use super::{checks::Refused, permit::Permit, subject::Signed, trace::TraceVerdict};
use crate::{
    knobs::{Knobs, RawSenderPolicy},
    snapshot::{AddressLink, LinkKind, Snapshot, User},
    visibility::owns,
};
use gw_evm::{CallRequest, ParamError, VisibleTo};
use gw_types::{Address, DenyReason, ExternalId, OrgId, UserId};
use std::cmp::Reverse;

/// The longest DID accepted as a recipient (W4).
const MAX_RECIPIENT_LEN: usize = 240;

/// X10, decision 38: names the route that makes the sender valid.
pub(super) fn invalid_sender() -> Refused {
    let text = "invalid sender: not linked to you; link it first, see /eth/link/challenge";
    Refused::Invalid(ParamError::invalid(text), DenyReason::SenderNotLinked)
}

/// HD13: whether the caller may send in this sender's name.
///
/// `own_only`: creations and `visibleTo` decide about more than one transaction, so under every policy they need an
/// owner, or a sender that nobody ever linked: what a former holder signed is not the next one's to relay.
///
/// `orgs` judge the call: their bans and KYC marks count beside the platform's.
pub(super) fn check_sender(
    snapshot: &Snapshot,
    user: UserId,
    sender: Address,
    own_only: bool,
    orgs: &[OrgId],
    knobs: &Knobs,
) -> Result<(), DenyReason> {
    let links = snapshot.links_at(sender);
    // Sends are gated by KYC under either setting: a proved owner who may not send may not be relayed either.
    let barred = |owner: UserId| {
        let shut = |owner: &User| {
            let verified = owner.kyc || orgs.iter().any(|org| snapshot.is_verified_in(owner.id, *org));
            let banned = snapshot.shuts_out(owner) || orgs.iter().any(|org| snapshot.is_banned_in(owner.id, *org));
            banned || !verified || snapshot.is_suspended(owner.id)
        };
        snapshot.user(owner).is_none_or(|owner| shut(owner))
    };
    if links
        .iter()
        .any(|link| link.kind == LinkKind::User && link.user != user && barred(link.user))
    {
        return Err(DenyReason::SenderNotOwned);
    }
    let owned = owns(snapshot, user, sender);
    // HD37: nor may who unlinked the address, or lost the link or the account, be relayed to slip by what is decided about them.
    if !owned && links.is_empty() && snapshot.was_unlinked(sender) {
        return Err(DenyReason::SenderNotOwned);
    }
    let by_policy = match knobs.raw_sender_policy {
        RawSenderPolicy::Owner => owned,
        RawSenderPolicy::Unclaimed => owned || links.is_empty(),
        RawSenderPolicy::Any => true,
    };
    let allowed = by_policy && (owned || !own_only || !snapshot.was_ever_linked(sender));
    if allowed {
        Ok(())
    } else {
        Err(DenyReason::SenderNotOwned)
    }
}

/// HD13: a signed transaction may not lie far ahead of the sender's pending nonce, where it would outlive revocation.
///
/// HD28: what calls code may not lie ahead at all. Its trace ran where it will not run, so it could wait for a block in which it
/// does something else, and many such could wait together before the first is found out. A payment without data to an address
/// without code runs nothing. A creation may wait as well (HD14), because tools deploy in parallel: what it makes is judged in
/// its block like anything else, and is its organization's whether it was reserved or not (HD27).
pub fn check_nonce(permit: &Permit, verdict: &TraceVerdict, pending: u64, knobs: &Knobs) -> Result<(), ParamError> {
    let Some(signed) = Signed::of(permit.call()) else {
        return Ok(());
    };
    // What the node signs gets the next nonce. Who asks for another one may be asking a second time: it must not be sent twice.
    if signed.signed_nonce.is_none() && signed.request.nonce.is_some_and(|nonce| nonce != pending) {
        return Err(ParamError::invalid(
            "nonce: not the sender's next one; leave it out to take that",
        ));
    }
    let Some(nonce) = signed.signed_nonce.filter(|nonce| *nonce > pending) else {
        return Ok(());
    };
    if nonce > pending.saturating_add(knobs.raw_nonce_gap_max) {
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
    let calls = request
        .to
        .as_ref()
        .is_some_and(|to| !request.input.is_empty() || has_code(to));
    if calls || !request.authorization_list.is_empty() {
        let text = "nonce ahead of the pending transactions: a contract is called in its turn only, send what comes before it \
                    first";
        return Err(ParamError::invalid(text));
    }
    Ok(())
}

/// The raw entries of a send that names recipients, if it may name any as far as the call alone tells (decision 57).
/// Counted before any look-up (`VisibleTo::MAX`).
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

/// Who may see the transaction besides its parties (W4, R26): asked after the trace, before anything is forwarded.
pub fn recipients(snapshot: &Snapshot, permit: &Permit, verdict: &TraceVerdict) -> Result<Vec<ExternalId>, ParamError> {
    if permit.visible_to.is_empty() {
        return Ok(Vec::new());
    }
    let signed = Signed::of(permit.call()).ok_or_else(not_a_call)?;
    let entries = names_recipients(&permit.visible_to, signed.request)?;
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

/// The addresses a permitted send will create, to be reserved before it is forwarded (R1). None for a nonce above the
/// pending one (HD14).
///
/// The trace ran with the sender's present nonce; the top-level address follows from the transaction's own.
pub fn created_addresses(permit: &Permit, verdict: &TraceVerdict, pending: u64) -> Vec<Address> {
    let Some(signed) = Signed::of(permit.call()) else {
        return Vec::new();
    };
    let nonce = signed.signed_nonce.unwrap_or(pending);
    if nonce > pending {
        return Vec::new();
    }
    let top = signed.request.to.is_none().then(|| signed.sender.create(nonce));
    top.into_iter()
        .chain(verdict.created_inside().iter().copied())
        .collect()
}

/// Who holds an address: a proved link before an inferred one, then the newest (LK-5, W4).
fn holder(snapshot: &Snapshot, address: Address) -> Option<&AddressLink> {
    snapshot
        .links_at(address)
        .iter()
        .max_by_key(|link| (link.kind, link.verified_at, Reverse(link.id)))
}
