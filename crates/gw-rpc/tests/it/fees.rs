//! `HIDE_BASE_FEE` against a real node: answers under two base fees are the same bytes (spec/30 section 8, HD11).

use crate::world::{World, account, real_with, signed, signed_with};
use alloy_consensus::TxEip1559;
use gw_policy::PolicySettings;
use gw_testkit::TestUser;
use gw_types::{B256, Bytes, Claim, U256};
use serde_json::{Value, json};

/// Answers about one block with one transaction of the caller's, without the parts that differ from block to block
/// anyway.
async fn everything(world: &World, caller: &TestUser, hash: B256) -> Vec<String> {
    let ask = async |method: &str, params: Value| world.ask(Some(caller), method, params).send().await.body;
    let mut answers = Vec::new();
    for method in ["eth_gasPrice", "eth_maxPriorityFeePerGas", "eth_blobBaseFee"] {
        answers.push(ask(method, json!([])).await.to_string());
    }
    let history = ask("eth_feeHistory", json!(["0x1", "latest", [50]])).await;
    for member in ["baseFeePerGas", "reward", "baseFeePerBlobGas"] {
        answers.push(history["result"][member].to_string());
    }
    answers.push(ask("eth_getBlockByNumber", json!(["latest", false])).await["result"]["baseFeePerGas"].to_string());
    let block = ask("eth_getBlockByNumber", json!(["latest", true])).await;
    let single = ask("eth_getTransactionByHash", json!([hash])).await;
    for transaction in [&block["result"]["transactions"][0], &single["result"]] {
        answers.push(transaction["gasPrice"].to_string());
    }
    let receipts = ask("eth_getBlockReceipts", json!(["latest"])).await;
    let single = ask("eth_getTransactionReceipt", json!([hash])).await;
    for receipt in [&receipts["result"][0], &single["result"]] {
        answers.push(receipt["effectiveGasPrice"].to_string());
    }
    // The opcodes BASEFEE, BLOBBASEFEE and GASPRICE, without and with a price limit, and whether the limit suffices.
    let returning = |opcode: &str| format!("0x{opcode}5f5260205ff3");
    for opcode in ["48", "4a", "3a"] {
        for priced in [false, true] {
            let mut call = json!({"from": account(0).address(), "data": returning(opcode)});
            if priced {
                call["maxFeePerGas"] = json!("0x77359400");
                call["maxPriorityFeePerGas"] = json!("0x1");
            }
            answers.push(ask("eth_call", json!([call, "latest"])).await.to_string());
            answers.push(ask("eth_estimateGas", json!([call, "latest"])).await.to_string());
        }
    }
    answers
}

/// RT14: quantities, tips, receipts and opcodes revealed the base fee that the header hid.
#[tokio::test]
async fn rt14_two_base_fees_read_alike() {
    for hides in [false, true] {
        let (world, _anvil) = real_with(PolicySettings {
            hide_base_fee: hides,
            ..PolicySettings::default()
        })
        .await;
        let bank = world.fixture.create_org("bank").await;
        let payer = world.person("payer", bank, &["*"], &[Claim::Deploy]).await;
        world.link(&payer, account(0).address()).await;
        let mut seen = Vec::new();
        for (nonce, base_fee) in [(0, 2_200_000_000_u64), (1, 1_500_000_000)] {
            world
                .anvil("anvil_setNextBlockBaseFeePerGas", json!([format!("{base_fee:#x}")]))
                .await;
            let (raw, hash) = signed(&account(0), nonce, Some(account(1).address()), 1, Bytes::new());
            let sent = world
                .ask(Some(&payer), "eth_sendRawTransaction", json!([raw]))
                .send()
                .await;
            assert_eq!(sent.body["result"], json!(hash), "{}", sent.text);
            world.mined(nonce + 1).await;
            let block = world.bare("eth_getBlockByNumber", json!(["latest", false])).await;
            assert!(
                block.to_string().contains(&format!("{base_fee:#x}")),
                "the block has the base fee: {block}"
            );
            seen.push(everything(&world, &payer, hash).await);
        }
        let differing = seen[0]
            .iter()
            .zip(&seen[1])
            .filter(|(first, second)| first != second)
            .count();
        if hides {
            assert_eq!(seen[0], seen[1]);
        } else {
            assert!(
                differing > 8,
                "{differing} answers differ where nothing is hidden: {seen:?}"
            );
        }
    }
}

/// RT14, HD11: which prices the node accepts for a send revealed the base fee.
#[tokio::test]
async fn rt14_a_rejected_price_reveals_no_base_fee() {
    let (world, _anvil) = real_with(PolicySettings {
        hide_base_fee: true,
        ..PolicySettings::default()
    })
    .await;
    let bank = world.fixture.create_org("bank").await;
    let payer = world.person("payer", bank, &["*"], &[]).await;
    world.link(&payer, account(0).address()).await;
    world
        .anvil("anvil_setNextBlockBaseFeePerGas", json!(["0x77359400"]))
        .await;
    world.anvil("evm_mine", json!([])).await;
    world.node.refresh_head().await.unwrap();
    let published: U256 = world
        .result(&payer, "eth_gasPrice", json!([]))
        .await
        .as_str()
        .unwrap()
        .parse()
        .unwrap();
    let actual = U256::from(2_000_000_000_u64);
    assert!(published > actual);
    let send = async |price: U256, nonce: u64| {
        let (raw, _) = signed_with(
            &account(0),
            TxEip1559 {
                chain_id: 31337,
                nonce,
                gas_limit: 21_000,
                max_fee_per_gas: price.to(),
                to: account(1).address().into(),
                ..TxEip1559::default()
            },
        );
        world
            .ask(Some(&payer), "eth_sendRawTransaction", json!([raw]))
            .send()
            .await
            .body
    };
    let low = send(U256::ONE, 0).await;
    assert_eq!(low["error"]["code"], -32602, "{low}");
    for price in [actual - U256::ONE, actual, actual + U256::ONE, published - U256::ONE] {
        assert_eq!(send(price, 0).await, low, "{price}");
    }
    let accepted = send(published, 0).await;
    assert!(accepted["result"].is_string(), "{accepted}");
}
