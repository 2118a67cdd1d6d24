use gw_store::record::WebhookStatus;
use gw_types::{Secret, Timestamp, WebhookEventId};
use serde::{Deserialize, Serialize};
use utoipa::ToSchema;

/// The webhook of an organization and the state of its deliveries.
#[derive(Debug, Serialize, ToSchema)]
pub(crate) struct Webhook {
    url: String,
    /// `whsec_` and the key of the signatures in base64; only in the answer to the request that made it.
    #[serde(skip_serializing_if = "Option::is_none")]
    secret: Option<String>,
    #[schema(value_type = String, format = DateTime)]
    created_at: Timestamp,
    /// Number of events that are not delivered yet.
    waiting: u64,
    #[schema(value_type = Option<String>, format = DateTime)]
    last_success_at: Option<Timestamp>,
    #[schema(value_type = Option<String>, format = DateTime)]
    last_failure_at: Option<Timestamp>,
    /// Why the last failed attempt failed: `timeout`, `connection_failed`, `address_not_allowed`, or `status_NNN` with
    /// the status of the answer.
    #[schema(pattern = "^(timeout|connection_failed|address_not_allowed|status_[0-9]{3})$")]
    last_failure: Option<String>,
}

impl Webhook {
    pub(crate) fn new(status: WebhookStatus, secret: Option<Secret>) -> Self {
        let WebhookStatus { webhook, waiting } = status;
        let (last_failure_at, last_failure) = webhook.last_failure.unzip();
        Self {
            url: webhook.url,
            secret: secret.map(|secret| secret.expose().to_owned()),
            created_at: webhook.created_at,
            waiting,
            last_success_at: webhook.last_success_at,
            last_failure_at,
            last_failure: last_failure.map(|failure| failure.to_string()),
        }
    }
}

/// The settings of a webhook.
#[derive(Debug, Deserialize, ToSchema)]
pub(crate) struct WebhookInput {
    /// The address that events are posted to: https, without credentials and fragment, at most 2048 characters.
    pub(crate) url: String,
    /// Makes a new secret for an existing webhook.
    #[serde(default)]
    #[schema(required = false)]
    pub(crate) rotate_secret: bool,
}

/// A queued test event.
#[derive(Debug, Serialize, ToSchema)]
pub(crate) struct WebhookTest {
    /// The id of the event, which its delivery has in the header `webhook-id`.
    #[schema(value_type = String, format = Uuid)]
    pub(crate) id: WebhookEventId,
}
