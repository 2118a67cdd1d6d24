//! Contracts that were not deployed through the gateway: proof of the deployer, comparison with the chain, moving
//! between groups (spec/20 K3 to K6).

use crate::{
    harness::{Engine, init_code, key},
    world::{World, createCall, group},
};
use alloy_primitives::Address;
use alloy_sol_types::SolCall as _;
use serde_json::{Value, json};

const FAILED: &str = "contract registration failed";

/// K3, K4, B15: an administrator can claim a contract that a member's transaction created, directly or through a
/// factory. Wallets, contracts of other senders and registered contracts are refused, all with the same error.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn k3_k4_b15_a_contract_is_claimed_by_the_transaction_that_created_it() {
    let w = World::start(Engine::Sqlite).await;
    let claim = async |address: Address, hash: &str| {
        let body = json!({"address": address, "deployment_tx_hash": hash, "name": "claimed"});
        let path = format!("/api/v1/admin/orgs/{}/contracts/claim", w.meridian);
        w.gw.as_user(&w.admin.token, "POST", &path, Some(body)).await
    };
    let assert_refused = async |address: Address, hash: &str, reason: &str| {
        assert_eq!(claim(address, hash).await.expect(400)["error"], FAILED, "{reason}");
    };
    let code = init_code("Factory", &[]);
    let (hash, factory) = w.gw.send_to_node(&w.ops.key, None, &code).await;
    let factory = factory.unwrap();
    let (outsider_hash, outsider_contract) = w.gw.send_to_node(&w.outsider.key, None, &code).await;
    let (rival_hash, rival_contract) = w.gw.send_to_node(&w.trader.key, None, &code).await;

    assert_refused(
        outsider_contract.unwrap(),
        &outsider_hash,
        "the sender is no member of the organization",
    )
    .await;
    assert_refused(
        rival_contract.unwrap(),
        &rival_hash,
        "the sender is a member of the other bank",
    )
    .await;
    assert_refused(factory, &outsider_hash, "created by another transaction").await;
    assert_refused(factory, &format!("0x{}", "11".repeat(32)), "unknown transaction").await;
    assert_refused(w.outsider.address(), &hash, "a wallet").await;
    assert_refused(Address::repeat_byte(0xee), &hash, "no code at the address").await;
    assert_refused(w.erc20, &hash, "already registered").await;
    assert_eq!(claim(factory, &hash).await.expect(201)["org_id"], json!(w.meridian));
    assert_refused(factory, &hash, "registered by the claim above").await;

    // A contract that a factory created in a member's transaction.
    let child = factory.create(1);
    let (hash, _) =
        w.gw.send_to_node(&w.ops.key, Some(factory), &createCall {}.abi_encode())
            .await;
    assert_refused(factory.create(2), &hash, "not created by this transaction").await;
    claim(child, &hash).await.expect(201);

    // K3: registering needs the same proof, unless the platform administrator does it.
    let register = async |body: Value| {
        let path = format!("/api/v1/admin/orgs/{}/contracts", w.meridian);
        w.gw.as_user(&w.admin.token, "POST", &path, Some(body)).await
    };
    let (hash, unregistered) = w.gw.send_to_node(&w.ops.key, None, &code).await;
    let unregistered = unregistered.unwrap();
    assert_eq!(
        register(json!({"address": unregistered, "name": "x"}))
            .await
            .expect(400)["error"],
        FAILED
    );
    assert_eq!(
        register(json!({"address": w.outsider.address()})).await.expect(400)["error"],
        FAILED,
        "a wallet"
    );
    register(json!({"address": unregistered, "name": "x", "deployment_tx_hash": hash}))
        .await
        .expect(201);

    // For a contract that a member deployed through the gateway the organization's own reservation is the proof.
    // Another organization cannot use it.
    let contract = format!("/orgs/{}/contracts/{}", w.meridian, w.erc20);
    w.gw.admin("DELETE", &contract, None).await.expect(200);
    let admins = group(&w.gw, &w.volta, "volta-admins", true, json!(["eth_call"]), json!([])).await;
    let body = json!({"did": w.trader.did, "group_id": admins});
    w.gw.admin("POST", &format!("/orgs/{}/memberships/by-did", w.volta), Some(body))
        .await
        .expect(201);
    let rival_path = format!("/api/v1/admin/orgs/{}/contracts", w.volta);
    let body = json!({"address": w.erc20, "name": "x"});
    let rival_response =
        w.gw.as_user(&w.trader.token, "POST", &rival_path, Some(body.clone()))
            .await;
    assert_eq!(rival_response.expect(400)["error"], FAILED);
    register(body).await.expect(201);
}

/// K5: sync-check finds registrations without code on the chain, and sync-delete deletes them. Existing, foreign and
/// unknown contracts are skipped; the reason is the same for foreign and unknown ones.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn k5_registrations_are_compared_with_the_chain() {
    let w = World::start(Engine::Sqlite).await;
    let register = async |org: &str, address: Address| {
        let created =
            w.gw.admin(
                "POST",
                &format!("/orgs/{org}/contracts"),
                Some(json!({"address": address})),
            )
            .await;
        created.expect(201)["id"].as_str().unwrap().to_owned()
    };
    let missing = register(&w.meridian, Address::repeat_byte(0xa1)).await;
    let foreign = register(&w.volta, Address::repeat_byte(0xa2)).await;
    let path = |action: &str| format!("/orgs/{}/contracts/{action}", w.meridian);
    let check = w.gw.admin("POST", &path("sync-check"), None).await.expect(200);
    let ids_in = |list: &str| {
        check[list]
            .as_array()
            .unwrap()
            .iter()
            .map(|row| row["id"].clone())
            .collect::<Vec<_>>()
    };
    assert_eq!(
        (ids_in("missing"), ids_in("errors")),
        (vec![json!(missing)], Vec::new()),
        "{check}"
    );
    let existing = ids_in("existing")[0].as_str().unwrap().to_owned();

    let unknown = "99999999-9999-4999-8999-999999999999";
    let ids = json!({"contract_ids": [missing, existing, foreign, unknown]});
    let deleted = w.gw.admin("POST", &path("sync-delete"), Some(ids)).await.expect(200);
    assert_eq!(
        deleted["deleted_addresses"],
        json!([Address::repeat_byte(0xa1)]),
        "{deleted}"
    );
    let skipped = |id: &str| {
        let rows = deleted["skipped"].as_array().unwrap();
        rows.iter()
            .find(|row| row["id"] == id)
            .map(|row| row["reason"].clone())
            .unwrap()
    };
    assert_eq!(skipped(&existing), "exists on chain");
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

/// K6, B10: a batch moves all contracts or none. A new group gets `*` and `deploy`; `*` allows registered methods only.
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
    let contract_ids = ids().await;
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
    for invalid in [
        json!({"contract_ids": [contract_ids[0], foreign], "target_group_id": target}),
        json!({"contract_ids": [], "target_group_id": target}),
        json!({"contract_ids": contract_ids}),
        json!({"contract_ids": contract_ids, "target_group_id": target, "new_group": {"name": "n", "slug": "n"}}),
    ] {
        move_to(invalid).await.expect(400);
        assert_eq!(grants().await, before, "nothing changed");
    }
    let moved = move_to(json!({"contract_ids": contract_ids, "target_group_id": target}))
        .await
        .expect(200);
    assert_eq!(
        (&moved["moved_count"], &moved["target_group_id"]),
        (&json!(contract_ids.len()), &json!(target))
    );

    let request = json!({"contract_ids": contract_ids, "new_group": {"name": "Fresh", "slug": "fresh"}});
    let created = move_to(request.clone()).await.expect(200);
    assert_eq!(
        created["access"],
        json!({"allowed_methods": ["*"], "claims": ["deploy"]}),
        "{created}"
    );
    move_to(request).await.expect(409);
    let body = json!({"did": w.outsider.did, "group_id": created["target_group_id"]});
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
    let wallet = key(5).address();
    assert_eq!(
        w.gw.rpc(token, "eth_getBalance", json!([wallet, "latest"]))
            .await
            .status,
        200
    );
}
