//! Errors of the explorer's routes, and their answers.

use crate::index::IndexBehind;
use axum::response::{IntoResponse, Response};
use gw_chain_store::ChainStoreError;
use gw_http::{ApiError, AuthError, ErrorCode, described_error};
use gw_postings::Space;
use gw_store::StoreError;
use std::borrow::Cow;

/// The error of an explorer route.
#[derive(Debug, thiserror::Error)]
pub(crate) enum ExplorerError {
    /// Sent unchanged.
    #[error("the request is refused")]
    Api(ApiError),
    /// The index cannot answer for the stored chain. Rows are never read without it.
    #[error("the explorer's index is behind")]
    Behind,
    /// The chain store failed.
    #[error("the chain store failed")]
    Store(#[source] ChainStoreError),
    /// The policy store did not confirm a change.
    #[error("the policy store failed")]
    Policy(#[source] StoreError),
    /// A row of the index is not in the store: it vanished, so the index is not the store's any more (X5).
    #[error("a selected row of {0:?} is missing in the chain store")]
    MissingRow(Space),
    /// A row of the index does not survive its evaluation, so that selection and evaluation contradict each other.
    #[error("a selected row of {0:?} does not survive its evaluation")]
    Contradiction(Space),
    /// The gateway's own fault.
    #[error("{0}")]
    Internal(&'static str),
}

impl ExplorerError {
    pub(crate) fn bad_request(text: impl Into<Cow<'static, str>>) -> Self {
        Self::Api(ApiError::bad_request(text))
    }

    pub(crate) fn not_found(text: &'static str) -> Self {
        Self::Api(ApiError::not_found(text))
    }
}

described_error!(
    ExplorerError,
    "APIError",
    [
        ErrorCode::BadRequest.answer(),
        ErrorCode::Unauthorized.answer(),
        ErrorCode::NotFound.answer(),
        ErrorCode::PayloadTooLarge.answer(),
        ErrorCode::RateLimited.answer(),
        ErrorCode::Internal.answer(),
        ErrorCode::Unavailable.answer(),
    ]
);

impl From<ApiError> for ExplorerError {
    fn from(error: ApiError) -> Self {
        Self::Api(error)
    }
}

/// E10: a token that is present has to be valid. The account's state is the token's.
impl From<AuthError> for ExplorerError {
    fn from(error: AuthError) -> Self {
        let challenging = |text| ApiError::unauthorized(text).challenging(gw_http::Challenge::InvalidToken);
        Self::Api(match error {
            AuthError::Banned => challenging("account is banned"),
            AuthError::TenantNotAllowed => challenging("tenant is not authorized"),
            AuthError::Missing
            | AuthError::Format
            | AuthError::Invalid
            | AuthError::Expired
            | AuthError::Revoked
            | AuthError::UnknownUser
            | AuthError::PolicyStale => error.into(),
        })
    }
}

impl From<ChainStoreError> for ExplorerError {
    fn from(error: ChainStoreError) -> Self {
        match error {
            ChainStoreError::OtherGeneration { .. } => Self::Behind,
            ChainStoreError::MissingRow(space) => Self::MissingRow(space),
            error => Self::Store(error),
        }
    }
}

impl From<StoreError> for ExplorerError {
    fn from(error: StoreError) -> Self {
        Self::Policy(error)
    }
}

impl From<IndexBehind> for ExplorerError {
    fn from(_: IndexBehind) -> Self {
        Self::Behind
    }
}

impl IntoResponse for ExplorerError {
    fn into_response(self) -> Response {
        match &self {
            Self::Api(error) => return error.clone().into_response(),
            Self::Behind => return ApiError::unavailable("explorer index is behind").into_response(),
            Self::MissingRow(_) => {
                tracing::warn!(
                    error = &self as &dyn std::error::Error,
                    "the explorer's database lacks rows of its index; if this does not end, index the chain again"
                );
                return ApiError::unavailable("explorer index is behind").into_response();
            }
            Self::Store(error) if error.is_unavailable() => {
                tracing::warn!(
                    error = error as &dyn std::error::Error,
                    "the explorer's database is not reachable"
                );
                return ApiError::unavailable("explorer store is temporarily unavailable").into_response();
            }
            Self::Policy(error) if matches!(error, StoreError::Unconfirmed(_)) => {
                tracing::error!(
                    error = error as &dyn std::error::Error,
                    "the commit of an uploaded ABI is not confirmed: it may have been applied; check the audit log for \
                     its entry"
                );
                return ApiError::unavailable(
                    "the change is not confirmed and may stand: read it back before repeating it",
                )
                .into_response();
            }
            Self::Policy(error) if error.is_unavailable() => {
                tracing::warn!(
                    error = error as &dyn std::error::Error,
                    "the policy store is not reachable"
                );
                return ApiError::unavailable("the policy store is temporarily unavailable").into_response();
            }
            Self::Contradiction(_) => metrics::counter!("ledger_gateway_explorer_contradictions_total").increment(1),
            Self::Store(_) | Self::Policy(_) | Self::Internal(_) => {}
        }
        tracing::error!(
            error = &self as &dyn std::error::Error,
            "an explorer request failed with an internal error; nothing was shown"
        );
        ApiError::internal().into_response()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use gw_http::DescribedError as _;

    /// House rule 17.
    #[test]
    fn every_error_has_its_status() {
        let table = [
            (ExplorerError::bad_request("no"), 400),
            (ExplorerError::from(AuthError::Banned), 401),
            (ExplorerError::from(AuthError::TenantNotAllowed), 401),
            (ExplorerError::from(AuthError::Expired), 401),
            (ExplorerError::from(AuthError::PolicyStale), 503),
            (ExplorerError::not_found("no"), 404),
            (ExplorerError::from(IndexBehind), 503),
            (
                ExplorerError::from(ChainStoreError::OtherGeneration {
                    requested: 1,
                    stored: 2,
                }),
                503,
            ),
            (ExplorerError::from(ChainStoreError::MissingRow(Space::Logs)), 503),
            (ExplorerError::Contradiction(Space::Logs), 500),
            (ExplorerError::from(ApiError::payload_too_large()), 413),
            (ExplorerError::from(ApiError::rate_limited(gw_types::Seconds(1))), 429),
            (ExplorerError::from(StoreError::Unconfirmed("lost")), 503),
            (ExplorerError::from(StoreError::NotPrimary), 503),
            (ExplorerError::from(StoreError::Detached), 500),
            (ExplorerError::Internal("a fault"), 500),
        ];
        let mut answers = Vec::new();
        for (error, status) in table {
            let name = format!("{error:?}");
            let answer = error.into_response();
            let code = answer.extensions().get::<ApiError>().map(ApiError::code).unwrap();
            assert_eq!(answer.status().as_u16(), status, "{name}");
            answers.push(code.answer());
        }
        assert!(ExplorerError::lists_exactly(answers));
    }
}
