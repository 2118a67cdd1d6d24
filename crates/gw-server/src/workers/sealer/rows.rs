//! Rows of the outbox beside the entries that are sealed for them.

use gw_audit::{
    Content, Record, StoreId, StoredEntry,
    outbox::{RowState, is_gap_entry, is_invalid_id_entry, row_state},
};
use gw_store::audit::{AuditStore, OutboxEntry, OutboxMark, SealedAdminEntry, SealedRow};
use std::collections::HashMap;

/// Whether an entry matches one of the rows, or needs none.
pub(super) fn is_accounted_for(
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
    let former = former.iter().find(|former| entry.store_id == Some(former.store));
    if entry.store_id != Some(mark.store) && former.is_none() {
        return false;
    }
    // These entries record that a row is missing or forged. They have no row, and every verification reports them.
    if is_gap_entry(&entry) || is_invalid_id_entry(&entry) {
        return true;
    }
    let Some(id) = entry.outbox_id.and_then(|id| i64::try_from(id).ok()) else {
        return false;
    };
    let Some(row) = rows.get(&(entry.store_id, id)) else {
        // The rows of a former policy store cannot be read; its replacement was reported.
        return former.is_some_and(|former| id <= former.last_id);
    };
    row_state((&row.entry, row.created_at), [(&entry, stored.header.time)]) == RowState::Sealed
}

/// The policy store that wrote a row, and the row's id.
pub(super) type RowKey = (Option<StoreId>, i64);

pub(super) const fn key_of(row: &OutboxEntry) -> RowKey {
    (row.entry.store_id, row.id)
}

/// The issued ids among the waiting rows of a policy store. A forged row with an id that was never issued does not
/// count, because it does not imply that there were rows before it.
pub(super) fn issued_ids(waiting: &[OutboxEntry], store: StoreId, last: i64) -> Vec<i64> {
    let of_store = waiting
        .iter()
        .filter(|row| row.entry.store_id == Some(store) && row.id > 0);
    of_store
        .filter(|row| row.id <= last || row.entry.outbox_fault.is_none())
        .map(|row| row.id)
        .collect()
}

/// Sealed entries of mutations by the key of their outbox row.
pub(super) type SealedByRow = HashMap<RowKey, Vec<SealedAdminEntry>>;

/// The sealed entries of these rows, among the first `size` entries of the chain.
pub(super) async fn sealed_by_row(audit: &AuditStore, rows: &[OutboxEntry], size: u64) -> anyhow::Result<SealedByRow> {
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

/// Whether a row is sealed.
pub(super) fn state_of(row: &OutboxEntry, sealed: &SealedByRow) -> RowState {
    let entries = sealed.get(&key_of(row)).map(Vec::as_slice).unwrap_or_default();
    row_state(
        (&row.entry, row.created_at),
        entries.iter().map(|sealed| (&sealed.entry, sealed.time)),
    )
}
