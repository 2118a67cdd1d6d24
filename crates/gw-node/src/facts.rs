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

/// A block and who sent what in it.
#[derive(Clone, Debug)]
pub struct BlockWithSenders {
    /// The block.
    pub block: Block,
    /// Its transactions.
    pub transactions: Vec<Sent>,
}

/// One transaction of a block.
#[derive(Clone, Debug)]
pub struct Sent {
    /// Its hash.
    pub hash: B256,
    /// Its sender.
    pub sender: Address,
    /// Its nonce.
    pub nonce: u64,
    /// Wallets it delegates, and to what (EIP-7702).
    pub delegations: Vec<(Address, Address)>,
}

#[derive(Deserialize)]
struct WireSenders {
    transactions: Vec<WireSent>,
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct WireSent {
    hash: B256,
    from: Address,
    nonce: U256,
    #[serde(default)]
    authorization_list: Option<Vec<WireDelegation>>,
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct WireDelegation {
    chain_id: U256,
    address: Address,
    nonce: U256,
    #[serde(alias = "v")]
    y_parity: U256,
    r: U256,
    s: U256,
}

impl WireDelegation {
    /// Wallet and delegate; one that nobody signed delegates nothing.
    fn read(self) -> Option<(Address, Address)> {
        let (nonce, parity) = (small(self.nonce).ok()?, self.y_parity.try_into().ok()?);
        let wallet = gw_evm::tx::delegating_wallet(self.chain_id, self.address, nonce, parity, [self.r, self.s])?;
        Some((wallet, self.address))
    }
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
    /// `None` if none did. [`NodeError::Unparsable`] where the node keeps no state that old.
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
        let block = self.fact("eth_getBlockByNumber", &format!(r#"["{used_by:#x}",false]"#)).await?;
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
        let params: Vec<String> =
            addresses.iter().map(|address| format!(r#"["{address:#x}",{{"blockHash":"{block:#x}"}}]"#)).collect();
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
                Some(parse::<Bytes>(&code)?).filter(|code| !code.is_empty()).map(keccak256)
            }
        };
        Ok(Some(CodePair { code: keccak256(&code), implementation }))
    }

    /// The mined transaction with this hash, if it is mined.
    pub async fn mined(&self, hash: B256) -> Result<Option<Mined>, NodeError> {
        let receipt = self.fact("eth_getTransactionReceipt", &format!(r#"["{hash:#x}"]"#)).await?;
        let Some(receipt) = parse::<Option<WireReceipt>>(&receipt)? else { return Ok(None) };
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
        let answer = self.fact("eth_getTransactionByHash", &format!(r#"["{hash:#x}"]"#)).await?;
        Ok(parse::<Option<Exists>>(&answer)?.is_some())
    }

    /// The block a call names, never above the followed head: a higher one makes the gateway look once (decision 41).
    /// `None` is a block nobody has.
    pub async fn block(&self, id: BlockId) -> Result<Option<Block>, NodeError> {
        let head = || self.head().map(|head| head.block).ok_or(NodeError::NoHead);
        let block = match id {
            BlockId::Tag(BlockTag::Latest | BlockTag::Pending) => return head().map(Some),
            BlockId::Number(number) if head()?.number == number => return head().map(Some),
            BlockId::Number(number) => {
                self.raise(number).await?;
                if number > head()?.number {
                    return Ok(None);
                }
                self.fact("eth_getBlockByNumber", &format!(r#"["{number:#x}",false]"#)).await?
            }
            BlockId::Hash { hash, .. } => {
                let block = self.fact("eth_getBlockByHash", &format!(r#"["{hash:#x}",false]"#)).await?;
                let Some(block) = read_block(&block)? else { return Ok(None) };
                self.raise(block.number).await?;
                return Ok((block.number <= head()?.number).then_some(block));
            }
            BlockId::Tag(BlockTag::Safe) => self.fact("eth_getBlockByNumber", r#"["safe",false]"#).await?,
            BlockId::Tag(BlockTag::Finalized) => self.fact("eth_getBlockByNumber", r#"["finalized",false]"#).await?,
            BlockId::Tag(BlockTag::Earliest) => self.fact("eth_getBlockByNumber", r#"["0x0",false]"#).await?,
        };
        read_block(&block)
    }

    /// Blocks by number, in one exchange. All of them, or none.
    pub(crate) async fn blocks(&self, numbers: Range<u64>) -> Result<Vec<Block>, NodeError> {
        let params: Vec<_> = numbers.map(|number| format!(r#"["{number:#x}",false]"#)).collect();
        let calls: Vec<_> = params.iter().map(|params| ("eth_getBlockByNumber", params.as_str())).collect();
        let answers = self.ask(&calls, Budget::Fact).await?;
        let read = |answer: Answer<bytes::Bytes>| match answer {
            Answer::Result(block) => read_block(&block)?.ok_or(NodeError::Unparsable),
            Answer::Error(_) => Err(NodeError::Unparsable),
        };
        answers.into_iter().map(read).collect()
    }

    /// A block by its hash, with who sent what in it.
    pub async fn block_with_senders(&self, hash: B256) -> Result<BlockWithSenders, NodeError> {
        let text = self.fact("eth_getBlockByHash", &format!(r#"["{hash:#x}",true]"#)).await?;
        let block = read_block(&text)?.ok_or(NodeError::Unparsable)?;
        let sent = |sent: WireSent| {
            let delegations = sent.authorization_list.unwrap_or_default().into_iter().filter_map(WireDelegation::read);
            Ok(Sent {
                hash: sent.hash,
                sender: sent.from,
                nonce: small(sent.nonce)?,
                delegations: delegations.collect(),
            })
        };
        let transactions = parse::<WireSenders>(&text)?.transactions.into_iter().map(sent);
        Ok(BlockWithSenders { block, transactions: transactions.collect::<Result<_, NodeError>>()? })
    }

    /// The time of a block in seconds since 1970.
    pub async fn block_time(&self, block: B256) -> Result<u64, NodeError> {
        let named = self.block(BlockId::Hash { hash: block, require_canonical: false }).await?;
        named.map(|block| block.timestamp).ok_or(NodeError::Unparsable)
    }

    /// One fact; an error of the node is no fact.
    async fn fact(&self, method: &str, params: &str) -> Result<bytes::Bytes, NodeError> {
        match self.ask(&[(method, params)], Budget::Fact).await?.pop() {
            Some(Answer::Result(fact)) => Ok(fact),
            Some(Answer::Error(_)) | None => Err(NodeError::Unparsable),
        }
    }
}
