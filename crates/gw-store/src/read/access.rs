//! Shared infrastructure, approved code and system toggles.

use super::{Queries, all, one};
use crate::{
    StoreError,
    entity::{approved_code, shared_infrastructure, system_toggles},
    record::{ApprovedCode, SharedInfra, ToggleUpdate},
    row,
};
use gw_policy::snapshot::SystemToggle;
use gw_types::Address;
use sea_orm::{ColumnTrait, EntityTrait, QueryFilter, QueryOrder};

impl Queries<'_> {
    /// Returns the shared contract at an address.
    ///
    /// # Errors
    /// [`StoreError::Row`] if a stored row is malformed; any database error.
    pub async fn find_shared_infra(&self, address: Address) -> Result<Option<SharedInfra>, StoreError> {
        let at = shared_infrastructure::Column::Address.eq(row::address_text(address));
        one(shared_infrastructure::Entity::find().filter(at).one(&self.conn).await?)
    }

    /// Returns all shared contracts, by name, then id.
    ///
    /// # Errors
    /// [`StoreError::Row`] if a stored row is malformed; any database error.
    pub async fn list_shared_infra(&self) -> Result<Vec<SharedInfra>, StoreError> {
        let query = shared_infrastructure::Entity::find()
            .order_by_asc(shared_infrastructure::Column::Name)
            .order_by_asc(shared_infrastructure::Column::Id);
        all(query.all(&self.conn).await?)
    }

    /// Returns all approved creation code, by name, then id.
    ///
    /// # Errors
    /// [`StoreError::Row`] if a stored row is malformed; any database error.
    pub async fn list_approved_code(&self) -> Result<Vec<ApprovedCode>, StoreError> {
        let query = approved_code::Entity::find()
            .order_by_asc(approved_code::Column::Name)
            .order_by_asc(approved_code::Column::Id);
        all(query.all(&self.conn).await?)
    }

    /// Returns the last update of a toggle, if any.
    ///
    /// # Errors
    /// [`StoreError::Row`] if a stored row is malformed; any database error.
    pub async fn find_toggle(&self, toggle: SystemToggle) -> Result<Option<ToggleUpdate>, StoreError> {
        one(system_toggles::Entity::find_by_id(toggle.id().0)
            .one(&self.conn)
            .await?)
    }
}
