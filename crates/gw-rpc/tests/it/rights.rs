//! The rights that count: a touch is a read, each contract is checked in its own organization, and a named organization
//! bounds all checks (HD29, HD39). The attacks run against a real node where an opcode reads, and against a scripted
//! one where bytes of the node's answer could leak.

use crate::{
    live::erc20,
    real_reads::{Chain, chain},
    world::{Answer, World, account, scripted, signed},
};
use alloy_sol_types::{SolCall, sol};
use gw_store::record::{AccessInput, NewGroup, NewMembership};
use gw_testkit::{
    FakeNode, TestUser,
    fake_node::{self, NodeReply},
};
use gw_types::{Address, B256, Bytes, Claim, DenyReason, OrgId, U256};
use serde_json::{Value, json};

sol! {
    function balanceOf(address account) external view returns (uint256);
    function codeHashOf(address account) external view returns (bytes32);
    function forward(address target, bytes data) external payable returns (bytes);
    function pay(address to, uint256 value) external;
    function upgradeTo(address implementation) external;
}

const TOKEN: Address = Address::repeat_byte(0x11);
const NOBODY: Address = Address::repeat_byte(0x77);

impl World {
    /// Adds a membership in a new group.
    async fn joins(&self, person: &TestUser, org: OrgId, slug: &str, claims: &[Claim]) -> gw_types::GroupId {
        let access = AccessInput {
            allowed_methods: vec!["*".to_owned()],
            claims: claims.iter().copied().collect(),
            ..AccessInput::default()
        };
        self.fixture
            .change(async |tx| {
                let group = tx
                    .create_group(NewGroup::plain(org, slug.to_owned(), slug.to_owned()))
                    .await
                    .unwrap()
                    .id;
                tx.set_access(group, access).await.unwrap();
                tx.add_membership(NewMembership {
                    user: person.id,
                    group,
                    expires_at: None,
                })
                .await
                .unwrap();
                group
            })
            .await
    }
}

impl Chain {
    /// A contract of the caller's organization that the caller was not granted.
    async fn closed(&self, code: &[u8]) -> Address {
        let address = self.world.deploy(&leaving(code)).await;
        let org = self.world.fixture.feed.pin().snapshot.contract(self.mine).unwrap().org;
        self.world.contract(org, address, None, &[]).await;
        address
    }

    async fn runs(&self, to: Address, call: impl SolCall) -> Answer {
        self.ask(
            "eth_call",
            json!([{"to": to, "data": Bytes::from(call.abi_encode())}, "latest"]),
        )
        .await
    }

    /// Runs init code without sending it.
    async fn brings(&self, code: &[u8]) -> Answer {
        self.ask("eth_call", json!([{"data": Bytes::copy_from_slice(code)}, "latest"]))
            .await
    }
}

/// Init code that deploys up to 32 bytes of code.
fn leaving(code: &[u8]) -> Vec<u8> {
    let length = u8::try_from(code.len()).unwrap();
    // PUSHn code, PUSH0, MSTORE, then RETURN of its last bytes.
    [
        &[0x5f + length][..],
        code,
        &[0x5f, 0x52, 0x60, length, 0x60, 32 - length, 0xf3],
    ]
    .concat()
}

/// Stores the top of the stack in memory and returns it.
const RETURNS: [u8; 6] = [0x5f, 0x52, 0x60, 0x20, 0x5f, 0xf3];

/// HD29: BALANCE, EXTCODEHASH and EXTCODECOPY of a contract in the caller's organization without a grant.
#[tokio::test]
async fn rt5_a_touch_reads_no_contract_without_a_grant() {
    let chain = chain().await;
    let (probe, vault) = (chain.own("Probe").await, chain.closed(&[0x00, 0xca, 0xfe]).await);
    chain.world.anvil("anvil_setBalance", json!([vault, "0xbeef"])).await;
    chain.world.anvil("evm_mine", json!([])).await;
    chain.world.node.refresh_head().await.unwrap();
    let reason = DenyReason::ContractNotPermitted;
    chain
        .assert_denied(chain.runs(probe, balanceOfCall { account: vault }).await, reason)
        .await;
    chain
        .assert_denied(chain.runs(probe, codeHashOfCall { account: vault }).await, reason)
        .await;
    let push = |after: &[u8]| [&[0x73][..], vault.as_slice(), after, &RETURNS].concat();
    chain.assert_denied(chain.brings(&push(&[0x31])).await, reason).await;
    // EXTCODECOPY of 32 bytes to 0, then RETURN.
    let copy = [
        &[0x60, 0x20, 0x5f, 0x5f, 0x73][..],
        vault.as_slice(),
        &[0x3c, 0x60, 0x20, 0x5f, 0xf3],
    ]
    .concat();
    chain.assert_denied(chain.brings(&copy).await, reason).await;
    // A contract that the caller may read directly.
    let own = chain.runs(probe, balanceOfCall { account: chain.mine }).await;
    assert_eq!(own.status, 200, "{}", own.text);
}

/// HD29: the delegate of another user's EIP-7702 wallet. A plain wallet and a delegated one get the same answer.
#[tokio::test]
async fn rt15_extcodecopy_names_no_delegate() {
    let chain = chain().await;
    let stranger = account(2).address();
    let copy = [
        &[0x60, 0x20, 0x5f, 0x5f, 0x73][..],
        stranger.as_slice(),
        &[0x3c, 0x60, 0x20, 0x5f, 0xf3],
    ]
    .concat();
    let plain = chain.brings(&copy).await;
    chain
        .world
        .anvil("anvil_setCode", json!([stranger, format!("0xef0100{NOBODY:x}")]))
        .await;
    chain.world.anvil("evm_mine", json!([])).await;
    chain.world.node.refresh_head().await.unwrap();
    let delegated = chain.brings(&copy).await;
    delegated.assert_denied();
    assert_eq!(plain.text, delegated.text);
}

/// HD29: the cost of a value call reveals whether its receiver exists: by GAS, an estimate, the gas of an access list,
/// or a call that runs out of gas.
#[tokio::test]
async fn rt9_gas_does_not_reveal_whether_a_wallet_exists() {
    let chain = chain().await;
    let payer = chain.own("Payer").await;
    chain.world.anvil("anvil_setBalance", json!([payer, "0xffff"])).await;
    chain.world.anvil("evm_mine", json!([])).await;
    chain.world.node.refresh_head().await.unwrap();
    let exists = account(2).address();
    // The same number of zero bytes, which affect the cost of calldata.
    let mut nobody = exists;
    nobody.0[0] ^= 0x40;
    let answers_for = async |to: Address| {
        // GAS, CALL{value: 1}, GAS, and their difference.
        let call = [
            &[0x5a, 0x5f, 0x5f, 0x5f, 0x5f, 0x60, 0x01, 0x73][..],
            to.as_slice(),
            &[0x5f, 0xf1],
        ]
        .concat();
        let code = Bytes::from([&call[..], &[0x50, 0x5a, 0x90, 0x03], &RETURNS].concat());
        let measured = json!([{"from": chain.wallet, "value": "0x1", "data": code}, "latest"]);
        let pay = Bytes::from(
            payCall {
                to,
                value: U256::from(7),
            }
            .abi_encode(),
        );
        let pay = |gas: Value| json!([{"from": chain.wallet, "to": payer, "data": pay, "gas": gas}, "latest"]);
        // With these limits the gas does not suffice for a new account: the call does not even begin.
        let mut answers = vec![
            chain.ask("eth_call", measured).await.text,
            chain.ask("eth_estimateGas", pay(Value::Null)).await.text,
            chain.ask("eth_createAccessList", pay(Value::Null)).await.text,
        ];
        for gas in ["0xc350", "0xea60", "0xd6d8"] {
            answers.push(chain.ask("eth_call", pay(json!(gas))).await.text);
            answers.push(chain.ask("eth_estimateGas", pay(json!(gas))).await.text);
        }
        // SELFDESTRUCT with a balance.
        let end = [&[0x73][..], to.as_slice(), &[0xff]].concat();
        let end = json!([{"from": chain.wallet, "value": "0x1", "data": Bytes::from(end)}, "latest"]);
        answers.push(chain.ask("eth_estimateGas", end).await.text);
        answers
    };
    let (existing, missing) = (answers_for(exists).await, answers_for(nobody).await);
    assert_eq!(existing, missing);
    // Payments can still be estimated, and the estimate suffices.
    let pay = Bytes::from(
        payCall {
            to: nobody,
            value: U256::from(7),
        }
        .abi_encode(),
    );
    let call = |gas: Value| json!([{"from": chain.wallet, "to": payer, "data": pay, "gas": gas}, "latest"]);
    let gas = chain.ask("eth_estimateGas", call(Value::Null)).await;
    assert!(gas.body["result"].is_string(), "{}", gas.text);
    let bare = chain.world.bare("eth_call", call(gas.body["result"].clone())).await;
    assert_eq!(bare["result"], "0x", "{bare}");
}

/// HD30: an access list contains what the caller may see, and nothing that a hidden contract read.
#[tokio::test]
async fn rt12_an_access_list_names_nothing_hidden() {
    let chain = chain().await;
    let forwarder = chain.own("Forwarder").await;
    // SLOAD(5) and stop.
    let vault = chain.closed(&[0x60, 0x05, 0x54, 0x00]).await;
    let data = Bytes::from(
        forwardCall {
            target: vault,
            data: Bytes::new(),
        }
        .abi_encode(),
    );
    let answer = chain
        .ask(
            "eth_createAccessList",
            json!([{"to": forwarder, "data": data}, "latest"]),
        )
        .await;
    assert_eq!(answer.status, 200, "{}", answer.text);
    assert_eq!(answer.body["result"]["accessList"], json!([]), "{}", answer.text);
}

/// HD29, U1: a beacon with its implementation in any slot, upgraded through a forwarder that the caller may call.
#[tokio::test]
async fn rt30_a_beacon_is_not_upgraded_through_a_forwarder() {
    let chain = chain().await;
    let forwarder = chain.own("Forwarder").await;
    // Stores its argument, whichever function is called.
    let beacon = chain.closed(&[0x60, 0x04, 0x35, 0x5f, 0x55, 0x00]).await;
    let data = upgradeToCall {
        implementation: chain.mine,
    }
    .abi_encode()
    .into();
    let input = Bytes::from(forwardCall { target: beacon, data }.abi_encode());
    let nonce = chain.world.node.mined_nonce(chain.wallet).await.unwrap();
    let (raw, _) = signed(&account(0), nonce, Some(forwarder), 0, input);
    let answer = chain.ask("eth_sendRawTransaction", json!([raw])).await;
    chain.assert_denied(answer, DenyReason::UpgradeClaimRequired).await;
}

/// Decision 58: a frame that cannot be evaluated is a denial.
#[tokio::test]
async fn rto4_a_frame_of_unknown_type_is_denied() {
    let (world, fake) = scripted().await;
    let bank = world.fixture.create_org("bank").await;
    let caller = world.person("caller", bank, &["*"], &[]).await;
    world.link(&caller, account(0).address()).await;
    world.contract(bank, TOKEN, None, &[caller.group]).await;
    fake.script("debug_traceCall", |params| match fake_node::trace(params) {
        NodeReply::Result(mut tree) if tree.get("calls").is_none() && tree.get("type").is_some() => {
            tree["calls"] = json!([{"type": "EXTCALL", "from": TOKEN, "to": TOKEN, "input": "0x", "gasUsed": "0x0"}]);
            NodeReply::Result(tree)
        }
        reply => reply,
    });
    let call = json!([{"to": TOKEN, "data": "0x01020304"}, "latest"]);
    for method in ["eth_call", "eth_estimateGas", "eth_createAccessList"] {
        world
            .ask(Some(&caller), method, call.clone())
            .send()
            .await
            .assert_denied();
    }
    assert_eq!(
        world.fixture.access_records().last().unwrap().denial_reason,
        Some(DenyReason::TraceMismatch)
    );
    let (raw, _) = signed(&account(0), 0, Some(TOKEN), 0, Bytes::from_static(&[1, 2, 3, 4]));
    world
        .ask(Some(&caller), "eth_sendRawTransaction", json!([raw]))
        .send()
        .await
        .assert_denied();
}

/// HD29: `safe` and `finalized` are blocks of the past.
#[tokio::test]
async fn rt8_a_tag_below_the_head_is_history() {
    let (world, fake) = scripted().await;
    let bank = world.fixture.create_org("bank").await;
    let caller = world.person("caller", bank, &["*"], &[]).await;
    world.contract(bank, TOKEN, None, &[caller.group]).await;
    fake.set_result("eth_getBalance", json!("0x5"));
    let registered = gw_types::Clock::now(&world.fixture.clock).micros() / 1_000_000;
    for (number, time, shown) in [
        (99, registered - 1, false),
        (35, registered, false),
        (99, registered, true),
    ] {
        let mut block = fake_node::block(number, &format!("0x{}", "63".repeat(32)));
        block["timestamp"] = json!(format!("{time:#x}"));
        fake.set_result("eth_getBlockByNumber", block);
        for tag in ["safe", "finalized"] {
            let call = json!([{"to": TOKEN, "input": "0x12345678"}, tag]);
            for (method, params) in [("eth_getBalance", json!([TOKEN, tag])), ("eth_call", call)] {
                let answer = world.ask(Some(&caller), method, params).send().await;
                match shown {
                    true => assert_eq!(answer.status, 200, "{method} {tag} {number}: {}", answer.text),
                    false => answer.assert_denied(),
                }
            }
        }
    }
}

/// A stranger's transaction, and its receipt with a log of the token.
fn strangers() -> (Value, Value) {
    let hash = B256::repeat_byte(9);
    let from = Address::repeat_byte(0xbb);
    let log = json!({"address": TOKEN, "topics": [B256::repeat_byte(1)], "data": "0x", "blockHash": FakeNode::HEAD_HASH,
        "blockNumber": "0x64", "transactionHash": hash, "transactionIndex": "0x0", "logIndex": "0x0",
        "removed": false});
    let receipt = json!({"blockHash": FakeNode::HEAD_HASH, "blockNumber": "0x64", "contractAddress": null,
        "cumulativeGasUsed": "0x1", "effectiveGasPrice": "0x1", "from": from, "gasUsed": "0x1", "logs": [log],
        "logsBloom": format!("0x{}", "0".repeat(512)), "status": "0x1", "to": TOKEN, "transactionHash": hash,
        "transactionIndex": "0x0", "type": "0x2"});
    let transaction = json!({"blockHash": FakeNode::HEAD_HASH, "blockNumber": "0x64", "from": from, "to": TOKEN,
        "hash": hash, "gas": "0x1", "gasPrice": "0x1", "input": "0x", "nonce": "0x0", "transactionIndex": "0x0",
        "value": "0x0", "type": "0x0", "v": "0x1b", "r": "0x1", "s": "0x1"});
    (transaction, receipt)
}

/// HD39: a member of two organizations who names one sees nothing of the other, by header, path or personal URL.
#[tokio::test]
async fn rt28_a_named_organization_bounds_what_is_shown() {
    use crate::world::scripted_with;
    use gw_policy::{PolicySettings, snapshot::UrlReach};
    let settings = gw_rpc::RpcSettings {
        personal_urls: true,
        ..gw_rpc::RpcSettings::default()
    };
    let (world, fake) = scripted_with(settings, PolicySettings::default()).await;
    let (first, second) = (
        world.fixture.create_org("first").await,
        world.fixture.create_org("second").await,
    );
    let caller = world.person("caller", first, &["*"], &[Claim::Admin]).await;
    world.joins(&caller, second, "staff", &[]).await;
    world.contract(first, TOKEN, Some(&erc20()), &[caller.group]).await;
    world
        .personal_url(&caller, second, UrlReach::All, "of-the-second")
        .await;
    world.personal_url(&caller, first, UrlReach::All, "of-the-first").await;
    let (transaction, receipt) = strangers();
    let mut block = fake_node::block(100, FakeNode::HEAD_HASH);
    block["transactions"] = json!([transaction]);
    fake.set_result("eth_getTransactionByHash", transaction);
    fake.set_result("eth_getTransactionReceipt", receipt.clone());
    fake.set_result("eth_getBlockReceipts", json!([receipt]));
    fake.set_result("eth_getLogs", receipt["logs"].clone());
    fake.set_result("eth_getBlockByNumber", block);
    fake.set_result("eth_getBalance", json!("0x5"));
    let reads = [
        ("eth_getTransactionReceipt", json!([B256::repeat_byte(9)]), json!(null)),
        ("eth_getTransactionByHash", json!([B256::repeat_byte(9)]), json!(null)),
        ("eth_getBlockReceipts", json!(["0x64"]), json!([])),
        ("eth_getBlockTransactionCountByNumber", json!(["0x64"]), json!("0x0")),
        ("eth_getBalance", json!([TOKEN, "latest"]), json!("0x0")),
    ];
    let logs = json!([{"address": TOKEN, "fromBlock": "0x64"}]);
    for (method, params, nothing) in &reads {
        let body = json!({"jsonrpc": "2.0", "id": 1, "method": method, "params": params}).to_string();
        let in_org = |org: OrgId| {
            [
                world.raw(body.clone()).by(&caller).header("x-org-id", &org.to_string()),
                world.raw(body.clone()).by(&caller).path(&format!("/rpc/{org}")),
            ]
        };
        let by_url = |secret: &str| world.raw(body.clone()).path(&format!("/rpc/u/{secret}"));
        for shown in [
            Vec::from(in_org(first)),
            vec![by_url("of-the-first"), world.raw(body.clone()).by(&caller)],
        ] {
            for ask in shown {
                let answer = ask.send().await;
                assert_eq!(answer.status, 200, "{method}: {}", answer.text);
                assert_ne!(&answer.body["result"], nothing, "{method}");
            }
        }
        for ask in in_org(second).into_iter().chain([by_url("of-the-second")]) {
            let answer = ask.send().await;
            assert_eq!(
                (answer.status, &answer.body["result"]),
                (200, nothing),
                "{method}: {}",
                answer.text
            );
        }
    }
    for (org, shown) in [(first, true), (second, false)] {
        let ask = |method: &str, params: Value| {
            world
                .ask(Some(&caller), method, params)
                .header("x-org-id", &org.to_string())
                .answering()
        };
        let answer = ask("eth_getLogs", logs.clone()).await;
        let filter = ask("eth_newFilter", logs.clone()).await;
        if shown {
            assert_eq!(
                answer.body["result"].as_array().map(Vec::len),
                Some(1),
                "{}",
                answer.text
            );
            let rows = ask("eth_getFilterLogs", json!([filter.body["result"]])).await;
            assert_eq!(rows.body["result"].as_array().map(Vec::len), Some(1), "{}", rows.text);
        } else {
            answer.assert_denied();
            filter.assert_denied();
        }
    }
}
