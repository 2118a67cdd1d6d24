//! The sign-in page, for deployments without a front end of their own (spec/90 section 3).
//!
//! Plain HTML, CSS and JavaScript, embedded in the binary. The page loads nothing from other origins, so its content
//! security policy needs no exceptions. It uses documented routes only.

use crate::config::EdgeConfig;
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

/// The content security policy: no other origins, nothing inline, no embedding in frames.
const CONTENT_SECURITY_POLICY: HeaderValue = HeaderValue::from_static(
    "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self'; connect-src 'self'; \
     base-uri 'none'; form-action 'none'; frame-ancestors 'none'",
);

/// The address of the login page, without a query, and whether it is the page of this module.
pub(crate) fn login_page(edge: &EdgeConfig) -> (String, bool) {
    let is_own_origin = |url: &url::Url| Origin::from_url(url.as_str()).is_ok_and(|origin| origin == edge.origins.base);
    match &edge.frontend_url {
        Some(url) if !is_own_origin(url) => (format!("{}/login", url.as_str().trim_end_matches('/')), false),
        // A path without a host: the browser stays on the host name it used, and keeps its cookies.
        Some(_) | None => (format!("{}/login", base_path(&edge.base_url)), true),
    }
}

/// The routes of the page and of its files.
pub(crate) fn router() -> Router {
    Router::new()
        .route("/login", get(async || page("", "login")))
        .route("/auth/directory/callback", get(async || page("../../", "directory")))
        .route(
            "/login/style.css",
            get(async || asset("text/css; charset=utf-8", STYLE)),
        )
        .route(
            "/login/script.js",
            get(async || asset("text/javascript; charset=utf-8", SCRIPT)),
        )
        .route("/login/icon.svg", get(async || asset("image/svg+xml", ICON)))
}

/// The home page at `/` for browsers. Other clients get the 404 of an unknown path.
pub(crate) fn home(login_page: &str) -> Router {
    let text: Arc<str> = HOME
        .replace("{login}", &login_page.replace('&', "&amp;").replace('"', "&quot;"))
        .into();
    Router::new().route("/", get(async move |headers: HeaderMap| home_page(&headers, &text)))
}

const HOME: &str = "<!doctype html>\n<html lang=\"en\"><head><meta charset=\"utf-8\">\
<meta name=\"viewport\" content=\"width=device-width, initial-scale=1\">\
<meta name=\"color-scheme\" content=\"light dark\"><title>ledger-gateway</title></head><body><main>\
<h1>ledger-gateway</h1><p>This is a gateway to a ledger, for programs and wallets.</p>\
<ul><li><a href=\"{login}\">Sign in</a></li><li><a href=\"openapi.json\">Description of the interface</a></li></ul>\
</main></body></html>\n";

fn home_page(headers: &HeaderMap, text: &str) -> Response {
    let accepted = headers
        .get_all(header::ACCEPT)
        .iter()
        .filter_map(|value| value.to_str().ok());
    if !accepted
        .flat_map(|value| value.split(','))
        .any(|media_type| media_type.trim().starts_with("text/html"))
    {
        return ApiError::not_found("not found").into_response();
    }
    let headers: [(HeaderName, HeaderValue); 2] = [
        (
            header::CONTENT_TYPE,
            HeaderValue::from_static("text/html; charset=utf-8"),
        ),
        (header::CONTENT_SECURITY_POLICY, CONTENT_SECURITY_POLICY),
    ];
    (headers, text.to_owned()).into_response()
}

/// The path of BASE_URL, without a trailing slash.
fn base_path(base_url: &str) -> String {
    url::Url::parse(base_url).map_or_else(|_| String::new(), |url| url.path().trim_end_matches('/').to_owned())
}

/// The sign-in page. `root` is the relative path from the page to the root of the service.
fn page(root: &'static str, view: &'static str) -> Response {
    let root = if root.is_empty() { "./" } else { root };
    let text = PAGE.replace("{root}", root).replace("{view}", view);
    let headers: [(HeaderName, HeaderValue); 5] = [
        (
            header::CONTENT_TYPE,
            HeaderValue::from_static("text/html; charset=utf-8"),
        ),
        (header::CONTENT_SECURITY_POLICY, CONTENT_SECURITY_POLICY),
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

fn asset(content_type: &'static str, text: &'static str) -> Response {
    ([(header::CONTENT_TYPE, HeaderValue::from_static(content_type))], text).into_response()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn edge_5_the_page_has_no_inline_script_or_style_and_no_other_origin() {
        let policy = CONTENT_SECURITY_POLICY;
        let policy = policy.to_str().unwrap();
        assert!(policy.contains("frame-ancestors 'none'") && policy.contains("script-src 'self'"));
        assert!(!policy.contains("unsafe"));
        assert!(!PAGE.contains("style=") && !PAGE.contains("<style") && !PAGE.contains("onclick"));
        assert_eq!(
            PAGE.matches("<script").count(),
            1,
            "the only script is an external file"
        );
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
    fn rts12_a_browser_gets_a_page_and_other_clients_json() {
        let response = |accept: &'static str| {
            let mut headers = HeaderMap::new();
            headers.insert(header::ACCEPT, HeaderValue::from_static(accept));
            let response = home_page(&headers, HOME);
            (
                response.status().as_u16(),
                response.headers()[header::CONTENT_TYPE].to_str().unwrap().to_owned(),
            )
        };
        assert_eq!(
            response("text/html,*/*;q=0.8"),
            (200, "text/html; charset=utf-8".to_owned())
        );
        assert_eq!(response("*/*"), (404, "application/json".to_owned()));
        assert!(!HOME.contains("<script") && !HOME.contains("style="));
    }

    #[test]
    fn rts3_the_page_asks_for_confirmation() {
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
    fn every_failure_reason_has_a_text() {
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
