//! One HTTP exchange with the node: keep-alive, a deadline, a cap on the answer.
//!
//! Not for JSON-RPC: what the bytes mean is `message`'s business.

use crate::{
    KeyId, NodeConfig, NodeError, Patience, Payer,
    answers::{AnswerBudget, AnswerHold, ByteLease, Leased, SMALL},
    key::UpstreamKey,
};
use bytes::Bytes;
use http::{HeaderMap, HeaderName, HeaderValue, Method, Request, StatusCode, Uri, header};
use http_body_util::{BodyExt as _, Full};
use hyper::body::Body as _;
use hyper_rustls::{HttpsConnector, HttpsConnectorBuilder};
use hyper_util::{
    client::legacy::{Client, connect::HttpConnector},
    rt::{TokioExecutor, TokioTimer},
};
use std::{
    sync::{Arc, Mutex, MutexGuard, PoisonError},
    time::Duration,
};
use tokio::{sync::Semaphore, time::Instant};

/// How long one exchange may take and how large its answer may be (spec/20 J9).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Budget {
    /// A forwarded call that the node may have to compute for: 30 s, 128 MiB.
    Forward,
    /// A forwarded call for what the node has at hand, such as a balance or a receipt: 10 s, 128 MiB.
    Lookup,
    /// The trace of a read: [`Patience::read_trace`], [`NodeConfig::with_largest_trace`].
    ReadTrace,
    /// The trace of a send: [`Patience::send_trace`], [`NodeConfig::with_largest_trace`].
    SendTrace,
    /// The trace of mined transactions: so long, [`Patience::send_trace`] at most; [`NodeConfig::with_largest_trace`].
    MinedTrace(Duration),
    /// A fact the gateway asks for itself: 5 s, 8 MiB.
    Fact,
    /// A block with the hashes of its transactions, or one transaction: 5 s, 128 MiB, which is more than any block can
    /// need (HD36).
    Block,
    /// Whether a node is well, where another one can take its place: 2 s, 128 MiB.
    Look,
}

const MIB: usize = 1024 * 1024;

impl Budget {
    fn time(self, patience: &Patience) -> Duration {
        match self {
            Self::Forward => Duration::from_secs(30),
            Self::Lookup => Duration::from_secs(10),
            Self::SendTrace => patience.send_trace,
            Self::ReadTrace => patience.read_trace,
            Self::MinedTrace(time) => time.min(patience.send_trace),
            Self::Fact | Self::Block => Duration::from_secs(5),
            Self::Look => Duration::from_secs(2),
        }
    }

    const fn size(self, largest_trace: usize) -> usize {
        match self {
            Self::Forward | Self::Lookup | Self::Block | Self::Look => 128 * MIB,
            Self::ReadTrace | Self::SendTrace | Self::MinedTrace(_) => largest_trace,
            Self::Fact => 8 * MIB,
        }
    }

    /// Whether the answer is a caller's, and not a fact the gateway needs whoever asks.
    pub(crate) const fn is_callers(self) -> bool {
        match self {
            Self::Forward | Self::Lookup | Self::ReadTrace | Self::SendTrace => true,
            Self::MinedTrace(_) | Self::Fact | Self::Block | Self::Look => false,
        }
    }
}

/// The connection pool and what every request carries.
pub(crate) struct Transport {
    client: Pool,
    uri: Uri,
    headers: HeaderMap,
    key_header: HeaderName,
    own_key: KeyId,
    patience: Patience,
    largest_trace: usize,
    answers: Arc<AnswerBudget>,
    /// One permit per connection that may be in use; an HTTP/1 connection carries one exchange at a time.
    in_use: Option<Semaphore>,
}

enum Pool {
    Plain(Client<HttpConnector, Full<Bytes>>),
    Tls(Client<HttpsConnector<HttpConnector>, Full<Bytes>>),
}

impl core::fmt::Debug for Transport {
    fn fmt(&self, f: &mut core::fmt::Formatter<'_>) -> core::fmt::Result {
        // Invariant: neither the URL (its path may be a key) nor the headers are printed.
        f.write_str("Transport(…)")
    }
}

impl Transport {
    /// To the node at `uri`, which is one of the configuration's.
    pub(crate) fn new(config: &NodeConfig, uri: &Uri) -> Result<Self, std::io::Error> {
        let mut connector = HttpConnector::new();
        connector.set_nodelay(true);
        connector.set_connect_timeout(Some(Duration::from_secs(5)));
        connector.enforce_http(false);
        let mut builder = Client::builder(TokioExecutor::new());
        let bounds = config.connections();
        builder
            .pool_timer(TokioTimer::new())
            .pool_idle_timeout(bounds.idle)
            .pool_max_idle_per_host(bounds.max_idle.min(bounds.max.unwrap_or(usize::MAX)));
        let client = if uri.scheme() == Some(&http::uri::Scheme::HTTPS) {
            let tls = HttpsConnectorBuilder::new()
                .with_native_roots()?
                .https_only()
                .enable_http1();
            Pool::Tls(builder.build(tls.wrap_connector(connector)))
        } else {
            Pool::Plain(builder.build(connector))
        };
        let mut headers = HeaderMap::new();
        headers.insert(header::CONTENT_TYPE, HeaderValue::from_static("application/json"));
        let (key_header, own) = (config.key_header(), config.api_key());
        let own_key = own.as_ref().map_or(KeyId::NONE, UpstreamKey::id);
        if let Some(own) = own {
            headers.insert(key_header.clone(), own.value());
        }
        let in_use = bounds.max.map(|max| Semaphore::new(max.min(Semaphore::MAX_PERMITS)));
        let (uri, patience, largest_trace) = (uri.clone(), config.patience(), config.largest_trace());
        let answers = Arc::clone(config.answers());
        Ok(Self {
            client,
            uri,
            headers,
            key_header,
            own_key,
            patience,
            largest_trace,
            answers,
            in_use,
        })
    }

    /// By which key the node is asked, if not by `key`.
    pub(crate) const fn own_key(&self) -> KeyId {
        self.own_key
    }

    /// Posts `body`, with `key` in place of our own, and reads the whole answer: for this request, or for the gateway.
    pub(crate) async fn exchange(
        &self,
        body: Bytes,
        budget: Budget,
        key: Option<&UpstreamKey>,
        hold: Option<&Arc<AnswerHold>>,
    ) -> Result<Bytes, NodeError> {
        let mut request = Request::new(Full::new(body));
        *request.method_mut() = Method::POST;
        *request.uri_mut() = self.uri.clone();
        *request.headers_mut() = self.headers.clone();
        if let Some(key) = key {
            request.headers_mut().insert(self.key_header.clone(), key.value());
        }
        let by = key.map_or(self.own_key, UpstreamKey::id);
        let room = RoomWait::default();
        let reading = Reading {
            cap: budget.size(self.largest_trace),
            answers: &self.answers,
            hold,
            room: &room,
            lease: None,
            read: Vec::new(),
        };
        tokio::select! {
            biased;
            answer = self.round_trip(request, by, reading) => answer,
            () = room.overdue(budget.time(&self.patience)) => Err(NodeError::Timeout),
        }
    }

    async fn round_trip(
        &self,
        request: Request<Full<Bytes>>,
        by: KeyId,
        reading: Reading<'_>,
    ) -> Result<Bytes, NodeError> {
        let _in_use = match &self.in_use {
            // Never closed, so there is always a permit to wait for; the deadline ends the waiting.
            Some(free) => free.acquire().await.ok(),
            None => None,
        };
        let response = match &self.client {
            Pool::Plain(client) => client.request(request),
            Pool::Tls(client) => client.request(request),
        }
        .await
        .map_err(NodeError::Unreachable)?;
        match response.status() {
            StatusCode::TOO_MANY_REQUESTS => return Err(NodeError::RateLimited(by)),
            // What stands in front of a node says so when it does not reach it; a node's own words are JSON.
            StatusCode::BAD_GATEWAY | StatusCode::SERVICE_UNAVAILABLE | StatusCode::GATEWAY_TIMEOUT
                if !is_json(response.headers()) =>
            {
                return Err(NodeError::Unavailable);
            }
            _ => {}
        }
        reading.collect(response.into_body()).await
    }
}

fn is_json(headers: &HeaderMap) -> bool {
    let kind = headers.get(header::CONTENT_TYPE).and_then(|kind| kind.to_str().ok());
    kind.is_some_and(|kind| kind.starts_with("application/json"))
}

/// How long an exchange has waited for room: the node is not to blame for that.
#[derive(Debug, Default)]
struct RoomWait(Mutex<Waited>);

#[derive(Debug, Default)]
struct Waited {
    before: Duration,
    since: Option<Instant>,
}

impl RoomWait {
    fn lock(&self) -> MutexGuard<'_, Waited> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn spent(&self) -> Duration {
        let waited = self.lock();
        waited
            .before
            .saturating_add(waited.since.map_or(Duration::ZERO, |since| since.elapsed()))
    }

    async fn during<T>(&self, waiting: impl Future<Output = T>) -> T {
        self.lock().since = Some(Instant::now());
        let done = waiting.await;
        let before = self.spent();
        *self.lock() = Waited { before, since: None };
        done
    }

    /// Returns when this long has passed without the waits for room.
    async fn overdue(&self, time: Duration) {
        let start = Instant::now();
        loop {
            let left = time.saturating_add(self.spent()).saturating_sub(start.elapsed());
            if left.is_zero() {
                return;
            }
            tokio::time::sleep(left).await;
        }
    }
}

/// A body as it is read. Room is taken before bytes are, so that what there is no room for stays with the node.
struct Reading<'a> {
    cap: usize,
    answers: &'a Arc<AnswerBudget>,
    hold: Option<&'a Arc<AnswerHold>>,
    room: &'a RoomWait,
    lease: Option<ByteLease>,
    read: Vec<u8>,
}

impl Reading<'_> {
    /// Reads a body of at most so many bytes; an answer in one frame is not copied.
    async fn collect(mut self, mut body: hyper::body::Incoming) -> Result<Bytes, NodeError> {
        let cap = self.cap;
        let mut first = Bytes::new();
        // What is announced is made room for once; an announcement beyond the cap is refused before a byte is read.
        let announced = usize::try_from(body.size_hint().lower()).unwrap_or(usize::MAX);
        if announced > cap {
            return Err(NodeError::TooLarge);
        }
        self.make_room(announced).await?;
        while let Some(frame) = body.frame().await {
            let Ok(data) = frame.map_err(NodeError::Broken)?.into_data() else {
                continue;
            };
            let length = first.len() + self.read.len() + data.len();
            if length > cap {
                return Err(NodeError::TooLarge);
            }
            if first.is_empty() && self.read.is_empty() {
                self.make_room(length).await?;
                first = data;
                continue;
            }
            if length > self.read.capacity() {
                // By halves: what was not announced may end soon.
                let capacity = length
                    .max(announced)
                    .max(self.read.capacity().saturating_mul(3) / 2)
                    .min(cap);
                self.make_room(capacity).await?;
                self.read.reserve_exact(capacity.saturating_sub(self.read.len()));
            }
            self.read.extend_from_slice(&std::mem::take(&mut first));
            self.read.extend_from_slice(&data);
        }
        let Self { lease, read, .. } = self;
        Ok(match lease {
            None if read.is_empty() => first,
            None => Bytes::from(read),
            Some(lease) if read.is_empty() => Leased::share(first, lease),
            Some(lease) => Leased::share(read, lease),
        })
    }

    async fn make_room(&mut self, bytes: usize) -> Result<(), NodeError> {
        if bytes <= SMALL {
            return Ok(());
        }
        let lease = match &mut self.lease {
            Some(lease) => lease,
            none => none.insert(lease_for(self.answers, self.hold).await?),
        };
        Ok(self.room.during(lease.grow_to(bytes)).await?)
    }
}

/// A lease of nothing yet, for this request or for the gateway itself.
async fn lease_for(answers: &Arc<AnswerBudget>, hold: Option<&Arc<AnswerHold>>) -> Result<ByteLease, NodeError> {
    let hold = hold.cloned().unwrap_or_else(|| {
        let own = AnswerHold::default();
        own.charge_to(answers, Payer::Gateway);
        Arc::new(own)
    });
    Ok(hold.lease(0).await?)
}
