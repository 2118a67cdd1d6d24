//! Custom methods, which are not in the registry (spec/20 section 13). The operator's file defines them: some are
//! aliases of a registry method, others pass through unexamined.
//!
//! Invariant: no registry name and no blocked name is ever a [`CustomMethod`], regardless of the file.

mod file;

use crate::method::{Method, MethodLookup, blocked};
use std::{collections::BTreeMap, fmt, sync::Arc};

/// A method that is not in the registry.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct CustomMethod {
    name: String,
    row: Option<Method>,
    wildcard: Option<Arc<Wildcard>>,
}

impl CustomMethod {
    /// The name in upstream requests.
    pub fn name(&self) -> &str {
        &self.name
    }

    /// The registry method whose checks and response rules apply (N2); `None` passes through unexamined (N3).
    pub const fn method(&self) -> Option<Method> {
        self.row
    }
}

/// A name prefix whose methods pass through unexamined.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Wildcard {
    /// The prefix, in the case that the node uses.
    pub prefix: String,
    /// Denied names; an entry that ends in `*` denies every name with that prefix.
    pub deny: Vec<String>,
}

impl Wildcard {
    /// The method list entry that grants this prefix (G4).
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
    /// Its aliases of registry methods.
    pub methods: Vec<Arc<CustomMethod>>,
    /// Its wildcard prefix.
    pub wildcard: Option<Arc<Wildcard>>,
}

/// All custom methods; empty by default.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct CustomMethods {
    namespaces: BTreeMap<String, Namespace>,
    /// Keyed by the lower-case name.
    methods: BTreeMap<String, Arc<CustomMethod>>,
    wildcards: Vec<Arc<Wildcard>>,
}

impl CustomMethods {
    /// Parses the operator's file. Wildcard prefixes require `allow_unfiltered`, because their calls pass unexamined.
    ///
    /// # Errors
    ///
    /// Every error in the file, so that the operator can fix all of them at once.
    pub fn parse(text: &str, allow_unfiltered: bool) -> Result<Self, Vec<CustomMethodsError>> {
        file::parse(text, allow_unfiltered)
    }

    /// The namespaces, by name.
    pub const fn namespaces(&self) -> &BTreeMap<String, Namespace> {
        &self.namespaces
    }

    /// Looks `name` up (J6), first in the registry, then among the custom methods.
    pub fn lookup(&self, name: &str) -> MethodLookup {
        match Method::lookup(name) {
            MethodLookup::Unknown => self.in_namespace(name),
            lookup @ (MethodLookup::Registered(_) | MethodLookup::Custom(_) | MethodLookup::Blocked) => lookup,
        }
    }

    fn in_namespace(&self, name: &str) -> MethodLookup {
        if self.namespaces.is_empty() || !is_method_name(name) {
            return MethodLookup::Unknown;
        }
        let wildcard = self.wildcards.iter().find(|wildcard| wildcard.covers(name));
        if wildcard.is_some_and(|wildcard| wildcard.denies(name)) {
            return MethodLookup::Blocked;
        }
        if let Some(method) = self.methods.get(&name.to_ascii_lowercase()) {
            return MethodLookup::Custom(Arc::clone(method));
        }
        match wildcard.and_then(|wildcard| Some((wildcard, name.get(wildcard.prefix.len()..)?))) {
            Some((wildcard, rest)) if !rest.is_empty() => {
                let name = format!("{}{rest}", wildcard.prefix);
                MethodLookup::Custom(Arc::new(CustomMethod {
                    name,
                    row: None,
                    wildcard: Some(Arc::clone(wildcard)),
                }))
            }
            Some(_) | None => MethodLookup::Unknown,
        }
    }

    /// The stored form of a method list entry: a registry method, `*`, a custom method, or a configured prefix with
    /// its `*` (G2, G3, G4).
    ///
    /// # Errors
    ///
    /// [`EntryError`] if the entry is blocked or unknown.
    pub fn entry(&self, entry: &str) -> Result<String, EntryError> {
        if entry == crate::MethodSet::WILDCARD {
            return Ok(entry.to_owned());
        }
        if let Some(prefix) = entry.strip_suffix('*') {
            let wildcard = self
                .wildcards
                .iter()
                .find(|wildcard| wildcard.prefix.eq_ignore_ascii_case(prefix));
            return wildcard.map(|wildcard| wildcard.entry()).ok_or(EntryError::Unknown);
        }
        match self.lookup(entry) {
            MethodLookup::Registered(method) => Ok(method.as_str().to_owned()),
            MethodLookup::Custom(method) => Ok(method.name.clone()),
            MethodLookup::Blocked => Err(EntryError::Blocked),
            MethodLookup::Unknown => Err(EntryError::Unknown),
        }
    }
}

/// Why an entry cannot be part of a method list.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum EntryError {
    /// The method is blocked and never granted.
    #[error("cannot be granted")]
    Blocked,
    /// No method or prefix has this name.
    #[error("is unknown")]
    Unknown,
}

/// An error in the operator's file, with its location.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{0}")]
pub struct CustomMethodsError(String);

/// The entries of a group's method lists that are not registry methods. They are resolved against the operator's file
/// at the time of use, so a name that was removed from the file grants nothing.
#[derive(Clone, Default, PartialEq, Eq)]
pub struct CustomMethodNames {
    allowed: Arc<[Box<str>]>,
    denied: Arc<[Box<str>]>,
}

/// The kind of allow list entry that lets a method through.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum AllowListMatch {
    /// By the method's name.
    ByName,
    /// By the prefix of its wildcard.
    ByPrefix,
}

impl CustomMethodNames {
    /// Selects the custom entries of a group's allow list and deny list (G1).
    pub fn new(allowed: &[String], denied: &[String]) -> Self {
        let custom_entries = |names: &[String]| {
            let names = names
                .iter()
                .filter(|name| *name != crate::MethodSet::WILDCARD && Method::by_name(name).is_none());
            names.map(|name| Box::from(name.as_str())).collect()
        };
        Self {
            allowed: custom_entries(allowed),
            denied: custom_entries(denied),
        }
    }

    /// The allowed entries that are not denied.
    pub fn entries(&self) -> impl Iterator<Item = &str> {
        let is_open = |entry: &&str| !self.denied.iter().any(|denied| denied.eq_ignore_ascii_case(entry));
        self.allowed.iter().map(|entry| &**entry).filter(is_open)
    }

    /// Whether the lists let the method through, and by which kind of entry. `*` alone never does (G3).
    pub fn lists(&self, method: &CustomMethod) -> Option<AllowListMatch> {
        let prefix = method.wildcard.as_deref().map(Wildcard::entry);
        let contains = |list: &[Box<str>], name: &str| list.iter().any(|entry| entry.eq_ignore_ascii_case(name));
        let by_prefix = |list: &[Box<str>]| prefix.as_deref().is_some_and(|entry| contains(list, entry));
        if contains(&self.denied, &method.name) || by_prefix(&self.denied) {
            return None;
        }
        if contains(&self.allowed, &method.name) {
            return Some(AllowListMatch::ByName);
        }
        by_prefix(&self.allowed).then_some(AllowListMatch::ByPrefix)
    }
}

impl fmt::Debug for CustomMethodNames {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_list().entries(self.allowed.iter()).finish()
    }
}

/// Whether `name` is a namespace, `_`, and letters, digits or `_`. Such a name has no second spelling except for
/// ASCII case.
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

/// Whether a name with this prefix could be blocked.
fn reaches_blocked(prefix: &str) -> bool {
    blocked::overlaps(prefix)
}
