//! What waits to be written to one connection, and how the connection ends.

use axum::extract::ws::{CloseFrame, Message, WebSocket};
use futures_util::{SinkExt as _, stream::SplitSink};
use gw_node::answers::ByteLease;
use std::{
    sync::{
        OnceLock,
        atomic::{AtomicUsize, Ordering},
    },
    time::Duration,
};
use tokio::sync::mpsc::{UnboundedReceiver, UnboundedSender};
use tokio_util::sync::CancellationToken;

/// What may wait for a slow reader before the connection is given up (WS-5). One answer on top may be larger.
const LIMIT: usize = 1 << 20;
/// How often an idle connection is asked whether it is there.
const PING: Duration = Duration::from_secs(30);
/// For the goodbye.
const FAREWELL: Duration = Duration::from_secs(1);

/// Why a connection ends. The first reason stands.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Ending {
    /// The right to it is over, whatever was lost: ban, revocation, expiry, stale policy, membership (WS-6).
    Right,
    /// The reader is too slow (WS-5).
    Slow,
    /// The gateway ends.
    Shutdown,
    /// A message beyond what a request may be.
    TooLarge,
    /// The client did not authenticate in time, or with a token that is not valid.
    Unauthenticated,
    /// The client closed the connection: its close frame is answered with the same code (RFC 6455 §5.5.1).
    Closed,
    /// The connection broke, or the other side says nothing any more.
    Gone,
}

impl Ending {
    fn frame(self) -> Option<CloseFrame> {
        let (code, reason) = match self {
            Self::Right => (1008, "access ended"),
            Self::Slow => (1013, "too slow"),
            Self::Shutdown => (1001, "going away"),
            Self::TooLarge => (1009, "message too large"),
            Self::Unauthenticated => (1008, "authenticate first"),
            // The protocol library echoes the close frame by itself.
            Self::Closed | Self::Gone => return None,
        };
        Some(CloseFrame {
            code,
            reason: reason.into(),
        })
    }
}

/// One thing to do for the writer.
#[derive(Debug)]
pub(crate) enum Out {
    /// Write this; what it takes is charged until it is written.
    Text(String, Option<ByteLease>),
    /// Everything before is written: end.
    End(Ending),
}

/// The sending side of a connection.
#[derive(Debug)]
pub(crate) struct Outbox {
    queue: UnboundedSender<Out>,
    waiting: AtomicUsize,
    why: OnceLock<Ending>,
    end: CancellationToken,
}

impl Outbox {
    pub(crate) fn new(queue: UnboundedSender<Out>, end: CancellationToken) -> Self {
        Self {
            queue,
            waiting: AtomicUsize::new(0),
            why: OnceLock::new(),
            end,
        }
    }

    /// Takes a text to be written, or ends the connection if too much waits already.
    pub(crate) fn push(&self, text: String, lease: Option<ByteLease>) {
        if self.waiting.fetch_add(text.len(), Ordering::Relaxed) > LIMIT {
            self.end(Ending::Slow);
        }
        // Nobody reads it any more once the connection has ended.
        let _ = self.queue.send(Out::Text(text, lease));
    }

    /// Ends the connection once everything pushed so far is written.
    pub(crate) fn end_after_said(&self, why: Ending) {
        let _ = self.queue.send(Out::End(why));
    }

    pub(crate) fn end(&self, why: Ending) {
        let _ = self.why.set(why);
        self.end.cancel();
    }

    pub(crate) async fn ended(&self) {
        self.end.cancelled().await;
    }

    /// Writes what comes until the connection ends, then says goodbye. What still waits then is not sent: the right to
    /// it may be over.
    pub(crate) async fn write(&self, mut sink: SplitSink<WebSocket, Message>, mut queue: UnboundedReceiver<Out>) {
        let mut ping = tokio::time::interval(PING);
        ping.reset();
        loop {
            let mut _lease = None;
            let message = tokio::select! {
                biased;
                () = self.ended() => break,
                text = queue.recv() => match text {
                    Some(Out::Text(text, lease)) => {
                        _lease = lease;
                        Message::Text(text.into())
                    }
                    Some(Out::End(why)) => {
                        self.end(why);
                        break;
                    }
                    None => break,
                },
                _ = ping.tick() => Message::Ping(Default::default()),
            };
            let length = if let Message::Text(text) = &message {
                text.len()
            } else {
                0
            };
            let sent = tokio::select! {
                biased;
                () = self.ended() => break,
                sent = sink.send(message) => sent,
            };
            self.waiting.fetch_sub(length, Ordering::Relaxed);
            if sent.is_err() {
                self.end(Ending::Gone);
            }
        }
        let why = self.why.get().copied().unwrap_or(Ending::Shutdown);
        if let Some(frame) = why.frame() {
            // A reader that takes nothing takes no goodbye either.
            let _ = tokio::time::timeout(FAREWELL, sink.send(Message::Close(Some(frame)))).await;
        }
        if why == Ending::Closed {
            // The echo is queued when the close frame is read; it leaves with the next flush.
            let _ = tokio::time::timeout(FAREWELL, sink.flush()).await;
        }
    }
}
