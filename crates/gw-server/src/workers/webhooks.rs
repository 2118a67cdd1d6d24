//! Delivers events to the webhooks of organizations, signed as the
//! [Standard Webhooks](https://www.standardwebhooks.com) specification defines.
//!
//! All instances run it and claim events with leases. Each event is delivered at least once, in no promised order; its
//! id lets a receiver drop repeats. The deliveries of each organization are one task, so a slow receiver delays no
//! other organization.

use crate::webhook::DeliveryClient;
use bytes::Bytes;
use gw_crypto::{KeyCipher, webhook_signature};
use gw_store::{
    Store, StoreError,
    record::{DeliveryFailure, DeliveryResult, WebhookDelivery, WebhookEvent},
};
use gw_types::{Clock, OrgId, Seconds, Timestamp, WebhookEventId, WebhookSecret};
use http::{
    Request,
    header::{CONTENT_TYPE, USER_AGENT},
};
use http_body_util::Full;
use serde_json::json;
use std::{collections::HashMap, sync::Arc, time::Duration};
use tokio::{
    task::{Id, JoinSet},
    time::sleep,
};
use tokio_util::sync::CancellationToken;
use uuid::Uuid;

/// Time between two looks for due events.
const INTERVAL: Duration = Duration::from_secs(1);
/// Maximum organizations to which this instance delivers at a time.
const MAX_ORGS: usize = 64;
/// Maximum events of an organization that one claim contains.
const MAX_EVENTS: u64 = 5;
/// How long a claim lasts: longer than `MAX_EVENTS` attempts of 10 seconds.
const LEASE: Seconds = Seconds(90);
/// Pauses after the first failed attempts, in seconds; each later one is an hour.
const PAUSES: [u32; 4] = [5, 30, 5 * 60, 30 * 60];
const LAST_PAUSE: u32 = 3600;
/// An event is not tried again when it is older than this.
const MAX_AGE: Seconds = Seconds(24 * 3600);

/// Delivers webhook events.
#[derive(Debug)]
pub(crate) struct WebhookDeliverer {
    pub(crate) store: Store,
    pub(crate) cipher: Arc<KeyCipher>,
    pub(crate) clock: Arc<dyn Clock>,
    pub(crate) client: DeliveryClient,
}

impl WebhookDeliverer {
    /// Delivers events until `end` is cancelled, then ends after the attempts in progress.
    pub(crate) async fn run(self, end: CancellationToken) {
        let worker = Arc::new(self);
        let mut deliveries = JoinSet::new();
        let mut busy: HashMap<Id, OrgId> = HashMap::new();
        while !end.is_cancelled() {
            log_failure(worker.start_deliveries(&mut deliveries, &mut busy, &end).await);
            tokio::select! {
                () = end.cancelled() => break,
                () = sleep(INTERVAL) => {}
                Some(ended) = deliveries.join_next_with_id() => {
                    let id = ended.map_or_else(|panicked| panicked.id(), |(id, ())| id);
                    busy.remove(&id);
                }
            }
        }
        while deliveries.join_next().await.is_some() {}
    }

    /// Claims due events, and starts a task for each organization that has some.
    async fn start_deliveries(
        self: &Arc<Self>,
        deliveries: &mut JoinSet<()>,
        busy: &mut HashMap<Id, OrgId>,
        end: &CancellationToken,
    ) -> Result<(), StoreError> {
        let free = u64::try_from(MAX_ORGS.saturating_sub(busy.len())).unwrap_or(0);
        if free == 0 {
            return Ok(());
        }
        let orgs: Vec<OrgId> = busy.values().copied().collect();
        let claim = self.store.claim_webhook_events(&orgs, free, MAX_EVENTS, LEASE).await?;
        let Some(claim) = claim else { return Ok(()) };
        for (org, events) in claim.events {
            let (worker, end) = (Arc::clone(self), end.clone());
            let task = deliveries.spawn(async move {
                for event in events {
                    if end.is_cancelled() {
                        return;
                    }
                    log_failure(worker.deliver(claim.id, event).await);
                }
            });
            busy.insert(task.id(), org);
        }
        Ok(())
    }

    /// Tries to deliver a claimed event once.
    async fn deliver(&self, claim: Uuid, id: WebhookEventId) -> Result<(), StoreError> {
        // The webhook may have been changed or deleted since the claim.
        let Some(delivery) = self.store.find_claimed_webhook_event(claim, id).await? else {
            return Ok(());
        };
        let event = &delivery.event;
        let result = match self.cipher.open_webhook_secret(event.org, &delivery.secret) {
            Ok(secret) => self.attempt(&delivery, &secret).await.map_err(Some),
            Err(error) => {
                tracing::error!(
                    error = &error as &dyn std::error::Error,
                    org.id = %event.org,
                    "a webhook event is not delivered: the secret of the webhook cannot be decrypted; check \
                     RPC_API_KEY_ENCRYPTION_KEY and RPC_API_KEY_ENCRYPTION_KEY_PREVIOUS, or make a new secret"
                );
                Err(None)
            }
        };
        let label = if result.is_ok() { "delivered" } else { "failed" };
        metrics::counter!("ledger_gateway_webhook_deliveries_total", "result" => label).increment(1);
        let result = match result {
            Ok(()) => DeliveryResult::Delivered,
            Err(failure) => match next_attempt(event, self.clock.now()) {
                Some(at) => DeliveryResult::Retry(failure, at),
                None => {
                    report_dropped(event, failure);
                    DeliveryResult::Dropped(failure)
                }
            },
        };
        self.store.record_webhook_delivery(claim, event, result).await
    }

    async fn attempt(&self, delivery: &WebhookDelivery, secret: &WebhookSecret) -> Result<(), DeliveryFailure> {
        let request = request(delivery, secret, self.clock.now());
        // The administration stores valid URLs only; another one was written by hand.
        let request = request.map_err(|_| DeliveryFailure::ConnectionFailed)?;
        self.client.deliver(request).await
    }
}

/// The request of a delivery at `now`.
fn request(delivery: &WebhookDelivery, secret: &WebhookSecret, now: Timestamp) -> http::Result<Request<Full<Bytes>>> {
    let (id, body, time) = (delivery.event.id.to_string(), body(&delivery.event), now.secs());
    Request::post(&*delivery.url)
        .header(CONTENT_TYPE, "application/json")
        .header(USER_AGENT, "ledger-gateway")
        .header("webhook-id", &*id)
        .header("webhook-timestamp", time)
        .header("webhook-signature", webhook_signature(secret, &id, time, &body))
        .body(Full::new(Bytes::from(body)))
}

/// The body of a delivery: ids only. A receiver asks the API for the rest, with its own rights.
fn body(event: &WebhookEvent) -> String {
    json!({
        "id": event.id,
        "type": event.kind.as_str(),
        "timestamp": event.created_at,
        "data": {
            "org_id": event.org,
            "request_id": event.request,
            "grant_id": event.grant,
            "status": event.status,
        },
    })
    .to_string()
}

/// When an event is tried again whose attempt failed at `now`; `None` if it is not.
fn next_attempt(event: &WebhookEvent, now: Timestamp) -> Option<Timestamp> {
    let pause = usize::try_from(event.attempts).ok().and_then(|index| PAUSES.get(index));
    let at = now.plus(Seconds(pause.copied().unwrap_or(LAST_PAUSE)));
    (at <= event.created_at.plus(MAX_AGE)).then_some(at)
}

fn report_dropped(event: &WebhookEvent, failure: Option<DeliveryFailure>) {
    metrics::counter!("ledger_gateway_webhook_events_dropped_total", "reason" => "expired").increment(1);
    tracing::warn!(
        org.id = %event.org,
        event.id = %event.id,
        event.kind = event.kind.as_str(),
        failure = failure.map_or_else(|| "secret".to_owned(), |failure| failure.to_string()),
        "a webhook event was dropped because no delivery succeeded for 24 hours: the receiver of the organization does \
         not accept it; its administrators see why at the settings of the webhook"
    );
}

fn log_failure(step: Result<(), StoreError>) {
    if let Err(error) = step {
        tracing::warn!(
            error = &error as &dyn std::error::Error,
            "webhook events could not be read or their delivery not be recorded; they are delivered later"
        );
    }
}

#[cfg(test)]
mod tests;
