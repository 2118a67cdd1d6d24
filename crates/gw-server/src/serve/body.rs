//! A request's body, which must be whole within 10 s (spec/85 section 5) and is charged while it arrives (RL8).
//!
//! The pieces in which a body comes are copied together: a piece of one byte would otherwise hold the whole buffer that it
//! was read into.

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
const PATIENCE: Duration = Duration::from_secs(10);
/// A body that is whole in one piece of so many bytes at most is not counted: the number of connections bounds those.
const SMALL: usize = 4 * 1024;
/// Bytes that are copied together before they are handed on.
const PIECE: usize = 64 * 1024;

/// A body with a deadline. The timer starts with the first wait: a body that came with its headers needs none.
#[derive(Debug)]
pub(super) struct Timely<B = Incoming> {
    inner: B,
    charge: Arc<BodyCharge>,
    deadline: Option<Pin<Box<Sleep>>>,
    held: Vec<u8>,
}

/// The body did not come in time.
#[derive(Clone, Copy, Debug, thiserror::Error)]
#[error("the request's body did not arrive in time")]
struct Late;

impl<B> Timely<B> {
    pub(super) fn new(inner: B, charge: Arc<BodyCharge>) -> Self {
        Self {
            inner,
            charge,
            deadline: None,
            held: Vec::new(),
        }
    }

    fn piece(&mut self) -> Frame<Bytes> {
        Frame::data(std::mem::take(&mut self.held).into())
    }
}

impl<B: Body<Data = Bytes, Error: Into<BoxError>> + Unpin> Body for Timely<B> {
    type Data = Bytes;
    type Error = BoxError;

    fn poll_frame(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Option<Result<Frame<Bytes>, BoxError>>> {
        loop {
            if self.charge.has_yielded() {
                self.held = Vec::new();
                return Poll::Ready(Some(Err(NoBodyRoom.into())));
            }
            let data = match Pin::new(&mut self.inner).poll_frame(cx) {
                Poll::Ready(Some(Ok(frame))) => match frame.into_data() {
                    Ok(data) => data,
                    // Nobody reads trailers.
                    Err(_) => continue,
                },
                Poll::Ready(Some(Err(error))) => return Poll::Ready(Some(Err(error.into()))),
                Poll::Ready(None) => {
                    self.charge.complete();
                    let last = (!self.held.is_empty()).then(|| Ok(self.piece()));
                    return Poll::Ready(last);
                }
                Poll::Pending => break,
            };
            let is_end = self.inner.is_end_stream();
            if is_end && data.len() <= SMALL && self.held.is_empty() {
                return Poll::Ready(Some(Ok(Frame::data(data))));
            }
            if let Err(OverBudget) = self.charge.charge(data.len()) {
                continue;
            }
            if is_end {
                self.charge.complete();
            }
            self.held.extend_from_slice(&data);
            if is_end || self.held.len() >= PIECE {
                return Poll::Ready(Some(Ok(self.piece())));
            }
        }
        if self.charge.poll_yielded(cx.waker()) {
            self.held = Vec::new();
            return Poll::Ready(Some(Err(NoBodyRoom.into())));
        }
        let deadline = self.deadline.get_or_insert_with(|| Box::pin(sleep(PATIENCE)));
        deadline.as_mut().poll(cx).map(|()| Some(Err(Late.into())))
    }

    fn is_end_stream(&self) -> bool {
        self.held.is_empty() && self.inner.is_end_stream()
    }

    fn size_hint(&self) -> SizeHint {
        let held = u64::try_from(self.held.len()).unwrap_or(u64::MAX);
        let rest = self.inner.size_hint();
        let mut hint = SizeHint::new();
        hint.set_lower(rest.lower().saturating_add(held));
        if let Some(upper) = rest.upper() {
            hint.set_upper(upper.saturating_add(held));
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

    /// Pieces that are there at once; then nothing more comes, or the end.
    struct Pieces {
        left: VecDeque<Bytes>,
        ends: bool,
    }

    impl Body for Pieces {
        type Data = Bytes;
        type Error = BoxError;

        fn poll_frame(mut self: Pin<&mut Self>, _: &mut Context<'_>) -> Poll<Option<Result<Frame<Bytes>, BoxError>>> {
            match self.left.pop_front() {
                Some(piece) => Poll::Ready(Some(Ok(Frame::data(piece)))),
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

    fn body(budget: &Arc<BodyBudget>, pieces: Vec<Bytes>, ends: bool) -> Timely<Pieces> {
        let charge = budget.open([127, 0, 0, 1].into(), &http::HeaderMap::new());
        Timely::new(
            Pieces {
                left: pieces.into(),
                ends,
            },
            charge,
        )
    }

    /// RL8: a client that sends single bytes makes the gateway hold no more than it sent.
    #[tokio::test]
    async fn rl8_small_pieces_are_copied_out_of_the_buffers_they_came_in() {
        let buffer = Bytes::from(vec![b'x'; 8192]);
        let pieces = (0..100).map(|at| buffer.slice(at..=at)).collect();
        let mut timely = body(&budget(1 << 20), pieces, true);
        let data = timely.frame().await.unwrap().unwrap().into_data().unwrap();
        assert_eq!(data, vec![b'x'; 100]);
        assert!(timely.frame().await.is_none());
        drop(timely);
        assert!(buffer.is_unique(), "nothing refers to the buffer");
    }

    /// RL8: what gives way is answered with 503 and a time to come back, not as a body that broke off.
    #[tokio::test(start_paused = true)]
    async fn rl8_a_body_that_gives_way_is_answered_as_unavailable() {
        let budget = budget(200_000);
        let whole = |size| vec![Bytes::from(vec![b'x'; size])];
        let waits = tokio::spawn(read_body(axum::body::Body::new(body(&budget, whole(150_000), false))));
        tokio::time::sleep(Duration::from_secs(3)).await;
        let next = body(&budget, whole(100_000), true);
        assert_eq!(read_body(axum::body::Body::new(next)).await.unwrap().len(), 100_000);
        let refused = waits.await.unwrap().unwrap_err();
        assert_eq!(refused.code().status(), 503);
        let answer = axum::response::IntoResponse::into_response(refused);
        assert_eq!(answer.headers()["retry-after"], "1");
    }

    /// Spec/85 section 5.
    #[tokio::test(start_paused = true)]
    async fn edge_a_body_that_does_not_end_is_given_up_after_ten_seconds() {
        let timely = body(&budget(1 << 20), vec![Bytes::from_static(b"{")], false);
        let start = tokio::time::Instant::now();
        assert_eq!(
            read_body(axum::body::Body::new(timely))
                .await
                .unwrap_err()
                .code()
                .status(),
            400
        );
        assert_eq!(start.elapsed().as_secs(), 10);
    }
}
