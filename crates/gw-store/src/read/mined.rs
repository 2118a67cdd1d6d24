//! What became of sends once they were mined.

use super::{Reads, all};
use crate::{
    StoreError,
    entity::{quarantines, suspensions, watched_sends},
    record::{Quarantine, Suspension, Watched},
};
use sea_orm::{ColumnTrait, Condition, EntityTrait, QueryFilter, QueryOrder};

impl Reads<'_> {
    /// Sends whose block is awaited, and those another instance found in blocks above `number`.
    pub async fn watched_sends(&self, number: u64) -> Result<Vec<Watched>, StoreError> {
        let block = watched_sends::Column::BlockNumber;
        let number = i64::try_from(number).unwrap_or(i64::MAX);
        let found = watched_sends::Entity::find().filter(Condition::any().add(block.is_null()).add(block.gt(number)));
        all(found.all(&self.conn).await?)
    }

    /// Users who lost the right to send, the newest first.
    pub async fn list_suspensions(&self) -> Result<Vec<Suspension>, StoreError> {
        let found = suspensions::Entity::find()
            .order_by_desc(suspensions::Column::CreatedAt)
            .order_by_asc(suspensions::Column::Id);
        all(found.all(&self.conn).await?)
    }

    /// Addresses nobody reads, the newest first.
    pub async fn list_quarantines(&self) -> Result<Vec<Quarantine>, StoreError> {
        let found = quarantines::Entity::find()
            .order_by_desc(quarantines::Column::CreatedAt)
            .order_by_asc(quarantines::Column::Id);
        all(found.all(&self.conn).await?)
    }
}
