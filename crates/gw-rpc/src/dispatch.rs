//! The steps that all transports share: a request body becomes calls, each call goes through the pipeline, and the
//! outcomes become one response.

use crate::{
    outcome::RpcOutcome,
    output::Output,
    pipeline::{self, CallAdmission},
    record::CallRecorder,
    request::RequestContext,
    state::RpcContext,
};
use ::http::{HeaderValue, StatusCode, header};
use axum::{
    body::Body,
    response::{IntoResponse, Response},
};
use gw_evm::envelope::{self, EnvelopeError, Incoming};
use gw_http::ApiError;
use std::{sync::Arc, time::Duration};
use tokio::time::Instant;

/// The most time of a whole batch (HD20).
const BATCH_TIME: Duration = Duration::from_secs(60);

/// The response to one request body.
pub(crate) enum RpcResponse {
    /// The response to a single call, with the id to echo.
    Single(RpcOutcome, String),
    /// The response to a batch.
    Batch(Output),
    /// A batch of notifications, which gets no response.
    Empty,
}

/// Answers a request body that came over any transport.
pub(crate) async fn handle_body(
    state: &Arc<RpcContext>,
    request_context: &Arc<RequestContext>,
    body: &[u8],
) -> RpcResponse {
    match envelope::parse(body, state.settings.batch_max) {
        Ok(Incoming::Single(call)) => {
            let id = call.id.as_json().to_owned();
            RpcResponse::Single(
                pipeline::answer(state, request_context, call, &mut CallAdmission::default()).await,
                id,
            )
        }
        Ok(Incoming::Batch(calls)) => batch(state, request_context, calls)
            .await
            .map_or(RpcResponse::Empty, RpcResponse::Batch),
        Err(error) => {
            let outcome = record_rejection(state, request_context, RpcOutcome::Envelope(error)).await;
            let id = outcome.id().to_owned();
            RpcResponse::Single(outcome, id)
        }
    }
}

/// Rejects a request before any call is parsed from it.
pub(crate) async fn reject(
    state: &Arc<RpcContext>,
    request_context: &Arc<RequestContext>,
    outcome: RpcOutcome,
) -> Response {
    let outcome = record_rejection(state, request_context, outcome).await;
    let id = outcome.id().to_owned();
    respond(state, request_context, outcome, &id)
}

/// Records a rejection of a request that contains no valid call (L1).
pub(crate) async fn record_rejection(
    state: &Arc<RpcContext>,
    request_context: &Arc<RequestContext>,
    outcome: RpcOutcome,
) -> RpcOutcome {
    match CallRecorder::for_unparsed(state, request_context) {
        Ok(recorder) => recorder.finish(outcome, false).await,
        Err(unavailable) => unavailable,
    }
}

/// Answers a batch (J7, HD20): its elements in order, each one authorized by itself, all within one minute.
/// Notifications are executed and get no answer; `None` if no element gets an answer.
async fn batch(
    state: &Arc<RpcContext>,
    request_context: &Arc<RequestContext>,
    calls: Vec<Result<envelope::Request<'_>, EnvelopeError>>,
) -> Option<Output> {
    let end = Instant::now() + BATCH_TIME;
    let mut admission = CallAdmission::default();
    let mut out = Output::new(&request_context.hold);
    for (position, call) in calls.into_iter().enumerate() {
        // An element that is answered locally never awaits, so the batch yields to other requests between two elements.
        if position > 0 {
            tokio::task::yield_now().await;
        }
        let separator = if out.is_empty() { b'[' } else { b',' };
        // Small answers are charged together, as the text of the batch.
        admission.set_full(out.settle().await.is_err());
        match call {
            Ok(call) => {
                let (id, is_notification) = (call.id.clone(), call.is_notification);
                let outcome = if Instant::now() < end {
                    let answer = pipeline::answer(state, request_context, call, &mut admission);
                    // A started send continues after the timeout, and every call leaves its record.
                    tokio::time::timeout_at(end, answer)
                        .await
                        .unwrap_or(RpcOutcome::BatchTimeout)
                } else {
                    record_rejection(state, request_context, RpcOutcome::BatchTimeout).await
                };
                if !is_notification {
                    out.push(separator);
                    out.push_outcome(outcome, id.as_json());
                }
            }
            Err(error) => {
                let outcome = record_rejection(state, request_context, RpcOutcome::Envelope(error)).await;
                out.push(separator);
                let id = outcome.id().to_owned();
                out.push_outcome(outcome, &id);
            }
        }
    }
    if out.is_empty() {
        return None;
    }
    out.push(b']');
    Some(out)
}

/// The HTTP response to a single call, or to a request without one.
pub(crate) fn respond(state: &RpcContext, request_context: &RequestContext, outcome: RpcOutcome, id: &str) -> Response {
    if let RpcOutcome::Unauthorized(error) = outcome {
        return ApiError::from(error).into_response();
    }
    let (status, is_transient) = (
        outcome.wire_status(state.settings.denial_status),
        outcome.is_transient(),
    );
    let mut out = Output::new(&request_context.hold);
    out.push_outcome(outcome, id);
    let mut response = json(status, out.into_body());
    if is_transient {
        response
            .headers_mut()
            .insert(header::RETRY_AFTER, HeaderValue::from_static("1"));
    }
    response
}

/// A response with a JSON body.
pub(crate) fn json(status: StatusCode, body: Body) -> Response {
    let mut response = Response::new(body);
    *response.status_mut() = status;
    response
        .headers_mut()
        .insert(header::CONTENT_TYPE, HeaderValue::from_static("application/json"));
    response
}
