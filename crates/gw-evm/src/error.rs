//! Why parameters were refused.

use std::borrow::Cow;

/// Which family of refusal, and with that which JSON-RPC code.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum ParamErrorKind {
    /// Malformed or unsupported: -32602.
    Invalid,
    /// Well-formed but larger than the gateway serves (J9): -32005.
    Limit,
}

/// Why parameters were refused; HTTP 400. The text is for the caller and never holds a value of the request.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{message}")]
pub struct ParamError {
    kind: ParamErrorKind,
    message: Cow<'static, str>,
}

impl ParamError {
    /// Malformed or unsupported parameters.
    pub fn invalid(message: impl Into<Cow<'static, str>>) -> Self {
        Self {
            kind: ParamErrorKind::Invalid,
            message: message.into(),
        }
    }

    /// More than the gateway serves in one call.
    pub fn limit(message: impl Into<Cow<'static, str>>) -> Self {
        Self {
            kind: ParamErrorKind::Limit,
            message: message.into(),
        }
    }

    /// The family.
    pub fn kind(&self) -> ParamErrorKind {
        self.kind
    }

    /// The JSON-RPC error code.
    pub fn code(&self) -> i32 {
        match self.kind {
            ParamErrorKind::Invalid => -32602,
            ParamErrorKind::Limit => -32005,
        }
    }

    /// The text for the caller.
    pub fn message(&self) -> &str {
        &self.message
    }
}
