//! The part of JSON-LD 1.1 context processing that resolves a term's IRI and type.

use std::collections::{BTreeMap, BTreeSet};

use serde_json::{Map, Value};

use super::{Documents, SchemaError};

/// Maximum nesting of contexts, and of terms that refer to terms.
const MAX_DEPTH: usize = 16;
/// Maximum number of terms in one context, all its parts together.
const MAX_TERMS: usize = 4_096;

/// The definition of a term.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct ContextTerm {
    /// An absolute IRI, or a keyword.
    pub(super) iri: String,
    /// IRI (or keyword) of the type of its values.
    pub(super) datatype: Option<String>,
    /// The scoped context: it applies below the term.
    pub(super) context: Option<Value>,
    prefix: bool,
    reverse: bool,
    protected: bool,
}

impl ContextTerm {
    fn has_same_definition(&self, other: &Self) -> bool {
        Self {
            protected: self.protected,
            ..other.clone()
        } == *self
    }

    /// Whether the term names a field: neither an alias of a keyword nor a reverse property.
    pub(super) fn is_field(&self) -> bool {
        !self.iri.starts_with('@') && !self.reverse
    }
}

/// The terms that apply at one place.
#[derive(Clone, Debug, Default)]
pub(super) struct ActiveContext {
    terms: BTreeMap<String, ContextTerm>,
    vocab: Option<String>,
}

/// Where a context comes from. Property-scoped contexts may redefine protected terms.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum ContextScope {
    /// The document, or a type.
    Document,
    /// A field.
    Field,
}

impl ActiveContext {
    pub(super) fn term(&self, name: &str) -> Option<&ContextTerm> {
        self.terms.get(name)
    }

    /// Applies a context on top of the active one.
    pub(super) fn apply(
        &mut self,
        context: &Value,
        scope: ContextScope,
        documents: &Documents,
    ) -> Result<(), SchemaError> {
        self.apply_at(context, scope, documents, 0)
    }

    fn apply_at(
        &mut self,
        context: &Value,
        scope: ContextScope,
        documents: &Documents,
        depth: usize,
    ) -> Result<(), SchemaError> {
        if depth > MAX_DEPTH {
            return Err(SchemaError::TooDeep);
        }
        let deeper = depth.saturating_add(1);
        match context {
            Value::Null => {
                if scope == ContextScope::Document && self.terms.values().any(|term| term.protected) {
                    return Err(SchemaError::Protected("@context".into()));
                }
                *self = Self::default();
                Ok(())
            }
            Value::Array(parts) => parts
                .iter()
                .try_for_each(|part| self.apply_at(part, scope, documents, deeper)),
            Value::String(url) => {
                let bytes = documents.get(url).ok_or_else(|| SchemaError::Missing(url.clone()))?;
                let document = super::parse(bytes)?;
                let inner = document.get("@context").ok_or(SchemaError::NoContext)?;
                self.apply_at(inner, scope, documents, deeper)
            }
            Value::Object(local) => self.apply_local(local, scope),
            Value::Bool(_) | Value::Number(_) => Err(SchemaError::NoContext),
        }
    }

    fn apply_local(&mut self, local: &Map<String, Value>, scope: ContextScope) -> Result<(), SchemaError> {
        for unsupported in ["@import"] {
            if local.contains_key(unsupported) {
                return Err(SchemaError::Unsupported(unsupported.into()));
            }
        }
        match local.get("@vocab") {
            None => {}
            Some(Value::Null) => self.vocab = None,
            Some(Value::String(vocab)) => self.vocab = Some(vocab.clone()),
            Some(_) => return Err(SchemaError::Term("@vocab".into())),
        }
        if let Some(vocab) = self.vocab.clone() {
            let mut pending = LocalContext {
                local,
                defined: BTreeSet::new(),
                scope,
            };
            self.vocab = Some(self.expand(&vocab, &mut pending, 0)?);
        }
        let mut pending = LocalContext {
            local,
            defined: BTreeSet::new(),
            scope,
        };
        for name in local.keys().filter(|name| !name.starts_with('@')) {
            self.define(name, &mut pending, 0)?;
        }
        if self.terms.len() > MAX_TERMS {
            return Err(SchemaError::TooManyTerms);
        }
        Ok(())
    }

    fn define<'a>(&mut self, name: &'a str, pending: &mut LocalContext<'a>, depth: usize) -> Result<(), SchemaError> {
        // Marked as defined before it is finished: a term that needs itself then counts as undefined, and does not
        // loop.
        if depth > MAX_DEPTH || !pending.defined.insert(name) {
            return if depth > MAX_DEPTH {
                Err(SchemaError::TooDeep)
            } else {
                Ok(())
            };
        }
        let Some(definition) = pending.local.get(name) else {
            return Ok(());
        };
        let old = self.terms.remove(name);
        let protected = pending
            .local
            .get("@protected")
            .and_then(Value::as_bool)
            .unwrap_or_default();
        let new = self.definition(name, definition, protected, pending, depth)?;
        if let Some(old) = old.filter(|old| old.protected && pending.scope == ContextScope::Document) {
            match new {
                Some(new) if old.has_same_definition(&new) => self.terms.insert(name.into(), old),
                Some(_) | None => return Err(SchemaError::Protected(name.into())),
            };
        } else if let Some(new) = new {
            self.terms.insert(name.into(), new);
        }
        Ok(())
    }

    /// Returns `None` if the definition removes the term.
    fn definition<'a>(
        &mut self,
        name: &'a str,
        definition: &'a Value,
        protected: bool,
        pending: &mut LocalContext<'a>,
        depth: usize,
    ) -> Result<Option<ContextTerm>, SchemaError> {
        let bad = || SchemaError::Term(name.into());
        let (id, expanded) = match definition {
            Value::Null => return Ok(None),
            Value::String(id) => (Some(id.as_str()), None),
            Value::Object(expanded) => match (expanded.get("@reverse"), expanded.get("@id")) {
                (Some(Value::String(id)), None) | (None, Some(Value::String(id))) => {
                    (Some(id.as_str()), Some(expanded))
                }
                (None, None) => (None, Some(expanded)),
                (None, Some(Value::Null)) => return Ok(None),
                (Some(_), _) | (None, Some(_)) => return Err(bad()),
            },
            Value::Bool(_) | Value::Number(_) | Value::Array(_) => return Err(bad()),
        };
        let get = |key: &str| expanded.and_then(|expanded| expanded.get(key));
        let deeper = depth.saturating_add(1);
        let iri = match id.filter(|id| *id != name) {
            Some(id) => self.expand(id, pending, deeper)?,
            None if name.get(1..).is_some_and(|rest| rest.contains(':')) => self
                .expand_compact(name, pending, deeper)?
                .unwrap_or_else(|| name.into()),
            None => format!("{}{name}", self.vocab.as_ref().ok_or_else(bad)?),
        };
        if !iri.starts_with('@') && !iri.contains(':') {
            return Err(bad());
        }
        let datatype = match get("@type") {
            None => None,
            Some(Value::String(datatype)) => Some(self.expand(datatype, pending, deeper)?),
            Some(_) => return Err(bad()),
        };
        let flag = |key: &str, default: bool| match get(key) {
            None => Ok(default),
            Some(Value::Bool(value)) => Ok(*value),
            Some(_) => Err(bad()),
        };
        let is_simple = definition.is_string();
        let prefix = flag(
            "@prefix",
            is_simple && iri.ends_with([':', '/', '?', '#', '[', ']', '@']),
        )?;
        Ok(Some(ContextTerm {
            prefix,
            reverse: get("@reverse").is_some(),
            protected: flag("@protected", protected)?,
            context: get("@context").cloned(),
            datatype,
            iri,
        }))
    }

    /// Expands an IRI, compact IRI or term to the full IRI.
    fn expand<'a>(
        &mut self,
        text: &'a str,
        pending: &mut LocalContext<'a>,
        depth: usize,
    ) -> Result<String, SchemaError> {
        if text.starts_with('@') {
            return Ok(text.into());
        }
        if pending.local.contains_key(text) {
            self.define(text, pending, depth)?;
        }
        if let Some(term) = self.terms.get(text) {
            return Ok(term.iri.clone());
        }
        if text.get(1..).is_some_and(|rest| rest.contains(':')) {
            return Ok(self
                .expand_compact(text, pending, depth)?
                .unwrap_or_else(|| text.into()));
        }
        Ok(self
            .vocab
            .as_ref()
            .map_or_else(|| text.into(), |vocab| format!("{vocab}{text}")))
    }

    /// Returns `None` if the text is not a compact IRI with a known prefix.
    fn expand_compact<'a>(
        &mut self,
        text: &'a str,
        pending: &mut LocalContext<'a>,
        depth: usize,
    ) -> Result<Option<String>, SchemaError> {
        let Some((prefix, rest)) = text.split_once(':') else {
            return Ok(None);
        };
        if prefix == "_" || rest.starts_with("//") {
            return Ok(None);
        }
        if pending.local.contains_key(prefix) {
            self.define(prefix, pending, depth)?;
        }
        Ok(self
            .terms
            .get(prefix)
            .filter(|term| term.prefix)
            .map(|term| format!("{}{rest}", term.iri)))
    }
}

/// A context whose terms are being defined.
struct LocalContext<'a> {
    local: &'a Map<String, Value>,
    defined: BTreeSet<&'a str>,
    scope: ContextScope,
}
