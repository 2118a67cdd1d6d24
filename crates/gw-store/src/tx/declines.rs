//! Who declined or left an organization, by their own act (HD32, decision 62). Inviting them again brings nobody back: only
//! they do, by agreeing. What an administrator removes is no decline.

use super::Tx;
use crate::{StoreError, entity::declined_organizations, record::User};
use gw_types::{ExternalId, OrgId, UserId};
use sea_orm::{ActiveModelTrait, ActiveValue::Set, ColumnTrait, EntityTrait, QueryFilter};

impl Tx {
    /// Remembers that somebody declined or left.
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

    /// They have come by their own act: what was before is over.
    pub(super) async fn forget_decline(&mut self, user: UserId, org: OrgId) -> Result<(), StoreError> {
        let name = self.name_of(user).await?;
        declined_organizations::Entity::delete_many()
            .filter(declined_organizations::Column::OrgId.eq(org.0))
            .filter(declined_organizations::Column::ExternalId.eq(name.as_str()))
            .exec(&self.db)
            .await?;
        Ok(())
    }

    /// The organizations that somebody declined or left.
    pub(super) async fn declined_by(&self, name: &ExternalId) -> Result<Vec<OrgId>, StoreError> {
        let found = declined_organizations::Entity::find()
            .filter(declined_organizations::Column::ExternalId.eq(name.as_str()))
            .all(&self.db)
            .await?;
        Ok(found.into_iter().map(|row| row.org_id.into()).collect())
    }

    pub(super) async fn name_of(&self, user: UserId) -> Result<ExternalId, StoreError> {
        Ok(User::try_from(self.user_row(user).await?)?.external_id)
    }
}
