//! Traces: what an execution called, touched and changed, as the node's tracers tell it (spec/20 X4, X5).
//!
//! Not for judging it. Invariant: a [`Trace`] is complete; whatever is unknown, cut off or too large is an error.

mod calls;
mod json;
mod parts;
mod prestate;

pub use parts::{changed, emitters, made, touched};

use crate::wire::{TraceForm, TraceScope};
use alloy_primitives::{Address, B256, Bytes, U256};
use serde::Deserialize;
use serde_json::value::RawValue;
use std::collections::BTreeMap;

/// The deepest call tree (X11).
pub const MAX_DEPTH: u32 = 256;
/// The most frames of one trace (X11).
pub const MAX_FRAMES: usize = 10_000;

/// How a frame was entered.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum FrameKind {
    /// CALL, and the top frame of a call.
    Call,
    /// STATICCALL
    StaticCall,
    /// DELEGATECALL
    DelegateCall,
    /// CALLCODE
    CallCode,
    /// CREATE, and the top frame of a deployment.
    Create,
    /// CREATE2
    Create2,
    /// SELFDESTRUCT; `to` is the beneficiary.
    SelfDestruct,
}

/// One frame.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Frame {
    /// How it was entered.
    pub kind: FrameKind,
    /// Whose call it is; under DELEGATECALL the contract that delegates.
    pub from: Address,
    /// Whose code runs, or what was created; `None` if a creation failed before it had an address.
    pub to: Option<Address>,
    /// Calldata or init code.
    pub input: Bytes,
    /// What it returned; the code of a creation.
    pub output: Bytes,
    /// Wei moved; zero where the opcode moves none, whatever the node writes there.
    pub value: U256,
    /// Gas it was given, if the node says so.
    pub gas: Option<u64>,
    /// Gas it used, if the node says so.
    pub gas_used: Option<u64>,
    /// The node's error text, if it failed.
    pub error: Option<String>,
    /// Zero for the top frame.
    pub depth: u32,
    /// Index of the calling frame.
    pub parent: Option<usize>,
    /// Whether it was reverted or failed.
    pub failed: bool,
    /// Whether it has no effect, because it or a frame above failed.
    pub undone: bool,
    /// Events of this frame; none if it was undone.
    pub logs: Vec<FrameLog>,
}

/// An event of a frame.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct FrameLog {
    /// The emitter.
    pub address: Address,
    /// Topics, at most four.
    pub topics: Vec<B256>,
    /// Data.
    pub data: Bytes,
}

/// An account as it was before the execution.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Account {
    /// Its code.
    pub code: Bytes,
    /// Its balance.
    pub balance: U256,
    /// Its nonce.
    pub nonce: u64,
    /// The slots read or written with their values; none unless they were asked for ([`TraceScope::AccessList`],
    /// [`TraceScope::Mined`]).
    pub slots: BTreeMap<B256, B256>,
}

/// What a send changes on one account; `None` and absent slots are unchanged.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Change {
    /// The new balance.
    pub balance: Option<U256>,
    /// The new nonce.
    pub nonce: Option<u64>,
    /// Written slots with their new values.
    pub storage: BTreeMap<B256, B256>,
    /// Whether the account is gone afterwards.
    pub removed: bool,
    /// The account as it was, as far as it changed.
    pub before: Before,
}

/// An account before a send changed it.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Before {
    /// Its balance.
    pub balance: U256,
    /// Its nonce.
    pub nonce: u64,
    /// The written slots with their old values; absent ones were zero.
    pub storage: BTreeMap<B256, B256>,
}

impl Change {
    /// Whether nothing changed: some nodes list accounts that were looked at only.
    pub fn is_none(&self) -> bool {
        self.balance.is_none() && self.nonce.is_none() && self.storage.is_empty() && !self.removed
    }
}

/// How the top frame ended.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Outcome {
    /// Return or revert data.
    pub output: Bytes,
    /// Gas used.
    pub gas_used: u64,
    /// The node's error text, if it failed.
    pub error: Option<String>,
    /// The decoded revert reason, if the node gave one.
    pub revert_reason: Option<String>,
}

/// One execution.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Trace {
    /// The call tree in execution order; the first is the top frame.
    pub frames: Vec<Frame>,
    /// Every account read or written, as before the execution.
    pub touched: BTreeMap<Address, Account>,
    /// What a send changes; `None` when it was not asked for.
    pub changes: Option<BTreeMap<Address, Change>>,
    /// How it ended.
    pub top: Outcome,
}

/// Why a trace cannot be used; the request is denied (X11).
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum TraceError {
    /// Not what the tracer is known to write.
    #[error("malformed trace")]
    Malformed,
    /// A frame type the gateway cannot judge.
    #[error("unknown frame type")]
    UnknownFrame,
    /// Deeper than [`MAX_DEPTH`].
    #[error("call tree is too deep")]
    TooDeep,
    /// More than [`MAX_FRAMES`].
    #[error("call tree has too many frames")]
    TooManyFrames,
}

impl Trace {
    /// Reads the results of [`crate::wire::trace_batch`] and its kin, in their order.
    pub fn parse(results: &[&RawValue], scope: TraceScope, form: TraceForm) -> Result<Self, TraceError> {
        let (tree, prestate, diff) = match (form, scope, results) {
            (TraceForm::Mux, TraceScope::Read | TraceScope::AccessList, [both]) => mux(both, None)?,
            (TraceForm::Mux, TraceScope::Send | TraceScope::Mined, [both, diff]) => mux(both, Some(diff))?,
            (TraceForm::Batch, TraceScope::Read | TraceScope::AccessList, [tree, prestate]) => (*tree, *prestate, None),
            (TraceForm::Batch, TraceScope::Send | TraceScope::Mined, [tree, prestate, diff]) => {
                (*tree, *prestate, Some(*diff))
            }
            _ => return Err(TraceError::Malformed),
        };
        let (frames, top) = calls::parse(tree)?;
        let touched = prestate::touched(prestate)?;
        Ok(Self {
            frames,
            touched,
            changes: diff.map(prestate::changes).transpose()?,
            top,
        })
    }

    /// What the execution creates, in order; creations that are undone do not count.
    pub fn created(&self) -> impl Iterator<Item = Address> {
        self.frames
            .iter()
            .filter(|frame| frame.is_creation() && !frame.undone)
            .filter_map(|frame| frame.to)
    }
}

impl Frame {
    /// CREATE or CREATE2.
    pub fn is_creation(&self) -> bool {
        matches!(self.kind, FrameKind::Create | FrameKind::Create2)
    }
}

type Parts<'a> = (&'a RawValue, &'a RawValue, Option<&'a RawValue>);

fn mux<'a>(both: &'a RawValue, diff: Option<&'a RawValue>) -> Result<Parts<'a>, TraceError> {
    #[derive(Deserialize)]
    struct Both<'a> {
        #[serde(borrow, rename = "callTracer")]
        tree: &'a RawValue,
        #[serde(borrow, rename = "prestateTracer")]
        prestate: &'a RawValue,
    }
    let Both { tree, prestate } = serde_json::from_str(both.get()).map_err(|_| TraceError::Malformed)?;
    Ok((tree, prestate, diff))
}

/// One transaction of a traced block.
#[derive(Clone, Debug)]
pub struct Mined<'a> {
    /// Which transaction.
    pub hash: B256,
    /// What [`Trace::parse`] takes.
    pub results: Vec<&'a RawValue>,
}

/// Takes the results of [`crate::wire::trace_block`] apart, in the order of the block. A transaction the node could
/// not trace is an error.
pub fn transactions<'a>(results: &[&'a RawValue]) -> Result<Vec<Mined<'a>>, TraceError> {
    #[derive(Deserialize)]
    struct Item<'a> {
        #[serde(rename = "txHash")]
        hash: B256,
        #[serde(borrow)]
        result: &'a RawValue,
    }
    let read =
        |block: &&'a RawValue| serde_json::from_str::<Vec<Item<'a>>>(block.get()).map_err(|_| TraceError::Malformed);
    let (first, others) = results.split_first().ok_or(TraceError::Malformed)?;
    let mut mined: Vec<_> = read(first)?
        .into_iter()
        .map(|item| Mined {
            hash: item.hash,
            results: vec![item.result],
        })
        .collect();
    for block in others {
        let items = read(block)?;
        if !items
            .iter()
            .map(|item| item.hash)
            .eq(mined.iter().map(|transaction| transaction.hash))
        {
            return Err(TraceError::Malformed);
        }
        mined
            .iter_mut()
            .zip(items)
            .for_each(|(transaction, item)| transaction.results.push(item.result));
    }
    Ok(mined)
}
