//! The rows of a block, reduced to the addresses in them.

use gw_types::{Address, B256, Timestamp};

/// A kind of row. Each kind has its own ids.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Space {
    /// Transactions.
    Transactions,
    /// Token transfers, one per moved token id.
    Transfers,
    /// Internal transactions: the frames below the top frame of a transaction.
    Frames,
    /// Event logs.
    Logs,
}

/// The id of a row within its [`Space`]: the number of rows of the space before it on the chain.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct RowId(pub u64);

/// The rows of one block, in the order of the chain.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct BlockRows {
    /// The number of the block.
    pub number: u64,
    /// The time of the block.
    pub time: Timestamp,
    /// The transactions in the order of their index.
    pub transactions: Vec<TransactionRows>,
}

/// The addresses of a transaction and of the rows that belong to it.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct TransactionRows {
    /// The sender.
    pub from: Address,
    /// The recipient; `None` for a deployment.
    pub to: Option<Address>,
    /// The token transfers in the order of their logs.
    pub transfers: Vec<TransferParties>,
    /// The internal transactions in the order of the trace.
    pub frames: Vec<FrameParties>,
    /// The logs in the order of their index.
    pub logs: Vec<LogParties>,
}

/// The addresses of a token transfer.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct TransferParties {
    /// The token contract.
    pub token: Address,
    /// The sender of the tokens; the zero address for a mint.
    pub from: Address,
    /// The recipient of the tokens; the zero address for a burn.
    pub to: Address,
}

/// The addresses of an internal transaction.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct FrameParties {
    /// The caller.
    pub from: Address,
    /// The called address, or the created contract; `None` for a failed creation.
    pub to: Option<Address>,
}

/// The addresses of a log.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct LogParties {
    /// The contract that emitted the log.
    pub emitter: Address,
    /// The first topic; `None` for a log without topics.
    pub topic0: Option<B256>,
    /// The number of topics.
    pub topics: u8,
    /// The addresses in the second, third and fourth topic.
    pub parties: [Option<Address>; 3],
}

impl LogParties {
    /// The addresses of a log with these topics.
    pub fn new(emitter: Address, topics: &[B256]) -> Self {
        let party = |position: usize| topics.get(position).and_then(possible_address);
        Self {
            emitter,
            topic0: topics.first().copied(),
            topics: u8::try_from(topics.len()).unwrap_or(u8::MAX),
            parties: [party(1), party(2), party(3)],
        }
    }
}

/// The address that a word may contain (HD31): the upper 12 bytes are zero and the value is at least 2^64. Smaller
/// values are numbers, for example token ids, of which each would take a posting list.
fn possible_address(word: &B256) -> Option<Address> {
    let (high, low) = word.split_first_chunk::<12>()?;
    let is_address = high == &[0; 12] && low.iter().take(12).any(|byte| *byte != 0);
    is_address.then(|| Address::from_slice(low))
}
