//! What the client sends, and how it treats invalid answers, with a scripted node.

use crate::{config, connect};
use gw_evm::wire::{TraceForm, UpstreamCall};
use gw_node::{Answer, Connections, Node, NodeError, RequestBudget};
use gw_testkit::{
    FakeNode,
    fake_node::{NodeReply, block},
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
    let answer = node.call(&call("net_peerCount"), RequestBudget::Forward).await.unwrap();
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
        .batch(&[call("eth_syncing"), call("eth_nothing")], RequestBudget::Forward)
        .await
        .unwrap();
    assert!(matches!(answers.as_slice(), [Answer::Result(_), Answer::Error(_)]));
    assert_eq!(fake.take_bodies().len(), 1);
}

#[tokio::test]
async fn b20_an_invalid_answer_is_unparsable_with_any_status() {
    let fake = FakeNode::start().await;
    let node = connect(fake.url()).await;
    for body in ["<html>gateway timeout</html>", "", "{}", r#"{"jsonrpc":"2.0","id":0}"#] {
        for status in [200, 500] {
            fake.reply("eth_syncing", NodeReply::Http(status, body));
            let answer = node.call(&call("eth_syncing"), RequestBudget::Forward).await;
            assert!(matches!(answer, Err(NodeError::Unparsable)), "{status} {body}");
        }
    }
    fake.reply("eth_syncing", NodeReply::Http(429, "slow down"));
    assert!(matches!(
        node.call(&call("eth_syncing"), RequestBudget::Forward).await,
        Err(NodeError::RateLimited(_))
    ));
}

#[tokio::test]
async fn the_error_of_an_unreachable_node_does_not_contain_its_url() {
    let fake = FakeNode::start().await;
    let node = connect(fake.url()).await;
    let url = fake.url().to_owned();
    drop(fake);
    let error = loop {
        // The kept-alive connection may serve until the server task is gone.
        match node.call(&call("eth_syncing"), RequestBudget::Forward).await {
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
    let (sender, mut headers) = tokio::sync::mpsc::unbounded_channel();
    let app = Router::new().fallback(move |headers: HeaderMap| {
        let _ = sender.send(headers.get("x-key").cloned());
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
async fn x11_tracing_is_accepted_only_with_a_valid_trace() {
    let fake = FakeNode::start().await;
    assert_eq!(connect(fake.url()).await.trace_form(), Some(TraceForm::Batch));
    // HD6: a node that lists empty accounts on request, and one that never does.
    for (lists_empty, form) in [(true, Some(TraceForm::Batch)), (false, None)] {
        fake.script("debug_traceCall", move |params| {
            match gw_testkit::fake_node::trace(params) {
                NodeReply::Result(Value::Object(mut accounts)) if params[2]["tracer"] == "prestateTracer" => {
                    if !(lists_empty && params[2]["tracerConfig"]["includeEmpty"] == true) {
                        accounts.retain(|_, account| account["balance"] != "0x0");
                    }
                    NodeReply::Result(Value::Object(accounts))
                }
                reply => reply,
            }
        });
        assert_eq!(connect(fake.url()).await.trace_form(), form);
    }
    // A node that ignores tracer names answers with struct logs.
    fake.set_result(
        "debug_traceCall",
        json!({"gas": 21000, "failed": false, "returnValue": "", "structLogs": []}),
    );
    assert_eq!(connect(fake.url()).await.trace_form(), None);
    fake.reply("debug_traceCall", NodeReply::Error(-32601, "no debug", json!(null)));
    assert_eq!(connect(fake.url()).await.trace_form(), None);
}

/// HD22: finds the block that used a nonce; state more than twice as old as that block is not needed.
#[tokio::test]
async fn hd22_the_block_of_a_nonce_is_found() {
    // The blocks in which the sender's nonces 0, 1, … were used; state before block `oldest_state` is pruned.
    for nonce_blocks in [
        vec![],
        vec![0],
        vec![3, 3, 7, 20],
        (0..26).collect::<Vec<u64>>(),
        vec![25, 25],
    ] {
        for oldest_state in [0, 6, 19] {
            let fake = FakeNode::start().await;
            let number =
                |text: &Value| u64::from_str_radix(text.as_str().unwrap().trim_start_matches("0x"), 16).unwrap();
            let counted_blocks = nonce_blocks.clone();
            fake.script("eth_getTransactionCount", move |params| match number(&params[1]) {
                block if block < oldest_state => NodeReply::Error(-32000, "missing trie node", json!(null)),
                block => NodeReply::Result(json!(format!(
                    "{:#x}",
                    counted_blocks
                        .iter()
                        .filter(|block_number| **block_number <= block)
                        .count()
                ))),
            });
            let hash = |number: u64| format!("0x{number:064x}");
            fake.script("eth_getBlockByNumber", move |params| match &params[0] {
                tag if tag == "latest" => NodeReply::Result(block(25, &hash(25))),
                block_param => NodeReply::Result(block(number(block_param), &hash(number(block_param)))),
            });
            let node = connect(fake.url()).await;
            for (nonce, block_number) in nonce_blocks.iter().enumerate() {
                let result = node.block_of_nonce(Address::repeat_byte(7), nonce as u64, 25).await;
                match result {
                    Ok(block_hash) => assert_eq!(
                        block_hash.map(|hash| hash.to_string()),
                        Some(hash(*block_number)),
                        "{nonce} of {nonce_blocks:?}"
                    ),
                    Err(NodeError::NoAnswer) => assert!(
                        25 < oldest_state + 2 * (25 - block_number) + 1,
                        "{nonce} of {nonce_blocks:?}, {oldest_state}"
                    ),
                    Err(error) => panic!("{error:?}"),
                }
            }
            assert_eq!(
                node.block_of_nonce(Address::repeat_byte(7), nonce_blocks.len() as u64, 25)
                    .await
                    .unwrap(),
                None
            );
        }
    }
}

/// A relay in front of a node that delays every answer by `delay`; it counts the present connections and their maximum.
async fn slow_relay(node: &str, delay: Duration) -> (String, Arc<AtomicUsize>, Arc<AtomicUsize>) {
    let listener = tokio::net::TcpListener::bind("127.0.0.1:0").await.unwrap();
    let url = format!("http://{}", listener.local_addr().unwrap());
    let node = node.trim_start_matches("http://").to_owned();
    let (connected, peak) = (Arc::new(AtomicUsize::new(0)), Arc::new(AtomicUsize::new(0)));
    let (counter, peak_counter) = (Arc::clone(&connected), Arc::clone(&peak));
    tokio::spawn(async move {
        loop {
            let (client, _) = listener.accept().await.unwrap();
            let (mut client_reader, mut client_writer) = client.into_split();
            let (mut node_reader, mut node_writer) = tokio::net::TcpStream::connect(&node).await.unwrap().into_split();
            peak_counter.fetch_max(counter.fetch_add(1, Ordering::SeqCst) + 1, Ordering::SeqCst);
            let counter = Arc::clone(&counter);
            tokio::spawn(async move {
                let _ = tokio::io::copy(&mut client_reader, &mut node_writer).await;
                counter.fetch_sub(1, Ordering::SeqCst);
            });
            tokio::spawn(async move {
                let mut chunk = vec![0; 64 * 1024];
                while let Ok(length @ 1..) = node_reader.read(&mut chunk).await {
                    tokio::time::sleep(delay).await;
                    client_writer.write_all(chunk.get(..length).unwrap()).await.unwrap();
                }
            });
        }
    });
    (url, connected, peak)
}

#[tokio::test]
async fn connections_to_the_node_are_limited_and_closed_when_idle() {
    let fake = FakeNode::start().await;
    let (url, connected, peak) = slow_relay(fake.url(), Duration::from_millis(20)).await;
    let limits = Connections {
        max: Some(2),
        max_idle: 1,
        idle: Duration::from_millis(200),
    };
    let node = Node::connect(&config(&url).with_connections(limits)).await.unwrap();
    let calls: Vec<_> = (0..8)
        .map(|_| {
            let node = Arc::clone(&node);
            tokio::spawn(async move { node.call(&call("eth_syncing"), RequestBudget::Forward).await.map(drop) })
        })
        .collect();
    for answer in calls {
        answer.await.unwrap().unwrap();
    }
    assert_eq!(peak.load(Ordering::SeqCst), 2, "eight calls, two connections");
    // Idle connections are closed. The connections are real, so this needs the real clock.
    for _ in 0..200 {
        if connected.load(Ordering::SeqCst) == 0 {
            return;
        }
        tokio::time::sleep(Duration::from_millis(50)).await;
    }
    panic!("{} connections are still open", connected.load(Ordering::SeqCst));
}
