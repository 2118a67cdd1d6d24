//! Holds on the audit log.

use super::{Reads, all};
use crate::{
    StoreError,
    entity::legal_holds,
    record::{Holds, LegalHold},
};
use sea_orm::{EntityTrait, QueryOrder};

impl Reads<'_> {
    /// All holds, the oldest first.
    ///
    /// # Errors
    /// The database's.
    pub async fn list_holds(&self) -> Result<Vec<LegalHold>, StoreError> {
        let found = legal_holds::Entity::find()
            .order_by_asc(legal_holds::Column::CreatedAt)
            .order_by_asc(legal_holds::Column::Id);
        all(found.all(&self.conn).await?)
    }

    /// What must be kept now, as far as the table says; [`crate::AuditStore::known_holds`] asks the log, too.
    ///
    /// # Errors
    /// The database's; nothing may be removed then.
    pub async fn holds(&self) -> Result<Holds, StoreError> {
        Ok(self
            .list_holds()
            .await?
            .into_iter()
            .map(|hold| (hold.id, hold.scope))
            .collect())
    }
}
