//! Client of the upstream EVM node: one HTTP exchange per request, each with a deadline and a size limit; answers are
//! sealed as they arrive.
//!
//! Several nodes of one chain appear as one node: one of them is in use, and another one replaces it when it fails.
//!
//! Start with [`Node`]. Request bodies are built from typed calls (`gw_evm::wire`), never from client bytes, and with
//! ids of our own. This crate does not decide what a client may see of an answer: [`Sealed`](gw_policy::sealed::Sealed)
//! values go to the views of `gw-policy`. The few facts that the gateway needs itself (the head, a nonce, a receipt's
//! outcome) are read here before sealing, and contain nothing of a caller.
//!
//! Invariant (HD26): nothing here runs code whose target or data a caller chose, except [`Node::trace`] and the other
//! trace functions, which return a sealed trace, [`Node::permitted`], which takes a permit, and [`BlockReader::view`],
//! whose result names every account that it may depend on. `tests/it/execution.rs` enforces it.
//!
//! [`BlockReader`] alone returns answers that are not sealed: the whole blocks that `gw-indexer` stores.

pub mod answers;
mod block_reader;
mod config;
mod connect;
mod control;
mod endpoint;
mod error;
mod failover;
mod head;
mod key;
mod lookup;
mod message;
mod mined;
mod node;
mod probe;
mod queries;
mod recent_blocks;
mod trace;
mod tracing_support;
mod transport;
mod unreadable;

pub use answers::{AnswerBudget, AnswerHold, AnswerLimits, NoRoom, Payer};
pub use block_reader::{
    BlockContent, BlockReader, ContractState, HeaderContent, LogContent, MinedTransaction, ReadError, ReceiptContent,
    TransactionContent, ViewCall, ViewResult,
};
pub use config::{Connections, HealthCheckConfig, NodeConfig, NodeConfigError, Timeouts};
pub use endpoint::{NodeState, NodeStatus};
pub use error::NodeError;
pub use gw_evm::wire::TraceForm;
pub use head::{Block, Head};
pub use key::{GroupKeyError, KeyId};
pub use lookup::NonceUse;
pub use message::Answer;
pub use mined::{BlockListing, MinedExecution, MinedRun, SentTransaction, UnreadableTransaction};
pub use node::{BlockGate, BlockValidation, Node, RetryPolicy, SealedAnswer};
pub use queries::{CodePair, Mined};
pub use recent_blocks::RecentBlocks;
pub use trace::{NoTrace, SendTrace, TraceResult};
pub use transport::RequestBudget;
