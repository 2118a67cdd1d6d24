//! Failover between several nodes of one chain.

use crate::config;
use gw_evm::{
    BlockId, CallRequest,
    wire::{TraceForm, TraceScope, UpstreamCall},
};
use gw_node::{
    Answer, Block, BlockGate, BlockValidation, HealthCheckConfig, Node, NodeError, NodeState, RequestBudget,
    RetryPolicy, TraceResult,
};
use gw_policy::{
    snapshot::{AccountChange, VisibleState},
    testing::world,
};
use gw_testkit::{FakeNode, Relay, anvil::anvil, fake_node, fake_node::NodeReply};
use gw_types::{Address, U256};
use serde_json::{Value, json};
use std::{
    sync::{Arc, Mutex},
    time::{Duration, Instant},
};

const NEXT: &str = "0x6565656565656565656565656565656565656565656565656565656565656565";
const OTHER: &str = "0x6666666666666666666666666666666666666666666666666666666666666666";
const HOUR: Duration = Duration::from_secs(3600);

async fn connect_both(first: &str, second: &str, health_checks: HealthCheckConfig) -> Result<Arc<Node>, NodeError> {
    Node::connect(&config(first).or(second).unwrap().with_health_checks(health_checks)).await
}

/// Health checks so rare that a test triggers its own.
fn rare_checks() -> HealthCheckConfig {
    HealthCheckConfig {
        head: HOUR,
        probe: HOUR,
        standby: HOUR,
        ..HealthCheckConfig::default()
    }
}

fn frequent_polls(head: u64) -> HealthCheckConfig {
    HealthCheckConfig {
        head: Duration::from_millis(head),
        ..rare_checks()
    }
}

fn active(node: &Node) -> usize {
    node.statuses().iter().position(|status| status.active).unwrap()
}

fn call(method: &'static str, params: &str) -> UpstreamCall {
    UpstreamCall {
        method: method.into(),
        params: params.to_owned(),
    }
}

async fn balance(node: &Node) -> Result<(), NodeError> {
    let balance_call = call(
        "eth_getBalance",
        r#"["0xf39Fd6e51aad88F6F4ce6aB8827279cffFb92266","latest"]"#,
    );
    node.call(&balance_call, RequestBudget::Forward)
        .await
        .map(|answer| assert!(matches!(answer, Answer::Result(_))))
}

async fn wait_until(mut condition: impl FnMut() -> bool) {
    let started_at = Instant::now();
    while !condition() {
        assert!(
            started_at.elapsed() < Duration::from_secs(20),
            "the condition did not become true"
        );
        tokio::time::sleep(Duration::from_millis(10)).await;
    }
}

/// A real node behind two relays. A client with only the first relay gets the error.
#[tokio::test]
async fn a_read_goes_to_the_other_node_when_the_first_is_disconnected() {
    let anvil = anvil();
    let (mut first_node, second_node) = (Relay::to(anvil.url()).await, Relay::to(anvil.url()).await);
    let alone = Node::connect(&config(&first_node.url())).await.unwrap();
    let node = connect_both(&first_node.url(), &second_node.url(), rare_checks())
        .await
        .unwrap();
    assert_eq!((active(&node), node.trace_form()), (0, Some(TraceForm::Batch)));
    first_node.cut().await;
    assert!(matches!(
        balance(&alone).await,
        Err(NodeError::Unreachable(_) | NodeError::Broken(_))
    ));
    balance(&node).await.unwrap();
    assert_eq!((active(&node), node.head().map(|head| head.number)), (1, Some(0)));
    let states: Vec<_> = node.statuses().iter().map(|status| status.state).collect();
    assert_eq!(states, [NodeState::Down, NodeState::Up]);
    // Traces and queries use the other node, too.
    let request = CallRequest {
        to: Some(Address::repeat_byte(9)),
        ..CallRequest::default()
    };
    let pin = node.head().unwrap().pin();
    assert!(matches!(
        node.trace(&request, pin, TraceScope::Read, &VisibleState::default())
            .await
            .unwrap(),
        TraceResult::Trace(_)
    ));
    assert_eq!(
        node.block(BlockId::Number(0)).await.unwrap().map(|block| block.number),
        Some(0)
    );
    assert_eq!(alone.statuses().len(), 1);
}

/// The connection stays open but no answers come: waiting calls are answered by the other node as soon as it is in use.
#[tokio::test]
async fn a_node_that_stops_answering_is_replaced_and_its_waiting_calls_are_repeated() {
    let anvil = anvil();
    let (first_node, second_node) = (Relay::to(anvil.url()).await, Relay::to(anvil.url()).await);
    let node = connect_both(&first_node.url(), &second_node.url(), frequent_polls(100))
        .await
        .unwrap();
    first_node.hold();
    let started_at = Instant::now();
    balance(&node).await.unwrap();
    let elapsed = started_at.elapsed();
    assert!(
        elapsed < Duration::from_secs(5),
        "the deadline of a forwarded call is 30 s, the grace period of the head 5 s: {elapsed:?}"
    );
    assert_eq!(active(&node), 1);
    assert!(node.head().is_some());
}

/// A heavy call that times out is no reason to leave a healthy node.
#[tokio::test]
async fn a_call_that_times_out_on_a_healthy_node_causes_no_failover() {
    let (first_node, second_node) = (FakeNode::start().await, FakeNode::start().await);
    let node = connect_both(first_node.url(), second_node.url(), rare_checks())
        .await
        .unwrap();
    let (pin, request) = (node.head().unwrap().pin(), CallRequest::default());
    first_node.reply("debug_traceCall", NodeReply::Silence);
    second_node.take();
    let result = node
        .trace(&request, pin, TraceScope::Read, &VisibleState::default())
        .await;
    assert!(
        matches!(result, Err(gw_node::NoTrace::Node(NodeError::Timeout))),
        "{result:?}"
    );
    assert_eq!(active(&node), 0);
    second_node.assert_silent();
}

/// HD28: while anything is withheld, a node without state overrides gives no trace.
#[tokio::test]
async fn hd28_a_node_that_ignores_overrides_of_withheld_state_gives_no_trace() {
    let (fake, anvil) = (FakeNode::start().await, anvil());
    for (url, expected) in [(fake.url().to_owned(), false), (anvil.url().to_owned(), true)] {
        let node = Node::connect(&config(&url)).await.unwrap();
        let request = CallRequest {
            to: Some(Address::repeat_byte(9)),
            ..CallRequest::default()
        };
        let pin = node.head().unwrap().pin();
        let trace = async |state: &VisibleState| node.trace(&request, pin, TraceScope::Read, state).await;
        assert!(matches!(
            trace(&VisibleState::default()).await,
            Ok(TraceResult::Trace(_))
        ));
        let payment = AccountChange {
            balance: Some((U256::ONE, U256::ZERO)),
            ..AccountChange::default()
        };
        let snapshot = world().withheld(Address::repeat_byte(9), 0, payment).snapshot();
        let result = trace(&snapshot.visible_state(0)).await;
        assert_eq!(matches!(result, Ok(TraceResult::Trace(_))), expected, "{result:?}");
        assert_eq!(
            matches!(result, Err(gw_node::NoTrace::Unsupported)),
            !expected,
            "{result:?}"
        );
    }
}

/// A proxy in front of a node that it does not reach.
#[tokio::test]
async fn a_proxys_bad_gateway_causes_a_failover() {
    let (first_node, second_node) = (FakeNode::start().await, FakeNode::start().await);
    let node = connect_both(first_node.url(), second_node.url(), rare_checks())
        .await
        .unwrap();
    for method in ["eth_getBalance", "eth_getBlockByNumber"] {
        first_node.reply(method, NodeReply::Http(502, "<html>bad gateway</html>"));
    }
    balance(&node).await.unwrap();
    assert_eq!(active(&node), 1);
}

const RAW: &str = r#"["0x02f8"]"#;

/// Sends are counted by the bytes that reach each node.
#[tokio::test]
async fn hd22_a_send_whose_outcome_is_unknown_is_not_sent_again() {
    for (method, resend) in [
        ("eth_sendRawTransaction", RetryPolicy::IfUnheard),
        ("eth_sendTransaction", RetryPolicy::Never),
    ] {
        let (first_node, second_node) = (FakeNode::start().await, FakeNode::start().await);
        let node = connect_both(first_node.url(), second_node.url(), rare_checks())
            .await
            .unwrap();
        second_node.set_result(method, json!(NEXT));
        // The node received the send, and its outcome is unknown.
        for method in [method, "eth_getBlockByNumber", "eth_getBalance"] {
            first_node.reply(method, NodeReply::Http(504, "gateway timeout"));
        }
        first_node.take();
        second_node.take();
        let sent = node.send(&call(method, RAW), resend).await;
        assert!(sent.is_err_and(|error| !error.is_before_sending()));
        let sends_received = |fake: &FakeNode| fake.take().iter().filter(|call| call.method == method).count();
        assert_eq!(
            (sends_received(&first_node), sends_received(&second_node)),
            (1, 0),
            "{method}"
        );
        // A read at the same moment does fail over.
        balance(&node).await.unwrap();
        assert_eq!((active(&node), sends_received(&second_node)), (1, 0));
    }
}

#[tokio::test]
async fn hd22_a_send_that_no_node_received_goes_to_the_other_one_unless_a_node_signs_it() {
    for (method, resend, expected) in [
        ("eth_sendRawTransaction", RetryPolicy::IfUnheard, 1),
        ("eth_sendTransaction", RetryPolicy::Never, 0),
    ] {
        let (first_node, second_node) = (FakeNode::start().await, FakeNode::start().await);
        let mut relay = Relay::to(first_node.url()).await;
        let node = connect_both(&relay.url(), second_node.url(), rare_checks())
            .await
            .unwrap();
        second_node.set_result(method, json!(NEXT));
        relay.cut().await;
        // The first failure, on the kept-alive connection, leaves the outcome open. Later connections are refused.
        let mut is_accepted = false;
        for _ in 0..3 {
            match node.send(&call(method, RAW), resend).await {
                Ok(_) => is_accepted = true,
                Err(error) if error.is_before_sending() => {}
                Err(error) => assert!(
                    matches!(error, NodeError::Unreachable(_) | NodeError::Broken(_)),
                    "{error:?}"
                ),
            }
            if is_accepted || resend == RetryPolicy::Never {
                break;
            }
        }
        let sends_received = |fake: &FakeNode| fake.take().iter().filter(|call| call.method == method).count();
        assert_eq!(
            (sends_received(&first_node), sends_received(&second_node)),
            (0, expected),
            "{method}"
        );
    }
}

/// Decision 41: a client never reads state older than it was shown.
#[tokio::test]
async fn decision_41_a_standby_behind_the_head_is_not_used_before_it_has_caught_up() {
    let (first_node, second_node) = (FakeNode::start().await, FakeNode::start().await);
    second_node.set_result("eth_getBlockByNumber", fake_node::block(99, OTHER));
    let node = connect_both(first_node.url(), second_node.url(), rare_checks())
        .await
        .unwrap();
    first_node.reply("eth_getBlockByNumber", NodeReply::Http(502, "gone"));
    assert!(matches!(node.refresh_head().await, Err(NodeError::Unavailable)));
    assert_eq!(
        (active(&node), node.head().map(|head| head.number)),
        (0, Some(FakeNode::HEAD))
    );
    second_node.set_result("eth_getBlockByNumber", fake_node::block(101, NEXT));
    node.refresh_head().await.unwrap();
    assert_eq!((active(&node), node.head().map(|head| head.number)), (1, Some(101)));
}

#[tokio::test]
async fn after_the_grace_period_a_standby_behind_the_head_is_used() {
    let (first_node, second_node) = (FakeNode::start().await, FakeNode::start().await);
    second_node.set_result("eth_getBlockByNumber", fake_node::block(99, OTHER));
    let health_checks = HealthCheckConfig {
        grace: Duration::from_millis(400),
        ..frequent_polls(50)
    };
    let node = connect_both(first_node.url(), second_node.url(), health_checks)
        .await
        .unwrap();
    let mut head_changes = node.head_moves();
    first_node.reply("eth_getBlockByNumber", NodeReply::Http(502, "gone"));
    head_changes.changed().await.unwrap();
    // Reads are refused first, so that no client reads an older block without notice.
    assert!(node.head().is_none_or(|head| head.number == 99));
    wait_until(|| node.head().is_some_and(|head| head.number == 99)).await;
    assert_eq!(active(&node), 1);
}

/// A gate that records the blocks that it validates: the last one, the new one, and whether the node has it.
#[derive(Debug, Default)]
struct RecordingGate(Mutex<Vec<(Option<u64>, u64, bool)>>);

impl BlockGate for RecordingGate {
    fn validate<'a>(&'a self, node: &'a Node, last: Option<Block>, block: Block) -> BlockValidation<'a> {
        Box::pin(async move {
            // The gate uses the node that has the block.
            let listing = node.listing(block.hash).await?;
            self.0.lock().unwrap().push((
                last.map(|last| last.number),
                block.number,
                listing.block.hash == block.hash,
            ));
            if format!("{:#x}", block.hash) == OTHER {
                Err(NodeError::NotValidated("loot".into()))
            } else {
                Ok(())
            }
        })
    }
}

/// HD2: another block at the height of the head is reported like a reorganization, and is read only after its
/// validation.
#[tokio::test]
async fn hd2_another_block_at_the_same_height_passes_the_gate_before_its_node_is_used() {
    let (first_node, second_node) = (FakeNode::start().await, FakeNode::start().await);
    let serve_block = |fake: &FakeNode, hash: &'static str| {
        for method in ["eth_getBlockByNumber", "eth_getBlockByHash"] {
            fake.set_result(method, fake_node::block(FakeNode::HEAD, hash));
        }
    };
    serve_block(&second_node, OTHER);
    let node = connect_both(first_node.url(), second_node.url(), rare_checks())
        .await
        .unwrap();
    let gate = Arc::new(RecordingGate::default());
    node.set_block_gate(Arc::clone(&gate) as Arc<dyn BlockGate>);
    node.refresh_head().await.unwrap();
    first_node.reply("eth_getBlockByNumber", NodeReply::Http(502, "gone"));
    assert!(node.refresh_head().await.is_err());
    assert_eq!(active(&node), 0, "the gate rejected the block");
    serve_block(&second_node, NEXT);
    node.refresh_head().await.unwrap();
    assert_eq!(active(&node), 1);
    assert_eq!(
        *gate.0.lock().unwrap(),
        [(None, 100, true), (Some(100), 100, true), (Some(100), 100, true)]
    );
}

#[tokio::test]
async fn nodes_of_different_chains_are_refused_at_start_and_never_used_later() {
    let (first_node, second_node) = (FakeNode::start().await, FakeNode::start().await);
    second_node.set_result("eth_chainId", json!("0x5"));
    let error = connect_both(first_node.url(), second_node.url(), rare_checks())
        .await
        .unwrap_err();
    assert_eq!(
        error.to_string(),
        "the nodes serve different chains: number 1 chain 31337, number 2 chain 5"
    );
    // A node that is down at start and serves another chain later is not used.
    second_node.reply("eth_chainId", NodeReply::Http(502, "starting"));
    let node = connect_both(first_node.url(), second_node.url(), rare_checks())
        .await
        .unwrap();
    second_node.set_result("eth_chainId", json!("0x5"));
    first_node.reply("eth_getBlockByNumber", NodeReply::Http(502, "gone"));
    assert!(node.refresh_head().await.is_err());
    assert_eq!((active(&node), node.statuses()[1].state), (0, NodeState::OtherChain));
    // After it serves our chain, it is used again.
    second_node.set_result("eth_chainId", json!("0x7a69"));
    node.refresh_head().await.unwrap();
    assert_eq!((active(&node), node.statuses()[1].state), (1, NodeState::Up));
}

#[tokio::test]
async fn one_node_that_answers_is_enough_to_start() {
    let (first_node, second_node) = (FakeNode::start().await, FakeNode::start().await);
    first_node.reply("eth_chainId", NodeReply::Http(502, "starting"));
    assert_eq!(
        active(
            &connect_both(first_node.url(), second_node.url(), rare_checks())
                .await
                .unwrap()
        ),
        1
    );
    second_node.reply("eth_chainId", NodeReply::Http(503, "starting"));
    assert!(matches!(
        connect_both(first_node.url(), second_node.url(), rare_checks()).await,
        Err(NodeError::Unavailable)
    ));
}

#[tokio::test]
async fn x11_the_node_that_traces_is_preferred() {
    let (first_node, second_node) = (FakeNode::start().await, FakeNode::start().await);
    first_node.reply("debug_traceCall", NodeReply::Error(-32601, "no debug", Value::Null));
    let health_checks = HealthCheckConfig {
        probe: Duration::from_millis(50),
        ..rare_checks()
    };
    let node = connect_both(first_node.url(), second_node.url(), health_checks)
        .await
        .unwrap();
    assert_eq!((active(&node), node.trace_form()), (1, Some(TraceForm::Batch)));
    // Without tracing on either node, neither is better, and the node in use stays.
    second_node.reply("debug_traceCall", NodeReply::Error(-32601, "no debug", Value::Null));
    wait_until(|| node.trace_form().is_none()).await;
    assert_eq!(active(&node), 1);
    first_node.script("debug_traceCall", fake_node::trace);
    wait_until(|| active(&node) == 0 && node.trace_form().is_some()).await;
}

#[tokio::test]
async fn the_preferred_node_is_used_again_after_it_was_healthy_for_a_while() {
    let anvil = anvil();
    let (mut first_node, second_node) = (Relay::to(anvil.url()).await, Relay::to(anvil.url()).await);
    let settle = Duration::from_millis(600);
    let health_checks = HealthCheckConfig {
        standby: Duration::from_millis(50),
        settle,
        ..frequent_polls(50)
    };
    let node = connect_both(&first_node.url(), &second_node.url(), health_checks)
        .await
        .unwrap();
    first_node.cut().await;
    wait_until(|| active(&node) == 1).await;
    first_node.mend().await;
    let started_at = Instant::now();
    wait_until(|| active(&node) == 0).await;
    assert!(started_at.elapsed() >= settle);
    balance(&node).await.unwrap();
}

/// The form of a trace depends on the node that makes it.
#[tokio::test]
async fn decision_7_a_retried_trace_has_the_form_of_the_other_node() {
    let (first_node, second_node) = (FakeNode::start().await, FakeNode::start().await);
    let mut relay = Relay::to(first_node.url()).await;
    let mux = |params: &Value| {
        if params[2]["tracer"] != "muxTracer" {
            return fake_node::trace(params);
        }
        let mut answer = serde_json::Map::new();
        for tracer in ["callTracer", "prestateTracer"] {
            let config = json!({ "tracer": tracer, "tracerConfig": params[2]["tracerConfig"][tracer] });
            if let NodeReply::Result(trace) = fake_node::trace(&json!([params[0], params[1], config])) {
                answer.insert(tracer.to_owned(), trace);
            }
        }
        NodeReply::Result(Value::Object(answer))
    };
    first_node.script("debug_traceCall", mux);
    let node = connect_both(&relay.url(), second_node.url(), rare_checks())
        .await
        .unwrap();
    assert_eq!(node.trace_form(), Some(TraceForm::Mux));
    relay.cut().await;
    let request = CallRequest {
        to: Some(Address::repeat_byte(9)),
        ..CallRequest::default()
    };
    let traced = node
        .trace(
            &request,
            node.head().unwrap().pin(),
            TraceScope::Read,
            &VisibleState::default(),
        )
        .await
        .unwrap();
    assert!(matches!(traced, TraceResult::Trace(_)), "{traced:?}");
    assert_eq!((active(&node), node.trace_form()), (1, Some(TraceForm::Batch)));
}
