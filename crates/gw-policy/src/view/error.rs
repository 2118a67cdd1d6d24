//! Maps the node's errors to known texts that may be disclosed (decision 44, W7, HD15).

use super::{scan::Scan, shape};
use crate::sealed::{RawError, RawJson, Sealed};
use alloy_primitives::hex;
use serde::Serialize;
use std::borrow::Cow;

/// Whether an error comes from an execution whose outcome the caller may see.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ErrorContext {
    /// SIM or WRITE whose trace was permitted: revert bytes and reason are disclosed (W7).
    TracePassed,
    /// Any other call: neither is disclosed.
    Other,
}

/// A JSON-RPC error object that may be disclosed.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct DisclosedError {
    code: i32,
    message: Cow<'static, str>,
    #[serde(skip_serializing_if = "Option::is_none")]
    data: Option<String>,
}

/// The JSON-RPC code for a method that the server does not have.
const METHOD_NOT_FOUND: i64 = -32601;
/// The text for a method that the node does not have.
const UNSUPPORTED: &str = "the node does not support this method";
/// The text for errors without a known text.
const UNKNOWN: &str = "upstream error";
const REVERTED: &str = "execution reverted";

/// Pairs of a text in a node's message and the known text, in geth's words, that replaces the message. The first match
/// applies, so a text comes before the shorter texts that it contains.
const KNOWN: [(&str, &str); 15] = [
    ("nonce too low", "nonce too low"),
    ("nonce too high", "nonce too high"),
    ("insufficient funds", "insufficient funds for gas * price + value"),
    (
        "replacement transaction underpriced",
        "replacement transaction underpriced",
    ),
    ("transaction underpriced", "transaction underpriced"),
    ("already known", "already known"),
    ("already imported", "already known"),
    ("intrinsic gas too low", "intrinsic gas too low"),
    ("exceeds block gas limit", "exceeds block gas limit"),
    (
        "max fee per gas less than block base fee",
        "max fee per gas less than block base fee",
    ),
    ("gas required exceeds allowance", "gas required exceeds allowance"),
    ("out of gas", "out of gas"),
    ("outofgas", "out of gas"),
    ("invalid opcode", "invalid opcode"),
    ("invalidopcode", "invalid opcode"),
];

/// The known texts with which a pool refuses a transaction.
const REJECTIONS: [&str; 8] = [
    "nonce too low",
    "nonce too high",
    "insufficient funds for gas * price + value",
    "replacement transaction underpriced",
    "transaction underpriced",
    "intrinsic gas too low",
    "exceeds block gas limit",
    "max fee per gas less than block base fee",
];
const INVALID_PARAMS: i32 = -32602;

impl DisclosedError {
    /// The code: -32000, 3 or -32602. The codes -32001 to -32005 are the gateway's own (HD15).
    pub const fn code(&self) -> i32 {
        self.code
    }

    /// The message: a known text, or `upstream error`.
    pub fn message(&self) -> &str {
        &self.message
    }

    /// Whether the message is a known reason for the failure of an execution. Other messages say nothing about the
    /// execution.
    pub fn is_execution_failure(&self) -> bool {
        ![UNKNOWN, UNSUPPORTED].contains(&self.message())
    }

    /// Whether the error shows that the node did not take a transaction: by a known rule of its pool, or because it did
    /// not process the request. Any other error shows nothing: a node may fail after it took the transaction, or report
    /// the failure of a transaction that it mined.
    pub fn shows_rejection(&self) -> bool {
        self.code == INVALID_PARAMS || self.message == UNSUPPORTED || REJECTIONS.contains(&self.message())
    }

    /// The revert bytes as a hex string with prefix.
    pub fn data(&self) -> Option<&str> {
        self.data.as_deref()
    }

    /// The error without reason and data of a revert, which the reverting code wrote.
    #[must_use]
    pub fn without_data(self) -> Self {
        if self.is_revert() {
            Self {
                code: 3,
                message: REVERTED.into(),
                data: None,
            }
        } else {
            self
        }
    }

    /// The message without the reason of a revert, which the reverting code wrote.
    pub(super) fn plain(&self) -> &str {
        if self.is_revert() { REVERTED } else { &self.message }
    }

    pub(super) fn is_revert(&self) -> bool {
        self.code == 3
    }

    /// A revert with these bytes.
    pub(super) fn reverted(output: &[u8]) -> Self {
        let message = match revert_reason(output) {
            Some(reason) => format!("{REVERTED}: {reason}").into(),
            None => REVERTED.into(),
        };
        Self {
            code: 3,
            message,
            data: Some(hex::encode_prefixed(output)),
        }
    }

    /// The known error for a node's code and message. Everything beyond the known text (addresses, amounts, nonces) is
    /// left out.
    pub(super) fn known(code: i64, message: &str) -> Self {
        let lower = message.to_ascii_lowercase();
        // The gateway denies calls with -32601 `method not found`, so a method that the node lacks gets another error.
        if code == METHOD_NOT_FOUND {
            return Self {
                code: -32000,
                message: UNSUPPORTED.into(),
                data: None,
            };
        }
        let code = if code == i64::from(INVALID_PARAMS) {
            INVALID_PARAMS
        } else {
            -32000
        };
        if lower.contains(REVERTED) {
            return Self {
                code: 3,
                message: REVERTED.into(),
                data: None,
            };
        }
        let message = KNOWN
            .iter()
            .find(|(text, _)| lower.contains(text))
            .map_or(UNKNOWN, |(_, known)| known);
        Self {
            code,
            message: message.into(),
            data: None,
        }
    }
}

/// Maps a node's error to one that may be disclosed.
#[must_use]
pub fn node_error(context: ErrorContext, error: Sealed<RawError>) -> DisclosedError {
    let error = error.open();
    let known = DisclosedError::known(error.code, &error.message);
    match context {
        ErrorContext::TracePassed if known.is_revert() => {
            let bytes = error.data.as_ref().and_then(revert_bytes);
            bytes.map_or(known, |bytes| DisclosedError::reverted(&bytes))
        }
        ErrorContext::TracePassed | ErrorContext::Other => known,
    }
}

fn revert_bytes(data: &RawJson) -> Option<Vec<u8>> {
    let text = Scan::whole(data.text()?).ok()?;
    hex::decode(shape::byte_digits(text).ok()?).ok()
}

/// The reason in the output of a revert: `Error(string)` or `Panic(uint256)`, in geth's words.
fn revert_reason(output: &[u8]) -> Option<String> {
    let (selector, rest) = output.split_first_chunk::<4>()?;
    match selector {
        [0x08, 0xc3, 0x79, 0xa0] => {
            let (offset, rest) = rest.split_first_chunk::<32>()?;
            let (length, text) = rest.split_first_chunk::<32>()?;
            if to_usize(offset)? != 32 {
                return None;
            }
            String::from_utf8(text.get(..to_usize(length)?)?.to_vec()).ok()
        }
        [0x4e, 0x48, 0x7b, 0x71] => {
            let reason = match to_usize(rest.first_chunk::<32>()?)? {
                0x00 => "generic panic",
                0x01 => "assert(false)",
                0x11 => "arithmetic underflow or overflow",
                0x12 => "division or modulo by zero",
                0x21 => "enum overflow",
                0x22 => "invalid encoded storage byte array accessed",
                0x31 => "out-of-bounds array access; popping on an empty array",
                0x32 => "out-of-bounds access of an array or bytesN",
                0x41 => "out of memory",
                0x51 => "uninitialized function",
                _ => return None,
            };
            Some(reason.to_owned())
        }
        _ => None,
    }
}

/// The number in a word, if it is below 2^16.
fn to_usize(word: &[u8; 32]) -> Option<usize> {
    let [zeros @ .., high, low] = word;
    (zeros == &[0; 30]).then(|| usize::from(u16::from_be_bytes([*high, *low])))
}
