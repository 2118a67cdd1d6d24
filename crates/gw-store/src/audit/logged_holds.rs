//! Legal holds according to the sealed log: an attacker who can write only to the policy database cannot lift a hold
//! unnoticed (spec/70 rule 24).

use super::{AuditStore, outbox::readable, sealed_outbox::admin_entry};
use crate::{
    Store, StoreError,
    entity::{audit_outbox, entries},
    record::{HoldScope, Holds},
};
use gw_audit::{Action, AdminEntry, Kind, OutboxFault, ResourceType, Stream};
use gw_types::LegalHoldId;
use sea_orm::{ColumnTrait, EntityTrait, QueryFilter};
use serde_json::Value;
use std::collections::{BTreeMap, BTreeSet};

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
    /// # Errors
    /// If either database fails; nothing may be removed then.
    pub async fn known_holds(&self, store: &Store) -> Result<KnownHolds, StoreError> {
        // The order of the reads matters: the entry of a lift that the first table read reflects is in the outbox, or
        // was sealed since.
        let before = store.read().list_holds().await?;
        let waiting = store.hold_entries().await?;
        let sealed = self.hold_entries().await?;
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
            .filter(C::Action.is_in([Action::Create.as_str(), Action::Revoke.as_str()]))
            .all(&self.pools.reader)
            .await?;
        Ok(rows.into_iter().filter_map(admin_entry).filter(is_genuine).collect())
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
        let rows = readable(&self.inner.pools.reader, rows).await?;
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
