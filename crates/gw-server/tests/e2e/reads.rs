//! What members, members of other organizations, administrators, transaction senders and unknown users can read.

use crate::{
    harness::{Engine, on_both_engines},
    world::{World, balance_of, grant, transfer},
};
use alloy_primitives::{Address, U256, address};
use serde_json::{Value, json};

on_both_engines!(
    metadata_and_denials,
    token_balances,
    wallets,
    blocks_and_transactions,
    logs,
    changes_take_effect_at_once
);

const STRANGER: Address = address!("00000000000000000000000000000000deadbeef");

fn denial(id: u32) -> String {
    format!(r#"{{"jsonrpc":"2.0","id":{id},"error":{{"code":-32601,"message":"method not found"}}}}"#)
}

/// Decision 14, J1, A3: anonymous callers may call the six metadata methods. Every denial has the same bytes.
async fn metadata_and_denials(engine: Engine) {
    let w = World::start(engine).await;
    for method in [
        "eth_blockNumber",
        "eth_chainId",
        "eth_gasPrice",
        "net_version",
        "net_listening",
        "web3_clientVersion",
    ] {
        for token in [
            "",
            w.outsider.token.as_str(),
            w.unverified.token.as_str(),
            w.ops.token.as_str(),
        ] {
            w.gw.result(token, method, json!([])).await;
        }
    }
    let refused: [(&str, &str, Value); 9] = [
        ("", "eth_getBalance", json!([w.ops.address(), "latest"])),
        ("", "eth_syncing", json!([])),
        (
            &w.outsider.token,
            "eth_call",
            json!([{"to": w.erc20, "data": "0x"}, "latest"]),
        ),
        (&w.trader.token, "eth_getCode", json!([w.erc20, "latest"])),
        (&w.analyst.token, "eth_sendRawTransaction", json!(["0x00"])),
        (&w.analyst.token, "debug_traceCall", json!([])),
        (&w.ops.token, "eth_sign", json!([])),
        (&w.ops.token, "eth_simulateV1", json!([])),
        (&w.ops.token, "no_such_method", json!([])),
    ];
    for (token, method, params) in refused {
        let answer = w.gw.rpc(token, method, params).await;
        assert_eq!((answer.status, answer.body), (404, denial(1)), "{method}");
    }
    let invalid_token = w.gw.rpc("not.a.token", "eth_chainId", json!([])).await;
    assert_eq!(
        (invalid_token.status, invalid_token.json()["error"].as_str()),
        (401, Some("invalid token"))
    );

    // A10: a banned user gets the denial on metadata too, at once.
    w.gw.admin(
        "PUT",
        &format!("/users/{}", w.trader.user_id),
        Some(json!({"banned": true})),
    )
    .await
    .expect(200);
    let banned = w.gw.rpc(&w.trader.token, "eth_chainId", json!([])).await;
    assert!(matches!(banned.status, 401 | 404), "{}", banned.body);
    assert!(!banned.body.contains("0x7a69"));
}

/// F3, X10, B4, T2: each caller reads a token balance.
async fn token_balances(engine: Engine) {
    let w = World::start(engine).await;
    let thousand = format!("0x{:064x}", 1000);
    for caller in [&w.analyst, &w.ops] {
        let response = w.call(caller, balance_of(w.analyst.address())).await.expect(200);
        assert_eq!(response["result"], json!(thousand));
    }
    // F3: the parameter rule limits the analyst to their own address.
    assert_eq!(w.call(&w.analyst, balance_of(w.ops.address())).await.body, denial(1));
    // F2: another function, no selector, short data.
    for data in ["0x95d89b41", "0x", "0x70a082"] {
        let call = json!([{"to": w.erc20, "data": data}, "latest"]);
        assert_eq!(
            w.gw.rpc(&w.analyst.token, "eth_call", call).await.body,
            denial(1),
            "{data}"
        );
    }
    // T2: the denials of another bank, of a user without membership and for an unregistered target are byte-equal.
    for caller in [&w.trader, &w.outsider] {
        assert_eq!(w.call(caller, balance_of(caller.address())).await.body, denial(1));
        let unregistered = json!([{"to": STRANGER, "data": "0x70a08231"}, "latest"]);
        assert_eq!(w.gw.rpc(&caller.token, "eth_call", unregistered).await.body, denial(1));
    }
    // D2: the organization's administrator may call all its contracts.
    w.call(&w.admin, balance_of(w.admin.address())).await.expect(200);
    // X10, decision 38: a sender address that is not the caller's own is refused.
    let forged = json!([{"from": w.ops.address(), "to": w.erc20, "data": balance_of(w.analyst.address())}, "latest"]);
    let response = w.gw.rpc(&w.analyst.token, "eth_call", forged).await.expect(400);
    assert_eq!(response["error"]["code"], json!(-32602));
    // B4: state overrides are refused.
    let overridden = json!([{"to": w.erc20, "data": balance_of(w.analyst.address())}, "latest",
        {w.erc20.to_string(): {"balance": "0x1"}}]);
    assert_eq!(w.gw.rpc(&w.ops.token, "eth_call", overridden).await.status, 400);
    // B1: a call without a target, which runs init code, is denied.
    let creation = json!([{"data": "0x6001600055"}, "latest"]);
    assert_eq!(w.gw.rpc(&w.analyst.token, "eth_call", creation).await.body, denial(1));
    // W7: callers who may call the contract get its revert message.
    let overdraft =
        json!([{"from": w.ops.address(), "to": w.erc20, "data": transfer(w.analyst.address(), 9_000_000)}, "latest"]);
    let reverted = w.gw.rpc(&w.ops.token, "eth_call", overdraft).await.expect(200);
    assert_eq!(reverted["error"]["code"], json!(3));
    assert_eq!(
        reverted["error"]["message"],
        json!("execution reverted: balance exceeded")
    );
}

/// K8, HD6: balance and nonce of an address are zero unless the caller sees it in full. The response is never 404 and
/// does not show whether the address is linked.
async fn wallets(engine: Engine) {
    let w = World::start(engine).await;
    let balance =
        w.gw.result(
            &w.analyst.token,
            "eth_getBalance",
            json!([w.analyst.address(), "latest"]),
        )
        .await;
    assert_eq!(
        balance,
        w.gw.node("eth_getBalance", json!([w.analyst.address(), "latest"]))
            .await
    );
    assert_ne!(balance, json!("0x0"));
    for hidden in [w.ops.address(), w.trader.address(), STRANGER] {
        for method in ["eth_getBalance", "eth_getTransactionCount"] {
            let response = w.gw.rpc(&w.analyst.token, method, json!([hidden, "latest"])).await;
            assert_eq!(
                (response.status, response.json()["result"].clone()),
                (200, json!("0x0")),
                "{method} {hidden}"
            );
        }
    }
    // Decision 37: an address without code gives `0x`, whoever owns it.
    let no_code =
        w.gw.result(&w.analyst.token, "eth_getCode", json!([STRANGER, "latest"]))
            .await;
    assert_eq!(no_code, json!("0x"));
    let code =
        w.gw.result(&w.analyst.token, "eth_getCode", json!([w.erc20, "latest"]))
            .await;
    assert_eq!(code, w.gw.node("eth_getCode", json!([w.erc20, "latest"])).await);
    assert_eq!(
        w.gw.rpc(&w.trader.token, "eth_getCode", json!([w.erc20, "latest"]))
            .await
            .body,
        denial(1)
    );
    // H1: history is for administrators.
    assert_eq!(
        w.gw.rpc(
            &w.analyst.token,
            "eth_getBalance",
            json!([w.analyst.address(), "earliest"])
        )
        .await
        .body,
        denial(1)
    );
}

/// R12, decision 43, HD11: a block shows the caller's own transactions only. No header field discloses the others.
async fn blocks_and_transactions(engine: Engine) {
    let w = World::start(engine).await;
    let hash =
        w.gw.send(
            &w.ops.token,
            &w.ops.key,
            Some(w.erc20),
            U256::ZERO,
            transfer(w.analyst.address(), 5),
        )
        .await;
    let transaction = w.gw.node("eth_getTransactionByHash", json!([hash])).await;
    let number = transaction["blockNumber"].clone();

    let visible =
        w.gw.result(&w.ops.token, "eth_getTransactionByHash", json!([hash]))
            .await;
    for field in ["from", "to", "value", "input", "nonce", "v", "r", "s", "blockHash"] {
        assert_eq!(visible[field], transaction[field], "{field}");
    }
    // K7: the administrator sees the transaction, but not the wallet or the input.
    let masked =
        w.gw.result(&w.admin.token, "eth_getTransactionByHash", json!([hash]))
            .await;
    assert_eq!(masked["from"], json!(Address::ZERO));
    assert_eq!(
        (masked["input"].clone(), masked["r"].clone()),
        (json!("0x"), json!("0x0"))
    );
    for caller in [&w.trader, &w.outsider, &w.analyst] {
        let answer = w.gw.rpc(&caller.token, "eth_getTransactionByHash", json!([hash])).await;
        assert!(
            answer.body.contains(r#""result":null"#) || answer.body == denial(1),
            "{}: {}",
            caller.did,
            answer.body
        );
    }
    for (caller, count) in [(&w.ops, 1), (&w.trader, 0), (&w.analyst, 0)] {
        let block =
            w.gw.result(&caller.token, "eth_getBlockByNumber", json!([number, true]))
                .await;
        assert_eq!(block["transactions"].as_array().unwrap().len(), count, "{}", caller.did);
        for field in ["gasUsed", "size"] {
            assert_eq!(block[field], json!("0x0"), "{field}");
        }
        for field in ["transactionsRoot", "receiptsRoot", "stateRoot"] {
            assert_eq!(block[field], json!(format!("0x{}", "0".repeat(64))), "{field}");
        }
        let tx_count =
            w.gw.rpc(&caller.token, "eth_getBlockTransactionCountByNumber", json!([number]))
                .await;
        assert_eq!(
            tx_count.json()["result"],
            json!(format!("0x{count:x}")),
            "{}",
            caller.did
        );
    }
    let receipt =
        w.gw.result(&w.ops.token, "eth_getTransactionReceipt", json!([hash]))
            .await;
    assert_eq!(
        (receipt["status"].clone(), receipt["logs"].as_array().unwrap().len()),
        (json!("0x1"), 1)
    );
    assert_eq!(receipt["logsBloom"], json!(format!("0x{}", "0".repeat(512))));
    assert_eq!(receipt["cumulativeGasUsed"], receipt["gasUsed"]);
    let receipts =
        w.gw.result(&w.trader.token, "eth_getBlockReceipts", json!([number]))
            .await;
    assert_eq!(receipts, json!([]));
}

/// R19-R22, HD1, decision 20: which logs a caller sees, with which masks, and what a filter can disclose.
async fn logs(engine: Engine) {
    let w = World::start(engine).await;
    let filter_all = json!([{"address": w.erc20, "fromBlock": "0x0", "toBlock": "latest"}]);
    let node_logs = w.gw.node("eth_getLogs", filter_all.clone()).await;
    assert_eq!(node_logs.as_array().unwrap().len(), 2, "the mint and the payment");
    // The sender is a participant of both transfers and sees them in clear text.
    assert_eq!(
        w.gw.result(&w.ops.token, "eth_getLogs", filter_all.clone()).await,
        node_logs
    );
    // A grant holder sees the events with other wallets masked and their own address in clear text.
    let visible = w.gw.result(&w.analyst.token, "eth_getLogs", filter_all.clone()).await;
    let word = |a: Address| json!(a.into_word());
    assert_eq!(visible[1]["topics"][1], word(Address::ZERO));
    assert_eq!(visible[1]["topics"][2], word(w.analyst.address()));
    assert!(!visible.to_string().contains(&format!("{:x}", w.ops.address())));
    // HD1: a filter with a hidden address has the same result as a filter with a random one.
    let transfer_topic = node_logs[1]["topics"][0].clone();
    let from_filter =
        |a: Address| json!([{"address": w.erc20, "fromBlock": "0x0", "topics": [transfer_topic, word(a)]}]);
    let hidden =
        w.gw.rpc(&w.analyst.token, "eth_getLogs", from_filter(w.ops.address()))
            .await;
    let random = w.gw.rpc(&w.analyst.token, "eth_getLogs", from_filter(STRANGER)).await;
    assert_eq!(hidden.body, random.body);
    assert_eq!(hidden.json()["result"], json!([]));
    let to_analyst =
        json!([{"address": w.erc20, "fromBlock": "0x0", "topics": [null, null, word(w.analyst.address())]}]);
    assert_eq!(
        w.gw.result(&w.analyst.token, "eth_getLogs", to_analyst)
            .await
            .as_array()
            .unwrap()
            .len(),
        1
    );
    // Denied: no address, a forbidden address among allowed ones, a caller without a grant.
    for filter in [json!([{}]), json!([{"address": [w.erc20, STRANGER]}])] {
        assert_eq!(w.gw.rpc(&w.analyst.token, "eth_getLogs", filter).await.body, denial(1));
    }
    assert_eq!(
        w.gw.rpc(&w.trader.token, "eth_getLogs", filter_all).await.body,
        denial(1)
    );
}

/// C6, TK-8, A8: an administrator's change takes effect at the next request.
async fn changes_take_effect_at_once(engine: Engine) {
    let w = World::start(engine).await;
    let read_balance = || w.call(&w.trader, balance_of(w.trader.address()));
    assert_eq!(read_balance().await.status, 404);
    let body = json!({"did": w.trader.did, "group_id": w.analysts});
    let path = format!("/orgs/{}/memberships/by-did", w.meridian);
    w.gw.admin("POST", &path, Some(body.clone())).await.expect(201);
    assert_eq!(read_balance().await.status, 200);
    w.gw.admin("DELETE", &path, Some(body)).await.expect(200);
    assert_eq!(read_balance().await.status, 404);
    // F1: a second grant without a function list allows every function.
    let readers = crate::world::group(&w.gw, &w.meridian, "readers", false, json!(["eth_call"]), json!([])).await;
    grant(&w.gw, &w.meridian, w.erc20, &readers, Value::Null).await;
    let body = json!({"did": w.analyst.did, "group_id": readers});
    w.gw.admin("POST", &path, Some(body)).await.expect(201);
    w.call(&w.analyst, balance_of(w.ops.address())).await.expect(200);
    w.gw.admin(
        "DELETE",
        &format!("/orgs/{}/contracts/{}/grants/{readers}", w.meridian, w.erc20),
        None,
    )
    .await
    .expect(200);
    assert_eq!(w.call(&w.analyst, balance_of(w.ops.address())).await.status, 404);
}
