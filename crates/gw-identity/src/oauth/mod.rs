//! First-party OAuth 2.0: other applications of ours obtain tokens by the authorization code flow (spec/10 section 5).
//!
//! Not here: routes, and proving who the user is, which is the login's matter.

mod clients;
mod pkce;
mod redirect;

pub use clients::{Client, Clients, ClientsError, Hashes};
pub use pkce::Challenge;
pub use redirect::{RedirectError, RedirectUri};
