//! Credential proofs: `signals.json`, and the credential checks of whole vectors.

use gw_types::{Seconds, Timestamp};
use gw_zk::credential::{self, CredentialError, StateAnswer, StateAnswers, VerifiedCredentials};
use gw_zk::did::{Did, Id, Network};
use gw_zk::groth16::ProofError;
use gw_zk::query::{self, QueryError};
use gw_zk::state::{self, FreshnessError, State, StateError};
use serde_json::Value;

use crate::hashes::documents;
use crate::support;
use crate::vectors::call;

/// Why a vector's credentials are rejected.
#[derive(Debug)]
pub(crate) enum Refused {
    /// The vector's request is invalid.
    Query(#[expect(dead_code, reason = "shown when a verdict is wrong")] QueryError),
    /// The proofs are rejected.
    Credential(CredentialError),
}

/// Checks the entries of a vector's answer against the recorded contract.
pub(crate) fn judge(vector: &Value, scope: &[Value], user: Id, now: Timestamp) -> Result<VerifiedCredentials, Refused> {
    let request = &vector["request"];
    let asked = request["body"]["scope"].as_array().unwrap();
    let documents = documents(&vector["documents"]);
    let requested = query::parse_scope(asked, request["from"].as_str().unwrap(), &documents).map_err(Refused::Query)?;
    let proof = credential::verify_proofs(&requested, scope, user, now).map_err(Refused::Credential)?;
    let answer = |lookup: credential::Lookup| {
        let network = lookup.issuer.network().map(Network::key).unwrap_or_default();
        let data = state::state_call(&lookup.issuer, &lookup.state);
        let state = call(&vector["state_contract"][network], &data, |outcome| {
            state::read_state(&lookup.issuer, &lookup.state, outcome)
        });
        (lookup, StateAnswer { state, read: now })
    };
    let answers: StateAnswers = proof.lookups().into_iter().map(answer).collect();
    proof.check_issuer_states(&answers, now).map_err(Refused::Credential)
}

/// ZK-63, ZK-64, ZK-65, ZK-66, ZK-67, ZK-68, ZK-69, ZK-72: at least one case each.
#[test]
fn zk63_to_zk72_signals_get_their_verdicts() {
    let Some(data) = support::json("jwz/signals.json") else {
        return;
    };
    for case in data.as_array().unwrap() {
        let requested = query::parse_scope(
            &[case["request"].clone()],
            case["request_from"].as_str().unwrap(),
            &documents(&case["documents"]),
        );
        let user = Did::parse(case["sender"].as_str().unwrap()).unwrap().id();
        let signals: Vec<String> = serde_json::from_value(case["pub_signals"].clone()).unwrap();
        let now = Timestamp::from_secs(case["now"].as_i64().unwrap());
        let verdict = credential::check_entry_signals(
            &requested.unwrap()[0],
            case["circuit_id"].as_str().unwrap(),
            &signals,
            user,
            now,
        );
        let word = if verdict.is_ok() { "accept" } else { "reject" };
        assert_eq!(case["expect"]["verdict"], word, "{}: {verdict:?}", case["id"]);
    }
}

/// A valid answer to two queries, of which one requests a nullifier.
fn nullifier_vector() -> Option<(Value, Vec<Value>, Id, Timestamp)> {
    let vector = support::json("jwz/tokens/authv2-v3beta-nullifier.json")?;
    let message = &vector["decoded"]["payload"];
    let user = Did::parse(message["from"].as_str().unwrap()).unwrap().id();
    let scope = message["body"]["scope"].as_array().unwrap().clone();
    let now = Timestamp::from_secs(vector["now"].as_i64().unwrap());
    Some((vector, scope, user, now))
}

#[test]
fn zk77_the_nullifier_comes_out_as_a_fact() {
    let Some((vector, scope, user, now)) = nullifier_vector() else {
        return;
    };
    let accepted = judge(&vector, &scope, user, now).unwrap();
    assert_eq!(accepted.credentials().len(), 2);
    assert_eq!(accepted.nullifier(), Some(support::fr(&scope[1]["pub_signals"][4])));
    assert_eq!(accepted.credentials()[0].nullifier, None);
}

#[test]
fn zk60_every_query_has_exactly_one_entry() {
    let Some((vector, scope, user, now)) = nullifier_vector() else {
        return;
    };
    let refused = |scope: &[Value]| match judge(&vector, scope, user, now) {
        Err(Refused::Credential(error)) => error,
        other => panic!("{other:?}"),
    };
    assert_eq!(refused(&[]), CredentialError::Absent(1));
    assert_eq!(refused(&scope[..1]), CredentialError::Absent(2));
    let twice = [&scope[..], &scope[1..]].concat();
    assert_eq!(refused(&twice), CredentialError::Twice(2));
    for wrong in [
        serde_json::json!({ "id": 2 }),
        serde_json::json!({ "id": 2, "circuitId": "authV2", "proof": {}, "pub_signals": [] }),
        serde_json::json!({ "id": 2, "circuitId": "authV2", "proof": scope[1]["proof"], "pub_signals": [1] }),
    ] {
        assert_eq!(refused(&[scope[0].clone(), wrong]), CredentialError::Malformed);
    }
}

#[test]
fn zk62_the_pairing_covers_every_signal() {
    let Some((vector, scope, user, now)) = nullifier_vector() else {
        return;
    };
    let mut changed = scope;
    // The nullifier signal itself, which only the proof attests.
    changed[1]["pub_signals"][4] = "7".into();
    assert!(matches!(
        judge(&vector, &changed, user, now),
        Err(Refused::Credential(CredentialError::Proof(ProofError::Pairing)))
    ));
}

#[test]
fn zk70_zk71_every_state_must_be_looked_up_and_be_young_enough() {
    let Some((vector, scope, user, now)) = nullifier_vector() else {
        return;
    };
    let request = &vector["request"];
    let requested = query::parse_scope(
        request["body"]["scope"].as_array().unwrap(),
        request["from"].as_str().unwrap(),
        &documents(&vector["documents"]),
    )
    .unwrap();
    let examine = || credential::verify_proofs(&requested, &scope, user, now).unwrap();
    let lookups = examine().lookups();
    assert!(!lookups.is_empty());
    let answers = |state, read| {
        lookups
            .iter()
            .map(|lookup| (*lookup, StateAnswer { state, read }))
            .collect()
    };
    let judge = |answers: &StateAnswers| examine().check_issuer_states(answers, now).map(|_| ());
    let current = Ok(State {
        replaced: None,
        genesis: false,
    });
    assert_eq!(judge(&answers(current, now)), Ok(()));
    assert_eq!(judge(&StateAnswers::new()), Err(CredentialError::NotLookedUp));
    // A cached answer is as old as the call that fetched it.
    let old = judge(&answers(current, now.minus(Seconds(3601))));
    assert_eq!(old, Err(CredentialError::NonRevocation(FreshnessError::Read)));
    for error in [StateError::Unknown, StateError::Fault, StateError::Other] {
        assert_eq!(judge(&answers(Err(error), now)), Err(CredentialError::State(error)));
    }
}
