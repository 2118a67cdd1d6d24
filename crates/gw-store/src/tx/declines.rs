//! People who declined or left an organization by their own decision (HD32, decision 62). A new invitation does not
//! restore their membership: only their agreement does. Removal by an administrator is not a decline.

use super::Tx;
use crate::{StoreError, entity::declined_organizations, record::User};
use gw_types::{ExternalId, OrgId, UserId};
use sea_orm::{ActiveModelTrait, ActiveValue::Set, ColumnTrait, EntityTrait, QueryFilter};

impl Tx {
    /// Stores that a user declined or left.
    pub(super) async fn remember_decline(&mut self, user: UserId, org: OrgId) -> Result<(), StoreError> {
        let name = self.name_of(user).await?;
        if self.declined_by(&name).await?.contains(&org) {
            return Ok(());
        }
        let row = declined_organizations::ActiveModel {
            id: Set(self.new_id()),
            org_id: Set(org.0),
            external_id: Set(name.as_str().to_owned()),
            declined_at: Set(self.now.micros()),
        };
        row.insert(&self.db).await?;
        Ok(())
    }

    /// Deletes the decline: the user joined by their own decision.
    pub(super) async fn forget_decline(&mut self, user: UserId, org: OrgId) -> Result<(), StoreError> {
        let name = self.name_of(user).await?;
        declined_organizations::Entity::delete_many()
            .filter(declined_organizations::Column::OrgId.eq(org.0))
            .filter(declined_organizations::Column::ExternalId.eq(name.as_str()))
            .exec(&self.db)
            .await?;
        Ok(())
    }

    /// Returns the organizations that a person declined or left.
    pub(super) async fn declined_by(&self, name: &ExternalId) -> Result<Vec<OrgId>, StoreError> {
        let rows = declined_organizations::Entity::find()
            .filter(declined_organizations::Column::ExternalId.eq(name.as_str()))
            .all(&self.db)
            .await?;
        Ok(rows.into_iter().map(|row| row.org_id.into()).collect())
    }

    pub(super) async fn name_of(&self, user: UserId) -> Result<ExternalId, StoreError> {
        Ok(User::try_from(self.user_row(user).await?)?.external_id)
    }
}
