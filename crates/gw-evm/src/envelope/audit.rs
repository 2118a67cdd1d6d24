//! The walk over a whole body: not too deep, no member named twice (J3).
//!
//! Not a parser: the text is JSON already, so that strings, brackets and colons are all there is to look at.

use super::EnvelopeError;
use memchr::memchr2;
use std::{borrow::Cow, collections::BTreeSet};

/// The deepest nesting of objects and arrays (J3).
pub const MAX_DEPTH: usize = 64;

pub(super) fn audit(json: &str) -> Result<(), EnvelopeError> {
    let mut names = Names::default();
    let mut last = "";
    let mut at = 0;
    while let Some(byte) = json.as_bytes().get(at) {
        at += 1;
        match byte {
            b'"' => {
                let end = string_end(json, at).ok_or_else(EnvelopeError::parse)?;
                last = json.get(at..end).ok_or_else(EnvelopeError::parse)?;
                at = end + 1;
            }
            b'{' | b'[' => {
                if names.open.len() == MAX_DEPTH {
                    return Err(EnvelopeError::invalid("nested too deeply"));
                }
                names.enter();
            }
            b'}' | b']' => names.leave(),
            // Outside of strings a colon follows nothing but a name.
            b':' if !names.insert(unescaped(last)?) => {
                return Err(EnvelopeError::invalid("a member is named twice"));
            }
            _ => {}
        }
    }
    Ok(())
}

/// Where the closing quote of the string that begins at `at` is.
fn string_end(json: &str, mut at: usize) -> Option<usize> {
    loop {
        at += memchr2(b'"', b'\\', json.as_bytes().get(at..)?)?;
        match json.as_bytes().get(at) {
            Some(b'"') => return Some(at),
            _ => at += 2,
        }
    }
}

fn unescaped(name: &str) -> Result<Cow<'_, str>, EnvelopeError> {
    if !name.contains('\\') {
        return Ok(Cow::Borrowed(name));
    }
    serde_json::from_str(&format!("\"{name}\""))
        .map(Cow::Owned)
        .map_err(|_| EnvelopeError::parse())
}

/// The names of the objects that are open, ASCII case folded. Small objects, which is all of them in honest requests,
/// are compared one by one; large ones go to a set, so that time stays linear.
#[derive(Default)]
struct Names<'a> {
    few: Vec<Cow<'a, str>>,
    open: Vec<Open>,
}

/// One open object or array.
struct Open {
    /// Where its first names begin.
    first: usize,
    /// Its further names.
    many: BTreeSet<String>,
}

impl<'a> Names<'a> {
    const FEW: usize = 16;

    fn enter(&mut self) {
        self.open.push(Open {
            first: self.few.len(),
            many: BTreeSet::new(),
        });
    }

    fn leave(&mut self) {
        if let Some(closed) = self.open.pop() {
            self.few.truncate(closed.first);
        }
    }

    /// Whether `name` is new in the innermost object.
    fn insert(&mut self, name: Cow<'a, str>) -> bool {
        let Some(open) = self.open.last_mut() else { return false };
        let few = self.few.get(open.first..).unwrap_or_default();
        if few.iter().any(|known| known.eq_ignore_ascii_case(&name)) {
            return false;
        }
        if few.len() < Self::FEW {
            self.few.push(name);
            return true;
        }
        open.many.insert(name.to_ascii_lowercase())
    }
}
