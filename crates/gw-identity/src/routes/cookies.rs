//! The cookies that the gateway sets (TK-9, ZK-13, DS-2, HD19).
//!
//! Over https their names begin with `__Host-`: browsers then accept them from this host only, so that a sibling host
//! cannot set one (RFC 6265bis). `pp_access` is the agreed name (decision 4) and is set as well.

use crate::{
    login_secret::{COOKIE as LOGIN, HOST_COOKIE as HOST_LOGIN, LoginSecret},
    oauth::OauthId,
    tokens::AuthResponse,
};
use gw_http::{
    HttpContext,
    auth::{COOKIE as ACCESS, HOST_COOKIE as HOST_ACCESS, cookie},
};
use http::{HeaderMap, HeaderValue, header};

/// Ties the browser that began a directory login to its callback.
const DIRECTORY: &str = "pp_directory";
const HOST_DIRECTORY: &str = "__Host-pp_directory";

/// How many characters of an OAuth session's id go into its cookie's name, so that several tabs have different cookies.
const TELLING: usize = 16;

/// Sets the access token's cookies, unless a page of another site sent the request: that page could log its visitor in
/// to an account of its own.
pub(crate) fn set_access(http_context: &HttpContext, headers: &HeaderMap, tokens: &AuthResponse) -> HeaderMap {
    if http_context.origins.sent_by_foreign_page(headers) {
        return HeaderMap::new();
    }
    access(http_context, tokens.access_token.expose(), tokens.expires_in)
}

/// Clears the access token's cookies.
pub(crate) fn clear_access(http_context: &HttpContext) -> HeaderMap {
    access(http_context, "", 0)
}

fn access(http_context: &HttpContext, token: &str, life: u32) -> HeaderMap {
    let rest = format!(
        "={token}; Path=/; HttpOnly; SameSite=Lax; Max-Age={life}{}",
        secure(is_secure(http_context))
    );
    let mut headers = set(&format!("{ACCESS}{rest}"));
    if is_secure(http_context) {
        add(&mut headers, &format!("{HOST_ACCESS}{rest}"));
    }
    headers
}

/// Sets the cookie that ties a page to its login session. If the page is on another site, it is a third-party cookie.
pub(crate) fn set_login(http_context: &HttpContext, secret: &LoginSecret) -> HeaderMap {
    let name = if is_secure(http_context) { HOST_LOGIN } else { LOGIN };
    set(&format!(
        "{name}={}; Path=/{}",
        secret.expose(),
        of_page(http_context, 600)
    ))
}

/// Sets the cookie that ties a browser to its directory login, unless a page of another site sent the request.
pub(crate) fn set_directory(http_context: &HttpContext, headers: &HeaderMap, secret: &str) -> HeaderMap {
    if http_context.origins.sent_by_foreign_page(headers) {
        return HeaderMap::new();
    }
    set(&directory(http_context, secret, 600))
}

/// Clears the cookie of [`set_directory`].
pub(crate) fn clear_directory(http_context: &HttpContext) -> HeaderMap {
    set(&directory(http_context, "", 0))
}

/// The directory login's secret in the request's cookies.
pub(crate) fn directory_secret(headers: &HeaderMap) -> Option<&str> {
    cookie(headers, HOST_DIRECTORY).or_else(|| cookie(headers, DIRECTORY))
}

fn directory(http_context: &HttpContext, secret: &str, life: u32) -> String {
    let name = if is_secure(http_context) {
        HOST_DIRECTORY
    } else {
        DIRECTORY
    };
    format!("{name}={secret}; Path=/{}", of_page(http_context, life))
}

/// Sets the cookie that ties a page to its OAuth session. Sessions in several tabs have different cookies: over https
/// by name, otherwise by the paths of the session and of its login.
pub(crate) fn set_oauth_login(
    http_context: &HttpContext,
    base: &str,
    id: &OauthId,
    login: uuid::Uuid,
    secret: &LoginSecret,
) -> HeaderMap {
    let (secret, rest) = (secret.expose(), of_page(http_context, 600));
    if is_secure(http_context) {
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

/// The common attributes of cookies for pages.
fn of_page(http_context: &HttpContext, life: u32) -> String {
    let foreign = http_context.origins.frontend_is_foreign();
    let site = if foreign { "None" } else { "Lax" };
    format!(
        "; HttpOnly; SameSite={site}; Max-Age={life}{}",
        secure(is_secure(http_context) || foreign)
    )
}

/// Whether browsers reach the gateway over https.
fn is_secure(http_context: &HttpContext) -> bool {
    http_context.production || http_context.origins.is_https()
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
    // Tokens and secrets are base64url or hex, which is always a valid header value.
    if let Ok(value) = HeaderValue::from_str(cookie) {
        headers.append(header::SET_COOKIE, value);
    }
}
