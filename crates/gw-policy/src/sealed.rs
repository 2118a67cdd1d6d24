//! Data that may not leave yet, and text that may.
//!
//! What the node says is wrapped in [`Sealed`] the moment it arrives. Only this crate's view functions open it,
//! each for one [`Viewer`](crate::visibility::Viewer), and what they produce is [`Disclosed`]: the only thing a
//! surface writes out. Invariant: neither type has a public way from the inside of the one to the inside of the
//! other, and `Sealed` can be neither read, printed nor serialized outside this crate.

use bytes::Bytes;
use serde_json::value::RawValue;
use std::borrow::Cow;

/// A value nobody has judged yet. It has no getter and no `Serialize`, and its `Debug` names the type only.
///
/// ```
/// let sealed = gw_policy::Sealed::new("0x01".to_owned());
/// assert!(!format!("{sealed:?}").contains("0x01"));
/// ```
///
/// Serializing it does not build:
///
/// ```compile_fail,E0277
/// let sealed = gw_policy::Sealed::new("0x01".to_owned());
/// let _ = serde_json::to_string(&sealed);
/// ```
///
/// Nor does opening it outside the views:
///
/// ```compile_fail,E0624
/// let sealed = gw_policy::Sealed::new("0x01".to_owned());
/// let _ = sealed.open();
/// ```
#[must_use]
pub struct Sealed<T>(T);

impl<T> Sealed<T> {
    /// Seals what the node answered.
    pub const fn new(value: T) -> Self {
        Self(value)
    }

    /// The inside, for the views of this crate.
    pub(crate) fn open(self) -> T {
        self.0
    }

    /// A look at the inside, for the views of this crate.
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
/// Nothing is promised about its content, not even that it is JSON: the views check what they copy. Slices of one
/// received body share its memory.
pub struct RawJson(Bytes);

impl RawJson {
    /// Keeps the bytes of one `result`.
    pub const fn new(text: Bytes) -> Self {
        Self(text)
    }

    /// The text, or nothing if it is not UTF-8.
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

/// The `error` member of an upstream answer.
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

/// JSON text of a `result` that may leave for the viewer it was opened for.
///
/// Only this crate makes one, apart from the constants below, which say nothing.
#[derive(Clone, Debug)]
#[must_use]
pub struct Disclosed {
    text: Text,
    malformed: bool,
}

#[derive(Clone, Debug)]
enum Text {
    Made(Cow<'static, str>),
    /// As the node gave it. Invariant: it is UTF-8.
    Passed(Bytes),
}

impl PartialEq for Disclosed {
    fn eq(&self, other: &Self) -> bool {
        (self.as_str(), self.malformed) == (other.as_str(), other.malformed)
    }
}

impl Eq for Disclosed {}

impl Disclosed {
    /// `null`: nothing to see, or nothing there.
    pub const NULL: Self = Self::constant("null");
    /// `[]`
    pub const EMPTY_LIST: Self = Self::constant("[]");
    /// `"0x0"`: zero, or the constant answer of K8.
    pub const ZERO: Self = Self::constant("\"0x0\"");
    /// `"0x"`: no code, no output.
    pub const NO_BYTES: Self = Self::constant("\"0x\"");
    /// `false`
    pub const FALSE: Self = Self::constant("false");
    /// `true`
    pub const TRUE: Self = Self::constant("true");

    pub(crate) const fn constant(text: &'static str) -> Self {
        Self {
            text: Text::Made(Cow::Borrowed(text)),
            malformed: false,
        }
    }

    /// Text a view has finished.
    pub(crate) const fn text(text: String) -> Self {
        Self {
            text: Text::Made(Cow::Owned(text)),
            malformed: false,
        }
    }

    /// The node's own text, which nobody has to judge; nothing if it is not UTF-8.
    pub(crate) fn passed(raw: RawJson) -> Option<Self> {
        raw.text()?;
        Some(Self {
            text: Text::Passed(raw.into_bytes()),
            malformed: false,
        })
    }

    /// This constant, given because the node's answer had an unexpected shape.
    pub(crate) fn in_place_of_malformed(self) -> Self {
        Self {
            malformed: true,
            ..self
        }
    }

    /// The JSON text. Of a large text that the node gave, every look costs a pass over it.
    pub fn as_str(&self) -> &str {
        match &self.text {
            Text::Made(text) => text,
            Text::Passed(bytes) => core::str::from_utf8(bytes).unwrap_or("null"),
        }
    }

    /// How long it is.
    pub fn len(&self) -> usize {
        match &self.text {
            Text::Made(text) => text.len(),
            Text::Passed(bytes) => bytes.len(),
        }
    }

    /// Whether it is empty, which no JSON text is.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// The JSON text, owned.
    pub fn into_string(self) -> String {
        match self.text {
            Text::Made(text) => text.into_owned(),
            Text::Passed(bytes) => String::from_utf8(bytes.into()).unwrap_or_else(|_| "null".to_owned()),
        }
    }

    /// The JSON text as bytes, not copied, and whether they are part of the node's answer.
    pub fn into_bytes(self) -> (Bytes, bool) {
        match self.text {
            Text::Made(Cow::Borrowed(text)) => (Bytes::from_static(text.as_bytes()), false),
            Text::Made(Cow::Owned(text)) => (Bytes::from(text), false),
            Text::Passed(bytes) => (bytes, true),
        }
    }

    /// Whether the node's answer had an unexpected shape and this constant stands in its place: for metrics.
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
        let shown = format!("{sealed:?} {:?} {error:?} {:?}", sealed.peek(), error.peek());
        assert!(!shown.contains("secret"), "{shown}");
    }

    #[test]
    fn text_that_is_not_utf8_does_not_open() {
        assert_eq!(RawJson::new(Bytes::from_static(&[b'"', 0xff, b'"'])).text(), None);
        let value = RawValue::from_string("[1]".to_owned()).unwrap();
        assert_eq!(RawJson::from(value).text(), Some("[1]"));
    }
}
