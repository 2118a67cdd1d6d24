//! The HTTP side of `/rpc`: bytes in, token, organization, envelope; then each call through the pipeline (J1-J7).

use crate::{
    live,
    origin::Origin,
    output::Output,
    pipeline::{self, Place},
    record::Recorder,
    reply::{BodyFault, Reply},
    state::{Inner, RpcState},
};
use ::http::{HeaderMap, HeaderValue, Method, StatusCode, header};
use axum::{
    Router,
    body::Body,
    extract::{Path, Request, State},
    response::{IntoResponse, Response},
    routing::{any as any_verb, get, post},
};
use bytes::Bytes;
use gw_evm::envelope::{self, EnvelopeError, Incoming};
use gw_http::{ApiError, CorrelationId, NoBodyRoom, route_not_found};
use gw_types::DenyReason;
use http_body_util::{BodyExt, LengthLimitError, Limited};
use std::{sync::Arc, time::Duration};
use tokio::time::Instant;

/// J2.
const BODY_LIMIT: usize = 1_048_576;
/// HD20: a batch ends after this long in all.
const BATCH_TIME: Duration = Duration::from_secs(60);

/// `POST /rpc`, `/rpc/{org_id}` and `/`; `/rpc/ws` for connections that stay.
pub fn router(state: RpcState) -> Router {
    let org = post(
        |State(state): State<RpcState>, Path(org): Path<String>, request: Request| async move {
            serve(&state.0, Some(org), request).await
        },
    );
    let any =
        post(|State(state): State<RpcState>, request: Request| async move { serve(&state.0, None, request).await });
    // Whatever the verb: what is no personal URL is nothing at all.
    let personal = any_verb(
        |State(state): State<RpcState>, Path(secret): Path<String>, request: Request| async move {
            serve_personal(&state.0, &secret, request).await
        },
    );
    Router::new()
        .route("/rpc", any.clone())
        .route("/", any)
        .route("/rpc/{org_id}", org)
        .route("/rpc/ws", get(live::socket::open))
        // Its path is a secret: nothing but the template may name it (HD17 PU-3).
        .route("/rpc/u/{secret}", personal)
        .with_state(state)
}

async fn serve(state: &Arc<Inner>, org: Option<String>, request: Request) -> Response {
    let (parts, body) = request.into_parts();
    let client = state.edge.client(&parts.extensions, &parts.headers);
    let mut origin = Origin::new(client, parts.extensions.get::<CorrelationId>().cloned());
    let body = match receive(state, &mut origin, org.as_deref(), &parts.headers, body).await {
        Ok(body) => body,
        Err(reply) => return refuse(state, &Arc::new(origin), reply).await,
    };
    answer(state, origin, &body).await
}

/// `/rpc/u/{secret}`. Unknown, revoked, expired and switched off are the same bytes as any path that is not there.
async fn serve_personal(state: &Arc<Inner>, secret: &str, request: Request) -> Response {
    if !state.settings.personal_urls || request.method() != Method::POST {
        return route_not_found().await.into_response();
    }
    let (parts, body) = request.into_parts();
    let client = state.edge.client(&parts.extensions, &parts.headers);
    let mut origin = Origin::new(client, parts.extensions.get::<CorrelationId>().cloned());
    if parts.headers.contains_key(header::AUTHORIZATION) {
        return refuse(state, &Arc::new(origin), Reply::Body(BodyFault::TwoCallers)).await;
    }
    if !origin.come_by(&state.feed().pin().snapshot, secret, state.clock().now()) {
        recorded(state, &Arc::new(origin), Reply::denied(DenyReason::AuthRequired, None)).await;
        return route_not_found().await.into_response();
    }
    let received = async {
        let body = read(&parts.headers, body).await?;
        // A header may name the organization, but only that of the URL.
        origin.name_org(None, &parts.headers).map_err(Reply::Body)?;
        Ok::<_, Reply>(body)
    };
    match received.await {
        Ok(body) => answer(state, origin, &body).await,
        Err(reply) => refuse(state, &Arc::new(origin), reply).await,
    }
}

async fn answer(state: &Arc<Inner>, origin: Origin, body: &[u8]) -> Response {
    let origin = Arc::new(origin);
    match converse(state, &origin, body).await {
        Said::One(reply, id) => respond(state, &origin, reply, &id),
        Said::Many(output) => json(StatusCode::OK, output.into_body()),
        Said::Nothing => StatusCode::NO_CONTENT.into_response(),
    }
}

/// What is said to one body.
pub(crate) enum Said {
    /// To a single call, and the id to echo.
    One(Reply, String),
    /// To a batch, written out.
    Many(Output),
    /// To a batch of notifications alone.
    Nothing,
}

/// Answers a body, whatever brought it.
pub(crate) async fn converse(state: &Arc<Inner>, origin: &Arc<Origin>, body: &[u8]) -> Said {
    match envelope::parse(body, state.settings.batch_max) {
        Ok(Incoming::Single(call)) => {
            let id = call.id.as_json().to_owned();
            Said::One(pipeline::answer(state, origin, call, &mut Place::default()).await, id)
        }
        Ok(Incoming::Batch(calls)) => batch(state, origin, calls).await.map_or(Said::Nothing, Said::Many),
        Err(error) => {
            let reply = recorded(state, origin, Reply::Envelope(error)).await;
            let id = reply.id().to_owned();
            Said::One(reply, id)
        }
    }
}

/// Everything before the envelope (§17): encoding, size, token, organization.
async fn receive(
    state: &Inner,
    origin: &mut Origin,
    org: Option<&str>,
    headers: &HeaderMap,
    body: Body,
) -> Result<Bytes, Reply> {
    let body = read(headers, body).await?;
    origin
        .authenticate(&state.edge, headers, state.clock().now())
        .map_err(Reply::Unauthorized)?;
    origin.name_org(org, headers).map_err(Reply::Body)?;
    Ok(body)
}

/// Encoding and size (J2).
async fn read(headers: &HeaderMap, body: Body) -> Result<Bytes, Reply> {
    if headers
        .get(header::CONTENT_ENCODING)
        .is_some_and(|encoding| encoding != "identity")
    {
        return Err(Reply::Body(BodyFault::Encoded));
    }
    if headers.contains_key(header::CONTENT_LENGTH) && headers.contains_key(header::TRANSFER_ENCODING) {
        return Err(Reply::Body(BodyFault::TwoLengths));
    }
    // Counted while it is read: nobody has to say how long a body is.
    match Limited::new(body, BODY_LIMIT).collect().await {
        Ok(body) => Ok(body.to_bytes()),
        Err(error) if error.is::<LengthLimitError>() => Err(Reply::Body(BodyFault::TooLarge)),
        Err(error) if NoBodyRoom::caused(&*error) => Err(Reply::Busy(DenyReason::ConcurrencyLimited)),
        Err(_) => Err(Reply::Body(BodyFault::Incomplete)),
    }
}

/// Refuses a request that never became a call.
pub(crate) async fn refuse(state: &Arc<Inner>, origin: &Arc<Origin>, reply: Reply) -> Response {
    let reply = recorded(state, origin, reply).await;
    let id = reply.id().to_owned();
    respond(state, origin, reply, &id)
}

/// Records what never became a call: somebody knocked (L1).
async fn recorded(state: &Arc<Inner>, origin: &Arc<Origin>, reply: Reply) -> Reply {
    match Recorder::of_request(state, origin) {
        Ok(recorder) => recorder.finish(reply, false).await,
        Err(unavailable) => unavailable,
    }
}

/// J7, HD20: every element alone, in order, under the policy of its own moment; all of them within a minute.
/// Notifications are carried out and get no answer; `None` if there is nothing to answer.
async fn batch(
    state: &Arc<Inner>,
    origin: &Arc<Origin>,
    calls: Vec<Result<envelope::Request<'_>, EnvelopeError>>,
) -> Option<Output> {
    let end = Instant::now() + BATCH_TIME;
    let mut place = Place::default();
    let mut out = Output::new(&origin.hold);
    for (position, call) in calls.into_iter().enumerate() {
        // What needs no node never waits: between two elements it is the others' turn.
        if position > 0 {
            tokio::task::yield_now().await;
        }
        let separator = if out.is_empty() { b'[' } else { b',' };
        // Many small answers are a large one.
        place.set_full(out.settle().await.is_err());
        match call {
            Ok(call) => {
                let (id, is_notification) = (call.id.clone(), call.is_notification);
                let reply = if Instant::now() < end {
                    let answer = pipeline::answer(state, origin, call, &mut place);
                    // A send that has begun goes on without us, and every call leaves its record.
                    tokio::time::timeout_at(end, answer).await.unwrap_or(Reply::OutOfTime)
                } else {
                    recorded(state, origin, Reply::OutOfTime).await
                };
                if !is_notification {
                    out.push(separator);
                    out.reply(reply, id.as_json());
                }
            }
            Err(error) => {
                let reply = recorded(state, origin, Reply::Envelope(error)).await;
                out.push(separator);
                let id = reply.id().to_owned();
                out.reply(reply, &id);
            }
        }
    }
    if out.is_empty() {
        return None;
    }
    out.push(b']');
    Some(out)
}

fn respond(state: &Inner, origin: &Origin, reply: Reply, id: &str) -> Response {
    if let Reply::Unauthorized(error) = reply {
        return ApiError::from(error).into_response();
    }
    let (status, is_passing) = (reply.wire_status(state.settings.denial_status), reply.is_passing());
    let mut out = Output::new(&origin.hold);
    out.reply(reply, id);
    let mut response = json(status, out.into_body());
    if is_passing {
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
