//! Checks that a proof compares the requested field with the requested values (ZK-68, ZK-69).

use ark_bn254::Fr;
use ark_ff::AdditiveGroup;
use serde_json::Value;

use super::signals::{Atomic, Version};
use super::{CredentialError, disclosure, flag};
use crate::hash;
use crate::query::{Operator, Predicate, Requested};

pub(super) fn check(
    query: &Requested,
    asked: &Predicate,
    signals: &Atomic<'_>,
    presentation: Option<&Value>,
) -> Result<(), CredentialError> {
    // Also needed if the expected slot is 0: slot 0 of a claim contains its schema, and nearly any comparison with that
    // is true.
    if flag(signals.merklized) != Some(query.merklized) {
        return Err(CredentialError::Path);
    }
    match asked.operator {
        Operator::Disclose => {
            let value = disclosure::value(query, asked, presentation)?;
            shows(value, signals)?;
        }
        Operator::Noop => asks_nothing(signals)?,
        _ => compares(asked, signals)?,
    }
    in_place(asked, signals)
}

fn operator_is(operator: Operator, signals: &Atomic<'_>) -> Result<(), CredentialError> {
    if signals.operator == Fr::from(operator.number()) {
        Ok(())
    } else {
        Err(CredentialError::Operator)
    }
}

fn values_are(expected: &[Fr], signals: &Atomic<'_>) -> Result<(), CredentialError> {
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

fn count_is(count: usize, signals: &Atomic<'_>) -> Result<(), CredentialError> {
    match signals.version {
        Version::V2 { .. } => Ok(()),
        Version::V3 { value_count, .. } if u64::try_from(count).is_ok_and(|count| value_count == Fr::from(count)) => {
            Ok(())
        }
        Version::V3 { .. } => Err(CredentialError::Values),
    }
}

fn compares(asked: &Predicate, signals: &Atomic<'_>) -> Result<(), CredentialError> {
    operator_is(asked.operator, signals)?;
    values_are(&asked.values, signals)?;
    count_is(asked.values.len(), signals)
}

/// V3 discloses a value in a signal of its own, V2 by comparing with it.
fn shows(value: Fr, signals: &Atomic<'_>) -> Result<(), CredentialError> {
    match signals.version {
        Version::V2 { .. } => {
            operator_is(Operator::Eq, signals)?;
            values_are(&[value], signals).map_err(|_| CredentialError::Disclosure)
        }
        Version::V3 { operator_output, .. } => {
            operator_is(Operator::Disclose, signals)?;
            values_are(&[], signals)?;
            count_is(0, signals)?;
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
fn asks_nothing(signals: &Atomic<'_>) -> Result<(), CredentialError> {
    match signals.version {
        Version::V2 { path_absent } => {
            operator_is(Operator::Eq, signals)?;
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
            operator_is(Operator::Noop, signals)?;
            values_are(&[], signals)?;
            count_is(0, signals)
        }
    }
}

/// Checks the field that the value was taken from.
fn in_place(asked: &Predicate, signals: &Atomic<'_>) -> Result<(), CredentialError> {
    if asked.operator == Operator::Noop {
        return Ok(());
    }
    let merklized = flag(signals.merklized) == Some(true);
    let fits = if merklized {
        // In exclusion mode the V2 circuit does not constrain the compared value.
        let present = match signals.version {
            Version::V2 { path_absent } => path_absent == Fr::ZERO,
            Version::V3 { .. } => true,
        };
        present && signals.key == asked.key
    } else {
        asked.operator != Operator::Exists && signals.slot == Fr::from(asked.slot)
    };
    if fits { Ok(()) } else { Err(CredentialError::Path) }
}
