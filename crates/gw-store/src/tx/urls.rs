//! Personal RPC URLs (HD17).

use super::{Tx, audit::Action};
use crate::{
    Missing, StoreError,
    entity::personal_urls,
    read::Scope,
    record::{NewPersonalUrl, PersonalUrl, scope_text},
    row,
    tx::users::is_system,
};
use gw_policy::snapshot::{MembershipState, UrlReach};
use gw_types::{OrgId, PersonalUrlId, SessionId, UserId};
use sea_orm::{
    ActiveModelTrait, ActiveValue::Set, ColumnTrait, Condition, EntityTrait, ModelTrait, PaginatorTrait, QueryFilter,
    QueryOrder,
};
use std::collections::HashMap;

/// Maximum live URLs of one user.
const PER_USER: u64 = 16;

impl Tx {
    /// Creates a personal URL, unless its owner has the maximum number of URLs or no effective membership in its
    /// organization.
    ///
    /// # Errors
    /// [`StoreError::NotFound`] if there is no such user; [`StoreError::Rule`] if the user is not a member of the
    /// organization, or has too many URLs; [`StoreError::Row`] if a stored row is malformed; any database error.
    pub async fn create_personal_url(&mut self, new: NewPersonalUrl) -> Result<PersonalUrl, StoreError> {
        if !self.orgs_with_membership(new.user).await?.contains(&new.org) {
            return Err(StoreError::Rule("rpc_url_without_membership"));
        }
        let live = personal_urls::Entity::find()
            .filter(personal_urls::Column::UserId.eq(new.user.0))
            .filter(personal_urls::Column::ExpiresAt.gt(self.now.micros()));
        if live.count(&self.db).await? >= PER_USER {
            return Err(StoreError::Rule("too_many_rpc_urls"));
        }
        let contracts: Vec<String> = match &new.reach {
            UrlReach::Contracts(contracts) => contracts.iter().copied().map(row::address_text).collect(),
            UrlReach::Wallet | UrlReach::All => Vec::new(),
        };
        let row = personal_urls::ActiveModel {
            id: Set(self.new_id()),
            secret_hash: Set(new.secret.to_string()),
            user_id: Set(new.user.0),
            org_id: Set(new.org.0),
            name: Set(new.name),
            scope: Set(scope_text(&new.reach).to_owned()),
            contracts: Set(contracts.into()),
            created_at: Set(self.now.micros()),
            expires_at: Set(new.expires_at.micros()),
            login: Set(new.login.map(|login| login.0)),
        };
        let url = PersonalUrl::try_from(row.insert(&self.db).await?)?;
        self.record_audit(Action::Create, Some(url.org), None, Some(&url));
        Ok(url)
    }

    /// Returns a user's URL; fails as unknown if it belongs to another user.
    ///
    /// # Errors
    /// [`StoreError::NotFound`] if there is no such URL; [`StoreError::Row`] if a stored row is malformed; any database
    /// error.
    pub async fn find_personal_url(&self, user: UserId, id: PersonalUrlId) -> Result<PersonalUrl, StoreError> {
        PersonalUrl::try_from(self.url_row(user, id).await?)
    }

    /// Ends a user's URL.
    ///
    /// # Errors
    /// [`StoreError::NotFound`] if there is no such URL; [`StoreError::Row`] if a stored row is malformed; any database
    /// error.
    pub async fn revoke_personal_url(&mut self, user: UserId, id: PersonalUrlId) -> Result<PersonalUrl, StoreError> {
        let row = self.url_row(user, id).await?;
        let url = PersonalUrl::try_from(row.clone())?;
        self.end_url(row).await?;
        Ok(url)
    }

    /// Ends the URLs that a login created (HD35).
    pub(super) async fn end_urls_of_login(&mut self, login: SessionId) -> Result<(), StoreError> {
        for row in self
            .urls(Condition::all().add(personal_urls::Column::Login.eq(login.0)))
            .await?
        {
            self.end_url(row).await?;
        }
        Ok(())
    }

    /// Ends the URLs of a user who is about to be deleted.
    pub(super) async fn end_urls_of_user(&mut self, user: UserId) -> Result<(), StoreError> {
        for row in self
            .urls(Condition::all().add(personal_urls::Column::UserId.eq(user.0)))
            .await?
        {
            self.end_url(row).await?;
        }
        Ok(())
    }

    /// Ends the URLs in an organization that is about to be deleted.
    pub(super) async fn end_urls_of_org(&mut self, org: OrgId) -> Result<(), StoreError> {
        for row in self
            .urls(Condition::all().add(personal_urls::Column::OrgId.eq(org.0)))
            .await?
        {
            self.end_url(row).await?;
        }
        Ok(())
    }

    /// Ends a user's URLs in organizations where the user has no effective membership. A new membership does not
    /// restore them (HD35). `org` limits the change to one organization.
    pub(super) async fn end_urls_without_membership_of_user(
        &mut self,
        user: UserId,
        org: Option<OrgId>,
    ) -> Result<(), StoreError> {
        let in_org = org.map(|org| personal_urls::Column::OrgId.eq(org.0));
        let of_user = Condition::all()
            .add(personal_urls::Column::UserId.eq(user.0))
            .add_option(in_org);
        self.end_urls_without_membership(of_user).await
    }

    /// Ends the URLs in one organization of all users without an effective membership there.
    pub(super) async fn end_urls_without_membership_of_org(&mut self, org: OrgId) -> Result<(), StoreError> {
        self.end_urls_without_membership(Condition::all().add(personal_urls::Column::OrgId.eq(org.0)))
            .await
    }

    async fn end_urls_without_membership(&mut self, which: Condition) -> Result<(), StoreError> {
        let mut memberships_of: HashMap<UserId, Vec<OrgId>> = HashMap::new();
        for row in self.urls(which).await? {
            let user: UserId = row.user_id.into();
            let orgs = match memberships_of.remove(&user) {
                Some(orgs) => orgs,
                None => self.orgs_with_membership(user).await?,
            };
            if !orgs.contains(&row.org_id.into()) {
                self.end_url(row).await?;
            }
            memberships_of.insert(user, orgs);
        }
        Ok(())
    }

    /// Returns the organizations in which a user may have URLs, because a membership is effective there (HD32).
    async fn orgs_with_membership(&self, user: UserId) -> Result<Vec<OrgId>, StoreError> {
        let mut memberships = self.read().list_memberships(user, &Scope::All).await?;
        memberships.retain(|item| !item.membership.has_ended(self.now));
        let orgs: Vec<OrgId> = memberships.iter().map(|item| item.group.org).collect();
        let banned = self.banned_among(user, &orgs).await?;
        let is_outranked = |org: OrgId| {
            let accepted = memberships
                .iter()
                .filter(|item| item.membership.state == MembershipState::Accepted);
            accepted
                .map(|item| item.group.org)
                .any(|other| other != org && !is_system(other))
        };
        let counts = |state: MembershipState, org: OrgId| match state {
            MembershipState::Accepted => true,
            MembershipState::Provisional => !is_outranked(org),
            MembershipState::Invited => false,
        };
        let counting = memberships
            .iter()
            .filter(|item| counts(item.membership.state, item.group.org));
        Ok(counting
            .map(|item| item.group.org)
            .filter(|org| !banned.contains(org))
            .collect())
    }

    async fn urls(&self, which: Condition) -> Result<Vec<personal_urls::Model>, StoreError> {
        let query = personal_urls::Entity::find()
            .filter(which)
            .order_by_asc(personal_urls::Column::Id);
        Ok(query.all(&self.db).await?)
    }

    async fn end_url(&mut self, row: personal_urls::Model) -> Result<(), StoreError> {
        let ended = PersonalUrl::try_from(row.clone())?;
        row.delete(&self.db).await?;
        self.record_audit(Action::Revoke, Some(ended.org), Some(&ended), None);
        Ok(())
    }

    async fn url_row(&self, user: UserId, id: PersonalUrlId) -> Result<personal_urls::Model, StoreError> {
        let row = personal_urls::Entity::find_by_id(id.0).one(&self.db).await?;
        row.filter(|row| row.user_id == user.0)
            .ok_or(StoreError::NotFound(Missing::PersonalUrl))
    }
}
