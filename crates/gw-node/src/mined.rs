//! What was mined: a block by the hashes of its transactions, who had used which nonce by then, and what single transactions
//! did (HD2, HD36).
//!
//! Invariant: how large a block is decides nothing. A block is asked for without its transactions, and what is asked of
//! several transactions at once is asked of each alone when it cannot be had so. A transaction that cannot be read even
//! then, while the node answers other questions, is [`Unreadable`]; a node that does not answer is an error.

use crate::{
    Answer, Block, Budget, NoTrace, Node, NodeError,
    head::{self, LOOK, parse, read_block, small},
    message::read_batch,
    probe,
};
use gw_evm::{
    trace::{Change, Trace, TraceError, changed, emitters, made, touched},
    wire::{self, TraceForm, TraceScope, UpstreamCall},
};
use gw_policy::sealed::Sealed;
use gw_types::{Address, B256, Bytes, U256};
use serde::{Deserialize, de::IgnoredAny};
use serde_json::value::RawValue;
use std::{
    collections::{BTreeMap, BTreeSet},
    time::Duration,
};

/// How often a transaction is asked for that cannot be read, and the rest in between.
const TRIES: u32 = 2;
const REST: Duration = Duration::from_millis(100);
/// The most transactions of one question.
const AT_ONCE: usize = 8;
/// The most small facts of one question.
const FACTS: usize = 200;
/// From so many transactions of one block on, a trace of the whole block is tried first.
const WHOLE_BLOCK: usize = 4;
/// How long a trace may take besides a second for each million of gas: what takes longer for its gas was made to.
const TRACE_START: Duration = Duration::from_secs(5);
const GAS_A_MILLISECOND: u64 = 1000;

fn allowance(gas: u64) -> Budget {
    Budget::MinedTrace(TRACE_START.saturating_add(Duration::from_millis(gas / GAS_A_MILLISECOND)))
}

/// A block and what is in it, by hash.
#[derive(Clone, Debug)]
pub struct Listing {
    /// The block.
    pub block: Block,
    /// Its transactions, in their order.
    pub transactions: Vec<B256>,
}

/// A transaction as it was sent.
#[derive(Clone, Debug)]
pub struct Sent {
    /// Its hash.
    pub hash: B256,
    /// Its sender.
    pub sender: Address,
    /// Its nonce.
    pub nonce: u64,
    /// Its recipient; none for a deployment.
    pub to: Option<Address>,
    /// Wallets it delegates, and to what (EIP-7702).
    pub delegations: Vec<(Address, Address)>,
}

/// What a mined transaction did.
#[derive(Debug)]
pub struct MinedRun {
    /// The transaction.
    pub sent: Sent,
    /// All of it.
    pub trace: Sealed<Trace>,
    /// The contracts it created and kept.
    pub created: Vec<Address>,
}

/// What is known of a transaction that cannot be read: as much as its parts tell.
#[derive(Debug)]
pub struct Unreadable {
    /// Its hash.
    pub hash: B256,
    /// The transaction, if at least that can be read.
    pub sent: Option<Sent>,
    /// What it changed, if at least that can be read.
    pub changes: Option<BTreeMap<Address, Change>>,
    /// The emitters of its logs.
    pub emitters: Vec<Address>,
    /// Contracts it created.
    pub created: Vec<Address>,
}

/// What came of reading a mined transaction.
#[derive(Debug)]
pub enum Looked {
    /// It was read.
    Run(MinedRun),
    /// It cannot be.
    Unreadable(Unreadable),
}

impl Looked {
    /// Which transaction.
    pub const fn hash(&self) -> B256 {
        match self {
            Self::Run(run) => run.sent.hash,
            Self::Unreadable(unreadable) => unreadable.hash,
        }
    }

    /// The contracts it created.
    pub fn created(&self) -> &[Address] {
        match self {
            Self::Run(run) => &run.created,
            Self::Unreadable(unreadable) => &unreadable.created,
        }
    }

    /// The transaction, if it is known.
    pub const fn sent(&self) -> Option<&Sent> {
        match self {
            Self::Run(run) => Some(&run.sent),
            Self::Unreadable(unreadable) => unreadable.sent.as_ref(),
        }
    }
}

#[derive(Deserialize)]
struct WireHashes {
    transactions: Vec<B256>,
}

/// Where a transaction is; nothing while it waits.
#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct WirePlace {
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

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct WireGas {
    gas_used: U256,
}

#[derive(Deserialize)]
struct WireLogs {
    logs: Vec<IgnoredAny>,
}

impl WireSent {
    fn read(self) -> Option<Sent> {
        let delegations = self
            .authorization_list
            .unwrap_or_default()
            .into_iter()
            .filter_map(WireDelegation::read);
        Some(Sent {
            hash: self.hash,
            sender: self.from,
            nonce: small(self.nonce).ok()?,
            to: self.to,
            delegations: delegations.collect(),
        })
    }
}

impl Node {
    /// A block by its hash.
    pub async fn listing(&self, hash: B256) -> Result<Listing, NodeError> {
        let text = self
            .fact_in("eth_getBlockByHash", &format!(r#"["{hash:#x}",false]"#), Budget::Block)
            .await?;
        let block = read_block(&text)?
            .filter(|block| block.hash == hash)
            .ok_or(NodeError::Unparsable)?;
        Ok(Listing {
            block,
            transactions: parse::<WireHashes>(&text)?.transactions,
        })
    }

    /// How many nonces each of the senders had used when this block ended.
    pub async fn nonces_at(&self, senders: &[Address], block: B256) -> Result<Vec<u64>, NodeError> {
        let mut nonces = Vec::with_capacity(senders.len());
        for senders in senders.chunks(FACTS) {
            let params: Vec<_> = senders
                .iter()
                .map(|sender| format!(r#"["{sender:#x}",{{"blockHash":"{block:#x}"}}]"#))
                .collect();
            let calls: Vec<_> = params
                .iter()
                .map(|params| ("eth_getTransactionCount", params.as_str()))
                .collect();
            for answer in self.ask(&calls, Budget::Fact).await? {
                let Answer::Result(nonce) = answer else {
                    return Err(NodeError::NoAnswer);
                };
                nonces.push(small(parse::<U256>(&nonce)?)?);
            }
        }
        Ok(nonces)
    }

    /// The block that a transaction is in, if it is in one.
    pub async fn block_of(&self, hash: B256) -> Result<Option<B256>, NodeError> {
        let text = self
            .fact_in("eth_getTransactionByHash", &format!(r#"["{hash:#x}"]"#), Budget::Block)
            .await?;
        Ok(parse::<Option<WirePlace>>(&text)?.and_then(|place| place.block_hash))
    }

    /// The transaction of this block that used the nonce; `None` if none that can be read did.
    pub async fn sent_with(&self, listing: &Listing, sender: Address, nonce: u64) -> Result<Option<B256>, NodeError> {
        for hashes in listing.transactions.chunks(AT_ONCE) {
            for sent in self.sent(listing.block.hash, hashes).await? {
                if let Some(sent) = sent.filter(|sent| (sent.sender, sent.nonce) == (sender, nonce)) {
                    return Ok(Some(sent.hash));
                }
            }
        }
        Ok(None)
    }

    /// What these transactions of a block did, in the order given. No block takes longer than its gas says: whose transaction
    /// took longer once, of that sender's others in the block only the parts are asked for (HD36).
    pub async fn look_at(&self, block: B256, wanted: &[B256]) -> Result<Vec<Looked>, NoTrace> {
        let form = self.trace_form().ok_or(NoTrace::Unsupported)?;
        let gas = self.gas_used(wanted).await?;
        let wanted: Vec<(B256, u64)> = wanted.iter().copied().zip(gas).collect();
        if wanted.len() >= WHOLE_BLOCK
            && let Some(looked) = self.whole(block, &wanted, form).await
        {
            return Ok(looked);
        }
        let mut looked = Vec::with_capacity(wanted.len());
        let mut unread = BTreeSet::new();
        for some in wanted.chunks(AT_ONCE) {
            let together = if some.len() > 1 {
                self.together(block, some, form).await
            } else {
                None
            };
            if let Some(runs) = together {
                looked.extend(runs);
                continue;
            }
            for one in some {
                let run = self.alone(block, *one, form, &unread).await?;
                if let Looked::Unreadable(Unreadable { sent: Some(sent), .. }) = &run {
                    unread.insert(sent.sender);
                }
                looked.push(run);
            }
        }
        Ok(looked)
    }

    /// The gas that each of these mined transactions used.
    async fn gas_used(&self, hashes: &[B256]) -> Result<Vec<u64>, NodeError> {
        let mut gas = Vec::with_capacity(hashes.len());
        for hashes in hashes.chunks(AT_ONCE) {
            let params: Vec<_> = hashes.iter().map(|hash| format!(r#"["{hash:#x}"]"#)).collect();
            let calls: Vec<_> = params
                .iter()
                .map(|params| ("eth_getTransactionReceipt", params.as_str()))
                .collect();
            for answer in self.ask(&calls, Budget::Block).await? {
                gas.push(match answer {
                    Answer::Result(receipt) => {
                        parse::<Option<WireGas>>(&receipt)?.map_or(Ok(0), |receipt| small(receipt.gas_used))?
                    }
                    Answer::Error(_) => 0,
                });
            }
        }
        Ok(gas)
    }

    /// How many events a mined transaction emitted. As many as can be if the node cannot tell: then nothing behind it in its
    /// block is told apart.
    pub async fn log_count(&self, hash: B256) -> Result<u64, NodeError> {
        let receipt = UpstreamCall {
            method: "eth_getTransactionReceipt".into(),
            params: format!(r#"["{hash:#x}"]"#),
        };
        let receipt = self.result(&receipt).await?;
        let count = receipt
            .and_then(|receipt| serde_json::from_str::<WireLogs>(receipt.get()).ok())
            .map(|receipt| receipt.logs.len());
        Ok(count.and_then(|count| u64::try_from(count).ok()).unwrap_or(u64::MAX))
    }

    /// All of them from one trace of the whole block, where that can be had.
    async fn whole(&self, block: B256, wanted: &[(B256, u64)], form: TraceForm) -> Option<Vec<Looked>> {
        let calls = wire::trace_block(block, TraceScope::Mined, form);
        let (wanted, gas): (Vec<B256>, Vec<u64>) = wanted.iter().copied().unzip();
        let body = self
            .exchange(&calls, allowance(gas.into_iter().fold(0, u64::saturating_add)))
            .await
            .ok()?;
        let results = results(read_batch(&body, calls.len()).ok()?)?;
        let mined = gw_evm::trace::transactions(&results).ok()?;
        let mut sent = Vec::with_capacity(wanted.len());
        for hashes in wanted.chunks(AT_ONCE) {
            sent.extend(self.sent(block, hashes).await.ok()?);
        }
        let look = |(hash, sent): (&B256, Option<Sent>)| {
            let results = &mined.iter().find(|mined| mined.hash == *hash)?.results;
            run(sent?, results, form).map(Looked::Run)
        };
        wanted.iter().zip(sent).map(look).collect()
    }

    /// A few of them in one exchange, where all of them can be had so.
    async fn together(&self, block: B256, some: &[(B256, u64)], form: TraceForm) -> Option<Vec<Looked>> {
        let mut calls = Vec::new();
        let (hashes, gas): (Vec<B256>, Vec<u64>) = some.iter().copied().unzip();
        for hash in &hashes {
            calls.push(transaction(*hash));
            calls.extend(wire::trace_transaction(*hash, TraceScope::Mined, form));
        }
        let body = self
            .exchange(&calls, allowance(gas.into_iter().fold(0, u64::saturating_add)))
            .await
            .ok()?;
        let results = results(read_batch(&body, calls.len()).ok()?)?;
        let each = calls.len().checked_div(hashes.len())?;
        let look = |(hash, results): (&B256, &[&RawValue])| {
            let (sent, traces) = results.split_first()?;
            run(read_sent(sent, *hash, block)?, traces, form).map(Looked::Run)
        };
        hashes.iter().zip(results.chunks(each)).map(look).collect()
    }

    /// One of them, tried again; unreadable if the node answers other questions all the while.
    async fn alone(
        &self,
        block: B256,
        one: (B256, u64),
        form: TraceForm,
        unread: &BTreeSet<Address>,
    ) -> Result<Looked, NoTrace> {
        let (hash, _) = one;
        let is_unread = !unread.is_empty()
            && self
                .sent(block, &[hash])
                .await?
                .pop()
                .flatten()
                .is_some_and(|sent| unread.contains(&sent.sender));
        for again in 0..if is_unread { 0 } else { TRIES } {
            if again > 0 {
                tokio::time::sleep(REST).await;
            }
            if let Some(looked) = self
                .together(block, &[one], form)
                .await
                .and_then(|mut looked| looked.pop())
            {
                return Ok(looked);
            }
        }
        // Whose fault is it? A node that is away, traces nothing, or left the block behind, says nothing of a transaction.
        let head = head::read(&self.ask(&LOOK, Budget::Block).await?)?;
        if probe::probe(self, head.pin()).await.is_none() {
            return Err(NoTrace::Unsupported);
        }
        let listing = self.listing(block).await?;
        if self.block_of(hash).await.is_ok_and(|place| place != Some(block)) {
            return Err(NoTrace::Unusable(TraceError::Malformed));
        }
        let unreadable = self.parts(&listing, hash).await?;
        tracing::error!(tx.hash = %hash, "a mined transaction cannot be read");
        Ok(Looked::Unreadable(unreadable))
    }

    /// What the parts of a transaction tell that cannot be read as a whole.
    async fn parts(&self, listing: &Listing, hash: B256) -> Result<Unreadable, NodeError> {
        let block = listing.block.hash;
        let sent = self
            .sent(block, &[hash])
            .await
            .ok()
            .and_then(|mut sent| sent.pop().flatten());
        let (mut spoke, mut made_here) = (BTreeSet::new(), BTreeSet::new());
        made_here.extend(
            sent.as_ref()
                .filter(|sent| sent.to.is_none())
                .map(|sent| sent.sender.create(sent.nonce)),
        );
        let receipt = UpstreamCall {
            method: "eth_getTransactionReceipt".into(),
            params: format!(r#"["{hash:#x}"]"#),
        };
        if let Some(receipt) = self.result(&receipt).await? {
            let (emitters, created) = emitters(&receipt);
            spoke = emitters;
            made_here.extend(created);
        }
        // The tree is the largest part: the others may still be had.
        let parts = wire::trace_transaction(hash, TraceScope::Send, TraceForm::Batch);
        let [_, touches, diff] = parts.as_slice() else {
            return Err(NodeError::Unparsable);
        };
        let diff = self.result(diff).await?;
        let changes = diff.as_deref().and_then(changed);
        match &diff {
            Some(diff) => made_here.extend(made(diff)),
            // Without the diff, what has code now and had none before may be this one's: whose it is nobody can say, so
            // nobody reads it.
            None => {
                let touched = self
                    .result(touches)
                    .await?
                    .map(|touches| touched(&touches))
                    .unwrap_or_default();
                made_here.extend(
                    touched
                        .into_iter()
                        .filter(|(_, had_code)| !had_code)
                        .map(|(address, _)| address),
                );
            }
        }
        let created = self.came_about(made_here, &listing.block).await?;
        Ok(Unreadable {
            hash,
            sent,
            changes,
            emitters: spoke.into_iter().collect(),
            created,
        })
    }

    /// Which of the addresses have code in this block and had none before it.
    async fn came_about(&self, addresses: BTreeSet<Address>, block: &Block) -> Result<Vec<Address>, NodeError> {
        let addresses: Vec<Address> = addresses.into_iter().collect();
        let now = self.code_at(&addresses, block.hash).await?;
        let before = self.code_at(&addresses, block.parent).await?;
        let came = addresses
            .into_iter()
            .zip(now.into_iter().zip(before))
            .filter(|(_, (now, before))| *now && !*before);
        Ok(came.map(|(address, _)| address).collect())
    }

    /// What the node says to one question; nothing if it has no answer that can be taken. A node that is away is an error.
    async fn result(&self, call: &UpstreamCall) -> Result<Option<Box<RawValue>>, NodeError> {
        match self.exchange(std::slice::from_ref(call), allowance(0)).await {
            Ok(body) => Ok(results(read_batch(&body, 1)?).and_then(|mut found| found.pop().map(ToOwned::to_owned))),
            // As much as it holds, or takes to make.
            Err(NodeError::TooLarge | NodeError::Timeout | NodeError::Broken(_)) => Ok(None),
            Err(error) => Err(error),
        }
    }

    /// Whether there is code of its own at each address in this block: not that of a wallet which delegates. Where the node
    /// cannot tell, there is.
    pub async fn code_at(&self, addresses: &[Address], block: B256) -> Result<Vec<bool>, NodeError> {
        let mut has_code = Vec::with_capacity(addresses.len());
        for addresses in addresses.chunks(FACTS) {
            let params: Vec<_> = addresses
                .iter()
                .map(|address| format!(r#"["{address:#x}",{{"blockHash":"{block:#x}"}}]"#))
                .collect();
            let calls: Vec<_> = params.iter().map(|params| ("eth_getCode", params.as_str())).collect();
            for answer in self.ask(&calls, Budget::Block).await? {
                has_code.push(match answer {
                    Answer::Result(code) => {
                        let code = parse::<Bytes>(&code)?;
                        !code.is_empty() && gw_evm::code::delegation(&code).is_none()
                    }
                    Answer::Error(_) => true,
                });
            }
        }
        Ok(has_code)
    }

    /// Transactions of this block as they were sent; nothing for one that cannot be read or is not in it.
    async fn sent(&self, block: B256, hashes: &[B256]) -> Result<Vec<Option<Sent>>, NodeError> {
        let calls: Vec<_> = hashes.iter().map(|hash| transaction(*hash)).collect();
        let read = |body: &bytes::Bytes, hashes: &[B256]| {
            let answers = read_batch(body, hashes.len())?;
            let each = answers.into_iter().zip(hashes).map(|(answer, hash)| match answer {
                Answer::Result(sent) => read_sent(sent, *hash, block),
                Answer::Error(_) => None,
            });
            Ok::<Vec<_>, NodeError>(each.collect())
        };
        match self.exchange(&calls, Budget::SendTrace).await {
            Ok(body) => read(&body, hashes),
            // Too much at once.
            Err(NodeError::TooLarge) => {
                let mut sent = Vec::with_capacity(hashes.len());
                for (hash, call) in hashes.iter().zip(&calls) {
                    sent.push(
                        match self.exchange(std::slice::from_ref(call), Budget::SendTrace).await {
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
}

fn transaction(hash: B256) -> UpstreamCall {
    UpstreamCall {
        method: "eth_getTransactionByHash".into(),
        params: format!(r#"["{hash:#x}"]"#),
    }
}

/// The transaction, if it is the one asked for and in this block: one that moved to another is looked at there.
fn read_sent(text: &RawValue, hash: B256, block: B256) -> Option<Sent> {
    let sent: WireSent = serde_json::from_str(text.get()).ok()?;
    if sent.hash != hash || sent.block_hash != Some(block) {
        return None;
    }
    sent.read()
}

/// All results, or nothing if one is an error.
fn results(answers: Vec<Answer<&RawValue>>) -> Option<Vec<&RawValue>> {
    let result = |answer| match answer {
        Answer::Result(result) => Some(result),
        Answer::Error(_) => None,
    };
    answers.into_iter().map(result).collect()
}

fn run(sent: Sent, results: &[&RawValue], form: TraceForm) -> Option<MinedRun> {
    let trace = Trace::parse(results, TraceScope::Mined, form).ok()?;
    let created = trace.created().collect();
    Some(MinedRun {
        sent,
        trace: Sealed::new(trace),
        created,
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    /// HD36: a small transaction cannot hold a block for as long as a large one.
    #[test]
    fn hd36_a_trace_may_take_as_long_as_its_gas_says() {
        let of = |gas| match allowance(gas) {
            Budget::MinedTrace(time) => time.as_secs(),
            other => panic!("{other:?}"),
        };
        assert_eq!([of(0), of(900_000), of(8_000_000), of(30_000_000)], [5, 5, 13, 35]);
    }
}
