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
use gw_http::Origin;
use http::{HeaderName, HeaderValue, header};

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
        .route("/login/script.js", get(async || part("text/javascript; charset=utf-8", SCRIPT)))
        .route("/login/icon.svg", get(async || part("image/svg+xml", ICON)))
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
        (header::CONTENT_TYPE, HeaderValue::from_static("text/html; charset=utf-8")),
        (header::CONTENT_SECURITY_POLICY, POLICY),
        (header::X_FRAME_OPTIONS, HeaderValue::from_static("DENY")),
        (HeaderName::from_static("cross-origin-opener-policy"), HeaderValue::from_static("same-origin")),
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
            assert!(!text.contains("https://") && !text.contains("http://"), "no request leaves this service");
        }
        for forbidden in ["innerHTML", "eval(", "document.write", "localStorage"] {
            assert!(!SCRIPT.contains(forbidden), "{forbidden}");
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
