//! Checks that a wallet's credential proofs show what was requested (spec/10 ZK-60 to ZK-73, ZK-77).
//!
//! Works in two steps. [`verify_proofs`] checks the proofs themselves and lists the issuers' states to look up;
//! [`VerifiedProof::check_issuer_states`] checks what the look-ups returned. Only both steps together yield
//! [`VerifiedCredentials`]. A proof that is missing, unreadable or not an exact match is rejected.

mod disclosure;
mod predicate;
mod signals;

use std::collections::BTreeMap;

use ark_bn254::Fr;
use ark_ff::AdditiveGroup;
use gw_types::{Seconds, Timestamp};
use serde::Deserialize;
use serde_json::Value;

use self::signals::{AtomicSignals, LinkedSignals, Signals, Version};
use crate::circuit::Circuit;
use crate::did::{Did, Id};
use crate::groth16::{Proof, ProofError, RawProof};
use crate::hash::LinkedQuery;
use crate::number;
use crate::query::{Operator, ProofRequest, ProofType, is_linked};
use crate::state::{self, FreshnessError, State, StateError};

/// Maximum age of a proof (ZK-67).
const MAX_AGE: Seconds = Seconds(86_400);
/// How far a wallet's clock may be ahead.
const AHEAD: Seconds = Seconds(300);

/// Why credential proofs are rejected.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum CredentialError {
    /// The answer has no entry for a query: the credential is absent (ZK-60).
    #[error("no proof for query {0}")]
    Absent(u64),
    /// Two entries for one query, which is ambiguous.
    #[error("two proofs for query {0}")]
    Twice(u64),
    /// The entry is unreadable.
    #[error("the proof entry cannot be read")]
    Malformed,
    /// The proof is of another circuit than requested (ZK-61).
    #[error("the proof is of another circuit")]
    Circuit,
    /// The pairing, the points or the numbers are invalid (ZK-62).
    #[error("the credential proof does not hold")]
    Proof(#[source] ProofError),
    /// A signal is not a canonical number, or their number is wrong.
    #[error("the public signals are malformed")]
    Signals,
    /// The proof is about another user (ZK-63).
    #[error("the proof is about another user")]
    User,
    /// The proof answers another query (ZK-63).
    #[error("the proof answers another query")]
    RequestId,
    /// The issuer is not accepted (ZK-64).
    #[error("the issuer is not accepted")]
    Issuer,
    /// The credential has another type (ZK-65).
    #[error("the credential is of another type")]
    Schema,
    /// The proof skips the revocation check (ZK-66).
    #[error("the proof skips the revocation check")]
    RevocationUnchecked,
    /// The proof is too old (ZK-67).
    #[error("the proof is too old")]
    Old,
    /// The proof was made in the future (ZK-67).
    #[error("the proof is from the future")]
    Future,
    /// The query has more predicates than the circuit supports (D8).
    #[error("the query has more predicates than the circuit holds")]
    TooManyPredicates,
    /// Another comparison than requested (ZK-68).
    #[error("the proof compares in another way")]
    Operator,
    /// Other values than requested (ZK-68).
    #[error("the proof compares with other values")]
    Values,
    /// Another field than requested, or an absent one (ZK-69).
    #[error("the proof is about another field")]
    Path,
    /// The value is not disclosed, or another value is.
    #[error("the value asked for is not disclosed")]
    Disclosure,
    /// A signature where inclusion in the tree is required, or the reverse (ZK-72).
    #[error("the proof is of another kind")]
    ProofType,
    /// A nullifier is required and missing, or the reverse (ZK-72, ZK-77).
    #[error("the nullifier does not fit the query")]
    Nullifier,
    /// The proof is not linked as required, or linked to another proof (ZK-72).
    #[error("the proofs of a group are not linked")]
    Link,
    /// The proof answers other linked queries than requested (ZK-73).
    #[error("the linked queries differ")]
    LinkedQueries,
    /// The status of an issuer's state cannot be determined (ZK-70, ZK-71).
    #[error("the issuer's state cannot be used")]
    State(#[source] StateError),
    /// The state was replaced too long ago to show that the credential was not revoked (ZK-71).
    #[error("the state that shows non-revocation is too old")]
    NonRevocation(#[source] FreshnessError),
    /// A required state was not looked up.
    #[error("a state was not looked up")]
    NotLookedUp,
}

/// A state to be looked up in the State contract of the issuer's network.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Lookup {
    /// The issuer.
    pub issuer: Id,
    /// The state.
    pub state: Fr,
}

/// An answer of the contract.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct StateAnswer {
    /// The status of the state.
    pub state: Result<State, StateError>,
    /// When the contract was queried, also for an answer from a cache.
    pub read: Timestamp,
}

/// Answers by lookup.
pub type StateAnswers = BTreeMap<Lookup, StateAnswer>;

/// Valid proofs whose issuers' states are still to be checked.
#[must_use]
#[derive(Debug)]
pub struct VerifiedProof {
    /// States under which the credentials were issued.
    issuance: Vec<Lookup>,
    /// States that show that the credentials were not revoked.
    non_revocation: Vec<Lookup>,
    credentials: VerifiedCredentials,
}

/// The credentials of an answer whose proofs and issuers' states passed all checks.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct VerifiedCredentials {
    credentials: Vec<VerifiedCredential>,
}

/// One proved credential.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct VerifiedCredential {
    /// The query it answers.
    pub id: u64,
    /// The issuer.
    pub issuer: Did,
    /// The nullifier for the configured session, if one was requested: the same for every profile of one person
    /// (ZK-77).
    pub nullifier: Option<Fr>,
}

impl VerifiedCredentials {
    /// All proved credentials, in the order of the request.
    #[must_use]
    pub fn credentials(&self) -> &[VerifiedCredential] {
        &self.credentials
    }

    /// The nullifier, if one was requested.
    #[must_use]
    pub fn nullifier(&self) -> Option<Fr> {
        self.credentials.iter().find_map(|credential| credential.nullifier)
    }
}

/// An entry of the answer's scope.
#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct Entry {
    circuit_id: String,
    proof: RawProof,
    #[serde(rename = "pub_signals")]
    pub_signals: Vec<String>,
    #[serde(default)]
    vp: Option<Value>,
}

/// Checks the entries of an answer against the request; entries that were not requested are ignored (ZK-47).
///
/// The pairings come last, after all cheaper checks. Each takes milliseconds, so call this on a thread that may block.
///
/// # Errors
/// [`CredentialError`]; `Absent` for a query without an entry, unless the query is optional.
pub fn verify_proofs(
    requested: &[ProofRequest],
    scope: &[Value],
    user: Id,
    now: Timestamp,
) -> Result<VerifiedProof, CredentialError> {
    let entries = requested.iter().filter_map(|query| match find(scope, query.id) {
        Err(CredentialError::Absent(_)) if query.optional => None,
        result => Some(result.map(|entry| (query, entry))),
    });
    let entries: Vec<(&ProofRequest, Entry)> = entries.collect::<Result<_, CredentialError>>()?;
    // A linked proof is about the credential of another proof; alone it says nothing.
    for (query, _) in entries.iter().filter(|(query, _)| is_linked(query.circuit)) {
        if !entries
            .iter()
            .any(|(other, _)| !is_linked(other.circuit) && other.group == query.group)
        {
            return Err(CredentialError::Link);
        }
    }
    let mut credentials = Vec::new();
    let mut issuance = Vec::new();
    let mut non_revocation = Vec::new();
    let mut links = BTreeMap::new();
    let mut pairings = Vec::new();
    for (query, entry) in &entries {
        let circuit = Circuit::from_id(&entry.circuit_id).ok_or(CredentialError::Circuit)?;
        let signals = scalars(&entry.pub_signals)?;
        let checked = check_signals(query, circuit, &signals, entry.vp.as_ref(), user, now)?;
        if let (Some(group), Some(link)) = (query.group, checked.link)
            && *links.entry(group).or_insert(link) != link
        {
            return Err(CredentialError::Link);
        }
        issuance.extend(checked.issuance);
        non_revocation.extend(checked.non_revocation);
        credentials.extend(checked.credential);
        let proof = Proof::read(&entry.proof).map_err(CredentialError::Proof)?;
        pairings.push((circuit, proof, signals));
    }
    for (circuit, proof, signals) in &pairings {
        let key = circuit.key().map_err(|error| CredentialError::Proof(error.into()))?;
        key.verify(proof, signals).map_err(CredentialError::Proof)?;
    }
    Ok(VerifiedProof {
        issuance,
        non_revocation,
        credentials: VerifiedCredentials { credentials },
    })
}

impl VerifiedProof {
    /// The states to look up, each once.
    #[must_use]
    pub fn lookups(&self) -> Vec<Lookup> {
        let mut lookups: Vec<Lookup> = self.issuance.iter().chain(&self.non_revocation).copied().collect();
        lookups.sort_unstable();
        lookups.dedup();
        lookups
    }

    /// Checks the issuers' states.
    ///
    /// # Errors
    /// [`CredentialError`]; a failed lookup is `State(Fault)`.
    pub fn check_issuer_states(
        self,
        answers: &StateAnswers,
        now: Timestamp,
    ) -> Result<VerifiedCredentials, CredentialError> {
        let answer = |lookup: &Lookup| {
            let answer = answers.get(lookup).ok_or(CredentialError::NotLookedUp)?;
            Ok((answer.state.map_err(CredentialError::State)?, answer.read))
        };
        for lookup in &self.issuance {
            answer(lookup)?;
        }
        for lookup in &self.non_revocation {
            let (state, read) = answer(lookup)?;
            state::check_non_revocation_freshness(state, read, now).map_err(CredentialError::NonRevocation)?;
        }
        Ok(self.credentials)
    }
}

fn find(scope: &[Value], id: u64) -> Result<Entry, CredentialError> {
    let mut entries = scope
        .iter()
        .filter(|entry| entry.get("id").and_then(Value::as_u64) == Some(id));
    let entry = entries.next().ok_or(CredentialError::Absent(id))?;
    if entries.next().is_some() {
        return Err(CredentialError::Twice(id));
    }
    Entry::deserialize(entry).map_err(|_| CredentialError::Malformed)
}

fn scalars(signals: &[String]) -> Result<Vec<Fr>, CredentialError> {
    signals
        .iter()
        .map(|signal| number::scalar(signal).map_err(|_| CredentialError::Signals))
        .collect()
}

/// The result of checking one entry's signals.
#[derive(Debug)]
struct CheckedEntry {
    /// The link signal, for an entry of a group.
    link: Option<Fr>,
    issuance: Option<Lookup>,
    non_revocation: Option<Lookup>,
    credential: Option<VerifiedCredential>,
}

/// Checks public signals alone, without their proof: a part of [`verify_proofs`], for tests of single signals.
///
/// # Errors
/// [`CredentialError`].
pub fn check_entry_signals(
    query: &ProofRequest,
    circuit: &str,
    signals: &[String],
    user: Id,
    now: Timestamp,
) -> Result<(), CredentialError> {
    let circuit = Circuit::from_id(circuit).ok_or(CredentialError::Circuit)?;
    check_signals(query, circuit, &scalars(signals)?, None, user, now).map(|_| ())
}

fn check_signals(
    query: &ProofRequest,
    circuit: Circuit,
    signals: &[Fr],
    presentation: Option<&Value>,
    user: Id,
    now: Timestamp,
) -> Result<CheckedEntry, CredentialError> {
    if !satisfies(circuit, query.circuit) {
        return Err(CredentialError::Circuit);
    }
    match Signals::read(circuit, signals).ok_or(CredentialError::Signals)? {
        Signals::Atomic(signals) => check_atomic(query, &signals, presentation, user, now),
        Signals::Linked(signals) => check_linked(query, &signals),
    }
}

/// Whether a proof of circuit `proof` answers a query for circuit `requested`: it must be the same circuit or one of
/// its smaller versions (ZK-61).
fn satisfies(proof: Circuit, requested: Circuit) -> bool {
    proof == requested
        || matches!(
            (requested, proof),
            (Circuit::V3, Circuit::V3Small) | (Circuit::Linked10, Circuit::Linked5 | Circuit::Linked3)
        )
}

fn check_atomic(
    query: &ProofRequest,
    signals: &AtomicSignals<'_>,
    presentation: Option<&Value>,
    user: Id,
    now: Timestamp,
) -> Result<CheckedEntry, CredentialError> {
    if signals.user != user.scalar() {
        return Err(CredentialError::User);
    }
    if signals.request != Fr::from(query.id) {
        return Err(CredentialError::RequestId);
    }
    let issuer = Id::from_scalar(&signals.issuer)
        .ok()
        .and_then(|id| Did::from_id(id).ok())
        .ok_or(CredentialError::Issuer)?;
    let accepted = |issuers: &Vec<String>| issuers.iter().any(|known| known == "*" || known == issuer.as_str());
    if !query.issuers.as_ref().is_none_or(accepted) {
        return Err(CredentialError::Issuer);
    }
    if signals.schema != query.schema {
        return Err(CredentialError::Schema);
    }
    let checked = match (flag(signals.revocation_checked), query.skips_revocation) {
        (Some(true), _) => true,
        (Some(false), true) => false,
        (Some(false), false) | (None, _) => return Err(CredentialError::RevocationUnchecked),
    };
    check_time(signals.timestamp, now)?;
    let [predicate] = query.predicates.as_slice() else {
        return Err(CredentialError::TooManyPredicates);
    };
    predicate::check(query, predicate, signals, presentation)?;
    let (link, nullifier) = match signals.version {
        Version::V2 { .. } => check_v2(query)?,
        Version::V3 { .. } => check_v3(query, signals.version)?,
    };
    let lookup = |state| Lookup {
        issuer: issuer.id(),
        state,
    };
    Ok(CheckedEntry {
        link,
        issuance: Some(lookup(signals.issuance_state)),
        non_revocation: checked.then(|| lookup(signals.non_revocation_state)),
        credential: Some(VerifiedCredential {
            id: query.id,
            nullifier,
            issuer,
        }),
    })
}

/// A V2 circuit supports neither links nor nullifiers, so a query that requests one cannot be answered.
fn check_v2(query: &ProofRequest) -> Result<(Option<Fr>, Option<Fr>), CredentialError> {
    match (query.group, query.nullification) {
        (None, None) => Ok((None, None)),
        (Some(_), _) => Err(CredentialError::Link),
        (None, Some(_)) => Err(CredentialError::Nullifier),
    }
}

fn check_v3(query: &ProofRequest, version: Version) -> Result<(Option<Fr>, Option<Fr>), CredentialError> {
    let Version::V3 {
        link,
        nullifier,
        proof_type,
        verifier,
        nullifier_session,
        ..
    } = version
    else {
        return Err(CredentialError::Circuit);
    };
    let kinds = [(ProofType::Signature, 1_u8), (ProofType::Tree, 2)];
    let kind = kinds
        .into_iter()
        .find(|(_, number)| proof_type == Fr::from(*number))
        .map(|(kind, _)| kind);
    if !kind.is_some_and(|kind| query.proof_types.is_empty() || query.proof_types.contains(&kind)) {
        return Err(CredentialError::ProofType);
    }
    let nullifier = match query.nullification {
        None if nullifier_session == Fr::ZERO => None,
        Some(requested)
            if nullifier_session == requested.session
                && verifier == requested.verifier.scalar()
                && nullifier != Fr::ZERO =>
        {
            Some(nullifier)
        }
        None | Some(_) => return Err(CredentialError::Nullifier),
    };
    if query.group.is_some() == (link == Fr::ZERO) {
        return Err(CredentialError::Link);
    }
    Ok((query.group.map(|_| link), nullifier))
}

fn check_linked(query: &ProofRequest, signals: &LinkedSignals<'_>) -> Result<CheckedEntry, CredentialError> {
    if query.group.is_none() || signals.link == Fr::ZERO {
        return Err(CredentialError::Link);
    }
    if flag(signals.merklized) != Some(query.merklized) {
        return Err(CredentialError::Path);
    }
    let hash = |operator: Operator, key, slot, values: &[Fr]| {
        LinkedQuery {
            schema: query.schema,
            slot,
            operator: operator.number(),
            key,
            merklized: query.merklized,
            values,
        }
        .hash()
        .ok_or(CredentialError::LinkedQueries)
    };
    let requested = query
        .predicates
        .iter()
        .map(|predicate| hash(predicate.operator, predicate.key, predicate.slot, &predicate.values));
    let mut expected: Vec<Fr> = requested.collect::<Result<_, _>>()?;
    if expected.len() > signals.query_hashes.len() {
        return Err(CredentialError::TooManyPredicates);
    }
    expected.resize(signals.query_hashes.len(), hash(Operator::Noop, Fr::ZERO, 0, &[])?);
    let mut proved = signals.query_hashes.to_vec();
    expected.sort_unstable();
    proved.sort_unstable();
    if expected != proved {
        return Err(CredentialError::LinkedQueries);
    }
    Ok(CheckedEntry {
        link: Some(signals.link),
        issuance: None,
        non_revocation: None,
        credential: None,
    })
}

/// Reads a signal that is 0 or 1.
fn flag(signal: Fr) -> Option<bool> {
    match signal {
        zero if zero == Fr::ZERO => Some(false),
        one if one == Fr::from(1_u8) => Some(true),
        _ => None,
    }
}

fn check_time(timestamp: Fr, now: Timestamp) -> Result<(), CredentialError> {
    // The limit is later than any real clock, and far from overflow.
    let seconds = i64::try_from(number::word(&timestamp))
        .ok()
        .filter(|seconds| *seconds < 1 << 40);
    let created = Timestamp::from_secs(seconds.ok_or(CredentialError::Future)?);
    if created > now.plus(AHEAD) {
        return Err(CredentialError::Future);
    }
    if created.plus(MAX_AGE) < now {
        return Err(CredentialError::Old);
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn zk61_a_query_is_answered_by_its_circuit_or_a_sub_version_of_it() {
        use Circuit::{AuthV2, Linked3, Linked5, Linked10, MtpV2, SigV2, V3, V3Beta1, V3Small};
        for (requested, proof) in [
            (V3, V3),
            (V3, V3Small),
            (Linked10, Linked5),
            (Linked10, Linked3),
            (SigV2, SigV2),
        ] {
            assert!(satisfies(proof, requested), "{proof:?} for {requested:?}");
        }
        for (requested, proof) in [
            (V3Small, V3),
            (V3Beta1, V3),
            (V3, V3Beta1),
            (Linked3, Linked10),
            (SigV2, MtpV2),
            (MtpV2, SigV2),
            (V3, SigV2),
            (SigV2, AuthV2),
        ] {
            assert!(!satisfies(proof, requested), "{proof:?} for {requested:?}");
        }
    }
}
