//! Reads and writes one log of an upstream response.

use super::super::{
    scan::{Malformed, Scan},
    shape::{self, Field, Object, Order, Shape, ZERO_WORD},
};
use crate::{
    sealed::LogPart,
    snapshot::Moment,
    visibility::{LogData, LogRow, LogVisibility, Viewer, is_masked},
};
use alloy_primitives::{Address, B256};
use std::{fmt::Write as _, ops::Range};

/// HD11: the members of a log that may be disclosed. The topics are checked by decoding them.
const LOG: [Field; 10] = [
    Field("address", Shape::Fixed(20)),
    Field("topics", Shape::Unchecked),
    Field("data", Shape::Bytes),
    Field("blockNumber", Shape::Quantity),
    Field("transactionHash", Shape::Fixed(32)),
    Field("transactionIndex", Shape::Quantity),
    Field("blockHash", Shape::Fixed(32)),
    Field("blockTimestamp", Shape::Quantity),
    Field("logIndex", Shape::Quantity),
    Field("removed", Shape::Flag),
];

/// Indexes in [`LOG`].
const ADDRESS: usize = 0;
const TOPICS: usize = 1;
const DATA: usize = 2;
const BLOCK_NUMBER: usize = 3;
const TRANSACTION_HASH: usize = 4;
const TRANSACTION_INDEX: usize = 5;
const BLOCK_HASH: usize = 6;
const LOG_INDEX: usize = 8;
const REMOVED: usize = 9;

/// The order in which the node writes the members of logs.
pub(in crate::view) type LogOrder = Order<{ LOG.len() }>;

/// A log, decoded as far as its evaluation needs.
#[derive(Debug)]
pub(in crate::view) struct Log<'a> {
    object: Object<'a, 'static, { LOG.len() }>,
    /// The emitter.
    pub(super) address: Address,
    /// Hash of the transaction.
    pub(in crate::view) tx_hash: B256,
    topics: [B256; 4],
    topic_texts: [&'a str; 4],
    topic_count: usize,
    data: &'a str,
}

impl<'a> Log<'a> {
    pub(in crate::view) fn read(scan: &mut Scan<'a>, order: &mut LogOrder) -> Result<Self, Malformed> {
        let object = Object::read_in_order(scan, &LOG, order)?;
        let (mut topics, mut topic_texts, mut topic_count) = ([B256::ZERO; 4], [""; 4], 0usize);
        Scan::new(object.get_at(TOPICS)?).list(|scan| {
            let text = Shape::Fixed(32).read(scan)?;
            *topics.get_mut(topic_count).ok_or(Malformed)? = shape::word(text)?;
            *topic_texts.get_mut(topic_count).ok_or(Malformed)? = text;
            topic_count = topic_count.saturating_add(1);
            Ok(())
        })?;
        Ok(Self {
            address: shape::address(object.get_at(ADDRESS)?)?,
            tx_hash: shape::word(object.get_at(TRANSACTION_HASH)?)?,
            topics,
            topic_texts,
            topic_count,
            data: shape::byte_digits(object.get_at(DATA)?)?,
            object,
        })
    }

    pub(super) fn topics(&self) -> &[B256] {
        self.topics.get(..self.topic_count).unwrap_or_default()
    }

    /// The row of the log, with the moment that the node reports.
    pub(in crate::view) fn row(&self) -> Result<LogRow<'_>, Malformed> {
        Ok(self.row_at(shape::moment(self.object.find_at(BLOCK_NUMBER))?))
    }

    /// The row of the log, emitted at `moment`.
    pub(super) fn row_at(&self, moment: Moment) -> LogRow<'_> {
        let data = LogData::Hex(self.data);
        LogRow {
            emitter: self.address,
            tx_hash: self.tx_hash,
            topics: self.topics(),
            data,
            moment,
        }
    }

    pub(super) fn block_hash(&self) -> Result<B256, Malformed> {
        shape::word(self.object.get_at(BLOCK_HASH)?)
    }

    /// The log's index in the block as the viewer sees it. `None` if it equals the node's.
    fn shown_index(&self, viewer: &Viewer<'_>) -> Result<Option<u64>, Malformed> {
        let value = |field| self.object.find_at(field).filter(|value| *value != "null");
        let (Some(block), Some(transaction_index), Some(index)) =
            (value(BLOCK_HASH), value(TRANSACTION_INDEX), value(LOG_INDEX))
        else {
            return Ok(None);
        };
        let withheld = viewer.logs_withheld_before(shape::word(block)?, shape::number(transaction_index)?);
        Ok(match withheld {
            0 => None,
            withheld => Some(shape::number(index)?.saturating_sub(withheld)),
        })
    }

    /// Writes the log as far as it is visible. Returns the position in `out` of its flag `removed`, if it has one.
    pub(in crate::view) fn write(
        &self,
        visibility: &LogVisibility,
        viewer: &Viewer<'_>,
        out: &mut String,
    ) -> Result<Option<Range<usize>>, Malformed> {
        Ok(match visibility {
            LogVisibility::Dropped => None,
            LogVisibility::Whole => self.write_whole(self.shown_index(viewer)?, out),
            LogVisibility::Masked { topics, data } => {
                self.write_masked(*topics, data.as_deref(), self.shown_index(viewer)?, out)
            }
        })
    }

    /// Writes the log of a list, as [`Self::write`]. `None` if the node does not report its block and its index.
    pub(super) fn write_part(
        &self,
        visibility: &LogVisibility,
        viewer: &Viewer<'_>,
        out: &mut String,
    ) -> Result<Option<LogPart>, Malformed> {
        let start = out.len();
        let flag = self.write(visibility, viewer, out)?;
        let in_log = |position: usize| position.saturating_sub(start);
        let part = || {
            let value = |field| self.object.find_at(field).filter(|value| *value != "null");
            let node_index = shape::number(value(LOG_INDEX)?).ok()?;
            Some(LogPart {
                block_hash: shape::word(value(BLOCK_HASH)?).ok()?,
                block_number: shape::number(value(BLOCK_NUMBER)?).ok()?,
                log_index: self.shown_index(viewer).ok()?.unwrap_or(node_index),
                position: start..out.len(),
                flag: flag.map(|flag| in_log(flag.start)..in_log(flag.end)),
            })
        };
        Ok(part())
    }

    /// Writes the unchanged log, with another index in the block if one is given.
    fn write_whole(&self, index: Option<u64>, out: &mut String) -> Option<Range<usize>> {
        if self.object.is_exact && index.is_none() {
            let start = out.len();
            out.push_str(self.object.text);
            let flag = self.object.position_at(REMOVED)?;
            Some(start.saturating_add(flag.start)..start.saturating_add(flag.end))
        } else {
            self.write_members(out, |name, out| write_index(name, index, out))
        }
    }

    /// Writes the members of the log. `render` may write another value.
    fn write_members(
        &self,
        out: &mut String,
        mut render: impl FnMut(&'static str, &mut String) -> bool,
    ) -> Option<Range<usize>> {
        let mut flag = None;
        self.object.write_with(out, |name, out| {
            if name == "removed" {
                let value = self.object.find_at(REMOVED).unwrap_or_default();
                flag = Some(out.len()..out.len().saturating_add(value.len()));
            }
            render(name, out)
        });
        flag
    }

    /// Writes the log with zero words for the topics in `masked` (one bit per position), and with other data and
    /// another index in the block if they are given.
    fn write_masked(
        &self,
        masked: u8,
        data: Option<&[u8]>,
        index: Option<u64>,
        out: &mut String,
    ) -> Option<Range<usize>> {
        self.write_members(out, |name, out| match (name, data) {
            ("topics", _) => {
                let mut separator = '[';
                for (position, text) in self.topic_texts.iter().take(self.topic_count).enumerate() {
                    out.push(separator);
                    separator = ',';
                    out.push_str(match text {
                        _ if is_masked(masked, position) => ZERO_WORD,
                        text => text,
                    });
                }
                out.push_str(if separator == '[' { "[]" } else { "]" });
                true
            }
            ("data", Some(data)) => {
                shape::write_bytes(data, out);
                true
            }
            _ => write_index(name, index, out),
        })
    }
}

/// Writes `index` if the member is `logIndex` and an index is given. Returns whether it did.
fn write_index(name: &str, index: Option<u64>, out: &mut String) -> bool {
    let Some(index) = index.filter(|_| name == "logIndex") else {
        return false;
    };
    let _ = write!(out, "\"{index:#x}\"");
    true
}
