//! Queries of the audit store for verification besides the rows, and writes for re-anchoring (spec/70 rules 19 to 22).

use super::{
    chain_rows::{chain_of, chain_row, column_value, head_of, intact, raised, signed, unsigned},
    readable::{CHUNK_BYTES, MOST_BYTES, MOST_ROWS, count_within, readable_rows, row_sizes},
    sealing::Claim,
    store::AuditStore,
};
use crate::{
    StoreError, dialect,
    entity::{bounds, chains, checkpoints, discontinuities, entries},
};
use gw_audit::{
    ChainId, Checkpoint, Content, Hash, Head, Kind, Record, SecurityKind, StoredEntry, outbox::foreign_entry, tree,
};
use gw_types::{Seconds, Timestamp};
use sea_orm::{
    ActiveValue::Set, ColumnTrait, EntityTrait, QueryFilter, QueryOrder, QuerySelect, Select, sea_query::Expr,
};

/// Rows per query.
const PAGE: u64 = 4096;

/// A chain as stored in its row.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ChainState {
    /// The chain.
    pub chain: ChainId,
    /// The end of its sealed part; `None` if nothing is sealed.
    pub head: Option<Head>,
    /// The highest sequence number that a writer is known to have issued (HD25).
    pub issued: Option<u64>,
    /// End of its writer's lease.
    pub leased_until: Timestamp,
}

/// A signed note with its row id.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SignedNote {
    /// The row id; later notes have higher ids.
    pub id: i64,
    /// The note.
    pub note: String,
    /// Whether the row's columns agree with the note.
    pub columns_agree: bool,
}

/// The signed notes of a chain.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct SignedNotes {
    /// The readable notes, oldest first.
    pub notes: Vec<SignedNote>,
    /// The ids of the rows with a value of a wrong type.
    pub malformed: Vec<i64>,
}

impl AuditStore {
    /// Returns every chain with the state of its writer; malformed rows are left out as in [`AuditStore::chains`].
    ///
    /// # Errors
    /// If the database does not answer.
    pub async fn chain_states(&self) -> Result<Vec<ChainState>, StoreError> {
        let rows = self.chain_rows().await?;
        let state = |row: &chains::Model| {
            Ok(ChainState {
                chain: chain_of(row)?,
                head: head_of(row)?,
                issued: u64::try_from(row.issued).ok(),
                leased_until: Timestamp::from_micros(row.leased_until),
            })
        };
        Ok(rows.iter().filter_map(|row| intact(row, state(row))).collect())
    }

    /// Returns the hash over the bytes of one entry, or the stored hash of a pruned entry; `None` if there is neither.
    ///
    /// # Errors
    /// If the database does not answer.
    pub async fn computed_hash(&self, id: ChainId, seq: u64) -> Result<Option<Hash>, StoreError> {
        let chain = match chain_row(&self.pools.reader, id, false).await {
            Ok(row) => row,
            Err(StoreError::NotFound(_)) => return Ok(None),
            Err(error) => return Err(error),
        };
        let bytes: Option<Vec<u8>> = entries::Entity::find()
            .select_only()
            .expr_as(bounds::value::<entries::Entity>(entries::Column::Bytes), "bytes")
            .filter(entries::Column::ChainId.eq(chain.id))
            .filter(entries::Column::Seq.eq(signed(seq)))
            .into_tuple()
            .one(&self.pools.reader)
            .await?;
        match bytes {
            Some(bytes) => Ok(Some(tree::leaf(&bytes))),
            None if self.anchor(id).await?.is_some_and(|anchor| seq < anchor.size) => {
                Ok(self.leaves(id, seq, 1).await?.first().copied())
            }
            None => Ok(None),
        }
    }

    /// Returns the stored hashes of a chain from a sequence number on, in order: the leaves of entries that are not
    /// read completely.
    ///
    /// # Errors
    /// If the database does not answer.
    pub async fn stored_hashes(&self, chain: ChainId, from: u64, limit: u64) -> Result<Vec<(u64, Hash)>, StoreError> {
        let Some(from) = column_value(from) else {
            return Ok(Vec::new());
        };
        let chain = chain_row(&self.pools.reader, chain, false).await?;
        let rows: Vec<(i64, Vec<u8>)> = entries::Entity::find()
            .select_only()
            .column(entries::Column::Seq)
            .expr_as(bounds::value::<entries::Entity>(entries::Column::Hash), "hash")
            .filter(entries::Column::ChainId.eq(chain.id))
            .filter(entries::Column::Seq.gte(from))
            .order_by_asc(entries::Column::Seq)
            .limit(limit)
            .into_tuple()
            .all(&self.pools.reader)
            .await?;
        let hash = |(seq, hash): (i64, Vec<u8>)| {
            Ok((
                unsigned(seq, "seq")?,
                Hash::try_from(hash.as_slice()).unwrap_or(Hash::ZERO),
            ))
        };
        rows.into_iter().map(hash).collect()
    }

    /// Returns the signed notes of a chain with an id above `after`, oldest first.
    ///
    /// # Errors
    /// If the database does not answer.
    pub async fn checkpoints_after(&self, chain: ChainId, after: i64) -> Result<SignedNotes, StoreError> {
        let chain = chain_row(&self.pools.reader, chain, false).await?;
        let (mut notes, mut after, mut bytes) = (SignedNotes::default(), after, 0_u64);
        loop {
            let select = checkpoints::Entity::find()
                .filter(checkpoints::Column::ChainId.eq(chain.id))
                .filter(checkpoints::Column::Id.gt(after))
                .order_by_asc(checkpoints::Column::Id);
            let read = readable_rows(&self.pools.reader, select, PAGE).await?;
            bytes = bytes.saturating_add(read.bytes);
            notes.notes.extend(read.rows.into_iter().map(signed_note));
            notes.malformed.extend(read.malformed);
            let Some(unread) = read.unread else { break };
            if bytes > MOST_BYTES {
                notes.malformed.push(unread);
                break;
            }
            after = unread.saturating_sub(1);
        }
        self.report_malformed_rows("checkpoints", &notes.malformed);
        Ok(notes)
    }

    /// Returns the first readable row of a query.
    pub(super) async fn first_checkpoint(
        &self,
        select: Select<checkpoints::Entity>,
    ) -> Result<Option<checkpoints::Model>, StoreError> {
        let conn = &self.pools.reader;
        match select.clone().one(conn).await.map_err(StoreError::from) {
            Err(error) if error.is_malformed() => {}
            read => return read,
        }
        // The rows around a malformed one suffice: an order by size or id has the newest rows first.
        let read = readable_rows(conn, select, PAGE).await?;
        self.report_malformed_rows("checkpoints", &read.malformed);
        Ok(read.rows.into_iter().next())
    }

    /// Returns the newest note and the one of the largest size; they differ after a re-anchoring.
    ///
    /// # Errors
    /// If the database does not answer.
    pub async fn newest_checkpoints(&self, chain: ChainId) -> Result<Vec<SignedNote>, StoreError> {
        let chain = chain_row(&self.pools.reader, chain, false).await?;
        let of_chain = || checkpoints::Entity::find().filter(checkpoints::Column::ChainId.eq(chain.id));
        let last = self
            .first_checkpoint(of_chain().order_by_desc(checkpoints::Column::Id))
            .await?;
        let largest = self
            .first_checkpoint(of_chain().order_by_desc(checkpoints::Column::Size))
            .await?;
        let mut notes: Vec<_> = last.into_iter().chain(largest).map(signed_note).collect();
        notes.dedup();
        Ok(notes)
    }

    /// Returns the signed notes about re-anchorings of all chains, oldest first. Malformed rows are left out.
    ///
    /// # Errors
    /// If the database does not answer.
    pub async fn discontinuities(&self) -> Result<Vec<(ChainId, String)>, StoreError> {
        Ok(self.read_discontinuities().await?.0)
    }

    /// Returns the ids of the rows of `discontinuities` that name no chain or have a value of a wrong type.
    ///
    /// # Errors
    /// If the database does not answer.
    pub async fn malformed_discontinuities(&self) -> Result<Vec<i64>, StoreError> {
        Ok(self.read_discontinuities().await?.1)
    }

    async fn read_discontinuities(&self) -> Result<(Vec<(ChainId, String)>, Vec<i64>), StoreError> {
        let select = discontinuities::Entity::find().order_by_asc(discontinuities::Column::Id);
        let read = readable_rows(&self.pools.reader, select, MOST_ROWS).await?;
        let (mut notes, mut malformed) = (Vec::new(), read.malformed);
        malformed.extend(read.unread);
        for row in read.rows {
            match format!("{}/{}", row.stream, row.shard.as_hyphenated()).parse() {
                Ok(chain) => notes.push((chain, row.note)),
                Err(_) => malformed.push(row.id),
            }
        }
        self.report_malformed_rows("discontinuities", &malformed);
        Ok((notes, malformed))
    }

    /// Returns the entries of the administrative chain that the gateway reported as written by no mutation, with the
    /// time of the report. The reports are sealed security events, read from their hashed bytes.
    ///
    /// # Errors
    /// If the database does not answer.
    pub async fn foreign_entries(&self) -> Result<Vec<(u64, Timestamp)>, StoreError> {
        let conn = &self.pools.reader;
        let reports = |after: i64| {
            entries::Entity::find()
                .filter(entries::Column::Id.gt(after))
                .filter(entries::Column::Kind.eq(Kind::Security.as_str()))
                .filter(entries::Column::Action.eq(SecurityKind::TamperDetected.as_str()))
                .order_by_asc(entries::Column::Id)
        };
        let foreign_report = |(_, bytes, openings)| {
            let entry = StoredEntry::new(bytes, openings).ok()?;
            match entry.content().ok()? {
                Content::Record(Record::Security(event)) => Some((foreign_entry(&event)?, entry.header.time)),
                Content::Record(_) | Content::Genesis(_) => None,
            }
        };
        let (mut foreign, mut after) = (Vec::new(), i64::MIN);
        loop {
            let sizes = row_sizes(conn, &reports(after), PAGE).await?;
            let count = count_within::<entries::Entity>(&sizes, CHUNK_BYTES);
            let rows = reports(after)
                .select_only()
                .column(entries::Column::Id)
                .column_as(dialect::as_bytes(conn, "bytes", bounds::ENTRY), "bytes")
                .column_as(dialect::as_bytes(conn, "openings", bounds::ENTRY), "openings")
                .limit(u64::try_from(count).unwrap_or(PAGE));
            let rows: Vec<(i64, Vec<u8>, Vec<u8>)> = rows.into_tuple().all(conn).await?;
            let Some((last, _, _)) = rows.last() else {
                return Ok(foreign);
            };
            after = *last;
            foreign.extend(rows.into_iter().filter_map(foreign_report));
        }
    }

    /// Stores a signed note about a re-anchoring.
    ///
    /// # Errors
    /// If the database does not answer, or does not return the note afterwards.
    pub async fn insert_discontinuity(&self, chain: ChainId, note: &str) -> Result<(), StoreError> {
        let row = discontinuities::ActiveModel {
            id: self.next_id(&self.pools.writer, "discontinuities").await?,
            stream: Set(chain.stream.as_str().to_owned()),
            shard: Set(chain.shard.0),
            note: Set(note.to_owned()),
        };
        discontinuities::Entity::insert(row)
            .exec_without_returning(&self.pools.writer)
            .await?;
        let stored = discontinuities::Entity::find()
            .filter(discontinuities::Column::Stream.eq(chain.stream.as_str()))
            .filter(discontinuities::Column::Shard.eq(chain.shard.0))
            .filter(discontinuities::Column::Note.eq(note));
        if stored.one(&self.pools.writer).await?.is_none() {
            return Err(StoreError::NotKept("discontinuities"));
        }
        Ok(())
    }

    /// Sets the recorded end of a chain to the end of its rows, under a claim of its own. Re-anchoring uses it if the
    /// chain's row was changed too.
    ///
    /// # Errors
    /// [`StoreError::OtherInstance`] while a writer holds the chain; [`StoreError::Fenced`] if one took it meanwhile.
    pub async fn move_end(&self, chain: ChainId, holder: &str, head: Option<Head>) -> Result<(), StoreError> {
        let claim: Claim = self.claim(chain, holder, Seconds(30)).await?;
        let (size, hash, time) = head.map_or((0, Hash::ZERO, Timestamp::from_micros(0)), |head| {
            (head.size, head.hash, head.time)
        });
        let moved = chains::Entity::update_many()
            .col_expr(chains::Column::Size, Expr::value(signed(size)))
            .col_expr(chains::Column::HeadHash, Expr::value(hash.to_vec()))
            .col_expr(chains::Column::HeadTime, Expr::value(time.micros()))
            .col_expr(chains::Column::LeasedUntil, Expr::value(0_i64))
            .col_expr(
                chains::Column::Issued,
                head.and_then(|head| head.size.checked_sub(1))
                    .map_or_else(|| Expr::col(chains::Column::Issued), raised),
            )
            .filter(chains::Column::Stream.eq(chain.stream.as_str()))
            .filter(chains::Column::Shard.eq(chain.shard.0))
            .filter(chains::Column::Fence.eq(signed(claim.fence)))
            .exec(&self.pools.writer)
            .await?;
        if moved.rows_affected == 1 {
            Ok(())
        } else {
            Err(StoreError::Fenced)
        }
    }
}

fn signed_note(row: checkpoints::Model) -> SignedNote {
    // An invalid note fails the signature check instead.
    let columns_agree = Checkpoint::unverified(&row.note)
        .is_none_or(|note| (signed(note.size), signed(note.era())) == (row.size, row.era));
    SignedNote {
        id: row.id,
        note: row.note,
        columns_agree,
    }
}
