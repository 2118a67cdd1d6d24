//! Personal RPC URLs.

use super::{Queries, all};
use crate::{StoreError, entity::personal_urls, record::PersonalUrl};
use gw_types::{Timestamp, UserId};
use sea_orm::{ColumnTrait, EntityTrait, QueryFilter, QueryOrder};

impl Queries<'_> {
    /// Lists a user's live URLs, newest first.
    ///
    /// # Errors
    /// [`StoreError::Row`] if a stored row is malformed; any database error.
    pub async fn list_personal_urls(&self, user: UserId, now: Timestamp) -> Result<Vec<PersonalUrl>, StoreError> {
        let query = personal_urls::Entity::find()
            .filter(personal_urls::Column::UserId.eq(user.0))
            .filter(personal_urls::Column::ExpiresAt.gt(now.micros()))
            .order_by_desc(personal_urls::Column::CreatedAt)
            .order_by_desc(personal_urls::Column::Id);
        all(query.all(&self.conn).await?)
    }
}
