//! Users and memberships (spec/80 section 7).

use super::{Tx, entry::Action};
use crate::{
    Missing, StoreError,
    entity::{address_links, groups, login_nullifiers, memberships, refresh_tokens, user_tombstones, users},
    record::{Impersonation, Link, Membership, MembershipSource, NewMembership, NewUser, User, UserPatch},
    row::Place,
};
use gw_types::{ExternalId, GroupId, MembershipId, OrgId, TenantId, UserId};
use sea_orm::{
    ActiveModelTrait, ActiveValue::Set, ColumnTrait, EntityTrait, IntoActiveModel, ModelTrait, QueryFilter, QueryOrder,
    sea_query::OnConflict,
};
use serde_json::Value;

impl Tx {
    /// An administrator is about to look through a user's eyes. Nothing of policy changes.
    pub fn note_impersonation(&mut self, record: &Impersonation) {
        self.note(Action::Access, Some(record.org), None, Some(record));
    }

    /// Makes a user, with memberships in the named groups. A ban that outlived a deleted row is kept, and tokens of
    /// the deleted row stay dead (spec/80 section 7).
    pub async fn create_user(&mut self, new: NewUser) -> Result<User, StoreError> {
        let tombstone = user_tombstones::Entity::find_by_id(new.external_id.as_str()).one(&self.db).await?;
        let row = users::ActiveModel {
            id: Set(self.new_id()),
            external_id: Set(new.external_id.as_str().to_owned()),
            kyc: Set(new.kyc),
            banned: Set(tombstone.as_ref().is_some_and(|stone| stone.banned)),
            note: Set(String::new()),
            metadata: Set(Value::Object(serde_json::Map::new())),
            auth_tenant_id: Set(new.auth_tenant_id.map(|tenant| tenant.to_string())),
            tokens_valid_from: Set(tombstone.map(|stone| stone.deleted_at)),
            created_at: Set(self.now.micros()),
            updated_at: Set(self.now.micros()),
        };
        let made = User::try_from(row.insert(&self.db).await?)?;
        self.note(Action::Create, None, None, Some(&made));
        for group in new.groups {
            self.add_membership(NewMembership { user: made.id, group, expires_at: None }).await?;
        }
        Ok(made)
    }

    /// Whose the credential with this nullifier is: `name`'s from now on, if it was nobody's (ZK-77).
    pub async fn claim_nullifier(
        &mut self,
        session: &str,
        nullifier: &str,
        name: &ExternalId,
    ) -> Result<ExternalId, StoreError> {
        let stored = login_nullifiers::Entity::find()
            .filter(login_nullifiers::Column::SessionId.eq(session))
            .filter(login_nullifiers::Column::Nullifier.eq(nullifier))
            .one(&self.db)
            .await?;
        if let Some(row) = stored {
            return Place::new("login_nullifiers", row.id).parse("external_id", &row.external_id);
        }
        let row = login_nullifiers::ActiveModel {
            id: Set(self.new_id()),
            session_id: Set(session.to_owned()),
            nullifier: Set(nullifier.to_owned()),
            external_id: Set(name.as_str().to_owned()),
            created_at: Set(self.now.micros()),
        };
        row.insert(&self.db).await?;
        Ok(name.clone())
    }

    /// Changes a user; a ban ends every token of theirs (A10).
    pub async fn update_user(&mut self, id: UserId, patch: UserPatch) -> Result<User, StoreError> {
        let row = self.user_row(id).await?;
        let before = User::try_from(row.clone())?;
        let bans = patch.banned == Some(true);
        let mut row = row.into_active_model();
        if let Some(kyc) = patch.kyc {
            row.kyc = Set(kyc);
        }
        if let Some(banned) = patch.banned {
            row.banned = Set(banned);
        }
        if let Some(note) = patch.note {
            row.note = Set(note);
        }
        if let Some(metadata) = patch.metadata {
            row.metadata = Set(Value::Object(metadata));
        }
        if bans {
            row.tokens_valid_from = Set(Some(self.now.micros()));
            self.forget_refresh_tokens(id).await?;
        }
        row.updated_at = Set(self.now.micros());
        let after = User::try_from(row.update(&self.db).await?)?;
        self.note(Action::Update, None, Some(&before), Some(&after));
        Ok(after)
    }

    /// Ends every access token that the user was given so far.
    pub(super) async fn end_access_tokens(&mut self, id: UserId) -> Result<(), StoreError> {
        let row = self.user_row(id).await?;
        let before = User::try_from(row.clone())?;
        let mut row = row.into_active_model();
        row.tokens_valid_from = Set(Some(self.now.micros()));
        row.updated_at = Set(self.now.micros());
        let after = User::try_from(row.update(&self.db).await?)?;
        self.note(Action::Update, None, Some(&before), Some(&after));
        Ok(())
    }

    /// Pins the directory tenant; refused with [`StoreError::Rule`] if another one is pinned (A9: write-once).
    pub async fn pin_tenant(&mut self, id: UserId, tenant: TenantId) -> Result<User, StoreError> {
        let row = self.user_row(id).await?;
        let before = User::try_from(row.clone())?;
        match before.auth_tenant_id {
            Some(pinned) if pinned == tenant => return Ok(before),
            Some(_) => return Err(StoreError::Rule("tenant_pinned")),
            None => {}
        }
        let mut row = row.into_active_model();
        row.auth_tenant_id = Set(Some(tenant.to_string()));
        row.updated_at = Set(self.now.micros());
        let after = User::try_from(row.update(&self.db).await?)?;
        self.note(Action::Update, None, Some(&before), Some(&after));
        Ok(after)
    }

    /// Deletes a user with memberships, links and tokens; the name's ban and dead tokens are remembered.
    pub async fn delete_user(&mut self, id: UserId) -> Result<User, StoreError> {
        let row = self.user_row(id).await?;
        let before = User::try_from(row.clone())?;
        let members = memberships::Entity::find().filter(memberships::Column::UserId.eq(id.0));
        for member in members.order_by_asc(memberships::Column::Id).all(&self.db).await? {
            let org = self.organization_of(member.group_id.into()).await?;
            self.note::<Membership>(Action::Revoke, org, Some(&member.try_into()?), None);
        }
        let links = address_links::Entity::find().filter(address_links::Column::UserId.eq(id.0));
        for link in links.order_by_asc(address_links::Column::Id).all(&self.db).await? {
            self.note::<Link>(Action::Delete, None, Some(&link.try_into()?), None);
        }
        self.bury(&before.external_id, before.banned).await?;
        row.delete(&self.db).await?;
        self.note(Action::Delete, None, Some(&before), None);
        Ok(before)
    }

    /// Puts a user into a group.
    pub async fn add_membership(&mut self, new: NewMembership) -> Result<Membership, StoreError> {
        let group = self.group_row(new.group).await?;
        self.user_row(new.user).await?;
        let row = memberships::ActiveModel {
            id: Set(self.new_id()),
            user_id: Set(new.user.0),
            group_id: Set(new.group.0),
            source: Set(MembershipSource::Admin.as_str().to_owned()),
            zk_credential_ref: Set(None),
            expires_at: Set(new.expires_at.map(|end| end.micros())),
            created_at: Set(self.now.micros()),
            updated_at: Set(self.now.micros()),
        };
        let made = Membership::try_from(row.insert(&self.db).await?)?;
        self.note(Action::Assign, Some(group.org_id.into()), None, Some(&made));
        Ok(made)
    }

    /// Takes a user out of a group.
    pub async fn remove_membership(&mut self, id: MembershipId) -> Result<Membership, StoreError> {
        let row = memberships::Entity::find_by_id(id.0).one(&self.db).await?;
        let row = row.ok_or(StoreError::NotFound(Missing::Membership))?;
        let before = Membership::try_from(row.clone())?;
        let org = self.organization_of(before.group).await?;
        row.delete(&self.db).await?;
        self.note(Action::Revoke, org, Some(&before), None);
        Ok(before)
    }

    pub(super) async fn user_row(&self, id: UserId) -> Result<users::Model, StoreError> {
        users::Entity::find_by_id(id.0).one(&self.db).await?.ok_or(StoreError::NotFound(Missing::User))
    }

    pub(super) async fn forget_refresh_tokens(&self, user: UserId) -> Result<(), StoreError> {
        refresh_tokens::Entity::delete_many().filter(refresh_tokens::Column::UserId.eq(user.0)).exec(&self.db).await?;
        Ok(())
    }

    async fn organization_of(&self, group: GroupId) -> Result<Option<OrgId>, StoreError> {
        Ok(groups::Entity::find_by_id(group.0).one(&self.db).await?.map(|group| group.org_id.into()))
    }

    async fn bury(&self, name: &ExternalId, banned: bool) -> Result<(), StoreError> {
        let stone = user_tombstones::ActiveModel {
            external_id: Set(name.as_str().to_owned()),
            banned: Set(banned),
            deleted_at: Set(self.now.micros()),
        };
        let again = OnConflict::column(user_tombstones::Column::ExternalId)
            .update_columns([user_tombstones::Column::Banned, user_tombstones::Column::DeletedAt])
            .to_owned();
        user_tombstones::Entity::insert(stone).on_conflict(again).exec_without_returning(&self.db).await?;
        Ok(())
    }
}
