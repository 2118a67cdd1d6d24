//! JSON-RPC calls of the tests.

use axum::body::Bytes;
use http::{Request, header};
use http_body_util::{BodyExt as _, Full};
use hyper_util::{
    client::legacy::{Client, connect::HttpConnector},
    rt::TokioExecutor,
};
use serde_json::{Value, json};

/// A client of a node.
#[derive(Clone)]
pub(crate) struct Rpc {
    url: String,
    client: Client<HttpConnector, Full<Bytes>>,
}

impl Rpc {
    pub(crate) fn new(url: &str) -> Self {
        Self {
            url: url.to_owned(),
            client: Client::builder(TokioExecutor::new()).build_http(),
        }
    }

    /// Posts a body and returns the answer.
    pub(crate) async fn post(&self, body: impl Into<Bytes>) -> Bytes {
        let request = Request::post(&self.url)
            .header(header::CONTENT_TYPE, "application/json")
            .body(Full::new(body.into()))
            .unwrap();
        let response = self.client.request(request).await.unwrap();
        response.into_body().collect().await.unwrap().to_bytes()
    }

    pub(crate) async fn call(&self, method: &str, params: Value) -> Value {
        let body = json!({"jsonrpc": "2.0", "id": 1, "method": method, "params": params});
        let answer: Value = serde_json::from_slice(&self.post(body.to_string()).await).unwrap();
        assert!(answer.get("error").is_none(), "{method}: {answer}");
        answer["result"].clone()
    }

    /// Number and hash of the newest block.
    pub(crate) async fn head(&self) -> (u64, String) {
        let block = self.call("eth_getBlockByNumber", json!(["latest", false])).await;
        let number = block["number"].as_str().unwrap().trim_start_matches("0x");
        let hash = block["hash"].as_str().unwrap().to_owned();
        (u64::from_str_radix(number, 16).unwrap(), hash)
    }
}
