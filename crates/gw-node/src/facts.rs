//! Facts the gateway asks for itself: about addresses and transactions it is about to act on, never for a caller.

use crate::{
    Answer, Block, Budget, Node, NodeError,
    head::{parse, read_block, small},
};
use alloy_primitives::keccak256;
use gw_evm::{
    BlockId, BlockTag,
    abi::clean_address,
    code::{IMPLEMENTATION_SLOT, minimal_proxy},
};
use gw_types::{Address, B256, Bytes, U256};
use serde::Deserialize;
use std::ops::Range;

/// A mined transaction, from its receipt.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Mined {
    /// The block that holds it.
    pub block_hash: B256,
    /// That block's number.
    pub block_number: u64,
    /// Who sent it.
    pub sender: Address,
    /// Receipt status 1.
    pub succeeded: bool,
    /// What a transaction without `to` created.
    pub created: Option<Address>,
}

/// What runs at an address.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct CodePair {
    /// keccak256 of its code.
    pub code: B256,
    /// keccak256 of its implementation's code, if it is a proxy.
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

/// A transaction's place, from `eth_getTransactionByHash`; all other members are left unread.
#[derive(Deserialize)]
struct Exists {}

impl Node {
    /// The nonce the next transaction of `sender` needs, pending ones counted.
    pub async fn pending_nonce(&self, sender: Address) -> Result<u64, NodeError> {
        self.nonce(sender, "pending").await
    }

    /// The nonce of `sender` in the newest block: everything below it is consumed for good.
    pub async fn mined_nonce(&self, sender: Address) -> Result<u64, NodeError> {
        self.nonce(sender, "latest").await
    }

    /// The block up to number `head` that used this nonce of a sender, by how many they had used when each block ended;
    /// `None` if none did. [`NodeError::NoAnswer`] where the node keeps no state that old.
    pub async fn block_of_nonce(&self, sender: Address, nonce: u64, head: u64) -> Result<Option<B256>, NodeError> {
        let used = async |block: u64| Ok::<_, NodeError>(self.nonce(sender, &format!("{block:#x}")).await? > nonce);
        if !used(head).await? {
            return Ok(None);
        }
        // Back in growing steps, so that no state is asked for that is twice as old; then between the last two.
        let (mut used_by, mut unused_by, mut step) = (head, None, 1_u64);
        while unused_by.is_none() && used_by > 0 {
            let block = used_by.saturating_sub(step);
            if used(block).await? {
                (used_by, step) = (block, step.saturating_mul(2));
            } else {
                unused_by = Some(block);
            }
        }
        while let Some(unused) = unused_by.filter(|unused| used_by - unused > 1) {
            let middle = unused.midpoint(used_by);
            if used(middle).await? {
                used_by = middle;
            } else {
                unused_by = Some(middle);
            }
        }
        let block = self
            .fact_in(
                "eth_getBlockByNumber",
                &format!(r#"["{used_by:#x}",false]"#),
                Budget::Block,
            )
            .await?;
        Ok(read_block(&block)?.map(|block| block.hash))
    }

    async fn nonce(&self, sender: Address, block: &str) -> Result<u64, NodeError> {
        let params = format!(r#"["{sender:#x}","{block}"]"#);
        small(parse::<U256>(&self.fact("eth_getTransactionCount", &params).await?)?)
    }

    /// The balance of an address at the block with this hash.
    pub async fn balance(&self, address: Address, block: B256) -> Result<U256, NodeError> {
        let params = format!(r#"["{address:#x}",{{"blockHash":"{block:#x}"}}]"#);
        parse(&self.fact("eth_getBalance", &params).await?)
    }

    /// Whether there is code at `address` in the block with this hash.
    pub async fn has_code(&self, address: Address, block: B256) -> Result<bool, NodeError> {
        let params = format!(r#"["{address:#x}",{{"blockHash":"{block:#x}"}}]"#);
        let code: &str = &parse::<String>(&self.fact("eth_getCode", &params).await?)?;
        Ok(code.len() > 2)
    }

    /// Whether there is code at each address at the head, in one exchange; `None` where the node could not tell.
    pub async fn have_code(&self, addresses: &[Address]) -> Result<Vec<Option<bool>>, NodeError> {
        let block = self.head().ok_or(NodeError::NoHead)?.hash;
        let params: Vec<String> = addresses
            .iter()
            .map(|address| format!(r#"["{address:#x}",{{"blockHash":"{block:#x}"}}]"#))
            .collect();
        let calls: Vec<(&str, &str)> = params.iter().map(|params| ("eth_getCode", params.as_str())).collect();
        let answers = self.ask(&calls, Budget::Fact).await?;
        let has_code = |answer: Answer<bytes::Bytes>| match answer {
            Answer::Result(code) => parse::<Bytes>(&code).ok().map(|code| !code.is_empty()),
            Answer::Error(_) => None,
        };
        Ok(answers.into_iter().map(has_code).collect())
    }

    /// The hash of the code at `address` at the head, and of what it delegates to if it is a proxy (ERC-1967 or
    /// ERC-1167); nothing without code.
    pub async fn code_pair(&self, address: Address) -> Result<Option<CodePair>, NodeError> {
        let block = self.head().ok_or(NodeError::NoHead)?.hash;
        let at = format!(r#"{{"blockHash":"{block:#x}"}}"#);
        let code = format!(r#"["{address:#x}",{at}]"#);
        let slot = format!(r#"["{address:#x}","{IMPLEMENTATION_SLOT:#x}",{at}]"#);
        let asked = [("eth_getCode", code.as_str()), ("eth_getStorageAt", slot.as_str())];
        let (code, slot) = match self.ask(&asked, Budget::Fact).await?.as_slice() {
            [Answer::Result(code), Answer::Result(slot)] => (parse::<Bytes>(code)?, parse::<B256>(slot)?),
            _ => return Err(NodeError::Unparsable),
        };
        if code.is_empty() {
            return Ok(None);
        }
        let behind = minimal_proxy(&code).or_else(|| clean_address(&slot).filter(|address| !address.is_zero()));
        let implementation = match behind {
            None => None,
            Some(behind) => {
                let code = self.fact("eth_getCode", &format!(r#"["{behind:#x}",{at}]"#)).await?;
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

    /// The mined transaction with this hash, if it is mined.
    pub async fn mined(&self, hash: B256) -> Result<Option<Mined>, NodeError> {
        let receipt = self
            .fact_in("eth_getTransactionReceipt", &format!(r#"["{hash:#x}"]"#), Budget::Block)
            .await?;
        let Some(receipt) = parse::<Option<WireReceipt>>(&receipt)? else {
            return Ok(None);
        };
        Ok(Some(Mined {
            block_hash: receipt.block_hash,
            block_number: small(receipt.block_number)?,
            sender: receipt.from,
            succeeded: receipt.status == U256::ONE,
            created: receipt.contract_address,
        }))
    }

    /// Whether the node has the transaction at all, pending or mined.
    pub async fn has_transaction(&self, hash: B256) -> Result<bool, NodeError> {
        let answer = self
            .fact_in("eth_getTransactionByHash", &format!(r#"["{hash:#x}"]"#), Budget::Block)
            .await?;
        Ok(parse::<Option<Exists>>(&answer)?.is_some())
    }

    /// The block a call names: one of those that lead to the followed head. For any other the gateway looks at the head once
    /// (decision 41, HD28). `None` is a block nobody has.
    pub async fn block(&self, id: BlockId) -> Result<Option<Block>, NodeError> {
        let head = || self.head().map(|head| head.block).ok_or(NodeError::NoHead);
        let (method, named) = match id {
            BlockId::Tag(BlockTag::Latest | BlockTag::Pending) => return head().map(Some),
            BlockId::Number(number) if head()?.number == number => return head().map(Some),
            BlockId::Number(number) => {
                self.raise(number).await?;
                if number > head()?.number {
                    return Ok(None);
                }
                ("eth_getBlockByNumber", format!("{number:#x}"))
            }
            BlockId::Hash { hash, .. } => ("eth_getBlockByHash", format!("{hash:#x}")),
            BlockId::Tag(BlockTag::Safe) => ("eth_getBlockByNumber", "safe".to_owned()),
            BlockId::Tag(BlockTag::Finalized) => ("eth_getBlockByNumber", "finalized".to_owned()),
            BlockId::Tag(BlockTag::Earliest) => ("eth_getBlockByNumber", "0x0".to_owned()),
        };
        let params = format!(r#"["{named}",false]"#);
        for again in [false, true] {
            if again {
                self.refresh_head().await?;
            }
            let Some(block) = read_block(&self.fact_in(method, &params, Budget::Block).await?)? else {
                return Ok(None);
            };
            if self.follows(block.number, block.hash).await? {
                return Ok(Some(block));
            }
        }
        Ok(None)
    }

    /// Blocks by number, in one exchange. All of them, or none.
    pub(crate) async fn blocks(&self, numbers: Range<u64>) -> Result<Vec<Block>, NodeError> {
        let params: Vec<_> = numbers.map(|number| format!(r#"["{number:#x}",false]"#)).collect();
        let calls: Vec<_> = params
            .iter()
            .map(|params| ("eth_getBlockByNumber", params.as_str()))
            .collect();
        let answers = match self.ask(&calls, Budget::Block).await {
            // Too much at once: each alone.
            Err(NodeError::TooLarge) if calls.len() > 1 => {
                let mut each = Vec::with_capacity(calls.len());
                for call in calls {
                    each.extend(self.ask(&[call], Budget::Block).await?);
                }
                each
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
    pub async fn block_time(&self, block: B256) -> Result<u64, NodeError> {
        let named = self
            .block(BlockId::Hash {
                hash: block,
                require_canonical: false,
            })
            .await?;
        named.map(|block| block.timestamp).ok_or(NodeError::Unparsable)
    }

    /// One fact; an error of the node is no fact.
    async fn fact(&self, method: &str, params: &str) -> Result<bytes::Bytes, NodeError> {
        self.fact_in(method, params, Budget::Fact).await
    }

    /// The same of what others made, as large as they made it (HD36).
    pub(crate) async fn fact_in(&self, method: &str, params: &str, budget: Budget) -> Result<bytes::Bytes, NodeError> {
        match self.ask(&[(method, params)], budget).await?.pop() {
            Some(Answer::Result(fact)) => Ok(fact),
            Some(Answer::Error(_)) => Err(NodeError::NoAnswer),
            None => Err(NodeError::Unparsable),
        }
    }
}
