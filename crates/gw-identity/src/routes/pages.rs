//! Error pages for browsers. A browser that follows an application's link and is rejected gets HTML; programs get JSON.

use axum::{
    body::Body,
    extract::Request,
    middleware::Next,
    response::{IntoResponse, Response},
};
use gw_http::read_body;
use http::{HeaderMap, HeaderValue, header};
use serde_json::Value;

/// The page loads nothing, runs nothing and cannot be framed.
const POLICY: HeaderValue = HeaderValue::from_static("default-src 'none'; frame-ancestors 'none'; base-uri 'none'");

/// Whether the client accepts HTML.
pub(super) fn wants_page(headers: &HeaderMap) -> bool {
    let accepted = headers
        .get_all(header::ACCEPT)
        .iter()
        .filter_map(|value| value.to_str().ok());
    accepted
        .flat_map(|value| value.split(','))
        .any(|kind| kind.trim().starts_with("text/html"))
}

/// Middleware: turns a JSON error into an HTML page.
pub(super) async fn for_browsers(request: Request, next: Next) -> Response {
    let page = wants_page(request.headers());
    let answer = next.run(request).await;
    if !page || !(answer.status().is_client_error() || answer.status().is_server_error()) {
        return answer;
    }
    let (mut parts, body) = answer.into_parts();
    let body = read_body(body).await.unwrap_or_default();
    let answer: Value = serde_json::from_slice(&body).unwrap_or_default();
    let text = |name: &str| answer.get(name).and_then(Value::as_str);
    let what = text("error_description")
        .or_else(|| text("error"))
        .unwrap_or("the request was refused");
    let code = text("error_description")
        .and(text("error"))
        .or_else(|| text("code"))
        .unwrap_or_default();
    // The extensions hold an error that would be written as JSON again.
    parts.extensions.clear();
    parts.headers.remove(header::CONTENT_LENGTH);
    parts.headers.insert(
        header::CONTENT_TYPE,
        HeaderValue::from_static("text/html; charset=utf-8"),
    );
    parts.headers.insert(header::CONTENT_SECURITY_POLICY, POLICY);
    Response::from_parts(parts, Body::from(write(what, code))).into_response()
}

fn write(what: &str, code: &str) -> String {
    let (what, code) = (escaped(what), escaped(code));
    format!(
        "<!doctype html>\n<html lang=\"en\"><head><meta charset=\"utf-8\">\
         <meta name=\"viewport\" content=\"width=device-width, initial-scale=1\">\
         <meta name=\"color-scheme\" content=\"light dark\"><title>Sign-in not possible</title></head>\
         <body><main><h1>Sign-in not possible</h1><p>{what}</p><p><code>{code}</code></p>\
         <p>Go back to the application and start again. If it keeps failing, ask whoever runs the application.</p>\
         </main></body></html>\n"
    )
}

fn escaped(text: &str) -> String {
    let mut out = String::with_capacity(text.len());
    for character in text.chars() {
        match character {
            '&' => out.push_str("&amp;"),
            '<' => out.push_str("&lt;"),
            '>' => out.push_str("&gt;"),
            '"' => out.push_str("&quot;"),
            '\'' => out.push_str("&#39;"),
            other => out.push(other),
        }
    }
    out
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn rts12_a_page_shows_what_it_is_told_as_text() {
        let page = write("<script>alert(1)</script> & \"more\"", "x'y");
        assert!(
            !page.contains("<script>") && page.contains("&lt;script&gt;") && page.contains("x&#39;y"),
            "{page}"
        );
    }
}
