//! Accepting connections, and ending them without losing an answer (spec/85 section 6.1).

use super::{
    body::Timely,
    patience::{Busy, Patient},
};
use arc_swap::ArcSwap;
use axum::{Router, body::Body, extract::ConnectInfo};
use http::{Request, StatusCode};
use hyper::{body::Incoming, server::conn::http1, service::service_fn};
use hyper_util::rt::TokioIo;
use std::{io, net::SocketAddr, pin::pin, sync::Arc, time::Duration};
use tokio::{
    net::{TcpListener, TcpStream},
    sync::Semaphore,
    time::sleep,
};
use tokio_util::{sync::CancellationToken, task::TaskTracker};
use tower::Service as _;

/// Connections at a time over all listeners; further ones wait in the kernel's queue.
const MAX_CONNECTIONS: usize = 16_384;
/// Bytes of all headers of a request; hyper takes a hundred of them.
const MAX_HEADER_BYTES: usize = 16 * 1024;
/// Rest after the system refused a connection, for instance because no file was left.
const BREATHER: Duration = Duration::from_millis(50);

/// What a listener serves; it may be exchanged while it does.
pub(super) type Served = Arc<ArcSwap<Router>>;

/// The listeners of this process and the connections they accepted.
#[derive(Clone, Debug)]
pub(super) struct Connections {
    open: TaskTracker,
    room: Arc<Semaphore>,
    /// Told first: nothing new is accepted, open connections end after the request they are at.
    end: CancellationToken,
}

impl Connections {
    pub(super) fn new(end: CancellationToken) -> Self {
        Self { open: TaskTracker::new(), room: Arc::new(Semaphore::new(MAX_CONNECTIONS)), end }
    }

    /// Serves on a listener until told to end.
    pub(super) fn serve(&self, listener: TcpListener, router: Served) {
        let this = self.clone();
        self.open.spawn(async move { this.accept(listener, router).await });
    }

    async fn accept(&self, listener: TcpListener, router: Served) {
        loop {
            let room = Arc::clone(&self.room).acquire_owned();
            // The semaphore is never closed.
            let Some(Ok(room)) = self.end.run_until_cancelled(room).await else { return };
            match self.end.run_until_cancelled(listener.accept()).await {
                None => return,
                Some(Ok((stream, peer))) => {
                    let (router, end) = (Arc::clone(&router), self.end.clone());
                    self.open.spawn(async move {
                        converse(stream, peer, router, end).await;
                        drop(room);
                    });
                }
                Some(Err(error)) => {
                    if !is_one_connections_own(&error) {
                        tracing::warn!(%error, "a connection could not be accepted");
                        sleep(BREATHER).await;
                    }
                }
            }
        }
    }

    /// Waits until every connection has ended.
    pub(super) async fn ended(&self) {
        self.open.close();
        self.open.wait().await;
    }

    /// How many are open, listeners included.
    pub(super) fn len(&self) -> usize {
        self.open.len()
    }
}

/// One connection, from its first request to its last.
async fn converse(stream: TcpStream, peer: SocketAddr, router: Served, end: CancellationToken) {
    // Answers are written whole; waiting for more to send would only delay them.
    let _ = stream.set_nodelay(true);
    let busy = Busy::default();
    let io = TokioIo::new(Patient::new(stream, busy.clone()));
    let service = service_fn(|request: Request<Incoming>| {
        busy.begin();
        let mut request = request.map(|body| Body::new(Timely::new(body)));
        request.extensions_mut().insert(ConnectInfo(peer));
        // Clones share the routes; a router is always ready.
        let answer = Router::clone(&router.load()).call(request);
        let busy = busy.clone();
        async move {
            // What a client sends without waiting for answers is there already: between two requests it is the others' turn.
            tokio::task::yield_now().await;
            let answer = answer.await;
            // What became a WebSocket keeps its own time.
            if !answer.as_ref().is_ok_and(|answer| answer.status() == StatusCode::SWITCHING_PROTOCOLS) {
                busy.end();
            }
            answer
        }
    });
    let mut connection = pin!(
        http1::Builder::new()
            .header_read_timeout(None)
            .max_header_size(MAX_HEADER_BYTES)
            .serve_connection(io, service)
            .with_upgrades()
    );
    let ended = tokio::select! {
        ended = connection.as_mut() => ended,
        () = end.cancelled() => {
            connection.as_mut().graceful_shutdown();
            connection.await
        }
    };
    // A client that leaves or stalls is no fault of ours.
    if let Err(error) = ended {
        tracing::debug!(%error, "a connection ended early");
    }
}

/// Errors of accepting that concern the one connection only.
fn is_one_connections_own(error: &io::Error) -> bool {
    matches!(
        error.kind(),
        io::ErrorKind::ConnectionAborted | io::ErrorKind::ConnectionReset | io::ErrorKind::ConnectionRefused
    )
}

#[cfg(test)]
mod tests {
    use super::*;
    use axum::routing::get;
    use std::sync::Mutex;
    use tokio::{
        io::{AsyncReadExt as _, AsyncWriteExt as _},
        task::yield_now,
    };

    /// HD36: requests that a client sends without waiting for answers take turns with everybody else's work.
    #[tokio::test(flavor = "current_thread")]
    async fn hd36_a_connection_full_of_requests_lets_others_have_their_turn() {
        const REQUESTS: usize = 12;
        let turns: Arc<Mutex<String>> = Arc::default();
        let log = Arc::clone(&turns);
        let handler = move || async move { log.lock().unwrap().push('r') };
        let router = Arc::new(ArcSwap::from_pointee(Router::new().route("/", get(handler))));
        let listener = TcpListener::bind(("127.0.0.1", 0)).await.unwrap();
        let address = listener.local_addr().unwrap();
        let end = CancellationToken::new();
        let connections = Connections::new(end.clone());
        connections.serve(listener, router);
        let mut client = TcpStream::connect(address).await.unwrap();
        let request = "GET / HTTP/1.1\r\nhost: gateway\r\n\r\n".repeat(REQUESTS);
        client.write_all(request.as_bytes()).await.unwrap();
        let log = Arc::clone(&turns);
        let others = tokio::spawn(async move {
            loop {
                log.lock().unwrap().push('o');
                yield_now().await;
            }
        });
        let mut answers = Vec::new();
        while answers.windows(4).filter(|bytes| bytes == b"200 ").count() < REQUESTS {
            let mut some = [0; 4096];
            let read = client.read(&mut some).await.unwrap();
            answers.extend_from_slice(&some[..read]);
        }
        others.abort();
        end.cancel();
        let turns = turns.lock().unwrap().clone();
        assert_eq!(turns.matches('r').count(), REQUESTS);
        // Each round runs both in either order.
        assert!(!turns.contains("rrr"), "{turns}");
    }
}
