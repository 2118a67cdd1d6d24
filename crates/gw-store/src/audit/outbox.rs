//! Audit entries of mutations on their way to the sealer (decision 46).
//!
//! Invariant: ids are issued under the lock on the epoch row, without gaps and in commit order. A sealed row is kept
//! for a while, so that an audit store that lost its entry can get it again with the same bytes: the row also provides
//! the salts of its personal values.

use super::{
    outbox_key,
    readable::{MOST_BYTES, RowSize, count_within, row_sizes},
};
use crate::{
    OutboxGuard, Store, StoreError,
    dialect::{self, Engine, Transaction},
    entity::{audit_outbox, bounds},
};
use gw_audit::{
    Action, AdminEntry, OutboxFault, ResourceType, StoreId,
    outbox::{gap_entry, invalid_id_entry},
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

/// Position of a policy store's outbox.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct OutboxMark {
    /// The policy store.
    pub store: StoreId,
    /// The last id given to a row, or 0.
    pub last_id: i64,
}

/// Upper limit of plausible ids: a counter at or above it was not written by a gateway.
const MOST_IDS: i64 = 1 << 53;

impl OutboxMark {
    /// Returns the last issued id; 0 if the counter is not plausible.
    pub const fn given(&self) -> i64 {
        if self.last_id < MOST_IDS { self.last_id } else { 0 }
    }
}

/// A row of the outbox.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct OutboxEntry {
    /// The id in listings; sealing does not change it.
    pub id: i64,
    /// When the mutation took place.
    pub created_at: Timestamp,
    /// The entry. Its `outbox_fault` says whether the row was altered.
    pub entry: AdminEntry,
    /// Salts of its personal values.
    pub salts: OutboxSalts,
}

/// Salts derived from a row's seed: the same each time the row is turned into an entry.
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

/// Alteration of rows while they are written to the database. The caller of the mutation received a 503.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum OutboxAlarm {
    /// Within the transaction the rows from this id on differed from what was written; the transaction was rolled back.
    Altered(i64),
    /// After the commit the rows from this id on differed from what was written. The mutation is committed.
    Lost(i64),
    /// A row exists that this process wrote for a mutation that was rolled back: the change that it describes never
    /// took place.
    Undone(i64),
    /// The id counter was at `stored`, although ids up to `known` were issued; new ids continue above `known`.
    Lowered {
        /// The counter in the database.
        stored: i64,
        /// The highest known id.
        known: i64,
    },
    /// A mutation changed rows of this table, and its triggers recorded nothing; the transaction was rolled back.
    Unrecorded(&'static str),
}

/// Alarms not taken yet. Each is raised once, however often its cause rejects a mutation.
#[derive(Debug, Default)]
pub(crate) struct OutboxAlarms(Mutex<(BTreeSet<OutboxAlarm>, Vec<OutboxAlarm>)>);

/// Maximum distinct alarms remembered; further alarms add no information.
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
                "the policy database alters rows of `audit_outbox` while they are written: the change was undone and \
                 answered 503; the likely cause is a trigger or rule: find and remove triggers and rules on \
                 `audit_outbox` and `policy_store`"
            ),
            OutboxAlarm::Lost(id) => tracing::error!(
                id,
                "a row of `audit_outbox` was altered or deleted after its change was committed: the change is in force \
                 without its audit entry; the likely cause is a trigger or manual SQL: remove triggers on \
                 `audit_outbox` and find who wrote to the policy database"
            ),
            OutboxAlarm::Undone(id) => tracing::error!(
                id,
                "a row of `audit_outbox` belongs to a change that was rolled back and never took effect: the likely \
                 cause is a trigger or manual SQL that copied the row: remove triggers on `audit_outbox` and find who \
                 wrote to the policy database"
            ),
            OutboxAlarm::Lowered { stored, known } => tracing::error!(
                store.last_id = stored,
                known.last_id = known,
                "`last_outbox_id` in `policy_store` is lower than ids that are in use: the likely cause is manual SQL \
                 or a restored older database; new ids continue above the highest known one; find who changed the \
                 policy database"
            ),
            OutboxAlarm::Unrecorded(table) => tracing::error!(
                table,
                "the triggers of a policy table did not record a change of its rows, so no instance would apply it: \
                 the change was undone and answered 503; the likely cause is a disabled, dropped or replaced trigger: \
                 compare the schema with `ledger-gateway audit verify`, and restore the trigger"
            ),
        }
    }
}

/// Codes of the rows that this process committed and has not seen sealed yet: another instance may seal them, and it
/// accepts any row with a genuine code.
#[derive(Debug, Default)]
pub(crate) struct UnsealedRows(Mutex<BTreeMap<i64, [u8; 32]>>);

/// Maximum rows tracked; more rows wait only while nothing is sealed.
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

/// Takes the next ids of the outbox; the caller holds the lock on the epoch row. The ids are above every id known to
/// have been issued, whatever the counter says, and no row has them yet.
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

/// Returns the highest of the next `count` ids that a row already has.
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

/// Returns the highest id above `last` of a row that a mutation wrote; forged rows do not count.
async fn highest_authentic(
    tx: &Transaction,
    last: i64,
    store: StoreId,
    guard: &OutboxGuard,
) -> Result<i64, StoreError> {
    let rows = audit_outbox::Entity::find().filter(audit_outbox::Column::Id.gt(last));
    let ids = rows
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

/// Whether rows are stored as they were written. `sealed`: whether they may have been sealed since.
pub(crate) async fn stand(
    conn: &impl ConnectionTrait,
    written: &[audit_outbox::Model],
    sealed: bool,
) -> Result<bool, StoreError> {
    for chunk in written.chunks(1000) {
        let ids = audit_outbox::Column::Id.is_in(chunk.iter().map(|row| row.id));
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
        if rows != chunk {
            return Ok(false);
        }
    }
    Ok(true)
}

async fn mark(conn: &impl ConnectionTrait, sql: impl Into<String>) -> Result<OutboxMark, StoreError> {
    let row = conn
        .query_one_raw(Engine::for_connection(conn).statement(sql))
        .await?
        .ok_or(StoreError::PolicyStoreRow)?;
    Ok(OutboxMark {
        store: StoreId(row.try_get("", "store_id")?),
        last_id: row.try_get("", "last_outbox_id")?,
    })
}

impl Store {
    /// Returns the id of this policy store and the last id that its outbox issued.
    ///
    /// # Errors
    /// [`StoreError::PolicyStoreRow`] if the row of `policy_store` is missing; any database error.
    pub async fn outbox_mark(&self) -> Result<OutboxMark, StoreError> {
        mark(
            &self.inner.pools.reader,
            "SELECT store_id, last_outbox_id FROM policy_store",
        )
        .await
        // Without the row every mutation is rejected, so readiness shows it before the first one.
        .inspect_err(|error| {
            if matches!(error, StoreError::PolicyStoreRow) {
                self.inner.note_refusal(error);
            }
        })
    }

    /// Makes the next rows get ids above `last`. Needed after a restore from an older backup: entries with higher ids
    /// than this store knows were sealed.
    ///
    /// # Errors
    /// [`StoreError::PolicyStoreRow`] if the row of `policy_store` is missing; [`StoreError::Row`] if a stored row is
    /// malformed; any database error.
    pub async fn raise_outbox_ids(&self, last: i64) -> Result<(), StoreError> {
        let tx = self.inner.pools.begin_write().await?;
        dialect::lock_epoch(&tx).await?;
        let sql = format!("UPDATE policy_store SET last_outbox_id = {last} WHERE last_outbox_id < {last}");
        tx.execute_unprepared(&sql).await?;
        tx.commit().await
    }

    /// Returns the oldest waiting rows from an id on, fewer than `limit` if they are long. Unreadable rows and rows
    /// with
    /// an invalid id are included, as
    /// entries that say so.
    ///
    /// # Errors
    /// [`StoreError::PolicyStoreRow`] if the row of `policy_store` is missing; [`StoreError::Row`] if a stored row is
    /// malformed; any database error.
    pub async fn outbox(&self, from: i64, limit: u64) -> Result<Vec<OutboxEntry>, StoreError> {
        let waiting = audit_outbox::Entity::find().filter(audit_outbox::Column::SealedAt.is_null());
        self.outbox_rows(waiting.filter(audit_outbox::Column::Id.gte(from)), limit)
            .await
    }

    /// Returns the records of erasures that wait to be sealed. Rows with a fault are left out.
    ///
    /// # Errors
    /// [`StoreError::PolicyStoreRow`] if the row of `policy_store` is missing; any database error.
    pub async fn waiting_erasures(&self) -> Result<Vec<AdminEntry>, StoreError> {
        let waiting = audit_outbox::Entity::find()
            .filter(audit_outbox::Column::SealedAt.is_null())
            .filter(audit_outbox::Column::Action.eq(Action::Delete.as_str()))
            .filter(audit_outbox::Column::ResourceType.eq(ResourceType::Audit.as_str()));
        let rows = self.outbox_rows(waiting, MOST_WAITING).await?;
        Ok(rows
            .into_iter()
            .map(|row| row.entry)
            .filter(|entry| entry.outbox_fault.is_none())
            .collect())
    }

    /// Returns the oldest sealed rows that are still kept, with ids above `after` (at least 0): at least one if there
    /// is
    /// any, and fewer than `limit` if they are long.
    ///
    /// # Errors
    /// [`StoreError::PolicyStoreRow`] if the row of `policy_store` is missing; [`StoreError::Row`] if a stored row is
    /// malformed; any database error.
    pub async fn kept_outbox(&self, after: i64, limit: u64) -> Result<Vec<OutboxEntry>, StoreError> {
        let kept = audit_outbox::Entity::find().filter(audit_outbox::Column::SealedAt.is_not_null());
        self.outbox_rows(kept.filter(audit_outbox::Column::Id.gt(after.max(0))), limit)
            .await
    }

    async fn outbox_rows(
        &self,
        rows: sea_orm::Select<audit_outbox::Entity>,
        most: u64,
    ) -> Result<Vec<OutboxEntry>, StoreError> {
        let store = self.outbox_mark().await?.store;
        let (reader, rows) = (&self.inner.pools.reader, rows.order_by_asc(audit_outbox::Column::Id));
        let rows = readable(reader, rows, most).await?;
        Ok(rows.into_iter().map(|row| self.entry_from_row(store, row)).collect())
    }

    /// Converts a row to an entry; an unreadable row becomes an entry with only its id.
    pub(super) fn entry_from_row(&self, store: StoreId, row: Result<audit_outbox::Model, i64>) -> OutboxEntry {
        match row {
            Ok(row) => self.outbox_entry(store, row),
            Err(id) => {
                tracing::error!(
                    id,
                    "a row of `audit_outbox` is malformed: it is sealed as an entry marked `unauthenticated`; the \
                     likely cause is manual SQL: find who wrote to the policy database"
                );
                unreadable(store, id)
            }
        }
    }

    /// Checks the rows that this process committed until any instance has sealed them as written: a row that is missing
    /// or has another code raises an alarm.
    ///
    /// # Errors
    /// [`StoreError::PolicyStoreRow`] if the row of `policy_store` is missing; [`StoreError::Row`] if a stored row is
    /// malformed; any database error.
    pub async fn check_committed_rows(&self) -> Result<(), StoreError> {
        self.check_rolled_back_rows().await?;
        let unsealed = self.inner.unsealed.rows().clone();
        let ids: Vec<i64> = unsealed.keys().copied().collect();
        for ids in ids.chunks(1000) {
            let columns = audit_outbox::Entity::find()
                .select_only()
                .column(audit_outbox::Column::Id);
            let columns = columns
                .expr_as(bounds::value::<audit_outbox::Entity>(audit_outbox::Column::Mac), "mac")
                .column(audit_outbox::Column::SealedAt);
            let rows = columns.filter(audit_outbox::Column::Id.is_in(ids.iter().copied()));
            let rows = rows
                .into_tuple::<(i64, Option<Vec<u8>>, Option<i64>)>()
                .all(&self.inner.pools.reader)
                .await;
            let rows = match rows.map_err(StoreError::from) {
                Ok(rows) => rows,
                // Reported when the rows are read for sealing.
                Err(error) if error.is_malformed() => continue,
                Err(error) => return Err(error),
            };
            let stored: BTreeMap<_, _> = rows.into_iter().map(|(id, mac, sealed)| (id, (mac, sealed))).collect();
            for id in ids {
                let state = stored
                    .get(id)
                    .map(|(mac, sealed)| (mac.as_deref() == unsealed.get(id).map(|code| &code[..]), sealed));
                match state {
                    Some((true, None)) => continue,
                    Some((true, Some(_))) => {}
                    Some((false, _)) | None => self.inner.outbox_alarms.raise(OutboxAlarm::Lost(*id)),
                }
                self.inner.unsealed.rows().remove(id);
            }
        }
        Ok(())
    }

    /// Raises an alarm if a row exists that this process wrote and rolled back.
    async fn check_rolled_back_rows(&self) -> Result<(), StoreError> {
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
                .expr_as(bounds::value::<audit_outbox::Entity>(audit_outbox::Column::Mac), "mac")
                .filter(audit_outbox::Column::Id.is_in(ids.to_vec()));
            let rows = rows
                .into_tuple::<(i64, Option<Vec<u8>>)>()
                .all(&self.inner.pools.reader)
                .await;
            let rows = match rows.map_err(StoreError::from) {
                Ok(rows) => rows,
                // Reported when the rows are read for sealing.
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

    /// Takes the outbox alarms raised since the last call.
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

    /// Returns the policy store that wrote a row, and the row's fault.
    fn origin(&self, store: StoreId, row: &audit_outbox::Model) -> (StoreId, Option<OutboxFault>) {
        let OutboxGuard { key, witness } = &self.inner.config.outbox;
        let witness = witness.as_deref();
        let committed = witness.and_then(|witness| witness.digest(store, row.id));
        // Rows committed by this process need no key: the key that they were written with may have been rotated since.
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

    /// Marks rows as sealed in the audit store. Rows with invalid ids are reported by then and are deleted.
    ///
    /// # Errors
    /// Any database error.
    pub async fn mark_outbox_sealed(&self, ids: &[i64]) -> Result<(), StoreError> {
        let (ids, nobodys): (Vec<i64>, Vec<i64>) = ids.iter().partition(|id| **id > 0);
        if !nobodys.is_empty() {
            let rows = audit_outbox::Entity::delete_many().filter(audit_outbox::Column::Id.is_in(nobodys));
            rows.exec(&self.inner.pools.writer).await?;
        }
        self.set_sealed(&ids, Some(self.inner.now())).await
    }

    /// Marks rows as waiting again because the audit store lost their entries.
    ///
    /// # Errors
    /// Any database error.
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

    /// Deletes rows that were sealed before `sealed_before` and returns their number.
    ///
    /// # Errors
    /// [`StoreError::Row`] if a stored row is malformed; any database error.
    pub async fn forget_outbox(&self, sealed_before: Timestamp) -> Result<u64, StoreError> {
        let sealed_before_limit = audit_outbox::Column::SealedAt.lt(sealed_before.micros());
        Ok(audit_outbox::Entity::delete_many()
            .filter(sealed_before_limit)
            .exec(&self.inner.pools.writer)
            .await?
            .rows_affected)
    }
}

/// Most waiting rows that one query returns.
const MOST_WAITING: u64 = 100_000;

/// Returns the first `most` rows of a query, or fewer if they are long; for a row with a value of a wrong type or over
/// its limit, its id. Such a value fails the whole query, so the rows are then read one by one. A database that is busy
/// or unreachable is an error: it says nothing about a row.
pub(super) async fn readable(
    conn: &impl ConnectionTrait,
    rows: sea_orm::Select<audit_outbox::Entity>,
    most: u64,
) -> Result<Vec<Result<audit_outbox::Model, i64>>, StoreError> {
    let mut sizes = row_sizes(conn, &rows, most).await?;
    sizes.truncate(count_within::<audit_outbox::Entity>(&sizes, MOST_BYTES / 4));
    if !sizes.iter().any(RowSize::is_oversized::<audit_outbox::Entity>) {
        let rows = rows.limit(u64::try_from(sizes.len()).unwrap_or(most));
        match rows.all(conn).await.map_err(StoreError::from) {
            Ok(rows) => return Ok(rows.into_iter().map(Ok).collect()),
            Err(error) if !error.is_malformed() => return Err(error),
            Err(_) => {}
        }
    }
    let mut rows = Vec::with_capacity(sizes.len());
    for size in sizes {
        let id = size.id;
        if size.is_oversized::<audit_outbox::Entity>() {
            rows.push(Err(id));
            continue;
        }
        match audit_outbox::Entity::find_by_id(id)
            .one(conn)
            .await
            .map_err(StoreError::from)
        {
            Ok(row) => rows.extend(row.map(Ok)),
            Err(error) if !error.is_malformed() => return Err(error),
            Err(_) => rows.push(Err(id)),
        }
    }
    Ok(rows)
}

impl OutboxEntry {
    /// Creates the entry that reports missing rows. Its time is 0, so its bytes are the same each time.
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

/// Creates the entry for an unreadable row: it records that the row existed, without its content.
fn unreadable(store: StoreId, id: i64) -> OutboxEntry {
    let id_given = u64::try_from(id).ok().filter(|id| *id > 0);
    let entry = AdminEntry {
        outbox_id: id_given,
        ..invalid_id_entry(store)
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
