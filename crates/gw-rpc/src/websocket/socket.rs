//! Opens WebSocket connections, and authenticates them before the first message (WS-1).

use super::connection::{self, Connection};
use crate::{dispatch::reject, limits::LimitKey, outcome::RpcOutcome, request::RequestContext, state::RpcState};
use ::http::{HeaderMap, HeaderValue, header};
use axum::{
    extract::{FromRequestParts as _, Request, State, ws::WebSocketUpgrade},
    response::{IntoResponse as _, Response},
};
use gw_http::{AddressKey, ApiError, CorrelationId};
use gw_policy::access::Caller;
use gw_types::DenyReason;
use std::sync::Arc;

/// The most bytes of a message, as of a request body.
const MESSAGE_LIMIT: usize = 1 << 20;
/// The subprotocol that carries a token.
const BEARER: &str = "bearer.";

/// `GET /rpc/ws`.
pub(crate) async fn open(State(state): State<RpcState>, request: Request) -> Response {
    let state = state.0;
    let (mut parts, _) = request.into_parts();
    let client = state.http.client(&parts.extensions, &parts.headers);
    let mut request_context = RequestContext::new(client, parts.extensions.get::<CorrelationId>().cloned());
    let now = state.clock().now();
    let (token, echo) = protocols(&parts.headers);
    if let Err(error) = request_context.authenticate_connection(&state.http, &parts.headers, token.as_deref(), now) {
        return reject(&state, &Arc::new(request_context), RpcOutcome::Unauthorized(error)).await;
    }
    if let Err(error) = request_context.name_org(None, &parts.headers) {
        return reject(&state, &Arc::new(request_context), RpcOutcome::Body(error)).await;
    }
    // A caller with a token is checked before the connection is accepted.
    let pinned = state.feed().pin();
    let limit_key = match request_context.caller(&pinned.snapshot, now) {
        _ if !pinned.fresh => return reject(&state, &Arc::new(request_context), RpcOutcome::PolicyUnavailable).await,
        Ok(Caller::User(user) | Caller::Url(user, _) | Caller::Impersonated(user, _)) => LimitKey::User(user.id),
        Ok(Caller::Anonymous) => LimitKey::Address(AddressKey::from(client)),
        Err(outcome) => return reject(&state, &Arc::new(request_context), outcome).await,
    };
    let Some(permit) = state.sockets.try_acquire(limit_key) else {
        return reject(
            &state,
            &Arc::new(request_context),
            RpcOutcome::Busy(DenyReason::ConcurrencyLimited),
        )
        .await;
    };
    let upgrade = match WebSocketUpgrade::from_request_parts(&mut parts, &()).await {
        Ok(upgrade) => upgrade,
        Err(_) => return ApiError::bad_request("this is a WebSocket address: connect to it as one").into_response(),
    };
    // From now on shutdown waits for the connection.
    let tracked = state.sends.tasks.token();
    let upgrade = upgrade.max_message_size(MESSAGE_LIMIT).max_frame_size(MESSAGE_LIMIT);
    let mut response = upgrade.on_upgrade(move |socket| async move {
        connection::run(Connection::begin(state, request_context, permit), socket).await;
        drop(tracked);
    });
    if let Some(echo) = echo {
        response.headers_mut().insert(header::SEC_WEBSOCKET_PROTOCOL, echo);
    }
    response
}

/// The token among the subprotocols, and the subprotocol to answer with, since browsers expect one of those that they
/// offered. If possible it is not the one with the token, so that the token is not sent back.
fn protocols(headers: &HeaderMap) -> (Option<String>, Option<HeaderValue>) {
    let offered = headers
        .get_all(header::SEC_WEBSOCKET_PROTOCOL)
        .iter()
        .filter_map(|value| value.to_str().ok());
    let offered: Vec<&str> = offered.flat_map(|value| value.split(',')).map(str::trim).collect();
    let token = offered
        .iter()
        .find_map(|name| name.strip_prefix(BEARER))
        .map(str::to_owned);
    let plain = offered
        .iter()
        .find(|name| !name.starts_with(BEARER))
        .or(offered.first());
    (token, plain.and_then(|name| HeaderValue::from_str(name).ok()))
}
