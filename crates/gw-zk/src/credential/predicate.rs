//! Checks that a proof compares the requested field with the requested values (ZK-68, ZK-69).

use ark_bn254::Fr;
use ark_ff::AdditiveGroup;
use serde_json::Value;

use super::signals::{AtomicSignals, Version};
use super::{CredentialError, disclosure, flag};
use crate::hash;
use crate::query::{Operator, Predicate, ProofRequest};

pub(super) fn check(
    query: &ProofRequest,
    predicate: &Predicate,
    signals: &AtomicSignals<'_>,
    presentation: Option<&Value>,
) -> Result<(), CredentialError> {
    // Also needed if the expected slot is 0: slot 0 of a claim contains its schema, and nearly any comparison with that
    // is true.
    if flag(signals.merklized) != Some(query.merklized) {
        return Err(CredentialError::Path);
    }
    match predicate.operator {
        Operator::Disclose => {
            let value = disclosure::value(query, predicate, presentation)?;
            check_disclosed_value(value, signals)?;
        }
        Operator::Noop => check_no_comparison(signals)?,
        _ => check_comparison(predicate, signals)?,
    }
    check_field(predicate, signals)
}

fn check_operator(operator: Operator, signals: &AtomicSignals<'_>) -> Result<(), CredentialError> {
    if signals.operator == Fr::from(operator.number()) {
        Ok(())
    } else {
        Err(CredentialError::Operator)
    }
}

fn check_values(expected: &[Fr], signals: &AtomicSignals<'_>) -> Result<(), CredentialError> {
    let (given, rest) = signals
        .values
        .split_at_checked(expected.len())
        .ok_or(CredentialError::Values)?;
    if given == expected && rest.iter().all(|value| *value == Fr::ZERO) {
        Ok(())
    } else {
        Err(CredentialError::Values)
    }
}

fn check_value_count(count: usize, signals: &AtomicSignals<'_>) -> Result<(), CredentialError> {
    match signals.version {
        Version::V2 { .. } => Ok(()),
        Version::V3 { value_count, .. } if u64::try_from(count).is_ok_and(|count| value_count == Fr::from(count)) => {
            Ok(())
        }
        Version::V3 { .. } => Err(CredentialError::Values),
    }
}

fn check_comparison(predicate: &Predicate, signals: &AtomicSignals<'_>) -> Result<(), CredentialError> {
    check_operator(predicate.operator, signals)?;
    check_values(&predicate.values, signals)?;
    check_value_count(predicate.values.len(), signals)
}

/// V3 discloses a value in a signal of its own, V2 by comparing with it.
fn check_disclosed_value(value: Fr, signals: &AtomicSignals<'_>) -> Result<(), CredentialError> {
    match signals.version {
        Version::V2 { .. } => {
            check_operator(Operator::Eq, signals)?;
            check_values(&[value], signals).map_err(|_| CredentialError::Disclosure)
        }
        Version::V3 { operator_output, .. } => {
            check_operator(Operator::Disclose, signals)?;
            check_values(&[], signals)?;
            check_value_count(0, signals)?;
            if operator_output == value {
                Ok(())
            } else {
                Err(CredentialError::Disclosure)
            }
        }
    }
}

/// Checks a query for the credential alone. V2 circuits always compare, so there the compared field must be the subject
/// itself.
fn check_no_comparison(signals: &AtomicSignals<'_>) -> Result<(), CredentialError> {
    match signals.version {
        Version::V2 { path_absent } => {
            check_operator(Operator::Eq, signals)?;
            let [_, rest @ ..] = signals.values else {
                return Err(CredentialError::Values);
            };
            if rest.iter().any(|value| *value != Fr::ZERO) {
                return Err(CredentialError::Values);
            }
            let is_subject = Some(signals.key) == hash::claim_path(&[]) && path_absent == Fr::ZERO;
            if flag(signals.merklized) == Some(true) && is_subject {
                Ok(())
            } else {
                Err(CredentialError::Path)
            }
        }
        Version::V3 { .. } => {
            check_operator(Operator::Noop, signals)?;
            check_values(&[], signals)?;
            check_value_count(0, signals)
        }
    }
}

/// Checks the field that the value was taken from.
fn check_field(predicate: &Predicate, signals: &AtomicSignals<'_>) -> Result<(), CredentialError> {
    if predicate.operator == Operator::Noop {
        return Ok(());
    }
    let merklized = flag(signals.merklized) == Some(true);
    let fits = if merklized {
        // In exclusion mode the V2 circuit does not constrain the compared value.
        let present = match signals.version {
            Version::V2 { path_absent } => path_absent == Fr::ZERO,
            Version::V3 { .. } => true,
        };
        present && signals.key == predicate.key
    } else {
        predicate.operator != Operator::Exists && signals.slot == Fr::from(predicate.slot)
    };
    if fits { Ok(()) } else { Err(CredentialError::Path) }
}
