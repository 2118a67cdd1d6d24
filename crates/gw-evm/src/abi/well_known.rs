//! Events whose shape is fixed by the standards, whatever a contract's ABI says of them (HD31).

use super::{ContractAbi, EventShape};
use alloy_primitives::B256;
use std::sync::LazyLock;

/// `Transfer` twice: ERC-20 and ERC-721 share its signature and differ in what is indexed.
static WELL_KNOWN: LazyLock<Option<ContractAbi>> =
    LazyLock::new(|| ContractAbi::parse(include_str!("builtin/well_known.json")).ok());

/// The standard's own event of a log with these topics, told by its signature and by how many inputs are indexed.
pub fn well_known(topics: &[B256]) -> Option<&'static EventShape> {
    let topic0 = topics.first()?;
    let abi = LazyLock::force(&WELL_KNOWN).as_ref()?;
    abi.declared(topic0).iter().find(|shape| shape.matches(topics))
}
