//! Legal holds according to the sealed log: an attacker who can write only to the policy database cannot lift a hold
//! unnoticed (spec/70 rule 24).

use super::{
    AuditStore,
    anchors::newest_anchor,
    chain_rows::chain_row,
    outbox::readable,
    readable::{CHUNK_BYTES, count_within, readable_rows, row_sizes},
    sealed_outbox::admin_entry,
};
use crate::{
    IndexCheck, Store, StoreError,
    entity::{audit_outbox, entries},
    record::{HoldScope, Holds},
};
use gw_audit::{
    Action, AdminEntry, ChainId, CheckpointPublicKey, Content, Discontinuity, Kind, OutboxFault, Record, ResourceType,
    ShardId, StoredEntry, Stream,
};
use gw_types::LegalHoldId;
use sea_orm::{ColumnTrait, PaginatorTrait, QueryFilter, QueryOrder, QuerySelect};
use serde_json::Value;
use std::{
    collections::{BTreeMap, BTreeSet},
    time::Duration,
};
use uuid::Uuid;

/// Entries read per query.
const PAGE: u64 = 1000;
/// Limit of the comparison of the policy store's rows with their indexes.
const INDEX_CHECK: Duration = Duration::from_secs(10);

/// Legal holds from the table and from the log.
#[derive(Clone, Debug, Default)]
pub struct KnownHolds {
    /// The holds to respect: those in the table, and those that the log records as placed and not lifted.
    pub holds: Holds,
    /// Holds that the log records as placed and not lifted, and that the table lacks or has with another scope.
    pub changed: Vec<LegalHoldId>,
}

impl AuditStore {
    /// Returns the legal holds of the policy store's table, and those that the log records as placed and not lifted.
    ///
    /// An index or a trigger can hide a hold from every query, so both schemas are checked first. And the entries of
    /// the administrative chain are read one after the other: a missing entry may be the one that placed a hold.
    ///
    /// # Errors
    /// [`StoreError::SchemaChanged`] if one of the schemas is not as the migrations made it; [`StoreError::Row`] if an
    /// entry of the administrative chain is missing or changed, and no re-anchoring by one of `keys` covers it; any
    /// error of either database. Nothing may be removed then.
    pub async fn known_holds(
        &self,
        store: &Store,
        cluster: &str,
        keys: &[CheckpointPublicKey],
    ) -> Result<KnownHolds, StoreError> {
        refuse_changes(self.schema_differences().await?)?;
        refuse_changes(store.schema_differences().await?)?;
        if let IndexCheck::Faulty(faults) = store.check_indexes(INDEX_CHECK).await? {
            refuse_changes(faults)?;
        }
        // The order of the reads matters: the entry of a lift that the first table read reflects is in the outbox, or
        // was sealed since.
        let before = store.read().list_holds().await?;
        let waiting = store.hold_entries().await?;
        let mut sealed = self.hold_entries().await?;
        sealed.extend(self.walk_hold_entries(cluster, keys).await?);
        let after = store.read().list_holds().await?;
        let table: BTreeMap<_, _> = before.iter().chain(&after).map(|hold| (hold.id, hold.scope)).collect();
        let hold_entries = || {
            sealed
                .iter()
                .chain(&waiting)
                .filter_map(|entry| Some((id(entry)?, entry)))
        };
        let lifted: BTreeSet<_> = hold_entries()
            .filter(|(_, entry)| entry.action == Action::Revoke)
            .map(|(id, _)| id)
            .collect();
        let mut known_holds = KnownHolds {
            holds: table.iter().map(|(id, scope)| (*id, *scope)).collect(),
            ..Default::default()
        };
        for (id, entry) in hold_entries().filter(|(id, entry)| entry.action == Action::Create && !lifted.contains(id)) {
            let scopes = scopes(entry);
            // Also true for a hold that was placed and sealed after the first table read and lifted before the second.
            if table.get(&id).is_none_or(|scope| !scopes.contains(scope)) && !known_holds.changed.contains(&id) {
                known_holds.changed.push(id);
            }
            known_holds.holds.extend(scopes.into_iter().map(|scope| (id, scope)));
        }
        Ok(known_holds)
    }

    async fn hold_entries(&self) -> Result<Vec<AdminEntry>, StoreError> {
        use entries::Column as C;
        let rows = entries::Entity::find()
            .filter(C::Kind.eq(Kind::Admin.as_str()))
            .filter(C::ResourceType.eq(ResourceType::Audit.as_str()))
            .filter(C::Action.is_in([Action::Create.as_str(), Action::Revoke.as_str()]));
        // The walk over the chain finds an entry that cannot be read.
        let rows = self.readable(rows).await?;
        Ok(rows.into_iter().filter_map(admin_entry).filter(is_genuine).collect())
    }
}

impl AuditStore {
    /// Reads the administrative chain from its first entry to its end, and returns the entries about legal holds.
    async fn walk_hold_entries(
        &self,
        cluster: &str,
        keys: &[CheckpointPublicKey],
    ) -> Result<Vec<AdminEntry>, StoreError> {
        let chain = ChainId {
            stream: Stream::Admin,
            shard: ShardId(Uuid::nil()),
        };
        let row = match chain_row(&self.pools.reader, chain, false).await {
            Err(StoreError::NotFound(_)) => return Ok(Vec::new()),
            row => row?,
        };
        let notes = self.discontinuities().await?;
        let notes = notes.iter().filter(|(noted, _)| *noted == chain);
        let accepted: Vec<_> = notes
            .filter_map(|(_, note)| Discontinuity::open(note, cluster, keys).ok())
            .collect();
        let is_accepted = |seq: i64| {
            let seq = u64::try_from(seq).unwrap_or(u64::MAX);
            accepted.iter().any(|discontinuity| discontinuity.covers(seq))
        };
        let mut next = newest_anchor(&self.pools.reader, row.id)
            .await?
            .map_or(0, |anchor| anchor.size);
        let (mut changes, mut last) = (Vec::new(), None);
        loop {
            let select = entries::Entity::find()
                .filter(entries::Column::ChainId.eq(row.id))
                .filter(entries::Column::Seq.gte(next))
                .order_by_asc(entries::Column::Seq)
                .limit(PAGE);
            let sizes = row_sizes(&self.pools.reader, &select, PAGE).await?;
            let count = count_within::<entries::Entity>(&sizes, CHUNK_BYTES);
            let read = readable_rows(&self.pools.reader, select, u64::try_from(count).unwrap_or(PAGE)).await?;
            let page = read.rows;
            let Some(end) = page.last().map(|row| row.seq) else {
                break;
            };
            for row in page {
                if row.seq != next && !(is_accepted(next) && is_accepted(row.seq.saturating_sub(1))) {
                    return Err(self.missing_entry(next));
                }
                let seq = row.seq;
                next = seq.saturating_add(1);
                let entry = StoredEntry::new(row.bytes, row.openings).ok().filter(|entry| {
                    entry.header.chain == chain
                        && i64::try_from(entry.header.seq) == Ok(seq)
                        && last.is_none_or(|(before, hash)| before != seq - 1 || hash == entry.header.prev)
                });
                let Some(entry) = entry else {
                    last = None;
                    if is_accepted(seq) {
                        continue;
                    }
                    return Err(self.missing_entry(seq));
                };
                last = Some((seq, entry.hash));
                if let Ok(Content::Record(Record::Admin(entry))) = entry.content()
                    && entry.resource_type == ResourceType::Audit
                    && matches!(entry.action, Action::Create | Action::Revoke)
                    && is_genuine(&entry)
                {
                    changes.push(entry);
                }
            }
            next = next.max(end.saturating_add(1));
        }
        if next < row.size && !(is_accepted(next) && is_accepted(row.size - 1)) {
            return Err(self.missing_entry(next));
        }
        Ok(changes)
    }

    fn missing_entry(&self, seq: i64) -> StoreError {
        if self.watch.is_first_report_of(&format!("hold.{seq}")) {
            tracing::error!(
                seq,
                "an entry of the administrative chain is missing or changed: it may have placed a legal hold, so \
                 nothing is pruned or erased; run `ledger-gateway audit verify`, and restore the entry or re-anchor \
                 the chain"
            );
        }
        StoreError::Row {
            table: "entries",
            column: "seq",
            id: seq.to_string(),
        }
    }
}

/// Fails if there are any differences or faults.
fn refuse_changes(names: Vec<String>) -> Result<(), StoreError> {
    if names.is_empty() {
        Ok(())
    } else {
        Err(StoreError::SchemaChanged(names.join(", ")))
    }
}

impl Store {
    /// Returns the outbox entries about legal holds.
    async fn hold_entries(&self) -> Result<Vec<AdminEntry>, StoreError> {
        use audit_outbox::Column as C;
        let rows = audit_outbox::Entity::find()
            .filter(C::ResourceType.eq(ResourceType::Audit.as_str()))
            .filter(C::Action.is_in([Action::Create.as_str(), Action::Revoke.as_str()]));
        let store = self.outbox_mark().await?.store;
        let count = rows.clone().count(&self.inner.pools.reader).await?;
        let rows = readable(&self.inner.pools.reader, rows, count).await?;
        // A row that is not read may place a hold.
        if (rows.len() as u64) < count {
            return Err(StoreError::Row {
                table: "audit_outbox",
                column: "id",
                id: "*".to_owned(),
            });
        }
        let rows = rows.into_iter().map(|row| self.entry_from_row(store, row).entry);
        Ok(rows.filter(is_genuine).collect())
    }
}

/// Whether the entry is not suspected of forgery: a forged row must not lift a hold.
fn is_genuine(entry: &AdminEntry) -> bool {
    !matches!(
        entry.outbox_fault,
        Some(OutboxFault::Unauthenticated | OutboxFault::Replaced | OutboxFault::Missing)
    )
}

fn id(entry: &AdminEntry) -> Option<LegalHoldId> {
    hold_id(entry.resource_id.as_deref())
}

/// Returns the hold that an entry with this resource id is about.
pub(super) fn hold_id(resource: Option<&str>) -> Option<LegalHoldId> {
    resource?.parse().ok().map(LegalHoldId)
}

/// Returns the scopes of a placed hold; every stream if the entry no longer names one.
fn scopes(entry: &AdminEntry) -> Vec<HoldScope> {
    let value: Option<Value> = entry
        .new_value
        .as_deref()
        .and_then(|text| serde_json::from_str(text).ok());
    let text = |name: &str| value.as_ref().and_then(|value| value.get(name)).and_then(Value::as_str);
    if let Some(org) = text("held_org_id").and_then(|org| org.parse::<uuid::Uuid>().ok()) {
        return vec![HoldScope::Organization(org.into())];
    }
    match text("held_stream").and_then(|stream| stream.parse().ok()) {
        Some(stream) => vec![HoldScope::Stream(stream)],
        None => Stream::ALL.iter().copied().map(HoldScope::Stream).collect(),
    }
}
