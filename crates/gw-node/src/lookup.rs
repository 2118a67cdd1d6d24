//! Queries whose answers decide about the sender of a mined transaction: which transaction used a nonce, and which
//! contracts existed before.
//!
//! Invariant: an error of the node is no answer. A query that fails is repeated after growing pauses
//! ([`crate::unreadable`]); meanwhile its block waits. Only after several minutes, in which the node answered the same
//! query about its head, the result is unknown, so that a node that lost old state does not hold back the head for
//! ever.

use crate::{
    error::NodeError,
    head::{Block, at_hash, parse},
    message::Answer,
    mined::{BlockListing, WireHashes},
    node::Node,
    transport::RequestBudget,
};
use alloy_primitives::keccak256;
use gw_evm::{BlockId, wire};
use gw_types::{Address, B256};

/// How many of the newest blocks, and how many of their transactions, are tried as a control.
const CONTROL_BLOCKS: u64 = 64;
const CONTROL_TRANSACTIONS: usize = 32;

/// What used a nonce of a sender.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum NonceUse {
    /// This transaction.
    Transaction {
        /// The hash of its block.
        block: B256,
        /// The hash of the transaction.
        hash: B256,
    },
    /// No transaction of the sender: an authorization (EIP-7702), or a creation by the sender's delegated code.
    NoTransaction,
    /// The node does not show it, in many attempts over several minutes.
    Unknown,
}

/// Why a query has no result.
struct LookupFailure {
    error: NodeError,
    /// Whether the node failed the control of this query.
    failed_control: bool,
}

impl From<NodeError> for LookupFailure {
    fn from(error: NodeError) -> Self {
        Self {
            error,
            failed_control: false,
        }
    }
}

impl Node {
    /// What used this nonce of the sender, which is used at the end of the block `head`.
    ///
    /// # Errors
    /// [`NodeError`] if the node does not show it now: the block has to wait. [`NodeError::LookupDeferred`] until the
    /// pause after the last failure has ended.
    pub async fn nonce_use(&self, sender: Address, nonce: u64, head: &Block) -> Result<NonceUse, NodeError> {
        let key = keccak256([&sender[..], &nonce.to_be_bytes()].concat());
        let control = async {
            let calls = [
                wire::header(BlockId::Number(head.number)),
                wire::nonce(sender, BlockId::Number(head.number)),
            ];
            self.require_results(&calls).await
        };
        let use_of_nonce = self
            .look_up(key, self.find_nonce_use(sender, nonce, head), control)
            .await?;
        Ok(use_of_nonce.unwrap_or(NonceUse::Unknown))
    }

    /// Whether each address had code of its own in this block, as a fact about a transaction of the block `head`; a
    /// wallet that delegates (EIP-7702) has none. `None` if the node does not show it, in many attempts over several
    /// minutes.
    ///
    /// # Errors
    /// As [`Self::nonce_use`].
    pub async fn had_code(
        &self,
        addresses: &[Address],
        block: B256,
        transaction: B256,
        head: B256,
    ) -> Result<Option<Vec<bool>>, NodeError> {
        let query = async {
            let codes = self.code_at(addresses, block).await?;
            let codes: Option<Vec<bool>> = codes.into_iter().collect();
            codes.ok_or_else(|| NodeError::NoAnswer.into())
        };
        let control = async {
            let address = addresses.first().copied().unwrap_or_default();
            self.require_results(&[wire::code(address, at_hash(head))]).await
        };
        self.look_up(keccak256(transaction), query, control).await
    }

    /// Makes a query; `None` if it failed in so many attempts over so long a time, while its control succeeded, that no
    /// other result can be expected.
    async fn look_up<T>(
        &self,
        key: B256,
        query: impl Future<Output = Result<T, LookupFailure>>,
        control: impl Future<Output = Result<(), NodeError>>,
    ) -> Result<Option<T>, NodeError> {
        let (failures, key) = (self.shared.lookup_failures(), (self.index(), key));
        if failures.is_deferred(key) {
            return Err(NodeError::LookupDeferred);
        }
        let LookupFailure { error, failed_control } = match query.await {
            Ok(answer) => {
                failures.clear(key);
                return Ok(Some(answer));
            }
            Err(failure) => failure,
        };
        let is_node_healthy = !failed_control && control.await.is_ok();
        if failures.record(key, is_node_healthy) {
            Ok(None)
        } else {
            Err(error)
        }
    }

    async fn find_nonce_use(&self, sender: Address, nonce: u64, head: &Block) -> Result<NonceUse, LookupFailure> {
        // The nonce is used at the head, so a node without a block for it answers from another state.
        let block = self
            .block_of_nonce(sender, nonce, head.number)
            .await?
            .ok_or(NodeError::NoAnswer)?;
        let listing = self.listing(block).await?;
        let (mut readable, mut is_complete) = (0_usize, true);
        for sent in self.sent_in(&listing).await? {
            match sent {
                Some(sent) if (sent.sender, sent.nonce) == (sender, nonce) => {
                    return Ok(NonceUse::Transaction { block, hash: sent.hash });
                }
                Some(_) => readable += 1,
                None => is_complete = false,
            }
        }
        if is_complete {
            return Ok(NonceUse::NoTransaction);
        }
        Err(LookupFailure {
            error: NodeError::NoAnswer,
            failed_control: readable == 0 && !self.reads_any_transaction(&listing, head).await?,
        })
    }

    /// Whether the node shows any transaction of its newest blocks, without this block.
    async fn reads_any_transaction(&self, without: &BlockListing, head: &Block) -> Result<bool, NodeError> {
        let end = head.number.saturating_add(1);
        let numbers = end.saturating_sub(CONTROL_BLOCKS)..end;
        let calls: Vec<_> = numbers
            .filter(|number| *number != without.block.number)
            .map(|number| wire::header(BlockId::Number(number)))
            .collect();
        let mut hashes = Vec::new();
        for answer in self.ask(&calls, RequestBudget::Block).await?.into_iter().rev() {
            if let Answer::Result(block) = answer
                && let Ok(Some(block)) = parse::<Option<WireHashes>>(&block)
            {
                hashes.extend(block.transactions);
            }
        }
        hashes.truncate(CONTROL_TRANSACTIONS);
        for hash in hashes {
            if self.block_of(hash).await.is_ok_and(|block| block.is_some()) {
                return Ok(true);
            }
        }
        Ok(false)
    }

    /// Requires that the node answers each of these with a result.
    async fn require_results(&self, calls: &[wire::UpstreamCall]) -> Result<(), NodeError> {
        let answers = self.ask(calls, RequestBudget::Block).await?;
        let is_result = |answer: &Answer<bytes::Bytes>| match answer {
            Answer::Result(result) => result.as_ref() != b"null",
            Answer::Error(_) => false,
        };
        if answers.iter().all(is_result) {
            Ok(())
        } else {
            Err(NodeError::NoAnswer)
        }
    }
}
