//! Bytes to meaning: JSON-RPC envelopes, the closed method registry, typed calls, signed transactions, traces
//! and the ABI slots of logs.
//!
//! Everything is parsed once, here, at the edge; what leaves towards the node is built from the typed form,
//! never from client bytes (spec/20 J5). Nothing here knows who is calling or what they may do.
//!
//! Read in the order of a request: [`envelope`] takes the body apart, [`method`] says what the name means
//! ([`extras`] what the operator's own names do), [`call`] gives parameters a type (with [`tx`] for signed bytes), [`wire`] writes what goes to the node, and [`trace`],
//! [`mod@code`] and [`abi`] read what comes back.
#![warn(missing_docs, clippy::wildcard_enum_match_arm)]

pub mod abi;
pub mod call;
pub mod code;
pub mod envelope;
mod error;
pub mod extras;
pub mod method;
pub mod trace;
pub mod tx;
mod visible_to;
pub mod wire;

pub use call::{
    BlockId, BlockTag, Call, CallRequest, ChainRules, Live, LiveId, LogFilter, LogRange, ParsedCall, SendRequest,
    SignedTransaction, Simulation, SimulationKind, Topic, TopicFilter, TransactionRef, Unexamined,
};
pub use error::{ParamError, ParamErrorKind};
pub use extras::{Extra, ExtraNames, Extras, Listed};
pub use method::{Class, Lookup, Method, MethodSet};
pub use visible_to::VisibleTo;
