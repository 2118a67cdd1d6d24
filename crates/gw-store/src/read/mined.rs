//! Post-execution results of sends.

use super::{Queries, all};
use crate::{
    StoreError,
    entity::{convictions, quarantines, suspensions, watched_sends, withheld_changes},
    record::{Conviction, Quarantine, Suspension, WatchedSend, WithheldChange},
};
use gw_types::{ConvictionId, QuarantineId, SuspensionId, WithheldId};
use sea_orm::{ColumnTrait, Condition, EntityTrait, QueryFilter, QueryOrder};

impl Queries<'_> {
    /// Returns pending sends, and sends that another instance found in blocks above `number`.
    ///
    /// # Errors
    /// [`StoreError::Row`] if a stored row is malformed; any database error.
    pub async fn watched_sends(&self, number: u64) -> Result<Vec<WatchedSend>, StoreError> {
        let block = watched_sends::Column::BlockNumber;
        let number = i64::try_from(number).unwrap_or(i64::MAX);
        let query = watched_sends::Entity::find().filter(Condition::any().add(block.is_null()).add(block.gt(number)));
        all(query.all(&self.conn).await?)
    }

    /// Lists convicted transactions, including cleared ones, newest first.
    ///
    /// # Errors
    /// [`StoreError::Row`] if a stored row is malformed; any database error.
    pub async fn list_convictions(&self) -> Result<Vec<Conviction>, StoreError> {
        let query = convictions::Entity::find()
            .order_by_desc(convictions::Column::CreatedAt)
            .order_by_asc(convictions::Column::Id);
        all(query.all(&self.conn).await?)
    }

    /// Returns one conviction.
    ///
    /// # Errors
    /// [`StoreError::Row`] if a stored row is malformed; any database error.
    pub async fn find_conviction(&self, id: ConvictionId) -> Result<Option<Conviction>, StoreError> {
        convictions::Entity::find_by_id(id.0)
            .one(&self.conn)
            .await?
            .map(Conviction::try_from)
            .transpose()
    }

    /// Lists the changes made by withheld transactions, newest first.
    ///
    /// # Errors
    /// [`StoreError::Row`] if a stored row is malformed; any database error.
    pub async fn list_withheld(&self) -> Result<Vec<WithheldChange>, StoreError> {
        let query = withheld_changes::Entity::find()
            .order_by_desc(withheld_changes::Column::CreatedAt)
            .order_by_asc(withheld_changes::Column::Id);
        all(query.all(&self.conn).await?)
    }

    /// Returns what a withheld transaction changed in one account.
    ///
    /// # Errors
    /// [`StoreError::Row`] if a stored row is malformed; any database error.
    pub async fn find_withheld(&self, id: WithheldId) -> Result<Option<WithheldChange>, StoreError> {
        withheld_changes::Entity::find_by_id(id.0)
            .one(&self.conn)
            .await?
            .map(WithheldChange::try_from)
            .transpose()
    }

    /// Returns one suspension.
    ///
    /// # Errors
    /// [`StoreError::Row`] if a stored row is malformed; any database error.
    pub async fn find_suspension(&self, id: SuspensionId) -> Result<Option<Suspension>, StoreError> {
        suspensions::Entity::find_by_id(id.0)
            .one(&self.conn)
            .await?
            .map(Suspension::try_from)
            .transpose()
    }

    /// Returns one quarantine.
    ///
    /// # Errors
    /// [`StoreError::Row`] if a stored row is malformed; any database error.
    pub async fn find_quarantine(&self, id: QuarantineId) -> Result<Option<Quarantine>, StoreError> {
        quarantines::Entity::find_by_id(id.0)
            .one(&self.conn)
            .await?
            .map(Quarantine::try_from)
            .transpose()
    }

    /// Lists suspensions (people who lost the right to send), newest first.
    ///
    /// # Errors
    /// [`StoreError::Row`] if a stored row is malformed; any database error.
    pub async fn list_suspensions(&self) -> Result<Vec<Suspension>, StoreError> {
        let query = suspensions::Entity::find()
            .order_by_desc(suspensions::Column::CreatedAt)
            .order_by_asc(suspensions::Column::Id);
        all(query.all(&self.conn).await?)
    }

    /// Lists quarantined addresses, newest first.
    ///
    /// # Errors
    /// [`StoreError::Row`] if a stored row is malformed; any database error.
    pub async fn list_quarantines(&self) -> Result<Vec<Quarantine>, StoreError> {
        let query = quarantines::Entity::find()
            .order_by_desc(quarantines::Column::CreatedAt)
            .order_by_asc(quarantines::Column::Id);
        all(query.all(&self.conn).await?)
    }
}
