//! Shapes of values that may be copied, and allowlisted objects of such values.
//!
//! A value that passes the check of its [`Shape`] contains only hex digits, literals and the structure that the shape
//! defines, so it can be copied unchanged.

use super::scan::{Malformed, Scan};
use crate::snapshot::Moment;
use alloy_primitives::{Address, B256, U256, hex};
use std::ops::Range;

/// 32 zero bytes.
pub(super) const ZERO_WORD: &str = "\"0x0000000000000000000000000000000000000000000000000000000000000000\"";

/// The shape of one member.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Shape {
    /// `"0x…"`, 1 to 64 digits, or `null`.
    Quantity,
    /// Whole bytes of any length.
    Bytes,
    /// Exactly this many bytes, or `null`.
    Fixed(usize),
    /// `true` or `false`.
    Flag,
    /// A list of 32-byte words, or `null`.
    Words,
    /// An EIP-2930 access list: addresses with storage keys, or `null`.
    AccessList,
    /// An EIP-7702 authorization list, or `null`.
    Authorizations,
    /// A value that is parsed separately or replaced, and never copied unchanged.
    Unchecked,
}

const ADDRESS: Shape = Shape::Fixed(20);
const WORD: Shape = Shape::Fixed(32);

impl Shape {
    pub(super) fn check(self, value: &str) -> Result<(), Malformed> {
        let is_valid = match self {
            Self::Quantity => {
                value == "null" || digits(value).is_some_and(|d| (1..=64).contains(&d.len()) && hex::check_raw(d))
            }
            Self::Bytes => digits(value).is_some_and(|d| d.len() % 2 == 0 && hex::check_raw(d)),
            Self::Fixed(length) => {
                value == "null"
                    || digits(value).is_some_and(|d| d.len() == length.saturating_mul(2) && hex::check_raw(d))
            }
            Self::Flag => matches!(value, "true" | "false"),
            Self::Words => value == "null" || Scan::new(value).list(|scan| word(WORD.read(scan)?).map(|_| ())).is_ok(),
            Self::AccessList => value == "null" || Scan::new(value).list(access_list_entry).is_ok(),
            Self::Authorizations => value == "null" || Scan::new(value).list(authorization).is_ok(),
            Self::Unchecked => true,
        };
        if is_valid { Ok(()) } else { Err(Malformed) }
    }

    /// Reads a value of this shape. A value of fixed length is not searched for its end: its length is known, and its
    /// digits contain no quote.
    pub(super) fn read<'a>(self, scan: &mut Scan<'a>) -> Result<&'a str, Malformed> {
        if let Self::Fixed(length) = self {
            let expected = scan.peek(length.saturating_mul(2).saturating_add(4));
            if let Some(value) = expected.filter(|value| self.check_some(value).is_ok()) {
                scan.step(value);
                return Ok(value);
            }
        }
        let value = scan.value()?;
        self.check(value)?;
        Ok(value)
    }

    /// As `check`, but `null` does not pass.
    fn check_some(self, value: &str) -> Result<(), Malformed> {
        if value == "null" {
            Err(Malformed)
        } else {
            self.check(value)
        }
    }
}

fn access_list_entry(scan: &mut Scan<'_>) -> Result<(), Malformed> {
    let table = [Field("address", ADDRESS), Field("storageKeys", Shape::Words)];
    let object = Object::read(scan, &table)?;
    if object.is_exact && object.values.iter().all(Option::is_some) {
        Ok(())
    } else {
        Err(Malformed)
    }
}

fn authorization(scan: &mut Scan<'_>) -> Result<(), Malformed> {
    let table = [
        Field("chainId", Shape::Quantity),
        Field("address", ADDRESS),
        Field("nonce", Shape::Quantity),
        Field("yParity", Shape::Quantity),
        Field("r", Shape::Quantity),
        Field("s", Shape::Quantity),
    ];
    let object = Object::read(scan, &table)?;
    if object.is_exact { Ok(()) } else { Err(Malformed) }
}

/// The text between `"0x` and `"`.
fn digits(value: &str) -> Option<&str> {
    value.strip_prefix("\"0x")?.strip_suffix('"')
}

/// Writes bytes as a JSON string of hex digits.
pub(super) fn write_bytes(bytes: &[u8], out: &mut String) {
    const DIGITS: [char; 16] = [
        '0', '1', '2', '3', '4', '5', '6', '7', '8', '9', 'a', 'b', 'c', 'd', 'e', 'f',
    ];
    let digit = |nibble: u8| DIGITS.get(usize::from(nibble)).copied().unwrap_or('0');
    out.push_str("\"0x");
    out.extend(bytes.iter().flat_map(|byte| [digit(byte >> 4), digit(byte & 0x0f)]));
    out.push('"');
}

/// Reads a 32-byte word.
pub(super) fn word(value: &str) -> Result<B256, Malformed> {
    let mut word = B256::ZERO;
    hex::decode_to_slice(digits(value).ok_or(Malformed)?, word.as_mut_slice()).map_err(|_| Malformed)?;
    Ok(word)
}

/// Reads an address.
pub(super) fn address(value: &str) -> Result<Address, Malformed> {
    let mut address = Address::ZERO;
    hex::decode_to_slice(digits(value).ok_or(Malformed)?, address.as_mut_slice()).map_err(|_| Malformed)?;
    Ok(address)
}

/// The digits of a byte string that passed [`Shape::Bytes`].
pub(super) fn byte_digits(value: &str) -> Result<&str, Malformed> {
    digits(value).ok_or(Malformed)
}

/// Reads a block number or an index in a block.
pub(super) fn number(value: &str) -> Result<u64, Malformed> {
    U256::from_str_radix(byte_digits(value)?, 16)
        .ok()
        .and_then(|number| number.try_into().ok())
        .ok_or(Malformed)
}

/// The moment for a `blockNumber` member, which may be missing or `null`.
pub(super) fn moment(number: Option<&str>) -> Result<Moment, Malformed> {
    match number {
        None => Ok(Moment::Unknown),
        Some("null") => Ok(Moment::Now),
        Some(text) => self::number(text).map(Moment::Block),
    }
}

/// A member that may be copied, by name and shape.
#[derive(Clone, Copy, Debug)]
pub(super) struct Field(pub(super) &'static str, pub(super) Shape);

/// The expected order of the members of one kind of object, learned from previous objects. It saves the search for each
/// member in the table.
#[derive(Clone, Copy, Debug)]
pub(super) struct Order<const N: usize> {
    /// Index in the table of the first member.
    first: usize,
    /// For each member, the index of the next one.
    next: [usize; N],
}

impl<const N: usize> Default for Order<N> {
    /// The order of the table.
    fn default() -> Self {
        Self {
            first: 0,
            next: core::array::from_fn(|index| index.saturating_add(1)),
        }
    }
}

/// An object read against its allowlist.
#[derive(Debug)]
pub(super) struct Object<'a, 't, const N: usize> {
    /// The object's own text.
    pub(super) text: &'a str,
    /// Whether it has no member beyond the allowlist.
    pub(super) is_exact: bool,
    table: &'t [Field; N],
    values: [Option<&'a str>; N],
}

impl<'a, 't, const N: usize> Object<'a, 't, N> {
    /// Reads the next value as an object. Members that are not in `table` are dropped (HD11); an object with a listed
    /// member twice or in another shape is malformed.
    pub(super) fn read(scan: &mut Scan<'a>, table: &'t [Field; N]) -> Result<Self, Malformed> {
        Self::read_in_order(scan, table, &mut Order::default())
    }

    /// Like [`Self::read`], for one of several objects that a node wrote in the same order.
    pub(super) fn read_in_order(
        scan: &mut Scan<'a>,
        table: &'t [Field; N],
        order: &mut Order<N>,
    ) -> Result<Self, Malformed> {
        let mut values = [None; N];
        let mut is_exact = true;
        let mut next = order.first;
        // The previous listed member, whose successor in `order` is corrected if the guess was wrong.
        let mut previous: Option<usize> = None;
        let text = scan.object(|scan| {
            let expected = table.get(next).filter(|field| scan.is_key(field.0));
            let index = match expected {
                Some(_) => next,
                None => {
                    let key = scan.key()?;
                    let Some(index) = table.iter().position(|field| field.0 == key) else {
                        is_exact = false;
                        return scan.value().map(|_| ());
                    };
                    *previous
                        .map_or(Some(&mut order.first), |previous| order.next.get_mut(previous))
                        .ok_or(Malformed)? = index;
                    index
                }
            };
            previous = Some(index);
            next = order.next.get(index).copied().ok_or(Malformed)?;
            let (Some(field), Some(slot)) = (table.get(index), values.get_mut(index)) else {
                return Err(Malformed);
            };
            let value = field.1.read(scan)?;
            if slot.replace(value).is_some() {
                Err(Malformed)
            } else {
                Ok(())
            }
        })?;
        Ok(Self {
            text,
            is_exact,
            table,
            values,
        })
    }

    /// The value of the member at this index of the table, which must be present.
    pub(super) fn get_at(&self, index: usize) -> Result<&'a str, Malformed> {
        self.values.get(index).copied().flatten().ok_or(Malformed)
    }

    /// The value of the member at this index of the table, if the node sent it.
    pub(super) fn find_at(&self, index: usize) -> Option<&'a str> {
        self.values.get(index).copied().flatten()
    }

    /// The position in the object's text of the member at this index of the table, if the node sent it.
    pub(super) fn position_at(&self, index: usize) -> Option<Range<usize>> {
        let value = self.find_at(index)?;
        // Every value is a slice of the object's text.
        let start = value.as_ptr().addr().checked_sub(self.text.as_ptr().addr())?;
        Some(start..start.checked_add(value.len())?)
    }

    /// The value of a member, if the node sent it.
    pub(super) fn find(&self, name: &str) -> Option<&'a str> {
        self.find_at(self.table.iter().position(|field| field.0 == name)?)
    }

    /// The value of a member that must be present.
    pub(super) fn get(&self, name: &str) -> Result<&'a str, Malformed> {
        self.find(name).ok_or(Malformed)
    }

    /// The address in a member that must be present.
    pub(super) fn address(&self, name: &str) -> Result<Address, Malformed> {
        address(self.get(name)?)
    }

    /// The address in a member that must be present but may be `null`.
    pub(super) fn optional_address(&self, name: &str) -> Result<Option<Address>, Malformed> {
        match self.get(name)? {
            "null" => Ok(None),
            value => address(value).map(Some),
        }
    }

    /// The word in a member that must be present.
    pub(super) fn word(&self, name: &str) -> Result<B256, Malformed> {
        word(self.get(name)?)
    }

    /// Writes the members that the node sent, in the order of the table. `render` may return another text for a member.
    pub(super) fn write<'r>(&self, out: &mut String, mut render: impl FnMut(&'static str) -> Option<&'r str>) {
        self.write_with(out, |name, out| {
            let text = render(name);
            text.inspect(|text| out.push_str(text)).is_some()
        });
    }

    /// Like [`Self::write`], but `render` writes the text itself and returns whether it did.
    pub(super) fn write_with(&self, out: &mut String, mut render: impl FnMut(&'static str, &mut String) -> bool) {
        let mut separator = '{';
        for (field, value) in self.table.iter().zip(&self.values) {
            let Some(value) = value else { continue };
            out.push(separator);
            separator = ',';
            out.push('"');
            out.push_str(field.0);
            out.push_str("\":");
            if !render(field.0, out) {
                out.push_str(value);
            }
        }
        out.push_str(if separator == '{' { "{}" } else { "}" });
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn shapes_accept_only_matching_values() {
        let address = format!("\"0x{}\"", "aB".repeat(20));
        let word_text = format!("\"0x{}\"", "0f".repeat(32));
        let list = format!("[{{\"address\":{address},\"storageKeys\":[{word_text}]}}]");
        let signed =
            format!("[{{\"chainId\":\"0x1\",\"address\":{address},\"nonce\":\"0x0\",\"r\":\"0x1\",\"s\":\"0x2\"}}]");
        let extra = format!("[{{\"address\":{address},\"storageKeys\":[],\"note\":1}}]");
        let long = format!("\"0x{}\"", "0".repeat(65));
        let cases: [(Shape, &[&str], &[&str]); 8] = [
            (
                Shape::Quantity,
                &["\"0x0\"", "\"0xFf\"", "\"0xabc\"", &word_text, "null"],
                &["0", "\"0x\"", "\"1\"", "\"0xg\"", "\"0x0x1\"", "\"0xabg\"", &long],
            ),
            (
                Shape::Bytes,
                &["\"0x\"", "\"0x00ff\""],
                &["\"0x0\"", "\"0xé\"", "null", "\"\\u0030x00\"", "\"0x0 \""],
            ),
            (ADDRESS, &[&address, "null"], &["\"0x\"", &word_text, "[]"]),
            (Shape::Flag, &["true", "false"], &["null", "\"true\"", "1"]),
            (Shape::Words, &["[]", "null"], &["[null]", "[1]", "{}"]),
            (Shape::AccessList, &["[]", &list], &["[{}]", &extra, "{}"]),
            (Shape::Authorizations, &["[]", &signed], &[&list, "[1]"]),
            (Shape::Unchecked, &["{\"a\":1}"], &[]),
        ];
        for (shape, good, bad) in cases {
            good.iter()
                .for_each(|value| assert_eq!(shape.check(value), Ok(()), "{shape:?} {value}"));
            bad.iter()
                .for_each(|value| assert_eq!(shape.check(value), Err(Malformed), "{shape:?} {value}"));
        }
    }

    /// HD11: members that are not on the allowlist are dropped; a listed one must not occur twice.
    #[test]
    fn hd11_objects_are_allowlists() {
        let table = [Field("a", Shape::Quantity), Field("b", Shape::Flag)];
        let read = |text: &str| {
            let object = Object::read(&mut Scan::new(text), &table)?;
            let mut out = String::new();
            object.write(&mut out, |name| (name == "b").then_some("false"));
            Ok((out, object.is_exact))
        };
        assert_eq!(
            read("{\"b\":true,\"x\":{\"a\":1},\"a\":\"0x1\"}"),
            Ok(("{\"a\":\"0x1\",\"b\":false}".into(), false))
        );
        assert_eq!(read("{\"a\":\"0x1\"}"), Ok(("{\"a\":\"0x1\"}".into(), true)));
        assert_eq!(read("{\"A\":\"0x1\",\"\\u0061\":\"0x2\"}"), Ok(("{}".into(), false)));
        assert_eq!(read("{\"a\":\"0x1\",\"a\":\"0x1\"}"), Err(Malformed));
        assert_eq!(read("{\"a\":1}"), Err(Malformed));
    }
}
