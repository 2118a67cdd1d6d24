//! `/eth`: linked addresses (spec/10 section 7).

pub(super) mod challenge;
pub(super) mod list;
pub(super) mod refresh_ens;
pub(super) mod unlink;
pub(super) mod verify;

use crate::state::IdentityState;
use axum::extract::FromRequestParts;
use gw_http::{ApiError, AuthenticatedUser};
use gw_types::Seconds;
use http::request::Parts;

/// A caller who is within the rate limit of link operations (spec/10 §9).
#[derive(Debug)]
pub(super) struct Linker(AuthenticatedUser);

impl FromRequestParts<IdentityState> for Linker {
    type Rejection = ApiError;

    async fn from_request_parts(parts: &mut Parts, state: &IdentityState) -> Result<Self, ApiError> {
        let caller = AuthenticatedUser::from_request_parts(parts, state).await?;
        state.inner.limits.link_of(&caller.user.external_id).await?;
        Ok(Self(caller))
    }
}

/// The 503 for challenges that cannot be reached.
fn unavailable() -> ApiError {
    ApiError::unavailable("linking temporarily unavailable").retry_after(Seconds(5))
}

/// The 400 for a text that is not an address.
fn not_an_address() -> ApiError {
    ApiError::bad_request("invalid ethereum address format")
}

/// The 404 for an address that is not linked to the caller.
fn not_linked() -> ApiError {
    ApiError::not_found("address not found")
}
