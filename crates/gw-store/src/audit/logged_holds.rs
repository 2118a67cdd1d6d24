//! Legal holds as the sealed log knows them: whoever writes to the policy database alone lifts none in silence (spec/70
//! rule 24).

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

/// Holds of both places.
#[derive(Clone, Debug, Default)]
pub struct KnownHolds {
    /// What must be kept: what the table says, and what the log says was placed and not lifted.
    pub holds: Holds,
    /// Holds that the log says were placed and not lifted, and that the table does not have, or not so.
    pub changed: Vec<LegalHoldId>,
}

impl AuditStore {
    /// The legal holds of the policy store's table, and those that the log says were placed and not lifted.
    ///
    /// # Errors
    /// Either database's; nothing may be removed then.
    pub async fn known_holds(&self, store: &Store) -> Result<KnownHolds, StoreError> {
        // In this order: a lift that is in the table is in the outbox, or sealed since.
        let before = store.read().list_holds().await?;
        let waiting = store.hold_entries().await?;
        let sealed = self.hold_entries().await?;
        let after = store.read().list_holds().await?;
        let table: BTreeMap<_, _> = before.iter().chain(&after).map(|hold| (hold.id, hold.scope)).collect();
        let said = || {
            sealed
                .iter()
                .chain(&waiting)
                .filter_map(|entry| Some((id(entry)?, entry)))
        };
        let lifted: BTreeSet<_> = said()
            .filter(|(_, entry)| entry.action == Action::Revoke)
            .map(|(id, _)| id)
            .collect();
        let mut known = KnownHolds {
            holds: table.iter().map(|(id, scope)| (*id, *scope)).collect(),
            ..Default::default()
        };
        for (id, entry) in said().filter(|(id, entry)| entry.action == Action::Create && !lifted.contains(id)) {
            let scopes = scopes(entry);
            // Placed and sealed since the table was read, and lifted before it was read again.
            if table.get(&id).is_none_or(|scope| !scopes.contains(scope)) && !known.changed.contains(&id) {
                known.changed.push(id);
            }
            known.holds.extend(scopes.into_iter().map(|scope| (id, scope)));
        }
        Ok(known)
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
    /// What the outbox still has of legal holds.
    async fn hold_entries(&self) -> Result<Vec<AdminEntry>, StoreError> {
        use audit_outbox::Column as C;
        let rows = audit_outbox::Entity::find()
            .filter(C::ResourceType.eq(ResourceType::Audit.as_str()))
            .filter(C::Action.is_in([Action::Create.as_str(), Action::Revoke.as_str()]));
        let store = self.outbox_mark().await?.store;
        let rows = readable(&self.inner.pools.reader, rows).await?;
        let rows = rows.into_iter().map(|row| self.found_entry(store, row).entry);
        Ok(rows.filter(is_genuine).collect())
    }
}

/// Nobody's forged row lifts a hold.
fn is_genuine(entry: &AdminEntry) -> bool {
    !matches!(
        entry.outbox_fault,
        Some(OutboxFault::Unauthenticated | OutboxFault::Replaced | OutboxFault::Missing)
    )
}

fn id(entry: &AdminEntry) -> Option<LegalHoldId> {
    placed(entry.resource_id.as_deref())
}

/// The hold that an entry with this resource is about.
pub(super) fn placed(resource: Option<&str>) -> Option<LegalHoldId> {
    resource?.parse().ok().map(LegalHoldId)
}

/// What a placed hold keeps; everything where the entry does not say it any more.
fn scopes(entry: &AdminEntry) -> Vec<HoldScope> {
    let said: Option<Value> = entry
        .new_value
        .as_deref()
        .and_then(|text| serde_json::from_str(text).ok());
    let text = |name: &str| said.as_ref().and_then(|said| said.get(name)).and_then(Value::as_str);
    if let Some(org) = text("held_org_id").and_then(|org| org.parse::<uuid::Uuid>().ok()) {
        return vec![HoldScope::Organization(org.into())];
    }
    match text("held_stream").and_then(|stream| stream.parse().ok()) {
        Some(stream) => vec![HoldScope::Stream(stream)],
        None => Stream::ALL.iter().copied().map(HoldScope::Stream).collect(),
    }
}
