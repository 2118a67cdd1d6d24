//! Accepting connections, and ending them without losing an answer (spec/85 section 6.1).

use super::{
    body::Timely,
    body_budget::BodyBudget,
    patience::Patient,
    quota::{Noting, Quota, Seat},
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

/// Bytes of all headers of a request; hyper takes a hundred of them.
const MAX_HEADER_BYTES: usize = 16 * 1024;
/// Bytes that hyper reads ahead of whoever reads a body, and holds back of an answer: nothing else counts them.
const MAX_BUFFER: usize = 64 * 1024;
/// Rest after the system refused a connection, for instance because no file was left.
const BREATHER: Duration = Duration::from_millis(50);

/// What a listener serves; it may be exchanged while it does.
pub(super) type Served = Arc<ArcSwap<Router>>;

/// The listeners of this process and the connections they accepted.
#[derive(Clone, Debug)]
pub(super) struct Connections {
    open: TaskTracker,
    /// Told first: nothing new is accepted, open connections end after the request they are at.
    end: CancellationToken,
}

impl Connections {
    pub(super) fn new(end: CancellationToken) -> Self {
        Self {
            open: TaskTracker::new(),
            end,
        }
    }

    /// Serves on a listener until told to end, as many connections as its quota has places for.
    pub(super) fn serve(&self, listener: TcpListener, router: Served, quota: Arc<Quota>, bodies: Arc<BodyBudget>) {
        let this = self.clone();
        self.open
            .spawn(async move { this.accept(listener, router, quota, bodies).await });
    }

    async fn accept(&self, listener: TcpListener, router: Served, quota: Arc<Quota>, bodies: Arc<BodyBudget>) {
        loop {
            match self.end.run_until_cancelled(listener.accept()).await {
                None => return,
                Some(Ok((stream, peer))) => {
                    // While all are being answered, further ones wait in the kernel's queue.
                    let Some(seat) = self.end.run_until_cancelled(quota.seat(peer.ip())).await else {
                        return;
                    };
                    if let Some(seat) = seat {
                        let (router, bodies) = (Arc::clone(&router), Arc::clone(&bodies));
                        self.open
                            .spawn(serve_connection(stream, peer, seat, router, bodies, self.end.clone()));
                    }
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
async fn serve_connection(
    stream: TcpStream,
    peer: SocketAddr,
    seat: Seat,
    router: Served,
    bodies: Arc<BodyBudget>,
    end: CancellationToken,
) {
    // Answers are written whole; waiting for more to send would only delay them.
    let _ = stream.set_nodelay(true);
    let activity = Arc::clone(seat.activity());
    let io = TokioIo::new(Patient::new(stream, seat));
    let service = service_fn(|request: Request<Incoming>| {
        activity.begin();
        // Held until the request is answered; most have no body.
        let charge = (!request.body().is_end_stream()).then(|| bodies.open(peer.ip(), request.headers()));
        let mut request = request.map(|body| match &charge {
            Some(charge) => Body::new(Timely::new(body, Arc::clone(charge))),
            None => Body::empty(),
        });
        request.extensions_mut().insert(ConnectInfo(peer));
        // Clones share the routes; a router is always ready.
        let answer = Router::clone(&router.load()).call(request);
        let activity = Arc::clone(&activity);
        async move {
            // What a client sends without waiting for answers is there already: between two requests it is the others' turn.
            tokio::task::yield_now().await;
            answer.await.map(|mut answer| {
                if charge.is_some_and(|charge| charge.has_yielded()) {
                    // What is left of the body is not read.
                    answer
                        .headers_mut()
                        .insert(header::CONNECTION, HeaderValue::from_static("close"));
                }
                // What became a WebSocket keeps its own time.
                let noting = (answer.status() != StatusCode::SWITCHING_PROTOCOLS).then_some(activity);
                answer.map(|body| Noting::new(body, noting))
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
    let ended = tokio::select! {
        ended = connection.as_mut() => ended,
        () = activity.told_to_yield() => {
            // Its place is taken. A request that came at the last moment is answered all the same.
            if !activity.is_busy() {
                return;
            }
            connection.as_mut().graceful_shutdown();
            connection.await
        }
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

    fn bodies(limits: BodyLimits) -> Arc<BodyBudget> {
        BodyBudget::new("test", limits, TrustedProxies::default())
    }

    /// Room for some bodies of one address, and of four.
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

    /// A gateway whose `/` answers at once, `/slow` when it is let, and `/large` with more than sockets hold.
    struct Gateway {
        public: SocketAddr,
        internal: SocketAddr,
        slow: Arc<Notify>,
        began: Arc<Semaphore>,
        _end: DropGuard,
    }

    const LARGE: usize = 32 << 20;

    impl Gateway {
        async fn start(public: Arc<Quota>, internal: Arc<Quota>) -> Self {
            let (slow, began) = (Arc::new(Notify::new()), Arc::new(Semaphore::new(0)));
            let slowly = {
                let (slow, began) = (Arc::clone(&slow), Arc::clone(&began));
                move || {
                    let (slow, began) = (Arc::clone(&slow), Arc::clone(&began));
                    async move {
                        began.add_permits(1);
                        slow.notified().await;
                        "slow"
                    }
                }
            };
            let large = || async { vec![b'x'; LARGE] };
            let echo = |body: Body| async { read_body(body).await.map(|body| format!("{} here", body.len())) };
            let routes = Router::new()
                .route("/", get(|| async { "here" }))
                .route("/slow", get(slowly))
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
                began,
                _end: end.drop_guard(),
            }
        }

        /// A connection from 127.`a`.`b`.`c`.
        async fn connect(&self, [a, b, c]: [u8; 3]) -> TcpStream {
            let socket = TcpSocket::new_v4().unwrap();
            socket.bind(SocketAddr::from(([127, a, b, c], 0))).unwrap();
            socket.connect(self.public).await.unwrap()
        }

        async fn slow(&self, from: [u8; 3]) -> TcpStream {
            let mut client = self.connect(from).await;
            client
                .write_all(b"GET /slow HTTP/1.1\r\nhost: gateway\r\n\r\n")
                .await
                .unwrap();
            self.began.acquire().await.unwrap().forget();
            client
        }
    }

    /// Sends a request and reads the answer to it; whether there was one.
    async fn asks(client: &mut TcpStream) -> bool {
        client.write_all(REQUEST).await.is_ok() && reads(client, "here").await
    }

    async fn reads(client: &mut TcpStream, end: &str) -> bool {
        let mut read = Vec::new();
        while !read.ends_with(end.as_bytes()) {
            let mut some = [0; 4096];
            match client.read(&mut some).await {
                Ok(0) | Err(_) => return false,
                Ok(count) => read.extend_from_slice(&some[..count]),
            }
        }
        read.starts_with(b"HTTP/1.1 200 OK")
    }

    /// Whether the other side closed it.
    async fn ends(client: &mut TcpStream) -> bool {
        let mut byte = [0];
        matches!(client.read(&mut byte).await, Ok(0) | Err(_))
    }

    fn is_open(client: &TcpStream) -> bool {
        let mut byte = [0];
        matches!(client.try_read(&mut byte), Err(error) if error.kind() == io::ErrorKind::WouldBlock)
    }

    /// Spec/85 section 5, RL7: one host with thousands of connections keeps nobody out, nor the operator.
    #[tokio::test]
    async fn rl7_one_host_with_thousands_of_connections_shuts_nobody_out() {
        let gateway = Gateway::start(quota(2000, 300), quota(10, 10)).await;
        let mut slow = gateway.slow([0, 0, 2]).await;
        let mut other = gateway.connect([0, 9, 9]).await;
        assert!(asks(&mut other).await);
        let mut host = Vec::new();
        for _ in 0..2500 {
            host.push(gateway.connect([0, 0, 2]).await);
        }
        // Its own oldest yielded; the one whose request is being answered did not, nor anybody else's.
        assert!(ends(&mut host[0]).await);
        assert!(asks(host.last_mut().unwrap()).await);
        assert!(asks(&mut other).await);
        let mut newcomer = gateway.connect([0, 7, 7]).await;
        assert!(asks(&mut newcomer).await);
        let mut operator = TcpStream::connect(gateway.internal).await.unwrap();
        assert!(asks(&mut operator).await);
        gateway.slow.notify_one();
        assert!(reads(&mut slow, "slow").await);
    }

    /// Many hosts fill the listener: the longest idle one of the fullest network yields, and never one being answered.
    #[tokio::test]
    async fn rl7_a_full_listener_lets_newcomers_in_and_the_internal_one_does_not_notice() {
        let gateway = Gateway::start(quota(1000, 300), quota(10, 10)).await;
        let mut slow = gateway.slow([1, 0, 1]).await;
        let mut crowd = Vec::new();
        for number in 0..1100_u16 {
            let [_, at] = number.to_be_bytes();
            // A quarter of an address's part each, from one /24.
            crowd.push(gateway.connect([2, 0, at % 8 + 1]).await);
        }
        let mut quiet = gateway.connect([3, 0, 1]).await;
        assert!(asks(&mut quiet).await);
        let mut newcomer = gateway.connect([4, 0, 1]).await;
        assert!(asks(&mut newcomer).await && is_open(&quiet));
        assert!(ends(&mut crowd[0]).await);
        assert!(is_open(crowd.last().unwrap()));
        let mut operator = TcpStream::connect(gateway.internal).await.unwrap();
        assert!(asks(&mut operator).await);
        gateway.slow.notify_one();
        assert!(reads(&mut slow, "slow").await);
    }

    /// Headers that do not end do not keep a place.
    #[tokio::test]
    async fn rl7_the_oldest_idle_yields_half_a_request_counts_as_idle() {
        let gateway = Gateway::start(quota(3, 3), quota(1, 1)).await;
        let mut first = gateway.connect([0, 0, 2]).await;
        first.write_all(b"GET / HT").await.unwrap();
        let mut second = gateway.connect([0, 0, 2]).await;
        assert!(asks(&mut second).await);
        let mut third = gateway.connect([0, 0, 2]).await;
        assert!(asks(&mut third).await && asks(&mut second).await);
        let mut fourth = gateway.connect([0, 0, 2]).await;
        assert!(asks(&mut fourth).await);
        assert!(ends(&mut first).await);
        assert!(is_open(&second) && is_open(&third));
        let mut fifth = gateway.connect([0, 0, 2]).await;
        assert!(asks(&mut fifth).await);
        assert!(
            ends(&mut third).await && is_open(&second),
            "the one that was idle longest"
        );
    }

    /// An answer that is being read is not cut, however slowly.
    #[tokio::test]
    async fn rl7_an_answer_on_its_way_is_not_cut() {
        let gateway = Gateway::start(quota(10, 1), quota(1, 1)).await;
        let mut reader = gateway.connect([0, 0, 2]).await;
        reader
            .write_all(b"GET /large HTTP/1.1\r\nhost: gateway\r\n\r\n")
            .await
            .unwrap();
        let mut head = [0; 1024];
        let mut read = reader.read(&mut head).await.unwrap();
        // The only place of the address is taken by an answer: refused.
        let mut refused = gateway.connect([0, 0, 2]).await;
        assert!(ends(&mut refused).await);
        let mut some = vec![0; 1 << 20];
        while read < LARGE {
            let count = reader.read(&mut some).await.unwrap();
            assert!(count > 0, "cut after {read} bytes");
            read += count;
        }
        // Read to its end, it is idle and makes room.
        let mut next = gateway.connect([0, 0, 2]).await;
        while !asks(&mut next).await {
            next = gateway.connect([0, 0, 2]).await;
        }
        assert!(ends(&mut reader).await);
    }

    /// Begins a body of a mebibyte and sends all of it but the last byte.
    async fn half_sends(client: &mut TcpStream) {
        let head = "POST /echo HTTP/1.1\r\nhost: gateway\r\ncontent-length: 1048576\r\n\r\n";
        client.write_all(head.as_bytes()).await.unwrap();
        // The gateway may close it at any moment.
        let _ = client.write_all(&vec![b'x'; (1 << 20) - 1]).await;
    }

    async fn all_read(client: &mut TcpStream) -> String {
        let (mut read, mut some) = (Vec::new(), [0; 4096]);
        while let Ok(count @ 1..) = client.read(&mut some).await {
            read.extend_from_slice(&some[..count]);
        }
        String::from_utf8_lossy(&read).to_lowercase()
    }

    /// RL8: bodies that do not end hold no more than their share, whoever sends them; those of others are not touched, and
    /// what gives way is told so.
    #[tokio::test]
    async fn rl8_bodies_on_their_way_have_a_budget() {
        let gateway = Gateway::start(quota(2000, 300), quota(10, 10)).await;
        let mut other = gateway.connect([0, 9, 9]).await;
        half_sends(&mut other).await;
        let mut host = Vec::new();
        for _ in 0..8 {
            let mut client = gateway.connect([0, 0, 2]).await;
            half_sends(&mut client).await;
            host.push(client);
        }
        let mut refused = 0;
        // Two are left at most: the others are answered before their deadline could be over.
        for client in &mut host {
            let answer = tokio::time::timeout(Duration::from_secs(3), all_read(client)).await;
            if let Ok(answer) = answer {
                // A client that was still sending when the connection closed may see nothing.
                assert!(answer.is_empty() || answer.starts_with("http/1.1 503 "), "{answer}");
                if !answer.is_empty() {
                    assert!(
                        answer.contains("retry-after: 1\r\n") && answer.contains("connection: close\r\n"),
                        "{answer}"
                    );
                }
                refused += 1;
            }
        }
        assert!(refused >= 6, "{refused} of 8 gave way");
        other.write_all(b"x").await.unwrap();
        assert!(reads(&mut other, "1048576 here").await, "nobody else's");
        let mut small = gateway.connect([0, 0, 2]).await;
        small
            .write_all(b"POST /echo HTTP/1.1\r\nhost: gateway\r\ncontent-length: 1\r\n\r\nx")
            .await
            .unwrap();
        assert!(reads(&mut small, "1 here").await);
    }
}
