//! JSON numbers with their exact text (CO-17).
//!
//! Both directions need the text of a JSON document. A `serde_json::Value` in between would turn numbers into floats;
//! so would `#[serde(flatten)]` and untagged enums.

use crate::Decimal;
use serde::{Deserialize, Deserializer, Serialize as _, Serializer, de, ser};
use serde_json::value::RawValue;

/// Writes a JSON number.
pub(crate) fn serialize_number<S: Serializer>(text: String, serializer: S) -> Result<S::Ok, S::Error> {
    RawValue::from_string(text)
        .map_err(ser::Error::custom)?
        .serialize(serializer)
}

/// Reads the text of a JSON value.
pub(crate) fn deserialize_raw<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Box<RawValue>, D::Error> {
    Box::<RawValue>::deserialize(deserializer)
}

impl<'de> Deserialize<'de> for Decimal {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        Self::from_json(deserialize_raw(deserializer)?.get()).map_err(de::Error::custom)
    }
}
