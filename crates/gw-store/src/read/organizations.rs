//! Organizations.

use super::{Page, Paging, Queries, Scope, one};
use crate::{StoreError, entity::organizations, record::Organization};
use gw_types::OrgId;
use sea_orm::{ColumnTrait, Condition, EntityTrait, QueryFilter, QueryOrder};

/// Filter for organizations.
#[derive(Clone, Debug)]
pub struct OrganizationFilter {
    /// The visible organizations.
    pub scope: Scope,
    /// Whether the seeded organizations are listed (A2).
    pub include_system: bool,
}

impl Queries<'_> {
    /// Returns one organization.
    ///
    /// # Errors
    /// [`StoreError::Row`] if a stored row is malformed; any database error.
    pub async fn find_organization(&self, id: OrgId) -> Result<Option<Organization>, StoreError> {
        one(organizations::Entity::find_by_id(id.0).one(&self.conn).await?)
    }

    /// Returns the organization with a slug.
    ///
    /// # Errors
    /// [`StoreError::Row`] if a stored row is malformed; any database error.
    pub async fn find_organization_by_slug(&self, slug: &str) -> Result<Option<Organization>, StoreError> {
        let query = organizations::Entity::find().filter(organizations::Column::Slug.eq(slug));
        one(query.one(&self.conn).await?)
    }

    /// Lists organizations by name, then id.
    ///
    /// # Errors
    /// [`StoreError::Row`] if a stored row is malformed; any database error.
    pub async fn list_organizations(
        &self,
        filter: &OrganizationFilter,
        paging: Paging,
    ) -> Result<Page<Organization>, StoreError> {
        let mut condition = Condition::all().add_option(filter.scope.holds(organizations::Column::Id));
        if !filter.include_system {
            condition = condition.add(organizations::Column::IsSystem.eq(false));
        }
        let select = organizations::Entity::find()
            .filter(condition)
            .order_by_asc(organizations::Column::Name)
            .order_by_asc(organizations::Column::Id);
        self.page(select, paging).await
    }
}
