//! `POST /eth/link/verify`: the signed challenge links the address (LK-2 to LK-6, LK-8, HD10).

use super::{LinkError, Linker};
use crate::{
    error::spawn_tracked,
    link::{ask_wallet, challenge_hash, parse_address, parse_bytes, signer},
    request_info::RequestInfo,
    security,
    state::IdentityState,
};
use axum::{Json, extract::State};
use gw_audit::SecurityKind;
use gw_http::{ApiError, AuthenticatedBody, AuthenticatedUser, ErrorBody};
use gw_journal::{JournalError, Reservation};
use gw_policy::{
    access::{WalletAnswer, WalletQuestion},
    snapshot::User,
};
use gw_store::{
    Actor,
    record::{LinkProof, LinkResult, WalletProof},
};
use gw_types::Address;
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
        (status = 400, body = ErrorBody),
        (status = 401, body = ErrorBody),
        (status = 403, body = ErrorBody),
        (status = 429, body = ErrorBody),
        (status = 500, body = ErrorBody),
        (status = 503, body = ErrorBody),
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
        .map_err(LinkError::from)?;
    let address = parse_address(&body.address).ok_or(LinkError::Address)?;
    let Some(proof) = proof(&state, &caller.user, address, &message, &body.signature).await? else {
        challenges.fail(&body.nonce).await.map_err(LinkError::from)?;
        return Err(LinkError::Signature.into());
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
) -> Result<Option<LinkProof>, LinkError> {
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
            WalletAnswer::No => None,
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
) -> Result<(), LinkError> {
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

async fn link(state: &IdentityState, proved: VerifiedAddress, request_info: &RequestInfo) -> Result<(), LinkError> {
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
