//! Who may do what: identity, organization, target, function, history, trace and sender (spec/20).
//!
//! Read [`decide`] first: it is the order of spec/20 §17. What a caller *sees* of the answer is not decided here but in
//! [`crate::visibility`] and [`crate::view`].
//!
//! Invariant: everything is a pure function of the pinned snapshot, the question and its `now`; only [`decide`] makes a
//! [`Permit`], and what no rule settles is denied.

pub mod admin;
mod beside;
mod checks;
mod decide;
mod effective;
mod explain;
mod extras;
mod functions;
mod history;
mod identify;
mod late_code;
mod mined;
mod orgs;
mod permissions;
mod permit;
mod pin;
mod run_code;
mod run_digest;
pub mod send;
mod subject;
mod target;
mod trace;
mod unexamined;
mod upgrades;
mod url;
mod wallet;
mod withheld_dependency;

pub use crate::visibility::owns;
pub use beside::Beside;
pub use decide::decide;
pub use effective::{ContractRights, Effective, effective};
pub use explain::{Explanation, GrantSays, GroupSays, Rule, TargetSays, Way, explain};
pub use functions::{Functions, belongs};
pub use history::{ReadBlock, check_historical_ownership};
pub use identify::{Caller, Refused, TokenFacts, identify, identify_url};
pub use mined::{
    JudgedRuns, MinedFinding, MinedSend, RecentSend, UnreadableRun, changed_accounts, entered_code, judge_mined,
    unreadable_mined,
};
pub use permissions::{OrgRights, Permissions, active_orgs, permissions, rights, upstream_key};
pub use permit::{Decision, Denial, HeadFacts, Invalid, NamedOrg, Permit, Plan, Question};
pub use pin::{BrokenPin, broken_pins, check_pin};
pub use run_digest::run_digest;
pub use target::{Member, Reach, Standing, reach, standing};
pub(crate) use target::{held_grants, reached_registrations};
pub use trace::{StoppedAt, TraceFacts, TraceVerdict, judge_trace, stopped_at};
pub use wallet::{WalletAnswer, WalletQuestion, WalletTrace, judge_wallet_signature};
