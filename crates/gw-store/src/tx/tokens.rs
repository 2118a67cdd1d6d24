//! Refresh tokens, their rotation and the revocation of tokens (spec/10 section 4).
//!
//! A login and the end of a family have audit entries; rotations have none, as they change no permission.

use super::{
    Tx,
    audit::{Action, SilentLogin},
};
use crate::{
    Missing, StoreError,
    entity::{refresh_tokens, revocations},
    record::{Application, Family, LoginUrls, NewRefreshToken, PendingLogin, RefreshToken, Rotation, TokenHash, User},
};
use gw_types::{Seconds, SessionId, Timestamp, TokenId, UserId};
use sea_orm::{
    ActiveModelTrait, ActiveValue::Set, ColumnTrait, Condition, EntityTrait, IntoActiveModel, QueryFilter,
    sea_query::OnConflict,
};
use std::collections::BTreeSet;
use uuid::Uuid;

/// Within this time a second use counts as a parallel refresh; after it, as use of a copy (TK-5).
const PARALLEL: Seconds = Seconds(10);
/// Maximum lifetime of a family (TK-5).
const FAMILY_LIFE: Seconds = Seconds(30 * 86_400);
/// Maximum lifetime of an access token (decision 35: 24 h, plus the skew of decision 36).
const LONGEST_ACCESS: Seconds = Seconds(86_400 + 60);

impl Tx {
    /// Stores the first refresh token of a family.
    ///
    /// # Errors
    /// [`StoreError::Conflict`] if the token is stored already; [`StoreError::Rule`] if the user does not exist;
    /// [`StoreError::Row`] if a stored row is malformed; any database error.
    pub async fn store_refresh_token(&mut self, new: NewRefreshToken) -> Result<(), StoreError> {
        let family = Family {
            id: new.family,
            login: new.login,
            user: new.user,
            amr: new.amr.clone(),
            started: new.family_started,
            expires_at: new.expires_at,
        };
        self.insert_refresh_token(new).await?;
        self.record_audit(Action::Create, None, None, Some(&family));
        Ok(())
    }

    /// Records that an administrator ends a pending login, or the wait for its tokens. The login itself is in the
    /// cache, not here.
    pub fn note_login_ended(&mut self, login: &PendingLogin) {
        self.record_audit(Action::Delete, None, Some(login), None);
    }

    /// Stores the first refresh token of a login that one of our applications gets silently: the entry names the
    /// application (spec/10 OA-10).
    ///
    /// # Errors
    /// [`StoreError::Conflict`] if the token is stored already; [`StoreError::Rule`] if the user does not exist;
    /// [`StoreError::Row`] if a stored row is malformed; any database error.
    pub async fn store_application_token(
        &mut self,
        new: NewRefreshToken,
        application: &Application<'_>,
    ) -> Result<(), StoreError> {
        let family = Family {
            id: new.family,
            login: new.login,
            user: new.user,
            amr: new.amr.clone(),
            started: new.family_started,
            expires_at: new.expires_at,
        };
        self.insert_refresh_token(new).await?;
        let entry = SilentLogin {
            family: &family,
            application,
        };
        self.record_audit(Action::Create, None, None, Some(&entry));
        Ok(())
    }

    /// Exchanges a refresh token for its successor, or returns why not (TK-5). The successor gets the family, user and
    /// login of the old token, whatever `successor` says, and expires with the family at the latest.
    ///
    /// # Errors
    /// [`StoreError::Conflict`] if the new token is stored already; [`StoreError::Row`] if a stored row is malformed;
    /// any database error.
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
            self.revoke_login(token.family, self.now.plus(LONGEST_ACCESS), LoginUrls::End)
                .await?;
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
            login: token.login,
            user: token.user,
            amr: token.amr,
            family_started: token.family_started,
            expires_at: successor.expires_at.min(family_end),
            ..successor
        })
        .await?;
        Ok(Rotation::Done)
    }

    /// Ends a family: deletes its refresh tokens, revokes its access tokens until `until`, when the last has expired,
    /// and ends the personal URLs of its login (HD35). Returns whether the family still had token rows.
    ///
    /// # Errors
    /// [`StoreError::Row`] if a stored row is malformed; any database error.
    pub async fn revoke_family(&mut self, family: SessionId, until: Timestamp) -> Result<bool, StoreError> {
        let stored_family = self.read().find_family(family).await?;
        self.end_urls_of_login(
            stored_family
                .as_ref()
                .map_or(family, |stored_family| stored_family.login),
        )
        .await?;
        self.end_family(family, stored_family, until).await
    }

    /// Ends the login of a family with everything it created: every family, and the personal URLs unless they are kept
    /// (HD35). Returns the families that still had token rows.
    ///
    /// # Errors
    /// [`StoreError::Row`] if a stored row is malformed; any database error.
    pub async fn revoke_login(
        &mut self,
        family: SessionId,
        until: Timestamp,
        urls: LoginUrls,
    ) -> Result<Vec<SessionId>, StoreError> {
        let login = self
            .read()
            .find_family(family)
            .await?
            .map_or(family, |family| family.login);
        let of_login = Condition::any()
            .add(refresh_tokens::Column::Login.eq(login.0))
            .add(refresh_tokens::Column::Family.is_in([login.0, family.0]));
        let rows = refresh_tokens::Entity::find().filter(of_login).all(&self.db).await?;
        let mut families: BTreeSet<SessionId> = rows.into_iter().map(|row| row.family.into()).collect();
        // Revoked even without token rows: access tokens may still be valid.
        families.extend([login, family]);
        if urls == LoginUrls::End {
            self.end_urls_of_login(login).await?;
        }
        let mut ended_families = Vec::new();
        for family in families {
            let stored_family = self.read().find_family(family).await?;
            if self.end_family(family, stored_family, until).await? {
                ended_families.push(family);
            }
        }
        Ok(ended_families)
    }

    async fn end_family(
        &mut self,
        family: SessionId,
        newest: Option<Family>,
        until: Timestamp,
    ) -> Result<bool, StoreError> {
        // Revoked even if unknown: an access token may outlive its family's rows.
        self.insert_revocation(family.0, until).await?;
        let Some(ended) = newest else { return Ok(false) };
        refresh_tokens::Entity::delete_many()
            .filter(refresh_tokens::Column::Family.eq(family.0))
            .exec(&self.db)
            .await?;
        self.record_audit(Action::Revoke, None, Some(&ended), None);
        Ok(true)
    }

    /// Ends a login of `user`, named by any of its families, with everything it created; fails with
    /// [`Missing::Session`] if the user has no such login.
    ///
    /// # Errors
    /// [`StoreError::NotFound`] if the user has no such session; [`StoreError::Row`] if a stored row is malformed; any
    /// database error.
    pub async fn end_session(&mut self, user: UserId, family: SessionId) -> Result<(), StoreError> {
        let of_login = Condition::any()
            .add(refresh_tokens::Column::Family.eq(family.0))
            .add(refresh_tokens::Column::Login.eq(family.0));
        let row = refresh_tokens::Entity::find()
            .filter(of_login)
            .filter(refresh_tokens::Column::UserId.eq(user.0))
            .one(&self.db)
            .await?
            .ok_or(StoreError::NotFound(Missing::Session))?;
        self.revoke_login(row.family.into(), self.now.plus(LONGEST_ACCESS), LoginUrls::End)
            .await
            .map(drop)
    }

    /// Ends all families of `user`, and every access token issued so far; returns the number of families that could
    /// still refresh.
    ///
    /// # Errors
    /// [`StoreError::NotFound`] if there is no such user; [`StoreError::Row`] if a stored row is malformed; any
    /// database error.
    pub async fn end_sessions(&mut self, user: UserId) -> Result<usize, StoreError> {
        let families = self.read().list_families(user, self.now).await?;
        for family in &families {
            self.record_audit(Action::Revoke, None, Some(family), None);
        }
        refresh_tokens::Entity::delete_many()
            .filter(refresh_tokens::Column::UserId.eq(user.0))
            .exec(&self.db)
            .await?;
        self.end_access_tokens(user).await?;
        Ok(families.len())
    }

    /// Revokes one access token by its `jti` until it would have expired.
    ///
    /// # Errors
    /// Any database error.
    pub async fn revoke_access_token(&mut self, token: TokenId, until: Timestamp) -> Result<(), StoreError> {
        self.insert_revocation(token.0, until).await
    }

    /// Revokes every token of a user issued before now.
    ///
    /// # Errors
    /// [`StoreError::NotFound`] if there is no such user; any database error.
    pub async fn revoke_user_tokens(&mut self, user: UserId) -> Result<(), StoreError> {
        let row = self.user_row(user).await?;
        let before = User::try_from(row.clone())?;
        let mut row = row.into_active_model();
        row.tokens_valid_from = Set(Some(self.now.micros()));
        row.update(&self.db).await?;
        self.forget_refresh_tokens(user).await?;
        self.record_audit(Action::Revoke, None, Some(&before), None);
        Ok(())
    }

    async fn insert_refresh_token(&self, new: NewRefreshToken) -> Result<(), StoreError> {
        let row = refresh_tokens::ActiveModel {
            id: Set(new.id.0),
            hash: Set(new.hash.0.to_vec()),
            family: Set(new.family.0),
            login: Set(Some(new.login.0)),
            user_id: Set(new.user.0),
            amr: Set(new.amr),
            family_started: Set(new.family_started.micros()),
            created_at: Set(self.now.micros()),
            expires_at: Set(new.expires_at.micros()),
            used_at: Set(None),
        };
        refresh_tokens::Entity::insert(row)
            .exec_without_returning(&self.db)
            .await?;
        Ok(())
    }

    async fn insert_revocation(&self, id: Uuid, until: Timestamp) -> Result<(), StoreError> {
        let row = revocations::ActiveModel {
            id: Set(id),
            until: Set(until.micros()),
        };
        // A second revocation may only extend the first.
        let stored = revocations::Entity::find_by_id(id).one(&self.db).await?;
        if stored.is_some_and(|stored| stored.until >= until.micros()) {
            return Ok(());
        }
        let on_conflict = OnConflict::column(revocations::Column::Id)
            .update_column(revocations::Column::Until)
            .to_owned();
        revocations::Entity::insert(row)
            .on_conflict(on_conflict)
            .exec_without_returning(&self.db)
            .await?;
        Ok(())
    }
}

impl From<RefreshToken> for Family {
    fn from(token: RefreshToken) -> Self {
        Self {
            id: token.family,
            login: token.login,
            user: token.user,
            amr: token.amr,
            started: token.family_started,
            expires_at: token.expires_at,
        }
    }
}
