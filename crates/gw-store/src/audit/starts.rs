//! The starts of each journal (HD24). The same numbers and ids are in the journal's directory. A directory that does
//! not know the newest start of its shard is a copy, or was put back to an older state.

use super::{chain_rows::signed, store::AuditStore};
use crate::{StoreError, entity::journal_starts};
use gw_audit::{JournalStart, ShardId};
use sea_orm::{ActiveValue::Set, ColumnTrait, EntityTrait, QueryFilter, QueryOrder, sea_query::OnConflict};

impl AuditStore {
    /// Returns the newest start of a shard's journal; `None` if none is recorded.
    ///
    /// # Errors
    /// [`StoreError::Row`] if the stored row is malformed; any database error.
    pub async fn newest_start(&self, shard: ShardId) -> Result<Option<JournalStart>, StoreError> {
        let row = journal_starts::Entity::find()
            .filter(journal_starts::Column::Shard.eq(shard.0))
            .order_by_desc(journal_starts::Column::Number)
            .one(&self.pools.writer)
            .await?;
        row.as_ref().map(start).transpose()
    }

    /// Stores a start. Returns false if another start has its number.
    ///
    /// # Errors
    /// [`StoreError::NotKept`] if the database does not return the row afterwards; [`StoreError::Row`] if the stored
    /// row is malformed; any database error.
    pub async fn note_start(&self, shard: ShardId, new: JournalStart) -> Result<bool, StoreError> {
        use journal_starts::Column as C;
        let row = journal_starts::ActiveModel {
            shard: Set(shard.0),
            number: Set(signed(new.number)),
            start_id: Set(new.id),
        };
        journal_starts::Entity::insert(row)
            .on_conflict(OnConflict::columns([C::Shard, C::Number]).do_nothing().to_owned())
            .try_insert()
            .exec_without_returning(&self.pools.writer)
            .await?;
        let stored = journal_starts::Entity::find_by_id((shard.0, signed(new.number)));
        match stored.one(&self.pools.writer).await? {
            Some(row) => Ok(row.start_id == new.id),
            None => Err(StoreError::NotKept("journal_starts")),
        }
    }
}

fn start(row: &journal_starts::Model) -> Result<JournalStart, StoreError> {
    let number = u64::try_from(row.number).map_err(|_| StoreError::Row {
        table: "journal_starts",
        column: "number",
        id: row.number.to_string(),
    })?;
    Ok(JournalStart {
        number,
        id: row.start_id,
    })
}
