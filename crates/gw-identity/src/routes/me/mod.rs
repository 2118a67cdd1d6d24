//! `/me`: the caller's own memberships, logins and URLs.

pub(super) mod admin_status;
pub(super) mod invitations;
pub(super) mod orgs;
pub(super) mod rpc_urls;
pub(super) mod sessions;
