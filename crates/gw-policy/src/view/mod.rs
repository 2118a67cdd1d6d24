//! Opening the node's answers for one viewer (spec/30 sections 5 and 6).
//!
//! Every function takes a [`Sealed`](crate::Sealed) answer and gives [`Disclosed`] text. Objects are allowlists of
//! members (HD11): a member not listed is dropped, a listed one of the wrong shape makes the whole answer malformed,
//! and a malformed answer is `null`, `[]` or `"0x0"`, never the node's body (section 5.2).
//!
//! Not here: whether the method may be called at all (`access`), and who sees which address
//! ([`visibility`](crate::visibility)).

mod block;
mod chain;
mod error;
mod live;
mod log;
mod receipt;
mod scan;
mod shape;
mod simulation;
mod state;
mod transaction;
mod tree;
mod unexamined;

pub use block::{BlockTransactions, block, block_transaction_count};
pub use chain::{FeeFacts, fee_history, figure, flag, local, syncing, text};
pub use error::{DisclosedError, ErrorContext, node_error};
pub use live::{Item, header, listed, rows};
pub use log::{LogsAnswer, PartiesNeeded, TxParties, logs, parties_needed, upstream_filter};
pub use receipt::{block_receipts, receipt};
pub use simulation::{access_list, call_result, gas_used, trace, untraced_call_result};
pub use state::{balance, code, is_no_code, nonce, proof, sent_hash, storage};
pub use transaction::transaction;
pub use tree::{call_tree, mined_call_tree, traceable};
pub use unexamined::unexamined;

use crate::{
    sealed::Disclosed,
    visibility::{Admission, Viewer},
};
use alloy_primitives::{Address, B256};
use scan::Malformed;

/// Opens an answer, with the constant that stands in place of a malformed one.
fn malformed_as(otherwise: Disclosed, open: impl FnOnce() -> Result<Disclosed, Malformed>) -> Disclosed {
    open().unwrap_or_else(|Malformed| otherwise.in_place_of_malformed())
}

/// Who a transaction is from and to.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Parties {
    tx_hash: B256,
    from: Address,
    to: Option<Address>,
}

impl Parties {
    fn admission(&self, viewer: &Viewer<'_>) -> Admission {
        viewer.admission(self.tx_hash, self.from, self.to)
    }
}
