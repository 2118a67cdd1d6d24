//! One log in the node's text.

use super::super::{
    scan::{Malformed, Scan},
    shape::{self, Field, Object, Order, Shape, ZERO_WORD},
};
use crate::snapshot::{Moment, Snapshot};
use alloy_primitives::{Address, B256, hex};
use std::fmt::Write as _;

/// HD11: what of a log may leave. The topics are checked by decoding them.
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

/// Places in [`LOG`].
const ADDRESS: usize = 0;
const TOPICS: usize = 1;
const DATA: usize = 2;
const BLOCK_NUMBER: usize = 3;
const TRANSACTION_HASH: usize = 4;
const TRANSACTION_INDEX: usize = 5;
const BLOCK_HASH: usize = 6;
const LOG_INDEX: usize = 8;

/// How the node orders the members of logs.
pub(in crate::view) type LogOrder = Order<{ LOG.len() }>;

/// A log, decoded as far as judging it needs.
#[derive(Debug)]
pub(in crate::view) struct Log<'a> {
    object: Object<'a, 'static, { LOG.len() }>,
    /// The emitter.
    pub(super) address: Address,
    /// The transaction.
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
        Scan::new(object.at(TOPICS)?).list(|scan| {
            let text = Shape::Fixed(32).read(scan)?;
            *topics.get_mut(topic_count).ok_or(Malformed)? = shape::word(text)?;
            *topic_texts.get_mut(topic_count).ok_or(Malformed)? = text;
            topic_count = topic_count.saturating_add(1);
            Ok(())
        })?;
        Ok(Self {
            address: shape::address(object.at(ADDRESS)?)?,
            tx_hash: shape::word(object.at(TRANSACTION_HASH)?)?,
            topics,
            topic_texts,
            topic_count,
            data: shape::byte_digits(object.at(DATA)?)?,
            object,
        })
    }

    pub(super) fn topics(&self) -> &[B256] {
        self.topics.get(..self.topic_count).unwrap_or_default()
    }

    pub(super) fn data(&self) -> Result<Vec<u8>, Malformed> {
        hex::decode(self.data).map_err(|_| Malformed)
    }

    pub(super) fn block_hash(&self) -> Result<B256, Malformed> {
        shape::word(self.object.at(BLOCK_HASH)?)
    }

    /// When it was emitted, as the node says.
    pub(super) fn moment(&self) -> Result<Moment, Malformed> {
        shape::moment(self.object.find_at(BLOCK_NUMBER))
    }

    /// Its place in the block, where withheld transactions' events that stand before it do not count (HD28). `None` if it is
    /// the node's.
    pub(super) fn shown_index(&self, snapshot: &Snapshot) -> Result<Option<u64>, Malformed> {
        let at = |field| self.object.find_at(field).filter(|value| *value != "null");
        let (Some(block), Some(place), Some(index)) = (at(BLOCK_HASH), at(TRANSACTION_INDEX), at(LOG_INDEX)) else {
            return Ok(None);
        };
        let withheld = snapshot.logs_withheld_before(shape::word(block)?, shape::number(place)?);
        Ok(if withheld == 0 {
            None
        } else {
            Some(shape::number(index)?.saturating_sub(withheld))
        })
    }

    /// Writes the log as the node wrote it, at this place in the block if it is not the node's.
    pub(super) fn write_whole(&self, index: Option<u64>, out: &mut String) {
        if self.object.is_exact && index.is_none() {
            out.push_str(self.object.text);
        } else {
            self.object.write_with(out, |name, out| write_index(name, index, out));
        }
    }

    /// Writes the log with the zero word in place of the topics in `masked` (one bit per position), and with other data if
    /// any are given.
    pub(super) fn write_masked(&self, masked: u8, data: Option<&[u8]>, index: Option<u64>, out: &mut String) {
        self.object.write_with(out, |name, out| match (name, data) {
            ("topics", _) => {
                let mut before = '[';
                for (position, text) in self.topic_texts.iter().take(self.topic_count).enumerate() {
                    out.push(before);
                    before = ',';
                    out.push_str(match text {
                        _ if is_masked(masked, position) => ZERO_WORD,
                        text => text,
                    });
                }
                out.push_str(if before == '[' { "[]" } else { "]" });
                true
            }
            ("data", Some(data)) => {
                shape::write_bytes(data, out);
                true
            }
            _ => write_index(name, index, out),
        });
    }
}

fn write_index(name: &str, index: Option<u64>, out: &mut String) -> bool {
    let Some(index) = index.filter(|_| name == "logIndex") else {
        return false;
    };
    let _ = write!(out, "\"{index:#x}\"");
    true
}

/// Whether the bit of this position is set.
pub(super) fn is_masked(masked: u8, position: usize) -> bool {
    position < 8 && masked >> position & 1 == 1
}
