//! The body of a request. It must be complete within 10 s (spec/85 section 5), and its bytes are charged to a budget as
//! they arrive (RL8).
//!
//! Small chunks are copied into one buffer. Otherwise a chunk of one byte would keep the whole buffer alive that it was
//! read into.

use super::body_budget::{BodyCharge, OverBudget};
use axum::BoxError;
use bytes::Bytes;
use gw_http::NoBodyRoom;
use http_body::{Body, Frame, SizeHint};
use hyper::body::Incoming;
use std::{
    future::Future as _,
    pin::Pin,
    sync::Arc,
    task::{Context, Poll},
    time::Duration,
};
use tokio::time::{Sleep, sleep};

/// From the first wait for the body to its end.
const BODY_TIMEOUT: Duration = Duration::from_secs(10);
/// Largest body in bytes that is not charged, if it arrives in one chunk. The connection limit bounds the memory of
/// such bodies.
const UNCHARGED_BYTES: usize = 4 * 1024;
/// Bytes that are collected before they are passed on as one frame.
const FRAME_BYTES: usize = 64 * 1024;

/// A body with a deadline and a charge. The timer starts with the first wait: a body that arrives with its headers
/// needs no timer.
#[derive(Debug)]
pub(super) struct TimedBody<B = Incoming> {
    inner: B,
    charge: Arc<BodyCharge>,
    deadline: Option<Pin<Box<Sleep>>>,
    /// Bytes that are charged but not passed on yet.
    buffered: Vec<u8>,
}

/// The body was not complete in time.
#[derive(Clone, Copy, Debug, thiserror::Error)]
#[error("the request's body did not arrive in time")]
struct BodyTimeout;

impl<B> TimedBody<B> {
    pub(super) fn new(inner: B, charge: Arc<BodyCharge>) -> Self {
        Self {
            inner,
            charge,
            deadline: None,
            buffered: Vec::new(),
        }
    }

    fn take_frame(&mut self) -> Frame<Bytes> {
        Frame::data(std::mem::take(&mut self.buffered).into())
    }
}

impl<B: Body<Data = Bytes, Error: Into<BoxError>> + Unpin> Body for TimedBody<B> {
    type Data = Bytes;
    type Error = BoxError;

    fn poll_frame(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Option<Result<Frame<Bytes>, BoxError>>> {
        loop {
            if self.charge.has_yielded() {
                self.buffered = Vec::new();
                return Poll::Ready(Some(Err(NoBodyRoom.into())));
            }
            let data = match Pin::new(&mut self.inner).poll_frame(cx) {
                Poll::Ready(Some(Ok(frame))) => match frame.into_data() {
                    Ok(data) => data,
                    // Trailers are ignored.
                    Err(_) => continue,
                },
                Poll::Ready(Some(Err(error))) => return Poll::Ready(Some(Err(error.into()))),
                Poll::Ready(None) => {
                    self.charge.complete();
                    let last = (!self.buffered.is_empty()).then(|| Ok(self.take_frame()));
                    return Poll::Ready(last);
                }
                Poll::Pending => break,
            };
            let is_end = self.inner.is_end_stream();
            if is_end && data.len() <= UNCHARGED_BYTES && self.buffered.is_empty() {
                return Poll::Ready(Some(Ok(Frame::data(data))));
            }
            if let Err(OverBudget) = self.charge.charge(data.len()) {
                continue;
            }
            if is_end {
                self.charge.complete();
            }
            self.buffered.extend_from_slice(&data);
            if is_end || self.buffered.len() >= FRAME_BYTES {
                return Poll::Ready(Some(Ok(self.take_frame())));
            }
        }
        if self.charge.poll_yielded(cx.waker()) {
            self.buffered = Vec::new();
            return Poll::Ready(Some(Err(NoBodyRoom.into())));
        }
        let deadline = self.deadline.get_or_insert_with(|| Box::pin(sleep(BODY_TIMEOUT)));
        deadline.as_mut().poll(cx).map(|()| Some(Err(BodyTimeout.into())))
    }

    fn is_end_stream(&self) -> bool {
        self.buffered.is_empty() && self.inner.is_end_stream()
    }

    fn size_hint(&self) -> SizeHint {
        let buffered = u64::try_from(self.buffered.len()).unwrap_or(u64::MAX);
        let rest = self.inner.size_hint();
        let mut hint = SizeHint::new();
        hint.set_lower(rest.lower().saturating_add(buffered));
        if let Some(upper) = rest.upper() {
            hint.set_upper(upper.saturating_add(buffered));
        }
        hint
    }
}

#[cfg(test)]
mod tests {
    use super::{
        super::body_budget::{BodyBudget, BodyLimits},
        *,
    };
    use gw_http::{TrustedProxies, read_body};
    use http_body_util::BodyExt as _;
    use std::collections::VecDeque;

    /// A body whose chunks are available at once. After them it ends, or stays pending forever.
    struct Chunks {
        remaining: VecDeque<Bytes>,
        ends: bool,
    }

    impl Body for Chunks {
        type Data = Bytes;
        type Error = BoxError;

        fn poll_frame(mut self: Pin<&mut Self>, _: &mut Context<'_>) -> Poll<Option<Result<Frame<Bytes>, BoxError>>> {
            match self.remaining.pop_front() {
                Some(chunk) => Poll::Ready(Some(Ok(Frame::data(chunk)))),
                None if self.ends => Poll::Ready(None),
                None => Poll::Pending,
            }
        }
    }

    fn budget(bytes: usize) -> Arc<BodyBudget> {
        let limits = BodyLimits {
            total: bytes,
            per_address: bytes,
        };
        BodyBudget::new("test", limits, TrustedProxies::default())
    }

    fn body(budget: &Arc<BodyBudget>, chunks: Vec<Bytes>, ends: bool) -> TimedBody<Chunks> {
        let charge = budget.open([127, 0, 0, 1].into(), &http::HeaderMap::new());
        TimedBody::new(
            Chunks {
                remaining: chunks.into(),
                ends,
            },
            charge,
        )
    }

    /// RL8: if a client sends single bytes, the gateway holds no more bytes than it sent.
    #[tokio::test]
    async fn rl8_small_chunks_are_copied_out_of_their_read_buffers() {
        let buffer = Bytes::from(vec![b'x'; 8192]);
        let chunks = (0..100).map(|index| buffer.slice(index..=index)).collect();
        let mut timed_body = body(&budget(1 << 20), chunks, true);
        let data = timed_body.frame().await.unwrap().unwrap().into_data().unwrap();
        assert_eq!(data, vec![b'x'; 100]);
        assert!(timed_body.frame().await.is_none());
        drop(timed_body);
        assert!(buffer.is_unique(), "nothing refers to the buffer");
    }

    /// RL8: a body that yields is answered with 503 and `Retry-After`, not as an aborted body.
    #[tokio::test(start_paused = true)]
    async fn rl8_a_body_that_yields_is_answered_with_503() {
        let budget = budget(200_000);
        let chunk = |size| vec![Bytes::from(vec![b'x'; size])];
        let slow = tokio::spawn(read_body(axum::body::Body::new(body(&budget, chunk(150_000), false))));
        tokio::time::sleep(Duration::from_secs(3)).await;
        let next = body(&budget, chunk(100_000), true);
        assert_eq!(read_body(axum::body::Body::new(next)).await.unwrap().len(), 100_000);
        let error = slow.await.unwrap().unwrap_err();
        assert_eq!(error.code().status(), 503);
        let response = axum::response::IntoResponse::into_response(error);
        assert_eq!(response.headers()["retry-after"], "1");
    }

    /// Spec/85 section 5.
    #[tokio::test(start_paused = true)]
    async fn edge_an_incomplete_body_is_rejected_after_ten_seconds() {
        let timed_body = body(&budget(1 << 20), vec![Bytes::from_static(b"{")], false);
        let start = tokio::time::Instant::now();
        assert_eq!(
            read_body(axum::body::Body::new(timed_body))
                .await
                .unwrap_err()
                .code()
                .status(),
            400
        );
        assert_eq!(start.elapsed().as_secs(), 10);
    }
}
