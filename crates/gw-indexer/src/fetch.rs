//! Reads blocks from the node as rows.

use crate::{
    config::Delays,
    decode::{DecodeError, changed_proxies, creations, decode},
};
use gw_chain_store::BlockData;
use gw_node::{BlockContent, BlockReader, ContractState, Node, NodeError, ReadError};
use gw_types::{Address, B256};
use std::{collections::BTreeMap, sync::Arc};

/// Why a block could not be read. It is read again.
#[derive(Debug, thiserror::Error)]
pub(crate) enum FetchError {
    /// It could not be read from the node.
    #[error("a block could not be read")]
    Read(#[from] ReadError),
    /// The state of its contracts could not be read.
    #[error("the state of the contracts of a block could not be read")]
    State(#[from] NodeError),
    /// It could not be decoded.
    #[error("a block could not be decoded")]
    Decode(#[from] DecodeError),
}

impl FetchError {
    /// The label of the metric.
    const fn reason(&self) -> &'static str {
        match self {
            Self::Read(ReadError::MissingReceipt) => "receipt",
            Self::Read(ReadError::OtherTransactions) => "transactions",
            Self::Read(ReadError::OtherLogs) => "logs",
            Self::Read(ReadError::OtherBlock) => "reorganization",
            Self::Read(ReadError::Node(_)) | Self::State(_) => "node",
            Self::Decode(_) => "decode",
        }
    }
}

/// Why the block with this number cannot be indexed now: the node contradicts itself about it, or it cannot be decoded.
/// `None` if it can be indexed, if there is none, or if the node does not answer. For the state of the indexer.
pub async fn find_block_problem(node: Arc<Node>, number: u64) -> Option<String> {
    let fetcher = Fetcher {
        reader: BlockReader::new(node).without_traces(),
        delays: Delays::default(),
    };
    match fetcher.read(number).await {
        Ok(_) | Err(FetchError::Read(ReadError::Node(_)) | FetchError::State(_)) => None,
        Err(FetchError::Read(error)) => Some(error.to_string()),
        Err(FetchError::Decode(error)) => Some(error.to_string()),
    }
}

/// Reads blocks and decodes them.
#[derive(Clone, Debug)]
pub(crate) struct Fetcher {
    pub(crate) reader: BlockReader,
    pub(crate) delays: Delays,
}

impl Fetcher {
    /// Reads a block, and repeats that until it succeeds. `None` if the chain has no block with this number.
    pub(crate) async fn block(&self, number: u64) -> Option<BlockData> {
        let mut failures = 0_u32;
        loop {
            match self.read(number).await {
                Ok(block) => return block,
                Err(error) => {
                    failures = failures.saturating_add(1);
                    metrics::counter!("ledger_gateway_indexer_retries_total", "reason" => error.reason()).increment(1);
                    // The first failure is often a short disturbance.
                    if failures > 1 {
                        tracing::warn!(
                            block = number,
                            attempts = failures,
                            error = &error as &dyn std::error::Error,
                            "the indexer could not read a block and tries again"
                        );
                    }
                    tokio::time::sleep(self.delays.before_retry(failures)).await;
                }
            }
        }
    }

    /// Reads a block once. `None` if the chain has no block with this number.
    pub(crate) async fn read(&self, number: u64) -> Result<Option<BlockData>, FetchError> {
        let Some(content) = self.reader.block(number).await? else {
            return Ok(None);
        };
        if content.call_trees.is_none() {
            metrics::counter!("ledger_gateway_indexer_untraced_blocks_total").increment(1);
            tracing::debug!(
                block = number,
                "the node could not trace a block: its frames are read later"
            );
        }
        let states = self.states(&content).await?;
        Ok(Some(decode(&content, &states)?))
    }

    /// The contracts that a block created or changed, as they are at its end. A node without state that old gives their
    /// state at the head.
    async fn states(&self, content: &BlockContent) -> Result<BTreeMap<Address, ContractState>, FetchError> {
        let created = creations(content).into_iter().map(|creation| creation.address);
        let addresses: Vec<Address> = created.chain(changed_proxies(content)).collect();
        self.contract_states(&addresses, content.header.hash).await
    }

    /// The state of contracts at a block, or at the head if the node keeps no state that old.
    pub(crate) async fn contract_states(
        &self,
        addresses: &[Address],
        block: B256,
    ) -> Result<BTreeMap<Address, ContractState>, FetchError> {
        if addresses.is_empty() {
            return Ok(BTreeMap::new());
        }
        let mut states = self.reader.contracts(addresses, block).await?;
        if states.iter().any(Option::is_none) {
            let head = self.reader.head().ok_or(NodeError::NoHead)?;
            states = self.reader.contracts(addresses, head.hash).await?;
        }
        let known = addresses.iter().copied().zip(states);
        let known = known.map(|(address, state)| Some((address, state?)));
        Ok(known.collect::<Option<_>>().ok_or(NodeError::NoAnswer)?)
    }
}
