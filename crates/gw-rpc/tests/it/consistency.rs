//! Policy changes and disconnecting clients during a call (HD20, HD21; decision 45).

use crate::world::{World, account, scripted, signed};
use gw_audit::Outcome;
use gw_store::record::UserPatch;
use gw_testkit::{FakeNode, TestUser, fake_node::NodeReply};
use gw_types::{Address, Bytes};
use serde_json::{Value, json};
use std::{
    future::Future,
    pin::Pin,
    sync::mpsc,
    task::{Context, Poll},
};

/// A call that the node answers only when the test opens the gate. Needs a multi-threaded runtime.
pub(crate) struct Gate {
    reached: tokio::sync::mpsc::UnboundedReceiver<()>,
    open: mpsc::Sender<()>,
}

impl Gate {
    pub(crate) fn new(fake: &FakeNode, method: &str, reply: NodeReply) -> Self {
        let (at_gate, reached) = tokio::sync::mpsc::unbounded_channel();
        let (open, opened) = mpsc::channel::<()>();
        fake.script(method, move |_| {
            let _ = at_gate.send(());
            // An error means that the gate is dropped, which opens it.
            let _ = opened.recv();
            reply.clone()
        });
        Self { reached, open }
    }

    /// Waits until the call has arrived at the node.
    pub(crate) async fn reached(mut self) -> Self {
        self.reached.recv().await.unwrap();
        self
    }

    pub(crate) fn open(self) {
        self.open.send(()).unwrap();
    }
}

impl World {
    pub(crate) async fn ban(&self, person: &TestUser) {
        self.update(
            person,
            UserPatch {
                banned: Some(true),
                ..UserPatch::default()
            },
        )
        .await;
    }
}

/// HD20: the node's answer is opened under the policy at the time of its arrival.
#[tokio::test(flavor = "multi_thread", worker_threads = 4)]
async fn hd20_an_answer_is_opened_under_the_newest_policy() {
    let (world, fake) = scripted().await;
    let bank = world.fixture.create_org("bank").await;
    let wallet = Address::repeat_byte(7);
    let owner = world
        .person("owner", bank, &["eth_getBalance", "eth_syncing"], &[])
        .await;
    world.link(&owner, wallet).await;
    let balance = json!([wallet, "latest"]);
    fake.set_result("eth_getBalance", json!("0x5"));
    assert_eq!(world.result(&owner, "eth_getBalance", balance.clone()).await, "0x5");

    // The link ends while the node answers, so the caller may no longer see the answer.
    let gate = Gate::new(&fake, "eth_getBalance", NodeReply::Result(json!("0x5")));
    let request = tokio::spawn(world.ask(Some(&owner), "eth_getBalance", balance).answering());
    let gate = gate.reached().await;
    world
        .fixture
        .change(async |tx| tx.unlink_address(owner.id, wallet).await.unwrap())
        .await;
    gate.open();
    assert_eq!(request.await.unwrap().body["result"], "0x0");

    // A ban ends the call.
    let gate = Gate::new(&fake, "eth_syncing", NodeReply::Result(json!(false)));
    let request = tokio::spawn(world.ask(Some(&owner), "eth_syncing", json!([])).answering());
    let gate = gate.reached().await;
    world.ban(&owner).await;
    gate.open();
    request.await.unwrap().assert_denied();
}

/// HD20, I7, decision 45: an answer is not opened if the policy has become stale meanwhile.
#[tokio::test(flavor = "multi_thread", worker_threads = 4)]
async fn decision_45_stale_policy_serves_metadata_only() {
    let (world, fake) = scripted().await;
    let bank = world.fixture.create_org("bank").await;
    let caller = world.person("caller", bank, &["eth_syncing"], &[]).await;
    let gate = Gate::new(&fake, "eth_syncing", NodeReply::Result(json!(false)));
    let request = tokio::spawn(world.ask(Some(&caller), "eth_syncing", json!([])).answering());
    let gate = gate.reached().await;
    world.fixture.make_policy_stale();
    gate.open();
    let answer = request.await.unwrap();
    assert_eq!(answer.error(), (503, -32603));
    assert_eq!(answer.body["error"]["message"], "policy unavailable");
    assert_eq!(answer.headers["retry-after"], "1");
    fake.take();
    assert_eq!(
        world.ask(Some(&caller), "eth_syncing", json!([])).send().await.error(),
        (503, -32603)
    );
    assert_eq!(
        world
            .ask(Some(&caller), "eth_blockNumber", json!([]))
            .send()
            .await
            .status,
        200
    );
    assert_eq!(world.ask(None, "eth_chainId", json!([])).send().await.status, 200);
    fake.assert_silent();
}

/// HD20: a send is authorized again after its traces, and directly before it goes to the node.
#[tokio::test(flavor = "multi_thread", worker_threads = 4)]
async fn hd20_a_ban_during_the_trace_stops_a_send() {
    let (world, fake) = scripted().await;
    let bank = world.fixture.create_org("bank").await;
    let sender = world.person("sender", bank, &["eth_sendRawTransaction"], &[]).await;
    let gate = Gate::new(&fake, "eth_getTransactionCount", NodeReply::Result(json!("0x0")));
    let (raw, _) = signed(&account(0), 0, Some(Address::repeat_byte(5)), 1, Bytes::new());
    let request = tokio::spawn(
        world
            .ask(Some(&sender), "eth_sendRawTransaction", json!([raw]))
            .answering(),
    );
    let gate = gate.reached().await;
    world.ban(&sender).await;
    gate.open();
    request.await.unwrap().assert_denied();
    assert!(fake.take().iter().all(|call| call.method != "eth_sendRawTransaction"));
    let (intents, _, calls) = world.sends_recorded();
    assert_eq!((intents.len(), calls.len()), (0, 1));
}

/// Polls a future `polls_left` times, then drops it, like a client that disconnects at that point.
struct HangUp<F> {
    inner: Pin<Box<F>>,
    polls_left: usize,
}

impl<F: Future> Future for HangUp<F> {
    type Output = Option<F::Output>;

    fn poll(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<Self::Output> {
        if self.polls_left == 0 {
            return Poll::Ready(None);
        }
        self.polls_left -= 1;
        match self.inner.as_mut().poll(context) {
            Poll::Ready(answer) => Poll::Ready(Some(answer)),
            Poll::Pending => {
                if self.polls_left == 0 {
                    context.waker().wake_by_ref();
                }
                Poll::Pending
            }
        }
    }
}

fn hang_up<F: Future>(inner: F, polls: usize) -> HangUp<F> {
    HangUp {
        inner: Box::pin(inner),
        polls_left: polls,
    }
}

/// HD21: a started read leaves exactly one record, wherever the client disconnects.
#[tokio::test]
async fn hd21_an_abandoned_read_leaves_one_record_wherever_it_stopped() {
    let (world, fake) = scripted().await;
    let bank = world.fixture.create_org("bank").await;
    let contract = Address::repeat_byte(0x11);
    let caller = world.person("caller", bank, &["eth_syncing", "eth_call"], &[]).await;
    world.contract(bank, contract, None, &[caller.group]).await;
    for (method, params) in [
        ("eth_syncing", json!([])),
        ("eth_call", json!([{"to": contract, "data": "0x12345678"}, "latest"])),
    ] {
        let mut abandoned = 0;
        for polls in 1.. {
            fake.take();
            let answer = hang_up(world.ask(Some(&caller), method, params.clone()).answering(), polls).await;
            let record = world.record();
            match answer {
                Some(answer) => {
                    assert_eq!((answer.status, record.status_code), (200, 200));
                    break;
                }
                None => assert_eq!((record.status_code, record.node_called), (499, true)),
            }
            abandoned += 1;
        }
        assert!(abandoned > 0, "{method} was never abandoned");
    }
}

/// HD21, HD22: a send runs to its outcome, wherever the client disconnects: there is one outcome and one access record
/// for each intent and each forwarded transaction.
#[tokio::test]
async fn hd21_an_abandoned_send_runs_to_its_record() {
    let (world, fake) = scripted().await;
    let bank = world.fixture.create_org("bank").await;
    let sender = world.person("sender", bank, &["eth_sendRawTransaction"], &[]).await;
    let mut done = false;
    for polls in 1.. {
        let nonce = u64::try_from(polls).unwrap();
        let (raw, hash) = signed(&account(0), nonce, Some(Address::repeat_byte(5)), 1, Bytes::new());
        fake.set_result("eth_getTransactionCount", json!(format!("{nonce:#x}")));
        fake.set_result("eth_sendRawTransaction", json!(hash));
        fake.take();
        let request = world
            .ask(Some(&sender), "eth_sendRawTransaction", json!([raw]))
            .answering();
        done |= hang_up(request, polls).await.is_some();
        world.settle().await;
        let forwarded = fake
            .take()
            .iter()
            .filter(|call| call.method == "eth_sendRawTransaction")
            .count();
        let (intents, outcomes, calls) = world.sends_recorded();
        assert_eq!(
            (forwarded, intents.len(), outcomes.len(), calls.len()),
            (1, 1, 1, 1),
            "after {polls} polls"
        );
        assert_eq!(
            (outcomes[0].outcome, outcomes[0].hash, calls[0].status_code),
            (Outcome::Accepted, hash, 200)
        );
        if done {
            return;
        }
    }
}

/// X4: a balance that the caller may not see is a constant, for which the node is not queried.
#[tokio::test]
async fn k8_a_balance_out_of_reach_is_zero_without_a_query() {
    let (world, fake) = scripted().await;
    let bank = world.fixture.create_org("bank").await;
    let caller = world
        .person("caller", bank, &["eth_getBalance", "eth_getTransactionCount"], &[])
        .await;
    let other = world.person("other", bank, &["eth_getBalance"], &[]).await;
    let (linked, unknown) = (Address::repeat_byte(1), Address::repeat_byte(2));
    world.link(&other, linked).await;
    for address in [linked, unknown] {
        for method in ["eth_getBalance", "eth_getTransactionCount"] {
            let zero: Value = world.result(&caller, method, json!([address, "latest"])).await;
            assert_eq!(zero, "0x0");
        }
    }
    fake.assert_silent();
}
