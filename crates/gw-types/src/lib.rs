//! Basic types of all other crates: ids, addresses, DIDs, time, claims, levels, reasons and secrets.
//!
//! This crate makes no decisions and has no side effects: time and randomness are traits ([`Clock`], [`Entropy`]) whose
//! real implementations are in `gw-server`.
#![warn(missing_docs, clippy::missing_errors_doc, clippy::wildcard_enum_match_arm)]

mod claim;
mod external_id;
mod grant_secret;
mod id;
mod level;
mod reason;
mod secret;
#[cfg(any(test, feature = "testing"))]
pub mod testing;
mod time;
mod webhook_secret;

pub use alloy_primitives::{Address, B256, Bytes, U256, address, b256};
pub use claim::{Claim, Claims, UnknownClaim};
pub use external_id::{ExternalId, ExternalIdError};
pub use grant_secret::{GrantSecret, SealedGrantSecret};
pub use id::{
    AllowedTenantId, ApprovedCodeId, ContractId, ConvictionId, DisclosureGrantId, DisclosureRequestId, Epoch, GrantId,
    GroupId, LegalHoldId, LinkId, MembershipId, OrgId, OrgUserRecordId, PersonalUrlId, QuarantineId, ReservationId,
    SessionId, SharedInfraId, SuspensionId, TenantId, ToggleId, TokenId, UserId, VisibilityId, WatchId, WebhookEventId,
    WithheldId,
};
pub use level::{Level, LevelReason};
pub use reason::DenyReason;
pub use secret::Secret;
pub use time::{Clock, Entropy, Seconds, Timestamp, TimestampError};
pub use webhook_secret::{SealedWebhookSecret, WebhookSecret};
