//! Webhooks of organizations, and the events that they are told of.

use gw_types::{DisclosureGrantId, DisclosureRequestId, OrgId, SealedWebhookSecret, Timestamp, WebhookEventId};
use std::{fmt, str::FromStr};
use uuid::Uuid;

/// Maximum events of an organization that wait for delivery. The oldest is dropped for one more.
pub const MAX_WAITING_EVENTS: u64 = 1000;

/// The webhook of an organization, without its secret.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Webhook {
    /// The organization.
    pub org: OrgId,
    /// The address that events are posted to.
    pub url: String,
    /// When it was created.
    pub created_at: Timestamp,
    /// When its address or its secret last changed.
    pub updated_at: Timestamp,
    /// When a delivery last succeeded.
    pub last_success_at: Option<Timestamp>,
    /// The last delivery that failed.
    pub last_failure: Option<(Timestamp, DeliveryFailure)>,
}

/// A webhook with the number of its waiting events.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct WebhookStatus {
    /// The webhook.
    pub webhook: Webhook,
    /// Number of events that are not delivered yet.
    pub waiting: u64,
}

/// Why an attempt to deliver an event failed.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum DeliveryFailure {
    /// The receiver did not answer in time.
    Timeout,
    /// The host name is unknown, or the connection or TLS failed.
    ConnectionFailed,
    /// The host has no address that deliveries may go to.
    AddressNotAllowed,
    /// The receiver answered with this status, which is not 2xx.
    Status(u16),
}

impl fmt::Display for DeliveryFailure {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Timeout => f.write_str("timeout"),
            Self::ConnectionFailed => f.write_str("connection_failed"),
            Self::AddressNotAllowed => f.write_str("address_not_allowed"),
            Self::Status(status) => write!(f, "status_{status}"),
        }
    }
}

/// The text names no failure.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("not a failure of a delivery")]
pub struct UnknownDeliveryFailure;

impl FromStr for DeliveryFailure {
    type Err = UnknownDeliveryFailure;

    fn from_str(text: &str) -> Result<Self, Self::Err> {
        match text {
            "timeout" => Ok(Self::Timeout),
            "connection_failed" => Ok(Self::ConnectionFailed),
            "address_not_allowed" => Ok(Self::AddressNotAllowed),
            text => {
                let status = text.strip_prefix("status_").ok_or(UnknownDeliveryFailure)?;
                status.parse().map(Self::Status).map_err(|_| UnknownDeliveryFailure)
            }
        }
    }
}

macro_rules! event_types {
    ($($(#[$doc:meta])* $name:ident = $text:literal,)*) => {
        /// What happened.
        #[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
        pub enum WebhookEventType {
            $($(#[$doc])* $name,)*
        }

        impl WebhookEventType {
            /// All types.
            pub const ALL: &[Self] = &[$(Self::$name),*];

            /// Returns the stable text.
            pub const fn as_str(self) -> &'static str {
                match self {
                    $(Self::$name => $text,)*
                }
            }

            pub(crate) fn parse(text: &str) -> Option<Self> {
                Self::ALL.iter().copied().find(|kind| kind.as_str() == text)
            }
        }
    };
}

event_types! {
    /// An administrator requested a disclosure.
    Requested = "disclosure.requested",
    /// The owner approved a request.
    Approved = "disclosure.approved",
    /// The owner rejected a request.
    Rejected = "disclosure.rejected",
    /// An administrator withdrew a request.
    Withdrawn = "disclosure.withdrawn",
    /// A request ended without a decision.
    RequestExpired = "disclosure.request_expired",
    /// The owner granted a disclosure that nobody requested.
    Granted = "disclosure.granted",
    /// The owner or an administrator ended a grant.
    Revoked = "disclosure.revoked",
    /// A grant reached its end.
    GrantExpired = "disclosure.grant_expired",
    /// An administrator tests the webhook.
    Test = "webhook.test",
}

/// An event, as it waits for delivery.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct WebhookEvent {
    /// Row id, by which a receiver recognizes a repeated delivery.
    pub id: WebhookEventId,
    /// The organization that is told.
    pub org: OrgId,
    /// What happened.
    pub kind: WebhookEventType,
    /// The request; `None` for a test.
    pub request: Option<DisclosureRequestId>,
    /// The grant of the request, if there is one.
    pub grant: Option<DisclosureGrantId>,
    /// The status after the event: of the grant if the event is its end, otherwise of the request.
    pub status: Option<String>,
    /// When it happened.
    pub created_at: Timestamp,
    /// Number of failed attempts.
    pub attempts: u32,
}

/// An event with what its delivery needs.
#[derive(Clone, Debug)]
pub struct WebhookDelivery {
    /// The event.
    pub event: WebhookEvent,
    /// The address of the webhook.
    pub url: String,
    /// The secret of the webhook.
    pub secret: SealedWebhookSecret,
}

/// Events that a worker delivers until its claim ends.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct WebhookClaim {
    /// The claim.
    pub id: Uuid,
    /// The claimed events by organization, the oldest first.
    pub events: Vec<(OrgId, Vec<WebhookEventId>)>,
}

/// The result of an attempt to deliver an event.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum DeliveryResult {
    /// The receiver has it.
    Delivered,
    /// It is tried again at the given time. Without a failure, it was not sent.
    Retry(Option<DeliveryFailure>, Timestamp),
    /// It is not tried again.
    Dropped(Option<DeliveryFailure>),
}
