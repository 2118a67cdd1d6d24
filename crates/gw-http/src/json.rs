//! JSON bodies: at most 1 MiB, 64 levels, an object of the expected shape, or a 400 that names the field.
//!
//! Unknown members are rejected at every level, and `null` counts as the empty list where a list is expected: see
//! [`Strict`].
//!
//! The content type is ignored: clients of the versioned API send various ones.

use crate::{
    auth::AuthenticatedUser, error::ApiError, http_context::HttpContext, nearest::unknown_member, strict::Strict,
};
use axum::{
    body::Body,
    extract::{FromRef, FromRequest, OptionalFromRequest, Request},
};
use bytes::Bytes;
use http_body_util::{BodyExt, LengthLimitError, Limited};
use serde::de::DeserializeOwned;
use std::sync::Arc;

/// The largest body, for JSON and for everything else.
pub const BODY_LIMIT: usize = 1024 * 1024;
const MAX_DEPTH: usize = 64;

/// There is no room for this body among those being received. A request whose body gave way to others fails with it
/// (RL8).
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("the bodies that are being received leave no room for this one")]
pub struct NoBodyRoom;

impl NoBodyRoom {
    /// Whether an error was caused by [`NoBodyRoom`].
    pub fn caused(error: &(dyn core::error::Error + 'static)) -> bool {
        core::iter::successors(Some(error), |error| error.source()).any(|error| error.is::<Self>())
    }
}

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

/// The caller, and a JSON object of type `T`. The caller is authenticated before the body is read and again after it: a
/// request that began before a ban, a logout or a removal and is completed after it is rejected (HD20).
#[derive(Clone, Debug)]
pub struct AuthenticatedBody<T> {
    /// The caller, as authenticated after the body arrived.
    pub caller: AuthenticatedUser,
    /// The body.
    pub body: T,
}

impl<S, T> FromRequest<S> for AuthenticatedBody<T>
where
    S: Send + Sync,
    T: DeserializeOwned,
    Arc<HttpContext>: FromRef<S>,
{
    type Rejection = ApiError;

    async fn from_request(request: Request, state: &S) -> Result<Self, ApiError> {
        let http_context = Arc::<HttpContext>::from_ref(state);
        let (parts, body) = request.into_parts();
        AuthenticatedUser::authenticate(&http_context, &parts.headers)?;
        let body = read_body(body).await?;
        let caller = AuthenticatedUser::authenticate(&http_context, &parts.headers)?;
        Ok(Self {
            caller,
            body: parse_json(&body)?,
        })
    }
}

/// Reads the whole body, up to [`BODY_LIMIT`].
///
/// # Errors
/// 413 for more, 400 for a body that broke off, 503 for one that gave way to others.
pub async fn read_body(body: Body) -> Result<Bytes, ApiError> {
    match Limited::new(body, BODY_LIMIT).collect().await {
        Ok(whole) => Ok(whole.to_bytes()),
        Err(error) if error.is::<LengthLimitError>() => Err(ApiError::payload_too_large()),
        Err(error) if NoBodyRoom::caused(&*error) => {
            Err(ApiError::unavailable("too many request bodies are on their way"))
        }
        Err(_) => Err(ApiError::bad_request("request body could not be read")),
    }
}

/// A JSON object of type `T`, without members that `T` does not have.
///
/// # Errors
///
/// 400 that names the member.
pub fn parse_json<T: DeserializeOwned>(body: &[u8]) -> Result<T, ApiError> {
    parse(body, |source| serde_path_to_error::deserialize(Strict(source)))
}

/// Parses a JSON object of type `T` and ignores unknown members, as OAuth requires (RFC 6749 section 3.2).
///
/// # Errors
///
/// 400 that names the member.
pub fn parse_open_json<T: DeserializeOwned>(body: &[u8]) -> Result<T, ApiError> {
    parse(body, |source| serde_path_to_error::deserialize(source))
}

/// Deserializes from a reader of a JSON text in memory.
type Source<'b> = serde_json::Deserializer<serde_json::de::SliceRead<'b>>;

fn parse<T>(
    body: &[u8],
    read: impl FnOnce(&mut Source<'_>) -> Result<T, serde_path_to_error::Error<serde_json::Error>>,
) -> Result<T, ApiError> {
    if body.trim_ascii().first() != Some(&b'{') {
        return Err(ApiError::bad_request("request body must be a JSON object"));
    }
    if depth(body) > MAX_DEPTH {
        return Err(ApiError::bad_request("request body is nested too deeply"));
    }
    let mut source = serde_json::Deserializer::from_slice(body);
    let value = read(&mut source).map_err(|error| {
        let path = error.path().to_string();
        let inner = error.into_inner();
        if inner.is_data() {
            ApiError::bad_request(field_text(&path, &inner.to_string()))
        } else {
            ApiError::bad_request("request body is no valid JSON")
        }
    })?;
    source
        .end()
        .map_err(|_| ApiError::bad_request("request body is no valid JSON"))?;
    Ok(value)
}

/// The error text for the client: the field and what is wrong with it, without positions or Rust type names.
fn field_text(path: &str, cause: &str) -> String {
    let cause = cause.rsplit_once(" at line ").map_or(cause, |(what, _)| what);
    // The text of serde for types that reject unknown members themselves.
    if let Some((name, known)) = cause
        .strip_prefix("unknown field `")
        .and_then(|rest| rest.split_once("`, expected "))
    {
        let known: Vec<&str> = known.split('`').skip(1).step_by(2).collect();
        return at_path(path, unknown_member(name, &known));
    }
    let cause = match cause.split_once("expected struct ") {
        Some((what, _)) => format!("{what}expected an object"),
        None => cause.to_owned(),
    };
    at_path(path, cause)
}

/// Prefixes the cause with the path of the field. A member that was not read yet has no path of its own.
fn at_path(path: &str, cause: String) -> String {
    let place = path
        .strip_suffix('?')
        .map_or(path, |above| above.strip_suffix('.').unwrap_or(above));
    if matches!(place, "" | ".") {
        cause
    } else {
        format!("`{place}`: {cause}")
    }
}

/// The nesting depth of brackets outside strings.
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

    #[derive(Debug, Default, PartialEq, Deserialize)]
    #[serde(default)]
    struct Lists {
        text: String,
        methods: Vec<String>,
        parts: Vec<Part>,
        /// `null` has a meaning of its own here.
        functions: Option<Vec<Part>>,
        free: serde_json::Map<String, serde_json::Value>,
    }

    #[derive(Debug, PartialEq, Deserialize)]
    struct Part {
        index: u32,
    }

    /// HD33, decision 61: unknown members are rejected at every level, by the fields of the structs alone.
    #[test]
    fn hd33_unknown_members_are_refused_at_every_level() {
        let error_text = |body: &str| parse_json::<Lists>(body.as_bytes()).map_err(|error| error.text().to_owned());
        let refused = |text: &str| Err::<Lists, _>(text.to_owned());
        assert_eq!(
            error_text(r#"{"method": []}"#),
            refused("unknown member `method`: did you mean `methods`?")
        );
        assert_eq!(
            error_text(r#"{"parts": [{"index": 1}, {"index": 1, "indx": 2}]}"#),
            refused("`parts[1]`: unknown member `indx`: did you mean `index`?")
        );
        assert_eq!(
            error_text(r#"{"functions": [{"index": 1, "must": 2}]}"#),
            refused("`functions[0]`: unknown member `must`: did you mean `index`?")
        );
        // A map accepts any member.
        assert!(error_text(r#"{"free": {"anything": {"at": ["all"]}}}"#).is_ok());
    }

    /// RTO1: some clients write `null` for an empty list.
    #[test]
    fn rto1_null_is_the_empty_list() {
        let read = |body: &str| parse_json::<Lists>(body.as_bytes()).unwrap();
        assert_eq!(
            read(r#"{"methods": null, "parts": null, "functions": null}"#),
            Lists::default()
        );
        assert_eq!(
            read(r#"{"functions": []}"#).functions,
            Some(Vec::new()),
            "null and `[]` stay apart there"
        );
        let error = parse_json::<Lists>(br#"{"methods": "x"}"#).unwrap_err();
        assert_eq!(
            error.text(),
            "`methods`: invalid type: string \"x\", expected a sequence"
        );
        let error = parse_json::<Lists>(br#"{"free": null}"#).unwrap_err();
        assert!(error.text().starts_with("`free`: invalid type: null"), "{error:?}");
    }

    #[test]
    fn a_refusal_names_the_field_and_no_type_of_ours() {
        assert!(parse_json::<Outer>(br#" {"name": "x", "inner": {"count": 1}} "#).is_ok());
        assert_eq!(refusal("{}"), "missing field `name`");
        assert_eq!(
            refusal(r#"{"name": 1}"#),
            "`name`: invalid type: integer `1`, expected a string"
        );
        assert_eq!(
            refusal(r#"{"name": "x", "inner": {"count": -1}}"#),
            "`inner.count`: invalid value: integer `-1`, expected u32"
        );
        assert_eq!(
            refusal(r#"{"name": "x", "inner": "y"}"#),
            "`inner`: invalid type: string \"y\", expected an object"
        );
        // HD33: serde would take the values by position.
        assert_eq!(
            refusal(r#"{"name": "x", "inner": [1]}"#),
            "`inner`: invalid type: sequence, expected an object"
        );
        assert_eq!(refusal(r#"{"name": "x", "name": "y"}"#), "duplicate field `name`");
        assert_eq!(refusal(r#"{"name": "x"} {}"#), "request body is no valid JSON");
        assert_eq!(refusal(r#"{"name": "x""#), "request body is no valid JSON");
        for no_object in ["", "[]", "\"x\"", "null", "<xml/>"] {
            assert_eq!(
                refusal(no_object),
                "request body must be a JSON object",
                "{no_object:?}"
            );
        }
    }

    #[test]
    fn edge_depth_64_is_the_limit() {
        let nested = |n: usize| format!(r#"{{"text":"[[[[","free":{{"x":{}{}}}}}"#, "[".repeat(n), "]".repeat(n));
        let error_text = |n| parse_json::<Lists>(nested(n).as_bytes()).map_err(|error| error.text().to_owned());
        assert!(error_text(62).is_ok());
        assert_eq!(error_text(63), Err("request body is nested too deeply".to_owned()));
    }
}
