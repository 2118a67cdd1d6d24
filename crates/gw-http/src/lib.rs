//! What every HTTP surface shares: who calls, from where, with which token, and how errors and lists look.
//!
//! Not here: routes, decisions (they are `gw-policy`'s) and anything that touches a database.
//!
//! Start with [`Edge`], the state all extractors draw on, then [`TokenCodec`] and [`ApiError`].
#![warn(missing_docs)]

pub mod admin;
pub mod auth;
pub mod client;
pub mod correlation;
pub mod cors;
mod edge;
mod error;
pub mod headers;
mod json;
pub mod limit;
mod nearest;
pub mod network;
mod origin;
mod page;
mod query;
mod strict;
#[cfg(test)]
mod testing;
pub mod token;

pub use admin::{AdminCaller, AdminGate};
pub use auth::{AuthError, Authenticated, Presented};
pub use client::{ClientAddress, TrustedProxies};
pub use correlation::{Correlate, CorrelationId};
pub use cors::Cors;
pub use edge::{Edge, PolicySource};
pub use error::{ApiError, Challenge, ErrorBody, ErrorCode, Message, method_not_allowed, route_not_found};
pub use headers::SecureHeaders;
pub use json::{AuthenticatedBody, BODY_LIMIT, JsonBody, NoBodyRoom, parse_json, parse_open_json, read_body};
pub use limit::{AddressKey, Networks, RateLimit};
pub use network::PrivateNetwork;
pub use origin::{Origin, OwnOrigins};
pub use page::{Page, PageQuery, Paged, fitting};
pub use query::{KnownQueries, QueryParams, known_queries};
pub use token::{AccessClaims, Amr, RefreshClaims, TokenCodec, TokenError, TokenLives, TokenSecrets};
