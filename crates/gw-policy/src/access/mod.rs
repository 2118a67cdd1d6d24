//! Access decisions: identity, organization, target, function, history, trace and sender (spec/20).
//!
//! Read [`decide`] first: it follows the order of spec/20 §17. [`crate::visibility`] and [`crate::view`] decide what a
//! caller *sees* of the result; this module does not.
//!
//! Invariant: every decision is a pure function of the pinned snapshot, the request and its `now`; only [`decide`]
//! creates a [`Permit`], and a request that no rule permits is denied.

pub mod admin;
mod checks;
mod custom_methods;
mod decide;
mod effective;
mod explain;
mod history;
mod identify;
mod late_code;
mod mined;
mod orgs;
mod passthrough;
mod permit;
mod pin;
mod resource;
mod run_code;
mod run_digest;
pub mod send;
mod trace;
mod upgrades;
mod url;
mod wallet;
mod withheld_dependency;

pub use crate::principal::{
    ContractAccess, Functions, Impersonation, OrgRights, Permissions, Principal, TargetStatus, active_orgs, belongs,
    contract_access, disclosed_addresses, owns, permissions, rights, target_status, upstream_key,
};
pub use decide::decide;
pub use effective::{ContractRights, Effective, effective};
pub use explain::{
    AccessPath, DecidingCheck, Explanation, GrantExplanation, GroupExplanation, TargetExplanation, explain,
};
pub use history::{ReadBlock, check_historical_ownership};
pub use identify::{Caller, IdentityError, TokenFacts, identify, identify_url};
pub use mined::{
    AuthorizedRuns, MinedSend, PostExecutionViolation, RecentSend, UnreadableRun, changed_accounts, entered_code,
    evaluate_mined, unreadable_mined,
};
pub use permit::{AccessRequest, Decision, Denial, HeadFacts, Invalid, NamedOrg, Permit, Plan};
pub use pin::{BrokenPin, broken_pins, check_pin};
pub use run_digest::run_digest;
pub use trace::{DeniedFrame, TraceFacts, TraceVerdict, denied_frame, evaluate_trace};
pub use wallet::{WalletAnswer, WalletQuestion, WalletTrace, evaluate_wallet_signature};
