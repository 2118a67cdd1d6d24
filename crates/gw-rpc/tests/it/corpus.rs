//! The parity corpus through `/rpc`: every viewer gets the same views as from the bare view functions of `gw-policy`,
//! here with a token, a store and a node in between (house style, habit 6).

use crate::{
    store_fixture::Settled,
    world::{World, scripted_with},
};
use gw_evm::{Method, MethodLookup};
use gw_policy::testing::{
    METADATA, NOW,
    corpus::{Case, Expected},
    hash_of,
};
use gw_rpc::RpcSettings;
use gw_testkit::{
    FakeNode,
    fake_node::{self, NodeReply},
};
use serde_json::{Value, json};
use std::{fs, path::Path};

fn cases() -> Vec<(String, Case)> {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("../gw-policy/tests/corpus");
    let mut files: Vec<_> = fs::read_dir(folder)
        .unwrap()
        .map(|entry| entry.unwrap().path())
        .collect();
    files.sort();
    let read = |path: &std::path::PathBuf| {
        let name = path.file_stem().unwrap().to_string_lossy().into_owned();
        let case = Case::read(&fs::read_to_string(path).unwrap()).unwrap_or_else(|error| panic!("{name}: {error}"));
        (name, case)
    };
    files.iter().map(read).collect()
}

/// I8, R24, habit 6: each viewer gets the view in the file, and each denial is the opaque one.
#[tokio::test]
async fn every_case_shows_through_rpc_the_views_in_its_file() {
    every_case_with(RpcSettings::default()).await;
}

/// The same with a cache that keeps no parties of transactions.
#[tokio::test]
async fn every_case_shows_the_same_views_without_a_cache() {
    every_case_with(RpcSettings {
        party_cache_bytes: 0,
        ..RpcSettings::default()
    })
    .await;
}

/// Asks the node and then, where an answer is kept, the cache: every viewer calls twice.
async fn every_case_with(settings: RpcSettings) {
    let cases = cases();
    assert!(cases.len() >= 17, "cases are not lost");
    let mut failures = Vec::new();
    for (name, case) in &cases {
        let (world, fake) = scripted_with(settings.clone(), case.policy_settings.clone()).await;
        world.fixture.clock.set(NOW);
        let mut settled = Settled::default();
        settled.write(&world, &policy_world(name, case)).await;
        // The block in the files is the followed head: callers see nothing of any other block (HD28).
        fake.set_result(
            "eth_getBlockByNumber",
            fake_node::block(100, &hash_of("block").to_string()),
        );
        world.node.refresh_head().await.unwrap();
        script(&fake, name, case);
        fake.take();
        for (viewer, expected) in case.views.iter().chain(&case.views) {
            let body = json!({"jsonrpc": "2.0", "id": 1, "method": case.method, "params": case.params});
            let ask = world.raw(body.to_string());
            let ask = if viewer == "nobody" {
                ask
            } else {
                ask.bearer(&settled.token(&world, viewer))
            };
            let answer = ask.send().await;
            let shown = match answer.body.get("result") {
                Some(result) if answer.status == 200 => format!("{result:#}"),
                _ if (answer.status, answer.text.as_str()) == (404, crate::world::DENIED) => "denied".to_owned(),
                _ => format!("{} {}", answer.status, answer.text),
            };
            let wanted = match expected {
                Expected::Result(value) => format!("{value:#}"),
                Expected::Denied => "denied".to_owned(),
            };
            if shown != wanted {
                failures.push(format!("{name}, {viewer}: shows {shown}\nnot {wanted}"));
            }
        }
        // The case needs an answer of the node: at least one viewer's call reached it.
        let upstream = case.upstream_method().unwrap_or_else(|error| panic!("{name}: {error}"));
        assert!(
            fake.take().iter().any(|call| call.method == upstream),
            "{name}: no viewer's call reached the node"
        );
    }
    assert!(failures.is_empty(), "{}", failures.join("\n\n"));
}

/// The world of the case. If the case has an anonymous viewer, the anonymous group may use the method, too (A3).
fn policy_world(name: &str, case: &Case) -> gw_policy::testing::World {
    let MethodLookup::Registered(method) = Method::lookup(&case.method) else {
        panic!("{name}: `{}` is unknown", case.method)
    };
    let world = case.world.clone();
    if !case.views.contains_key("nobody") {
        return world;
    }
    world
        .org("anonymous")
        .group("anonymous")
        .methods(METADATA)
        .methods([method])
}

/// Scripts the node of the case: its answer, and its known transactions by hash and in their blocks.
fn script(fake: &FakeNode, name: &str, case: &Case) {
    let transactions = case.transactions.clone();
    fake.script("eth_getTransactionByHash", move |params| {
        let known = transactions.iter().find(|transaction| transaction["hash"] == params[0]);
        NodeReply::Result(known.cloned().unwrap_or(Value::Null))
    });
    let transactions = case.transactions.clone();
    fake.script("eth_getBlockByHash", move |params| {
        let inside: Vec<_> = transactions
            .iter()
            .filter(|transaction| transaction["blockHash"] == params[0])
            .collect();
        NodeReply::Result(json!({"hash": params[0], "transactions": inside}))
    });
    let upstream = case.upstream_method().unwrap_or_else(|error| panic!("{name}: {error}"));
    fake.set_result(&upstream, case.node.clone());
}

/// A world that cannot be written fails the test: no case is skipped.
#[tokio::test]
#[should_panic(expected = "cannot be written")]
async fn a_world_that_cannot_be_written_fails_the_test() {
    let (world, _fake): (World, FakeNode) = crate::world::scripted().await;
    let policy_world = gw_policy::testing::world().revoked(gw_types::TokenId::fixed(1));
    Settled::default().write(&world, &policy_world).await;
}
