//! What single parts tell of an execution that cannot be read as a whole (HD28): who spoke, what was written, what was made.
//! A part that says nothing readable says nothing.

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

/// Of a receipt: the contracts whose events it holds, and the one that a transaction without `to` created.
pub fn emitters(receipt: &RawValue) -> (BTreeSet<Address>, Option<Address>) {
    match serde_json::from_str::<Receipt>(receipt.get()) {
        Ok(receipt) => (
            receipt.logs.into_iter().map(|log| log.address).collect(),
            receipt.contract_address,
        ),
        Err(_) => (BTreeSet::new(), None),
    }
}

/// Of a diff: the accounts that changed in any way, and how; nothing if it cannot be read.
pub fn changed(diff: &RawValue) -> Option<BTreeMap<Address, Change>> {
    let mut changes = prestate::changes(diff).ok()?;
    changes.retain(|_, change| !change.is_none());
    Some(changes)
}

/// Of a diff: the accounts that used their first nonce, as a contract does when it is created. A wallet does so too, with its
/// first transaction: which of them have code, somebody else must tell.
pub fn made(diff: &RawValue) -> Vec<Address> {
    prestate::first_nonces(diff).unwrap_or_default()
}

/// Of the touches: the accounts, and whether each had code before.
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
    fn hd28_the_parts_of_an_execution_tell_who_was_in_it() {
        let [one, two, three, four] = [1, 2, 3, 4].map(Address::repeat_byte);
        let receipt = raw(json!({"contractAddress": one, "logs": [{"address": two, "topics": []}, {"address": two}]}));
        assert_eq!(emitters(&receipt), ([two].into(), Some(one)));
        assert_eq!(
            emitters(&raw(json!({"contractAddress": null, "logs": []}))),
            (BTreeSet::new(), None)
        );
        assert_eq!(emitters(&raw(json!(null))), (BTreeSet::new(), None));
        let word = B256::ZERO;
        let diff = raw(json!({
            "pre": {
                // A contract writes, a wallet sends its second transaction, and one its first.
                one.to_string(): {"balance": "0x0", "nonce": 1, "storage": {word.to_string(): word}},
                two.to_string(): {"balance": "0x1", "nonce": 1},
                three.to_string(): {"balance": "0x1"},
            },
            "post": {
                one.to_string(): {}, two.to_string(): {"nonce": 2}, three.to_string(): {"nonce": 1},
                four.to_string(): {"nonce": "0x1", "balance": "0x0"},
            },
        }));
        let changes = changed(&diff).unwrap();
        assert_eq!(changes.keys().copied().collect::<Vec<_>>(), [one, two, three, four]);
        assert_eq!(changes[&two].before.nonce, 1);
        assert_eq!(changed(&raw(json!("odd"))), None);
        assert_eq!(made(&diff), [three, four]);
        let touches = raw(json!({one.to_string(): {"code": "0x60"}, two.to_string(): {}}));
        assert_eq!(touched(&touches), [(one, true), (two, false)].into());
        assert!(made(&raw(json!("odd"))).is_empty() && touched(&raw(json!([]))).is_empty());
    }
}
