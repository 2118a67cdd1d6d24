//! The block that a forwarded call reads, and the deadline of the call.

use gw_evm::{BlockId, Call, TransactionRef};
use gw_node::RequestBudget;

/// The block that a call queries.
pub(super) enum BlockTarget {
    /// The state at this block.
    State(BlockId),
    /// The block of this number itself.
    Block(u64),
    /// The followed head, or a block that the node finds by a hash.
    Head,
}

pub(super) fn block_target(call: &Call) -> BlockTarget {
    match call {
        Call::Balance(_, block) | Call::Nonce(_, block) | Call::Code(_, block) => BlockTarget::State(*block),
        Call::Storage { block, .. } | Call::Proof { block, .. } => BlockTarget::State(*block),
        Call::Simulate(simulation) => BlockTarget::State(simulation.block),
        Call::Block {
            block: BlockId::Number(number),
            ..
        }
        | Call::BlockTransactionCount(BlockId::Number(number))
        | Call::BlockReceipts(BlockId::Number(number))
        | Call::Transaction(TransactionRef::BlockNumberAndIndex(BlockId::Number(number), _)) => {
            BlockTarget::Block(*number)
        }
        _ => BlockTarget::Head,
    }
}

/// Deadline of a forwarded call (RTO8): short for what the node stores, long for what it computes.
pub(super) fn budget(call: &Call) -> RequestBudget {
    let is_lookup = matches!(
        call,
        Call::Plain(_)
            | Call::Balance(..)
            | Call::Nonce(..)
            | Call::Code(..)
            | Call::Storage { .. }
            | Call::Transaction(_)
            | Call::Receipt(_)
            | Call::Block { .. }
            | Call::BlockTransactionCount(_)
    );
    if is_lookup {
        RequestBudget::Lookup
    } else {
        RequestBudget::Forward
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use gw_types::Address;

    /// RTO8: a value that the node stores has a shorter deadline than one that it computes.
    #[test]
    fn rto8_a_lookup_has_a_shorter_deadline_than_a_computation() {
        let address = Address::ZERO;
        for lookup in [
            Call::Balance(address, BlockId::LATEST),
            Call::Nonce(address, BlockId::LATEST),
            Call::Code(address, BlockId::LATEST),
            Call::Transaction(TransactionRef::Hash(Default::default())),
            Call::Receipt(Default::default()),
            Call::Block {
                block: BlockId::LATEST,
                full: true,
            },
        ] {
            assert_eq!(budget(&lookup), RequestBudget::Lookup, "{lookup:?}");
        }
        let history = Call::FeeHistory {
            count: 1024,
            newest: BlockId::LATEST,
            percentiles: None,
        };
        for computation in [Call::BlockReceipts(BlockId::LATEST), history] {
            assert_eq!(budget(&computation), RequestBudget::Forward, "{computation:?}");
        }
    }
}
