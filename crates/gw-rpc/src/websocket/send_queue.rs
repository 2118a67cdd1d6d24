//! The queue of messages to one connection, and how the connection is closed.

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

/// The most queued bytes before the connection of a slow client is closed (WS-5); one larger answer may come on top.
const MAX_QUEUED_BYTES: usize = 1 << 20;
/// The interval of pings on an idle connection.
const PING: Duration = Duration::from_secs(30);
/// The most time for the close frame.
const CLOSE_TIMEOUT: Duration = Duration::from_secs(1);

/// Why a connection is closed. The first reason that is set counts.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum CloseReason {
    /// The caller lost the right to the connection: ban, revocation, expiry, stale policy, or an ended membership
    /// (WS-6).
    Unauthorized,
    /// The client reads too slowly (WS-5).
    Slow,
    /// The gateway shuts down.
    Shutdown,
    /// The client sent a message larger than a request may be.
    TooLarge,
    /// The client did not authenticate in time, or with a token that is not valid.
    Unauthenticated,
    /// The client closed the connection; its close frame is echoed with the same code (RFC 6455 §5.5.1).
    Closed,
    /// The connection broke, or the client is silent.
    Gone,
}

impl CloseReason {
    fn frame(self) -> Option<CloseFrame> {
        let (code, text) = match self {
            Self::Unauthorized => (1008, "access ended"),
            Self::Slow => (1013, "too slow"),
            Self::Shutdown => (1001, "going away"),
            Self::TooLarge => (1009, "message too large"),
            Self::Unauthenticated => (1008, "authenticate first"),
            // The protocol library echoes the close frame by itself.
            Self::Closed | Self::Gone => return None,
        };
        Some(CloseFrame {
            code,
            reason: text.into(),
        })
    }
}

/// An item of the queue.
#[derive(Debug)]
pub(crate) enum OutgoingMessage {
    /// Writes this text; its bytes are charged until it is written.
    Text(String, Option<ByteLease>),
    /// Closes the connection, after everything before it in the queue.
    End(CloseReason),
}

/// The sending side of a connection.
#[derive(Debug)]
pub(crate) struct SendQueue {
    queue: UnboundedSender<OutgoingMessage>,
    waiting: AtomicUsize,
    reason: OnceLock<CloseReason>,
    end: CancellationToken,
}

impl SendQueue {
    pub(crate) fn new(queue: UnboundedSender<OutgoingMessage>, end: CancellationToken) -> Self {
        Self {
            queue,
            waiting: AtomicUsize::new(0),
            reason: OnceLock::new(),
            end,
        }
    }

    /// Queues a text, or closes the connection if too much is queued.
    pub(crate) fn push(&self, text: String, lease: Option<ByteLease>) {
        if self.waiting.fetch_add(text.len(), Ordering::Relaxed) > MAX_QUEUED_BYTES {
            self.end(CloseReason::Slow);
        }
        // After the connection is closed, the queue has no receiver.
        let _ = self.queue.send(OutgoingMessage::Text(text, lease));
    }

    /// Closes the connection once everything queued so far is written.
    pub(crate) fn end_after_queue(&self, reason: CloseReason) {
        let _ = self.queue.send(OutgoingMessage::End(reason));
    }

    pub(crate) fn end(&self, reason: CloseReason) {
        let _ = self.reason.set(reason);
        self.end.cancel();
    }

    pub(crate) async fn ended(&self) {
        self.end.cancelled().await;
    }

    /// Writes queued messages until the connection is closed, then the close frame. Messages that are queued at that
    /// time are not sent, because the caller may have lost the right to them.
    pub(crate) async fn write(
        &self,
        mut sink: SplitSink<WebSocket, Message>,
        mut queue: UnboundedReceiver<OutgoingMessage>,
    ) {
        let mut ping = tokio::time::interval(PING);
        ping.reset();
        loop {
            let mut _lease = None;
            let message = tokio::select! {
                biased;
                () = self.ended() => break,
                text = queue.recv() => match text {
                    Some(OutgoingMessage::Text(text, lease)) => {
                        _lease = lease;
                        Message::Text(text.into())
                    }
                    Some(OutgoingMessage::End(reason)) => {
                        self.end(reason);
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
            let result = tokio::select! {
                biased;
                () = self.ended() => break,
                result = sink.send(message) => result,
            };
            self.waiting.fetch_sub(length, Ordering::Relaxed);
            if result.is_err() {
                self.end(CloseReason::Gone);
            }
        }
        let reason = self.reason.get().copied().unwrap_or(CloseReason::Shutdown);
        if let Some(frame) = reason.frame() {
            // The timeout covers a client that reads nothing, and so no close frame either.
            let _ = tokio::time::timeout(CLOSE_TIMEOUT, sink.send(Message::Close(Some(frame)))).await;
        }
        if reason == CloseReason::Closed {
            // The echo is queued when the close frame is read; it leaves with the next flush.
            let _ = tokio::time::timeout(CLOSE_TIMEOUT, sink.flush()).await;
        }
    }
}
