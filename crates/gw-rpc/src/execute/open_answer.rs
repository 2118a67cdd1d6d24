//! Opens the answers of forwarded calls, each with the view of its method (spec/30 section 5.1).

use crate::{call::CallContext, outcome::RpcOutcome};
use gw_evm::{Call, Method};
use gw_node::Head;
use gw_policy::{
    Disclosed, RawJson, Sealed,
    view::{self, BlockTransactions, FeeFacts},
};
use gw_types::{DenyReason, U256};

/// Opens an answer about the state at block `block_number`.
pub(super) fn open_answer(
    context: &CallContext<'_>,
    head: &Head,
    block_number: u64,
    sealed: Sealed<RawJson>,
) -> Result<Disclosed, RpcOutcome> {
    let viewer = context.viewer();
    let published = viewer
        .policy_settings()
        .hide_base_fee
        .then(|| view::published_price(head.gas_price));
    Ok(match context.permit().call() {
        Call::Plain(Method::Syncing) => view::syncing(sealed),
        Call::Plain(Method::ProtocolVersion) => view::text(sealed),
        // HIDE_BASE_FEE: the price minus the tip is the base fee.
        Call::Plain(Method::MaxPriorityFeePerGas) if published.is_some() => {
            view::local::quantity(view::published_tip(head.gas_price))
        }
        Call::Plain(Method::BlobBaseFee) if published.is_some() => view::local::quantity(U256::ONE),
        Call::Plain(Method::MaxPriorityFeePerGas | Method::BlobBaseFee | Method::PeerCount) => {
            view::public_quantity(sealed)
        }
        Call::FeeHistory { percentiles, .. } => {
            let facts = FeeFacts {
                gas_price: head.gas_price,
                head_base_fee: head.base_fee.unwrap_or(U256::ZERO),
                percentiles: percentiles.as_ref().map(Vec::len),
            };
            view::fee_history(&viewer, facts, sealed)
        }
        Call::Balance(address, _) => view::balance(&viewer, *address, block_number, sealed),
        Call::Nonce(address, _) => view::nonce(&viewer, *address, block_number, sealed),
        Call::Code(address, _) => view::code(&viewer, *address, block_number, sealed)
            .ok_or_else(|| context.denied(DenyReason::ContractNotPermitted))?,
        Call::Simulate(_) => view::untraced_call_result(sealed),
        Call::Storage { address, slot, .. } => view::storage(&viewer, *address, *slot, block_number, sealed),
        Call::Proof { address, .. } => view::proof(&viewer, *address, block_number, sealed),
        Call::Transaction(_) => view::transaction(&viewer, sealed),
        Call::Receipt(_) => view::receipt(&viewer, sealed),
        Call::Block { full: true, .. } => view::block(&viewer, BlockTransactions::Full, published, sealed),
        Call::Block { full: false, .. } => view::block(&viewer, BlockTransactions::Hashes, published, sealed),
        Call::BlockTransactionCount(_) => view::block_transaction_count(&viewer, sealed),
        Call::BlockReceipts(_) => view::block_receipts(&viewer, sealed),
        // Answered by another module, or not at all.
        _ => return Err(context.denied(DenyReason::MethodNotAllowed)),
    })
}
