//! Who opened a login, and what shows it (ZK-13, HD19, HD34).
//!
//! Invariant: tokens and facts of a session go to its opener only: to whoever shows the session's secret, or, where the
//! opener was no browser and got no cookie, to whoever asks from the address that opened it without any secret and is no
//! browser either: a script behind somebody's address must not choose what their browser signs. A wrong secret counts for
//! less than none.

use super::{MAX_OPEN_PER_ADDRESS, Places};
use crate::routes::{SECRET_HEADER, cookies};
use gw_http::{ClientAddress, OwnOrigins};
use http::{HeaderMap, header};
use serde::{Deserialize, Serialize};
use sha2::{Digest, Sha256};
use subtle::ConstantTimeEq;

/// Who opened a session, as the cache holds it: the secret as its hash.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub(crate) struct Opener {
    secret: [u8; 32],
    pub(crate) address: ClientAddress,
    /// Whether the address alone is enough.
    by_address: bool,
    /// Whether a page of another site sent the browser there without anybody's click.
    #[serde(default)]
    by_foreign_script: bool,
}

/// What a request shows of having opened a session.
#[derive(Debug)]
pub(crate) struct OpenerEvidence<'a> {
    secrets: Vec<&'a str>,
    client: ClientAddress,
    /// Whether a browser asks, by what only browsers send: such headers, or a cookie.
    is_browser: bool,
}

impl Opener {
    /// The opener behind a request: `secret` is what it gets, and `headers` say whether it is a browser.
    pub(crate) fn new(secret: &str, address: ClientAddress, headers: &HeaderMap) -> Self {
        Self {
            secret: hash(secret),
            address,
            by_address: !OwnOrigins::sent_by_browser(headers),
            by_foreign_script: OwnOrigins::sent_by_foreign_script(headers),
        }
    }

    /// The same with a cookie of its own: from then on only that counts.
    pub(crate) fn with_cookie(self) -> Self {
        Self {
            by_address: false,
            ..self
        }
    }

    /// The places that the opener may take. A page can send its visitors to the login as often as it likes: it gets half of
    /// them, so that whoever signs in by a click finds the other half (HD34).
    pub(crate) fn places(&self) -> Places {
        let most = if self.by_foreign_script {
            MAX_OPEN_PER_ADDRESS / 2
        } else {
            MAX_OPEN_PER_ADDRESS
        };
        Places::new(self.address, most)
    }

    /// Whether a request is the opener's.
    pub(crate) fn is(&self, shown: &OpenerEvidence<'_>) -> bool {
        if shown.secrets.is_empty() {
            return self.by_address && !shown.is_browser && shown.client == self.address;
        }
        self.has_shown_secret(shown)
    }

    /// Whether a request shows the secret, wherever it comes from.
    pub(crate) fn has_shown_secret(&self, shown: &OpenerEvidence<'_>) -> bool {
        // Several may be shown, of logins begun in several tabs.
        shown.secrets.iter().any(|text| hash(text).ct_eq(&self.secret).into())
    }
}

impl<'a> OpenerEvidence<'a> {
    /// What a request from `client` shows.
    pub(crate) fn of(headers: &'a HeaderMap, client: ClientAddress) -> Self {
        // A header that is no text is a wrong secret, not none.
        let in_headers = headers
            .get_all(SECRET_HEADER)
            .iter()
            .map(|value| value.to_str().unwrap_or_default());
        let is_browser = OwnOrigins::sent_by_browser(headers) || headers.contains_key(header::COOKIE);
        Self {
            secrets: in_headers.chain(cookies::all_logins(headers)).collect(),
            client,
            is_browser,
        }
    }
}

fn hash(text: &str) -> [u8; 32] {
    Sha256::digest(text.as_bytes()).into()
}
