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
    access::{MinedFinding, MinedSend, judge_mined, unreadable_mined},
    knobs::MinedTrace,
};
use gw_store::{
    Actor, Feed, Store, StoreError,
    record::{Finding, Watched},
};
use gw_types::{Address, B256, Clock, OrgId};
use std::{
    collections::{BTreeMap, BTreeSet, HashMap, VecDeque},
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
        for run in &runs {
            let Some(sent) = block.transactions.iter().find(|sent| sent.hash == run.hash) else { continue };
            for watched in of(sent).filter(|watched| ours(sent, watched)) {
                match self.judge(&pinned.snapshot, known, block, sent, watched, run) {
                    Some(found) => findings.push((found, *watched, sent.hash)),
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
            for (found, watched, tx_hash) in &findings {
                let finding = Finding {
                    user: watched.user,
                    org: watched.org,
                    tx_hash: *tx_hash,
                    block_hash: block.block.hash,
                    reason: found.reason.as_str(),
                    tainted: found.tainted.clone(),
                };
                tx.record_finding(&finding).await?;
            }
        }
        // Returns when this instance has applied it.
        tx.commit().await?;
        for (found, watched, tx_hash) in &findings {
            self.report(&pinned.snapshot, found, watched, *tx_hash);
        }
        Ok(())
    }

    fn judge(
        &self,
        snapshot: &Snapshot,
        known: &Known,
        block: &BlockWithSenders,
        sent: &Sent,
        watched: &Watched,
        run: &MinedRun,
    ) -> Option<MinedFinding> {
        let Ok(trace) = &run.trace else { return Some(unreadable_mined(run.changed.iter().copied())) };
        let lately: HashMap<Address, OrgId> = known.created.iter().map(|(new, (org, _))| (*new, *org)).collect();
        let sent = MinedSend {
            user: watched.user,
            org: watched.org,
            sender: sent.sender,
            coinbase: block.block.coinbase,
            delegations: sent.delegations.clone(),
            lately: &lately,
        };
        judge_mined(snapshot, &sent, trace, self.clock.now(), &self.knobs)
    }

    fn report(&self, snapshot: &Snapshot, found: &MinedFinding, watched: &Watched, tx_hash: B256) {
        metrics::counter!("ledger_gateway_mined_trace_violations_total").increment(1);
        tracing::error!(tx.hash = %tx_hash, reason = %found.reason, "a send did, once mined, what its trace had not shown");
        let event = SecurityEvent {
            external_id: snapshot.user(watched.user).map(|user| user.external_id.clone()),
            user_id: Some(watched.user),
            org_id: Some(watched.org),
            address: Some(watched.sender),
            reason: Some(found.reason.as_str().into()),
            count: Some(found.tainted.len() as u64),
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
                    tracing::error!(error, user.id = %watched.user, nonce = watched.nonce, "a send that the node signed is \
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
