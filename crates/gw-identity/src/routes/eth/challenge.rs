//! `POST /eth/link/challenge`: returns the text that a wallet signs (LK-1).

use super::{LinkError, Linker};
use crate::{link::ChallengeFacts, state::IdentityState};
use axum::{Json, extract::State};
use gw_http::{ApiError, ErrorBody};
use serde::Serialize;

/// A challenge.
#[derive(Debug, Serialize, utoipa::ToSchema)]
pub(crate) struct ChallengeResponse {
    /// Identifies the challenge; sent back with the signature.
    nonce: String,
    /// The text to sign.
    message: String,
}

/// Start linking an address
#[utoipa::path(
    post,
    path = "/eth/link/challenge",
    operation_id = "linkChallenge",
    tag = "eth",
    security(("bearer" = [])),
    responses(
        (status = 200, body = ChallengeResponse),
        (status = 401, body = ErrorBody),
        (status = 403, body = ErrorBody),
        (status = 429, body = ErrorBody),
        (status = 503, body = ErrorBody),
    ),
)]
pub(crate) async fn challenge(
    State(state): State<IdentityState>,
    Linker(caller): Linker,
) -> Result<Json<ChallengeResponse>, ApiError> {
    let facts = ChallengeFacts {
        host: state.http_context.origins.base.host(),
        did: &caller.user.external_id,
        user: caller.user.id,
        chain: state.chain.id().ok_or(LinkError::NoChain)?,
        now: state.http_context.now(),
    };
    let opened = state.inner.challenges.open(&facts, &*state.http_context.entropy).await;
    let (nonce, message) = opened.map_err(LinkError::from)?;
    Ok(Json(ChallengeResponse { nonce, message }))
}
