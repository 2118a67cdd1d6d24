//! Which blocks an answer is about: asked before it is opened, because nothing of a block leaves before the block is judged
//! (HD28). A number and a hash tell nothing of what is in a block.

use crate::sealed::{RawJson, Sealed};
use alloy_primitives::{B256, U256};
use serde::Deserialize;
use serde_json::value::RawValue;
use std::collections::BTreeSet;

/// Where a block, transaction, receipt or log says that it is. Transactions have a hash and a nonce of their own, blocks no
/// block.
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

/// The blocks that a block, a transaction, a receipt, a log, or a list of such names as its own, by number and hash; nothing
/// of what waits for a block, and of what is no object. `None` if one of them cannot be told.
#[must_use]
pub fn blocks_named(answer: &Sealed<RawJson>) -> Option<BTreeSet<(u64, B256)>> {
    let text = answer.peek().text()?;
    let mut named = BTreeSet::new();
    match text.trim_start().bytes().next() {
        Some(b'[') => {
            for item in serde_json::from_str::<Vec<&RawValue>>(text).ok()? {
                named.extend(block_of(item.get())?);
            }
        }
        Some(_) => named.extend(block_of(text)?),
        None => return None,
    }
    Some(named)
}

/// `Some(None)`: it is in no block.
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
    let place = match (block_number, block_hash, number) {
        (Some(number), Some(hash), _) => Some((number, hash)),
        (None, None, Some(number)) => Some((number, hash?)),
        (None, None, None) => None,
        (Some(_), None, _) | (None, Some(_), _) => return None,
    };
    match place {
        Some((number, hash)) => Some(Some((number.try_into().ok()?, hash))),
        None => Some(None),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use bytes::Bytes;
    use serde_json::{Value, json};

    fn named(answer: &Value) -> Option<Vec<(u64, B256)>> {
        let sealed = Sealed::new(RawJson::new(Bytes::from(answer.to_string())));
        blocks_named(&sealed).map(|named| named.into_iter().collect())
    }

    #[test]
    fn hd28_an_answer_names_its_blocks() {
        let [one, two] = [1, 2].map(B256::repeat_byte);
        let placed = |number: &str, hash| json!({"hash": B256::ZERO, "blockHash": hash, "blockNumber": number});
        assert_eq!(named(&placed("0x1f", one)), Some(vec![(31, one)]));
        let block = json!({"number": "0x10", "hash": two, "transactions": [placed("0x10", two)]});
        assert_eq!(named(&block), Some(vec![(16, two)]));
        let list = json!([placed("0x1", one), placed("0x2", two), placed("0x1", one)]);
        assert_eq!(named(&list), Some(vec![(1, one), (2, two)]));
        // In no block.
        for none in [
            json!(null),
            json!("0x1"),
            json!([]),
            json!({"blockHash": null, "blockNumber": null, "hash": one}),
        ] {
            assert_eq!(named(&none), Some(vec![]), "{none}");
        }
        // In one that cannot be told.
        for odd in [
            json!({"blockHash": one}),
            json!({"blockNumber": "0x1"}),
            json!({"number": "0x1"}),
            json!({"blockNumber": "x", "blockHash": one}),
            json!([placed("0x1", one), {"blockNumber": "0x1"}]),
        ] {
            assert_eq!(named(&odd), None, "{odd}");
        }
        assert_eq!(blocks_named(&Sealed::new(RawJson::new(Bytes::from_static(b"")))), None);
    }
}
