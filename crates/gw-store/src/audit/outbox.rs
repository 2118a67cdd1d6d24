//! Audit entries of mutations on their way to the sealer (decision 46).
//!
//! Invariant: ids are given under the lock on the epoch row, so their order is the order of commits, and an entry
//! that was read is never followed by one with a lower id.

use crate::{Store, StoreError, entity::audit_outbox};
use gw_audit::AdminEntry;
use gw_types::Timestamp;
use sea_orm::{ColumnTrait, EntityTrait, QueryFilter, QueryOrder, QuerySelect};

/// An entry that waits to be sealed.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct OutboxEntry {
    /// The id under which it is listed, before and after it is sealed.
    pub id: i64,
    /// When the mutation took place.
    pub created_at: Timestamp,
    /// The entry.
    pub entry: AdminEntry,
}

impl Store {
    /// The oldest waiting entries with an id above `after`.
    pub async fn outbox(&self, after: i64, limit: u64) -> Result<Vec<OutboxEntry>, StoreError> {
        audit_outbox::Entity::find()
            .filter(audit_outbox::Column::Id.gt(after))
            .order_by_asc(audit_outbox::Column::Id)
            .limit(limit)
            .all(&self.inner.pools.reader)
            .await?
            .into_iter()
            .map(OutboxEntry::try_from)
            .collect()
    }

    /// Forgets entries that are sealed, up to an id.
    pub async fn forget_outbox(&self, up_to: i64) -> Result<(), StoreError> {
        audit_outbox::Entity::delete_many()
            .filter(audit_outbox::Column::Id.lte(up_to))
            .exec(&self.inner.pools.writer)
            .await?;
        Ok(())
    }
}

impl TryFrom<audit_outbox::Model> for OutboxEntry {
    type Error = StoreError;
    fn try_from(row: audit_outbox::Model) -> Result<Self, StoreError> {
        let bad = |column| StoreError::Row { table: "audit_outbox", column, id: row.id.to_string() };
        let entry = AdminEntry {
            action: row.action.parse().map_err(|_| bad("action"))?,
            actor_id: row.actor_id.map(Into::into),
            actor_external_id: Some(row.actor_external_id.into()),
            ip_address: match &row.ip_address {
                Some(text) => Some(text.parse().map_err(|_| bad("ip_address"))?),
                None => None,
            },
            correlation_id: row.correlation_id.map(Into::into),
            org_id: row.org_id.map(Into::into),
            resource_type: row.resource_type.parse().map_err(|_| bad("resource_type"))?,
            resource_id: row.resource_id,
            resource_name: row.resource_name,
            old_value: row.old_value,
            new_value: row.new_value,
            store_id: None,
            outbox_id: u64::try_from(row.id).ok(),
            outbox_fault: None,
        };
        Ok(Self { id: row.id, created_at: Timestamp::from_micros(row.created_at), entry })
    }
}
