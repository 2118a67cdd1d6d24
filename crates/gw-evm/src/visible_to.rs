//! `visibleTo` and `privateFor`: the additional viewers of a transaction, as the caller wrote them (W4, R25).
//!
//! Both members are removed from every call, but only some methods use them. A malformed list is therefore stored as
//! an error, which is returned only where the list is used (decision 25).

use crate::error::ParamError;
use serde_json::value::RawValue;

/// The union of the raw entries of all `visibleTo` and `privateFor` members of one request.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct VisibleTo {
    entries: Vec<String>,
    fault: Option<VisibleToError>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum VisibleToError {
    Malformed,
    TooMany,
}

impl VisibleTo {
    /// Maximum number of raw entries in one request (R26).
    pub const MAX: usize = 32;

    /// Reads one member; `null` is an empty list.
    pub fn read(raw: &RawValue) -> Self {
        let malformed = Self {
            entries: Vec::new(),
            fault: Some(VisibleToError::Malformed),
        };
        let Ok(items) = serde_json::from_str::<Option<Vec<&RawValue>>>(raw.get()) else {
            return malformed;
        };
        let items = items.unwrap_or_default();
        if items.len() > Self::MAX {
            return Self {
                entries: Vec::new(),
                fault: Some(VisibleToError::TooMany),
            };
        }
        match items.iter().map(|item| serde_json::from_str(item.get())).collect() {
            Ok(entries) => Self { entries, fault: None },
            Err(_) => malformed,
        }
    }

    /// The union of both lists; an error in either list is kept.
    #[must_use]
    pub fn union(mut self, other: Self) -> Self {
        self.entries.extend(other.entries);
        self.fault = self.fault.or(other.fault);
        if self.fault.is_none() && self.entries.len() > Self::MAX {
            self.fault = Some(VisibleToError::TooMany);
        }
        self
    }

    /// Whether there is neither an entry nor an error.
    pub fn is_empty(&self) -> bool {
        self.entries.is_empty() && self.fault.is_none()
    }

    /// The entries, neither parsed nor resolved; at most [`Self::MAX`].
    ///
    /// # Errors
    ///
    /// A [`ParamError`] if a member is not an array of strings, or if there are more than [`Self::MAX`] entries.
    pub fn entries(&self) -> Result<&[String], ParamError> {
        match self.fault {
            None => Ok(&self.entries),
            Some(VisibleToError::Malformed) => Err(ParamError::invalid("visibleTo must be an array of strings")),
            Some(VisibleToError::TooMany) => Err(ParamError::invalid("visibleTo holds more than 32 entries")),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read(json: &str) -> VisibleTo {
        VisibleTo::read(serde_json::from_str(json).unwrap())
    }

    fn list(n: usize) -> String {
        serde_json::to_string(&vec!["did:x:y"; n]).unwrap()
    }

    #[test]
    fn r25_both_lists_are_united() {
        let united = read(r#"["a","b"]"#).union(read(r#"["c\u0064"]"#));
        assert_eq!(united.entries().unwrap(), ["a", "b", "cd"]);
        assert!(read("null").is_empty() && read("[]").is_empty());
    }

    #[test]
    fn r26_more_than_32_raw_entries_are_refused_however_they_are_split() {
        assert_eq!(read(&list(32)).entries().unwrap().len(), 32);
        assert!(read(&list(33)).entries().is_err());
        assert!(read(&list(16)).union(read(&list(17))).entries().is_err());
        assert!(!read(&list(33)).is_empty());
    }

    #[test]
    fn w4_a_value_that_is_not_a_list_of_strings_is_kept_as_an_error() {
        for bad in ["1", "\"did:x:y\"", "{}", "[1]", "[[\"a\"]]", "[null]"] {
            assert!(read(bad).entries().is_err(), "{bad}");
            assert!(!read(bad).is_empty(), "{bad}");
        }
    }
}
