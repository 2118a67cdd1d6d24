//! A send that is killed at any point, as when the process dies there (HD22, RL1).

use crate::{
    sends::{CONTRACT, SEND, bank_with_sender, contract_call, naming},
    world::{Answer, account, scripted, signed},
};
use gw_audit::Outcome;
use gw_rpc::send::resolve_intents;
use gw_testkit::fake_node::NodeReply;
use gw_types::{B256, Bytes};
use serde_json::{Value, json};
use std::{
    collections::BTreeSet,
    sync::{Arc, Mutex},
};
use tokio::runtime::{Builder, Runtime};

/// A runtime that polls its main future between any two steps of its tasks.
fn stepwise() -> Runtime {
    Builder::new_current_thread()
        .event_interval(1)
        .enable_all()
        .build()
        .unwrap()
}

/// Runs the work for at most `steps` steps and then drops it, with everything it spawned. Returns the number of steps,
/// and the answer if the work came to its end.
fn run_for(steps: usize, work: impl Future<Output = Answer> + Send + 'static) -> (usize, Option<Answer>) {
    let runtime = stepwise();
    runtime.block_on(async {
        let task = tokio::spawn(work);
        for step in 0..steps {
            if task.is_finished() {
                return (step, Some(task.await.unwrap()));
            }
            tokio::task::yield_now().await;
        }
        (steps, None)
    })
}

/// The sends: one reserves an address, the other is shared with a recipient.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Kind {
    Deployment,
    SharedCall,
}

/// HD22: every transaction that the node got is in the journal before, and the next start settles its rows, once.
#[test]
fn hd22_a_send_killed_anywhere_is_known_and_settled() {
    const KILLS: usize = 48;
    let outer = Builder::new_multi_thread()
        .worker_threads(2)
        .enable_all()
        .build()
        .unwrap();
    let (world, fake) = outer.block_on(scripted());
    let (bank, sender) = outer.block_on(bank_with_sender(&world));
    outer.block_on(world.contract(bank, CONTRACT, None, &[sender.group]));
    // The contract has code.
    let _ = contract_call(&fake);
    let accepted: Arc<Mutex<BTreeSet<B256>>> = Arc::default();
    let (accepting, knowing) = (Arc::clone(&accepted), Arc::clone(&accepted));
    fake.script(SEND, move |params| {
        let raw: Bytes = params[0].as_str().unwrap().parse().unwrap();
        let hash = alloy_primitives::keccak256(&raw);
        accepting.lock().unwrap().insert(hash);
        NodeReply::Result(json!(hash))
    });
    fake.script("eth_getTransactionByHash", move |params| {
        let hash: B256 = params[0].as_str().unwrap().parse().unwrap();
        NodeReply::Result(if knowing.lock().unwrap().contains(&hash) {
            json!({"hash": hash})
        } else {
            Value::Null
        })
    });

    let mut nonce = 0;
    for kind in [Kind::Deployment, Kind::SharedCall] {
        let mut all_steps = usize::MAX;
        let (mut never_sent, mut open, mut ended) = (0, 0, 0);
        for kill in 0..=KILLS {
            let label = format!("{kind:?}, kill {kill}");
            fake.set_result("eth_getTransactionCount", json!(format!("{nonce:#x}")));
            let (to, input) = match kind {
                Kind::Deployment => (None, Bytes::from_static(&[0x60])),
                Kind::SharedCall => (Some(CONTRACT), Bytes::from_static(&[1, 2, 3, 4])),
            };
            let (raw, hash) = signed(&account(0), nonce, to, 0, input);
            nonce += 1;
            let names: &[&str] = if kind == Kind::SharedCall {
                &["did:test:friend"]
            } else {
                &[]
            };
            let killed = outer.block_on(world.restarted());
            // The first run comes to its end, and counts the steps.
            let steps = if kill == 0 { all_steps } else { all_steps * kill / KILLS };
            let (took, answer) = run_for(steps, killed.raw(naming(&raw, names)).by(&sender).answering());
            if kill == 0 {
                all_steps = took;
            }
            drop(killed);

            let next = outer.block_on(world.restarted());
            let was_taken = accepted.lock().unwrap().contains(&hash);
            let (intents, mut outcomes, _) = next.sends_recorded();
            let rows = || {
                next.fixture
                    .feed
                    .pin()
                    .snapshot
                    .visibility(hash)
                    .iter()
                    .map(|row| row.active)
                    .collect::<Vec<_>>()
            };
            let reserved = || {
                outer
                    .block_on(next.fixture.store.read().open_reservations(Some(hash)))
                    .unwrap()
                    .len()
            };
            let is_known = !intents.is_empty() || !outcomes.is_empty();
            assert!(
                is_known || !was_taken,
                "{label}: accepted by the node, and in no record"
            );
            assert!(
                is_known || (rows().is_empty() && reserved() == 0),
                "{label}: rows without an intent, which are never settled"
            );
            if let Some(answer) = &answer {
                let outcome = (answer.status, was_taken, outcomes.len());
                assert_eq!(outcome, (200, true, 1), "{label}: {}", answer.text);
            }
            ended += usize::from(answer.is_some());
            open += intents.len();
            if !was_taken {
                never_sent += 1;
                assert!(rows().iter().all(|active| !active), "{label}");
                continue;
            }
            if outcomes.is_empty() {
                outer.block_on(resolve_intents(&next.sends, intents));
                outcomes = next.sends_recorded().1;
            }
            let outcome: Vec<_> = outcomes.iter().map(|outcome| (outcome.hash, outcome.outcome)).collect();
            assert_eq!(outcome, [(hash, Outcome::Accepted)], "{label}");
            let expected = if kind == Kind::SharedCall {
                (vec![true], 0)
            } else {
                (vec![], 1)
            };
            assert_eq!((rows(), reserved()), expected, "{label}");
        }
        let points = format!("{kind:?}: {never_sent} before the send, {open} open, {ended} ended");
        assert!(never_sent > 0 && open > 0 && ended > 0, "{points}");
    }
}
