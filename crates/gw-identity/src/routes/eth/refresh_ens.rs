//! `POST /eth/addresses/{address}/refresh-ens`: looks up the ENS name of the caller's own address again (LK-8).

use super::{LinkError, Linker};
use crate::{
    ens::{Ens, EnsError},
    error::spawn_tracked,
    link::parse_address,
    request_info::RequestInfo,
    state::IdentityState,
};
use axum::{
    Json,
    extract::{Path, State},
};
use gw_http::{ApiError, ErrorBody};
use gw_policy::snapshot::User;
use gw_store::Actor;
use gw_types::Address;
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
        (status = 400, body = ErrorBody),
        (status = 401, body = ErrorBody),
        (status = 403, body = ErrorBody),
        (status = 404, body = ErrorBody),
        (status = 429, body = ErrorBody),
        (status = 500, body = ErrorBody),
        (status = 503, body = ErrorBody, description = "No name service is configured, or it gives no answer"),
    ),
)]
pub(crate) async fn refresh_ens(
    State(state): State<IdentityState>,
    Linker(caller): Linker,
    request_info: RequestInfo,
    Path(address): Path<String>,
) -> Result<Json<EthLinkENSResponse>, ApiError> {
    let address = parse_address(&address).ok_or(LinkError::Address)?;
    let own = state
        .store
        .read()
        .find_link(caller.user.id, address)
        .await
        .map_err(LinkError::from)?;
    if own.is_none_or(|link| link.revoked_at.is_some()) {
        return Err(LinkError::NotLinked.into());
    }
    let ens = state.ens.clone().ok_or(LinkError::NoEns)?;
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
) -> Result<Option<String>, LinkError> {
    let name = ens
        .name_of(address, state.chain.id())
        .await
        .map_err(|error: EnsError| {
            tracing::warn!(
                error = &error as &dyn core::error::Error,
                "the name service gave no answer"
            );
            LinkError::EnsAway
        })?;
    let actor = request_info.actor(Actor::user(user.id, &user.external_id));
    let mut tx = state.store.begin(&actor).await?;
    tx.set_ens_name(user.id, address, name.as_deref()).await?;
    tx.commit().await?;
    Ok(name)
}
