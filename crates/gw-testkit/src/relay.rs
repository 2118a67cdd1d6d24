//! A TCP relay to a real service that tests can disturb: a node over HTTP, a PostgreSQL, a Redis.
//!
//! Forwards bytes without parsing them, each direction separately. A [`Flow`] says what happens to them. [`Relay::cut`]
//! goes further: the port no longer listens. [`Relay::mend`] restores everything, on the same port.

use crate::port;
use std::{
    net::SocketAddr,
    path::PathBuf,
    sync::{
        Arc, Mutex, PoisonError,
        atomic::{AtomicBool, AtomicUsize, Ordering},
    },
    time::Duration,
};
use tokio::{
    io::{AsyncRead, AsyncReadExt as _, AsyncWrite, AsyncWriteExt as _},
    net::{TcpListener, TcpStream, UnixStream},
    sync::watch,
    task::JoinHandle,
};
use url::Url;

/// What happens to the bytes in one direction.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Flow {
    /// They are forwarded.
    #[default]
    Open,
    /// They wait until the flow is open again, as in a network that loses packets for a while.
    Held,
    /// They are lost, and so is everything on this connection from then on, even after [`Relay::mend`], as with a
    /// firewall that has forgotten a connection. Later connections are not affected.
    Dropped,
    /// They are forwarded after this delay, one piece after the other.
    Delayed(Duration),
}

/// What happens to a message at which [`Relay::silence_at`] silences a connection.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Last {
    /// It arrives, and its answer does not.
    Delivered,
    /// It does not arrive.
    Lost,
}

/// The state of a relay.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
struct State {
    /// The flow from clients to the service.
    to_service: Flow,
    /// The flow from the service to clients.
    to_client: Flow,
    /// The port does not listen, and connections are closed.
    cut: bool,
}

/// Forwards connections from a port of its own, which it keeps.
#[derive(Debug)]
pub struct Relay {
    address: SocketAddr,
    url: Url,
    state: Arc<watch::Sender<State>>,
    passed: Arc<AtomicUsize>,
    /// After this many pieces from clients, everything is held.
    stop_at: Arc<AtomicUsize>,
    /// Silences the next connection whose client sends this text.
    trigger: Trigger,
    listening: Option<JoinHandle<()>>,
    target: Target,
}

type Trigger = Arc<Mutex<Option<(&'static str, Last)>>>;

#[derive(Clone, Debug)]
enum Target {
    Tcp(String),
    Unix(PathBuf),
}

impl Relay {
    /// Creates a relay to the service at `url`: `http://…`, `redis://…`, or `postgres://…`. The last may have `?host=`
    /// with a directory that contains a socket.
    ///
    /// # Panics
    /// If `url` names no supported service, or no port can be bound.
    pub async fn to(url: &str) -> Self {
        let mut url: Url = url.parse().unwrap_or_else(|error| panic!("{error}: {url}"));
        let target = Target::from_url(&mut url);
        let listener = bind(SocketAddr::from(([127, 0, 0, 1], port::reserve()))).await;
        let address = listener
            .local_addr()
            .unwrap_or_else(|error| panic!("no address: {error}"));
        let changed = url
            .set_ip_host(address.ip())
            .and_then(|()| url.set_port(Some(address.port())));
        changed.unwrap_or_else(|()| panic!("no host and port can be put into {url}"));
        let (state, passed, stop_at) = (
            Arc::new(watch::Sender::new(State::default())),
            Arc::default(),
            Arc::new(AtomicUsize::new(usize::MAX)),
        );
        let mut relay = Self {
            address,
            url,
            state,
            passed,
            stop_at,
            trigger: Trigger::default(),
            listening: None,
            target,
        };
        relay.listen(listener);
        relay
    }

    /// The URL of the service through this relay.
    pub fn url(&self) -> String {
        self.url.as_str().trim_end_matches('/').to_owned()
    }

    /// The number of pieces that clients have sent.
    pub fn passed(&self) -> usize {
        self.passed.load(Ordering::SeqCst)
    }

    /// Refuses new connections and closes existing ones.
    pub async fn cut(&mut self) {
        self.state.send_modify(|state| state.cut = true);
        if let Some(listening) = self.listening.take() {
            listening.abort();
            let _ = listening.await;
        }
    }

    /// Holds all bytes from the service to clients.
    pub fn hold(&self) {
        self.state.send_modify(|state| state.to_client = Flow::Held);
    }

    /// Holds everything in both directions.
    pub fn pause(&self) {
        self.flow(Flow::Held, Flow::Held);
    }

    /// Drops everything in both directions. Connections that carry bytes meanwhile stay silent for ever.
    pub fn drop_all(&self) {
        self.flow(Flow::Dropped, Flow::Dropped);
    }

    /// Delays all bytes from the service to clients by this time.
    pub fn delay(&self, duration: Duration) {
        self.flow(Flow::Open, Flow::Delayed(duration));
    }

    /// Sets the flow from clients to the service and the flow from the service to clients.
    pub fn flow(&self, to_service: Flow, to_client: Flow) {
        self.state
            .send_modify(|state| (state.to_service, state.to_client) = (to_service, to_client));
    }

    /// Forwards this many more pieces from clients and then holds everything in both directions, until [`Relay::mend`].
    /// This lets a test kill a process at each message that it exchanges with a service, one after the other.
    pub fn stop_after(&self, pieces: usize) {
        self.stop_at
            .store(self.passed().saturating_add(pieces), Ordering::SeqCst);
    }

    /// Silences the first connection whose client sends a piece that contains this text, from that piece on and for
    /// ever. The connection stays open, and all others work.
    pub fn silence_at(&self, text: &'static str, last: Last) {
        *self.trigger.lock().unwrap_or_else(PoisonError::into_inner) = Some((text, last));
    }

    /// Whether [`Relay::silence_at`] has silenced a connection.
    pub fn is_silenced(&self) -> bool {
        self.trigger.lock().unwrap_or_else(PoisonError::into_inner).is_none()
    }

    /// Waits until [`Relay::stop_after`] holds everything.
    pub async fn stopped(&self) {
        let mut state = self.state.subscribe();
        let _ = state.wait_for(|state| state.to_service == Flow::Held).await;
    }

    /// Restores the relay, on the same port.
    ///
    /// # Panics
    /// If another process has taken the port.
    pub async fn mend(&mut self) {
        self.stop_at.store(usize::MAX, Ordering::SeqCst);
        self.state.send_replace(State::default());
        if self.listening.is_none() {
            let listener = bind(self.address).await;
            self.listen(listener);
        }
    }

    fn listen(&mut self, listener: TcpListener) {
        let context = ConnectionContext {
            state: Arc::clone(&self.state),
            passed: Arc::clone(&self.passed),
            stop_at: Arc::clone(&self.stop_at),
            trigger: Arc::clone(&self.trigger),
            target: self.target.clone(),
        };
        self.listening = Some(tokio::spawn(async move {
            while let Ok((client, _)) = listener.accept().await {
                tokio::spawn(context.clone().run(client));
            }
        }));
    }
}

impl Drop for Relay {
    fn drop(&mut self) {
        self.state.send_modify(|state| state.cut = true);
        if let Some(listening) = self.listening.take() {
            listening.abort();
        }
    }
}

impl Target {
    /// The address of the service. Removes a socket directory from the query, because the relay has a host.
    fn from_url(url: &mut Url) -> Self {
        let query: Vec<(String, String)> = url.query_pairs().into_owned().collect();
        let port = url.port().or(match url.scheme() {
            "postgres" | "postgresql" => Some(5432),
            "redis" => Some(6379),
            "http" => Some(80),
            _ => None,
        });
        let port = port.unwrap_or_else(|| panic!("no port is known for {}", url.scheme()));
        if let Some((_, directory)) = query
            .iter()
            .find(|(name, value)| name == "host" && value.starts_with('/'))
        {
            let socket = PathBuf::from(directory).join(format!(".s.PGSQL.{port}"));
            url.query_pairs_mut()
                .clear()
                .extend_pairs(query.iter().filter(|(name, _)| name != "host"));
            return Self::Unix(socket);
        }
        Self::Tcp(format!("{}:{port}", url.host_str().unwrap_or("localhost")))
    }
}

async fn bind(address: SocketAddr) -> TcpListener {
    match TcpListener::bind(address).await {
        Ok(listener) => listener,
        Err(error) => panic!("cannot listen on {address}: {error}"),
    }
}

/// The state that a connection shares with its relay.
#[derive(Clone)]
struct ConnectionContext {
    state: Arc<watch::Sender<State>>,
    passed: Arc<AtomicUsize>,
    stop_at: Arc<AtomicUsize>,
    trigger: Trigger,
    target: Target,
}

impl ConnectionContext {
    /// Takes the trigger of [`Relay::silence_at`] if the piece contains its text.
    fn triggered(&self, piece: &[u8]) -> Option<Last> {
        let mut trigger = self.trigger.lock().unwrap_or_else(PoisonError::into_inner);
        let (_, last) = trigger.take_if(|(text, _)| piece.windows(text.len()).any(|part| part == text.as_bytes()))?;
        Some(last)
    }

    async fn run(self, client: TcpStream) {
        let mut state = self.state.subscribe();
        tokio::select! {
            () = self.connect(client) => {}
            _ = state.wait_for(|state| state.cut) => {}
        }
    }

    async fn connect(&self, client: TcpStream) {
        let client = client.into_split();
        match &self.target {
            Target::Tcp(address) => {
                let Ok(service) = TcpStream::connect(address).await else {
                    return;
                };
                self.forward(client, service.into_split()).await;
            }
            Target::Unix(path) => {
                let Ok(service) = UnixStream::connect(path).await else {
                    return;
                };
                self.forward(client, service.into_split()).await;
            }
        }
    }

    async fn forward(
        &self,
        (from_client, to_client): (impl AsyncRead + Unpin, impl AsyncWrite + Unpin),
        (from_service, to_service): (impl AsyncRead + Unpin, impl AsyncWrite + Unpin),
    ) {
        let is_silent = AtomicBool::new(false);
        tokio::select! {
            () = self.forward_direction(from_client, to_service, |state| state.to_service, true, &is_silent) => {}
            () = self.forward_direction(from_service, to_client, |state| state.to_client, false, &is_silent) => {}
        }
    }

    async fn forward_direction(
        &self,
        mut from: impl AsyncRead + Unpin,
        mut to: impl AsyncWrite + Unpin,
        flow: impl Fn(&State) -> Flow,
        is_from_client: bool,
        is_silent: &AtomicBool,
    ) {
        let mut state = self.state.subscribe();
        let mut chunk = vec![0; 64 * 1024];
        let mut is_dropped = false;
        while let Ok(read @ 1..) = from.read(&mut chunk).await {
            if is_from_client && self.passed.fetch_add(1, Ordering::SeqCst) >= self.stop_at.load(Ordering::SeqCst) {
                self.state
                    .send_modify(|state| (state.to_service, state.to_client) = (Flow::Held, Flow::Held));
            }
            let Ok(current) = state
                .wait_for(|state| flow(state) != Flow::Held)
                .await
                .map(|state| flow(&state))
            else {
                return;
            };
            is_dropped |= current == Flow::Dropped || is_silent.load(Ordering::SeqCst);
            if !is_dropped
                && is_from_client
                && let Some(last) = self.triggered(chunk.get(..read).unwrap_or_default())
            {
                is_silent.store(true, Ordering::SeqCst);
                is_dropped = last == Last::Lost;
            }
            if is_dropped {
                continue;
            }
            if let Flow::Delayed(duration) = current {
                tokio::time::sleep(duration).await;
            }
            if to.write_all(chunk.get(..read).unwrap_or_default()).await.is_err() {
                return;
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A service that echoes what it receives, and a connection to it through a relay.
    async fn echo() -> (Relay, TcpStream) {
        let listener = bind(SocketAddr::from(([127, 0, 0, 1], 0))).await;
        let address = listener.local_addr().unwrap();
        tokio::spawn(async move {
            while let Ok((mut stream, _)) = listener.accept().await {
                tokio::spawn(async move {
                    let (mut from, mut to) = stream.split();
                    let _ = tokio::io::copy(&mut from, &mut to).await;
                });
            }
        });
        let relay = Relay::to(&format!("redis://:p%40ss@{address}/3")).await;
        assert_eq!(relay.url(), format!("redis://:p%40ss@{}/3", relay.address));
        let client = TcpStream::connect(relay.address).await.unwrap();
        (relay, client)
    }

    async fn echo_byte(client: &mut TcpStream, byte: u8) -> Option<u8> {
        client.write_all(&[byte]).await.ok()?;
        next_byte(client).await
    }

    /// The next byte within 300 ms. On a loaded machine a shorter time could only hide a fault of the relay.
    async fn next_byte(client: &mut TcpStream) -> Option<u8> {
        tokio::time::timeout(Duration::from_millis(300), client.read_u8())
            .await
            .ok()?
            .ok()
    }

    #[tokio::test]
    async fn held_bytes_arrive_later_and_dropped_bytes_never() {
        let (mut relay, mut client) = echo().await;
        assert_eq!(echo_byte(&mut client, 1).await, Some(1));
        relay.pause();
        assert_eq!(echo_byte(&mut client, 2).await, None);
        relay.mend().await;
        assert_eq!(client.read_u8().await.unwrap(), 2);
        relay.drop_all();
        assert_eq!(echo_byte(&mut client, 3).await, None);
        relay.mend().await;
        assert_eq!(
            echo_byte(&mut client, 4).await,
            None,
            "a forgotten connection stays silent"
        );
        let mut next = TcpStream::connect(relay.address).await.unwrap();
        next.write_all(&[5]).await.unwrap();
        assert_eq!(next.read_u8().await.unwrap(), 5);
    }

    #[tokio::test]
    async fn everything_stops_after_a_number_of_messages() {
        let (mut relay, mut client) = echo().await;
        relay.stop_after(1);
        client.write_all(&[1]).await.unwrap();
        assert_eq!(client.read_u8().await.unwrap(), 1);
        assert_eq!(echo_byte(&mut client, 2).await, None);
        relay.stopped().await;
        relay.mend().await;
        assert_eq!(client.read_u8().await.unwrap(), 2);
    }

    #[tokio::test]
    async fn one_connection_is_silenced_and_the_others_are_not() {
        for last in [Last::Delivered, Last::Lost] {
            let (relay, mut client) = echo().await;
            relay.silence_at("!", last);
            assert_eq!(echo_byte(&mut client, 1).await, Some(1));
            assert!(!relay.is_silenced());
            assert_eq!(echo_byte(&mut client, b'!').await, None);
            assert!(relay.is_silenced());
            assert_eq!(echo_byte(&mut client, 2).await, None);
            let mut next = TcpStream::connect(relay.address).await.unwrap();
            assert_eq!(echo_byte(&mut next, b'!').await, Some(b'!'));
        }
    }

    #[tokio::test]
    async fn a_cut_relay_closes_and_mends_on_its_port() {
        let (mut relay, mut client) = echo().await;
        relay.cut().await;
        assert!(matches!(client.read(&mut [0]).await, Ok(0) | Err(_)));
        relay.mend().await;
        let mut next = TcpStream::connect(relay.address).await.unwrap();
        relay.delay(Duration::from_millis(1));
        next.write_all(&[7]).await.unwrap();
        assert_eq!(next.read_u8().await.unwrap(), 7);
    }

    #[tokio::test]
    async fn a_postgresql_behind_a_socket_gets_a_host() {
        let relay = Relay::to("postgres://gateway@localhost/test_1?host=/tmp/gw-pg&sslmode=disable").await;
        assert_eq!(
            relay.url(),
            format!("postgres://gateway@{}/test_1?sslmode=disable", relay.address)
        );
        assert!(matches!(&relay.target, Target::Unix(path) if path.ends_with("gw-pg/.s.PGSQL.5432")));
    }
}
