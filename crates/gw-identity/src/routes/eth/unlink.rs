//! `DELETE /eth/addresses/{address}`: removes the caller's own link (LK-5).

use crate::{
    error::{spawn_tracked, storage},
    link::parse_address,
    request_info::RequestInfo,
    security,
    state::IdentityState,
};
use axum::extract::{Path, State};
use gw_audit::SecurityKind;
use gw_http::{ApiError, AuthenticatedUser, ErrorBody, ErrorCode, Message, described_error};
use gw_journal::JournalError;
use gw_policy::snapshot::User;
use gw_store::{Actor, Missing, StoreError};
use gw_types::Address;
use std::sync::Arc;

/// Why a link was not removed.
#[derive(Debug, thiserror::Error)]
pub(crate) enum UnlinkError {
    /// Not an address.
    #[error("not an address")]
    Address,
    /// Not linked to the caller.
    #[error("the address is not linked")]
    NotLinked,
    /// The store failed.
    #[error("the store failed")]
    Store(#[source] StoreError),
    /// The event could not be recorded.
    #[error("no room to record")]
    Unrecorded(#[from] JournalError),
}

impl From<StoreError> for UnlinkError {
    fn from(error: StoreError) -> Self {
        match error {
            StoreError::NotFound(Missing::Link) => Self::NotLinked,
            other => Self::Store(other),
        }
    }
}

impl From<UnlinkError> for ApiError {
    fn from(error: UnlinkError) -> Self {
        match error {
            UnlinkError::Address => super::not_an_address(),
            UnlinkError::NotLinked => super::not_linked(),
            UnlinkError::Store(error) => storage(&error),
            UnlinkError::Unrecorded(_) => Self::audit_unavailable(),
        }
    }
}

described_error!(
    UnlinkError,
    "APIError",
    [
        ErrorCode::BadRequest.answer(),
        ErrorCode::NotFound.answer(),
        ErrorCode::Internal.answer(),
        ErrorCode::Unavailable.answer()
    ]
);

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
        UnlinkError,
        (status = 401, body = ErrorBody),
        (status = 403, body = ErrorBody),
    ),
)]
pub(crate) async fn unlink(
    State(state): State<IdentityState>,
    caller: AuthenticatedUser,
    request_info: RequestInfo,
    Path(address): Path<String>,
) -> Result<Message, ApiError> {
    let address = parse_address(&address).ok_or(UnlinkError::Address)?;
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
) -> Result<(), UnlinkError> {
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

#[cfg(test)]
mod tests {
    use super::*;
    use gw_http::DescribedError as _;

    /// House rule 17.
    #[test]
    fn every_error_has_its_status_and_text() {
        let table = [
            (UnlinkError::Address, 400, "invalid ethereum address format"),
            (
                UnlinkError::from(StoreError::NotFound(Missing::Link)),
                404,
                "address not found",
            ),
            (
                UnlinkError::from(StoreError::NotPrimary),
                503,
                "the policy store is temporarily unavailable",
            ),
            (UnlinkError::from(StoreError::Detached), 500, "internal error"),
            (UnlinkError::Unrecorded(JournalError::Full), 503, "audit unavailable"),
        ];
        let answers = table.map(|(error, status, text)| {
            // A new variant stops the build here: add it to the table.
            match error {
                UnlinkError::Address | UnlinkError::NotLinked | UnlinkError::Store(_) | UnlinkError::Unrecorded(_) => {}
            }
            let answer = ApiError::from(error);
            assert_eq!((answer.code().status().as_u16(), answer.text()), (status, text));
            answer.code().answer()
        });
        assert!(UnlinkError::lists_exactly(answers));
    }
}
