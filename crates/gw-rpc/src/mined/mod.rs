//! Every send of the gateway's is looked at in the block that holds it, before anybody reads at that block (spec/02 HD2).
//!
//! Gathers where awaited sends are ([`awaited`]) and what they did, lets `gw_policy::access::judge_mined` say whether that
//! would have been denied, and writes down what follows: what they created is their organization's; of what would have been
//! denied the sender loses the right to send, and it is withheld with all that it changed. Those are rows of policy, so every
//! instance knows them; each instance looks at each block for itself all the same, for it must not show a block that another one has
//! not finished with.
//!
//! Invariant: a block is let in only after all of that is in force here. What its content makes unreadable is convicted
//! (HD36); only a node or a store that does not answer, or policy that is stale, holds it back.

mod awaited;

use crate::send::SendContext;
use awaited::{Chain, Found, Places};
use gw_audit::{SecurityEvent, SecurityKind};
use gw_journal::Journal;
use gw_node::{Admitting, Block, Gate, Listing, Looked, NoTrace, Node, NodeError};
use gw_policy::{
    Knobs, Snapshot,
    access::{
        MinedFinding, MinedSend, RecentSend, UnreadableRun, changed_accounts, entered_code, judge_mined,
        unreadable_mined,
    },
    knobs::MinedTrace,
};
use gw_store::{
    Actor, Feed, Store, StoreError,
    record::{CreationKind, Finding, Mined, MinedContract, Object, Watched},
};
use gw_types::{Address, B256, Clock, OrgId, Timestamp, WatchId};
use std::{
    collections::{HashMap, HashSet, VecDeque},
    sync::Arc,
};
use tokio::sync::Mutex;

/// How far down a reorganization is followed, and how many blocks may come at once.
const DEPTH: u64 = 64;

/// Looks at new blocks.
#[derive(Debug)]
pub struct MinedGate {
    store: Store,
    feed: Feed,
    journal: Arc<Journal>,
    clock: Arc<dyn Clock>,
    knobs: Arc<Knobs>,
    followed: Mutex<Followed>,
}

/// What is remembered of the last blocks.
#[derive(Debug, Default)]
struct Followed {
    chain: Chain,
    sends: RecentSends,
}

/// What the sends of the last blocks changed, oldest first. Only this process knows: after a restart no sender is excused by
/// what others changed before it (HD38).
#[derive(Debug, Default)]
struct RecentSends(VecDeque<MinedChange>);

/// What one send changed, and where it stands in the chain.
#[derive(Debug)]
struct MinedChange {
    watch: WatchId,
    /// The number of its block, and its place there.
    at: (u64, u64),
    send: RecentSend,
}

impl RecentSends {
    fn add(&mut self, watched: &Watched, at: (u64, u64), coinbase: Address, looked: &Looked) {
        let (block, _) = at;
        self.0
            .retain(|known| known.watch != watched.id && known.at.0.saturating_add(DEPTH) > block);
        let Looked::Run(run) = looked else { return };
        let orgs = watched.orgs.iter().copied().chain([watched.org]).collect();
        let changed = changed_accounts(&run.trace, coinbase);
        let send = RecentSend {
            external_id: watched.external_id.clone(),
            orgs,
            changed,
        };
        self.0.push_back(MinedChange {
            watch: watched.id,
            at,
            send,
        });
    }

    /// The other sends that were mined since this one was judged, and before it.
    fn before(&self, watched: &Watched, at: (u64, u64)) -> Vec<&RecentSend> {
        let judged = watched.judged.as_ref().map_or(u64::MAX, |judged| judged.number);
        let is_before = |known: &&MinedChange| known.at.0 > judged && known.at < at && known.watch != watched.id;
        self.0.iter().filter(is_before).map(|known| &known.send).collect()
    }
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

/// What is to be written of one block, or of a part of it.
#[derive(Debug, Default)]
struct Written<'a> {
    settled: Vec<Found<'a>>,
    made: Vec<Mined>,
    /// With how many events each emitted.
    findings: Vec<(MinedFinding, Found<'a>, u64)>,
}

/// What a send met that was mined a moment before it.
#[derive(Clone, Copy, Debug)]
struct BlockContext<'a> {
    /// What sends of its block created that is not registered yet, and whose it will be.
    lately: &'a HashMap<Address, OrgId>,
    recent_sends: &'a [&'a RecentSend],
}

impl MinedGate {
    /// For the sends of this context.
    pub fn new(context: &SendContext) -> Self {
        let SendContext {
            store,
            feed,
            journal,
            clock,
            knobs,
            ..
        } = context.clone();
        Self {
            store,
            feed,
            journal,
            clock,
            knobs,
            followed: Mutex::default(),
        }
    }

    async fn look(&self, node: &Node, last: Option<Block>, head: Block) -> Result<(), Unseen> {
        let mut followed = self.followed.lock().await;
        let Followed { chain, sends } = &mut *followed;
        if last.is_none() {
            chain.clear();
        }
        // A send found in a block of the last few may be found again in another one.
        let above = last.map_or(u64::MAX, |last| last.number.min(head.number).saturating_sub(DEPTH));
        let watched = self.store.read().watched_sends(above).await?;
        if watched.is_empty() {
            remember(chain, &[head]);
            return Ok(());
        }
        let places = awaited::places(node, &watched, chain, last, head).await?;
        // First what left the chain: an address may be another's in the blocks that came.
        self.conclude(&places, head).await?;
        for (listing, found) in &places.blocks {
            self.look_into(node, listing, found, sends).await?;
        }
        if let Some(above) = places.forked_above {
            chain.retain(|(number, _)| *number <= above);
        }
        let new: Vec<Block> = places
            .blocks
            .iter()
            .map(|(listing, _)| listing.block)
            .chain([head])
            .collect();
        remember(chain, &new);
        Ok(())
    }

    /// Looks at awaited sends in one block, in the order they ran.
    async fn look_into(
        &self,
        node: &Node,
        listing: &Listing,
        found: &[Found<'_>],
        sends: &mut RecentSends,
    ) -> Result<(), Unseen> {
        if found.is_empty() {
            return Ok(());
        }
        let mut wanted: Vec<B256> = found.iter().map(|found| found.hash).collect();
        wanted.dedup();
        let looked = node.look_at(listing.block.hash, &wanted).await?;
        let mut snapshot = self.snapshot()?;
        let mut written = Written::default();
        // What sends of this block created that is not registered yet, and whose it will be.
        let mut lately = HashMap::new();
        for looked in &looked {
            let hash = looked.hash();
            for found in found.iter().filter(|found| found.hash == hash) {
                written.settled.push(*found);
                let at = (listing.block.number, place(listing, found.hash));
                let context = BlockContext {
                    lately: &lately,
                    recent_sends: &sends.before(found.watched, at),
                };
                let finding = self.judge(node, &snapshot, context, listing, found, looked).await?;
                sends.add(found.watched, at, listing.block.coinbase, looked);
                // What is withheld is registered when it is shown: a registration would tell of it.
                let withheld = finding.is_some() && self.knobs.mined_trace == MinedTrace::Quarantine;
                let created = if withheld { &[][..] } else { looked.created() };
                written.made.push(self.made(&snapshot, listing, found, looked, created));
                match finding {
                    None => lately.extend(looked.created().iter().map(|new| (*new, found.watched.org))),
                    Some(finding) => {
                        written.findings.push((finding, *found, node.log_count(hash).await?));
                        // What ran after it is judged by what follows from it: loot may have been carried on.
                        self.write(&snapshot, std::mem::take(&mut written), listing).await?;
                        snapshot = self.snapshot()?;
                        lately.clear();
                    }
                }
            }
        }
        self.write(&snapshot, written, listing).await
    }

    fn snapshot(&self) -> Result<Arc<Snapshot>, Unseen> {
        let pinned = self.feed.pin();
        if pinned.fresh {
            Ok(pinned.snapshot)
        } else {
            Err(Unseen::Stale)
        }
    }

    async fn judge(
        &self,
        node: &Node,
        snapshot: &Snapshot,
        context: BlockContext<'_>,
        listing: &Listing,
        found: &Found<'_>,
        looked: &Looked,
    ) -> Result<Option<MinedFinding>, Unseen> {
        let (now, knobs) = (self.clock.now(), &self.knobs);
        let delegations = looked.sent().map(|sent| sent.delegations.clone()).unwrap_or_default();
        let came = HashSet::new();
        let sent = mined_send(found.watched, &listing.block, context.lately, &came);
        let at = (listing.block.number, place(listing, found.hash));
        let sent = MinedSend {
            delegations,
            at,
            recent_sends: context.recent_sends,
            ..sent
        };
        let run = match looked {
            Looked::Run(run) => run,
            Looked::Unreadable(run) => {
                let (changes, created, emitters) = (run.changes.clone(), run.created.clone(), run.emitters.clone());
                let run = UnreadableRun {
                    changes,
                    created,
                    emitters,
                };
                return Ok(Some(unreadable_mined(snapshot, &sent, &run, now, knobs)));
            }
        };
        let finding = judge_mined(snapshot, &sent, &run.trace, now, knobs);
        let (Some(true), Some(judged)) = (finding.as_ref().map(|found| found.suspends), &found.watched.judged) else {
            return Ok(finding);
        };
        // HD38: for code that came between its judgement and its block nobody answers but who brought it.
        let entered = entered_code(&run.trace);
        let was_there = node.code_at(&entered, judged.block).await?;
        let came: HashSet<Address> = entered
            .into_iter()
            .zip(was_there)
            .filter(|(_, there)| !there)
            .map(|(address, _)| address)
            .collect();
        if came.is_empty() {
            return Ok(finding);
        }
        Ok(judge_mined(
            snapshot,
            &MinedSend { came: &came, ..sent },
            &run.trace,
            now,
            knobs,
        ))
    }

    /// HD27: what a send made, reserved or not, whatever it did besides.
    fn made(
        &self,
        snapshot: &Snapshot,
        listing: &Listing,
        found: &Found<'_>,
        looked: &Looked,
        created: &[Address],
    ) -> Mined {
        let org = found.watched.org;
        let user = snapshot
            .user_by_external(&found.watched.external_id)
            .map(|user| user.id);
        let top = looked
            .sent()
            .filter(|sent| sent.to.is_none())
            .map(|sent| sent.sender.create(sent.nonce));
        let contract = |address: &Address| {
            let kind = if top == Some(*address) {
                CreationKind::Plain
            } else {
                CreationKind::Runtime
            };
            MinedContract {
                address: *address,
                kind,
                metadata: Object::new(),
            }
        };
        let now = self.clock.now();
        Mined {
            tx_hash: found.hash,
            block_hash: listing.block.hash,
            block_number: listing.block.number,
            at: time(&listing.block),
            user,
            grant: user.is_some_and(|user| snapshot.is_member(user, org, now)),
            org,
            created: created.iter().map(contract).collect(),
        }
    }

    /// In one transaction: what the sends made is registered, what they did wrong has its consequences, and they are awaited
    /// no more. Returns when this instance has applied it.
    async fn write(&self, snapshot: &Snapshot, written: Written<'_>, listing: &Listing) -> Result<(), Unseen> {
        if written.settled.is_empty() {
            return Ok(());
        }
        let mut tx = self.store.begin(&Actor::system()).await?;
        for mined in written.made {
            tx.settle_mined(mined).await?;
        }
        let block = &listing.block;
        for found in &written.settled {
            tx.settle_watched(&[found.watched.id], Some(found.hash), block.number)
                .await?;
            tx.forget_changes(found.hash, Some(block.hash)).await?;
        }
        if self.knobs.mined_trace == MinedTrace::Quarantine {
            for (finding, found, logs) in &written.findings {
                let at = (place(listing, found.hash), *logs);
                tx.record_finding(&record(finding, found, block, at)).await?;
            }
        }
        tx.commit().await?;
        for (finding, found, _) in &written.findings {
            self.report(snapshot, finding, found.watched, found.hash);
        }
        Ok(())
    }

    /// What happened to awaited sends outside of the blocks that were looked into.
    async fn conclude(&self, places: &Places<'_>, head: Block) -> Result<(), Unseen> {
        if places.replaced.is_empty() && places.lost.is_empty() && places.dropped.is_empty() {
            return Ok(());
        }
        let snapshot = self.snapshot()?;
        let mut tx = self.store.begin(&Actor::system()).await?;
        tx.settle_watched(&places.replaced, None, head.number).await?;
        // HD14: what they made is gone with their blocks.
        let dropped: Vec<WatchId> = places.dropped.iter().map(|watched| watched.id).collect();
        tx.await_again(&dropped).await?;
        for watched in &places.dropped {
            if let Some(hash) = watched.tx_hash {
                tx.undo_mined(watched.org, hash).await?;
                tx.forget_changes(hash, None).await?;
            }
        }
        let mut findings = Vec::new();
        for watched in &places.lost {
            tracing::error!(nonce = watched.nonce, "a send that was mined cannot be found any more");
            tx.settle_watched(&[watched.id], None, head.number).await?;
            let found = Found {
                watched,
                hash: watched.tx_hash.unwrap_or_default(),
            };
            let (lately, came) = (HashMap::new(), HashSet::new());
            let sent = mined_send(watched, &head, &lately, &came);
            let run = UnreadableRun::default();
            let finding = unreadable_mined(&snapshot, &sent, &run, self.clock.now(), &self.knobs);
            if self.knobs.mined_trace == MinedTrace::Quarantine {
                tx.record_finding(&record(&finding, &found, &head, (0, 0))).await?;
            }
            findings.push((finding, found));
        }
        tx.commit().await?;
        for (finding, found) in &findings {
            self.report(&snapshot, finding, found.watched, found.hash);
        }
        Ok(())
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
            ..SecurityEvent::new(SecurityKind::MinedTraceViolation)
        };
        if let Err(error) = self.journal.append(event) {
            tracing::error!(
                error = &error as &dyn std::error::Error,
                "a mined trace was not reported"
            );
        }
    }
}

/// An awaited send as the policy judges it in this block.
fn mined_send<'a>(
    watched: &'a Watched,
    block: &Block,
    lately: &'a HashMap<Address, OrgId>,
    came: &'a HashSet<Address>,
) -> MinedSend<'a> {
    MinedSend {
        external_id: &watched.external_id,
        org: watched.org,
        orgs: &watched.orgs,
        is_named: watched.is_named,
        sender: watched.sender,
        coinbase: block.coinbase,
        delegations: Vec::new(),
        lately,
        at: (block.number, 0),
        came,
        recent_sends: &[],
        judged: watched.judged.as_ref(),
    }
}

/// When the block was.
fn time(block: &Block) -> Timestamp {
    Timestamp::from_secs(i64::try_from(block.timestamp).unwrap_or(i64::MAX))
}

/// The place of a transaction in a block.
fn place(listing: &Listing, hash: B256) -> u64 {
    let place = listing.transactions.iter().position(|known| *known == hash);
    place.and_then(|place| u64::try_from(place).ok()).unwrap_or(u64::MAX)
}

/// `at` is its place in the block, and how many events it emitted.
fn record(finding: &MinedFinding, found: &Found<'_>, block: &Block, at: (u64, u64)) -> Finding {
    let (finding, (place, logs)) = (finding.clone(), at);
    Finding {
        external_id: found.watched.external_id.clone(),
        org: found.watched.org,
        sender: found.watched.sender,
        tx_hash: found.hash,
        block_hash: block.hash,
        block: block.number,
        block_time: time(block),
        place,
        logs,
        reason: finding.reason.as_str(),
        changes: finding.changes,
        closed_to_side: finding.closed_to_side,
        side: finding.side,
        wronged: finding.wronged,
        suspends: finding.suspends,
    }
}

/// The newest blocks that were let in.
fn remember(chain: &mut Chain, new: &[Block]) {
    for block in new {
        if !chain.contains(&(block.number, block.hash)) {
            chain.push_back((block.number, block.hash));
        }
    }
    while chain.len() as u64 > DEPTH.saturating_mul(2) {
        chain.pop_front();
    }
}
