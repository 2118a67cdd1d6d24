//! Refresh tokens and their families.

use super::{Queries, all, one};
use crate::{
    StoreError,
    entity::refresh_tokens,
    record::{Family, Login, RefreshToken, TokenHash},
};
use gw_types::{SessionId, Timestamp, UserId};
use sea_orm::{ColumnTrait, EntityTrait, QueryFilter, QueryOrder};

impl Queries<'_> {
    /// Returns the stored refresh token with a hash.
    ///
    /// # Errors
    /// [`StoreError::Row`] if a stored row is malformed; any database error.
    pub async fn find_refresh_token(&self, hash: TokenHash) -> Result<Option<RefreshToken>, StoreError> {
        let query = refresh_tokens::Entity::find().filter(refresh_tokens::Column::Hash.eq(hash.0.to_vec()));
        one(query.one(&self.conn).await?)
    }

    /// Lists a user's families that can still refresh, newest login first: each has one unused token.
    ///
    /// # Errors
    /// [`StoreError::Row`] if a stored row is malformed; any database error.
    pub async fn list_families(&self, user: UserId, now: Timestamp) -> Result<Vec<Family>, StoreError> {
        let query = refresh_tokens::Entity::find()
            .filter(refresh_tokens::Column::UserId.eq(user.0))
            .filter(refresh_tokens::Column::UsedAt.is_null())
            .filter(refresh_tokens::Column::ExpiresAt.gt(now.micros()))
            .order_by_desc(refresh_tokens::Column::FamilyStarted)
            .order_by_asc(refresh_tokens::Column::Id);
        let tokens: Vec<RefreshToken> = all(query.all(&self.conn).await?)?;
        Ok(tokens.into_iter().map(Family::from).collect())
    }

    /// Lists a user's logins that can still refresh, newest first: one row per login, even if it has several families.
    ///
    /// # Errors
    /// [`StoreError::Row`] if a stored row is malformed; any database error.
    pub async fn list_logins(&self, user: UserId, now: Timestamp) -> Result<Vec<Login>, StoreError> {
        let mut logins: Vec<Login> = Vec::new();
        for family in self.list_families(user, now).await? {
            match logins.iter_mut().find(|login| login.id == family.login) {
                Some(login) => login.expires_at = login.expires_at.max(family.expires_at),
                None => logins.push(Login {
                    id: family.login,
                    amr: family.amr,
                    started: family.started,
                    expires_at: family.expires_at,
                }),
            }
        }
        Ok(logins)
    }

    /// Returns the family with this id, if it still has a token row.
    ///
    /// # Errors
    /// [`StoreError::Row`] if a stored row is malformed; any database error.
    pub async fn find_family(&self, family: SessionId) -> Result<Option<Family>, StoreError> {
        let query = refresh_tokens::Entity::find()
            .filter(refresh_tokens::Column::Family.eq(family.0))
            .order_by_desc(refresh_tokens::Column::ExpiresAt);
        Ok(one::<_, RefreshToken>(query.one(&self.conn).await?)?.map(Family::from))
    }

    /// Returns the owner of a family.
    ///
    /// # Errors
    /// [`StoreError::Row`] if a stored row is malformed; any database error.
    pub async fn find_family_owner(&self, family: SessionId) -> Result<Option<UserId>, StoreError> {
        let query = refresh_tokens::Entity::find().filter(refresh_tokens::Column::Family.eq(family.0));
        Ok(query.one(&self.conn).await?.map(|token| token.user_id.into()))
    }
}
