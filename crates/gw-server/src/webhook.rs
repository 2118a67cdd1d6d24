//! Posts to addresses that the operator names: a witness of checkpoints, a receiver of tamper findings.
//!
//! Redirects are answers, never followed: what is posted goes where the operator said, or nowhere.

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

/// How long one try may take, how many there are, and the rest between them.
const DEADLINE: Duration = Duration::from_secs(10);
const TRIES: u32 = 3;
const BETWEEN: Duration = Duration::from_secs(1);
/// Posts waiting at most.
const QUEUE: usize = 256;

/// What is posted.
#[derive(Debug)]
pub(crate) struct Post {
    pub(crate) content_type: &'static str,
    pub(crate) body: String,
}

/// A queue of posts to one address. A full queue loses the newest post; nobody waits for it.
#[derive(Clone, Debug)]
pub(crate) struct Webhook {
    name: &'static str,
    queue: Sender<Post>,
}

impl Webhook {
    /// Starts posting to an address, which `name` names in the log.
    pub(crate) fn start(name: &'static str, url: &Url) -> anyhow::Result<Self> {
        let mut tcp = HttpConnector::new();
        tcp.enforce_http(false);
        tcp.set_connect_timeout(Some(DEADLINE));
        let tls = HttpsConnectorBuilder::new()
            .with_native_roots()
            .context("no trusted certificates")?;
        let client =
            Client::builder(TokioExecutor::new()).build(tls.https_or_http().enable_http1().wrap_connector(tcp));
        let (queue, mut posts) = channel::<Post>(QUEUE);
        let url = url.clone();
        tokio::spawn(async move {
            while let Some(post) = posts.recv().await {
                if let Err(error) = deliver(&client, &url, &post).await {
                    tracing::warn!(
                        error = format!("{error:#}"),
                        "{name} was not told; its address does not take the post"
                    );
                }
            }
        });
        Ok(Self { name, queue })
    }

    /// Posts as soon as what waits before it was posted.
    pub(crate) fn post(&self, post: Post) {
        if self.queue.try_send(post).is_err() {
            tracing::warn!("{} was not told: too much waits to be posted", self.name);
        }
    }
}

type HttpClient = Client<HttpsConnector<HttpConnector>, Full<Bytes>>;

async fn deliver(client: &HttpClient, url: &Url, post: &Post) -> anyhow::Result<()> {
    let mut tries = 1;
    loop {
        match timeout(DEADLINE, once(client, url, post)).await {
            Ok(Ok(())) => return Ok(()),
            Ok(Err(error)) if tries >= TRIES => return Err(error),
            Err(_) if tries >= TRIES => bail!("no answer in time"),
            Ok(Err(_)) | Err(_) => {}
        }
        tries += 1;
        sleep(BETWEEN).await;
    }
}

async fn once(client: &HttpClient, url: &Url, post: &Post) -> anyhow::Result<()> {
    let request = Request::builder()
        .method(Method::POST)
        .uri(url.as_str())
        .header(CONTENT_TYPE, post.content_type)
        .body(Full::new(Bytes::from(post.body.clone())))?;
    let answer = client.request(request).await?;
    if answer.status().is_success() {
        Ok(())
    } else {
        bail!("the answer was {}", answer.status().as_u16())
    }
}
