//! The cookies we set (TK-9, ZK-13, DS-2, HD19).

use crate::{login::LoginSecret, oauth::OauthId, tokens::AuthResponse};
use gw_http::{Edge, auth::COOKIE as ACCESS};
use http::{HeaderMap, HeaderValue, header};

/// Ties the page that opened a login session to its polls.
pub(crate) const LOGIN: &str = "pp_login";

/// Ties the browser that began a directory login to its callback.
pub(crate) const DIRECTORY: &str = "pp_directory";

/// Sets the access token's cookie, unless somebody else's page asked: it could log its visitor in as itself.
pub(crate) fn set_access(edge: &Edge, asked: &HeaderMap, tokens: &AuthResponse) -> HeaderMap {
    if edge.origins.sent_by_foreign_page(asked) {
        return HeaderMap::new();
    }
    let (token, life) = (tokens.access_token.expose(), tokens.expires_in);
    set(&format!("{ACCESS}={token}; Path=/; HttpOnly; SameSite=Lax; Max-Age={life}{}", secure(edge.production)))
}

/// Clears the access token's cookie.
pub(crate) fn clear_access(edge: &Edge) -> HeaderMap {
    set(&format!("{ACCESS}=; Path=/; HttpOnly; SameSite=Lax; Max-Age=0{}", secure(edge.production)))
}

/// Ties the page to its session. Where the page lives on another site, the cookie has to be a third-party one.
pub(crate) fn set_login(edge: &Edge, secret: &LoginSecret) -> HeaderMap {
    let foreign = edge.origins.frontend_is_foreign();
    let site = if foreign { "None" } else { "Lax" };
    let secure = secure(edge.production || foreign);
    set(&format!("{LOGIN}={}; Path=/; HttpOnly; SameSite={site}; Max-Age=600{secure}", secret.expose()))
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

fn directory(edge: &Edge, secret: &str, life: u32) -> String {
    let foreign = edge.origins.frontend_is_foreign();
    let (site, secure) = (if foreign { "None" } else { "Lax" }, secure(edge.production || foreign));
    format!("{DIRECTORY}={secret}; Path=/; HttpOnly; SameSite={site}; Max-Age={life}{secure}")
}

/// The same for an OAuth session, at its own paths only: several of them, begun in several tabs, keep apart.
pub(crate) fn set_oauth_login(edge: &Edge, base: &str, id: &OauthId, secret: &LoginSecret) -> HeaderMap {
    let foreign = edge.origins.frontend_is_foreign();
    let site = if foreign { "None" } else { "Lax" };
    let (secure, path) = (secure(edge.production || foreign), format!("{base}/oauth/session/{}", id.as_str()));
    set(&format!("{LOGIN}={}; Path={path}; HttpOnly; SameSite={site}; Max-Age=600{secure}", secret.expose()))
}

/// Every secret of a login that was sent: one of a login of ours may stand beside one of an OAuth session.
pub(crate) fn all_logins(headers: &HeaderMap) -> impl Iterator<Item = &str> {
    let sent = headers.get_all(header::COOKIE).iter().filter_map(|value| value.to_str().ok());
    let pairs = sent.flat_map(|value| value.split(';')).filter_map(|pair| pair.trim().split_once('='));
    pairs.filter(|(name, _)| *name == LOGIN).map(|(_, secret)| secret)
}

const fn secure(yes: bool) -> &'static str {
    if yes { "; Secure" } else { "" }
}

fn set(cookie: &str) -> HeaderMap {
    let mut headers = HeaderMap::new();
    // Tokens and secrets are base64url and hex: always a valid value.
    if let Ok(value) = HeaderValue::from_str(cookie) {
        headers.insert(header::SET_COOKIE, value);
    }
    headers
}
