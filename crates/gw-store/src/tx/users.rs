//! Users and memberships (spec/80 section 7).

use super::{
    Tx,
    audit::{Action, OrgUserChange},
};
use crate::{
    Missing, StoreError,
    entity::{
        address_links, groups, login_nullifiers, memberships, org_user_records, refresh_tokens, user_tombstones, users,
    },
    read::{MembershipItem, Scope},
    record::{
        Impersonation, Link, Membership, MembershipSource, NewMembership, NewUser, OrgUserRecord, User, UserPatch,
    },
    row::{self, RowRef},
};
use gw_policy::snapshot::{MembershipState, Organization};
use gw_types::{ExternalId, GroupId, MembershipId, OrgId, TenantId, UserId};
use sea_orm::{
    ActiveModelTrait, ActiveValue::Set, ColumnTrait, EntityTrait, IntoActiveModel, ModelTrait, QueryFilter, QueryOrder,
    sea_query::OnConflict,
};
use serde_json::Value;
use std::collections::HashMap;

impl Tx {
    /// Records that an administrator is about to impersonate a user. Changes no policy.
    pub fn note_impersonation(&mut self, record: &Impersonation) {
        self.record_audit(Action::Access, Some(record.org), None, Some(record));
    }

    /// Creates a user with memberships in the named groups. A ban that outlived a deleted row is kept, and tokens of
    /// the deleted row stay revoked (spec/80 section 7).
    ///
    /// # Errors
    /// [`StoreError::Conflict`] if the external id is taken; [`StoreError::NotFound`] if a group does not exist;
    /// [`StoreError::Row`] if a stored row is malformed; any database error.
    pub async fn create_user(&mut self, new: NewUser) -> Result<User, StoreError> {
        let tombstone = user_tombstones::Entity::find_by_id(new.external_id.as_str())
            .one(&self.db)
            .await?;
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
        let user = User::try_from(row.insert(&self.db).await?)?;
        self.record_audit(Action::Create, None, None, Some(&user));
        for group in new.groups {
            self.place(&user, group).await?;
        }
        Ok(user)
    }

    /// Adds a new user to the group that their directory tenant assigns. A user who left its organization is only
    /// invited.
    async fn place(&mut self, user: &User, group: GroupId) -> Result<(), StoreError> {
        let org: OrgId = self.group_row(group).await?.org_id.into();
        let declined = self.declined_by(&user.external_id).await?.contains(&org);
        let state = if declined {
            MembershipState::Invited
        } else {
            MembershipState::Accepted
        };
        self.insert_membership(
            NewMembership {
                user: user.id,
                group,
                expires_at: None,
            },
            state,
        )
        .await?;
        Ok(())
    }

    /// Handles the first login of a user whose name an organization knew before: they join the group that their
    /// directory tenant assigns, like any new user (HD32). A user whom that organization already added to a group stays
    /// there.
    ///
    /// # Errors
    /// [`StoreError::NotFound`] if the user or the group does not exist; [`StoreError::Row`] if a stored row is
    /// malformed; any database error.
    pub async fn place_newcomer(&mut self, user: &User, group: GroupId) -> Result<(), StoreError> {
        let org: OrgId = self.group_row(group).await?.org_id.into();
        let memberships = self.read().list_memberships(user.id, &Scope::All).await?;
        let is_placed = memberships.iter().any(|item| item.group.org == org || is_system(org));
        if is_placed {
            Ok(())
        } else {
            self.place(user, group).await
        }
    }

    /// Returns the owner of the credential with this nullifier: `name` becomes the owner if it had none (ZK-77).
    ///
    /// # Errors
    /// [`StoreError::Row`] if a stored row is malformed; any database error.
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
            return RowRef::new("login_nullifiers", row.id).parse("external_id", &row.external_id);
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

    /// Changes a user; a ban revokes all their tokens (A10).
    ///
    /// # Errors
    /// [`StoreError::NotFound`] if there is no such user; [`StoreError::Row`] if a stored row is malformed; any
    /// database error.
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
        self.record_audit(Action::Update, None, Some(&before), Some(&after));
        Ok(after)
    }

    /// Revokes every access token issued to the user so far.
    pub(super) async fn end_access_tokens(&mut self, id: UserId) -> Result<(), StoreError> {
        let row = self.user_row(id).await?;
        let before = User::try_from(row.clone())?;
        let mut row = row.into_active_model();
        row.tokens_valid_from = Set(Some(self.now.micros()));
        row.updated_at = Set(self.now.micros());
        let after = User::try_from(row.update(&self.db).await?)?;
        self.record_audit(Action::Update, None, Some(&before), Some(&after));
        Ok(())
    }

    /// Pins the directory tenant; fails with [`StoreError::Rule`] if another one is pinned (A9: write-once). Removes
    /// memberships in organizations that only other tenants have as default: they were meant for another person, as a
    /// name is unique only within a tenant, and the account of an invited name goes to the first tenant that vouches
    /// for it.
    ///
    /// # Errors
    /// [`StoreError::NotFound`] if there is no such user; [`StoreError::Rule`] if another tenant is pinned;
    /// [`StoreError::Row`] if a stored row is malformed; any database error.
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
        self.record_audit(Action::Update, None, Some(&before), Some(&after));
        let mut meant_for: HashMap<OrgId, Vec<TenantId>> = HashMap::new();
        for row in self.read().list_tenants().await? {
            if let Some(org) = row.default_org {
                meant_for.entry(org).or_default().push(row.tenant);
            }
        }
        for MembershipItem { membership, group } in self.read().list_memberships(id, &Scope::All).await? {
            let is_anothers = meant_for
                .get(&group.org)
                .is_some_and(|tenants| !tenants.contains(&tenant));
            if is_anothers && !is_system(group.org) {
                self.remove_membership(membership.id).await?;
            }
        }
        Ok(after)
    }

    /// Deletes a user with memberships, links and tokens; a tombstone keeps the name's ban and revoked tokens.
    ///
    /// # Errors
    /// [`StoreError::NotFound`] if there is no such user; [`StoreError::Row`] if a stored row is malformed; any
    /// database error.
    pub async fn delete_user(&mut self, id: UserId) -> Result<User, StoreError> {
        let row = self.user_row(id).await?;
        let before = User::try_from(row.clone())?;
        let members = memberships::Entity::find().filter(memberships::Column::UserId.eq(id.0));
        for member in members.order_by_asc(memberships::Column::Id).all(&self.db).await? {
            let org = self.organization_of(member.group_id.into()).await?;
            self.record_audit::<Membership>(Action::Revoke, org, Some(&member.try_into()?), None);
        }
        self.end_urls_of_user(id).await?;
        self.end_disclosures_of_user(id, &before.external_id).await?;
        let links = address_links::Entity::find().filter(address_links::Column::UserId.eq(id.0));
        for link in links.order_by_asc(address_links::Column::Id).all(&self.db).await? {
            self.remember_link(&before.external_id, &link).await?;
            self.record_audit::<Link>(Action::Delete, None, Some(&link.try_into()?), None);
        }
        self.bury(&before.external_id, before.banned).await?;
        row.delete(&self.db).await?;
        self.record_audit(Action::Delete, None, Some(&before), None);
        Ok(before)
    }

    /// Adds a user to a group by their own decision, or as a super admin confirms it.
    ///
    /// # Errors
    /// [`StoreError::NotFound`] if the user or the group does not exist; [`StoreError::Conflict`] if the user is in the
    /// group; [`StoreError::Row`] if a stored row is malformed; any database error.
    pub async fn add_membership(&mut self, new: NewMembership) -> Result<Membership, StoreError> {
        self.insert_membership(new, MembershipState::Accepted).await
    }

    /// Adds a user to a group at the request of an organization: until the user agrees, administrators get no rights
    /// over the user, and the user gets none either if they are in another organization already, accepted or not, or
    /// declined or left this one (HD32, decision 62).
    ///
    /// # Errors
    /// [`StoreError::NotFound`] if the user or the group does not exist; [`StoreError::Conflict`] if the user is in the
    /// group; [`StoreError::Row`] if a stored row is malformed; any database error.
    pub async fn offer_membership(&mut self, new: NewMembership) -> Result<Membership, StoreError> {
        let group = self.group_row(new.group).await?;
        let state = self.state_of_offer(new.user, group.org_id.into()).await?;
        self.insert_membership(new, state).await
    }

    async fn state_of_offer(&self, user: UserId, org: OrgId) -> Result<MembershipState, StoreError> {
        let declined = self.declined_by(&self.name_of(user).await?).await?.contains(&org);
        let mut state = if declined {
            MembershipState::Invited
        } else {
            MembershipState::Provisional
        };
        let memberships = self.read().list_memberships(user, &Scope::All).await?;
        let orgs: Vec<OrgId> = memberships.iter().map(|item| item.group.org).collect();
        let banned = self.banned_among(user, &orgs).await?;
        for MembershipItem { membership, group } in memberships {
            if membership.has_ended(self.now) {
                continue;
            }
            match (group.org == org, membership.state) {
                (true, MembershipState::Accepted) => return Ok(MembershipState::Accepted),
                (true, MembershipState::Invited) => state = MembershipState::Invited,
                // A user of another organization must be asked first, and this membership stays pending when the other
                // one ends. A provisional membership voided by a ban does not count.
                (false, MembershipState::Accepted) if !is_system(group.org) => state = MembershipState::Invited,
                (false, MembershipState::Provisional) if !is_system(group.org) && !banned.contains(&group.org) => {
                    state = MembershipState::Invited;
                }
                (true, MembershipState::Provisional)
                | (false, MembershipState::Accepted | MembershipState::Provisional | MembershipState::Invited) => {}
            }
        }
        Ok(state)
    }

    /// Accepts all pending memberships of the user in the organization. Fails with [`Missing::Membership`] and changes
    /// nothing if there is none.
    ///
    /// # Errors
    /// [`StoreError::NotFound`] if the user has no pending membership in the organization; [`StoreError::Row`] if a
    /// stored row is malformed; any database error.
    pub async fn accept_memberships(&mut self, user: UserId, org: OrgId) -> Result<(), StoreError> {
        let pending = self
            .memberships_in(user, org)
            .await?
            .into_iter()
            .filter(|membership| membership.status() == "pending" && !membership.has_ended(self.now));
        let pending: Vec<MembershipId> = pending.map(|membership| membership.id).collect();
        if pending.is_empty() {
            return Err(StoreError::NotFound(Missing::Membership));
        }
        for id in pending {
            self.confirm_membership(id).await?;
        }
        self.forget_decline(user, org).await
    }

    /// Treats a login as agreement, for a user who has accepted no organization and whom exactly one has added to a
    /// group. An organization that the user declined or left, or that banned the user, is never accepted implicitly,
    /// and does not count as another one.
    ///
    /// # Errors
    /// [`StoreError::NotFound`] if there is no such user; [`StoreError::Row`] if a stored row is malformed; any
    /// database error.
    pub async fn accept_only_offer(&mut self, user: UserId) -> Result<(), StoreError> {
        let mut memberships = self.read().list_memberships(user, &Scope::All).await?;
        memberships.retain(|item| !item.membership.has_ended(self.now) && !is_system(item.group.org));
        if memberships.is_empty()
            || memberships
                .iter()
                .any(|item| item.membership.state == MembershipState::Accepted)
        {
            return Ok(());
        }
        let mut orgs: Vec<OrgId> = memberships.iter().map(|item| item.group.org).collect();
        orgs.sort_unstable();
        orgs.dedup();
        let declined = self.declined_by(&self.name_of(user).await?).await?;
        let banned = self.banned_among(user, &orgs).await?;
        orgs.retain(|org| !declined.contains(org) && !banned.contains(org));
        let [only] = orgs.as_slice() else { return Ok(()) };
        let is_offered =
            |item: &MembershipItem| item.group.org == *only && item.membership.state == MembershipState::Provisional;
        if memberships.iter().any(is_offered) {
            self.accept_memberships(user, *only).await
        } else {
            Ok(())
        }
    }

    /// Returns those of the organizations that banned the user.
    pub(super) async fn banned_among(&self, user: UserId, orgs: &[OrgId]) -> Result<Vec<OrgId>, StoreError> {
        let records = self.read().org_user_records(&self.name_of(user).await?, orgs).await?;
        Ok(records
            .into_iter()
            .filter(|record| record.banned)
            .map(|record| record.org)
            .collect())
    }

    /// Accepts one membership; an accepted one stays as it is.
    ///
    /// # Errors
    /// [`StoreError::NotFound`] if there is no such membership; [`StoreError::Row`] if a stored row is malformed; any
    /// database error.
    pub async fn confirm_membership(&mut self, id: MembershipId) -> Result<Membership, StoreError> {
        let row = memberships::Entity::find_by_id(id.0).one(&self.db).await?;
        let row = row.ok_or(StoreError::NotFound(Missing::Membership))?;
        let before = Membership::try_from(row.clone())?;
        if before.state == MembershipState::Accepted {
            return Ok(before);
        }
        let mut row = row.into_active_model();
        row.state = Set(row::membership_state_text(MembershipState::Accepted).to_owned());
        row.accepted_at = Set(Some(self.now.micros()));
        row.updated_at = Set(self.now.micros());
        let after = Membership::try_from(row.update(&self.db).await?)?;
        let org = self.organization_of(after.group).await?;
        self.record_audit(Action::Update, org, Some(&before), Some(&after));
        // Provisional memberships have no effect any more.
        self.end_urls_without_membership_of_user(after.user, None).await?;
        Ok(after)
    }

    /// Removes all memberships of a user who leaves or declines an organization, and stores the decline. Fails with
    /// [`StoreError::Rule`] for an administrator of the organization, who cannot leave this way.
    ///
    /// # Errors
    /// [`StoreError::NotFound`] if the user has no membership in the organization; [`StoreError::Rule`] if the user
    /// administers it; [`StoreError::Row`] if a stored row is malformed; any database error.
    pub async fn leave_organization(&mut self, user: UserId, org: OrgId) -> Result<(), StoreError> {
        let memberships = self.memberships_in(user, org).await?;
        if memberships.is_empty() {
            return Err(StoreError::NotFound(Missing::Membership));
        }
        for membership in &memberships {
            if self.group_row(membership.group).await?.is_org_admin {
                return Err(StoreError::Rule("administers_organization"));
            }
        }
        for membership in memberships {
            self.remove_membership(membership.id).await?;
        }
        self.remember_decline(user, org).await
    }

    async fn memberships_in(&self, user: UserId, org: OrgId) -> Result<Vec<Membership>, StoreError> {
        let memberships = self.read().list_memberships(user, &Scope::Orgs(vec![org])).await?;
        Ok(memberships.into_iter().map(|item| item.membership).collect())
    }

    /// Changes an organization's record about a user. A ban ends the user's URLs there, and lifting it does not restore
    /// them (HD35).
    ///
    /// # Errors
    /// [`StoreError::NotFound`] if there is no such user; [`StoreError::Row`] if a stored row is malformed; any
    /// database error.
    pub async fn update_org_user(
        &mut self,
        org: OrgId,
        user: &User,
        patch: UserPatch,
    ) -> Result<OrgUserRecord, StoreError> {
        let stored = org_user_records::Entity::find()
            .filter(org_user_records::Column::OrgId.eq(org.0))
            .filter(org_user_records::Column::ExternalId.eq(user.external_id.as_str()));
        let stored = stored.one(&self.db).await?;
        let before = stored.clone().map(OrgUserRecord::try_from).transpose()?;
        let previous_flag = |flag: fn(&OrgUserRecord) -> bool| before.as_ref().is_some_and(flag);
        let note = patch.note.or_else(|| before.as_ref().map(|record| record.note.clone()));
        let metadata = patch
            .metadata
            .or_else(|| before.as_ref().map(|record| record.metadata.clone()));
        let row = org_user_records::ActiveModel {
            id: Set(stored.as_ref().map_or_else(|| self.new_id(), |row| row.id)),
            org_id: Set(org.0),
            external_id: Set(user.external_id.as_str().to_owned()),
            kyc: Set(patch.kyc.unwrap_or_else(|| previous_flag(|record| record.kyc))),
            banned: Set(patch.banned.unwrap_or_else(|| previous_flag(|record| record.banned))),
            note: Set(note.unwrap_or_default()),
            metadata: Set(Value::Object(metadata.unwrap_or_default())),
            created_at: Set(stored.as_ref().map_or(self.now.micros(), |row| row.created_at)),
            updated_at: Set(self.now.micros()),
        };
        let row = if stored.is_some() {
            row.update(&self.db).await?
        } else {
            row.insert(&self.db).await?
        };
        let after = OrgUserRecord::try_from(row)?;
        let change = |record| OrgUserChange { user: user.id, record };
        self.record_audit(
            Action::Update,
            Some(org),
            before.as_ref().map(change).as_ref(),
            Some(&change(&after)),
        );
        if after.banned {
            self.end_urls_without_membership_of_user(user.id, Some(org)).await?;
        }
        Ok(after)
    }

    async fn insert_membership(
        &mut self,
        new: NewMembership,
        state: MembershipState,
    ) -> Result<Membership, StoreError> {
        let group = self.group_row(new.group).await?;
        self.user_row(new.user).await?;
        // A new membership does not restore URLs whose membership expired (HD35).
        self.end_urls_without_membership_of_user(new.user, Some(group.org_id.into()))
            .await?;
        // An ended membership is replaced.
        if let Some(old) = self.read().find_membership_of(new.user, new.group).await?
            && old.has_ended(self.now)
        {
            self.remove_membership(old.id).await?;
        }
        let row = memberships::ActiveModel {
            id: Set(self.new_id()),
            user_id: Set(new.user.0),
            group_id: Set(new.group.0),
            source: Set(MembershipSource::Admin.as_str().to_owned()),
            zk_credential_ref: Set(None),
            expires_at: Set(new.expires_at.map(|end| end.micros())),
            created_at: Set(self.now.micros()),
            updated_at: Set(self.now.micros()),
            state: Set(row::membership_state_text(state).to_owned()),
            accepted_at: Set(None),
        };
        let membership = Membership::try_from(row.insert(&self.db).await?)?;
        self.record_audit(Action::Assign, Some(group.org_id.into()), None, Some(&membership));
        Ok(membership)
    }

    /// Removes a user from a group. With the last effective membership in the organization, the user's URLs there end
    /// (HD35).
    ///
    /// # Errors
    /// [`StoreError::NotFound`] if there is no such membership; [`StoreError::Row`] if a stored row is malformed; any
    /// database error.
    pub async fn remove_membership(&mut self, id: MembershipId) -> Result<Membership, StoreError> {
        let row = memberships::Entity::find_by_id(id.0).one(&self.db).await?;
        let row = row.ok_or(StoreError::NotFound(Missing::Membership))?;
        let before = Membership::try_from(row.clone())?;
        let org = self.organization_of(before.group).await?;
        row.delete(&self.db).await?;
        self.record_audit(Action::Revoke, org, Some(&before), None);
        self.end_urls_without_membership_of_user(before.user, org).await?;
        Ok(before)
    }

    pub(super) async fn user_row(&self, id: UserId) -> Result<users::Model, StoreError> {
        users::Entity::find_by_id(id.0)
            .one(&self.db)
            .await?
            .ok_or(StoreError::NotFound(Missing::User))
    }

    pub(super) async fn forget_refresh_tokens(&self, user: UserId) -> Result<(), StoreError> {
        refresh_tokens::Entity::delete_many()
            .filter(refresh_tokens::Column::UserId.eq(user.0))
            .exec(&self.db)
            .await?;
        Ok(())
    }

    async fn organization_of(&self, group: GroupId) -> Result<Option<OrgId>, StoreError> {
        Ok(groups::Entity::find_by_id(group.0)
            .one(&self.db)
            .await?
            .map(|group| group.org_id.into()))
    }

    async fn bury(&self, name: &ExternalId, banned: bool) -> Result<(), StoreError> {
        let stone = user_tombstones::ActiveModel {
            external_id: Set(name.as_str().to_owned()),
            banned: Set(banned),
            deleted_at: Set(self.now.micros()),
        };
        let on_conflict = OnConflict::column(user_tombstones::Column::ExternalId)
            .update_columns([user_tombstones::Column::Banned, user_tombstones::Column::DeletedAt])
            .to_owned();
        user_tombstones::Entity::insert(stone)
            .on_conflict(on_conflict)
            .exec_without_returning(&self.db)
            .await?;
        Ok(())
    }
}

/// Whether this is the default or the anonymous organization: membership there does not count as membership in another
/// organization.
pub(super) fn is_system(org: OrgId) -> bool {
    [Organization::DEFAULT, Organization::ANONYMOUS].contains(&org)
}
