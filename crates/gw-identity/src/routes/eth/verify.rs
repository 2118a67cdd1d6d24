//! `POST /eth/link/verify`: the signed challenge links the address (LK-2 to LK-6, LK-8, HD10).

use super::Linker;
use crate::{
    error::{spawn_tracked, storage},
    link::{ChainUnavailable, Unusable, ask_wallet, challenge_hash, parse_address, parse_bytes, signer},
    request_info::RequestInfo,
    security,
    state::IdentityState,
};
use axum::{Json, extract::State};
use gw_audit::SecurityKind;
use gw_http::{ApiError, AuthenticatedBody, AuthenticatedUser, ErrorBody, ErrorCode, described_error};
use gw_journal::{JournalError, Reservation};
use gw_policy::{
    access::{WalletAnswer, WalletQuestion},
    snapshot::User,
};
use gw_store::{
    Actor, StoreError,
    record::{LinkProof, LinkResult, WalletProof},
};
use gw_types::{Address, Seconds};
use http::HeaderMap;
use serde::{Deserialize, Serialize};
use std::sync::Arc;

/// A signed challenge.
#[derive(Debug, Deserialize, utoipa::ToSchema)]
pub(crate) struct VerifyLinkRequest {
    /// The address to link.
    address: String,
    /// The challenge's nonce.
    nonce: String,
    /// The wallet's signature of the challenge's text.
    signature: String,
}

/// A linked address.
#[derive(Debug, Serialize, utoipa::ToSchema)]
pub(crate) struct EthLinkVerifyResponse {
    /// The address, in lower case.
    address: String,
    /// A confirmation.
    message: &'static str,
}

/// Why an address was not linked (LK-2, HD10).
#[derive(Debug, thiserror::Error)]
pub(crate) enum VerifyError {
    /// The challenges cannot be reached.
    #[error("the challenges cannot be reached")]
    Unavailable,
    /// The challenge is unknown, expired, used or destroyed.
    #[error("the challenge is not open")]
    Nonce,
    /// The challenge was issued to another user.
    #[error("the challenge belongs to another user")]
    OtherUser,
    /// Not an address.
    #[error("not an address")]
    Address,
    /// The address did not sign the challenge.
    #[error("the signature does not fit")]
    Signature,
    /// An administrator revoked this link, or the address belongs to a contract. Both get the same answer, so that
    /// callers cannot find out which addresses are registered.
    #[error("the address cannot be linked")]
    Rejected,
    /// The node did not answer the query to a contract wallet.
    #[error("the node gave no answer")]
    Chain(#[from] ChainUnavailable),
    /// The store failed.
    #[error("the store failed")]
    Store(#[source] StoreError),
    /// The event could not be recorded.
    #[error("no room to record")]
    Unrecorded(#[from] JournalError),
}

impl From<StoreError> for VerifyError {
    fn from(error: StoreError) -> Self {
        match error {
            StoreError::LinkRevoked | StoreError::Rule("address_is_contract") => Self::Rejected,
            other => Self::Store(other),
        }
    }
}

impl From<Unusable> for VerifyError {
    fn from(unusable: Unusable) -> Self {
        match unusable {
            Unusable::Gone => Self::Nonce,
            Unusable::Foreign => Self::OtherUser,
            Unusable::Away => Self::Unavailable,
        }
    }
}

impl From<VerifyError> for ApiError {
    fn from(error: VerifyError) -> Self {
        match error {
            VerifyError::Unavailable => super::unavailable(),
            VerifyError::Nonce => Self::bad_request("invalid or expired nonce"),
            VerifyError::OtherUser => Self::forbidden("challenge does not belong to this user"),
            VerifyError::Address => super::not_an_address(),
            VerifyError::Signature => Self::bad_request("signature verification failed"),
            VerifyError::Rejected => Self::forbidden("address cannot be linked"),
            VerifyError::Chain(ChainUnavailable) => Self::unavailable("node unavailable").retry_after(Seconds(5)),
            VerifyError::Store(error) => storage(&error),
            VerifyError::Unrecorded(_) => Self::audit_unavailable(),
        }
    }
}

described_error!(
    VerifyError,
    "APIError",
    [
        ErrorCode::BadRequest.answer(),
        ErrorCode::Forbidden.answer(),
        ErrorCode::Internal.answer(),
        ErrorCode::Unavailable.answer()
    ]
);

/// Finish linking an address
#[utoipa::path(
    post,
    path = "/eth/link/verify",
    operation_id = "linkVerify",
    tag = "eth",
    security(("bearer" = [])),
    request_body = VerifyLinkRequest,
    responses(
        (status = 200, body = EthLinkVerifyResponse),
        VerifyError,
        (status = 401, body = ErrorBody),
        (status = 429, body = ErrorBody),
    ),
)]
pub(crate) async fn verify(
    State(state): State<IdentityState>,
    _linker: Linker,
    request_info: RequestInfo,
    headers: HeaderMap,
    AuthenticatedBody { caller, body }: AuthenticatedBody<VerifyLinkRequest>,
) -> Result<Json<EthLinkVerifyResponse>, ApiError> {
    let challenges = &state.inner.challenges;
    let message = challenges
        .message(&body.nonce, caller.user.id)
        .await
        .map_err(VerifyError::from)?;
    let address = parse_address(&body.address).ok_or(VerifyError::Address)?;
    let Some(proof) = proof(&state, &caller.user, address, &message, &body.signature).await? else {
        challenges.fail(&body.nonce).await.map_err(VerifyError::from)?;
        return Err(VerifyError::Signature.into());
    };
    // The node may have been slow, so the caller is authenticated again (HD20).
    let caller = AuthenticatedUser::authenticate(&state.http_context, &headers)?;
    let proved = VerifiedAddress {
        user: caller.user,
        address,
        proof,
    };
    let worker = state.clone();
    spawn_tracked(&state.tasks, async move {
        consume(&worker, proved, &body.nonce, &request_info).await
    })
    .await?;
    Ok(Json(EthLinkVerifyResponse {
        address: format!("{address:#x}"),
        message: "address linked",
    }))
}

/// A user's address, and its proof.
struct VerifiedAddress {
    user: Arc<User>,
    address: Address,
    proof: LinkProof,
}

/// Verifies the signature: by the address's own key, or by a contract at the address that accepts it (LK-4).
///
/// The caller may have written the contract, so its execution is evaluated, and every kind of "no" gets the same answer
/// (HD26).
async fn proof(
    state: &IdentityState,
    user: &User,
    address: Address,
    message: &str,
    signature: &str,
) -> Result<Option<LinkProof>, VerifyError> {
    if signer(message, signature) == Some(address) {
        return Ok(Some(LinkProof::Challenge));
    }
    let Some(signature) = parse_bytes(signature) else {
        return Ok(None);
    };
    let question = WalletQuestion {
        wallet: address,
        hash: challenge_hash(message),
        signature,
    };
    let (policy, now) = (&state.http_context.policy, state.http_context.now());
    Ok(
        match ask_wallet(&*state.chain, policy, &state.policy_settings, user.id, &question, now).await? {
            WalletAnswer::No | WalletAnswer::Unknown => None,
            WalletAnswer::Yes { owner } => {
                let WalletQuestion { hash, signature, .. } = question;
                Some(LinkProof::ContractWallet {
                    proof: WalletProof { hash, signature },
                    owner,
                })
            }
        },
    )
}

/// Consumes the challenge and links the address. The challenge is taken first, so that it cannot link two addresses,
/// and put back unless linking succeeds (D6).
async fn consume(
    state: &IdentityState,
    proved: VerifiedAddress,
    nonce: &str,
    request_info: &RequestInfo,
) -> Result<(), VerifyError> {
    let taken = state.inner.challenges.take(nonce, proved.user.id).await?;
    let (user, address) = (Arc::clone(&proved.user), proved.address);
    let linked = link(state, proved, request_info).await;
    match &linked {
        Ok(()) => super::refresh_ens::look_up_later(state, user, address, request_info),
        Err(_) => {
            state
                .inner
                .challenges
                .put_back(nonce, &taken, state.http_context.now())
                .await
        }
    }
    linked
}

async fn link(state: &IdentityState, proved: VerifiedAddress, request_info: &RequestInfo) -> Result<(), VerifyError> {
    let VerifiedAddress { user, address, proof } = proved;
    let mut reservation = state.journal.reserve(2)?;
    let actor = request_info.actor(Actor::user(user.id, &user.external_id));
    let mut tx = state.store.begin(&actor).await?;
    let linked = tx.link_address(user.id, address, proof).await?;
    tx.commit().await?;
    Ok(record(&mut reservation, &user, &linked, request_info)?)
}

/// The audit entry of the link stands in its transaction; this is for those who watch.
fn record(
    reservation: &mut Reservation,
    user: &User,
    linked: &LinkResult,
    request_info: &RequestInfo,
) -> Result<(), JournalError> {
    let mut kinds = vec![SecurityKind::EthAddressLinked];
    if linked.others > 0 {
        kinds.push(SecurityKind::EthAddressLinkedCollision);
    }
    for kind in kinds {
        let mut event = security::event(kind, request_info);
        event.external_id = Some(user.external_id.clone());
        event.user_id = Some(user.id);
        event.address = Some(linked.link.address);
        event.reason = Some("user".into());
        event.count = (kind == SecurityKind::EthAddressLinkedCollision).then_some(linked.others);
        reservation.append(event)?;
    }
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
            (
                VerifyError::from(Unusable::Away),
                503,
                "linking temporarily unavailable",
            ),
            (VerifyError::from(Unusable::Gone), 400, "invalid or expired nonce"),
            (
                VerifyError::from(Unusable::Foreign),
                403,
                "challenge does not belong to this user",
            ),
            (VerifyError::Address, 400, "invalid ethereum address format"),
            (VerifyError::Signature, 400, "signature verification failed"),
            (
                VerifyError::from(StoreError::LinkRevoked),
                403,
                "address cannot be linked",
            ),
            (
                VerifyError::from(StoreError::Rule("address_is_contract")),
                403,
                "address cannot be linked",
            ),
            (VerifyError::Chain(ChainUnavailable), 503, "node unavailable"),
            (
                VerifyError::from(StoreError::NotPrimary),
                503,
                "the policy store is temporarily unavailable",
            ),
            (VerifyError::from(StoreError::Detached), 500, "internal error"),
            (VerifyError::Unrecorded(JournalError::Full), 503, "audit unavailable"),
        ];
        let answers = table.map(|(error, status, text)| {
            // A new variant stops the build here: add it to the table.
            match error {
                VerifyError::Unavailable
                | VerifyError::Nonce
                | VerifyError::OtherUser
                | VerifyError::Address
                | VerifyError::Signature
                | VerifyError::Rejected
                | VerifyError::Chain(_)
                | VerifyError::Store(_)
                | VerifyError::Unrecorded(_) => {}
            }
            let answer = ApiError::from(error);
            assert_eq!((answer.code().status().as_u16(), answer.text()), (status, text));
            answer.code().answer()
        });
        assert!(VerifyError::lists_exactly(answers));
    }
}
