//! Compares the sealed entries of the administrative chain with the rows of the outbox: an entry without a row is not
//! signed, and a row whose entry is lost or differs is sealed again.

use super::{
    super::{
        frontiers::Frontiers,
        rows::{RowKey, is_accounted_for, key_of, sealed_by_row, state_of},
    },
    ADMIN_CHAIN, Outbox,
};
use gw_audit::{
    outbox::{FOREIGN_ALARM, RowState},
    verify::{Finding, FindingKind},
};
use gw_store::audit::{AuditStore, OutboxEntry, OutboxMark};
use gw_types::Timestamp;
use std::collections::HashMap;

/// Rows or entries per query when the two stores are compared.
const PAGE: u64 = 5000;

impl Outbox {
    /// Compares the unsigned entries with the rows of the outbox. An entry without a matching row is not signed,
    /// because the administrative chain must contain only entries that a mutation wrote (RL2, RL9).
    pub(super) async fn reject_foreign_entries(
        &mut self,
        audit: &AuditStore,
        mark: OutboxMark,
        frontiers: &Frontiers,
        size: u64,
    ) -> anyhow::Result<()> {
        let signed = frontiers.signed_size(audit, ADMIN_CHAIN).await?;
        let confirmed = self.confirmed.map_or(0, |head| head.size);
        // Entry 0 is the genesis, which has no row.
        let mut next = signed.max(confirmed).max(1);
        let mut rows: HashMap<RowKey, OutboxEntry> = HashMap::new();
        let former = self.mark_file.former();
        if next < size {
            // Read the waiting rows before the sealed ones: another instance that is about to end may mark a row as
            // sealed in between.
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
                if !is_accounted_for(&row, mark, &former, &rows) && self.rejected.insert(row.seq) {
                    let reason = format!("{FOREIGN_ALARM}{}", row.seq);
                    self.trust.alarm.raise_outbox(reason, Some(1));
                    tracing::error!(
                        entry = row.seq,
                        "the administrative chain has an entry without a matching row of `audit_outbox`, so the chain \
                         is not signed: the likely cause is manual SQL in the audit database, or sealed rows that were \
                         deleted from `audit_outbox`; investigate, then run `ledger-gateway audit re-anchor`"
                    );
                    let finding = Finding {
                        stored: Some(row.hash),
                        ..Finding::new(FindingKind::OutboxFault, Some(row.seq))
                    };
                    self.sealed.stop_signing(frontiers, finding);
                }
            }
            next = last.saturating_add(1);
        }
        Ok(())
    }

    /// Compares the sealed rows with their entries in the audit store. Reopens rows whose entry is lost, or differs
    /// from the row, so that they are sealed again.
    pub(super) async fn reopen_lost(&self, audit: &AuditStore, frontiers: &Frontiers) -> anyhow::Result<()> {
        let size = audit.head(ADMIN_CHAIN).await?.map_or(0, |head| head.size);
        let mut after = 0;
        loop {
            let kept = self.store.kept_outbox(after, PAGE).await?;
            let Some(last) = kept.last().map(|row| row.id) else {
                return Ok(());
            };
            let sealed = sealed_by_row(audit, &kept, size).await?;
            let (mut absent, mut reopened) = (HashMap::<_, Vec<_>>::new(), Vec::new());
            for row in &kept {
                match state_of(row, &sealed) {
                    RowState::Sealed => {}
                    RowState::New => {
                        absent
                            .entry(row.entry.store_id)
                            .or_default()
                            .push((row.id, row.created_at));
                    }
                    RowState::IdReused => reopened.push(row.id),
                }
            }
            for id in &reopened {
                self.report_rewritten(*id);
            }
            // An entry whose id column was changed is not lost.
            let mut lost = Vec::new();
            for (store, absent) in absent {
                let Some(store) = store else { continue };
                lost.extend(audit.missing_ids(ADMIN_CHAIN, store, &absent).await?);
            }
            // A pruned entry is not lost either. Read the pruned time last, because a prune may run at this moment. An
            // entry is never older than its row.
            let pruned = frontiers.pruned_until(audit, ADMIN_CHAIN).await?;
            let created: HashMap<i64, Timestamp> = kept.iter().map(|row| (row.id, row.created_at)).collect();
            lost.retain(|id| {
                created
                    .get(id)
                    .is_none_or(|created_at| pruned.is_none_or(|pruned| *created_at > pruned))
            });
            lost.sort_unstable();
            if let (Some(first), Some(end)) = (lost.first(), lost.last()) {
                tracing::error!(
                    rows = lost.len(),
                    first,
                    last = end,
                    "the audit store lost entries of mutations; they are sealed again from the policy store"
                );
            }
            reopened.extend(lost);
            self.store.reopen_outbox(&reopened).await?;
            after = last;
        }
    }

    fn report_rewritten(&self, id: i64) {
        let reason = format!("entry_rewritten:{id}");
        self.trust.alarm.raise_outbox(reason, Some(1));
        tracing::error!(
            id,
            "an entry in the audit database differs from its row of `audit_outbox`: the likely cause is manual SQL in \
             the audit database; the row is sealed again, marked with this fault; run `ledger-gateway audit verify`"
        );
    }
}
