//! A gateway that answers what a test says, and keeps the requests it got.

use axum::{
    Router,
    body::Body,
    extract::{Request, State},
    response::Response,
};
use http::HeaderMap;
use http_body_util::BodyExt as _;
use std::{
    collections::VecDeque,
    sync::{Arc, Mutex},
};
use tokio::{net::TcpListener, sync::Semaphore};

/// A request that the gateway got.
#[derive(Clone, Debug)]
pub(crate) struct Received {
    pub(crate) method: String,
    /// Path and query.
    pub(crate) target: String,
    pub(crate) headers: HeaderMap,
    pub(crate) body: String,
}

impl Received {
    pub(crate) fn header(&self, name: &str) -> Option<&str> {
        self.headers.get(name).map(|value| value.to_str().unwrap())
    }
}

#[derive(Debug, Default)]
struct Script {
    /// The answers, each to the next request whose target begins with its text.
    answers: Mutex<VecDeque<(String, Response)>>,
    received: Mutex<Vec<Received>>,
    /// Requests wait for a permit while the gateway is held.
    held: Mutex<Option<Arc<Semaphore>>>,
}

#[derive(Clone, Debug)]
pub(crate) struct ScriptedGateway {
    pub(crate) url: String,
    script: Arc<Script>,
}

impl ScriptedGateway {
    pub(crate) async fn start() -> Self {
        let script: Arc<Script> = Arc::default();
        let router = Router::new().fallback(answer).with_state(Arc::clone(&script));
        let listener = TcpListener::bind(("127.0.0.1", 0)).await.unwrap();
        let url = format!("http://{}", listener.local_addr().unwrap());
        tokio::spawn(async move { axum::serve(listener, router).await });
        Self { url, script }
    }

    /// Answers the next request of this path.
    pub(crate) fn answer(&self, path: &str, status: u16, headers: &[(&str, &str)], body: &str) {
        let mut response = Response::builder().status(status);
        for (name, value) in headers {
            response = response.header(*name, *value);
        }
        let response = response.body(Body::from(body.to_owned())).unwrap();
        let mut answers = self.script.answers.lock().unwrap();
        answers.push_back((path.to_owned(), response));
    }

    /// Answers the next request of this path with JSON.
    pub(crate) fn json(&self, path: &str, status: u16, body: &str) {
        self.answer(path, status, &[("content-type", "application/json")], body);
    }

    /// Answers the next token request of this path with tokens named after `n`.
    pub(crate) fn tokens(&self, path: &str, n: u32, expires_in: u32) {
        self.tokens_of(path, &access_token(n), n, expires_in);
    }

    /// Answers the next token request of this path with this access token.
    pub(crate) fn tokens_of(&self, path: &str, access: &str, n: u32, expires_in: u32) {
        let body = serde_json::json!({
            "access_token": access, "refresh_token": format!("refresh-{n}"),
            "token_type": "Bearer", "expires_in": expires_in,
        });
        self.json(path, 200, &body.to_string());
    }

    /// From now on, requests wait until the returned semaphore has permits for them.
    pub(crate) fn hold(&self) -> Arc<Semaphore> {
        let semaphore = Arc::new(Semaphore::new(0));
        *self.script.held.lock().unwrap() = Some(Arc::clone(&semaphore));
        semaphore
    }

    /// Takes the requests that arrived since the last call.
    pub(crate) fn take_received(&self) -> Vec<Received> {
        std::mem::take(&mut self.script.received.lock().unwrap())
    }

    /// The only request that arrived since the last call.
    #[track_caller]
    pub(crate) fn take_one(&self) -> Received {
        let mut received = self.take_received();
        assert_eq!(received.len(), 1, "{received:#?}");
        received.remove(0)
    }
}

/// An access token whose claims name the user `did:test:<n>`.
pub(crate) fn access_token(n: u32) -> String {
    use base64::{Engine as _, engine::general_purpose::URL_SAFE_NO_PAD};
    let claims = URL_SAFE_NO_PAD.encode(format!("{{\"sub\":\"did:test:{n}\"}}"));
    format!("access-{n}.{claims}.signature")
}

async fn answer(State(script): State<Arc<Script>>, request: Request) -> Response {
    let (parts, body) = request.into_parts();
    let body = body.collect().await.unwrap().to_bytes();
    let target = parts.uri.to_string();
    script.received.lock().unwrap().push(Received {
        method: parts.method.to_string(),
        target: target.clone(),
        headers: parts.headers,
        body: String::from_utf8(body.to_vec()).unwrap(),
    });
    let held = script.held.lock().unwrap().clone();
    if let Some(held) = held {
        held.acquire().await.unwrap().forget();
    }
    let mut answers = script.answers.lock().unwrap();
    let index = answers
        .iter()
        .position(|(path, _)| target.split('?').next() == Some(path));
    match index.and_then(|index| answers.remove(index)) {
        Some((_, response)) => response,
        None => Response::builder()
            .status(418)
            .body(Body::from(format!("no answer for {target}")))
            .unwrap(),
    }
}
