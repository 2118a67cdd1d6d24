//! HD28, HD38, HD40: post-execution violations. Who sees what about a convicted transaction, and who may clear
//! convictions, suspensions and quarantines.

use crate::{
    harness::{Engine, Response, init_code, on_both_engines},
    world::{Persona, World, balance_of, group},
};
use alloy_primitives::{Address, U256};
use alloy_sol_types::{SolCall, SolValue, sol};
use serde_json::{Value, json};

on_both_engines!(violations_are_shown_to_the_affected_organizations);

sol! {
    function siphon(address target, bytes data, uint256 from, address[] wallets, address[] boxes) external;
    function kept() external view returns (uint256);
}

const SECRET: u64 = 5;

async fn list_mined(w: &World, token: &str, list: &str) -> Vec<Value> {
    let answer =
        w.gw.as_user(token, "GET", &format!("/api/v1/admin/mined/{list}"), None)
            .await
            .expect(200);
    answer["data"].as_array().unwrap().clone()
}

async fn clear_mined(w: &World, token: &str, list: &str, row: &Value) -> Response {
    let path = format!("/api/v1/admin/mined/{list}/{}/clear", row["id"].as_str().unwrap());
    w.gw.as_user(token, "POST", &path, Some(json!({"reason": "looked at it"})))
        .await
}

async fn violations_are_shown_to_the_affected_organizations(engine: Engine) {
    let w = World::start(engine).await;
    let deployers = group(&w.gw, &w.volta, "deployers", false, json!(["*"]), json!(["deploy"])).await;
    let body = json!({"did": w.trader.did, "group_id": deployers});
    w.gw.admin("POST", &format!("/orgs/{}/memberships/by-did", w.volta), Some(body))
        .await
        .expect(201);
    let heads = group(&w.gw, &w.volta, "heads", true, json!(["*"]), json!([])).await;
    let body = json!({"did": "did:test:head", "group_id": heads});
    let created =
        w.gw.admin("POST", &format!("/orgs/{}/memberships/by-did", w.volta), Some(body))
            .await
            .expect(201);
    let head = created["user_id"].as_str().unwrap();
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
    let kept = async |caller: &Persona, address: Address| {
        let data = alloy_primitives::Bytes::from(keptCall {}.abi_encode());
        w.gw.result(
            &caller.token,
            "eth_call",
            json!([{"from": caller.address(), "to": address, "data": data}, "latest"]),
        )
        .await
    };
    let number = |value: u64| json!(format!("{:#066x}", U256::from(value)));

    // The contract acts harmlessly until block `from`, so that the check before sending passes. When it is mined, it
    // copies the vault's private value into a contract of its own bank and into one of the other bank.
    let block = w.gw.node("eth_blockNumber", json!([])).await;
    let from = block.as_str().unwrap().parse::<U256>().unwrap() + U256::from(3);
    let data = balance_of(w.trader.address());
    let (wallets, boxes) = (vec![w.trader.address()], vec![own_box, drop_box]);
    let input = siphonCall {
        target: vault,
        data,
        from,
        wallets,
        boxes,
    }
    .abi_encode();
    w.gw.node("evm_setAutomine", json!([false])).await;
    let (hash, raw) = w.gw.sign(&w.ops.key, Some(siphon), U256::ZERO, input.into()).await;
    assert_eq!(
        w.gw.result(&w.ops.token, "eth_sendRawTransaction", json!([raw])).await,
        json!(hash)
    );
    w.gw.node("anvil_dropAllTransactions", json!([])).await;
    w.gw.node("anvil_mine", json!(["0x4"])).await;
    w.gw.node("eth_sendRawTransaction", json!([raw])).await;
    w.gw.node("evm_mine", json!([])).await;
    w.gw.node("evm_setAutomine", json!([true])).await;
    w.gw.wait_until_mined(&w.ops.token, hash).await;
    assert_eq!(
        w.gw.node("eth_getTransactionReceipt", json!([hash])).await["status"],
        json!("0x1")
    );

    // No caller sees the transaction. Calls of the contracts still succeed, but read the state before it.
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

    // The platform administrator sees every detail, the affected bank the violation of its data, and the sender's bank
    // that there is a violation.
    let convictions = w.gw.admin("GET", "/mined/convictions", None).await.expect(200)["data"].clone();
    assert_eq!(convictions.as_array().unwrap().len(), 1, "{convictions}");
    assert!(convictions[0].get("touched_org_ids").is_none());
    assert_eq!(
        (&convictions[0]["wronged_org_ids"], &convictions[0]["tx_hash"]),
        (&json!([w.volta]), &json!(hash))
    );
    let victim_convictions = list_mined(&w, &head, "convictions").await;
    assert_eq!(
        (
            &victim_convictions[0]["wronged_org_ids"],
            &victim_convictions[0]["clearable"]
        ),
        (&json!([w.volta]), &json!(true))
    );
    assert_eq!(
        (
            &victim_convictions[0]["reason"],
            victim_convictions[0].get("external_id")
        ),
        (&convictions[0]["reason"], None)
    );
    let sender_convictions = list_mined(&w, &w.admin.token, "convictions").await;
    assert_eq!(
        (
            &sender_convictions[0]["wronged_org_ids"],
            &sender_convictions[0]["clearable"]
        ),
        (&json!([]), &json!(false))
    );
    assert_eq!(
        (&sender_convictions[0]["reason"], &sender_convictions[0]["external_id"]),
        (&json!("mined_trace_violation"), &json!(w.ops.did))
    );
    let suspensions = list_mined(&w, &w.admin.token, "suspensions").await;
    assert_eq!(suspensions[0]["reason"], json!("mined_trace_violation"));
    // HD40: the sender's bank does not see which of its contracts are quarantined.
    assert_eq!(list_mined(&w, &w.admin.token, "quarantines").await, [] as [Value; 0]);
    let quarantines = list_mined(&w, &head, "quarantines").await;
    assert_eq!(quarantines.len(), 1, "{quarantines:?}");
    assert_eq!(
        quarantines[0]["address"].as_str().unwrap().parse::<Address>().unwrap(),
        drop_box
    );
    assert_eq!(
        (&quarantines[0]["closed_to"], &quarantines[0]["clearable"]),
        (&json!("withheld"), &json!(true))
    );
    let audit_log =
        w.gw.as_user(&w.admin.token, "GET", "/api/v1/admin/audit-logs?limit=100", None)
            .await;
    assert!(
        !audit_log.body.contains(convictions[0]["reason"].as_str().unwrap()),
        "{}",
        audit_log.body
    );

    // HD38: the affected bank clears what concerns its contracts. The sender's bank clears nothing.
    for (list, row) in [
        ("quarantines", &quarantines[0]),
        ("convictions", &sender_convictions[0]),
    ] {
        let refused = clear_mined(&w, &w.admin.token, list, row).await.expect(403);
        let unknown = clear_mined(&w, &w.admin.token, list, &json!({"id": w.volta}))
            .await
            .expect(403);
        assert_eq!(
            (&refused["code"], &refused["error"]),
            (&unknown["code"], &unknown["error"])
        );
    }
    clear_mined(&w, &head, "quarantines", &quarantines[0]).await.expect(200);
    assert_eq!(
        (kept(&w.ops, own_box).await, kept(&w.trader, drop_box).await),
        (number(0), number(SECRET))
    );
    clear_mined(&w, &head, "convictions", &victim_convictions[0])
        .await
        .expect(200);
    assert_eq!(kept(&w.ops, own_box).await, number(SECRET));
    let receipt =
        w.gw.result(&w.ops.token, "eth_getTransactionReceipt", json!([hash]))
            .await;
    assert_eq!(receipt["status"], json!("0x1"));
}
