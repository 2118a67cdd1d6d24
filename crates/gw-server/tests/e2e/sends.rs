//! Sends, deployments, inner calls, shared transactions and links that sends create.

use crate::{
    harness::{Engine, init_code, key, on_both_engines, sign_with_nonce},
    world::{World, balance_of, codeHashOfCall, createCall, forwardCall, payCall, transfer},
};
use alloy_primitives::{Address, Bytes, U256};
use alloy_sol_types::SolCall;
use serde_json::{Value, json};

on_both_engines!(
    refused_sends_forward_nothing,
    relayed_and_forged,
    deployments,
    inner_calls,
    sharing,
    system_links
);

async fn block_number(w: &World) -> Value {
    w.gw.node("eth_blockNumber", json!([])).await
}

/// §10, §11, C2, D5: a denied send does not reach the node.
async fn refused_sends_forward_nothing(engine: Engine) {
    let w = World::start(engine).await;
    let before = block_number(&w).await;
    let transfer_one = || transfer(w.outsider.address(), 1);
    let attempts: [(&str, &crate::world::Persona, Option<Address>, Bytes); 5] = [
        ("method not listed", &w.analyst, Some(w.erc20), transfer_one()),
        ("another bank's contract", &w.trader, Some(w.erc20), transfer_one()),
        ("no deploy claim", &w.trader, None, init_code("Probe", &[])),
        ("KYC not completed", &w.unverified, Some(w.erc20), transfer_one()),
        ("no membership", &w.outsider, Some(w.outsider.address()), Bytes::new()),
    ];
    for (reason, caller, to, input) in attempts {
        let (_, raw) = w.gw.sign(&caller.key, to, U256::ZERO, input).await;
        let response = w.gw.rpc(&caller.token, "eth_sendRawTransaction", json!([raw])).await;
        assert_eq!(response.status, 404, "{reason}: {}", response.body);
        assert_eq!(block_number(&w).await, before, "{reason}: the send reached the node");
    }
}

/// HD13, W1, B12: a send is decided by the signer of the transaction, not by its caller.
async fn relayed_and_forged(engine: Engine) {
    let w = World::start(engine).await;
    let before = block_number(&w).await;
    // Ops sends a payment that the trader signed.
    let (_, raw) =
        w.gw.sign(
            &w.trader.key,
            Some(w.erc20),
            U256::ZERO,
            transfer(w.analyst.address(), 1),
        )
        .await;
    assert_eq!(
        w.gw.rpc(&w.ops.token, "eth_sendRawTransaction", json!([raw]))
            .await
            .status,
        404
    );
    // A nonce far ahead, truncated, not canonical, unknown type: 400, and nothing is forwarded.
    let nonce = 900_000u64;
    let (_, high_nonce) = sign_with_nonce(
        &w.ops.key,
        nonce,
        Some(w.erc20),
        U256::ZERO,
        transfer(w.analyst.address(), 1),
    );
    let response =
        w.gw.rpc(&w.ops.token, "eth_sendRawTransaction", json!([high_nonce]))
            .await;
    assert_eq!(
        (response.status, response.json()["error"]["code"].clone()),
        (400, json!(-32602)),
        "HD13: {}",
        response.body
    );
    for malformed in ["0x", "0x02c0", "0x05c0", "0xf86b", "zz"] {
        let response =
            w.gw.rpc(&w.ops.token, "eth_sendRawTransaction", json!([malformed]))
                .await;
        assert_eq!(
            (response.status, response.json()["error"]["code"].clone()),
            (400, json!(-32602)),
            "{malformed}: {}",
            response.body
        );
    }
    let mut padded = high_nonce.to_vec();
    padded.push(0);
    assert_eq!(
        w.gw.rpc(&w.ops.token, "eth_sendRawTransaction", json!([Bytes::from(padded)]))
            .await
            .status,
        400
    );
    assert_eq!(block_number(&w).await, before);
    // The node's own refusal is returned with a fixed text.
    let (_, stale) = sign_with_nonce(
        &w.ops.key,
        0,
        Some(w.erc20),
        U256::ZERO,
        transfer(w.analyst.address(), 1),
    );
    let response = w.gw.rpc(&w.ops.token, "eth_sendRawTransaction", json!([stale])).await;
    assert_eq!(
        (response.status, response.json()["error"]["message"].clone()),
        (200, json!("nonce too low")),
        "{}",
        response.body
    );
}

/// R1-R3, K7, decision 48: a deployment belongs to the deployer's organization.
async fn deployments(engine: Engine) {
    let w = World::start(engine).await;
    let factory = w.gw.deploy(&w.ops.token, &w.ops.key, init_code("Factory", &[])).await;
    let lookup =
        w.gw.admin("GET", &format!("/contracts/by-address/{factory}"), None)
            .await
            .expect(200);
    assert_eq!(lookup["contract"]["org_id"], json!(w.meridian));
    assert_eq!(lookup["contract"]["deployed_by_user_id"], json!(w.ops.user_id));
    assert_eq!(lookup["contract"]["metadata"]["auto_registered"], json!(true));
    // A contract that a transaction creates is registered from the trace of the mined block.
    let input = createCall {}.abi_encode().into();
    let hash =
        w.gw.send(&w.ops.token, &w.ops.key, Some(factory), U256::ZERO, input)
            .await;
    let receipt = w.gw.node("eth_getTransactionReceipt", json!([hash])).await;
    let child = Address::from_word(receipt["logs"][0]["data"].as_str().unwrap().parse().unwrap());
    for attempt in 0..100 {
        if w.gw
            .admin("GET", &format!("/contracts/by-address/{child}"), None)
            .await
            .status
            == 200
        {
            break;
        }
        assert!(attempt < 99, "R3: the child was not registered within five seconds");
        tokio::time::sleep(std::time::Duration::from_millis(50)).await;
    }
    let call = json!([{"from": w.ops.address(), "to": child, "data": "0x85bb7d69"}, "latest"]);
    assert_eq!(
        w.gw.result(&w.ops.token, "eth_call", call.clone()).await,
        json!(format!("0x{:064x}", 42))
    );
    let foreign = json!([{"from": w.trader.address(), "to": child, "data": "0x85bb7d69"}, "latest"]);
    assert_eq!(w.gw.rpc(&w.trader.token, "eth_call", foreign).await.status, 404);
}

/// X5, X6, HD6, B8, B24: every frame of an execution is checked, not only the first call.
async fn inner_calls(engine: Engine) {
    let w = World::start(engine).await;
    let traders = crate::world::group(&w.gw, &w.volta, "deployers", false, json!(["*"]), json!(["deploy"])).await;
    let body = json!({"did": w.trader.did, "group_id": traders});
    w.gw.admin("POST", &format!("/orgs/{}/memberships/by-did", w.volta), Some(body))
        .await
        .expect(201);
    let forwarder =
        w.gw.deploy(&w.trader.token, &w.trader.key, init_code("Forwarder", &[]))
            .await;
    let forward = |target: Address, data: Bytes| -> Bytes { forwardCall { target, data }.abi_encode().into() };
    let call = |to: Address, data: Bytes| json!([{"from": w.trader.address(), "to": to, "data": data}, "latest"]);
    // The attack works against the bare node ...
    let node_result =
        w.gw.node(
            "eth_call",
            call(forwarder, forward(w.erc20, balance_of(w.ops.address()))),
        )
        .await;
    assert!(node_result.as_str().unwrap().len() > 66);
    // ... and is refused by the gateway, reading or writing.
    let read =
        w.gw.rpc(
            &w.trader.token,
            "eth_call",
            call(forwarder, forward(w.erc20, balance_of(w.ops.address()))),
        )
        .await;
    assert_eq!(read.status, 404);
    let before = block_number(&w).await;
    let (_, raw) =
        w.gw.sign(
            &w.trader.key,
            Some(forwarder),
            U256::ZERO,
            forward(w.erc20, balance_of(w.ops.address())),
        )
        .await;
    assert_eq!(
        w.gw.rpc(&w.trader.token, "eth_sendRawTransaction", json!([raw]))
            .await
            .status,
        404
    );
    assert_eq!(block_number(&w).await, before);
    // HD6: BALANCE and EXTCODEHASH of a wallet have the same refusal, whether it is linked or not.
    let probe =
        w.gw.deploy(&w.trader.token, &w.trader.key, init_code("Probe", &[]))
            .await;
    let code_hash = |account: Address| -> Bytes { codeHashOfCall { account }.abi_encode().into() };
    for (opcode, input) in [
        ("BALANCE", balance_of as fn(Address) -> Bytes),
        ("EXTCODEHASH", code_hash),
    ] {
        let probe_call = |account: Address| call(probe, input(account));
        let linked = w.gw.rpc(&w.trader.token, "eth_call", probe_call(w.ops.address())).await;
        let unlinked =
            w.gw.rpc(&w.trader.token, "eth_call", probe_call(Address::repeat_byte(0x77)))
                .await;
        assert_eq!((linked.status, &linked.body), (404, &unlinked.body), "{opcode}");
        assert_eq!(unlinked.status, 404);
    }
    // B24: a contract may pay ether to a wallet.
    let payer =
        w.gw.deploy(&w.trader.token, &w.trader.key, init_code("Payer", &[]))
            .await;
    w.gw.send(
        &w.trader.token,
        &w.trader.key,
        Some(payer),
        U256::from(10u64),
        Bytes::new(),
    )
    .await;
    let pay = payCall {
        to: w.outsider.address(),
        value: U256::from(4u64),
    }
    .abi_encode()
    .into();
    w.gw.send(&w.trader.token, &w.trader.key, Some(payer), U256::ZERO, pay)
        .await;
}

/// W4, W5, R25-R28: only the users named in a shared transaction see it. Sharing adds to what they see, and removes
/// nothing.
async fn sharing(engine: Engine) {
    let w = World::start(engine).await;
    let (hash, raw) =
        w.gw.sign(&w.ops.key, Some(w.erc20), U256::ZERO, transfer(w.analyst.address(), 3))
            .await;
    let body = json!({
        "jsonrpc": "2.0", "id": "share", "method": "eth_sendRawTransaction", "params": [raw],
        "visibleTo": [w.trader.did], "privateFor": [w.outsider.address()],
    });
    let sent = w.gw.rpc_body(&w.ops.token, &body).await.expect(200);
    assert_eq!(
        (sent["result"].clone(), sent["id"].clone()),
        (json!(hash), json!("share"))
    );
    w.gw.wait_until_mined(&w.ops.token, hash).await;
    let shared =
        w.gw.result(&w.trader.token, "eth_getTransactionByHash", json!([hash]))
            .await;
    assert_eq!(shared["hash"], json!(hash));
    // Decision 20: the trader sees the logs of the shared transaction without a grant on the token.
    let rows =
        w.gw.result(
            &w.trader.token,
            "eth_getLogs",
            json!([{"address": w.erc20, "fromBlock": "0x0"}]),
        )
        .await;
    assert_eq!(rows.as_array().unwrap().len(), 1);
    assert_eq!(rows[0]["transactionHash"], json!(hash));
    // The method list still applies: the outsider's groups do not list the method.
    assert_eq!(
        w.gw.rpc(&w.outsider.token, "eth_getTransactionByHash", json!([hash]))
            .await
            .status,
        404
    );
    // W4: at most 32 entries.
    let too_many: Vec<String> = (0..33).map(|n| format!("did:test:n{n}")).collect();
    let (_, raw) =
        w.gw.sign(&w.ops.key, Some(w.erc20), U256::ZERO, transfer(w.analyst.address(), 3))
            .await;
    let body =
        json!({"jsonrpc": "2.0", "id": 1, "method": "eth_sendRawTransaction", "params": [raw], "visibleTo": too_many});
    assert_eq!(w.gw.rpc_body(&w.ops.token, &body).await.status, 400);
    // Decision 25: on other methods `visibleTo` is removed and ignored.
    let body = json!({"jsonrpc": "2.0", "id": 1, "method": "eth_chainId", "params": [], "visibleTo": [w.trader.did]});
    w.gw.rpc_body(&w.ops.token, &body).await.expect(200);
}

/// W6, LK-7: an accepted transaction links its sender address to the caller, if no user has linked it.
async fn system_links(engine: Engine) {
    let w = World::start(engine).await;
    let fresh = alloy_signer_local::PrivateKeySigner::from_bytes(&alloy_primitives::B256::repeat_byte(0x42)).unwrap();
    w.gw.send(
        &w.ops.token,
        &w.ops.key,
        Some(fresh.address()),
        U256::from(10u64).pow(U256::from(18u64)),
        Bytes::new(),
    )
    .await;
    let balance = |token: String| {
        let w = &w;
        let address = fresh.address();
        async move { w.gw.result(&token, "eth_getBalance", json!([address, "latest"])).await }
    };
    assert_eq!(balance(w.ops.token.clone()).await, json!("0x0"), "not linked yet");
    w.gw.send(
        &w.ops.token,
        &fresh,
        Some(w.erc20),
        U256::ZERO,
        transfer(w.analyst.address(), 0),
    )
    .await;
    assert_ne!(
        balance(w.ops.token.clone()).await,
        json!("0x0"),
        "W6: linked by the accepted transaction"
    );
    // HD13: another user cannot send with a linked address.
    let deployers = crate::world::group(&w.gw, &w.meridian, "more-ops", false, json!(["*"]), json!(["deploy"])).await;
    let colleague = crate::world::member(&w.gw, &w.meridian, &deployers, "did:test:other", 5, true).await;
    let (_, raw) =
        w.gw.sign(&fresh, Some(w.ops.address()), U256::from(1u64), Bytes::new())
            .await;
    assert_eq!(
        w.gw.rpc(&colleague.token, "eth_sendRawTransaction", json!([raw]))
            .await
            .status,
        404
    );
    // LK-5: a signed challenge overrides a link that was inferred from a send.
    w.gw.link(&colleague.token, &fresh).await;
    assert_ne!(balance(colleague.token.clone()).await, json!("0x0"));
    assert_eq!(balance(w.ops.token.clone()).await, json!("0x0"));
    assert_ne!(key(0).address(), fresh.address());
}
