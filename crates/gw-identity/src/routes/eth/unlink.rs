//! `DELETE /eth/addresses/{address}`: removes the caller's own link (LK-5).

use super::LinkError;
use crate::{error::spawn_tracked, link::parse_address, request_info::RequestInfo, security, state::IdentityState};
use axum::extract::{Path, State};
use gw_audit::SecurityKind;
use gw_http::{ApiError, AuthenticatedUser, ErrorBody, Message};
use gw_policy::snapshot::User;
use gw_store::Actor;
use gw_types::Address;
use std::sync::Arc;

/// Unlink an address
///
/// A new signature can link it again.
#[utoipa::path(
    delete,
    path = "/eth/addresses/{address}",
    operation_id = "unlinkAddress",
    tag = "eth",
    security(("bearer" = [])),
    params(("address" = String, Path, description = "The address")),
    responses(
        (status = 200, body = Message),
        (status = 400, body = ErrorBody),
        (status = 401, body = ErrorBody),
        (status = 403, body = ErrorBody),
        (status = 404, body = ErrorBody),
        (status = 500, body = ErrorBody),
    ),
)]
pub(crate) async fn unlink(
    State(state): State<IdentityState>,
    caller: AuthenticatedUser,
    request_info: RequestInfo,
    Path(address): Path<String>,
) -> Result<Message, ApiError> {
    let address = parse_address(&address).ok_or(LinkError::Address)?;
    let worker = state.clone();
    spawn_tracked(&state.tasks, async move {
        end(&worker, caller.user, address, &request_info).await
    })
    .await?;
    Ok(Message::new("address unlinked"))
}

async fn end(
    state: &IdentityState,
    user: Arc<User>,
    address: Address,
    request_info: &RequestInfo,
) -> Result<(), LinkError> {
    let actor = request_info.actor(Actor::user(user.id, &user.external_id));
    let mut reservation = state.journal.reserve(1)?;
    let mut tx = state.store.begin(&actor).await?;
    tx.unlink_address(user.id, address).await?;
    tx.commit().await?;
    let mut event = security::event(SecurityKind::EthAddressUnlinked, request_info);
    event.external_id = Some(user.external_id.clone());
    event.user_id = Some(user.id);
    event.address = Some(address);
    reservation.append(event)?;
    Ok(())
}
