//! Views: functions that open upstream results for one viewer (spec/30 sections 5 and 6).
//!
//! Every function takes a [`Sealed`](crate::Sealed) result and returns [`Disclosed`] text. Objects are allowlists of
//! members (HD11): a member not listed is dropped, a listed one of the wrong shape makes the whole result malformed,
//! and a malformed result becomes `null`, `[]` or `"0x0"`, never the node's body (section 5.2).
//!
//! [`access`](crate::access) decides whether the method may be called, and [`visibility`](crate::visibility) which
//! addresses a viewer sees; this module does neither.

mod block;
mod block_references;
mod chain;
mod error;
mod live;
mod log;
mod passthrough;
mod receipt;
mod scan;
mod shape;
mod simulation;
mod state;
mod transaction;
mod tree;

pub use crate::visibility::{TransactionParties, TxParties, reaches_all, shows_nothing, upstream_filter};
pub use block::{BlockTransactions, block, block_transaction_count};
pub use block_references::referenced_blocks;
pub use chain::{FeeFacts, fee_history, flag, local, public_quantity, published_price, published_tip, syncing, text};
pub use error::{DisclosedError, ErrorContext, node_error};
pub use live::{DeliveredLog, header, log_array, log_rows};
pub use log::{LogsAnswer, PartiesNeeded, RunLog, block_parties, logs, parties_needed, run_logs, transaction_parties};
pub use passthrough::passthrough;
pub use receipt::{block_receipts, receipt};
pub use simulation::{access_list, call_result, gas_used, reads_base_fee, untraced_call_result};
pub use state::{balance, code, is_no_code, nonce, proof, runs_no_code, sent_hash, storage};
pub use transaction::transaction;
pub use tree::{call_tree, mined_call_tree, traceable};

use crate::sealed::Disclosed;
use scan::Malformed;

/// Placeholder in a dry run for a log of a contract of the administrator that the user would not see.
const HIDDEN_FROM_TARGET: &str = "\"hidden from the target\"";

/// Opens a result; a malformed one is replaced by `otherwise`.
fn malformed_as(otherwise: Disclosed, open: impl FnOnce() -> Result<Disclosed, Malformed>) -> Disclosed {
    open().unwrap_or_else(|Malformed| otherwise.in_place_of_malformed())
}
