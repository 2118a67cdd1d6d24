//! JSON with unique member names: an object that has two members of the same name is rejected, at every depth.
//!
//! Parsers differ in which of two such members they keep, but a signed message must have only one reading.

use serde::de::{DeserializeSeed, Deserializer, Error as _, MapAccess, SeqAccess, Visitor};
use serde_json::{Map, Number, Value};

/// Why bytes are rejected.
#[derive(Debug, thiserror::Error)]
#[error("not JSON, or an object with a member named twice")]
pub struct JsonError(#[source] serde_json::Error);

/// Parses one JSON text.
///
/// # Errors
/// [`JsonError`] if the bytes are not one JSON text, or if an object has two members of the same name.
pub fn read(bytes: &[u8]) -> Result<Value, JsonError> {
    let mut deserializer = serde_json::Deserializer::from_slice(bytes);
    let value = UniqueMembers.deserialize(&mut deserializer).map_err(JsonError)?;
    deserializer.end().map_err(JsonError)?;
    Ok(value)
}

struct UniqueMembers;

impl<'de> DeserializeSeed<'de> for UniqueMembers {
    type Value = Value;

    fn deserialize<D: Deserializer<'de>>(self, deserializer: D) -> Result<Value, D::Error> {
        deserializer.deserialize_any(self)
    }
}

impl<'de> Visitor<'de> for UniqueMembers {
    type Value = Value;

    fn expecting(&self, f: &mut core::fmt::Formatter<'_>) -> core::fmt::Result {
        f.write_str("JSON whose objects name each member once")
    }

    fn visit_unit<E>(self) -> Result<Value, E> {
        Ok(Value::Null)
    }

    fn visit_bool<E>(self, value: bool) -> Result<Value, E> {
        Ok(Value::Bool(value))
    }

    fn visit_i64<E>(self, value: i64) -> Result<Value, E> {
        Ok(Value::Number(value.into()))
    }

    fn visit_u64<E>(self, value: u64) -> Result<Value, E> {
        Ok(Value::Number(value.into()))
    }

    fn visit_f64<E>(self, value: f64) -> Result<Value, E> {
        Ok(Number::from_f64(value).map_or(Value::Null, Value::Number))
    }

    fn visit_str<E>(self, value: &str) -> Result<Value, E> {
        Ok(Value::String(value.to_owned()))
    }

    fn visit_string<E>(self, value: String) -> Result<Value, E> {
        Ok(Value::String(value))
    }

    fn visit_seq<A: SeqAccess<'de>>(self, mut items: A) -> Result<Value, A::Error> {
        let mut list = Vec::new();
        while let Some(item) = items.next_element_seed(Self)? {
            list.push(item);
        }
        Ok(Value::Array(list))
    }

    fn visit_map<A: MapAccess<'de>>(self, mut members: A) -> Result<Value, A::Error> {
        let mut map = Map::new();
        while let Some(name) = members.next_key::<String>()? {
            if map.contains_key(&name) {
                return Err(A::Error::custom("a member is named twice"));
            }
            let value = members.next_value_seed(Self)?;
            map.insert(name, value);
        }
        Ok(Value::Object(map))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn zk30_duplicate_names_are_refused_at_every_depth() {
        for text in [
            r#"{"a":1,"a":1}"#,
            r#"{"a":{"b":1,"c":[{"d":1,"d":2}]}}"#,
            r#"{"a":1,"\u0061":2}"#,
            r#"[{"a":1,"a":2}]"#,
            "{} {}",
            "{",
            "",
        ] {
            assert!(read(text.as_bytes()).is_err(), "{text}");
        }
        assert!(read(&b"[".repeat(100_000)).is_err());
    }

    #[test]
    fn everything_else_reads_as_usual() {
        let text = r#"{"a":[1,-2,3.5,true,null,"x\n"],"b":{"a":{}}, "c":18446744073709551615}"#;
        assert_eq!(
            read(text.as_bytes()).unwrap(),
            serde_json::from_str::<Value>(text).unwrap()
        );
    }
}
