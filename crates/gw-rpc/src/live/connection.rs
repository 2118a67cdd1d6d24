//! One connection that stays: it says who it is, every message is a call, and it ends with the right to it.

use super::{
    membership_basis::MembershipBasis,
    outbox::{Ending, Out, Outbox},
    socket::Seat,
    subscriptions::{self, Message as Made, Subscriptions},
};
use crate::{
    http::{Said, converse},
    limits::Party,
    origin::Origin,
    output::Output,
    record::Recorder,
    reply::Reply,
    state::Inner,
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

/// For the first message, which says who it is (WS-1).
const INTRODUCTION: Duration = Duration::from_secs(5);
/// Without a sign of life; pings are answered sooner.
const SILENCE: Duration = Duration::from_secs(75);
/// How often the right to the connection is looked at when nothing else calls for it.
const LOOK: Duration = Duration::from_millis(250);
/// Calls of one connection at once; the next one is read when one is answered.
const AT_ONCE: usize = 16;
/// The message that says who it is, and later that it still is.
const AUTHENTICATE: &str = "gateway_authenticate";
/// What a client reads that asks for anything but metadata before it authenticated.
const AUTHENTICATE_FIRST: &str = "authenticate first: send gateway_authenticate with an access token";

/// One connection.
#[derive(Debug)]
pub(crate) struct Connection {
    state: Arc<Inner>,
    who: Mutex<Who>,
    subscriptions: Arc<Subscriptions>,
    outbox: Outbox,
    queue: Mutex<Option<mpsc::UnboundedReceiver<Out>>>,
}

/// Whose it is.
#[derive(Debug)]
struct Who {
    origin: Arc<Origin>,
    /// The memberships of its owner when it was opened, or those in the organization that it names: losing one of these
    /// organizations ends it (WS-6).
    basis: MembershipBasis,
    seat: Seat,
}

/// How an introduction can fail, and how that reads.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Stranger {
    Token(AuthError),
    OtherSubject,
    Crowded,
}

impl Stranger {
    fn message(self) -> &'static str {
        match self {
            Self::Token(AuthError::Expired) => "token expired",
            Self::Token(AuthError::Revoked) => "token revoked",
            Self::Token(_) => "invalid token",
            Self::OtherSubject => "the token is another subject's",
            Self::Crowded => "too many connections: 16 at most",
        }
    }
}

impl Connection {
    pub(crate) fn begin(state: Arc<Inner>, origin: Origin, seat: Seat) -> Arc<Self> {
        let (sender, queue) = mpsc::unbounded_channel();
        let outbox = Outbox::new(sender, state.sockets.end.child_token());
        let who = Mutex::new(Who {
            origin: Arc::new(origin),
            basis: MembershipBasis::default(),
            seat,
        });
        let this = Self {
            state,
            who,
            subscriptions: Arc::default(),
            outbox,
            queue: Mutex::new(Some(queue)),
        };
        this.note_basis();
        Arc::new(this)
    }

    pub(crate) fn state(&self) -> &Arc<Inner> {
        &self.state
    }

    pub(crate) fn subscriptions(&self) -> &Arc<Subscriptions> {
        &self.subscriptions
    }

    pub(crate) fn outbox(&self) -> &Outbox {
        &self.outbox
    }

    fn who(&self) -> MutexGuard<'_, Who> {
        self.who.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn origin(&self) -> Arc<Origin> {
        Arc::clone(&self.who().origin)
    }

    fn note_basis(&self) {
        let (pinned, now) = (self.state.feed().pin(), self.state.clock().now());
        let mut who = self.who();
        if let Ok(Caller::User(user)) = who.origin.caller(&pinned.snapshot, now) {
            who.basis = MembershipBasis::of(&pinned.snapshot, user.id, who.origin.named.org(), now);
        }
    }

    /// Whose it is, while that is somebody: fresh policy, a token in time and not revoked, no ban, no membership lost
    /// (WS-6). Otherwise it ends.
    pub(crate) fn standing(&self) -> Option<Arc<Origin>> {
        let stands = self.stands();
        if stands.is_none() {
            self.outbox.end(Ending::Right);
        }
        stands
    }

    fn stands(&self) -> Option<Arc<Origin>> {
        let (pinned, now) = (self.state.feed().pin(), self.state.clock().now());
        let who = self.who();
        let Ok(Caller::User(user)) = who.origin.caller(&pinned.snapshot, now) else {
            return None;
        };
        let stands = pinned.fresh && who.origin.is_in_time(now) && who.basis.holds(&pinned.snapshot, user.id, now);
        stands.then(|| Arc::clone(&who.origin))
    }

    /// Takes a token: the first says who it is, later ones that it is still the same.
    fn introduce(&self, token: &str) -> Result<(), Stranger> {
        let (pinned, now) = (self.state.feed().pin(), self.state.clock().now());
        let mut who = self.who();
        let mut origin = Origin::clone(&who.origin);
        origin.present(&self.state.edge, token, now).map_err(Stranger::Token)?;
        let caller = origin
            .caller(&pinned.snapshot, now)
            .map_err(|_| Stranger::Token(AuthError::Invalid))?;
        match who.origin.subject() {
            Some(subject) if origin.subject() != Some(subject) => return Err(Stranger::OtherSubject),
            Some(_) => {}
            None => {
                let Caller::User(user) = caller else {
                    return Err(Stranger::Token(AuthError::Invalid));
                };
                let seat = self.state.sockets.change_seat(&who.seat, Party::User(user.id));
                who.seat = seat.ok_or(Stranger::Crowded)?;
                who.basis = MembershipBasis::of(&pinned.snapshot, user.id, who.origin.named.org(), now);
            }
        }
        who.origin = Arc::new(origin);
        Ok(())
    }

    /// Answers `gateway_authenticate`, and whether it was good. A bad one changes nothing.
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
        let taken = match token {
            Some([token]) => self.introduce(&token),
            None => Err(Stranger::Token(AuthError::Missing)),
        };
        let reply = match taken {
            Ok(()) => Reply::Result(Disclosed::TRUE),
            Err(_) => Reply::Unauthorized(AuthError::Invalid),
        };
        let recorded = match Recorder::of_own(&self.state, &self.origin(), AUTHENTICATE) {
            Ok(recorder) => recorder.finish(reply, false).await,
            Err(unavailable) => unavailable,
        };
        let mut out = Vec::new();
        match (taken, recorded) {
            (Err(stranger), Reply::Unauthorized(_)) => {
                let error = serde_json::json!({"code": -32001, "message": stranger.message()});
                out.extend_from_slice(format!(r#"{{"jsonrpc":"2.0","id":{id},"error":{error}}}"#).as_bytes());
            }
            (_, reply) => reply.write(&id, &mut out),
        }
        self.say(String::from_utf8(out).unwrap_or_default());
        Some(taken.is_ok())
    }

    /// One message of a client that has not authenticated: metadata is answered, anything else is refused. The refusal
    /// depends on the method names alone, which the client chose.
    async fn answer_anonymous(&self, body: &[u8]) {
        let is_metadata = |method: &str| {
            let lookup = self.state.settings.extras.lookup(method);
            lookup.row().is_some_and(|row| row.class() == Class::Meta)
        };
        let metadata_only = match envelope::parse(body, self.state.settings.batch_max) {
            Ok(Incoming::Single(call)) => is_metadata(call.method),
            Ok(Incoming::Batch(calls)) => calls.iter().flatten().all(|call| is_metadata(call.method)),
            // The pipeline says what is wrong with it.
            Err(_) => true,
        };
        if metadata_only {
            let origin = self.origin();
            let said = converse(&self.state, &origin, body).await;
            self.tell(&origin, said);
        } else {
            let recorder = Recorder::of_own(&self.state, &self.origin(), AUTHENTICATE);
            if let Ok(recorder) = recorder {
                let _recorded = recorder.finish(Reply::Unauthorized(AuthError::Missing), false).await;
            }
            let id = match envelope::parse(body, 0) {
                Ok(Incoming::Single(call)) => call.id.as_json().to_owned(),
                Ok(Incoming::Batch(_)) | Err(_) => "null".to_owned(),
            };
            self.say(format!(
                r#"{{"jsonrpc":"2.0","id":{id},"error":{{"code":-32001,"message":"{AUTHENTICATE_FIRST}"}}}}"#
            ));
        }
    }

    fn say(&self, text: String) {
        self.outbox.push(text, None);
    }

    /// Says what came of one message.
    fn tell(&self, origin: &Origin, said: Said) {
        let output = match said {
            Said::One(reply, id) => {
                let mut output = Output::new(&origin.hold);
                output.reply(reply, &id);
                output
            }
            Said::Many(output) => output,
            Said::Nothing => return,
        };
        let (text, lease) = output.into_text();
        self.outbox.push(text, lease);
    }

    /// One message: a call or a batch, through the pipeline like any other.
    async fn answer(&self, body: Bytes) {
        let Some(origin) = self.standing() else { return };
        let made = Arc::new(Made::new(&self.subscriptions));
        let origin = Arc::new(origin.with_message(&made));
        let said = converse(&self.state, &origin, &body).await;
        self.tell(&origin, said);
        made.answered();
    }
}

/// Keeps a connection until it ends.
pub(crate) async fn run(connection: Arc<Connection>, socket: WebSocket) {
    let open = metrics::gauge!("ledger_gateway_live_connections");
    open.increment(1.0);
    let (sink, stream) = socket.split();
    let queue = connection.queue.lock().unwrap_or_else(PoisonError::into_inner).take();
    let Some(queue) = queue else { return };
    let writing = connection.outbox.write(sink, queue);
    let listening = async {
        tokio::select! {
            () = connection.outbox.ended() => {}
            // An earlier reason stands.
            () = attend(&connection, stream) => connection.outbox.end(Ending::Gone),
        }
    };
    tokio::join!(writing, listening);
    open.decrement(1.0);
}

/// Everything a connection does but write. Dropped when it ends, with the calls under way; a send goes on without it.
async fn attend(connection: &Arc<Connection>, mut stream: SplitStream<WebSocket>) {
    if connection.origin().subject().is_none()
        && let Err(why) = await_authentication(connection, &mut stream).await
    {
        connection.outbox.end_after_said(why);
        return connection.outbox.ended().await;
    }
    tokio::join!(
        hear(connection, stream),
        subscriptions::deliver(connection),
        watch(connection)
    );
}

/// Reads until the other side leaves, then ends the connection for the other two.
async fn hear(connection: &Arc<Connection>, stream: SplitStream<WebSocket>) {
    listen(connection, stream).await;
    connection.outbox.end(Ending::Gone);
}

/// Waits for `gateway_authenticate` (WS-1). Until then the metadata methods are answered as over HTTP, and every other
/// call is told to authenticate first. An invalid token ends the connection, as does the end of the time.
async fn await_authentication(connection: &Arc<Connection>, stream: &mut SplitStream<WebSocket>) -> Result<(), Ending> {
    let authenticated = async {
        loop {
            let body = read(stream).await?;
            match connection.authenticate(&body).await {
                Some(true) => return Ok(()),
                Some(false) => return Err(Ending::Unauthenticated),
                None => connection.answer_anonymous(&body).await,
            }
        }
    };
    tokio::time::timeout(INTRODUCTION, authenticated)
        .await
        .unwrap_or(Err(Ending::Unauthenticated))
}

/// WS-6: looks whether the connection may stay, at each change of policy and as time passes.
async fn watch(connection: &Arc<Connection>) {
    let feed = connection.state.feed();
    loop {
        let epoch = feed.epoch();
        if connection.standing().is_none() {
            return;
        }
        let _ = tokio::time::timeout(LOOK, feed.changed_since(epoch)).await;
    }
}

async fn listen(connection: &Arc<Connection>, mut stream: SplitStream<WebSocket>) {
    let (room, mut calls) = (Arc::new(Semaphore::new(AT_ONCE)), JoinSet::new());
    loop {
        let body = match read(&mut stream).await {
            Ok(body) => body,
            Err(why) => return connection.outbox.end(why),
        };
        if is_introduction(&body) && connection.authenticate(&body).await.is_some() {
            continue;
        }
        // The semaphore is never closed.
        let Ok(permit) = Arc::clone(&room).acquire_owned().await else {
            return;
        };
        let this = Arc::clone(connection);
        calls.spawn(async move {
            this.answer(body).await;
            drop(permit);
        });
        while calls.try_join_next().is_some() {}
    }
}

/// Whether it is worth looking closer.
fn is_introduction(body: &[u8]) -> bool {
    body.windows(AUTHENTICATE.len())
        .any(|part| part == AUTHENTICATE.as_bytes())
}

/// The next message, text or bytes alike.
async fn read(stream: &mut SplitStream<WebSocket>) -> Result<Bytes, Ending> {
    loop {
        let message = tokio::time::timeout(SILENCE, stream.next())
            .await
            .map_err(|_| Ending::Gone)?;
        match message {
            Some(Ok(Message::Text(text))) => return Ok(Bytes::from(text)),
            Some(Ok(Message::Binary(bytes))) => return Ok(bytes),
            Some(Ok(Message::Ping(_) | Message::Pong(_))) => {}
            Some(Ok(Message::Close(_))) => return Err(Ending::Closed),
            None => return Err(Ending::Gone),
            // Beyond the limit, or no WebSocket at all: the protocol has no way on from there.
            Some(Err(_)) => return Err(Ending::TooLarge),
        }
    }
}
