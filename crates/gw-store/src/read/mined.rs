//! What became of sends once they were mined.

use super::{Reads, all};
use crate::{
    StoreError,
    entity::{convictions, quarantines, suspensions, watched_sends, withheld_changes},
    record::{Conviction, Quarantine, Suspension, Watched, WithheldChange},
};
use gw_types::{ConvictionId, QuarantineId, SuspensionId, WithheldId};
use sea_orm::{ColumnTrait, Condition, EntityTrait, QueryFilter, QueryOrder};

impl Reads<'_> {
    /// Sends whose block is awaited, and those another instance found in blocks above `number`.
    pub async fn watched_sends(&self, number: u64) -> Result<Vec<Watched>, StoreError> {
        let block = watched_sends::Column::BlockNumber;
        let number = i64::try_from(number).unwrap_or(i64::MAX);
        let found = watched_sends::Entity::find().filter(Condition::any().add(block.is_null()).add(block.gt(number)));
        all(found.all(&self.conn).await?)
    }

    /// Convicted transactions, cleared ones too, the newest first.
    pub async fn list_convictions(&self) -> Result<Vec<Conviction>, StoreError> {
        let found = convictions::Entity::find()
            .order_by_desc(convictions::Column::CreatedAt)
            .order_by_asc(convictions::Column::Id);
        all(found.all(&self.conn).await?)
    }

    /// One conviction.
    pub async fn find_conviction(&self, id: ConvictionId) -> Result<Option<Conviction>, StoreError> {
        convictions::Entity::find_by_id(id.0)
            .one(&self.conn)
            .await?
            .map(Conviction::try_from)
            .transpose()
    }

    /// What withheld transactions changed, the newest first.
    pub async fn list_withheld(&self) -> Result<Vec<WithheldChange>, StoreError> {
        let found = withheld_changes::Entity::find()
            .order_by_desc(withheld_changes::Column::CreatedAt)
            .order_by_asc(withheld_changes::Column::Id);
        all(found.all(&self.conn).await?)
    }

    /// What a withheld transaction changed of one account.
    pub async fn find_withheld(&self, id: WithheldId) -> Result<Option<WithheldChange>, StoreError> {
        withheld_changes::Entity::find_by_id(id.0)
            .one(&self.conn)
            .await?
            .map(WithheldChange::try_from)
            .transpose()
    }

    /// One suspension.
    pub async fn find_suspension(&self, id: SuspensionId) -> Result<Option<Suspension>, StoreError> {
        suspensions::Entity::find_by_id(id.0)
            .one(&self.conn)
            .await?
            .map(Suspension::try_from)
            .transpose()
    }

    /// One quarantine.
    pub async fn find_quarantine(&self, id: QuarantineId) -> Result<Option<Quarantine>, StoreError> {
        quarantines::Entity::find_by_id(id.0)
            .one(&self.conn)
            .await?
            .map(Quarantine::try_from)
            .transpose()
    }

    /// People who lost the right to send, the newest first.
    pub async fn list_suspensions(&self) -> Result<Vec<Suspension>, StoreError> {
        let found = suspensions::Entity::find()
            .order_by_desc(suspensions::Column::CreatedAt)
            .order_by_asc(suspensions::Column::Id);
        all(found.all(&self.conn).await?)
    }

    /// Closed addresses, the newest first.
    pub async fn list_quarantines(&self) -> Result<Vec<Quarantine>, StoreError> {
        let found = quarantines::Entity::find()
            .order_by_desc(quarantines::Column::CreatedAt)
            .order_by_asc(quarantines::Column::Id);
        all(found.all(&self.conn).await?)
    }
}
