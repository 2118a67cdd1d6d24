//! Rows as callers see them: typed, complete and independent of the database.
//!
//! `New…` is the input for creating a row, `…Patch` for changing one: an absent member keeps the stored value.

mod access;
mod contract;
mod disclosure;
mod identity;
mod impersonation;
mod link;
mod mined;
mod organization;
mod retention;
mod send;
mod tenant;
mod token;
mod url;
mod webhook;

pub use access::{ApprovedCode, SharedInfra, SharedInfraInput, ToggleUpdate};
pub(crate) use contract::PastGrant;
pub use contract::{
    AbiText, Comparison, Contract, ContractPatch, EventRule, EventRules, FunctionRule, Grant, GrantPatch, Literal,
    MustBe, MustBeError, NewContract, NewGrant, ParamRule,
};
pub use disclosure::{
    DisclosureApproval, DisclosureGrant, DisclosureRequest, DisclosureRequestDetails, DisclosureSweep,
    GrantWithRequest, MAX_KEPT_GRANTS, MAX_LEGAL_BASIS, MAX_ORG_GRANTS, MAX_OWNER_GRANTS, MAX_REASON,
    NewDisclosureRequest,
};
pub use identity::{Membership, MembershipSource, NewMembership, NewUser, OrgUserRecord, User, UserPatch};
pub use impersonation::Impersonation;
pub use link::{Collision, Link, LinkProof, LinkResult, SenderLink, WalletLink, WalletProof};
pub use mined::{Conviction, NewWatch, Quarantine, Suspension, Violation, WatchedSend, WithheldChange};
pub use organization::{
    AccessInput, ApiKey, Group, GroupAccess, GroupPatch, NewGroup, NewOrganization, Organization, OrganizationPatch,
};
pub use retention::{HoldScope, Holds, LegalHold, PruneReason, PruneRecord};
pub use send::{
    CreationKind, Mined, MinedContract, NewReservation, OpenReservation, ReservationState, SendAccepted, SendRows,
    SendStart,
};
pub use tenant::{AllowedTenant, NewTenant, TenantPatch, TenantRemoval};
pub use token::{
    Application, Family, Login, LoginUrls, NewRefreshToken, PendingLogin, RefreshToken, Rotation, TokenHash,
};
pub(crate) use url::scope_text;
pub use url::{NewPersonalUrl, PersonalUrl};
pub use webhook::{
    DeliveryFailure, DeliveryResult, MAX_WAITING_EVENTS, UnknownDeliveryFailure, Webhook, WebhookClaim,
    WebhookDelivery, WebhookEvent, WebhookEventType, WebhookStatus,
};

/// A JSON object.
pub type JsonObject = serde_json::Map<String, serde_json::Value>;
