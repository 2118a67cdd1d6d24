//! Heads of the chains in the policy store: a second copy, so that a lost journal or a truncated audit store is
//! detected (HD25, spec/70 rule 18).

use crate::{
    Store, StoreError,
    entity::{
        bounds::{self, Bounded},
        journal_heads, signed_heads,
    },
};
use gw_audit::{ChainId, ShardId};
use gw_types::Timestamp;
use sea_orm::{
    ActiveValue::Set,
    ColumnTrait, EntityTrait, ExprTrait as _, QueryFilter, QueryOrder, QuerySelect, Select,
    sea_query::{Expr, OnConflict},
};

/// Number of records of one chain that a writer has numbered.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct JournalHead {
    /// The chain.
    pub chain: ChainId,
    /// Sequence numbers issued.
    pub issued: u64,
    /// Time of the writer's last update.
    pub noted_at: Timestamp,
    /// When the loss of records of the chain was reported.
    pub reported_at: Option<Timestamp>,
}

impl Store {
    /// Stores how many records of a chain are numbered. A lower number than the stored one only updates the time.
    ///
    /// # Errors
    /// Any database error.
    pub async fn note_journal_head(&self, chain: ChainId, issued: u64) -> Result<(), StoreError> {
        use journal_heads::Column as C;
        let issued = i64::try_from(issued).unwrap_or(i64::MAX);
        let row = journal_heads::ActiveModel {
            shard: Set(chain.shard.0),
            stream: Set(chain.stream.as_str().to_owned()),
            issued: Set(issued),
            noted_at: Set(self.inner.now().micros()),
            reported_at: Set(None),
        };
        let on_conflict = OnConflict::columns([C::Shard, C::Stream])
            .value(C::NotedAt, Expr::value(self.inner.now().micros()))
            .value(
                C::Issued,
                Expr::case(Expr::col((journal_heads::Entity, C::Issued)).lt(issued), issued)
                    .finally(Expr::col((journal_heads::Entity, C::Issued))),
            )
            .to_owned();
        let insert = journal_heads::Entity::insert(row).on_conflict(on_conflict);
        insert.exec_without_returning(&self.inner.pools.writer).await?;
        Ok(())
    }

    /// Returns the heads of all writers. A malformed row is logged and skipped; a running writer overwrites its own
    /// row.
    ///
    /// # Errors
    /// [`StoreError::Row`] if a stored row is malformed; any database error.
    pub async fn journal_heads(&self) -> Result<Vec<JournalHead>, StoreError> {
        use journal_heads::Column as C;
        let rows = journal_heads::Entity::find()
            .order_by_asc(C::Shard)
            .order_by_asc(C::Stream);
        let stored = self.readable_heads(rows, "journal_heads").await?;
        Ok(stored
            .into_iter()
            .filter_map(|row| row.as_ref().and_then(head).or_else(|| report_malformed(row.as_ref())))
            .collect())
    }

    /// Deletes the head of a chain whose writer continues its records in another chain.
    ///
    /// # Errors
    /// Any database error.
    pub async fn forget_journal_head(&self, chain: ChainId) -> Result<(), StoreError> {
        use journal_heads::Column as C;
        journal_heads::Entity::delete_many()
            .filter(C::Shard.eq(chain.shard.0))
            .filter(C::Stream.eq(chain.stream.as_str()))
            .exec(&self.inner.pools.writer)
            .await?;
        Ok(())
    }

    /// Marks the lost records of a chain as reported; returns false if another instance did so before.
    ///
    /// # Errors
    /// [`StoreError::Row`] if a stored row is malformed; any database error.
    pub async fn claim_loss_report(&self, chain: ChainId) -> Result<bool, StoreError> {
        use journal_heads::Column as C;
        let claimed = journal_heads::Entity::update_many()
            .col_expr(C::ReportedAt, Expr::value(self.inner.now().micros()))
            .filter(C::Shard.eq(chain.shard.0))
            .filter(C::Stream.eq(chain.stream.as_str()))
            .filter(C::ReportedAt.is_null())
            .exec(&self.inner.pools.writer)
            .await?;
        Ok(claimed.rows_affected == 1)
    }

    /// Stores the newest signed note of a chain; a note for a smaller size changes nothing.
    ///
    /// # Errors
    /// Any database error.
    pub async fn keep_signed_head(&self, origin: &str, size: u64, note: &str) -> Result<(), StoreError> {
        use signed_heads::Column as C;
        let size = i64::try_from(size).unwrap_or(i64::MAX);
        let row = signed_heads::ActiveModel {
            origin: Set(origin.to_owned()),
            size: Set(size),
            note: Set(note.to_owned()),
            noted_at: Set(self.inner.now().micros()),
        };
        let on_conflict = OnConflict::column(C::Origin)
            .update_columns([C::Size, C::Note, C::NotedAt])
            .action_and_where(Expr::col((signed_heads::Entity, C::Size)).lte(size))
            .to_owned();
        let insert = signed_heads::Entity::insert(row).on_conflict(on_conflict);
        insert.exec_without_returning(&self.inner.pools.writer).await?;
        Ok(())
    }

    /// Returns the newest signed note of each chain. A malformed row is logged and skipped; a running writer overwrites
    /// its own row.
    ///
    /// # Errors
    /// Any database error.
    pub async fn signed_heads(&self) -> Result<Vec<String>, StoreError> {
        let rows = signed_heads::Entity::find().order_by_asc(signed_heads::Column::Origin);
        let stored = self.readable_heads(rows, "signed_heads").await?;
        if stored.iter().any(Option::is_none) {
            tracing::error!(
                "a row of `signed_heads` in the policy database is malformed and ignored: the likely cause is manual \
                 SQL; delete the row"
            );
        }
        Ok(stored.into_iter().flatten().map(|row| row.note).collect())
    }

    /// Reads the first [`MOST_HEADS`] rows of a query; `None` stands for a malformed row.
    async fn readable_heads<E: Bounded>(
        &self,
        select: Select<E>,
        table: &'static str,
    ) -> Result<Vec<Option<E::Model>>, StoreError> {
        let reader = &self.inner.pools.reader;
        let mut rows = Vec::new();
        // By offset: any column of a malformed row may be the unreadable one.
        for page in (0..MOST_HEADS).step_by(HEADS) {
            let before = rows.len();
            let of_page = select.clone().offset(page).limit(HEADS as u64);
            let sizes = of_page
                .clone()
                .select_only()
                .expr_as(bounds::size::<E>(reader), "row_bytes");
            let sizes: Vec<i64> = sizes.into_tuple().all(reader).await?;
            let is_oversized = sizes.iter().any(|size| *size > bounds::limit_of_row::<E>());
            let read = if is_oversized {
                None
            } else {
                match of_page.all(reader).await.map_err(StoreError::from) {
                    Ok(read) => Some(read),
                    Err(error) if error.is_malformed() => None,
                    Err(error) => return Err(error),
                }
            };
            match read {
                Some(read) => rows.extend(read.into_iter().map(Some)),
                None => {
                    for (at, size) in (page..).zip(&sizes) {
                        if *size > bounds::limit_of_row::<E>() {
                            rows.push(None);
                            continue;
                        }
                        let row = select.clone().offset(at).limit(1).one(reader).await;
                        match row.map_err(StoreError::from) {
                            Err(error) if !error.is_malformed() => return Err(error),
                            row => rows.push(row.ok().flatten()),
                        }
                    }
                }
            }
            if rows.len() < before + HEADS {
                return Ok(rows);
            }
        }
        tracing::error!(
            table,
            read = MOST_HEADS,
            "a table of the policy database has more rows than any deployment makes; the rest is not read: the likely \
             cause is manual SQL; delete the rows that no instance wrote"
        );
        Ok(rows)
    }
}

/// Most rows of a table of heads that are read. Each start of an instance with an empty journal makes at most five.
const MOST_HEADS: u64 = 20_000;
/// Rows per query.
const HEADS: usize = 1000;

fn head(row: &journal_heads::Model) -> Option<JournalHead> {
    Some(JournalHead {
        chain: ChainId {
            stream: row.stream.parse().ok()?,
            shard: ShardId(row.shard),
        },
        issued: u64::try_from(row.issued).ok()?,
        noted_at: Timestamp::from_micros(row.noted_at),
        reported_at: row.reported_at.map(Timestamp::from_micros),
    })
}

fn report_malformed(row: Option<&journal_heads::Model>) -> Option<JournalHead> {
    tracing::error!(
        shard = row.map(|row| row.shard.to_string()),
        stream = row.map(|row| row.stream.as_str()),
        issued = row.map(|row| row.issued),
        "a row of `journal_heads` in the policy database is malformed and ignored: the likely cause is manual SQL; \
         delete the row; until then, lost records of this shard are found through the audit database only"
    );
    None
}
