//! The body of a response. Small results are written into one buffer, large ones keep their own, and all bytes are
//! charged to the request until they are sent.

use crate::outcome::RpcOutcome;
use axum::body::Body;
use bytes::Bytes;
use gw_node::{
    AnswerHold, NoRoom,
    answers::{ByteLease, LeasedBytes, SMALL},
};
use http_body::{Frame, SizeHint};
use std::{
    collections::VecDeque,
    convert::Infallible,
    pin::Pin,
    sync::Arc,
    task::{Context, Poll},
};

/// A response body under construction.
#[derive(Debug)]
pub(crate) struct Output {
    hold: Arc<AnswerHold>,
    parts: VecDeque<Bytes>,
    /// The bytes after the parts.
    tail: Vec<u8>,
    /// The lease for the bytes of the tail, once the tail is large.
    lease: Option<ByteLease>,
}

impl Output {
    pub(crate) fn new(hold: &Arc<AnswerHold>) -> Self {
        Self {
            hold: Arc::clone(hold),
            parts: VecDeque::new(),
            tail: Vec::new(),
            lease: None,
        }
    }

    pub(crate) fn is_empty(&self) -> bool {
        self.parts.is_empty() && self.tail.is_empty()
    }

    pub(crate) fn push(&mut self, byte: u8) {
        self.tail.push(byte);
    }

    /// Appends the JSON-RPC object of an outcome, and releases memory that is no longer needed.
    pub(crate) fn push_outcome(&mut self, outcome: RpcOutcome, id: &str) {
        match outcome {
            RpcOutcome::Result(result) if result.len() > SMALL => {
                RpcOutcome::begin_result(id, &mut self.tail);
                let (bytes, is_charged) = result.into_bytes();
                // Bytes of the node's answer are charged already.
                let bytes = if is_charged {
                    self.hold.record_spoken(bytes.len());
                    bytes
                } else {
                    let lease = self.hold.claim(bytes.len());
                    LeasedBytes::share(bytes, lease)
                };
                self.end_tail();
                self.parts.push_back(bytes);
                self.tail.push(b'}');
            }
            outcome => {
                if self.tail.is_empty() {
                    self.tail.reserve(128 + outcome.len());
                }
                outcome.write(id, &mut self.tail);
            }
        }
        self.hold.trim();
    }

    /// Charges the bytes of the tail, before more are appended.
    ///
    /// # Errors
    /// [`NoRoom`] if there is no memory left for them: the tail stays, and nothing should be appended.
    pub(crate) async fn settle(&mut self) -> Result<(), NoRoom> {
        if self.tail.len() <= SMALL {
            return Ok(());
        }
        let lease = match &mut self.lease {
            Some(lease) => lease,
            slot => slot.insert(self.hold.lease(0).await?),
        };
        let added = self.tail.capacity().saturating_sub(lease.bytes());
        lease.grow_to(self.tail.capacity()).await?;
        self.hold.record_spoken(added);
        Ok(())
    }

    fn end_tail(&mut self) {
        let tail = std::mem::take(&mut self.tail);
        match (tail.is_empty(), self.lease.take()) {
            (true, _) => {}
            (false, None) => self.parts.push_back(Bytes::from(tail)),
            (false, Some(lease)) => self.parts.push_back(LeasedBytes::share(tail, lease)),
        }
    }

    /// The body of an HTTP response.
    pub(crate) fn into_body(mut self) -> Body {
        if self.parts.is_empty() && self.lease.is_none() {
            return Body::from(self.tail);
        }
        self.end_tail();
        let remaining = self.parts.iter().map(Bytes::len).sum();
        Body::new(Parts {
            parts: self.parts,
            remaining,
        })
    }

    /// The text of a WebSocket message, and the lease for its bytes.
    pub(crate) fn into_text(mut self) -> (String, Option<ByteLease>) {
        let text = if self.parts.is_empty() {
            self.tail
        } else {
            self.end_tail();
            let mut text = Vec::with_capacity(self.parts.iter().map(Bytes::len).sum());
            for part in self.parts {
                text.extend_from_slice(&part);
            }
            text
        };
        let lease = (text.len() > SMALL).then(|| self.hold.claim(text.len()));
        self.hold.trim();
        // The bytes are JSON, which is UTF-8.
        (String::from_utf8(text).unwrap_or_default(), lease)
    }
}

/// The parts of one body. Each part is dropped once it is sent.
#[derive(Debug)]
struct Parts {
    parts: VecDeque<Bytes>,
    remaining: usize,
}

impl http_body::Body for Parts {
    type Data = Bytes;
    type Error = Infallible;

    fn poll_frame(mut self: Pin<&mut Self>, _: &mut Context<'_>) -> Poll<Option<Result<Frame<Bytes>, Infallible>>> {
        let part = self.parts.pop_front();
        self.remaining = self.remaining.saturating_sub(part.as_ref().map_or(0, Bytes::len));
        Poll::Ready(part.map(|part| Ok(Frame::data(part))))
    }

    fn is_end_stream(&self) -> bool {
        self.parts.is_empty()
    }

    fn size_hint(&self) -> SizeHint {
        SizeHint::with_exact(u64::try_from(self.remaining).unwrap_or(u64::MAX))
    }
}
