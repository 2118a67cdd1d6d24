//! Timeouts of a connection (spec/85 section 5): complete headers within 2 s after their first byte, the next request
//! within 60 s, and at most 60 s for a stalled write.
//!
//! hyper's own header timeout is not used: it treats an idle connection as one with slow headers, and arms a timer for
//! each request. Here a request costs two stores, and the deadline is checked only when the connection's one timer
//! fires.

use super::quota::ConnectionPermit;
use std::{
    future::Future as _,
    io,
    pin::Pin,
    task::{Context, Poll, ready},
    time::Duration,
};
use tokio::{
    io::{AsyncRead, AsyncWrite, ReadBuf},
    time::{Instant, Sleep, sleep_until},
};

/// From the first byte of a request to the end of its headers.
const HEADER_TIMEOUT: Duration = Duration::from_secs(2);
/// Between two requests.
const IDLE_TIMEOUT: Duration = Duration::from_secs(60);
/// For a write that makes no progress.
const WRITE_TIMEOUT: Duration = Duration::from_secs(60);

/// Stream wrapper that enforces header, idle and write timeouts.
#[derive(Debug)]
pub(super) struct TimeoutStream<T> {
    inner: T,
    /// The permit of this connection, with the state of its current request.
    permit: ConnectionPermit,
    /// The read deadline, while no request or only part of its headers has arrived.
    waiting: Option<Waiting>,
    /// The timer of the read deadline. It may fire early.
    reading: Pin<Box<Sleep>>,
    /// The timer of a write that makes no progress.
    stalled: Option<Pin<Box<Sleep>>>,
}

#[derive(Clone, Copy, Debug)]
struct Waiting {
    deadline: Instant,
    for_headers: bool,
}

impl<T> TimeoutStream<T> {
    pub(super) fn new(inner: T, permit: ConnectionPermit) -> Self {
        let now = Instant::now();
        let waiting = Some(Waiting {
            deadline: now + IDLE_TIMEOUT,
            for_headers: false,
        });
        Self {
            inner,
            permit,
            waiting,
            reading: Box::pin(sleep_until(now + IDLE_TIMEOUT)),
            stalled: None,
        }
    }

    /// Starts the header deadline when the first bytes of a request arrive.
    fn on_bytes_read(&mut self) {
        let headers_started = self.waiting.is_some_and(|waiting| waiting.for_headers);
        if !self.permit.activity().is_busy() && !headers_started {
            let deadline = Instant::now() + HEADER_TIMEOUT;
            self.waiting = Some(Waiting {
                deadline,
                for_headers: true,
            });
        }
    }

    /// Returns a timeout error after the read deadline; before it, registers the task to be woken at the deadline.
    fn poll_read_deadline(&mut self, cx: &mut Context<'_>) -> Poll<io::Error> {
        if self.permit.activity().is_busy() {
            self.waiting = None;
            return Poll::Pending;
        }
        let waiting = *self.waiting.get_or_insert_with(|| Waiting {
            deadline: Instant::now() + IDLE_TIMEOUT,
            for_headers: false,
        });
        // Only an earlier deadline resets the timer. For a later one, the timer fires early and is set again.
        if self.reading.deadline() > waiting.deadline {
            self.reading.as_mut().reset(waiting.deadline);
        }
        while self.reading.as_mut().poll(cx).is_ready() {
            if Instant::now() >= waiting.deadline {
                return Poll::Ready(io::ErrorKind::TimedOut.into());
            }
            self.reading.as_mut().reset(waiting.deadline);
        }
        Poll::Pending
    }

    /// Turns a pending write into a timeout error once it has stalled for [`WRITE_TIMEOUT`].
    fn poll_write_deadline<R>(&mut self, cx: &mut Context<'_>, written: Poll<io::Result<R>>) -> Poll<io::Result<R>> {
        if written.is_ready() {
            self.stalled = None;
            return written;
        }
        let stalled = self
            .stalled
            .get_or_insert_with(|| Box::pin(sleep_until(Instant::now() + WRITE_TIMEOUT)));
        ready!(stalled.as_mut().poll(cx));
        Poll::Ready(Err(io::ErrorKind::TimedOut.into()))
    }
}

impl<T: AsyncRead + Unpin> AsyncRead for TimeoutStream<T> {
    fn poll_read(mut self: Pin<&mut Self>, cx: &mut Context<'_>, buffer: &mut ReadBuf<'_>) -> Poll<io::Result<()>> {
        match Pin::new(&mut self.inner).poll_read(cx, buffer) {
            Poll::Ready(read) => {
                self.on_bytes_read();
                Poll::Ready(read)
            }
            Poll::Pending => self.poll_read_deadline(cx).map(Err),
        }
    }
}

impl<T: AsyncWrite + Unpin> AsyncWrite for TimeoutStream<T> {
    fn poll_write(mut self: Pin<&mut Self>, cx: &mut Context<'_>, bytes: &[u8]) -> Poll<io::Result<usize>> {
        let written = Pin::new(&mut self.inner).poll_write(cx, bytes);
        self.poll_write_deadline(cx, written)
    }

    fn poll_write_vectored(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        parts: &[io::IoSlice<'_>],
    ) -> Poll<io::Result<usize>> {
        let written = Pin::new(&mut self.inner).poll_write_vectored(cx, parts);
        self.poll_write_deadline(cx, written)
    }

    fn is_write_vectored(&self) -> bool {
        self.inner.is_write_vectored()
    }

    fn poll_flush(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        let flushed = Pin::new(&mut self.inner).poll_flush(cx);
        // The response is written. hyper may not poll for reading yet, so the idle deadline must start here.
        if matches!(flushed, Poll::Ready(Ok(()))) && self.permit.activity().flushed() {
            let _ = self.poll_read_deadline(cx);
        }
        self.poll_write_deadline(cx, flushed)
    }

    fn poll_shutdown(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.inner).poll_shutdown(cx)
    }
}

#[cfg(test)]
mod tests {
    use super::{
        super::quota::{Activity, TrackedBody},
        *,
    };
    use std::sync::Arc;
    use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _, DuplexStream, duplex};

    fn pair() -> (DuplexStream, TimeoutStream<DuplexStream>, Arc<Activity>) {
        let (client, server) = duplex(64);
        let permit = Activity::single();
        let activity = Arc::clone(permit.activity());
        (client, TimeoutStream::new(server, permit), activity)
    }

    /// The seconds until a read times out. With a paused clock, tokio advances the time while all tasks wait.
    async fn seconds_until_timeout(connection: &mut TimeoutStream<DuplexStream>) -> u64 {
        let start = Instant::now();
        let mut byte = [0u8; 1];
        let read = connection.read(&mut byte).await;
        assert_eq!(read.expect_err("nothing comes").kind(), io::ErrorKind::TimedOut);
        start.elapsed().as_secs()
    }

    #[tokio::test(start_paused = true)]
    async fn edge_an_idle_connection_times_out_after_a_minute() {
        let (_client, mut connection, _) = pair();
        assert_eq!(seconds_until_timeout(&mut connection).await, 60);
    }

    #[tokio::test(start_paused = true)]
    async fn edge_headers_must_be_complete_within_two_seconds() {
        let (mut client, mut connection, _) = pair();
        client.write_all(b"G").await.expect("sent");
        let mut byte = [0u8; 1];
        connection.read_exact(&mut byte).await.expect("read");
        tokio::time::sleep(Duration::from_secs(1)).await;
        client.write_all(b"E").await.expect("sent");
        connection.read_exact(&mut byte).await.expect("read");
        assert_eq!(
            seconds_until_timeout(&mut connection).await,
            1,
            "another byte does not restart the deadline"
        );
    }

    #[tokio::test(start_paused = true)]
    async fn edge_a_busy_connection_has_no_read_deadline() {
        let (mut client, mut connection, activity) = pair();
        client.write_all(b"G").await.expect("sent");
        let mut byte = [0u8; 1];
        connection.read_exact(&mut byte).await.expect("read");
        activity.begin();
        let waited = tokio::time::timeout(Duration::from_secs(600), connection.read(&mut byte)).await;
        assert!(waited.is_err(), "still open after ten minutes");
        drop(TrackedBody::new((), Some(activity)));
        let waited = tokio::time::timeout(Duration::from_secs(600), connection.read(&mut byte)).await;
        assert!(waited.is_err(), "still open while the response is written");
        connection.flush().await.expect("written");
        assert_eq!(seconds_until_timeout(&mut connection).await, 60);
    }

    #[tokio::test(start_paused = true)]
    async fn edge_a_stalled_write_times_out() {
        let (_client, mut connection, _) = pair();
        let start = Instant::now();
        let written = connection.write_all(&[0u8; 65]).await;
        assert_eq!(written.expect_err("nobody reads").kind(), io::ErrorKind::TimedOut);
        assert_eq!(start.elapsed().as_secs(), 60);
    }
}
