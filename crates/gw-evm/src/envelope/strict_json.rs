//! Checks a whole body for excessive depth and for repeated members (J3).
//!
//! This is not a parser: the text is already known to be JSON, so only strings, brackets and colons matter.

use super::EnvelopeError;
use memchr::memchr2;
use std::{borrow::Cow, collections::BTreeSet};

/// Maximum nesting of objects and arrays (J3).
pub const MAX_DEPTH: usize = 64;

pub(super) fn check_strict_json(json: &str) -> Result<(), EnvelopeError> {
    let mut names = Names::default();
    let mut last_string = "";
    let mut offset = 0;
    while let Some(byte) = json.as_bytes().get(offset) {
        offset += 1;
        match byte {
            b'"' => {
                let end = string_end(json, offset).ok_or_else(EnvelopeError::parse)?;
                last_string = json.get(offset..end).ok_or_else(EnvelopeError::parse)?;
                offset = end + 1;
            }
            b'{' | b'[' => {
                if names.open.len() == MAX_DEPTH {
                    return Err(EnvelopeError::invalid("nested too deeply"));
                }
                names.enter();
            }
            b'}' | b']' => names.leave(),
            // Outside strings, a colon only follows a name.
            b':' if !names.insert(unescape(last_string)?) => {
                return Err(EnvelopeError::invalid("a member is named twice"));
            }
            _ => {}
        }
    }
    Ok(())
}

/// The position of the closing quote of a string whose content begins at `offset`.
fn string_end(json: &str, mut offset: usize) -> Option<usize> {
    loop {
        offset += memchr2(b'"', b'\\', json.as_bytes().get(offset..)?)?;
        match json.as_bytes().get(offset) {
            Some(b'"') => return Some(offset),
            _ => offset += 2,
        }
    }
}

fn unescape(name: &str) -> Result<Cow<'_, str>, EnvelopeError> {
    if !name.contains('\\') {
        return Ok(Cow::Borrowed(name));
    }
    serde_json::from_str(&format!("\"{name}\""))
        .map(Cow::Owned)
        .map_err(|_| EnvelopeError::parse())
}

/// The member names of all open objects, compared without ASCII case. The first [`Names::LINEAR_MAX`] names of an
/// object are compared one by one, which covers ordinary requests. Further names go to a set, so that large objects
/// do not take quadratic time.
#[derive(Default)]
struct Names<'a> {
    names: Vec<Cow<'a, str>>,
    open: Vec<Open>,
}

/// One open object or array.
struct Open {
    /// Index of its first name in [`Names::names`].
    first: usize,
    /// Its names after the first [`Names::LINEAR_MAX`], in lower case.
    overflow: BTreeSet<String>,
}

impl<'a> Names<'a> {
    const LINEAR_MAX: usize = 16;

    fn enter(&mut self) {
        self.open.push(Open {
            first: self.names.len(),
            overflow: BTreeSet::new(),
        });
    }

    fn leave(&mut self) {
        if let Some(closed) = self.open.pop() {
            self.names.truncate(closed.first);
        }
    }

    /// Whether `name` is new in the innermost object.
    fn insert(&mut self, name: Cow<'a, str>) -> bool {
        let Some(open) = self.open.last_mut() else { return false };
        let names = self.names.get(open.first..).unwrap_or_default();
        if names.iter().any(|known| known.eq_ignore_ascii_case(&name)) {
            return false;
        }
        if names.len() < Self::LINEAR_MAX {
            self.names.push(name);
            return true;
        }
        open.overflow.insert(name.to_ascii_lowercase())
    }
}
