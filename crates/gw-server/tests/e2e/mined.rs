//! HD28, HD38, HD40: who is told what of a convicted transaction, and who clears what follows.

use crate::{
    harness::{Answer, Engine, init_code, on_both_engines},
    world::{Persona, World, balance_of, group},
};
use alloy_primitives::{Address, U256};
use alloy_sol_types::{SolCall, SolValue, sol};
use serde_json::{Value, json};

on_both_engines!(mined_findings_are_told_to_whom_they_concern);

sol! {
    function siphon(address target, bytes data, uint256 from, address[] wallets, address[] boxes) external;
    function kept() external view returns (uint256);
}

const SECRET: u64 = 5;

async fn listed(w: &World, token: &str, list: &str) -> Vec<Value> {
    let answer =
        w.gw.as_user(token, "GET", &format!("/api/v1/admin/mined/{list}"), None)
            .await
            .expect(200);
    answer["data"].as_array().unwrap().clone()
}

async fn cleared(w: &World, token: &str, list: &str, row: &Value) -> Answer {
    let path = format!("/api/v1/admin/mined/{list}/{}/clear", row["id"].as_str().unwrap());
    w.gw.as_user(token, "POST", &path, Some(json!({"reason": "looked at it"})))
        .await
}

async fn mined_findings_are_told_to_whom_they_concern(engine: Engine) {
    let w = World::start(engine).await;
    let deployers = group(&w.gw, &w.volta, "deployers", false, json!(["*"]), json!(["deploy"])).await;
    let body = json!({"did": w.trader.did, "group_id": deployers});
    w.gw.admin("POST", &format!("/orgs/{}/memberships/by-did", w.volta), Some(body))
        .await
        .expect(201);
    let heads = group(&w.gw, &w.volta, "heads", true, json!(["*"]), json!([])).await;
    let body = json!({"did": "did:test:head", "group_id": heads});
    let made =
        w.gw.admin("POST", &format!("/orgs/{}/memberships/by-did", w.volta), Some(body))
            .await
            .expect(201);
    let head = made["user_id"].as_str().unwrap();
    w.gw.admin("PUT", &format!("/users/{head}"), Some(json!({"kyc": true})))
        .await
        .expect(200);
    let head = w.gw.login("did:test:head").await;
    let supply = ("Vault".to_owned(), "V".to_owned(), U256::from(SECRET)).abi_encode_params();
    let vault =
        w.gw.deploy(&w.trader.token, &w.trader.key, init_code("DemoERC20", &supply))
            .await;
    let drop_box = w.gw.deploy(&w.trader.token, &w.trader.key, init_code("Box", &[])).await;
    let own_box = w.gw.deploy(&w.ops.token, &w.ops.key, init_code("Box", &[])).await;
    let siphon = w.gw.deploy(&w.ops.token, &w.ops.key, init_code("Siphon", &[])).await;
    let kept = async |who: &Persona, of: Address| {
        let data = alloy_primitives::Bytes::from(keptCall {}.abi_encode());
        w.gw.result(
            &who.token,
            "eth_call",
            json!([{"from": who.address(), "to": of, "data": data}, "latest"]),
        )
        .await
    };
    let number = |value: u64| json!(format!("{:#066x}", U256::from(value)));

    // It behaves when it is sent, and robs the vault when it is mined: into a contract of its own bank and one of the other.
    let block = w.gw.node("eth_blockNumber", json!([])).await;
    let from = block.as_str().unwrap().parse::<U256>().unwrap() + U256::from(3);
    let data = balance_of(w.trader.address());
    let (wallets, boxes) = (vec![w.trader.address()], vec![own_box, drop_box]);
    let steal = siphonCall {
        target: vault,
        data,
        from,
        wallets,
        boxes,
    }
    .abi_encode();
    w.gw.node("evm_setAutomine", json!([false])).await;
    let (hash, raw) = w.gw.sign(&w.ops.key, Some(siphon), U256::ZERO, steal.into()).await;
    assert_eq!(
        w.gw.result(&w.ops.token, "eth_sendRawTransaction", json!([raw])).await,
        json!(hash)
    );
    w.gw.node("anvil_dropAllTransactions", json!([])).await;
    w.gw.node("anvil_mine", json!(["0x4"])).await;
    w.gw.node("eth_sendRawTransaction", json!([raw])).await;
    w.gw.node("evm_mine", json!([])).await;
    w.gw.node("evm_setAutomine", json!([true])).await;
    w.gw.mined(&w.ops.token, hash).await;
    assert_eq!(
        w.gw.node("eth_getTransactionReceipt", json!([hash])).await["status"],
        json!("0x1")
    );

    // Nobody is shown any of it, and nothing is closed.
    for token in [&w.ops.token, &w.admin.token, &w.trader.token, &head] {
        assert_eq!(
            w.gw.result(token, "eth_getTransactionReceipt", json!([hash])).await,
            Value::Null
        );
    }
    assert_eq!(
        (kept(&w.ops, own_box).await, kept(&w.trader, drop_box).await),
        (number(0), number(0))
    );

    // Super is told all; the robbed bank what it lost; the thief's own that there was something.
    let all = w.gw.admin("GET", "/mined/convictions", None).await.expect(200)["data"].clone();
    assert_eq!(all.as_array().unwrap().len(), 1, "{all}");
    assert!(all[0].get("touched_org_ids").is_none());
    assert_eq!(
        (&all[0]["wronged_org_ids"], &all[0]["tx_hash"]),
        (&json!([w.volta]), &json!(hash))
    );
    let robbed = listed(&w, &head, "convictions").await;
    assert_eq!(
        (&robbed[0]["wronged_org_ids"], &robbed[0]["clearable"]),
        (&json!([w.volta]), &json!(true))
    );
    assert_eq!(
        (&robbed[0]["reason"], robbed[0].get("external_id")),
        (&all[0]["reason"], None)
    );
    let own = listed(&w, &w.admin.token, "convictions").await;
    assert_eq!(
        (&own[0]["wronged_org_ids"], &own[0]["clearable"]),
        (&json!([]), &json!(false))
    );
    assert_eq!(
        (&own[0]["reason"], &own[0]["external_id"]),
        (&json!("mined_trace_violation"), &json!(w.ops.did))
    );
    let suspended = listed(&w, &w.admin.token, "suspensions").await;
    assert_eq!(suspended[0]["reason"], json!("mined_trace_violation"));
    // HD40: what was changed on the thief's side is listed to nobody there.
    assert_eq!(listed(&w, &w.admin.token, "quarantines").await, [] as [Value; 0]);
    let changed = listed(&w, &head, "quarantines").await;
    assert_eq!(changed.len(), 1, "{changed:?}");
    assert_eq!(
        changed[0]["address"].as_str().unwrap().parse::<Address>().unwrap(),
        drop_box
    );
    assert_eq!(
        (&changed[0]["closed_to"], &changed[0]["clearable"]),
        (&json!("withheld"), &json!(true))
    );
    let trail =
        w.gw.as_user(&w.admin.token, "GET", "/api/v1/admin/audit-logs?limit=100", None)
            .await;
    assert!(
        !trail.body.contains(all[0]["reason"].as_str().unwrap()),
        "{}",
        trail.body
    );

    // HD38: owners lift what concerns theirs; the thief's own lift nothing.
    for (list, row) in [("quarantines", &changed[0]), ("convictions", &own[0])] {
        let refused = cleared(&w, &w.admin.token, list, row).await.expect(403);
        let unknown = cleared(&w, &w.admin.token, list, &json!({"id": w.volta}))
            .await
            .expect(403);
        assert_eq!(
            (&refused["code"], &refused["error"]),
            (&unknown["code"], &unknown["error"])
        );
    }
    cleared(&w, &head, "quarantines", &changed[0]).await.expect(200);
    assert_eq!(
        (kept(&w.ops, own_box).await, kept(&w.trader, drop_box).await),
        (number(0), number(SECRET))
    );
    cleared(&w, &head, "convictions", &robbed[0]).await.expect(200);
    assert_eq!(kept(&w.ops, own_box).await, number(SECRET));
    let receipt =
        w.gw.result(&w.ops.token, "eth_getTransactionReceipt", json!([hash]))
            .await;
    assert_eq!(receipt["status"], json!("0x1"));
}
