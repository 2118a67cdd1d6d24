//! A single-pass JSON reader that borrows every value.
//!
//! The views copy almost everything that they disclose, so parsing into a tree would be the main cost of a large
//! response. This reader returns slices of the text instead. It checks the structure (nesting, separators, ends) and
//! finds the end of each value; its [`Shape`](super::shape::Shape) decides whether a value may be copied.
//!
//! Escapes in strings are recognized but not decoded: no value that the views copy contains one.

use crate::visibility::MalformedData;

/// The text has an unexpected shape.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Malformed;

impl From<MalformedData> for Malformed {
    fn from(MalformedData: MalformedData) -> Self {
        Self
    }
}

/// Maximum nesting depth of values.
const MAX_DEPTH: u8 = 64;

/// A position in JSON text.
#[derive(Clone, Copy, Debug)]
pub(super) struct Scan<'a> {
    text: &'a str,
    position: usize,
}

impl<'a> Scan<'a> {
    pub(super) const fn new(text: &'a str) -> Self {
        Self { text, position: 0 }
    }

    /// Reads one value and checks that nothing follows it.
    pub(super) fn whole(text: &'a str) -> Result<&'a str, Malformed> {
        let mut scan = Self::new(text);
        let value = scan.value()?;
        scan.end()?;
        Ok(value)
    }

    /// Checks that only white space follows.
    pub(super) fn end(mut self) -> Result<(), Malformed> {
        self.skip_space();
        if self.rest().is_empty() { Ok(()) } else { Err(Malformed) }
    }

    /// Reads any value and returns its text.
    pub(super) fn value(&mut self) -> Result<&'a str, Malformed> {
        self.skip_space();
        let from = self.position;
        self.skip_value(MAX_DEPTH)?;
        self.text.get(from..self.position).ok_or(Malformed)
    }

    /// Reads an object: `member` must read exactly one key and its value. Returns the object's own text.
    pub(super) fn object(
        &mut self,
        member: impl FnMut(&mut Self) -> Result<(), Malformed>,
    ) -> Result<&'a str, Malformed> {
        self.skip_space();
        let from = self.position;
        self.separated(b'{', b'}', member)?;
        self.text.get(from..self.position).ok_or(Malformed)
    }

    /// Reads any key.
    pub(super) fn key(&mut self) -> Result<&'a str, Malformed> {
        let key = self.string()?;
        self.expect(b':')?;
        self.skip_space();
        Ok(key)
    }

    /// Reads the key if it is this one, without searching for its end.
    pub(super) fn is_key(&mut self, name: &str) -> bool {
        let after_name = self
            .rest()
            .strip_prefix(b"\"")
            .and_then(|rest| rest.strip_prefix(name.as_bytes()));
        let is_key = after_name.is_some_and(|after| after.starts_with(b"\":"));
        if is_key {
            self.position = self.position.saturating_add(name.len()).saturating_add(3);
            self.skip_space();
        }
        is_key
    }

    /// The next `length` bytes, without moving the position. `None` if fewer remain, or if they end within a character.
    pub(super) fn peek(&self, length: usize) -> Option<&'a str> {
        self.text.get(self.position..self.position.saturating_add(length))
    }

    /// Moves past a value that [`Self::peek`] returned.
    pub(super) fn step(&mut self, value: &str) {
        self.position = self.position.saturating_add(value.len());
    }

    /// Reads a list: `item` must read exactly one value.
    pub(super) fn list(&mut self, item: impl FnMut(&mut Self) -> Result<(), Malformed>) -> Result<(), Malformed> {
        self.separated(b'[', b']', item)
    }

    fn separated(
        &mut self,
        open: u8,
        close: u8,
        mut item: impl FnMut(&mut Self) -> Result<(), Malformed>,
    ) -> Result<(), Malformed> {
        self.expect(open)?;
        if self.take(close) {
            return Ok(());
        }
        loop {
            self.skip_space();
            item(self)?;
            if self.take(close) {
                return Ok(());
            }
            self.expect(b',')?;
        }
    }

    fn skip_value(&mut self, depth: u8) -> Result<(), Malformed> {
        let depth = depth.checked_sub(1).ok_or(Malformed)?;
        match self.rest().first() {
            Some(b'"') => self.string().map(|_| ()),
            Some(b'{') => self.separated(b'{', b'}', |scan| {
                scan.key()?;
                scan.skip_value(depth)
            }),
            Some(b'[') => self.separated(b'[', b']', |scan| scan.skip_value(depth)),
            Some(_) => {
                // Literals and numbers, up to the next delimiter. Shapes check the exact text.
                let is_plain = |b: &u8| b.is_ascii_alphanumeric() || matches!(b, b'-' | b'+' | b'.');
                let length = self.rest().iter().take_while(|b| is_plain(b)).count();
                self.position = self.position.saturating_add(length);
                if length == 0 { Err(Malformed) } else { Ok(()) }
            }
            None => Err(Malformed),
        }
    }

    /// Reads a string and returns the text between its quotes, with escapes not decoded.
    fn string(&mut self) -> Result<&'a str, Malformed> {
        let rest = self.rest().strip_prefix(b"\"").ok_or(Malformed)?;
        let from = self.position.saturating_add(1);
        let mut length = 0;
        loop {
            let tail = rest.get(length..).ok_or(Malformed)?;
            let offset = quote_or_escape(tail);
            length = length.saturating_add(offset);
            match tail.get(offset) {
                Some(b'"') => break,
                Some(_) => length = length.saturating_add(2),
                None => return Err(Malformed),
            }
        }
        let to = from.saturating_add(length);
        self.position = to.saturating_add(1);
        self.text.get(from..to).ok_or(Malformed)
    }

    fn rest(&self) -> &'a [u8] {
        self.text.as_bytes().get(self.position..).unwrap_or_default()
    }

    fn skip_space(&mut self) {
        while let Some(b' ' | b'\n' | b'\r' | b'\t') = self.rest().first() {
            self.position = self.position.saturating_add(1);
        }
    }

    fn take(&mut self, byte: u8) -> bool {
        self.skip_space();
        let is_next = self.rest().first() == Some(&byte);
        if is_next {
            self.position = self.position.saturating_add(1);
        }
        is_next
    }

    fn expect(&mut self, byte: u8) -> Result<(), Malformed> {
        if self.take(byte) { Ok(()) } else { Err(Malformed) }
    }
}

/// The position of the first quote or backslash, or the length if there is none. Compares eight bytes at a time, which
/// is fast for short strings.
fn quote_or_escape(bytes: &[u8]) -> usize {
    const ONES: u64 = u64::from_le_bytes([1; 8]);
    const HIGHS: u64 = u64::from_le_bytes([0x80; 8]);
    // Sets the high bit of every zero byte. Bytes above the lowest zero byte may be marked wrongly, but only the lowest
    // one is used.
    let zeroes = |word: u64| word.wrapping_sub(ONES) & !word & HIGHS;
    let (chunks, rest) = bytes.as_chunks::<8>();
    let mut position = 0;
    for chunk in chunks {
        let word = u64::from_le_bytes(*chunk);
        let matches = zeroes(word ^ u64::from_le_bytes([b'"'; 8])) | zeroes(word ^ u64::from_le_bytes([b'\\'; 8]));
        if matches != 0 {
            return position + (matches.trailing_zeros() / 8) as usize;
        }
        position += 8;
    }
    position + rest.iter().take_while(|byte| !matches!(byte, b'"' | b'\\')).count()
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn members(text: &str) -> Result<Vec<(&str, &str)>, Malformed> {
        let mut scan = Scan::new(text);
        let mut members = Vec::new();
        scan.object(|scan| {
            members.push((scan.key()?, scan.value()?));
            Ok(())
        })?;
        scan.end()?;
        Ok(members)
    }

    #[test]
    fn reads_members_as_slices() {
        let text = " { \"a\" : \"0x1\" , \"b\":[1, {\"c\":null}],\"d\\\"\":{} ,\"e\":true} ";
        let expected = vec![
            ("a", "\"0x1\""),
            ("b", "[1, {\"c\":null}]"),
            ("d\\\"", "{}"),
            ("e", "true"),
        ];
        assert_eq!(members(text), Ok(expected));
    }

    #[test]
    fn broken_structure_is_malformed() {
        let deep = format!("{}{}", "[".repeat(100), "]".repeat(100));
        for bad in [
            "",
            "{",
            "{\"a\"}",
            "{\"a\":}",
            "{\"a\":1,}",
            "{,}",
            "{\"a\":1 \"b\":2}",
            "{a:1}",
            "{\"a\":1}x",
            "{\"a\":\"",
            "{\"a\":[1}",
            "{\"a\\",
            "nul",
            "[]",
        ] {
            assert_eq!(members(bad), Err(Malformed), "{bad}");
        }
        assert_eq!(Scan::whole(&deep), Err(Malformed));
        assert_eq!(Scan::whole(" [1] "), Ok("[1]"));
    }

    proptest! {
        /// Text that serde_json accepts is split at the same boundaries.
        #[test]
        fn agrees_with_serde_json(keys in prop::collection::vec("[ -~é]{0,6}", 0..6), text in ".{0,20}", n: i64) {
            let value = serde_json::json!({ "s": text, "n": n, "l": keys, "o": { "k": [n, null, true, 1.5e-3] } });
            for json in [value.to_string(), serde_json::to_string_pretty(&value).unwrap()] {
                let pairs = members(&json).unwrap();
                prop_assert_eq!(pairs.len(), 4);
                for (key, raw) in pairs {
                    prop_assert_eq!(&serde_json::from_str::<serde_json::Value>(raw).unwrap(), &value[key]);
                }
            }
        }

        /// Any text gives a result or an error, never a panic.
        #[test]
        fn takes_any_text(text in "[\\[\\]{}\",:\\\\ a0é]{0,40}") {
            let _ = Scan::whole(&text);
            let _ = members(&text);
        }
    }
}
