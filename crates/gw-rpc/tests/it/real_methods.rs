//! Access lists, proofs and traces from a real node (spec/20 §9; B9, B11, HD3).

use crate::{
    real_reads::{Chain, chain},
    world::{Answer, account, signed},
};
use alloy_sol_types::{SolCall, sol};
use gw_types::{Address, B256, Bytes, DenyReason, U256};
use serde_json::{Value, json};

sol! {
    function balanceOf(address account) external view returns (uint256);
    function transfer(address to, uint256 value) external returns (bool);
    function forward(address target, bytes data) external payable returns (bytes);
}

fn read(chain: &Chain, target: Address) -> Bytes {
    let data = balanceOfCall { account: chain.wallet }.abi_encode().into();
    Bytes::from(forwardCall { target, data }.abi_encode())
}

impl Chain {
    /// Sends a call of the wallet through the gateway. Returns when it is mined.
    async fn sent(&self, nonce: u64, to: Address, input: Bytes) -> B256 {
        let head = self.world.node.head().unwrap().number;
        let (raw, hash) = signed(&account(0), nonce, Some(to), 0, input);
        let answer = self.ask("eth_sendRawTransaction", json!([raw])).await;
        assert_eq!(answer.body["result"], json!(hash), "{}", answer.text);
        self.world.mined(head + 1).await;
        hash
    }

    fn next_second(&self) {
        self.world.fixture.clock.pass(2);
    }
}

fn result(answer: Answer) -> Value {
    assert_eq!(answer.status, 200, "{}", answer.text);
    answer.body["result"].clone()
}

/// HD3, B11: the access list comes from the evaluated run.
#[tokio::test]
async fn hd3_an_access_list_comes_from_the_evaluated_run() {
    let chain = chain().await;
    let forwarder = chain.own("Forwarder").await;
    let call = json!({"from": chain.wallet, "to": forwarder, "data": read(&chain, chain.mine)});
    let list = result(chain.ask("eth_createAccessList", json!([call, "latest"])).await);
    assert_eq!(list["accessList"][0]["address"], json!(chain.mine), "{list}");
    assert_eq!(
        list["accessList"][0]["storageKeys"].as_array().map(Vec::len),
        Some(1),
        "{list}"
    );
    assert_eq!(
        (list["accessList"].as_array().map(Vec::len), list.get("error")),
        (Some(1), None),
        "{list}"
    );
    assert!(list["gasUsed"].as_str().is_some_and(|gas| gas.len() > 4), "{list}");
    // The attack on the bare node: an access list names what a foreign contract reads.
    let steal = json!({"from": chain.wallet, "to": forwarder, "data": read(&chain, chain.theirs)});
    let bare = chain.world.bare("eth_createAccessList", json!([steal, "latest"])).await;
    assert!(
        bare["result"]["accessList"]
            .to_string()
            .contains(&format!("{:#x}", chain.theirs)),
        "{bare}"
    );
    chain
        .assert_denied(
            chain.ask("eth_createAccessList", json!([steal, "latest"])).await,
            DenyReason::CrossOrg,
        )
        .await;
    // A failing run still has an access list.
    let data = Bytes::from(
        transferCall {
            to: account(1).address(),
            value: U256::MAX,
        }
        .abi_encode(),
    );
    let failing = json!({"from": chain.wallet, "to": chain.mine, "data": data});
    let list = result(chain.ask("eth_createAccessList", json!([failing])).await);
    assert_eq!(list["error"], "execution reverted", "{list}");
}

/// B11: on the bare node, a proof reveals any slot of any account.
#[tokio::test]
async fn b11_a_proof_reveals_no_slot_out_of_reach() {
    let chain = chain().await;
    let ask = |address: Address, keys: Value| chain.ask("eth_getProof", json!([address, keys, "latest"]));
    let bare = chain
        .world
        .bare("eth_getProof", json!([chain.theirs, [B256::ZERO], "latest"]))
        .await;
    assert!(
        bare["result"]["storageProof"][0]["value"].is_string(),
        "the attack: {bare}"
    );
    chain
        .assert_denied(ask(chain.theirs, json!(["0x0"])).await, DenyReason::ForeignOrg)
        .await;
    chain
        .assert_denied(ask(chain.mine, json!(["0x0"])).await, DenyReason::ParamRule)
        .await;
    let slot = json!(gw_evm::code::IMPLEMENTATION_SLOT);
    let proof = result(ask(chain.mine, json!([slot])).await);
    assert_eq!(
        (&proof["address"], &proof["accountProof"]),
        (&json!(chain.mine), &json!([])),
        "{proof}"
    );
    assert_eq!(
        proof["storageProof"][0]["proof"],
        json!([]),
        "an absent slot is proved by its neighbour: {proof}"
    );
    assert_eq!(proof["storageHash"], json!(B256::ZERO));
}

/// B9: callers may use only the callTracer; a traced call reaches no more than `eth_call`.
#[tokio::test]
async fn b9_trace_call_is_checked_like_the_call() {
    let chain = chain().await;
    let forwarder = chain.own("Forwarder").await;
    let params = |target, config: Value| json!([{"to": forwarder, "data": read(&chain, target)}, "latest", config]);
    let calls = json!({"tracer": "callTracer"});
    let bare = chain
        .world
        .bare("debug_traceCall", params(chain.theirs, calls.clone()))
        .await;
    assert!(bare["result"]["calls"][0]["output"].is_string(), "the attack: {bare}");
    let answer = chain.ask("debug_traceCall", params(chain.theirs, calls.clone())).await;
    chain.assert_denied(answer, DenyReason::CrossOrg).await;
    chain.next_second();
    let tree = result(chain.ask("debug_traceCall", params(chain.mine, calls.clone())).await);
    assert_eq!(tree["to"], json!(forwarder), "{tree}");
    assert_eq!(
        (&tree["calls"][0]["to"], &tree["calls"][0]["type"]),
        (&json!(chain.mine), &json!("CALL")),
        "{tree}"
    );
    assert!(tree["calls"][0]["output"].is_string(), "{tree}");
    // J8: every traced call counts, whatever its result.
    let second_answer = chain.ask("debug_traceCall", params(chain.mine, calls)).await;
    assert_eq!(second_answer.error(), (429, -32005), "{}", second_answer.text);
    for config in [
        json!({"tracer": "prestateTracer"}),
        json!({"tracer": "{result: function() {}}"}),
        json!({}),
        json!(null),
    ] {
        let answer = chain.ask("debug_traceCall", params(chain.mine, config.clone())).await;
        assert_eq!(answer.error(), (400, -32602), "{config}: {}", answer.text);
    }
}

/// B9: only the parties of a mined transaction see its call tree; other callers get the answer for an unknown hash.
#[tokio::test]
async fn b9_trace_transaction_is_for_parties_only() {
    let chain = chain().await;
    let forwarder = chain.own("Forwarder").await;
    let nonce = result(
        chain
            .ask("eth_getTransactionCount", json!([chain.wallet, "latest"]))
            .await,
    );
    let nonce = u64::from_str_radix(nonce.as_str().unwrap().trim_start_matches("0x"), 16).unwrap();
    let hash = chain.sent(nonce, forwarder, read(&chain, chain.mine)).await;
    let calls = json!({"tracer": "callTracer"});
    let tree = result(chain.ask("debug_traceTransaction", json!([hash, calls])).await);
    assert_eq!(
        (&tree["from"], &tree["to"]),
        (&json!(chain.wallet), &json!(forwarder)),
        "{tree}"
    );
    assert_eq!(tree["calls"][0]["to"], json!(chain.mine), "{tree}");
    let org = chain
        .world
        .fixture
        .feed
        .pin()
        .snapshot
        .contract(chain.mine)
        .unwrap()
        .org;
    let colleague = chain.world.person("colleague", org, &["*"], &[]).await;
    let theirs = chain
        .world
        .ask(Some(&colleague), "debug_traceTransaction", json!([hash, calls]))
        .send()
        .await;
    theirs.assert_denied();
    chain.world.fixture.clock.pass(2);
    let unknown = json!([B256::repeat_byte(9), calls]);
    let unknown = chain
        .world
        .ask(Some(&colleague), "debug_traceTransaction", unknown)
        .send()
        .await;
    assert_eq!(unknown.text, theirs.text);
    // By sender and nonce, only the owner of the sender gets the transaction.
    let own = result(
        chain
            .ask(
                "eth_getTransactionBySenderAndNonce",
                json!([chain.wallet, format!("{nonce:#x}")]),
            )
            .await,
    );
    assert_eq!(own["hash"], json!(hash), "{own}");
    let by_nonce = json!([chain.wallet, format!("{nonce:#x}")]);
    chain
        .world
        .ask(Some(&colleague), "eth_getTransactionBySenderAndNonce", by_nonce)
        .send()
        .await
        .assert_denied();
}
