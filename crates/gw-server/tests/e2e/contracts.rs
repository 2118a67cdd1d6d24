//! Contracts that came to the chain past the gateway: proved, compared with the chain, moved (spec/20 K3 to K6).

use crate::{
    harness::{Engine, init_code, key},
    world::{World, createCall, group},
};
use alloy_primitives::Address;
use alloy_sol_types::SolCall as _;
use serde_json::{Value, json};

const FAILED: &str = "contract registration failed";

/// K3, K4, B15: an administrator gets what a member's transaction made, itself or through a factory, and nothing else: no
/// wallet, no stranger's contract, nothing twice; and every refusal is the same.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn k3_k4_b15_a_contract_is_claimed_by_the_transaction_that_made_it() {
    let w = World::start(Engine::Sqlite).await;
    let claim = async |address: Address, hash: &str| {
        let body = json!({"address": address, "deployment_tx_hash": hash, "name": "claimed"});
        let path = format!("/api/v1/admin/orgs/{}/contracts/claim", w.meridian);
        w.gw.as_user(&w.admin.token, "POST", &path, Some(body)).await
    };
    let refused = async |address: Address, hash: &str, why: &str| {
        assert_eq!(claim(address, hash).await.expect(400)["error"], FAILED, "{why}");
    };
    let code = init_code("Factory", &[]);
    let (hash, factory) = w.gw.past(&w.ops.key, None, &code).await;
    let factory = factory.unwrap();
    let (strangers_hash, strangers) = w.gw.past(&w.outsider.key, None, &code).await;
    let (rivals_hash, rivals) = w.gw.past(&w.trader.key, None, &code).await;

    refused(
        strangers.unwrap(),
        &strangers_hash,
        "sent by nobody of the organization",
    )
    .await;
    refused(rivals.unwrap(), &rivals_hash, "sent by the other bank's").await;
    refused(factory, &strangers_hash, "another transaction's").await;
    refused(factory, &format!("0x{}", "11".repeat(32)), "no transaction").await;
    refused(w.outsider.address(), &hash, "somebody's wallet").await;
    refused(Address::repeat_byte(0xee), &hash, "nothing there").await;
    refused(w.erc20, &hash, "registered").await;
    assert_eq!(claim(factory, &hash).await.expect(201)["org_id"], json!(w.meridian));
    refused(factory, &hash, "registered by now").await;

    // What a member's factory call made.
    let child = factory.create(1);
    let (hash, _) = w.gw.past(&w.ops.key, Some(factory), &createCall {}.abi_encode()).await;
    refused(factory.create(2), &hash, "not what it made").await;
    claim(child, &hash).await.expect(201);

    // K3: by registration the same proof is needed, but by super.
    let register = async |body: Value| {
        let path = format!("/api/v1/admin/orgs/{}/contracts", w.meridian);
        w.gw.as_user(&w.admin.token, "POST", &path, Some(body)).await
    };
    let (hash, other) = w.gw.past(&w.ops.key, None, &code).await;
    let other = other.unwrap();
    assert_eq!(
        register(json!({"address": other, "name": "x"})).await.expect(400)["error"],
        FAILED
    );
    assert_eq!(
        register(json!({"address": w.outsider.address()})).await.expect(400)["error"],
        FAILED,
        "a wallet"
    );
    register(json!({"address": other, "name": "x", "deployment_tx_hash": hash}))
        .await
        .expect(201);

    // What a member deployed through the gateway is proved by the organization's own reservation, and by no other's.
    let contract = format!("/orgs/{}/contracts/{}", w.meridian, w.erc20);
    w.gw.admin("DELETE", &contract, None).await.expect(200);
    let admins = group(&w.gw, &w.volta, "volta-admins", true, json!(["eth_call"]), json!([])).await;
    let body = json!({"did": w.trader.did, "group_id": admins});
    w.gw.admin("POST", &format!("/orgs/{}/memberships/by-did", w.volta), Some(body))
        .await
        .expect(201);
    let rivals = format!("/api/v1/admin/orgs/{}/contracts", w.volta);
    let body = json!({"address": w.erc20, "name": "x"});
    let theirs = w.gw.as_user(&w.trader.token, "POST", &rivals, Some(body.clone())).await;
    assert_eq!(theirs.expect(400)["error"], FAILED);
    register(body).await.expect(201);
}

/// K5: what is not on the chain any more is found, and goes; what is there, foreign or unknown stays, the last two for one
/// reason.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn k5_registrations_are_compared_with_the_chain() {
    let w = World::start(Engine::Sqlite).await;
    let register = async |org: &str, address: Address| {
        let made =
            w.gw.admin(
                "POST",
                &format!("/orgs/{org}/contracts"),
                Some(json!({"address": address})),
            )
            .await;
        made.expect(201)["id"].as_str().unwrap().to_owned()
    };
    let gone = register(&w.meridian, Address::repeat_byte(0xa1)).await;
    let foreign = register(&w.volta, Address::repeat_byte(0xa2)).await;
    let path = |what: &str| format!("/orgs/{}/contracts/{what}", w.meridian);
    let check = w.gw.admin("POST", &path("sync-check"), None).await.expect(200);
    let of = |list: &str| {
        check[list]
            .as_array()
            .unwrap()
            .iter()
            .map(|row| row["id"].clone())
            .collect::<Vec<_>>()
    };
    assert_eq!(
        (of("missing"), of("errors")),
        (vec![json!(gone)], Vec::new()),
        "{check}"
    );
    let there = of("existing")[0].as_str().unwrap().to_owned();

    let unknown = "99999999-9999-4999-8999-999999999999";
    let ids = json!({"contract_ids": [gone, there, foreign, unknown]});
    let done = w.gw.admin("POST", &path("sync-delete"), Some(ids)).await.expect(200);
    assert_eq!(done["deleted_addresses"], json!([Address::repeat_byte(0xa1)]), "{done}");
    let skipped = |id: &str| {
        let rows = done["skipped"].as_array().unwrap();
        rows.iter()
            .find(|row| row["id"] == id)
            .map(|row| row["reason"].clone())
            .unwrap()
    };
    assert_eq!(skipped(&there), "exists on chain");
    assert_eq!(skipped(&foreign), skipped(unknown));
    w.gw.admin(
        "GET",
        &format!("/contracts/by-address/{}", Address::repeat_byte(0xa2)),
        None,
    )
    .await
    .expect(200);
    w.gw.admin("POST", &path("sync-delete"), Some(json!({"contract_ids": []})))
        .await
        .expect(400);
}

/// K6, B10: contracts move together or not at all; a new group gets `*` and deploy, and `*` reaches nothing beyond the
/// registry.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn k6_b10_contracts_are_moved_all_or_none() {
    let w = World::start(Engine::Sqlite).await;
    let path = format!("/orgs/{}/contracts", w.meridian);
    let ids = async || {
        let rows = w.gw.admin("GET", &path, None).await.expect(200);
        let rows = rows["data"].as_array().unwrap().clone();
        rows.iter()
            .map(|row| row["id"].as_str().unwrap().to_owned())
            .collect::<Vec<_>>()
    };
    let own = ids().await;
    let move_to = async |body: Value| w.gw.admin("POST", &format!("{path}/batch-move"), Some(body)).await;
    let grants = async || {
        let rows =
            w.gw.admin("GET", &format!("{path}/{}/grants", w.erc20), None)
                .await
                .expect(200);
        rows.as_array().or(rows["data"].as_array()).unwrap().len()
    };
    let before = grants().await;
    let target = group(&w.gw, &w.meridian, "movers", false, json!(["eth_call"]), json!([])).await;
    let foreign = "99999999-9999-4999-8999-999999999999";
    for wrong in [
        json!({"contract_ids": [own[0], foreign], "target_group_id": target}),
        json!({"contract_ids": [], "target_group_id": target}),
        json!({"contract_ids": own}),
        json!({"contract_ids": own, "target_group_id": target, "new_group": {"name": "n", "slug": "n"}}),
    ] {
        move_to(wrong).await.expect(400);
        assert_eq!(grants().await, before, "nothing changed");
    }
    let moved = move_to(json!({"contract_ids": own, "target_group_id": target}))
        .await
        .expect(200);
    assert_eq!(
        (&moved["moved_count"], &moved["target_group_id"]),
        (&json!(own.len()), &json!(target))
    );

    let new = json!({"contract_ids": own, "new_group": {"name": "Fresh", "slug": "fresh"}});
    let made = move_to(new.clone()).await.expect(200);
    assert_eq!(
        made["access"],
        json!({"allowed_methods": ["*"], "claims": ["deploy"]}),
        "{made}"
    );
    move_to(new).await.expect(409);
    let body = json!({"did": w.outsider.did, "group_id": made["target_group_id"]});
    w.gw.admin("POST", &format!("/orgs/{}/memberships/by-did", w.meridian), Some(body))
        .await
        .expect(201);
    w.gw.admin(
        "PUT",
        &format!("/users/{}", w.outsider.user_id),
        Some(json!({"kyc": true})),
    )
    .await
    .expect(200);
    let token = &w.outsider.token;
    for method in [
        "trace_block",
        "eth_simulateV1",
        "eth_getRawTransactionByHash",
        "engine_newPayloadV3",
        "txpool_content",
    ] {
        assert_eq!(w.gw.rpc(token, method, json!([])).await.status, 404, "{method}");
    }
    let own = key(5).address();
    assert_eq!(
        w.gw.rpc(token, "eth_getBalance", json!([own, "latest"])).await.status,
        200
    );
}
