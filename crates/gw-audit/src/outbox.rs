//! Rules for sealing outbox rows into the administrative chain, without a database (spec/70 rules 13 and 15).
//!
//! A row is identified by its policy store and its id. The ids of a store have no gaps. Either database may be restored
//! from a backup, or changed by an insider. Therefore no decision depends on the highest id alone: each row is compared
//! with the entries sealed under its id.

use crate::StoreId;
use crate::finding::FindingKind;
use crate::record::{Action, AdminEntry, OutboxFault, ResourceType, SecurityEvent, SecurityKind};
use core::ops::RangeInclusive;
use gw_types::Timestamp;

/// Whether a waiting row has to be sealed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum RowState {
    /// No entry was sealed under the row's id: seal the row.
    New,
    /// The row is sealed already; the process crashed before it removed the row.
    Sealed,
    /// Another entry was sealed under the row's id: seal the row, with [`OutboxFault::IdReused`].
    IdReused,
}

/// Compares a waiting row and its time with the entries sealed under its id.
pub fn row_state<'a>(
    row: (&AdminEntry, Timestamp),
    sealed: impl IntoIterator<Item = (&'a AdminEntry, Timestamp)>,
) -> RowState {
    let mut state = RowState::New;
    for entry in sealed {
        if is_same(row, entry) {
            return RowState::Sealed;
        }
        state = RowState::IdReused;
    }
    state
}

/// Whether a sealed entry was made of this row. The comparison ignores what may differ legitimately: a fault is
/// determined when the row is sealed; entries sealed before origins were recorded have no origin; personal values may
/// have been erased since, for which verification requires an erasure record.
fn is_same((row, row_time): (&AdminEntry, Timestamp), (sealed, sealed_time): (&AdminEntry, Timestamp)) -> bool {
    let without_origin = |entry: &AdminEntry| AdminEntry {
        store_id: None,
        outbox_id: None,
        outbox_fault: None,
        ..entry.clone()
    };
    let expected = AdminEntry {
        actor_external_id: row
            .actor_external_id
            .clone()
            .filter(|_| sealed.actor_external_id.is_some()),
        ip_address: row.ip_address.filter(|_| sealed.ip_address.is_some()),
        resource_name: row.resource_name.clone().filter(|_| sealed.resource_name.is_some()),
        old_value: row.old_value.clone().filter(|_| sealed.old_value.is_some()),
        new_value: row.new_value.clone().filter(|_| sealed.new_value.is_some()),
        ..without_origin(row)
    };
    let same_origin = sealed.store_id.is_none() || (sealed.store_id, sealed.outbox_id) == (row.store_id, row.outbox_id);
    // The time of an entry never decreases within its chain, so it may be later than the time of the row.
    same_origin && sealed_time >= row_time && expected == without_origin(sealed)
}

/// The fault to seal a row with: a fault found in the row itself comes first, then a reused id.
pub const fn fault(fault: Option<OutboxFault>, state: RowState) -> Option<OutboxFault> {
    match (fault, state) {
        (Some(fault), _) => Some(fault),
        (None, RowState::IdReused) => Some(OutboxFault::IdReused),
        (None, RowState::New | RowState::Sealed) => None,
    }
}

/// The ids above the last sealed one that have no waiting row, in ascending order. `last` is the highest id known to
/// have been issued, or 0. The caller must compare them with the sealed entries to learn whether they are missing.
pub fn absent_ids(sealed: i64, waiting: &[i64], last: i64) -> Vec<RangeInclusive<i64>> {
    let mut next = sealed.saturating_add(1);
    let mut absent = Vec::new();
    for id in waiting.iter().copied().filter(|id| *id > sealed) {
        if id > next {
            absent.push(next..=id - 1);
        }
        next = next.max(id.saturating_add(1));
    }
    if last >= next {
        absent.push(next..=last);
    }
    absent
}

/// The entry that records missing rows, under the last of their ids. Every verification reports it until the chain is
/// re-anchored.
pub fn gap_entry(store: StoreId, ids: &RangeInclusive<u64>, missing: u64) -> AdminEntry {
    AdminEntry {
        new_value: Some(format!(
            r#"{{"first":{},"last":{},"missing":{missing}}}"#,
            ids.start(),
            ids.end()
        )),
        store_id: Some(store),
        outbox_id: Some(*ids.end()),
        outbox_fault: Some(OutboxFault::Missing),
        ..AdminEntry::new(Action::Update, ResourceType::Audit)
    }
}

/// Whether an entry only records missing rows, as [`gap_entry`] makes it.
pub fn is_gap_entry(entry: &AdminEntry) -> bool {
    let (Some(store), Some(id)) = (entry.store_id, entry.outbox_id) else {
        return false;
    };
    AdminEntry {
        new_value: entry.new_value.clone(),
        ..gap_entry(store, &(id..=id), 1)
    } == *entry
}

/// The entry for an outbox row whose number is not a valid id. The gateway did not write such a row, so the entry holds
/// none of the row's content.
pub fn invalid_id_entry(store: StoreId) -> AdminEntry {
    AdminEntry {
        store_id: Some(store),
        outbox_fault: Some(OutboxFault::Unauthenticated),
        ..AdminEntry::new(Action::Update, ResourceType::Audit)
    }
}

/// Whether an entry only records a row without a valid id, as [`invalid_id_entry`] makes it.
pub fn is_invalid_id_entry(entry: &AdminEntry) -> bool {
    entry.store_id.is_some_and(|store| *entry == invalid_id_entry(store))
}

/// Prefix of the reason of a security event about a row that was changed or removed on its way into the database.
pub const ROW_ALARM: &str = "outbox_row:";
/// Prefix of the reason of a security event about an id counter below ids already issued, or about another policy
/// store.
pub const IDS_ALARM: &str = "outbox_ids:";
/// Prefix of the reason of a security event about a policy store that issued fewer ids than were sealed: it was
/// restored from a backup, or its counter was lowered.
pub const REWOUND_ALARM: &str = "policy_store_rewound:";

/// Prefix of the reason of a security event about an entry of the administrative chain that no mutation wrote; the
/// entry's number follows.
pub const FOREIGN_ALARM: &str = "foreign_entry:";

/// The number of the entry that no mutation wrote, if the event reports one.
pub fn foreign_entry(event: &SecurityEvent) -> Option<u64> {
    let reason = event
        .reason
        .as_deref()
        .filter(|_| event.kind == SecurityKind::TamperDetected)?;
    reason.strip_prefix(FOREIGN_ALARM)?.parse().ok()
}

/// Prefix of the reason of a security event about a journal directory that lacks records whose numbers were noted
/// outside it: it was put back to an older state, or the disk lost records. Stream and range follow.
pub const JOURNAL_REWOUND_ALARM: &str = "journal_rewound:";

/// Prefix of the reason of a security event about a journal directory that does not know the newest start of its shard:
/// it is a copy, or was put back to an older state. The shard follows.
pub const JOURNAL_COPIED_ALARM: &str = "journal_copied:";

/// The kind of finding that a security event reports, if it is an alarm. Verification reports such an event until the
/// chain is re-anchored.
pub fn alarm_kind(event: &SecurityEvent) -> Option<FindingKind> {
    const KINDS: [(&str, FindingKind); 5] = [
        (ROW_ALARM, FindingKind::OutboxFault),
        (IDS_ALARM, FindingKind::OutboxFault),
        (REWOUND_ALARM, FindingKind::OutboxFault),
        (JOURNAL_REWOUND_ALARM, FindingKind::JournalLost),
        (JOURNAL_COPIED_ALARM, FindingKind::Fork),
    ];
    let reason = event
        .reason
        .as_deref()
        .filter(|_| event.kind == SecurityKind::TamperDetected)?;
    KINDS
        .iter()
        .find(|(prefix, _)| reason.starts_with(prefix))
        .map(|(_, kind)| *kind)
}

#[cfg(test)]
mod tests {
    use super::*;
    use uuid::Uuid;

    fn entry(store: u128, id: u64, value: &str) -> AdminEntry {
        AdminEntry {
            new_value: Some(value.to_owned()),
            store_id: Some(StoreId(Uuid::from_u128(store))),
            outbox_id: Some(id),
            ..AdminEntry::new(Action::Update, ResourceType::User)
        }
    }

    #[test]
    fn rl3_a_row_is_compared_with_the_entries_sealed_under_its_id() {
        let (at, later) = (Timestamp::from_secs(5), Timestamp::from_secs(6));
        let row = entry(1, 7, "a");
        let state = |sealed: &[(AdminEntry, Timestamp)]| {
            row_state((&row, at), sealed.iter().map(|(entry, time)| (entry, *time)))
        };
        assert_eq!(state(&[]), RowState::New);
        assert_eq!(state(&[(row.clone(), later)]), RowState::Sealed);
        let forged = AdminEntry {
            outbox_fault: Some(OutboxFault::Unauthenticated),
            ..row.clone()
        };
        assert_eq!(state(&[(forged, at)]), RowState::Sealed);
        let without_origin = AdminEntry {
            store_id: None,
            outbox_id: None,
            ..row.clone()
        };
        assert_eq!(
            state(&[(without_origin, at)]),
            RowState::Sealed,
            "sealed before origins were recorded"
        );
        assert_eq!(state(&[(entry(1, 7, "b"), at)]), RowState::IdReused);
        let erased = AdminEntry {
            new_value: None,
            ..row.clone()
        };
        assert_eq!(
            state(&[(erased.clone(), at)]),
            RowState::Sealed,
            "the personal value was erased"
        );
        let another_action = AdminEntry {
            action: Action::Delete,
            ..erased
        };
        assert_eq!(state(&[(another_action, at)]), RowState::IdReused);
        assert_eq!(
            state(&[(row.clone(), Timestamp::from_secs(4))]),
            RowState::IdReused,
            "sealed before the row was written"
        );
        assert_eq!(
            state(&[(entry(1, 7, "b"), at), (row.clone(), at)]),
            RowState::Sealed,
            "after a crash"
        );
        assert_eq!(
            state(&[(entry(2, 7, "a"), at)]),
            RowState::IdReused,
            "a row of another store"
        );
    }

    #[test]
    fn rl9_ids_without_a_row_are_reported_between_and_behind_the_waiting_rows() {
        assert_eq!(absent_ids(4, &[5, 6], 6), []);
        assert_eq!(absent_ids(4, &[6, 9], 11), [5..=5, 7..=8, 10..=11]);
        assert_eq!(absent_ids(4, &[], 5), [5..=5]);
        assert_eq!(absent_ids(4, &[2, 3], 4), [], "rows of a restored store are not a gap");
        assert_eq!(absent_ids(4, &[2, 5], 0), []);
        assert_eq!(absent_ids(0, &[1, 1, 2], 2), []);
    }
}
