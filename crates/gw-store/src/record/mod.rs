//! Rows as the callers see them: typed, complete, and without a database in sight.
//!
//! `New…` is what creates a row, `…Patch` what changes one: an absent member keeps the stored value.

mod access;
mod contract;
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

pub use access::{ApprovedCode, SharedInfra, SharedInfraInput, ToggleChange};
pub(crate) use contract::PastGrant;
pub use contract::{
    AbiText, Comparison, Contract, ContractPatch, EventRule, EventRules, FunctionRule, Grant, GrantPatch, Literal,
    MustBe, MustBeError, NewContract, NewGrant, ParamRule,
};
pub use identity::{Membership, MembershipSource, NewMembership, NewUser, OrgUserRecord, User, UserPatch};
pub use impersonation::Impersonation;
pub use link::{Collision, Link, LinkProof, Linked, SenderLink, WalletLink, WalletProof};
pub use mined::{Conviction, Finding, NewWatch, Quarantine, Suspension, Watched, WithheldChange};
pub use organization::{
    AccessInput, ApiKey, Group, GroupAccess, GroupPatch, NewGroup, NewOrganization, Organization, OrganizationPatch,
};
pub use retention::{HoldScope, Holds, LegalHold, PruneReason, PruneRecord};
pub use send::{
    CreationKind, Mined, MinedContract, NewReservation, OpenReservation, ReservationState, SendAccepted, SendRows,
    SendStart,
};
pub use tenant::{AllowedTenant, NewTenant, TenantEnd, TenantPatch};
pub use token::{
    Application, Family, Login, LoginUrls, NewRefreshToken, PendingLogin, RefreshToken, Rotation, TokenHash,
};
pub(crate) use url::scope_text;
pub use url::{NewPersonalUrl, PersonalUrl};

/// A JSON object.
pub type Object = serde_json::Map<String, serde_json::Value>;
