//! Organizations (spec/80 section 5).

use super::{Tx, audit::Action};
use crate::{
    Missing, StoreError,
    entity::{contracts, groups, organizations},
    record::{Contract, Group, NewOrganization, Organization, OrganizationPatch},
};
use gw_types::OrgId;
use sea_orm::{
    ActiveModelTrait, ActiveValue::Set, ColumnTrait, EntityTrait, IntoActiveModel, ModelTrait, QueryFilter, QueryOrder,
};
use serde_json::Value;

impl Tx {
    /// Creates an organization.
    ///
    /// # Errors
    /// [`StoreError::Conflict`] if the slug is taken; [`StoreError::Row`] if a stored row is malformed; any database
    /// error.
    pub async fn create_organization(&mut self, new: NewOrganization) -> Result<Organization, StoreError> {
        let row = organizations::ActiveModel {
            id: Set(self.new_id()),
            slug: Set(new.slug),
            name: Set(new.name),
            settings: Set(Value::Object(new.settings)),
            is_system: Set(false),
            created_at: Set(self.now.micros()),
            updated_at: Set(self.now.micros()),
        };
        let organization = Organization::try_from(row.insert(&self.db).await?)?;
        self.record_audit(Action::Create, Some(organization.id), None, Some(&organization));
        Ok(organization)
    }

    /// Changes an organization; system rows are immutable.
    ///
    /// # Errors
    /// [`StoreError::NotFound`] if there is no such organization; [`StoreError::Immutable`] for a system organization;
    /// [`StoreError::Conflict`] if the slug is taken; [`StoreError::Row`] if a stored row is malformed; any database
    /// error.
    pub async fn update_organization(
        &mut self,
        id: OrgId,
        patch: OrganizationPatch,
    ) -> Result<Organization, StoreError> {
        let row = self.organization_row(id).await?;
        let before = Organization::try_from(row.clone())?;
        let mut row = row.into_active_model();
        if let Some(slug) = patch.slug {
            row.slug = Set(slug);
        }
        if let Some(name) = patch.name {
            row.name = Set(name);
        }
        if let Some(settings) = patch.settings {
            row.settings = Set(Value::Object(settings));
        }
        row.updated_at = Set(self.now.micros());
        let after = Organization::try_from(row.update(&self.db).await?)?;
        self.record_audit(Action::Update, Some(id), Some(&before), Some(&after));
        Ok(after)
    }

    /// Deletes an organization with its groups, memberships, contracts and grants; users and links stay, and policy
    /// decisions still treat it as owner of its contracts' addresses (HD27).
    ///
    /// # Errors
    /// [`StoreError::NotFound`] if there is no such organization; [`StoreError::Immutable`] for a system organization
    /// or the default one; [`StoreError::Row`] if a stored row is malformed; any database error.
    pub async fn delete_organization(&mut self, id: OrgId) -> Result<Organization, StoreError> {
        let row = self.organization_row(id).await?;
        let before = Organization::try_from(row.clone())?;
        let groups = groups::Entity::find()
            .filter(groups::Column::OrgId.eq(id.0))
            .order_by_asc(groups::Column::Id);
        for group in groups.all(&self.db).await? {
            self.note_group_end(&Group::try_from(group)?).await?;
        }
        self.note_tenants_without_org(id).await?;
        self.end_urls_of_org(id).await?;
        // Before the disclosures end: nobody is left to be told.
        self.remove_webhook(id).await?;
        self.end_disclosures_of_org(id).await?;
        let contracts = contracts::Entity::find()
            .filter(contracts::Column::OrgId.eq(id.0))
            .order_by_asc(contracts::Column::Id);
        for contract in contracts.all(&self.db).await? {
            // Its grants are deleted with the groups above.
            let contract = Contract::try_from(contract)?;
            // Nobody is left who may see its logs.
            self.retire(&contract, &[], None).await?;
            self.record_audit(Action::Delete, Some(id), Some(&contract), None);
        }
        row.delete(&self.db).await?;
        self.record_audit(Action::Delete, Some(id), Some(&before), None);
        Ok(before)
    }

    async fn organization_row(&self, id: OrgId) -> Result<organizations::Model, StoreError> {
        let row = organizations::Entity::find_by_id(id.0).one(&self.db).await?;
        let row = row.ok_or(StoreError::NotFound(Missing::Organization))?;
        if row.is_system {
            Err(StoreError::Immutable)
        } else {
            Ok(row)
        }
    }
}
