//! `/orgs/{org_id}/contracts/{address}/grants`: the rights of groups on contracts.
pub(crate) mod create;
pub(crate) mod delete;
pub(crate) mod list;
mod rules;
pub(crate) mod update;
