//! The answer of a creation.

use axum::{
    Json,
    response::{IntoResponse, Response},
};
use http::{HeaderValue, StatusCode, header};
use serde::Serialize;

/// 201 with the path of the new object in `Location` and the object as the body (RFC 9110 section 15.3.2).
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Created<T>(pub String, pub T);

impl<T: Serialize> IntoResponse for Created<T> {
    fn into_response(self) -> Response {
        let Self(location, body) = self;
        let mut response = (StatusCode::CREATED, Json(body)).into_response();
        // Paths of the gateway's own routes are visible ASCII.
        if let Ok(location) = HeaderValue::from_str(&location) {
            response.headers_mut().insert(header::LOCATION, location);
        }
        response
    }
}
