//! `POST /eth/link/verify`: the signed challenge links the address (LK-2 to LK-6, LK-8, HD10).

use super::{LinkError, Linker};
use crate::{
    error::detached,
    link::{ask_wallet, challenge_hash, parse_address, parse_bytes, signer},
    routes::Provenance,
    security::{self, NotRecorded, Room},
    state::IdentityState,
};
use axum::{Json, extract::State};
use gw_audit::SecurityKind;
use gw_http::{ApiError, Authenticated, AuthenticatedBody, ErrorBody};
use gw_policy::{
    access::{WalletAnswer, WalletQuestion},
    snapshot::User,
};
use gw_store::{
    Actor,
    record::{LinkProof, Linked, WalletProof},
};
use gw_types::Address;
use http::HeaderMap;
use serde::{Deserialize, Serialize};
use std::sync::Arc;

/// An answered challenge.
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
    provenance: Provenance,
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
    // The node may have taken its time (HD20).
    let caller = Authenticated::of(&state.edge, &headers)?;
    let proved = Proved {
        user: caller.user,
        address,
        proof,
    };
    let worker = state.clone();
    detached(&state.tasks, async move {
        consume(&worker, proved, &body.nonce, &provenance).await
    })
    .await?;
    Ok(Json(EthLinkVerifyResponse {
        address: format!("{address:#x}"),
        message: "address linked",
    }))
}

/// Whose address it is, and how that was shown.
struct Proved {
    user: Arc<User>,
    address: Address,
    proof: LinkProof,
}

/// The address's own key signed; or there is a contract that takes the signature for its own (LK-4).
///
/// The contract may be of the caller's own making: what it did to answer is judged, and a no is a no for whatever reason
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
    let (policy, now) = (&state.edge.policy, state.edge.now());
    Ok(
        match ask_wallet(&*state.chain, policy, &state.knobs, user.id, &question, now).await? {
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

/// Uses the challenge up. Taken out first, it cannot link two addresses; only success keeps it out (D6).
async fn consume(state: &IdentityState, proved: Proved, nonce: &str, provenance: &Provenance) -> Result<(), LinkError> {
    let taken = state.inner.challenges.take(nonce, proved.user.id).await?;
    let (user, address) = (Arc::clone(&proved.user), proved.address);
    let linked = link(state, proved, provenance).await;
    match &linked {
        Ok(()) => super::refresh_ens::look_up_later(state, user, address, provenance),
        Err(_) => state.inner.challenges.put_back(nonce, &taken, state.edge.now()).await,
    }
    linked
}

async fn link(state: &IdentityState, proved: Proved, provenance: &Provenance) -> Result<(), LinkError> {
    let Proved { user, address, proof } = proved;
    let mut room = state.security.reserve(2)?;
    let actor = provenance.act(Actor::user(user.id, &user.external_id));
    let mut tx = state.store.begin(&actor).await?;
    let linked = tx.link_address(user.id, address, proof).await?;
    tx.commit().await?;
    Ok(record(&mut room, &user, &linked, provenance)?)
}

/// The audit entry of the link stands in its transaction; this is for those who watch.
fn record(room: &mut Room, user: &User, linked: &Linked, provenance: &Provenance) -> Result<(), NotRecorded> {
    let mut kinds = vec![SecurityKind::EthAddressLinked];
    if linked.others > 0 {
        kinds.push(SecurityKind::EthAddressLinkedCollision);
    }
    for kind in kinds {
        let mut event = security::event(kind, provenance);
        event.external_id = Some(user.external_id.clone());
        event.user_id = Some(user.id);
        event.address = Some(linked.link.address);
        event.reason = Some("user".into());
        event.count = (kind == SecurityKind::EthAddressLinkedCollision).then_some(linked.others);
        room.record(event)?;
    }
    Ok(())
}
