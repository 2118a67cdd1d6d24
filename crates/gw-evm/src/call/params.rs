//! Reads the parts of parameters: positions, members, quantities, words and bytes.
//!
//! Values are read from borrowed text. An error names the member, never its value.

use crate::error::ParamError;
use alloy_primitives::{Address, B256, Bytes, U256, hex};
use serde::de::{Deserializer, IgnoredAny, MapAccess, SeqAccess, Visitor};
use serde_json::value::RawValue;
use std::{borrow::Cow, fmt};

pub(super) type Result<T> = std::result::Result<T, ParamError>;

pub(super) fn must_be(what: &str, expected: &str) -> ParamError {
    ParamError::invalid(format!("{what} must be {expected}"))
}

pub(super) fn is_null(raw: &RawValue) -> bool {
    raw.get() == "null"
}

/// Positional parameters; `null` counts as absent.
#[derive(Debug, Default)]
pub(super) struct Args<'a>([Option<&'a RawValue>; Args::MAX]);

impl<'a> Args<'a> {
    /// The most positions of any method.
    const MAX: usize = 4;

    /// Reads the array. Values other than `null` at or after position `arity` are rejected.
    pub(super) fn read(params: Option<&'a RawValue>, arity: usize) -> Result<Self> {
        let Some(params) = params.filter(|raw| !is_null(raw)) else {
            return Ok(Self::default());
        };
        let mut json = serde_json::Deserializer::from_str(params.get());
        let (args, count) = json
            .deserialize_seq(ArgsVisitor)
            .map_err(|_| must_be("params", "an array"))?;
        if count > arity {
            return Err(ParamError::invalid(format!(
                "too many parameters, want at most {arity}"
            )));
        }
        Ok(args)
    }

    pub(super) fn optional(&self, position: usize) -> Option<&'a RawValue> {
        self.0.get(position).copied().flatten()
    }

    pub(super) fn required(&self, position: usize) -> Result<&'a RawValue> {
        self.optional(position)
            .ok_or_else(|| ParamError::invalid(format!("missing value for parameter {position}")))
    }
}

struct ArgsVisitor;

impl<'a> Visitor<'a> for ArgsVisitor {
    /// The arguments, and the position after the last one that is not `null`.
    type Value = (Args<'a>, usize);

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("an array")
    }

    fn visit_seq<A: SeqAccess<'a>>(self, mut seq: A) -> std::result::Result<Self::Value, A::Error> {
        let (mut args, mut count, mut position) = (Args::default(), 0, 0);
        while let Some(raw) = seq.next_element::<&'a RawValue>()? {
            position += 1;
            if !is_null(raw) {
                count = position;
                if let Some(slot) = args.0.get_mut(position - 1) {
                    *slot = Some(raw);
                }
            }
        }
        Ok((args, count))
    }
}

/// The members of an object, in the order of `names`. `null` counts as absent, and unknown members are ignored. A
/// name that differs only in case is rejected, because some nodes would read it (decision 39, B3).
pub(super) fn members<'a, const N: usize>(
    raw: &'a RawValue,
    what: &str,
    names: &[&str; N],
) -> Result<[Option<&'a RawValue>; N]> {
    let mut json = serde_json::Deserializer::from_str(raw.get());
    json.deserialize_map(MembersVisitor { names })
        .map_err(|_| must_be(what, "an object"))?
        .map_err(|name| ParamError::invalid(format!("{what}: write `{name}` once and in exactly this case")))
}

struct MembersVisitor<'n, const N: usize> {
    names: &'n [&'n str; N],
}

impl<'a, 'n, const N: usize> Visitor<'a> for MembersVisitor<'n, N> {
    type Value = std::result::Result<[Option<&'a RawValue>; N], &'n str>;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("an object")
    }

    fn visit_map<A: MapAccess<'a>>(self, mut map: A) -> std::result::Result<Self::Value, A::Error> {
        let mut values = [None; N];
        let mut fault = None;
        while let Some(key) = map.next_key::<Key<'a>>()? {
            let entry = self
                .names
                .iter()
                .zip(&mut values)
                .find(|(name, _)| name.eq_ignore_ascii_case(&key.0));
            match entry {
                None => {
                    map.next_value::<IgnoredAny>()?;
                }
                Some((name, slot)) => {
                    let is_repeated = slot.replace(map.next_value::<&'a RawValue>()?).is_some();
                    if is_repeated || *name != key.0 {
                        fault = Some(*name);
                    }
                }
            }
        }
        Ok(match fault {
            Some(name) => Err(name),
            None => Ok(values.map(|slot| slot.filter(|raw| !is_null(raw)))),
        })
    }
}

#[derive(serde::Deserialize)]
struct Key<'a>(#[serde(borrow)] Cow<'a, str>);

/// The elements of an array.
pub(super) fn elements<'a>(raw: &'a RawValue, what: &str) -> Result<Vec<&'a RawValue>> {
    serde_json::from_str(raw.get()).map_err(|_| must_be(what, "an array"))
}

/// The text of a string. Strings with escapes are not accepted, because no valid value needs them.
pub(super) fn text(raw: &RawValue) -> Option<&str> {
    raw.get()
        .strip_prefix('"')?
        .strip_suffix('"')
        .filter(|text| !text.contains('\\'))
}

fn hex_digits(raw: &RawValue) -> Option<&str> {
    let text = text(raw)?;
    let digits = text.strip_prefix("0x").or_else(|| text.strip_prefix("0X"))?;
    digits.bytes().all(|byte| byte.is_ascii_hexdigit()).then_some(digits)
}

/// A hex quantity of at most 32 bytes. Leading zeros are accepted, because wallets send them and the value is encoded
/// anew.
pub(super) fn quantity(raw: &RawValue, what: &str) -> Result<U256> {
    hex_digits(raw)
        .filter(|digits| (1..=64).contains(&digits.len()))
        .and_then(|digits| U256::from_str_radix(digits, 16).ok())
        .ok_or_else(|| must_be(what, "a hex quantity"))
}

/// A quantity that fits `T`.
pub(super) fn number<T: TryFrom<U256>>(raw: &RawValue, what: &str) -> Result<T> {
    T::try_from(quantity(raw, what)?).map_err(|_| ParamError::invalid(format!("{what} is too large")))
}

/// Exactly `N` bytes.
fn fixed<const N: usize>(raw: &RawValue) -> Option<[u8; N]> {
    let digits = hex_digits(raw)?;
    let mut bytes = [0; N];
    hex::decode_to_slice(digits, &mut bytes).ok()?;
    Some(bytes)
}

pub(super) fn address(raw: &RawValue, what: &str) -> Result<Address> {
    fixed(raw)
        .map(Address::from)
        .ok_or_else(|| must_be(what, "an address of 20 bytes"))
}

pub(super) fn word(raw: &RawValue, what: &str) -> Result<B256> {
    fixed(raw)
        .map(B256::from)
        .ok_or_else(|| must_be(what, "32 bytes of hex"))
}

pub(super) fn bytes(raw: &RawValue, what: &str) -> Result<Bytes> {
    hex_digits(raw)
        .and_then(|digits| hex::decode(digits).ok())
        .map(Bytes::from)
        .ok_or_else(|| must_be(what, "hex bytes"))
}

pub(super) fn boolean(raw: &RawValue, what: &str) -> Result<bool> {
    match raw.get() {
        "true" => Ok(true),
        "false" => Ok(false),
        _ => Err(must_be(what, "true or false")),
    }
}

/// A storage slot, and whether the caller wrote all 32 bytes.
pub(super) fn slot(raw: &RawValue, what: &str) -> Result<(B256, bool)> {
    let is_full_word = hex_digits(raw).is_some_and(|digits| digits.len() == 64);
    Ok((B256::from(quantity(raw, what)?), is_full_word))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn raw(json: &str) -> &RawValue {
        serde_json::from_str(json).unwrap()
    }

    #[test]
    fn j5_addresses_are_exactly_20_bytes() {
        let good = format!("\"0x{}\"", "aB".repeat(20));
        assert_eq!(address(raw(&good), "to").unwrap(), Address::repeat_byte(0xab));
        for digits in [
            "ab".repeat(19),
            "ab".repeat(21),
            format!("{}a", "ab".repeat(19)),
            "zz".repeat(20),
        ] {
            assert!(address(raw(&format!("\"0x{digits}\"")), "to").is_err());
        }
        assert!(
            address(raw(&format!("\"{}\"", "ab".repeat(20))), "to").is_err(),
            "needs 0x"
        );
        assert!(
            address(raw(&format!("\"0x\\u0061b{}\"", "ab".repeat(19))), "to").is_err(),
            "no escapes"
        );
        assert!(address(raw("\"\""), "to").is_err());
        assert!(address(raw("1"), "to").is_err());
    }

    #[test]
    fn j5_quantities() {
        assert_eq!(quantity(raw("\"0x0\""), "q").unwrap(), U256::ZERO);
        assert_eq!(quantity(raw("\"0x000fF\""), "q").unwrap(), U256::from(255));
        assert_eq!(
            quantity(raw(&format!("\"0x{}\"", "f".repeat(64))), "q").unwrap(),
            U256::MAX
        );
        for bad in ["\"0x\"", "\"1\"", "1", "\"0x_1\"", "\"0x 1\"", "\"0x-1\"", "true", "{}"] {
            assert!(quantity(raw(bad), "q").is_err(), "{bad}");
        }
        assert!(quantity(raw(&format!("\"0x{}\"", "0".repeat(65))), "q").is_err());
        assert!(number::<u64>(raw("\"0x10000000000000000\""), "q").is_err());
        assert_eq!(number::<u64>(raw("\"0xffffffffffffffff\""), "q").unwrap(), u64::MAX);
    }

    #[test]
    fn decision_39_members_unknown_null_and_case() {
        let [to, from] = members(
            raw(r#"{"to":"a","zzz":{"deep":[1]},"from":null}"#),
            "call",
            &["to", "from"],
        )
        .unwrap();
        assert_eq!(to.unwrap().get(), "\"a\"");
        assert!(from.is_none());
        assert!(members(raw(r#"{"To":"a"}"#), "call", &["to"]).is_err());
        assert!(members(raw(r#"{"TO":null}"#), "call", &["to"]).is_err(), "even null");
        assert!(members(raw(r#"{"to":"a","to":"b"}"#), "call", &["to"]).is_err());
        assert!(members(raw("[]"), "call", &["to"]).is_err());
        assert!(members(raw(r#"{"\u0074o":"a"}"#), "call", &["to"]).unwrap()[0].is_some());
    }

    #[test]
    fn extra_positions_are_refused_unless_null() {
        assert!(Args::read(Some(raw("[1,null,null,null,null,null,null]")), 1).is_ok());
        assert!(Args::read(Some(raw("[1,2]")), 1).is_err());
        assert!(Args::read(Some(raw("[null,null,null,null,null,2]")), 3).is_err());
        assert!(Args::read(Some(raw("[]")), 1).unwrap().required(0).is_err());
        assert!(Args::read(None, 0).is_ok());
        assert!(Args::read(Some(raw("{}")), 1).is_err());
    }
}
