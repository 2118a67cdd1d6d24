//! Parses the operator's file of custom methods (spec/20 N1), version 1 or 2, and collects all its errors.
//!
//! ```json
//! {"version": 2, "namespaces": {"linea": {
//!     "explicit": [{"method": "linea_estimateGas", "alias": "eth_estimateGas"}],
//!     "wildcard": {"prefix": "linea_", "deny": ["linea_sendBundle", "linea_sign*"]}}}}
//! ```
//!
//! Version 1 has no wildcards: a namespace is the list that version 2 calls `explicit`.

use super::{
    CustomMethod, CustomMethods, CustomMethodsError, Namespace, Wildcard, is_method_name, reaches_blocked, starts_with,
};
use crate::{
    envelope,
    method::{Method, MethodLookup},
};
use serde_json::{Map, Value};
use std::{collections::BTreeMap, sync::Arc};

/// Prefixes that no wildcard may start with: the namespaces of the protocol, which belong to the registry, and the
/// namespace of the gateway.
const RESERVED_PREFIXES: [&str; 5] = ["eth_", "net_", "web3_", "debug_", "gateway_"];

pub(super) fn parse(text: &str, allow_unfiltered: bool) -> Result<CustomMethods, Vec<CustomMethodsError>> {
    let file_error = |message: &str| vec![CustomMethodsError(message.to_owned())];
    let file: Value = serde_json::from_str(text).map_err(|error| file_error(&format!("is not JSON: {error}")))?;
    // Of a repeated member, `serde_json` would only keep the last value.
    envelope::reject_duplicate_keys(text).map_err(|error| file_error(&error.to_string()))?;
    let mut reader = Reader {
        allow_unfiltered,
        custom_methods: CustomMethods::default(),
        errors: Vec::new(),
    };
    reader.file(&file);
    if reader.errors.is_empty() {
        Ok(reader.custom_methods)
    } else {
        Err(reader.errors)
    }
}

struct Reader {
    allow_unfiltered: bool,
    custom_methods: CustomMethods,
    errors: Vec<CustomMethodsError>,
}

impl Reader {
    fn report(&mut self, message: impl Into<String>) {
        self.errors.push(CustomMethodsError(message.into()));
    }

    /// Reads an object and reports its unknown members.
    fn object<'v>(&mut self, value: &'v Value, location: &str, members: &[&str]) -> Option<&'v Map<String, Value>> {
        let Value::Object(object) = value else {
            self.report(format!("{location} must be an object"));
            return None;
        };
        for name in object.keys().filter(|name| !members.contains(&name.as_str())) {
            self.report(format!("{location} has an unknown member `{}`", printable(name)));
        }
        Some(object)
    }

    fn file(&mut self, file: &Value) {
        let Some(file) = self.object(file, "the file", &["version", "namespaces"]) else {
            return;
        };
        let version = match file.get("version").and_then(Value::as_u64) {
            Some(version @ (1 | 2)) => version,
            Some(_) | None => return self.report("`version` must be 1 or 2"),
        };
        let Some(Value::Object(namespaces)) = file.get("namespaces") else {
            return self.report("`namespaces` must be an object");
        };
        for (name, value) in namespaces {
            let is_allowed = |byte: u8| byte.is_ascii_alphanumeric() || matches!(byte, b'_' | b'-');
            if name.is_empty() || name.len() > 64 || !name.bytes().all(is_allowed) {
                self.report(format!(
                    "namespace `{}`: a name has 1 to 64 letters, digits, `_` or `-`",
                    printable(name)
                ));
                continue;
            }
            let namespace = self.namespace(name, value, version);
            self.custom_methods.namespaces.insert(name.clone(), namespace);
        }
        self.resolve_conflicts();
    }

    fn namespace(&mut self, name: &str, value: &Value, version: u64) -> Namespace {
        if value.is_array() {
            return Namespace {
                methods: self.methods(name, value),
                wildcard: None,
            };
        }
        if version == 1 {
            self.report(format!(
                "namespace `{name}`: in version 1, a namespace is a list of methods"
            ));
            return Namespace::default();
        }
        let location = format!("namespace `{name}`");
        let Some(object) = self.object(value, &location, &["explicit", "wildcard"]) else {
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

    fn methods(&mut self, namespace: &str, list: &Value) -> Vec<Arc<CustomMethod>> {
        let Value::Array(list) = list else {
            self.report(format!("namespace `{namespace}`: its methods must be a list"));
            return Vec::new();
        };
        list.iter()
            .filter_map(|entry| self.method(namespace, entry))
            .map(Arc::new)
            .collect()
    }

    fn method(&mut self, namespace: &str, entry: &Value) -> Option<CustomMethod> {
        let location = format!("namespace `{namespace}`: an entry");
        let object = self.object(entry, &location, &["method", "alias"])?;
        let Some(name) = object.get("method").and_then(Value::as_str) else {
            self.report(format!("{location} has no `method`"));
            return None;
        };
        let location = format!("namespace `{namespace}`, method `{}`", printable(name));
        let row = match object.get("alias").and_then(Value::as_str) {
            None => {
                self.report(format!("{location}: `alias` is missing"));
                None
            }
            Some(alias) => {
                let row = Method::by_name(alias);
                if row.is_none() {
                    let why = if Method::lookup(alias) == MethodLookup::Blocked {
                        "is blocked"
                    } else {
                        "is not a registry method"
                    };
                    self.report(format!("{location}: alias `{}` {why}", printable(alias)));
                }
                row
            }
        };
        if !is_method_name(name) {
            self.report(format!(
                "{location}: a method is a namespace, `_`, and letters, digits or `_`, at most 128 in all"
            ));
            return None;
        }
        match Method::lookup(name) {
            MethodLookup::Registered(_) => self.report(format!("{location}: the name belongs to the registry")),
            MethodLookup::Blocked => self.report(format!("{location}: blocked methods are never served")),
            MethodLookup::Unknown | MethodLookup::Custom(_) if starts_with(name, "gateway_") => {
                self.report(format!("{location}: `gateway_` is reserved for the gateway"));
            }
            MethodLookup::Unknown | MethodLookup::Custom(_) => {
                return Some(CustomMethod {
                    name: name.to_owned(),
                    row: Some(row?),
                    wildcard: None,
                });
            }
        }
        None
    }

    fn wildcard(&mut self, namespace: &str, value: &Value) -> Option<Wildcard> {
        let location = format!("namespace `{namespace}`, wildcard");
        let object = self.object(value, &location, &["prefix", "deny"])?;
        let Some(prefix) = object.get("prefix").and_then(Value::as_str) else {
            self.report(format!("{location}: `prefix` is missing"));
            return None;
        };
        let location = format!("{location} `{}`", printable(prefix));
        let error_count = self.errors.len();
        if !self.allow_unfiltered {
            self.report(format!(
                "{location}: its calls pass unexamined, which requires ALLOW_UNFILTERED_WILDCARDS=true"
            ));
        }
        // A prefix is valid if it becomes a method name when a letter follows.
        if !is_method_name(&format!("{prefix}x")) {
            self.report(format!(
                "{location}: a prefix is a namespace, `_`, and letters, digits or `_`"
            ));
        } else if RESERVED_PREFIXES.iter().any(|reserved| starts_with(prefix, reserved)) {
            self.report(format!("{location}: methods of this namespace are the registry's"));
        } else if reaches_blocked(prefix) {
            self.report(format!("{location}: the prefix covers blocked methods"));
        }
        let empty = Vec::new();
        let deny = match object.get("deny") {
            None => &empty,
            Some(Value::Array(deny)) => deny,
            Some(_) => {
                self.report(format!("{location}: `deny` must be a list"));
                &empty
            }
        };
        let mut patterns = Vec::with_capacity(deny.len());
        for pattern in deny {
            match pattern.as_str() {
                Some(text) if is_pattern(text) && starts_with(text, prefix) => patterns.push(text.to_owned()),
                Some(text) => {
                    let text = printable(text);
                    self.report(format!(
                        "{location}: deny `{text}` is neither a name under the prefix nor the start of one with `*`"
                    ));
                }
                None => self.report(format!("{location}: `deny` contains an entry that is not a string")),
            }
        }
        (self.errors.len() == error_count).then(|| Wildcard {
            prefix: prefix.to_owned(),
            deny: patterns,
        })
    }

    /// Reports conflicts, compared without ASCII case: overlapping wildcards, methods that are defined twice, and
    /// methods that a wildcard denies. Then assigns each method its wildcard.
    fn resolve_conflicts(&mut self) {
        let namespaces = std::mem::take(&mut self.custom_methods.namespaces);
        let mut owners: BTreeMap<String, String> = BTreeMap::new();
        for (namespace, entry) in &namespaces {
            if let Some(wildcard) = &entry.wildcard {
                if let Some(other) = self
                    .custom_methods
                    .wildcards
                    .iter()
                    .find(|other| overlap(&other.prefix, &wildcard.prefix))
                {
                    let (this, other) = (&wildcard.prefix, other.prefix.clone());
                    self.report(format!(
                        "namespace `{namespace}`, wildcard `{this}`: overlaps wildcard `{other}`"
                    ));
                }
                self.custom_methods.wildcards.push(Arc::clone(wildcard));
            }
            for method in &entry.methods {
                let name = &method.name;
                if let Some(other) = owners.insert(name.to_ascii_lowercase(), namespace.clone()) {
                    self.report(format!(
                        "namespace `{namespace}`, method `{name}`: is already defined in namespace `{other}`"
                    ));
                }
            }
        }
        self.custom_methods.namespaces = namespaces
            .into_iter()
            .map(|(name, entry)| (name.clone(), self.assign_wildcards(&name, entry)))
            .collect();
    }

    /// Assigns each method the wildcard that covers its name.
    fn assign_wildcards(&mut self, namespace: &str, entry: Namespace) -> Namespace {
        let methods = entry.methods.into_iter().map(|method| {
            let wildcard = self
                .custom_methods
                .wildcards
                .iter()
                .find(|wildcard| wildcard.covers(&method.name))
                .cloned();
            if wildcard.as_ref().is_some_and(|wildcard| wildcard.denies(&method.name)) {
                self.report(format!(
                    "namespace `{namespace}`, method `{}`: a wildcard denies it",
                    method.name
                ));
            }
            let method = Arc::new(CustomMethod {
                wildcard,
                ..CustomMethod::clone(&method)
            });
            self.custom_methods
                .methods
                .insert(method.name.to_ascii_lowercase(), Arc::clone(&method));
            method
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

fn overlap(first: &str, second: &str) -> bool {
    starts_with(first, second) || starts_with(second, first)
}

/// Escapes and shortens a name for an error message, to one short line.
fn printable(name: &str) -> String {
    name.chars()
        .take(Method::NAME_MAX)
        .flat_map(char::escape_debug)
        .collect()
}
