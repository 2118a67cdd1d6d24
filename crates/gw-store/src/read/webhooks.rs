//! Webhooks of organizations.

use super::{Queries, one};
use crate::{
    StoreError,
    entity::{webhook_events, webhooks},
    record::{Webhook, WebhookStatus},
    row,
};
use gw_types::{OrgId, SealedWebhookSecret};
use sea_orm::{ColumnTrait, EntityTrait, PaginatorTrait, QueryFilter, QueryOrder};

impl Queries<'_> {
    /// Finds the webhook of an organization.
    ///
    /// # Errors
    /// [`StoreError::Row`] if a stored row is malformed; any database error.
    pub async fn find_webhook(&self, org: OrgId) -> Result<Option<WebhookStatus>, StoreError> {
        let webhook: Option<Webhook> = one(webhooks::Entity::find_by_id(org.0).one(&self.conn).await?)?;
        let Some(webhook) = webhook else { return Ok(None) };
        let waiting = self.count_webhook_events(org).await?;
        Ok(Some(WebhookStatus { webhook, waiting }))
    }

    /// Lists the encrypted secrets of all webhooks.
    ///
    /// # Errors
    /// [`StoreError::Row`] if a stored row is malformed; any database error.
    pub async fn list_webhook_secrets(&self) -> Result<Vec<(OrgId, SealedWebhookSecret)>, StoreError> {
        let rows = webhooks::Entity::find().order_by_asc(webhooks::Column::OrgId);
        let rows = rows.all(&self.conn).await?;
        rows.iter()
            .map(|row| Ok((row.org_id.into(), row::webhook_secret(row)?)))
            .collect()
    }

    /// Counts the events of an organization that wait for delivery.
    pub(crate) async fn count_webhook_events(&self, org: OrgId) -> Result<u64, StoreError> {
        let events = webhook_events::Entity::find().filter(webhook_events::Column::OrgId.eq(org.0));
        Ok(events.count(&self.conn).await?)
    }
}
