//! HTTP POST requests: to addresses that the operator configures, the witness of checkpoints and the receiver of tamper
//! findings ([`Webhook`]), and to the webhooks of organizations ([`DeliveryClient`]).
//!
//! Redirects are not followed: a post is sent to the configured address only. Only the status of an answer is read.

mod admitted;
#[cfg(test)]
mod tests;

use admitted::AdmittedConnector;
use anyhow::{Context as _, bail};
use bytes::Bytes;
use gw_http::DeliveryNetworks;
use gw_store::record::DeliveryFailure;
use http::{Method, Request, header::CONTENT_TYPE};
use http_body_util::Full;
use hyper_rustls::{HttpsConnector, HttpsConnectorBuilder};
use hyper_util::{
    client::legacy::{
        Client,
        connect::{HttpConnector, dns::GaiResolver},
    },
    rt::TokioExecutor,
};
use std::{sync::Arc, time::Duration};
use tokio::{
    sync::mpsc::{Sender, channel},
    time::{sleep, timeout},
};
use url::Url;

/// Time limit of one attempt.
const ATTEMPT_TIMEOUT: Duration = Duration::from_secs(10);
/// Maximum bytes of the status line and the headers of a receiver's answer.
const ANSWER_HEAD: usize = 16 * 1024;
/// Attempts for one post.
const MAX_ATTEMPTS: u32 = 3;
/// Pause between two attempts.
const RETRY_DELAY: Duration = Duration::from_secs(1);
/// Posts that may wait in the queue.
const QUEUE_CAPACITY: usize = 256;

/// One request to send.
#[derive(Debug)]
pub(crate) struct Post {
    pub(crate) content_type: &'static str,
    pub(crate) body: String,
}

/// A queue of posts to one address. Callers never wait: if the queue is full, the new post is dropped.
#[derive(Clone, Debug)]
pub(crate) struct Webhook {
    name: &'static str,
    queue: Sender<Post>,
}

impl Webhook {
    /// Starts the task that posts to `url`. Log lines call the address `name`, the configuration variable.
    ///
    /// # Errors
    /// If the system has no trusted root certificates.
    pub(crate) fn start(name: &'static str, url: &Url) -> anyhow::Result<Self> {
        let mut tcp = HttpConnector::new();
        tcp.enforce_http(false);
        tcp.set_connect_timeout(Some(ATTEMPT_TIMEOUT));
        let tls = HttpsConnectorBuilder::new()
            .with_native_roots()
            .context("the system has no trusted root certificates")?;
        let client =
            Client::builder(TokioExecutor::new()).build(tls.https_or_http().enable_http1().wrap_connector(tcp));
        let (queue, mut posts) = channel::<Post>(QUEUE_CAPACITY);
        let url = url.clone();
        tokio::spawn(async move {
            while let Some(post) = posts.recv().await {
                if let Err(error) = deliver(&client, &url, &post).await {
                    tracing::warn!(
                        error = format!("{error:#}"),
                        "{name}: the post was not delivered; check the address and its server"
                    );
                }
            }
        });
        Ok(Self { name, queue })
    }

    /// Queues a post behind those that wait already.
    pub(crate) fn post(&self, post: Post) {
        if self.queue.try_send(post).is_err() {
            tracing::warn!(
                "{}: the post was dropped because the queue is full; check the address and its server",
                self.name
            );
        }
    }
}

type HttpClient = Client<HttpsConnector<HttpConnector>, Full<Bytes>>;

async fn deliver(client: &HttpClient, url: &Url, post: &Post) -> anyhow::Result<()> {
    let mut attempts = 1;
    loop {
        match timeout(ATTEMPT_TIMEOUT, send(client, url, post)).await {
            Ok(Ok(())) => return Ok(()),
            Ok(Err(error)) if attempts >= MAX_ATTEMPTS => return Err(error),
            Err(_) if attempts >= MAX_ATTEMPTS => bail!("no response within {} s", ATTEMPT_TIMEOUT.as_secs()),
            Ok(Err(_)) | Err(_) => {}
        }
        attempts += 1;
        sleep(RETRY_DELAY).await;
    }
}

async fn send(client: &HttpClient, url: &Url, post: &Post) -> anyhow::Result<()> {
    let request = Request::builder()
        .method(Method::POST)
        .uri(url.as_str())
        .header(CONTENT_TYPE, post.content_type)
        .body(Full::new(Bytes::from(post.body.clone())))?;
    let response = client.request(request).await?;
    if response.status().is_success() {
        Ok(())
    } else {
        bail!("the response has status {}", response.status().as_u16())
    }
}

/// The client for deliveries to the webhooks of organizations; `R` resolves host names.
#[derive(Clone)]
pub(crate) struct DeliveryClient<R = GaiResolver>(Client<HttpsConnector<AdmittedConnector<R>>, Full<Bytes>>);

impl<R> std::fmt::Debug for DeliveryClient<R> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("DeliveryClient(…)")
    }
}

impl DeliveryClient {
    /// Creates the client, which connects to these networks only.
    ///
    /// # Errors
    /// If the system has no trusted root certificates.
    pub(crate) fn new(networks: &Arc<DeliveryNetworks>) -> anyhow::Result<Self> {
        let tls = HttpsConnectorBuilder::new()
            .with_native_roots()
            .context("the system has no trusted root certificates")?;
        let tls = if networks.requires_https() {
            tls.https_only()
        } else {
            tls.https_or_http()
        };
        let tls = tls
            .enable_http1()
            .wrap_connector(AdmittedConnector::new(networks, GaiResolver::new()));
        // Each delivery opens a connection, so that its address is checked.
        let client = Client::builder(TokioExecutor::new())
            .pool_max_idle_per_host(0)
            .http1_max_buf_size(ANSWER_HEAD)
            .build(tls);
        Ok(Self(client))
    }

    /// Sends a request. Only a status 2xx is a success.
    ///
    /// # Errors
    /// Why the delivery failed.
    pub(crate) async fn deliver(&self, request: Request<Full<Bytes>>) -> Result<(), DeliveryFailure> {
        match timeout(ATTEMPT_TIMEOUT, self.0.request(request)).await {
            Ok(Ok(response)) if response.status().is_success() => Ok(()),
            Ok(Ok(response)) => Err(DeliveryFailure::Status(response.status().as_u16())),
            Ok(Err(error)) if admitted::is_not_admitted(&error) => Err(DeliveryFailure::AddressNotAllowed),
            Ok(Err(_)) => Err(DeliveryFailure::ConnectionFailed),
            Err(_) => Err(DeliveryFailure::Timeout),
        }
    }
}
