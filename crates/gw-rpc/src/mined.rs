//! Every block that holds a send of the gateway's is traced once by its hash, before anybody reads at it (spec/02 HD2).
//!
//! Gathers which sends are awaited and what the block did, lets `gw_policy::access::judge_mined` say whether that would have
//! been denied, and writes down what follows: the sender loses the right to send, what may be loot is closed. Those are
//! rows of policy, so every instance knows them; each instance looks at each block for itself all the same, for it must
//! not show a block that another one has not finished with.
//!
//! Invariant: a block is let in only after its findings are in force here. What cannot be looked at is not let in.

use crate::send::SendContext;
use gw_audit::{SecurityEvent, SecurityKind};
use gw_journal::Journal;
use gw_node::{Admitting, Block, BlockWithSenders, Gate, MinedRun, NoTrace, Node, NodeError, Sent};
use gw_policy::{
    Knobs, Snapshot,
    access::{MinedFinding, MinedSend, UnreadableRun, judge_mined, unreadable_mined},
    knobs::MinedTrace,
};
use gw_store::{
    Actor, Feed, Store, StoreError,
    record::{Finding, Watched},
};
use gw_types::{Address, B256, Clock, OrgId};
use std::{
    collections::{BTreeMap, BTreeSet, HashMap, HashSet, VecDeque},
    sync::Arc,
};
use tokio::sync::Mutex;

/// How far down a reorganization is followed, and how many blocks may come at once.
const DEPTH: u64 = 64;
/// How long a new contract waits for its registration, in blocks.
const LATELY: u64 = 256;

/// Looks at new blocks.
#[derive(Debug)]
pub struct MinedGate {
    store: Store,
    feed: Feed,
    journal: Arc<Journal>,
    clock: Arc<dyn Clock>,
    knobs: Arc<Knobs>,
    known: Mutex<Known>,
}

/// What earlier blocks left behind.
#[derive(Debug, Default)]
struct Known {
    /// Blocks that were let in, the newest last.
    blocks: VecDeque<B256>,
    /// What sends created, whose it will be, and in which block it appeared.
    created: HashMap<Address, (OrgId, u64)>,
}

/// What the transactions before one left behind.
struct Earlier<'a> {
    created: &'a HashMap<Address, (OrgId, u64)>,
    /// By findings that are not written down yet.
    tainted: &'a HashSet<Address>,
}

/// Why a block could not be looked at.
#[derive(Debug, thiserror::Error)]
enum Unseen {
    #[error("the node did not answer")]
    Node(#[from] NodeError),
    #[error("the block was not traced")]
    Trace(#[from] NoTrace),
    #[error("the store did not answer")]
    Store(#[from] StoreError),
    #[error("the policy is stale")]
    Stale,
}

impl Gate for MinedGate {
    fn admit<'a>(&'a self, node: &'a Node, last: Option<Block>, block: Block) -> Admitting<'a> {
        Box::pin(async move {
            match (self.look(node, last, block).await, self.knobs.mined_trace) {
                (Ok(()), _) => Ok(()),
                (Err(error), MinedTrace::Quarantine) => Err(NodeError::NotValidated(Box::new(error))),
                (Err(error), MinedTrace::Alert | MinedTrace::Off) => {
                    tracing::error!(error = &error as &dyn std::error::Error, "a block was not looked at");
                    Ok(())
                }
            }
        })
    }
}

impl MinedGate {
    /// For the sends of this context.
    pub fn new(context: &SendContext) -> Self {
        let SendContext { store, feed, journal, clock, knobs, .. } = context.clone();
        Self { store, feed, journal, clock, knobs, known: Mutex::default() }
    }

    async fn look(&self, node: &Node, last: Option<Block>, block: Block) -> Result<(), Unseen> {
        let mut known = self.known.lock().await;
        // A send found in a block of the last few may be found again in another one.
        let above = last.map_or(u64::MAX, |last| last.number.min(block.number).saturating_sub(DEPTH));
        let watched = self.store.read().watched_sends(above).await?;
        if !watched.is_empty() {
            let new = match last {
                Some(last) if block.number.saturating_sub(last.number) <= DEPTH => {
                    branch(node, &known, last, block).await?
                }
                Some(_) | None => holding(node, &watched, block).await?,
            };
            for block in &new {
                if !known.blocks.contains(&block.block.hash) {
                    self.look_into(node, &mut known, block, &watched).await?;
                    known.remember(block.block.hash);
                }
            }
        }
        known.remember(block.hash);
        known.created.retain(|_, (_, number)| number.saturating_add(LATELY) > block.number);
        Ok(())
    }

    async fn look_into(
        &self,
        node: &Node,
        known: &mut Known,
        block: &BlockWithSenders,
        watched: &[Watched],
    ) -> Result<(), Unseen> {
        let of = |sent: &Sent| {
            let sent = sent.clone();
            watched.iter().filter(move |watched| (watched.sender, watched.nonce) == (sent.sender, sent.nonce))
        };
        let ours = |sent: &Sent, watched: &Watched| watched.tx_hash.is_none_or(|hash| hash == sent.hash);
        // Whatever else used the nonce settles a send as well: it never will be mined.
        let settled: Vec<_> = block.transactions.iter().flat_map(of).map(|watched| watched.id).collect();
        if settled.is_empty() {
            return Ok(());
        }
        let wanted: Vec<B256> = block
            .transactions
            .iter()
            .filter(|sent| of(sent).any(|watched| ours(sent, watched)))
            .map(|sent| sent.hash)
            .collect();
        let runs = if wanted.is_empty() { Vec::new() } else { node.trace_block(block.block.hash, &wanted).await? };
        let pinned = self.feed.pin();
        if !pinned.fresh {
            return Err(Unseen::Stale);
        }
        let mut findings = Vec::new();
        // Of this block, in its order: what an earlier transaction brought home a later one must not carry on.
        let mut tainted = HashSet::new();
        for run in &runs {
            let Some(sent) = block.transactions.iter().find(|sent| sent.hash == run.hash) else { continue };
            for watched in of(sent).filter(|watched| ours(sent, watched)) {
                let earlier = Earlier { created: &known.created, tainted: &tainted };
                match self.judge(&pinned.snapshot, &earlier, block, sent, watched, run) {
                    Some(found) => {
                        tainted.extend(&found.closed);
                        findings.push((found, watched.clone(), sent));
                    }
                    None => {
                        let new = run.created.iter().map(|new| (*new, (watched.org, block.block.number)));
                        known.created.extend(new);
                    }
                }
            }
        }
        let mut tx = self.store.begin(&Actor::system()).await?;
        tx.settle_watched(&settled, block.block.number).await?;
        if self.knobs.mined_trace == MinedTrace::Quarantine {
            for (found, watched, sent) in &findings {
                let found = found.clone();
                let finding = Finding {
                    external_id: watched.external_id.clone(),
                    org: watched.org,
                    sender: sent.sender,
                    tx_hash: sent.hash,
                    block_hash: block.block.hash,
                    reason: found.reason.as_str(),
                    closed: found.closed,
                    closed_to_side: found.closed_to_side,
                    side: found.side,
                    touched: found.touched,
                    wronged: found.wronged,
                    suspends: found.suspends,
                };
                tx.record_finding(&finding).await?;
            }
        }
        // Returns when this instance has applied it.
        tx.commit().await?;
        for (found, watched, sent) in &findings {
            self.report(&pinned.snapshot, found, watched, sent.hash);
        }
        Ok(())
    }

    fn judge(
        &self,
        snapshot: &Snapshot,
        earlier: &Earlier<'_>,
        block: &BlockWithSenders,
        sent: &Sent,
        watched: &Watched,
        run: &MinedRun,
    ) -> Option<MinedFinding> {
        let lately: HashMap<Address, OrgId> = earlier.created.iter().map(|(new, (org, _))| (*new, *org)).collect();
        let sent = MinedSend {
            external_id: &watched.external_id,
            org: watched.org,
            orgs: &watched.orgs,
            sender: sent.sender,
            coinbase: block.block.coinbase,
            delegations: sent.delegations.clone(),
            lately: &lately,
            tainted: earlier.tainted,
        };
        match &run.trace {
            Ok(trace) => judge_mined(snapshot, &sent, trace, self.clock.now(), &self.knobs),
            Err(_) => {
                let written = run.changed.iter().chain(&run.created).copied().collect();
                let run = UnreadableRun { written, touched: Vec::new() };
                Some(unreadable_mined(snapshot, &sent, &run, self.clock.now(), &self.knobs))
            }
        }
    }

    fn report(&self, snapshot: &Snapshot, found: &MinedFinding, watched: &Watched, tx_hash: B256) {
        metrics::counter!("ledger_gateway_mined_trace_violations_total").increment(1);
        tracing::error!(tx.hash = %tx_hash, reason = %found.reason, "a send did, once mined, what its trace had not shown");
        let event = SecurityEvent {
            external_id: Some(watched.external_id.clone()),
            user_id: snapshot.user_by_external(&watched.external_id).map(|user| user.id),
            org_id: Some(watched.org),
            address: Some(watched.sender),
            reason: Some(found.reason.as_str().into()),
            count: Some(found.closed.len() as u64),
            ..SecurityEvent::new(SecurityKind::MinedTraceViolation)
        };
        if let Err(error) = self.journal.append(event) {
            tracing::error!(error = &error as &dyn std::error::Error, "a mined trace was not reported");
        }
    }
}

impl Known {
    fn remember(&mut self, block: B256) {
        if !self.blocks.contains(&block) {
            self.blocks.push_back(block);
        }
        while self.blocks.len() as u64 > DEPTH.saturating_mul(2) {
            self.blocks.pop_front();
        }
    }
}

/// The blocks from the last one that was let in to this one, oldest first.
async fn branch(node: &Node, known: &Known, last: Block, block: Block) -> Result<Vec<BlockWithSenders>, NodeError> {
    let mut new = Vec::new();
    let mut next = block.hash;
    while new.len() as u64 <= DEPTH.saturating_mul(2) {
        let block = node.block_with_senders(next).await?;
        next = block.block.parent;
        let joined = next == last.hash || known.blocks.contains(&next) || block.block.number == 0;
        new.push(block);
        if joined {
            break;
        }
    }
    new.reverse();
    Ok(new)
}

/// The blocks up to this one that hold awaited sends, oldest first: at a start, and after a long silence.
async fn holding(node: &Node, watched: &[Watched], head: Block) -> Result<Vec<BlockWithSenders>, NodeError> {
    let mut hashes = BTreeSet::new();
    for watched in watched {
        let mined = match watched.tx_hash {
            Some(hash) => node.mined(hash).await?.map(|mined| mined.block_hash),
            // Signed by the node, and nobody heard under which hash.
            None => match node.block_of_nonce(watched.sender, watched.nonce, head.number).await {
                Err(error @ NodeError::Unparsable) => {
                    let error = &error as &dyn std::error::Error;
                    tracing::error!(error, user.external_id = %watched.external_id, nonce = watched.nonce, "a send that the node signed is \
                        not looked at: the node keeps no state as old as its block");
                    None
                }
                found => found?,
            },
        };
        hashes.extend(mined);
    }
    let mut blocks = BTreeMap::new();
    for hash in hashes {
        let block = node.block_with_senders(hash).await?;
        if block.block.number <= head.number {
            blocks.insert(block.block.number, block);
        }
    }
    Ok(blocks.into_values().collect())
}
