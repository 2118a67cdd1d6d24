//! The cookies we set (TK-9, ZK-13, DS-2, HD19).

use crate::{login::LoginSecret, tokens::AuthResponse};
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
