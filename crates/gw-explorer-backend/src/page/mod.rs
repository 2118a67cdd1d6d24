//! The pages: at `/` who is signed in and the viewer's latest transactions, at `/view-as` the choice whose view is
//! shown. They stand in for the web explorer until that is deployed.
//!
//! Plain HTML, CSS and JavaScript, embedded in the binary. Nothing is inline and nothing is loaded from other origins,
//! so the content security policy needs no exceptions. The pages use the routes of this service only. They are the same
//! bytes for every viewer.

use axum::{
    Router,
    response::{IntoResponse as _, Response},
    routing::get,
};
use gw_http::ApiError;
use http::{HeaderMap, HeaderName, HeaderValue, header};

const PAGE: &str = include_str!("page.html");
const ERROR: &str = include_str!("error.html");
const STYLE: &str = include_str!("style.css");
const VIEW_AS: &str = include_str!("view_as.html");
const SCRIPT: &str = include_str!("script.js");
const VIEW_AS_SCRIPT: &str = include_str!("view_as.js");
const SHARED_SCRIPT: &str = include_str!("shared.js");
/// The content type of scripts.
const JAVASCRIPT: &str = "text/javascript; charset=utf-8";
const ICON: &str = include_str!("icon.svg");
const LOCK: &str = include_str!("lock.svg");

/// The content security policy: no other origins, nothing inline, no embedding in frames.
const CONTENT_SECURITY_POLICY: HeaderValue = HeaderValue::from_static(
    "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self'; connect-src 'self'; \
     base-uri 'none'; form-action 'none'; frame-ancestors 'none'",
);

pub(crate) fn router<S: Clone + Send + Sync + 'static>() -> Router<S> {
    Router::new()
        .route("/", get(async || html(PAGE.to_owned())))
        .route("/explorer.css", get(async || asset("text/css; charset=utf-8", STYLE)))
        .route("/view-as", get(async || html(VIEW_AS.to_owned())))
        .route("/explorer.js", get(async || asset(JAVASCRIPT, SCRIPT)))
        .route("/explorer-view-as.js", get(async || asset(JAVASCRIPT, VIEW_AS_SCRIPT)))
        .route("/explorer-shared.js", get(async || asset(JAVASCRIPT, SHARED_SCRIPT)))
        .route("/explorer.svg", get(async || asset("image/svg+xml", ICON)))
        .route("/explorer-lock.svg", get(async || asset("image/svg+xml", LOCK)))
}

/// The answer to a navigation that failed: a page for browsers, JSON for other clients.
pub(crate) fn error(headers: &HeaderMap, error: ApiError) -> Response {
    let accepts_page = headers
        .get_all(header::ACCEPT)
        .iter()
        .filter_map(|value| value.to_str().ok())
        .flat_map(|value| value.split(','))
        .any(|media_type| media_type.trim().starts_with("text/html"));
    if !accepts_page {
        return error.into_response();
    }
    // The texts are this service's own and contain no markup.
    let mut response = html(ERROR.replace("{error}", error.text()));
    *response.status_mut() = error.code().status();
    response
}

fn html(text: String) -> Response {
    let headers: [(HeaderName, HeaderValue); 4] = [
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
    ];
    (headers, text).into_response()
}

fn asset(content_type: &'static str, text: &'static str) -> Response {
    ([(header::CONTENT_TYPE, HeaderValue::from_static(content_type))], text).into_response()
}
