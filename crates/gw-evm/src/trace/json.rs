//! A non-recursive JSON reader for the call tree, which may nest too deep for the stack of a recursive parser.
//!
//! The text is known to be JSON (a [`RawValue`]), so the reader does not check the syntax completely. It stops with
//! an error at text that it does not expect.

use super::TraceError;
use serde_json::value::RawValue;

pub(super) struct Reader<'a> {
    text: &'a str,
    position: usize,
}

type Read<T> = Result<T, TraceError>;

impl<'a> Reader<'a> {
    pub(super) fn new(json: &'a RawValue) -> Self {
        Self {
            text: json.get(),
            position: 0,
        }
    }

    /// Enters an object.
    pub(super) fn object(&mut self) -> Read<()> {
        self.take(b'{')
    }

    /// The name of the next member; `None` after the last. A name with escapes is an error: no node writes one, and
    /// it could hide a member.
    pub(super) fn member(&mut self) -> Read<Option<&'a str>> {
        if self.take(b'}').is_ok() {
            return Ok(None);
        }
        let _ = self.take(b',');
        let name = self.string()?;
        self.take(b':')?;
        if name.contains('\\') {
            Err(TraceError::Malformed)
        } else {
            Ok(Some(name))
        }
    }

    /// Enters an array or skips `null`. Returns whether it entered an array.
    pub(super) fn array(&mut self) -> Read<bool> {
        if self.take(b'[').is_ok() {
            return Ok(true);
        }
        if self.value()? == "null" {
            Ok(false)
        } else {
            Err(TraceError::Malformed)
        }
    }

    /// Whether another element follows. Skips the comma or the end of the array.
    pub(super) fn element(&mut self) -> Read<bool> {
        if self.take(b']').is_ok() {
            return Ok(false);
        }
        let _ = self.take(b',');
        Ok(true)
    }

    /// Skips a value and returns its text.
    pub(super) fn value(&mut self) -> Read<&'a str> {
        self.skip_whitespace();
        let start = self.position;
        let mut open = 0_usize;
        loop {
            match self.peek() {
                Some(b'"') => {
                    self.string()?;
                }
                Some(b'{' | b'[') => {
                    open += 1;
                    self.position += 1;
                }
                Some(b'}' | b']') => {
                    open = open.checked_sub(1).ok_or(TraceError::Malformed)?;
                    self.position += 1;
                }
                Some(b',' | b':') if open > 0 => self.position += 1,
                Some(_) => self.scalar()?,
                None => return Err(TraceError::Malformed),
            }
            if open == 0 {
                return self.text_since(start);
            }
            self.skip_whitespace();
        }
    }

    /// Skips a number or literal.
    fn scalar(&mut self) -> Read<()> {
        let start = self.position;
        while self
            .peek()
            .is_some_and(|byte| byte.is_ascii_alphanumeric() || matches!(byte, b'+' | b'-' | b'.'))
        {
            self.position += 1;
        }
        if self.position == start {
            Err(TraceError::Malformed)
        } else {
            Ok(())
        }
    }

    /// Skips a string and returns the text between its quotes, with escapes.
    fn string(&mut self) -> Read<&'a str> {
        self.take(b'"')?;
        let start = self.position;
        loop {
            let rest = self.text.as_bytes().get(self.position..).unwrap_or_default();
            let offset = rest
                .iter()
                .position(|byte| matches!(byte, b'"' | b'\\'))
                .ok_or(TraceError::Malformed)?;
            self.position += offset;
            if rest.get(offset) == Some(&b'"') {
                break;
            }
            self.position += 2;
        }
        let text = self.text_since(start);
        self.position += 1;
        text
    }

    fn text_since(&self, start: usize) -> Read<&'a str> {
        self.text.get(start..self.position).ok_or(TraceError::Malformed)
    }

    fn take(&mut self, expected: u8) -> Read<()> {
        self.skip_whitespace();
        if self.peek() != Some(expected) {
            return Err(TraceError::Malformed);
        }
        self.position += 1;
        Ok(())
    }

    fn skip_whitespace(&mut self) {
        while self
            .peek()
            .is_some_and(|byte| matches!(byte, b' ' | b'\t' | b'\n' | b'\r'))
        {
            self.position += 1;
        }
    }

    fn peek(&self) -> Option<u8> {
        self.text.as_bytes().get(self.position).copied()
    }
}
