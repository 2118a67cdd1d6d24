//! Queries that the gateway makes for itself, about addresses and transactions that it is about to act on; never for a
//! caller.

use crate::{
    error::NodeError,
    head::{Block, at_hash, parse, read_block, to_u64},
    message::Answer,
    node::Node,
    transport::RequestBudget,
};
use alloy_primitives::keccak256;
use gw_evm::{
    BlockId, BlockTag,
    abi::clean_address,
    code::{IMPLEMENTATION_SLOT, minimal_proxy},
    wire::{self, UpstreamCall},
};
use gw_types::{Address, B256, Bytes, U256};
use serde::Deserialize;
use std::ops::Range;

/// A mined transaction, from its receipt.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Mined {
    /// The hash of the transaction's block.
    pub block_hash: B256,
    /// The number of the transaction's block.
    pub block_number: u64,
    /// The sender.
    pub sender: Address,
    /// Whether the receipt has status 1.
    pub succeeded: bool,
    /// The contract that a transaction without `to` created.
    pub created: Option<Address>,
}

/// The code hashes of a contract.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct CodePair {
    /// keccak256 of the contract's code.
    pub code: B256,
    /// keccak256 of the implementation's code, if the contract is a proxy.
    pub implementation: Option<B256>,
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct WireReceipt {
    block_hash: B256,
    block_number: U256,
    from: Address,
    status: U256,
    #[serde(default)]
    contract_address: Option<Address>,
}

/// A transaction in the answer to `eth_getTransactionByHash`, whose members are not read.
#[derive(Deserialize)]
struct AnyTransaction {}

impl Node {
    /// The nonce of the sender's next transaction, pending ones counted.
    ///
    /// # Errors
    /// [`NodeError`] if the node gives no usable answer; [`NodeError::NoAnswer`] for a JSON-RPC error.
    pub async fn pending_nonce(&self, sender: Address) -> Result<u64, NodeError> {
        self.nonce(sender, BlockId::Tag(BlockTag::Pending)).await
    }

    /// The nonce of `sender` in the newest block: all nonces below it are used.
    ///
    /// # Errors
    /// [`NodeError`] if the node gives no usable answer; [`NodeError::NoAnswer`] for a JSON-RPC error.
    pub async fn mined_nonce(&self, sender: Address) -> Result<u64, NodeError> {
        self.nonce(sender, BlockId::LATEST).await
    }

    /// The hash of the block, up to number `head`, in which the sender used this nonce; `None` if the nonce is unused.
    /// It is found by the sender's nonce at the end of blocks.
    ///
    /// # Errors
    /// [`NodeError::NoAnswer`] if the node keeps no state that old.
    pub async fn block_of_nonce(&self, sender: Address, nonce: u64, head: u64) -> Result<Option<B256>, NodeError> {
        let is_used_at =
            async |block: u64| Ok::<_, NodeError>(self.nonce(sender, BlockId::Number(block)).await? > nonce);
        if !is_used_at(head).await? {
            return Ok(None);
        }
        // Searches backward in doubling steps, so that no state more than twice as old as necessary is queried; then
        // bisects.
        let (mut used_by, mut unused_by, mut step) = (head, None, 1_u64);
        while unused_by.is_none() && used_by > 0 {
            let block = used_by.saturating_sub(step);
            if is_used_at(block).await? {
                (used_by, step) = (block, step.saturating_mul(2));
            } else {
                unused_by = Some(block);
            }
        }
        while let Some(unused) = unused_by.filter(|unused| used_by - unused > 1) {
            let middle = unused.midpoint(used_by);
            if is_used_at(middle).await? {
                used_by = middle;
            } else {
                unused_by = Some(middle);
            }
        }
        let block = self
            .query_within(wire::header(BlockId::Number(used_by)), RequestBudget::Block)
            .await?;
        Ok(read_block(&block)?.map(|block| block.hash))
    }

    async fn nonce(&self, sender: Address, block: BlockId) -> Result<u64, NodeError> {
        to_u64(parse::<U256>(&self.query(wire::nonce(sender, block)).await?)?)
    }

    /// The balance of an address in wei, at the block with this hash.
    ///
    /// # Errors
    /// [`NodeError`] if the node gives no usable answer; [`NodeError::NoAnswer`] for a JSON-RPC error.
    pub async fn balance(&self, address: Address, block: B256) -> Result<U256, NodeError> {
        parse(&self.query(wire::balance(address, at_hash(block))).await?)
    }

    /// Whether there is code at `address` in the block with this hash.
    ///
    /// # Errors
    /// [`NodeError`] if the node gives no usable answer; [`NodeError::NoAnswer`] for a JSON-RPC error.
    pub async fn has_code(&self, address: Address, block: B256) -> Result<bool, NodeError> {
        let code: &str = &parse::<String>(&self.query(wire::code(address, at_hash(block))).await?)?;
        Ok(code.len() > 2)
    }

    /// Whether there is code at each address at the head, in one exchange; `None` where the node answered with an
    /// error.
    ///
    /// # Errors
    /// [`NodeError::NoHead`] without a head; [`NodeError`] if the node gives no usable answer.
    pub async fn have_code(&self, addresses: &[Address]) -> Result<Vec<Option<bool>>, NodeError> {
        let block = self.head().ok_or(NodeError::NoHead)?.hash;
        let calls: Vec<_> = addresses
            .iter()
            .map(|address| wire::code(*address, at_hash(block)))
            .collect();
        let answers = self.ask(&calls, RequestBudget::Fact).await?;
        let has_code = |answer: Answer<bytes::Bytes>| match answer {
            Answer::Result(code) => parse::<Bytes>(&code).ok().map(|code| !code.is_empty()),
            Answer::Error(_) => None,
        };
        Ok(answers.into_iter().map(has_code).collect())
    }

    /// The code hash of `address` at the head and, for a proxy (ERC-1967 or ERC-1167), of its implementation; `None`
    /// without code.
    ///
    /// # Errors
    /// [`NodeError::NoHead`] without a head; [`NodeError`] if the node gives no usable answer.
    pub async fn code_pair(&self, address: Address) -> Result<Option<CodePair>, NodeError> {
        let block = at_hash(self.head().ok_or(NodeError::NoHead)?.hash);
        let calls = [
            wire::code(address, block),
            wire::storage(address, IMPLEMENTATION_SLOT, block),
        ];
        let (code, slot) = match self.ask(&calls, RequestBudget::Fact).await?.as_slice() {
            [Answer::Result(code), Answer::Result(slot)] => (parse::<Bytes>(code)?, parse::<B256>(slot)?),
            _ => return Err(NodeError::Unparsable),
        };
        if code.is_empty() {
            return Ok(None);
        }
        let implementation_address =
            minimal_proxy(&code).or_else(|| clean_address(&slot).filter(|address| !address.is_zero()));
        let implementation = match implementation_address {
            None => None,
            Some(implementation_address) => {
                let code = self.query(wire::code(implementation_address, block)).await?;
                Some(parse::<Bytes>(&code)?)
                    .filter(|code| !code.is_empty())
                    .map(keccak256)
            }
        };
        Ok(Some(CodePair {
            code: keccak256(&code),
            implementation,
        }))
    }

    /// The transaction with this hash, if it is mined.
    ///
    /// # Errors
    /// [`NodeError`] if the node gives no usable answer; [`NodeError::NoAnswer`] for a JSON-RPC error.
    pub async fn mined(&self, hash: B256) -> Result<Option<Mined>, NodeError> {
        let receipt = self.query_within(wire::receipt(hash), RequestBudget::Block).await?;
        let Some(receipt) = parse::<Option<WireReceipt>>(&receipt)? else {
            return Ok(None);
        };
        Ok(Some(Mined {
            block_hash: receipt.block_hash,
            block_number: to_u64(receipt.block_number)?,
            sender: receipt.from,
            succeeded: receipt.status == U256::ONE,
            created: receipt.contract_address,
        }))
    }

    /// Whether the node has the transaction, pending or mined.
    ///
    /// # Errors
    /// [`NodeError`] if the node gives no usable answer; [`NodeError::NoAnswer`] for a JSON-RPC error.
    pub async fn has_transaction(&self, hash: B256) -> Result<bool, NodeError> {
        let answer = self
            .query_within(wire::transaction_by_hash(hash), RequestBudget::Block)
            .await?;
        Ok(parse::<Option<AnyTransaction>>(&answer)?.is_some())
    }

    /// The block that a call names; it is the followed head or an ancestor of it. For any other block the gateway polls
    /// the head once (decision 41, HD28). `None` if there is no such block.
    ///
    /// # Errors
    /// [`NodeError::NoHead`] without a head; [`NodeError`] if the node gives no usable answer.
    pub async fn block(&self, id: BlockId) -> Result<Option<Block>, NodeError> {
        let head = || self.head().map(|head| head.block).ok_or(NodeError::NoHead);
        match id {
            BlockId::Tag(BlockTag::Latest | BlockTag::Pending) => return head().map(Some),
            BlockId::Number(number) if head()?.number == number => return head().map(Some),
            BlockId::Number(number) => {
                self.advance_head_to(number).await?;
                if number > head()?.number {
                    return Ok(None);
                }
            }
            BlockId::Hash { .. } | BlockId::Tag(BlockTag::Safe | BlockTag::Finalized | BlockTag::Earliest) => {}
        }
        for is_second_attempt in [false, true] {
            if is_second_attempt {
                self.refresh_head().await?;
            }
            let Some(block) = read_block(&self.query_within(wire::header(id), RequestBudget::Block).await?)? else {
                return Ok(None);
            };
            if self.follows(block.number, block.hash).await? {
                return Ok(Some(block));
            }
        }
        Ok(None)
    }

    /// Blocks by number, in one exchange; all of them or none.
    pub(crate) async fn blocks(&self, numbers: Range<u64>) -> Result<Vec<Block>, NodeError> {
        let calls: Vec<_> = numbers.map(|number| wire::header(BlockId::Number(number))).collect();
        let answers = match self.ask(&calls, RequestBudget::Block).await {
            // The answer is too large: query each block separately.
            Err(NodeError::TooLarge) if calls.len() > 1 => {
                let mut separate = Vec::with_capacity(calls.len());
                for call in &calls {
                    separate.extend(self.ask(std::slice::from_ref(call), RequestBudget::Block).await?);
                }
                separate
            }
            answers => answers?,
        };
        let read = |answer: Answer<bytes::Bytes>| match answer {
            Answer::Result(block) => read_block(&block)?.ok_or(NodeError::Unparsable),
            Answer::Error(_) => Err(NodeError::Unparsable),
        };
        answers.into_iter().map(read).collect()
    }

    /// The time of a block in seconds since 1970.
    ///
    /// # Errors
    /// [`NodeError::Unparsable`] if there is no such block; [`NodeError`] if the node gives no usable answer.
    pub async fn block_time(&self, hash: B256) -> Result<u64, NodeError> {
        let block = self
            .block(BlockId::Hash {
                hash,
                require_canonical: false,
            })
            .await?;
        block.map(|block| block.timestamp).ok_or(NodeError::Unparsable)
    }

    /// Makes one query with the budget of a fact; a JSON-RPC error becomes [`NodeError::NoAnswer`].
    async fn query(&self, call: UpstreamCall) -> Result<bytes::Bytes, NodeError> {
        self.query_within(call, RequestBudget::Fact).await
    }

    /// As `query`, with a budget for data whose size others determine (HD36).
    pub(crate) async fn query_within(
        &self,
        call: UpstreamCall,
        budget: RequestBudget,
    ) -> Result<bytes::Bytes, NodeError> {
        match self.ask(&[call], budget).await?.pop() {
            Some(Answer::Result(fact)) => Ok(fact),
            Some(Answer::Error(_)) => Err(NodeError::NoAnswer),
            None => Err(NodeError::Unparsable),
        }
    }
}
