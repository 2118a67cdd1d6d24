//! One HTTP exchange with the node: keep-alive connections, a deadline, and a size limit on the answer.
//!
//! It does not interpret the bytes: JSON-RPC is in `message`.

use crate::{
    answers::{AnswerBudget, AnswerHold, ByteLease, LeasedBytes, Payer, SMALL},
    config::{NodeConfig, Timeouts},
    error::NodeError,
    key::{KeyId, UpstreamKey},
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

/// The time and size limits of one exchange (spec/20 J9).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum RequestBudget {
    /// A forwarded call that the node may have to compute: 30 s, 128 MiB.
    Forward,
    /// A forwarded call for stored data, such as a balance or a receipt: 10 s, 128 MiB.
    Lookup,
    /// The trace of a read: [`Timeouts::read_trace`], [`NodeConfig::with_largest_trace`].
    ReadTrace,
    /// The trace of a send: [`Timeouts::send_trace`], [`NodeConfig::with_largest_trace`].
    SendTrace,
    /// The trace of mined transactions: this long, but at most [`Timeouts::send_trace`];
    /// [`NodeConfig::with_largest_trace`].
    MinedExecution(Duration),
    /// A fact that the gateway queries for itself: 5 s, 8 MiB.
    Fact,
    /// A block with the hashes of its transactions, or one transaction: 5 s, 128 MiB, which is more than any block
    /// needs (HD36).
    Block,
    /// Blocks with full transactions, four requests at a time: 30 s, 32 MiB each.
    Blocks,
    /// A health check where another node can take over: 2 s, 128 MiB.
    Look,
}

const MIB: usize = 1024 * 1024;

impl RequestBudget {
    fn time(self, timeouts: &Timeouts) -> Duration {
        match self {
            Self::Forward | Self::Blocks => Duration::from_secs(30),
            Self::Lookup => Duration::from_secs(10),
            Self::SendTrace => timeouts.send_trace,
            Self::ReadTrace => timeouts.read_trace,
            Self::MinedExecution(time) => time.min(timeouts.send_trace),
            Self::Fact | Self::Block => Duration::from_secs(5),
            Self::Look => Duration::from_secs(2),
        }
    }

    const fn size(self, largest_trace: usize) -> usize {
        match self {
            Self::Forward | Self::Lookup | Self::Block | Self::Look => 128 * MIB,
            Self::ReadTrace | Self::SendTrace | Self::MinedExecution(_) => largest_trace,
            Self::Blocks => 32 * MIB,
            Self::Fact => 8 * MIB,
        }
    }

    /// Whether the exchange is for a caller, and not for a fact that the gateway needs itself.
    pub(crate) const fn is_callers(self) -> bool {
        match self {
            Self::Forward | Self::Lookup | Self::Blocks | Self::ReadTrace | Self::SendTrace => true,
            Self::MinedExecution(_) | Self::Fact | Self::Block | Self::Look => false,
        }
    }
}

/// The connection pool of one node, and the headers of every request.
pub(crate) struct Transport {
    client: Pool,
    uri: Uri,
    headers: HeaderMap,
    key_header: HeaderName,
    own_key: KeyId,
    timeouts: Timeouts,
    largest_trace: usize,
    answers: Arc<AnswerBudget>,
    /// One permit per connection in use; an HTTP/1 connection carries one exchange at a time.
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
    /// A transport to the node at `uri`.
    pub(crate) fn new(config: &NodeConfig, uri: &Uri) -> Result<Self, std::io::Error> {
        let mut connector = HttpConnector::new();
        connector.set_nodelay(true);
        connector.set_connect_timeout(Some(Duration::from_secs(5)));
        connector.enforce_http(false);
        let mut builder = Client::builder(TokioExecutor::new());
        let limits = config.connections();
        builder
            .pool_timer(TokioTimer::new())
            .pool_idle_timeout(limits.idle)
            .pool_max_idle_per_host(limits.max_idle.min(limits.max.unwrap_or(usize::MAX)));
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
        let (key_header, api_key) = (config.key_header(), config.api_key());
        let own_key = api_key.as_ref().map_or(KeyId::NONE, UpstreamKey::id);
        if let Some(api_key) = api_key {
            headers.insert(key_header.clone(), api_key.value());
        }
        let in_use = limits.max.map(|max| Semaphore::new(max.min(Semaphore::MAX_PERMITS)));
        let (uri, timeouts, largest_trace) = (uri.clone(), config.timeouts(), config.largest_trace());
        let answers = Arc::clone(config.answers());
        Ok(Self {
            client,
            uri,
            headers,
            key_header,
            own_key,
            timeouts,
            largest_trace,
            answers,
            in_use,
        })
    }

    /// The id of the key that requests without a key of their own carry.
    pub(crate) const fn own_key(&self) -> KeyId {
        self.own_key
    }

    /// Posts `body` and reads the whole answer. `key` replaces the gateway's own key; `hold` is the request that the
    /// answer is charged to, or `None` for the gateway itself.
    pub(crate) async fn exchange(
        &self,
        body: Bytes,
        budget: RequestBudget,
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
        let key_id = key.map_or(self.own_key, UpstreamKey::id);
        let budget_wait = BudgetWait::default();
        let reading = BodyReader {
            cap: budget.size(self.largest_trace),
            answers: &self.answers,
            hold,
            budget_wait: &budget_wait,
            lease: None,
            read: Vec::new(),
        };
        tokio::select! {
            biased;
            answer = self.round_trip(request, key_id, reading) => answer,
            () = budget_wait.timed_out(budget.time(&self.timeouts)) => Err(NodeError::Timeout),
        }
    }

    async fn round_trip(
        &self,
        request: Request<Full<Bytes>>,
        key_id: KeyId,
        reading: BodyReader<'_>,
    ) -> Result<Bytes, NodeError> {
        let _permit = match &self.in_use {
            // The semaphore is never closed, so `acquire` succeeds; the deadline limits the wait.
            Some(semaphore) => semaphore.acquire().await.ok(),
            None => None,
        };
        let response = match &self.client {
            Pool::Plain(client) => client.request(request),
            Pool::Tls(client) => client.request(request),
        }
        .await
        .map_err(NodeError::Unreachable)?;
        match response.status() {
            StatusCode::TOO_MANY_REQUESTS => return Err(NodeError::RateLimited(key_id)),
            // A proxy in front of a node answers with these statuses when it does not reach the node; the node itself
            // answers in JSON.
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
    let content_type = headers.get(header::CONTENT_TYPE).and_then(|value| value.to_str().ok());
    content_type.is_some_and(|text| text.starts_with("application/json"))
}

/// The time that an exchange has waited for the memory budget; it does not count against the node's deadline.
#[derive(Debug, Default)]
struct BudgetWait(Mutex<WaitTimes>);

#[derive(Debug, Default)]
struct WaitTimes {
    finished: Duration,
    current_since: Option<Instant>,
}

impl BudgetWait {
    fn lock(&self) -> MutexGuard<'_, WaitTimes> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn spent(&self) -> Duration {
        let times = self.lock();
        times.finished.saturating_add(
            times
                .current_since
                .map_or(Duration::ZERO, |current_since| current_since.elapsed()),
        )
    }

    async fn during<T>(&self, waiting: impl Future<Output = T>) -> T {
        self.lock().current_since = Some(Instant::now());
        let output = waiting.await;
        let finished = self.spent();
        *self.lock() = WaitTimes {
            finished,
            current_since: None,
        };
        output
    }

    /// Returns when this much time has passed, not counting the waits for the memory budget.
    async fn timed_out(&self, time: Duration) {
        let start = Instant::now();
        loop {
            let remaining = time.saturating_add(self.spent()).saturating_sub(start.elapsed());
            if remaining.is_zero() {
                return;
            }
            tokio::time::sleep(remaining).await;
        }
    }
}

/// The state of reading a body. Bytes are reserved before they are read, so that unreserved bytes stay with the node.
struct BodyReader<'a> {
    cap: usize,
    answers: &'a Arc<AnswerBudget>,
    hold: Option<&'a Arc<AnswerHold>>,
    budget_wait: &'a BudgetWait,
    lease: Option<ByteLease>,
    read: Vec<u8>,
}

impl BodyReader<'_> {
    /// Reads the body up to `cap` bytes; an answer in one frame is not copied.
    async fn collect(mut self, mut body: hyper::body::Incoming) -> Result<Bytes, NodeError> {
        let cap = self.cap;
        let mut first = Bytes::new();
        // The announced size is reserved at once; an announcement beyond the cap is refused before a byte is read.
        let announced = usize::try_from(body.size_hint().lower()).unwrap_or(usize::MAX);
        if announced > cap {
            return Err(NodeError::TooLarge);
        }
        self.reserve(announced).await?;
        while let Some(frame) = body.frame().await {
            let Ok(data) = frame.map_err(NodeError::Broken)?.into_data() else {
                continue;
            };
            let length = first.len() + self.read.len() + data.len();
            if length > cap {
                return Err(NodeError::TooLarge);
            }
            if first.is_empty() && self.read.is_empty() {
                self.reserve(length).await?;
                first = data;
                continue;
            }
            if length > self.read.capacity() {
                // Grows by half: a body without an announced size may end soon.
                let capacity = length
                    .max(announced)
                    .max(self.read.capacity().saturating_mul(3) / 2)
                    .min(cap);
                self.reserve(capacity).await?;
                self.read.reserve_exact(capacity.saturating_sub(self.read.len()));
            }
            self.read.extend_from_slice(&std::mem::take(&mut first));
            self.read.extend_from_slice(&data);
        }
        let Self { lease, read, .. } = self;
        Ok(match lease {
            None if read.is_empty() => first,
            None => Bytes::from(read),
            Some(lease) if read.is_empty() => LeasedBytes::share(first, lease),
            Some(lease) => LeasedBytes::share(read, lease),
        })
    }

    async fn reserve(&mut self, bytes: usize) -> Result<(), NodeError> {
        if bytes <= SMALL {
            return Ok(());
        }
        let lease = match &mut self.lease {
            Some(lease) => lease,
            none => none.insert(lease_for(self.answers, self.hold).await?),
        };
        Ok(self.budget_wait.during(lease.grow_to(bytes)).await?)
    }
}

/// An empty lease, for this request or for the gateway itself.
async fn lease_for(answers: &Arc<AnswerBudget>, hold: Option<&Arc<AnswerHold>>) -> Result<ByteLease, NodeError> {
    let hold = hold.cloned().unwrap_or_else(|| {
        let gateway_hold = AnswerHold::default();
        gateway_hold.charge_to(answers, Payer::Gateway);
        Arc::new(gateway_hold)
    });
    Ok(hold.lease(0).await?)
}
