//! A small HTTP client for one gateway or node: JSON in, JSON out.

use anyhow::{Context as _, bail};
use axum::body::Bytes;
use gw_types::Secret;
use http::{Method, Request, StatusCode, header};
use http_body_util::{BodyExt as _, Full, Limited};
use hyper_util::{client::legacy, rt::TokioExecutor};
use serde_json::{Value, json};
use std::time::Duration;

/// How long an exchange may take.
const RESPONSE_TIMEOUT: Duration = Duration::from_secs(60);
/// Longest response body in bytes.
const LIMIT: usize = 16 << 20;

/// The credentials of a request.
#[derive(Clone, Copy, Debug)]
pub(super) enum As<'a> {
    /// No credentials.
    Nobody,
    /// The super administrator.
    Super(&'a Secret),
    /// The holder of an access token.
    Bearer(&'a str),
}

/// A client of one base address.
#[derive(Clone, Debug)]
pub(super) struct Client {
    base: String,
    http: legacy::Client<legacy::connect::HttpConnector, Full<Bytes>>,
}

/// A response with its body as text.
#[derive(Clone, Debug)]
pub(super) struct Response {
    pub(super) status: StatusCode,
    /// The body; bytes that are not UTF-8 are replaced.
    pub(super) text: String,
}

impl Response {
    /// The body as JSON; null if it is not JSON.
    pub(super) fn json(&self) -> Value {
        serde_json::from_str(&self.text).unwrap_or_default()
    }

    /// The body as JSON, or an error that names `action` if the status is no success.
    pub(super) fn expect_success(self, action: &str) -> anyhow::Result<Value> {
        if !self.status.is_success() {
            bail!("{action}: HTTP {}: {}", self.status.as_u16(), self.text);
        }
        Ok(self.json())
    }
}

impl Client {
    pub(super) fn new(base: &str) -> Self {
        Self {
            base: base.to_owned(),
            http: legacy::Client::builder(TokioExecutor::new()).build_http(),
        }
    }

    /// Sends a request and reads the whole response.
    pub(super) async fn send(
        &self,
        caller: As<'_>,
        method: Method,
        path: &str,
        body: Option<Value>,
    ) -> anyhow::Result<Response> {
        let mut request = Request::builder().method(method).uri(format!("{}{path}", self.base));
        match caller {
            As::Nobody => {}
            As::Super(token) => request = request.header("X-Admin-Token", token.expose()),
            As::Bearer(token) => request = request.header(header::AUTHORIZATION, format!("Bearer {token}")),
        }
        let bytes = match &body {
            Some(body) => {
                request = request.header(header::CONTENT_TYPE, "application/json");
                Bytes::from(body.to_string())
            }
            None => Bytes::new(),
        };
        let request = request.body(Full::new(bytes)).context("the request is malformed")?;
        let exchange = async {
            let (head, body) = self.http.request(request).await?.into_parts();
            let body = Limited::new(body, LIMIT)
                .collect()
                .await
                .map_err(|error| anyhow::anyhow!(error))?
                .to_bytes();
            Ok::<_, anyhow::Error>(Response {
                status: head.status,
                text: String::from_utf8_lossy(&body).into_owned(),
            })
        };
        tokio::time::timeout(RESPONSE_TIMEOUT, exchange)
            .await
            .map_err(|_| anyhow::anyhow!("no response within {} s", RESPONSE_TIMEOUT.as_secs()))
            .and_then(|response| response)
            .with_context(|| format!("{}{path}", self.base))
    }

    pub(super) async fn get(&self, caller: As<'_>, path: &str) -> anyhow::Result<Response> {
        self.send(caller, Method::GET, path, None).await
    }

    pub(super) async fn post(&self, caller: As<'_>, path: &str, body: Value) -> anyhow::Result<Response> {
        self.send(caller, Method::POST, path, Some(body)).await
    }

    pub(super) async fn put(&self, caller: As<'_>, path: &str, body: Value) -> anyhow::Result<Response> {
        self.send(caller, Method::PUT, path, Some(body)).await
    }

    /// Sends one JSON-RPC call and returns its response, also for an error.
    pub(super) async fn call(
        &self,
        caller: As<'_>,
        path: &str,
        method: &str,
        params: Value,
    ) -> anyhow::Result<Response> {
        self.post(
            caller,
            path,
            json!({"jsonrpc": "2.0", "id": 1, "method": method, "params": params}),
        )
        .await
    }

    /// Sends one JSON-RPC call and returns its result.
    pub(super) async fn result(
        &self,
        caller: As<'_>,
        path: &str,
        method: &str,
        params: Value,
    ) -> anyhow::Result<Value> {
        let response = self.call(caller, path, method, params).await?;
        match response.json() {
            Value::Object(mut body) if body.contains_key("result") => Ok(body.remove("result").unwrap_or_default()),
            _ => bail!("{method}: HTTP {}: {}", response.status.as_u16(), response.text),
        }
    }

    /// An access token by mock login.
    pub(super) async fn log_in(&self, did: &str) -> anyhow::Result<String> {
        let opened = self
            .post(As::Nobody, "/api/v1/auth/request", json!({}))
            .await?
            .expect_success("opening a login")?;
        let session = opened
            .get("session_id")
            .and_then(Value::as_str)
            .context("the login has no session")?;
        let proof = json!({"session_id": session, "jwz_token": format!("mock.{did}")});
        let login = self
            .post(As::Nobody, "/api/v1/auth/verify", proof)
            .await?
            .expect_success("the mock login")?;
        let token = login
            .get("access_token")
            .and_then(Value::as_str)
            .context("the response to the login has no access token")?;
        Ok(token.to_owned())
    }
}
