//! Proving who calls: login sessions, token issue and rotation, linked addresses (spec/10).
//!
//! Not here: what a caller may do (`gw-policy`), how a token looks (`gw-http`), and what a zero-knowledge proof must be
//! (`gw-zk`); [`ZkVerifier`] brings its judgement and the state of identities together.
//!
//! Start with [`router`]; each operation has its own file under `routes`, whose path mirrors the URL.
#![warn(missing_docs)]

mod account;
pub mod directory;
mod ens;
mod error;
mod foreign_node;
mod limits;
mod link;
mod login;
pub mod oauth;
mod outbound;
mod resolver;
mod routes;
mod security;
mod state;
#[cfg(test)]
mod testing;
mod tokens;

pub use directory::{Directory, DirectorySettings};
pub use ens::Ens;
pub use link::{Chain, ChainAway, ask_wallet};
#[cfg(feature = "mock-login")]
pub use login::mock::MockVerifier;
pub use login::{
    AuthorizationRequest, DocumentError, Humanity, HumanityConfig, HumanityError, LoginSessions, NoVerifier, Nullifier,
    Progress, ProofError, ProofVerifier, Proved, RequestBody, SessionView, ZkVerifier,
};
pub use outbound::OutboundError;
pub use resolver::{ResolverConfig, Resolvers};
pub use routes::{api, router};
pub use security::{NotRecorded, Room, SecuritySink};
pub use state::{IdentityConfig, IdentityParts, IdentityState};
pub use tokens::{AuthResponse, TokenIssuer, TokenPair};
