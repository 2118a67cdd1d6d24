//! Tokens after the login: refresh, revoke, introspect, logout (spec/10 section 4).

pub(super) mod introspect;
pub(super) mod logout;
pub(super) mod refresh;
pub(super) mod revoke;
