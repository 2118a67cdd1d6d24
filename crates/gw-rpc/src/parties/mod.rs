//! Parties of mined transactions: sender and receiver, which decide whether a log belongs to an own transaction of the
//! viewer (decision 20).
//!
//! [`PartySource`] is the question and its answers, [`NodeParties`] answers it from the node, [`PartyCache`] keeps
//! answers for all callers.
//!
//! Invariants:
//! - Only facts of the signed transaction are kept, under its hash, so no reorganization changes an entry. Facts of a
//!   block (position, status, logs) are never kept.
//! - What is kept contains no decision: the parties of each transaction that a call needs are kept, whoever they are,
//!   and each call evaluates them under its own authorization. They stay sealed.
//! - Whether a transaction is kept depends on calls of callers with access to the emitters of its logs, and never on
//!   what such a call shows (docs/decisions/0015).
//! - A transaction without an answer has no entry, so its absence is never remembered.

mod cache;
mod node;
mod table;

pub(crate) use cache::PartyCache;
pub(crate) use node::NodeParties;
pub(crate) use table::DEFAULT_BYTES as DEFAULT_PARTY_CACHE_BYTES;

use gw_policy::view::{PartiesNeeded, TransactionParties};
use gw_types::B256;

/// From this many transactions of one block, one query for the whole block is cheaper than one for each transaction.
const WHOLE_BLOCK: usize = 4;

/// A query for parties.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum PartyQuery {
    /// All transactions of the block with this hash, of which these are needed.
    Block { hash: B256, needed: Vec<B256> },
    /// The transaction with this hash.
    Transaction(B256),
}

impl PartyQuery {
    /// The hash of the block or transaction.
    fn hash(&self) -> B256 {
        match self {
            Self::Block { hash, .. } | Self::Transaction(hash) => *hash,
        }
    }

    /// The transactions whose parties are needed.
    fn needed(&self) -> &[B256] {
        match self {
            Self::Block { needed, .. } => needed,
            Self::Transaction(hash) => std::slice::from_ref(hash),
        }
    }

    /// The queries for these transactions, which are grouped by block.
    fn for_transactions(transactions: &[PartiesNeeded]) -> Vec<Self> {
        let mut queries = Vec::new();
        for of_block in transactions.chunk_by(|row, next| row.block_hash == next.block_hash) {
            let hashes = of_block.iter().map(|row| row.tx_hash);
            match of_block {
                [first, ..] if of_block.len() >= WHOLE_BLOCK => queries.push(Self::Block {
                    hash: first.block_hash,
                    needed: hashes.collect(),
                }),
                _ => queries.extend(hashes.map(Self::Transaction)),
            }
        }
        queries
    }
}

/// Something that knows the parties of mined transactions: the node, or an index of the chain.
pub(crate) trait PartySource: Sync {
    /// Why there is no answer.
    type Error;

    /// Answers the queries, in any order. A transaction that the source does not know is left out. Further transactions
    /// may be part of the answer: those of the same blocks.
    ///
    /// # Errors
    /// If the source cannot answer. What it knows of single transactions is then not used either.
    fn find(
        &self,
        queries: &[PartyQuery],
    ) -> impl Future<Output = Result<Vec<(B256, TransactionParties)>, Self::Error>> + Send;
}
