//! Who opened a login, and how a request proves to come from the opener (ZK-13, HD19, HD34).
//!
//! Invariant: only the opener gets a session's tokens and details. A request comes from the opener if it shows the
//! session's secret. If the opener was not a browser and got no cookie, a request without any secret also counts,
//! provided that it comes from the address that opened the session and not from a browser: a script behind a shared
//! address must not choose what a browser there signs. A wrong secret is worse than no secret.

use super::{MAX_OPEN_PER_ADDRESS, Places};
use crate::login_secret::{self, SECRET_HEADER};
use gw_http::{AllowedOrigins, ClientAddress};
use http::{HeaderMap, header};
use serde::{Deserialize, Serialize};
use sha2::{Digest, Sha256};
use subtle::ConstantTimeEq;

/// The opener of a session as stored in the cache, with the secret as a hash.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub(crate) struct Opener {
    secret: [u8; 32],
    pub(crate) address: ClientAddress,
    /// Whether the address identifies the opener without the secret.
    by_address: bool,
    /// Whether a page of another site sent the browser there without a click of the user.
    #[serde(default)]
    by_foreign_script: bool,
}

/// What a request shows to prove that it comes from a session's opener.
#[derive(Debug)]
pub(crate) struct OpenerEvidence<'a> {
    secrets: Vec<&'a str>,
    client: ClientAddress,
    /// Whether the request comes from a browser: it has a cookie, or headers that only browsers send.
    is_browser: bool,
}

impl Opener {
    /// Creates the opener behind a request: `secret` is what it gets, and `headers` say whether it is a browser.
    pub(crate) fn new(secret: &str, address: ClientAddress, headers: &HeaderMap) -> Self {
        Self {
            secret: hash(secret),
            address,
            by_address: !AllowedOrigins::sent_by_browser(headers),
            by_foreign_script: AllowedOrigins::sent_by_foreign_script(headers),
        }
    }

    /// Marks that the opener got a cookie: from then on only the secret identifies it.
    pub(crate) fn with_cookie(self) -> Self {
        Self {
            by_address: false,
            ..self
        }
    }

    /// The limits that apply to the opener's open logins. A page can send its visitors to the login any number of
    /// times, so logins opened by a foreign script get half the limit: a user who clicks still has the other half
    /// (HD34).
    pub(crate) fn places(&self) -> Places {
        let most = if self.by_foreign_script {
            MAX_OPEN_PER_ADDRESS / 2
        } else {
            MAX_OPEN_PER_ADDRESS
        };
        Places::new(self.address, most)
    }

    /// Whether a request comes from the opener.
    pub(crate) fn is(&self, shown: &OpenerEvidence<'_>) -> bool {
        if shown.secrets.is_empty() {
            return self.by_address && !shown.is_browser && shown.client == self.address;
        }
        self.has_shown_secret(shown)
    }

    /// Whether a request shows the secret, from whatever address.
    pub(crate) fn has_shown_secret(&self, shown: &OpenerEvidence<'_>) -> bool {
        // A browser with logins in several tabs shows several secrets.
        shown.secrets.iter().any(|text| hash(text).ct_eq(&self.secret).into())
    }
}

impl<'a> OpenerEvidence<'a> {
    /// Reads the evidence of a request from `client`.
    pub(crate) fn from_headers(headers: &'a HeaderMap, client: ClientAddress) -> Self {
        // A header value that is not text counts as a wrong secret, not as none.
        let in_headers = headers
            .get_all(SECRET_HEADER)
            .iter()
            .map(|value| value.to_str().unwrap_or_default());
        let is_browser = AllowedOrigins::sent_by_browser(headers) || headers.contains_key(header::COOKIE);
        Self {
            secrets: in_headers.chain(login_secret::in_cookies(headers)).collect(),
            client,
            is_browser,
        }
    }
}

fn hash(text: &str) -> [u8; 32] {
    Sha256::digest(text.as_bytes()).into()
}
