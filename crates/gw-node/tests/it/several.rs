//! Several nodes of one chain: one of them at a time, another when it fails.

use crate::config;
use gw_evm::{
    BlockId, CallRequest,
    wire::{TraceForm, TraceScope, UpstreamCall},
};
use gw_node::{Admitting, Answer, Block, Budget, Gate, Node, NodeError, NodeState, Resend, Traced, Upkeep};
use gw_policy::{
    snapshot::{AccountChange, VisibleState},
    testing::world,
};
use gw_testkit::{FakeNode, Relay, anvil::anvil, fake_node, fake_node::Reply};
use gw_types::{Address, U256};
use serde_json::{Value, json};
use std::{
    sync::{Arc, Mutex},
    time::{Duration, Instant},
};

const NEXT: &str = "0x6565656565656565656565656565656565656565656565656565656565656565";
const OTHER: &str = "0x6666666666666666666666666666666666666666666666666666666666666666";
const HOUR: Duration = Duration::from_secs(3600);

async fn both(one: &str, two: &str, upkeep: Upkeep) -> Result<Arc<Node>, NodeError> {
    Node::connect(&config(one).or(two).unwrap().with_upkeep(upkeep)).await
}

/// Looks so rarely that a test makes its own.
fn rarely() -> Upkeep {
    Upkeep {
        head: HOUR,
        probe: HOUR,
        standby: HOUR,
        ..Upkeep::default()
    }
}

fn often(head: u64) -> Upkeep {
    Upkeep {
        head: Duration::from_millis(head),
        ..rarely()
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
    let asked = call(
        "eth_getBalance",
        r#"["0xf39Fd6e51aad88F6F4ce6aB8827279cffFb92266","latest"]"#,
    );
    node.call(&asked, Budget::Forward)
        .await
        .map(|answer| assert!(matches!(answer, Answer::Result(_))))
}

async fn until(mut is: impl FnMut() -> bool) {
    let began = Instant::now();
    while !is() {
        assert!(began.elapsed() < Duration::from_secs(20), "waited in vain");
        tokio::time::sleep(Duration::from_millis(10)).await;
    }
}

/// A real node behind two ways. Without a second way, the cut is what every caller sees.
#[tokio::test]
async fn a_read_goes_to_the_other_node_when_the_way_to_the_first_is_cut() {
    let anvil = anvil();
    let (mut one, two) = (Relay::to(anvil.url()).await, Relay::to(anvil.url()).await);
    let alone = Node::connect(&config(&one.url())).await.unwrap();
    let node = both(&one.url(), &two.url(), rarely()).await.unwrap();
    assert_eq!((active(&node), node.trace_form()), (0, Some(TraceForm::Batch)));
    one.cut().await;
    assert!(matches!(
        balance(&alone).await,
        Err(NodeError::Unreachable(_) | NodeError::Broken(_))
    ));
    balance(&node).await.unwrap();
    assert_eq!((active(&node), node.head().map(|head| head.number)), (1, Some(0)));
    let states: Vec<_> = node.statuses().iter().map(|status| status.state).collect();
    assert_eq!(states, [NodeState::Down, NodeState::Up]);
    // Traces, facts and sends follow.
    let request = CallRequest {
        to: Some(Address::repeat_byte(9)),
        ..CallRequest::default()
    };
    let pin = node.head().unwrap().pin();
    assert!(matches!(
        node.trace(&request, pin, TraceScope::Read, &VisibleState::default())
            .await
            .unwrap(),
        Traced::Trace(_)
    ));
    assert_eq!(
        node.block(BlockId::Number(0)).await.unwrap().map(|block| block.number),
        Some(0)
    );
    assert_eq!(alone.statuses().len(), 1);
}

/// The connection stays, answers do not come: who waits is answered by the other node as soon as it is in use.
#[tokio::test]
async fn a_node_that_falls_silent_is_given_up_and_so_are_the_answers_of_it() {
    let anvil = anvil();
    let (one, two) = (Relay::to(anvil.url()).await, Relay::to(anvil.url()).await);
    let node = both(&one.url(), &two.url(), often(100)).await.unwrap();
    one.hold();
    let began = Instant::now();
    balance(&node).await.unwrap();
    let took = began.elapsed();
    assert!(
        took < Duration::from_secs(5),
        "the forward deadline is 30 s, the grace of the head 5 s: {took:?}"
    );
    assert_eq!(active(&node), 1);
    assert!(node.head().is_some());
}

/// A heavy call that runs into its deadline is no reason to leave a node that is well.
#[tokio::test]
async fn a_call_that_times_out_on_a_node_that_is_well_moves_nothing() {
    let (one, two) = (FakeNode::start().await, FakeNode::start().await);
    let node = both(one.url(), two.url(), rarely()).await.unwrap();
    let (first, second) = (node.head().unwrap().pin(), CallRequest::default());
    one.reply("debug_traceCall", Reply::Silence);
    two.take();
    let patient = node
        .trace(&second, first, TraceScope::Read, &VisibleState::default())
        .await;
    assert!(
        matches!(patient, Err(gw_node::NoTrace::Node(NodeError::Timeout))),
        "{patient:?}"
    );
    assert_eq!(active(&node), 0);
    two.assert_silent();
}

/// HD28: a node that knows no changed state runs nothing while anything is withheld.
#[tokio::test]
async fn hd28_a_node_that_passes_over_what_is_withheld_gives_no_trace() {
    let (fake, anvil) = (FakeNode::start().await, anvil());
    for (url, expected) in [(fake.url().to_owned(), false), (anvil.url().to_owned(), true)] {
        let node = Node::connect(&config(&url)).await.unwrap();
        let request = CallRequest {
            to: Some(Address::repeat_byte(9)),
            ..CallRequest::default()
        };
        let pin = node.head().unwrap().pin();
        let trace = async |state: &VisibleState| node.trace(&request, pin, TraceScope::Read, state).await;
        assert!(matches!(trace(&VisibleState::default()).await, Ok(Traced::Trace(_))));
        let paid = AccountChange {
            balance: Some((U256::ONE, U256::ZERO)),
            ..AccountChange::default()
        };
        let snapshot = world().withheld(Address::repeat_byte(9), 0, paid).snapshot();
        let said = trace(&snapshot.visible_state(0)).await;
        assert_eq!(matches!(said, Ok(Traced::Trace(_))), expected, "{said:?}");
        assert_eq!(
            matches!(said, Err(gw_node::NoTrace::Unsupported)),
            !expected,
            "{said:?}"
        );
    }
}

/// A proxy that answers for a node it does not reach.
#[tokio::test]
async fn a_proxys_bad_gateway_is_a_broken_way() {
    let (one, two) = (FakeNode::start().await, FakeNode::start().await);
    let node = both(one.url(), two.url(), rarely()).await.unwrap();
    for method in ["eth_getBalance", "eth_getBlockByNumber"] {
        one.reply(method, Reply::Http(502, "<html>bad gateway</html>"));
    }
    balance(&node).await.unwrap();
    assert_eq!(active(&node), 1);
}

const RAW: &str = r#"["0x02f8"]"#;

/// Sends are counted by the bytes that reach each node.
#[tokio::test]
async fn hd22_a_send_whose_outcome_is_unknown_is_not_sent_again() {
    for (method, resend) in [
        ("eth_sendRawTransaction", Resend::IfUnheard),
        ("eth_sendTransaction", Resend::Never),
    ] {
        let (one, two) = (FakeNode::start().await, FakeNode::start().await);
        let node = both(one.url(), two.url(), rarely()).await.unwrap();
        two.on(method, json!(NEXT));
        // It heard the send, and then nobody knows.
        for method in [method, "eth_getBlockByNumber", "eth_getBalance"] {
            one.reply(method, Reply::Http(504, "gateway timeout"));
        }
        one.take();
        two.take();
        let sent = node.send(&call(method, RAW), resend).await;
        assert!(sent.is_err_and(|error| !error.is_before_sending()));
        let heard = |fake: &FakeNode| fake.take().iter().filter(|call| call.method == method).count();
        assert_eq!((heard(&one), heard(&two)), (1, 0), "{method}");
        // A read at the same moment does change nodes.
        balance(&node).await.unwrap();
        assert_eq!((active(&node), heard(&two)), (1, 0));
    }
}

#[tokio::test]
async fn hd22_a_send_that_no_node_heard_goes_to_the_other_one_unless_a_node_signs_it() {
    for (method, resend, expected) in [
        ("eth_sendRawTransaction", Resend::IfUnheard, 1),
        ("eth_sendTransaction", Resend::Never, 0),
    ] {
        let (one, two) = (FakeNode::start().await, FakeNode::start().await);
        let mut way = Relay::to(one.url()).await;
        let node = both(&way.url(), two.url(), rarely()).await.unwrap();
        two.on(method, json!(NEXT));
        way.cut().await;
        // The kept connection is found closed first; that tells nothing certain. Then nobody listens.
        let mut reached = false;
        for _ in 0..3 {
            match node.send(&call(method, RAW), resend).await {
                Ok(_) => reached = true,
                Err(error) if error.is_before_sending() => {}
                Err(error) => assert!(
                    matches!(error, NodeError::Unreachable(_) | NodeError::Broken(_)),
                    "{error:?}"
                ),
            }
            if reached || resend == Resend::Never {
                break;
            }
        }
        let heard = |fake: &FakeNode| fake.take().iter().filter(|call| call.method == method).count();
        assert_eq!((heard(&one), heard(&two)), (0, expected), "{method}");
    }
}

/// Decision 41: a client never reads older state than it was shown.
#[tokio::test]
async fn decision_41_a_standby_that_lags_is_not_taken_before_it_has_caught_up() {
    let (one, two) = (FakeNode::start().await, FakeNode::start().await);
    two.on("eth_getBlockByNumber", fake_node::block(99, OTHER));
    let node = both(one.url(), two.url(), rarely()).await.unwrap();
    one.reply("eth_getBlockByNumber", Reply::Http(502, "gone"));
    assert!(matches!(node.refresh_head().await, Err(NodeError::Unavailable)));
    assert_eq!(
        (active(&node), node.head().map(|head| head.number)),
        (0, Some(FakeNode::HEAD))
    );
    two.on("eth_getBlockByNumber", fake_node::block(101, NEXT));
    node.refresh_head().await.unwrap();
    assert_eq!((active(&node), node.head().map(|head| head.number)), (1, Some(101)));
}

#[tokio::test]
async fn after_the_grace_a_standby_that_lags_is_better_than_none() {
    let (one, two) = (FakeNode::start().await, FakeNode::start().await);
    two.on("eth_getBlockByNumber", fake_node::block(99, OTHER));
    let upkeep = Upkeep {
        grace: Duration::from_millis(400),
        ..often(50)
    };
    let node = both(one.url(), two.url(), upkeep).await.unwrap();
    let mut moves = node.head_moves();
    one.reply("eth_getBlockByNumber", Reply::Http(502, "gone"));
    moves.changed().await.unwrap();
    // Reads are refused first: nobody is told an older block as if nothing had happened.
    assert!(node.head().is_none_or(|head| head.number == 99));
    until(|| node.head().is_some_and(|head| head.number == 99)).await;
    assert_eq!(active(&node), 1);
}

/// What a gate was asked about.
#[derive(Debug, Default)]
struct Asked(Mutex<Vec<(Option<u64>, u64, bool)>>);

impl Gate for Asked {
    fn admit<'a>(&'a self, node: &'a Node, last: Option<Block>, block: Block) -> Admitting<'a> {
        Box::pin(async move {
            // The node of the gate is the one that has the block.
            let seen = node.listing(block.hash).await?;
            self.0.lock().unwrap().push((
                last.map(|last| last.number),
                block.number,
                seen.block.hash == block.hash,
            ));
            if format!("{:#x}", block.hash) == OTHER {
                Err(NodeError::NotValidated("loot".into()))
            } else {
                Ok(())
            }
        })
    }
}

/// HD2: another block at the followed height is told like a reorganization, and is not read at before it was looked at.
#[tokio::test]
async fn hd2_another_block_at_the_same_height_passes_the_gate_before_its_node_is_used() {
    let (one, two) = (FakeNode::start().await, FakeNode::start().await);
    let block = |fake: &FakeNode, hash: &'static str| {
        for method in ["eth_getBlockByNumber", "eth_getBlockByHash"] {
            fake.on(method, fake_node::block(FakeNode::HEAD, hash));
        }
    };
    block(&two, OTHER);
    let node = both(one.url(), two.url(), rarely()).await.unwrap();
    let gate = Arc::new(Asked::default());
    node.guard(Arc::clone(&gate) as Arc<dyn Gate>);
    node.refresh_head().await.unwrap();
    one.reply("eth_getBlockByNumber", Reply::Http(502, "gone"));
    assert!(node.refresh_head().await.is_err());
    assert_eq!(active(&node), 0, "the gate did not let its block in");
    block(&two, NEXT);
    node.refresh_head().await.unwrap();
    assert_eq!(active(&node), 1);
    assert_eq!(
        *gate.0.lock().unwrap(),
        [(None, 100, true), (Some(100), 100, true), (Some(100), 100, true)]
    );
}

#[tokio::test]
async fn nodes_of_different_chains_are_refused_at_start_and_never_used_later() {
    let (one, two) = (FakeNode::start().await, FakeNode::start().await);
    two.on("eth_chainId", json!("0x5"));
    let refused = both(one.url(), two.url(), rarely()).await.unwrap_err();
    assert_eq!(
        refused.to_string(),
        "the nodes serve different chains: number 1 chain 31337, number 2 chain 5"
    );
    // Away at start, and of another chain when it comes.
    two.reply("eth_chainId", Reply::Http(502, "starting"));
    let node = both(one.url(), two.url(), rarely()).await.unwrap();
    two.on("eth_chainId", json!("0x5"));
    one.reply("eth_getBlockByNumber", Reply::Http(502, "gone"));
    assert!(node.refresh_head().await.is_err());
    assert_eq!((active(&node), node.statuses()[1].state), (0, NodeState::OtherChain));
    // What changed its mind is a node again.
    two.on("eth_chainId", json!("0x7a69"));
    node.refresh_head().await.unwrap();
    assert_eq!((active(&node), node.statuses()[1].state), (1, NodeState::Up));
}

#[tokio::test]
async fn one_node_that_answers_is_enough_to_start() {
    let (one, two) = (FakeNode::start().await, FakeNode::start().await);
    one.reply("eth_chainId", Reply::Http(502, "starting"));
    assert_eq!(active(&both(one.url(), two.url(), rarely()).await.unwrap()), 1);
    two.reply("eth_chainId", Reply::Http(503, "starting"));
    assert!(matches!(
        both(one.url(), two.url(), rarely()).await,
        Err(NodeError::Unavailable)
    ));
}

#[tokio::test]
async fn x11_the_node_that_traces_is_preferred() {
    let (one, two) = (FakeNode::start().await, FakeNode::start().await);
    one.reply("debug_traceCall", Reply::Error(-32601, "no debug", Value::Null));
    let upkeep = Upkeep {
        probe: Duration::from_millis(50),
        ..rarely()
    };
    let node = both(one.url(), two.url(), upkeep).await.unwrap();
    assert_eq!((active(&node), node.trace_form()), (1, Some(TraceForm::Batch)));
    // It stops: both are alike, and the other one is not better.
    two.reply("debug_traceCall", Reply::Error(-32601, "no debug", Value::Null));
    until(|| node.trace_form().is_none()).await;
    assert_eq!(active(&node), 1);
    one.script("debug_traceCall", fake_node::trace);
    until(|| active(&node) == 0 && node.trace_form().is_some()).await;
}

#[tokio::test]
async fn the_preferred_node_is_used_again_once_it_was_well_for_a_while() {
    let anvil = anvil();
    let (mut one, two) = (Relay::to(anvil.url()).await, Relay::to(anvil.url()).await);
    let settle = Duration::from_millis(600);
    let upkeep = Upkeep {
        standby: Duration::from_millis(50),
        settle,
        ..often(50)
    };
    let node = both(&one.url(), &two.url(), upkeep).await.unwrap();
    one.cut().await;
    until(|| active(&node) == 1).await;
    one.mend().await;
    let began = Instant::now();
    until(|| active(&node) == 0).await;
    assert!(began.elapsed() >= settle);
    balance(&node).await.unwrap();
}

/// The form of a trace belongs to the node that is asked.
#[tokio::test]
async fn decision_7_a_retried_trace_has_the_form_of_the_other_node() {
    let (one, two) = (FakeNode::start().await, FakeNode::start().await);
    let mut way = Relay::to(one.url()).await;
    let mux = |params: &Value| {
        if params[2]["tracer"] != "muxTracer" {
            return fake_node::trace(params);
        }
        let mut answer = serde_json::Map::new();
        for tracer in ["callTracer", "prestateTracer"] {
            let config = json!({ "tracer": tracer, "tracerConfig": params[2]["tracerConfig"][tracer] });
            if let Reply::Result(said) = fake_node::trace(&json!([params[0], params[1], config])) {
                answer.insert(tracer.to_owned(), said);
            }
        }
        Reply::Result(Value::Object(answer))
    };
    one.script("debug_traceCall", mux);
    let node = both(&way.url(), two.url(), rarely()).await.unwrap();
    assert_eq!(node.trace_form(), Some(TraceForm::Mux));
    way.cut().await;
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
    assert!(matches!(traced, Traced::Trace(_)), "{traced:?}");
    assert_eq!((active(&node), node.trace_form()), (1, Some(TraceForm::Batch)));
}
