//! An answer as it leaves: small results written together, large ones as they are, each charged to its request until its
//! last byte has left.

use crate::reply::Reply;
use axum::body::Body;
use bytes::Bytes;
use gw_node::{
    AnswerHold, NoRoom,
    answers::{ByteLease, Leased, SMALL},
};
use http_body::{Frame, SizeHint};
use std::{
    collections::VecDeque,
    convert::Infallible,
    pin::Pin,
    sync::Arc,
    task::{Context, Poll},
};

/// One body under way.
#[derive(Debug)]
pub(crate) struct Output {
    hold: Arc<AnswerHold>,
    parts: VecDeque<Bytes>,
    /// What comes behind the parts.
    tail: Vec<u8>,
    /// For the tail, where it is large by what was written into it.
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

    /// Appends the JSON-RPC object for the request with this id, and gives back what it takes no more.
    pub(crate) fn reply(&mut self, reply: Reply, id: &str) {
        match reply {
            Reply::Result(result) if result.len() > SMALL => {
                Reply::begin_result(id, &mut self.tail);
                let (bytes, is_charged) = result.into_bytes();
                // A part of the node's answer is charged with it.
                let bytes = if is_charged {
                    self.hold.say(bytes.len());
                    bytes
                } else {
                    let lease = self.hold.claim(bytes.len());
                    Leased::share(bytes, lease)
                };
                self.end_tail();
                self.parts.push_back(bytes);
                self.tail.push(b'}');
            }
            reply => {
                if self.tail.is_empty() {
                    self.tail.reserve(128 + reply.len());
                }
                reply.write(id, &mut self.tail);
            }
        }
        self.hold.trim();
    }

    /// Charges what was written together, before more is.
    ///
    /// # Errors
    /// [`NoRoom`] if there is none for it: what was written stays, and nothing should be added.
    pub(crate) async fn settle(&mut self) -> Result<(), NoRoom> {
        if self.tail.len() <= SMALL {
            return Ok(());
        }
        let lease = match &mut self.lease {
            Some(lease) => lease,
            none => none.insert(self.hold.lease(0).await?),
        };
        let more = self.tail.capacity().saturating_sub(lease.bytes());
        lease.grow_to(self.tail.capacity()).await?;
        self.hold.say(more);
        Ok(())
    }

    fn end_tail(&mut self) {
        let tail = std::mem::take(&mut self.tail);
        match (tail.is_empty(), self.lease.take()) {
            (true, _) => {}
            (false, None) => self.parts.push_back(Bytes::from(tail)),
            (false, Some(lease)) => self.parts.push_back(Leased::share(tail, lease)),
        }
    }

    /// As the body of an HTTP answer.
    pub(crate) fn into_body(mut self) -> Body {
        if self.parts.is_empty() && self.lease.is_none() {
            return Body::from(self.tail);
        }
        self.end_tail();
        let left = self.parts.iter().map(Bytes::len).sum();
        Body::new(Parts {
            parts: self.parts,
            left,
        })
    }

    /// As one text, with the room it takes.
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
        // What is written here is JSON of ours.
        (String::from_utf8(text).unwrap_or_default(), lease)
    }
}

/// The parts of one body, each dropped when it was taken.
#[derive(Debug)]
struct Parts {
    parts: VecDeque<Bytes>,
    left: usize,
}

impl http_body::Body for Parts {
    type Data = Bytes;
    type Error = Infallible;

    fn poll_frame(mut self: Pin<&mut Self>, _: &mut Context<'_>) -> Poll<Option<Result<Frame<Bytes>, Infallible>>> {
        let part = self.parts.pop_front();
        self.left = self.left.saturating_sub(part.as_ref().map_or(0, Bytes::len));
        Poll::Ready(part.map(|part| Ok(Frame::data(part))))
    }

    fn is_end_stream(&self) -> bool {
        self.parts.is_empty()
    }

    fn size_hint(&self) -> SizeHint {
        SizeHint::with_exact(u64::try_from(self.left).unwrap_or(u64::MAX))
    }
}
