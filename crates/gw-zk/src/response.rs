//! Checks that a wallet's answer belongs to a request (ZK-40 to ZK-47).
//!
//! Pure functions of the token, the stored request and the time. A valid answer yields a DID. The caller must still
//! check the state of the identity ([`crate::state`]) and the requested credential proofs ([`crate::credential`]).

use crate::{
    circuit::Circuit,
    did::{Did, DidError, Id},
    groth16::{Key, ProofError},
    jwz::{Token, TokenError},
};
use ark_bn254::Fr;
use gw_types::{Seconds, Timestamp};
use serde_json::Value;

/// The message type of an answer.
pub const RESPONSE_TYPE: &str = "https://iden3-communication.io/authorization/1.0/response";

/// How far a wallet's clock may be ahead.
const AHEAD: Seconds = Seconds(300);

/// The parts of a request that the answer is checked against.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Request {
    /// Its thread id.
    pub thread: String,
    /// The verifier that sent it.
    pub from: String,
    /// The additional message to sign; empty if there is none.
    pub message: String,
    /// The time until which it may be answered.
    pub expires: Option<Timestamp>,
    /// The accepted envelopes, as written; an empty list accepts all.
    pub accept: Vec<String>,
    /// The ids of the credential queries.
    pub scope: Vec<u64>,
}

/// The keys that proofs are verified with.
#[derive(Clone, Copy, Debug)]
pub enum Keys<'a> {
    /// The official keys.
    Official,
    /// One other key for every envelope, from a custom setup. For tests of the code around the proof.
    Own(&'a Key),
}

/// A valid answer. The state of its identity and its credential proofs have not been checked.
#[derive(Clone, Debug)]
pub struct VerifiedResponse {
    /// The DID that answers. It is the subject of the login once the state is checked.
    pub subject: Did,
    /// The root of the tree of all identities (GIST) that the proof uses.
    pub gist_root: Fr,
    /// The circuit of the envelope.
    pub circuit: Circuit,
    /// The hash of the signed message.
    pub hash: Fr,
    /// The entries for the requested queries, in the answer's order and not checked. Other entries are dropped (ZK-47).
    pub scope: Vec<Value>,
}

impl VerifiedResponse {
    /// The identifier that answers.
    pub fn user(&self) -> Id {
        self.subject.id()
    }
}

/// Why an answer is rejected.
#[derive(Debug, thiserror::Error)]
pub enum ResponseError {
    /// The token is malformed.
    #[error("the token is malformed")]
    Token(#[from] TokenError),
    /// The request does not accept the envelope's circuit.
    #[error("the request does not accept envelopes of this circuit")]
    Accept,
    /// The message has another type, or none.
    #[error("not an authorization response")]
    Type,
    /// The message names another sender than the proof.
    #[error("the sender is not the identity of the proof")]
    From,
    /// The network of the sender's identifier is not in the table.
    #[error("the network is unknown")]
    Network,
    /// Addressed to another verifier.
    #[error("the answer is for another verifier")]
    To,
    /// Answers another request.
    #[error("the answer belongs to another thread")]
    Thread,
    /// The signed message is not the requested one.
    #[error("the signed message differs")]
    Message,
    /// The request or the answer has expired.
    #[error("the request or the answer has expired")]
    Expired,
    /// The answer was created in the future.
    #[error("the answer is from the future")]
    Future,
    /// A member of the message has an invalid type.
    #[error("a member of the answer is malformed")]
    Malformed,
    /// The proof is invalid.
    #[error("the proof does not hold")]
    Proof(#[source] ProofError),
}

/// Checks a token as the answer to `request`.
///
/// The specification lists the pairing first, but it is checked last: the result is the same, and this way requests of
/// unauthenticated clients cost the least work.
///
/// # Errors
/// [`ResponseError`] for the first check that fails.
pub fn check(
    token: &str,
    request: &Request,
    keys: Keys<'_>,
    now: Timestamp,
) -> Result<VerifiedResponse, ResponseError> {
    let token = Token::read(token)?;
    if !request.accept.is_empty() && !request.accept.iter().any(|profile| accepts(profile, token.circuit())) {
        return Err(ResponseError::Accept);
    }
    let subject = match Did::from_id(token.user()) {
        Ok(did) => did,
        Err(DidError::Network) => return Err(ResponseError::Network),
        Err(DidError::Shape | DidError::Id(_) | DidError::Differs) => return Err(ResponseError::From),
    };
    let scope = check_message(token.message(), &subject, request, now)?;
    match keys {
        Keys::Official => token.verify(),
        Keys::Own(key) => token.verify_under(key),
    }
    .map_err(ResponseError::Proof)?;
    Ok(VerifiedResponse {
        subject,
        gist_root: token.gist_root(),
        circuit: token.circuit(),
        hash: token.hash(),
        scope,
    })
}

/// Checks the signed message and returns the requested entries. Also usable for a message without an envelope.
///
/// # Errors
/// [`ResponseError`] for the first check that fails.
pub fn check_message(
    message: &Value,
    subject: &Did,
    request: &Request,
    now: Timestamp,
) -> Result<Vec<Value>, ResponseError> {
    let text = |name: &str| message.get(name).and_then(Value::as_str);
    if text("type") != Some(RESPONSE_TYPE) {
        return Err(ResponseError::Type);
    }
    if text("from") != Some(subject.as_str()) {
        return Err(ResponseError::From);
    }
    if text("to") != Some(request.from.as_str()) {
        return Err(ResponseError::To);
    }
    if text("thid") != Some(request.thread.as_str()) {
        return Err(ResponseError::Thread);
    }
    let body = message.get("body").unwrap_or(&Value::Null);
    let signed = match body.get("message") {
        None | Some(Value::Null) => "",
        Some(Value::String(text)) => text,
        Some(_) => return Err(ResponseError::Message),
    };
    if signed != request.message {
        return Err(ResponseError::Message);
    }
    let expires = [request.expires, time_in(message, "expires_time")?];
    if expires.into_iter().flatten().any(|expires| expires.secs() < now.secs()) {
        return Err(ResponseError::Expired);
    }
    if time_in(message, "created_time")?.is_some_and(|created| created > now.plus(AHEAD)) {
        return Err(ResponseError::Future);
    }
    match body.get("scope") {
        None | Some(Value::Null) => Ok(Vec::new()),
        Some(Value::Array(entries)) => Ok(entries
            .iter()
            .filter(|entry| is_requested(entry, request))
            .cloned()
            .collect()),
        Some(_) => Err(ResponseError::Malformed),
    }
}

fn is_requested(entry: &Value, request: &Request) -> bool {
    entry
        .get("id")
        .and_then(Value::as_u64)
        .is_some_and(|id| request.scope.contains(&id))
}

/// Reads a time in seconds since 1970; absent and null are the same.
fn time_in(message: &Value, name: &str) -> Result<Option<Timestamp>, ResponseError> {
    match message.get(name) {
        None | Some(Value::Null) => Ok(None),
        Some(seconds) => seconds
            .as_i64()
            .map(Timestamp::from_secs)
            .map(Some)
            .ok_or(ResponseError::Malformed),
    }
}

/// Whether a profile like `iden3comm/v1;env=…;circuitId=authV2,authV3;alg=groth16` accepts a proof of this circuit. An
/// unreadable profile accepts none.
fn accepts(profile: &str, circuit: Circuit) -> bool {
    let mut parts = profile.split(';').map(str::trim);
    if parts.next() != Some("iden3comm/v1") {
        return false;
    }
    let mut envelope = false;
    let rest = parts.all(|part| {
        let listed = |list: &str, wanted: &str| list.split(',').any(|item| item.trim() == wanted);
        match part.split_once('=') {
            Some(("env", value)) => {
                envelope = value == "application/iden3-zkp-json";
                envelope
            }
            Some(("circuitId", list)) => listed(list, circuit.id()),
            Some(("alg", list)) => listed(list, "groth16"),
            Some(_) | None => false,
        }
    });
    envelope && rest
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    const NOW: Timestamp = Timestamp::from_secs(1_700_000_000);

    fn subject() -> Did {
        Did::parse("did:iden3:privado:main:2SeytAhJWLi5a68GX2bBmFNoaFCbRvyfLU6LUXBMfK").unwrap()
    }

    fn request() -> Request {
        Request {
            thread: "t".to_owned(),
            from: "did:example:verifier".to_owned(),
            message: String::new(),
            expires: Some(NOW.plus(Seconds(600))),
            accept: Vec::new(),
            scope: vec![1],
        }
    }

    fn message() -> Value {
        json!({
            "id": "x", "thid": "t", "typ": "application/iden3-zkp-json", "type": RESPONSE_TYPE,
            "from": subject().as_str(), "to": "did:example:verifier", "created_time": NOW.secs(),
            "body": {"scope": [{"id": 1, "a": "b"}, {"id": 2}, {"id": "1"}, "entry", {"rbac_groups": ["admins"]}]},
        })
    }

    fn judge(change: impl FnOnce(&mut Value)) -> Result<Vec<Value>, ResponseError> {
        let mut message = message();
        change(&mut message);
        check_message(&message, &subject(), &request(), NOW)
    }

    #[test]
    fn zk47_only_entries_that_were_asked_for_come_out() {
        assert_eq!(judge(|_| ()).unwrap(), [json!({"id": 1, "a": "b"})]);
        assert_eq!(judge(|m| m["body"]["scope"] = Value::Null).unwrap(), [] as [Value; 0]);
        assert_eq!(judge(|m| m["body"] = Value::Null).unwrap(), [] as [Value; 0]);
        assert!(matches!(
            judge(|m| m["body"]["scope"] = json!({})),
            Err(ResponseError::Malformed)
        ));
    }

    #[test]
    fn zk40_zk41_zk42_zk43_who_to_whom_about_what() {
        use ResponseError as E;
        assert!(matches!(
            judge(|m| m["type"] = json!("https://example/other")),
            Err(E::Type)
        ));
        assert!(matches!(judge(|m| m["type"] = Value::Null), Err(E::Type)));
        assert!(matches!(
            judge(|m| m["from"] = json!(subject().as_str().to_lowercase())),
            Err(E::From)
        ));
        assert!(matches!(judge(|m| m["to"] = json!("did:example:other")), Err(E::To)));
        assert!(matches!(judge(|m| m["to"] = Value::Null), Err(E::To)));
        assert!(matches!(judge(|m| m["thid"] = json!("u")), Err(E::Thread)));
        assert!(matches!(judge(|m| *m = json!([])), Err(E::Type)));
        // Both media types occur.
        assert!(judge(|m| m["typ"] = json!("application/iden3comm-plain-json")).is_ok());
    }

    #[test]
    fn zk44_absent_null_and_empty_messages_are_alike() {
        for message in [Value::Null, json!("")] {
            assert!(judge(|m| m["body"]["message"] = message.clone()).is_ok());
        }
        for message in [json!("other"), json!(0), json!([])] {
            assert!(matches!(
                judge(|m| m["body"]["message"] = message.clone()),
                Err(ResponseError::Message)
            ));
        }
    }

    #[test]
    fn zk45_times_bind_on_both_sides() {
        let later = |seconds| check_message(&message(), &subject(), &request(), NOW.plus(Seconds(seconds)));
        assert!(later(600).is_ok());
        assert!(matches!(later(601), Err(ResponseError::Expired)));
        assert!(matches!(
            judge(|m| m["expires_time"] = json!(NOW.secs() - 1)),
            Err(ResponseError::Expired)
        ));
        assert!(judge(|m| m["created_time"] = json!(NOW.secs() + 300)).is_ok());
        assert!(matches!(
            judge(|m| m["created_time"] = json!(NOW.secs() + 301)),
            Err(ResponseError::Future)
        ));
        assert!(matches!(
            judge(|m| m["created_time"] = json!("soon")),
            Err(ResponseError::Malformed)
        ));
        assert!(matches!(
            judge(|m| m["expires_time"] = json!(1e300)),
            Err(ResponseError::Malformed)
        ));
    }

    #[test]
    fn zk46_profiles_name_what_they_take() {
        let envelope = "iden3comm/v1;env=application/iden3-zkp-json";
        for (profile, takes) in [
            (envelope.to_owned(), true),
            (format!("{envelope};circuitId=authV2;alg=groth16"), true),
            (format!("{envelope};circuitId=authV3,authV2;alg=groth16"), true),
            (format!("{envelope}; circuitId=authV3, authV2; alg=groth16"), true),
            (format!("{envelope};circuitId=authV3;alg=groth16"), false),
            (format!("{envelope};circuitId=authV2;alg=plonk"), false),
            (format!("{envelope};circuitId=auth"), false),
            (format!("{envelope};other=1"), false),
            (
                "iden3comm/v1;env=application/iden3comm-signed-json;alg=ES256K".to_owned(),
                false,
            ),
            ("iden3comm/v1".to_owned(), false),
            ("iden3comm/v2;env=application/iden3-zkp-json".to_owned(), false),
            (String::new(), false),
        ] {
            assert_eq!(accepts(&profile, Circuit::AuthV2), takes, "{profile}");
        }
    }
}
