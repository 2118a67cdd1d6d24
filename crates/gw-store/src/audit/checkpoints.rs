//! Signed notes of chains: stored by the sealer, read by the verifier.

use super::{
    chain_rows::{chain_row, signed},
    store::AuditStore,
};
use crate::{StoreError, dialect, entity::checkpoints};
use gw_audit::{ChainId, Checkpoint};
use sea_orm::{ActiveValue::Set, ColumnTrait, EntityTrait, QueryFilter, QueryOrder, sea_query::OnConflict};

impl AuditStore {
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
