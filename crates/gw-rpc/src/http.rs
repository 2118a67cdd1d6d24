//! The HTTP side of `/rpc`: checks size, encoding, token, organization and envelope, then passes each call to the
//! pipeline (J1-J7).

use crate::{
    outcome::{BodyError, RpcOutcome},
    output::Output,
    pipeline::{self, CallAdmission},
    record::CallRecorder,
    request::RequestContext,
    state::{RpcContext, RpcState},
    subscriptions,
};
use ::http::{HeaderMap, HeaderValue, Method, StatusCode, header};
use axum::{
    Router,
    body::Body,
    extract::{Path, Request, State},
    response::{IntoResponse, Response},
    routing::{any, get, post},
};
use bytes::Bytes;
use gw_evm::envelope::{self, EnvelopeError, Incoming};
use gw_http::{ApiError, CorrelationId, NoBodyRoom, route_not_found};
use gw_types::DenyReason;
use http_body_util::{BodyExt, LengthLimitError, Limited};
use std::{sync::Arc, time::Duration};
use tokio::time::Instant;

/// The most bytes of a request body (J2).
const BODY_LIMIT: usize = 1_048_576;
/// The most time of a whole batch (HD20).
const BATCH_TIME: Duration = Duration::from_secs(60);

/// `POST /rpc`, `/rpc/{org_id}` and `/`; `/rpc/ws` for WebSocket connections.
pub fn router(state: RpcState) -> Router {
    let org = post(
        |State(state): State<RpcState>, Path(org): Path<String>, request: Request| async move {
            serve(&state.0, Some(org), request).await
        },
    );
    let without_org =
        post(|State(state): State<RpcState>, request: Request| async move { serve(&state.0, None, request).await });
    // All verbs: an invalid personal URL gets the generic 404.
    let personal = any(
        |State(state): State<RpcState>, Path(secret): Path<String>, request: Request| async move {
            serve_personal(&state.0, &secret, request).await
        },
    );
    Router::new()
        .route("/rpc", without_org.clone())
        .route("/", without_org)
        .route("/rpc/{org_id}", org)
        .route("/rpc/ws", get(subscriptions::socket::open))
        // The path contains a secret, so logs and metrics name only its template (HD17 PU-3).
        .route("/rpc/u/{secret}", personal)
        .with_state(state)
}

async fn serve(state: &Arc<RpcContext>, org: Option<String>, request: Request) -> Response {
    let (parts, body) = request.into_parts();
    let client = state.http.client(&parts.extensions, &parts.headers);
    let mut request_context = RequestContext::new(client, parts.extensions.get::<CorrelationId>().cloned());
    let body = match receive(state, &mut request_context, org.as_deref(), &parts.headers, body).await {
        Ok(body) => body,
        Err(outcome) => return reject(state, &Arc::new(request_context), outcome).await,
    };
    answer(state, request_context, &body).await
}

/// `/rpc/u/{secret}`. An unknown, revoked, expired or disabled URL gets the same bytes as a path that does not exist.
async fn serve_personal(state: &Arc<RpcContext>, secret: &str, request: Request) -> Response {
    if !state.settings.personal_urls || request.method() != Method::POST {
        return route_not_found().await.into_response();
    }
    let (parts, body) = request.into_parts();
    let client = state.http.client(&parts.extensions, &parts.headers);
    let mut request_context = RequestContext::new(client, parts.extensions.get::<CorrelationId>().cloned());
    if parts.headers.contains_key(header::AUTHORIZATION) {
        return reject(
            state,
            &Arc::new(request_context),
            RpcOutcome::Body(BodyError::TwoCallers),
        )
        .await;
    }
    if !request_context.authenticate_personal_url(&state.feed().pin().snapshot, secret, state.clock().now()) {
        record_rejection(
            state,
            &Arc::new(request_context),
            RpcOutcome::denied(DenyReason::AuthRequired, None),
        )
        .await;
        return route_not_found().await.into_response();
    }
    let received = async {
        let body = read(&parts.headers, body).await?;
        // A header may name only the organization of the URL.
        request_context
            .name_org(None, &parts.headers)
            .map_err(RpcOutcome::Body)?;
        Ok::<_, RpcOutcome>(body)
    };
    match received.await {
        Ok(body) => answer(state, request_context, &body).await,
        Err(outcome) => reject(state, &Arc::new(request_context), outcome).await,
    }
}

async fn answer(state: &Arc<RpcContext>, request_context: RequestContext, body: &[u8]) -> Response {
    let request_context = Arc::new(request_context);
    match handle_body(state, &request_context, body).await {
        RpcResponse::Single(outcome, id) => respond(state, &request_context, outcome, &id),
        RpcResponse::Batch(output) => json(StatusCode::OK, output.into_body()),
        RpcResponse::Empty => StatusCode::NO_CONTENT.into_response(),
    }
}

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

/// Checks encoding, size, token and organization, in this order (spec/20 §17).
async fn receive(
    state: &RpcContext,
    request_context: &mut RequestContext,
    org: Option<&str>,
    headers: &HeaderMap,
    body: Body,
) -> Result<Bytes, RpcOutcome> {
    let body = read(headers, body).await?;
    request_context
        .authenticate(&state.http, headers, state.clock().now())
        .map_err(RpcOutcome::Unauthorized)?;
    request_context.name_org(org, headers).map_err(RpcOutcome::Body)?;
    Ok(body)
}

/// Reads the body, and checks its encoding and size (J2).
async fn read(headers: &HeaderMap, body: Body) -> Result<Bytes, RpcOutcome> {
    if headers
        .get(header::CONTENT_ENCODING)
        .is_some_and(|encoding| encoding != "identity")
    {
        return Err(RpcOutcome::Body(BodyError::Encoded));
    }
    if headers.contains_key(header::CONTENT_LENGTH) && headers.contains_key(header::TRANSFER_ENCODING) {
        return Err(RpcOutcome::Body(BodyError::TwoLengths));
    }
    // The size is counted while the body is read, since a request need not declare it.
    match Limited::new(body, BODY_LIMIT).collect().await {
        Ok(body) => Ok(body.to_bytes()),
        Err(error) if error.is::<LengthLimitError>() => Err(RpcOutcome::Body(BodyError::TooLarge)),
        Err(error) if NoBodyRoom::caused(&*error) => Err(RpcOutcome::Busy(DenyReason::ConcurrencyLimited)),
        Err(_) => Err(RpcOutcome::Body(BodyError::Incomplete)),
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
async fn record_rejection(
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

fn respond(state: &RpcContext, request_context: &RequestContext, outcome: RpcOutcome, id: &str) -> Response {
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

fn json(status: StatusCode, body: Body) -> Response {
    let mut response = Response::new(body);
    *response.status_mut() = status;
    response
        .headers_mut()
        .insert(header::CONTENT_TYPE, HeaderValue::from_static("application/json"));
    response
}
