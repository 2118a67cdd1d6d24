//! Queries about a mined block and its transactions that need no trace.

use super::{BlockListing, SentTransaction, TRANSACTIONS_PER_REQUEST, WireHashes};
use crate::{
    error::NodeError,
    head::{at_hash, parse, read_block, to_u64},
    message::{Answer, read_batch},
    node::Node,
    transport::RequestBudget,
};
use gw_evm::wire;
use gw_types::{Address, B256, Bytes, U256};
use serde::{Deserialize, de::IgnoredAny};
use serde_json::value::RawValue;

/// Most queries of one nonce or one code each in one request.
const FACTS_PER_REQUEST: usize = 200;

/// The block of a transaction; `None` while it is pending.
#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct WireBlockHash {
    block_hash: Option<B256>,
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct WireSent {
    hash: B256,
    from: Address,
    nonce: U256,
    #[serde(default)]
    to: Option<Address>,
    #[serde(default)]
    block_hash: Option<B256>,
    #[serde(default)]
    authorization_list: Option<Vec<WireDelegation>>,
}

impl WireSent {
    fn read(self) -> Option<SentTransaction> {
        let delegations = self
            .authorization_list
            .unwrap_or_default()
            .into_iter()
            .filter_map(WireDelegation::read);
        Some(SentTransaction {
            hash: self.hash,
            sender: self.from,
            nonce: to_u64(self.nonce).ok()?,
            to: self.to,
            delegations: delegations.collect(),
        })
    }
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
    /// Wallet and delegate; `None` for an authorization without a valid signature, which has no effect.
    fn read(self) -> Option<(Address, Address)> {
        let (nonce, parity) = (to_u64(self.nonce).ok()?, self.y_parity.try_into().ok()?);
        let wallet = gw_evm::tx::delegating_wallet(self.chain_id, self.address, nonce, parity, [self.r, self.s])?;
        Some((wallet, self.address))
    }
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct WireGas {
    gas_used: U256,
}

#[derive(Deserialize)]
struct WireLogs {
    logs: Vec<IgnoredAny>,
}

impl Node {
    /// Reads a block by its hash, with the hashes of its transactions.
    ///
    /// # Errors
    /// [`NodeError`] if the node gives no usable answer.
    pub async fn listing(&self, hash: B256) -> Result<BlockListing, NodeError> {
        let text = self
            .query_within(wire::header(at_hash(hash)), RequestBudget::Block)
            .await?;
        let block = read_block(&text)?
            .filter(|block| block.hash == hash)
            .ok_or(NodeError::Unparsable)?;
        Ok(BlockListing {
            block,
            transactions: parse::<WireHashes>(&text)?.transactions,
        })
    }

    /// The number of nonces that each sender had used at the end of this block.
    ///
    /// # Errors
    /// [`NodeError`] if the node gives no usable answer; [`NodeError::NoAnswer`] for a JSON-RPC error.
    pub async fn nonces_at(&self, senders: &[Address], block: B256) -> Result<Vec<u64>, NodeError> {
        let mut nonces = Vec::with_capacity(senders.len());
        for senders in senders.chunks(FACTS_PER_REQUEST) {
            let calls: Vec<_> = senders
                .iter()
                .map(|sender| wire::nonce(*sender, at_hash(block)))
                .collect();
            for answer in self.ask(&calls, RequestBudget::Fact).await? {
                let Answer::Result(nonce) = answer else {
                    return Err(NodeError::NoAnswer);
                };
                nonces.push(to_u64(parse::<U256>(&nonce)?)?);
            }
        }
        Ok(nonces)
    }

    /// The hash of the block that a transaction is in; `None` if it is not mined.
    ///
    /// # Errors
    /// [`NodeError`] if the node gives no usable answer.
    pub async fn block_of(&self, hash: B256) -> Result<Option<B256>, NodeError> {
        let text = self
            .query_within(wire::transaction_by_hash(hash), RequestBudget::Block)
            .await?;
        Ok(parse::<Option<WireBlockHash>>(&text)?.and_then(|transaction| transaction.block_hash))
    }

    /// The transactions of this block; `None` for one that cannot be read.
    pub(crate) async fn sent_in(&self, listing: &BlockListing) -> Result<Vec<Option<SentTransaction>>, NodeError> {
        let mut sent = Vec::with_capacity(listing.transactions.len());
        for hashes in listing.transactions.chunks(TRANSACTIONS_PER_REQUEST) {
            sent.extend(self.sent(listing.block.hash, hashes).await?);
        }
        Ok(sent)
    }

    /// Transactions of this block; `None` for one that cannot be read or is not in this block.
    pub(super) async fn sent(&self, block: B256, hashes: &[B256]) -> Result<Vec<Option<SentTransaction>>, NodeError> {
        let calls: Vec<_> = hashes.iter().map(|hash| wire::transaction_by_hash(*hash)).collect();
        let read = |body: &bytes::Bytes, hashes: &[B256]| {
            let answers = read_batch(body, hashes.len())?;
            let transactions = answers.into_iter().zip(hashes).map(|(answer, hash)| match answer {
                Answer::Result(sent) => read_sent(sent, *hash, block),
                Answer::Error(_) => None,
            });
            Ok::<Vec<_>, NodeError>(transactions.collect())
        };
        match self.exchange(&calls, RequestBudget::SendTrace).await {
            Ok(body) => read(&body, hashes),
            // The answer is too large: query each transaction separately.
            Err(NodeError::TooLarge) => {
                let mut sent = Vec::with_capacity(hashes.len());
                for (hash, call) in hashes.iter().zip(&calls) {
                    sent.push(
                        match self
                            .exchange(std::slice::from_ref(call), RequestBudget::SendTrace)
                            .await
                        {
                            Ok(body) => read(&body, &[*hash])?.pop().flatten(),
                            Err(NodeError::TooLarge) => None,
                            Err(error) => return Err(error),
                        },
                    );
                }
                Ok(sent)
            }
            Err(error) => Err(error),
        }
    }

    /// The gas that each of these mined transactions used. `u64::MAX`, which allows the longest time, if the node does
    /// not tell.
    pub(crate) async fn gas_used(&self, hashes: &[B256]) -> Result<Vec<u64>, NodeError> {
        let mut gas = Vec::with_capacity(hashes.len());
        for hashes in hashes.chunks(TRANSACTIONS_PER_REQUEST) {
            let calls: Vec<_> = hashes.iter().map(|hash| wire::receipt(*hash)).collect();
            for answer in self.ask(&calls, RequestBudget::Block).await? {
                gas.push(match answer {
                    Answer::Result(receipt) => {
                        parse::<Option<WireGas>>(&receipt)?.map_or(Ok(u64::MAX), |receipt| to_u64(receipt.gas_used))?
                    }
                    Answer::Error(_) => u64::MAX,
                });
            }
        }
        Ok(gas)
    }

    /// The number of events of a mined transaction. `u64::MAX` if the node cannot tell: then the logs of later
    /// transactions in its block cannot be told apart.
    ///
    /// # Errors
    /// [`NodeError`] if the node gives no usable answer.
    pub async fn log_count(&self, hash: B256) -> Result<u64, NodeError> {
        let receipt = self.result(&wire::receipt(hash)).await?;
        let count = receipt
            .and_then(|receipt| serde_json::from_str::<WireLogs>(receipt.get()).ok())
            .map(|receipt| receipt.logs.len());
        Ok(count.and_then(|count| u64::try_from(count).ok()).unwrap_or(u64::MAX))
    }

    /// Whether each address has code of its own in this block; a wallet that delegates (EIP-7702) has none. `None`
    /// where the node answers with an error.
    pub(crate) async fn code_at(&self, addresses: &[Address], block: B256) -> Result<Vec<Option<bool>>, NodeError> {
        let mut has_code = Vec::with_capacity(addresses.len());
        for addresses in addresses.chunks(FACTS_PER_REQUEST) {
            let calls: Vec<_> = addresses
                .iter()
                .map(|address| wire::code(*address, at_hash(block)))
                .collect();
            for answer in self.ask(&calls, RequestBudget::Block).await? {
                has_code.push(match answer {
                    Answer::Result(code) => {
                        let code = parse::<Bytes>(&code)?;
                        Some(!code.is_empty() && gw_evm::code::delegation(&code).is_none())
                    }
                    Answer::Error(_) => None,
                });
            }
        }
        Ok(has_code)
    }
}

/// Parses the transaction; `None` unless it has this hash and is in this block. A transaction that moved to another
/// block is validated there.
pub(super) fn read_sent(text: &RawValue, hash: B256, block: B256) -> Option<SentTransaction> {
    let sent: WireSent = serde_json::from_str(text.get()).ok()?;
    if sent.hash != hash || sent.block_hash != Some(block) {
        return None;
    }
    sent.read()
}
