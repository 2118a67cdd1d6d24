//! Reads single parts of an execution whose trace cannot be read as a whole (HD28): emitters of events, changed
//! accounts and created accounts. An unreadable part yields an empty result.

use super::{Change, prestate};
use alloy_primitives::Address;
use serde::Deserialize;
use serde_json::value::RawValue;
use std::collections::{BTreeMap, BTreeSet};

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct Receipt {
    #[serde(default)]
    contract_address: Option<Address>,
    #[serde(default)]
    logs: Vec<Emitter>,
}

#[derive(Deserialize)]
struct Emitter {
    address: Address,
}

/// Reads from a receipt the emitters of its events, and the contract that a transaction without `to` created.
pub fn emitters(receipt: &RawValue) -> (BTreeSet<Address>, Option<Address>) {
    match serde_json::from_str::<Receipt>(receipt.get()) {
        Ok(receipt) => (
            receipt.logs.into_iter().map(|log| log.address).collect(),
            receipt.contract_address,
        ),
        Err(_) => (BTreeSet::new(), None),
    }
}

/// Reads from a state diff the accounts that changed, with their changes; `None` if the diff is unreadable.
pub fn changed(diff: &RawValue) -> Option<BTreeMap<Address, Change>> {
    let mut changes = prestate::changes(diff).ok()?;
    changes.retain(|_, change| !change.is_none());
    Some(changes)
}

/// Reads from a state diff the accounts that used their first nonce, as a contract does when it is created. A wallet
/// does so with its first transaction, so the caller must check which of the accounts have code.
pub fn made(diff: &RawValue) -> Vec<Address> {
    prestate::first_nonces(diff).unwrap_or_default()
}

/// Reads the touched accounts, and whether each had code before the execution.
pub fn touched(touches: &RawValue) -> BTreeMap<Address, bool> {
    let touched = prestate::touched(touches).unwrap_or_default();
    touched
        .into_iter()
        .map(|(address, account)| (address, !account.code.is_empty()))
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use alloy_primitives::B256;
    use serde_json::json;

    fn raw(value: serde_json::Value) -> Box<RawValue> {
        RawValue::from_string(value.to_string()).unwrap()
    }

    #[test]
    fn hd28_single_parts_reveal_the_accounts_of_an_execution() {
        let [first, second, third, fourth] = [1, 2, 3, 4].map(Address::repeat_byte);
        let receipt =
            raw(json!({"contractAddress": first, "logs": [{"address": second, "topics": []}, {"address": second}]}));
        assert_eq!(emitters(&receipt), ([second].into(), Some(first)));
        assert_eq!(
            emitters(&raw(json!({"contractAddress": null, "logs": []}))),
            (BTreeSet::new(), None)
        );
        assert_eq!(emitters(&raw(json!(null))), (BTreeSet::new(), None));
        let word = B256::ZERO;
        let diff = raw(json!({
            "pre": {
                // A contract writes, one wallet sends its second transaction, and another its first.
                first.to_string(): {"balance": "0x0", "nonce": 1, "storage": {word.to_string(): word}},
                second.to_string(): {"balance": "0x1", "nonce": 1},
                third.to_string(): {"balance": "0x1"},
            },
            "post": {
                first.to_string(): {}, second.to_string(): {"nonce": 2}, third.to_string(): {"nonce": 1},
                fourth.to_string(): {"nonce": "0x1", "balance": "0x0"},
            },
        }));
        let changes = changed(&diff).unwrap();
        assert_eq!(
            changes.keys().copied().collect::<Vec<_>>(),
            [first, second, third, fourth]
        );
        assert_eq!(changes[&second].before.nonce, 1);
        assert_eq!(changed(&raw(json!("odd"))), None);
        assert_eq!(made(&diff), [third, fourth]);
        let touches = raw(json!({first.to_string(): {"code": "0x60"}, second.to_string(): {}}));
        assert_eq!(touched(&touches), [(first, true), (second, false)].into());
        assert!(made(&raw(json!("odd"))).is_empty() && touched(&raw(json!([]))).is_empty());
    }
}
