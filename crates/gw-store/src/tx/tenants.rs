//! Directory tenants (spec/80 section 9, spec/10 DS-8, DS-9).

use super::{Tx, audit::Action};
use crate::{
    Missing, StoreError,
    entity::{directory_tenants, group_access, groups, organizations, refresh_tokens, users},
    record::{AllowedTenant, GroupAccess, NewTenant, TenantPatch, TenantRemoval, User},
};
use gw_policy::snapshot::Organization;
use gw_types::{AllowedTenantId, Claim, GroupId, OrgId};
use sea_orm::{
    ActiveModelTrait, ActiveValue::Set, ColumnTrait, EntityTrait, IntoActiveModel, ModelTrait, QueryFilter, QueryOrder,
    QuerySelect, QueryTrait, sea_query::Expr,
};

impl Tx {
    /// Adds a tenant to the list.
    ///
    /// # Errors
    /// [`StoreError::Conflict`] if the tenant is on the list; [`StoreError::Rule`] if its default organization or group
    /// cannot be one; [`StoreError::Row`] if a stored row is malformed; any database error.
    pub async fn create_tenant(&mut self, new: NewTenant) -> Result<AllowedTenant, StoreError> {
        self.check_default_group(new.default_org, new.default_group).await?;
        let row = directory_tenants::ActiveModel {
            id: Set(self.new_id()),
            tenant_id: Set(new.tenant.to_string()),
            label: Set(new.label),
            auto_provision: Set(new.auto_provision),
            disabled: Set(new.disabled),
            default_org_id: Set(new.default_org.map(|org| org.0)),
            default_group_id: Set(new.default_group.map(|group| group.0)),
            created_at: Set(self.now.micros()),
            updated_at: Set(self.now.micros()),
        };
        let tenant = AllowedTenant::try_from(row.insert(&self.db).await?)?;
        self.record_audit(Action::Create, tenant.default_org, None, Some(&tenant));
        Ok(tenant)
    }

    /// Changes a tenant. The default group is validated on the merged state.
    ///
    /// # Errors
    /// [`StoreError::NotFound`] if there is no such tenant; [`StoreError::Rule`] if its default organization or group
    /// cannot be one; [`StoreError::Row`] if a stored row is malformed; any database error.
    pub async fn update_tenant(
        &mut self,
        id: AllowedTenantId,
        patch: TenantPatch,
    ) -> Result<AllowedTenant, StoreError> {
        let row = self.tenant_row(id).await?;
        let before = AllowedTenant::try_from(row.clone())?;
        let mut row = row.into_active_model();
        if let Some(tenant) = patch.tenant {
            row.tenant_id = Set(tenant.to_string());
        }
        if let Some(label) = patch.label {
            row.label = Set(label);
        }
        if let Some(auto_provision) = patch.auto_provision {
            row.auto_provision = Set(auto_provision);
        }
        if let Some(disabled) = patch.disabled {
            row.disabled = Set(disabled);
        }
        let org = patch.default_org.unwrap_or(before.default_org);
        let group = patch.default_group.unwrap_or(before.default_group);
        if (org, group) != (before.default_org, before.default_group) {
            self.check_default_group(org, group).await?;
        }
        row.default_org_id = Set(org.map(|org| org.0));
        row.default_group_id = Set(group.map(|group| group.0));
        row.updated_at = Set(self.now.micros());
        let after = AllowedTenant::try_from(row.update(&self.db).await?)?;
        self.record_audit(Action::Update, after.default_org, Some(&before), Some(&after));
        Ok(after)
    }

    /// Removes a tenant from the list: bans its users and revokes all their tokens in the same transaction (DS-9).
    ///
    /// # Errors
    /// [`StoreError::NotFound`] if there is no such tenant; [`StoreError::Row`] if a stored row is malformed; any
    /// database error.
    pub async fn delete_tenant(&mut self, id: AllowedTenantId) -> Result<TenantRemoval, StoreError> {
        let row = self.tenant_row(id).await?;
        let tenant = AllowedTenant::try_from(row.clone())?;
        let of_tenant = users::Column::AuthTenantId.eq(row.tenant_id.clone());
        let concerned = users::Entity::find()
            .filter(of_tenant.clone())
            .order_by_asc(users::Column::Id)
            .all(&self.db)
            .await?;
        let mut banned = 0;
        for user in concerned {
            let before = User::try_from(user)?;
            banned += u64::from(!before.banned);
            let after = User {
                banned: true,
                tokens_valid_from: Some(self.now),
                updated_at: self.now,
                ..before.clone()
            };
            self.record_audit(Action::Update, None, Some(&before), Some(&after));
        }
        let ids = users::Entity::find()
            .select_only()
            .column(users::Column::Id)
            .filter(of_tenant.clone())
            .into_query();
        let tokens = refresh_tokens::Entity::delete_many()
            .filter(refresh_tokens::Column::UserId.in_subquery(ids))
            .exec(&self.db)
            .await?;
        users::Entity::update_many()
            .col_expr(users::Column::Banned, Expr::value(true))
            .col_expr(users::Column::TokensValidFrom, Expr::value(self.now.micros()))
            .col_expr(users::Column::UpdatedAt, Expr::value(self.now.micros()))
            .filter(of_tenant)
            .exec(&self.db)
            .await?;
        row.delete(&self.db).await?;
        let end = TenantRemoval {
            tenant,
            users: banned,
            refresh_tokens: tokens.rows_affected,
        };
        self.record_audit(Action::Delete, end.tenant.default_org, Some(&end), None);
        Ok(end)
    }

    /// Records that tenants lose their default group, which is about to be deleted; the schema clears the column.
    pub(super) async fn note_tenants_without_group(&mut self, group: GroupId) -> Result<(), StoreError> {
        let tenants = directory_tenants::Entity::find().filter(directory_tenants::Column::DefaultGroupId.eq(group.0));
        for row in tenants
            .order_by_asc(directory_tenants::Column::Id)
            .all(&self.db)
            .await?
        {
            let before = AllowedTenant::try_from(row)?;
            let after = AllowedTenant {
                default_group: None,
                ..before.clone()
            };
            self.record_audit(Action::Update, before.default_org, Some(&before), Some(&after));
        }
        Ok(())
    }

    /// Records that tenants lose their default organization and group, which are about to be deleted.
    pub(super) async fn note_tenants_without_org(&mut self, org: OrgId) -> Result<(), StoreError> {
        let tenants = directory_tenants::Entity::find().filter(directory_tenants::Column::DefaultOrgId.eq(org.0));
        for row in tenants
            .order_by_asc(directory_tenants::Column::Id)
            .all(&self.db)
            .await?
        {
            let before = AllowedTenant::try_from(row)?;
            let after = AllowedTenant {
                default_org: None,
                default_group: None,
                ..before.clone()
            };
            self.record_audit(Action::Update, before.default_org, Some(&before), Some(&after));
        }
        Ok(())
    }

    /// Checks the default organization and group of a tenant. New users must not become administrators by logging in
    /// (DS-8).
    async fn check_default_group(&self, org: Option<OrgId>, group: Option<GroupId>) -> Result<(), StoreError> {
        if let Some(org) = org {
            let stored = organizations::Entity::find_by_id(org.0).one(&self.db).await?;
            if stored.is_none() || org == Organization::ANONYMOUS {
                return Err(StoreError::Rule("default_org_unknown"));
            }
        }
        let Some(group) = group else { return Ok(()) };
        let org = org.ok_or(StoreError::Rule("default_group_without_org"))?;
        let row = groups::Entity::find_by_id(group.0).one(&self.db).await?;
        let row = row
            .filter(|row| row.org_id == org.0)
            .ok_or(StoreError::Rule("default_group_organization"))?;
        let access = group_access::Entity::find_by_id(group.0).one(&self.db).await?;
        let access = access.map(GroupAccess::try_from).transpose()?;
        let claims_admin = access.is_some_and(|access| access.claims.has(Claim::Admin));
        if row.is_org_admin || row.is_org_readonly_admin || claims_admin {
            return Err(StoreError::Rule("default_group_admin"));
        }
        Ok(())
    }

    async fn tenant_row(&self, id: AllowedTenantId) -> Result<directory_tenants::Model, StoreError> {
        let row = directory_tenants::Entity::find_by_id(id.0).one(&self.db).await?;
        row.ok_or(StoreError::NotFound(Missing::Tenant))
    }
}
