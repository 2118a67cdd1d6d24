//! `/orgs/{org_id}/groups`: groups and their access.
pub(crate) mod access;
pub(crate) mod batch_delete;
pub(crate) mod create;
pub(crate) mod delete;
pub(crate) mod get;
pub(crate) mod list;
pub(crate) mod update;
