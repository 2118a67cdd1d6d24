//! Wrapper types for upstream data: [`Sealed`] data must not reach a client, [`Disclosed`] text may.
//!
//! The node client wraps every upstream response in [`Sealed`] as soon as it arrives. Only this crate's view functions
//! open it, each for one [`Viewer`](crate::visibility::Viewer). They return [`Disclosed`], the only type that the API
//! handlers write to a client.
//!
//! Invariant: no public function turns the content of a `Sealed` into a `Disclosed`, and `Sealed` can be neither read,
//! printed nor serialized outside this crate.

use alloy_primitives::B256;
use bytes::Bytes;
use serde_json::value::RawValue;
use std::{borrow::Cow, ops::Range, sync::Arc};

/// Upstream data that no view has filtered yet. It has no getter and no `Serialize`, and its `Debug` prints the type
/// only.
///
/// ```
/// let sealed = gw_policy::Sealed::new("0x01".to_owned());
/// assert!(!format!("{sealed:?}").contains("0x01"));
/// ```
///
/// Serializing it does not compile:
///
/// ```compile_fail,E0277
/// let sealed = gw_policy::Sealed::new("0x01".to_owned());
/// let _ = serde_json::to_string(&sealed);
/// ```
///
/// Opening it outside this crate does not compile:
///
/// ```compile_fail,E0624
/// let sealed = gw_policy::Sealed::new("0x01".to_owned());
/// let _ = sealed.open();
/// ```
#[must_use]
pub struct Sealed<T>(T);

impl<T> Sealed<T> {
    /// Seals an upstream value.
    pub const fn new(value: T) -> Self {
        Self(value)
    }

    /// The content, for the views of this crate.
    pub(crate) fn open(self) -> T {
        self.0
    }

    /// A reference to the content, for the views of this crate.
    pub(crate) const fn peek(&self) -> &T {
        &self.0
    }
}

impl<T> core::fmt::Debug for Sealed<T> {
    fn fmt(&self, f: &mut core::fmt::Formatter<'_>) -> core::fmt::Result {
        write!(f, "Sealed<{}>(…)", core::any::type_name::<T>())
    }
}

/// The text of an upstream `result` member, not parsed yet.
///
/// The content is unchecked and need not even be JSON: the views check what they copy. Several `RawJson` values may be
/// slices of one received body and share its memory.
pub struct RawJson(Bytes);

impl RawJson {
    /// Wraps the bytes of one `result`.
    pub const fn new(text: Bytes) -> Self {
        Self(text)
    }

    /// The text, or `None` if it is not UTF-8.
    pub(crate) fn text(&self) -> Option<&str> {
        core::str::from_utf8(&self.0).ok()
    }

    /// The bytes, not copied.
    pub(crate) fn into_bytes(self) -> Bytes {
        self.0
    }
}

impl From<Box<RawValue>> for RawJson {
    fn from(value: Box<RawValue>) -> Self {
        Self(Bytes::from(String::from(Box::<str>::from(value))))
    }
}

impl core::fmt::Debug for RawJson {
    fn fmt(&self, f: &mut core::fmt::Formatter<'_>) -> core::fmt::Result {
        f.write_str("RawJson(…)")
    }
}

/// The `error` member of an upstream response.
pub struct RawError {
    /// The node's code.
    pub code: i64,
    /// The node's message.
    pub message: String,
    /// The node's data, if any.
    pub data: Option<RawJson>,
}

impl core::fmt::Debug for RawError {
    fn fmt(&self, f: &mut core::fmt::Formatter<'_>) -> core::fmt::Result {
        write!(f, "RawError({}, …)", self.code)
    }
}

/// JSON text of a `result` that may be sent to the viewer for whom it was opened.
///
/// Only this crate creates one, except for the constants below, which disclose nothing.
#[derive(Clone, Debug)]
#[must_use]
pub struct Disclosed {
    text: Text,
    malformed: bool,
    parts: Option<Arc<Parts>>,
}

/// The parts of a result, as the view that wrote it knows them. Positions are in bytes.
#[derive(Debug)]
pub(crate) enum Parts {
    /// The logs of a list, in its order.
    Logs(Vec<LogPart>),
    /// The members of a block that its header has, each with its name.
    Header(Vec<Range<usize>>),
}

/// A log in a list of logs.
#[derive(Clone, Debug)]
pub(crate) struct LogPart {
    /// Hash of its block.
    pub(crate) block_hash: B256,
    /// Number of its block.
    pub(crate) block_number: u64,
    /// Its index in the block, as shown.
    pub(crate) log_index: u64,
    /// Its position in the list.
    pub(crate) position: Range<usize>,
    /// The position of its flag `removed` in the log, if it has one.
    pub(crate) flag: Option<Range<usize>>,
}

#[derive(Clone, Debug)]
enum Text {
    /// Text that a view built.
    Built(Cow<'static, str>),
    /// The upstream text, unchanged. Invariant: it is UTF-8.
    Upstream(Bytes),
}

impl PartialEq for Disclosed {
    fn eq(&self, other: &Self) -> bool {
        (self.as_str(), self.malformed) == (other.as_str(), other.malformed)
    }
}

impl Eq for Disclosed {}

impl Disclosed {
    /// `null`: the object is hidden or does not exist.
    pub const NULL: Self = Self::constant("null");
    /// `[]`
    pub const EMPTY_LIST: Self = Self::constant("[]");
    /// `"0x0"`: zero, or the constant result of K8.
    pub const ZERO: Self = Self::constant("\"0x0\"");
    /// `"0x"`: no code, no output.
    pub const NO_BYTES: Self = Self::constant("\"0x\"");
    /// `false`
    pub const FALSE: Self = Self::constant("false");
    /// `true`
    pub const TRUE: Self = Self::constant("true");

    pub(crate) const fn constant(text: &'static str) -> Self {
        Self {
            text: Text::Built(Cow::Borrowed(text)),
            malformed: false,
            parts: None,
        }
    }

    /// Text that a view built.
    pub(crate) const fn text(text: String) -> Self {
        Self {
            text: Text::Built(Cow::Owned(text)),
            malformed: false,
            parts: None,
        }
    }

    /// Adds the parts of the text.
    pub(crate) fn with_parts(self, parts: Parts) -> Self {
        Self {
            parts: Some(Arc::new(parts)),
            ..self
        }
    }

    /// The parts of the text, if its view reported them.
    pub(crate) fn parts(&self) -> Option<&Parts> {
        self.parts.as_deref()
    }

    /// The unchanged upstream text, for results that need no filtering; `None` if it is not UTF-8.
    pub(crate) fn passed(raw: RawJson) -> Option<Self> {
        raw.text()?;
        Some(Self {
            text: Text::Upstream(raw.into_bytes()),
            malformed: false,
            parts: None,
        })
    }

    /// Marks this constant as the replacement of an upstream result of unexpected shape.
    pub(crate) fn in_place_of_malformed(self) -> Self {
        Self {
            malformed: true,
            ..self
        }
    }

    /// The JSON text. For an unchanged upstream text, every call validates the UTF-8 of the whole text again.
    pub fn as_str(&self) -> &str {
        match &self.text {
            Text::Built(text) => text,
            Text::Upstream(bytes) => core::str::from_utf8(bytes).unwrap_or("null"),
        }
    }

    /// Length of the text in bytes.
    pub fn len(&self) -> usize {
        match &self.text {
            Text::Built(text) => text.len(),
            Text::Upstream(bytes) => bytes.len(),
        }
    }

    /// Whether the text is empty, which valid JSON never is.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// The JSON text, owned.
    pub fn into_string(self) -> String {
        match self.text {
            Text::Built(text) => text.into_owned(),
            Text::Upstream(bytes) => String::from_utf8(bytes.into()).unwrap_or_else(|_| "null".to_owned()),
        }
    }

    /// The JSON text as bytes, not copied, and whether they share the memory of the upstream response.
    pub fn into_bytes(self) -> (Bytes, bool) {
        match self.text {
            Text::Built(Cow::Borrowed(text)) => (Bytes::from_static(text.as_bytes()), false),
            Text::Built(Cow::Owned(text)) => (Bytes::from(text), false),
            Text::Upstream(bytes) => (bytes, true),
        }
    }

    /// Whether this constant replaces an upstream result of unexpected shape. For metrics.
    pub const fn is_malformed(&self) -> bool {
        self.malformed
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn debug_output_shows_no_content() {
        let sealed = Sealed::new(RawJson::new(Bytes::from_static(b"\"secret\"")));
        let error = Sealed::new(RawError {
            code: 3,
            message: "secret".to_owned(),
            data: None,
        });
        let debug = format!("{sealed:?} {:?} {error:?} {:?}", sealed.peek(), error.peek());
        assert!(!debug.contains("secret"), "{debug}");
    }

    #[test]
    fn raw_json_that_is_not_utf8_has_no_text() {
        assert_eq!(RawJson::new(Bytes::from_static(&[b'"', 0xff, b'"'])).text(), None);
        let value = RawValue::from_string("[1]".to_owned()).unwrap();
        assert_eq!(RawJson::from(value).text(), Some("[1]"));
    }
}
