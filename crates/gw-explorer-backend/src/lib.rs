//! The backend of the web explorer (spec/40 sections 1 and 7): keeps the sessions of browsers in encrypted cookies, and
//! forwards requests to the gateway with the access token of the session.
//!
//! Not here: chain data, a database, a cache of responses, and any decision about what a viewer may see. The gateway
//! decides each request again.
//!
//! Invariants: a browser never holds a token in clear, and no body, page or log line contains one. A request can reach
//! only the gateway's routes that the module `route` names.
//!
//! Start with [`router()`], then the modules `session` and `forward`.
#![warn(missing_docs)]

mod answer;
mod config;
mod cookies;
mod error;
mod forward;
mod health;
mod impersonation;
mod key_set;
mod page;
mod permit;
mod return_url;
mod route;
mod router;
mod session;
mod sign_in;
mod sign_in_states;
mod single_flight;
mod state;
mod upstream;
mod view_as;

pub use config::{BackendConfig, ProxyConfig, SignInConfig, Source};
pub use health::Readiness;
pub use router::router;
pub use state::{Backend, BackendError};
