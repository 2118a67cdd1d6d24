//! The value that a wallet discloses with a proof.

use ark_bn254::Fr;
use serde_json::Value;

use super::CredentialError;
use crate::encode;
use crate::query::{Predicate, ProofRequest};

/// The encoded value of the requested field in a presentation of the credential.
///
/// The presentation names its own contexts; none is fetched. Its fields are read by the query's schema, and it must
/// name that schema and type.
pub(super) fn value(
    query: &ProofRequest,
    predicate: &Predicate,
    presentation: Option<&Value>,
) -> Result<Fr, CredentialError> {
    let disclosed = || {
        let credential = presentation?.get("verifiableCredential")?;
        let types = credential.get("@type").or_else(|| credential.get("type"))?;
        if !names(types, &query.type_name) || !names(credential.get("@context")?, &query.context) {
            return None;
        }
        let mut value = credential.get("credentialSubject")?;
        for step in predicate.field.as_deref()?.split('.') {
            value = match value {
                Value::Array(items) => items.get(step.parse::<usize>().ok()?)?,
                other => other.get(step)?,
            };
        }
        encode::value(value, predicate.datatype).ok()
    };
    disclosed().ok_or(CredentialError::Disclosure)
}

/// Whether a text, or one of a list of texts, is `name`.
fn names(value: &Value, name: &str) -> bool {
    match value {
        Value::String(text) => text == name,
        Value::Array(items) => items.iter().any(|item| item.as_str() == Some(name)),
        Value::Null | Value::Bool(_) | Value::Number(_) | Value::Object(_) => false,
    }
}
