//! Audit entries of mutations on their way to the sealer (decision 46).
//!
//! Invariant: ids are given under the lock on the epoch row, without gaps and in the order of commits. A row stays a
//! while after it was sealed, so that an audit store that lost it gets it again: with the same bytes, as the salts of
//! its personal values come from the row.

use crate::{
    Store, StoreError,
    dialect::{self, Engine},
    entity::audit_outbox,
};
use gw_audit::{Action, AdminEntry, OutboxFault, ResourceType, StoreId};
use gw_types::{Entropy, Timestamp};
use hmac::{Hmac, KeyInit as _, Mac as _};
use sea_orm::{ColumnTrait, ConnectionTrait, EntityTrait, QueryFilter, QueryOrder, QuerySelect, sea_query::Expr};
use sha2::Sha256;
use std::sync::atomic::{AtomicU64, Ordering};

/// How far the outbox of a policy store got.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct OutboxMark {
    /// The policy store.
    pub store: StoreId,
    /// The last id given to a row, or 0.
    pub last_id: i64,
}

/// A row of the outbox.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct OutboxEntry {
    /// The id under which it is listed, before and after it is sealed.
    pub id: i64,
    /// When the mutation took place.
    pub created_at: Timestamp,
    /// The entry. Its `outbox_fault` says whether the row is as it was written.
    pub entry: AdminEntry,
    /// Salts of its personal values.
    pub salts: OutboxSalts,
}

/// Salts that come from a row's seed: the same ones each time the row becomes an entry.
#[derive(Debug)]
pub struct OutboxSalts {
    seed: Vec<u8>,
    drawn: AtomicU64,
}

impl Clone for OutboxSalts {
    fn clone(&self) -> Self {
        Self { seed: self.seed.clone(), drawn: AtomicU64::new(0) }
    }
}

impl PartialEq for OutboxSalts {
    fn eq(&self, other: &Self) -> bool {
        self.seed == other.seed
    }
}

impl Eq for OutboxSalts {}

impl Entropy for OutboxSalts {
    fn fill(&self, bytes: &mut [u8]) {
        for block in bytes.chunks_mut(32) {
            let number = self.drawn.fetch_add(1, Ordering::Relaxed);
            let Ok(mut mac) = Hmac::<Sha256>::new_from_slice(&self.seed) else { return };
            mac.update(&number.to_le_bytes());
            for (to, from) in block.iter_mut().zip(mac.finalize().into_bytes()) {
                *to = from;
            }
        }
    }
}

/// Takes the next ids of the outbox; the caller holds the lock on the epoch row.
pub(crate) async fn take_ids(tx: &impl ConnectionTrait, count: i64) -> Result<OutboxMark, StoreError> {
    let sql =
        format!("UPDATE policy_store SET last_outbox_id = last_outbox_id + {count} RETURNING store_id, last_outbox_id");
    mark(tx, sql).await
}

async fn mark(conn: &impl ConnectionTrait, sql: impl Into<String>) -> Result<OutboxMark, StoreError> {
    let row = conn.query_one_raw(Engine::of(conn).statement(sql)).await?.ok_or(StoreError::Schema("missing"))?;
    Ok(OutboxMark { store: StoreId(row.try_get("", "store_id")?), last_id: row.try_get("", "last_outbox_id")? })
}

impl Store {
    /// Which policy store this is, and the last id its outbox gave out.
    pub async fn outbox_mark(&self) -> Result<OutboxMark, StoreError> {
        mark(&self.inner.pools.reader, "SELECT store_id, last_outbox_id FROM policy_store").await
    }

    /// Makes the next rows get ids above `last`: entries with higher ids than this store knows were sealed, as it was
    /// restored from an older backup.
    pub async fn raise_outbox_ids(&self, last: i64) -> Result<(), StoreError> {
        let tx = self.inner.pools.begin_write().await?;
        dialect::lock_epoch(&tx).await?;
        let sql = format!("UPDATE policy_store SET last_outbox_id = {last} WHERE last_outbox_id < {last}");
        tx.execute_unprepared(&sql).await?;
        tx.commit().await
    }

    /// The oldest waiting rows with an id above `after`. A row that cannot be read is among them, as an entry that says so.
    pub async fn outbox(&self, after: i64, limit: u64) -> Result<Vec<OutboxEntry>, StoreError> {
        let waiting = audit_outbox::Entity::find().filter(audit_outbox::Column::SealedAt.is_null());
        self.outbox_rows(waiting.filter(audit_outbox::Column::Id.gt(after)).limit(limit)).await
    }

    /// The oldest rows that are sealed and still kept, with an id above `after`.
    pub async fn kept_outbox(&self, after: i64, limit: u64) -> Result<Vec<OutboxEntry>, StoreError> {
        let kept = audit_outbox::Entity::find().filter(audit_outbox::Column::SealedAt.is_not_null());
        self.outbox_rows(kept.filter(audit_outbox::Column::Id.gt(after)).limit(limit)).await
    }

    async fn outbox_rows(&self, rows: sea_orm::Select<audit_outbox::Entity>) -> Result<Vec<OutboxEntry>, StoreError> {
        let store = self.outbox_mark().await?.store;
        let (reader, rows) = (&self.inner.pools.reader, rows.order_by_asc(audit_outbox::Column::Id));
        // A value of the wrong type fails the whole query; then the one row it is in is told apart.
        match rows.clone().all(reader).await {
            Ok(rows) => return Ok(rows.into_iter().map(|row| self.outbox_entry(store, row)).collect()),
            Err(cause) if !dialect::is_malformed(&cause) => return Err(cause.into()),
            Err(_) => {}
        }
        let ids: Vec<i64> = rows.select_only().column(audit_outbox::Column::Id).into_tuple().all(reader).await?;
        let mut entries = Vec::with_capacity(ids.len());
        for id in ids {
            match audit_outbox::Entity::find_by_id(id).one(reader).await {
                Ok(Some(row)) => entries.push(self.outbox_entry(store, row)),
                Ok(None) => {}
                // A database that is busy or away says nothing about the row.
                Err(cause) if !dialect::is_malformed(&cause) => return Err(cause.into()),
                Err(cause) => {
                    tracing::error!(id, error = %cause, "an audit outbox row cannot be read: it is sealed as unauthenticated");
                    entries.push(unreadable(store, id));
                }
            }
        }
        Ok(entries)
    }

    pub(super) fn outbox_entry(&self, store: StoreId, row: audit_outbox::Model) -> OutboxEntry {
        let key = self.inner.config.outbox.key.as_ref();
        let authentic = key.is_none_or(|key| key.authenticates(store, &row));
        let id = row.id;
        match read(store, row) {
            Some(mut read) => {
                read.entry.outbox_fault = (!authentic).then_some(OutboxFault::Unauthenticated);
                read
            }
            None => unreadable(store, id),
        }
    }

    /// Notes that the audit store holds the entries of these rows.
    pub async fn mark_outbox_sealed(&self, ids: &[i64]) -> Result<(), StoreError> {
        self.set_sealed(ids, Some(self.inner.now())).await
    }

    /// Lets rows wait again: the audit store lost their entries.
    pub async fn reopen_outbox(&self, ids: &[i64]) -> Result<(), StoreError> {
        self.set_sealed(ids, None).await
    }

    async fn set_sealed(&self, ids: &[i64], at: Option<Timestamp>) -> Result<(), StoreError> {
        for ids in ids.chunks(10_000) {
            audit_outbox::Entity::update_many()
                .col_expr(audit_outbox::Column::SealedAt, Expr::value(at.map(Timestamp::micros)))
                .filter(audit_outbox::Column::Id.is_in(ids.iter().copied()))
                .exec(&self.inner.pools.writer)
                .await?;
        }
        Ok(())
    }

    /// Deletes rows that were sealed before a moment; how many there were.
    pub async fn forget_outbox(&self, sealed_before: Timestamp) -> Result<u64, StoreError> {
        let old = audit_outbox::Column::SealedAt.lt(sealed_before.micros());
        Ok(audit_outbox::Entity::delete_many().filter(old).exec(&self.inner.pools.writer).await?.rows_affected)
    }
}

fn read(store: StoreId, row: audit_outbox::Model) -> Option<OutboxEntry> {
    let ip_address = match &row.ip_address {
        Some(text) => Some(text.parse().ok()?),
        None => None,
    };
    let entry = AdminEntry {
        action: row.action.parse().ok()?,
        actor_id: row.actor_id.map(Into::into),
        actor_external_id: Some(row.actor_external_id.into()),
        ip_address,
        correlation_id: row.correlation_id.map(Into::into),
        org_id: row.org_id.map(Into::into),
        resource_type: row.resource_type.parse().ok()?,
        resource_id: row.resource_id,
        resource_name: row.resource_name,
        old_value: row.old_value,
        new_value: row.new_value,
        store_id: Some(store),
        outbox_id: Some(u64::try_from(row.id).ok()?),
        outbox_fault: None,
    };
    let salts = OutboxSalts { seed: row.salt_seed.unwrap_or_default(), drawn: AtomicU64::new(0) };
    Some(OutboxEntry { id: row.id, created_at: Timestamp::from_micros(row.created_at), entry, salts })
}

/// Stands for a row that is there and cannot be read: what it said is lost, that it was there is not.
fn unreadable(store: StoreId, id: i64) -> OutboxEntry {
    let entry = AdminEntry {
        store_id: Some(store),
        outbox_id: u64::try_from(id).ok(),
        outbox_fault: Some(OutboxFault::Unauthenticated),
        ..AdminEntry::new(Action::Update, ResourceType::Audit)
    };
    let salts = OutboxSalts { seed: Vec::new(), drawn: AtomicU64::new(0) };
    OutboxEntry { id, created_at: Timestamp::from_micros(0), entry, salts }
}
