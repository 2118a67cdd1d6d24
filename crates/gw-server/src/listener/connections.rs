//! Accepts connections, serves them, and closes them at shutdown without losing a response (spec/85 section 6.1).

use super::{
    body::TimedBody,
    body_budget::BodyBudget,
    quota::{ConnectionPermit, Quota, TrackedBody},
    timeout_io::TimeoutStream,
};
use arc_swap::ArcSwap;
use axum::{Router, body::Body, extract::ConnectInfo};
use http::{HeaderValue, Request, StatusCode, header};
use http_body::Body as _;
use hyper::{body::Incoming, server::conn::http1, service::service_fn};
use hyper_util::rt::TokioIo;
use std::{io, net::SocketAddr, pin::pin, sync::Arc, time::Duration};
use tokio::{
    net::{TcpListener, TcpStream},
    time::sleep,
};
use tokio_util::{sync::CancellationToken, task::TaskTracker};
use tower::Service as _;

/// Size limit for all headers of a request, in bytes; hyper limits their number to one hundred.
const MAX_HEADER_BYTES: usize = 16 * 1024;
/// Size of hyper's read buffer and write buffer of a connection, in bytes. No budget counts these bytes.
const MAX_BUFFER: usize = 64 * 1024;
/// Pause after a failed accept, for instance because no file descriptor was available.
const ACCEPT_RETRY_DELAY: Duration = Duration::from_millis(50);

/// The router of a listener; it may be replaced while the listener serves.
pub(crate) type SwappableRouter = Arc<ArcSwap<Router>>;

/// The listeners of this process and the connections they accepted.
#[derive(Clone, Debug)]
pub(crate) struct Connections {
    open: TaskTracker,
    /// Once cancelled, no connection is accepted, and open connections close after their current request.
    shutdown: CancellationToken,
}

impl Connections {
    pub(crate) fn new(shutdown: CancellationToken) -> Self {
        Self {
            open: TaskTracker::new(),
            shutdown,
        }
    }

    /// Serves a listener in a task until shutdown, within the limits of `quota` and `bodies`.
    pub(crate) fn serve(
        &self,
        listener: TcpListener,
        router: SwappableRouter,
        quota: Arc<Quota>,
        bodies: Arc<BodyBudget>,
    ) {
        let this = self.clone();
        self.open
            .spawn(async move { this.accept(listener, router, quota, bodies).await });
    }

    async fn accept(&self, listener: TcpListener, router: SwappableRouter, quota: Arc<Quota>, bodies: Arc<BodyBudget>) {
        loop {
            match self.shutdown.run_until_cancelled(listener.accept()).await {
                None => return,
                Some(Ok((stream, peer))) => {
                    // While the quota waits, further connections wait in the kernel's queue.
                    let Some(permit) = self.shutdown.run_until_cancelled(quota.acquire(peer.ip())).await else {
                        return;
                    };
                    if let Some(permit) = permit {
                        let (router, bodies) = (Arc::clone(&router), Arc::clone(&bodies));
                        self.open.spawn(serve_connection(
                            stream,
                            peer,
                            permit,
                            router,
                            bodies,
                            self.shutdown.clone(),
                        ));
                    }
                }
                Some(Err(error)) => {
                    if !is_connection_error(&error) {
                        tracing::warn!(%error, "a connection could not be accepted; retrying");
                        sleep(ACCEPT_RETRY_DELAY).await;
                    }
                }
            }
        }
    }

    /// Waits until all listeners and connections are closed. Call it after shutdown was requested.
    pub(crate) async fn closed(&self) {
        self.open.close();
        self.open.wait().await;
    }

    /// The number of open connections and listeners.
    pub(crate) fn len(&self) -> usize {
        self.open.len()
    }
}

/// Serves one connection until it is closed.
async fn serve_connection(
    stream: TcpStream,
    peer: SocketAddr,
    permit: ConnectionPermit,
    router: SwappableRouter,
    bodies: Arc<BodyBudget>,
    shutdown: CancellationToken,
) {
    // Responses are written in one piece, so Nagle's algorithm would only delay them.
    let _ = stream.set_nodelay(true);
    let activity = Arc::clone(permit.activity());
    let io = TokioIo::new(TimeoutStream::new(stream, permit));
    let service = service_fn(|request: Request<Incoming>| {
        activity.begin();
        // The charge lives until the request is answered. Most requests have no body and need none.
        let charge = (!request.body().is_end_stream()).then(|| bodies.open(peer.ip(), request.headers()));
        let mut request = request.map(|body| match &charge {
            Some(charge) => Body::new(TimedBody::new(body, Arc::clone(charge))),
            None => Body::empty(),
        });
        request.extensions_mut().insert(ConnectInfo(peer));
        // A router needs no `poll_ready`. Cloning it is cheap: clones share the routes.
        let response = Router::clone(&router.load()).call(request);
        let activity = Arc::clone(&activity);
        async move {
            // A client may pipeline requests. Other tasks get a turn between two requests of one connection.
            tokio::task::yield_now().await;
            response.await.map(|mut response| {
                if charge.is_some_and(|charge| charge.has_yielded()) {
                    // The rest of the body is not read, so the connection cannot be used again.
                    response
                        .headers_mut()
                        .insert(header::CONNECTION, HeaderValue::from_static("close"));
                }
                // A WebSocket has its own timeouts and is never idle.
                let activity = (response.status() != StatusCode::SWITCHING_PROTOCOLS).then_some(activity);
                response.map(|body| TrackedBody::new(body, activity))
            })
        }
    });
    let mut connection = pin!(
        http1::Builder::new()
            .header_read_timeout(None)
            .max_header_size(MAX_HEADER_BYTES)
            .max_buf_size(MAX_BUFFER)
            .serve_connection(io, service)
            .with_upgrades()
    );
    let result = tokio::select! {
        result = connection.as_mut() => result,
        () = activity.yield_requested() => {
            // The permit is already taken back. A request that has arrived in the meantime is still answered.
            if !activity.is_busy() {
                return;
            }
            connection.as_mut().graceful_shutdown();
            connection.await
        }
        () = shutdown.cancelled() => {
            connection.as_mut().graceful_shutdown();
            connection.await
        }
    };
    // Clients that disconnect or stall are normal, so this is no warning.
    if let Err(error) = result {
        tracing::debug!(%error, "a connection was closed early");
    }
}

/// Whether an accept error concerns only the one connection, so that no pause is needed.
fn is_connection_error(error: &io::Error) -> bool {
    matches!(
        error.kind(),
        io::ErrorKind::ConnectionAborted | io::ErrorKind::ConnectionReset | io::ErrorKind::ConnectionRefused
    )
}

#[cfg(test)]
mod tests {
    use super::{
        super::{body_budget::BodyLimits, quota::ConnectionLimits},
        *,
    };
    use axum::routing::{get, post};
    use gw_http::{TrustedProxies, read_body};
    use std::sync::Mutex;
    use tokio::{
        io::{AsyncReadExt as _, AsyncWriteExt as _},
        net::TcpSocket,
        sync::{Notify, Semaphore},
        task::yield_now,
    };
    use tokio_util::sync::DropGuard;

    /// HD36: pipelined requests of one client alternate with the work of other tasks.
    #[tokio::test(flavor = "current_thread")]
    async fn hd36_pipelined_requests_do_not_starve_other_tasks() {
        const REQUESTS: usize = 12;
        let turns: Arc<Mutex<String>> = Arc::default();
        let log = Arc::clone(&turns);
        let handler = move || async move { log.lock().unwrap().push('r') };
        let router = Arc::new(ArcSwap::from_pointee(Router::new().route("/", get(handler))));
        let listener = TcpListener::bind(("127.0.0.1", 0)).await.unwrap();
        let address = listener.local_addr().unwrap();
        let end = CancellationToken::new();
        let connections = Connections::new(end.clone());
        connections.serve(listener, router, quota(100, 100), bodies(BodyLimits::PUBLIC));
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
        let mut responses = Vec::new();
        while responses.windows(4).filter(|bytes| bytes == b"200 ").count() < REQUESTS {
            let mut buffer = [0; 4096];
            let read = client.read(&mut buffer).await.unwrap();
            responses.extend_from_slice(&buffer[..read]);
        }
        others.abort();
        end.cancel();
        let turns = turns.lock().unwrap().clone();
        assert_eq!(turns.matches('r').count(), REQUESTS);
        // Each scheduler round runs both tasks, in either order.
        assert!(!turns.contains("rrr"), "{turns}");
    }

    fn bodies(limits: BodyLimits) -> Arc<BodyBudget> {
        BodyBudget::new("test", limits, TrustedProxies::default())
    }

    /// Two mebibytes for one address, and four times as much for the listener.
    const BODIES: BodyLimits = BodyLimits {
        total: 8 << 20,
        per_address: 2 << 20,
    };

    fn quota(total: usize, per_address: usize) -> Arc<Quota> {
        Quota::new(
            "test",
            ConnectionLimits { total, per_address },
            TrustedProxies::default(),
        )
    }

    const REQUEST: &[u8] = b"GET / HTTP/1.1\r\nhost: gateway\r\n\r\n";

    /// A gateway whose `/` answers at once, `/slow` once it is notified, `/large` with more bytes than socket buffers
    /// hold, and `/echo` with the length of the body.
    struct Gateway {
        public: SocketAddr,
        internal: SocketAddr,
        slow: Arc<Notify>,
        started: Arc<Semaphore>,
        _end: DropGuard,
    }

    const LARGE: usize = 32 << 20;

    impl Gateway {
        async fn start(public: Arc<Quota>, internal: Arc<Quota>) -> Self {
            let (slow, started) = (Arc::new(Notify::new()), Arc::new(Semaphore::new(0)));
            let slow_handler = {
                let (slow, started) = (Arc::clone(&slow), Arc::clone(&started));
                move || {
                    let (slow, started) = (Arc::clone(&slow), Arc::clone(&started));
                    async move {
                        started.add_permits(1);
                        slow.notified().await;
                        "slow"
                    }
                }
            };
            let large = || async { vec![b'x'; LARGE] };
            let echo = |body: Body| async { read_body(body).await.map(|body| format!("{} here", body.len())) };
            let routes = Router::new()
                .route("/", get(|| async { "here" }))
                .route("/slow", get(slow_handler))
                .route("/large", get(large))
                .route("/echo", post(echo));
            let routes = Arc::new(ArcSwap::from_pointee(routes));
            let end = CancellationToken::new();
            let connections = Connections::new(end.clone());
            let mut addresses = Vec::new();
            for quota in [public, internal] {
                let listener = TcpListener::bind(("127.0.0.1", 0)).await.unwrap();
                addresses.push(listener.local_addr().unwrap());
                connections.serve(listener, Arc::clone(&routes), quota, bodies(BODIES));
            }
            Self {
                public: addresses[0],
                internal: addresses[1],
                slow,
                started,
                _end: end.drop_guard(),
            }
        }

        /// A connection from 127.`a`.`b`.`c`.
        async fn connect(&self, [a, b, c]: [u8; 3]) -> TcpStream {
            let socket = TcpSocket::new_v4().unwrap();
            socket.bind(SocketAddr::from(([127, a, b, c], 0))).unwrap();
            socket.connect(self.public).await.unwrap()
        }

        async fn slow(&self, address: [u8; 3]) -> TcpStream {
            let mut client = self.connect(address).await;
            client
                .write_all(b"GET /slow HTTP/1.1\r\nhost: gateway\r\n\r\n")
                .await
                .unwrap();
            self.started.acquire().await.unwrap().forget();
            client
        }
    }

    /// Sends a request and reads the response. Returns whether it succeeded.
    async fn request(client: &mut TcpStream) -> bool {
        client.write_all(REQUEST).await.is_ok() && read_until(client, "here").await
    }

    async fn read_until(client: &mut TcpStream, end: &str) -> bool {
        let mut response = Vec::new();
        while !response.ends_with(end.as_bytes()) {
            let mut buffer = [0; 4096];
            match client.read(&mut buffer).await {
                Ok(0) | Err(_) => return false,
                Ok(count) => response.extend_from_slice(&buffer[..count]),
            }
        }
        response.starts_with(b"HTTP/1.1 200 OK")
    }

    /// Waits for a byte or the end. Returns whether the gateway closed the connection.
    async fn is_closed(client: &mut TcpStream) -> bool {
        let mut byte = [0];
        matches!(client.read(&mut byte).await, Ok(0) | Err(_))
    }

    fn is_open(client: &TcpStream) -> bool {
        let mut byte = [0];
        matches!(client.try_read(&mut byte), Err(error) if error.kind() == io::ErrorKind::WouldBlock)
    }

    /// Spec/85 section 5, RL7: one host with thousands of connections locks out neither other clients nor the operator.
    #[tokio::test]
    async fn rl7_one_host_with_thousands_of_connections_locks_nobody_out() {
        let gateway = Gateway::start(quota(2000, 300), quota(10, 10)).await;
        let mut slow = gateway.slow([0, 0, 2]).await;
        let mut bystander = gateway.connect([0, 9, 9]).await;
        assert!(request(&mut bystander).await);
        let mut host = Vec::new();
        for _ in 0..2500 {
            host.push(gateway.connect([0, 0, 2]).await);
        }
        // The host's own oldest connection yielded. Neither its busy connection nor those of other hosts did.
        assert!(is_closed(&mut host[0]).await);
        assert!(request(host.last_mut().unwrap()).await);
        assert!(request(&mut bystander).await);
        let mut newcomer = gateway.connect([0, 7, 7]).await;
        assert!(request(&mut newcomer).await);
        let mut operator = TcpStream::connect(gateway.internal).await.unwrap();
        assert!(request(&mut operator).await);
        gateway.slow.notify_one();
        assert!(read_until(&mut slow, "slow").await);
    }

    /// Many hosts fill the listener: the longest idle connection of the fullest network yields, and never a busy one.
    #[tokio::test]
    async fn rl7_a_full_listener_accepts_new_clients_and_the_internal_one_is_not_affected() {
        let gateway = Gateway::start(quota(1000, 300), quota(10, 10)).await;
        let mut slow = gateway.slow([1, 0, 1]).await;
        let mut crowd = Vec::new();
        for number in 0..1100_u16 {
            let [_, low] = number.to_be_bytes();
            // Eight addresses of one /24, each below its limit.
            crowd.push(gateway.connect([2, 0, low % 8 + 1]).await);
        }
        let mut quiet = gateway.connect([3, 0, 1]).await;
        assert!(request(&mut quiet).await);
        let mut newcomer = gateway.connect([4, 0, 1]).await;
        assert!(request(&mut newcomer).await && is_open(&quiet));
        assert!(is_closed(&mut crowd[0]).await);
        assert!(is_open(crowd.last().unwrap()));
        let mut operator = TcpStream::connect(gateway.internal).await.unwrap();
        assert!(request(&mut operator).await);
        gateway.slow.notify_one();
        assert!(read_until(&mut slow, "slow").await);
    }

    /// A connection with incomplete headers counts as idle.
    #[tokio::test]
    async fn rl7_the_oldest_idle_connection_yields_even_with_half_a_request() {
        let gateway = Gateway::start(quota(3, 3), quota(1, 1)).await;
        let mut first = gateway.connect([0, 0, 2]).await;
        first.write_all(b"GET / HT").await.unwrap();
        let mut second = gateway.connect([0, 0, 2]).await;
        assert!(request(&mut second).await);
        let mut third = gateway.connect([0, 0, 2]).await;
        assert!(request(&mut third).await && request(&mut second).await);
        let mut fourth = gateway.connect([0, 0, 2]).await;
        assert!(request(&mut fourth).await);
        assert!(is_closed(&mut first).await);
        assert!(is_open(&second) && is_open(&third));
        let mut fifth = gateway.connect([0, 0, 2]).await;
        assert!(request(&mut fifth).await);
        assert!(
            is_closed(&mut third).await && is_open(&second),
            "the connection that was idle longest yields"
        );
    }

    /// A response that the client reads slowly is not cut off.
    #[tokio::test]
    async fn rl7_a_response_that_is_being_written_is_not_cut_off() {
        let gateway = Gateway::start(quota(10, 1), quota(1, 1)).await;
        let mut reader = gateway.connect([0, 0, 2]).await;
        reader
            .write_all(b"GET /large HTTP/1.1\r\nhost: gateway\r\n\r\n")
            .await
            .unwrap();
        let mut head = [0; 1024];
        let mut read = reader.read(&mut head).await.unwrap();
        // The only connection of the address is busy, so the second one is refused.
        let mut refused = gateway.connect([0, 0, 2]).await;
        assert!(is_closed(&mut refused).await);
        let mut buffer = vec![0; 1 << 20];
        while read < LARGE {
            let count = reader.read(&mut buffer).await.unwrap();
            assert!(count > 0, "cut after {read} bytes");
            read += count;
        }
        // Once the response is read, the connection is idle and yields.
        let mut next = gateway.connect([0, 0, 2]).await;
        while !request(&mut next).await {
            next = gateway.connect([0, 0, 2]).await;
        }
        assert!(is_closed(&mut reader).await);
    }

    /// Sends a request with a body of one mebibyte, except its last byte.
    async fn send_incomplete_body(client: &mut TcpStream) {
        let head = "POST /echo HTTP/1.1\r\nhost: gateway\r\ncontent-length: 1048576\r\n\r\n";
        client.write_all(head.as_bytes()).await.unwrap();
        // The gateway may close the connection at any time.
        let _ = client.write_all(&vec![b'x'; (1 << 20) - 1]).await;
    }

    async fn read_to_end(client: &mut TcpStream) -> String {
        let (mut response, mut buffer) = (Vec::new(), [0; 4096]);
        while let Ok(count @ 1..) = client.read(&mut buffer).await {
            response.extend_from_slice(&buffer[..count]);
        }
        String::from_utf8_lossy(&response).to_lowercase()
    }

    /// RL8: the incomplete bodies of one host stay within its budget. Bodies of other hosts are not affected, and a
    /// body that yields is answered with 503.
    #[tokio::test]
    async fn rl8_incomplete_bodies_have_a_budget() {
        let gateway = Gateway::start(quota(2000, 300), quota(10, 10)).await;
        let mut bystander = gateway.connect([0, 9, 9]).await;
        send_incomplete_body(&mut bystander).await;
        let mut host = Vec::new();
        for _ in 0..8 {
            let mut client = gateway.connect([0, 0, 2]).await;
            send_incomplete_body(&mut client).await;
            host.push(client);
        }
        let mut rejected = 0;
        // At most two bodies fit. The others are answered before the body deadline.
        for client in &mut host {
            let response = tokio::time::timeout(Duration::from_secs(3), read_to_end(client)).await;
            if let Ok(response) = response {
                // A client that was still sending when the connection closed may see nothing.
                assert!(
                    response.is_empty() || response.starts_with("http/1.1 503 "),
                    "{response}"
                );
                if !response.is_empty() {
                    assert!(
                        response.contains("retry-after: 1\r\n") && response.contains("connection: close\r\n"),
                        "{response}"
                    );
                }
                rejected += 1;
            }
        }
        assert!(rejected >= 6, "{rejected} of 8 were rejected");
        bystander.write_all(b"x").await.unwrap();
        assert!(
            read_until(&mut bystander, "1048576 here").await,
            "the body of another host is not affected"
        );
        let mut small = gateway.connect([0, 0, 2]).await;
        small
            .write_all(b"POST /echo HTTP/1.1\r\nhost: gateway\r\ncontent-length: 1\r\n\r\nx")
            .await
            .unwrap();
        assert!(read_until(&mut small, "1 here").await);
    }
}
