//! Hostile requests to the explorer's backend, as bytes on its real listener, in front of a gateway that notes what
//! reaches it (spec/40 section 7).

use crate::{explorer_backend, harness::MAX_POLLS};
use axum::{
    Router,
    extract::{Request, State},
};
use gw_testkit::port;
use http_body_util::BodyExt as _;
use std::{
    collections::BTreeSet,
    sync::{Arc, Mutex},
    time::Duration,
};
use tokio::{
    io::{AsyncReadExt as _, AsyncWriteExt as _},
    net::{TcpListener, TcpStream},
    time::timeout,
};

/// A request at the gateway: method and target, the names of its headers, its body.
type ReceivedRequest = (String, BTreeSet<String>, Vec<u8>);

struct Target {
    address: String,
    requests: Arc<Mutex<Vec<ReceivedRequest>>>,
    _process: crate::harness::Process,
}

impl Target {
    async fn start() -> Self {
        let requests: Arc<Mutex<Vec<ReceivedRequest>>> = Arc::default();
        let listener = TcpListener::bind(("127.0.0.1", 0)).await.unwrap();
        let gateway = format!("http://{}", listener.local_addr().unwrap());
        let router = Router::new().fallback(record_request).with_state(Arc::clone(&requests));
        tokio::spawn(async move { axum::serve(listener, router).await });
        let port = port::reserve().to_string();
        let address = format!("127.0.0.1:{port}");
        let settings = [
            ("PORT", port.as_str()),
            ("PRIVACY_PROXY_URL", &gateway),
            ("CORS_ALLOWED_ORIGINS", "http://own.example"),
            ("LOG_LEVEL", "error"),
        ];
        let process = explorer_backend::spawn(&settings);
        for _ in 0..MAX_POLLS {
            if TcpStream::connect(&address).await.is_ok() {
                break;
            }
            tokio::time::sleep(Duration::from_millis(100)).await;
        }
        Self {
            address,
            requests,
            _process: process,
        }
    }

    /// Sends bytes, and returns the statuses of all answers until the connection is closed.
    async fn send(&self, bytes: &[u8]) -> Vec<u16> {
        let mut stream = TcpStream::connect(&self.address).await.unwrap();
        // The backend may answer and close before it has read everything.
        let _ = stream.write_all(bytes).await;
        let mut answer = Vec::new();
        // Without limits of its own, the backend would wait for a minute, or for ever.
        let closed = timeout(Duration::from_secs(45), stream.read_to_end(&mut answer)).await;
        let _ = closed.expect("the connection is closed in time");
        let text = String::from_utf8_lossy(&answer).into_owned();
        let statuses = text.split("HTTP/1.1 ").skip(1);
        statuses.map(|rest| rest[..3].parse().unwrap()).collect()
    }

    fn take(&self) -> Vec<ReceivedRequest> {
        std::mem::take(&mut self.requests.lock().unwrap())
    }
}

async fn record_request(State(requests): State<Arc<Mutex<Vec<ReceivedRequest>>>>, request: Request) -> &'static str {
    let (parts, body) = request.into_parts();
    let names = parts.headers.keys().map(|name| name.as_str().to_owned()).collect();
    let body = body.collect().await.unwrap().to_bytes().to_vec();
    let what = format!("{} {}", parts.method, parts.uri);
    requests.lock().unwrap().push((what, names, body));
    "[]"
}

/// A request for this target, with these header lines.
fn get(target: &str, headers: &str) -> Vec<u8> {
    format!("GET {target} HTTP/1.1\r\nhost: own.example\r\nconnection: close\r\n{headers}\r\n").into_bytes()
}

/// Encoded slashes, dot segments, foreign hosts: nothing leaves the trees that the route table names.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn section_7_no_path_leaves_its_tree() {
    let target = Target::start().await;
    for path in [
        "/api/../admin/orgs",
        "/api/blocks/../../../v1/admin/orgs",
        "/api/%2e%2e/admin/orgs",
        "/api/%2E%2E%2Fadmin",
        "/api/..%2fadmin",
        "/api/blocks%2f..%2f..%2fadmin",
        "/api/blocks%5c..%5cadmin",
        "/api/blocks%00",
        "/api/blocks%0d%0ax-admin-token:%20x",
        "/api/%252e%252e/admin",
        "/api/blocks;/../admin",
        "/api/./blocks",
        "/api//blocks",
        "/api//evil.example/blocks",
        "//evil.example/api/blocks",
        "/api/blocks/",
        "/api/@evil.example/",
        "/api/v1/../../rpc",
        "/api\\..\\admin",
        "/rpc",
        "/metrics",
        "/openapi.json",
        "/oauth/token",
        "/.well-known/jwks.json",
    ] {
        let statuses = target.send(&get(path, "")).await;
        assert!(matches!(statuses[..], [400 | 404]), "{path}: {statuses:?}");
    }
    assert_eq!(target.take(), [], "nothing reached the gateway");
    // What does reach it is the path of the table and the query as it was sent, on the configured host.
    for (ours, theirs) in [
        ("/api/blocks", "GET /api/v1/explorer/blocks"),
        ("/api/blocks#/../admin", "GET /api/v1/explorer/blocks"),
        ("http://evil.example/api/blocks", "GET /api/v1/explorer/blocks"),
        (
            "/api/blocks?x=%0d%0ay:z&p=../../admin&q=%2f..",
            "GET /api/v1/explorer/blocks?x=%0d%0ay:z&p=../../admin&q=%2f..",
        ),
    ] {
        assert_eq!(target.send(&get(ours, "")).await, [200], "{ours}");
        let requests = target.take();
        assert_eq!(requests.len(), 1, "{requests:?}");
        assert_eq!(requests[0].0, theirs);
    }
}

/// Two ways to read one request, and headers that only the backend may set.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn section_7_no_header_is_smuggled() {
    let target = Target::start().await;
    let post = |headers: &str, body: &str| {
        format!(
            "POST /api/eth/link/verify HTTP/1.1\r\nhost: own.example\r\norigin: http://own.example\r\n\
             connection: close\r\n{headers}\r\n{body}"
        )
        .into_bytes()
    };
    let hidden = "0\r\n\r\nGET /api/tokens HTTP/1.1\r\nhost: x\r\n\r\n";
    for malformed in [
        post("content-length: 1\r\ncontent-length: 2\r\n", "ab"),
        post("content-length: 1, 2\r\n", "ab"),
        post("content-length: +1\r\n", "a"),
        post("content-length: -1\r\n", "a"),
        post("transfer-encoding: chunked, identity\r\n", hidden),
        post("transfer-encoding: xchunked\r\n", hidden),
        post("x-a: b\r\n x-folded: c\r\n", ""),
        post("x-a : b\r\n", ""),
        post("x\0: b\r\n", ""),
        post("x-a: b\0c\r\n", ""),
        get("/api/blocks?x=a b", ""),
        b"GET /api/blocks HTTP/1.1\r\nhost: a\r\n\r\n"
            .map(|byte| if byte == b'\r' { b' ' } else { byte })
            .to_vec(),
        b"GET /api/blocks\r\n\r\n".to_vec(),
        b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n".to_vec(),
    ] {
        let statuses = target.send(&malformed).await;
        let text = String::from_utf8_lossy(&malformed).into_owned();
        assert!(matches!(statuses[..], [] | [400]), "{text:?}: {statuses:?}");
    }
    assert_eq!(target.take(), [], "nothing reached the gateway");

    // A length beside chunks: the chunks count, and the rest is no request on this connection.
    let both = post("content-length: 4\r\ntransfer-encoding: chunked\r\n", hidden);
    let statuses = target.send(&both).await;
    assert!(matches!(statuses[..], [] | [400] | [200]), "{statuses:?}");
    for (what, names, body) in target.take() {
        assert_eq!(
            (what.as_str(), body.as_slice()),
            ("POST /api/v1/eth/link/verify", &b""[..])
        );
        assert!(!names.contains("transfer-encoding"), "{names:?}");
    }

    let smuggled = "authorization: Bearer x\r\nx-forwarded-for: 127.0.0.1\r\nforwarded: for=127.0.0.1\r\n\
                    x-real-ip: 127.0.0.1\r\nx-admin-token: x\r\nx-explorer-key: x\r\nx-org-id: x\r\n\
                    x-view-as: x\r\ncookie: pp_access=x; explorer_auth=x\r\n\
                    upgrade: websocket\r\nte: trailers\r\ntrailer: x-t\r\nrange: bytes=0-1\r\nif-none-match: *\r\n\
                    expect: 100-continue\r\nproxy-authorization: x\r\naccept-encoding: gzip\r\n";
    target.send(&get("/api/blocks", smuggled)).await;
    let requests = target.take();
    assert_eq!(requests.len(), 1, "{requests:?}");
    // X-Org-Id narrows what is shown; the gateway checks it.
    let allowed = ["accept", "host", "x-correlation-id", "x-org-id"].map(str::to_owned);
    assert_eq!(requests[0].1, BTreeSet::from(allowed));

    for method in ["CONNECT", "TRACE", "OPTIONS", "PUT", "PATCH", "DELETE", "get", "X"] {
        let request = format!(
            "{method} /api/blocks HTTP/1.1\r\nhost: a\r\norigin: http://own.example\r\nconnection: close\r\n\r\n"
        );
        let statuses = target.send(request.as_bytes()).await;
        assert!(matches!(statuses[..], [] | [400 | 404 | 405]), "{method}: {statuses:?}");
    }
    assert_eq!(target.take(), [], "no other method reached the gateway");
}

/// Sizes and times of a request are limited before it is forwarded.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn section_7_a_request_has_its_limits() {
    let target = Target::start().await;
    let large = format!("x-large: {}\r\n", "x".repeat(20 * 1024));
    assert_eq!(target.send(&get("/api/blocks", &large)).await, [431]);
    let many: String = (0..200).map(|n| format!("x-{n}: y\r\n")).collect();
    assert_eq!(target.send(&get("/api/blocks", &many)).await, [431]);
    let long = format!("/api/blocks?{}", "x".repeat(70 * 1024));
    let statuses = target.send(&get(&long, "")).await;
    assert!(matches!(statuses[..], [] | [414 | 431]), "{statuses:?}");
    let body = "x".repeat(1024 * 1024 + 1);
    let head = "POST /api/eth/link/verify HTTP/1.1\r\nhost: a\r\norigin: http://own.example\r\nconnection: close\r\n";
    let counted = format!("{head}content-length: {}\r\n\r\n{body}", body.len());
    let chunked = format!(
        "{head}transfer-encoding: chunked\r\n\r\n{:x}\r\n{body}\r\n0\r\n\r\n",
        body.len()
    );
    for request in [counted, chunked] {
        let statuses = target.send(request.as_bytes()).await;
        // The client may still be writing when the answer comes, so that it never reads it.
        assert!(matches!(statuses[..], [] | [413]), "{statuses:?}");
    }
    // Headers that never end, and a body that never comes: the connection is closed within its time.
    assert!(target.send(b"GET /api/blocks HTTP/1.1\r\nhost: a\r\n").await.is_empty());
    let statuses = target
        .send(format!("{head}content-length: 5\r\n\r\nab").as_bytes())
        .await;
    assert!(matches!(statuses[..], [400 | 408]), "{statuses:?}");
    assert_eq!(target.take(), [], "nothing reached the gateway");
    // And the process still serves.
    assert_eq!(target.send(&get("/health/ready", "")).await, [200]);
}
