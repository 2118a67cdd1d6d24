//! What every HTTP surface shares: authentication, client addresses, tokens, and the formats of errors and lists.
//!
//! Not here: routes, policy decisions (`gw-policy`) and anything that uses a database.
//!
//! Start with [`HttpContext`], the state that all extractors use, then [`TokenCodec`] and [`ApiError`].
#![warn(missing_docs)]

pub mod admin;
mod admin_gate;
pub mod auth;
pub mod client;
mod concurrency;
pub mod correlation;
pub mod cors;
mod created;
mod cursor;
mod cursor_cipher;
mod delivery;
mod error;
mod grant_reads;
pub mod headers;
mod http_context;
mod internal_hosts;
mod json;
pub mod limit;
mod mask;
mod named_org;
mod nearest;
pub mod network;
mod origin;
pub mod outbound;
mod page;
mod private_only;
mod query;
mod record;
pub mod simulation;
mod strict;
pub mod token;

pub use admin::AdminCaller;
pub use admin_gate::AdminGate;
pub use auth::{AuthError, AuthenticatedUser, Credentials};
pub use client::{ClientAddress, TrustedProxies};
pub use concurrency::{ConcurrencyLimiter, ConcurrencyPermit, LimitKey};
pub use correlation::{Correlate, CorrelationId};
pub use cors::Cors;
pub use created::Created;
pub use cursor::{CursorQuery, GrowingList};
pub use cursor_cipher::{CursorCipher, Position};
pub use delivery::{DeliveryNetworks, DeliveryUrlError};
pub use error::{
    ApiError, Challenge, DescribedError, ErrorBody, ErrorCode, Message, described_responses, method_not_allowed,
    route_not_found,
};
pub use grant_reads::{ReadOrigin, feed_reveals, grant_read, journal_reads};
pub use headers::SecureHeaders;
pub use http_context::{HttpContext, PolicySource};
pub use internal_hosts::{InternalHosts, internal_hosts_only};
pub use json::{AuthenticatedBody, BODY_LIMIT, JsonBody, NoBodyRoom, parse_json, parse_open_json, read_body};
pub use limit::{AddressKey, Networks, RateLimit};
pub use mask::{PRIVATE, mask_addresses};
pub use named_org::{ORG_HEADER, TwoOrganizations, named_org};
pub use network::PrivateNetwork;
pub use origin::{AllowedOrigins, Origin};
pub use outbound::{AnswerLimits, ConnectionPool, HttpClient, OutboundError};
pub use page::{Page, PageQuery, Paged, fitting};
pub use private_only::private_only;
pub use query::{KnownQueries, QueryParams, known_queries};
pub use record::RequestRecorder;
pub use token::{
    AccessAlgorithm, AccessClaims, Amr, KeySetDocument, KeySetError, PublicKeys, PublicTokenError, RefreshClaims,
    TokenCodec, TokenError, TokenLives, TokenSecrets,
};
