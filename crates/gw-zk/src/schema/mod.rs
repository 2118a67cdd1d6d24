//! Credential schemas: a small reader of JSON-LD contexts (spec/10 ZK-76 and the table "Encodings").
//!
//! It answers three questions about a credential type: its IRI, where a field is stored, and the field's data type. The
//! caller passes documents as bytes. If a document refers to one that was not passed, the error names it, so that the
//! caller can fetch it and try again. A wallet's data never reaches this code.

mod context;

use std::collections::BTreeMap;

use ark_bn254::Fr;
use ark_ff::AdditiveGroup;
use serde_json::Value;

use self::context::{ActiveContext, ContextScope};
use crate::encode::Datatype;
use crate::hash::{self, PathPart};

/// Maximum size of a document in bytes.
pub const MAX_DOCUMENT: usize = 1 << 20;

/// Maximum number of steps in a field's path.
const MAX_PATH: usize = 15;

/// Documents by URL.
#[derive(Clone, Debug, Default)]
pub struct Documents(BTreeMap<String, Vec<u8>>);

impl Documents {
    /// Adds a document, or replaces an older one.
    pub fn insert(&mut self, url: impl Into<String>, bytes: impl Into<Vec<u8>>) {
        self.0.insert(url.into(), bytes.into());
    }

    /// The document with this URL, if it was added.
    #[must_use]
    pub fn get(&self, url: &str) -> Option<&[u8]> {
        self.0.get(url).map(Vec::as_slice)
    }

    /// The number of documents.
    #[must_use]
    pub fn len(&self) -> usize {
        self.0.len()
    }

    /// Whether there are no documents.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }
}

/// Why a schema cannot be used.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum SchemaError {
    /// Another document is needed; this is its URL.
    #[error("document `{0}` is not at hand")]
    Missing(String),
    /// Larger than [`MAX_DOCUMENT`].
    #[error("document has {0} bytes; at most {MAX_DOCUMENT} are read")]
    TooLarge(usize),
    /// Not JSON.
    #[error("document is no JSON: {0}")]
    Json(String),
    /// No usable `@context`.
    #[error("document has no usable `@context`")]
    NoContext,
    /// Contexts or terms refer to each other too deeply.
    #[error("contexts are nested too deeply")]
    TooDeep,
    /// Too many terms.
    #[error("context has too many terms")]
    TooManyTerms,
    /// A JSON-LD feature that is not supported.
    #[error("context uses `{0}`, which is not supported")]
    Unsupported(String),
    /// A term's definition is invalid.
    #[error("term `{0}` has no valid definition")]
    Term(String),
    /// A protected term is redefined.
    #[error("protected term `{0}` is redefined")]
    Protected(String),
    /// The credential type is not in the document.
    #[error("type `{0}` is not in the schema")]
    UnknownType(String),
    /// A field is not in the type.
    #[error("field `{0}` is not in the schema of the type")]
    UnknownField(String),
    /// A path is too long or has an empty step.
    #[error("field path `{0}` cannot be used")]
    Path(String),
    /// The slot serialization of a type that is not merklized is invalid.
    #[error("serialization `{0}` cannot be read")]
    Serialization(String),
    /// The serialization assigns no slot to the field.
    #[error("field `{0}` is in no slot of the credential")]
    NoSlot(String),
}

/// A credential type and all its fields.
#[derive(Clone, Debug)]
pub struct Schema {
    iri: String,
    context: ActiveContext,
    documents: Documents,
    layout: Layout,
}

/// How claims of the type store their fields.
#[derive(Clone, Debug, PartialEq, Eq)]
enum Layout {
    /// In a Merkle tree.
    Merklized,
    /// In slots, by field path.
    Slots(BTreeMap<String, u64>),
}

/// Where a field is stored, and its data type.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Field {
    /// Key in the claim's tree, or 0.
    pub key: Fr,
    /// Slot of the claim, or 0.
    pub slot: u64,
    /// Its data type.
    pub datatype: Datatype,
}

impl Schema {
    /// Reads the type with that name from the document at `url`.
    ///
    /// # Errors
    /// [`SchemaError`]; `Missing` if a document is needed that was not added.
    pub fn read(url: &str, type_name: &str, documents: &Documents) -> Result<Self, SchemaError> {
        let bytes = documents.get(url).ok_or_else(|| SchemaError::Missing(url.into()))?;
        let document = parse(bytes)?;
        let mut context = ActiveContext::default();
        context.apply(
            document.get("@context").ok_or(SchemaError::NoContext)?,
            ContextScope::Document,
            documents,
        )?;
        let unknown = || SchemaError::UnknownType(type_name.into());
        let term = context
            .term(type_name)
            .filter(|term| term.is_field())
            .ok_or_else(unknown)?;
        let iri = term.iri.clone();
        let mut layout = Layout::Merklized;
        if let Some(scoped) = term.context.clone() {
            if let Some(serialization) = serialization(&scoped) {
                layout = Layout::Slots(slots(serialization)?);
            }
            context.apply(&scoped, ContextScope::Document, documents)?;
        }
        Ok(Self {
            iri,
            context,
            documents: documents.clone(),
            layout,
        })
    }

    /// IRI of the type.
    #[must_use]
    pub fn iri(&self) -> &str {
        &self.iri
    }

    /// The schema hash in claims of the type.
    #[must_use]
    pub fn hash(&self) -> u128 {
        hash::schema(&self.iri)
    }

    /// Whether claims of the type store their fields in a Merkle tree.
    #[must_use]
    pub fn merklized(&self) -> bool {
        self.layout == Layout::Merklized
    }

    /// The field with this path: names and list indices, joined by dots.
    ///
    /// # Errors
    /// [`SchemaError`] if the type has no such field or it cannot be addressed.
    pub fn field(&self, path: &str) -> Result<Field, SchemaError> {
        let (parts, datatype) = self.resolve(path)?;
        let datatype = Datatype::from_iri(datatype.as_deref());
        match &self.layout {
            Layout::Merklized => {
                let key = hash::claim_path(&parts).ok_or_else(|| SchemaError::Path(path.into()))?;
                Ok(Field { key, slot: 0, datatype })
            }
            Layout::Slots(slots) => {
                let slot = *slots.get(path).ok_or_else(|| SchemaError::NoSlot(path.into()))?;
                Ok(Field {
                    key: Fr::ZERO,
                    slot,
                    datatype,
                })
            }
        }
    }

    fn resolve(&self, path: &str) -> Result<(Vec<PathPart>, Option<String>), SchemaError> {
        let mut context = self.context.clone();
        let mut parts = Vec::new();
        let mut datatype = None;
        for step in path.split('.') {
            if step.is_empty() || parts.len() >= MAX_PATH {
                return Err(SchemaError::Path(path.into()));
            }
            if step.bytes().all(|b| b.is_ascii_digit()) && !parts.is_empty() {
                parts.push(PathPart::Index(
                    step.parse().map_err(|_| SchemaError::Path(path.into()))?,
                ));
                continue;
            }
            let unknown = || SchemaError::UnknownField(path.into());
            let term = context.term(step).filter(|term| term.is_field()).ok_or_else(unknown)?;
            parts.push(PathPart::Iri(term.iri.clone()));
            datatype = term.datatype.clone();
            if let Some(scoped) = term.context.clone() {
                context.apply(&scoped, ContextScope::Field, &self.documents)?;
            }
        }
        Ok((parts, datatype))
    }
}

fn parse(bytes: &[u8]) -> Result<Value, SchemaError> {
    if bytes.len() > MAX_DOCUMENT {
        return Err(SchemaError::TooLarge(bytes.len()));
    }
    // The parser itself rejects more than 128 levels.
    serde_json::from_slice(bytes).map_err(|error| SchemaError::Json(error.to_string()))
}

const SERIALIZATION: &str = "iden3_serialization";

/// The attribute that assigns a type's fields to slots.
fn serialization(context: &Value) -> Option<&Value> {
    match context {
        Value::Object(terms) => terms.get(SERIALIZATION),
        Value::Array(parts) => parts.iter().find_map(serialization),
        Value::Null | Value::Bool(_) | Value::Number(_) | Value::String(_) => None,
    }
}

/// Reads `iden3:v1:slotIndexA=birthday&slotIndexB=documentType`.
fn slots(serialization: &Value) -> Result<BTreeMap<String, u64>, SchemaError> {
    let bad = || SchemaError::Serialization(serialization.to_string());
    let pairs = serialization
        .as_str()
        .and_then(|text| text.strip_prefix("iden3:v1:"))
        .ok_or_else(bad)?;
    let mut slots = BTreeMap::new();
    let mut taken = Vec::new();
    for pair in pairs.split('&').filter(|pair| !pair.is_empty()) {
        let (slot, path) = pair.split_once('=').ok_or_else(bad)?;
        let slot = match slot {
            "slotIndexA" => 2,
            "slotIndexB" => 3,
            "slotValueA" => 6,
            "slotValueB" => 7,
            _ => return Err(bad()),
        };
        if taken.contains(&slot) {
            return Err(bad());
        }
        taken.push(slot);
        slots.insert(path.into(), slot);
    }
    Ok(slots)
}
