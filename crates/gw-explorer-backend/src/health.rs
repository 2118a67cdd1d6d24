//! The health probes. They report the state of this process, and send no request (spec/40 section 7).

use axum::{Json, Router, extract::State, routing::get};
use gw_http::ApiError;
use serde_json::{Value, json};
use std::sync::{
    Arc,
    atomic::{AtomicBool, Ordering},
};

/// Whether this process accepts new work. Clones share one state.
#[derive(Clone, Debug, Default)]
pub struct Readiness(Arc<AtomicBool>);

impl Readiness {
    /// From now on this process is draining: a load balancer shall send it no more requests.
    pub fn drain(&self) {
        self.0.store(true, Ordering::SeqCst);
    }

    fn is_draining(&self) -> bool {
        self.0.load(Ordering::SeqCst)
    }
}

pub(crate) fn router<S: Clone + Send + Sync + 'static>(readiness: Readiness) -> Router<S> {
    Router::new()
        .route("/health", get(live))
        .route("/health/live", get(live))
        .route("/health/ready", get(ready))
        .with_state(readiness)
}

async fn live() -> Json<Value> {
    Json(json!({ "status": "ok" }))
}

async fn ready(State(readiness): State<Readiness>) -> Result<Json<Value>, ApiError> {
    if readiness.is_draining() {
        return Err(ApiError::unavailable("draining"));
    }
    Ok(live().await)
}
