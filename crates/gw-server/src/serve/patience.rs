//! How long a connection is waited for (spec/85 section 5): whole headers within 2 s of their first byte, the next
//! request within 60 s, a stalled write for 60 s.
//!
//! Kept here rather than with hyper's own header timeout, which counts an idle connection as a slow header and arms a
//! timer for each request. Here a request costs two stores; the one timer per connection is checked when it fires.

use super::quota::Seat;
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
const HEADERS: Duration = Duration::from_secs(2);
/// Between two requests.
const IDLE: Duration = Duration::from_secs(60);
/// For a write that makes no progress.
const STALLED: Duration = Duration::from_secs(60);

/// A connection that ends when it is waited for in vain.
#[derive(Debug)]
pub(super) struct Patient<T> {
    inner: T,
    /// Its place among the connections, and what it is at.
    seat: Seat,
    /// Since when nothing, or only part of a request's headers, has come.
    waiting: Option<Waiting>,
    reading: Pin<Box<Sleep>>,
    stalled: Option<Pin<Box<Sleep>>>,
}

#[derive(Clone, Copy, Debug)]
struct Waiting {
    until: Instant,
    for_headers: bool,
}

impl<T> Patient<T> {
    pub(super) fn new(inner: T, seat: Seat) -> Self {
        let now = Instant::now();
        let waiting = Some(Waiting {
            until: now + IDLE,
            for_headers: false,
        });
        Self {
            inner,
            seat,
            waiting,
            reading: Box::pin(sleep_until(now + IDLE)),
            stalled: None,
        }
    }

    /// Notes that bytes came.
    fn fed(&mut self) {
        let begun = self.waiting.is_some_and(|waiting| waiting.for_headers);
        if !self.seat.activity().is_busy() && !begun {
            let until = Instant::now() + HEADERS;
            self.waiting = Some(Waiting {
                until,
                for_headers: true,
            });
        }
    }

    /// Fails once the wait has been too long; otherwise arranges to be woken when it would be.
    fn poll_patience(&mut self, cx: &mut Context<'_>) -> Poll<io::Error> {
        if self.seat.activity().is_busy() {
            self.waiting = None;
            return Poll::Pending;
        }
        let waiting = *self.waiting.get_or_insert_with(|| Waiting {
            until: Instant::now() + IDLE,
            for_headers: false,
        });
        // An earlier deadline pulls the timer in; a later one lets it fire and be set anew.
        if self.reading.deadline() > waiting.until {
            self.reading.as_mut().reset(waiting.until);
        }
        while self.reading.as_mut().poll(cx).is_ready() {
            if Instant::now() >= waiting.until {
                return Poll::Ready(io::ErrorKind::TimedOut.into());
            }
            self.reading.as_mut().reset(waiting.until);
        }
        Poll::Pending
    }

    /// Fails once a write has stalled for too long.
    fn poll_progress<R>(&mut self, cx: &mut Context<'_>, written: Poll<io::Result<R>>) -> Poll<io::Result<R>> {
        if written.is_ready() {
            self.stalled = None;
            return written;
        }
        let stalled = self
            .stalled
            .get_or_insert_with(|| Box::pin(sleep_until(Instant::now() + STALLED)));
        ready!(stalled.as_mut().poll(cx));
        Poll::Ready(Err(io::ErrorKind::TimedOut.into()))
    }
}

impl<T: AsyncRead + Unpin> AsyncRead for Patient<T> {
    fn poll_read(mut self: Pin<&mut Self>, cx: &mut Context<'_>, buffer: &mut ReadBuf<'_>) -> Poll<io::Result<()>> {
        match Pin::new(&mut self.inner).poll_read(cx, buffer) {
            Poll::Ready(read) => {
                self.fed();
                Poll::Ready(read)
            }
            Poll::Pending => self.poll_patience(cx).map(Err),
        }
    }
}

impl<T: AsyncWrite + Unpin> AsyncWrite for Patient<T> {
    fn poll_write(mut self: Pin<&mut Self>, cx: &mut Context<'_>, bytes: &[u8]) -> Poll<io::Result<usize>> {
        let written = Pin::new(&mut self.inner).poll_write(cx, bytes);
        self.poll_progress(cx, written)
    }

    fn poll_write_vectored(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        parts: &[io::IoSlice<'_>],
    ) -> Poll<io::Result<usize>> {
        let written = Pin::new(&mut self.inner).poll_write_vectored(cx, parts);
        self.poll_progress(cx, written)
    }

    fn is_write_vectored(&self) -> bool {
        self.inner.is_write_vectored()
    }

    fn poll_flush(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        let flushed = Pin::new(&mut self.inner).poll_flush(cx);
        // Nobody may read until something comes: the wait for that begins here.
        if matches!(flushed, Poll::Ready(Ok(()))) && self.seat.activity().flushed() {
            let _ = self.poll_patience(cx);
        }
        self.poll_progress(cx, flushed)
    }

    fn poll_shutdown(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.inner).poll_shutdown(cx)
    }
}

#[cfg(test)]
mod tests {
    use super::{
        super::quota::{Activity, Noting},
        *,
    };
    use std::sync::Arc;
    use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _, DuplexStream, duplex};

    fn pair() -> (DuplexStream, Patient<DuplexStream>, Arc<Activity>) {
        let (client, server) = duplex(64);
        let seat = Activity::alone();
        let activity = Arc::clone(seat.activity());
        (client, Patient::new(server, seat), activity)
    }

    /// How long a read waits until it gives up; the clock runs by itself whenever everything waits.
    async fn gives_up_after(connection: &mut Patient<DuplexStream>) -> u64 {
        let start = Instant::now();
        let mut byte = [0u8; 1];
        let read = connection.read(&mut byte).await;
        assert_eq!(read.expect_err("nothing comes").kind(), io::ErrorKind::TimedOut);
        start.elapsed().as_secs()
    }

    #[tokio::test(start_paused = true)]
    async fn edge_an_idle_connection_ends_after_a_minute() {
        let (_client, mut connection, _) = pair();
        assert_eq!(gives_up_after(&mut connection).await, 60);
    }

    #[tokio::test(start_paused = true)]
    async fn edge_headers_must_be_whole_within_two_seconds() {
        let (mut client, mut connection, _) = pair();
        client.write_all(b"G").await.expect("sent");
        let mut byte = [0u8; 1];
        connection.read_exact(&mut byte).await.expect("read");
        tokio::time::sleep(Duration::from_secs(1)).await;
        client.write_all(b"E").await.expect("sent");
        connection.read_exact(&mut byte).await.expect("read");
        assert_eq!(
            gives_up_after(&mut connection).await,
            1,
            "another byte does not start the time anew"
        );
    }

    #[tokio::test(start_paused = true)]
    async fn edge_a_request_being_answered_is_not_cut() {
        let (mut client, mut connection, busy) = pair();
        client.write_all(b"G").await.expect("sent");
        let mut byte = [0u8; 1];
        connection.read_exact(&mut byte).await.expect("read");
        busy.begin();
        let waited = tokio::time::timeout(Duration::from_secs(600), connection.read(&mut byte)).await;
        assert!(waited.is_err(), "still open after ten minutes");
        drop(Noting::new((), Some(busy)));
        let waited = tokio::time::timeout(Duration::from_secs(600), connection.read(&mut byte)).await;
        assert!(waited.is_err(), "nor while its answer is written");
        connection.flush().await.expect("written");
        assert_eq!(gives_up_after(&mut connection).await, 60);
    }

    #[tokio::test(start_paused = true)]
    async fn edge_a_stalled_write_ends() {
        let (_client, mut connection, _) = pair();
        let start = Instant::now();
        let written = connection.write_all(&[0u8; 65]).await;
        assert_eq!(written.expect_err("nobody reads").kind(), io::ErrorKind::TimedOut);
        assert_eq!(start.elapsed().as_secs(), 60);
    }
}
