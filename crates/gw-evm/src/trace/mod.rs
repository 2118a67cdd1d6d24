//! Parses traces: the calls, touched accounts and state changes that the node's tracers report (spec/20 X4, X5).
//!
//! Decisions about a trace are made in `gw-policy`. Invariant: a [`Trace`] is complete; an unknown, incomplete or too
//! large trace is an error.

mod calls;
mod json;
mod parts;
mod prestate;

pub use parts::{changed, emitters, made, touched};

use crate::wire::{TraceForm, TraceScope};
use alloy_primitives::{Address, B256, Bytes, U256};
use calls::Limits;
use serde::Deserialize;
use serde_json::value::RawValue;
use std::collections::BTreeMap;

/// Maximum depth of a call tree (X11).
pub const MAX_DEPTH: u32 = 256;
/// Maximum number of frames of one trace (X11).
pub const MAX_FRAMES: usize = 10_000;

/// Maximum depth of a call tree according to the EVM.
const EVM_DEPTH: u32 = 1024;

/// The instruction that entered a frame.
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

/// One frame of the call tree.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Frame {
    /// The instruction that entered it.
    pub kind: FrameKind,
    /// The caller; for DELEGATECALL the delegating contract.
    pub from: Address,
    /// The account whose code runs, or the created contract. `None` if a creation failed before it had an address.
    pub to: Option<Address>,
    /// Calldata or init code.
    pub input: Bytes,
    /// The return data; for a creation the deployed code.
    pub output: Bytes,
    /// Transferred value in wei. Zero for instructions that transfer none, even if the node reports a value.
    pub value: U256,
    /// Gas limit of the frame, if the node reports it.
    pub gas: Option<u64>,
    /// Gas used, if the node reports it.
    pub gas_used: Option<u64>,
    /// The node's error text, if it failed.
    pub error: Option<String>,
    /// Zero for the top frame.
    pub depth: u32,
    /// Index of the calling frame; `None` for the top frame.
    pub parent: Option<usize>,
    /// Whether it reverted or failed.
    pub failed: bool,
    /// Whether it has no effect, because it or a frame above failed.
    pub undone: bool,
    /// Events of this frame; empty if it was undone.
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
    /// The slots that were read or written, with their values before the execution. Empty unless the scope includes
    /// slots ([`TraceScope::AccessList`], [`TraceScope::Mined`]).
    pub slots: BTreeMap<B256, B256>,
}

/// The changes of a send to one account. `None` and absent slots are unchanged.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Change {
    /// The new balance.
    pub balance: Option<U256>,
    /// The new nonce.
    pub nonce: Option<u64>,
    /// Written slots with their new values.
    pub storage: BTreeMap<B256, B256>,
    /// Whether the send deletes the account.
    pub removed: bool,
    /// The previous values of what changed.
    pub before: Before,
}

/// Values of an account before a send changed it.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Before {
    /// Its balance.
    pub balance: U256,
    /// Its nonce.
    pub nonce: u64,
    /// The written slots with their previous values; absent slots were zero.
    pub storage: BTreeMap<B256, B256>,
}

impl Change {
    /// Whether nothing changed. Some nodes also list accounts that were only read.
    pub fn is_none(&self) -> bool {
        self.balance.is_none() && self.nonce.is_none() && self.storage.is_empty() && !self.removed
    }
}

/// The result of the top frame.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Outcome {
    /// Return or revert data.
    pub output: Bytes,
    /// Gas used.
    pub gas_used: u64,
    /// The node's error text, if it failed.
    pub error: Option<String>,
    /// The decoded revert reason, if the node reports one.
    pub revert_reason: Option<String>,
}

/// The trace of one execution.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Trace {
    /// The call tree in execution order; the first is the top frame.
    pub frames: Vec<Frame>,
    /// Every account that was read or written, with its state before the execution.
    pub touched: BTreeMap<Address, Account>,
    /// The state changes of a send; `None` if the scope does not include them.
    pub changes: Option<BTreeMap<Address, Change>>,
    /// The result of the top frame.
    pub top: Outcome,
}

/// Why a trace cannot be used; the gateway denies the request (X11).
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum TraceError {
    /// Not in the known format of the tracer.
    #[error("malformed trace")]
    Malformed,
    /// A frame type that the gateway does not know.
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
    /// Parses the results of [`crate::wire::trace_batch`] or [`crate::wire::trace_transaction`], in the order of the
    /// calls. `scope` and `form` are those of the calls.
    ///
    /// # Errors
    ///
    /// A [`TraceError`] if a result is malformed, unknown or too large.
    pub fn parse(results: &[&RawValue], scope: TraceScope, form: TraceForm) -> Result<Self, TraceError> {
        let (tree, prestate, diff) = match (form, scope, results) {
            (TraceForm::Mux, TraceScope::Read | TraceScope::AccessList, [mux_result]) => split_mux(mux_result, None)?,
            (TraceForm::Mux, TraceScope::Send | TraceScope::Mined, [mux_result, diff]) => {
                split_mux(mux_result, Some(diff))?
            }
            (TraceForm::Batch, TraceScope::Read | TraceScope::AccessList, [tree, prestate]) => (*tree, *prestate, None),
            (TraceForm::Batch, TraceScope::Send | TraceScope::Mined, [tree, prestate, diff]) => {
                (*tree, *prestate, Some(*diff))
            }
            _ => return Err(TraceError::Malformed),
        };
        let (frames, top) = calls::parse(
            tree,
            Limits {
                depth: MAX_DEPTH,
                frames: MAX_FRAMES,
            },
        )?;
        let touched = prestate::touched(prestate)?;
        Ok(Self {
            frames,
            touched,
            changes: diff.map(prestate::changes).transpose()?,
            top,
        })
    }

    /// The contracts that the execution creates, in order, without creations that are undone.
    pub fn created(&self) -> impl Iterator<Item = Address> {
        self.frames
            .iter()
            .filter(|frame| frame.is_creation() && !frame.undone)
            .filter_map(|frame| frame.to)
    }
}

impl Frame {
    /// Whether the frame is a CREATE or CREATE2.
    pub fn is_creation(&self) -> bool {
        matches!(self.kind, FrameKind::Create | FrameKind::Create2)
    }
}

type TracerResults<'a> = (&'a RawValue, &'a RawValue, Option<&'a RawValue>);

fn split_mux<'a>(mux_result: &'a RawValue, diff: Option<&'a RawValue>) -> Result<TracerResults<'a>, TraceError> {
    #[derive(Deserialize)]
    struct MuxResult<'a> {
        #[serde(borrow, rename = "callTracer")]
        tree: &'a RawValue,
        #[serde(borrow, rename = "prestateTracer")]
        prestate: &'a RawValue,
    }
    let MuxResult { tree, prestate } = serde_json::from_str(mux_result.get()).map_err(|_| TraceError::Malformed)?;
    Ok((tree, prestate, diff))
}

/// The call tree of a mined transaction.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct CallTree {
    /// The frames in execution order; the first is the top frame.
    pub frames: Vec<Frame>,
    /// The result of the top frame.
    pub top: Outcome,
}

impl CallTree {
    /// Parses a result of [`crate::wire::trace_block_calls`] or [`crate::wire::trace_transaction_calls`]. The limits of
    /// [`Trace::parse`] do not apply: the tree is stored, not evaluated, and the EVM limits its depth.
    ///
    /// # Errors
    ///
    /// A [`TraceError`] if the result is malformed or deeper than the EVM allows.
    pub fn parse(result: &RawValue) -> Result<Self, TraceError> {
        let limits = Limits {
            depth: EVM_DEPTH,
            frames: usize::MAX,
        };
        let (frames, top) = calls::parse(result, limits)?;
        Ok(Self { frames, top })
    }

    /// The position of each frame in the tree: its index in each parent frame; empty for the top frame.
    pub fn trace_addresses(&self) -> Vec<Vec<u32>> {
        let mut addresses: Vec<Vec<u32>> = Vec::with_capacity(self.frames.len());
        let mut children = vec![0_u32; self.frames.len()];
        for frame in &self.frames {
            let parent = frame.parent.and_then(|parent| addresses.get(parent)).cloned();
            let position = frame.parent.and_then(|parent| children.get_mut(parent));
            let mut address = parent.unwrap_or_default();
            if let Some(position) = position {
                address.push(*position);
                *position = position.saturating_add(1);
            }
            addresses.push(address);
        }
        addresses
    }

    /// The creations that were not undone, in order: the contract, and the account that created it.
    pub fn creations(&self) -> impl Iterator<Item = (Address, Address)> {
        let kept = self.frames.iter().filter(|frame| frame.is_creation() && !frame.undone);
        kept.filter_map(|frame| Some((frame.to?, frame.from)))
    }
}

/// One transaction of a traced block.
#[derive(Clone, Debug)]
pub struct Mined<'a> {
    /// The transaction hash.
    pub hash: B256,
    /// The tracer results for [`Trace::parse`].
    pub results: Vec<&'a RawValue>,
}

/// Splits the results of [`crate::wire::trace_block`] by transaction, in the order of the block.
///
/// # Errors
///
/// [`TraceError::Malformed`] if the node could not trace a transaction, or if the results list different
/// transactions.
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
    let (first, further) = results.split_first().ok_or(TraceError::Malformed)?;
    let mut mined: Vec<_> = read(first)?
        .into_iter()
        .map(|item| Mined {
            hash: item.hash,
            results: vec![item.result],
        })
        .collect();
    for block in further {
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
