//! `/eth`: linked addresses (spec/10 section 7).

pub(super) mod challenge;
mod error;
pub(super) mod list;
pub(super) mod refresh_ens;
pub(super) mod unlink;
pub(super) mod verify;

use crate::state::IdentityState;
use axum::extract::FromRequestParts;
use error::LinkError;
use gw_http::{ApiError, AuthenticatedUser};
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
