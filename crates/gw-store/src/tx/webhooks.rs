//! Webhooks of organizations, and the events that are written with the transitions that they report.
//!
//! Invariant: an event is committed if and only if its transition is, and only if the organization has a webhook.

use super::{
    Tx,
    audit::{Action, Auditable},
};
use crate::{
    Missing, StoreError,
    entity::{webhook_events, webhooks},
    record::{DisclosureRequest, MAX_WAITING_EVENTS, Webhook, WebhookEventType},
    row,
};
use gw_audit::ResourceType;
use gw_crypto::KeyCipher;
use gw_policy::disclosure::GrantStatus;
use gw_types::{DisclosureGrantId, DisclosureRequestId, OrgId, SealedWebhookSecret, WebhookEventId};
use sea_orm::{
    ActiveModelTrait, ActiveValue::Set, ColumnTrait, EntityTrait, IntoActiveModel, ModelTrait, QueryFilter, QueryOrder,
    QuerySelect,
};
use serde_json::{Value, json};
use std::collections::BTreeMap;
use uuid::Uuid;

/// The `status` of an event about a request that was withdrawn.
const WITHDRAWN: &str = "deleted";

impl Tx {
    /// Creates the webhook of an organization, or changes its address and, if `secret` is set, its secret.
    ///
    /// # Errors
    /// [`StoreError::NotFound`] if there is no webhook and no secret to create one with; [`StoreError::Row`] if a
    /// stored row is malformed; any database error.
    pub async fn set_webhook(
        &mut self,
        org: OrgId,
        url: &str,
        secret: Option<SealedWebhookSecret>,
    ) -> Result<Webhook, StoreError> {
        let stored = webhooks::Entity::find_by_id(org.0).one(&self.db).await?;
        let (before, row) = match (stored, secret) {
            (None, None) => return Err(StoreError::NotFound(Missing::Webhook)),
            (None, Some(secret)) => {
                let row = webhooks::ActiveModel {
                    org_id: Set(org.0),
                    url: Set(url.to_owned()),
                    secret: Set(secret.0.to_vec()),
                    created_at: Set(self.now.micros()),
                    updated_at: Set(self.now.micros()),
                    last_success_at: Set(None),
                    last_failure_at: Set(None),
                    last_failure: Set(None),
                };
                (None, row.insert(&self.db).await?)
            }
            (Some(stored), secret) => {
                let before = Webhook::try_from(stored.clone())?;
                let mut row = stored.into_active_model();
                row.url = Set(url.to_owned());
                row.updated_at = Set(self.now.micros());
                if let Some(secret) = secret {
                    row.secret = Set(secret.0.to_vec());
                }
                (Some(before), row.update(&self.db).await?)
            }
        };
        let webhook = Webhook::try_from(row)?;
        let change = |webhook, is_changed| WebhookChange { webhook, is_changed };
        let (action, before) = match &before {
            None => (Action::Create, None),
            Some(before) => (Action::Update, Some(change(before, false))),
        };
        let after = change(&webhook, before.is_some() && secret.is_some());
        self.record_audit(action, Some(org), before.as_ref(), Some(&after));
        Ok(webhook)
    }

    /// Deletes the webhook of an organization with its waiting events.
    ///
    /// # Errors
    /// [`StoreError::NotFound`] if there is none; [`StoreError::Row`] if a stored row is malformed; any database error.
    pub async fn delete_webhook(&mut self, org: OrgId) -> Result<(), StoreError> {
        if self.remove_webhook(org).await? {
            Ok(())
        } else {
            Err(StoreError::NotFound(Missing::Webhook))
        }
    }

    /// Deletes the webhook of an organization, if it has one. Returns whether it had one.
    pub(super) async fn remove_webhook(&mut self, org: OrgId) -> Result<bool, StoreError> {
        webhook_events::Entity::delete_many()
            .filter(webhook_events::Column::OrgId.eq(org.0))
            .exec(&self.db)
            .await?;
        let Some(row) = webhooks::Entity::find_by_id(org.0).one(&self.db).await? else {
            return Ok(false);
        };
        let webhook = Webhook::try_from(row.clone())?;
        row.delete(&self.db).await?;
        let change = WebhookChange {
            webhook: &webhook,
            is_changed: false,
        };
        self.record_audit(Action::Delete, Some(org), Some(&change), None);
        Ok(true)
    }

    /// Adds a test event for the webhook of an organization.
    ///
    /// # Errors
    /// [`StoreError::NotFound`] if there is no webhook; any database error.
    pub async fn add_webhook_test(&mut self, org: OrgId) -> Result<WebhookEventId, StoreError> {
        let event = self
            .add_webhook_event(org, WebhookEventType::Test, None, None, None)
            .await?;
        let event = event.ok_or(StoreError::NotFound(Missing::Webhook))?;
        self.record_audit(Action::Create, Some(org), None, Some(&WebhookTest { org, event }));
        Ok(event)
    }

    /// Encrypts the secrets of these webhooks anew, those that need the previous encryption key. Returns their number.
    /// A secret that no configured key opens stays as it is.
    ///
    /// # Errors
    /// [`StoreError::Row`] if a stored row is malformed; any database error.
    pub async fn renew_webhook_secrets(&mut self, orgs: &[OrgId], cipher: &KeyCipher) -> Result<u64, StoreError> {
        let mut count = 0;
        for org in orgs {
            let Some(row) = webhooks::Entity::find_by_id(org.0).one(&self.db).await? else {
                continue;
            };
            let stored = row::webhook_secret(&row)?;
            let entropy = &*self.store.config.entropy;
            let Ok(Some(renewed)) = cipher.renewed_webhook_secret(*org, &stored, entropy) else {
                continue;
            };
            let mut row = row.into_active_model();
            row.secret = Set(renewed.0.to_vec());
            let webhook = Webhook::try_from(row.update(&self.db).await?)?;
            let change = WebhookChange {
                webhook: &webhook,
                is_changed: true,
            };
            self.record_audit(Action::Update, Some(*org), None, Some(&change));
            count += 1;
        }
        Ok(count)
    }

    /// Adds an event about a request, and about its grant if it has one.
    pub(super) async fn add_request_event(
        &mut self,
        kind: WebhookEventType,
        request: &DisclosureRequest,
        grant: Option<DisclosureGrantId>,
    ) -> Result<(), StoreError> {
        let status = if kind == WebhookEventType::Withdrawn {
            WITHDRAWN
        } else {
            request.status.as_str()
        };
        self.add_webhook_event(request.org, kind, Some(request.id), grant, Some(status))
            .await
            .map(drop)
    }

    /// Adds the event that a grant reached its end.
    pub(super) async fn add_grant_end_event(
        &mut self,
        org: OrgId,
        request: DisclosureRequestId,
        grant: DisclosureGrantId,
    ) -> Result<(), StoreError> {
        let (kind, status) = (WebhookEventType::GrantExpired, GrantStatus::Expired.as_str());
        self.add_webhook_event(org, kind, Some(request), Some(grant), Some(status))
            .await
            .map(drop)
    }

    /// Adds an event if the organization has a webhook. Returns its id.
    async fn add_webhook_event(
        &mut self,
        org: OrgId,
        kind: WebhookEventType,
        request: Option<DisclosureRequestId>,
        grant: Option<DisclosureGrantId>,
        status: Option<&str>,
    ) -> Result<Option<WebhookEventId>, StoreError> {
        if webhooks::Entity::find_by_id(org.0).one(&self.db).await?.is_none() {
            return Ok(None);
        }
        self.make_room_for_event(org).await?;
        let id = self.new_id();
        let row = webhook_events::ActiveModel {
            id: Set(id),
            org_id: Set(org.0),
            event_type: Set(kind.as_str().to_owned()),
            request_id: Set(request.map(|id| id.0)),
            grant_id: Set(grant.map(|id| id.0)),
            status: Set(status.map(str::to_owned)),
            created_at: Set(self.now.micros()),
            attempts: Set(0),
            next_attempt_at: Set(self.now.micros()),
            claim: Set(None),
            claimed_until: Set(None),
        };
        webhook_events::Entity::insert(row)
            .exec_without_returning(&self.db)
            .await?;
        Ok(Some(id.into()))
    }

    /// Drops the oldest events of an organization, so that one more does not exceed the limit.
    async fn make_room_for_event(&mut self, org: OrgId) -> Result<(), StoreError> {
        use webhook_events::Column as C;
        let waiting = self.read().count_webhook_events(org).await?;
        let Some(excess) = (waiting + 1)
            .checked_sub(MAX_WAITING_EVENTS)
            .filter(|excess| *excess > 0)
        else {
            return Ok(());
        };
        let oldest: Vec<Uuid> = webhook_events::Entity::find()
            .select_only()
            .column(C::Id)
            .filter(C::OrgId.eq(org.0))
            .order_by_asc(C::CreatedAt)
            .order_by_asc(C::Id)
            .limit(excess)
            .into_tuple()
            .all(&self.db)
            .await?;
        let dropped = webhook_events::Entity::delete_many()
            .filter(C::Id.is_in(oldest))
            .exec(&self.db)
            .await?;
        *self.dropped_events.entry(org).or_default() += dropped.rows_affected;
        Ok(())
    }
}

/// Reports events that were dropped to make room for newer ones.
pub(super) fn report_dropped(dropped: &BTreeMap<OrgId, u64>) {
    for (org, events) in dropped {
        metrics::counter!("ledger_gateway_webhook_events_dropped_total", "reason" => "limit").increment(*events);
        tracing::warn!(
            org.id = %org,
            events,
            "more than {MAX_WAITING_EVENTS} webhook events of an organization wait for delivery, so the oldest were \
             dropped: the receiver does not accept them; its administrators see why at the settings of the webhook"
        );
    }
}

/// A webhook in an audit entry.
struct WebhookChange<'a> {
    webhook: &'a Webhook,
    /// Whether its secret changed.
    is_changed: bool,
}

impl Auditable for WebhookChange<'_> {
    const RESOURCE: ResourceType = ResourceType::Webhook;
    fn resource_id(&self) -> String {
        self.webhook.org.to_string()
    }
    fn resource_name(&self) -> String {
        String::new()
    }
    fn image(&self) -> Value {
        let secret = if self.is_changed {
            json!({ "changed": true, "set": true })
        } else {
            json!({ "set": true })
        };
        json!({ "url": self.webhook.url, "secret": secret })
    }
}

/// A test of a webhook in an audit entry.
struct WebhookTest {
    org: OrgId,
    event: WebhookEventId,
}

impl Auditable for WebhookTest {
    const RESOURCE: ResourceType = ResourceType::Webhook;
    fn resource_id(&self) -> String {
        self.org.to_string()
    }
    fn resource_name(&self) -> String {
        String::new()
    }
    fn image(&self) -> Value {
        json!({ "test_event_id": self.event })
    }
}
