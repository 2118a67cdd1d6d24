//! JSON-RPC towards the node: request bodies with ids of our own, and answers that are matched by id and sliced out of
//! the body without a copy.
//!
//! Invariant: a result that leaves this module is one complete JSON text; anything else is [`NodeError::Unparsable`]
//! and never reaches a client (spec/20 B20).

use crate::error::NodeError;
use bytes::Bytes;
use gw_evm::wire::UpstreamCall;
use gw_policy::sealed::{RawError, RawJson, Sealed};
use serde::{Deserialize, Deserializer, de::IgnoredAny};
use serde_json::value::RawValue;
use std::io::Write as _;

/// The node's answer to one call. Errors are sealed too: their messages may contain balances and nonces.
#[derive(Debug)]
pub enum Answer<T> {
    /// A result; JSON `null` included.
    Result(T),
    /// A JSON-RPC error.
    Error(Sealed<RawError>),
}

impl Answer<&RawValue> {
    /// The answer as a slice of `body`, the body that it was parsed from.
    pub(crate) fn slice_from(self, body: &Bytes) -> Answer<Bytes> {
        match self {
            Self::Result(result) => Answer::Result(slice(body, result)),
            Self::Error(error) => Answer::Error(error),
        }
    }
}

impl Answer<Bytes> {
    /// Seals the result.
    pub(crate) fn sealed(self) -> Answer<Sealed<RawJson>> {
        match self {
            Self::Result(result) => Answer::Result(Sealed::new(RawJson::new(result))),
            Self::Error(error) => Answer::Error(error),
        }
    }
}

/// The body of one call.
pub(crate) fn single(call: &UpstreamCall) -> Bytes {
    let mut body = Vec::with_capacity(64 + call.method.len() + call.params.len());
    push(&mut body, 0, call);
    body.into()
}

/// The body of several calls in one exchange; their ids are their positions.
pub(crate) fn batch(calls: &[UpstreamCall]) -> Bytes {
    let mut body = vec![b'['];
    for (id, call) in calls.iter().enumerate() {
        if id > 0 {
            body.push(b',');
        }
        push(&mut body, id, call);
    }
    body.push(b']');
    body.into()
}

fn push(body: &mut Vec<u8>, id: usize, call: &UpstreamCall) {
    let UpstreamCall { method, params } = call;
    // Writing to a `Vec` cannot fail; method names are registry constants and need no escaping.
    let _ = write!(
        body,
        r#"{{"jsonrpc":"2.0","id":{id},"method":"{method}","params":{params}}}"#
    );
}

#[derive(Deserialize)]
struct Wire<'a> {
    #[serde(default)]
    id: Option<Id>,
    #[serde(borrow, default, deserialize_with = "deserialize_some")]
    result: Option<&'a RawValue>,
    #[serde(borrow, default)]
    error: Option<WireError<'a>>,
}

#[derive(Deserialize)]
struct WireError<'a> {
    code: i64,
    #[serde(default)]
    message: String,
    #[serde(borrow, default)]
    data: Option<&'a RawValue>,
}

/// Texts by which nodes name a limit on the time, depth or size of an execution.
const LIMITS: [&str; 12] = [
    "execution timeout",
    "execution timed out",
    "execution aborted (timeout",
    "request timed out",
    "request timeout",
    "tracing timeout",
    "trace timeout",
    "deadline exceeded",
    "response too large",
    "result too large",
    "trace too large",
    "too deep",
];

/// Codes that name a fault of the request, of the node or of its operator, whatever their text: invalid JSON, an
/// invalid request, an unknown method, invalid parameters, an exceeded rate.
const NEVER_A_LIMIT: [i64; 5] = [-32700, -32600, -32601, -32602, -32005];

impl WireError<'_> {
    fn names_limit(&self) -> bool {
        let text = self.message.to_ascii_lowercase();
        !NEVER_A_LIMIT.contains(&self.code) && LIMITS.iter().any(|limit| text.contains(limit))
    }
}

/// Whether all errors among these answers name a limit of the execution that a transaction reaches by its content.
pub(crate) fn names_execution_limit(body: &Bytes) -> bool {
    let answers: Result<Vec<Wire<'_>>, _> = serde_json::from_slice(body);
    let answers = answers.unwrap_or_default();
    answers.iter().any(|answer| answer.error.is_some())
        && answers
            .iter()
            .filter_map(|answer| answer.error.as_ref())
            .all(WireError::names_limit)
}

/// An id of an answer. Ours are small numbers; any other id belongs to no call.
#[derive(Deserialize)]
#[serde(untagged)]
enum Id {
    Ours(usize),
    Other(IgnoredAny),
}

/// Reads a member that is present as `Some`, so that `null` differs from an absent member.
fn deserialize_some<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Option<&'de RawValue>, D::Error> {
    <&RawValue>::deserialize(deserializer).map(Some)
}

impl<'a> Wire<'a> {
    fn answer(self, body: &Bytes) -> Result<Answer<&'a RawValue>, NodeError> {
        match (self.error, self.result) {
            (Some(WireError { code, message, data }), _) => {
                let data = data.map(|data| RawJson::new(slice(body, data)));
                Ok(Answer::Error(Sealed::new(RawError { code, message, data })))
            }
            (None, Some(result)) => Ok(Answer::Result(result)),
            (None, None) => Err(NodeError::Unparsable),
        }
    }
}

fn slice(body: &Bytes, part: &RawValue) -> Bytes {
    body.slice_ref(part.get().as_bytes())
}

/// Reads the answer to [`single`].
pub(crate) fn read_single(body: &Bytes) -> Result<Answer<Bytes>, NodeError> {
    let wire: Wire<'_> = serde_json::from_slice(body).map_err(|_| NodeError::Unparsable)?;
    Ok(wire.answer(body)?.slice_from(body))
}

/// Reads the answers to [`batch`], in the order of the calls.
pub(crate) fn read_batch(body: &Bytes, count: usize) -> Result<Vec<Answer<&RawValue>>, NodeError> {
    let wires: Vec<Wire<'_>> = serde_json::from_slice(body).map_err(|_| NodeError::Unparsable)?;
    let mut answers: Vec<Option<Answer<&RawValue>>> = std::iter::repeat_with(|| None).take(count).collect();
    for wire in wires {
        let Some(Id::Ours(id)) = wire.id else {
            return Err(NodeError::Unparsable);
        };
        let slot = answers.get_mut(id).ok_or(NodeError::Unparsable)?;
        if slot.replace(wire.answer(body)?).is_some() {
            return Err(NodeError::Unparsable);
        }
    }
    answers
        .into_iter()
        .collect::<Option<Vec<_>>>()
        .ok_or(NodeError::Unparsable)
}

#[cfg(test)]
mod tests {
    use super::*;
    use gw_evm::wire;

    fn text(answer: Answer<Bytes>) -> String {
        match answer {
            Answer::Result(bytes) => String::from_utf8(bytes.to_vec()).unwrap(),
            Answer::Error(_) => "error".to_owned(),
        }
    }

    #[test]
    fn bodies_carry_our_ids() {
        assert_eq!(
            &batch(&[wire::chain_id(), wire::gas_price()])[..],
            br#"[{"jsonrpc":"2.0","id":0,"method":"eth_chainId","params":[]},{"jsonrpc":"2.0","id":1,"method":"eth_gasPrice","params":[]}]"#
        );
    }

    #[test]
    fn results_are_sliced_out_unchanged() {
        for (body, expected) in [
            (r#"{"jsonrpc":"2.0","id":0,"result":{"a": [1 ,2]}}"#, r#"{"a": [1 ,2]}"#),
            (r#"{"jsonrpc":"2.0","id":0,"result":null}"#, "null"),
            (r#"{"jsonrpc":"2.0","id":0,"result":"0x1","error":null}"#, r#""0x1""#),
            (
                r#"{"jsonrpc":"2.0","id":0,"error":{"code":-32000,"message":"x"}}"#,
                "error",
            ),
        ] {
            assert_eq!(
                text(read_single(&Bytes::from_static(body.as_bytes())).unwrap()),
                expected
            );
        }
    }

    #[test]
    fn b20_anything_else_is_unparsable() {
        for body in [
            "",
            "<html>",
            "{}",
            "[]",
            r#"{"jsonrpc":"2.0","id":0}"#,
            r#"{"result":1,"result":2}"#,
            r#"{"result":1"#,
        ] {
            assert!(
                matches!(
                    read_single(&Bytes::from_static(body.as_bytes())),
                    Err(NodeError::Unparsable)
                ),
                "{body}"
            );
        }
    }

    /// HD36: only an error that names a limit of the execution can be caused by a transaction.
    #[test]
    fn hd36_an_execution_limit_is_named_by_text_and_not_by_code() {
        let names = |errors: &[(i64, &str)]| {
            let answers = errors.iter().enumerate();
            let answers: Vec<_> = answers
                .map(|(id, (code, text))| serde_json::json!({"id": id, "error": {"code": code, "message": text}}))
                .collect();
            names_execution_limit(&Bytes::from(serde_json::to_vec(&answers).unwrap()))
        };
        for named in [
            (-32000, "execution timeout"),
            (-32002, "request timed out"),
            (-32003, "response too large"),
        ] {
            assert!(names(&[named]), "{named:?}");
            assert!(!names(&[named, (-32000, "transaction not found")]), "{named:?}");
        }
        for other in [
            (-32005, "limit exceeded: execution timeout"),
            (-32601, "no method"),
            (-32603, "internal error"),
            (-32000, "missing trie node"),
            (-32000, "transaction indexing is in progress"),
        ] {
            assert!(!names(&[other]), "{other:?}");
        }
        assert!(!names(&[]));
    }

    #[test]
    fn batch_answers_are_matched_by_id_and_complete() {
        let swapped = Bytes::from_static(br#"[{"id":1,"result":"b"},{"id":0,"result":"a"}]"#);
        let answers: Vec<_> = read_batch(&swapped, 2)
            .unwrap()
            .into_iter()
            .map(|answer| text(answer.slice_from(&swapped)))
            .collect();
        assert_eq!(answers, [r#""a""#, r#""b""#]);
        for bad in [
            r#"[{"id":0,"result":"a"}]"#,
            r#"[{"id":0,"result":"a"},{"id":0,"result":"b"}]"#,
            r#"[{"id":0,"result":"a"},{"id":2,"result":"b"}]"#,
            r#"[{"id":0,"result":"a"},{"id":null,"result":"b"}]"#,
            r#"{"id":0,"result":"a"}"#,
        ] {
            assert!(
                matches!(
                    read_batch(&Bytes::from_static(bad.as_bytes()), 2),
                    Err(NodeError::Unparsable)
                ),
                "{bad}"
            );
        }
    }
}
