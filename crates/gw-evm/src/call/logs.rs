//! `eth_getLogs` criteria.

use super::{
    BlockId, LogFilter, LogRange, TopicFilter,
    block::block_number,
    params::{Result, address, elements, is_null, members, word},
};
use crate::error::ParamError;
use serde_json::value::RawValue;
use std::collections::BTreeSet;

/// Maximum number of distinct emitters in one filter (J9).
const MAX_ADDRESSES: usize = 64;
const MAX_POSITIONS: usize = 4;
/// Maximum number of alternatives for one topic; nodes have the same limit.
const MAX_ALTERNATIVES: usize = 1000;

pub(super) fn filter(raw: &RawValue) -> Result<LogFilter> {
    let names = &["address", "topics", "fromBlock", "toBlock", "blockHash"];
    let [address, topics, from, to, hash] = members(raw, "filter", names)?;
    Ok(LogFilter {
        addresses: address.map(addresses).transpose()?.unwrap_or_default(),
        topics: topics.map(positions).transpose()?.unwrap_or_default(),
        range: range(from, to, hash)?,
    })
}

/// The filter of a call without criteria.
pub(super) fn unrestricted() -> LogFilter {
    let range = LogRange::Range {
        from: BlockId::LATEST,
        to: BlockId::LATEST,
    };
    LogFilter {
        addresses: Vec::new(),
        topics: Vec::new(),
        range,
    }
}

fn range(from: Option<&RawValue>, to: Option<&RawValue>, hash: Option<&RawValue>) -> Result<LogRange> {
    match (from, to, hash) {
        (None, None, Some(hash)) => Ok(LogRange::Hash(word(hash, "blockHash")?)),
        (from, to, None) => {
            let bound = |raw: Option<_>| raw.map_or(Ok(BlockId::LATEST), block_number);
            let (from, to) = (bound(from)?, bound(to)?);
            match (from, to) {
                (BlockId::Number(first), BlockId::Number(last)) if first > last => {
                    Err(ParamError::invalid("invalid block range"))
                }
                _ => Ok(LogRange::Range { from, to }),
            }
        }
        _ => Err(ParamError::invalid("blockHash excludes fromBlock and toBlock")),
    }
}

fn addresses(raw: &RawValue) -> Result<Vec<alloy_primitives::Address>> {
    if !raw.get().starts_with('[') {
        return Ok(vec![address(raw, "address")?]);
    }
    let (mut list, mut seen) = (Vec::new(), BTreeSet::new());
    for element in elements(raw, "address")? {
        let address = address(element, "address")?;
        if seen.insert(address) {
            if list.len() == MAX_ADDRESSES {
                return Err(ParamError::limit("at most 64 addresses"));
            }
            list.push(address);
        }
    }
    Ok(list)
}

fn positions(raw: &RawValue) -> Result<Vec<TopicFilter>> {
    let positions = elements(raw, "topics")?;
    if positions.len() > MAX_POSITIONS {
        return Err(ParamError::invalid("at most 4 topics"));
    }
    positions.into_iter().map(position).collect()
}

fn position(raw: &RawValue) -> Result<TopicFilter> {
    if is_null(raw) {
        return Ok(TopicFilter::Any);
    }
    if !raw.get().starts_with('[') {
        return Ok(TopicFilter::OneOf(vec![word(raw, "topic")?]));
    }
    let alternatives = elements(raw, "topics")?;
    if alternatives.len() > MAX_ALTERNATIVES {
        return Err(ParamError::limit("too many alternatives for one topic"));
    }
    let words: Vec<_> = alternatives
        .iter()
        .filter(|raw| !is_null(raw))
        .map(|raw| word(raw, "topic"))
        .collect::<Result<_>>()?;
    // As on nodes, an empty list or a null among the alternatives matches anything.
    Ok(if words.is_empty() || words.len() < alternatives.len() {
        TopicFilter::Any
    } else {
        TopicFilter::OneOf(words)
    })
}
