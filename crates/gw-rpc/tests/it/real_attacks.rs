//! Attacks on a gateway that would only check the declared target of a call (spec/20 §18). Each succeeds on the bare
//! node first: upgrades through other functions, delegated wallets, redirected proxies, contracts that self-destruct.

use crate::{
    real_reads::{Chain, chain},
    world::{Answer, account, signed, signed_with},
};
use alloy_consensus::{SignableTransaction as _, TxEip1559, TxEip7702, TxEnvelope};
use alloy_eips::{
    eip2718::Encodable2718 as _,
    eip7702::{Authorization, SignedAuthorization},
};
use alloy_primitives::keccak256;
use alloy_signer::SignerSync as _;
use alloy_signer_local::PrivateKeySigner;
use alloy_sol_types::{SolCall, sol};
use gw_evm::code::{DIAMOND_SLOT, IMPLEMENTATION_SLOT};
use gw_testkit::TestUser;
use gw_types::{Address, B256, Bytes, Claim, DenyReason, U256};
use serde_json::{Value, json};

sol! {
    function balanceOf(address account) external view returns (uint256);
    function tidyUp(uint256 slot, uint256 value) external;
    function tidyUpElsewhere(address other, uint256 slot, uint256 value) external;
    function rename(bytes4 selector, address facet) external;
    function count() external;
    function aim(address to) external;
    function boom(address heir) external;
    function delegate(address target, bytes data) external payable returns (bytes);
    function execute(address to, bytes data) external returns (bytes);
}

impl Chain {
    async fn next_nonce(&self) -> u64 {
        self.world.node.mined_nonce(self.wallet).await.unwrap()
    }

    async fn sends(&self, to: Address, call: impl SolCall) -> Answer {
        let before = self.world.node.head().unwrap().number;
        let (raw, _) = signed(
            &account(0),
            self.next_nonce().await,
            Some(to),
            0,
            call.abi_encode().into(),
        );
        let answer = self.ask("eth_sendRawTransaction", json!([raw])).await;
        if answer.body.get("result").is_some() {
            self.world.mined(before + 1).await;
        }
        answer
    }

    async fn calls(&self, to: Address, call: impl SolCall) -> Answer {
        self.ask(
            "eth_call",
            json!([{"to": to, "data": Bytes::from(call.abi_encode())}, "latest"]),
        )
        .await
    }

    /// The same call on the bare node, which runs it.
    async fn bare_call(&self, to: Address, call: impl SolCall) -> Value {
        let call = json!([{"to": to, "data": Bytes::from(call.abi_encode())}, "latest"]);
        self.world.bare("eth_call", call).await["result"].clone()
    }

    /// Sends past the gateway, from a key of the node.
    async fn bare_send(&self, to: Address, call: impl SolCall) {
        let send = json!([{"from": account(3).address(), "to": to, "data": Bytes::from(call.abi_encode())}]);
        self.world.node.refresh_head().await.unwrap();
        let before = self.world.node.head().unwrap().number;
        self.world.anvil("eth_sendTransaction", send).await;
        self.world.mined(before + 1).await;
    }

    fn secret(&self) -> balanceOfCall {
        balanceOfCall {
            account: account(3).address(),
        }
    }
}

fn word(bytes: B256) -> U256 {
    U256::from_be_bytes(bytes.0)
}

/// U2: a write to the implementation slot is an upgrade, in any function and at any call depth.
#[tokio::test]
async fn u2_an_upgrade_through_another_function_needs_the_claim() {
    let chain = chain().await;
    let (proxy, through) = (chain.own("Sneak").await, chain.own("Sneak").await);
    let slot = word(IMPLEMENTATION_SLOT);
    let write = |value| tidyUpCall {
        slot,
        value: U256::from(value),
    };
    chain.bare_send(proxy, write(7u64)).await;
    let stored = chain
        .world
        .bare("eth_getStorageAt", json!([proxy, IMPLEMENTATION_SLOT, "latest"]))
        .await;
    assert_eq!(stored["result"], json!(B256::with_last_byte(7)), "the attack");
    chain
        .assert_denied(chain.sends(proxy, write(8)).await, DenyReason::UpgradeClaimRequired)
        .await;
    let deep = tidyUpElsewhereCall {
        other: proxy,
        slot,
        value: U256::from(8),
    };
    chain
        .assert_denied(chain.sends(through, deep).await, DenyReason::UpgradeClaimRequired)
        .await;
    let harmless = tidyUpCall {
        slot: U256::from(5),
        value: U256::from(8),
    };
    assert_eq!(chain.sends(proxy, harmless).await.status, 200);
}

/// U2: a diamond whose selectors are changed without `diamondCut`.
#[tokio::test]
async fn u2_a_diamond_changed_without_diamond_cut_needs_the_claim() {
    let chain = chain().await;
    let diamond = chain.own("Diamond").await;
    let rename = |facet| renameCall {
        selector: [0xa9, 0x05, 0x9c, 0xbb].into(),
        facet,
    };
    chain.bare_send(diamond, rename(chain.theirs)).await;
    let mut key = [0; 64];
    key[..4].copy_from_slice(&[0xa9, 0x05, 0x9c, 0xbb]);
    key[32..].copy_from_slice(DIAMOND_SLOT.as_slice());
    let stored = chain
        .world
        .bare("eth_getStorageAt", json!([diamond, keccak256(key), "latest"]))
        .await;
    assert_eq!(stored["result"], json!(chain.theirs.into_word()), "the attack");
    chain
        .assert_denied(
            chain.sends(diamond, rename(chain.mine)).await,
            DenyReason::UpgradeClaimRequired,
        )
        .await;
    assert_eq!(chain.sends(diamond, countCall {}).await.status, 200);
}

/// X5, X6: a proxy that a slot of its own points at foreign code, and a contract that delegates to foreign code.
#[tokio::test]
async fn x6_foreign_code_is_not_run_on_own_storage() {
    let chain = chain().await;
    let (switch, forwarder) = (chain.own("Switch").await, chain.own("Forwarder").await);
    chain.bare_send(switch, aimCall { to: chain.theirs }).await;
    assert_eq!(
        chain.bare_call(switch, chain.secret()).await,
        json!(B256::ZERO),
        "the attack: its code runs"
    );
    chain
        .assert_denied(chain.calls(switch, chain.secret()).await, DenyReason::CrossOrg)
        .await;
    let delegate = || delegateCall {
        target: chain.theirs,
        data: chain.secret().abi_encode().into(),
    };
    assert!(chain.bare_call(forwarder, delegate()).await.is_string(), "the attack");
    chain
        .assert_denied(chain.calls(forwarder, delegate()).await, DenyReason::CrossOrg)
        .await;
    // A send that sets the target only stores an address; the code is checked when it runs.
    chain.bare_send(switch, aimCall { to: chain.mine }).await;
    assert_eq!(chain.calls(switch, chain.secret()).await.status, 200);
}

/// B8: the beneficiary of SELFDESTRUCT is checked like any other address.
#[tokio::test]
async fn b8_selfdestruct_pays_no_address_out_of_reach() {
    let chain = chain().await;
    let bomb = chain.own("Bomb").await;
    assert_eq!(
        chain.bare_call(bomb, boomCall { heir: chain.theirs }).await,
        "0x",
        "the attack"
    );
    chain
        .assert_denied(
            chain.calls(bomb, boomCall { heir: chain.theirs }).await,
            DenyReason::CrossOrg,
        )
        .await;
    chain
        .assert_denied(
            chain.sends(bomb, boomCall { heir: chain.theirs }).await,
            DenyReason::CrossOrg,
        )
        .await;
    assert_eq!(chain.sends(bomb, boomCall { heir: chain.wallet }).await.status, 200);
}

fn authorization(by: &PrivateKeySigner, delegate: Address, nonce: u64) -> SignedAuthorization {
    let authorization = Authorization {
        chain_id: U256::from(31337),
        address: delegate,
        nonce,
    };
    let signature = by.sign_hash_sync(&authorization.signature_hash()).unwrap();
    authorization.into_signed(signature)
}

fn delegating(nonce: u64, to: Address, list: Vec<SignedAuthorization>) -> String {
    let transaction = TxEip7702 {
        chain_id: 31337,
        nonce,
        gas_limit: 1_000_000,
        max_fee_per_gas: 20_000_000_000,
        max_priority_fee_per_gas: 1_000_000_000,
        to,
        value: U256::ZERO,
        access_list: Default::default(),
        authorization_list: list,
        input: Bytes::new(),
    };
    let signature = account(0).sign_hash_sync(&transaction.signature_hash()).unwrap();
    Bytes::from(TxEnvelope::from(transaction.into_signed(signature)).encoded_2718()).to_string()
}

/// B7, W1, HD15: only its owner delegates a wallet, and only to a contract within reach; its runs are checked by the
/// code that they execute.
#[tokio::test]
async fn b7_w1_delegated_wallets_are_checked_by_the_code_they_run() {
    let chain = chain().await;
    let wallet_code = chain.own("Executor").await;
    let foreign = chain.world.deploy(&crate::world::artifact("Executor").0).await;
    let stranger = account(2);
    let nonce = chain.next_nonce().await;
    let before = chain.world.node.head().unwrap().number;
    let send = async |list| {
        chain
            .ask("eth_sendRawTransaction", json!([delegating(nonce, chain.wallet, list)]))
            .await
    };
    // Another user's wallet, and unregistered code.
    let theirs = authorization(&stranger, wallet_code, 0);
    chain
        .assert_denied(send(vec![theirs]).await, DenyReason::SenderNotOwned)
        .await;
    let unowned = authorization(&account(0), foreign, nonce + 1);
    chain
        .assert_denied(send(vec![unowned]).await, DenyReason::ContractNotPermitted)
        .await;
    let own = send(vec![authorization(&account(0), wallet_code, nonce + 1)]).await;
    assert!(own.body.get("result").is_some(), "{}", own.text);
    chain.world.mined(before + 1).await;
    let code = chain.world.bare("eth_getCode", json!([chain.wallet, "latest"])).await;
    assert_eq!(code["result"], json!(format!("0xef0100{:x}", wallet_code)));
    // The delegated wallet calls any given target.
    let execute = |to| executeCall {
        to,
        data: chain.secret().abi_encode().into(),
    };
    assert!(
        chain.bare_call(chain.wallet, execute(chain.theirs)).await.is_string(),
        "the attack"
    );
    chain
        .assert_denied(
            chain.calls(chain.wallet, execute(chain.theirs)).await,
            DenyReason::CrossOrg,
        )
        .await;
    assert_eq!(chain.calls(chain.wallet, execute(chain.mine)).await.status, 200);
    // A wallet that was delegated past the gateway to code out of reach runs nothing through the gateway.
    chain
        .world
        .anvil("anvil_setCode", json!([chain.wallet, format!("0xef0100{foreign:x}")]))
        .await;
    chain.world.anvil("evm_mine", json!([])).await;
    chain.world.node.refresh_head().await.unwrap();
    assert!(
        chain.bare_call(chain.wallet, execute(chain.mine)).await.is_string(),
        "the attack"
    );
    chain
        .assert_denied(
            chain.calls(chain.wallet, execute(chain.mine)).await,
            DenyReason::Unregistered,
        )
        .await;
}

/// B17, B10: methods that use the node's keys or arbitrary state are not served, whatever the grants.
#[tokio::test]
async fn b10_b17_the_nodes_own_methods_are_not_served() {
    let chain = chain().await;
    let key = account(3).address();
    let signed = chain.world.bare("eth_sign", json!([key, "0x68"])).await;
    assert!(signed["result"].is_string(), "the attack: {signed}");
    for (method, params) in [
        ("eth_sign", json!([key, "0x68"])),
        ("eth_signTypedData_v4", json!([key, {}])),
        ("eth_signTransaction", json!([{"from": key}])),
        ("personal_sign", json!(["0x68", key])),
        ("eth_simulateV1", json!([{"blockStateCalls": []}, "latest"])),
        ("trace_call", json!([{"to": chain.theirs}, ["trace"], "latest"])),
        ("debug_traceBlockByNumber", json!(["latest"])),
        ("eth_getRawTransactionByHash", json!([B256::ZERO])),
        ("anvil_setBalance", json!([key, "0x0"])),
        ("evm_mine", json!([])),
        ("txpool_content", json!([])),
    ] {
        chain.ask(method, params).await.assert_denied();
    }
}

/// HD36, J9: nobody pays for the gas of a simulation, so it gets at most the gas of a block, whatever the caller names.
#[tokio::test]
async fn hd36_a_simulation_has_no_more_gas_than_a_block() {
    let chain = chain().await;
    let forever = |gas: &str| json!([{"from": chain.wallet, "data": "0x5b5f56", "gas": gas}, "latest"]);
    for method in ["eth_call", "eth_estimateGas", "eth_createAccessList"] {
        let answer = chain.ask(method, forever("0xffffffffffff")).await;
        assert_eq!(answer.status, 200, "{method}: {}", answer.text);
        assert!(answer.text.contains("out of gas"), "{method}: {}", answer.text);
    }
    // A send with more gas than a block holds is not traced either.
    let (nonce, to) = (chain.next_nonce().await, account(1).address());
    let (raw, _) = signed_with(
        &account(0),
        TxEip1559 {
            chain_id: 31337,
            nonce,
            gas_limit: 1 << 48,
            max_fee_per_gas: 20_000_000_000,
            to: to.into(),
            ..TxEip1559::default()
        },
    );
    let answer = chain.ask("eth_sendRawTransaction", json!([raw])).await;
    assert_eq!(answer.body["error"]["code"], -32602, "{}", answer.text);
}

/// HD36: a caller whose runs are too large to read is paused; other callers continue.
#[tokio::test]
async fn hd36_a_caller_with_unreadable_runs_is_paused() {
    let chain = chain().await;
    let org = chain
        .world
        .fixture
        .feed
        .pin()
        .snapshot
        .contract(chain.mine)
        .unwrap()
        .org;
    let other_caller = chain.world.person("other", org, &["*"], &[Claim::Deploy]).await;
    let ask = async |person: &TestUser, data: &str| {
        chain
            .world
            .ask(Some(person), "eth_call", json!([{"data": data}, "latest"]))
            .send()
            .await
    };
    // 10,100 empty calls.
    let bomb = "0x6127745b5f5f5f5f5f5afa50600190038060035700";
    assert_eq!(ask(&chain.caller, "0x00").await.status, 200);
    assert_eq!(ask(&chain.caller, bomb).await.status, 503);
    let answer = ask(&chain.caller, "0x00").await;
    assert_eq!(answer.status, 429, "{}", answer.text);
    assert_eq!(ask(&other_caller, "0x00").await.status, 200);
    let cheap = chain.ask("eth_getBalance", json!([chain.wallet, "latest"])).await;
    assert_eq!(cheap.status, 200, "{}", cheap.text);
}
