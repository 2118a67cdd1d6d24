//! Views of the state of one address (spec/30 section 5.1; K8, decisions 5 and 37, HD6, HD11).
//!
//! State is shown without the changes of convicted transactions (HD28). To undo them, each view takes the number of the
//! block that the state was read at.

use super::{
    malformed_as,
    scan::{Malformed, Scan},
    shape::{self, Field, Object, Shape, ZERO_WORD},
};
use crate::{
    sealed::{Disclosed, RawJson, Sealed},
    visibility::Viewer,
};
use alloy_primitives::{Address, B256, U256, hex, keccak256};
use gw_evm::code::delegation;

/// The result of `eth_getBalance` (K8).
pub fn balance(viewer: &Viewer<'_>, address: Address, block: u64, answer: Sealed<RawJson>) -> Disclosed {
    let shown = |actual| viewer.user().snapshot.shown_balance(address, block, actual);
    if viewer.shows_account(address) {
        shown_quantity(answer, shown)
    } else {
        Disclosed::ZERO
    }
}

/// The result of `eth_getTransactionCount` (K8).
pub fn nonce(viewer: &Viewer<'_>, address: Address, block: u64, answer: Sealed<RawJson>) -> Disclosed {
    let shown = |actual| viewer.user().snapshot.shown_nonce(address, block, actual);
    if viewer.shows_account(address) {
        shown_quantity(answer, shown)
    } else {
        Disclosed::ZERO
    }
}

fn shown_quantity(answer: Sealed<RawJson>, shown: impl FnOnce(U256) -> U256) -> Disclosed {
    malformed_as(Disclosed::ZERO, || {
        Ok(Disclosed::text(number(shown(parse_number(whole_text(&answer)?)?))))
    })
}

fn whole_text(answer: &Sealed<RawJson>) -> Result<&str, Malformed> {
    Scan::whole(answer.peek().text().ok_or(Malformed)?)
}

fn parse_number(value: &str) -> Result<U256, Malformed> {
    Shape::Quantity.check(value)?;
    serde_json::from_str(value).map_err(|_| Malformed)
}

fn number(value: U256) -> String {
    format!("\"{value:#x}\"")
}

/// A quantity that may be disclosed to all callers; a malformed one becomes zero.
pub(super) fn quantity(answer: Sealed<RawJson>) -> Disclosed {
    checked(answer, Shape::Quantity, Disclosed::ZERO)
}

/// The result of `eth_getCode` (decision 37). An address without code is `0x` for all viewers. Code is shown to
/// viewers with access to the contract and to the owner of a delegated wallet; the code of shared infrastructure is
/// shown to all viewers. For other viewers a delegated wallet has no code (HD40). `None` is the opaque 404.
#[must_use]
pub fn code(viewer: &Viewer<'_>, address: Address, block: u64, answer: Sealed<RawJson>) -> Option<Disclosed> {
    let code = match viewer.user().snapshot.shown_code(address, block) {
        // Withheld changes of the code are undone (HD28).
        Some(shown) => Disclosed::text(format!("\"{}\"", hex::encode_prefixed(shown))),
        None => checked(answer, Shape::Bytes, Disclosed::NULL),
    };
    if code.is_malformed() {
        return None;
    }
    let is_open = || viewer.all(|viewer| !viewer.is_closed(address));
    let has_access = || is_open() && (viewer.reaches_code(address) || viewer.owns(address));
    // HD17: a viewer restricted to own transactions sees only the absence of code.
    if !viewer.is_own_transactions_only() && (viewer.is_open_utility(address) || has_access()) {
        return Some(code);
    }
    is_wallet(code.as_str()).then_some(Disclosed::NO_BYTES)
}

/// Whether the result of `eth_getCode` is no code, or only a delegation (EIP-7702).
#[must_use]
pub fn is_no_code(answer: &Sealed<RawJson>) -> bool {
    answer.peek().text().is_some_and(|text| is_wallet(text.trim()))
}

/// Whether the result of `eth_getCode` is no code at all, not even a delegation (EIP-7702).
pub fn runs_no_code(answer: &Sealed<RawJson>) -> bool {
    answer.peek().text().is_some_and(|text| text.trim() == "\"0x\"")
}

/// Whether this is the code of a wallet: no code, or a delegation (EIP-7702).
fn is_wallet(code: &str) -> bool {
    let digits = code.strip_prefix("\"0x").and_then(|code| code.strip_suffix('"'));
    let code = digits.and_then(|digits| hex::decode(digits).ok());
    code.is_some_and(|code| code.is_empty() || delegation(&code).is_some())
}

/// The result of `eth_getStorageAt`, for a slot that the access rules permitted.
pub fn storage(viewer: &Viewer<'_>, address: Address, slot: B256, block: u64, answer: Sealed<RawJson>) -> Disclosed {
    malformed_as(Disclosed::NULL, || {
        let actual = shape::word(whole_text(&answer)?)?;
        let shown = viewer.user().snapshot.shown_slot(address, slot, block, actual);
        Ok(Disclosed::text(format!("\"{shown:#x}\"")))
    })
}

const PROOF: [Field; 7] = [
    Field("address", Shape::Fixed(20)),
    Field("accountProof", Shape::Unchecked),
    Field("balance", Shape::Quantity),
    Field("codeHash", Shape::Fixed(32)),
    Field("nonce", Shape::Quantity),
    Field("storageHash", Shape::Fixed(32)),
    Field("storageProof", Shape::Unchecked),
];

const STORAGE_PROOF: [Field; 3] = [
    Field("key", Shape::Quantity),
    Field("value", Shape::Quantity),
    Field("proof", Shape::Unchecked),
];

/// The result of `eth_getProof` for a contract that the viewer has access to and slots that the access rules permitted.
/// Under K9 the account proof is empty, because it contains the state root and nodes of other accounts (HD11). For a
/// viewer who may not read every slot, K9 also makes the storage proofs empty and the storage root zero: proofs contain
/// values of other slots, and the root confirms guesses of them. While any change is withheld, the proofs of all
/// accounts are empty, since empty proofs of single accounts would reveal which ones are affected.
pub fn proof(viewer: &Viewer<'_>, address: Address, block: u64, answer: Sealed<RawJson>) -> Disclosed {
    malformed_as(Disclosed::NULL, || {
        let raw = answer.open();
        let text = Scan::whole(raw.text().ok_or(Malformed)?)?;
        let object = Object::read(&mut Scan::new(text), &PROOF)?;
        if object.address("address")? != address {
            return Err(Malformed);
        }
        let snapshot = viewer.user().snapshot;
        let withholds = snapshot.withholds_state(block);
        let hides_slots = withholds || (viewer.policy_settings().hide_block_roots && !viewer.reads_every_slot(address));
        let mut slots = String::from("[");
        Scan::new(object.get("storageProof")?).list(|scan| {
            if slots.len() > 1 {
                slots.push(',');
            }
            let slot = Object::read(scan, &STORAGE_PROOF)?;
            check_nodes(slot.get("proof")?)?;
            let key = B256::from(parse_number(slot.get("key")?)?);
            let actual = B256::from(parse_number(slot.get("value")?)?);
            let shown = number(snapshot.shown_slot(address, key, block, actual).into());
            slot.write(&mut slots, |name| match name {
                "proof" => hides_slots.then_some("[]"),
                "value" => withholds.then_some(shown.as_str()),
                _ => None,
            });
            Ok(())
        })?;
        slots.push(']');
        let account = object.get("accountProof")?;
        check_nodes(account)?;
        let account = if withholds || viewer.policy_settings().hide_block_roots {
            "[]"
        } else {
            account
        };
        let shows_account = viewer.shows_account(address);
        let balance = number(snapshot.shown_balance(address, block, parse_number(object.get("balance")?)?));
        let nonce = number(snapshot.shown_nonce(address, block, parse_number(object.get("nonce")?)?));
        let code = snapshot
            .shown_code(address, block)
            .map(|code| format!("\"{:#x}\"", keccak256(code)));
        let mut out = String::with_capacity(text.len());
        object.write(&mut out, |name| match name {
            "accountProof" => Some(account),
            "storageProof" => Some(&slots),
            "storageHash" => hides_slots.then_some(ZERO_WORD),
            "balance" | "nonce" if !shows_account => Some("\"0x0\""),
            "balance" => withholds.then_some(balance.as_str()),
            "nonce" => withholds.then_some(nonce.as_str()),
            "codeHash" => code.as_deref(),
            _ => None,
        });
        Ok(Disclosed::text(out))
    })
}

fn check_nodes(list: &str) -> Result<(), Malformed> {
    Scan::new(list).list(|scan| Shape::Bytes.check(scan.value()?))
}

/// The transaction hash in the result of `eth_sendTransaction`. The sender may see it, and the gateway records it.
#[must_use]
pub fn sent_hash(answer: &Sealed<RawJson>) -> Option<B256> {
    shape::word(Scan::whole(answer.peek().text()?).ok()?).ok()
}

/// The upstream result if it has this shape and is not `null`, else `otherwise`.
pub(super) fn checked(answer: Sealed<RawJson>, shape: Shape, otherwise: Disclosed) -> Disclosed {
    malformed_as(otherwise, || {
        let raw = answer.open();
        let text = Scan::whole(raw.text().ok_or(Malformed)?)?;
        shape.check(text)?;
        if text == "null" {
            Err(Malformed)
        } else {
            Ok(Disclosed::text(text.to_owned()))
        }
    })
}
