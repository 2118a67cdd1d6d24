//! The delivery of webhook events: workers of all instances claim events with leases.
//!
//! Each event is delivered at least once: a worker that dies after the receiver has an event leaves it claimed, and
//! after the lease another worker delivers it again. A change here is no change of policy and has no audit entry.

use crate::{
    Store, StoreError,
    entity::{webhook_events, webhooks},
    record::{DeliveryResult, WebhookClaim, WebhookDelivery, WebhookEvent},
    row,
};
use gw_types::{OrgId, Seconds, Timestamp, WebhookEventId};
use sea_orm::{
    ColumnTrait, Condition, EntityTrait, QueryFilter, QueryOrder, QuerySelect,
    sea_query::{Expr, ExprTrait as _},
};
use uuid::Uuid;
use webhook_events::Column as C;

impl Store {
    /// Claims due events for `lease`: of at most `orgs` organizations, those in `busy` excepted, at most `each` events.
    /// Returns `None` if nothing is due.
    ///
    /// # Errors
    /// Any database error.
    pub async fn claim_webhook_events(
        &self,
        busy: &[OrgId],
        orgs: u64,
        each: u64,
        lease: Seconds,
    ) -> Result<Option<WebhookClaim>, StoreError> {
        let (reader, writer) = (&self.inner.pools.reader, &self.inner.pools.writer);
        let now = self.inner.now();
        let longest_wait: Vec<Uuid> = webhook_events::Entity::find()
            .select_only()
            .column(C::OrgId)
            .filter(due(now))
            .filter(C::OrgId.is_not_in(busy.iter().map(|org| org.0)))
            .group_by(C::OrgId)
            .order_by_asc(Expr::col(C::NextAttemptAt).min())
            .order_by_asc(C::OrgId)
            .limit(orgs)
            .into_tuple()
            .all(reader)
            .await?;
        let mut ids: Vec<Uuid> = Vec::new();
        for org in longest_wait {
            let oldest: Vec<Uuid> = webhook_events::Entity::find()
                .select_only()
                .column(C::Id)
                .filter(due(now))
                .filter(C::OrgId.eq(org))
                .order_by_asc(C::NextAttemptAt)
                .order_by_asc(C::Id)
                .limit(each)
                .into_tuple()
                .all(reader)
                .await?;
            ids.extend(oldest);
        }
        if ids.is_empty() {
            return Ok(None);
        }
        let claim = self.inner.config.entropy.uuid();
        // Another worker may have claimed some of them since.
        let claimed = webhook_events::Entity::update_many()
            .col_expr(C::Claim, Expr::value(claim))
            .col_expr(C::ClaimedUntil, Expr::value(now.plus(lease).micros()))
            .filter(C::Id.is_in(ids))
            .filter(due(now))
            .exec(writer)
            .await?;
        if claimed.rows_affected == 0 {
            return Ok(None);
        }
        let rows: Vec<(Uuid, Uuid)> = webhook_events::Entity::find()
            .select_only()
            .column(C::OrgId)
            .column(C::Id)
            .filter(C::Claim.eq(claim))
            .order_by_asc(C::OrgId)
            .order_by_asc(C::CreatedAt)
            .order_by_asc(C::Id)
            .into_tuple()
            .all(writer)
            .await?;
        let mut events: Vec<(OrgId, Vec<WebhookEventId>)> = Vec::new();
        for (org, id) in rows {
            match events.last_mut() {
                Some((last, ids)) if last.0 == org => ids.push(id.into()),
                _ => events.push((org.into(), vec![id.into()])),
            }
        }
        Ok(Some(WebhookClaim { id: claim, events }))
    }

    /// Finds a claimed event with its webhook as it is now. `None` if the event or its webhook was deleted, or the
    /// claim has ended.
    ///
    /// # Errors
    /// [`StoreError::Row`] if a stored row is malformed; any database error.
    pub async fn find_claimed_webhook_event(
        &self,
        claim: Uuid,
        id: WebhookEventId,
    ) -> Result<Option<WebhookDelivery>, StoreError> {
        let reader = &self.inner.pools.reader;
        let event = webhook_events::Entity::find_by_id(id.0)
            .filter(C::Claim.eq(claim))
            .filter(C::ClaimedUntil.gt(self.inner.now().micros()))
            .one(reader)
            .await?;
        let Some(event) = event else { return Ok(None) };
        let webhook = webhooks::Entity::find_by_id(event.org_id).one(reader).await?;
        let Some(webhook) = webhook else { return Ok(None) };
        Ok(Some(WebhookDelivery {
            event: WebhookEvent::try_from(event)?,
            secret: row::webhook_secret(&webhook)?,
            url: webhook.url,
        }))
    }

    /// Records the result of an attempt to deliver a claimed event: deletes the event, or releases it until its next
    /// attempt. Does nothing if the claim is not in force any more.
    ///
    /// # Errors
    /// Any database error.
    pub async fn record_webhook_delivery(
        &self,
        claim: Uuid,
        event: &WebhookEvent,
        result: DeliveryResult,
    ) -> Result<(), StoreError> {
        let tx = self.inner.pools.begin_write().await?;
        let now = self.inner.now();
        let is_claimed = || Condition::all().add(C::Id.eq(event.id.0)).add(C::Claim.eq(claim));
        let changed = match result {
            DeliveryResult::Delivered | DeliveryResult::Dropped(_) => {
                let deleted = webhook_events::Entity::delete_many().filter(is_claimed());
                deleted.exec(&tx).await?.rows_affected
            }
            DeliveryResult::Retry(_, at) => {
                let released = webhook_events::Entity::update_many()
                    .col_expr(C::Attempts, Expr::value(i64::from(event.attempts) + 1))
                    .col_expr(C::NextAttemptAt, Expr::value(at.micros()))
                    .col_expr(C::Claim, Expr::value(None::<Uuid>))
                    .col_expr(C::ClaimedUntil, Expr::value(None::<i64>))
                    .filter(is_claimed());
                released.exec(&tx).await?.rows_affected
            }
        };
        if changed > 0 {
            use webhooks::Column as W;
            let update = webhooks::Entity::update_many().filter(W::OrgId.eq(event.org.0));
            let update = match result {
                DeliveryResult::Delivered => Some(update.col_expr(W::LastSuccessAt, Expr::value(now.micros()))),
                DeliveryResult::Retry(failure, _) | DeliveryResult::Dropped(failure) => failure.map(|failure| {
                    update
                        .col_expr(W::LastFailureAt, Expr::value(now.micros()))
                        .col_expr(W::LastFailure, Expr::value(failure.to_string()))
                }),
            };
            if let Some(update) = update {
                update.exec(&tx).await?;
            }
        }
        tx.commit().await
    }
}

/// Condition for events that a worker may claim.
fn due(now: Timestamp) -> Condition {
    let is_free = Condition::any()
        .add(C::ClaimedUntil.is_null())
        .add(C::ClaimedUntil.lte(now.micros()));
    Condition::all().add(C::NextAttemptAt.lte(now.micros())).add(is_free)
}
