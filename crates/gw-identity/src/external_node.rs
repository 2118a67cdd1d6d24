//! JSON-RPC calls to third-party nodes.

use alloy_primitives::hex;
use axum::body::Bytes;
use gw_http::{AnswerLimits, HttpClient, OutboundError};
use gw_types::Address;
use http::{HeaderValue, Request, Uri, header};
use http_body_util::Full;
use serde::Deserialize;
use serde_json::{Value, json};
use std::time::Duration;

/// The limits of one answer (DI-5).
const ANSWER: AnswerLimits = AnswerLimits {
    bytes: 64 * 1024,
    deadline: Duration::from_secs(3),
};

/// The outcome of a contract call.
#[derive(Debug, PartialEq, Eq)]
pub(crate) enum Reply {
    Returned(Vec<u8>),
    Reverted { data: Vec<u8>, message: String },
}

/// Why a node gave no answer.
#[derive(Debug, thiserror::Error)]
pub(crate) enum CallError {
    #[error("the node cannot be asked")]
    Outbound(#[from] OutboundError),
    #[error("the node's answer is no JSON-RPC")]
    Answer(#[source] serde_json::Error),
    #[error("the node answers neither with a result nor with a revert")]
    NoResult,
    #[error("this machine trusts no certificates")]
    NoTrust,
    #[error("the node is on chain {actual} instead of {expected}")]
    Chain { expected: u64, actual: u64 },
}

#[derive(Deserialize)]
pub(crate) struct Answer {
    pub(crate) result: Option<Value>,
    error: Option<RpcError>,
}

#[derive(Deserialize)]
struct RpcError {
    code: i64,
    #[serde(default)]
    message: String,
    data: Option<Value>,
}

/// Asks the node for its chain id.
pub(crate) async fn chain_id(outbound: &HttpClient, node: &Uri) -> Result<u64, CallError> {
    let answer = ask(outbound, node, "eth_chainId", json!([])).await?;
    let text = answer
        .result
        .as_ref()
        .and_then(Value::as_str)
        .and_then(|text| text.strip_prefix("0x"));
    text.and_then(|digits| u64::from_str_radix(digits, 16).ok())
        .ok_or(CallError::NoResult)
}

/// Calls the contract at the newest block.
pub(crate) async fn contract(
    outbound: &HttpClient,
    node: &Uri,
    contract: Address,
    data: &[u8],
) -> Result<Reply, CallError> {
    let call = json!([{"to": contract, "data": hex::encode_prefixed(data)}, "latest"]);
    reply(ask(outbound, node, "eth_call", call).await?)
}

/// Reads the outcome of a call. An error other than a revert says nothing about the contract (DI-6).
fn reply(answer: Answer) -> Result<Reply, CallError> {
    match (answer.result, answer.error) {
        (Some(Value::String(text)), None) => bytes(&text).map(Reply::Returned).ok_or(CallError::NoResult),
        (_, Some(error)) => {
            let data = error
                .data
                .as_ref()
                .and_then(Value::as_str)
                .map(|text| text.trim_start_matches("Reverted "));
            let data = data.and_then(bytes).unwrap_or_default();
            let is_revert = error.code == 3 || !data.is_empty() || error.message.contains("execution reverted");
            if is_revert {
                Ok(Reply::Reverted {
                    data,
                    message: error.message,
                })
            } else {
                Err(CallError::NoResult)
            }
        }
        (_, None) => Err(CallError::NoResult),
    }
}

fn bytes(text: &str) -> Option<Vec<u8>> {
    hex::decode(text.strip_prefix("0x")?).ok()
}

pub(crate) async fn ask(outbound: &HttpClient, node: &Uri, method: &str, params: Value) -> Result<Answer, CallError> {
    let body = json!({"jsonrpc": "2.0", "id": 1, "method": method, "params": params}).to_string();
    let mut request = Request::new(Full::new(Bytes::from(body)));
    *request.method_mut() = http::Method::POST;
    *request.uri_mut() = node.clone();
    request
        .headers_mut()
        .insert(header::CONTENT_TYPE, HeaderValue::from_static("application/json"));
    let answer = outbound.exchange(request, ANSWER).await?;
    serde_json::from_slice(answer.body()).map_err(CallError::Answer)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read(text: &str) -> Option<Reply> {
        reply(serde_json::from_str(text).unwrap()).ok()
    }

    #[test]
    fn di6_results_reverts_and_neither() {
        assert_eq!(read(r#"{"result":"0x01"}"#), Some(Reply::Returned(vec![1])));
        assert_eq!(read(r#"{"result":"0x"}"#), Some(Reply::Returned(vec![])));
        let revert = |data: &[u8], message: &str| {
            Some(Reply::Reverted {
                data: data.to_vec(),
                message: message.into(),
            })
        };
        assert_eq!(
            read(r#"{"error":{"code":3,"message":"execution reverted","data":"0xf95411d2"}}"#),
            revert(&[0xf9, 0x54, 0x11, 0xd2], "execution reverted")
        );
        assert_eq!(
            read(r#"{"error":{"code":-32015,"message":"VM execution error.","data":"Reverted 0x9223dc39"}}"#),
            revert(&[0x92, 0x23, 0xdc, 0x39], "VM execution error.")
        );
        assert_eq!(
            read(r#"{"error":{"code":-32000,"message":"execution reverted: Root does not exist"}}"#),
            revert(&[], "execution reverted: Root does not exist")
        );
        for neither in [
            r#"{"error":{"code":-32005,"message":"Root does not exist in the daily limit"}}"#,
            r#"{"error":{"code":-32000,"message":"header not found"}}"#,
            r#"{"result":null}"#,
            r#"{"result":"0xzz"}"#,
            r#"{"result":{}}"#,
            "{}",
        ] {
            assert_eq!(read(neither), None, "{neither}");
        }
    }
}
