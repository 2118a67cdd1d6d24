//! `/orgs/{org_id}/contracts` and `/contracts/by-address/{address}`: contracts.
pub(crate) mod abi;
pub(crate) mod batch_move;
pub(crate) mod by_address;
pub(crate) mod claim;
pub(crate) mod create;
pub(crate) mod delete;
pub(crate) mod events;
pub(crate) mod flags;
pub(crate) mod get;
pub(crate) mod grant_summary;
pub(crate) mod list;
mod proof;
pub(crate) mod sync;
pub(crate) mod update;
