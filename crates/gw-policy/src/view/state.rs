//! State of one address (spec/30 section 5.1; K8, decisions 5 and 37, HD6, HD11).
//!
//! What convicted transactions changed is shown as it was before them, to everybody (HD28): each view takes the number of
//! the block that it was read at.

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

/// `eth_getBalance` (K8).
pub fn balance(viewer: &Viewer<'_>, address: Address, block: u64, answer: Sealed<RawJson>) -> Disclosed {
    let shown = |held| viewer.person().snapshot.shown_balance(address, block, held);
    if viewer.shows_account(address) {
        shown_quantity(answer, shown)
    } else {
        Disclosed::ZERO
    }
}

/// `eth_getTransactionCount` (K8).
pub fn nonce(viewer: &Viewer<'_>, address: Address, block: u64, answer: Sealed<RawJson>) -> Disclosed {
    let shown = |held| viewer.person().snapshot.shown_nonce(address, block, held);
    if viewer.shows_account(address) {
        shown_quantity(answer, shown)
    } else {
        Disclosed::ZERO
    }
}

fn shown_quantity(answer: Sealed<RawJson>, shown: impl FnOnce(U256) -> U256) -> Disclosed {
    malformed_as(Disclosed::ZERO, || {
        Ok(Disclosed::text(number(shown(read_number(whole(&answer)?)?))))
    })
}

fn whole(answer: &Sealed<RawJson>) -> Result<&str, Malformed> {
    Scan::whole(answer.peek().text().ok_or(Malformed)?)
}

fn read_number(value: &str) -> Result<U256, Malformed> {
    Shape::Quantity.check(value)?;
    serde_json::from_str(value).map_err(|_| Malformed)
}

fn number(value: U256) -> String {
    format!("\"{value:#x}\"")
}

/// A quantity that may leave; anything else is zero.
pub(super) fn quantity(answer: Sealed<RawJson>) -> Disclosed {
    checked(answer, Shape::Quantity, Disclosed::ZERO)
}

/// `eth_getCode` (decision 37): no code is `0x`, whoever owns the address; code is for those who reach the contract,
/// for the owner of a delegated wallet, and shared infrastructure's for everybody. To everybody else a delegated wallet
/// is a plain one (HD40). `None` is the opaque 404.
#[must_use]
pub fn code(viewer: &Viewer<'_>, address: Address, block: u64, answer: Sealed<RawJson>) -> Option<Disclosed> {
    let code = match viewer.person().snapshot.shown_code(address, block) {
        Some(shown) => Disclosed::text(format!("\"{}\"", hex::encode_prefixed(shown))),
        None => checked(answer, Shape::Bytes, Disclosed::NULL),
    };
    if code.is_malformed() {
        return None;
    }
    let open = || viewer.all(|person| !person.is_closed(address));
    let reached = || open() && (viewer.reaches_code(address) || viewer.owns(address));
    // HD17: whoever is shown own things only is told where no code is, and nothing of code.
    if !viewer.is_own_only() && (viewer.is_open_utility(address) || reached()) {
        return Some(code);
    }
    is_wallet(code.as_str()).then_some(Disclosed::NO_BYTES)
}

/// Whether the node's `eth_getCode` says that there is none, or a delegation only.
#[must_use]
pub fn is_no_code(answer: &Sealed<RawJson>) -> bool {
    answer.peek().text().is_some_and(|text| is_wallet(text.trim()))
}

/// Whether the account runs no code at all, not even another's (EIP-7702).
pub fn runs_no_code(answer: &Sealed<RawJson>) -> bool {
    answer.peek().text().is_some_and(|text| text.trim() == "\"0x\"")
}

/// Whether this is what a wallet has for code: nothing, or where it delegates to (EIP-7702).
fn is_wallet(code: &str) -> bool {
    let digits = code.strip_prefix("\"0x").and_then(|code| code.strip_suffix('"'));
    let code = digits.and_then(|digits| hex::decode(digits).ok());
    code.is_some_and(|code| code.is_empty() || delegation(&code).is_some())
}

/// `eth_getStorageAt`, for a slot the access rules permitted.
pub fn storage(viewer: &Viewer<'_>, address: Address, slot: B256, block: u64, answer: Sealed<RawJson>) -> Disclosed {
    malformed_as(Disclosed::NULL, || {
        let held = shape::word(whole(&answer)?)?;
        let shown = viewer.person().snapshot.shown_slot(address, slot, block, held);
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

/// `eth_getProof` of a contract the viewer reaches, for slots the access rules permitted. The account's own proof
/// would lead to the state root and past its neighbours: it is empty under K9 (HD11). So are, for whoever may not read
/// every slot, the proofs of slots: their nodes hold other slots' values, and the storage root confirms guesses at them.
/// While anything is withheld there are no nodes of any account, for they would tell which ones it is about.
pub fn proof(viewer: &Viewer<'_>, address: Address, block: u64, answer: Sealed<RawJson>) -> Disclosed {
    malformed_as(Disclosed::NULL, || {
        let raw = answer.open();
        let text = Scan::whole(raw.text().ok_or(Malformed)?)?;
        let object = Object::read(&mut Scan::new(text), &PROOF)?;
        if object.address("address")? != address {
            return Err(Malformed);
        }
        let snapshot = viewer.person().snapshot;
        let withholds = snapshot.withholds_state(block);
        let hides_slots = withholds || (viewer.knobs().hide_block_roots && !viewer.reads_every_slot(address));
        let mut slots = String::from("[");
        Scan::new(object.get("storageProof")?).list(|scan| {
            if slots.len() > 1 {
                slots.push(',');
            }
            let slot = Object::read(scan, &STORAGE_PROOF)?;
            nodes(slot.get("proof")?)?;
            let key = B256::from(read_number(slot.get("key")?)?);
            let held = B256::from(read_number(slot.get("value")?)?);
            let shown = number(snapshot.shown_slot(address, key, block, held).into());
            slot.write(&mut slots, |name| match name {
                "proof" => hides_slots.then_some("[]"),
                "value" => withholds.then_some(shown.as_str()),
                _ => None,
            });
            Ok(())
        })?;
        slots.push(']');
        let account = object.get("accountProof")?;
        nodes(account)?;
        let account = if withholds || viewer.knobs().hide_block_roots {
            "[]"
        } else {
            account
        };
        let shows_account = viewer.shows_account(address);
        let balance = number(snapshot.shown_balance(address, block, read_number(object.get("balance")?)?));
        let nonce = number(snapshot.shown_nonce(address, block, read_number(object.get("nonce")?)?));
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

fn nodes(list: &str) -> Result<(), Malformed> {
    Scan::new(list).list(|scan| Shape::Bytes.check(scan.value()?))
}

/// The hash the node returned for `eth_sendTransaction`: its sender may know it, and so may the gateway.
#[must_use]
pub fn sent_hash(answer: &Sealed<RawJson>) -> Option<B256> {
    shape::word(Scan::whole(answer.peek().text()?).ok()?).ok()
}

/// The answer if it has this shape and is not `null`, else the constant.
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
