//! Validates each block that contains sends of the gateway, before any call reads at that block (spec/02 HD2).
//!
//! [`watched_sends`] locates the watched sends on the chain, the node traces them, and
//! `gw_policy::access::evaluate_mined` decides whether the executions would have been denied. This module writes the
//! consequences: contracts that a send created belong to its organization; the sender of a violation loses the right to
//! send; and the violating transaction is withheld with all state that it changed. These consequences are rows of
//! policy, so every instance learns them. Each instance still validates each block by itself, because it must not show
//! a block that it has not validated.
//!
//! Invariant: a block is released only after all of that is in force in this instance. An execution that its content
//! makes unreadable counts as a violation (HD36); a block waits only for a node or a store that does not answer, or
//! while the policy is stale.

mod watched_sends;

use crate::send_context::SendContext;
use gw_audit::{SecurityEvent, SecurityKind};
use gw_journal::Journal;
use gw_node::{Block, BlockGate, BlockListing, BlockValidation, MinedExecution, NoTrace, Node, NodeError};
use gw_policy::{
    PolicySettings, Snapshot,
    access::{
        MinedSend, PostExecutionViolation, RecentSend, UnreadableRun, changed_accounts, entered_code, evaluate_mined,
        unreadable_mined,
    },
    settings::MinedTrace,
};
use gw_store::{
    Actor, Feed, Store, StoreError,
    record::{CreationKind, JsonObject, Mined, MinedContract, Violation, WatchedSend},
};
use gw_types::{Address, B256, Clock, OrgId, Timestamp, WatchId};
use std::{
    collections::{HashMap, HashSet, VecDeque},
    sync::Arc,
};
use tokio::sync::Mutex;
use watched_sends::{MinedWatch, ValidatedBlocks, WatchedSends};

/// The depth to which a reorganization is followed, and the most blocks that are validated at once.
const DEPTH: u64 = 64;

/// Validates new blocks.
#[derive(Debug)]
pub struct BlockValidator {
    store: Store,
    feed: Feed,
    journal: Arc<Journal>,
    clock: Arc<dyn Clock>,
    policy_settings: Arc<PolicySettings>,
    followed: Mutex<ValidationState>,
}

/// The state that the validator keeps of the last blocks.
#[derive(Debug, Default)]
struct ValidationState {
    chain: ValidatedBlocks,
    sends: RecentSends,
}

/// The changes by the sends of the last blocks, oldest first. Only this process knows them: after a restart, changes by
/// earlier sends of others excuse no sender (HD38).
#[derive(Debug, Default)]
struct RecentSends(VecDeque<MinedChange>);

/// The changes by one send, and its position in the chain.
#[derive(Debug)]
struct MinedChange {
    watch: WatchId,
    /// The block number, and the index in the block.
    position: (u64, u64),
    send: RecentSend,
}

impl RecentSends {
    fn add(&mut self, watched: &WatchedSend, position: (u64, u64), coinbase: Address, execution: &MinedExecution) {
        let (block, _) = position;
        self.0
            .retain(|change| change.watch != watched.id && change.position.0.saturating_add(DEPTH) > block);
        let MinedExecution::Run(run) = execution else { return };
        let orgs = watched.orgs.iter().copied().chain([watched.org]).collect();
        let changed = changed_accounts(&run.trace, coinbase);
        let send = RecentSend {
            external_id: watched.external_id.clone(),
            orgs,
            changed,
        };
        self.0.push_back(MinedChange {
            watch: watched.id,
            position,
            send,
        });
    }

    /// The other sends that were mined after this send was authorized, and before it in the chain.
    fn before(&self, watched: &WatchedSend, position: (u64, u64)) -> Vec<&RecentSend> {
        let authorized_at = watched.authorized_runs.as_ref().map_or(u64::MAX, |runs| runs.number);
        let is_before = |change: &&MinedChange| {
            change.position.0 > authorized_at && change.position < position && change.watch != watched.id
        };
        self.0.iter().filter(is_before).map(|change| &change.send).collect()
    }
}

/// Why a block could not be validated.
#[derive(Debug, thiserror::Error)]
enum ValidationError {
    #[error("the node did not answer")]
    Node(#[from] NodeError),
    #[error("the node did not trace the block")]
    Trace(#[from] NoTrace),
    #[error("the store did not answer")]
    Store(#[from] StoreError),
    #[error("the policy is stale")]
    Stale,
}

impl BlockGate for BlockValidator {
    fn validate<'a>(&'a self, node: &'a Node, last: Option<Block>, block: Block) -> BlockValidation<'a> {
        Box::pin(async move {
            match (self.validate(node, last, block).await, self.policy_settings.mined_trace) {
                (Ok(()), _) => Ok(()),
                (Err(error), MinedTrace::Quarantine) => Err(NodeError::NotValidated(Box::new(error))),
                (Err(error), MinedTrace::Alert | MinedTrace::Off) => {
                    tracing::error!(
                        error = &error as &dyn std::error::Error,
                        "a block could not be validated: it is released without a check of its sends"
                    );
                    Ok(())
                }
            }
        })
    }
}

/// The changes to write for one block, or for a part of it.
#[derive(Debug, Default)]
struct BlockChanges<'a> {
    watches: Vec<MinedWatch<'a>>,
    mined: Vec<Mined>,
    /// Each with the number of events that the transaction emitted.
    violations: Vec<(PostExecutionViolation, MinedWatch<'a>, u64)>,
}

/// The recent transactions that bear on the evaluation of a send.
#[derive(Clone, Copy, Debug)]
struct BlockContext<'a> {
    /// Contracts that earlier sends of the same block created and that are not registered yet, with the organization
    /// that each will belong to.
    pending_contracts: &'a HashMap<Address, OrgId>,
    recent_sends: &'a [&'a RecentSend],
}

impl BlockValidator {
    /// Creates the validator for the sends of this context.
    pub fn new(context: &SendContext) -> Self {
        let SendContext {
            store,
            feed,
            journal,
            clock,
            policy_settings,
            ..
        } = context.clone();
        Self {
            store,
            feed,
            journal,
            clock,
            policy_settings,
            followed: Mutex::default(),
        }
    }

    async fn validate(&self, node: &Node, last: Option<Block>, head: Block) -> Result<(), ValidationError> {
        let mut state = self.followed.lock().await;
        let ValidationState { chain, sends } = &mut *state;
        if last.is_none() {
            chain.clear();
        }
        // A send that was found in one of the last blocks may be found again in another block.
        let found_above = last.map_or(u64::MAX, |last| last.number.min(head.number).saturating_sub(DEPTH));
        let watched = self.store.read().watched_sends(found_above).await?;
        if watched.is_empty() {
            remember_blocks(chain, &[head]);
            return Ok(());
        }
        let located = watched_sends::locate_watched_sends(node, &watched, chain, last, head).await?;
        // Settle dropped sends first: a contract address of theirs may belong to another organization in the new
        // blocks.
        self.settle_outside_blocks(&located, head).await?;
        for (listing, watches) in &located.blocks {
            self.validate_block(node, listing, watches, sends).await?;
        }
        if let Some(above) = located.forked_above {
            chain.retain(|(number, _)| *number <= above);
        }
        let new_blocks: Vec<Block> = located
            .blocks
            .iter()
            .map(|(listing, _)| listing.block)
            .chain([head])
            .collect();
        remember_blocks(chain, &new_blocks);
        Ok(())
    }

    /// Validates the watched sends of one block, in the order of execution.
    async fn validate_block(
        &self,
        node: &Node,
        listing: &BlockListing,
        watches: &[MinedWatch<'_>],
        sends: &mut RecentSends,
    ) -> Result<(), ValidationError> {
        if watches.is_empty() {
            return Ok(());
        }
        let mut hashes: Vec<B256> = watches.iter().map(|watch| watch.hash).collect();
        hashes.dedup();
        let executions = node.trace_block_transactions(listing.block.hash, &hashes).await?;
        let mut snapshot = self.snapshot()?;
        let mut changes = BlockChanges::default();
        // Contracts that sends of this block created and that are not registered yet, with the organization that each
        // will belong to.
        let mut pending_contracts = HashMap::new();
        for execution in &executions {
            let hash = execution.hash();
            for watch in watches.iter().filter(|watch| watch.hash == hash) {
                changes.watches.push(*watch);
                let position = (listing.block.number, transaction_index(listing, watch.hash));
                let context = BlockContext {
                    pending_contracts: &pending_contracts,
                    recent_sends: &sends.before(watch.watched, position),
                };
                let violation = self
                    .evaluate(node, &snapshot, context, listing, watch, execution)
                    .await?;
                sends.add(watch.watched, position, listing.block.coinbase, execution);
                // Contracts of a withheld transaction are registered when it is shown: a registration would reveal it.
                let is_withheld = violation.is_some() && self.policy_settings.mined_trace == MinedTrace::Quarantine;
                let created = if is_withheld { &[][..] } else { execution.created() };
                changes
                    .mined
                    .push(self.mined_record(&snapshot, listing, watch, execution, created));
                match violation {
                    None => pending_contracts
                        .extend(execution.created().iter().map(|address| (*address, watch.watched.org))),
                    Some(violation) => {
                        changes
                            .violations
                            .push((violation, *watch, node.log_count(hash).await?));
                        // Later transactions of the block are evaluated under the consequences of this violation: they
                        // may move tainted state on.
                        self.write(&snapshot, std::mem::take(&mut changes), listing).await?;
                        snapshot = self.snapshot()?;
                        pending_contracts.clear();
                    }
                }
            }
        }
        self.write(&snapshot, changes, listing).await
    }

    fn snapshot(&self) -> Result<Arc<Snapshot>, ValidationError> {
        let pinned = self.feed.pin();
        if pinned.fresh {
            Ok(pinned.snapshot)
        } else {
            Err(ValidationError::Stale)
        }
    }

    async fn evaluate(
        &self,
        node: &Node,
        snapshot: &Snapshot,
        context: BlockContext<'_>,
        listing: &BlockListing,
        watch: &MinedWatch<'_>,
        execution: &MinedExecution,
    ) -> Result<Option<PostExecutionViolation>, ValidationError> {
        let (now, policy_settings) = (self.clock.now(), &self.policy_settings);
        let delegations = execution
            .sent()
            .map(|send| send.delegations.clone())
            .unwrap_or_default();
        let new_code = HashSet::new();
        let send = mined_send(watch.watched, &listing.block, context.pending_contracts, &new_code);
        let position = (listing.block.number, transaction_index(listing, watch.hash));
        let send = MinedSend {
            delegations,
            at: position,
            recent_sends: context.recent_sends,
            ..send
        };
        let run = match execution {
            MinedExecution::Run(run) => run,
            MinedExecution::Unreadable(run) => {
                let (changes, created, emitters) = (run.changes.clone(), run.created.clone(), run.emitters.clone());
                let run = UnreadableRun {
                    changes,
                    created,
                    emitters,
                    is_state_missing: run.is_state_missing,
                };
                return Ok(Some(unreadable_mined(snapshot, &send, &run, now, policy_settings)));
            }
        };
        let violation = evaluate_mined(snapshot, &send, &run.trace, now, policy_settings);
        let (Some(true), Some(authorized_runs)) = (
            violation.as_ref().map(|violation| violation.suspends),
            &watch.watched.authorized_runs,
        ) else {
            return Ok(violation);
        };
        // HD38: only the sender who deployed it answers for code that appeared between the authorization of this send
        // and its block.
        let entered = entered_code(&run.trace);
        let had_code = node
            .had_code(&entered, authorized_runs.block, watch.hash, listing.block.hash)
            .await?;
        let new_code: HashSet<Address> = match had_code {
            Some(had_code) => {
                let is_new = entered.into_iter().zip(had_code).filter(|(_, had_code)| !had_code);
                is_new.map(|(address, _)| address).collect()
            }
            // The node lost the state at the authorization: nothing proves that the code was there.
            None => entered.into_iter().collect(),
        };
        if new_code.is_empty() {
            return Ok(violation);
        }
        Ok(evaluate_mined(
            snapshot,
            &MinedSend {
                came: &new_code,
                ..send
            },
            &run.trace,
            now,
            policy_settings,
        ))
    }

    /// HD27: the record of a mined send with the contracts that it created, reserved or not, whatever else it did.
    fn mined_record(
        &self,
        snapshot: &Snapshot,
        listing: &BlockListing,
        watch: &MinedWatch<'_>,
        execution: &MinedExecution,
        created: &[Address],
    ) -> Mined {
        let org = watch.watched.org;
        let user = snapshot
            .user_by_external(&watch.watched.external_id)
            .map(|user| user.id);
        let top_level_creation = execution
            .sent()
            .filter(|transaction| transaction.to.is_none())
            .map(|transaction| transaction.sender.create(transaction.nonce));
        let contract = |address: &Address| {
            let kind = if top_level_creation == Some(*address) {
                CreationKind::Plain
            } else {
                CreationKind::Runtime
            };
            MinedContract {
                address: *address,
                kind,
                metadata: JsonObject::new(),
            }
        };
        let now = self.clock.now();
        Mined {
            tx_hash: watch.hash,
            block_hash: listing.block.hash,
            block_number: listing.block.number,
            at: block_time(&listing.block),
            user,
            grant: user.is_some_and(|user| snapshot.is_member(user, org, now)),
            org,
            created: created.iter().map(contract).collect(),
        }
    }

    /// Writes the changes of a block in one transaction: it registers created contracts, records violations with their
    /// consequences, and marks the sends as mined. Returns when this instance has applied them.
    async fn write(
        &self,
        snapshot: &Snapshot,
        changes: BlockChanges<'_>,
        listing: &BlockListing,
    ) -> Result<(), ValidationError> {
        if changes.watches.is_empty() {
            return Ok(());
        }
        let mut tx = self.store.begin(&Actor::system()).await?;
        for mined in changes.mined {
            tx.settle_mined(mined).await?;
        }
        let block = &listing.block;
        for watch in &changes.watches {
            tx.settle_watched(&[watch.watched.id], Some(watch.hash), block.number)
                .await?;
            tx.forget_changes(watch.hash, Some(block.hash)).await?;
        }
        if self.policy_settings.mined_trace == MinedTrace::Quarantine {
            for (violation, watch, logs) in &changes.violations {
                let index_and_logs = (transaction_index(listing, watch.hash), *logs);
                tx.record_finding(&to_finding(violation, watch, block, index_and_logs))
                    .await?;
            }
        }
        tx.commit().await?;
        for (violation, watch, _) in &changes.violations {
            self.report(snapshot, violation, watch.watched, watch.hash);
        }
        Ok(())
    }

    /// Settles the watched sends that are not in the validated blocks: replaced, unknown and dropped ones.
    async fn settle_outside_blocks(&self, located: &WatchedSends<'_>, head: Block) -> Result<(), ValidationError> {
        if located.replaced.is_empty() && located.unknown.is_empty() && located.dropped.is_empty() {
            return Ok(());
        }
        let snapshot = self.snapshot()?;
        let mut tx = self.store.begin(&Actor::system()).await?;
        tx.settle_watched(&located.replaced, None, head.number).await?;
        let unknown: Vec<WatchId> = located.unknown.iter().map(|watched| watched.id).collect();
        tx.settle_watched(&unknown, None, head.number).await?;
        // HD14: the contracts that they created are gone with their blocks.
        let dropped: Vec<WatchId> = located.dropped.iter().map(|watched| watched.id).collect();
        tx.await_again(&dropped).await?;
        for watched in &located.dropped {
            if let Some(hash) = watched.tx_hash {
                tx.undo_mined(watched.org, hash).await?;
                tx.forget_changes(hash, None).await?;
            }
        }
        tx.commit().await?;
        for watched in &located.unknown {
            self.report_unknown(&snapshot, watched);
        }
        Ok(())
    }

    fn report_unknown(&self, snapshot: &Snapshot, watched: &WatchedSend) {
        tracing::error!(
            nonce = watched.nonce,
            "the node does not show which transaction used the nonce of a send: the send was not validated; review the \
             transactions of the address in the security event, or use a node that keeps older state"
        );
        self.append(SecurityEvent {
            external_id: Some(watched.external_id.clone()),
            user_id: snapshot.user_by_external(&watched.external_id).map(|user| user.id),
            org_id: Some(watched.org),
            address: Some(watched.sender),
            ..SecurityEvent::new(SecurityKind::MinedSendNotFound)
        });
    }

    fn report(&self, snapshot: &Snapshot, violation: &PostExecutionViolation, watched: &WatchedSend, tx_hash: B256) {
        metrics::counter!("ledger_gateway_mined_trace_violations_total").increment(1);
        tracing::error!(
            tx.hash = %tx_hash,
            reason = %violation.reason,
            "a mined send did what its trace before sending had not shown, or could not be traced: it is withheld; \
             review it, its sender may be suspended"
        );
        let event = SecurityEvent {
            external_id: Some(watched.external_id.clone()),
            user_id: snapshot.user_by_external(&watched.external_id).map(|user| user.id),
            org_id: Some(watched.org),
            address: Some(watched.sender),
            reason: Some(violation.reason.as_str().into()),
            ..SecurityEvent::new(SecurityKind::MinedTraceViolation)
        };
        self.append(event);
    }

    fn append(&self, event: SecurityEvent) {
        if let Err(error) = self.journal.append(event) {
            tracing::error!(
                error = &error as &dyn std::error::Error,
                "a security event about a mined send could not be written to the journal"
            );
        }
    }
}

/// A watched send, as input of its evaluation in this block.
fn mined_send<'a>(
    watched: &'a WatchedSend,
    block: &Block,
    pending_contracts: &'a HashMap<Address, OrgId>,
    new_code: &'a HashSet<Address>,
) -> MinedSend<'a> {
    MinedSend {
        external_id: &watched.external_id,
        org: watched.org,
        orgs: &watched.orgs,
        is_named: watched.is_named,
        sender: watched.sender,
        coinbase: block.coinbase,
        delegations: Vec::new(),
        lately: pending_contracts,
        at: (block.number, 0),
        came: new_code,
        recent_sends: &[],
        authorized_runs: watched.authorized_runs.as_ref(),
    }
}

fn block_time(block: &Block) -> Timestamp {
    Timestamp::from_secs(i64::try_from(block.timestamp).unwrap_or(i64::MAX))
}

/// The index of a transaction in a block.
fn transaction_index(listing: &BlockListing, hash: B256) -> u64 {
    let index = listing.transactions.iter().position(|tx_hash| *tx_hash == hash);
    index.and_then(|index| u64::try_from(index).ok()).unwrap_or(u64::MAX)
}

/// `index_and_logs`: the index of the transaction in the block, and the number of events that it emitted.
fn to_finding(
    violation: &PostExecutionViolation,
    watch: &MinedWatch<'_>,
    block: &Block,
    index_and_logs: (u64, u64),
) -> Violation {
    let (violation, (index, logs)) = (violation.clone(), index_and_logs);
    Violation {
        external_id: watch.watched.external_id.clone(),
        org: watch.watched.org,
        sender: watch.watched.sender,
        tx_hash: watch.hash,
        block_hash: block.hash,
        block: block.number,
        block_time: block_time(block),
        place: index,
        logs,
        reason: violation.reason.as_str(),
        changes: violation.changes,
        closed_to_side: violation.closed_to_side,
        side: violation.side,
        wronged: violation.affected_orgs,
        suspends: violation.suspends,
    }
}

/// Adds released blocks to the chain, and forgets the oldest ones.
fn remember_blocks(chain: &mut ValidatedBlocks, blocks: &[Block]) {
    for block in blocks {
        if !chain.contains(&(block.number, block.hash)) {
            chain.push_back((block.number, block.hash));
        }
    }
    while chain.len() as u64 > DEPTH.saturating_mul(2) {
        chain.pop_front();
    }
}
