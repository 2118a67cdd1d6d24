//! The interface of proof verification.

use super::AuthorizationRequest;
use futures_util::future::BoxFuture;
use gw_http::Amr;
use gw_types::{ExternalId, Timestamp};

/// The result of a verified proof.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct VerifiedLogin {
    /// The external id that was proved.
    pub subject: ExternalId,
    /// How it was proved.
    pub amr: Amr,
    /// The number that tells the person from all others, if the credential query requests one (ZK-77).
    pub nullifier: Option<Nullifier>,
}

/// A number that a person's credential yields for one nullifier session. It is the same for all profiles of the person.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Nullifier {
    /// IDP_NULLIFIER_SESSION.
    pub session: String,
    /// The number.
    pub value: String,
}

/// Why a proof is rejected. The log has the details, the client never gets them (ZK-90).
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum ProofError {
    /// The token does not contain a readable proof.
    #[error("the proof is unreadable")]
    Unreadable,
    /// A check failed.
    #[error("the proof does not hold")]
    Failed,
    /// The humanity credential was requested and is absent.
    #[error("the humanity credential is absent")]
    HumanityMissing,
    /// The wallet's network has no state resolver.
    #[error("the network has no state resolver")]
    NetworkNotSupported,
    /// The check could not be made: the identity's state, a processor or the record of accepted messages was
    /// unavailable.
    #[error("the proof could not be checked")]
    ResolverFault,
}

/// Verifies a wallet's answer against the request that it answers. Chosen once, at startup.
pub trait ProofVerifier: Send + Sync + core::fmt::Debug {
    /// Returns the login that `token` proves as an answer to `request`.
    fn verify<'a>(
        &'a self,
        token: &'a str,
        request: &'a AuthorizationRequest,
        now: Timestamp,
    ) -> BoxFuture<'a, Result<VerifiedLogin, ProofError>>;
}

/// A verifier that rejects every proof.
#[derive(Clone, Copy, Debug)]
pub struct NoVerifier;

impl ProofVerifier for NoVerifier {
    fn verify<'a>(
        &'a self,
        _: &'a str,
        _: &'a AuthorizationRequest,
        _: Timestamp,
    ) -> BoxFuture<'a, Result<VerifiedLogin, ProofError>> {
        Box::pin(std::future::ready(Err(ProofError::Failed)))
    }
}
