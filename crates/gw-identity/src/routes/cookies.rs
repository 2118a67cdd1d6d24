//! The cookies we set (TK-9, ZK-13, DS-2, HD19).
//!
//! Over https their names begin with `__Host-`: browsers then take them from this very host only, so that no neighbour
//! can plant one (RFC 6265bis). `pp_access` is the agreed name (decision 4) and is set beside it.

use crate::{login::LoginSecret, oauth::OauthId, tokens::AuthResponse};
use gw_http::{
    Edge,
    auth::{COOKIE as ACCESS, HOST_COOKIE as HOST_ACCESS, cookie},
};
use http::{HeaderMap, HeaderValue, header};

/// Ties the page that opened a login session to its polls.
const LOGIN: &str = "pp_login";
const HOST_LOGIN: &str = "__Host-pp_login";

/// Ties the browser that began a directory login to its callback.
const DIRECTORY: &str = "pp_directory";
const HOST_DIRECTORY: &str = "__Host-pp_directory";

/// So much of an OAuth session's id tells its cookie from those of other tabs.
const TELLING: usize = 16;

/// Sets the access token's cookies, unless somebody else's page asked: it could log its visitor in as itself.
pub(crate) fn set_access(edge: &Edge, asked: &HeaderMap, tokens: &AuthResponse) -> HeaderMap {
    if edge.origins.sent_by_foreign_page(asked) {
        return HeaderMap::new();
    }
    access(edge, tokens.access_token.expose(), tokens.expires_in)
}

/// Clears the access token's cookies.
pub(crate) fn clear_access(edge: &Edge) -> HeaderMap {
    access(edge, "", 0)
}

fn access(edge: &Edge, token: &str, life: u32) -> HeaderMap {
    let rest = format!(
        "={token}; Path=/; HttpOnly; SameSite=Lax; Max-Age={life}{}",
        secure(is_secure(edge))
    );
    let mut headers = set(&format!("{ACCESS}{rest}"));
    if is_secure(edge) {
        add(&mut headers, &format!("{HOST_ACCESS}{rest}"));
    }
    headers
}

/// Ties the page to its session. Where the page lives on another site, the cookie has to be a third-party one.
pub(crate) fn set_login(edge: &Edge, secret: &LoginSecret) -> HeaderMap {
    let name = if is_secure(edge) { HOST_LOGIN } else { LOGIN };
    set(&format!("{name}={}; Path=/{}", secret.expose(), of_page(edge, 600)))
}

/// Ties the browser to its directory login, unless somebody else's page asked.
pub(crate) fn set_directory(edge: &Edge, asked: &HeaderMap, secret: &str) -> HeaderMap {
    if edge.origins.sent_by_foreign_page(asked) {
        return HeaderMap::new();
    }
    set(&directory(edge, secret, 600))
}

/// Clears the same.
pub(crate) fn clear_directory(edge: &Edge) -> HeaderMap {
    set(&directory(edge, "", 0))
}

/// The secret of a directory login that was sent.
pub(crate) fn directory_secret(headers: &HeaderMap) -> Option<&str> {
    cookie(headers, HOST_DIRECTORY).or_else(|| cookie(headers, DIRECTORY))
}

fn directory(edge: &Edge, secret: &str, life: u32) -> String {
    let name = if is_secure(edge) { HOST_DIRECTORY } else { DIRECTORY };
    format!("{name}={secret}; Path=/{}", of_page(edge, life))
}

/// The same for an OAuth session. Several of them, begun in several tabs, keep apart: by name where names are bound to the
/// host, elsewhere by the paths of the session and of its login.
pub(crate) fn set_oauth_login(
    edge: &Edge,
    base: &str,
    id: &OauthId,
    login: uuid::Uuid,
    secret: &LoginSecret,
) -> HeaderMap {
    let (secret, rest) = (secret.expose(), of_page(edge, 600));
    if is_secure(edge) {
        let telling = id.as_str().get(..TELLING).unwrap_or_default();
        return set(&format!("{HOST_LOGIN}_{telling}={secret}; Path=/{rest}"));
    }
    let mut headers = set(&format!(
        "{LOGIN}={secret}; Path={base}/oauth/session/{}{rest}",
        id.as_str()
    ));
    add(
        &mut headers,
        &format!("{LOGIN}={secret}; Path={base}/auth/session/{login}{rest}"),
    );
    headers
}

/// Every secret of a login that was sent: one of a login of ours may stand beside those of OAuth sessions.
pub(crate) fn all_logins(headers: &HeaderMap) -> impl Iterator<Item = &str> {
    let sent = headers
        .get_all(header::COOKIE)
        .iter()
        .filter_map(|value| value.to_str().ok());
    let pairs = sent
        .flat_map(|value| value.split(';'))
        .filter_map(|pair| pair.trim().split_once('='));
    let is_login = |name: &str| name == LOGIN || name.strip_prefix(HOST_LOGIN).is_some_and(is_end_of_name);
    pairs.filter(move |(name, _)| is_login(name)).map(|(_, secret)| secret)
}

fn is_end_of_name(rest: &str) -> bool {
    rest.is_empty() || rest.starts_with('_')
}

/// What cookies of pages have in common.
fn of_page(edge: &Edge, life: u32) -> String {
    let foreign = edge.origins.frontend_is_foreign();
    let site = if foreign { "None" } else { "Lax" };
    format!(
        "; HttpOnly; SameSite={site}; Max-Age={life}{}",
        secure(is_secure(edge) || foreign)
    )
}

/// Whether browsers reach us over https.
fn is_secure(edge: &Edge) -> bool {
    edge.production || edge.origins.is_https()
}

const fn secure(yes: bool) -> &'static str {
    if yes { "; Secure" } else { "" }
}

fn set(cookie: &str) -> HeaderMap {
    let mut headers = HeaderMap::new();
    add(&mut headers, cookie);
    headers
}

fn add(headers: &mut HeaderMap, cookie: &str) {
    // Tokens and secrets are base64url and hex: always a valid value.
    if let Ok(value) = HeaderValue::from_str(cookie) {
        headers.append(header::SET_COOKIE, value);
    }
}
