//! The upstream node: one exchange per question, a deadline and a cap on each, answers sealed as they arrive.
//!
//! Several nodes of one chain are one node here: one of them is in use, another takes its place when it fails.
//!
//! Start with [`Node`]. Bodies are built from typed calls (`gw_evm::wire`), never from client bytes; ids are ours.
//! What a client may see of an answer is not decided here: [`Sealed`](gw_policy::sealed::Sealed) goes to the views
//! of `gw-policy`. The few facts the gateway needs for itself (the head, a nonce, a receipt's outcome) are read here,
//! before sealing, and carry nothing of a caller.
//!
//! Invariant (HD26): nothing here runs code whose target or data a caller chose, but [`Node::trace`] and its kin, which
//! return a sealed trace, and [`Node::permitted`], which takes a permit. `tests/it/execution.rs` holds it.

pub mod answers;
mod choice;
mod config;
mod endpoint;
mod facts;
mod head;
mod key;
mod key_cipher;
mod message;
mod mined;
mod node;
mod probe;
mod trace;
mod trail;
mod transport;

pub use answers::{AnswerBudget, AnswerHold, AnswerLimits, NoRoom, Payer};
pub use config::{Connections, NodeConfig, NodeConfigError, Patience, Upkeep};
pub use endpoint::{NodeState, NodeStatus};
pub use facts::{CodePair, Mined};
pub use gw_evm::wire::TraceForm;
pub use head::{Block, Head};
pub use key::{GroupKeyError, KeyId};
pub use key_cipher::{KeyCipher, KeyCipherError};
pub use message::Answer;
pub use mined::{Listing, Looked, MinedRun, Sent, Unreadable};
pub use node::{Admitting, Gate, Node, NodeError, Resend, SealedAnswer};
pub use trace::{NoTrace, SendTrace, Traced};
pub use trail::Trail;
pub use transport::Budget;
