//! Why an address is not linked, or not unlinked (LK-2, HD10).

use crate::link::{ChainUnavailable, Unusable};
use gw_cache::PutError;
use gw_http::ApiError;
use gw_journal::JournalError;
use gw_store::{Missing, StoreError};
use gw_types::Seconds;

/// Error of the operations on links.
#[derive(Debug, thiserror::Error)]
pub(super) enum LinkError {
    /// The chain id is not known yet.
    #[error("the chain id is not known")]
    NoChain,
    /// Too many open challenges.
    #[error("too many open challenges")]
    Busy,
    /// The challenges cannot be reached.
    #[error("the challenges cannot be reached")]
    Away,
    /// The challenge is unknown, expired, used or destroyed.
    #[error("the challenge is not open")]
    Nonce,
    /// The challenge was issued to another user.
    #[error("the challenge is somebody else's")]
    Foreign,
    /// Not an address.
    #[error("not an address")]
    Address,
    /// The address did not sign the challenge.
    #[error("the signature does not fit")]
    Signature,
    /// An administrator revoked this link, or the address belongs to a contract. Both get the same answer, so that
    /// callers cannot find out which addresses are registered.
    #[error("the address cannot be linked")]
    Refused,
    /// Not linked to the caller.
    #[error("the address is not linked")]
    NotLinked,
    /// The node did not answer the question to a contract wallet.
    #[error("the node gave no answer")]
    Chain(#[from] ChainUnavailable),
    /// ENS lookups are not configured.
    #[error("no name service is configured")]
    NoEns,
    /// The ENS lookup failed.
    #[error("the name service gave no answer")]
    EnsAway,
    /// The store failed.
    #[error("the store failed")]
    Store(#[source] StoreError),
    /// The event could not be recorded.
    #[error("no room to record")]
    Unrecorded(#[from] JournalError),
}

impl From<StoreError> for LinkError {
    fn from(error: StoreError) -> Self {
        match error {
            StoreError::LinkRevoked | StoreError::Rule("address_is_contract") => Self::Refused,
            StoreError::NotFound(Missing::Link) => Self::NotLinked,
            other => Self::Store(other),
        }
    }
}

impl From<Unusable> for LinkError {
    fn from(unusable: Unusable) -> Self {
        match unusable {
            Unusable::Gone => Self::Nonce,
            Unusable::Foreign => Self::Foreign,
            Unusable::Away => Self::Away,
        }
    }
}

impl From<PutError> for LinkError {
    fn from(error: PutError) -> Self {
        match error {
            PutError::Full { .. } | PutError::GroupFull { .. } => Self::Busy,
            PutError::Unavailable(_) => Self::Away,
        }
    }
}

impl From<LinkError> for ApiError {
    fn from(error: LinkError) -> Self {
        match error {
            LinkError::NoChain => Self::unavailable("node unavailable"),
            LinkError::Chain(ChainUnavailable) => Self::unavailable("node unavailable").retry_after(Seconds(5)),
            LinkError::NoEns => Self::unavailable("ENS is not configured"),
            LinkError::EnsAway => Self::unavailable("ENS temporarily unavailable").retry_after(Seconds(30)),
            LinkError::Busy => Self::unavailable("too many open challenges").retry_after(Seconds(60)),
            LinkError::Away => Self::unavailable("linking temporarily unavailable").retry_after(Seconds(5)),
            LinkError::Nonce => Self::bad_request("invalid or expired nonce"),
            LinkError::Foreign => Self::forbidden("challenge does not belong to this user"),
            LinkError::Address => Self::bad_request("invalid ethereum address format"),
            LinkError::Signature => Self::bad_request("signature verification failed"),
            LinkError::Refused => Self::forbidden("address cannot be linked"),
            LinkError::NotLinked => Self::not_found("address not found"),
            LinkError::Store(error) => crate::error::storage(&error),
            LinkError::Unrecorded(_) => Self::audit_unavailable(),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lk2_every_refusal_has_its_status_and_text() {
        let table = [
            (LinkError::NoChain, 503, "node unavailable"),
            (LinkError::Busy, 503, "too many open challenges"),
            (LinkError::Away, 503, "linking temporarily unavailable"),
            (LinkError::Nonce, 400, "invalid or expired nonce"),
            (LinkError::Foreign, 403, "challenge does not belong to this user"),
            (LinkError::Address, 400, "invalid ethereum address format"),
            (LinkError::Signature, 400, "signature verification failed"),
            (
                LinkError::from(StoreError::LinkRevoked),
                403,
                "address cannot be linked",
            ),
            (
                LinkError::from(StoreError::Rule("address_is_contract")),
                403,
                "address cannot be linked",
            ),
            (
                LinkError::from(StoreError::NotFound(Missing::Link)),
                404,
                "address not found",
            ),
            (
                LinkError::from(StoreError::NotPrimary),
                503,
                "the policy store is temporarily unavailable",
            ),
            (LinkError::from(StoreError::Detached), 500, "internal error"),
            (LinkError::Unrecorded(JournalError::Full), 503, "audit unavailable"),
        ];
        for (error, status, text) in table {
            let name = format!("{error:?}");
            let answer = ApiError::from(error);
            assert_eq!(
                (answer.code().status().as_u16(), answer.text()),
                (status, text),
                "{name}"
            );
        }
    }
}
