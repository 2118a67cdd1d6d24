//! JSON trees without numbers: the checks look at texts, lists and members only, and numbers keep their text elsewhere.

use super::{FieldError, Problem};
use serde::{
    Deserialize, Deserializer,
    de::{MapAccess, Visitor},
};
use serde_json::value::RawValue;
use std::{collections::BTreeMap, fmt};

/// The deepest nesting of objects and arrays (section 11).
const MAX_DEPTH: usize = 16;

/// A JSON value.
#[derive(Debug)]
pub(super) enum Tree {
    Object(BTreeMap<String, Tree>),
    Array(Vec<Tree>),
    Text(String),
    /// A number, a boolean or null.
    Other,
}

/// Where a value stands: a JSON pointer (RFC 6901).
#[derive(Clone, Copy, Debug)]
pub(super) struct Pointer<'a> {
    parent: Option<&'a Pointer<'a>>,
    step: Step<'a>,
}

#[derive(Clone, Copy, Debug)]
enum Step<'a> {
    Root,
    Member(&'a str),
    Item(usize),
}

impl<'a> Pointer<'a> {
    pub(super) const ROOT: Pointer<'static> = Pointer {
        parent: None,
        step: Step::Root,
    };

    pub(super) fn member(&'a self, name: &'a str) -> Pointer<'a> {
        Pointer {
            parent: Some(self),
            step: Step::Member(name),
        }
    }

    pub(super) fn item(&'a self, index: usize) -> Pointer<'a> {
        Pointer {
            parent: Some(self),
            step: Step::Item(index),
        }
    }

    pub(super) fn error(&self, problem: Problem) -> FieldError {
        FieldError {
            pointer: self.to_string(),
            problem,
        }
    }
}

impl fmt::Display for Pointer<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if let Some(parent) = self.parent {
            parent.fmt(f)?;
        }
        match self.step {
            Step::Root => Ok(()),
            Step::Member(name) => write!(f, "/{}", name.replace('~', "~0").replace('/', "~1")),
            Step::Item(index) => write!(f, "/{index}"),
        }
    }
}

impl Tree {
    /// Reads a JSON text. No object may name a member twice: two readers of it could disagree.
    pub(super) fn read(text: &str) -> Result<Self, FieldError> {
        let raw: &RawValue = serde_json::from_str(text).map_err(|_| Pointer::ROOT.error(Problem::NotJson))?;
        read(raw.get(), &Pointer::ROOT, MAX_DEPTH)
    }

    pub(super) fn as_object(&self) -> Option<&BTreeMap<String, Self>> {
        match self {
            Self::Object(members) => Some(members),
            Self::Array(_) | Self::Text(_) | Self::Other => None,
        }
    }

    pub(super) fn as_array(&self) -> Option<&[Self]> {
        match self {
            Self::Array(items) => Some(items),
            Self::Object(_) | Self::Text(_) | Self::Other => None,
        }
    }

    pub(super) fn as_text(&self) -> Option<&str> {
        match self {
            Self::Text(text) => Some(text),
            Self::Object(_) | Self::Array(_) | Self::Other => None,
        }
    }
}

/// Reads the text of one value; `depth` more levels may follow.
fn read(text: &str, at: &Pointer<'_>, depth: usize) -> Result<Tree, FieldError> {
    let not_json = |_| at.error(Problem::NotJson);
    let deeper = || depth.checked_sub(1).ok_or_else(|| at.error(Problem::TooDeep));
    match text.as_bytes() {
        [b'{', ..] => {
            let depth = deeper()?;
            let Members(members) = serde_json::from_str(text).map_err(not_json)?;
            let mut object = BTreeMap::new();
            for (name, value) in members {
                let value = read(value.get(), &at.member(&name), depth)?;
                if object.contains_key(&name) {
                    return Err(at.member(&name).error(Problem::Duplicate));
                }
                object.insert(name, value);
            }
            Ok(Tree::Object(object))
        }
        [b'[', ..] => {
            let depth = deeper()?;
            let items: Vec<&RawValue> = serde_json::from_str(text).map_err(not_json)?;
            let items = items.iter().enumerate();
            let items = items.map(|(index, item)| read(item.get(), &at.item(index), depth));
            items.collect::<Result<_, _>>().map(Tree::Array)
        }
        [b'"', ..] => serde_json::from_str(text).map(Tree::Text).map_err(not_json),
        _ => Ok(Tree::Other),
    }
}

/// The members of an object, in their order, with those of the same name.
struct Members<'a>(Vec<(String, &'a RawValue)>);

impl<'de> Deserialize<'de> for Members<'de> {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        struct All;
        impl<'de> Visitor<'de> for All {
            type Value = Members<'de>;

            fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str("an object")
            }

            fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<Self::Value, A::Error> {
                let mut members = Vec::new();
                while let Some(member) = map.next_entry()? {
                    members.push(member);
                }
                Ok(Members(members))
            }
        }
        deserializer.deserialize_map(All)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn error(text: &str) -> (String, Problem) {
        let error = Tree::read(text).unwrap_err();
        (error.pointer, error.problem)
    }

    #[test]
    fn a_member_twice_is_refused_wherever_it_stands() {
        assert_eq!(error(r#"{"a":1,"a":1}"#), ("/a".to_owned(), Problem::Duplicate));
        assert_eq!(
            error(r#"{"x/y~":[0,{"b":1,"\u0062":2}]}"#),
            ("/x~1y~0/1/b".to_owned(), Problem::Duplicate)
        );
        assert!(Tree::read(r#"{"a":{"a":1},"b":[{"a":1},{"a":1}]}"#).is_ok());
    }

    #[test]
    fn texts_that_are_no_json_are_refused() {
        for text in [
            "",
            "{",
            "{}{}",
            "[1,]",
            "{\"a\":01}",
            "\u{feff}{}",
            "{\"a\":\"\\ud800\"}",
        ] {
            assert_eq!(error(text).1, Problem::NotJson, "{text}");
        }
    }

    /// CO-38: depth at most 16.
    #[test]
    fn co38_values_nest_at_most_sixteen_levels() {
        let nested = |depth: usize| format!("{}{}", "[".repeat(depth), "]".repeat(depth));
        assert!(Tree::read(&nested(16)).is_ok());
        assert_eq!(error(&nested(17)), ("/0".repeat(16), Problem::TooDeep));
        assert_eq!(error(&nested(8000)), ("/0".repeat(16), Problem::TooDeep));
        let objects = |depth: usize| format!("{}1{}", "{\"a\":".repeat(depth), "}".repeat(depth));
        assert!(Tree::read(&objects(16)).is_ok());
        assert_eq!(error(&objects(17)).1, Problem::TooDeep);
    }
}
