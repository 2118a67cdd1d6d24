//! Calls to third-party hosts, with a deadline and a size limit. Redirects are returned as answers, not followed.

use axum::body::Bytes;
use http::{Request, Response};
use http_body_util::{BodyExt, Full, Limited};
use hyper_rustls::{HttpsConnector, HttpsConnectorBuilder};
use hyper_util::{
    client::legacy::{Client, connect::HttpConnector},
    rt::{TokioExecutor, TokioTimer},
};
use std::time::Duration;

/// Why an outbound call failed.
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

/// A connection pool for third-party hosts. Cheap to clone.
#[derive(Clone)]
pub(crate) struct Outbound(Client<HttpsConnector<HttpConnector>, Full<Bytes>>);

impl core::fmt::Debug for Outbound {
    fn fmt(&self, f: &mut core::fmt::Formatter<'_>) -> core::fmt::Result {
        f.write_str("Outbound(…)")
    }
}

impl Outbound {
    /// Creates a pool that trusts the certificates that this machine trusts.
    pub(crate) fn new() -> Result<Self, std::io::Error> {
        let mut tcp = HttpConnector::new();
        tcp.set_nodelay(true);
        tcp.set_connect_timeout(Some(Duration::from_secs(3)));
        tcp.enforce_http(false);
        let tls = HttpsConnectorBuilder::new()
            .with_native_roots()?
            .https_or_http()
            .enable_http1()
            .wrap_connector(tcp);
        let client = Client::builder(TokioExecutor::new())
            .pool_timer(TokioTimer::new())
            .pool_idle_timeout(Duration::from_secs(30))
            .pool_max_idle_per_host(4)
            .build(tls);
        Ok(Self(client))
    }

    /// Sends a request and reads the whole answer: at most `cap` bytes, within `deadline`.
    pub(crate) async fn exchange(
        &self,
        request: Request<Full<Bytes>>,
        cap: usize,
        deadline: Duration,
    ) -> Result<Response<Bytes>, OutboundError> {
        let exchange = async {
            let (parts, body) = self
                .0
                .request(request)
                .await
                .map_err(OutboundError::Unreachable)?
                .into_parts();
            let body = Limited::new(body, cap).collect().await.map_err(OutboundError::Answer)?;
            Ok(Response::from_parts(parts, body.to_bytes()))
        };
        tokio::time::timeout(deadline, exchange)
            .await
            .map_err(|_| OutboundError::Timeout)?
    }
}
