//! Runs view functions of contracts for the index of the explorer: the metadata, supply and balances of tokens.
//!
//! The author of a contract chooses its code, so a view function may read other contracts and return what it read
//! (HD26). Each run is therefore traced, and the result names the accounts other than the contract that it may depend
//! on. The caller decides which of them a stored value may depend on.

use super::BlockReader;
use crate::{error::NodeError, node::Node, trace::NoTrace};
use gw_evm::{
    CallRequest,
    code::{asks_for_beneficiary, probes_accounts},
    trace::Trace,
    wire::{Pin, TraceScope},
};
use gw_policy::snapshot::VisibleState;
use gw_types::{Address, Bytes};
use std::collections::BTreeSet;

/// The largest output that is returned, in bytes.
const LARGEST_OUTPUT: usize = 16 * 1024;

/// A call of a view function.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ViewCall {
    /// The contract.
    pub contract: Address,
    /// The calldata.
    pub input: Bytes,
    /// The gas limit.
    pub gas: u64,
}

/// The result of a view function.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ViewResult {
    /// The output; `None` if the run failed or its output is too large.
    pub output: Option<Bytes>,
    /// The accounts whose code or state the output may depend on, except the contract itself.
    pub dependencies: BTreeSet<Address>,
}

impl BlockReader {
    /// Runs a view function on the state of a block as users are shown it, from the zero address.
    ///
    /// # Errors
    /// [`NoTrace`] if the node cannot trace the call. A run that fails is a result without output.
    pub async fn view(&self, call: &ViewCall, pin: Pin, state: &VisibleState) -> Result<ViewResult, NoTrace> {
        self.node
            .with_failover(|node| async move { run(&node, call, pin, state).await })
            .await
    }
}

async fn run(node: &Node, call: &ViewCall, pin: Pin, state: &VisibleState) -> Result<ViewResult, NoTrace> {
    let request = CallRequest {
        to: Some(call.contract),
        input: call.input.clone(),
        gas: Some(call.gas),
        ..CallRequest::default()
    };
    let coinbase = node.head().map(|head| head.block.coinbase);
    match node.trace_on(&request, pin, TraceScope::Read, state).await? {
        Ok(trace) => Ok(ViewResult {
            output: output(&trace),
            dependencies: dependencies(&trace, call.contract, coinbase),
        }),
        // The node refused to run it, for example because the state is not available.
        Err(_) => Err(NoTrace::Node(NodeError::NoAnswer)),
    }
}

fn output(trace: &Trace) -> Option<Bytes> {
    let is_usable = trace.top.error.is_none() && trace.top.output.len() <= LARGEST_OUTPUT;
    is_usable.then(|| trace.top.output.clone())
}

/// The accounts that a run touched, except the contract, the zero address that called it, and precompiled contracts.
/// Traces list the beneficiary of the block always; it counts only if code can read it.
fn dependencies(trace: &Trace, contract: Address, coinbase: Option<Address>) -> BTreeSet<Address> {
    let reads_beneficiary = trace
        .touched
        .values()
        .any(|account| asks_for_beneficiary(&account.code) || probes_accounts(&account.code));
    let parties = trace.frames.iter().filter_map(|frame| frame.to);
    let touched = trace.touched.keys().copied().filter(|address| {
        let is_beneficiary = Some(*address) == coinbase;
        !is_beneficiary || reads_beneficiary
    });
    parties
        .chain(touched)
        .filter(|address| *address != contract && !is_precompiled_or_zero(*address))
        .collect()
}

/// Addresses below 1024: no key and no deployment yields one.
fn is_precompiled_or_zero(address: Address) -> bool {
    let (high, low) = address.split_at(18);
    high.iter().all(|byte| *byte == 0) && low.first().is_none_or(|byte| *byte < 4)
}
