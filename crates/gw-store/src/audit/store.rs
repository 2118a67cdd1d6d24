//! The audit store as the sealer and the verifier use it.
//!
//! Invariant: entries of a chain are inserted in the transaction that moves the chain's end from the first to after the
//! last of them, and only by the holder of the newest fence. So a crash at any point neither loses nor repeats an entry
//! (spec/70 rule 13), and a replaced writer cannot fork the chain.

use super::{
    columns::Columns,
    readable::{CHUNK_BYTES, count_within, readable_rows, row_sizes},
    watch::{TamperedRead, Watch},
};
use crate::{
    Missing, StoreConfig, StoreError,
    dialect::{
        self, Pools,
        schema::{self, IndexCheck},
    },
    entity::{bounds, chains, checkpoints, entries},
    migration::{self, AuditMigrator},
};
use gw_audit::{ChainId, Checkpoint, Hash, Head, Header, OrgHead, ShardId, StoredEntry, Stream};
use gw_types::{OrgId, Seconds, Timestamp};
use sea_orm::{
    ActiveModelTrait,
    ActiveValue::Set,
    ColumnTrait, ConnectionTrait, EntityTrait, IntoActiveModel, QueryFilter, QueryOrder, QuerySelect, Select,
    sea_query::{Expr, OnConflict, Query},
};
use std::{
    collections::{BTreeSet, HashMap},
    sync::Arc,
    time::Duration,
};

/// An open audit store; cheap to clone.
#[derive(Clone, Debug)]
pub struct AuditStore {
    pub(super) pools: Pools,
    pub(super) config: Arc<StoreConfig>,
    pub(super) watch: Arc<Watch>,
}

/// A writer's claim on a chain.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Claim {
    /// The chain.
    pub chain: ChainId,
    /// Fencing token; each write checks that no other writer took the chain over.
    pub fence: u64,
    /// The end of the sealed part; `None` if nothing is sealed yet.
    pub head: Option<Head>,
    /// The highest sequence number that a writer of the chain is known to have issued (HD25).
    pub issued: Option<u64>,
}

/// An entry to seal.
#[derive(Clone, Debug)]
pub struct ToSeal {
    /// The entry.
    pub entry: StoredEntry,
}

/// A sealed entry as stored.
#[derive(Clone, Debug)]
pub struct SealedRow {
    /// The row's id; within a chain ids grow with sequence numbers.
    pub id: i64,
    /// The sequence number of the row.
    pub seq: u64,
    /// The stored hash; zero if none can be read.
    pub hash: Hash,
    /// Whether the row has a readable hash.
    pub hash_readable: bool,
    /// The entry.
    pub bytes: Vec<u8>,
    /// The openings stored next to the entry.
    pub openings: Vec<u8>,
    /// Whether the query columns agree with the entry.
    pub columns_agree: bool,
}

impl AuditStore {
    /// Connects. The schema may still be missing or old; see [`AuditStore::migrate`].
    ///
    /// # Errors
    /// Any database error.
    pub async fn open(config: StoreConfig) -> Result<Self, StoreError> {
        let pools = Pools::open(
            &config.location,
            config.connections,
            &migration::names::<AuditMigrator>(),
        )
        .await?;
        Ok(Self {
            pools,
            config: Arc::new(config),
            watch: Arc::default(),
        })
    }

    /// Migrates the schema to the version of this build.
    ///
    /// # Errors
    /// Any database error.
    pub async fn migrate(&self) -> Result<(), StoreError> {
        let tx = self.pools.begin_migration().await?;
        migration::run::<AuditMigrator>(&tx).await?;
        tx.commit().await
    }

    /// Fails unless the schema is exactly that of this build.
    ///
    /// # Errors
    /// [`StoreError::Schema`] if the schema is older or newer than this build; any database error.
    pub async fn check_schema(&self) -> Result<(), StoreError> {
        migration::check::<AuditMigrator>(&self.pools.reader).await
    }

    /// Returns the schema as text, object by object.
    ///
    /// # Errors
    /// Any database error.
    pub async fn schema(&self) -> Result<String, StoreError> {
        Ok(schema::describe(&self.pools.reader).await?)
    }

    /// Checks that the database answers.
    ///
    /// # Errors
    /// Any database error.
    pub async fn ping(&self) -> Result<(), StoreError> {
        Ok(self.pools.reader.ping().await?)
    }

    /// Whether our database credential may change or delete entries; production refuses to run then (spec/70 rule 25).
    ///
    /// # Errors
    /// Any database error.
    pub async fn may_rewrite(&self) -> Result<bool, StoreError> {
        dialect::may_rewrite(&self.pools.reader, "entries").await
    }

    /// Claims a chain for writing and creates it if needed. The previous holder is fenced off. Fails with
    /// [`StoreError::OtherInstance`] while another holder's lease lasts, by the database's clock if it has one.
    ///
    /// # Errors
    /// [`StoreError::OtherInstance`] if another writer holds the chain; [`StoreError::Row`] if a stored row is
    /// malformed; any database error.
    pub async fn claim(&self, chain: ChainId, holder: &str, life: Seconds) -> Result<Claim, StoreError> {
        let tx = self.pools.begin_write().await?;
        let now = dialect::lease_time(&tx, self.config.clock.now()).await?;
        let fresh = chains::ActiveModel {
            id: self.next_id(&tx, "chains").await?,
            stream: Set(chain.stream.as_str().to_owned()),
            shard: Set(chain.shard.0),
            fence: Set(0),
            holder: Set(holder.to_owned()),
            leased_until: Set(0),
            issued: Set(-1),
            size: Set(0),
            head_hash: Set(Hash::ZERO.to_vec()),
            head_time: Set(0),
        };
        let on_conflict = OnConflict::columns([chains::Column::Stream, chains::Column::Shard])
            .do_nothing()
            .to_owned();
        chains::Entity::insert(fresh)
            .on_conflict(on_conflict)
            .try_insert()
            .exec_without_returning(&tx)
            .await?;
        let row = chain_row(&tx, chain, true).await?;
        // No holder takes a longer lease: a longer one was written by an attacker to keep the chain from being sealed.
        let possible = now.plus(life).plus(life).micros();
        if row.holder != holder && row.leased_until > now.micros() && row.leased_until <= possible {
            return Err(StoreError::OtherInstance(row.holder));
        }
        let issued = u64::try_from(row.issued).ok();
        let head = head_of(&row)?;
        // A restored store may have issued higher fences before: the clock keeps new fences above them.
        let fence = row.fence.saturating_add(1).max(now.micros());
        let mut row = row.into_active_model();
        row.fence = Set(fence);
        row.holder = Set(holder.to_owned());
        row.leased_until = Set(now.plus(life).micros());
        row.update(&tx).await?;
        tx.commit().await?;
        Ok(Claim {
            chain,
            fence: unsigned(fence, "fence")?,
            head,
            issued,
        })
    }

    /// Renews a claim and stores the highest sequence number issued so far. Fails with [`StoreError::Fenced`] if
    /// another writer took over.
    ///
    /// # Errors
    /// [`StoreError::Fenced`] if another writer took the chain over; [`StoreError::Row`] if a stored row is malformed;
    /// any database error.
    pub async fn renew(&self, claim: &Claim, issued: Option<u64>, life: Seconds) -> Result<(), StoreError> {
        let end = dialect::lease_time(&self.pools.writer, self.config.clock.now())
            .await?
            .plus(life);
        let renewed = chains::Entity::update_many()
            .col_expr(chains::Column::LeasedUntil, Expr::value(end.micros()))
            .col_expr(
                chains::Column::Issued,
                issued.map_or_else(|| Expr::col(chains::Column::Issued), raised),
            )
            .filter(of_claim(claim))
            .exec(&self.pools.writer)
            .await?;
        if renewed.rows_affected == 1 {
            Ok(())
        } else {
            Err(StoreError::Fenced)
        }
    }

    /// Returns the end of a chain's sealed part; `None` if nothing is sealed.
    ///
    /// # Errors
    /// [`StoreError::Row`] if a stored row is malformed; any database error.
    pub async fn head(&self, chain: ChainId) -> Result<Option<Head>, StoreError> {
        match chain_row(&self.pools.reader, chain, false).await {
            Ok(row) => head_of(&row),
            Err(StoreError::NotFound(_)) => Ok(None),
            Err(error) => Err(error),
        }
    }

    /// Returns every chain. A malformed row is logged and left out, so that the other chains can be read.
    /// [`AuditStore::malformed_chains`] names it.
    ///
    /// # Errors
    /// [`StoreError::Row`] if a stored row is malformed; any database error.
    pub async fn chains(&self) -> Result<Vec<(ChainId, Option<Head>)>, StoreError> {
        let rows = self.chain_rows().await?;
        let parse_row = |row: &chains::Model| Ok((chain_of(row)?, head_of(row)?));
        Ok(rows.iter().filter_map(|row| intact(row, parse_row(row))).collect())
    }

    /// Returns the rows of `chains`. A row with a value of a wrong type is logged once and left out.
    pub(super) async fn chain_rows(&self) -> Result<Vec<chains::Model>, StoreError> {
        let mut read = readable_rows(&self.pools.reader, all_chains(), MOST_CHAINS).await?;
        self.report_malformed_rows("chains", &read.malformed);
        if read.unread.is_some() && self.watch.is_first_report_of("chains") {
            tracing::error!(
                read = MOST_CHAINS,
                "table `chains` of the audit database has more rows than any deployment makes; the rest is not read: \
                 the likely cause is manual SQL; remove the rows that no instance wrote"
            );
        }
        read.rows.sort_by(|a, b| (&a.stream, a.id).cmp(&(&b.stream, b.id)));
        Ok(read.rows)
    }

    /// Returns the chains with these row ids; those of malformed rows are left out.
    pub(super) async fn chains_by_id(&self, ids: BTreeSet<i64>) -> Result<HashMap<i64, ChainId>, StoreError> {
        let select = chains::Entity::find().filter(chains::Column::Id.is_in(ids));
        let read = readable_rows(&self.pools.reader, select, MOST_CHAINS).await?;
        self.report_malformed_rows("chains", &read.malformed);
        let chain = |row: &chains::Model| Some((row.id, chain_of(row).ok()?));
        Ok(read.rows.iter().filter_map(chain).collect())
    }

    /// Logs each malformed row of a table once.
    pub(super) fn report_malformed_rows(&self, table: &'static str, rows: &[i64]) {
        for row in rows {
            if self.watch.is_first_report_of(&format!("{table}.{row}")) {
                tracing::error!(
                    table,
                    row,
                    "a row of the audit database is malformed and left out: the likely cause is manual SQL; run \
                     `ledger-gateway audit verify`; remove the row if it was inserted, or restore it from a backup"
                );
            }
        }
    }

    /// Seals entries that continue the chain, all or none. Fails with [`StoreError::ChainMoved`] if the stored chain
    /// ends elsewhere, with [`StoreError::Fenced`] if another writer took over.
    ///
    /// # Errors
    /// [`StoreError::Fenced`] if another writer took the chain over; [`StoreError::ChainMoved`] if the chain does not
    /// end where the batch begins; [`StoreError::Rule`] if the batch is out of order or holds a malformed entry;
    /// [`StoreError::Row`] if a stored row is malformed; any database error.
    pub async fn insert_sealed(&self, claim: &Claim, batch: &[ToSeal]) -> Result<(), StoreError> {
        let Some((first, last)) = ends(claim.chain, batch)? else {
            return Ok(());
        };
        let tx = self.pools.begin_write().await?;
        let moved = chains::Entity::update_many()
            .col_expr(
                chains::Column::Size,
                Expr::value(signed(last.header.seq.saturating_add(1))),
            )
            .col_expr(chains::Column::HeadHash, Expr::value(last.hash.to_vec()))
            .col_expr(chains::Column::HeadTime, Expr::value(last.header.time.micros()))
            .col_expr(chains::Column::Issued, raised(last.header.seq))
            .filter(of_claim(claim))
            .filter(chains::Column::Size.eq(signed(first.header.seq)))
            .filter(chains::Column::HeadHash.eq(first.header.prev.to_vec()))
            .exec(&tx)
            .await?;
        let row = chain_row(&tx, claim.chain, false).await?;
        if moved.rows_affected != 1 {
            let fenced = unsigned(row.fence, "fence")? != claim.fence;
            let stored = unsigned(row.size, "size")?;
            return Err(if fenced {
                StoreError::Fenced
            } else {
                StoreError::ChainMoved { stored }
            });
        }
        let mut rows = Vec::with_capacity(batch.len());
        for ToSeal { entry } in batch {
            let columns = Columns::from_entry(entry).map_err(|_| StoreError::Rule("entry"))?;
            rows.push(columns.row(row.id, signed(entry.header.seq), entry));
        }
        if let Some(first) = self.free_id(&tx, "entries").await? {
            for (row, id) in rows.iter_mut().zip(first..) {
                row.id = Set(id);
            }
        }
        while !rows.is_empty() {
            let rest = rows.split_off(self.pools.engine.batch_size(rows.len(), COLUMNS));
            if let Err(error) = entries::Entity::insert_many(rows).exec_without_returning(&tx).await {
                // A role without permission to read the sequence detects its exhaustion here.
                if dialect::is_numbering(&error) {
                    self.watch.distrust("entries");
                }
                return Err(error.into());
            }
            rows = rest;
        }
        tx.commit().await
    }

    /// Returns the sealed entries of a chain from a sequence number on, in order: at least one if there is any, and
    /// fewer than `limit` if they are long. An entry with unreadable columns is included with its bytes and
    /// `columns_agree: false`; a value over its limit reads as no bytes.
    ///
    /// # Errors
    /// [`StoreError::Row`] if a stored row is malformed; any database error.
    pub async fn rows(&self, chain: ChainId, from: u64, limit: u64) -> Result<Vec<SealedRow>, StoreError> {
        let Some(from) = column_value(from) else {
            return Ok(Vec::new());
        };
        let chain = chain_row(&self.pools.reader, chain, false).await?;
        let select = entries::Entity::find()
            .filter(entries::Column::ChainId.eq(chain.id))
            .filter(entries::Column::Seq.gte(from))
            .order_by_asc(entries::Column::Seq);
        let mut sizes = row_sizes(&self.pools.reader, &select, limit).await?;
        sizes.truncate(count_within::<entries::Entity>(&sizes, CHUNK_BYTES));
        let select = select.limit(u64::try_from(sizes.len()).unwrap_or(limit));
        let oversized: BTreeSet<i64> = sizes
            .iter()
            .filter(|size| size.is_oversized::<entries::Entity>())
            .map(|size| size.id)
            .collect();
        if !oversized.is_empty() {
            return self.malformed_rows(select, &oversized).await;
        }
        match select.clone().all(&self.pools.reader).await.map_err(StoreError::from) {
            Ok(rows) => rows.into_iter().map(sealed_row).collect(),
            Err(error) if error.is_malformed() => self.malformed_rows(select, &oversized).await,
            Err(error) => Err(error),
        }
    }

    /// Like [`rows`](Self::rows), for a range in which a column has a value of a wrong type or over its limit.
    async fn malformed_rows(
        &self,
        select: Select<entries::Entity>,
        oversized: &BTreeSet<i64>,
    ) -> Result<Vec<SealedRow>, StoreError> {
        let conn = &self.pools.reader;
        let raw = select
            .select_only()
            .columns([entries::Column::Id, entries::Column::Seq])
            .column_as(dialect::as_bytes(conn, "hash", bounds::HASH), "hash")
            .column_as(dialect::as_bytes(conn, "bytes", bounds::ENTRY), "bytes")
            .column_as(dialect::as_bytes(conn, "openings", bounds::ENTRY), "openings")
            // A row without a valid sequence number appears as a gap.
            .filter(dialect::is_number(conn, "seq"));
        let raw: Vec<RawRow> = raw.into_tuple().all(conn).await?;
        let mut rows = Vec::with_capacity(raw.len());
        for (id, seq, hash, bytes, openings) in raw {
            let read = if oversized.contains(&id) {
                Err(malformed_entry(id))
            } else {
                entries::Entity::find_by_id(id)
                    .one(conn)
                    .await
                    .map_err(StoreError::from)
            };
            rows.push(match read {
                Ok(Some(row)) => sealed_row(row)?,
                // The row was pruned since its id was read.
                Ok(None) => continue,
                Err(error) if error.is_about_row() => {
                    tracing::error!(
                        row = id,
                        entry = seq,
                        "a row of `entries` in the audit database is malformed: the likely cause is manual SQL; run \
                         `ledger-gateway audit verify` to find its chain, and restore the row from a backup"
                    );
                    let hash = Hash::try_from(hash.as_slice()).ok();
                    SealedRow {
                        id,
                        seq: unsigned(seq, "seq")?,
                        hash: hash.unwrap_or(Hash::ZERO),
                        hash_readable: hash.is_some(),
                        bytes,
                        openings,
                        columns_agree: false,
                    }
                }
                Err(error) => return Err(error),
            });
        }
        Ok(rows)
    }

    /// Returns the readable rows; verification reports the others.
    ///
    /// # Errors
    /// [`StoreError::Row`] if there are more rows than can be read at once; any database error.
    pub(super) async fn readable(&self, select: Select<entries::Entity>) -> Result<Vec<entries::Model>, StoreError> {
        let read = readable_rows(&self.pools.reader, select, MOST_ENTRIES).await?;
        match read.unread {
            Some(unread) => Err(malformed_entry(unread)),
            None => Ok(read.rows),
        }
    }

    /// Returns the database objects that differ from those that the migrations make: they can prevent rows from being
    /// stored, or hide rows from readers. Each name is logged once.
    ///
    /// # Errors
    /// If the database does not answer.
    pub async fn schema_differences(&self) -> Result<Vec<String>, StoreError> {
        let expected = migration::AUDIT.for_engine(self.pools.engine);
        let objects = schema::differences(&self.pools, expected).await?;
        for object in objects.iter().filter(|object| self.watch.is_first_report_of(object)) {
            tracing::error!(
                object,
                "an object of the audit database is not as the migrations made it: it can hide entries or prevent \
                 them from being stored; find out who changed it, and restore or remove it"
            );
        }
        Ok(objects)
    }

    /// Looks up the privileges of our credential that sealing needs (spec/70 rule 25). Returns those that it lacks,
    /// such as `INSERT on entries`; until the next look-up, [`AuditStore::may_write`] is false if there are any.
    ///
    /// # Errors
    /// If the database does not answer.
    pub async fn missing_privileges(&self) -> Result<Vec<String>, StoreError> {
        dialect::missing_privileges(&self.pools, &NEEDED_PRIVILEGES).await
    }

    /// Whether our credential had the privileges that sealing needs when they were last looked up.
    pub fn may_write(&self) -> bool {
        self.pools.may_write()
    }

    /// Compares the indexes with the rows, for at most `limit`; see [`IndexCheck`].
    ///
    /// # Errors
    /// If the database does not answer.
    pub async fn check_indexes(&self, limit: Duration) -> Result<IndexCheck, StoreError> {
        schema::check_indexes(&self.pools, migration::AUDIT.for_engine(self.pools.engine), limit).await
    }

    /// Returns the last entry of each organization in a chain, including pruned ones; new entries continue from them.
    ///
    /// # Errors
    /// [`StoreError::Row`] if a stored row is malformed; any database error.
    pub async fn org_heads(&self, chain: ChainId) -> Result<Vec<(OrgId, OrgHead)>, StoreError> {
        let chain = chain_row(&self.pools.reader, chain, false).await?;
        let newest = Query::select()
            .expr(entries::Column::Seq.max())
            .from(entries::Entity)
            .and_where(entries::Column::ChainId.eq(chain.id))
            // Verification reports rows at and beyond the end of the chain.
            .and_where(entries::Column::Seq.lt(chain.size))
            .and_where(entries::Column::OrgId.is_not_null())
            .add_group_by([Expr::col(entries::Column::OrgId)])
            .take();
        // Reads no other column: an unreadable one must not stop the chain.
        let rows: Vec<(i64, Vec<u8>, Vec<u8>)> = entries::Entity::find()
            .select_only()
            .column(entries::Column::Id)
            .expr_as(bounds::value::<entries::Entity>(entries::Column::Bytes), "bytes")
            .expr_as(bounds::value::<entries::Entity>(entries::Column::Hash), "hash")
            .filter(entries::Column::ChainId.eq(chain.id))
            .filter(entries::Column::Seq.in_subquery(newest))
            .into_tuple()
            .all(&self.pools.reader)
            .await?;
        let mut heads = Vec::with_capacity(rows.len());
        for (id, bytes, hash) in rows {
            let bad = |column| StoreError::Row {
                table: "entries",
                column,
                id: id.to_string(),
            };
            let (header, _) = Header::read(&bytes).map_err(|_| bad("bytes"))?;
            let org = header.org.ok_or_else(|| bad("org_id"))?;
            let hash = Hash::try_from(hash.as_slice()).map_err(|_| bad("hash"))?;
            heads.push((
                org.id,
                OrgHead {
                    size: org.seq.saturating_add(1),
                    hash,
                },
            ));
        }
        for (org, head) in self.pruned_orgs(chain.id).await? {
            if !heads.iter().any(|(listed, _)| *listed == org) {
                heads.push((org, head));
            }
        }
        Ok(heads)
    }

    /// Stores a signed note. A stored note for the same size and era is not replaced. Fails with
    /// [`StoreError::NotKept`] unless the store returns an equivalent note afterwards.
    ///
    /// # Errors
    /// [`StoreError::NotFound`] if there is no such chain; [`StoreError::NotKept`] if the database does not return the
    /// note; [`StoreError::Row`] if a stored row is malformed; any database error.
    pub async fn insert_checkpoint(&self, chain: ChainId, size: u64, note: &str) -> Result<(), StoreError> {
        let attempt = self.watch.begin_note(chain);
        let chain = chain_row(&self.pools.reader, chain, false).await?;
        use checkpoints::Column as C;
        let era = signed(Checkpoint::unverified(note).map_or(0, |note| note.era()));
        let row = checkpoints::ActiveModel {
            id: self.next_id(&self.pools.writer, "checkpoints").await?,
            chain_id: Set(chain.id),
            size: Set(signed(size)),
            note: Set(note.to_owned()),
            era: Set(era),
        };
        let on_conflict = OnConflict::columns([C::ChainId, C::Size, C::Era]);
        checkpoints::Entity::insert(row)
            .on_conflict(on_conflict.to_owned().do_nothing().to_owned())
            .try_insert()
            .exec_without_returning(&self.pools.writer)
            .await
            .inspect_err(|error| {
                if dialect::is_numbering(error) {
                    self.watch.distrust("checkpoints");
                }
            })?;
        let stored = checkpoints::Entity::find()
            .filter(C::ChainId.eq(chain.id))
            .filter(C::Size.eq(signed(size)))
            .filter(C::Era.eq(era))
            .one(&self.pools.writer)
            .await?;
        // A note for the same tree by another key is equivalent; verification checks who signed.
        let is_equivalent = |stored: &checkpoints::Model| {
            stored.note == note
                || Checkpoint::unverified(&stored.note)
                    .is_some_and(|checkpoint| Checkpoint::unverified(note) == Some(checkpoint))
        };
        if !stored.as_ref().is_some_and(is_equivalent) {
            return Err(StoreError::NotKept("checkpoints"));
        }
        attempt.succeed();
        Ok(())
    }

    /// Whether a signed note of a chain is being written and waits: in this process or, if the database can tell, in
    /// another one.
    ///
    /// # Errors
    /// If the database does not answer.
    pub async fn is_note_waiting(&self, chain: ChainId) -> Result<bool, StoreError> {
        Ok(self.watch.is_writing_note(chain) || dialect::is_write_waiting(&self.pools.reader, "checkpoints").await?)
    }

    /// Takes the tampered rows that were read since the last call.
    pub fn take_tampered_reads(&self) -> BTreeSet<TamperedRead> {
        self.watch.take_tampered()
    }

    /// Returns the highest sequence number that a writer of the chain is known to have issued (HD25).
    ///
    /// # Errors
    /// [`StoreError::Row`] if a stored row is malformed; any database error.
    pub async fn issued(&self, chain: ChainId) -> Result<Option<u64>, StoreError> {
        Ok(u64::try_from(chain_row(&self.pools.reader, chain, false).await?.issued).ok())
    }

    /// Sets the issued numbers of a chain back to its entries: its writer continues the missing records in another
    /// chain.
    ///
    /// # Errors
    /// Any database error.
    pub async fn settle_issued(&self, chain: ChainId) -> Result<(), StoreError> {
        chains::Entity::update_many()
            .col_expr(chains::Column::Issued, Expr::cust("size - 1"))
            .filter(chains::Column::Stream.eq(chain.stream.as_str()))
            .filter(chains::Column::Shard.eq(chain.shard.0))
            .exec(&self.pools.writer)
            .await?;
        Ok(())
    }

    /// Returns the signed note of the largest size of a chain.
    ///
    /// # Errors
    /// [`StoreError::Row`] if a stored row is malformed; any database error.
    pub async fn last_checkpoint(&self, chain: ChainId) -> Result<Option<String>, StoreError> {
        let chain = chain_row(&self.pools.reader, chain, false).await?;
        let newest = checkpoints::Entity::find()
            .filter(checkpoints::Column::ChainId.eq(chain.id))
            .order_by_desc(checkpoints::Column::Size);
        Ok(self.first_checkpoint(newest).await?.map(|row| row.note))
    }

    /// Returns the signed notes of a chain, oldest first.
    ///
    /// # Errors
    /// [`StoreError::Row`] if a stored row is malformed; any database error.
    pub async fn checkpoints(&self, chain: ChainId) -> Result<Vec<String>, StoreError> {
        let chain = chain_row(&self.pools.reader, chain, false).await?;
        let notes = checkpoints::Entity::find()
            .filter(checkpoints::Column::ChainId.eq(chain.id))
            .order_by_asc(checkpoints::Column::Id);
        Ok(notes
            .all(&self.pools.reader)
            .await?
            .into_iter()
            .map(|row| row.note)
            .collect())
    }
}

/// Id, sequence number, hash, bytes and openings of an entry.
type RawRow = (i64, i64, Vec<u8>, Vec<u8>, Vec<u8>);

/// Most entries that one query returns.
const MOST_ENTRIES: u64 = 1_000_000;
/// The privileges that sealing needs.
const NEEDED_PRIVILEGES: [(&str, &str); 9] = [
    ("entries", "SELECT"),
    ("entries", "INSERT"),
    ("checkpoints", "SELECT"),
    ("checkpoints", "INSERT"),
    ("chains", "SELECT"),
    ("chains", "INSERT"),
    ("chains", "UPDATE"),
    ("journal_starts", "SELECT"),
    ("journal_starts", "INSERT"),
];
/// Most rows of `chains` that are read. Each start of an instance with an empty journal makes at most five.
pub(super) const MOST_CHAINS: u64 = 10_000;

/// Number of columns in a row of `entries`.
const COLUMNS: usize = 21;

/// Returns the first and last entry of a batch; fails if the batch has gaps.
fn ends(chain: ChainId, batch: &[ToSeal]) -> Result<Option<(&StoredEntry, &StoredEntry)>, StoreError> {
    let follows = |pair: &[ToSeal]| match pair {
        [one, next] => {
            next.entry.header.seq == one.entry.header.seq.saturating_add(1) && next.entry.header.prev == one.entry.hash
        }
        _ => true,
    };
    let own = batch.iter().all(|sealed| sealed.entry.header.chain == chain);
    if !own || !batch.windows(2).all(follows) {
        return Err(StoreError::Rule("batch_in_order"));
    }
    Ok(batch
        .first()
        .zip(batch.last())
        .map(|(first, last)| (&first.entry, &last.entry)))
}

/// All rows of `chains`. Instances assign positive ids, so the rows of others come last.
pub(super) fn all_chains() -> Select<chains::Entity> {
    chains::Entity::find()
        .order_by_desc(chains::Column::Id.gt(0))
        .order_by_asc(chains::Column::Id)
}

pub(super) async fn chain_row(
    conn: &impl ConnectionTrait,
    chain: ChainId,
    lock: bool,
) -> Result<chains::Model, StoreError> {
    let mut query = chains::Entity::find()
        .filter(chains::Column::Stream.eq(chain.stream.as_str()))
        .filter(chains::Column::Shard.eq(chain.shard.0));
    if lock {
        query = query.lock_exclusive();
    }
    query.one(conn).await?.ok_or(StoreError::NotFound(Missing::Chain))
}

/// Expression for the highest issued number, raised to at least `issued`; it never falls.
pub(super) fn raised(issued: u64) -> sea_orm::sea_query::SimpleExpr {
    let issued = signed(issued);
    Expr::case(chains::Column::Issued.lt(issued), issued)
        .finally(Expr::col(chains::Column::Issued))
        .into()
}

fn of_claim(claim: &Claim) -> sea_orm::Condition {
    sea_orm::Condition::all()
        .add(chains::Column::Stream.eq(claim.chain.stream.as_str()))
        .add(chains::Column::Shard.eq(claim.chain.shard.0))
        .add(chains::Column::Fence.eq(signed(claim.fence)))
}

pub(super) fn chain_of(row: &chains::Model) -> Result<ChainId, StoreError> {
    let stream: Stream = row.stream.parse().map_err(|_| bad_chain(row, "stream"))?;
    Ok(ChainId {
        stream,
        shard: ShardId(row.shard),
    })
}

/// Returns the value read from a chain's row; logs a malformed row and returns `None`.
pub(super) fn intact<T>(row: &chains::Model, read: Result<T, StoreError>) -> Option<T> {
    match read {
        Ok(read) => Some(read),
        Err(error) => {
            tracing::error!(
                row = row.id,
                shard = %row.shard,
                error = &error as &dyn core::error::Error,
                "a row of `chains` in the audit database is malformed, so this chain is not sealed; the other chains \
                 are: the likely cause is manual SQL; run `ledger-gateway audit verify`, and restore the row from a \
                 backup"
            );
            None
        }
    }
}

pub(super) fn head_of(row: &chains::Model) -> Result<Option<Head>, StoreError> {
    let size = unsigned(row.size, "size")?;
    let hash = Hash::try_from(row.head_hash.as_slice()).map_err(|_| bad_chain(row, "head_hash"))?;
    Ok((size > 0).then_some(Head {
        size,
        hash,
        time: Timestamp::from_micros(row.head_time),
    }))
}

fn bad_chain(row: &chains::Model, column: &'static str) -> StoreError {
    StoreError::Row {
        table: "chains",
        column,
        id: row.id.to_string(),
    }
}

/// The error of an entry that cannot be read.
fn malformed_entry(id: i64) -> StoreError {
    StoreError::Row {
        table: "entries",
        column: "bytes",
        id: id.to_string(),
    }
}

fn sealed_row(row: entries::Model) -> Result<SealedRow, StoreError> {
    // The verifier reports an unreadable row; reading it must not fail.
    let hash = Hash::try_from(row.hash.as_slice()).ok();
    let entry = StoredEntry::new(row.bytes.clone(), row.openings.clone());
    let columns = entry.and_then(|entry| Columns::from_entry(&entry));
    let columns_agree = columns.is_ok_and(|columns| columns.stand_in(&row));
    Ok(SealedRow {
        id: row.id,
        seq: unsigned(row.seq, "seq")?,
        hash: hash.unwrap_or(Hash::ZERO),
        hash_readable: hash.is_some(),
        bytes: row.bytes,
        openings: row.openings,
        columns_agree,
    })
}

/// The column value of a number to read from; `None` if no row can have this number or a higher one. Reading from the
/// highest number instead would return its row again and again.
pub(super) fn column_value(number: u64) -> Option<i64> {
    i64::try_from(number).ok()
}

pub(super) fn signed(number: u64) -> i64 {
    i64::try_from(number).unwrap_or(i64::MAX)
}

pub(super) fn unsigned(number: i64, column: &'static str) -> Result<u64, StoreError> {
    u64::try_from(number).map_err(|_| StoreError::Row {
        table: "chains",
        column,
        id: number.to_string(),
    })
}
