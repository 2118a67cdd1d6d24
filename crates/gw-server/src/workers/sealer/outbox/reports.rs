//! Reports what is wrong with the outbox in the policy database: its identity, its rows, and rows that are missing.

use super::{ADMIN_CHAIN, Outbox};
use gw_audit::{
    OutboxFault, StoreId,
    outbox::{IDS_ALARM, ROW_ALARM},
};
use gw_store::{
    StoreError,
    audit::{AuditStore, OutboxAlarm, OutboxEntry, OutboxMark},
};
use std::ops::RangeInclusive;

impl Outbox {
    /// Reports once that the row of `policy_store` is missing: no mutation is accepted, and no row can be sealed.
    pub(super) async fn check_identity_row(&mut self) -> anyhow::Result<()> {
        let result = self.store.outbox_mark().await;
        let is_missing = matches!(result, Err(StoreError::PolicyStoreRow));
        if is_missing && !self.is_identity_missing {
            self.trust.alarm.raise_outbox(format!("{IDS_ALARM}missing"), None);
            tracing::error!(
                "the row of table `policy_store` is missing, and every change is answered 503: the likely cause is \
                 manual SQL; restore the policy database from a backup, or insert the row again with its former \
                 `store_id`, which the newest entries of the administrative chain have, and with `last_outbox_id` 0"
            );
        }
        self.is_identity_missing = is_missing;
        result.map(drop).map_err(Into::into)
    }

    /// Reports the faults that the writer of the outbox detected in rows of the policy database.
    pub(super) fn report_row_alarms(&self) {
        for alarm in self.store.take_outbox_alarms() {
            let reason = match alarm {
                OutboxAlarm::Altered(id) => format!("{ROW_ALARM}altered:{id}"),
                OutboxAlarm::Lost(id) => format!("{ROW_ALARM}lost:{id}"),
                OutboxAlarm::Undone(id) => format!("{ROW_ALARM}undone:{id}"),
                OutboxAlarm::Lowered { stored, known } => format!("{IDS_ALARM}lowered:{stored}:{known}"),
                OutboxAlarm::Unrecorded(table) => format!("policy_change:unrecorded:{table}"),
            };
            self.trust.alarm.raise_outbox(reason, None);
        }
    }

    /// Reports a policy store with another identity than before: another database was put in its place, or its identity
    /// was changed to prevent the comparison with sealed entries (RL3).
    pub(super) async fn report_identity_change(&self, audit: &AuditStore) -> anyhow::Result<()> {
        let store = self.store.outbox_mark().await?.store;
        // If the mark file is blank, take the former identity from the newest entry of the chain.
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
        for OutboxMark { store: former, last_id } in self.mark_file.unreported() {
            let reason = format!("{IDS_ALARM}replaced:{}:{last_id}", former.0);
            self.trust.alarm.raise_outbox(reason, None);
            tracing::error!(
                store = %store.0,
                former.store = %former.0,
                former.last_id = last_id,
                "the policy database has another identity than before: the likely cause is another database in its \
                 place, or manual SQL on `policy_store`; unsealed changes of the former database are reported next; if \
                 you replaced the database, accept it with `ledger-gateway audit re-anchor` of this instance's \
                 security chain"
            );
            self.mark_file.mark_reported(former);
        }
        Ok(())
    }

    /// Reports ids whose rows are neither waiting nor sealed. Each range gets an entry in the chain, so that
    /// verification reports it even after a restart, until the chain is re-anchored.
    pub(super) async fn find_gaps(
        &mut self,
        audit: &AuditStore,
        store: StoreId,
        absent: &[RangeInclusive<i64>],
    ) -> anyhow::Result<Vec<OutboxEntry>> {
        let mut gaps = Vec::new();
        for ids in absent {
            let counted = self.absent.get(&(store, ids.clone())).copied();
            let count = u64::try_from(ids.end().saturating_sub(*ids.start()).saturating_add(1)).unwrap_or(0);
            let missing = match counted {
                Some(missing) => missing,
                None => count.saturating_sub(audit.count_sealed_ids(store, ids).await?),
            };
            self.absent.insert((store, ids.clone()), missing);
            if missing > 0 {
                gaps.push(OutboxEntry::gap(store, ids, missing));
            }
            if missing > 0 && counted.is_none() {
                let reason = format!("outbox_gap:{}..{}", ids.start(), ids.end().saturating_add(1));
                self.trust.alarm.raise_outbox(reason, Some(missing));
                tracing::error!(
                    from = ids.start(),
                    until = ids.end(),
                    missing,
                    store = %store.0,
                    "audit outbox rows were deleted before they were sealed, so their changes have no audit entry: the \
                     likely cause is manual SQL in the policy database; find who wrote to it, and run `ledger-gateway \
                     audit verify`"
                );
            }
        }
        Ok(gaps)
    }

    pub(super) fn report_fault(&self, id: i64, fault: OutboxFault) {
        let reason = format!("outbox_fault:{fault}:{id}");
        self.trust.alarm.raise_outbox(reason, None);
        tracing::error!(id, %fault, "a row of `audit_outbox` is not what a change wrote: it is sealed, marked with \
                                     this fault; the likely cause is manual SQL in the policy database: find who wrote \
                                     to it");
    }
}
