//! Parses JSON-RPC envelopes into requests that borrow from the body (spec/20 J3, J4, J7).
//!
//! Parameters stay raw text until [`crate::call::parse`]. Invariant: a [`Request`] comes only from a body that is one
//! well-formed JSON text, at most [`MAX_DEPTH`] deep, in which no object repeats a member. Names that differ only in
//! ASCII case or in escapes count as repeated.

mod strict_json;

pub use strict_json::MAX_DEPTH;

use crate::{method::Method, visible_to::VisibleTo};
use serde::de::{DeserializeSeed, Deserializer, IgnoredAny, MapAccess, SeqAccess, Visitor};
use serde_json::value::RawValue;
use std::{borrow::Cow, fmt};
use strict_json::check_strict_json;

/// Rejects JSON text that is too deep or repeats a member (J3).
pub(crate) fn reject_duplicate_keys(json: &str) -> Result<(), EnvelopeError> {
    check_strict_json(json)
}

/// A parsed body.
#[derive(Debug)]
pub enum Incoming<'a> {
    /// One request.
    Single(Request<'a>),
    /// A batch; an invalid element does not affect the others (J7).
    Batch(Vec<Result<Request<'a>, EnvelopeError>>),
}

/// One request with a valid envelope.
#[derive(Debug)]
pub struct Request<'a> {
    /// The id that the response repeats.
    pub id: RequestId<'a>,
    /// Whether the request has no `id` and so is a notification. A notification in a batch gets no response (JSON-RPC
    /// 2.0 §4.1, §6). A single notification gets one with the id `null` (J4), so that HTTP clients learn the outcome.
    pub is_notification: bool,
    /// The raw text of the method between its quotes. Escapes are kept, so that a name with escapes matches no method
    /// (J6).
    pub method: &'a str,
    /// The parameter array; absent and `null` are `None` (decision 39).
    pub params: Option<&'a RawValue>,
    /// Top-level `visibleTo` and `privateFor`.
    pub visible_to: VisibleTo,
}

/// A request id as JSON text, echoed verbatim (J4).
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct RequestId<'a>(Cow<'a, str>);

impl<'a> RequestId<'a> {
    /// The id of a response to a request without usable id.
    pub const NULL: RequestId<'static> = RequestId(Cow::Borrowed("null"));

    /// The JSON text to put after `"id":`.
    pub fn as_json(&self) -> &str {
        &self.0
    }

    /// Converts to an id that does not borrow from the body.
    pub fn into_owned(self) -> RequestId<'static> {
        RequestId(Cow::Owned(self.0.into_owned()))
    }

    fn read(raw: &'a RawValue) -> Option<Self> {
        match raw.get().as_bytes().first() {
            Some(b'"' | b'-' | b'0'..=b'9' | b'n') => Some(Self(Cow::Borrowed(raw.get()))),
            _ => None,
        }
    }
}

/// Category of an envelope error; it determines the JSON-RPC code.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum EnvelopeErrorKind {
    /// Not JSON: -32700.
    Parse,
    /// JSON, but not a request: -32600.
    InvalidRequest,
    /// A request with invalid members: -32602.
    InvalidParams,
}

impl EnvelopeErrorKind {
    /// The JSON-RPC error code.
    pub fn code(self) -> i32 {
        match self {
            Self::Parse => -32700,
            Self::InvalidRequest => -32600,
            Self::InvalidParams => -32602,
        }
    }
}

/// Why a body or a batch element is not a request; HTTP 400.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{message}")]
pub struct EnvelopeError {
    /// The category.
    pub kind: EnvelopeErrorKind,
    /// The id for the response; `null` if the request has no usable id.
    pub id: RequestId<'static>,
    /// The message for the caller.
    pub message: &'static str,
}

impl EnvelopeError {
    fn parse() -> Self {
        Self {
            kind: EnvelopeErrorKind::Parse,
            id: RequestId::NULL,
            message: "parse error",
        }
    }

    fn invalid(message: &'static str) -> Self {
        Self {
            kind: EnvelopeErrorKind::InvalidRequest,
            id: RequestId::NULL,
            message,
        }
    }

    fn with_id(self, id: &RequestId<'_>) -> Self {
        Self {
            id: id.clone().into_owned(),
            ..self
        }
    }
}

/// Parses a body. A batch may have up to `batch_max` elements; zero disables batches.
///
/// # Errors
///
/// An [`EnvelopeError`] for the whole body. Errors in single elements of a batch are part of [`Incoming::Batch`].
pub fn parse(body: &[u8], batch_max: usize) -> Result<Incoming<'_>, EnvelopeError> {
    let text = std::str::from_utf8(body).map_err(|_| EnvelopeError::parse())?;
    match text.trim_ascii_start().as_bytes().first() {
        Some(b'{') => {
            let members = read(text, |json| json.deserialize_map(MembersVisitor))?;
            check_strict_json(text)?;
            request(members).map(Incoming::Single)
        }
        Some(b'[') => batch(text, batch_max).map(Incoming::Batch),
        _ => {
            read(text, |json| json.deserialize_ignored_any(IgnoredAny))?;
            Err(EnvelopeError::invalid("a request is an object"))
        }
    }
}

/// Reads one JSON text to its end.
fn read<'a, T>(
    text: &'a str,
    read: impl FnOnce(&mut Json<'a>) -> Result<T, serde_json::Error>,
) -> Result<T, EnvelopeError> {
    let mut json = serde_json::Deserializer::from_str(text);
    read(&mut json)
        .and_then(|value| json.end().map(|()| value))
        .map_err(|_| EnvelopeError::parse())
}

type Json<'a> = serde_json::Deserializer<serde_json::de::StrRead<'a>>;

fn batch(text: &str, max: usize) -> Result<Vec<Result<Request<'_>, EnvelopeError>>, EnvelopeError> {
    let mut elements = Vec::new();
    let fits = read(text, |json| {
        json.deserialize_seq(Elements {
            elements: &mut elements,
            max,
        })
    })?;
    check_strict_json(text)?;
    if max == 0 {
        return Err(EnvelopeError::invalid("batch requests are not accepted"));
    }
    if !fits {
        return Err(EnvelopeError::invalid("batch has too many elements"));
    }
    if elements.is_empty() {
        return Err(EnvelopeError::invalid("batch is empty"));
    }
    Ok(elements.into_iter().map(element).collect())
}

fn element(json: &RawValue) -> Result<Request<'_>, EnvelopeError> {
    let members = read(json.get(), |json| json.deserialize_map(MembersVisitor));
    // The text is valid JSON, so the only possible error is that it is not an object.
    members
        .map_err(|_| EnvelopeError::invalid("a request is an object"))
        .and_then(request)
}

/// Collects up to `max` elements as raw text. The value is whether there were at most `max`.
struct Elements<'v, 'a> {
    elements: &'v mut Vec<&'a RawValue>,
    max: usize,
}

impl<'a> Visitor<'a> for Elements<'_, 'a> {
    type Value = bool;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("a batch")
    }

    fn visit_seq<A: SeqAccess<'a>>(self, mut seq: A) -> Result<bool, A::Error> {
        while self.elements.len() < self.max {
            match seq.next_element()? {
                Some(element) => self.elements.push(element),
                None => return Ok(true),
            }
        }
        let has_more = seq.next_element::<IgnoredAny>()?.is_some();
        while seq.next_element::<IgnoredAny>()?.is_some() {}
        Ok(!has_more)
    }
}

/// The known members of a request as raw text.
#[derive(Default)]
struct Members<'a> {
    jsonrpc: Option<&'a RawValue>,
    id: Option<&'a RawValue>,
    method: Option<&'a RawValue>,
    params: Option<&'a RawValue>,
    visible_to: Option<&'a RawValue>,
    private_for: Option<&'a RawValue>,
    misspelled: bool,
}

const MEMBER_NAMES: [&str; 6] = ["jsonrpc", "id", "method", "params", "visibleTo", "privateFor"];

fn request(members: Members<'_>) -> Result<Request<'_>, EnvelopeError> {
    let id = match members.id {
        None => RequestId::NULL,
        Some(raw) => {
            RequestId::read(raw).ok_or_else(|| EnvelopeError::invalid("id must be a string, number or null"))?
        }
    };
    let invalid_params = |message| EnvelopeError {
        kind: EnvelopeErrorKind::InvalidParams,
        ..EnvelopeError::invalid(message)
    };
    if members.misspelled {
        return Err(invalid_params("a member is written in the wrong case").with_id(&id));
    }
    if members.jsonrpc.is_none_or(|raw| raw.get() != "\"2.0\"") {
        return Err(EnvelopeError::invalid("jsonrpc must be \"2.0\"").with_id(&id));
    }
    let method = members
        .method
        .and_then(|raw| raw.get().strip_prefix('"')?.strip_suffix('"'))
        .filter(|name| name.len() <= Method::NAME_MAX)
        .ok_or_else(|| EnvelopeError::invalid("method must be a string of at most 128 bytes").with_id(&id))?;
    let params = members.params.filter(|raw| raw.get() != "null");
    if params.is_some_and(|raw| !raw.get().starts_with('[')) {
        return Err(invalid_params("params must be an array").with_id(&id));
    }
    let visible_to = [members.visible_to, members.private_for]
        .into_iter()
        .flatten()
        .map(VisibleTo::read);
    let is_notification = members.id.is_none();
    Ok(Request {
        id,
        is_notification,
        method,
        params,
        visible_to: visible_to.fold(VisibleTo::default(), VisibleTo::union),
    })
}

struct MembersVisitor;

impl<'a> Visitor<'a> for MembersVisitor {
    type Value = Members<'a>;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("a request object")
    }

    fn visit_map<A: MapAccess<'a>>(self, mut map: A) -> Result<Members<'a>, A::Error> {
        let mut members = Members::default();
        while let Some(name) = map.next_key_seed(Name)? {
            let slot = match name.as_ref() {
                "jsonrpc" => &mut members.jsonrpc,
                "id" => &mut members.id,
                "method" => &mut members.method,
                "params" => &mut members.params,
                "visibleTo" => &mut members.visible_to,
                "privateFor" => &mut members.private_for,
                unknown => {
                    // Decision 39: nodes that ignore case would read this member.
                    members.misspelled |= MEMBER_NAMES.iter().any(|known| known.eq_ignore_ascii_case(unknown));
                    map.next_value::<IgnoredAny>()?;
                    continue;
                }
            };
            *slot = Some(map.next_value()?);
        }
        Ok(members)
    }
}

/// A member name after unescaping, borrowed when it has no escapes.
struct Name;

impl<'de> DeserializeSeed<'de> for Name {
    type Value = Cow<'de, str>;

    fn deserialize<D: Deserializer<'de>>(self, deserializer: D) -> Result<Self::Value, D::Error> {
        deserializer.deserialize_str(self)
    }
}

impl<'de> Visitor<'de> for Name {
    type Value = Cow<'de, str>;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("a member name")
    }

    fn visit_borrowed_str<E>(self, name: &'de str) -> Result<Self::Value, E> {
        Ok(Cow::Borrowed(name))
    }

    fn visit_str<E>(self, name: &str) -> Result<Self::Value, E> {
        Ok(Cow::Owned(name.to_owned()))
    }
}
