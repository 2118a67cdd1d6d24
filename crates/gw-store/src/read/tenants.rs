//! Directory tenants.

use super::{Queries, all, one};
use crate::{StoreError, entity::directory_tenants, record::AllowedTenant};
use gw_types::{AllowedTenantId, TenantId};
use sea_orm::{ColumnTrait, EntityTrait, QueryFilter, QueryOrder};

impl Queries<'_> {
    /// Returns one row of the list of allowed tenants.
    ///
    /// # Errors
    /// [`StoreError::Row`] if a stored row is malformed; any database error.
    pub async fn find_allowed_tenant(&self, id: AllowedTenantId) -> Result<Option<AllowedTenant>, StoreError> {
        one(directory_tenants::Entity::find_by_id(id.0).one(&self.conn).await?)
    }

    /// Returns the row of a tenant, also if it is disabled.
    ///
    /// # Errors
    /// [`StoreError::Row`] if a stored row is malformed; any database error.
    pub async fn find_tenant(&self, tenant: TenantId) -> Result<Option<AllowedTenant>, StoreError> {
        let query =
            directory_tenants::Entity::find().filter(directory_tenants::Column::TenantId.eq(tenant.to_string()));
        one(query.one(&self.conn).await?)
    }

    /// Lists all tenants by label, then id.
    ///
    /// # Errors
    /// [`StoreError::Row`] if a stored row is malformed; any database error.
    pub async fn list_tenants(&self) -> Result<Vec<AllowedTenant>, StoreError> {
        let query = directory_tenants::Entity::find()
            .order_by_asc(directory_tenants::Column::Label)
            .order_by_asc(directory_tenants::Column::Id);
        all(query.all(&self.conn).await?)
    }
}
