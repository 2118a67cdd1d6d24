//! `state-resolution.json`: contract answers and their interpretation.

use alloy_primitives::hex;
use gw_types::Timestamp;
use gw_zk::{
    did::Id,
    state::{self, CallResult, Root, StateError},
};
use serde_json::Value;

use crate::support::{fr, json};

/// The outcome of a call: bytes, a revert, or no answer.
enum Ended {
    Returned(Vec<u8>),
    Reverted { data: Vec<u8>, message: String },
    Lost,
}

fn ended(answer: &Value) -> Ended {
    let bytes = |value: &Value| hex::decode(value.as_str().unwrap_or("0x")).unwrap();
    match (&answer["result"], &answer["revert"]) {
        (Value::String(_), _) => Ended::Returned(bytes(&answer["result"])),
        (_, Value::Object(revert)) => Ended::Reverted {
            data: bytes(&revert["data"]),
            message: revert["message"].as_str().unwrap().to_owned(),
        },
        _ => Ended::Lost,
    }
}

fn read<T>(answer: &Value, read: impl FnOnce(CallResult<'_>) -> Result<T, StateError>) -> Result<T, StateError> {
    match ended(answer) {
        Ended::Returned(bytes) => read(CallResult::Returned(&bytes)),
        Ended::Reverted { data, message } => read(CallResult::Reverted {
            data: &data,
            message: &message,
        }),
        // Never "not found": the caller of the contract reports a fault.
        Ended::Lost => Err(StateError::Fault),
    }
}

fn error_of(text: &str) -> StateError {
    match text {
        "upstream fault" => StateError::Fault,
        "state is not genesis and not registered" | "root not published" => StateError::Unknown,
        "replaced but time unknown" => StateError::NoTime,
        text if text.starts_with("answer belongs to another") => StateError::Other,
        other => panic!("an expectation of no known kind: {other}"),
    }
}

#[test]
fn zk51_di6_di7_roots_are_read_as_published() {
    let Some(data) = json("jwz/state-resolution.json") else {
        return;
    };
    for case in data["gist_roots"].as_array().unwrap() {
        let root = fr(&case["root"]);
        assert_eq!(
            hex::encode_prefixed(state::root_call(&root)),
            case["calldata"].as_str().unwrap()
        );
        let result = read(&case["answer"], |outcome| state::read_root(&root, outcome));
        let expected = match case["expect"]["error"].as_str() {
            Some(text) => Err(error_of(text)),
            None if case["expect"]["latest"] == true => Ok(Root::Current),
            None => Ok(Root::Replaced(Timestamp::from_secs(
                case["expect"]["transition"].as_i64().unwrap(),
            ))),
        };
        assert_eq!(result, expected, "{}", case["name"]);
    }
}

#[test]
fn zk70_di6_di7_states_are_read_as_published() {
    let Some(data) = json("jwz/state-resolution.json") else {
        return;
    };
    for case in data["identity_states"].as_array().unwrap() {
        let (id, state_hash) = (Id::from_scalar(&fr(&case["id"])).unwrap(), fr(&case["state"]));
        assert_eq!(
            hex::encode_prefixed(state::state_call(&id, &state_hash)),
            case["calldata"].as_str().unwrap()
        );
        let result = read(&case["answer"], |outcome| state::read_state(&id, &state_hash, outcome));
        let expected = match case["expect"]["error"].as_str() {
            Some(text) => Err(error_of(text)),
            None => {
                let at = case["expect"]["transition"].as_i64().unwrap();
                let replaced = (case["expect"]["latest"] == false).then(|| Timestamp::from_secs(at));
                Ok(state::State {
                    replaced,
                    genesis: case["expect"]["genesis"].as_bool().unwrap(),
                })
            }
        };
        assert_eq!(result, expected, "{}", case["name"]);
    }
}

#[test]
fn di4_genesis_states_make_their_ids() {
    let Some(data) = json("jwz/state-resolution.json") else {
        return;
    };
    for case in data["genesis_check"].as_array().unwrap() {
        let id = Id::from_scalar(&fr(&case["id_int"])).unwrap();
        assert_eq!(
            id.is_genesis(&fr(&case["state"])),
            case["is_genesis"].as_bool().unwrap(),
            "{case}"
        );
    }
}
