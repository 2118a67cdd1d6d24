//! Groups and their access (spec/80 section 6).

use super::{Tx, audit::Action};
use crate::{
    Missing, StoreError,
    entity::{contract_grants, group_access, groups, memberships},
    record::{AccessInput, ApiKey, Grant, Group, GroupAccess, GroupPatch, Membership, NewGroup},
    row,
};
use gw_evm::CustomMethods;
use gw_types::{GroupId, Secret};
use sea_orm::{
    ActiveModelTrait, ActiveValue::Set, ColumnTrait, EntityTrait, IntoActiveModel, ModelTrait, QueryFilter, QueryOrder,
};

impl Tx {
    /// Creates a group.
    ///
    /// # Errors
    /// [`StoreError::Conflict`] if the slug or the name is taken in the organization; [`StoreError::Rule`] if the
    /// organization does not exist or the flags contradict each other (A5); [`StoreError::Row`] if a stored row is
    /// malformed; any database error.
    pub async fn create_group(&mut self, new: NewGroup) -> Result<Group, StoreError> {
        let row = groups::ActiveModel {
            id: Set(self.new_id()),
            org_id: Set(new.org.0),
            parent_id: Set(new.parent.map(|parent| parent.0)),
            slug: Set(new.slug),
            name_key: Set(new.name.to_lowercase()),
            name: Set(new.name),
            description: Set(new.description),
            is_org_admin: Set(new.is_org_admin),
            is_org_readonly_admin: Set(new.is_org_readonly_admin),
            is_system: Set(false),
            auto_created: Set(new.auto_created),
            created_at: Set(self.now.micros()),
            updated_at: Set(self.now.micros()),
        };
        let group = Group::try_from(row.insert(&self.db).await?)?;
        self.record_audit(Action::Create, Some(group.org), None, Some(&group));
        Ok(group)
    }

    /// Changes a group; system groups are immutable.
    ///
    /// # Errors
    /// [`StoreError::NotFound`] if there is no such group; [`StoreError::Immutable`] for a system group;
    /// [`StoreError::Conflict`] if the name is taken; [`StoreError::Rule`] if the flags contradict each other (A5);
    /// [`StoreError::Row`] if a stored row is malformed; any database error.
    pub async fn update_group(&mut self, id: GroupId, patch: GroupPatch) -> Result<Group, StoreError> {
        let row = self.mutable_group(id).await?;
        let before = Group::try_from(row.clone())?;
        let mut row = row.into_active_model();
        if let Some(name) = patch.name {
            row.name_key = Set(name.to_lowercase());
            row.name = Set(name);
        }
        if let Some(description) = patch.description {
            row.description = Set(description);
        }
        if let Some(flag) = patch.is_org_admin {
            row.is_org_admin = Set(flag);
        }
        if let Some(flag) = patch.is_org_readonly_admin {
            row.is_org_readonly_admin = Set(flag);
        }
        row.updated_at = Set(self.now.micros());
        let after = Group::try_from(row.update(&self.db).await?)?;
        self.record_audit(Action::Update, Some(after.org), Some(&before), Some(&after));
        Ok(after)
    }

    /// Deletes a group with its memberships, access and grants; system groups are immutable.
    ///
    /// # Errors
    /// [`StoreError::NotFound`] if there is no such group; [`StoreError::Immutable`] for a system group;
    /// [`StoreError::Row`] if a stored row is malformed; any database error.
    pub async fn delete_group(&mut self, id: GroupId) -> Result<Group, StoreError> {
        let row = self.mutable_group(id).await?;
        let before = Group::try_from(row.clone())?;
        self.note_group_end(&before).await?;
        self.note_tenants_without_group(id).await?;
        row.delete(&self.db).await?;
        self.end_urls_without_membership_of_org(before.org).await?;
        Ok(before)
    }

    /// Replaces a group's access, also of a system group (then the caller is a super admin).
    ///
    /// # Errors
    /// [`StoreError::NotFound`] if there is no such group; [`StoreError::Rule`] if a method is unknown;
    /// [`StoreError::Row`] if a stored row is malformed; any database error.
    pub async fn set_access(&mut self, group: GroupId, input: AccessInput) -> Result<GroupAccess, StoreError> {
        let owner = Group::try_from(self.group_row(group).await?)?;
        let methods = canonical(&input.allowed_methods, &input.custom_methods)?;
        let denied = canonical(&input.denied_methods, &input.custom_methods)?;
        let stored = group_access::Entity::find_by_id(group.0).one(&self.db).await?;
        let before = stored.clone().map(GroupAccess::try_from).transpose()?;
        let old_key = before.as_ref().and_then(|access| access.rpc_api_key.clone());
        let key = match input.rpc_api_key {
            ApiKey::Keep => old_key,
            ApiKey::Clear => None,
            ApiKey::Set(key) => Some(key),
        };
        let row = group_access::ActiveModel {
            group_id: Set(group.0),
            allowed_methods: Set(methods.into()),
            claims: Set(row::claims_text(input.claims)),
            rpc_api_key: Set(key.as_ref().map(Secret::expose).map(str::to_owned)),
            verbose_errors: Set(input.verbose_errors),
            denied_methods: Set(denied.into()),
            expires_at: Set(input.expires_at.map(|end| end.micros())),
            created_at: Set(stored.as_ref().map_or(self.now.micros(), |row| row.created_at)),
            updated_at: Set(self.now.micros()),
        };
        let row = if stored.is_some() {
            row.update(&self.db).await?
        } else {
            row.insert(&self.db).await?
        };
        let after = GroupAccess::try_from(row)?;
        // A group without a row has an empty access.
        let before = before.unwrap_or_else(|| GroupAccess::none(&owner));
        self.record_audit(Action::Update, Some(owner.org), Some(&before), Some(&after));
        Ok(after)
    }

    /// Records the deletion of a group and of everything deleted with it: one entry per record (decision 46).
    pub(super) async fn note_group_end(&mut self, group: &Group) -> Result<(), StoreError> {
        let (id, org) = (group.id.0, Some(group.org));
        if let Some(access) = group_access::Entity::find_by_id(id).one(&self.db).await? {
            self.record_audit::<GroupAccess>(Action::Delete, org, Some(&access.try_into()?), None);
        }
        let members = memberships::Entity::find().filter(memberships::Column::GroupId.eq(id));
        for member in members.order_by_asc(memberships::Column::Id).all(&self.db).await? {
            self.record_audit::<Membership>(Action::Revoke, org, Some(&member.try_into()?), None);
        }
        let grants = contract_grants::Entity::find().filter(contract_grants::Column::GroupId.eq(id));
        for grant in grants.order_by_asc(contract_grants::Column::Id).all(&self.db).await? {
            self.record_audit::<Grant>(Action::Revoke, org, Some(&grant.try_into()?), None);
        }
        self.record_audit(Action::Delete, org, Some(group), None);
        Ok(())
    }

    pub(super) async fn group_row(&self, id: GroupId) -> Result<groups::Model, StoreError> {
        groups::Entity::find_by_id(id.0)
            .one(&self.db)
            .await?
            .ok_or(StoreError::NotFound(Missing::Group))
    }

    async fn mutable_group(&self, id: GroupId) -> Result<groups::Model, StoreError> {
        let row = self.group_row(id).await?;
        if row.is_system {
            Err(StoreError::Immutable)
        } else {
            Ok(row)
        }
    }
}

/// Returns the canonical names, each once, in the order given (G2); an unknown name is an error (G3).
fn canonical(names: &[String], custom_methods: &CustomMethods) -> Result<Vec<String>, StoreError> {
    let mut methods: Vec<String> = Vec::with_capacity(names.len());
    for name in names {
        let name = custom_methods
            .entry(name)
            .map_err(|_| StoreError::Rule("unknown_method"))?;
        if !methods.contains(&name) {
            methods.push(name);
        }
    }
    Ok(methods)
}
