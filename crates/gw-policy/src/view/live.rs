//! The parts of results for the delivery of subscriptions: the logs of an `eth_getLogs` result, a block as `newHeads`
//! shows it.
//!
//! Invariant: the view that opened the result for the viewer reports its parts, and this module adds nothing, so that a
//! subscription shows exactly what the viewer would read (HD18 WS-3).

use crate::sealed::{Disclosed, LogPart, Parts};
use alloy_primitives::B256;
use std::ops::Range;

/// One row of a log result.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct DeliveredLog {
    /// Hash of its block.
    pub block_hash: B256,
    /// Number of its block.
    pub block_number: u64,
    /// Index of the log in the block.
    pub log_index: u64,
    /// The row.
    pub row: Disclosed,
    /// The position of its flag `removed`, if it has one.
    flag: Option<Range<usize>>,
}

impl DeliveredLog {
    fn new(answer: &str, part: &LogPart) -> Option<Self> {
        Some(Self {
            block_hash: part.block_hash,
            block_number: part.block_number,
            log_index: part.log_index,
            row: Disclosed::text(answer.get(part.position.clone())?.to_owned()),
            flag: part.flag.clone(),
        })
    }

    /// The row with `removed: true`, after its block left the chain (WS-4).
    pub fn removed(&self) -> Disclosed {
        let mut row = self.row.as_str().to_owned();
        match &self.flag {
            Some(flag) => row.replace_range(flag.clone(), "true"),
            None => {
                row.pop();
                row.push_str(",\"removed\":true}");
            }
        }
        Disclosed::text(row)
    }
}

/// The rows of an `eth_getLogs` result; empty if the node does not report the block and the index of all of them.
pub fn log_rows(answer: &Disclosed) -> Vec<DeliveredLog> {
    match answer.parts() {
        Some(Parts::Logs(parts)) => {
            let text = answer.as_str();
            parts.iter().filter_map(|part| DeliveredLog::new(text, part)).collect()
        }
        Some(Parts::Header(_)) | None => Vec::new(),
    }
}

/// Combines rows to one result.
pub fn log_array<'a>(log_rows: impl IntoIterator<Item = &'a Disclosed>) -> Disclosed {
    let log_rows: Vec<&str> = log_rows.into_iter().map(Disclosed::as_str).collect();
    Disclosed::text(format!("[{}]", log_rows.join(",")))
}

/// A block result as `newHeads` shows it, without members that a header does not have. `None` if it is not a block.
pub fn header(block: &Disclosed) -> Option<Disclosed> {
    let Some(Parts::Header(members)) = block.parts() else {
        return None;
    };
    let text = block.as_str();
    let members: Option<Vec<&str>> = members.iter().map(|member| text.get(member.clone())).collect();
    Some(Disclosed::text(format!("{{{}}}", members?.join(","))))
}
