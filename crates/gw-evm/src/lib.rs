//! Parses and encodes the wire formats: JSON-RPC envelopes, the closed method registry, typed calls, signed
//! transactions, traces and the address slots of logs.
//!
//! Input is parsed once, at the edge. Upstream requests are built from the typed form, never from client bytes
//! (spec/20 J5). This crate does not know who calls or what the caller may do.
//!
//! The reading order is that of a request: [`envelope`] splits the body into requests, [`method`] looks up the method
//! name ([`custom_methods`] looks up the names of the operator's file), [`call`] types the parameters ([`tx`] decodes
//! signed transactions), [`wire`] encodes the upstream request, and [`trace`], [`mod@code`] and [`abi`] interpret the
//! response.
#![warn(missing_docs, clippy::missing_errors_doc, clippy::wildcard_enum_match_arm)]

pub mod abi;
pub mod call;
pub mod code;
pub mod custom_methods;
pub mod envelope;
mod error;
pub mod method;
pub mod trace;
pub mod tx;
mod visible_to;
pub mod wire;

pub use call::{
    BlockId, BlockTag, Call, CallRequest, ChainRules, LogFilter, LogRange, ParsedCall, Passthrough, SendRequest,
    SignedTransaction, Simulation, SimulationKind, SubscriptionCall, SubscriptionId, Topic, TopicFilter,
    TransactionRef,
};
pub use custom_methods::{AllowListMatch, CustomMethod, CustomMethodNames, CustomMethods};
pub use error::{ParamError, ParamErrorKind};
pub use method::{Class, Method, MethodLookup, MethodSet};
pub use visible_to::VisibleTo;
