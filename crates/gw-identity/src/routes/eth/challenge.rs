//! `POST /eth/link/challenge`: returns the text that a wallet signs (LK-1).

use super::Linker;
use crate::{link::ChallengeFacts, state::IdentityState};
use axum::{Json, extract::State};
use gw_cache::PutError;
use gw_http::{ApiError, ErrorBody, ErrorCode, described_error};
use gw_types::Seconds;
use serde::Serialize;

/// A challenge.
#[derive(Debug, Serialize, utoipa::ToSchema)]
pub(crate) struct ChallengeResponse {
    /// Identifies the challenge; sent back with the signature.
    nonce: String,
    /// The text to sign.
    message: String,
}

/// Why no challenge was opened.
#[derive(Debug, thiserror::Error)]
pub(crate) enum ChallengeError {
    /// The chain id is not known yet.
    #[error("the chain id is not known")]
    NoChain,
    /// Too many open challenges.
    #[error("too many open challenges")]
    Busy,
    /// The challenges cannot be reached.
    #[error("the challenges cannot be reached")]
    Unavailable,
}

impl From<PutError> for ChallengeError {
    fn from(error: PutError) -> Self {
        match error {
            PutError::Full { .. } | PutError::GroupFull { .. } => Self::Busy,
            PutError::Unavailable(_) => Self::Unavailable,
        }
    }
}

impl From<ChallengeError> for ApiError {
    fn from(error: ChallengeError) -> Self {
        match error {
            ChallengeError::NoChain => Self::unavailable("node unavailable"),
            ChallengeError::Busy => Self::unavailable("too many open challenges").retry_after(Seconds(60)),
            ChallengeError::Unavailable => super::unavailable(),
        }
    }
}

described_error!(ChallengeError, "APIError", [ErrorCode::Unavailable.answer()]);

/// Start linking an address
#[utoipa::path(
    post,
    path = "/eth/link/challenge",
    operation_id = "linkChallenge",
    tag = "eth",
    security(("bearer" = [])),
    responses(
        (status = 200, body = ChallengeResponse),
        ChallengeError,
        (status = 401, body = ErrorBody),
        (status = 403, body = ErrorBody),
        (status = 429, body = ErrorBody),
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
        chain: state.chain.id().ok_or(ChallengeError::NoChain)?,
        now: state.http_context.now(),
    };
    let opened = state.inner.challenges.open(&facts, &*state.http_context.entropy).await;
    let (nonce, message) = opened.map_err(ChallengeError::from)?;
    Ok(Json(ChallengeResponse { nonce, message }))
}

#[cfg(test)]
mod tests {
    use super::*;
    use gw_cache::Unavailable;
    use gw_http::DescribedError as _;

    /// House rule 17.
    #[test]
    fn every_error_has_its_status_and_text() {
        let table = [
            (ChallengeError::NoChain, 503, "node unavailable"),
            (ChallengeError::Busy, 503, "too many open challenges"),
            (
                ChallengeError::from(PutError::Unavailable(Unavailable)),
                503,
                "linking temporarily unavailable",
            ),
        ];
        let answers = table.map(|(error, status, text)| {
            // A new variant stops the build here: add it to the table.
            match error {
                ChallengeError::NoChain | ChallengeError::Busy | ChallengeError::Unavailable => {}
            }
            let answer = ApiError::from(error);
            assert_eq!((answer.code().status().as_u16(), answer.text()), (status, text));
            answer.code().answer()
        });
        assert!(ChallengeError::lists_exactly(answers));
    }
}
