//! A call nobody examines (spec/20 N3): what can be told of its parameters is which addresses they hold.

use super::{
    Call, ParsedCall,
    params::{Result, is_null, must_be},
};
use crate::{error::ParamError, visible_to::VisibleTo};
use alloy_primitives::Address;
use serde_json::{Value, value::RawValue};

/// The most text of one call: each place in it is looked up.
const MAX_PARAMS: usize = 128 * 1024;

/// A call of a method that passes through unexamined.
#[derive(Clone, Debug, PartialEq)]
pub struct Unexamined {
    /// The name the node is asked by.
    pub method: String,
    /// The parameters, an array.
    pub params: Vec<Value>,
}

/// An address that parameters hold.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Mention {
    /// Written as one: twenty bytes by themselves, or the end of a word that is no number anybody counts to.
    Address(Address),
    /// Twenty bytes in the middle of something; nearly always part of a number, a hash or code.
    Bytes(Address),
}

/// Reads the parameters of a method beside the registry; they are written anew for the node.
pub fn unexamined(method: &str, params: Option<&RawValue>) -> Result<ParsedCall> {
    let params = match params.filter(|raw| !is_null(raw)) {
        None => Vec::new(),
        Some(raw) if raw.get().len() > MAX_PARAMS => return Err(ParamError::invalid("params are too long")),
        Some(raw) => serde_json::from_str(raw.get()).map_err(|_| must_be("params", "an array"))?,
    };
    let call = Call::Unexamined(Box::new(Unexamined {
        method: method.to_owned(),
        params,
    }));
    Ok(ParsedCall {
        call,
        visible_to: VisibleTo::default(),
    })
}

impl Unexamined {
    /// Every address the parameters hold, in whatever string or name of a member, to the first that is an error.
    pub fn mentions<E>(
        &self,
        mut see: impl FnMut(Mention) -> std::result::Result<(), E>,
    ) -> std::result::Result<(), E> {
        self.params.iter().try_for_each(|value| in_value(value, &mut see))
    }
}

fn in_value<E>(
    value: &Value,
    see: &mut impl FnMut(Mention) -> std::result::Result<(), E>,
) -> std::result::Result<(), E> {
    match value {
        Value::Null | Value::Bool(_) | Value::Number(_) => Ok(()),
        Value::String(text) => in_text(text, see),
        Value::Array(values) => values.iter().try_for_each(|value| in_value(value, see)),
        Value::Object(members) => members.iter().try_for_each(|(name, value)| {
            in_text(name, see)?;
            in_value(value, see)
        }),
    }
}

/// An address has forty digits.
const DIGITS: usize = 40;

/// Runs of hex digits, whatever stands around them.
fn in_text<E>(text: &str, see: &mut impl FnMut(Mention) -> std::result::Result<(), E>) -> std::result::Result<(), E> {
    text.as_bytes()
        .split(|byte| !byte.is_ascii_hexdigit())
        .try_for_each(|run| in_run(run, see))
}

fn in_run<E>(run: &[u8], see: &mut impl FnMut(Mention) -> std::result::Result<(), E>) -> std::result::Result<(), E> {
    // A number is written without its leading zeros, and some readers fill them in.
    if (MIN_DIGITS..DIGITS).contains(&run.len()) {
        let mut filled = vec![b'0'; DIGITS - run.len()];
        filled.extend_from_slice(run);
        return address(&filled).map_or(Ok(()), |address| see(Mention::Bytes(address)));
    }
    if run.len() == DIGITS {
        return address(run).map_or(Ok(()), |address| see(Mention::Address(address)));
    }
    for at in 0..(run.len() + 1).saturating_sub(DIGITS) {
        let window = run.get(at..at + DIGITS).and_then(address);
        let Some(found) = window else { continue };
        see(if is_word(run, at) && !is_number(found) {
            Mention::Address(found)
        } else {
            Mention::Bytes(found)
        })?;
    }
    Ok(())
}

/// Shorter runs are no address anybody has.
const MIN_DIGITS: usize = 32;

/// Whether the digits at `at` end a 32-byte word of zeros and an address: of arguments, with or without a selector
/// before them.
fn is_word(run: &[u8], at: usize) -> bool {
    const ZEROS: usize = 24;
    const WORD: usize = 64;
    const SELECTOR: usize = 8;
    let Some(start) = at.checked_sub(ZEROS) else {
        return false;
    };
    let aligned = start % WORD == 0 || start % WORD == SELECTOR;
    aligned
        && run
            .get(start..at)
            .is_some_and(|zeros| zeros.iter().all(|digit| *digit == b'0'))
}

/// Below 2^128: an amount, not an address. Somebody may own such an address all the same.
fn is_number(address: Address) -> bool {
    address.first_chunk::<4>() == Some(&[0; 4])
}

fn address(digits: &[u8]) -> Option<Address> {
    let mut bytes = [0_u8; 20];
    alloy_primitives::hex::decode_to_slice(digits, &mut bytes).ok()?;
    Some(Address::from(bytes))
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    const WHO: &str = "f39fd6e51aad88f6f4ce6ab8827279cfffb92266";

    fn mentions(params: &Value) -> Vec<Mention> {
        let raw = serde_json::value::to_raw_value(params).unwrap();
        let ParsedCall {
            call: Call::Unexamined(call),
            ..
        } = unexamined("linea_x", Some(&raw)).unwrap()
        else {
            panic!("another call")
        };
        let mut seen = Vec::new();
        let all: std::result::Result<(), ()> = call.mentions(|mention| {
            seen.push(mention);
            Ok(())
        });
        all.unwrap();
        seen
    }

    fn who() -> Address {
        WHO.parse().unwrap()
    }

    #[test]
    fn n3_an_address_is_found_however_it_is_written() {
        let word = format!("{}{WHO}", "0".repeat(24));
        for params in [
            json!([format!("0x{WHO}")]),
            json!([WHO]),
            json!([WHO.to_uppercase()]),
            json!([{"deep": [[{"er": format!("0X{WHO}")}]]}]),
            json!([{format!("0x{WHO}"): {}}]),
            json!([format!("did:ethr:0x{WHO}#key")]),
            json!([format!("0x{word}")]),
            json!([format!("0x70a08231{word}")]),
            json!([format!("0xa9059cbb{}{word}", "0".repeat(64))]),
        ] {
            assert!(mentions(&params).contains(&Mention::Address(who())), "{params}");
        }
    }

    #[test]
    fn n3_twenty_bytes_in_the_middle_of_something_may_be_one() {
        for text in [format!("0xff{WHO}00"), format!("0xfff{WHO}0"), format!("0x{WHO}{WHO}")] {
            assert!(mentions(&json!([text])).contains(&Mention::Bytes(who())), "{text}");
        }
        let short = Address::with_last_byte(9).with_high(7);
        assert!(mentions(&json!([format!("{short:#x}")])).contains(&Mention::Address(short)));
    }

    #[test]
    fn n3_numbers_and_hashes_are_no_addresses() {
        let amount = format!("0x{:064x}", 10_u128.pow(30));
        for params in [
            json!([amount]),
            json!(["0x1", "latest", 5, null, true]),
            json!([format!("0x{}", "ab".repeat(32))]),
        ] {
            assert!(
                mentions(&params).iter().all(|found| matches!(found, Mention::Bytes(_))),
                "{params}"
            );
        }
    }

    trait WithHigh {
        fn with_high(self, byte: u8) -> Self;
    }

    impl WithHigh for Address {
        fn with_high(mut self, byte: u8) -> Self {
            self.0[0] = byte;
            self
        }
    }

    #[test]
    fn n3_parameters_are_an_array_of_bearable_length() {
        let raw = |text: &str| serde_json::value::RawValue::from_string(text.to_owned()).unwrap();
        assert!(unexamined("linea_x", Some(&raw("{}"))).is_err());
        assert!(unexamined("linea_x", Some(&raw("null"))).is_ok());
        let long = format!("[\"{}\"]", "0".repeat(MAX_PARAMS));
        assert!(unexamined("linea_x", Some(&raw(&long))).is_err());
    }
}
