//! Seals the audit entries of mutations into the single administrative chain of the deployment (spec/70 rules 3 and 15,
//! decision 46). The transaction of a mutation writes its entry as a row of the outbox in the policy store.
//!
//! `gw_audit::outbox` decides what happens to a row. Rows stay in the policy store for a day after they were sealed. If
//! an older audit store is restored, they are sealed again with identical bytes.

mod comparison;
mod reports;

use super::{
    alarm::Alarm,
    chain::{SealedChain, Signer},
    frontiers::Frontiers,
    health::{OutOfStep, StallReason},
    rows::{issued_ids, sealed_by_row, state_of},
};
use crate::{serve::outbox_mark::OutboxMarkFile, trust::AuditTrust};
use anyhow::Context as _;
use gw_audit::{
    Chain, ChainId, EncodedRecord, Genesis, Head, OutboxFault, Record, ShardId, StoreId, StoredEntry, Stream,
    outbox::{REWOUND_ALARM, RowState, absent_ids, fault},
    verify::{Finding, FindingKind},
};
use gw_store::{
    OutboxWitness as _, Store,
    audit::{AuditStore, OutboxEntry, OutboxMark, ToSeal},
};
use gw_types::{Clock, Seconds, Timestamp};
use std::{
    collections::{HashMap, HashSet},
    ops::RangeInclusive,
    sync::Arc,
};
use tokio::time::{Duration, Instant};
use uuid::Uuid;

/// All instances share one administrative chain, so it has the nil shard, which belongs to no instance.
const SHARD: ShardId = ShardId(Uuid::nil());
/// The administrative chain of the deployment.
pub(crate) const ADMIN_CHAIN: ChainId = ChainId {
    stream: Stream::Admin,
    shard: SHARD,
};
/// Time between two reads of the outbox.
const POLL_INTERVAL: Duration = Duration::from_millis(200);
/// How long sealed rows are kept (HD25: entries that the store lost are sealed again).
const KEEP_SEALED: Seconds = Seconds(24 * 3600);
/// Time between two deletions of sealed rows.
const PURGE_INTERVAL: Duration = Duration::from_secs(600);
/// How long rows may wait for another instance that holds the chain.
const MAX_WAIT: Seconds = Seconds(30);
/// Time between two comparisons of the chain's head while no row waits.
const COMPARE_INTERVAL: Duration = Duration::from_secs(5);

/// The outbox and the chain of its entries.
#[derive(Debug)]
pub(super) struct Outbox {
    store: Store,
    trust: Arc<AuditTrust>,
    clock: Arc<dyn Clock>,
    /// The highest known id of the outbox, from this instance's directory.
    mark_file: Arc<OutboxMarkFile>,
    genesis: Genesis,
    sealed: SealedChain,
    /// The cached end of the chain; `None` after any failure, so that it is read from the store again.
    end: Option<ChainEnd>,
    /// The head that was last read back. If the store has another head, it was changed or restored.
    confirmed: Option<Head>,
    /// Size of the chain in the signed note that the policy store has.
    signed: u64,
    /// Numbers of entries that were rejected as foreign.
    rejected: HashSet<u64>,
    /// Ranges of absent ids that were searched for, and the count of missing ids in each.
    absent: HashMap<(StoreId, RangeInclusive<i64>), u64>,
    /// Whether the row of `policy_store` was missing at the last look.
    is_identity_missing: bool,
    last_poll: Option<Instant>,
    last_comparison: Option<Instant>,
    last_purge: Option<Instant>,
}

/// The end of the chain, and the highest id of a row that is sealed in it.
#[derive(Clone, Debug)]
struct ChainEnd {
    chain: Chain,
    newest: i64,
}

impl Outbox {
    pub(super) fn new(
        store: Store,
        trust: Arc<AuditTrust>,
        clock: Arc<dyn Clock>,
        mark_file: Arc<OutboxMarkFile>,
        signer: &Signer,
        holder: String,
    ) -> Self {
        Self {
            store,
            trust,
            clock,
            mark_file,
            genesis: Genesis::new(SHARD, signer.cluster, signer.public().to_bytes()),
            sealed: SealedChain::new(ADMIN_CHAIN, holder),
            end: None,
            confirmed: None,
            signed: 0,
            rejected: HashSet::new(),
            absent: HashMap::new(),
            is_identity_missing: false,
            last_poll: None,
            last_comparison: None,
            last_purge: None,
        }
    }

    /// The chain in the store.
    pub(super) const fn chain(&mut self) -> &mut SealedChain {
        &mut self.sealed
    }

    /// Seals one batch of at most `limit` rows. Returns whether more rows may wait.
    pub(super) async fn step(
        &mut self,
        audit: &AuditStore,
        frontiers: &mut Frontiers,
        limit: usize,
    ) -> anyhow::Result<bool> {
        if self.last_poll.is_some_and(|time| time.elapsed() < POLL_INTERVAL) {
            return Ok(false);
        }
        self.check_identity_row().await?;
        self.store.check_committed_rows().await?;
        self.report_row_alarms();
        self.report_identity_change(audit).await?;
        let result = self.batch(audit, frontiers, limit).await;
        if result.is_err() {
            self.end = None;
            self.sealed.release();
        }
        let full = result?;
        // Read again at once only if more rows may wait.
        self.last_poll = if full { None } else { Some(Instant::now()) };
        if self.last_purge.is_none_or(|time| time.elapsed() >= PURGE_INTERVAL) && self.end.is_some() {
            // Compare the rows with the audit store before deleting them: an older store may have been restored.
            self.reopen_lost(audit, frontiers).await?;
            self.store.forget_outbox(self.clock.now().minus(KEEP_SEALED)).await?;
            self.last_purge = Some(Instant::now());
        }
        self.keep_signed_head(frontiers).await?;
        Ok(full)
    }

    /// Keeps the newest signed note of the chain in the policy store. It reveals a restored older audit store even if
    /// the journal's directory is lost (RL6).
    async fn keep_signed_head(&mut self, frontiers: &Frontiers) -> anyhow::Result<()> {
        if let Some((size, note)) = frontiers
            .newest_note(ADMIN_CHAIN)
            .filter(|(size, _)| *size > self.signed)
        {
            self.store
                .keep_signed_head(&frontiers.origin(ADMIN_CHAIN), size, &note)
                .await?;
            self.signed = size;
        }
        Ok(())
    }

    /// Seals at most `limit` rows, with entries for the ids that are missing. Returns whether more rows may wait.
    async fn batch(&mut self, audit: &AuditStore, frontiers: &mut Frontiers, limit: usize) -> anyhow::Result<bool> {
        let Some(claim) = self.sealed.claim(audit, frontiers).await? else {
            return self.check_waiting_time().await.map(|()| false);
        };
        // Read the marks before the rows, so that every id up to the marks is committed when the rows are read.
        let mark = self.store.outbox_mark().await?;
        let ChainEnd { mut chain, newest } = match self.end.take() {
            Some(end) => end,
            None => {
                let chain = match claim.head {
                    Some(head) => {
                        check_head(audit, frontiers, head).await?;
                        Chain::resume(ADMIN_CHAIN, head, audit.org_heads(ADMIN_CHAIN).await?)
                    }
                    None => self.begin(audit, frontiers).await?,
                };
                if self.confirmed.is_none_or(|confirmed| confirmed != chain.head()) {
                    self.reject_foreign_entries(audit, mark, frontiers, chain.head().size)
                        .await?;
                    self.reopen_lost(audit, frontiers).await?;
                }
                if let Some(alarm) = raise_ids(&self.store, audit, &self.mark_file).await? {
                    self.trust.alarm.raise_outbox(alarm.reason, alarm.count);
                }
                let newest = audit.newest_outbox_id(ADMIN_CHAIN, mark.store).await?.unwrap_or(0);
                ChainEnd { chain, newest }
            }
        };
        let last = self.mark_file.last_id(mark.store).max(mark.given());
        let mut waiting = self
            .store
            .outbox(i64::MIN, u64::try_from(limit).unwrap_or(u64::MAX))
            .await?;
        // A page of long rows has fewer of them.
        let full = waiting.len() >= limit
            || match waiting.last() {
                Some(last) => !self.store.outbox(last.id.saturating_add(1), 1).await?.is_empty(),
                None => false,
            };
        let issued = issued_ids(&waiting, mark.store, last);
        let mut gaps = self
            .find_gaps(
                audit,
                mark.store,
                &absent_ids(newest, &issued, if full { 0 } else { last }),
            )
            .await?;
        let newest = issued
            .iter()
            .chain(gaps.iter().map(|gap| &gap.id))
            .copied()
            .fold(newest, i64::max);
        let former = self.mark_file.uncompared();
        for OutboxMark { store, last_id } in &former {
            let sealed = audit.newest_outbox_id(ADMIN_CHAIN, *store).await?.unwrap_or(0);
            let issued = issued_ids(&waiting, *store, *last_id);
            gaps.extend(
                self.find_gaps(
                    audit,
                    *store,
                    &absent_ids(sealed, &issued, if full { 0 } else { *last_id }),
                )
                .await?,
            );
        }
        let ids: Vec<i64> = waiting.iter().map(|row| row.id).collect();
        waiting.extend(gaps);
        waiting.sort_by_key(|row| row.id);
        if waiting.is_empty() {
            former
                .iter()
                .for_each(|former| self.mark_file.note_compared(former.store));
            self.compare_end(audit, &chain).await?;
            self.end = Some(ChainEnd { chain, newest });
            return Ok(false);
        }
        let batch = self.encode_entries(audit, &mut chain, waiting).await?;
        let has_entries = batch.last().is_some();
        self.sealed.seal(audit, frontiers, batch).await?;
        if has_entries {
            // Rows are marked as sealed only after a read confirmed that the store has their entries.
            let stored = audit.head(ADMIN_CHAIN).await?;
            if stored != Some(chain.head()) {
                return Err(OutOfStep(StallReason::Unconfirmed).into());
            }
        }
        self.store.mark_outbox_sealed(&ids).await?;
        if !full {
            former
                .iter()
                .for_each(|former| self.mark_file.note_compared(former.store));
        }
        self.confirmed = Some(chain.head());
        self.end = Some(ChainEnd { chain, newest });
        Ok(full)
    }

    /// Fails if rows have waited too long for another instance that holds the chain.
    async fn check_waiting_time(&self) -> anyhow::Result<()> {
        let oldest = self.store.outbox(i64::MIN, 1).await?;
        if oldest
            .first()
            .is_some_and(|row| row.created_at.plus(MAX_WAIT) < self.clock.now())
        {
            return Err(OutOfStep(StallReason::HeldElsewhere).into());
        }
        Ok(())
    }

    /// Checks, also while no row waits, that the chain still has the head that this instance wrote. No other instance
    /// writes while this one holds the claim.
    async fn compare_end(&mut self, audit: &AuditStore, chain: &Chain) -> anyhow::Result<()> {
        if self
            .last_comparison
            .is_some_and(|time| time.elapsed() < COMPARE_INTERVAL)
        {
            return Ok(());
        }
        if audit.head(ADMIN_CHAIN).await? != Some(chain.head()) {
            return Err(OutOfStep(StallReason::Foreign).into());
        }
        self.last_comparison = Some(Instant::now());
        Ok(())
    }

    /// Encodes the rows that are not sealed yet as the next entries of the chain.
    async fn encode_entries(
        &self,
        audit: &AuditStore,
        chain: &mut Chain,
        waiting: Vec<OutboxEntry>,
    ) -> anyhow::Result<Vec<ToSeal>> {
        let sealed = sealed_by_row(audit, &waiting, chain.head().size).await?;
        let mut batch = Vec::with_capacity(waiting.len());
        for row in waiting {
            let state = state_of(&row, &sealed);
            let OutboxEntry {
                id,
                created_at,
                mut entry,
                salts,
            } = row;
            if state == RowState::Sealed {
                continue;
            }
            entry.outbox_fault = fault(entry.outbox_fault, state);
            if let Some(row_fault) = entry.outbox_fault.filter(|fault| *fault != OutboxFault::Missing) {
                self.report_fault(id, row_fault);
            }
            let draft = EncodedRecord::new(&Record::Admin(entry), &salts);
            let entry = chain
                .entry(draft, created_at)
                .context("an outbox row cannot be written as an entry")?;
            batch.push(ToSeal { entry });
        }
        Ok(batch)
    }

    /// Seals the genesis of the chain.
    async fn begin(&mut self, audit: &AuditStore, frontiers: &mut Frontiers) -> anyhow::Result<Chain> {
        let mut bytes = Vec::new();
        // The genesis has time zero, because no outbox row may be older than the start of its chain.
        let (chain, _) = Chain::begin(ADMIN_CHAIN, &self.genesis, Timestamp::from_micros(0), &mut bytes);
        let entry = StoredEntry::new(bytes, Vec::new())?;
        self.sealed.seal(audit, frontiers, vec![ToSeal { entry }]).await?;
        Ok(chain)
    }
}

/// Checks that the stored head is that of the newest entry. A chain whose head was changed is not continued: its next
/// entry would name a hash that no entry has.
async fn check_head(audit: &AuditStore, frontiers: &Frontiers, head: Head) -> anyhow::Result<()> {
    let Some(newest) = head.size.checked_sub(1) else {
        return Ok(());
    };
    // A pruned entry is not there.
    let rows = audit.rows(ADMIN_CHAIN, newest, 1).await?;
    if rows.iter().all(|row| row.seq != newest || row.hash == head.hash) {
        return Ok(());
    }
    let finding = Finding {
        stored: Some(head.hash),
        ..Finding::new(FindingKind::Fork, Some(newest))
    };
    frontiers.raise(ADMIN_CHAIN, &finding);
    Err(OutOfStep(StallReason::Foreign).into())
}

/// Raises the next outbox id if the policy store issued fewer ids than were sealed or seen by this instance, which
/// means that it was restored from an older backup. Call it at start before the first mutation, so that no row reuses
/// the id of a lost one. Returns the alarm to raise.
pub(crate) async fn raise_ids(
    store: &Store,
    audit: &AuditStore,
    mark_file: &OutboxMarkFile,
) -> anyhow::Result<Option<Alarm>> {
    let store_id = store.outbox_mark().await?.store;
    let newest = audit.newest_outbox_id(ADMIN_CHAIN, store_id).await?.unwrap_or(0);
    let last = newest.max(mark_file.last_id(store_id));
    // Read the store's mark last: a mutation that commits meanwhile appears here before it appears in the other two.
    let mark = store.outbox_mark().await?;
    if mark.last_id >= last {
        return Ok(None);
    }
    tracing::error!(
        store.last_id = mark.last_id,
        known.last_id = last,
        "the policy store is older than its sealed entries: it was restored from a backup, and later mutations are \
         lost; their audit entries are kept, and new entries follow them"
    );
    store.raise_outbox_ids(last).await?;
    let reason = format!(
        "{REWOUND_ALARM}{}..{}",
        mark.last_id.saturating_add(1),
        last.saturating_add(1)
    );
    Ok(Some(Alarm {
        stream: Stream::Admin,
        reason,
        count: u64::try_from(last - mark.last_id).ok(),
    }))
}

#[cfg(test)]
impl Outbox {
    /// Skips the wait before the next read of the outbox.
    pub(super) const fn poll_at_once(&mut self) {
        self.last_poll = None;
    }
}
