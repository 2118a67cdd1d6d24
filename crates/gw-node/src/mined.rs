//! Reads mined blocks: a block by its hash with the hashes of its transactions, the nonces that senders had used at its
//! end, and the effects of single transactions (HD2, HD36).
//!
//! Invariant: the size of a block decides nothing. A block is queried without its transactions. A query for several
//! transactions that fails is repeated for each of them alone. A transaction that cannot be read even then is an
//! [`UnreadableTransaction`] if its own content causes that ([`crate::unreadable`]); a node that does not answer is an
//! error.

mod parts;
mod queries;
mod traces;

use crate::{head::Block, message::Answer, transport::RequestBudget};
use gw_evm::trace::{Change, Trace};
use gw_policy::sealed::Sealed;
use gw_types::{Address, B256};
use serde::Deserialize;
use serde_json::value::RawValue;
use std::{collections::BTreeMap, time::Duration};

/// Most transactions in one request.
const TRANSACTIONS_PER_REQUEST: usize = 8;
/// The time that every trace may take, in addition to one second per million gas. An honest transaction needs less for
/// its gas.
const BASE_TRACE_TIME: Duration = Duration::from_secs(5);
/// A trace may take one millisecond per this much gas.
const GAS_PER_MILLISECOND: u64 = 1000;

/// The time that a trace of transactions with this much gas may take.
pub(crate) fn trace_budget(gas: u64) -> RequestBudget {
    RequestBudget::MinedExecution(BASE_TRACE_TIME.saturating_add(Duration::from_millis(gas / GAS_PER_MILLISECOND)))
}

/// A block with the hashes of its transactions.
#[derive(Clone, Debug)]
pub struct BlockListing {
    /// The block.
    pub block: Block,
    /// The hashes of its transactions, in block order.
    pub transactions: Vec<B256>,
}

/// A mined transaction as its sender signed it.
#[derive(Clone, Debug)]
pub struct SentTransaction {
    /// The transaction hash.
    pub hash: B256,
    /// The sender.
    pub sender: Address,
    /// The nonce.
    pub nonce: u64,
    /// The recipient; `None` for a deployment.
    pub to: Option<Address>,
    /// The delegations that it authorizes: wallet and delegate (EIP-7702).
    pub delegations: Vec<(Address, Address)>,
}

/// The effects of a mined transaction.
#[derive(Debug)]
pub struct MinedRun {
    /// The transaction.
    pub sent: SentTransaction,
    /// The whole trace.
    pub trace: Sealed<Trace>,
    /// The contracts that the transaction created and kept.
    pub created: Vec<Address>,
}

/// A transaction that cannot be read as a whole, with the parts that can be read.
#[derive(Debug)]
pub struct UnreadableTransaction {
    /// The transaction hash.
    pub hash: B256,
    /// The transaction, if it can be read.
    pub sent: Option<SentTransaction>,
    /// The accounts that it changed, if they can be read.
    pub changes: Option<BTreeMap<Address, Change>>,
    /// The emitters of its logs.
    pub emitters: Vec<Address>,
    /// The contracts that it created.
    pub created: Vec<Address>,
    /// Whether the node has no state before its block: then it says nothing about the transaction.
    pub is_state_missing: bool,
}

/// The result of reading a mined transaction.
#[derive(Debug)]
pub enum MinedExecution {
    /// The transaction was read.
    Run(MinedRun),
    /// The transaction cannot be read as a whole.
    Unreadable(UnreadableTransaction),
}

impl MinedExecution {
    /// The transaction hash.
    pub const fn hash(&self) -> B256 {
        match self {
            Self::Run(run) => run.sent.hash,
            Self::Unreadable(unreadable) => unreadable.hash,
        }
    }

    /// The contracts that the transaction created.
    pub fn created(&self) -> &[Address] {
        match self {
            Self::Run(run) => &run.created,
            Self::Unreadable(unreadable) => &unreadable.created,
        }
    }

    /// The transaction, if it can be read.
    pub const fn sent(&self) -> Option<&SentTransaction> {
        match self {
            Self::Run(run) => Some(&run.sent),
            Self::Unreadable(unreadable) => unreadable.sent.as_ref(),
        }
    }
}

/// The part of a block that lists the hashes of its transactions.
#[derive(Deserialize)]
pub(crate) struct WireHashes {
    pub(crate) transactions: Vec<B256>,
}

/// All results; `None` if one answer is an error.
pub(crate) fn results(answers: Vec<Answer<&RawValue>>) -> Option<Vec<&RawValue>> {
    let result = |answer| match answer {
        Answer::Result(result) => Some(result),
        Answer::Error(_) => None,
    };
    answers.into_iter().map(result).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    /// HD36: the time limit of a small transaction is below that of a large one.
    #[test]
    fn hd36_the_time_limit_of_a_trace_depends_on_its_gas() {
        let seconds_for = |gas| match trace_budget(gas) {
            RequestBudget::MinedExecution(time) => time.as_secs(),
            budget => panic!("{budget:?}"),
        };
        assert_eq!(
            [
                seconds_for(0),
                seconds_for(900_000),
                seconds_for(8_000_000),
                seconds_for(30_000_000)
            ],
            [5, 5, 13, 35]
        );
    }
}
