//! HTTP POST requests to addresses that the operator configures: the witness of checkpoints and the receiver of tamper
//! findings.
//!
//! Redirects are not followed: a post is sent to the configured address only.

use anyhow::{Context as _, bail};
use bytes::Bytes;
use http::{Method, Request, header::CONTENT_TYPE};
use http_body_util::Full;
use hyper_rustls::{HttpsConnector, HttpsConnectorBuilder};
use hyper_util::{
    client::legacy::{Client, connect::HttpConnector},
    rt::TokioExecutor,
};
use std::time::Duration;
use tokio::{
    sync::mpsc::{Sender, channel},
    time::{sleep, timeout},
};
use url::Url;

/// Time limit of one attempt.
const ATTEMPT_TIMEOUT: Duration = Duration::from_secs(10);
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
