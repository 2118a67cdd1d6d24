//! JSON bodies: at most 1 MiB, 64 levels, an object of the expected shape, or a 400 that names the field.
//!
//! The content type is not looked at: clients of the versioned API send all sorts.

use crate::error::ApiError;
use axum::{
    body::Body,
    extract::{FromRequest, OptionalFromRequest, Request},
};
use bytes::Bytes;
use http_body_util::{BodyExt, LengthLimitError, Limited};
use serde::de::DeserializeOwned;

/// The largest body, for JSON and for everything else.
pub const BODY_LIMIT: usize = 1024 * 1024;
const MAX_DEPTH: usize = 64;

/// A JSON object of type `T`. As `Option<JsonBody<T>>` the body may be missing.
#[derive(Clone, Copy, Debug)]
pub struct JsonBody<T>(pub T);

impl<S: Sync, T: DeserializeOwned> FromRequest<S> for JsonBody<T> {
    type Rejection = ApiError;

    async fn from_request(request: Request, _: &S) -> Result<Self, ApiError> {
        parse_json(&read_body(request.into_body()).await?).map(Self)
    }
}

impl<S: Sync, T: DeserializeOwned> OptionalFromRequest<S> for JsonBody<T> {
    type Rejection = ApiError;

    async fn from_request(request: Request, _: &S) -> Result<Option<Self>, ApiError> {
        let body = read_body(request.into_body()).await?;
        if body.trim_ascii().is_empty() {
            return Ok(None);
        }
        parse_json(&body).map(|value| Some(Self(value)))
    }
}

/// The whole body, if it keeps to [`BODY_LIMIT`].
pub async fn read_body(body: Body) -> Result<Bytes, ApiError> {
    match Limited::new(body, BODY_LIMIT).collect().await {
        Ok(whole) => Ok(whole.to_bytes()),
        Err(error) if error.is::<LengthLimitError>() => Err(ApiError::payload_too_large()),
        Err(_) => Err(ApiError::bad_request("request body could not be read")),
    }
}

/// A JSON object of type `T`.
pub fn parse_json<T: DeserializeOwned>(body: &[u8]) -> Result<T, ApiError> {
    if body.trim_ascii().first() != Some(&b'{') {
        return Err(ApiError::bad_request("request body must be a JSON object"));
    }
    if depth(body) > MAX_DEPTH {
        return Err(ApiError::bad_request("request body is nested too deeply"));
    }
    let mut source = serde_json::Deserializer::from_slice(body);
    let value = serde_path_to_error::deserialize(&mut source).map_err(|error| {
        let path = error.path().to_string();
        let inner = error.into_inner();
        if inner.is_data() {
            ApiError::bad_request(field_text(&path, &inner.to_string()))
        } else {
            ApiError::bad_request("request body is no valid JSON")
        }
    })?;
    source.end().map_err(|_| ApiError::bad_request("request body is no valid JSON"))?;
    Ok(value)
}

/// What is wrong with which field, in words for the client: no positions, no names of our types.
fn field_text(path: &str, cause: &str) -> String {
    let cause = cause.split_once(" at line ").map_or(cause, |(what, _)| what);
    let cause = match cause.split_once("expected struct ") {
        Some((what, _)) => format!("{what}expected an object"),
        None => cause.to_owned(),
    };
    if path == "." { cause } else { format!("`{path}`: {cause}") }
}

/// How deep brackets nest, strings apart.
fn depth(body: &[u8]) -> usize {
    let (mut depth, mut deepest, mut quoted, mut escaped) = (0usize, 0usize, false, false);
    for byte in body {
        match byte {
            _ if escaped => escaped = false,
            b'\\' if quoted => escaped = true,
            b'"' => quoted = !quoted,
            b'{' | b'[' if !quoted => {
                depth += 1;
                deepest = deepest.max(depth);
            }
            b'}' | b']' if !quoted => depth = depth.saturating_sub(1),
            _ => {}
        }
    }
    deepest
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde::Deserialize;

    #[derive(Debug, Deserialize)]
    struct Outer {
        #[expect(dead_code, reason = "only parsed")]
        name: String,
        #[expect(dead_code, reason = "only parsed")]
        inner: Option<Inner>,
    }

    #[derive(Debug, Deserialize)]
    struct Inner {
        #[expect(dead_code, reason = "only parsed")]
        count: u32,
    }

    fn refusal(body: &str) -> String {
        parse_json::<Outer>(body.as_bytes()).unwrap_err().text().to_owned()
    }

    #[test]
    fn a_refusal_names_the_field_and_no_type_of_ours() {
        assert!(parse_json::<Outer>(br#" {"name": "x", "inner": {"count": 1}} "#).is_ok());
        assert_eq!(refusal("{}"), "missing field `name`");
        assert_eq!(refusal(r#"{"name": 1}"#), "`name`: invalid type: integer `1`, expected a string");
        assert_eq!(
            refusal(r#"{"name": "x", "inner": {"count": -1}}"#),
            "`inner.count`: invalid value: integer `-1`, expected u32"
        );
        assert_eq!(
            refusal(r#"{"name": "x", "inner": "y"}"#),
            "`inner`: invalid type: string \"y\", expected an object"
        );
        assert_eq!(refusal(r#"{"name": "x", "name": "y"}"#), "duplicate field `name`");
        assert_eq!(refusal(r#"{"name": "x"} {}"#), "request body is no valid JSON");
        assert_eq!(refusal(r#"{"name": "x""#), "request body is no valid JSON");
        for no_object in ["", "[]", "\"x\"", "null", "<xml/>"] {
            assert_eq!(refusal(no_object), "request body must be a JSON object", "{no_object:?}");
        }
    }

    #[test]
    fn edge_depth_64_is_the_limit() {
        let nested = |n: usize| format!(r#"{{"name":"[[[[","x":{}{}}}"#, "[".repeat(n), "]".repeat(n));
        assert!(parse_json::<Outer>(nested(63).as_bytes()).is_ok());
        assert_eq!(refusal(&nested(64)), "request body is nested too deeply");
    }
}
