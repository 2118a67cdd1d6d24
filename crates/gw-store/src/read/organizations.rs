//! Organizations.

use super::{Page, Paging, Reads, Scope, one};
use crate::{StoreError, entity::organizations, record::Organization};
use gw_types::OrgId;
use sea_orm::{ColumnTrait, Condition, EntityTrait, QueryFilter, QueryOrder};

/// Which organizations.
#[derive(Clone, Debug)]
pub struct OrganizationFilter {
    /// Whose rows.
    pub scope: Scope,
    /// Whether the seeded organizations are listed (A2).
    pub include_system: bool,
}

impl Reads<'_> {
    /// One organization.
    pub async fn find_organization(&self, id: OrgId) -> Result<Option<Organization>, StoreError> {
        one(organizations::Entity::find_by_id(id.0).one(&self.conn).await?)
    }

    /// The organization of a slug.
    pub async fn find_organization_by_slug(&self, slug: &str) -> Result<Option<Organization>, StoreError> {
        let found = organizations::Entity::find().filter(organizations::Column::Slug.eq(slug));
        one(found.one(&self.conn).await?)
    }

    /// Organizations by name, then id.
    pub async fn list_organizations(
        &self,
        filter: &OrganizationFilter,
        paging: Paging,
    ) -> Result<Page<Organization>, StoreError> {
        let mut which = Condition::all().add_option(filter.scope.holds(organizations::Column::Id));
        if !filter.include_system {
            which = which.add(organizations::Column::IsSystem.eq(false));
        }
        let select = organizations::Entity::find()
            .filter(which)
            .order_by_asc(organizations::Column::Name)
            .order_by_asc(organizations::Column::Id);
        self.page(select, paging).await
    }
}
