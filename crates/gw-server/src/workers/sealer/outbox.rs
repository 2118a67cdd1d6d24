//! Entries of mutations: they wait in the policy store, written by the mutation's own transaction, until they get their
//! place in the one administrative chain of the deployment (spec/70 rules 3 and 15, decision 46).
//!
//! What becomes of a row is decided by `gw_audit::outbox`. Rows stay in the policy store for a day after they were sealed:
//! an audit store that went back in time gets them again, with the same bytes.

use super::{
    alarm::{Alarm, raise},
    chain::{SealedChain, Signer},
    frontiers::Frontiers,
    health::{OutOfStep, StallReason},
};
use crate::serve::outbox_mark::OutboxMarkFile;
use anyhow::Context as _;
use gw_audit::{
    Chain, ChainId, Content, Draft, Genesis, Head, OutboxFault, Record, ShardId, StoreId, StoredEntry, Stream,
    outbox::{
        FOREIGN_ALARM, IDS_ALARM, ROW_ALARM, RowState, absent_ids, fault, is_gap_entry, is_nobodys_entry, row_state,
    },
    verify::{Finding, FindingKind},
};
use gw_journal::Journal;
use gw_store::{
    OutboxWitness as _, Store,
    audit::{AuditStore, OutboxAlarm, OutboxEntry, OutboxMark, SealedAdminEntry, SealedRow, ToSeal},
};
use gw_types::{Clock, Seconds, Timestamp};
use std::{
    collections::{HashMap, HashSet},
    ops::RangeInclusive,
    sync::Arc,
};
use tokio::time::{Duration, Instant};
use uuid::Uuid;

/// The chain is one for all instances, so its shard is nobody's.
const SHARD: ShardId = ShardId(Uuid::nil());
/// The one administrative chain.
pub(crate) const ADMIN_CHAIN: ChainId = ChainId {
    stream: Stream::Admin,
    shard: SHARD,
};
/// How often the outbox is looked into.
const LOOK: Duration = Duration::from_millis(200);
/// How long sealed rows are kept (HD25: what the store lost is sealed again).
const KEEP: Seconds = Seconds(24 * 3600);
/// How often rows that were kept long enough are deleted.
const FORGET: Duration = Duration::from_secs(600);
/// Rows may wait so long for another instance that holds the chain.
const PATIENCE: Seconds = Seconds(30);
/// How often the end of the chain is compared while nothing waits.
const COMPARE: Duration = Duration::from_secs(5);
/// Kept rows compared with the audit store at once.
const PAGE: u64 = 5000;

/// The outbox and the chain its entries go to.
#[derive(Debug)]
pub(super) struct Outbox {
    store: Store,
    journal: Arc<Journal>,
    clock: Arc<dyn Clock>,
    /// How far the outbox got, as this instance's directory has it.
    mark_file: Arc<OutboxMarkFile>,
    genesis: Genesis,
    sealed: SealedChain,
    /// The chain's end; asked of the store anew after any failure.
    known: Option<Known>,
    /// The end that was read back last: where the store stands elsewhere, it went back in time.
    confirmed: Option<Head>,
    /// The size whose signed note the policy store has.
    signed: u64,
    /// Entries that were refused.
    refused: HashSet<u64>,
    /// Absent ids that were looked for, and how many of them are missing.
    absent: HashMap<(StoreId, RangeInclusive<i64>), u64>,
    looked: Option<Instant>,
    compared: Option<Instant>,
    forgot: Option<Instant>,
}

/// The end of the chain, and the highest id of a row sealed in it.
#[derive(Clone, Debug)]
struct Known {
    chain: Chain,
    newest: i64,
}

impl Outbox {
    pub(super) fn new(
        store: Store,
        journal: Arc<Journal>,
        clock: Arc<dyn Clock>,
        mark_file: Arc<OutboxMarkFile>,
        signer: &Signer,
        holder: String,
    ) -> Self {
        Self {
            store,
            journal,
            clock,
            mark_file,
            genesis: Genesis::new(SHARD, signer.cluster, signer.public().to_bytes()),
            sealed: SealedChain::new(ADMIN_CHAIN, holder),
            known: None,
            confirmed: None,
            signed: 0,
            refused: HashSet::new(),
            absent: HashMap::new(),
            looked: None,
            compared: None,
            forgot: None,
        }
    }

    /// The chain in the store.
    pub(super) const fn chain(&mut self) -> &mut SealedChain {
        &mut self.sealed
    }

    /// Seals one batch; whether there may be more at once.
    pub(super) async fn step(
        &mut self,
        audit: &AuditStore,
        frontiers: &mut Frontiers,
        most: usize,
    ) -> anyhow::Result<bool> {
        if self.looked.is_some_and(|at| at.elapsed() < LOOK) {
            return Ok(false);
        }
        self.store.look_after_outbox().await?;
        self.tell_of_rows();
        self.tell_of_identity(audit).await?;
        let done = self.batch(audit, frontiers, most).await;
        if done.is_err() {
            self.known = None;
            self.sealed.release();
        }
        let full = done?;
        // Look again at once only where there is more.
        self.looked = if full { None } else { Some(Instant::now()) };
        if self.forgot.is_none_or(|at| at.elapsed() >= FORGET) && self.known.is_some() {
            // What goes is compared with the store a last time: it may have gone back since.
            self.reopen_lost(audit, frontiers).await?;
            self.store.forget_outbox(self.clock.now().minus(KEEP)).await?;
            self.forgot = Some(Instant::now());
        }
        self.keep_signed_head(frontiers).await?;
        Ok(full)
    }

    /// Keeps the newest signature over the chain in the policy store: an older audit store is told by it, whatever became
    /// of the journal's directory (RL6).
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

    async fn batch(&mut self, audit: &AuditStore, frontiers: &mut Frontiers, most: usize) -> anyhow::Result<bool> {
        let Some(claim) = self.sealed.claim(audit, frontiers).await? else {
            return self.others_seal().await.map(|()| false);
        };
        // Both marks are read before the rows: every id up to them is committed by then.
        let mark = self.store.outbox_mark().await?;
        let Known { mut chain, newest } = match self.known.take() {
            Some(known) => known,
            None => {
                let chain = match claim.head {
                    Some(head) => Chain::resume(ADMIN_CHAIN, head, audit.org_heads(ADMIN_CHAIN).await?),
                    None => self.begin(audit, frontiers).await?,
                };
                if self.confirmed.is_none_or(|confirmed| confirmed != chain.head()) {
                    self.refuse_foreign(audit, mark, frontiers, chain.head().size).await?;
                    self.reopen_lost(audit, frontiers).await?;
                }
                if let Some(alarm) = raise_ids(&self.store, audit, &self.mark_file).await? {
                    raise(&self.journal, alarm);
                }
                let newest = audit.newest_outbox_id(ADMIN_CHAIN, mark.store).await?.unwrap_or(0);
                Known { chain, newest }
            }
        };
        let last = self.mark_file.last_id(mark.store).max(mark.given());
        let mut waiting = self
            .store
            .outbox(i64::MIN, u64::try_from(most).unwrap_or(u64::MAX))
            .await?;
        let full = waiting.len() >= most;
        let given = ids_given(&waiting, mark.store, last);
        let mut gaps = self
            .gaps(
                audit,
                mark.store,
                &absent_ids(newest, &given, if full { 0 } else { last }),
            )
            .await?;
        let newest = given
            .iter()
            .chain(gaps.iter().map(|gap| &gap.id))
            .copied()
            .fold(newest, i64::max);
        let former = self.mark_file.uncompared();
        for OutboxMark { store, last_id } in &former {
            let sealed = audit.newest_outbox_id(ADMIN_CHAIN, *store).await?.unwrap_or(0);
            let given = ids_given(&waiting, *store, *last_id);
            gaps.extend(
                self.gaps(
                    audit,
                    *store,
                    &absent_ids(sealed, &given, if full { 0 } else { *last_id }),
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
            self.known = Some(Known { chain, newest });
            return Ok(false);
        }
        let batch = self.place(audit, &mut chain, waiting).await?;
        let sealed = batch.last().is_some();
        self.sealed.seal(audit, frontiers, batch).await?;
        if sealed {
            // The rows may go only when the store is seen to hold their entries.
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
        self.known = Some(Known { chain, newest });
        Ok(full)
    }

    /// While another instance holds the chain, rows must not wait for long.
    async fn others_seal(&self) -> anyhow::Result<()> {
        let oldest = self.store.outbox(i64::MIN, 1).await?;
        if oldest
            .first()
            .is_some_and(|row| row.created_at.plus(PATIENCE) < self.clock.now())
        {
            return Err(OutOfStep(StallReason::HeldElsewhere).into());
        }
        Ok(())
    }

    /// While nothing waits, too, the chain must end where this instance left it: nobody else writes it meanwhile.
    async fn compare_end(&mut self, audit: &AuditStore, chain: &Chain) -> anyhow::Result<()> {
        if self.compared.is_some_and(|at| at.elapsed() < COMPARE) {
            return Ok(());
        }
        if audit.head(ADMIN_CHAIN).await? != Some(chain.head()) {
            return Err(OutOfStep(StallReason::Foreign).into());
        }
        self.compared = Some(Instant::now());
        Ok(())
    }

    /// Gives the rows that are not sealed yet their places.
    async fn place(
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
            if let Some(found) = entry.outbox_fault.filter(|found| *found != OutboxFault::Missing) {
                self.report_fault(id, found);
            }
            let draft = Draft::new(&Record::Admin(entry), &salts);
            let entry = chain
                .entry(draft, created_at)
                .context("an outbox row cannot be written as an entry")?;
            batch.push(ToSeal { entry });
        }
        Ok(batch)
    }

    /// Compares the entries behind the last signature with the rows that they must have been made of. An entry that no row
    /// accounts for is not signed: the administrative chain holds nothing that no mutation wrote (RL2, RL9).
    async fn refuse_foreign(
        &mut self,
        audit: &AuditStore,
        mark: OutboxMark,
        frontiers: &Frontiers,
        size: u64,
    ) -> anyhow::Result<()> {
        let signed = frontiers.signed_size(audit, ADMIN_CHAIN).await?;
        let known = self.confirmed.map_or(0, |confirmed| confirmed.size);
        // The first entry is no row's.
        let mut next = signed.max(known).max(1);
        let mut rows: HashMap<RowKey, OutboxEntry> = HashMap::new();
        let former = self.mark_file.former();
        if next < size {
            // In this order: an instance that is about to end may still mark a row as sealed meanwhile.
            rows.extend(
                self.store
                    .outbox(i64::MIN, PAGE)
                    .await?
                    .into_iter()
                    .map(|row| (key_of(&row), row)),
            );
            let mut after = 0;
            loop {
                let page = self.store.kept_outbox(after, PAGE).await?;
                let Some(last) = page.last().map(|row| row.id) else {
                    break;
                };
                rows.extend(page.into_iter().map(|row| (key_of(&row), row)));
                after = last;
            }
        }
        while next < size {
            let page = audit.rows(ADMIN_CHAIN, next, PAGE.min(size - next)).await?;
            let Some(last) = page.last().map(|row| row.seq) else {
                break;
            };
            for row in page {
                if !is_accounted_for(&row, mark, &former, &rows) && self.refused.insert(row.seq) {
                    let reason = format!("{FOREIGN_ALARM}{}", row.seq);
                    raise(
                        &self.journal,
                        Alarm {
                            stream: Stream::Admin,
                            reason,
                            count: Some(1),
                        },
                    );
                    tracing::error!(
                        entry = row.seq,
                        "the administrative chain holds an entry that no row of the outbox accounts for: somebody changed the \
                         audit database, or removed sealed rows of `audit_outbox`; the chain is signed no more until `ledger-gateway audit re-anchor`"
                    );
                    let finding = Finding {
                        stored: Some(row.hash),
                        ..Finding::of(FindingKind::OutboxFault, Some(row.seq))
                    };
                    self.sealed.stop_signing(frontiers, finding);
                }
            }
            next = last.saturating_add(1);
        }
        Ok(())
    }

    /// Compares the rows that are kept with what the audit store holds of them: rows whose entries it lost wait again, and
    /// so do those that say something else than the entry under their id.
    async fn reopen_lost(&self, audit: &AuditStore, frontiers: &Frontiers) -> anyhow::Result<()> {
        let size = audit.head(ADMIN_CHAIN).await?.map_or(0, |head| head.size);
        let mut after = 0;
        loop {
            let kept = self.store.kept_outbox(after, PAGE).await?;
            let Some(last) = kept.last().map(|row| row.id) else {
                return Ok(());
            };
            let sealed = sealed_by_row(audit, &kept, size).await?;
            let (mut absent, mut again) = (HashMap::<_, Vec<_>>::new(), Vec::new());
            for row in &kept {
                match state_of(row, &sealed) {
                    RowState::Sealed => {}
                    RowState::New => {
                        absent
                            .entry(row.entry.store_id)
                            .or_default()
                            .push((row.id, row.created_at));
                    }
                    RowState::IdReused => again.push(row.id),
                }
            }
            for id in &again {
                self.report_rewritten(*id);
            }
            // A row whose entry is there under another id in its column is not lost.
            let mut lost = Vec::new();
            for (store, absent) in absent {
                let Some(store) = store else { continue };
                lost.extend(audit.missing_ids(ADMIN_CHAIN, store, &absent).await?);
            }
            // Nor is one that was pruned, which is asked last: it may have been this moment. An entry is never older than
            // its row.
            let pruned = frontiers.pruned_until(audit, ADMIN_CHAIN).await?;
            let made: HashMap<i64, Timestamp> = kept.iter().map(|row| (row.id, row.created_at)).collect();
            lost.retain(|id| {
                made.get(id)
                    .is_none_or(|made| pruned.is_none_or(|pruned| *made > pruned))
            });
            lost.sort_unstable();
            if let (Some(first), Some(end)) = (lost.first(), lost.last()) {
                tracing::error!(
                    rows = lost.len(),
                    first,
                    last = end,
                    "the audit store lost entries of mutations: they are sealed again from the policy store"
                );
            }
            again.extend(lost);
            self.store.reopen_outbox(&again).await?;
            after = last;
        }
    }

    fn report_rewritten(&self, id: i64) {
        let reason = format!("entry_rewritten:{id}");
        raise(
            &self.journal,
            Alarm {
                stream: Stream::Admin,
                reason,
                count: Some(1),
            },
        );
        tracing::error!(
            id,
            "the audit store's entry of an outbox row is not what the row says: somebody changed the audit database; the \
             row is sealed again, with that remark"
        );
    }

    /// Tells what the writer found wrong with rows on their way into the policy database.
    fn tell_of_rows(&self) {
        for alarm in self.store.take_outbox_alarms() {
            let reason = match alarm {
                OutboxAlarm::Altered(id) => format!("{ROW_ALARM}altered:{id}"),
                OutboxAlarm::Lost(id) => format!("{ROW_ALARM}lost:{id}"),
                OutboxAlarm::Undone(id) => format!("{ROW_ALARM}undone:{id}"),
                OutboxAlarm::Lowered { stored, known } => format!("{IDS_ALARM}lowered:{stored}:{known}"),
            };
            raise(
                &self.journal,
                Alarm {
                    stream: Stream::Admin,
                    reason,
                    count: None,
                },
            );
        }
    }

    /// Tells of another policy store than the one that was here: an older or an empty database in its place, or an identity
    /// that somebody exchanged so that nothing is compared any more (RL3).
    async fn tell_of_identity(&self, audit: &AuditStore) -> anyhow::Result<()> {
        let store = self.store.outbox_mark().await?.store;
        // Where nothing is remembered, the log says whose mutations it has.
        if self.mark_file.is_blank()
            && let Some(newest) = audit.newest_mutation(ADMIN_CHAIN, None).await?
            && let Some(former) = newest.store.filter(|former| *former != store)
        {
            self.mark_file.remember_former(OutboxMark {
                store: former,
                last_id: newest.id.unwrap_or(0),
            });
        }
        self.mark_file.adopt(store);
        for OutboxMark { store: former, last_id } in self.mark_file.untold() {
            let reason = format!("{IDS_ALARM}replaced:{}:{last_id}", former.0);
            raise(
                &self.journal,
                Alarm {
                    stream: Stream::Admin,
                    reason,
                    count: None,
                },
            );
            tracing::error!(
                store = %store.0,
                former.store = %former.0,
                former.last_id = last_id,
                "the policy store has another identity than the one that was here: another database was put in its place, or \
                 somebody changed `policy_store`; mutations of the former one that were never sealed are told next; if it was \
                 you, accept it with `ledger-gateway audit re-anchor` of this instance's security chain"
            );
            self.mark_file.note_told(former);
        }
        Ok(())
    }

    /// Reports ids whose rows are neither waiting nor sealed. Each range gets an entry in the chain, so that verification
    /// tells of it after a restart, too, until somebody re-anchors the chain.
    async fn gaps(
        &mut self,
        audit: &AuditStore,
        store: StoreId,
        absent: &[RangeInclusive<i64>],
    ) -> anyhow::Result<Vec<OutboxEntry>> {
        let mut gaps = Vec::new();
        for ids in absent {
            let known = self.absent.get(&(store, ids.clone())).copied();
            let count = u64::try_from(ids.end().saturating_sub(*ids.start()).saturating_add(1)).unwrap_or(0);
            let missing = match known {
                Some(missing) => missing,
                None => count.saturating_sub(audit.count_sealed_ids(store, ids).await?),
            };
            self.absent.insert((store, ids.clone()), missing);
            if missing > 0 {
                gaps.push(OutboxEntry::gap(store, ids, missing));
            }
            if missing > 0 && known.is_none() {
                let reason = format!("outbox_gap:{}..{}", ids.start(), ids.end().saturating_add(1));
                raise(
                    &self.journal,
                    Alarm {
                        stream: Stream::Admin,
                        reason,
                        count: Some(missing),
                    },
                );
                tracing::error!(
                    from = ids.start(),
                    until = ids.end(),
                    missing,
                    store = %store.0,
                    "audit outbox rows were deleted before they were sealed: somebody changed the policy database"
                );
            }
        }
        Ok(gaps)
    }

    fn report_fault(&self, id: i64, fault: OutboxFault) {
        let reason = format!("outbox_fault:{fault}:{id}");
        raise(
            &self.journal,
            Alarm {
                stream: Stream::Admin,
                reason,
                count: None,
            },
        );
        tracing::error!(id, %fault, "an audit outbox row is not what a mutation wrote: it is sealed with that remark");
    }

    /// The chain's first entry.
    async fn begin(&mut self, audit: &AuditStore, frontiers: &mut Frontiers) -> anyhow::Result<Chain> {
        let mut bytes = Vec::new();
        // The earliest time there is: no outbox row may be older than the start of its chain.
        let (chain, _) = Chain::begin(ADMIN_CHAIN, &self.genesis, Timestamp::from_micros(0), &mut bytes);
        let entry = StoredEntry::new(bytes, Vec::new())?;
        self.sealed.seal(audit, frontiers, vec![ToSeal { entry }]).await?;
        Ok(chain)
    }
}

/// Whether an entry is what one of the rows says.
fn is_accounted_for(
    sealed: &SealedRow,
    mark: OutboxMark,
    former: &[OutboxMark],
    rows: &HashMap<RowKey, OutboxEntry>,
) -> bool {
    let Ok(stored) = StoredEntry::new(sealed.bytes.clone(), sealed.openings.clone()) else {
        return false;
    };
    let Ok(Content::Record(Record::Admin(entry))) = stored.content() else {
        return false;
    };
    // It says itself that there is no row, and every verification finds it.
    let former = former.iter().find(|former| entry.store_id == Some(former.store));
    if entry.store_id != Some(mark.store) && former.is_none() {
        return false;
    }
    if is_gap_entry(&entry) || is_nobodys_entry(&entry) {
        return true;
    }
    let Some(id) = entry.outbox_id.and_then(|id| i64::try_from(id).ok()) else {
        return false;
    };
    let Some(row) = rows.get(&(entry.store_id, id)) else {
        // Of a policy store that is not here any more no row can tell, and that it is gone is told.
        return former.is_some_and(|former| id <= former.last_id);
    };
    row_state((&row.entry, row.created_at), [(&entry, stored.header.time)]) == RowState::Sealed
}

/// The policy store that wrote a row, and the row's id.
type RowKey = (Option<StoreId>, i64);

const fn key_of(row: &OutboxEntry) -> RowKey {
    (row.entry.store_id, row.id)
}

/// The ids of waiting rows of a policy store. Those of forged rows that nobody gave out are no sign of rows before them.
fn ids_given(waiting: &[OutboxEntry], store: StoreId, last: i64) -> Vec<i64> {
    let of_store = waiting
        .iter()
        .filter(|row| row.entry.store_id == Some(store) && row.id > 0);
    of_store
        .filter(|row| row.id <= last || row.entry.outbox_fault.is_none())
        .map(|row| row.id)
        .collect()
}

/// Sealed entries of mutations by their outbox rows.
type SealedByRow = HashMap<RowKey, Vec<SealedAdminEntry>>;

async fn sealed_by_row(audit: &AuditStore, rows: &[OutboxEntry], size: u64) -> anyhow::Result<SealedByRow> {
    let mut ids: HashMap<StoreId, Vec<i64>> = HashMap::new();
    for row in rows {
        if let Some(store) = row.entry.store_id {
            ids.entry(store).or_default().push(row.id);
        }
    }
    let mut sealed = SealedByRow::new();
    for (store, ids) in ids {
        for entry in audit.sealed_under(store, &ids, size).await? {
            sealed.entry((Some(store), entry.id)).or_default().push(entry);
        }
    }
    Ok(sealed)
}

fn state_of(row: &OutboxEntry, sealed: &SealedByRow) -> RowState {
    let others = sealed.get(&key_of(row)).map(Vec::as_slice).unwrap_or_default();
    row_state(
        (&row.entry, row.created_at),
        others.iter().map(|other| (&other.entry, other.time)),
    )
}

/// A policy store that knows fewer ids than were sealed, or than were seen here, was restored from an older backup: new rows
/// get ids behind them. At start before the first mutation, so that no row takes the id of one that is lost.
pub(crate) async fn raise_ids(
    store: &Store,
    audit: &AuditStore,
    mark_file: &OutboxMarkFile,
) -> anyhow::Result<Option<Alarm>> {
    let of = store.outbox_mark().await?.store;
    let newest = audit.newest_outbox_id(ADMIN_CHAIN, of).await?.unwrap_or(0);
    let last = newest.max(mark_file.last_id(of));
    // Last: a mutation that is committed meanwhile is in the other two only after it is in this one.
    let mark = store.outbox_mark().await?;
    if mark.last_id >= last {
        return Ok(None);
    }
    tracing::error!(
        store.last_id = mark.last_id,
        known.last_id = last,
        "the policy store is older than what was sealed of it: mutations in between are lost, their entries are kept; new \
         entries go on behind them"
    );
    store.raise_outbox_ids(last).await?;
    let reason = format!(
        "policy_store_rewound:{}..{}",
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
    /// Takes no rest before the next look.
    pub(super) const fn look_at_once(&mut self) {
        self.looked = None;
    }
}
