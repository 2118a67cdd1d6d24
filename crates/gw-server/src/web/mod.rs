//! The sign-in page, for deployments without a front end of their own (spec/90 section 3).
//!
//! Plain HTML, style and script, in the binary: the page loads nothing from anywhere else, and needs nothing that its
//! content security policy would have to allow. It uses documented routes only.

use crate::config::Edge;
use axum::{
    Router,
    response::{IntoResponse, Response},
    routing::get,
};
use gw_http::{ApiError, Origin};
use http::{HeaderMap, HeaderName, HeaderValue, header};
use std::sync::Arc;

const PAGE: &str = include_str!("page.html");
const STYLE: &str = include_str!("style.css");
const SCRIPT: &str = include_str!("script.js");
const ICON: &str = include_str!("icon.svg");

/// Nothing from elsewhere, nothing inline, in nobody's frame.
const POLICY: HeaderValue = HeaderValue::from_static(
    "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self'; connect-src 'self'; \
     base-uri 'none'; form-action 'none'; frame-ancestors 'none'",
);

/// Where browsers are sent to log in, without a query, and whether that is the page served here.
pub(crate) fn login_page(edge: &Edge) -> (String, bool) {
    let ours = |url: &url::Url| Origin::of(url.as_str()).is_ok_and(|origin| origin == edge.origins.base);
    match &edge.frontend_url {
        Some(url) if !ours(url) => (format!("{}/login", url.as_str().trim_end_matches('/')), false),
        // A path, so that the browser stays on the host by whose name it came, and keeps its cookies.
        Some(_) | None => (format!("{}/login", base_path(&edge.base_url)), true),
    }
}

/// The page and its parts.
pub(crate) fn router() -> Router {
    Router::new()
        .route("/login", get(async || page("", "login")))
        .route("/auth/directory/callback", get(async || page("../../", "directory")))
        .route("/login/style.css", get(async || part("text/css; charset=utf-8", STYLE)))
        .route(
            "/login/script.js",
            get(async || part("text/javascript; charset=utf-8", SCRIPT)),
        )
        .route("/login/icon.svg", get(async || part("image/svg+xml", ICON)))
}

/// What a person finds who types the service's name into a browser; programs get what they get on every path that leads
/// nowhere.
pub(crate) fn home(login_page: &str) -> Router {
    let text: Arc<str> = HOME
        .replace("{login}", &login_page.replace('&', "&amp;").replace('"', "&quot;"))
        .into();
    Router::new().route("/", get(async move |headers: HeaderMap| front(&headers, &text)))
}

const HOME: &str = "<!doctype html>\n<html lang=\"en\"><head><meta charset=\"utf-8\">\
<meta name=\"viewport\" content=\"width=device-width, initial-scale=1\">\
<meta name=\"color-scheme\" content=\"light dark\"><title>ledger-gateway</title></head><body><main>\
<h1>ledger-gateway</h1><p>This is a gateway to a ledger, for programs and wallets.</p>\
<ul><li><a href=\"{login}\">Sign in</a></li><li><a href=\"openapi.json\">Description of the interface</a></li></ul>\
</main></body></html>\n";

fn front(headers: &HeaderMap, text: &str) -> Response {
    let accepted = headers
        .get_all(header::ACCEPT)
        .iter()
        .filter_map(|value| value.to_str().ok());
    if !accepted
        .flat_map(|value| value.split(','))
        .any(|kind| kind.trim().starts_with("text/html"))
    {
        return ApiError::not_found("not found").into_response();
    }
    let headers: [(HeaderName, HeaderValue); 2] = [
        (
            header::CONTENT_TYPE,
            HeaderValue::from_static("text/html; charset=utf-8"),
        ),
        (header::CONTENT_SECURITY_POLICY, POLICY),
    ];
    (headers, text.to_owned()).into_response()
}

/// The path under which BASE_URL stands.
fn base_path(base_url: &str) -> String {
    url::Url::parse(base_url).map_or_else(|_| String::new(), |url| url.path().trim_end_matches('/').to_owned())
}

/// `root` leads from the page's own path to where the service's paths begin.
fn page(root: &'static str, view: &'static str) -> Response {
    let root = if root.is_empty() { "./" } else { root };
    let text = PAGE.replace("{root}", root).replace("{view}", view);
    let headers: [(HeaderName, HeaderValue); 5] = [
        (
            header::CONTENT_TYPE,
            HeaderValue::from_static("text/html; charset=utf-8"),
        ),
        (header::CONTENT_SECURITY_POLICY, POLICY),
        (header::X_FRAME_OPTIONS, HeaderValue::from_static("DENY")),
        (
            HeaderName::from_static("cross-origin-opener-policy"),
            HeaderValue::from_static("same-origin"),
        ),
        (
            HeaderName::from_static("permissions-policy"),
            HeaderValue::from_static("camera=(), geolocation=(), microphone=(), clipboard-write=(self)"),
        ),
    ];
    (headers, text).into_response()
}

fn part(kind: &'static str, text: &'static str) -> Response {
    ([(header::CONTENT_TYPE, HeaderValue::from_static(kind))], text).into_response()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn edge_5_the_page_has_no_inline_script_or_style_and_names_nobody_else() {
        let policy = POLICY;
        let policy = policy.to_str().unwrap();
        assert!(policy.contains("frame-ancestors 'none'") && policy.contains("script-src 'self'"));
        assert!(!policy.contains("unsafe"));
        assert!(!PAGE.contains("style=") && !PAGE.contains("<style") && !PAGE.contains("onclick"));
        assert_eq!(PAGE.matches("<script").count(), 1, "and that one has a source");
        for text in [PAGE, STYLE, SCRIPT] {
            assert!(
                !text.contains("https://") && !text.contains("http://"),
                "no request leaves this service"
            );
        }
        for forbidden in ["innerHTML", "eval(", "document.write", "localStorage"] {
            assert!(!SCRIPT.contains(forbidden), "{forbidden}");
        }
    }

    #[test]
    fn rts12_a_browser_finds_a_page_and_a_program_json() {
        let answer = |accept: &'static str| {
            let mut headers = HeaderMap::new();
            headers.insert(header::ACCEPT, HeaderValue::from_static(accept));
            let answer = front(&headers, HOME);
            (
                answer.status().as_u16(),
                answer.headers()[header::CONTENT_TYPE].to_str().unwrap().to_owned(),
            )
        };
        assert_eq!(
            answer("text/html,*/*;q=0.8"),
            (200, "text/html; charset=utf-8".to_owned())
        );
        assert_eq!(answer("*/*"), (404, "application/json".to_owned()));
        assert!(!HOME.contains("<script") && !HOME.contains("style="));
    }

    #[test]
    fn rts3_the_page_asks_before_it_goes_on() {
        for part in [
            "started in another browser",
            "confirm(client, info.json.did",
            "confirm(client, after.json.did",
        ] {
            assert!(SCRIPT.contains(part), "{part}");
        }
        for id in ["confirm-client", "confirm-did", "\"go\""] {
            assert!(PAGE.contains(id), "{id}");
        }
    }

    #[test]
    fn every_reason_has_words() {
        for reason in [
            "invalid_request",
            "verification_failed",
            "humanity_required",
            "network_not_supported",
            "authentication_failed",
        ] {
            assert!(SCRIPT.contains(&format!("{reason}: '")), "{reason}");
        }
    }
}
