//! Methods beside the registry, by the operator's file (spec/20 section 13): some stand for a row of the registry, others
//! pass through unexamined.
//!
//! Invariant: no name of the registry and no blocked name is ever an [`Extra`], whatever the file says.

mod file;

use crate::method::{Lookup, Method, blocked};
use std::{collections::BTreeMap, fmt, sync::Arc};

/// A method beside the registry.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Extra {
    name: String,
    row: Option<Method>,
    wildcard: Option<Arc<Wildcard>>,
}

impl Extra {
    /// The name the node is asked by.
    pub fn name(&self) -> &str {
        &self.name
    }

    /// The row it is judged and answered by (N2); `None` passes through unexamined (N3).
    pub const fn row(&self) -> Option<Method> {
        self.row
    }
}

/// A prefix whose methods pass through unexamined.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Wildcard {
    /// The start of the names, as the node writes it.
    pub prefix: String,
    /// Names, or starts of names with a `*`, that do not pass.
    pub deny: Vec<String>,
}

impl Wildcard {
    /// How a method list grants it (G4).
    pub fn entry(&self) -> String {
        format!("{}*", self.prefix)
    }

    fn covers(&self, name: &str) -> bool {
        starts_with(name, &self.prefix)
    }

    fn denies(&self, name: &str) -> bool {
        self.deny.iter().any(|pattern| match pattern.strip_suffix('*') {
            Some(start) => starts_with(name, start),
            None => name.eq_ignore_ascii_case(pattern),
        })
    }
}

/// One namespace of the file.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Namespace {
    /// Its methods that stand for a row.
    pub methods: Vec<Arc<Extra>>,
    /// Its prefix.
    pub wildcard: Option<Arc<Wildcard>>,
}

/// Everything beside the registry; nothing by default.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Extras {
    namespaces: BTreeMap<String, Namespace>,
    /// By folded name.
    methods: BTreeMap<String, Arc<Extra>>,
    wildcards: Vec<Arc<Wildcard>>,
}

impl Extras {
    /// Reads the operator's file, or says all that is wrong with it. Prefixes need `unfiltered`: what they let through
    /// nobody examines.
    pub fn parse(text: &str, unfiltered: bool) -> Result<Self, Vec<ExtrasError>> {
        file::parse(text, unfiltered)
    }

    /// The namespaces, by name.
    pub const fn namespaces(&self) -> &BTreeMap<String, Namespace> {
        &self.namespaces
    }

    /// What `name` means (J6), the registry first.
    pub fn lookup(&self, name: &str) -> Lookup {
        match Method::lookup(name) {
            Lookup::Unknown => self.beside(name),
            found @ (Lookup::Known(_) | Lookup::Extra(_) | Lookup::Blocked) => found,
        }
    }

    fn beside(&self, name: &str) -> Lookup {
        if self.namespaces.is_empty() || !is_method_name(name) {
            return Lookup::Unknown;
        }
        let wildcard = self.wildcards.iter().find(|wildcard| wildcard.covers(name));
        if wildcard.is_some_and(|wildcard| wildcard.denies(name)) {
            return Lookup::Blocked;
        }
        if let Some(extra) = self.methods.get(&name.to_ascii_lowercase()) {
            return Lookup::Extra(Arc::clone(extra));
        }
        match wildcard.and_then(|wildcard| Some((wildcard, name.get(wildcard.prefix.len()..)?))) {
            Some((wildcard, rest)) if !rest.is_empty() => {
                let name = format!("{}{rest}", wildcard.prefix);
                Lookup::Extra(Arc::new(Extra {
                    name,
                    row: None,
                    wildcard: Some(Arc::clone(wildcard)),
                }))
            }
            Some(_) | None => Lookup::Unknown,
        }
    }

    /// The entry of a method list as it is stored: a row, `*`, a method beside the registry, or a registered prefix with
    /// its `*` (G2, G3, G4).
    pub fn entry(&self, entry: &str) -> Result<String, EntryError> {
        if entry == crate::MethodSet::WILDCARD {
            return Ok(entry.to_owned());
        }
        if let Some(prefix) = entry.strip_suffix('*') {
            let found = self
                .wildcards
                .iter()
                .find(|wildcard| wildcard.prefix.eq_ignore_ascii_case(prefix));
            return found.map(|wildcard| wildcard.entry()).ok_or(EntryError::Unknown);
        }
        match self.lookup(entry) {
            Lookup::Known(method) => Ok(method.as_str().to_owned()),
            Lookup::Extra(extra) => Ok(extra.name.clone()),
            Lookup::Blocked => Err(EntryError::Blocked),
            Lookup::Unknown => Err(EntryError::Unknown),
        }
    }
}

/// Why an entry cannot stand in a method list.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum EntryError {
    /// Exists, and is never granted.
    #[error("cannot be granted")]
    Blocked,
    /// Nothing of that name.
    #[error("is unknown")]
    Unknown,
}

/// What is wrong with the file, and where.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{0}")]
pub struct ExtrasError(String);

/// The entries of one group's lists that are not of the registry. What they mean, the file says when they are used: a
/// name that left the file grants nothing.
#[derive(Clone, Default, PartialEq, Eq)]
pub struct ExtraNames {
    allowed: Arc<[Box<str>]>,
    denied: Arc<[Box<str>]>,
}

/// What in a list lets a method through.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Listed {
    /// Its name.
    ByName,
    /// The prefix it falls under.
    ByPrefix,
}

impl ExtraNames {
    /// Of what a group allows and what it takes out again (G1).
    pub fn of(allowed: &[String], denied: &[String]) -> Self {
        let beside = |names: &[String]| {
            let names = names
                .iter()
                .filter(|name| *name != crate::MethodSet::WILDCARD && Method::by_name(name).is_none());
            names.map(|name| Box::from(name.as_str())).collect()
        };
        Self {
            allowed: beside(allowed),
            denied: beside(denied),
        }
    }

    /// The entries that let something through.
    pub fn entries(&self) -> impl Iterator<Item = &str> {
        let open = |entry: &&str| !self.denied.iter().any(|denied| denied.eq_ignore_ascii_case(entry));
        self.allowed.iter().map(|entry| &**entry).filter(open)
    }

    /// Whether the lists let the method through, and by which entry. `*` alone never does (G3).
    pub fn lists(&self, extra: &Extra) -> Option<Listed> {
        let prefix = extra.wildcard.as_deref().map(Wildcard::entry);
        let named = |list: &[Box<str>], name: &str| list.iter().any(|entry| entry.eq_ignore_ascii_case(name));
        let by_prefix = |list: &[Box<str>]| prefix.as_deref().is_some_and(|entry| named(list, entry));
        if named(&self.denied, &extra.name) || by_prefix(&self.denied) {
            return None;
        }
        if named(&self.allowed, &extra.name) {
            return Some(Listed::ByName);
        }
        by_prefix(&self.allowed).then_some(Listed::ByPrefix)
    }
}

impl fmt::Debug for ExtraNames {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_list().entries(self.allowed.iter()).finish()
    }
}

/// Letters, digits and `_`, with a namespace in front: what can be told from any other spelling of itself.
fn is_method_name(name: &str) -> bool {
    let Some((namespace, rest)) = name.split_once('_') else {
        return false;
    };
    name.len() <= Method::NAME_MAX
        && namespace.starts_with(|first: char| first.is_ascii_alphabetic())
        && namespace.bytes().all(|byte| byte.is_ascii_alphanumeric())
        && !rest.is_empty()
        && rest.bytes().all(|byte| byte.is_ascii_alphanumeric() || byte == b'_')
}

fn starts_with(name: &str, start: &str) -> bool {
    name.get(..start.len())
        .is_some_and(|head| head.eq_ignore_ascii_case(start))
}

/// Whether names under `prefix` could be blocked ones.
fn reaches_blocked(prefix: &str) -> bool {
    blocked::meets(prefix)
}
