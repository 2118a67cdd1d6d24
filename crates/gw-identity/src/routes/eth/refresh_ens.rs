//! `POST /eth/addresses/{address}/refresh-ens`: looks up the ENS name of the caller's own address again (LK-8).

use super::Linker;
use crate::{
    ens::{Ens, EnsError},
    error::{spawn_tracked, storage},
    link::parse_address,
    request_info::RequestInfo,
    state::IdentityState,
};
use axum::{
    Json,
    extract::{Path, State},
};
use gw_http::{ApiError, ErrorBody, ErrorCode, described_error};
use gw_policy::snapshot::User;
use gw_store::{Actor, Missing, StoreError};
use gw_types::{Address, Seconds};
use serde::Serialize;
use std::sync::Arc;

/// An address and its name.
#[derive(Debug, Serialize, utoipa::ToSchema)]
pub(crate) struct EthLinkENSResponse {
    /// The address, in lower case.
    address: String,
    /// The name that resolves back to the address; null if there is none.
    ens_name: Option<String>,
}

/// Why a name was not looked up.
#[derive(Debug, thiserror::Error)]
pub(crate) enum RefreshEnsError {
    /// Not an address.
    #[error("not an address")]
    Address,
    /// Not linked to the caller.
    #[error("the address is not linked")]
    NotLinked,
    /// ENS lookups are not configured.
    #[error("no name service is configured")]
    NoEns,
    /// The ENS lookup failed.
    #[error("the name service gave no answer")]
    EnsUnavailable,
    /// The store failed.
    #[error("the store failed")]
    Store(#[source] StoreError),
}

impl From<StoreError> for RefreshEnsError {
    fn from(error: StoreError) -> Self {
        match error {
            StoreError::NotFound(Missing::Link) => Self::NotLinked,
            other => Self::Store(other),
        }
    }
}

impl From<RefreshEnsError> for ApiError {
    fn from(error: RefreshEnsError) -> Self {
        match error {
            RefreshEnsError::Address => super::not_an_address(),
            RefreshEnsError::NotLinked => super::not_linked(),
            RefreshEnsError::NoEns => Self::unavailable("ENS is not configured"),
            RefreshEnsError::EnsUnavailable => {
                Self::unavailable("ENS temporarily unavailable").retry_after(Seconds(30))
            }
            RefreshEnsError::Store(error) => storage(&error),
        }
    }
}

described_error!(
    RefreshEnsError,
    "APIError",
    [
        ErrorCode::BadRequest.answer(),
        ErrorCode::NotFound.answer(),
        ErrorCode::Internal.answer(),
        ErrorCode::Unavailable.answer()
    ]
);

/// Look up the name of my address
#[utoipa::path(
    post,
    path = "/eth/addresses/{address}/refresh-ens",
    operation_id = "refreshEns",
    tag = "eth",
    security(("bearer" = [])),
    params(("address" = String, Path, description = "The address")),
    responses(
        (status = 200, body = EthLinkENSResponse),
        RefreshEnsError,
        (status = 401, body = ErrorBody),
        (status = 403, body = ErrorBody),
        (status = 429, body = ErrorBody),
        (status = 503, body = ErrorBody, description = "No name service is configured, or it gives no answer"),
    ),
)]
pub(crate) async fn refresh_ens(
    State(state): State<IdentityState>,
    Linker(caller): Linker,
    request_info: RequestInfo,
    Path(address): Path<String>,
) -> Result<Json<EthLinkENSResponse>, ApiError> {
    let address = parse_address(&address).ok_or(RefreshEnsError::Address)?;
    let own = state
        .store
        .read()
        .find_link(caller.user.id, address)
        .await
        .map_err(RefreshEnsError::from)?;
    if own.is_none_or(|link| link.revoked_at.is_some()) {
        return Err(RefreshEnsError::NotLinked.into());
    }
    let ens = state.ens.clone().ok_or(RefreshEnsError::NoEns)?;
    let worker = state.clone();
    let name = spawn_tracked(&state.tasks, async move {
        refresh(&worker, &ens, &caller.user, address, &request_info).await
    });
    Ok(Json(EthLinkENSResponse {
        address: format!("{address:#x}"),
        ens_name: name.await?,
    }))
}

/// Looks up the name of a newly linked address in the background.
pub(super) fn look_up_later(state: &IdentityState, user: Arc<User>, address: Address, request_info: &RequestInfo) {
    let Some(ens) = state.ens.clone() else { return };
    let (state, request_info) = (state.clone(), request_info.clone());
    // Not tracked, so shutdown does not wait for it: the user can ask for it again.
    tokio::spawn(async move {
        if let Err(error) = refresh(&state, &ens, &user, address, &request_info).await {
            tracing::warn!(
                error = &error as &dyn core::error::Error,
                "the name of a linked address is not known"
            );
        }
    });
}

async fn refresh(
    state: &IdentityState,
    ens: &Ens,
    user: &User,
    address: Address,
    request_info: &RequestInfo,
) -> Result<Option<String>, RefreshEnsError> {
    let name = ens
        .name_of(address, state.chain.id())
        .await
        .map_err(|error: EnsError| {
            tracing::warn!(
                error = &error as &dyn core::error::Error,
                "the name service gave no answer"
            );
            RefreshEnsError::EnsUnavailable
        })?;
    let actor = request_info.actor(Actor::user(user.id, &user.external_id));
    let mut tx = state.store.begin(&actor).await?;
    tx.set_ens_name(user.id, address, name.as_deref()).await?;
    tx.commit().await?;
    Ok(name)
}

#[cfg(test)]
mod tests {
    use super::*;
    use gw_http::DescribedError as _;

    /// House rule 17.
    #[test]
    fn every_error_has_its_status_and_text() {
        let table = [
            (RefreshEnsError::Address, 400, "invalid ethereum address format"),
            (
                RefreshEnsError::from(StoreError::NotFound(Missing::Link)),
                404,
                "address not found",
            ),
            (RefreshEnsError::NoEns, 503, "ENS is not configured"),
            (RefreshEnsError::EnsUnavailable, 503, "ENS temporarily unavailable"),
            (
                RefreshEnsError::from(StoreError::NotPrimary),
                503,
                "the policy store is temporarily unavailable",
            ),
            (RefreshEnsError::from(StoreError::Detached), 500, "internal error"),
        ];
        let answers = table.map(|(error, status, text)| {
            // A new variant stops the build here: add it to the table.
            match error {
                RefreshEnsError::Address
                | RefreshEnsError::NotLinked
                | RefreshEnsError::NoEns
                | RefreshEnsError::EnsUnavailable
                | RefreshEnsError::Store(_) => {}
            }
            let answer = ApiError::from(error);
            assert_eq!((answer.code().status().as_u16(), answer.text()), (status, text));
            answer.code().answer()
        });
        assert!(RefreshEnsError::lists_exactly(answers));
    }
}
