//! Deterministic CBOR (RFC 8949 section 4.2.1): shortest integers, definite lengths, sorted keys.
//!
//! Supports only the types that entries consist of: unsigned and negative integers, byte and text strings, arrays, maps
//! with short text keys, booleans, null. The reader rejects every byte sequence that the writer could not have
//! produced, so a value has exactly one encoding.

/// Appends items to a buffer.
#[derive(Debug)]
pub struct Writer<'b> {
    bytes: &'b mut Vec<u8>,
}

const UINT: u8 = 0;
const NINT: u8 = 1;
const BYTES: u8 = 2;
const TEXT: u8 = 3;
const ARRAY: u8 = 4;
const MAP: u8 = 5;
const SIMPLE: u8 = 7;
const FALSE: u8 = 0xf4;
const TRUE: u8 = 0xf5;
const NULL: u8 = 0xf6;

impl<'b> Writer<'b> {
    /// A writer that appends to `bytes`.
    pub const fn new(bytes: &'b mut Vec<u8>) -> Self {
        Self { bytes }
    }

    /// Writes an unsigned integer.
    pub fn uint(&mut self, value: u64) {
        self.head(UINT, value);
    }

    /// Writes a signed integer.
    pub fn int(&mut self, value: i64) {
        match u64::try_from(value) {
            Ok(value) => self.head(UINT, value),
            Err(_) => self.head(NINT, value.unsigned_abs() - 1),
        }
    }

    /// Writes a byte string.
    pub fn bytes(&mut self, value: &[u8]) {
        self.head(BYTES, value.len() as u64);
        self.bytes.extend_from_slice(value);
    }

    /// Writes a text string.
    pub fn text(&mut self, value: &str) {
        self.head(TEXT, value.len() as u64);
        self.bytes.extend_from_slice(value.as_bytes());
    }

    /// Writes a boolean.
    pub fn bool(&mut self, value: bool) {
        self.bytes.push(if value { TRUE } else { FALSE });
    }

    /// Writes null.
    pub fn null(&mut self) {
        self.bytes.push(NULL);
    }

    /// Writes the head of an array; the caller then writes its `len` items.
    pub fn array(&mut self, len: usize) {
        self.head(ARRAY, len as u64);
    }

    /// Starts a map; its fields are written through the returned value, in encoded order.
    pub fn map(&mut self) -> MapWriter<'_, 'b> {
        let head = self.bytes.len();
        self.bytes.push(MAP << 5);
        MapWriter {
            writer: self,
            head,
            len: 0,
            last: "",
        }
    }

    /// Appends an item that is already encoded.
    pub fn raw(&mut self, item: &[u8]) {
        self.bytes.extend_from_slice(item);
    }

    fn head(&mut self, major: u8, value: u64) {
        let major = major << 5;
        let be = value.to_be_bytes();
        let [.., b4, b5, b6, b7] = be;
        match value {
            0..24 => self.bytes.push(major | b7),
            24..0x100 => self.bytes.extend_from_slice(&[major | 24, b7]),
            0x100..0x1_0000 => self.bytes.extend_from_slice(&[major | 25, b6, b7]),
            0x1_0000..0x1_0000_0000 => self.bytes.extend_from_slice(&[major | 26, b4, b5, b6, b7]),
            0x1_0000_0000.. => {
                self.bytes.push(major | 27);
                self.bytes.extend_from_slice(&be);
            }
        }
    }
}

/// Writes the fields of one map.
#[derive(Debug)]
pub struct MapWriter<'w, 'b> {
    writer: &'w mut Writer<'b>,
    head: usize,
    len: u8,
    last: &'static str,
}

impl<'b> MapWriter<'_, 'b> {
    /// Writes the key of a field; the caller writes the value next.
    ///
    /// Invariant: keys come in encoded order (shorter first, then bytewise), are shorter than 24 bytes, and there are
    /// fewer than 24 of them. The callers' key lists are constants, and tests read each of them back.
    pub fn field(&mut self, key: &'static str) -> &mut Writer<'b> {
        debug_assert!(is_sorted(self.last, key), "`{key}` after `{}`", self.last);
        debug_assert!(self.len < 23 && key.len() < 24, "`{key}`");
        self.last = key;
        self.len += 1;
        if let Some(head) = self.writer.bytes.get_mut(self.head) {
            *head = (MAP << 5) | self.len;
        }
        self.writer.text(key);
        self.writer
    }
}

fn is_sorted(first: &str, second: &str) -> bool {
    (first.len(), first) < (second.len(), second)
}

/// Why bytes are not the deterministic encoding of the expected item.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum CborError {
    /// The bytes end early.
    #[error("the bytes end early")]
    Truncated,
    /// The item has another type than expected.
    #[error("the item has an unexpected type")]
    Type,
    /// The item is not deterministically encoded.
    #[error("the item is not deterministically encoded")]
    NotDeterministic,
    /// The item is nested deeper than any entry.
    #[error("the item is nested too deeply")]
    Depth,
    /// A required field is missing.
    #[error("the field `{0}` is missing")]
    Missing(&'static str),
    /// The map has an unknown field.
    #[error("the map has an unknown field")]
    UnknownField,
    /// Bytes follow the last item.
    #[error("bytes follow the last item")]
    Trailing,
}

/// Reads items from the front of a slice.
#[derive(Clone, Copy, Debug)]
pub struct Reader<'a> {
    rest: &'a [u8],
}

/// The deepest nesting that [`Reader::skip`] accepts.
const MAX_DEPTH: u8 = 8;

impl<'a> Reader<'a> {
    /// A reader of `bytes`.
    pub const fn new(bytes: &'a [u8]) -> Self {
        Self { rest: bytes }
    }

    /// The bytes that are not read yet.
    pub const fn rest(&self) -> &'a [u8] {
        self.rest
    }

    /// Whether everything was read.
    pub const fn is_empty(&self) -> bool {
        self.rest.is_empty()
    }

    /// Checks that everything was read.
    ///
    /// # Errors
    /// [`CborError::Trailing`] if bytes are left.
    pub const fn end(self) -> Result<(), CborError> {
        if self.is_empty() {
            Ok(())
        } else {
            Err(CborError::Trailing)
        }
    }

    /// Reads an unsigned integer.
    ///
    /// # Errors
    /// [`CborError::Type`] if it is another item; [`CborError::Truncated`] or [`CborError::NotDeterministic`] if it is
    /// malformed.
    pub fn uint(&mut self) -> Result<u64, CborError> {
        self.expect_head(UINT)
    }

    /// Reads a signed integer.
    ///
    /// # Errors
    /// [`CborError::Type`] if it is another item; [`CborError::Truncated`] or [`CborError::NotDeterministic`] if it is
    /// malformed.
    pub fn int(&mut self) -> Result<i64, CborError> {
        match self.head()? {
            (UINT, value) => i64::try_from(value).map_err(|_| CborError::Type),
            (NINT, value) => i64::try_from(value)
                .map(|value| -1 - value)
                .map_err(|_| CborError::Type),
            _ => Err(CborError::Type),
        }
    }

    /// Reads a byte string.
    ///
    /// # Errors
    /// [`CborError::Type`] if it is another item; [`CborError::Truncated`] or [`CborError::NotDeterministic`] if it is
    /// malformed.
    pub fn bytes(&mut self) -> Result<&'a [u8], CborError> {
        let len = self.expect_head(BYTES)?;
        self.take(len)
    }

    /// Reads a byte string of exactly `N` bytes.
    ///
    /// # Errors
    /// [`CborError::Type`] if it is another item or has another length; otherwise as [`Reader::bytes`].
    pub fn array_of<const N: usize>(&mut self) -> Result<[u8; N], CborError> {
        self.bytes()?.try_into().map_err(|_| CborError::Type)
    }

    /// Reads a text string.
    ///
    /// # Errors
    /// [`CborError::Type`] if it is another item or not UTF-8; otherwise as [`Reader::bytes`].
    pub fn text(&mut self) -> Result<&'a str, CborError> {
        let len = self.expect_head(TEXT)?;
        core::str::from_utf8(self.take(len)?).map_err(|_| CborError::Type)
    }

    /// Reads a boolean.
    ///
    /// # Errors
    /// [`CborError::Type`] if it is another item; [`CborError::Truncated`] if there is none.
    pub fn bool(&mut self) -> Result<bool, CborError> {
        match self.byte()? {
            FALSE => Ok(false),
            TRUE => Ok(true),
            _ => Err(CborError::Type),
        }
    }

    /// Skips a null if it is the next item; returns whether it was.
    pub fn null(&mut self) -> bool {
        match self.rest.split_first() {
            Some((&NULL, rest)) => {
                self.rest = rest;
                true
            }
            Some(_) | None => false,
        }
    }

    /// Reads the head of an array and returns the number of its items.
    ///
    /// # Errors
    /// [`CborError::Type`] if it is another item; [`CborError::Truncated`] or [`CborError::NotDeterministic`] if it is
    /// malformed.
    pub fn array(&mut self) -> Result<u64, CborError> {
        self.expect_head(ARRAY)
    }

    /// Reads the head of a map; its fields are read through the returned value, in encoded order.
    ///
    /// # Errors
    /// [`CborError::Type`] if it is another item; [`CborError::Truncated`] or [`CborError::NotDeterministic`] if it is
    /// malformed.
    pub fn map(&mut self) -> Result<MapReader<'_, 'a>, CborError> {
        let remaining = self.expect_head(MAP)?;
        Ok(MapReader {
            reader: self,
            remaining,
        })
    }

    /// Skips one item and returns its bytes.
    ///
    /// # Errors
    /// [`CborError::Depth`] if it is nested too deeply; any other [`CborError`] if it is malformed.
    pub fn skip(&mut self) -> Result<&'a [u8], CborError> {
        let input = self.rest;
        self.skip_item(0)?;
        input.get(..input.len() - self.rest.len()).ok_or(CborError::Truncated)
    }

    fn skip_item(&mut self, depth: u8) -> Result<(), CborError> {
        if depth == MAX_DEPTH {
            return Err(CborError::Depth);
        }
        if matches!(self.rest.first(), Some(&(FALSE | TRUE | NULL))) {
            return self.byte().map(drop);
        }
        match self.head()? {
            (UINT | NINT, _) => Ok(()),
            (BYTES | TEXT, len) => self.take(len).map(drop),
            (ARRAY, len) => (0..len).try_for_each(|_| self.skip_item(depth + 1)),
            (MAP, len) => (0..len).try_for_each(|_| {
                self.skip_item(depth + 1)?;
                self.skip_item(depth + 1)
            }),
            _ => Err(CborError::Type),
        }
    }

    fn expect_head(&mut self, expected: u8) -> Result<u64, CborError> {
        match self.head()? {
            (major, value) if major == expected => Ok(value),
            _ => Err(CborError::Type),
        }
    }

    fn head(&mut self) -> Result<(u8, u64), CborError> {
        let first = self.byte()?;
        let (major, short) = (first >> 5, first & 0x1f);
        if major == SIMPLE {
            return Err(CborError::Type);
        }
        let (value, minimum) = match short {
            0..24 => (u64::from(short), 0),
            24 => (u64::from(self.byte()?), 24),
            25 => (self.be::<2>()?, 0x100),
            26 => (self.be::<4>()?, 0x1_0000),
            27 => (self.be::<8>()?, 0x1_0000_0000),
            _ => return Err(CborError::NotDeterministic),
        };
        if value < minimum {
            Err(CborError::NotDeterministic)
        } else {
            Ok((major, value))
        }
    }

    fn be<const N: usize>(&mut self) -> Result<u64, CborError> {
        let bytes = self.take(N as u64)?;
        Ok(bytes.iter().fold(0, |value, byte| (value << 8) | u64::from(*byte)))
    }

    fn byte(&mut self) -> Result<u8, CborError> {
        let (first, rest) = self.rest.split_first().ok_or(CborError::Truncated)?;
        self.rest = rest;
        Ok(*first)
    }

    fn take(&mut self, len: u64) -> Result<&'a [u8], CborError> {
        let len = usize::try_from(len).map_err(|_| CborError::Truncated)?;
        let (taken, rest) = self.rest.split_at_checked(len).ok_or(CborError::Truncated)?;
        self.rest = rest;
        Ok(taken)
    }
}

/// Reads the fields of one map. The caller asks for the fields in encoded order, so any other order is rejected.
#[derive(Debug)]
pub struct MapReader<'r, 'a> {
    reader: &'r mut Reader<'a>,
    /// The number of fields that are not read yet.
    remaining: u64,
}

impl<'a> MapReader<'_, 'a> {
    /// The value of the field `key`, if it comes next.
    ///
    /// # Errors
    /// Any [`CborError`] if the next key is malformed.
    pub fn find(&mut self, key: &'static str) -> Result<Option<&mut Reader<'a>>, CborError> {
        if self.remaining == 0 {
            return Ok(None);
        }
        let mut ahead = *self.reader;
        if ahead.text()? != key {
            return Ok(None);
        }
        *self.reader = ahead;
        self.remaining -= 1;
        Ok(Some(self.reader))
    }

    /// The value of the field `key`, which must come next.
    ///
    /// # Errors
    /// [`CborError::Missing`] if another field comes next or none is left.
    pub fn get(&mut self, key: &'static str) -> Result<&mut Reader<'a>, CborError> {
        self.find(key)?.ok_or(CborError::Missing(key))
    }

    /// Checks that no field is left.
    ///
    /// # Errors
    /// [`CborError::UnknownField`] if a field was not read.
    pub const fn end(self) -> Result<(), CborError> {
        if self.remaining == 0 {
            Ok(())
        } else {
            Err(CborError::UnknownField)
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn encode(write: impl FnOnce(&mut Writer<'_>)) -> String {
        let mut bytes = Vec::new();
        write(&mut Writer::new(&mut bytes));
        hex::encode(bytes)
    }

    #[test]
    fn rule_4_numbers_are_as_short_as_rfc_8949_appendix_a_says() {
        for (value, bytes) in [
            (0, "00"),
            (23, "17"),
            (24, "1818"),
            (255, "18ff"),
            (256, "190100"),
            (65_535, "19ffff"),
            (65_536, "1a00010000"),
            (1_000_000, "1a000f4240"),
            (4_294_967_296, "1b0000000100000000"),
            (u64::MAX, "1bffffffffffffffff"),
        ] {
            assert_eq!(encode(|w| w.uint(value)), bytes);
            assert_eq!(Reader::new(&hex::decode(bytes).unwrap()).uint(), Ok(value));
        }
        for (value, bytes) in [
            (-1, "20"),
            (-100, "3863"),
            (-1000, "3903e7"),
            (i64::MIN, "3b7fffffffffffffff"),
        ] {
            assert_eq!(encode(|w| w.int(value)), bytes);
            assert_eq!(Reader::new(&hex::decode(bytes).unwrap()).int(), Ok(value));
        }
    }

    #[test]
    fn rule_4_maps_are_as_rfc_8949_appendix_a_says() {
        let bytes = encode(|w| {
            let mut map = w.map();
            map.field("a").uint(1);
            let list = map.field("b");
            list.array(2);
            list.uint(2);
            list.uint(3);
        });
        assert_eq!(bytes, "a26161016162820203");
        let bytes = hex::decode(bytes).unwrap();
        assert_eq!(Reader::new(&bytes).skip(), Ok(&bytes[..]));
    }

    #[test]
    fn rule_4_a_second_encoding_of_the_same_value_is_rejected() {
        for long in [
            "1817",
            "190018",
            "1a0000ffff",
            "1b00000000ffffffff",
            "5f",
            "9f",
            "bf",
            "1f",
        ] {
            let bytes = hex::decode(long).unwrap();
            assert_eq!(Reader::new(&bytes).skip(), Err(CborError::NotDeterministic), "{long}");
        }
        for foreign in ["f7", "f818", "fb0000000000000000", "c0"] {
            assert!(Reader::new(&hex::decode(foreign).unwrap()).skip().is_err(), "{foreign}");
        }
        let swapped = hex::decode("a2616202616101").unwrap();
        let mut reader = Reader::new(&swapped);
        let mut map = reader.map().unwrap();
        assert!(map.find("a").unwrap().is_none(), "the field `b` comes first");
        assert_eq!(map.end(), Err(CborError::UnknownField));
    }

    #[test]
    fn lengths_beyond_the_input_are_rejected() {
        for short in [
            "5bffffffffffffffff00",
            "9bffffffffffffffff",
            "bb7fffffffffffffff",
            "6261",
            "1a00",
        ] {
            assert_eq!(
                Reader::new(&hex::decode(short).unwrap()).skip(),
                Err(CborError::Truncated),
                "{short}"
            );
        }
        assert_eq!(Reader::new(&[0x81; 64]).skip(), Err(CborError::Depth));
    }
}
