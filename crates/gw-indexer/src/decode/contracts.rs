//! Contracts that a block created, and proxies that it changed (X11).

use super::{DecodeError, created_contract};
use alloy_primitives::keccak256;
use gw_chain_store::rows::{Contract, Proxy, ProxyChange, ProxyKind};
use gw_evm::{abi::clean_address, code::minimal_proxy, trace::CallTree};
use gw_node::{BlockContent, ContractState};
use gw_types::{Address, B256, b256};
use std::collections::{BTreeMap, BTreeSet};

/// `Upgraded(address)` (EIP-1967)
const UPGRADED: B256 = b256!("bc7cd75a20ee27fd9adebab32041f755214dbc6bffa90cc0225b39da2e5c2d3b");
/// `BeaconUpgraded(address)` (EIP-1967)
const BEACON_UPGRADED: B256 = b256!("1cf3b03a6cf19fa2baba4df148e9dcabedea7f8a5c07840e207e5c089be95d3e");

/// A contract that a block created.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Creation {
    /// The contract.
    pub address: Address,
    /// The account whose code or transaction created it.
    pub creator: Address,
    /// The hash of the transaction.
    pub transaction: B256,
}

/// The contracts that a block created: by deployments according to their receipts, and by CREATE and CREATE2 frames
/// that were not undone. Each address once, with its last creation.
pub fn creations(content: &BlockContent) -> Vec<Creation> {
    let mut creations = Vec::new();
    for (index, mined) in content.transactions.iter().enumerate() {
        let creation = |(address, creator)| Creation {
            address,
            creator,
            transaction: mined.transaction.hash,
        };
        let deployed = created_contract(mined).map(|address| (address, mined.transaction.from));
        let tree = content.call_trees.as_ref().and_then(|trees| trees.get(index));
        let by_code = tree.into_iter().flat_map(CallTree::creations);
        let by_code = by_code.filter(|(address, _)| Some(*address) != deployed.map(|(address, _)| address));
        creations.extend(deployed.into_iter().chain(by_code).map(creation));
    }
    last_of_each(creations)
}

/// The contracts that the frames of a block created, without those that were undone. Each address once, with its last
/// creation.
pub(crate) fn creations_of(trees: &[CallTree], transactions: &[B256]) -> Vec<Creation> {
    let creations = trees.iter().zip(transactions).flat_map(|(tree, transaction)| {
        tree.creations().map(|(address, creator)| Creation {
            address,
            creator,
            transaction: *transaction,
        })
    });
    last_of_each(creations.collect())
}

fn last_of_each(creations: Vec<Creation>) -> Vec<Creation> {
    let mut known = BTreeSet::new();
    let mut last: Vec<Creation> = creations
        .into_iter()
        .rev()
        .filter(|creation| known.insert(creation.address))
        .collect();
    last.reverse();
    last
}

/// The contracts of earlier blocks that report an upgrade of themselves in this block.
pub fn changed_proxies(content: &BlockContent) -> BTreeSet<Address> {
    let created: BTreeSet<Address> = creations(content)
        .into_iter()
        .map(|creation| creation.address)
        .collect();
    let logs = content.transactions.iter().flat_map(|mined| &mined.receipt.logs);
    let upgrades = logs.filter(|log| matches!(log.topics.first(), Some(&UPGRADED | &BEACON_UPGRADED)));
    upgrades
        .map(|log| log.address)
        .filter(|address| !created.contains(address))
        .collect()
}

/// How a contract in this state finds the code that it runs; `None` if it is no proxy of a known kind.
pub fn proxy(state: &ContractState) -> Option<Proxy> {
    let slot = |word: &B256| clean_address(word).filter(|address| !address.is_zero());
    let named = |kind, implementation| Proxy { kind, implementation };
    let minimal = minimal_proxy(&state.code).map(|address| named(ProxyKind::Minimal, Some(address)));
    let implementation =
        || slot(&state.implementation).map(|address| named(ProxyKind::ImplementationSlot, Some(address)));
    // Which implementation a beacon names is known only to its code.
    let beacon = || slot(&state.beacon).map(|_| named(ProxyKind::Beacon, None));
    let logic = || slot(&state.logic).map(|address| named(ProxyKind::LogicSlot, Some(address)));
    minimal.or_else(implementation).or_else(beacon).or_else(logic)
}

pub(crate) fn contract_rows(
    creations: &[Creation],
    states: &BTreeMap<Address, ContractState>,
) -> Result<Vec<Contract>, DecodeError> {
    let row = |creation: &Creation| {
        let state = states.get(&creation.address).ok_or(DecodeError::NoContractState)?;
        Ok(Contract {
            address: creation.address,
            creator: Some(creation.creator),
            creation_transaction: Some(creation.transaction),
            code_hash: keccak256(&state.code),
            code: state.code.clone(),
            proxy: proxy(state),
        })
    };
    creations.iter().map(row).collect()
}

pub(super) fn proxy_changes(
    addresses: &BTreeSet<Address>,
    states: &BTreeMap<Address, ContractState>,
) -> Result<Vec<ProxyChange>, DecodeError> {
    let row = |address: &Address| {
        let state = states.get(address).ok_or(DecodeError::NoContractState)?;
        Ok(ProxyChange {
            address: *address,
            proxy: proxy(state),
        })
    };
    addresses.iter().map(row).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn topics_match_their_signatures() {
        assert_eq!(UPGRADED, keccak256("Upgraded(address)"));
        assert_eq!(BEACON_UPGRADED, keccak256("BeaconUpgraded(address)"));
    }
}
