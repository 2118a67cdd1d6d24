//! Reads against a real node: answers from traces, and attacks with EVM opcodes (spec/20 §11, §18).

use crate::world::{World, account, artifact, real_with};
use alloy_sol_types::{SolCall, SolValue, sol};
use gw_policy::PolicySettings;
use gw_testkit::{Anvil, TestUser};
use gw_types::{Address, Bytes, Claim, DenyReason, U256};
use serde_json::{Value, json};

sol! {
    function balanceOf(address account) external view returns (uint256);
    function transfer(address to, uint256 value) external returns (bool);
    function forward(address target, bytes data) external payable returns (bytes);
    function codeSizeOf(address account) external view returns (uint256);
    function codeHashOf(address account) external view returns (bytes32);
    function touchThenBalance(address account) external returns (uint256);
    function read(address target, bytes data, uint256 threshold) external view returns (bytes);
    function pay(address to, uint256 value) external;
}

/// Two organizations with a token each; the caller is a member of the first.
pub(crate) struct Chain {
    pub(crate) world: World,
    _anvil: Anvil,
    pub(crate) caller: TestUser,
    pub(crate) wallet: Address,
    pub(crate) mine: Address,
    pub(crate) theirs: Address,
}

pub(crate) async fn chain() -> Chain {
    chain_with(PolicySettings::default()).await
}

pub(crate) async fn chain_with(policy_settings: PolicySettings) -> Chain {
    chain_on(real_with(policy_settings).await).await
}

pub(crate) async fn chain_on((world, anvil): (World, Anvil)) -> Chain {
    let (bank, rival) = (
        world.fixture.create_org("bank").await,
        world.fixture.create_org("rival").await,
    );
    let caller = world.person("caller", bank, &["*"], &[Claim::Deploy]).await;
    let wallet = account(0).address();
    world.link(&caller, wallet).await;
    let token = token_code();
    let (mine, theirs) = (world.deploy(&token).await, world.deploy(&token).await);
    world
        .contract(bank, mine, Some(&artifact("DemoERC20").1), &[caller.group])
        .await;
    world.contract(rival, theirs, None, &[]).await;
    Chain {
        world,
        _anvil: anvil,
        caller,
        wallet,
        mine,
        theirs,
    }
}

fn token_code() -> Vec<u8> {
    let (code, _) = artifact("DemoERC20");
    let arguments = ("Token".to_owned(), "T".to_owned(), U256::from(1_000_000u64)).abi_encode_params();
    [code.to_vec(), arguments].concat()
}

impl Chain {
    /// A contract of the caller's organization.
    pub(crate) async fn own(&self, name: &str) -> Address {
        let address = self.world.deploy(&artifact(name).0).await;
        let org = self.world.fixture.feed.pin().snapshot.contract(self.mine).unwrap().org;
        self.world
            .contract(org, address, Some(&artifact(name).1), &[self.caller.group])
            .await;
        address
    }

    async fn call(&self, to: Address, call: impl SolCall) -> crate::world::Answer {
        self.ask(
            "eth_call",
            json!([{"to": to, "data": Bytes::from(call.abi_encode())}, "latest"]),
        )
        .await
    }

    pub(crate) async fn ask(&self, method: &str, params: Value) -> crate::world::Answer {
        self.world.ask(Some(&self.caller), method, params).send().await
    }

    /// Asserts a denial for this reason.
    pub(crate) async fn assert_denied(&self, answer: crate::world::Answer, reason: DenyReason) {
        answer.assert_denied();
        assert_eq!(
            self.world.fixture.access_records().last().unwrap().denial_reason,
            Some(reason)
        );
    }
}

/// X4: the answer is the output of the trace, and a revert has the reason in the trace.
#[tokio::test]
async fn x4_eth_call_is_answered_from_the_evaluated_trace() {
    let chain = chain().await;
    let holder = account(3).address();
    let answer = chain.call(chain.mine, balanceOfCall { account: holder }).await;
    assert_eq!(
        answer.body["result"],
        json!(Bytes::from(U256::from(1_000_000u64).abi_encode())),
        "{}",
        answer.text
    );
    let answer = chain
        .call(
            chain.mine,
            transferCall {
                to: holder,
                value: U256::from(1),
            },
        )
        .await;
    assert_eq!(
        (answer.status, &answer.body["error"]["code"]),
        (200, &json!(3)),
        "{}",
        answer.text
    );
    let words = answer.body["error"]["message"].as_str().unwrap();
    assert!(
        words.starts_with("execution reverted: ") && answer.body["error"]["data"].is_string(),
        "{}",
        answer.text
    );
}

/// X6: frames below an own contract are checked like the call itself.
#[tokio::test]
async fn x6_frames_into_foreign_and_unowned_code_are_denied() {
    let chain = chain().await;
    let forwarder = chain.own("Forwarder").await;
    let read = |target| forwardCall {
        target,
        data: balanceOfCall { account: chain.wallet }.abi_encode().into(),
    };
    let answer = chain.call(forwarder, read(chain.mine)).await;
    assert_eq!(answer.status, 200, "{}", answer.text);
    chain
        .assert_denied(chain.call(forwarder, read(chain.theirs)).await, DenyReason::CrossOrg)
        .await;
    let unowned = chain.world.deploy(&token_code()).await;
    chain
        .assert_denied(chain.call(forwarder, read(unowned)).await, DenyReason::Unregistered)
        .await;
}

/// B8, X5, HD6: accesses that no call frame shows are found in the touches.
#[tokio::test]
async fn b8_hd6_state_opcodes_find_nothing_out_of_reach() {
    let chain = chain().await;
    let probe = chain.own("Probe").await;
    let hidden = account(2).address();
    let theirs = chain.theirs;
    chain
        .assert_denied(
            chain.call(probe, codeSizeOfCall { account: theirs }).await,
            DenyReason::CrossOrg,
        )
        .await;
    chain
        .assert_denied(
            chain.call(probe, codeHashOfCall { account: theirs }).await,
            DenyReason::CrossOrg,
        )
        .await;
    chain
        .assert_denied(
            chain.call(probe, balanceOfCall { account: theirs }).await,
            DenyReason::CrossOrg,
        )
        .await;
    // HD6: a wallet and a balance in one run are denied, whether the wallet is linked or not.
    let answers = [
        chain.call(probe, balanceOfCall { account: hidden }).await.text,
        chain
            .call(
                probe,
                balanceOfCall {
                    account: Address::repeat_byte(0x77),
                },
            )
            .await
            .text,
        chain.call(probe, touchThenBalanceCall { account: hidden }).await.text,
    ];
    assert!(
        answers.iter().all(|answer| answer == crate::world::DENIED),
        "{answers:?}"
    );
    let own = chain.call(probe, balanceOfCall { account: chain.wallet }).await;
    assert_eq!(own.status, 200, "{}", own.text);
}

/// B1, B8: init code is checked like other code.
#[tokio::test]
async fn b1_b8_init_code_reaches_nothing_out_of_reach() {
    let chain = chain().await;
    let theirs = chain.theirs.as_slice();
    // PUSH20 <theirs>, then the opcode.
    let with = |before: &[u8], after: &[u8]| [before, &[0x73], theirs, after].concat();
    let zeros = [0x5f; 6];
    for (name, code) in [
        ("BALANCE", with(&[], &[0x31])),
        ("EXTCODESIZE", with(&[], &[0x3b])),
        ("EXTCODEHASH", with(&[], &[0x3f])),
        ("EXTCODECOPY", with(&zeros[..3], &[0x3c])),
        ("SELFDESTRUCT", with(&[], &[0xff])),
        ("CALL", with(&zeros[..5], &[0x61, 0xff, 0xff, 0xf1])),
        ("CALLCODE", with(&zeros[..5], &[0x61, 0xff, 0xff, 0xf2])),
        ("DELEGATECALL", with(&zeros[..4], &[0x61, 0xff, 0xff, 0xf4])),
        ("STATICCALL", with(&zeros[..4], &[0x61, 0xff, 0xff, 0xfa])),
    ] {
        let answer = chain
            .ask("eth_call", json!([{"data": Bytes::from(code)}, "latest"]))
            .await;
        assert_eq!(answer.text, crate::world::DENIED, "{name}");
    }
    let harmless = chain.ask("eth_call", json!([{"data": "0x5f5ff3"}, "latest"])).await;
    assert_eq!(harmless.status, 200, "{}", harmless.text);
}

/// HD3, X13, B5: a call that behaves at full gas and steals in a gas window is traced and evaluated in every window.
#[tokio::test]
async fn hd3_an_estimate_evaluates_every_gas_window() {
    let chain = chain().await;
    let branch = chain.own("GasBranch").await;
    let steal = readCall {
        target: chain.theirs,
        data: balanceOfCall { account: chain.wallet }.abi_encode().into(),
        threshold: U256::from(1_000_000),
    };
    let data = Bytes::from(steal.abi_encode());
    let call = |gas: Value| json!([{"to": branch, "data": data, "gas": gas}, "latest"]);
    let behaves = chain.ask("eth_call", call(json!("0x1c9c380"))).await;
    assert_eq!(behaves.status, 200, "{}", behaves.text);
    chain
        .assert_denied(
            chain.ask("eth_call", call(json!("0xf4240"))).await,
            DenyReason::CrossOrg,
        )
        .await;
    chain
        .assert_denied(
            chain.ask("eth_estimateGas", call(Value::Null)).await,
            DenyReason::CrossOrg,
        )
        .await;
}

/// HD3: estimates suffice, a plain payment costs 21000, and a failure returns its reason.
#[tokio::test]
async fn hd3_estimates_suffice() {
    let chain = chain().await;
    let payment = json!([{"from": chain.wallet, "to": account(2).address(), "value": "0x1"}]);
    assert_eq!(chain.ask("eth_estimateGas", payment).await.body["result"], "0x5208");
    let data = |call: Vec<u8>| json!([{"from": chain.wallet, "to": chain.mine, "data": Bytes::from(call)}]);
    let none = transferCall {
        to: account(2).address(),
        value: U256::ZERO,
    }
    .abi_encode();
    let answer = chain.ask("eth_estimateGas", data(none.clone())).await;
    let gas = answer.body["result"]
        .as_str()
        .unwrap_or_else(|| panic!("{}", answer.text));
    let run = json!([{"from": chain.wallet, "to": chain.mine, "data": Bytes::from(none), "gas": gas}, "latest"]);
    assert!(chain.ask("eth_call", run).await.body.get("result").is_some());
    let too_much = transferCall {
        to: account(2).address(),
        value: U256::MAX,
    }
    .abi_encode();
    let answer = chain.ask("eth_estimateGas", data(too_much)).await;
    assert_eq!(
        (answer.status, &answer.body["error"]["code"]),
        (200, &json!(3)),
        "{}",
        answer.text
    );
    // Gas that the named sender cannot pay for at the named price is not tried.
    let priced =
        json!([{"from": chain.wallet, "to": account(2).address(), "value": "0x1", "maxFeePerGas": "0x77359400"}]);
    assert_eq!(chain.ask("eth_estimateGas", priced).await.body["result"], "0x5208");
}

/// B24: contracts pay out to wallets.
#[tokio::test]
async fn b24_a_contract_may_pay_a_wallet() {
    let chain = chain().await;
    let payer = chain.own("Payer").await;
    chain.world.anvil("anvil_setBalance", json!([payer, "0xffff"])).await;
    let answer = chain
        .call(
            payer,
            payCall {
                to: account(2).address(),
                value: U256::from(7),
            },
        )
        .await;
    assert_eq!(answer.body["result"], "0x", "{}", answer.text);
}

/// X10, decision 38: the senders that a call may name.
#[tokio::test]
async fn x10_a_call_runs_as_an_address_of_the_callers() {
    let chain = chain().await;
    let ask = |from: Value| {
        chain.ask(
            "eth_call",
            json!([{"from": from, "to": chain.mine, "data": "0x18160ddd"}, "latest"]),
        )
    };
    for from in [json!(chain.wallet), json!(Address::ZERO), Value::Null] {
        assert_eq!(ask(from).await.status, 200);
    }
    let answer = ask(json!(account(2).address())).await;
    assert_eq!(answer.error(), (400, -32602));
    assert!(answer.text.contains("/eth/link"), "{}", answer.text);
}
