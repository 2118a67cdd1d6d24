//! A request's body, which must be whole within 10 s (spec/85 section 5).

use axum::BoxError;
use bytes::Bytes;
use http_body::{Body, Frame, SizeHint};
use hyper::body::Incoming;
use std::{
    future::Future as _,
    pin::Pin,
    task::{Context, Poll},
    time::Duration,
};
use tokio::time::{Sleep, sleep};

/// From the first wait for the body to its end.
const PATIENCE: Duration = Duration::from_secs(10);

/// A body with a deadline. The timer starts with the first wait: a body that came with its headers needs none.
#[derive(Debug)]
pub(super) struct Timely {
    inner: Incoming,
    deadline: Option<Pin<Box<Sleep>>>,
}

/// The body did not come in time.
#[derive(Clone, Copy, Debug, thiserror::Error)]
#[error("the request's body did not arrive in time")]
struct Late;

impl Timely {
    pub(super) fn new(inner: Incoming) -> Self {
        Self { inner, deadline: None }
    }
}

impl Body for Timely {
    type Data = Bytes;
    type Error = BoxError;

    fn poll_frame(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Option<Result<Frame<Bytes>, BoxError>>> {
        if let Poll::Ready(frame) = Pin::new(&mut self.inner).poll_frame(cx) {
            return Poll::Ready(frame.map(|frame| frame.map_err(Into::into)));
        }
        let deadline = self.deadline.get_or_insert_with(|| Box::pin(sleep(PATIENCE)));
        deadline.as_mut().poll(cx).map(|()| Some(Err(Late.into())))
    }

    fn is_end_stream(&self) -> bool {
        self.inner.is_end_stream()
    }

    fn size_hint(&self) -> SizeHint {
        self.inner.size_hint()
    }
}
