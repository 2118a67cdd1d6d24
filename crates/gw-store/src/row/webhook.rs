//! Webhooks and their events.

use super::{RowRef, at};
use crate::{
    StoreError,
    entity::{webhook_events, webhooks},
    record::{Webhook, WebhookEvent, WebhookEventType},
};
use gw_types::SealedWebhookSecret;

/// Reads the encrypted secret of a webhook.
pub(crate) fn webhook_secret(row: &webhooks::Model) -> Result<SealedWebhookSecret, StoreError> {
    let bytes = row.secret.as_slice().try_into();
    bytes
        .map(SealedWebhookSecret)
        .map_err(|_| RowRef::new("webhooks", row.org_id).invalid_column("secret"))
}

impl TryFrom<webhooks::Model> for Webhook {
    type Error = StoreError;
    fn try_from(row: webhooks::Model) -> Result<Self, StoreError> {
        let place = RowRef::new("webhooks", row.org_id);
        let last_failure = match (row.last_failure_at, &row.last_failure) {
            (Some(time), Some(failure)) => Some((at(time), place.parse("last_failure", failure)?)),
            (None, None) => None,
            (Some(_), None) | (None, Some(_)) => return Err(place.invalid_column("last_failure")),
        };
        Ok(Self {
            org: row.org_id.into(),
            url: row.url,
            created_at: at(row.created_at),
            updated_at: at(row.updated_at),
            last_success_at: row.last_success_at.map(at),
            last_failure,
        })
    }
}

impl TryFrom<webhook_events::Model> for WebhookEvent {
    type Error = StoreError;
    fn try_from(row: webhook_events::Model) -> Result<Self, StoreError> {
        let place = RowRef::new("webhook_events", row.id);
        Ok(Self {
            id: row.id.into(),
            org: row.org_id.into(),
            kind: WebhookEventType::parse(&row.event_type).ok_or_else(|| place.invalid_column("event_type"))?,
            request: row.request_id.map(Into::into),
            grant: row.grant_id.map(Into::into),
            status: row.status,
            created_at: at(row.created_at),
            attempts: u32::try_from(row.attempts).map_err(|_| place.invalid_column("attempts"))?,
        })
    }
}
