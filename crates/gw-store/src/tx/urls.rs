//! Personal RPC URLs (HD17).

use super::{Tx, entry::Action};
use crate::{
    Missing, StoreError,
    entity::personal_urls,
    record::{NewPersonalUrl, PersonalUrl, scope_text},
    row,
};
use gw_policy::snapshot::UrlReach;
use gw_types::{PersonalUrlId, SessionId, UserId};
use sea_orm::{ActiveModelTrait, ActiveValue::Set, ColumnTrait, EntityTrait, ModelTrait, PaginatorTrait, QueryFilter};

/// The most live URLs of one user.
const PER_USER: u64 = 16;

impl Tx {
    /// Makes a personal URL, unless its owner has as many as anybody may.
    pub async fn create_personal_url(&mut self, new: NewPersonalUrl) -> Result<PersonalUrl, StoreError> {
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
        let made = PersonalUrl::try_from(row.insert(&self.db).await?)?;
        self.note(Action::Create, Some(made.org), None, Some(&made));
        Ok(made)
    }

    /// A user's URL; another's is unknown.
    pub async fn find_personal_url(&self, user: UserId, id: PersonalUrlId) -> Result<PersonalUrl, StoreError> {
        PersonalUrl::try_from(self.url_row(user, id).await?)
    }

    /// Ends a user's URL.
    pub async fn revoke_personal_url(&mut self, user: UserId, id: PersonalUrlId) -> Result<PersonalUrl, StoreError> {
        let row = self.url_row(user, id).await?;
        let ended = PersonalUrl::try_from(row.clone())?;
        row.delete(&self.db).await?;
        self.note(Action::Revoke, Some(ended.org), Some(&ended), None);
        Ok(ended)
    }

    /// Ends the URLs that a login made (HD35).
    pub(super) async fn end_urls_of_login(&mut self, login: SessionId) -> Result<(), StoreError> {
        let made = personal_urls::Entity::find().filter(personal_urls::Column::Login.eq(login.0)).all(&self.db).await?;
        for row in made {
            let ended = PersonalUrl::try_from(row.clone())?;
            row.delete(&self.db).await?;
            self.note(Action::Revoke, Some(ended.org), Some(&ended), None);
        }
        Ok(())
    }

    async fn url_row(&self, user: UserId, id: PersonalUrlId) -> Result<personal_urls::Model, StoreError> {
        let row = personal_urls::Entity::find_by_id(id.0).one(&self.db).await?;
        row.filter(|row| row.user_id == user.0).ok_or(StoreError::NotFound(Missing::PersonalUrl))
    }
}
