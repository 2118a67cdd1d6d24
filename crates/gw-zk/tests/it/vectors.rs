//! The public test vectors: whole tokens and answers, with the verdict that a strict verifier must give.
//!
//! Runs all files of the format in the folder; `GW_VECTORS_DIR` names another folder.

use alloy_primitives::hex;
use gw_types::Timestamp;
use gw_zk::{
    credential::CredentialError,
    did::{Did, Network},
    jwz::{self, Token},
    response::{self, Keys, Request, ResponseError, VerifiedResponse},
    state::{self, CallResult},
};
use serde_json::Value;
use std::path::PathBuf;

use crate::credentials::{self, Refused};
use crate::support::folder;

/// The verdict on one vector.
#[derive(Debug)]
enum Verdict {
    Valid(String),
    Rejected {
        reason: &'static str,
        why: String,
    },
    /// The envelope is valid; the rest is not checked here.
    Unjudged,
}

impl Verdict {
    fn failed(why: impl core::fmt::Debug) -> Self {
        Self::Rejected {
            reason: "verification_failed",
            why: format!("{why:?}"),
        }
    }

    fn word(&self) -> &str {
        match self {
            Self::Valid(_) => "valid",
            Self::Rejected { why, .. } => why,
            Self::Unjudged => "unjudged",
        }
    }
}

/// The stored request, from the message that was sent.
fn request_of(message: &Value) -> Request {
    let text = |value: &Value| value.as_str().unwrap_or_default().to_owned();
    let body = &message["body"];
    let list = |value: &Value| value.as_array().cloned().unwrap_or_default();
    Request {
        thread: text(&message["thid"]),
        from: text(&message["from"]),
        message: text(&body["message"]),
        expires: message["expires_time"].as_i64().map(Timestamp::from_secs),
        accept: list(&body["accept"]).iter().map(text).collect(),
        scope: list(&body["scope"])
            .iter()
            .filter_map(|query| query["id"].as_u64())
            .collect(),
    }
}

fn judge(vector: &Value) -> Verdict {
    let now = Timestamp::from_secs(vector["now"].as_i64().unwrap_or_default());
    match (&vector["token"], &vector["request"]) {
        (Value::String(token), Value::Object(_)) => {
            let request = request_of(&vector["request"]);
            match response::check(jwz::trimmed(token), &request, Keys::Official, now) {
                Ok(answer) => judge_state(vector, &answer, now),
                Err(ResponseError::Network) => Verdict::Rejected {
                    reason: "network_not_supported",
                    why: "network".to_owned(),
                },
                Err(error) => Verdict::failed(error),
            }
        }
        // Without a request, only the proof can be checked.
        (Value::String(token), _) => match Token::read(jwz::trimmed(token)) {
            Ok(token) => token.verify().map_or_else(Verdict::failed, |()| Verdict::Unjudged),
            Err(error) => Verdict::failed(error),
        },
        (_, _) => judge_response(vector, now),
    }
}

/// Checks an answer without an envelope: the message, with the sender that it names.
fn judge_response(vector: &Value, now: Timestamp) -> Verdict {
    let Ok(sender) = Did::parse(vector["response"]["from"].as_str().unwrap_or_default()) else {
        return Verdict::failed("from");
    };
    match response::check_message(&vector["response"], &sender, &request_of(&vector["request"]), now) {
        Ok(scope) => judge_credentials(vector, &scope, &sender, now),
        Err(error) => Verdict::failed(error),
    }
}

fn judge_state(vector: &Value, answer: &VerifiedResponse, now: Timestamp) -> Verdict {
    let network = answer.user().network().map(Network::key).unwrap_or_default();
    let contract = &vector["state_contract"][network];
    if contract.is_null() {
        return Verdict::Rejected {
            reason: "network_not_supported",
            why: "no resolver".to_owned(),
        };
    }
    let result = call(contract, &state::root_call(&answer.gist_root), |outcome| {
        state::read_root(&answer.gist_root, outcome)
    });
    match result {
        Err(error) => Verdict::failed(error),
        Ok(root) => match state::check_root_freshness(root, now, now) {
            Err(error) => Verdict::failed(error),
            Ok(()) if vector["path"] == "A" => Verdict::Valid(answer.subject.to_string()),
            Ok(()) => judge_credentials(vector, &answer.scope, &answer.subject, now),
        },
    }
}

fn judge_credentials(vector: &Value, scope: &[Value], subject: &Did, now: Timestamp) -> Verdict {
    match credentials::judge(vector, scope, subject.id(), now) {
        Ok(_) => Verdict::Valid(subject.to_string()),
        Err(Refused::Credential(CredentialError::Absent(id))) => Verdict::Rejected {
            reason: "humanity_required",
            why: format!("no proof for {id}"),
        },
        Err(refused) => Verdict::failed(refused),
    }
}

/// Answers a call from the recorded contract.
pub(crate) fn call<T>(contract: &Value, data: &[u8], read: impl FnOnce(CallResult<'_>) -> T) -> T {
    let data = hex::encode_prefixed(data);
    let recorded = contract["eth_calls"]
        .as_array()
        .unwrap()
        .iter()
        .find(|call| call["data"] == data.as_str());
    let recorded = recorded.unwrap_or_else(|| panic!("the contract was asked {data}, which nobody recorded"));
    let bytes = |value: &Value| hex::decode(value.as_str().unwrap_or("0x")).unwrap();
    match recorded["result"].as_str() {
        Some(_) => read(CallResult::Returned(&bytes(&recorded["result"]))),
        None => read(CallResult::Reverted {
            data: &bytes(&recorded["error"]["data"]),
            message: recorded["error"]["message"].as_str().unwrap(),
        }),
    }
}

/// All vector files, sorted by name.
fn files() -> Option<Vec<PathBuf>> {
    let folder = folder().join("jwz");
    let mut files: Vec<PathBuf> = ["tokens", "responses"]
        .iter()
        .filter_map(|part| std::fs::read_dir(folder.join(part)).ok())
        .flatten()
        .map(|entry| entry.unwrap().path())
        .filter(|path| path.extension().is_some_and(|extension| extension == "json"))
        .collect();
    files.sort();
    if files.is_empty() {
        eprintln!(
            "NOT RUN: no test vectors at {}: THE LOGIN CHECKS WERE NOT HELD AGAINST THEM",
            folder.display()
        );
        return None;
    }
    Some(files)
}

/// ZK-30 to ZK-51: every vector gets its strict verdict, and its session reason if it is rejected.
#[test]
fn zk_vectors_get_their_strict_verdicts() {
    let Some(files) = files() else { return };
    let (mut wrong, mut unjudged, mut unspecified, mut right) = (Vec::new(), Vec::new(), Vec::new(), 0);
    for path in files {
        let vector: Value = serde_json::from_slice(&std::fs::read(&path).unwrap()).unwrap();
        let (id, expect) = (vector["id"].as_str().unwrap(), &vector["expect"]);
        let verdict = judge(&vector);
        let line = format!("{id}: expected {expect}, got {verdict:?}");
        match (expect["strict"].as_str(), &verdict) {
            (Some("valid"), Verdict::Valid(did)) if expect["user_did"].as_str().is_none_or(|wanted| wanted == did) => {
                right += 1;
            }
            (Some("reject"), Verdict::Rejected { reason, .. })
                if expect["session_reason"].as_str().is_none_or(|wanted| wanted == *reason) =>
            {
                right += 1;
            }
            (Some("valid" | "reject"), Verdict::Unjudged) => unjudged.push(id.to_owned()),
            (Some("valid" | "reject"), _) => wrong.push(line),
            _ => unspecified.push(format!("{id}: we say {}", verdict.word())),
        }
    }
    eprintln!(
        "{right} vectors as expected, {} without a verdict yet: {unjudged:?}",
        unjudged.len()
    );
    eprintln!("unspecified: {unspecified:#?}");
    assert!(wrong.is_empty(), "{wrong:#?}");
    assert!(right > 0);
}
