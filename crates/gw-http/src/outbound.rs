//! Requests to other services, with a deadline and a size limit. Redirects are returned as answers, not followed.

use bytes::Bytes;
use http::{Request, Response};
use http_body_util::{BodyExt as _, Full, Limited};
use hyper_rustls::{HttpsConnector, HttpsConnectorBuilder};
use hyper_util::{
    client::legacy::{Client, connect::HttpConnector},
    rt::{TokioExecutor, TokioTimer},
};
use std::time::Duration;

/// How long an idle connection is kept.
const IDLE: Duration = Duration::from_secs(30);

/// Why a request has no answer.
#[derive(Debug, thiserror::Error)]
pub enum OutboundError {
    /// The connection failed, or the host's certificate is not trusted.
    #[error("the host cannot be reached")]
    Unreachable(#[source] hyper_util::client::legacy::Error),
    /// The answer broke off, or is too large.
    #[error("the answer cannot be read")]
    Answer(#[source] Box<dyn core::error::Error + Send + Sync>),
    /// No answer in time.
    #[error("no answer in time")]
    Timeout,
}

/// The limits of a client's connections.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ConnectionPool {
    /// The longest wait for a connection.
    pub connect_timeout: Duration,
    /// Idle connections that are kept for each host.
    pub idle_per_host: usize,
    /// Whether plain http is refused.
    pub https_only: bool,
}

/// The limits of one answer.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct AnswerLimits {
    /// The largest body, in bytes.
    pub bytes: usize,
    /// The longest wait for the whole answer.
    pub deadline: Duration,
}

/// A client with a pool of connections. Cheap to clone: clones share the pool.
#[derive(Clone)]
pub struct HttpClient(Client<HttpsConnector<HttpConnector>, Full<Bytes>>);

impl core::fmt::Debug for HttpClient {
    fn fmt(&self, f: &mut core::fmt::Formatter<'_>) -> core::fmt::Result {
        f.write_str("HttpClient(…)")
    }
}

impl HttpClient {
    /// Creates a client that trusts the certificates that this machine trusts.
    ///
    /// # Errors
    /// If these certificates cannot be read.
    pub fn new(pool: ConnectionPool) -> Result<Self, std::io::Error> {
        let mut tcp = HttpConnector::new();
        tcp.set_nodelay(true);
        tcp.set_connect_timeout(Some(pool.connect_timeout));
        tcp.enforce_http(false);
        let tls = HttpsConnectorBuilder::new().with_native_roots()?;
        let tls = if pool.https_only {
            tls.https_only()
        } else {
            tls.https_or_http()
        };
        let client = Client::builder(TokioExecutor::new())
            .pool_timer(TokioTimer::new())
            .pool_idle_timeout(IDLE)
            .pool_max_idle_per_host(pool.idle_per_host)
            .build(tls.enable_http1().wrap_connector(tcp));
        Ok(Self(client))
    }

    /// Sends a request and reads the whole answer, within the limits.
    ///
    /// # Errors
    /// [`OutboundError`] if there is no whole answer within the limits.
    pub async fn exchange(
        &self,
        request: Request<Full<Bytes>>,
        limits: AnswerLimits,
    ) -> Result<Response<Bytes>, OutboundError> {
        let exchange = async {
            let response = self.0.request(request).await.map_err(OutboundError::Unreachable)?;
            let (parts, body) = response.into_parts();
            let body = Limited::new(body, limits.bytes).collect().await;
            let body = body.map_err(OutboundError::Answer)?;
            Ok(Response::from_parts(parts, body.to_bytes()))
        };
        tokio::time::timeout(limits.deadline, exchange)
            .await
            .map_err(|_| OutboundError::Timeout)?
    }
}
