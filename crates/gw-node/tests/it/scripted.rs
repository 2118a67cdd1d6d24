//! What the client sends and what it makes of odd answers.

use crate::{config, connect};
use gw_evm::wire::{TraceForm, UpstreamCall};
use gw_node::{Answer, Budget, Connections, Node, NodeError};
use gw_testkit::{
    FakeNode,
    fake_node::{Reply, block},
};
use gw_types::{Address, Secret};
use serde_json::{Value, json};
use std::{
    sync::{
        Arc,
        atomic::{AtomicUsize, Ordering},
    },
    time::Duration,
};
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};

fn call(method: &'static str) -> UpstreamCall {
    UpstreamCall {
        method: method.into(),
        params: "[]".to_owned(),
    }
}

#[tokio::test]
async fn j4_upstream_ids_are_ours_and_the_body_is_exactly_the_typed_call() {
    let fake = FakeNode::start().await;
    let node = connect(fake.url()).await;
    fake.take();
    let answer = node.call(&call("net_peerCount"), Budget::Forward).await.unwrap();
    assert!(matches!(answer, Answer::Error(_)));
    let bodies = fake.take_bodies();
    assert_eq!(
        bodies,
        [&br#"{"jsonrpc":"2.0","id":0,"method":"net_peerCount","params":[]}"#[..]]
    );
}

#[tokio::test]
async fn a_batch_is_one_exchange() {
    let fake = FakeNode::start().await;
    let node = connect(fake.url()).await;
    fake.take();
    let answers = node
        .batch(&[call("eth_syncing"), call("eth_nothing")], Budget::Forward)
        .await
        .unwrap();
    assert!(matches!(answers.as_slice(), [Answer::Result(_), Answer::Error(_)]));
    assert_eq!(fake.take_bodies().len(), 1);
}

#[tokio::test]
async fn b20_what_is_no_answer_is_unparsable_whatever_its_status() {
    let fake = FakeNode::start().await;
    let node = connect(fake.url()).await;
    for body in ["<html>gateway timeout</html>", "", "{}", r#"{"jsonrpc":"2.0","id":0}"#] {
        for status in [200, 500] {
            fake.reply("eth_syncing", Reply::Http(status, body));
            let answer = node.call(&call("eth_syncing"), Budget::Forward).await;
            assert!(matches!(answer, Err(NodeError::Unparsable)), "{status} {body}");
        }
    }
    fake.reply("eth_syncing", Reply::Http(429, "slow down"));
    assert!(matches!(
        node.call(&call("eth_syncing"), Budget::Forward).await,
        Err(NodeError::RateLimited(_))
    ));
}

#[tokio::test]
async fn an_unreachable_node_says_nothing_about_where_it_is() {
    let fake = FakeNode::start().await;
    let node = connect(fake.url()).await;
    let url = fake.url().to_owned();
    drop(fake);
    let error = loop {
        // The kept-alive connection may serve until the server task is gone.
        match node.call(&call("eth_syncing"), Budget::Forward).await {
            Ok(_) => tokio::task::yield_now().await,
            Err(error) => break error,
        }
    };
    assert!(
        matches!(error, NodeError::Unreachable(_) | NodeError::Broken(_)),
        "{error:?}"
    );
    assert!(!error.to_string().contains(&url));
}

#[tokio::test]
async fn the_api_key_goes_into_its_header() {
    use axum::{Router, http::HeaderMap, response::IntoResponse};
    let listener = tokio::net::TcpListener::bind("127.0.0.1:0").await.unwrap();
    let url = format!("http://{}/path", listener.local_addr().unwrap());
    let (seen, mut headers) = tokio::sync::mpsc::unbounded_channel();
    let app = Router::new().fallback(move |all: HeaderMap| {
        let _ = seen.send(all.get("x-key").cloned());
        async { "no".into_response() }
    });
    let server = tokio::spawn(async move { axum::serve(listener, app).await });
    let keyed = config(&url)
        .with_key_header("X-Key")
        .unwrap()
        .with_api_key(&Secret::new("k1"))
        .unwrap();
    assert!(matches!(Node::connect(&keyed).await, Err(NodeError::Unparsable)));
    assert_eq!(headers.recv().await.flatten().unwrap(), "k1");
    server.abort();
}

#[tokio::test]
async fn x11_tracing_is_believed_only_when_it_answers_what_was_asked() {
    let fake = FakeNode::start().await;
    assert_eq!(connect(fake.url()).await.trace_form(), Some(TraceForm::Batch));
    // HD6: a node that lists empty accounts when asked, and one that never does.
    for (knows, form) in [(true, Some(TraceForm::Batch)), (false, None)] {
        fake.script("debug_traceCall", move |params| {
            match gw_testkit::fake_node::trace(params) {
                Reply::Result(Value::Object(mut accounts)) if params[2]["tracer"] == "prestateTracer" => {
                    if !(knows && params[2]["tracerConfig"]["includeEmpty"] == true) {
                        accounts.retain(|_, account| account["balance"] != "0x0");
                    }
                    Reply::Result(Value::Object(accounts))
                }
                reply => reply,
            }
        });
        assert_eq!(connect(fake.url()).await.trace_form(), form);
    }
    // A node that ignores tracer names answers struct logs.
    fake.on(
        "debug_traceCall",
        json!({"gas": 21000, "failed": false, "returnValue": "", "structLogs": []}),
    );
    assert_eq!(connect(fake.url()).await.trace_form(), None);
    fake.reply("debug_traceCall", Reply::Error(-32601, "no debug", json!(null)));
    assert_eq!(connect(fake.url()).await.trace_form(), None);
}

/// HD22: which block used a nonce; older state than twice its age is not needed.
#[tokio::test]
async fn hd22_the_block_of_a_nonce_is_found() {
    // The blocks in which the sender's nonces 0, 1, … were used; older state than `kept` is gone.
    for used in [
        vec![],
        vec![0],
        vec![3, 3, 7, 20],
        (0..26).collect::<Vec<u64>>(),
        vec![25, 25],
    ] {
        for kept in [0, 6, 19] {
            let fake = FakeNode::start().await;
            let number =
                |text: &Value| u64::from_str_radix(text.as_str().unwrap().trim_start_matches("0x"), 16).unwrap();
            let counted = used.clone();
            fake.script("eth_getTransactionCount", move |params| match number(&params[1]) {
                block if block < kept => Reply::Error(-32000, "missing trie node", json!(null)),
                block => Reply::Result(json!(format!(
                    "{:#x}",
                    counted.iter().filter(|at| **at <= block).count()
                ))),
            });
            let hash = |number: u64| format!("0x{number:064x}");
            fake.script("eth_getBlockByNumber", move |params| match &params[0] {
                tag if tag == "latest" => Reply::Result(block(25, &hash(25))),
                named => Reply::Result(block(number(named), &hash(number(named)))),
            });
            let node = connect(fake.url()).await;
            for (nonce, at) in used.iter().enumerate() {
                let found = node.block_of_nonce(Address::repeat_byte(7), nonce as u64, 25).await;
                match found {
                    Ok(found) => assert_eq!(
                        found.map(|hash| hash.to_string()),
                        Some(hash(*at)),
                        "{nonce} of {used:?}"
                    ),
                    Err(NodeError::NoAnswer) => assert!(25 < kept + 2 * (25 - at) + 1, "{nonce} of {used:?}, {kept}"),
                    Err(error) => panic!("{error:?}"),
                }
            }
            assert_eq!(
                node.block_of_nonce(Address::repeat_byte(7), used.len() as u64, 25)
                    .await
                    .unwrap(),
                None
            );
        }
    }
}

/// A relay in front of a node that holds every answer back for `hold`; it counts how many are connected now, and at most.
async fn slow_relay(node: &str, hold: Duration) -> (String, Arc<AtomicUsize>, Arc<AtomicUsize>) {
    let listener = tokio::net::TcpListener::bind("127.0.0.1:0").await.unwrap();
    let url = format!("http://{}", listener.local_addr().unwrap());
    let node = node.trim_start_matches("http://").to_owned();
    let (connected, most) = (Arc::new(AtomicUsize::new(0)), Arc::new(AtomicUsize::new(0)));
    let (counter, highest) = (Arc::clone(&connected), Arc::clone(&most));
    tokio::spawn(async move {
        loop {
            let (client, _) = listener.accept().await.unwrap();
            let (mut asks, mut hears) = client.into_split();
            let (mut answers, mut asked) = tokio::net::TcpStream::connect(&node).await.unwrap().into_split();
            highest.fetch_max(counter.fetch_add(1, Ordering::SeqCst) + 1, Ordering::SeqCst);
            let counter = Arc::clone(&counter);
            tokio::spawn(async move {
                let _ = tokio::io::copy(&mut asks, &mut asked).await;
                counter.fetch_sub(1, Ordering::SeqCst);
            });
            tokio::spawn(async move {
                let mut chunk = vec![0; 64 * 1024];
                while let Ok(read @ 1..) = answers.read(&mut chunk).await {
                    tokio::time::sleep(hold).await;
                    hears.write_all(chunk.get(..read).unwrap()).await.unwrap();
                }
            });
        }
    });
    (url, connected, most)
}

#[tokio::test]
async fn connections_to_the_node_are_bounded_and_let_go() {
    let fake = FakeNode::start().await;
    let (url, connected, most) = slow_relay(fake.url(), Duration::from_millis(20)).await;
    let bounds = Connections {
        max: Some(2),
        max_idle: 1,
        idle: Duration::from_millis(200),
    };
    let node = Node::connect(&config(&url).with_connections(bounds)).await.unwrap();
    let asked: Vec<_> = (0..8)
        .map(|_| {
            let node = Arc::clone(&node);
            tokio::spawn(async move { node.call(&call("eth_syncing"), Budget::Forward).await.map(drop) })
        })
        .collect();
    for answer in asked {
        answer.await.unwrap().unwrap();
    }
    assert_eq!(most.load(Ordering::SeqCst), 2, "eight questions, two connections");
    // What nobody uses is closed; a real clock is needed, as the connections are real.
    for _ in 0..200 {
        if connected.load(Ordering::SeqCst) == 0 {
            return;
        }
        tokio::time::sleep(Duration::from_millis(50)).await;
    }
    panic!("{} connections are still open", connected.load(Ordering::SeqCst));
}
