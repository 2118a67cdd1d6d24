//! Audit entries of mutations on their way to the sealer (decision 46).
//!
//! Invariant: ids are given under the lock on the epoch row, without gaps and in the order of commits. A row stays a
//! while after it was sealed, so that an audit store that lost it gets it again: with the same bytes, as the salts of
//! its personal values come from the row.

use super::outbox_key;
use crate::{
    OutboxGuard, Store, StoreError,
    dialect::{self, Engine, Transaction},
    entity::audit_outbox,
};
use gw_audit::{
    AdminEntry, OutboxFault, StoreId,
    outbox::{gap_entry, nobodys_entry},
};
use gw_types::{Entropy, Timestamp};
use hmac::{Hmac, KeyInit as _, Mac as _};
use sea_orm::{ColumnTrait, ConnectionTrait, EntityTrait, QueryFilter, QueryOrder, QuerySelect, sea_query::Expr};
use sha2::Sha256;
use std::{
    collections::{BTreeMap, BTreeSet},
    ops::RangeInclusive,
    sync::{
        Mutex, MutexGuard, PoisonError,
        atomic::{AtomicU64, Ordering},
    },
};

/// How far the outbox of a policy store got.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct OutboxMark {
    /// The policy store.
    pub store: StoreId,
    /// The last id given to a row, or 0.
    pub last_id: i64,
}

/// More ids than are ever given out: a counter above it is nobody's.
const MOST_IDS: i64 = 1 << 53;

impl OutboxMark {
    /// The last id given out, as far as the number can be one.
    pub const fn given(&self) -> i64 {
        if self.last_id < MOST_IDS { self.last_id } else { 0 }
    }
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
        Self {
            seed: self.seed.clone(),
            drawn: AtomicU64::new(0),
        }
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
            let Ok(mut mac) = Hmac::<Sha256>::new_from_slice(&self.seed) else {
                return;
            };
            mac.update(&number.to_le_bytes());
            for (to, from) in block.iter_mut().zip(mac.finalize().into_bytes()) {
                *to = from;
            }
        }
    }
}

/// What was found wrong with rows on their way into the database. The mutation's caller was told 503.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum OutboxAlarm {
    /// Within the transaction the rows from this id on were not what was written; it was undone.
    Altered(i64),
    /// After the commit the rows from this id on were not what was written. The mutation stands.
    Lost(i64),
    /// A row stands there that this process wrote for a mutation that was undone: the change it tells of never was.
    Undone(i64),
    /// The counter of ids stood at `stored`, and ids up to `known` had been given out; new ones go on above.
    Lowered {
        /// What the database said.
        stored: i64,
        /// The highest id known.
        known: i64,
    },
}

/// Alarms that nobody has taken yet. Each is raised once, however often its cause refuses a mutation.
#[derive(Debug, Default)]
pub(crate) struct OutboxAlarms(Mutex<(BTreeSet<OutboxAlarm>, Vec<OutboxAlarm>)>);

/// Different alarms remembered; more of them tell nothing more.
const MOST_ALARMS: usize = 256;

impl OutboxAlarms {
    pub(crate) fn raise(&self, alarm: OutboxAlarm) {
        let mut alarms = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        let (raised, waiting) = &mut *alarms;
        if raised.len() >= MOST_ALARMS || !raised.insert(alarm) {
            return;
        }
        waiting.push(alarm);
        match alarm {
            OutboxAlarm::Altered(id) => tracing::error!(
                id,
                "an audit outbox row is changed on its way into the policy database: its mutation was refused, and others \
                 will be; look for triggers and rules on `audit_outbox` and `policy_store`"
            ),
            OutboxAlarm::Lost(id) => tracing::error!(
                id,
                "the audit outbox row of a committed mutation was changed or removed: the mutation stands without its entry; \
                 look for triggers on `audit_outbox` and for who wrote to the policy database"
            ),
            OutboxAlarm::Undone(id) => tracing::error!(
                id,
                "an audit outbox row tells of a mutation that was undone: somebody copied it on its way and put it there; it is \
                 no change that took place; look for triggers on `audit_outbox` and for who wrote to the policy database"
            ),
            OutboxAlarm::Lowered { stored, known } => tracing::error!(
                store.last_id = stored,
                known.last_id = known,
                "the counter of the audit outbox stands below ids that were given out: somebody changed `policy_store` or put \
                 an older database in its place; ids go on above"
            ),
        }
    }
}

/// Codes of the rows that this process committed and has not seen sealed yet: another instance may seal them, and takes any
/// row with a genuine code.
#[derive(Debug, Default)]
pub(crate) struct UnsealedRows(Mutex<BTreeMap<i64, [u8; 32]>>);

/// Rows looked after at most; more wait only while nothing is sealed at all.
const MOST_UNSEALED: usize = 4096;

impl UnsealedRows {
    pub(crate) fn add(&self, codes: &[(i64, [u8; 32])]) {
        let mut rows = self.rows();
        rows.extend(codes.iter().copied());
        while rows.len() > MOST_UNSEALED {
            rows.pop_first();
        }
    }

    fn rows(&self) -> MutexGuard<'_, BTreeMap<i64, [u8; 32]>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// Takes the next ids of the outbox; the caller holds the lock on the epoch row. They lie above every id that is known to
/// have been given out, whatever the counter says, and where no row stands.
pub(crate) async fn take_ids(
    tx: &Transaction,
    count: i64,
    guard: &OutboxGuard,
    alarms: &OutboxAlarms,
) -> Result<OutboxMark, StoreError> {
    let stored = mark(tx, "SELECT store_id, last_outbox_id FROM policy_store").await?;
    let known = guard
        .witness
        .as_ref()
        .map_or(0, |witness| witness.last_id(stored.store));
    let counted = stored.given();
    let mut last = counted.max(known);
    if stored.last_id != counted || taken(tx, last, count).await?.is_some() {
        last = last.max(highest_authentic(tx, last, stored.store, guard).await?);
        while let Some(id) = taken(tx, last, count).await? {
            last = id;
        }
    }
    if last != stored.last_id {
        alarms.raise(OutboxAlarm::Lowered {
            stored: stored.last_id,
            known: last,
        });
    }
    let end = || StoreError::Row {
        table: "policy_store",
        column: "last_outbox_id",
        id: last.to_string(),
    };
    let mark = OutboxMark {
        store: stored.store,
        last_id: last.checked_add(count).ok_or_else(end)?,
    };
    tx.execute_unprepared(&format!("UPDATE policy_store SET last_outbox_id = {}", mark.last_id))
        .await?;
    Ok(mark)
}

/// The highest of the next `count` ids that a row stands under already.
async fn taken(tx: &Transaction, last: i64, count: i64) -> Result<Option<i64>, StoreError> {
    let next = audit_outbox::Column::Id.between(last.saturating_add(1), last.saturating_add(count));
    let ids = audit_outbox::Entity::find()
        .select_only()
        .column(audit_outbox::Column::Id)
        .filter(next);
    Ok(ids
        .order_by_desc(audit_outbox::Column::Id)
        .limit(1)
        .into_tuple()
        .one(tx)
        .await?)
}

/// The highest id above `last` of a row that a mutation wrote; rows that somebody else made do not count.
async fn highest_authentic(
    tx: &Transaction,
    last: i64,
    store: StoreId,
    guard: &OutboxGuard,
) -> Result<i64, StoreError> {
    let above = audit_outbox::Entity::find().filter(audit_outbox::Column::Id.gt(last));
    let ids = above
        .select_only()
        .column(audit_outbox::Column::Id)
        .order_by_desc(audit_outbox::Column::Id);
    let ids: Vec<i64> = ids.into_tuple().all(tx).await?;
    for id in ids {
        match audit_outbox::Entity::find_by_id(id)
            .one(tx)
            .await
            .map_err(StoreError::from)
        {
            Ok(Some(row)) if guard.key.as_ref().is_none_or(|key| key.authenticates(store, &row)) => return Ok(id),
            Ok(_) => {}
            Err(error) if !error.is_malformed() => return Err(error),
            Err(_) => {}
        }
    }
    Ok(0)
}

/// Whether rows stand as they were written. `sealed`: whether they may have been sealed since.
pub(crate) async fn stand(
    conn: &impl ConnectionTrait,
    written: &[audit_outbox::Model],
    sealed: bool,
) -> Result<bool, StoreError> {
    for some in written.chunks(1000) {
        let ids = audit_outbox::Column::Id.is_in(some.iter().map(|row| row.id));
        let rows = audit_outbox::Entity::find()
            .filter(ids)
            .order_by_asc(audit_outbox::Column::Id)
            .all(conn)
            .await;
        let mut rows = match rows.map_err(StoreError::from) {
            Ok(rows) => rows,
            Err(error) if error.is_malformed() => return Ok(false),
            Err(error) => return Err(error),
        };
        if sealed {
            rows.iter_mut().for_each(|row| row.sealed_at = None);
        }
        if rows != some {
            return Ok(false);
        }
    }
    Ok(true)
}

async fn mark(conn: &impl ConnectionTrait, sql: impl Into<String>) -> Result<OutboxMark, StoreError> {
    let row = conn
        .query_one_raw(Engine::of(conn).statement(sql))
        .await?
        .ok_or(StoreError::Schema("missing"))?;
    Ok(OutboxMark {
        store: StoreId(row.try_get("", "store_id")?),
        last_id: row.try_get("", "last_outbox_id")?,
    })
}

impl Store {
    /// Which policy store this is, and the last id its outbox gave out.
    pub async fn outbox_mark(&self) -> Result<OutboxMark, StoreError> {
        mark(
            &self.inner.pools.reader,
            "SELECT store_id, last_outbox_id FROM policy_store",
        )
        .await
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

    /// The oldest waiting rows from an id on. A row that cannot be read is among them, as an entry that says so, and so is
    /// one under a number that is nobody's id.
    pub async fn outbox(&self, from: i64, limit: u64) -> Result<Vec<OutboxEntry>, StoreError> {
        let waiting = audit_outbox::Entity::find().filter(audit_outbox::Column::SealedAt.is_null());
        self.outbox_rows(waiting.filter(audit_outbox::Column::Id.gte(from)).limit(limit))
            .await
    }

    /// The oldest rows that are sealed and still kept, with an id above `after`, which is 0 at least.
    pub async fn kept_outbox(&self, after: i64, limit: u64) -> Result<Vec<OutboxEntry>, StoreError> {
        let kept = audit_outbox::Entity::find().filter(audit_outbox::Column::SealedAt.is_not_null());
        self.outbox_rows(kept.filter(audit_outbox::Column::Id.gt(after.max(0))).limit(limit))
            .await
    }

    async fn outbox_rows(&self, rows: sea_orm::Select<audit_outbox::Entity>) -> Result<Vec<OutboxEntry>, StoreError> {
        let store = self.outbox_mark().await?.store;
        let (reader, rows) = (&self.inner.pools.reader, rows.order_by_asc(audit_outbox::Column::Id));
        let found = readable(reader, rows).await?;
        Ok(found.into_iter().map(|row| self.found_entry(store, row)).collect())
    }

    /// The entry of a row that was found; of one that cannot be read, the id.
    pub(super) fn found_entry(&self, store: StoreId, found: Result<audit_outbox::Model, i64>) -> OutboxEntry {
        match found {
            Ok(row) => self.outbox_entry(store, row),
            Err(id) => {
                tracing::error!(id, "an audit outbox row cannot be read: it is told as unauthenticated");
                unreadable(store, id)
            }
        }
    }

    /// Looks after the rows that this process committed, until they are sealed as it wrote them, by whichever instance: one
    /// that is gone or has another code is an alarm.
    pub async fn look_after_outbox(&self) -> Result<(), StoreError> {
        self.look_for_undone().await?;
        let ours = self.inner.unsealed.rows().clone();
        let ids: Vec<i64> = ours.keys().copied().collect();
        for ids in ids.chunks(1000) {
            let columns = audit_outbox::Entity::find()
                .select_only()
                .column(audit_outbox::Column::Id);
            let columns = columns
                .column(audit_outbox::Column::Mac)
                .column(audit_outbox::Column::SealedAt);
            let rows = columns.filter(audit_outbox::Column::Id.is_in(ids.iter().copied()));
            let rows = rows
                .into_tuple::<(i64, Option<Vec<u8>>, Option<i64>)>()
                .all(&self.inner.pools.reader)
                .await;
            let rows = match rows.map_err(StoreError::from) {
                Ok(rows) => rows,
                // Told when the rows are read to be sealed.
                Err(error) if error.is_malformed() => continue,
                Err(error) => return Err(error),
            };
            let found: BTreeMap<_, _> = rows.into_iter().map(|(id, mac, sealed)| (id, (mac, sealed))).collect();
            for id in ids {
                let stands = found
                    .get(id)
                    .map(|(mac, sealed)| (mac.as_deref() == ours.get(id).map(|code| &code[..]), sealed));
                match stands {
                    Some((true, None)) => continue,
                    Some((true, Some(_))) => {}
                    Some((false, _)) | None => self.inner.outbox_alarms.raise(OutboxAlarm::Lost(*id)),
                }
                self.inner.unsealed.rows().remove(id);
            }
        }
        Ok(())
    }

    /// Looks whether a row that this process wrote and took back stands there after all.
    async fn look_for_undone(&self) -> Result<(), StoreError> {
        let Some(witness) = &self.inner.config.outbox.witness else {
            return Ok(());
        };
        let undone: BTreeSet<_> = witness.undone(self.outbox_mark().await?.store).into_iter().collect();
        let ids: BTreeSet<i64> = undone.iter().map(|(id, _)| *id).collect();
        for ids in ids.into_iter().collect::<Vec<_>>().chunks(1000) {
            let columns = audit_outbox::Entity::find()
                .select_only()
                .column(audit_outbox::Column::Id);
            let rows = columns
                .column(audit_outbox::Column::Mac)
                .filter(audit_outbox::Column::Id.is_in(ids.to_vec()));
            let rows = rows
                .into_tuple::<(i64, Option<Vec<u8>>)>()
                .all(&self.inner.pools.reader)
                .await;
            let rows = match rows.map_err(StoreError::from) {
                Ok(rows) => rows,
                // Told when the rows are read to be sealed.
                Err(error) if error.is_malformed() => continue,
                Err(error) => return Err(error),
            };
            for (id, mac) in rows {
                let code = mac.and_then(|mac| <[u8; 32]>::try_from(mac).ok());
                if code.is_some_and(|code| undone.contains(&(id, code))) {
                    self.inner.outbox_alarms.raise(OutboxAlarm::Undone(id));
                }
            }
        }
        Ok(())
    }

    /// The alarms of outbox rows since they were taken last.
    pub fn take_outbox_alarms(&self) -> Vec<OutboxAlarm> {
        let mut alarms = self
            .inner
            .outbox_alarms
            .0
            .lock()
            .unwrap_or_else(PoisonError::into_inner);
        core::mem::take(&mut alarms.1)
    }

    pub(super) fn outbox_entry(&self, store: StoreId, row: audit_outbox::Model) -> OutboxEntry {
        let (store, fault) = self.origin(store, &row);
        let id = row.id;
        match read(store, row) {
            Some(mut read) => {
                read.entry.outbox_fault = fault;
                read
            }
            None => unreadable(store, id),
        }
    }

    /// The policy store that wrote a row, and what is wrong with the row.
    fn origin(&self, store: StoreId, row: &audit_outbox::Model) -> (StoreId, Option<OutboxFault>) {
        let OutboxGuard { key, witness } = &self.inner.config.outbox;
        let witness = witness.as_deref();
        let committed = witness.and_then(|witness| witness.digest(store, row.id));
        // What was committed here needs no key: the one it was written with may have been exchanged since.
        if committed == Some(outbox_key::digest(store, row)) {
            return (store, None);
        }
        if let Some(key) = key
            && !key.authenticates(store, row)
        {
            let former = witness.map(|witness| witness.former_stores()).unwrap_or_default();
            return match former.into_iter().find(|former| key.authenticates(*former, row)) {
                Some(former) => (former, None),
                None => (store, Some(OutboxFault::Unauthenticated)),
            };
        }
        let is_undone = |(id, code): &(i64, [u8; 32])| *id == row.id && row.mac.as_deref() == Some(code);
        if witness.is_some_and(|witness| witness.undone(store).iter().any(is_undone)) {
            return (store, Some(OutboxFault::Unauthenticated));
        }
        (store, committed.map(|_| OutboxFault::Replaced))
    }

    /// Notes that the audit store holds the entries of these rows. Rows under numbers that are nobody's ids are told by then
    /// and go.
    pub async fn mark_outbox_sealed(&self, ids: &[i64]) -> Result<(), StoreError> {
        let (ids, nobodys): (Vec<i64>, Vec<i64>) = ids.iter().partition(|id| **id > 0);
        if !nobodys.is_empty() {
            let rows = audit_outbox::Entity::delete_many().filter(audit_outbox::Column::Id.is_in(nobodys));
            rows.exec(&self.inner.pools.writer).await?;
        }
        self.set_sealed(&ids, Some(self.inner.now())).await
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
        Ok(audit_outbox::Entity::delete_many()
            .filter(old)
            .exec(&self.inner.pools.writer)
            .await?
            .rows_affected)
    }
}

/// The rows of a query, and the id of each one that holds what its columns cannot: such a value fails the whole query, and
/// then the row it is in is told apart. A database that is busy or away says nothing about a row: that is an error.
pub(super) async fn readable(
    conn: &impl ConnectionTrait,
    rows: sea_orm::Select<audit_outbox::Entity>,
) -> Result<Vec<Result<audit_outbox::Model, i64>>, StoreError> {
    match rows.clone().all(conn).await.map_err(StoreError::from) {
        Ok(rows) => return Ok(rows.into_iter().map(Ok).collect()),
        Err(error) if !error.is_malformed() => return Err(error),
        Err(_) => {}
    }
    let ids: Vec<i64> = rows
        .select_only()
        .column(audit_outbox::Column::Id)
        .into_tuple()
        .all(conn)
        .await?;
    let mut found = Vec::with_capacity(ids.len());
    for id in ids {
        match audit_outbox::Entity::find_by_id(id)
            .one(conn)
            .await
            .map_err(StoreError::from)
        {
            Ok(row) => found.extend(row.map(Ok)),
            Err(error) if !error.is_malformed() => return Err(error),
            Err(_) => found.push(Err(id)),
        }
    }
    Ok(found)
}

impl OutboxEntry {
    /// Stands for rows that are gone. It has no time of its own, and the same bytes each time it is made.
    pub fn gap(store: StoreId, ids: &RangeInclusive<i64>, missing: u64) -> Self {
        let number = |id: i64| u64::try_from(id).unwrap_or(0);
        let entry = gap_entry(store, &(number(*ids.start())..=number(*ids.end())), missing);
        let salts = OutboxSalts {
            seed: Vec::new(),
            drawn: AtomicU64::new(0),
        };
        Self {
            id: *ids.end(),
            created_at: Timestamp::from_micros(0),
            entry,
            salts,
        }
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
        outbox_id: Some(u64::try_from(row.id).ok().filter(|id| *id > 0)?),
        outbox_fault: None,
    };
    let salts = OutboxSalts {
        seed: row.salt_seed.unwrap_or_default(),
        drawn: AtomicU64::new(0),
    };
    Some(OutboxEntry {
        id: row.id,
        created_at: Timestamp::from_micros(row.created_at),
        entry,
        salts,
    })
}

/// Stands for a row that is there and cannot be read: what it said is lost, that it was there is not.
fn unreadable(store: StoreId, id: i64) -> OutboxEntry {
    let id_given = u64::try_from(id).ok().filter(|id| *id > 0);
    let entry = AdminEntry {
        outbox_id: id_given,
        ..nobodys_entry(store)
    };
    let salts = OutboxSalts {
        seed: Vec::new(),
        drawn: AtomicU64::new(0),
    };
    OutboxEntry {
        id,
        created_at: Timestamp::from_micros(0),
        entry,
        salts,
    }
}
