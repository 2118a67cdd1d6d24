//! Assembles the effects of a transaction from its runs and its calldata.

use super::{
    Effect, EffectKind, Effects, EffectsError, Evidence, MAX_EFFECTS, PartyRole, ScreenedParty, Transaction, calls,
    containers::{self, StaticCall, Unpacked},
    events, native, parties,
    storage::{self, HashBudget, StorageEvidence, TokenRun},
};
use crate::token::{Asset, Token};
use alloy_primitives::{U512, map::AddressSet};
use gw_evm::{
    abi::{possible_address, possible_addresses},
    trace::{Frame, FrameKind, Trace},
};
use gw_types::{Address, U256};
use std::collections::{BTreeMap, BTreeSet};

/// The effects of a transaction.
pub(super) fn effects(transaction: &Transaction<'_>) -> Result<Effects, EffectsError> {
    let target = transaction.request.to.unwrap_or_else(|| computed(transaction));
    let unpacked = unpacked(transaction, target)?;
    let from_calldata = static_effects(&unpacked, transaction)?;
    let mut screened: Vec<ScreenedParty> = parties::of_authorizations(transaction);
    screened.extend(static_parties(&unpacked, &from_calldata));
    let mut runs = Vec::with_capacity(transaction.runs.len());
    for trace in transaction.runs {
        runs.push(match trace.frames.first() {
            Some(top) if !top.failed => observed_effects(trace, transaction, top, &mut screened)?,
            Some(_) | None => from_calldata.clone(),
        });
    }
    if runs.is_empty() {
        runs.push(from_calldata);
    }
    if runs.iter().any(|run| run.len() > MAX_EFFECTS) {
        return Err(EffectsError::TooManyEffects);
    }
    Ok(Effects::from_parts(transaction.sender, Some(target), runs, screened))
}

/// The address of the contract that the transaction creates (CO-24).
fn computed(transaction: &Transaction<'_>) -> Address {
    transaction.sender.create(transaction.nonce)
}

/// The top-level call with everything that its calldata holds. The init code of a creation holds nothing.
fn unpacked<'a>(transaction: &Transaction<'a>, target: Address) -> Result<Unpacked<'a>, EffectsError> {
    let request = transaction.request;
    let input: &[u8] = if request.to.is_some() { &request.input } else { &[] };
    let value = request.value.unwrap_or_default();
    containers::unpack(StaticCall::new(transaction.sender, target, value, input))
}

/// The effects that calldata shows. They count if there is no successful run.
fn static_effects(unpacked: &Unpacked<'_>, transaction: &Transaction<'_>) -> Result<Vec<Effect>, EffectsError> {
    let mut effects = Vec::new();
    for (index, call) in unpacked.calls.iter().enumerate() {
        if !call.value.is_zero() {
            effects.push(native::payment(call.from, call.account, call.value, Evidence::Calldata));
        }
        if call.is_delegate() || (index == 0 && transaction.request.to.is_none()) {
            continue;
        }
        effects.extend(calls::transfers(call.account, call.from, call.input));
        effects.extend(calls::allowance(call.account, call.from, call.input));
        if effects.len() > MAX_EFFECTS {
            return Err(EffectsError::TooManyEffects);
        }
    }
    Ok(effects)
}

/// The parties that calldata names.
fn static_parties(unpacked: &Unpacked<'_>, effects: &[Effect]) -> Vec<ScreenedParty> {
    let mut parties: Vec<ScreenedParty> = effects.iter().flat_map(parties::of_effect).collect();
    for call in &unpacked.calls {
        let called = [call.account, call.code].map(|address| ScreenedParty {
            role: PartyRole::CalledContract,
            address,
        });
        parties.extend(called);
    }
    let named = unpacked.parties.iter().map(|(role, address)| ScreenedParty {
        role: *role,
        address: *address,
    });
    parties.extend(named);
    parties
}

/// The effects of a run whose top frame succeeded.
fn observed_effects(
    trace: &Trace,
    transaction: &Transaction<'_>,
    top: &Frame,
    screened: &mut Vec<ScreenedParty>,
) -> Result<Vec<Effect>, EffectsError> {
    let mut effects = native::effects(trace, transaction);
    let mut logged = Vec::new();
    for log in trace.frames.iter().flat_map(|frame| &frame.logs) {
        let content = events::read(log);
        logged.extend(content.effects);
        let named = content.parties.into_iter();
        screened.extend(named.map(|(role, address)| ScreenedParty { role, address }));
        if logged.len() > MAX_EFFECTS {
            return Err(EffectsError::TooManyEffects);
        }
    }
    let ordered = orders(trace, transaction)?;
    effects.extend(beyond_logs(trace, transaction, &logged, &ordered)?);
    effects.extend(logged);
    effects.extend(allowances(trace, &effects));
    screened.extend(parties::of_run(trace));
    if top.is_creation()
        && let Some(traced) = top.to
    {
        // The run used the nonce of its state, which may not be that of the transaction.
        replace_address(&mut effects, screened, traced, computed(transaction));
    }
    Ok(effects)
}

/// The allowances that calls give and no log records.
fn allowances(trace: &Trace, effects: &[Effect]) -> Vec<Effect> {
    let ends = |effect: &Effect| (effect.token, effect.from, effect.to);
    let approvals = effects.iter().filter(|effect| effect.kind == EffectKind::Approval);
    let mut known: BTreeSet<_> = approvals.map(ends).collect();
    let mut given = Vec::new();
    for (to, frame) in ordinary_calls(trace) {
        let allowance = calls::allowance(to, frame.from, &frame.input);
        given.extend(allowance.filter(|effect| !effect.to.is_zero() && known.insert(ends(effect))));
    }
    given
}

/// Replaces an address everywhere.
fn replace_address(effects: &mut [Effect], parties: &mut [ScreenedParty], old: Address, new: Address) {
    let replace = |address: &mut Address| {
        if *address == old {
            *address = new;
        }
    };
    for effect in effects {
        replace(&mut effect.from);
        replace(&mut effect.to);
        if effect.token == Token::Contract(old) {
            effect.token = Token::Contract(new);
        }
    }
    parties.iter_mut().for_each(|party| replace(&mut party.address));
}

/// The calls of a run that have an effect on the called contract.
fn ordinary_calls(trace: &Trace) -> impl Iterator<Item = (Address, &Frame)> {
    let kept = trace
        .frames
        .iter()
        .filter(|frame| !frame.undone && frame.kind == FrameKind::Call);
    kept.filter_map(|frame| Some((frame.to?, frame)))
}

/// The transfers that the top-level call orders, and inner calls of tokens whose storage is evidence.
fn orders(trace: &Trace, transaction: &Transaction<'_>) -> Result<Vec<Effect>, EffectsError> {
    let mut orders = Vec::new();
    for (to, frame) in ordinary_calls(trace) {
        if frame.depth == 0 || transaction.balance_tokens.contains(&to) {
            orders.extend(calls::transfers(to, frame.from, &frame.input));
        }
        if orders.len() > MAX_EFFECTS {
            return Err(EffectsError::TooManyEffects);
        }
    }
    Ok(orders)
}

/// What storage and orders show beyond the logs.
fn beyond_logs(
    trace: &Trace,
    transaction: &Transaction<'_>,
    logged: &[Effect],
    ordered: &[Effect],
) -> Result<Vec<Effect>, EffectsError> {
    let evidence = storage_evidence(trace, transaction, logged, ordered)?;
    let paid: BTreeSet<(Token, Address)> = logged.iter().map(|effect| (effect.token, effect.to)).collect();
    let is_replaced = |effect: &Effect| {
        let contract = effect.token.contract();
        let shown = contract.and_then(|contract| evidence.get(&contract));
        shown.is_some_and(|shown| {
            shown.shows_balances && (shown.risen.contains(&effect.to) || paid.contains(&(effect.token, effect.to)))
        })
    };
    let mut effects: Vec<Effect> = missing(logged, ordered);
    effects.retain(|effect| !is_replaced(effect));
    effects.extend(evidence.into_values().flat_map(|evidence| evidence.surplus));
    Ok(effects)
}

/// What was ordered beyond the logs, by asset and recipient. The payer does not count: a token that trusts a forwarder
/// logs the payer that the forwarder names. The order of a collectible by `transferFrom` reads like one of an amount; a
/// log of that id answers it.
fn missing(logged: &[Effect], ordered: &[Effect]) -> Vec<Effect> {
    type Key = (Asset, Address);
    let key = |effect: &Effect| (effect.asset(), effect.to);
    let sums = |effects: &[Effect]| {
        let mut sums: BTreeMap<Key, U512> = BTreeMap::new();
        for effect in effects {
            let sum = sums.entry(key(effect)).or_default();
            *sum = sum.saturating_add(U512::saturating_from(effect.amount.unwrap_or_default()));
        }
        sums
    };
    let logged_sums = sums(logged);
    let ids: BTreeSet<Key> = logged
        .iter()
        .filter(|log| log.kind == EffectKind::Erc721)
        .map(key)
        .collect();
    let is_collectible = |order: &Effect| {
        let asset = Asset {
            id: order.amount,
            ..order.asset()
        };
        ids.contains(&(asset, order.to))
    };
    let amounts: Vec<Effect> = ordered
        .iter()
        .filter(|order| order.id.is_some() || !is_collectible(order))
        .copied()
        .collect();
    let mut ordered_sums = sums(&amounts);
    let mut missing = Vec::new();
    for order in amounts {
        // The first order of a key stands for all of them.
        let Some(sum) = ordered_sums.remove(&key(&order)) else {
            continue;
        };
        let shown = logged_sums.get(&key(&order)).copied().unwrap_or_default();
        let amount = sum.saturating_sub(shown).saturating_to::<U256>();
        if !amount.is_zero() {
            missing.push(Effect {
                amount: Some(amount),
                ..order
            });
        }
    }
    missing
}

/// What the storage of each token with changed slots shows.
fn storage_evidence(
    trace: &Trace,
    transaction: &Transaction<'_>,
    logged: &[Effect],
    ordered: &[Effect],
) -> Result<BTreeMap<Address, StorageEvidence>, EffectsError> {
    let mut evidence = BTreeMap::new();
    let Some(changes) = &trace.changes else {
        return Ok(evidence);
    };
    let is_token = |address: &Address| transaction.balance_tokens.contains(address);
    let changed = changes
        .iter()
        .filter(|(address, change)| !change.storage.is_empty() && is_token(address));
    let mut budget = HashBudget::new();
    let mut all = None;
    for (token, change) in changed {
        let all = all.get_or_insert_with(|| mentioned(trace, transaction.balance_tokens));
        let of_token = |effect: &&Effect| effect.token == Token::Contract(*token);
        let transfers: Vec<Effect> = logged
            .iter()
            .filter(of_token)
            .filter(|log| log.is_transfer())
            .copied()
            .collect();
        let named = || transfers.iter().chain(ordered.iter().filter(of_token));
        let run = TokenRun {
            token: *token,
            change,
            near: &named().flat_map(|effect| [effect.from, effect.to]).collect(),
            payers: &named().map(|effect| effect.from).collect(),
            logged: &transfers,
            all,
            callers: &ordinary_calls(trace)
                .filter(|(to, _)| to == token)
                .map(|(_, frame)| frame.from)
                .collect(),
            sender: transaction.sender,
        };
        evidence.insert(*token, storage::evidence(&run, &mut budget)?);
    }
    Ok(evidence)
}

/// Every address that a run mentions: parties of frames, and words of calldata, of logs, and of the slots that a token
/// changed.
fn mentioned(trace: &Trace, tokens: &AddressSet) -> BTreeSet<Address> {
    let mut all: BTreeSet<Address> = trace.touched.keys().copied().collect();
    let words = |data: &[u8]| possible_addresses(data).map(|word| word.address).collect::<Vec<_>>();
    for frame in trace.frames.iter().filter(|frame| !frame.undone) {
        all.insert(frame.from);
        all.extend(frame.to);
        all.extend(words(frame.input.get(4..).unwrap_or_default()));
        for log in &frame.logs {
            all.extend(log.topics.iter().filter_map(possible_address));
            all.extend(words(&log.data));
        }
    }
    for (address, change) in trace.changes.iter().flatten() {
        if tokens.contains(address) {
            let values = change.storage.values().chain(change.before.storage.values());
            all.extend(values.filter_map(possible_address));
        }
    }
    all
}
