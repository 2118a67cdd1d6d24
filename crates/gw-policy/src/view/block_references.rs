//! Finds the blocks that an upstream response refers to, before it is opened: nothing of a block may be disclosed
//! before the block is validated (HD28). Number and hash reveal nothing of the block's content.

use crate::sealed::{RawJson, Sealed};
use alloy_primitives::{B256, U256};
use serde::Deserialize;
use serde_json::value::RawValue;
use std::collections::BTreeSet;

/// The members of a block, transaction, receipt or log that identify its block. Blocks have `number` and `hash`, the
/// others `blockNumber` and `blockHash`; the `hash` of a transaction is its own.
#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct BlockReference {
    #[serde(default)]
    block_number: Option<U256>,
    #[serde(default)]
    block_hash: Option<B256>,
    #[serde(default)]
    number: Option<U256>,
    #[serde(default)]
    hash: Option<B256>,
}

/// The blocks, by number and hash, of a block, a transaction, a receipt, a log, or a list of these. Pending objects and
/// values other than objects have none. `None` if the block of an object cannot be determined.
#[must_use]
pub fn referenced_blocks(answer: &Sealed<RawJson>) -> Option<BTreeSet<(u64, B256)>> {
    let text = answer.peek().text()?;
    let mut blocks = BTreeSet::new();
    match text.trim_start().bytes().next() {
        Some(b'[') => {
            for item in serde_json::from_str::<Vec<&RawValue>>(text).ok()? {
                blocks.extend(block_of(item.get())?);
            }
        }
        Some(_) => blocks.extend(block_of(text)?),
        None => return None,
    }
    Some(blocks)
}

/// The block of one value: `Some(None)` if it is in no block, `None` if its block cannot be determined.
fn block_of(text: &str) -> Option<Option<(u64, B256)>> {
    if !text.trim_start().starts_with('{') {
        return Some(None);
    }
    let BlockReference {
        block_number,
        block_hash,
        number,
        hash,
    } = serde_json::from_str(text).ok()?;
    let block = match (block_number, block_hash, number) {
        (Some(number), Some(hash), _) => Some((number, hash)),
        (None, None, Some(number)) => Some((number, hash?)),
        (None, None, None) => None,
        (Some(_), None, _) | (None, Some(_), _) => return None,
    };
    match block {
        Some((number, hash)) => Some(Some((number.try_into().ok()?, hash))),
        None => Some(None),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use bytes::Bytes;
    use serde_json::{Value, json};

    fn blocks_of(answer: &Value) -> Option<Vec<(u64, B256)>> {
        let sealed = Sealed::new(RawJson::new(Bytes::from(answer.to_string())));
        referenced_blocks(&sealed).map(|blocks| blocks.into_iter().collect())
    }

    #[test]
    fn hd28_a_response_refers_to_its_blocks() {
        let [hash_1, hash_2] = [1, 2].map(B256::repeat_byte);
        let object = |number: &str, hash| json!({"hash": B256::ZERO, "blockHash": hash, "blockNumber": number});
        assert_eq!(blocks_of(&object("0x1f", hash_1)), Some(vec![(31, hash_1)]));
        let block = json!({"number": "0x10", "hash": hash_2, "transactions": [object("0x10", hash_2)]});
        assert_eq!(blocks_of(&block), Some(vec![(16, hash_2)]));
        let list = json!([object("0x1", hash_1), object("0x2", hash_2), object("0x1", hash_1)]);
        assert_eq!(blocks_of(&list), Some(vec![(1, hash_1), (2, hash_2)]));
        // In no block.
        for answer in [
            json!(null),
            json!("0x1"),
            json!([]),
            json!({"blockHash": null, "blockNumber": null, "hash": hash_1}),
        ] {
            assert_eq!(blocks_of(&answer), Some(vec![]), "{answer}");
        }
        // The block cannot be determined.
        for answer in [
            json!({"blockHash": hash_1}),
            json!({"blockNumber": "0x1"}),
            json!({"number": "0x1"}),
            json!({"blockNumber": "x", "blockHash": hash_1}),
            json!([object("0x1", hash_1), {"blockNumber": "0x1"}]),
        ] {
            assert_eq!(blocks_of(&answer), None, "{answer}");
        }
        assert_eq!(
            referenced_blocks(&Sealed::new(RawJson::new(Bytes::from_static(b"")))),
            None
        );
    }
}
