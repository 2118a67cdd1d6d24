//! The place where a check of proofs plugs in.

use super::AuthorizationRequest;
use futures_util::future::BoxFuture;
use gw_http::Amr;
use gw_types::{ExternalId, Timestamp};

/// A name somebody proved to hold, and how.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Proved {
    /// The name.
    pub subject: ExternalId,
    /// How it was proved.
    pub amr: Amr,
    /// What tells the person behind it from all others, where a credential was asked for that says so (ZK-77).
    pub nullifier: Option<Nullifier>,
}

/// A number that one person's credential gives to one session of ours, whichever profile shows it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Nullifier {
    /// IDP_NULLIFIER_SESSION.
    pub session: String,
    /// The number.
    pub value: String,
}

/// Why a proof proves nothing. What exactly is wrong with it is for our log, never for the client (ZK-90).
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum ProofError {
    /// No proof can be read from it.
    #[error("the proof is unreadable")]
    Unreadable,
    /// Read, and found wanting.
    #[error("the proof does not hold")]
    Failed,
    /// The humanity credential was asked for and is absent.
    #[error("the humanity credential is absent")]
    HumanityMissing,
    /// The wallet's network has no state resolver.
    #[error("the network has no state resolver")]
    NetworkNotSupported,
    /// The check could not be made: the state of the identity, a processor or the memory of messages was not to be had.
    #[error("the proof could not be checked")]
    ResolverFault,
}

/// Checks a wallet's answer against the request it answers. Chosen once, at wiring.
pub trait ProofVerifier: Send + Sync + core::fmt::Debug {
    /// Who `token` proves to be the one answering `request`.
    fn verify<'a>(
        &'a self,
        token: &'a str,
        request: &'a AuthorizationRequest,
        now: Timestamp,
    ) -> BoxFuture<'a, Result<Proved, ProofError>>;
}

/// The build without a verifier: nothing proves anything.
#[derive(Clone, Copy, Debug)]
pub struct NoVerifier;

impl ProofVerifier for NoVerifier {
    fn verify<'a>(
        &'a self,
        _: &'a str,
        _: &'a AuthorizationRequest,
        _: Timestamp,
    ) -> BoxFuture<'a, Result<Proved, ProofError>> {
        Box::pin(std::future::ready(Err(ProofError::Failed)))
    }
}
