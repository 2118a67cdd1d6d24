//! Authentication: login sessions, token issue and rotation, linked addresses (spec/10).
//!
//! Not here: what a caller may do (`gw-policy`), the token format (`gw-http`), and the checks of a zero-knowledge proof
//! (`gw-zk`). [`ZkVerifier`] combines those checks with the on-chain state of identities.
//!
//! Start with [`router`]; each operation has its own file under `routes`, whose path mirrors the URL.
#![warn(missing_docs)]

mod account;
mod blocking_pool;
mod complete_login;
pub mod directory;
mod directory_login;
mod ens;
mod error;
mod external_node;
mod limits;
mod link;
mod login;
mod login_secret;
pub mod oauth;
mod outbound;
mod request_info;
mod resolver;
mod routes;
mod security;
mod state;
mod tokens;

pub use directory::{Directory, DirectorySettings};
pub use ens::Ens;
pub use gw_http::OutboundError;
pub use link::{Chain, ChainUnavailable, ask_wallet};
#[cfg(feature = "mock-login")]
pub use login::mock::MockVerifier;
pub use login::{
    AuthorizationRequest, DocumentError, Humanity, HumanityConfig, HumanityError, LoginSessions, NoVerifier, Nullifier,
    Progress, ProofError, ProofVerifier, RequestBody, SessionView, VerifiedLogin, ZkVerifier,
};
pub use resolver::{ResolverConfig, Resolvers};
pub use routes::{api, router};
pub use state::{IdentityConfig, IdentityParts, IdentityState};
pub use tokens::{AuthResponse, TokenIssuer, TokenPair};
