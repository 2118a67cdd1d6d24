//! The operator's file (spec/20 N1): version 1 or 2, and all that is wrong with it at once.
//!
//! ```json
//! {"version": 2, "namespaces": {"linea": {
//!     "explicit": [{"method": "linea_estimateGas", "alias": "eth_estimateGas"}],
//!     "wildcard": {"prefix": "linea_", "deny": ["linea_sendBundle", "linea_sign*"]}}}}
//! ```
//!
//! Version 1 has no prefixes: a namespace is the list that version 2 calls `explicit`.

use super::{Extra, Extras, ExtrasError, Namespace, Wildcard, is_method_name, reaches_blocked, starts_with};
use crate::{
    envelope,
    method::{Lookup, Method},
};
use serde_json::{Map, Value};
use std::{collections::BTreeMap, sync::Arc};

/// Namespaces of the protocol, whose methods are the registry's to know, and our own.
const CLOSED: [&str; 5] = ["eth_", "net_", "web3_", "debug_", "gateway_"];

pub(super) fn parse(text: &str, unfiltered: bool) -> Result<Extras, Vec<ExtrasError>> {
    let whole = |text: &str| vec![ExtrasError(text.to_owned())];
    let file: Value = serde_json::from_str(text).map_err(|error| whole(&format!("is no JSON: {error}")))?;
    // A member that stands twice would be read by its last place only.
    envelope::unambiguous(text).map_err(|error| whole(&error.to_string()))?;
    let mut reader = Reader {
        unfiltered,
        found: Extras::default(),
        wrong: Vec::new(),
    };
    reader.file(&file);
    if reader.wrong.is_empty() {
        Ok(reader.found)
    } else {
        Err(reader.wrong)
    }
}

struct Reader {
    unfiltered: bool,
    found: Extras,
    wrong: Vec<ExtrasError>,
}

impl Reader {
    fn wrong(&mut self, text: impl Into<String>) {
        self.wrong.push(ExtrasError(text.into()));
    }

    /// The object, its unknown members reported.
    fn object<'v>(&mut self, value: &'v Value, what: &str, members: &[&str]) -> Option<&'v Map<String, Value>> {
        let Value::Object(object) = value else {
            self.wrong(format!("{what} must be an object"));
            return None;
        };
        for name in object.keys().filter(|name| !members.contains(&name.as_str())) {
            self.wrong(format!("{what} has an unknown member `{}`", shown(name)));
        }
        Some(object)
    }

    fn file(&mut self, file: &Value) {
        let Some(file) = self.object(file, "the file", &["version", "namespaces"]) else {
            return;
        };
        let version = match file.get("version").and_then(Value::as_u64) {
            Some(version @ (1 | 2)) => version,
            Some(_) | None => return self.wrong("`version` must be 1 or 2"),
        };
        let Some(Value::Object(namespaces)) = file.get("namespaces") else {
            return self.wrong("`namespaces` must be an object");
        };
        for (name, value) in namespaces {
            let plain = |byte: u8| byte.is_ascii_alphanumeric() || matches!(byte, b'_' | b'-');
            if name.is_empty() || name.len() > 64 || !name.bytes().all(plain) {
                self.wrong(format!(
                    "namespace `{}`: a name has 1 to 64 letters, digits, `_` or `-`",
                    shown(name)
                ));
                continue;
            }
            let namespace = self.namespace(name, value, version);
            self.found.namespaces.insert(name.clone(), namespace);
        }
        self.apart();
    }

    fn namespace(&mut self, name: &str, value: &Value, version: u64) -> Namespace {
        if value.is_array() {
            return Namespace {
                methods: self.methods(name, value),
                wildcard: None,
            };
        }
        if version == 1 {
            self.wrong(format!("namespace `{name}`: version 1 knows a list of methods only"));
            return Namespace::default();
        }
        let what = format!("namespace `{name}`");
        let Some(object) = self.object(value, &what, &["explicit", "wildcard"]) else {
            return Namespace::default();
        };
        let methods = object
            .get("explicit")
            .map(|list| self.methods(name, list))
            .unwrap_or_default();
        let wildcard = object
            .get("wildcard")
            .and_then(|wildcard| self.wildcard(name, wildcard))
            .map(Arc::new);
        Namespace { methods, wildcard }
    }

    fn methods(&mut self, namespace: &str, list: &Value) -> Vec<Arc<Extra>> {
        let Value::Array(list) = list else {
            self.wrong(format!("namespace `{namespace}`: its methods must be a list"));
            return Vec::new();
        };
        list.iter()
            .filter_map(|entry| self.method(namespace, entry))
            .map(Arc::new)
            .collect()
    }

    fn method(&mut self, namespace: &str, entry: &Value) -> Option<Extra> {
        let what = format!("namespace `{namespace}`: an entry");
        let object = self.object(entry, &what, &["method", "alias"])?;
        let Some(name) = object.get("method").and_then(Value::as_str) else {
            self.wrong(format!("{what} has no `method`"));
            return None;
        };
        let what = format!("namespace `{namespace}`, method `{}`", shown(name));
        let row = match object.get("alias").and_then(Value::as_str) {
            None => {
                self.wrong(format!("{what}: `alias` is missing"));
                None
            }
            Some(alias) => {
                let row = Method::by_name(alias);
                if row.is_none() {
                    let why = if Method::lookup(alias) == Lookup::Blocked {
                        "is blocked"
                    } else {
                        "is in no table"
                    };
                    self.wrong(format!("{what}: alias `{}` {why}", shown(alias)));
                }
                row
            }
        };
        if !is_method_name(name) {
            self.wrong(format!(
                "{what}: a method is a namespace, `_`, and letters, digits or `_`, at most 128 in all"
            ));
            return None;
        }
        match Method::lookup(name) {
            Lookup::Known(_) => self.wrong(format!("{what}: the name is taken by the registry")),
            Lookup::Blocked => self.wrong(format!("{what}: blocked methods are never served")),
            Lookup::Unknown | Lookup::Extra(_) if starts_with(name, "gateway_") => {
                self.wrong(format!("{what}: `gateway_` is the gateway's own"));
            }
            Lookup::Unknown | Lookup::Extra(_) => {
                return Some(Extra {
                    name: name.to_owned(),
                    row: Some(row?),
                    wildcard: None,
                });
            }
        }
        None
    }

    fn wildcard(&mut self, namespace: &str, value: &Value) -> Option<Wildcard> {
        let what = format!("namespace `{namespace}`, wildcard");
        let object = self.object(value, &what, &["prefix", "deny"])?;
        let Some(prefix) = object.get("prefix").and_then(Value::as_str) else {
            self.wrong(format!("{what}: `prefix` is missing"));
            return None;
        };
        let what = format!("{what} `{}`", shown(prefix));
        let before = self.wrong.len();
        if !self.unfiltered {
            self.wrong(format!(
                "{what}: lets calls pass unexamined, and ALLOW_UNFILTERED_WILDCARDS is not `true`"
            ));
        }
        // With something after it, the prefix is the start of a name.
        if !is_method_name(&format!("{prefix}x")) {
            self.wrong(format!(
                "{what}: a prefix is a namespace, `_`, and letters, digits or `_`"
            ));
        } else if CLOSED.iter().any(|closed| starts_with(prefix, closed)) {
            self.wrong(format!("{what}: methods of this namespace are the registry's"));
        } else if reaches_blocked(prefix) {
            self.wrong(format!("{what}: covers blocked methods"));
        }
        let none = Vec::new();
        let deny = match object.get("deny") {
            None => &none,
            Some(Value::Array(deny)) => deny,
            Some(_) => {
                self.wrong(format!("{what}: `deny` must be a list"));
                &none
            }
        };
        let mut patterns = Vec::with_capacity(deny.len());
        for pattern in deny {
            match pattern.as_str() {
                Some(text) if is_pattern(text) && starts_with(text, prefix) => patterns.push(text.to_owned()),
                Some(text) => {
                    let text = shown(text);
                    self.wrong(format!(
                        "{what}: deny `{text}` is no name under the prefix, nor a start of one with `*`"
                    ));
                }
                None => self.wrong(format!("{what}: `deny` holds something that is no name")),
            }
        }
        (self.wrong.len() == before).then(|| Wildcard {
            prefix: prefix.to_owned(),
            deny: patterns,
        })
    }

    /// Nothing means two things: methods, prefixes and what is denied are told apart, whatever the case.
    fn apart(&mut self) {
        let namespaces = std::mem::take(&mut self.found.namespaces);
        let mut owners: BTreeMap<String, String> = BTreeMap::new();
        for (namespace, entry) in &namespaces {
            if let Some(wildcard) = &entry.wildcard {
                if let Some(other) = self
                    .found
                    .wildcards
                    .iter()
                    .find(|other| overlap(&other.prefix, &wildcard.prefix))
                {
                    let (this, other) = (&wildcard.prefix, other.prefix.clone());
                    self.wrong(format!(
                        "namespace `{namespace}`, wildcard `{this}`: overlaps wildcard `{other}`"
                    ));
                }
                self.found.wildcards.push(Arc::clone(wildcard));
            }
            for method in &entry.methods {
                let name = &method.name;
                if let Some(other) = owners.insert(name.to_ascii_lowercase(), namespace.clone()) {
                    self.wrong(format!(
                        "namespace `{namespace}`, method `{name}`: stands in namespace `{other}` already"
                    ));
                }
            }
        }
        self.found.namespaces = namespaces
            .into_iter()
            .map(|(name, entry)| (name.clone(), self.placed(&name, entry)))
            .collect();
    }

    /// Each method with the prefix it falls under.
    fn placed(&mut self, namespace: &str, entry: Namespace) -> Namespace {
        let methods = entry.methods.into_iter().map(|method| {
            let wildcard = self
                .found
                .wildcards
                .iter()
                .find(|wildcard| wildcard.covers(&method.name))
                .cloned();
            if wildcard.as_ref().is_some_and(|wildcard| wildcard.denies(&method.name)) {
                self.wrong(format!(
                    "namespace `{namespace}`, method `{}`: a wildcard denies it",
                    method.name
                ));
            }
            let placed = Arc::new(Extra {
                wildcard,
                ..Extra::clone(&method)
            });
            self.found
                .methods
                .insert(placed.name.to_ascii_lowercase(), Arc::clone(&placed));
            placed
        });
        Namespace {
            methods: methods.collect(),
            wildcard: entry.wildcard,
        }
    }
}

fn is_pattern(text: &str) -> bool {
    match text.strip_suffix('*') {
        Some(start) => is_method_name(&format!("{start}x")),
        None => is_method_name(text),
    }
}

fn overlap(one: &str, other: &str) -> bool {
    starts_with(one, other) || starts_with(other, one)
}

/// A name as it may stand in a report: one short line.
fn shown(name: &str) -> String {
    name.chars()
        .take(Method::NAME_MAX)
        .flat_map(char::escape_debug)
        .collect()
}
