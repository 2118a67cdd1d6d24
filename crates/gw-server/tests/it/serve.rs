//! The `serve` command from start to shutdown (spec/85 sections 3, 4 and 6).

use crate::process::{Serving, command, gateway, request, stderr};
use gw_testkit::{
    anvil::{Anvil, AnvilOptions, anvil},
    port,
};
use std::net::{Shutdown, TcpListener, TcpStream};

#[test]
fn health_readiness_and_metrics_report_the_state() {
    let node = anvil();
    let gateway = Serving::start(node.url(), &[]).ready();
    assert_eq!(gateway.get("/health").body, r#"{"status":"ok"}"#);
    let ready = gateway.get("/ready").body;
    for dependency in [
        "\"db\":\"ok\"",
        "\"audit\":\"ok\"",
        "\"node\":\"ok\"",
        "\"tracing\":\"ok\"",
    ] {
        assert!(ready.contains(dependency), "{ready}");
    }
    let metrics = gateway.get("/metrics").body;
    for metric in [
        "ledger_gateway_build_info",
        "ledger_gateway_audit_lag_seconds",
        "ledger_gateway_audit_buffer_bytes",
    ] {
        assert!(metrics.contains(metric), "{metric}: {metrics}");
    }
    let (status, output) = gateway.end();
    assert!(status.success(), "{output}");
}

/// HD16: a request with a forwarding header counts as external, unless it comes from a trusted proxy.
#[test]
fn hd16_metrics_and_readiness_detail_stay_inside() {
    let node = anvil();
    let gateway = Serving::start(node.url(), &[]).ready();
    let outside = [("X-Forwarded-For", "203.0.113.9")];
    assert_eq!(gateway.request("GET", "/metrics", &outside, "").status, 403);
    let ready = gateway.request("GET", "/ready", &outside, "");
    assert_eq!(
        (ready.status, ready.body.contains("dependencies")),
        (200, false),
        "{}",
        ready.body
    );
    assert_eq!(gateway.request("GET", "/health", &outside, "").status, 200);
}

/// HD16: with an internal listener, the public listener does not serve metrics and administration.
#[test]
fn hd16_an_internal_listener_takes_metrics_and_administration() {
    let node = anvil();
    let internal = port::reserve();
    let gateway = Serving::start(node.url(), &[("INTERNAL_BIND_ADDR", &format!("127.0.0.1:{internal}"))]).ready();
    assert_eq!(gateway.get("/metrics").status, 404);
    assert_eq!(gateway.get("/api/v1/admin/orgs").status, 404);
    assert_eq!(request(internal, "GET", "/metrics", &[], "").status, 200);
    assert_eq!(request(internal, "GET", "/api/v1/admin/orgs", &[], "").status, 401);
    assert_eq!(request(internal, "GET", "/ready", &[], "").status, 200);
    assert_eq!(request(internal, "POST", "/rpc", &[], "{}").status, 404);
    // RTO9: nor the details of readiness, even for callers on this machine.
    let (inside, outside) = (request(internal, "GET", "/ready", &[], ""), gateway.get("/ready"));
    assert!(
        inside.body.contains("dependencies") && inside.body.contains("nodes"),
        "{}",
        inside.body
    );
    assert_eq!(outside.body, r#"{"status":"ready","draining":false}"#);
}

/// HD16: a page whose host name leads here (DNS rebinding), and a page of another origin, read nothing internal.
#[test]
fn hd16_a_web_page_reads_nothing_internal() {
    let node = anvil();
    let internal = port::reserve();
    let bind = format!("127.0.0.1:{internal}");
    let two = Serving::start(
        node.url(),
        &[("INTERNAL_BIND_ADDR", &bind), ("INTERNAL_HOSTS", "metrics.internal")],
    )
    .ready();
    let one = Serving::start(node.url(), &[]).ready();
    let rebound = [("Host", "attacker.example"), ("Sec-Fetch-Site", "same-origin")];
    let foreign = [("Origin", "https://attacker.example")];
    let linked = [("Sec-Fetch-Site", "cross-site")];
    let twice = [("Host", "localhost"), ("Host", "localhost")];
    for (headers, status) in [
        (&rebound[..], 403),
        (&foreign[..], 403),
        (&linked[..], 403),
        (&twice[..], 400),
        (&[("Host", "metrics.internal")][..], 200),
        (&[("Host", bind.as_str())][..], 200),
        (&[("Host", "10.0.0.1")][..], 403),
    ] {
        let shown = request(internal, "GET", "/metrics", headers, "");
        assert_eq!(shown.status, status, "{headers:?}: {}", shown.body);
        let ready = request(internal, "GET", "/ready", headers, "");
        assert_eq!(
            ready.body.contains("dependencies"),
            status == 200,
            "{headers:?}: {}",
            ready.body
        );
        assert_eq!(ready.status, 200, "{headers:?}");
    }
    for headers in [&rebound[..], &foreign[..], &linked[..]] {
        assert_eq!(one.request("GET", "/metrics", headers, "").status, 403, "{headers:?}");
        let ready = one.request("GET", "/ready", headers, "");
        assert!(!ready.body.contains("dependencies"), "{headers:?}: {}", ready.body);
        let admin = request(internal, "GET", "/api/v1/admin/orgs", headers, "");
        assert_eq!(admin.status, 403, "{headers:?}");
    }
    drop(two);
}

/// RTO9: the details of readiness stay internal even before the node is reached for the first time.
#[test]
fn rto9_readiness_detail_stays_inside_while_starting() {
    let internal = port::reserve();
    let unreachable = format!("http://127.0.0.1:{}", port::reserve());
    let gateway = Serving::start(
        &unreachable,
        &[("INTERNAL_BIND_ADDR", &format!("127.0.0.1:{internal}"))],
    );
    assert_eq!(gateway.get("/ready").body, r#"{"status":"not ready","draining":false}"#);
    assert!(
        request(internal, "GET", "/ready", &[], "")
            .body
            .contains(r#""node":"down""#)
    );
}

#[test]
fn every_response_has_the_common_headers() {
    let node = anvil();
    let gateway = Serving::start(node.url(), &[]).ready();
    for path in ["/health", "/nowhere", "/metrics"] {
        let response = gateway.request("GET", path, &[("X-Correlation-ID", "mine-1")], "");
        assert_eq!(response.header("x-correlation-id"), Some("mine-1"), "{}", response.head);
        assert_eq!(
            response.header("x-content-type-options"),
            Some("nosniff"),
            "{}",
            response.head
        );
        assert_eq!(response.header("cache-control"), Some("no-store"), "{}", response.head);
    }
    let unknown_path = gateway.get("/nowhere");
    assert!(
        unknown_path.status == 404 && unknown_path.body.contains("\"error\":\"not found\""),
        "{}",
        unknown_path.body
    );
    let wrong_method = gateway.request("POST", "/health", &[], "");
    assert_eq!(wrong_method.status, 405, "{}", wrong_method.body);
}

/// A malformed request gets a response; the connection is not just closed.
#[test]
fn a_control_byte_in_a_header_is_a_bad_request() {
    let node = anvil();
    let gateway = Serving::start(node.url(), &[]).ready();
    for bad in ["a\u{1}b", "a\u{7f}b"] {
        assert_eq!(
            gateway
                .request("GET", "/health", &[("X-Correlation-ID", bad)], "")
                .status,
            400,
            "{bad:?}"
        );
    }
}

/// spec/85 section 3, step 6: the gateway waits for an unreachable node and serves no calls until it answers.
#[test]
fn a_node_that_is_down_is_waited_for() {
    let node = anvil();
    let port = port::reserve();
    let mut gateway = Serving::start(&format!("http://127.0.0.1:{port}"), &[]);
    assert_eq!(gateway.get("/health").status, 200);
    let ready = gateway.get("/ready");
    assert!(
        ready.status == 503 && ready.body.contains("\"node\":\"down\""),
        "{}",
        ready.body
    );
    let call = gateway.request(
        "POST",
        "/rpc",
        &[],
        r#"{"jsonrpc":"2.0","id":1,"method":"eth_blockNumber"}"#,
    );
    assert_eq!(call.status, 503, "{}", call.body);
    forward(port, node.url());
    gateway.wait("is ready", |gateway| gateway.get("/ready").status == 200);
}

/// Forwards connections to a port to the node.
fn forward(port: u16, node: &str) {
    let address = node.trim_start_matches("http://").to_owned();
    let listener = TcpListener::bind(("127.0.0.1", port)).expect("the port is still free");
    std::thread::spawn(move || {
        for client in listener.incoming().map_while(Result::ok) {
            let node = TcpStream::connect(&address).expect("the node listens");
            let copy = |mut from: TcpStream, mut to: TcpStream| {
                std::thread::spawn(move || {
                    let _ = std::io::copy(&mut from, &mut to);
                    let _ = to.shutdown(Shutdown::Write);
                })
            };
            copy(
                client.try_clone().expect("a handle"),
                node.try_clone().expect("a handle"),
            );
            copy(node, client);
        }
    });
}

#[test]
fn a_node_on_another_chain_is_refused() {
    let node = anvil();
    let dir = tempfile::tempdir().expect("a directory");
    let data = dir.path().to_string_lossy().into_owned();
    let port = port::reserve().to_string();
    let env = [
        ("NODE_URL", node.url()),
        ("EXPECTED_CHAIN_ID", "1"),
        ("DATA_DIR", &data),
        ("PORT", &port),
    ];
    let output = gateway(&["serve"], &env);
    assert_eq!(output.status.code(), Some(1));
    assert!(
        stderr(&output).contains("EXPECTED_CHAIN_ID: the node is on chain 31337, not on 1"),
        "{}",
        stderr(&output)
    );
}

/// All nodes of NODE_URL must serve one chain.
#[test]
fn nodes_on_two_chains_are_refused() {
    let other_node = Anvil::start(&AnvilOptions {
        chain_id: Some(5),
        ..AnvilOptions::default()
    });
    let node = anvil();
    let dir = tempfile::tempdir().expect("a directory");
    let data = dir.path().to_string_lossy().into_owned();
    let (port, urls) = (
        port::reserve().to_string(),
        format!("{},{}", node.url(), other_node.url()),
    );
    let output = gateway(&["serve"], &[("NODE_URL", &urls), ("DATA_DIR", &data), ("PORT", &port)]);
    assert_eq!(output.status.code(), Some(1));
    let text = stderr(&output);
    assert!(
        text.contains("the nodes serve different chains: number 1 chain 31337, number 2 chain 5"),
        "{text}"
    );
}

/// HD24: a second process on a data directory exits with 78 and names the holder.
#[test]
fn hd24_a_held_directory_is_refused() {
    let node = anvil();
    let first = Serving::start(node.url(), &[]).ready();
    let (data, port) = (first.data_dir(), port::reserve().to_string());
    let env = [
        ("NODE_URL", node.url()),
        ("DATA_DIR", data.as_str()),
        ("PORT", port.as_str()),
    ];
    let output = gateway(&["serve"], &env);
    assert_eq!(output.status.code(), Some(78), "{}", stderr(&output));
    assert!(stderr(&output).contains("is held by process "), "{}", stderr(&output));
}

/// spec/80 rule 1.1: the generated token is printed once, and not in a log line, because log lines are stored and
/// forwarded.
#[test]
fn admin_1_1_a_generated_development_token_is_printed_once() {
    let node = anvil();
    let serving = Serving::start(node.url(), &[("LOG_FORMAT", "json")]).ready();
    let (_, output) = serving.end();
    let lines: Vec<&str> = output.lines().filter(|line| line.contains("ADMIN_API_TOKEN")).collect();
    assert_eq!(lines.len(), 1, "{output}");
    let token = lines.first().and_then(|line| line.rsplit(' ').next()).expect("a token");
    assert!(token.len() == 64 && output.matches(token).count() == 1, "{output}");
    assert!(
        output.lines().filter(|line| line.starts_with('{')).count() > 2,
        "log lines are JSON: {output}"
    );
}

/// spec/70 rule 31: no output contains a secret of the configuration or of a request. Each secret is a distinct canary.
#[test]
fn no_secret_reaches_the_log() {
    let node = anvil();
    let env = [
        ("JWT_SECRET", "canary-access-secret"),
        ("JWT_REFRESH_SECRET", "canary-refresh-secret"),
        ("ADMIN_API_TOKEN", "canary-admin-token"),
        ("RPC_API_KEY", "canary-node-key"),
        ("LOG_LEVEL", "trace"),
    ];
    let gateway = Serving::start(node.url(), &env).ready();
    let headers = [
        ("Authorization", "Bearer canary.bearer.token"),
        ("Cookie", "pp_access=canary-cookie"),
        ("X-Admin-Token", "canary-admin-guess"),
    ];
    for path in [
        "/rpc",
        "/api/v1/admin/orgs",
        "/api/v1/refresh",
        "/auth/verify?session=canary-query",
        "/canary-path",
    ] {
        let body = r#"{"jsonrpc":"2.0","id":1,"method":"canary_method","params":["canary-param"],"jwz_token":"canary-proof","refresh_token":"canary-refresh"}"#;
        gateway.request("POST", path, &headers, body);
    }
    let (_, output) = gateway.end();
    let leaks: Vec<&str> = output
        .lines()
        .filter(|line| line.to_lowercase().contains("canary"))
        .collect();
    assert!(leaks.is_empty(), "{leaks:#?}");
}

/// spec/85 section 6.1: at shutdown, readiness ends first, then the listener closes after the delay, and the process
/// exits cleanly.
#[test]
fn shutdown_ends_readiness_first_and_closes_the_listener_after_the_delay() {
    let node = anvil();
    let serving = Serving::start(node.url(), &[("SHUTDOWN_DELAY", "1s")]).ready();
    serving.terminate();
    let mut serving = serving;
    serving.wait("reports that it is not ready", |serving| {
        serving.get("/ready").status == 503
    });
    assert_eq!(serving.get("/health").status, 200, "still served during the delay");
    let port = serving.port();
    let (status, output) = serving.end();
    assert!(status.success(), "{output}");
    assert!(TcpStream::connect(("127.0.0.1", port)).is_err());
}

/// The generated API document is the file in the repository.
#[test]
fn the_api_document_is_up_to_date() {
    let output = command(&["openapi"], &[]).output().expect("the binary runs");
    let written = std::fs::read_to_string(concat!(env!("CARGO_MANIFEST_DIR"), "/../../docs/openapi.json"));
    assert!(
        written.is_ok_and(|written| written.as_bytes() == output.stdout),
        "run `cargo run -p gw-server -- openapi > docs/openapi.json`"
    );
}
