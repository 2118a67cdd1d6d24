//! A way to a real node that tests can cut.

use std::{
    net::SocketAddr,
    sync::{
        Arc,
        atomic::{AtomicUsize, Ordering},
    },
};
use tokio::{
    io::{AsyncReadExt as _, AsyncWriteExt as _},
    net::{TcpListener, TcpStream},
    sync::watch,
    task::JoinHandle,
};

/// How the way is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Way {
    /// Bytes go both ways.
    Open,
    /// Questions arrive, answers do not; connections stay.
    Holding,
    /// Nobody listens, and what was connected is closed.
    Cut,
}

/// Passes on what it is given; on a port of its own, which it keeps.
#[derive(Debug)]
pub struct Relay {
    address: SocketAddr,
    way: Arc<watch::Sender<Way>>,
    passed: Arc<AtomicUsize>,
    listening: Option<JoinHandle<()>>,
    target: String,
}

impl Relay {
    /// A way to the node at `url`.
    ///
    /// # Panics
    /// When no port can be bound.
    pub async fn to(url: &str) -> Self {
        let target = url.trim_start_matches("http://").trim_end_matches('/').to_owned();
        let listener = bound(SocketAddr::from(([127, 0, 0, 1], 0))).await;
        let address = listener.local_addr().unwrap_or_else(|error| panic!("no address: {error}"));
        let (way, passed) = (Arc::new(watch::Sender::new(Way::Open)), Arc::default());
        let mut relay = Self { address, way, passed, listening: None, target };
        relay.listen(listener);
        relay
    }

    /// Where it listens.
    pub fn url(&self) -> String {
        format!("http://{}", self.address)
    }

    /// How many pieces of questions have gone through.
    pub fn passed(&self) -> usize {
        self.passed.load(Ordering::SeqCst)
    }

    /// Refuses connections from now on, and closes those there are.
    pub async fn cut(&mut self) {
        self.way.send_replace(Way::Cut);
        if let Some(listening) = self.listening.take() {
            listening.abort();
            let _ = listening.await;
        }
    }

    /// Lets no answer through from now on.
    pub fn hold(&self) {
        self.way.send_replace(Way::Holding);
    }

    /// Works again, on the same port.
    ///
    /// # Panics
    /// When somebody else has taken it.
    pub async fn mend(&mut self) {
        self.way.send_replace(Way::Open);
        if self.listening.is_none() {
            let listener = bound(self.address).await;
            self.listen(listener);
        }
    }

    fn listen(&mut self, listener: TcpListener) {
        let (way, passed, target) = (Arc::clone(&self.way), Arc::clone(&self.passed), self.target.clone());
        self.listening = Some(tokio::spawn(async move {
            while let Ok((client, _)) = listener.accept().await {
                let (way, passed, target) = (way.subscribe(), Arc::clone(&passed), target.clone());
                tokio::spawn(pass(client, target, way, passed));
            }
        }));
    }
}

impl Drop for Relay {
    fn drop(&mut self) {
        self.way.send_replace(Way::Cut);
        if let Some(listening) = self.listening.take() {
            listening.abort();
        }
    }
}

async fn bound(address: SocketAddr) -> TcpListener {
    match TcpListener::bind(address).await {
        Ok(listener) => listener,
        Err(error) => panic!("cannot listen on {address}: {error}"),
    }
}

async fn pass(client: TcpStream, target: String, mut way: watch::Receiver<Way>, passed: Arc<AtomicUsize>) {
    let Ok(node) = TcpStream::connect(target).await else { return };
    let ((mut asks, mut hears), (mut answers, mut asked)) = (client.into_split(), node.into_split());
    let open = way.clone();
    let there = async {
        let mut chunk = vec![0; 64 * 1024];
        while let Ok(read @ 1..) = asks.read(&mut chunk).await {
            passed.fetch_add(1, Ordering::SeqCst);
            if asked.write_all(chunk.get(..read).unwrap_or_default()).await.is_err() {
                return;
            }
        }
    };
    let back = async {
        let mut chunk = vec![0; 64 * 1024];
        while let Ok(read @ 1..) = answers.read(&mut chunk).await {
            if open.clone().wait_for(|way| *way == Way::Open).await.is_err() {
                return;
            }
            if hears.write_all(chunk.get(..read).unwrap_or_default()).await.is_err() {
                return;
            }
        }
    };
    tokio::select! {
        () = there => {}
        () = back => {}
        _ = way.wait_for(|way| *way == Way::Cut) => {}
    }
}
