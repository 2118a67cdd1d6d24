//! Opening a connection that stays: who it is by, before anything is said (WS-1).

use super::connection::{self, Connection};
use crate::{
    http::refuse,
    limits::{InFlight, Party, Slot},
    origin::Origin,
    reply::Reply,
    state::RpcState,
};
use ::http::{HeaderMap, HeaderValue, header};
use axum::{
    extract::{FromRequestParts as _, Request, State, ws::WebSocketUpgrade},
    response::{IntoResponse as _, Response},
};
use gw_http::{AddressKey, ApiError, CorrelationId};
use gw_policy::access::Caller;
use gw_types::DenyReason;
use std::sync::Arc;
use tokio::sync::{OwnedSemaphorePermit, Semaphore};
use tokio_util::sync::CancellationToken;

/// Connections of one user, and of one address before it said who it is.
const PER_USER: usize = 16;
const PER_ADDRESS: usize = 64;
/// Connections of this instance.
const IN_ALL: usize = 4096;
/// What a message may weigh: what a body may.
const MESSAGE_LIMIT: usize = 1 << 20;
/// The subprotocol that carries a token.
const BEARER: &str = "bearer.";

/// The connections that stay.
#[derive(Debug)]
pub(crate) struct Sockets {
    open: Arc<InFlight>,
    room: Arc<Semaphore>,
    pub(crate) end: CancellationToken,
}

/// A connection's place among them.
#[derive(Debug)]
pub(crate) struct Seat {
    _slot: Slot,
    _room: Arc<OwnedSemaphorePermit>,
}

impl Sockets {
    pub(crate) fn new(end: CancellationToken) -> Self {
        Self {
            open: InFlight::new(PER_USER, PER_ADDRESS),
            room: Arc::new(Semaphore::new(IN_ALL)),
            end,
        }
    }

    fn seat(&self, party: Party) -> Option<Seat> {
        let room = Arc::clone(&self.room).try_acquire_owned().ok()?;
        Some(Seat {
            _slot: self.open.take(party)?,
            _room: Arc::new(room),
        })
    }

    /// The seat of the user that a connection turned out to be.
    pub(crate) fn change_seat(&self, seat: &Seat, party: Party) -> Option<Seat> {
        Some(Seat {
            _slot: self.open.take(party)?,
            _room: Arc::clone(&seat._room),
        })
    }
}

/// `GET /rpc/ws`.
pub(crate) async fn open(State(state): State<RpcState>, request: Request) -> Response {
    let state = state.0;
    let (mut parts, _) = request.into_parts();
    let client = state.edge.client(&parts.extensions, &parts.headers);
    let mut origin = Origin::new(client, parts.extensions.get::<CorrelationId>().cloned());
    let now = state.clock().now();
    let (token, echo) = protocols(&parts.headers);
    if let Err(error) = origin.authenticate_connection(&state.edge, &parts.headers, token.as_deref(), now) {
        return refuse(&state, &Arc::new(origin), Reply::Unauthorized(error)).await;
    }
    if let Err(fault) = origin.name_org(None, &parts.headers) {
        return refuse(&state, &Arc::new(origin), Reply::Body(fault)).await;
    }
    // Whoever says who they are is judged before the connection stands.
    let pinned = state.feed().pin();
    let party = match origin.caller(&pinned.snapshot, now) {
        _ if !pinned.fresh => return refuse(&state, &Arc::new(origin), Reply::PolicyUnavailable).await,
        Ok(Caller::User(user) | Caller::Url(user, _) | Caller::Beside(user, _)) => Party::User(user.id),
        Ok(Caller::Anonymous) => Party::Address(AddressKey::from(client)),
        Err(reply) => return refuse(&state, &Arc::new(origin), reply).await,
    };
    let Some(seat) = state.sockets.seat(party) else {
        return refuse(&state, &Arc::new(origin), Reply::Busy(DenyReason::ConcurrencyLimited)).await;
    };
    let upgrade = match WebSocketUpgrade::from_request_parts(&mut parts, &()).await {
        Ok(upgrade) => upgrade,
        Err(_) => return ApiError::bad_request("this is a WebSocket address: connect to it as one").into_response(),
    };
    // Shutdown waits for it from now on.
    let tracked = state.sends.tasks.token();
    let upgrade = upgrade.max_message_size(MESSAGE_LIMIT).max_frame_size(MESSAGE_LIMIT);
    let mut response = upgrade.on_upgrade(move |socket| async move {
        connection::run(Connection::begin(state, origin, seat), socket).await;
        drop(tracked);
    });
    if let Some(echo) = echo {
        response.headers_mut().insert(header::SEC_WEBSOCKET_PROTOCOL, echo);
    }
    response
}

/// The token among the subprotocols, and the one to answer with: browsers want one of theirs back. Another than the
/// token's, where there is one, so that the token does not travel back.
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
