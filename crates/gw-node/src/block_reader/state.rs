//! Reads the state of accounts for the index of the explorer, pinned to a block hash.

use super::BlockReader;
use crate::{
    error::NodeError,
    head::{at_hash, parse},
    message::Answer,
    transport::RequestBudget,
};
use gw_evm::{
    code::{BEACON_SLOT, IMPLEMENTATION_SLOT, LOGIC_SLOT},
    wire,
};
use gw_types::{Address, B256, Bytes, U256};

/// Most accounts in one request.
const ACCOUNTS_PER_REQUEST: usize = 50;

/// A contract at a block: its code and the slots in which proxies name their implementation.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ContractState {
    /// The code.
    pub code: Bytes,
    /// The implementation slot (EIP-1967).
    pub implementation: B256,
    /// The beacon slot (EIP-1967).
    pub beacon: B256,
    /// The logic slot (EIP-1822).
    pub logic: B256,
}

impl BlockReader {
    /// The code and proxy slots of contracts at a block; `None` where the node keeps no state that old.
    ///
    /// # Errors
    /// [`NodeError`] if the node does not answer.
    pub async fn contracts(&self, addresses: &[Address], block: B256) -> Result<Vec<Option<ContractState>>, NodeError> {
        let mut contracts = Vec::with_capacity(addresses.len());
        for addresses in addresses.chunks(ACCOUNTS_PER_REQUEST) {
            let query = |address: &Address| {
                let slot = |slot| wire::storage(*address, slot, at_hash(block));
                [
                    wire::code(*address, at_hash(block)),
                    slot(IMPLEMENTATION_SLOT),
                    slot(BEACON_SLOT),
                    slot(LOGIC_SLOT),
                ]
            };
            let calls: Vec<_> = addresses.iter().flat_map(query).collect();
            let answers = self.node.ask(&calls, RequestBudget::Block).await?;
            for answers in answers.chunks(4) {
                contracts.push(match answers {
                    [
                        Answer::Result(code),
                        Answer::Result(implementation),
                        Answer::Result(beacon),
                        Answer::Result(logic),
                    ] => Some(ContractState {
                        code: parse(code)?,
                        implementation: word(implementation)?,
                        beacon: word(beacon)?,
                        logic: word(logic)?,
                    }),
                    _ => None,
                });
            }
        }
        Ok(contracts)
    }

    /// The balances of addresses in wei at a block; `None` where the node keeps no state that old.
    ///
    /// # Errors
    /// [`NodeError`] if the node does not answer.
    pub async fn balances(&self, addresses: &[Address], block: B256) -> Result<Vec<Option<U256>>, NodeError> {
        let mut balances = Vec::with_capacity(addresses.len());
        for addresses in addresses.chunks(ACCOUNTS_PER_REQUEST) {
            let query = |address: &Address| wire::balance(*address, at_hash(block));
            let calls: Vec<_> = addresses.iter().map(query).collect();
            for answer in self.node.ask(&calls, RequestBudget::Fact).await? {
                balances.push(match answer {
                    Answer::Result(balance) => Some(parse(&balance)?),
                    Answer::Error(_) => None,
                });
            }
        }
        Ok(balances)
    }
}

/// A storage word; some nodes leave out its leading zeros.
fn word(text: &bytes::Bytes) -> Result<B256, NodeError> {
    parse::<U256>(text).map(B256::from)
}
