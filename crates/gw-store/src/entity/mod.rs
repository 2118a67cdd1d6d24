//! SeaORM 2 entities of the tables: raw column types without meaning. `row` converts them to records.
//!
//! Times are microseconds since 1970, addresses and hashes lower-case `0x` hex, rules JSON.
#![expect(
    unreachable_pub,
    reason = "the derive makes its items as public as the model, whatever the module is"
)]

mod access;
mod audit;
pub(crate) mod bounds;
mod contract;
mod directory;
mod disclosure;
mod mined;
mod organization;
mod send;
mod system;
mod url;
mod user;
mod webhook;

pub(crate) use access::{approved_code, shared_infrastructure, system_toggles};
pub(crate) use audit::{anchors, chains, checkpoints, discontinuities, entries, hash_tiles, journal_starts, leases};
pub(crate) use contract::{contract_grants, contracts, past_contracts, retired_contracts};
pub(crate) use directory::directory_tenants;
pub(crate) use disclosure::{disclosure_grants, disclosure_requests};
pub(crate) use mined::{convictions, quarantines, suspensions, watched_sends, withheld_changes};
pub(crate) use organization::{group_access, groups, organizations};
pub(crate) use send::{reservations, tx_visibility};
pub(crate) use system::{audit_outbox, instances, journal_heads, legal_holds, signed_heads};
pub(crate) use url::personal_urls;
pub(crate) use user::{
    address_links, contract_wallet_proofs, declined_organizations, former_links, login_nullifiers, memberships,
    org_user_records, refresh_tokens, revocations, user_tombstones, users,
};
pub(crate) use webhook::{webhook_events, webhooks};
