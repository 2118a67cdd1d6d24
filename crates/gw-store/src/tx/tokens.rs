//! Refresh tokens, their rotation and the end of tokens (spec/10 section 4).
//!
//! A login and the end of a family leave audit entries; rotations leave none, they change no right.

use super::{
    Tx,
    entry::{Action, ForApplication},
};
use crate::{
    Missing, StoreError,
    entity::{refresh_tokens, revocations},
    record::{Application, Family, NewRefreshToken, PendingLogin, RefreshToken, Rotation, TokenHash, User},
};
use gw_types::{Seconds, SessionId, Timestamp, TokenId, UserId};
use sea_orm::{
    ActiveModelTrait, ActiveValue::Set, ColumnTrait, EntityTrait, IntoActiveModel, QueryFilter, QueryOrder,
    sea_query::OnConflict,
};
use uuid::Uuid;

/// Within this time a second use is a parallel refresh; after it, somebody has a copy (TK-5).
const PARALLEL: Seconds = Seconds(10);
/// The longest life of a family (TK-5).
const FAMILY_LIFE: Seconds = Seconds(30 * 86_400);
/// No access token lives longer (decision 35: 24 h, and the skew of decision 36).
const LONGEST_ACCESS: Seconds = Seconds(86_400 + 60);

impl Tx {
    /// Stores the first refresh token of a family.
    pub async fn store_refresh_token(&mut self, new: NewRefreshToken) -> Result<(), StoreError> {
        let family = Family {
            id: new.family,
            user: new.user,
            amr: new.amr.clone(),
            started: new.family_started,
            expires_at: new.expires_at,
        };
        self.insert_refresh_token(new).await?;
        self.note(Action::Create, None, None, Some(&family));
        Ok(())
    }

    /// Notes that an administrator ends a login that is on its way, or the wait for its tokens. The login itself is in
    /// the cache, not here.
    pub fn note_login_ended(&mut self, login: &PendingLogin) {
        self.note(Action::Delete, None, Some(login), None);
    }

    /// The same for a login that one of our applications gets silently: the entry says for which (spec/10 OA-10).
    pub async fn store_application_token(
        &mut self,
        new: NewRefreshToken,
        application: &Application<'_>,
    ) -> Result<(), StoreError> {
        let family = Family {
            id: new.family,
            user: new.user,
            amr: new.amr.clone(),
            started: new.family_started,
            expires_at: new.expires_at,
        };
        self.insert_refresh_token(new).await?;
        let entry = ForApplication { family: &family, application };
        self.note(Action::Create, None, None, Some(&entry));
        Ok(())
    }

    /// Exchanges a refresh token for its successor, or says why not (TK-5). The successor is of the same family,
    /// user and login, whatever it says, and ends with the family at the latest.
    pub async fn rotate_refresh_token(
        &mut self,
        old: TokenHash,
        successor: NewRefreshToken,
    ) -> Result<Rotation, StoreError> {
        let row = refresh_tokens::Entity::find()
            .filter(refresh_tokens::Column::Hash.eq(old.0.to_vec()))
            .one(&self.db)
            .await?;
        let Some(row) = row else { return Ok(Rotation::Unknown) };
        let token = RefreshToken::try_from(row.clone())?;
        if let Some(used) = token.used_at {
            if self.now <= used.plus(PARALLEL) {
                return Ok(Rotation::JustUsed);
            }
            self.revoke_family(token.family, self.now.plus(LONGEST_ACCESS)).await?;
            return Ok(Rotation::Reused);
        }
        let family_end = token.family_started.plus(FAMILY_LIFE);
        if token.expires_at <= self.now || family_end <= self.now {
            return Ok(Rotation::Expired);
        }
        let mut row = row.into_active_model();
        row.used_at = Set(Some(self.now.micros()));
        row.update(&self.db).await?;
        self.insert_refresh_token(NewRefreshToken {
            family: token.family,
            user: token.user,
            amr: token.amr,
            family_started: token.family_started,
            expires_at: successor.expires_at.min(family_end),
            ..successor
        })
        .await?;
        Ok(Rotation::Done)
    }

    /// Ends a family: its refresh tokens go, its access tokens are dead until `until`, when the last has expired.
    /// Whether it could still refresh.
    pub async fn revoke_family(&mut self, family: SessionId, until: Timestamp) -> Result<bool, StoreError> {
        let newest = refresh_tokens::Entity::find()
            .filter(refresh_tokens::Column::Family.eq(family.0))
            .order_by_desc(refresh_tokens::Column::ExpiresAt)
            .one(&self.db)
            .await?;
        // Revoked even if unknown: an access token may outlive its family's rows.
        self.insert_revocation(family.0, until).await?;
        let Some(newest) = newest else { return Ok(false) };
        let ended = Family::from(RefreshToken::try_from(newest)?);
        refresh_tokens::Entity::delete_many()
            .filter(refresh_tokens::Column::Family.eq(family.0))
            .exec(&self.db)
            .await?;
        self.note(Action::Revoke, None, Some(&ended), None);
        Ok(true)
    }

    /// Ends a family of `user` with every token of it; nothing if the user has no such family.
    pub async fn end_session(&mut self, user: UserId, family: SessionId) -> Result<(), StoreError> {
        if self.read().find_family_owner(family).await? != Some(user) {
            return Err(StoreError::NotFound(Missing::Session));
        }
        self.revoke_family(family, self.now.plus(LONGEST_ACCESS)).await.map(drop)
    }

    /// Ends all families of `user`, and every access token issued so far; says how many there were.
    pub async fn end_sessions(&mut self, user: UserId) -> Result<usize, StoreError> {
        let families = self.read().list_families(user, self.now).await?;
        for family in &families {
            self.note(Action::Revoke, None, Some(family), None);
        }
        refresh_tokens::Entity::delete_many().filter(refresh_tokens::Column::UserId.eq(user.0)).exec(&self.db).await?;
        self.end_access_tokens(user).await?;
        Ok(families.len())
    }

    /// Ends one access token by its `jti` until it would have expired.
    pub async fn revoke_access_token(&mut self, token: TokenId, until: Timestamp) -> Result<(), StoreError> {
        self.insert_revocation(token.0, until).await
    }

    /// Ends every token of a user issued before now.
    pub async fn revoke_user_tokens(&mut self, user: UserId) -> Result<(), StoreError> {
        let row = self.user_row(user).await?;
        let before = User::try_from(row.clone())?;
        let mut row = row.into_active_model();
        row.tokens_valid_from = Set(Some(self.now.micros()));
        row.update(&self.db).await?;
        self.forget_refresh_tokens(user).await?;
        self.note(Action::Revoke, None, Some(&before), None);
        Ok(())
    }

    async fn insert_refresh_token(&self, new: NewRefreshToken) -> Result<(), StoreError> {
        let row = refresh_tokens::ActiveModel {
            id: Set(new.id.0),
            hash: Set(new.hash.0.to_vec()),
            family: Set(new.family.0),
            user_id: Set(new.user.0),
            amr: Set(new.amr),
            family_started: Set(new.family_started.micros()),
            created_at: Set(self.now.micros()),
            expires_at: Set(new.expires_at.micros()),
            used_at: Set(None),
        };
        refresh_tokens::Entity::insert(row).exec_without_returning(&self.db).await?;
        Ok(())
    }

    async fn insert_revocation(&self, id: Uuid, until: Timestamp) -> Result<(), StoreError> {
        let row = revocations::ActiveModel { id: Set(id), until: Set(until.micros()) };
        // A second revocation may only lengthen the first.
        let stored = revocations::Entity::find_by_id(id).one(&self.db).await?;
        if stored.is_some_and(|stored| stored.until >= until.micros()) {
            return Ok(());
        }
        let again = OnConflict::column(revocations::Column::Id).update_column(revocations::Column::Until).to_owned();
        revocations::Entity::insert(row).on_conflict(again).exec_without_returning(&self.db).await?;
        Ok(())
    }
}

impl From<RefreshToken> for Family {
    fn from(token: RefreshToken) -> Self {
        Self {
            id: token.family,
            user: token.user,
            amr: token.amr,
            started: token.family_started,
            expires_at: token.expires_at,
        }
    }
}
