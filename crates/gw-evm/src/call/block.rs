//! Block parameters: tag, number, hash, or an EIP-1898 object.

use super::{
    BlockId, BlockTag,
    params::{Result, boolean, members, must_be, number, text, word},
};
use crate::error::ParamError;
use serde_json::value::RawValue;

/// A block parameter of a state or simulation method; absent means the head (decision 41).
pub(super) fn state_block(raw: Option<&RawValue>) -> Result<BlockId> {
    let Some(raw) = raw else { return Ok(BlockId::LATEST) };
    match raw.get().as_bytes().first() {
        Some(b'{') => eip1898(raw),
        _ if text(raw).is_some_and(|text| text.len() == 66) => Ok(BlockId::Hash {
            hash: word(raw, "block")?,
            require_canonical: false,
        }),
        _ => block_number(raw),
    }
}

/// A tag or a number, nothing else.
pub(super) fn block_number(raw: &RawValue) -> Result<BlockId> {
    Ok(match text(raw) {
        Some("latest") => BlockId::Tag(BlockTag::Latest),
        Some("pending") => BlockId::Tag(BlockTag::Pending),
        Some("safe") => BlockId::Tag(BlockTag::Safe),
        Some("finalized") => BlockId::Tag(BlockTag::Finalized),
        Some("earliest") => BlockId::Tag(BlockTag::Earliest),
        Some(text) if text.starts_with("0x") || text.starts_with("0X") => BlockId::Number(number(raw, "block number")?),
        _ => return Err(must_be("block", "a tag, a hex number or a hash")),
    })
}

fn eip1898(raw: &RawValue) -> Result<BlockId> {
    let [number, hash, canonical] = members(raw, "block", &["blockNumber", "blockHash", "requireCanonical"])?;
    match (number, hash) {
        (Some(number), None) => block_number(number),
        (None, Some(hash)) => Ok(BlockId::Hash {
            hash: word(hash, "blockHash")?,
            require_canonical: canonical
                .map(|raw| boolean(raw, "requireCanonical"))
                .transpose()?
                .unwrap_or(false),
        }),
        _ => Err(ParamError::invalid("block must name one of blockNumber and blockHash")),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use alloy_primitives::B256;

    fn read(json: &str) -> Result<BlockId> {
        state_block(Some(serde_json::from_str(json).unwrap()))
    }

    #[test]
    fn tags_numbers_hashes_and_eip_1898() {
        let hash = B256::repeat_byte(0x5a);
        assert_eq!(state_block(None).unwrap(), BlockId::LATEST);
        assert_eq!(read("\"pending\"").unwrap(), BlockId::Tag(BlockTag::Pending));
        assert_eq!(read("\"0x10\"").unwrap(), BlockId::Number(16));
        let hash_block = |require_canonical| BlockId::Hash {
            hash,
            require_canonical,
        };
        assert_eq!(read(&format!("\"{hash}\"")).unwrap(), hash_block(false));
        assert_eq!(
            read(&format!("{{\"blockHash\":\"{hash}\",\"requireCanonical\":true}}")).unwrap(),
            hash_block(true)
        );
        assert_eq!(read(r#"{"blockNumber":"0x1"}"#).unwrap(), BlockId::Number(1));
        assert_eq!(read(r#"{"blockNumber":"latest"}"#).unwrap(), BlockId::LATEST);
    }

    #[test]
    fn j5_anything_else_is_refused() {
        let number_and_hash = format!(r#"{{"blockNumber":"0x1","blockHash":"{}"}}"#, B256::ZERO);
        for bad in [
            "1",
            "\"\"",
            "\"Latest\"",
            "\"0x\"",
            "\"0x10000000000000000\"",
            "[]",
            "{}",
            "true",
            "\"12\"",
            &number_and_hash,
            r#"{"BLOCKHASH":"0x1"}"#,
        ] {
            assert!(read(bad).is_err(), "{bad}");
        }
    }
}
