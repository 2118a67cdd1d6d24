//! Removal of the first entries of a chain (spec/70 rules 23 and 24).
//!
//! Invariant: entries are deleted in the transaction that stores their hashes and the signed anchor that follows them.
//! An entry is deleted only if it was verified to be as sealed and lies below a checkpoint that one of our keys signed
//! and whose root the entries produce. Any other entry is evidence and stays, with all entries after it.

use super::{
    anchors::{HASH, TILE, newest_anchor},
    chain_rows::{chain_of, chain_row, column_value, intact, signed, unsigned},
    columns::Columns,
    logged_holds::hold_id,
    readable::{CHUNK_BYTES, count_within, row_sizes},
    store::AuditStore,
};
use crate::{
    StoreError, dialect,
    entity::{anchors, bounds, checkpoints, entries, hash_tiles, leases},
    record::{Holds, PruneReason},
};
use gw_audit::{
    Action, Anchor, ChainId, Checkpoint, CheckpointKey, CheckpointPublicKey, Hash, Header, Kind, Removal, ResourceType,
    StoredEntry, Stream, tree::Frontier,
};
use gw_types::{Seconds, Timestamp};
use sea_orm::{
    ActiveValue::{NotSet, Set},
    ColumnTrait, Condition, ConnectionTrait, EntityTrait, QueryFilter, QueryOrder, QuerySelect,
    sea_query::{Expr, OnConflict, Query},
};
use std::collections::HashSet;

/// Minimum age of removed entries: journals and outbox keep records at least this long, so that they can seal them
/// again if the audit store is restored to an earlier state (HD25).
pub const MIN_AGE: Seconds = Seconds(24 * 3600);

/// Pages of 4 KiB returned to the file system per call.
const PAGES_GIVEN_BACK: u32 = 2048;
/// Hashes read per query.
const PAGE: u64 = 5000;

/// One batch of a prune.
#[derive(Clone, Debug)]
pub struct PruneBatch<'a> {
    /// The reason.
    pub reason: PruneReason,
    /// The retention, such as `2160h`, or the maximum number of rows; recorded in the audit entry.
    pub bound: &'a str,
    /// Removes only entries made before this time, and none younger than [`MIN_AGE`].
    pub before: Timestamp,
    /// Maximum number of entries.
    pub limit: u64,
    /// The legal holds to respect.
    pub holds: &'a Holds,
    /// The deployment to which the chains belong.
    pub cluster: &'a str,
    /// Signs the anchor.
    pub key: &'a CheckpointKey,
    /// Public keys of the checkpoints, including old ones.
    pub keys: &'a [CheckpointPublicKey],
}

/// The result of a batch.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Pruned {
    /// Number of entries removed.
    pub count: u64,
    /// Why the next entry stays; `None` if the batch was full.
    pub stopped: Option<StopReason>,
}

/// Why an entry stays.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum StopReason {
    /// The entry is not old enough, or there is none.
    Young,
    /// A legal hold covers the entry.
    Held,
    /// The entry is the intent of a send without an outcome.
    OpenSend {
        /// The sequence number of the intent.
        seq: u64,
    },
    /// No checkpoint signed by one of our keys covers the entry.
    Unsigned,
    /// The entry, or one before it, was changed after sealing; `audit verify` examines it.
    Tampered {
        /// The first suspect sequence number.
        seq: u64,
    },
}

/// The remaining part of a chain.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Remaining {
    /// The chain.
    pub chain: ChainId,
    /// The sequence number of its first entry.
    pub first: u64,
    /// The sequence number of the next entry to be sealed.
    pub size: u64,
    /// Time of the first entry, from its column.
    pub since: Option<Timestamp>,
}

impl AuditStore {
    /// Takes or renews the lease for work that one instance does at a time. Returns false while another instance holds
    /// it, by the database's clock if it has one. A lease that lasts longer than any instance takes one for is ignored.
    ///
    /// # Errors
    /// If the database fails.
    pub async fn take_turn(&self, work: &str, holder: &str, life: Seconds) -> Result<bool, StoreError> {
        let now = dialect::lease_time(&self.pools.writer, self.config.clock.now()).await?;
        let possible = now.plus(life).plus(life).micros();
        let fresh = leases::ActiveModel {
            name: Set(work.to_owned()),
            holder: Set(holder.to_owned()),
            leased_until: Set(0),
        };
        let on_conflict = OnConflict::column(leases::Column::Name).do_nothing().to_owned();
        leases::Entity::insert(fresh)
            .on_conflict(on_conflict)
            .try_insert()
            .exec_without_returning(&self.pools.writer)
            .await?;
        let impossible = leases::Entity::find_by_id(work)
            .filter(leases::Column::LeasedUntil.gt(possible))
            .one(&self.pools.writer)
            .await?;
        if let Some(held) = impossible {
            tracing::warn!(
                work,
                holder = held.holder,
                leased_until = held.leased_until,
                "a row of `leases` in the audit database expires later than any instance sets: the likely cause is \
                 manual SQL or a clock that was far ahead; this instance takes the lease over; check the clocks of all \
                 instances"
            );
        }
        let taken = leases::Entity::update_many()
            .col_expr(leases::Column::Holder, Expr::value(holder))
            .col_expr(leases::Column::LeasedUntil, Expr::value(now.plus(life).micros()))
            .filter(leases::Column::Name.eq(work))
            .filter(
                Condition::any()
                    .add(leases::Column::Holder.eq(holder))
                    .add(leases::Column::LeasedUntil.lte(now.micros()))
                    .add(leases::Column::LeasedUntil.gt(possible)),
            )
            .exec(&self.pools.writer)
            .await?;
        Ok(taken.rows_affected == 1)
    }

    /// Returns the remaining parts of the chains of a stream.
    ///
    /// # Errors
    /// If the database fails.
    pub async fn remaining(&self, stream: Stream) -> Result<Vec<Remaining>, StoreError> {
        let rows = self.chain_rows().await?;
        let mut remaining = Vec::new();
        for row in rows.into_iter().filter(|row| row.stream == stream.as_str()) {
            // A malformed row does not keep other chains from being pruned.
            let read = chain_of(&row).and_then(|chain| Ok((chain, unsigned(row.size, "size")?)));
            let Some((chain, size)) = intact(&row, read) else {
                continue;
            };
            let first = newest_anchor(&self.pools.reader, row.id)
                .await?
                .map_or(0, |anchor| anchor.size);
            let since = entries::Entity::find()
                .select_only()
                .column(entries::Column::CreatedAt)
                .filter(entries::Column::ChainId.eq(row.id))
                .filter(entries::Column::Seq.gte(first))
                .order_by_asc(entries::Column::Seq)
                .into_tuple::<i64>()
                .one(&self.pools.reader)
                .await?;
            remaining.push(Remaining {
                chain,
                first: unsigned(first, "size")?,
                size,
                since: since.map(Timestamp::from_micros),
            });
        }
        Ok(remaining)
    }

    /// Returns the entry hashes of a chain from a sequence number on, including those of pruned entries, in order and
    /// without gaps.
    ///
    /// # Errors
    /// If the database fails or a row is malformed.
    pub async fn leaves(&self, chain: ChainId, from: u64, limit: u64) -> Result<Vec<Hash>, StoreError> {
        let chain = chain_row(&self.pools.reader, chain, false).await?;
        let pruned = newest_anchor(&self.pools.reader, chain.id)
            .await?
            .map_or(0, |anchor| anchor.size);
        let pruned = unsigned(pruned, "size")?;
        let mut leaves = Vec::new();
        if from < pruned {
            let tiles = hash_tiles::Entity::find()
                .filter(hash_tiles::Column::ChainId.eq(chain.id))
                .filter(hash_tiles::Column::Tile.gte(signed(from / TILE)))
                .order_by_asc(hash_tiles::Column::Tile)
                .limit(limit / TILE + 2)
                .all(&self.pools.reader)
                .await?;
            let mut next = from;
            for tile in tiles {
                let bad = || StoreError::Row {
                    table: "hash_tiles",
                    column: "hashes",
                    id: tile.id.to_string(),
                };
                if unsigned(tile.tile, "tile")? != next / TILE {
                    return Err(bad());
                }
                let skip = usize::try_from(next % TILE).unwrap_or_default();
                let room = usize::try_from(limit.saturating_sub(next - from).min(pruned - next)).unwrap_or(usize::MAX);
                for hash in tile.hashes.chunks(HASH).skip(skip).take(room) {
                    leaves.push(Hash::try_from(hash).map_err(|_| bad())?);
                    next += 1;
                }
                if next >= pruned || next - from >= limit {
                    break;
                }
            }
            return Ok(leaves);
        }
        let rows = hashes(&self.pools.reader, chain.id, from, limit).await?;
        for ((seq, hash), expected) in rows.into_iter().zip(from..) {
            let bad = || StoreError::Row {
                table: "entries",
                column: "hash",
                id: seq.to_string(),
            };
            if seq != signed(expected) {
                break;
            }
            leaves.push(Hash::try_from(hash.as_slice()).map_err(|_| bad())?);
        }
        Ok(leaves)
    }

    /// Removes entries from the start of a chain, as many as the batch allows.
    ///
    /// # Errors
    /// If the database fails; then nothing was removed.
    pub async fn prune(&self, chain: ChainId, batch: &PruneBatch<'_>) -> Result<Pruned, StoreError> {
        let row = chain_row(&self.pools.reader, chain, false).await?;
        let anchor = newest_anchor(&self.pools.reader, row.id).await?;
        let from = anchor.as_ref().map_or(0, |anchor| anchor.size);
        let tampered = |seq| {
            Ok(Pruned {
                count: 0,
                stopped: Some(StopReason::Tampered { seq }),
            })
        };
        let before = batch.before.min(self.config.clock.now().minus(MIN_AGE));
        let rows = entries::Entity::find()
            .filter(entries::Column::ChainId.eq(row.id))
            .filter(entries::Column::Seq.gte(from))
            .order_by_asc(entries::Column::Seq);
        let sizes = row_sizes(&self.pools.reader, &rows, batch.limit).await?;
        // Fewer rows than the batch allows mean that the chain ends, unless the rows are long.
        let limit = match count_within::<entries::Entity>(&sizes, CHUNK_BYTES) {
            count if count < sizes.len() => u64::try_from(count).unwrap_or(batch.limit),
            _ => batch.limit,
        };
        let batch = &PruneBatch { limit, ..batch.clone() };
        let rows = rows.limit(limit).all(&self.pools.reader).await?;
        let (may_go, mut stopped) = self.prunable(chain, &rows, before, batch).await?;
        let Some(checkpoint) = self.covering_checkpoint(row.id, from, signed_len(from, may_go)).await? else {
            return Ok(Pruned {
                count: 0,
                stopped: Some(stopped.filter(|_| may_go == 0).unwrap_or(StopReason::Unsigned)),
            });
        };
        let end = checkpoint.size.min(signed_len(from, may_go));
        if end < signed_len(from, may_go) {
            stopped = Some(StopReason::Unsigned);
        }
        let count = usize::try_from(end - from).unwrap_or_default();
        if count == 0 {
            return Ok(Pruned { count: 0, stopped });
        }
        // Entries are verified completely before removal, and must be as signed.
        let known = match &anchor {
            Some(row) => match Anchor::open(&row.bytes, &row.note, chain, batch.cluster, batch.keys) {
                Ok(known) if signed(known.head.size) == from => Some(known),
                Ok(_) | Err(_) => return tampered(unsigned(from, "size")?),
            },
            None => None,
        };
        let Some(mut removal) = Removal::after(chain, known.as_ref()) else {
            return tampered(unsigned(from, "size")?);
        };
        let going = rows.get(..count).unwrap_or_default();
        for row in going {
            let sound = StoredEntry::new(row.bytes.clone(), row.openings.clone())
                .and_then(|entry| Columns::from_entry(&entry))
                .is_ok_and(|columns| columns.stand_in(row));
            if !sound || removal.take(&row.bytes, &row.openings, &row.hash).is_err() {
                return tampered(unsigned(row.seq, "seq")?);
            }
        }
        if !self.makes_root(chain, row.id, &removal, &checkpoint, batch).await? {
            return tampered(unsigned(from, "size")?);
        }
        let Some(next) = removal.anchor() else {
            return tampered(unsigned(from, "size")?);
        };
        self.remove(row.id, anchor.as_ref(), going, &next, checkpoint.size, batch)
            .await?;
        Ok(Pruned {
            count: unsigned(end - from, "size")?,
            stopped,
        })
    }

    /// Counts the rows at the start of a chain that age, holds and sends allow to remove; and returns why no more.
    async fn prunable(
        &self,
        chain: ChainId,
        rows: &[entries::Model],
        before: Timestamp,
        batch: &PruneBatch<'_>,
    ) -> Result<(usize, Option<StopReason>), StoreError> {
        let (mut count, mut stopped) = (0, None);
        // The newest entry of a mutation records the outbox position: without it all earlier rows would count as
        // missing.
        let newest = match chain.stream {
            Stream::Admin => self.newest_mutation(chain, None).await?.map(|newest| newest.seq),
            Stream::Access | Stream::Compliance | Stream::Disclosure | Stream::Security => None,
        };
        let mut intents = Vec::new();
        for (at, row) in rows.iter().enumerate() {
            // The age comes from the hashed bytes: a changed column must not make an entry look old.
            let Ok((header, _)) = Header::read(&row.bytes) else {
                stopped = Some(StopReason::Tampered {
                    seq: unsigned(row.seq, "seq")?,
                });
                break;
            };
            // A genesis with time zero has no age: it counts as old as the entry after it, and stays with that entry
            // (rule 6).
            let is_timeless = header.kind == Kind::Genesis && header.time.micros() == 0;
            let behind = rows.get(at + 1).and_then(|next| Header::read(&next.bytes).ok());
            let time = if is_timeless {
                behind.map(|(next, _)| next.time)
            } else {
                Some(header.time)
            };
            if time.is_none_or(|time| time >= before) || newest.is_some_and(|newest| row.seq >= newest) {
                stopped = Some(StopReason::Young);
                break;
            }
            if batch.holds.keep(chain.stream, header.org.map(|org| org.id)) || places_hold(row, batch.holds) {
                stopped = Some(StopReason::Held);
                break;
            }
            if header.kind == Kind::SendIntent {
                intents.push((count, row.seq, row.tx_hash.clone().unwrap_or_default()));
            }
            count += 1;
        }
        if stopped.is_none() && (rows.len() as u64) < batch.limit {
            stopped = Some(StopReason::Young);
        }
        if !intents.is_empty() {
            let outcomes: Vec<String> = entries::Entity::find()
                .select_only()
                .expr_as(bounds::value::<entries::Entity>(entries::Column::TxHash), "tx_hash")
                .filter(entries::Column::TxHash.is_in(intents.iter().map(|(_, _, hash)| hash)))
                .filter(entries::Column::Kind.eq(Kind::SendOutcome.as_str()))
                .into_tuple()
                .all(&self.pools.reader)
                .await?;
            let outcomes: HashSet<_> = outcomes.into_iter().collect();
            if let Some((at, seq, _)) = intents.into_iter().find(|(_, _, hash)| !outcomes.contains(hash)) {
                count = at;
                stopped = Some(StopReason::OpenSend {
                    seq: unsigned(seq, "seq")?,
                });
            }
        }
        Ok((count, stopped))
    }

    /// Returns the checkpoint with the smallest size at or above `end`, or else the one with the largest size above
    /// `from`.
    async fn covering_checkpoint(
        &self,
        chain: i64,
        from: i64,
        end: i64,
    ) -> Result<Option<checkpoints::Model>, StoreError> {
        use checkpoints::Column as C;
        let of_chain = || {
            checkpoints::Entity::find()
                .filter(C::ChainId.eq(chain))
                .filter(C::Size.gt(from))
        };
        let above = of_chain()
            .filter(C::Size.gte(end))
            .order_by_asc(C::Size)
            .one(&self.pools.reader)
            .await?;
        if above.is_some() {
            return Ok(above);
        }
        Ok(of_chain().order_by_desc(C::Size).one(&self.pools.reader).await?)
    }

    /// Whether the removed entries and those after them produce the signed root.
    async fn makes_root(
        &self,
        chain: ChainId,
        chain_id: i64,
        removal: &Removal,
        checkpoint: &checkpoints::Model,
        batch: &PruneBatch<'_>,
    ) -> Result<bool, StoreError> {
        let Ok(signed_root) = Checkpoint::open(&checkpoint.note, batch.keys) else {
            return Ok(false);
        };
        let size = unsigned(checkpoint.size, "size")?;
        if signed_root.origin != chain.origin(batch.cluster) || signed_root.size != size {
            return Ok(false);
        }
        let mut frontier: Frontier = removal.frontier().clone();
        while frontier.size() < size {
            let next = frontier.size();
            let rows = hashes(&self.pools.reader, chain_id, next, PAGE.min(size - next)).await?;
            for ((seq, hash), expected) in rows.iter().zip(next..) {
                let Ok(hash) = Hash::try_from(hash.as_slice()) else {
                    return Ok(false);
                };
                if *seq != signed(expected) {
                    return Ok(false);
                }
                frontier.push(hash);
            }
            if rows.is_empty() {
                return Ok(false);
            }
        }
        Ok(frontier.root() == signed_root.root)
    }

    /// Stores the hashes, writes the anchor and deletes the entries, in one transaction.
    async fn remove(
        &self,
        chain: i64,
        known: Option<&anchors::Model>,
        going: &[entries::Model],
        next: &Anchor,
        checkpoint: i64,
        batch: &PruneBatch<'_>,
    ) -> Result<(), StoreError> {
        let from = known.map_or(0, |anchor| anchor.size);
        let end = signed(next.head.size);
        let tx = self.pools.begin_write().await?;
        if newest_anchor(&tx, chain).await?.map_or(0, |anchor| anchor.size) != from {
            return Err(StoreError::Rule("one_prune_at_a_time"));
        }
        let tile = self.free_id(&tx, "hash_tiles").await?;
        keep_hashes(&tx, chain, unsigned(from, "size")?, going, tile).await?;
        // Batches count as one prune until the prune's audit entry is written: the next batch replaces the anchor.
        let same = known.filter(|row| !row.logged && row.reason == batch.reason.as_str() && row.bound == batch.bound);
        let ids = || going.iter().map(|row| row.id);
        let lowest = ids().chain(same.map(|row| row.lowest_id)).min().unwrap_or_default();
        let highest = ids().chain(same.map(|row| row.highest_id)).max().unwrap_or_default();
        if let Some(row) = same {
            anchors::Entity::delete_by_id(row.id).exec(&tx).await?;
        }
        let id = self.next_id(&tx, "anchors").await?;
        let row = anchors::ActiveModel {
            id,
            chain_id: Set(chain),
            size: Set(end),
            bytes: Set(next.bytes()),
            note: Set(next.sign(batch.cluster, batch.key)),
            checkpoint_size: Set(checkpoint),
            reason: Set(batch.reason.as_str().to_owned()),
            bound: Set(batch.bound.to_owned()),
            first_seq: Set(same.map_or(from, |row| row.first_seq)),
            lowest_id: Set(lowest),
            highest_id: Set(highest),
            created_at: Set(self.config.clock.now().micros()),
            logged: Set(false),
        };
        anchors::Entity::insert(row).exec_without_returning(&tx).await?;
        // Without the anchor, entries about to be deleted could not be told from entries that an attacker deleted.
        if newest_anchor(&tx, chain).await?.is_none_or(|kept| kept.size != end) {
            return Err(StoreError::NotKept("anchors"));
        }
        let gone = entries::Entity::delete_many()
            .filter(entries::Column::ChainId.eq(chain))
            .filter(entries::Column::Seq.lt(end))
            .exec(&tx)
            .await?;
        if gone.rows_affected != going.len() as u64 {
            return Err(StoreError::Rule("only_what_was_looked_at"));
        }
        tx.commit().await
    }

    /// Returns space freed by pruning to the file system, a few megabytes per call. A file created before this was
    /// supported returns none; new entries reuse the space.
    ///
    /// # Errors
    /// If the database fails.
    pub async fn give_back_space(&self) -> Result<(), StoreError> {
        Ok(self.pools.give_back(PAGES_GIVEN_BACK).await?)
    }

    /// Deletes the checkpoints of pruned sizes that no anchor refers to, and returns their number.
    ///
    /// # Errors
    /// If the database fails.
    pub async fn thin_checkpoints(&self, chain: ChainId) -> Result<u64, StoreError> {
        let chain = chain_row(&self.pools.reader, chain, false).await?;
        let Some(anchor) = newest_anchor(&self.pools.reader, chain.id).await? else {
            return Ok(0);
        };
        let kept = Query::select()
            .column(anchors::Column::CheckpointSize)
            .from(anchors::Entity)
            .and_where(anchors::Column::ChainId.eq(chain.id))
            .take();
        let gone = checkpoints::Entity::delete_many()
            .filter(checkpoints::Column::ChainId.eq(chain.id))
            .filter(checkpoints::Column::Size.lt(anchor.size))
            .filter(checkpoints::Column::Size.not_in_subquery(kept))
            .exec(&self.pools.writer)
            .await?;
        Ok(gone.rows_affected)
    }
}

/// Whether an entry placed one of the holds: the log proves the hold by this entry. Its columns are verified before it
/// is removed.
pub(super) fn places_hold(row: &entries::Model, holds: &Holds) -> bool {
    row.kind == Kind::Admin.as_str()
        && row.resource_type.as_deref() == Some(ResourceType::Audit.as_str())
        && row.action.as_deref() == Some(Action::Create.as_str())
        && hold_id(row.resource_id.as_deref()).is_some_and(|hold| holds.have(hold))
}

fn signed_len(from: i64, count: usize) -> i64 {
    from.saturating_add(i64::try_from(count).unwrap_or(i64::MAX))
}

/// Reads sequence numbers and hashes of stored entries, without the entries.
async fn hashes(
    conn: &impl ConnectionTrait,
    chain: i64,
    from: u64,
    limit: u64,
) -> Result<Vec<(i64, Vec<u8>)>, StoreError> {
    let Some(from) = column_value(from) else {
        return Ok(Vec::new());
    };
    let query = entries::Entity::find()
        .select_only()
        .column(entries::Column::Seq)
        .expr_as(bounds::value::<entries::Entity>(entries::Column::Hash), "hash")
        .filter(entries::Column::ChainId.eq(chain))
        .filter(entries::Column::Seq.gte(from))
        .order_by_asc(entries::Column::Seq)
        .limit(limit);
    Ok(query.into_tuple().all(conn).await?)
}

/// Appends the hashes of removed entries to the tiles of their chain.
async fn keep_hashes(
    tx: &impl ConnectionTrait,
    chain: i64,
    from: u64,
    going: &[entries::Model],
    id: Option<i64>,
) -> Result<(), StoreError> {
    let (first, within) = (from / TILE, usize::try_from(from % TILE).unwrap_or_default());
    let open = hash_tiles::Entity::find()
        .filter(hash_tiles::Column::ChainId.eq(chain))
        .filter(hash_tiles::Column::Tile.eq(signed(first)))
        .one(tx)
        .await?;
    let mut all = open.map(|tile| tile.hashes).unwrap_or_default();
    if all.len() != within * HASH {
        return Err(StoreError::Row {
            table: "hash_tiles",
            column: "hashes",
            id: first.to_string(),
        });
    }
    for row in going {
        all.extend_from_slice(&row.hash);
    }
    let width = usize::try_from(TILE).unwrap_or_default() * HASH;
    for (tile, hashes) in (first..).zip(all.chunks(width)) {
        let row = hash_tiles::ActiveModel {
            id: id.map_or(NotSet, |id| Set(id.saturating_add(signed(tile - first)))),
            chain_id: Set(chain),
            tile: Set(signed(tile)),
            hashes: Set(hashes.to_vec()),
        };
        let on_conflict = OnConflict::columns([hash_tiles::Column::ChainId, hash_tiles::Column::Tile])
            .update_column(hash_tiles::Column::Hashes)
            .to_owned();
        hash_tiles::Entity::insert(row)
            .on_conflict(on_conflict)
            .exec_without_returning(tx)
            .await?;
    }
    Ok(())
}
