//! Encodes values of a claim as field elements, by the data type that the schema gives their field (spec/10 section
//! 2.7, table "Encodings").

use ark_bn254::Fr;
use serde_json::Value;
use time::format_description::well_known::Rfc3339;
use time::macros::format_description;
use time::{Date, OffsetDateTime};

use crate::{hash, poseidon};

const XSD: &str = "http://www.w3.org/2001/XMLSchema#";

/// The data type of a field.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Datatype {
    /// `xsd:boolean`.
    Boolean,
    /// `xsd:integer`, and its non-negative, positive, non-positive and negative subtypes.
    Integer,
    /// `xsd:dateTime`.
    DateTime,
    /// `xsd:double`.
    Double,
    /// `xsd:string`, any other type, or no type.
    Text,
}

impl Datatype {
    /// The data type with this IRI.
    #[must_use]
    pub fn from_iri(iri: Option<&str>) -> Self {
        match iri.and_then(|iri| iri.strip_prefix(XSD)) {
            Some("boolean") => Self::Boolean,
            Some("integer" | "nonNegativeInteger" | "positiveInteger" | "nonPositiveInteger" | "negativeInteger") => {
                Self::Integer
            }
            Some("dateTime") => Self::DateTime,
            Some("double") => Self::Double,
            Some(_) | None => Self::Text,
        }
    }

    /// The name of the data type in error messages.
    #[must_use]
    pub fn name(self) -> &'static str {
        match self {
            Self::Boolean => "boolean",
            Self::Integer => "integer",
            Self::DateTime => "dateTime",
            Self::Double => "double",
            Self::Text => "string",
        }
    }
}

/// Why a value has no encoding.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum EncodeError {
    /// The value is not of the field's type.
    #[error("`{value}` is no {datatype}", datatype = .datatype.name())]
    NotA {
        /// The value as written.
        value: String,
        /// The type that the schema requires.
        datatype: Datatype,
    },
    /// Circuits compare non-negative numbers only.
    #[error("`{0}` is negative: circuits compare non-negative numbers only")]
    Negative(String),
    /// The number does not fit into the scalar field.
    #[error("`{0}` is too large")]
    TooLarge(String),
    /// The text is empty and cannot be hashed.
    #[error("an empty text cannot be compared with")]
    Empty,
}

/// Encodes a value as the circuits compare it.
///
/// # Errors
/// [`EncodeError`] if the value is not of the type, negative, too large or empty.
pub fn value(value: &Value, datatype: Datatype) -> Result<Fr, EncodeError> {
    let not_a = || EncodeError::NotA {
        value: plain(value),
        datatype,
    };
    match datatype {
        Datatype::Boolean => boolean(value)
            .map(|truth| poseidon::hash_one(Fr::from(truth)))
            .ok_or_else(not_a),
        Datatype::Integer => integer(value).unwrap_or_else(|| Err(not_a())),
        Datatype::DateTime => {
            let nanoseconds = value.as_str().and_then(nanoseconds).ok_or_else(not_a)?;
            u128::try_from(nanoseconds)
                .map(Fr::from)
                .map_err(|_| EncodeError::Negative(plain(value)))
        }
        Datatype::Double => {
            let number = match value {
                Value::String(text) => text.parse().ok(),
                other => other.as_f64(),
            };
            let number: f64 = number.filter(|n: &f64| n.is_finite()).ok_or_else(not_a)?;
            if number < 0.0 {
                return Err(EncodeError::Negative(plain(value)));
            }
            hash::bytes(canonical_double(number).as_bytes()).ok_or(EncodeError::Empty)
        }
        Datatype::Text => match value {
            Value::String(_) | Value::Number(_) | Value::Bool(_) => {
                hash::bytes(plain(value).as_bytes()).ok_or(EncodeError::Empty)
            }
            Value::Null | Value::Array(_) | Value::Object(_) => Err(not_a()),
        },
    }
}

/// Reads a boolean in any of the forms that JSON-LD accepts.
#[must_use]
pub fn boolean(value: &Value) -> Option<bool> {
    match value {
        Value::Bool(truth) => Some(*truth),
        Value::String(text) => match text.as_str() {
            "true" | "1" => Some(true),
            "false" | "0" => Some(false),
            _ => None,
        },
        Value::Number(number) => match number.as_u64() {
            Some(1) => Some(true),
            Some(0) => Some(false),
            _ => None,
        },
        Value::Null | Value::Array(_) | Value::Object(_) => None,
    }
}

/// Returns `None` if the value is not an integer.
fn integer(value: &Value) -> Option<Result<Fr, EncodeError>> {
    let text = match value {
        Value::String(text) => text.clone(),
        // A JSON number beyond 64 bits has lost digits already, so it must be written as a string.
        Value::Number(number) if number.is_u64() || number.is_i64() => number.to_string(),
        Value::Number(_) | Value::Null | Value::Bool(_) | Value::Array(_) | Value::Object(_) => return None,
    };
    let digits = text.strip_prefix('-').unwrap_or(&text);
    if digits.is_empty() || !digits.bytes().all(|b| b.is_ascii_digit()) {
        return None;
    }
    if text.starts_with('-') {
        return Some(Err(EncodeError::Negative(text)));
    }
    let significant = digits.trim_start_matches('0');
    // 76 digits always fit. A longer number could be reduced modulo the field's order, and would compare as another
    // number.
    if significant.len() > 76 {
        return Some(Err(EncodeError::TooLarge(text)));
    }
    let ten = Fr::from(10_u8);
    Some(Ok(significant.bytes().fold(Fr::from(0_u8), |sum, digit| {
        sum * ten + Fr::from(digit.saturating_sub(b'0'))
    })))
}

fn nanoseconds(text: &str) -> Option<i128> {
    if let Ok(date) = Date::parse(text, format_description!("[year]-[month]-[day]")) {
        return Some(date.midnight().assume_utc().unix_timestamp_nanos());
    }
    OffsetDateTime::parse(text, &Rfc3339)
        .ok()
        .map(OffsetDateTime::unix_timestamp_nanos)
}

/// The canonical JSON-LD form of a double: at most 15 digits after the point, at least one.
fn canonical_double(number: f64) -> String {
    let text = format!("{number:.15e}");
    let Some((mantissa, exponent)) = text.split_once('e') else {
        return text;
    };
    let trimmed = mantissa.trim_end_matches('0');
    let zero = if trimmed.ends_with('.') { "0" } else { "" };
    format!("{trimmed}{zero}E{exponent}")
}

/// A scalar for error messages: a string without its quotes.
fn plain(value: &Value) -> String {
    value.as_str().map_or_else(|| value.to_string(), str::to_owned)
}
