//! The gateway's answers on their way to the browser.

use crate::state::ActiveSession;
use axum::{
    body::{Body, Bytes},
    response::Response,
};
use http::{HeaderMap, HeaderName, HeaderValue, StatusCode, header};

/// The headers of the gateway's answer that are passed on. All others are dropped: those of the connection, cookies,
/// CORS and caching, which are this service's own.
const PASSED_ON: [HeaderName; 5] = [
    header::CONTENT_TYPE,
    header::RETRY_AFTER,
    header::WWW_AUTHENTICATE,
    HeaderName::from_static("x-total-count"),
    HeaderName::from_static("x-next-cursor"),
];

/// Whether the gateway no longer accepts the session's token: it was revoked, or its user banned. A 401 for another
/// reason does not say so (RFC 6750 section 3.1).
pub(crate) fn is_rejected(session: &ActiveSession, status: StatusCode, headers: &HeaderMap) -> bool {
    let says_token = |value: &HeaderValue| {
        value
            .to_str()
            .is_ok_and(|text| text.contains("error=\"invalid_token\""))
    };
    session.access.is_some()
        && status == StatusCode::UNAUTHORIZED
        && headers.get_all(header::WWW_AUTHENTICATE).iter().any(says_token)
}

/// The answer for the browser; the status of an answer that is none.
pub(crate) fn passed_on(answer: http::Response<Bytes>) -> Result<Response, u16> {
    let (parts, body) = answer.into_parts();
    if !(parts.status.is_success() || parts.status.is_client_error() || parts.status.is_server_error()) {
        return Err(parts.status.as_u16());
    }
    let mut response = Response::new(Body::from(body));
    *response.status_mut() = parts.status;
    for name in PASSED_ON {
        for value in parts.headers.get_all(&name) {
            response.headers_mut().append(name.clone(), value.clone());
        }
    }
    Ok(response)
}
