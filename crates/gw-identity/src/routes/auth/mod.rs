//! `/auth`: login by proof.

pub(super) mod callback;
pub(super) mod directory;
pub(super) mod providers;
pub(super) mod request;
pub(super) mod status;
pub(super) mod verify;
