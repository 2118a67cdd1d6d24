//! What a request asks of a credential, computed into what a proof must show (spec/10 section 2.7).
//!
//! A query names fields and values; a proof carries hashes of them. [`Requested`] is the query in the proof's terms. It is
//! computed once, from the schema the query names, not at each login.

mod operator;
mod settings;

use ark_bn254::Fr;
use serde::Deserialize;
use serde_json::{Map, Value};

pub use self::operator::Operator;
pub use self::settings::{CredentialQuery, Settings, SettingsError};
use crate::circuit::Circuit;
use crate::did::{Did, DidError, Id};
use crate::encode::{self, Datatype, EncodeError};
use crate::hash::QUERY_VALUES;
use crate::number;
use crate::query::operator::Arity;
use crate::schema::{Documents, Schema, SchemaError};

/// Why a query cannot be asked.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum QueryError {
    /// Not an entry of a scope.
    #[error("the scope entry cannot be read: {0}")]
    Shape(String),
    /// No circuit of ours, or one that proves no credential.
    #[error("`{0}` is no circuit for credentials")]
    Circuit(String),
    /// The schema does not help.
    #[error("the credential schema cannot be used")]
    Schema(#[from] SchemaError),
    /// A subject that is no object.
    #[error("`credentialSubject` is no object")]
    Subject,
    /// What is asked of a field is no object.
    #[error("the predicate of `{0}` is no object")]
    Predicate(String),
    /// Unknown, or beyond the circuit.
    #[error("operator `{operator}` of `{field}` is not known to the circuit")]
    Operator {
        /// The field.
        field: String,
        /// As written.
        operator: String,
    },
    /// Not for values of this type.
    #[error("operator `{operator}` cannot compare `{field}`, which holds a {datatype}", datatype = .datatype.name())]
    Forbidden {
        /// The field.
        field: String,
        /// As written.
        operator: &'static str,
        /// What the field holds.
        datatype: Datatype,
    },
    /// Too few, too many, or no list.
    #[error("operator `{operator}` of `{field}` has the wrong number of values")]
    Values {
        /// The field.
        field: String,
        /// As written.
        operator: &'static str,
    },
    /// A value of the wrong type.
    #[error("a value of `{field}` cannot be compared with")]
    Value {
        /// The field.
        field: String,
        /// Why.
        #[source]
        source: EncodeError,
    },
    /// Neither of the two kinds of proof.
    #[error("`{0}` is no kind of credential proof")]
    ProofType(String),
    /// A nullifier needs a session below the field's order.
    #[error("the nullifier session is no number")]
    NullifierSession,
    /// A nullifier needs a verifier with an identifier.
    #[error("the verifier of the nullifier has no identifier")]
    Verifier(#[source] DidError),
    /// Linked queries say nothing about anyone without the credential proof they are linked to.
    #[error("linked query {0} has no credential query in its group")]
    Unlinked(u64),
    /// Two entries cannot be told apart.
    #[error("two scope entries have the id {0}")]
    SameId(u64),
}

/// One predicate in the proof's terms.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Predicate {
    /// Path of the field; `None` asks for the credential alone.
    pub field: Option<String>,
    /// What the field holds.
    pub datatype: Datatype,
    /// How it is compared.
    pub operator: Operator,
    /// What with, encoded.
    pub values: Vec<Fr>,
    /// Claim path key, or 0.
    pub key: Fr,
    /// Slot, or 0.
    pub slot: u64,
}

/// How the issuer vouched for the credential.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ProofType {
    /// By signature.
    Signature,
    /// By its tree.
    Tree,
}

/// The number a credential gives to one verifier and session, always the same.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Nullification {
    /// The session.
    pub session: Fr,
    /// Whom it is made for.
    pub verifier: Id,
}

/// One entry of a request's scope, ready to be compared with a proof.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Requested {
    /// Its id; proofs name it.
    pub id: u64,
    /// The circuit asked for.
    pub circuit: Circuit,
    /// Accepted issuers; `None` accepts all.
    pub issuers: Option<Vec<String>>,
    /// Address of the schema.
    pub context: String,
    /// Name of the credential type.
    pub type_name: String,
    /// What claims of the type carry as schema.
    pub schema: Fr,
    /// Whether claims of the type keep their fields in a tree.
    pub merklized: bool,
    /// What is asked of the fields; never empty.
    pub predicates: Vec<Predicate>,
    /// Whether the proof may leave revocation aside.
    pub skips_revocation: bool,
    /// Kinds of proof accepted; empty accepts both.
    pub proof_types: Vec<ProofType>,
    /// Entries of one group speak of one credential.
    pub group: Option<u64>,
    /// Whether a nullifier is asked for.
    pub nullification: Option<Nullification>,
    /// Whether an answer may leave it out. One that is there must hold all the same.
    pub optional: bool,
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct Entry {
    id: u64,
    circuit_id: String,
    query: Query,
    #[serde(default)]
    params: Option<Params>,
    #[serde(default)]
    optional: bool,
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct Query {
    #[serde(default)]
    allowed_issuers: Option<Vec<String>>,
    context: String,
    r#type: String,
    #[serde(default)]
    credential_subject: Option<Value>,
    #[serde(default)]
    skip_claim_revocation_check: bool,
    #[serde(default)]
    proof_type: Option<OneOrMany>,
    #[serde(default)]
    group_id: Option<u64>,
}

#[derive(Deserialize)]
#[serde(untagged)]
enum OneOrMany {
    One(String),
    Many(Vec<String>),
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct Params {
    #[serde(default)]
    nullifier_session_id: Option<Value>,
    #[serde(default)]
    verifier_did: Option<String>,
}

/// All entries of a scope; `verifier` is who asks.
///
/// # Errors
/// [`QueryError`]; one that stems from a missing document names it.
pub fn compute(scope: &[Value], verifier: &str, documents: &Documents) -> Result<Vec<Requested>, QueryError> {
    let requested: Vec<Requested> = scope
        .iter()
        .map(|entry| Requested::compute(entry, verifier, documents))
        .collect::<Result<_, _>>()?;
    for (place, entry) in requested.iter().enumerate() {
        if requested.iter().take(place).any(|earlier| earlier.id == entry.id) {
            return Err(QueryError::SameId(entry.id));
        }
        let is_anchor = |other: &Requested| !is_linked(other.circuit) && other.group == entry.group;
        if is_linked(entry.circuit) && (entry.group.is_none() || !requested.iter().any(is_anchor)) {
            return Err(QueryError::Unlinked(entry.id));
        }
    }
    Ok(requested)
}

/// Whether proofs of this circuit add predicates to a proof of another.
pub(crate) fn is_linked(circuit: Circuit) -> bool {
    matches!(
        circuit,
        Circuit::Linked10 | Circuit::Linked10Beta1 | Circuit::Linked5 | Circuit::Linked3
    )
}

impl Requested {
    /// One entry.
    ///
    /// # Errors
    /// [`QueryError`]; one that stems from a missing document names it.
    pub fn compute(entry: &Value, verifier: &str, documents: &Documents) -> Result<Self, QueryError> {
        let entry = Entry::deserialize(entry).map_err(|error| QueryError::Shape(error.to_string()))?;
        let query = entry.query;
        let circuit = Circuit::of_id(&entry.circuit_id)
            .filter(|circuit| !circuit.is_auth())
            .ok_or_else(|| QueryError::Circuit(entry.circuit_id.clone()))?;
        let schema = Schema::read(&query.context, &query.r#type, documents)?;
        let predicates = predicates(query.credential_subject.as_ref(), &schema, circuit)?;
        Ok(Self {
            id: entry.id,
            circuit,
            issuers: query.allowed_issuers,
            schema: Fr::from(schema.hash()),
            merklized: schema.merklized(),
            context: query.context,
            type_name: query.r#type,
            predicates,
            skips_revocation: query.skip_claim_revocation_check,
            proof_types: proof_types(query.proof_type)?,
            group: query.group_id.filter(|group| *group != 0),
            nullification: nullification(entry.params, verifier)?,
            optional: entry.optional,
        })
    }
}

/// The predicates of a subject, in its order; one that asks nothing when there is none.
fn predicates(subject: Option<&Value>, schema: &Schema, circuit: Circuit) -> Result<Vec<Predicate>, QueryError> {
    let fields = match subject {
        None | Some(Value::Null) => &Map::new(),
        Some(Value::Object(fields)) => fields,
        Some(_) => return Err(QueryError::Subject),
    };
    let mut predicates = Vec::new();
    for (field, asked) in fields {
        let asked = asked.as_object().ok_or_else(|| QueryError::Predicate(field.clone()))?;
        if asked.is_empty() {
            predicates.push(predicate(field, Operator::Disclose, &Value::Null, schema, circuit)?);
        }
        for (name, value) in asked {
            let operator = Operator::of_name(name)
                .filter(|operator| *operator != Operator::Disclose)
                .ok_or_else(|| QueryError::Operator {
                    field: field.clone(),
                    operator: name.clone(),
                })?;
            predicates.push(predicate(field, operator, value, schema, circuit)?);
        }
    }
    if predicates.is_empty() {
        predicates.push(Predicate {
            field: None,
            datatype: Datatype::Text,
            operator: Operator::Noop,
            values: Vec::new(),
            key: Fr::from(0_u8),
            slot: 0,
        });
    }
    Ok(predicates)
}

fn predicate(
    name: &str,
    operator: Operator,
    value: &Value,
    schema: &Schema,
    circuit: Circuit,
) -> Result<Predicate, QueryError> {
    let field = schema.field(name)?;
    if !operator.is_known_to(circuit) {
        return Err(QueryError::Operator {
            field: name.into(),
            operator: operator.name().into(),
        });
    }
    if !operator.fits(field.datatype) {
        return Err(QueryError::Forbidden {
            field: name.into(),
            operator: operator.name(),
            datatype: field.datatype,
        });
    }
    let bad_number = || QueryError::Values {
        field: name.into(),
        operator: operator.name(),
    };
    let values = operands(operator, value).ok_or_else(bad_number)?;
    let encode = |value: &Value| match operator {
        Operator::Exists => encode::boolean(value).map(Fr::from).ok_or_else(bad_number),
        _ => encode::value(value, field.datatype).map_err(|source| QueryError::Value {
            field: name.into(),
            source,
        }),
    };
    Ok(Predicate {
        field: Some(name.into()),
        datatype: field.datatype,
        operator,
        values: values.iter().map(encode).collect::<Result<_, _>>()?,
        key: field.key,
        slot: field.slot,
    })
}

/// What an operator compares with, if it is as many values as it takes.
pub(super) fn operands(operator: Operator, value: &Value) -> Option<&[Value]> {
    let values = match value {
        Value::Array(values) => values.as_slice(),
        scalar => std::slice::from_ref(scalar),
    };
    let fits = match operator.arity() {
        Arity::None => return Some(&[]),
        // A list of one value says the same: wallets and tools write both.
        Arity::One => values.len() == 1,
        Arity::Two => value.is_array() && values.len() == 2,
        Arity::Many => (1..=QUERY_VALUES).contains(&values.len()),
    };
    fits.then_some(values)
}

fn proof_types(asked: Option<OneOrMany>) -> Result<Vec<ProofType>, QueryError> {
    let names = match asked {
        None => Vec::new(),
        Some(OneOrMany::One(name)) => vec![name],
        Some(OneOrMany::Many(names)) => names,
    };
    let read = |name: String| match name.as_str() {
        "BJJSignature2021" => Ok(ProofType::Signature),
        "Iden3SparseMerkleTreeProof" => Ok(ProofType::Tree),
        _ => Err(QueryError::ProofType(name)),
    };
    names.into_iter().map(read).collect()
}

fn nullification(params: Option<Params>, verifier: &str) -> Result<Option<Nullification>, QueryError> {
    let Some(params) = params else { return Ok(None) };
    let session = match params.nullifier_session_id {
        None | Some(Value::Null) => return Ok(None),
        Some(Value::String(text)) => text,
        Some(Value::Number(digits)) => digits.to_string(),
        Some(Value::Bool(_) | Value::Array(_) | Value::Object(_)) => return Err(QueryError::NullifierSession),
    };
    let session = number::scalar(&session).map_err(|_| QueryError::NullifierSession)?;
    if session == Fr::from(0_u8) {
        return Ok(None);
    }
    let verifier = Did::parse(params.verifier_did.as_deref().unwrap_or(verifier)).map_err(QueryError::Verifier)?;
    Ok(Some(Nullification {
        session,
        verifier: verifier.id(),
    }))
}
