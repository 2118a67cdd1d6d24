//! Legal holds on the audit log.

use super::{Queries, all, one};
use crate::{
    StoreError,
    entity::legal_holds,
    record::{Holds, LegalHold},
};
use gw_types::LegalHoldId;
use sea_orm::QueryOrder;

impl Queries<'_> {
    /// Lists all holds, oldest first.
    ///
    /// # Errors
    /// If the database fails.
    pub async fn list_holds(&self) -> Result<Vec<LegalHold>, StoreError> {
        let query = legal_holds::Entity::find()
            .order_by_asc(legal_holds::Column::CreatedAt)
            .order_by_asc(legal_holds::Column::Id);
        all(query.all(&self.conn).await?)
    }

    /// Finds a hold.
    ///
    /// # Errors
    /// If the database fails.
    pub async fn find_hold(&self, id: LegalHoldId) -> Result<Option<LegalHold>, StoreError> {
        one(legal_holds::Entity::find_by_id(id.0).one(&self.conn).await?)
    }

    /// Returns the holds in the table; [`crate::AuditStore::known_holds`] also reads the log.
    ///
    /// # Errors
    /// If the database fails; nothing may be removed then.
    pub async fn holds(&self) -> Result<Holds, StoreError> {
        Ok(self
            .list_holds()
            .await?
            .into_iter()
            .map(|hold| (hold.id, hold.scope))
            .collect())
    }
}
