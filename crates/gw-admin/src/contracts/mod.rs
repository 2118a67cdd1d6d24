//! `/orgs/{org_id}/contracts` and `/contracts/by-address/{address}`
pub(crate) mod abi;
pub(crate) mod by_address;
pub(crate) mod create;
pub(crate) mod delete;
pub(crate) mod events;
pub(crate) mod flags;
pub(crate) mod get;
pub(crate) mod grant_summary;
pub(crate) mod list;
pub(crate) mod update;
