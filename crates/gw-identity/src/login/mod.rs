//! Login by proof: the session between the page that opens a login and the wallet that proves it (spec/10 section 2).

mod documents;
mod error;
mod humanity;
mod message;
#[cfg(feature = "mock-login")]
pub(crate) mod mock;
mod opener;
mod places;
mod proof;
mod session;
mod vault;
mod verifier;

pub use documents::DocumentError;
pub(crate) use error::{LoginError, Reason};
pub use humanity::{Humanity, HumanityConfig, HumanityError};
pub use message::{AuthorizationRequest, RequestBody};
pub(crate) use message::{PLACEHOLDER_VERIFIER, RequestFacts, callback_base};
pub(crate) use opener::{Opener, OpenerEvidence};
pub(crate) use places::Places;
pub use proof::{NoVerifier, Nullifier, ProofError, ProofVerifier, VerifiedLogin};
pub(crate) use session::{
    FailureCounter, LoginCompletion, LoginId, LoginRejection, LoginSession, MAX_OPEN_PER_ADDRESS, Status,
};
pub use session::{LoginSessions, Progress, SessionView};
pub(crate) use vault::Vault;
pub use verifier::ZkVerifier;
