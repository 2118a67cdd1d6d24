//! Proving who calls: login sessions, token issue and rotation, linked addresses (spec/10).
//!
//! Not here: what a caller may do (`gw-policy`), how a token looks (`gw-http`), and the check of zero-knowledge
//! proofs, which plugs in behind [`ProofVerifier`].
//!
//! Start with [`router`]; each operation has its own file under `routes`, whose path mirrors the URL.
#![warn(missing_docs)]

mod account;
pub mod directory;
mod error;
mod limits;
mod link;
mod login;
pub mod oauth;
mod routes;
mod security;
mod state;
#[cfg(test)]
mod testing;
mod tokens;

pub use directory::{Directory, DirectorySettings};
#[cfg(feature = "mock-login")]
pub use login::mock::MockVerifier;
pub use login::{
    AuthorizationRequest, LoginSessions, NoVerifier, Progress, ProofError, ProofVerifier, Proved, RequestBody,
    SessionView,
};
pub use routes::{api, router};
pub use security::{NotRecorded, Room, SecuritySink};
pub use state::{ChainSource, IdentityConfig, IdentityParts, IdentityState};
pub use tokens::{AuthResponse, TokenIssuer, TokenPair};
