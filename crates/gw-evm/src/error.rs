//! Errors for rejected call parameters.

use std::borrow::Cow;

/// Category of a parameter error; it determines the JSON-RPC code.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum ParamErrorKind {
    /// Malformed or unsupported: -32602.
    Invalid,
    /// Well-formed but larger than the gateway serves (J9): -32005.
    Limit,
}

/// An error in the parameters of a call; HTTP 400. The message is sent to the caller and never contains a value of
/// the request.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{message}")]
pub struct ParamError {
    kind: ParamErrorKind,
    message: Cow<'static, str>,
}

impl ParamError {
    /// Creates an error for malformed or unsupported parameters.
    pub fn invalid(message: impl Into<Cow<'static, str>>) -> Self {
        Self {
            kind: ParamErrorKind::Invalid,
            message: message.into(),
        }
    }

    /// Creates an error for a call that is larger than the gateway serves (J9).
    pub fn limit(message: impl Into<Cow<'static, str>>) -> Self {
        Self {
            kind: ParamErrorKind::Limit,
            message: message.into(),
        }
    }

    /// The category.
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

    /// The message for the caller.
    pub fn message(&self) -> &str {
        &self.message
    }
}
