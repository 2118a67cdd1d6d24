//! A small HTTP client for one gateway or node: JSON in, JSON out.

use anyhow::{Context as _, bail};
use axum::body::Bytes;
use gw_types::Secret;
use http::{Method, Request, StatusCode, header};
use http_body_util::{BodyExt as _, Full, Limited};
use hyper_util::{client::legacy, rt::TokioExecutor};
use serde_json::{Value, json};
use std::time::Duration;

/// How long one answer may take.
const PATIENCE: Duration = Duration::from_secs(60);
/// Longest answer.
const LIMIT: usize = 16 << 20;

/// Who speaks.
#[derive(Clone, Copy, Debug)]
pub(super) enum As<'a> {
    /// Nobody.
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

/// What came back.
#[derive(Clone, Debug)]
pub(super) struct Answer {
    pub(super) status: StatusCode,
    /// Exactly as sent.
    pub(super) text: String,
}

impl Answer {
    /// The body as JSON; null where it is none.
    pub(super) fn json(&self) -> Value {
        serde_json::from_str(&self.text).unwrap_or_default()
    }

    /// The body of an answer that must be a success.
    pub(super) fn expect_success(self, what: &str) -> anyhow::Result<Value> {
        if !self.status.is_success() {
            bail!("{what}: HTTP {}: {}", self.status.as_u16(), self.text);
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

    /// Sends a request and reads the whole answer.
    pub(super) async fn send(
        &self,
        who: As<'_>,
        method: Method,
        path: &str,
        body: Option<Value>,
    ) -> anyhow::Result<Answer> {
        let mut request = Request::builder().method(method).uri(format!("{}{path}", self.base));
        match who {
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
            Ok::<_, anyhow::Error>(Answer {
                status: head.status,
                text: String::from_utf8_lossy(&body).into_owned(),
            })
        };
        tokio::time::timeout(PATIENCE, exchange)
            .await
            .map_err(|_| anyhow::anyhow!("no answer within {} s", PATIENCE.as_secs()))
            .and_then(|answer| answer)
            .with_context(|| format!("{}{path}", self.base))
    }

    pub(super) async fn get(&self, who: As<'_>, path: &str) -> anyhow::Result<Answer> {
        self.send(who, Method::GET, path, None).await
    }

    pub(super) async fn post(&self, who: As<'_>, path: &str, body: Value) -> anyhow::Result<Answer> {
        self.send(who, Method::POST, path, Some(body)).await
    }

    pub(super) async fn put(&self, who: As<'_>, path: &str, body: Value) -> anyhow::Result<Answer> {
        self.send(who, Method::PUT, path, Some(body)).await
    }

    /// One JSON-RPC call at a path, whatever its outcome.
    pub(super) async fn call(&self, who: As<'_>, path: &str, method: &str, params: Value) -> anyhow::Result<Answer> {
        self.post(
            who,
            path,
            json!({"jsonrpc": "2.0", "id": 1, "method": method, "params": params}),
        )
        .await
    }

    /// The result of a JSON-RPC call that must succeed.
    pub(super) async fn result(&self, who: As<'_>, path: &str, method: &str, params: Value) -> anyhow::Result<Value> {
        let answer = self.call(who, path, method, params).await?;
        match answer.json() {
            Value::Object(mut body) if body.contains_key("result") => Ok(body.remove("result").unwrap_or_default()),
            _ => bail!("{method}: HTTP {}: {}", answer.status.as_u16(), answer.text),
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
        let answer = self
            .post(As::Nobody, "/api/v1/auth/verify", proof)
            .await?
            .expect_success("the mock login")?;
        let token = answer
            .get("access_token")
            .and_then(Value::as_str)
            .context("the login brought no token")?;
        Ok(token.to_owned())
    }
}
