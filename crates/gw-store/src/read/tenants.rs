//! Directory tenants.

use super::{Reads, all, one};
use crate::{StoreError, entity::directory_tenants, record::AllowedTenant};
use gw_types::{AllowedTenantId, TenantId};
use sea_orm::{ColumnTrait, EntityTrait, QueryFilter, QueryOrder};

impl Reads<'_> {
    /// One row of the list.
    pub async fn find_allowed_tenant(&self, id: AllowedTenantId) -> Result<Option<AllowedTenant>, StoreError> {
        one(directory_tenants::Entity::find_by_id(id.0).one(&self.conn).await?)
    }

    /// The row of a tenant, disabled ones included.
    pub async fn find_tenant(&self, tenant: TenantId) -> Result<Option<AllowedTenant>, StoreError> {
        let found =
            directory_tenants::Entity::find().filter(directory_tenants::Column::TenantId.eq(tenant.to_string()));
        one(found.one(&self.conn).await?)
    }

    /// The list, by label, then id.
    pub async fn list_tenants(&self) -> Result<Vec<AllowedTenant>, StoreError> {
        let found = directory_tenants::Entity::find()
            .order_by_asc(directory_tenants::Column::Label)
            .order_by_asc(directory_tenants::Column::Id);
        all(found.all(&self.conn).await?)
    }
}
