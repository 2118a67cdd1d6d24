//! The secret of a login session, and where requests carry it (ZK-13, HD19).

use gw_types::{Entropy, Secret};
use http::{HeaderMap, header};

/// Header with the secret, for pages that fetch without cookies (HD19).
pub(crate) const SECRET_HEADER: &str = "x-login-secret";

/// The cookie that ties the page that opened a login session to its polls.
pub(crate) const COOKIE: &str = "pp_login";
/// Its name over https. For an OAuth session, an underscore and the start of its id follow.
pub(crate) const HOST_COOKIE: &str = "__Host-pp_login";

/// The secret by which the page that opened a session gets its tokens.
#[derive(Clone, Debug)]
pub(crate) struct LoginSecret(Secret);

impl LoginSecret {
    pub(crate) fn fresh(entropy: &dyn Entropy) -> Self {
        let mut bytes = [0u8; 32];
        entropy.fill(&mut bytes);
        Self(Secret::new(hex::encode(bytes)))
    }

    pub(crate) fn expose(&self) -> &str {
        self.0.expose()
    }
}

/// Every login secret in the request's cookies. A request may contain one of a plain login and several of OAuth
/// sessions.
pub(crate) fn in_cookies(headers: &HeaderMap) -> impl Iterator<Item = &str> {
    let sent = headers
        .get_all(header::COOKIE)
        .iter()
        .filter_map(|value| value.to_str().ok());
    let pairs = sent
        .flat_map(|value| value.split(';'))
        .filter_map(|pair| pair.trim().split_once('='));
    let is_login = |name: &str| name == COOKIE || name.strip_prefix(HOST_COOKIE).is_some_and(is_end_of_name);
    pairs.filter(move |(name, _)| is_login(name)).map(|(_, secret)| secret)
}

fn is_end_of_name(rest: &str) -> bool {
    rest.is_empty() || rest.starts_with('_')
}
