//! The credential query of the service's configuration (ZK-2, ZK-75, D8).
//!
//! Checked in two steps: errors in the settings alone are reported together at startup; what depends on the schema is
//! computed when the schema is loaded.

use serde_json::{Map, Value, json};

use super::{Operator, ProofRequest, QueryError, operands, parse_scope};
use crate::circuit::Circuit;
use crate::did::{Did, DidError};
use crate::hash::QUERY_VALUES;
use crate::number;
use crate::schema::Documents;

/// The settings of the query.
#[derive(Clone, Debug)]
pub struct Settings<'a> {
    /// The verifier's DID.
    pub verifier: &'a str,
    /// The circuit to prove with.
    pub circuit: &'a str,
    /// Issuers whose credentials are accepted.
    pub issuers: &'a [String],
    /// URL of the schema.
    pub context: &'a str,
    /// Name of the credential type.
    pub type_name: &'a str,
    /// The content of the query file.
    pub file: &'a [u8],
    /// Whether each predicate gets an entry of its own.
    pub split: bool,
    /// Requests a nullifier for this session, so that one credential belongs to one account.
    pub nullifier_session: Option<&'a str>,
}

/// Why the settings are invalid.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum SettingsError {
    /// Not a circuit that proves a credential on its own.
    #[error("`{0}` is no circuit that proves a credential")]
    Circuit(String),
    /// The list of accepted issuers is empty.
    #[error("no issuer is accepted")]
    NoIssuer,
    /// An issuer is not the DID of an identity.
    #[error("issuer `{issuer}` is no DID of an identity")]
    Issuer {
        /// As configured.
        issuer: String,
        /// The reason.
        #[source]
        source: DidError,
    },
    /// The schema's URL is neither `https://` nor `ipfs://`.
    #[error("schema address `{0}` is neither `https://` nor `ipfs://`")]
    Context(String),
    /// The credential type is empty.
    #[error("the credential type is empty")]
    NoType,
    /// The query file is not JSON.
    #[error("the query file is no JSON: {0}")]
    Json(String),
    /// The query file has a member besides the subject, which would be ignored.
    #[error("the query file holds `{0}` beside `credentialSubject`")]
    ExtraMember(String),
    /// The subject is empty or missing.
    #[error("the query file has no predicate: `credentialSubject` must be an object with at least one field")]
    NoPredicate,
    /// A field has no operator.
    #[error("field `{0}` has no operator")]
    NoOperator(String),
    /// Not one of the six configurable operators.
    #[error("operator `{operator}` of `{field}` is none of $eq, $ne, $lt, $gt, $in, $nin")]
    Operator {
        /// The field.
        field: String,
        /// The operator as written.
        operator: String,
    },
    /// A list of several values instead of one value or the reverse, or an empty or too long list.
    #[error("operator `{operator}` of `{field}` takes {expected}")]
    Values {
        /// The field.
        field: String,
        /// The operator as written.
        operator: String,
        /// The values that the operator takes.
        expected: String,
    },
    /// A value that is not a string, a number or a boolean.
    #[error("`{value}` of `{field}` is no plain value")]
    Value {
        /// The field.
        field: String,
        /// The value as written.
        value: String,
    },
    /// Circuits compare non-negative numbers only.
    #[error("`{value}` of `{field}` is negative: circuits compare non-negative numbers only")]
    Negative {
        /// The field.
        field: String,
        /// The value as written.
        value: String,
    },
    /// The circuit does not support nullifiers.
    #[error("circuit `{0}` makes no nullifier")]
    NoNullifier(String),
    /// Not a number from 1 to below the field's order.
    #[error("nullifier session `{0}` is no positive number the circuits can hold")]
    NullifierSession(String),
    /// A nullifier needs the verifier's identifier.
    #[error("a nullifier needs a verifier id that is a DID of an identity")]
    Verifier(#[source] DidError),
}

/// A valid query: the scope of every request.
#[derive(Clone, Debug, PartialEq)]
pub struct CredentialQuery {
    verifier: String,
    context: String,
    scope: Vec<Value>,
    predicates: usize,
}

impl CredentialQuery {
    /// Creates the query from its settings.
    ///
    /// # Errors
    /// All errors that can be found without the schema.
    pub fn new(settings: &Settings<'_>) -> Result<Self, Vec<SettingsError>> {
        let mut errors = Vec::new();
        let circuit = Circuit::from_id(settings.circuit).filter(|circuit| is_usable(*circuit));
        if circuit.is_none() {
            errors.push(SettingsError::Circuit(settings.circuit.into()));
        }
        if settings.issuers.is_empty() {
            errors.push(SettingsError::NoIssuer);
        }
        for issuer in settings.issuers {
            if let Err(source) = Did::parse(issuer) {
                errors.push(SettingsError::Issuer {
                    issuer: issuer.clone(),
                    source,
                });
            }
        }
        if !settings.context.starts_with("https://") && !settings.context.starts_with("ipfs://") {
            errors.push(SettingsError::Context(settings.context.into()));
        }
        if settings.type_name.is_empty() {
            errors.push(SettingsError::NoType);
        }
        if let Some(session) = settings.nullifier_session {
            check_nullifier(session, settings, circuit, &mut errors);
        }
        let subject = match subject(settings.file) {
            Ok(subject) => subject,
            Err(error) => {
                errors.push(error);
                return Err(errors);
            }
        };
        for (field, operators) in &subject {
            check_field(field, operators, &mut errors);
        }
        if !errors.is_empty() {
            return Err(errors);
        }
        let parts = split(&subject);
        let predicates = parts.len();
        let subjects = if settings.split { parts } else { vec![subject] };
        let scope = subjects
            .into_iter()
            .zip(1_u64..)
            .map(|(subject, id)| entry(settings, id, subject))
            .collect();
        Ok(Self {
            verifier: settings.verifier.into(),
            context: settings.context.into(),
            scope,
            predicates,
        })
    }

    /// The scope entries as written in a request.
    #[must_use]
    pub fn scope(&self) -> &[Value] {
        &self.scope
    }

    /// URL of the schema.
    #[must_use]
    pub fn context(&self) -> &str {
        &self.context
    }

    /// Whether no wallet can answer the query: circuits support one predicate per entry, and an entry here has several
    /// (D8). The caller should warn at startup.
    #[must_use]
    pub fn is_unanswerable(&self) -> bool {
        self.predicates > self.scope.len()
    }

    /// The proof requests of this query, which wallets' proofs are compared with.
    ///
    /// # Errors
    /// [`QueryError`] if the schema is missing or does not match the query.
    pub fn proof_requests(&self, documents: &Documents) -> Result<Vec<ProofRequest>, QueryError> {
        parse_scope(&self.scope, &self.verifier, documents)
    }
}

/// Linked queries prove nothing alone, and authentication circuits prove no credential.
fn is_usable(circuit: Circuit) -> bool {
    matches!(circuit, Circuit::MtpV2 | Circuit::SigV2) || has_nullifier(circuit)
}

fn has_nullifier(circuit: Circuit) -> bool {
    matches!(circuit, Circuit::V3 | Circuit::V3Beta1 | Circuit::V3Small)
}

fn check_nullifier(session: &str, settings: &Settings<'_>, circuit: Option<Circuit>, errors: &mut Vec<SettingsError>) {
    if circuit.is_some_and(|circuit| !has_nullifier(circuit)) {
        errors.push(SettingsError::NoNullifier(settings.circuit.into()));
    }
    if session == "0" || number::scalar(session).is_err() {
        errors.push(SettingsError::NullifierSession(session.into()));
    }
    if let Err(error) = Did::parse(settings.verifier) {
        errors.push(SettingsError::Verifier(error));
    }
}

/// The subject of a query file: its member `credentialSubject`, which must be the only one, or the whole file.
fn subject(file: &[u8]) -> Result<Map<String, Value>, SettingsError> {
    let value: Value = serde_json::from_slice(file).map_err(|error| SettingsError::Json(error.to_string()))?;
    let Value::Object(mut members) = value else {
        return Err(SettingsError::NoPredicate);
    };
    let subject = match members.remove("credentialSubject") {
        None => members,
        Some(Value::Object(subject)) => match members.keys().next() {
            None => subject,
            Some(other) => return Err(SettingsError::ExtraMember(other.clone())),
        },
        Some(_) => return Err(SettingsError::NoPredicate),
    };
    if subject.is_empty() {
        Err(SettingsError::NoPredicate)
    } else {
        Ok(subject)
    }
}

fn check_field(field: &str, operators: &Value, errors: &mut Vec<SettingsError>) {
    let Some(operators) = operators.as_object().filter(|operators| !operators.is_empty()) else {
        errors.push(SettingsError::NoOperator(field.into()));
        return;
    };
    for (name, value) in operators {
        let Some(operator) = Operator::from_name(name).filter(|operator| operator.is_configurable()) else {
            errors.push(SettingsError::Operator {
                field: field.into(),
                operator: name.clone(),
            });
            continue;
        };
        let wants_list = matches!(operator, Operator::In | Operator::Nin);
        let Some(values) = operands(operator, value).filter(|_| !wants_list || value.is_array()) else {
            let expected = if wants_list {
                format!("a list of 1 to {QUERY_VALUES} values")
            } else {
                "one value".into()
            };
            errors.push(SettingsError::Values {
                field: field.into(),
                operator: name.clone(),
                expected,
            });
            continue;
        };
        for value in values {
            check_value(field, value, errors);
        }
    }
}

fn check_value(field: &str, value: &Value, errors: &mut Vec<SettingsError>) {
    match value {
        Value::Bool(_) | Value::String(_) => {}
        Value::Number(number) if number.as_f64().is_some_and(|number| number >= 0.0) => {}
        Value::Number(_) => errors.push(SettingsError::Negative {
            field: field.into(),
            value: value.to_string(),
        }),
        Value::Null | Value::Array(_) | Value::Object(_) => {
            errors.push(SettingsError::Value {
                field: field.into(),
                value: value.to_string(),
            });
        }
    }
}

/// One subject per predicate.
fn split(subject: &Map<String, Value>) -> Vec<Map<String, Value>> {
    let one = |field: &String, name: &String, value: &Value| {
        Map::from_iter([(
            field.clone(),
            Value::Object(Map::from_iter([(name.clone(), value.clone())])),
        )])
    };
    let predicates = subject
        .iter()
        .filter_map(|(field, operators)| operators.as_object().map(|operators| (field, operators)));
    predicates
        .flat_map(|(field, operators)| operators.iter().map(move |(name, value)| one(field, name, value)))
        .collect()
}

fn entry(settings: &Settings<'_>, id: u64, subject: Map<String, Value>) -> Value {
    let mut entry = json!({
        "id": id,
        "circuitId": settings.circuit,
        "query": {
            "allowedIssuers": settings.issuers,
            "credentialSubject": subject,
            "context": settings.context,
            "type": settings.type_name,
        },
    });
    // All entries would yield the same nullifier, so one requests it.
    if let (Some(session), 1, Some(members)) = (settings.nullifier_session, id, entry.as_object_mut()) {
        members.insert(
            "params".into(),
            json!({ "nullifierSessionId": session, "verifierDid": settings.verifier }),
        );
    }
    entry
}
