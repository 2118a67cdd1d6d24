//! `/users`: users, their memberships (by user and by DID), linked addresses, sessions and personal RPC URLs.
pub(crate) mod by_did;
pub(crate) mod delete;
pub(crate) mod effective_permissions;
pub(crate) mod get;
pub(crate) mod links;
pub(crate) mod list;
pub(crate) mod memberships;
pub(crate) mod rpc_urls;
pub(crate) mod sessions;
pub(crate) mod update;
