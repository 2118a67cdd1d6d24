//! A reader for the call tree, which nests deeper than a recursive parser's stack may.
//!
//! It only finds its way through text that is JSON already (a [`RawValue`] by type); on anything else it stops.

use super::TraceError;
use serde_json::value::RawValue;

pub(super) struct Reader<'a> {
    text: &'a str,
    at: usize,
}

type Read<T> = Result<T, TraceError>;

impl<'a> Reader<'a> {
    pub(super) fn new(json: &'a RawValue) -> Self {
        Self {
            text: json.get(),
            at: 0,
        }
    }

    /// Enters an object.
    pub(super) fn object(&mut self) -> Read<()> {
        self.take(b'{')
    }

    /// The name of the next member, `None` behind the last one. No node escapes a name; one that did could hide it.
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

    /// Enters an array, or passes `null`; tells which.
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

    /// Whether another element follows; passes the comma, or the end of the array.
    pub(super) fn element(&mut self) -> Read<bool> {
        if self.take(b']').is_ok() {
            return Ok(false);
        }
        let _ = self.take(b',');
        Ok(true)
    }

    /// Passes any value; its text.
    pub(super) fn value(&mut self) -> Read<&'a str> {
        self.space();
        let start = self.at;
        let mut open = 0_usize;
        loop {
            match self.peek() {
                Some(b'"') => {
                    self.string()?;
                }
                Some(b'{' | b'[') => {
                    open += 1;
                    self.at += 1;
                }
                Some(b'}' | b']') => {
                    open = open.checked_sub(1).ok_or(TraceError::Malformed)?;
                    self.at += 1;
                }
                Some(b',' | b':') if open > 0 => self.at += 1,
                Some(_) => self.scalar()?,
                None => return Err(TraceError::Malformed),
            }
            if open == 0 {
                return self.since(start);
            }
            self.space();
        }
    }

    /// A number or literal.
    fn scalar(&mut self) -> Read<()> {
        let start = self.at;
        while self
            .peek()
            .is_some_and(|byte| byte.is_ascii_alphanumeric() || matches!(byte, b'+' | b'-' | b'.'))
        {
            self.at += 1;
        }
        if self.at == start {
            Err(TraceError::Malformed)
        } else {
            Ok(())
        }
    }

    /// A string; the text between its quotes, escapes kept.
    fn string(&mut self) -> Read<&'a str> {
        self.take(b'"')?;
        let start = self.at;
        loop {
            let rest = self.text.as_bytes().get(self.at..).unwrap_or_default();
            let found = rest
                .iter()
                .position(|byte| matches!(byte, b'"' | b'\\'))
                .ok_or(TraceError::Malformed)?;
            self.at += found;
            if rest.get(found) == Some(&b'"') {
                break;
            }
            self.at += 2;
        }
        let text = self.since(start);
        self.at += 1;
        text
    }

    fn since(&self, start: usize) -> Read<&'a str> {
        self.text.get(start..self.at).ok_or(TraceError::Malformed)
    }

    fn take(&mut self, expected: u8) -> Read<()> {
        self.space();
        if self.peek() != Some(expected) {
            return Err(TraceError::Malformed);
        }
        self.at += 1;
        Ok(())
    }

    fn space(&mut self) {
        while self
            .peek()
            .is_some_and(|byte| matches!(byte, b' ' | b'\t' | b'\n' | b'\r'))
        {
            self.at += 1;
        }
    }

    fn peek(&self) -> Option<u8> {
        self.text.as_bytes().get(self.at).copied()
    }
}
