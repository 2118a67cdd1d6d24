//! Events whose shape the token standards define, regardless of the ABI of a contract (HD31).

use super::{ContractAbi, EventShape};
use alloy_primitives::B256;
use std::sync::LazyLock;

/// Contains `Transfer` twice: ERC-20 and ERC-721 share its signature and differ in the indexed inputs.
static WELL_KNOWN: LazyLock<Option<ContractAbi>> =
    LazyLock::new(|| ContractAbi::parse(include_str!("builtin/well_known.json")).ok());

/// The standard event of a log with these topics, by signature and number of indexed inputs.
pub fn well_known(topics: &[B256]) -> Option<&'static EventShape> {
    let topic0 = topics.first()?;
    let abi = LazyLock::force(&WELL_KNOWN).as_ref()?;
    abi.declared(topic0).iter().find(|shape| shape.matches(topics))
}
