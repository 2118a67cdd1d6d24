//! Passthrough calls, which no rule examines (spec/20 N3). The gateway only finds the addresses in their parameters.

use super::{
    Call, ParsedCall,
    params::{Result, is_null, must_be},
};
use crate::{error::ParamError, visible_to::VisibleTo};
use alloy_primitives::Address;
use serde_json::{Value, value::RawValue};

/// Maximum length of the parameters in bytes; it bounds the search for addresses.
const MAX_PARAMS: usize = 128 * 1024;

/// A call of a method that passes through unexamined.
#[derive(Clone, Debug, PartialEq)]
pub struct Passthrough {
    /// The method name in the upstream request.
    pub method: String,
    /// The positional parameters.
    pub params: Vec<Value>,
}

/// An address in the parameters.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum AddressInParams {
    /// An address by its form: exactly twenty bytes, or the end of a 32-byte word whose value is too large for an
    /// amount.
    Address(Address),
    /// Twenty bytes within longer data; almost always part of a number, a hash or code.
    Bytes(Address),
}

/// Reads the parameters of a passthrough method; the upstream request encodes them anew.
///
/// # Errors
///
/// A [`ParamError`] if the parameters are too long or not an array.
pub fn passthrough(method: &str, params: Option<&RawValue>) -> Result<ParsedCall> {
    let params = match params.filter(|raw| !is_null(raw)) {
        None => Vec::new(),
        Some(raw) if raw.get().len() > MAX_PARAMS => return Err(ParamError::invalid("params are too long")),
        Some(raw) => serde_json::from_str(raw.get()).map_err(|_| must_be("params", "an array"))?,
    };
    let call = Call::Passthrough(Box::new(Passthrough {
        method: method.to_owned(),
        params,
    }));
    Ok(ParsedCall {
        call,
        visible_to: VisibleTo::default(),
    })
}

impl Passthrough {
    /// Calls `visit` for every address in the parameters, in all strings and member names.
    ///
    /// # Errors
    ///
    /// The first error of `visit`, which ends the search.
    pub fn mentions<E>(
        &self,
        mut visit: impl FnMut(AddressInParams) -> std::result::Result<(), E>,
    ) -> std::result::Result<(), E> {
        self.params.iter().try_for_each(|value| in_value(value, &mut visit))
    }
}

fn in_value<E>(
    value: &Value,
    visit: &mut impl FnMut(AddressInParams) -> std::result::Result<(), E>,
) -> std::result::Result<(), E> {
    match value {
        Value::Null | Value::Bool(_) | Value::Number(_) => Ok(()),
        Value::String(text) => in_text(text, visit),
        Value::Array(values) => values.iter().try_for_each(|value| in_value(value, visit)),
        Value::Object(members) => members.iter().try_for_each(|(name, value)| {
            in_text(name, visit)?;
            in_value(value, visit)
        }),
    }
}

/// Number of hex digits of an address.
const DIGITS: usize = 40;

/// Visits the addresses in every run of hex digits of `text`, regardless of the text between the runs.
fn in_text<E>(
    text: &str,
    visit: &mut impl FnMut(AddressInParams) -> std::result::Result<(), E>,
) -> std::result::Result<(), E> {
    text.as_bytes()
        .split(|byte| !byte.is_ascii_hexdigit())
        .try_for_each(|run| in_run(run, visit))
}

fn in_run<E>(
    run: &[u8],
    visit: &mut impl FnMut(AddressInParams) -> std::result::Result<(), E>,
) -> std::result::Result<(), E> {
    // A number is written without leading zeros, and some nodes read such a number as an address.
    if (MIN_DIGITS..DIGITS).contains(&run.len()) {
        let mut padded = vec![b'0'; DIGITS - run.len()];
        padded.extend_from_slice(run);
        return address(&padded).map_or(Ok(()), |address| visit(AddressInParams::Bytes(address)));
    }
    if run.len() == DIGITS {
        return address(run).map_or(Ok(()), |address| visit(AddressInParams::Address(address)));
    }
    for start in 0..(run.len() + 1).saturating_sub(DIGITS) {
        let window = run.get(start..start + DIGITS).and_then(address);
        let Some(candidate) = window else { continue };
        visit(if is_word(run, start) && !is_number(candidate) {
            AddressInParams::Address(candidate)
        } else {
            AddressInParams::Bytes(candidate)
        })?;
    }
    Ok(())
}

/// Minimum number of hex digits of an address without its leading zeros. No address in use has more than eight
/// leading zeros.
const MIN_DIGITS: usize = 32;

/// Whether the address at digit `position` is the end of a 32-byte word that is zero before the address. Words are
/// aligned to the start of the run, or follow a selector there.
fn is_word(run: &[u8], position: usize) -> bool {
    const ZEROS: usize = 24;
    const WORD: usize = 64;
    const SELECTOR: usize = 8;
    let Some(start) = position.checked_sub(ZEROS) else {
        return false;
    };
    let aligned = start % WORD == 0 || start % WORD == SELECTOR;
    aligned
        && run
            .get(start..position)
            .is_some_and(|zeros| zeros.iter().all(|digit| *digit == b'0'))
}

/// Whether the value is below 2^128, so that it is probably an amount and not an address. Such an address may still
/// exist.
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

    const ADDRESS: &str = "f39fd6e51aad88f6f4ce6ab8827279cfffb92266";

    fn mentions(params: &Value) -> Vec<AddressInParams> {
        let raw = serde_json::value::to_raw_value(params).unwrap();
        let ParsedCall {
            call: Call::Passthrough(call),
            ..
        } = passthrough("linea_x", Some(&raw)).unwrap()
        else {
            panic!("not a passthrough call")
        };
        let mut seen = Vec::new();
        let result: std::result::Result<(), ()> = call.mentions(|mention| {
            seen.push(mention);
            Ok(())
        });
        result.unwrap();
        seen
    }

    fn sample_address() -> Address {
        ADDRESS.parse().unwrap()
    }

    #[test]
    fn n3_an_address_is_found_however_it_is_written() {
        let word = format!("{}{ADDRESS}", "0".repeat(24));
        for params in [
            json!([format!("0x{ADDRESS}")]),
            json!([ADDRESS]),
            json!([ADDRESS.to_uppercase()]),
            json!([{"deep": [[{"er": format!("0X{ADDRESS}")}]]}]),
            json!([{format!("0x{ADDRESS}"): {}}]),
            json!([format!("did:ethr:0x{ADDRESS}#key")]),
            json!([format!("0x{word}")]),
            json!([format!("0x70a08231{word}")]),
            json!([format!("0xa9059cbb{}{word}", "0".repeat(64))]),
        ] {
            assert!(
                mentions(&params).contains(&AddressInParams::Address(sample_address())),
                "{params}"
            );
        }
    }

    #[test]
    fn n3_twenty_bytes_within_longer_data_may_be_an_address() {
        for text in [
            format!("0xff{ADDRESS}00"),
            format!("0xfff{ADDRESS}0"),
            format!("0x{ADDRESS}{ADDRESS}"),
        ] {
            assert!(
                mentions(&json!([text])).contains(&AddressInParams::Bytes(sample_address())),
                "{text}"
            );
        }
        let short = Address::with_last_byte(9).with_high(7);
        assert!(mentions(&json!([format!("{short:#x}")])).contains(&AddressInParams::Address(short)));
    }

    #[test]
    fn n3_numbers_and_hashes_are_not_addresses() {
        let amount = format!("0x{:064x}", 10_u128.pow(30));
        for params in [
            json!([amount]),
            json!(["0x1", "latest", 5, null, true]),
            json!([format!("0x{}", "ab".repeat(32))]),
        ] {
            assert!(
                mentions(&params)
                    .iter()
                    .all(|address| matches!(address, AddressInParams::Bytes(_))),
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
    fn n3_parameters_are_an_array_of_limited_length() {
        let raw = |text: &str| serde_json::value::RawValue::from_string(text.to_owned()).unwrap();
        assert!(passthrough("linea_x", Some(&raw("{}"))).is_err());
        assert!(passthrough("linea_x", Some(&raw("null"))).is_ok());
        let long = format!("[\"{}\"]", "0".repeat(MAX_PARAMS));
        assert!(passthrough("linea_x", Some(&raw(&long))).is_err());
    }
}
