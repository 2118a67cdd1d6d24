//! Refresh tokens and their families.

use super::{Reads, all, one};
use crate::{
    StoreError,
    entity::refresh_tokens,
    record::{Family, RefreshToken, TokenHash},
};
use gw_types::{SessionId, Timestamp, UserId};
use sea_orm::{ColumnTrait, EntityTrait, QueryFilter, QueryOrder};

impl Reads<'_> {
    /// The stored refresh token of a hash.
    pub async fn find_refresh_token(&self, hash: TokenHash) -> Result<Option<RefreshToken>, StoreError> {
        let found = refresh_tokens::Entity::find().filter(refresh_tokens::Column::Hash.eq(hash.0.to_vec()));
        one(found.one(&self.conn).await?)
    }

    /// A user's families that can still refresh, newest login first: each has one unused token.
    pub async fn list_families(&self, user: UserId, now: Timestamp) -> Result<Vec<Family>, StoreError> {
        let found = refresh_tokens::Entity::find()
            .filter(refresh_tokens::Column::UserId.eq(user.0))
            .filter(refresh_tokens::Column::UsedAt.is_null())
            .filter(refresh_tokens::Column::ExpiresAt.gt(now.micros()))
            .order_by_desc(refresh_tokens::Column::FamilyStarted)
            .order_by_asc(refresh_tokens::Column::Id);
        let tokens: Vec<RefreshToken> = all(found.all(&self.conn).await?)?;
        Ok(tokens.into_iter().map(Family::from).collect())
    }

    /// Whose a family is.
    pub async fn find_family_owner(&self, family: SessionId) -> Result<Option<UserId>, StoreError> {
        let found = refresh_tokens::Entity::find().filter(refresh_tokens::Column::Family.eq(family.0));
        Ok(found.one(&self.conn).await?.map(|token| token.user_id.into()))
    }
}
