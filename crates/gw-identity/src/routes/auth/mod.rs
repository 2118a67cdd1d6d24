//! `/auth`: login by proof.

pub(in crate::routes) mod callback;
pub(super) mod directory;
pub(super) mod providers;
pub(super) mod qr;
pub(in crate::routes) mod request;
pub(super) mod status;
pub(super) mod verify;
