//! A way to a real service that tests can break: a node over HTTP, a PostgreSQL, a Redis.
//!
//! Bytes pass unread, each direction by itself. What a way does to them is a [`Flow`]; [`Relay::cut`] is harder: nobody
//! listens any more. A way that is [`Relay::mend`]ed is as it was, on the same port.

use std::{
    net::SocketAddr,
    path::PathBuf,
    sync::{
        Arc,
        atomic::{AtomicUsize, Ordering},
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

/// What becomes of bytes on their way.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Flow {
    /// They pass.
    #[default]
    Open,
    /// They wait until the way is open again: what a network does that loses packets for a while.
    Held,
    /// They vanish, and so does everything on this connection from then on, also when the way is mended: what a firewall
    /// does that has forgotten a connection. Connections made later are not touched.
    Dropped,
    /// They pass this much later, one piece after the other.
    Delayed(Duration),
}

/// How the way is, there and back.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
struct Way {
    questions: Flow,
    answers: Flow,
    /// Nobody listens, and what was connected is closed.
    cut: bool,
}

/// Passes on what it is given; on a port of its own, which it keeps.
#[derive(Debug)]
pub struct Relay {
    address: SocketAddr,
    url: Url,
    way: Arc<watch::Sender<Way>>,
    passed: Arc<AtomicUsize>,
    /// After so many pieces of questions everything is held.
    stop_at: Arc<AtomicUsize>,
    listening: Option<JoinHandle<()>>,
    target: Target,
}

#[derive(Clone, Debug)]
enum Target {
    Tcp(String),
    Unix(PathBuf),
}

impl Relay {
    /// A way to the service at `url`: `http://…`, `redis://…`, or `postgres://…`, the last also with `?host=` of a
    /// directory with a socket in it.
    ///
    /// # Panics
    /// When `url` names no service, or no port can be bound.
    pub async fn to(url: &str) -> Self {
        let mut url: Url = url.parse().unwrap_or_else(|error| panic!("{error}: {url}"));
        let target = Target::of(&mut url);
        let listener = bound(SocketAddr::from(([127, 0, 0, 1], 0))).await;
        let address = listener
            .local_addr()
            .unwrap_or_else(|error| panic!("no address: {error}"));
        let changed = url
            .set_ip_host(address.ip())
            .and_then(|()| url.set_port(Some(address.port())));
        changed.unwrap_or_else(|()| panic!("no host and port can be put into {url}"));
        let (way, passed, stop_at) = (
            Arc::new(watch::Sender::new(Way::default())),
            Arc::default(),
            Arc::new(AtomicUsize::new(usize::MAX)),
        );
        let mut relay = Self {
            address,
            url,
            way,
            passed,
            stop_at,
            listening: None,
            target,
        };
        relay.listen(listener);
        relay
    }

    /// The URL of the service by this way.
    pub fn url(&self) -> String {
        self.url.as_str().trim_end_matches('/').to_owned()
    }

    /// How many pieces of questions have gone through.
    pub fn passed(&self) -> usize {
        self.passed.load(Ordering::SeqCst)
    }

    /// Refuses connections from now on, and closes those there are.
    pub async fn cut(&mut self) {
        self.way.send_modify(|way| way.cut = true);
        if let Some(listening) = self.listening.take() {
            listening.abort();
            let _ = listening.await;
        }
    }

    /// Lets no answer through from now on.
    pub fn hold(&self) {
        self.way.send_modify(|way| way.answers = Flow::Held);
    }

    /// Lets nothing through, either way.
    pub fn pause(&self) {
        self.flow(Flow::Held, Flow::Held);
    }

    /// Loses everything, either way; connections that carried something meanwhile stay silent for ever.
    pub fn drop_all(&self) {
        self.flow(Flow::Dropped, Flow::Dropped);
    }

    /// Lets everything through this much later.
    pub fn delay(&self, by: Duration) {
        self.flow(Flow::Open, Flow::Delayed(by));
    }

    /// What becomes of questions and of answers from now on.
    pub fn flow(&self, questions: Flow, answers: Flow) {
        self.way
            .send_modify(|way| (way.questions, way.answers) = (questions, answers));
    }

    /// Lets so many more pieces of questions through, and then nothing, either way; until [`Relay::mend`]. With it a
    /// process can be killed at each message that it exchanges with a service, one after the other.
    pub fn stop_after(&self, pieces: usize) {
        self.stop_at
            .store(self.passed().saturating_add(pieces), Ordering::SeqCst);
    }

    /// Waits until [`Relay::stop_after`] has stopped everything.
    pub async fn stopped(&self) {
        let mut way = self.way.subscribe();
        let _ = way.wait_for(|way| way.questions == Flow::Held).await;
    }

    /// Works again, on the same port.
    ///
    /// # Panics
    /// When somebody else has taken it.
    pub async fn mend(&mut self) {
        self.stop_at.store(usize::MAX, Ordering::SeqCst);
        self.way.send_replace(Way::default());
        if self.listening.is_none() {
            let listener = bound(self.address).await;
            self.listen(listener);
        }
    }

    fn listen(&mut self, listener: TcpListener) {
        let pass = Pass {
            way: Arc::clone(&self.way),
            passed: Arc::clone(&self.passed),
            stop_at: Arc::clone(&self.stop_at),
            target: self.target.clone(),
        };
        self.listening = Some(tokio::spawn(async move {
            while let Ok((client, _)) = listener.accept().await {
                tokio::spawn(pass.clone().run(client));
            }
        }));
    }
}

impl Drop for Relay {
    fn drop(&mut self) {
        self.way.send_modify(|way| way.cut = true);
        if let Some(listening) = self.listening.take() {
            listening.abort();
        }
    }
}

impl Target {
    /// Where the service is. A directory in the query goes: the way has a host.
    fn of(url: &mut Url) -> Self {
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

async fn bound(address: SocketAddr) -> TcpListener {
    match TcpListener::bind(address).await {
        Ok(listener) => listener,
        Err(error) => panic!("cannot listen on {address}: {error}"),
    }
}

/// What a connection needs of its relay.
#[derive(Clone)]
struct Pass {
    way: Arc<watch::Sender<Way>>,
    passed: Arc<AtomicUsize>,
    stop_at: Arc<AtomicUsize>,
    target: Target,
}

impl Pass {
    async fn run(self, client: TcpStream) {
        let mut way = self.way.subscribe();
        tokio::select! {
            () = self.connect(client) => {}
            _ = way.wait_for(|way| way.cut) => {}
        }
    }

    async fn connect(&self, client: TcpStream) {
        let client = client.into_split();
        match &self.target {
            Target::Tcp(address) => {
                let Ok(service) = TcpStream::connect(address).await else {
                    return;
                };
                self.both(client, service.into_split()).await;
            }
            Target::Unix(path) => {
                let Ok(service) = UnixStream::connect(path).await else {
                    return;
                };
                self.both(client, service.into_split()).await;
            }
        }
    }

    async fn both(
        &self,
        (asks, hears): (impl AsyncRead + Unpin, impl AsyncWrite + Unpin),
        (answers, asked): (impl AsyncRead + Unpin, impl AsyncWrite + Unpin),
    ) {
        tokio::select! {
            () = self.pieces(asks, asked, |way| way.questions, true) => {}
            () = self.pieces(answers, hears, |way| way.answers, false) => {}
        }
    }

    async fn pieces(
        &self,
        mut from: impl AsyncRead + Unpin,
        mut to: impl AsyncWrite + Unpin,
        flow: impl Fn(&Way) -> Flow,
        questions: bool,
    ) {
        let mut way = self.way.subscribe();
        let mut chunk = vec![0; 64 * 1024];
        let mut lost = false;
        while let Ok(read @ 1..) = from.read(&mut chunk).await {
            if questions && self.passed.fetch_add(1, Ordering::SeqCst) >= self.stop_at.load(Ordering::SeqCst) {
                self.way
                    .send_modify(|way| (way.questions, way.answers) = (Flow::Held, Flow::Held));
            }
            let Ok(now) = way.wait_for(|way| flow(way) != Flow::Held).await.map(|way| flow(&way)) else {
                return;
            };
            lost |= now == Flow::Dropped;
            if lost {
                continue;
            }
            if let Flow::Delayed(by) = now {
                tokio::time::sleep(by).await;
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

    /// A service that says back what it hears, and a connection to it by a way.
    async fn echo() -> (Relay, TcpStream) {
        let listener = bound(SocketAddr::from(([127, 0, 0, 1], 0))).await;
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

    async fn says(client: &mut TcpStream, byte: u8) -> Option<u8> {
        client.write_all(&[byte]).await.ok()?;
        hears(client).await
    }

    /// What comes within a moment; a moment too short for a loaded machine would only hide a fault of the relay.
    async fn hears(client: &mut TcpStream) -> Option<u8> {
        tokio::time::timeout(Duration::from_millis(300), client.read_u8())
            .await
            .ok()?
            .ok()
    }

    #[tokio::test]
    async fn what_is_held_comes_later_and_what_is_dropped_never() {
        let (mut relay, mut client) = echo().await;
        assert_eq!(says(&mut client, 1).await, Some(1));
        relay.pause();
        assert_eq!(says(&mut client, 2).await, None);
        relay.mend().await;
        assert_eq!(client.read_u8().await.unwrap(), 2);
        relay.drop_all();
        assert_eq!(says(&mut client, 3).await, None);
        relay.mend().await;
        assert_eq!(says(&mut client, 4).await, None, "a forgotten connection stays silent");
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
        assert_eq!(says(&mut client, 2).await, None);
        relay.stopped().await;
        relay.mend().await;
        assert_eq!(client.read_u8().await.unwrap(), 2);
    }

    #[tokio::test]
    async fn a_cut_way_closes_and_comes_back_on_its_port() {
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
