//! The HTTP side of `/rpc`: checks size, encoding, token and organization, then passes the body to `dispatch` (J1-J7).

use crate::{
    dispatch::{RpcResponse, handle_body, json, record_rejection, reject, respond},
    outcome::{BodyError, RpcOutcome},
    request::RequestContext,
    state::{RpcContext, RpcState},
    websocket,
};
use ::http::{HeaderMap, Method, StatusCode, header};
use axum::{
    Router,
    body::Body,
    extract::{Path, Request, State},
    response::{IntoResponse, Response},
    routing::{any, get, post},
};
use bytes::Bytes;
use gw_http::{CorrelationId, NoBodyRoom, route_not_found};
use gw_types::DenyReason;
use http_body_util::{BodyExt, LengthLimitError, Limited};
use std::sync::Arc;

/// The most bytes of a request body (J2).
const BODY_LIMIT: usize = 1_048_576;
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
        .route("/rpc/ws", get(websocket::open))
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
