//! One WebSocket connection. The client authenticates, each message is a call or a batch, and the connection is closed
//! when the caller loses the right to it.

use super::{
    delivery,
    send_queue::{CloseReason, OutgoingMessage, SendQueue},
};
use crate::{
    dispatch::{RpcResponse, handle_body},
    limits::LimitKey,
    outcome::RpcOutcome,
    output::Output,
    record::CallRecorder,
    registry::{ConnectionPermit, MembershipBasis, Message as ConnectionMessage, Subscriptions},
    request::RequestContext,
    state::RpcContext,
};
use axum::extract::ws::{Message, WebSocket};
use bytes::Bytes;
use futures_util::{StreamExt as _, stream::SplitStream};
use gw_evm::{
    Class,
    envelope::{self, Incoming},
};
use gw_http::AuthError;
use gw_policy::{Disclosed, access::Caller};
use std::{
    sync::{Arc, Mutex, MutexGuard, PoisonError},
    time::Duration,
};
use tokio::{
    sync::{Semaphore, mpsc},
    task::JoinSet,
};

/// The time to authenticate (WS-1).
const AUTHENTICATION_TIMEOUT: Duration = Duration::from_secs(5);
/// The most time without a message; clients answer pings within it.
const SILENCE_TIMEOUT: Duration = Duration::from_secs(75);
/// The interval at which the right to the connection is checked.
const CHECK_INTERVAL: Duration = Duration::from_millis(250);
/// The most concurrent calls of one connection; the next message is read when a call is answered.
const MAX_CALLS_IN_FLIGHT: usize = 16;
/// The method that authenticates the connection, or renews its token.
const AUTHENTICATE: &str = "gateway_authenticate";
/// The error for calls other than metadata before the connection has authenticated.
const AUTHENTICATE_FIRST: &str = "authenticate first: send gateway_authenticate with an access token";

/// One connection.
#[derive(Debug)]
pub(crate) struct Connection {
    state: Arc<RpcContext>,
    session: Mutex<Session>,
    subscriptions: Arc<Subscriptions>,
    send_queue: SendQueue,
    queue: Mutex<Option<mpsc::UnboundedReceiver<OutgoingMessage>>>,
}

/// The caller of a connection.
#[derive(Debug)]
struct Session {
    request: Arc<RequestContext>,
    /// The memberships of the caller when the connection was opened, or only those in the organization that the request
    /// names. The connection is closed when the caller loses all of them in one of these organizations (WS-6).
    basis: MembershipBasis,
    permit: ConnectionPermit,
}

/// Why a token was rejected.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum AuthFailure {
    Token(AuthError),
    OtherSubject,
    TooManyConnections,
}

impl AuthFailure {
    fn message(self) -> &'static str {
        match self {
            Self::Token(AuthError::Expired) => "token expired",
            Self::Token(AuthError::Revoked) => "token revoked",
            Self::Token(_) => "invalid token",
            Self::OtherSubject => "the token is another subject's",
            Self::TooManyConnections => "too many connections: 16 at most",
        }
    }
}

impl Connection {
    pub(crate) fn begin(state: Arc<RpcContext>, request: RequestContext, permit: ConnectionPermit) -> Arc<Self> {
        let (sender, queue) = mpsc::unbounded_channel();
        let send_queue = SendQueue::new(sender, state.sockets.end.child_token());
        let session = Mutex::new(Session {
            request: Arc::new(request),
            basis: MembershipBasis::default(),
            permit,
        });
        let this = Self {
            state,
            session,
            subscriptions: Arc::default(),
            send_queue,
            queue: Mutex::new(Some(queue)),
        };
        this.set_basis();
        Arc::new(this)
    }

    pub(crate) fn state(&self) -> &Arc<RpcContext> {
        &self.state
    }

    pub(crate) fn subscriptions(&self) -> &Arc<Subscriptions> {
        &self.subscriptions
    }

    pub(crate) fn send_queue(&self) -> &SendQueue {
        &self.send_queue
    }

    fn session(&self) -> MutexGuard<'_, Session> {
        self.session.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn request(&self) -> Arc<RequestContext> {
        Arc::clone(&self.session().request)
    }

    fn set_basis(&self) {
        let (pinned, now) = (self.state.feed().pin(), self.state.clock().now());
        let mut session = self.session();
        if let Ok(Caller::User(user)) = session.request.caller(&pinned.snapshot, now) {
            session.basis = MembershipBasis::current(&pinned.snapshot, user.id, session.request.named_org.org(), now);
        }
    }

    /// The request context while the caller has the right to the connection: fresh policy, a token that is neither
    /// expired nor revoked, no ban, no lost membership (WS-6). Otherwise `None`, and the connection is closed.
    pub(crate) fn current_identity(&self) -> Option<Arc<RequestContext>> {
        let request = self.check_identity();
        if request.is_none() {
            self.send_queue.end(CloseReason::Unauthorized);
        }
        request
    }

    fn check_identity(&self) -> Option<Arc<RequestContext>> {
        let (pinned, now) = (self.state.feed().pin(), self.state.clock().now());
        let session = self.session();
        let Ok(Caller::User(user)) = session.request.caller(&pinned.snapshot, now) else {
            return None;
        };
        let is_authorized =
            pinned.fresh && session.request.is_token_valid(now) && session.basis.holds(&pinned.snapshot, user.id, now);
        is_authorized.then(|| Arc::clone(&session.request))
    }

    /// Accepts a token: the first one authenticates the connection, a later one of the same subject renews it.
    fn authenticate_token(&self, token: &str) -> Result<(), AuthFailure> {
        let (pinned, now) = (self.state.feed().pin(), self.state.clock().now());
        let mut session = self.session();
        let mut request = RequestContext::clone(&session.request);
        request
            .authenticate_token(&self.state.http, token, now)
            .map_err(AuthFailure::Token)?;
        let caller = request
            .caller(&pinned.snapshot, now)
            .map_err(|_| AuthFailure::Token(AuthError::Invalid))?;
        match session.request.subject() {
            Some(subject) if request.subject() != Some(subject) => return Err(AuthFailure::OtherSubject),
            Some(_) => {}
            None => {
                let Caller::User(user) = caller else {
                    return Err(AuthFailure::Token(AuthError::Invalid));
                };
                let permit = self.state.sockets.transfer(&session.permit, LimitKey::User(user.id));
                session.permit = permit.ok_or(AuthFailure::TooManyConnections)?;
                session.basis =
                    MembershipBasis::current(&pinned.snapshot, user.id, session.request.named_org.org(), now);
            }
        }
        session.request = Arc::new(request);
        Ok(())
    }

    /// Answers `gateway_authenticate`. Returns whether the token was accepted, or `None` for another message. A bad
    /// token changes nothing.
    async fn authenticate(&self, body: &[u8]) -> Option<bool> {
        let Ok(Incoming::Single(call)) = envelope::parse(body, 0) else {
            return None;
        };
        if call.method != AUTHENTICATE {
            return None;
        }
        let id = call.id.as_json().to_owned();
        let token = call
            .params
            .and_then(|raw| serde_json::from_str::<[String; 1]>(raw.get()).ok());
        let result = match token {
            Some([token]) => self.authenticate_token(&token),
            None => Err(AuthFailure::Token(AuthError::Missing)),
        };
        let outcome = match result {
            Ok(()) => RpcOutcome::Result(Disclosed::TRUE),
            Err(_) => RpcOutcome::Unauthorized(AuthError::Invalid),
        };
        let outcome = match CallRecorder::for_internal(&self.state, &self.request(), AUTHENTICATE) {
            Ok(recorder) => recorder.finish(outcome, false).await,
            Err(unavailable) => unavailable,
        };
        let mut out = Vec::new();
        match (result, outcome) {
            (Err(failure), RpcOutcome::Unauthorized(_)) => {
                let error = serde_json::json!({"code": -32001, "message": failure.message()});
                out.extend_from_slice(format!(r#"{{"jsonrpc":"2.0","id":{id},"error":{error}}}"#).as_bytes());
            }
            (_, outcome) => outcome.write(&id, &mut out),
        }
        self.push_text(String::from_utf8(out).unwrap_or_default());
        Some(result.is_ok())
    }

    /// Answers a message of a client that has not authenticated. Metadata calls are answered, all others rejected. The
    /// rejection depends only on the method names in the message.
    async fn answer_anonymous(&self, body: &[u8]) {
        let is_metadata = |method: &str| {
            let lookup = self.state.settings.custom_methods.lookup(method);
            lookup.method().is_some_and(|method| method.class() == Class::Meta)
        };
        let is_metadata_only = match envelope::parse(body, self.state.settings.batch_max) {
            Ok(Incoming::Single(call)) => is_metadata(call.method),
            Ok(Incoming::Batch(calls)) => calls.iter().flatten().all(|call| is_metadata(call.method)),
            // The pipeline answers with the envelope error.
            Err(_) => true,
        };
        if is_metadata_only {
            let request = self.request();
            let response = handle_body(&self.state, &request, body).await;
            self.push_response(&request, response);
        } else {
            let recorder = CallRecorder::for_internal(&self.state, &self.request(), AUTHENTICATE);
            if let Ok(recorder) = recorder {
                let _outcome = recorder
                    .finish(RpcOutcome::Unauthorized(AuthError::Missing), false)
                    .await;
            }
            let id = match envelope::parse(body, 0) {
                Ok(Incoming::Single(call)) => call.id.as_json().to_owned(),
                Ok(Incoming::Batch(_)) | Err(_) => "null".to_owned(),
            };
            self.push_text(format!(
                r#"{{"jsonrpc":"2.0","id":{id},"error":{{"code":-32001,"message":"{AUTHENTICATE_FIRST}"}}}}"#
            ));
        }
    }

    fn push_text(&self, text: String) {
        self.send_queue.push(text, None);
    }

    /// Queues the response to one message.
    fn push_response(&self, request: &RequestContext, response: RpcResponse) {
        let output = match response {
            RpcResponse::Single(outcome, id) => {
                let mut output = Output::new(&request.hold);
                output.push_outcome(outcome, &id);
                output
            }
            RpcResponse::Batch(output) => output,
            RpcResponse::Empty => return,
        };
        let (text, lease) = output.into_text();
        self.send_queue.push(text, lease);
    }

    /// Answers one message: a call or a batch, through the pipeline.
    async fn answer(&self, body: Bytes) {
        let Some(request) = self.current_identity() else { return };
        let message = Arc::new(ConnectionMessage::new(&self.subscriptions));
        let request = Arc::new(request.with_message(&message));
        let response = handle_body(&self.state, &request, &body).await;
        self.push_response(&request, response);
        message.answered();
    }
}

/// Runs a connection until it is closed.
pub(crate) async fn run(connection: Arc<Connection>, socket: WebSocket) {
    let open = metrics::gauge!("ledger_gateway_live_connections");
    open.increment(1.0);
    let (sink, stream) = socket.split();
    let queue = connection.queue.lock().unwrap_or_else(PoisonError::into_inner).take();
    let Some(queue) = queue else { return };
    let writing = connection.send_queue.write(sink, queue);
    let listening = async {
        tokio::select! {
            () = connection.send_queue.ended() => {}
            // If another reason was set before, it stays.
            () = run_session(&connection, stream) => connection.send_queue.end(CloseReason::Gone),
        }
    };
    tokio::join!(writing, listening);
    open.decrement(1.0);
}

/// Reads, answers and delivers. It is dropped when the connection is closed, with the calls in progress; a send
/// continues without it.
async fn run_session(connection: &Arc<Connection>, mut stream: SplitStream<WebSocket>) {
    if connection.request().subject().is_none()
        && let Err(reason) = await_authentication(connection, &mut stream).await
    {
        connection.send_queue.end_after_queue(reason);
        return connection.send_queue.ended().await;
    }
    tokio::join!(
        read_loop(connection, stream),
        delivery::deliver(connection),
        watch(connection)
    );
}

/// Reads until the client leaves, then closes the connection.
async fn read_loop(connection: &Arc<Connection>, stream: SplitStream<WebSocket>) {
    answer_messages(connection, stream).await;
    connection.send_queue.end(CloseReason::Gone);
}

/// Waits for `gateway_authenticate` (WS-1). Until then the metadata methods are answered as over HTTP, and every other
/// call gets an error that demands authentication. An invalid token or the timeout closes the connection.
async fn await_authentication(
    connection: &Arc<Connection>,
    stream: &mut SplitStream<WebSocket>,
) -> Result<(), CloseReason> {
    let authentication = async {
        loop {
            let body = read(stream).await?;
            match connection.authenticate(&body).await {
                Some(true) => return Ok(()),
                Some(false) => return Err(CloseReason::Unauthenticated),
                None => connection.answer_anonymous(&body).await,
            }
        }
    };
    tokio::time::timeout(AUTHENTICATION_TIMEOUT, authentication)
        .await
        .unwrap_or(Err(CloseReason::Unauthenticated))
}

/// Checks the caller's right to the connection after each change of policy, and at intervals (WS-6).
async fn watch(connection: &Arc<Connection>) {
    let feed = connection.state.feed();
    loop {
        let epoch = feed.epoch();
        if connection.current_identity().is_none() {
            return;
        }
        let _ = tokio::time::timeout(CHECK_INTERVAL, feed.changed_since(epoch)).await;
    }
}

async fn answer_messages(connection: &Arc<Connection>, mut stream: SplitStream<WebSocket>) {
    let (semaphore, mut calls) = (Arc::new(Semaphore::new(MAX_CALLS_IN_FLIGHT)), JoinSet::new());
    loop {
        let body = match read(&mut stream).await {
            Ok(body) => body,
            Err(reason) => return connection.send_queue.end(reason),
        };
        if names_authentication(&body) && connection.authenticate(&body).await.is_some() {
            continue;
        }
        // The semaphore is never closed.
        let Ok(permit) = Arc::clone(&semaphore).acquire_owned().await else {
            return;
        };
        let connection = Arc::clone(connection);
        calls.spawn(async move {
            connection.answer(body).await;
            drop(permit);
        });
        while calls.try_join_next().is_some() {}
    }
}

/// Whether the message may be `gateway_authenticate`.
fn names_authentication(body: &[u8]) -> bool {
    body.windows(AUTHENTICATE.len())
        .any(|part| part == AUTHENTICATE.as_bytes())
}

/// Reads the next message, text or binary.
async fn read(stream: &mut SplitStream<WebSocket>) -> Result<Bytes, CloseReason> {
    loop {
        let message = tokio::time::timeout(SILENCE_TIMEOUT, stream.next())
            .await
            .map_err(|_| CloseReason::Gone)?;
        match message {
            Some(Ok(Message::Text(text))) => return Ok(Bytes::from(text)),
            Some(Ok(Message::Binary(bytes))) => return Ok(bytes),
            Some(Ok(Message::Ping(_) | Message::Pong(_))) => {}
            Some(Ok(Message::Close(_))) => return Err(CloseReason::Closed),
            None => return Err(CloseReason::Gone),
            // The message exceeds the limit or is no WebSocket frame: the protocol cannot continue after it.
            Some(Err(_)) => return Err(CloseReason::TooLarge),
        }
    }
}
