//! One access record per request of a REST route (spec/70 §1, rule 29), refusals included.

use crate::{ApiError, CorrelationId, HttpContext};
use axum::{
    extract::{MatchedPath, Request},
    middleware::Next,
    response::{IntoResponse as _, Response},
};
use gw_audit::AccessRecord;
use gw_journal::{AccessRecorder, Journal, WhenFull};
use http::{Method, StatusCode};
use std::sync::Arc;
use tokio_util::task::TaskTracker;
use tracing::Instrument as _;

/// Records the requests of a router; its middleware calls [`RequestRecorder::record`].
#[derive(Clone, Copy, Debug)]
pub struct RequestRecorder<'a> {
    /// Finds out where a request comes from.
    pub context: &'a Arc<HttpContext>,
    /// Takes the records.
    pub journal: &'a Arc<Journal>,
    /// Runs the requests.
    pub tasks: &'a TaskTracker,
}

impl RequestRecorder<'_> {
    /// Answers a request and records it: method and route, address, correlation id, status and duration. `complete`
    /// adds what the router knows, above all the caller and how they authenticated.
    ///
    /// Room for the record is reserved first: a request that cannot be recorded has no effect and is answered with 503
    /// (HD22). The request runs to its record even if its client goes away (HD21). The record is written before the
    /// answer leaves, and fsynced after a method that may change something (decision 10). If that fails, the answer is
    /// 503 although the change was made, and says so; the journal keeps the record in memory.
    pub async fn record(
        self,
        request: Request,
        next: Next,
        complete: impl FnOnce(&mut AccessRecord, StatusCode) + Send + 'static,
    ) -> Response {
        let path = request
            .extensions()
            .get::<MatchedPath>()
            .map_or("unmatched", MatchedPath::as_str);
        let record = AccessRecord {
            ip_address: Some(self.context.client(request.extensions(), request.headers()).0),
            correlation_id: request
                .extensions()
                .get::<CorrelationId>()
                .map(|id| id.as_str().to_owned().into()),
            ..AccessRecord::new(format!("{} {path}", request.method()), 0)
        };
        let Ok(mut recorder) = AccessRecorder::open(self.journal, record, WhenFull::Refuse) else {
            return ApiError::audit_unavailable().into_response();
        };
        let mutates = !matches!(*request.method(), Method::GET | Method::HEAD);
        let work = async move {
            let answer = next.run(request).await;
            complete(&mut recorder.record, answer.status());
            match recorder.finish(answer.status().as_u16(), mutates).await {
                Ok(()) => answer,
                Err(_) if mutates && answer.status().is_success() => {
                    ApiError::unavailable("audit unavailable; the change may stand: read it back before repeating it")
                        .into_response()
                }
                Err(_) => ApiError::audit_unavailable().into_response(),
            }
        };
        self.tasks
            .spawn(work.in_current_span())
            .await
            .unwrap_or_else(|_| ApiError::internal().into_response())
    }
}
