//! A relay to a node that loses answers as a test tells it.

use super::rpc::Rpc;
use axum::{Router, body::Bytes, extract::State, response::IntoResponse};
use serde_json::{Value, json};
use std::sync::{Arc, Mutex};

/// What happens to an answer: `None` if it passes unchanged. Gets the method and the result.
type Rule = Box<dyn FnMut(&str, &Value) -> Option<Loss> + Send>;

/// What replaces an answer.
pub(crate) enum Loss {
    /// Another result.
    Result(Value),
    /// A JSON-RPC error.
    Error,
}

struct Shared {
    rpc: Rpc,
    rule: Mutex<Rule>,
}

/// A running relay, ended when dropped.
pub(crate) struct LossyRelay {
    url: String,
    server: tokio::task::JoinHandle<()>,
}

impl Drop for LossyRelay {
    fn drop(&mut self) {
        self.server.abort();
    }
}

impl LossyRelay {
    pub(crate) async fn to(url: &str, rule: impl FnMut(&str, &Value) -> Option<Loss> + Send + 'static) -> Self {
        let listener = tokio::net::TcpListener::bind(("127.0.0.1", 0)).await.unwrap();
        let port = listener.local_addr().unwrap().port();
        let shared = Arc::new(Shared {
            rpc: Rpc::new(url),
            rule: Mutex::new(Box::new(rule)),
        });
        let app = Router::new().fallback(forward).with_state(shared);
        let server = tokio::spawn(async move { axum::serve(listener, app).await.unwrap() });
        Self {
            url: format!("http://127.0.0.1:{port}"),
            server,
        }
    }

    pub(crate) fn url(&self) -> &str {
        &self.url
    }
}

async fn forward(State(shared): State<Arc<Shared>>, body: Bytes) -> impl IntoResponse {
    let calls: Value = serde_json::from_slice(&body).unwrap();
    let mut answers: Value = serde_json::from_slice(&shared.rpc.post(body).await).unwrap();
    {
        let mut rule = shared.rule.lock().unwrap();
        let method_of = |id: &Value| match &calls {
            Value::Array(calls) => calls
                .iter()
                .find(|call| call["id"] == *id)
                .map(|call| call["method"].clone()),
            call => Some(call["method"].clone()),
        };
        let mut change = |answer: &mut Value| {
            let method = method_of(&answer["id"]).unwrap_or_default();
            match rule(method.as_str().unwrap_or_default(), &answer["result"]) {
                None => {}
                Some(Loss::Result(result)) => answer["result"] = result,
                Some(Loss::Error) => {
                    *answer = json!({"jsonrpc": "2.0", "id": answer["id"],
                        "error": {"code": -32000, "message": "lost"}});
                }
            }
        };
        match &mut answers {
            Value::Array(answers) => answers.iter_mut().for_each(change),
            answer => change(answer),
        }
    }
    ([("content-type", "application/json")], answers.to_string())
}
