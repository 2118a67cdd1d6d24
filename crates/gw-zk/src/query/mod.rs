//! Translates the credential query of a request into what a proof must show (spec/10 section 2.7).
//!
//! A query contains fields and values; a proof contains hashes of them. A [`ProofRequest`] contains these hashes. It is
//! computed once from the query's schema, not at each login.

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

/// Why a query is invalid.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum QueryError {
    /// Not a scope entry.
    #[error("the scope entry cannot be read: {0}")]
    Shape(String),
    /// An unknown circuit, or one that proves no credential.
    #[error("`{0}` is no circuit for credentials")]
    Circuit(String),
    /// The schema is missing or unusable.
    #[error("the credential schema cannot be used")]
    Schema(#[from] SchemaError),
    /// The credential subject is not an object.
    #[error("`credentialSubject` is no object")]
    Subject,
    /// The predicate of a field is not an object.
    #[error("the predicate of `{0}` is no object")]
    Predicate(String),
    /// The operator is unknown, or the circuit does not support it.
    #[error("operator `{operator}` of `{field}` is not known to the circuit")]
    Operator {
        /// The field.
        field: String,
        /// The operator as written.
        operator: String,
    },
    /// The operator does not apply to this type.
    #[error("operator `{operator}` cannot compare `{field}`, which holds a {datatype}", datatype = .datatype.name())]
    Forbidden {
        /// The field.
        field: String,
        /// The operator.
        operator: &'static str,
        /// The field's data type.
        datatype: Datatype,
    },
    /// Too few or too many values, or not a list.
    #[error("operator `{operator}` of `{field}` has the wrong number of values")]
    Values {
        /// The field.
        field: String,
        /// The operator.
        operator: &'static str,
    },
    /// A value of the wrong type.
    #[error("a value of `{field}` cannot be compared with")]
    Value {
        /// The field.
        field: String,
        /// The reason.
        #[source]
        source: EncodeError,
    },
    /// Neither of the two proof types.
    #[error("`{0}` is no kind of credential proof")]
    ProofType(String),
    /// The nullifier session is not a number below the field's order.
    #[error("the nullifier session is no number")]
    NullifierSession,
    /// The verifier has no identifier, which a nullifier needs.
    #[error("the verifier of the nullifier has no identifier")]
    Verifier(#[source] DidError),
    /// A linked query without the credential query that it belongs to.
    #[error("linked query {0} has no credential query in its group")]
    Unlinked(u64),
    /// Two entries have the same id.
    #[error("two scope entries have the id {0}")]
    SameId(u64),
}

/// One predicate in the proof's terms.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Predicate {
    /// Path of the field; `None` requests the credential alone.
    pub field: Option<String>,
    /// The field's data type.
    pub datatype: Datatype,
    /// The comparison.
    pub operator: Operator,
    /// The values to compare with, encoded.
    pub values: Vec<Fr>,
    /// Claim path key, or 0.
    pub key: Fr,
    /// Slot, or 0.
    pub slot: u64,
}

/// How the issuer attests the credential.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ProofType {
    /// By a signature.
    Signature,
    /// By inclusion in its claims tree.
    Tree,
}

/// The request for a nullifier: a number that a credential always yields for one verifier and session.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Nullification {
    /// The session.
    pub session: Fr,
    /// The verifier.
    pub verifier: Id,
}

/// One entry of a request's scope, ready to be compared with a proof.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ProofRequest {
    /// The entry's id, which proofs name.
    pub id: u64,
    /// The requested circuit.
    pub circuit: Circuit,
    /// Accepted issuers; `None` accepts all.
    pub issuers: Option<Vec<String>>,
    /// URL of the schema.
    pub context: String,
    /// Name of the credential type.
    pub type_name: String,
    /// The schema hash in claims of the type.
    pub schema: Fr,
    /// Whether claims of the type store their fields in a Merkle tree.
    pub merklized: bool,
    /// The predicates; never empty.
    pub predicates: Vec<Predicate>,
    /// Whether the proof may skip the revocation check.
    pub skips_revocation: bool,
    /// The accepted proof types; empty accepts both.
    pub proof_types: Vec<ProofType>,
    /// The group. Entries of one group are about one credential.
    pub group: Option<u64>,
    /// The requested nullifier, if any.
    pub nullification: Option<Nullification>,
    /// Whether an answer may omit the entry. If it is present it must hold.
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

/// Parses all entries of a request's scope; `verifier` is the verifier's DID.
///
/// # Errors
/// [`QueryError`]; if a document is missing, the error names it.
pub fn parse_scope(scope: &[Value], verifier: &str, documents: &Documents) -> Result<Vec<ProofRequest>, QueryError> {
    let requested: Vec<ProofRequest> = scope
        .iter()
        .map(|entry| ProofRequest::parse(entry, verifier, documents))
        .collect::<Result<_, _>>()?;
    for (index, entry) in requested.iter().enumerate() {
        if requested.iter().take(index).any(|earlier| earlier.id == entry.id) {
            return Err(QueryError::SameId(entry.id));
        }
        let is_anchor = |other: &ProofRequest| !is_linked(other.circuit) && other.group == entry.group;
        if is_linked(entry.circuit) && (entry.group.is_none() || !requested.iter().any(is_anchor)) {
            return Err(QueryError::Unlinked(entry.id));
        }
    }
    Ok(requested)
}

/// Whether proofs of this circuit add predicates to a proof of another circuit.
pub(crate) fn is_linked(circuit: Circuit) -> bool {
    matches!(
        circuit,
        Circuit::Linked10 | Circuit::Linked10Beta1 | Circuit::Linked5 | Circuit::Linked3
    )
}

impl ProofRequest {
    /// Parses one entry of a scope.
    ///
    /// # Errors
    /// [`QueryError`]; if a document is missing, the error names it.
    pub fn parse(entry: &Value, verifier: &str, documents: &Documents) -> Result<Self, QueryError> {
        let entry = Entry::deserialize(entry).map_err(|error| QueryError::Shape(error.to_string()))?;
        let query = entry.query;
        let circuit = Circuit::from_id(&entry.circuit_id)
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

/// The predicates of a credential subject, in its order. Without a subject, one predicate that requests only the
/// credential.
fn predicates(subject: Option<&Value>, schema: &Schema, circuit: Circuit) -> Result<Vec<Predicate>, QueryError> {
    let fields = match subject {
        None | Some(Value::Null) => &Map::new(),
        Some(Value::Object(fields)) => fields,
        Some(_) => return Err(QueryError::Subject),
    };
    let mut predicates = Vec::new();
    for (field, operators) in fields {
        let operators = operators
            .as_object()
            .ok_or_else(|| QueryError::Predicate(field.clone()))?;
        if operators.is_empty() {
            predicates.push(predicate(field, Operator::Disclose, &Value::Null, schema, circuit)?);
        }
        for (name, value) in operators {
            let operator = Operator::from_name(name)
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
    if !operator.is_supported_by(circuit) {
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

/// The values that an operator compares with. `None` if their number does not match the operator.
pub(super) fn operands(operator: Operator, value: &Value) -> Option<&[Value]> {
    let values = match value {
        Value::Array(values) => values.as_slice(),
        scalar => std::slice::from_ref(scalar),
    };
    let fits = match operator.arity() {
        Arity::None => return Some(&[]),
        // A list of one value is the same as the value: wallets and tools write both.
        Arity::One => values.len() == 1,
        Arity::Two => value.is_array() && values.len() == 2,
        Arity::Many => (1..=QUERY_VALUES).contains(&values.len()),
    };
    fits.then_some(values)
}

fn proof_types(requested: Option<OneOrMany>) -> Result<Vec<ProofType>, QueryError> {
    let names = match requested {
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
