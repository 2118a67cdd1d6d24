//! HD2 on a real node: a transaction that behaves under the trace and steals when it is mined gains nothing.

use crate::{
    real_reads::{Chain, chain_with},
    world::{Answer, account, artifact, signed, signed_with},
};
use alloy_consensus::TxEip1559;
use alloy_primitives::{TxKind, keccak256};
use alloy_sol_types::{SolCall, SolValue, sol};
use gw_audit::{Record, SecurityKind};
use gw_policy::{
    PolicySettings,
    settings::{Deployments, MinedTrace},
};
use gw_rpc::BlockValidator;
use gw_store::record::{NewGrant, NewWatch, SendStart, SharedInfraInput};
use gw_types::{Address, B256, Bytes, DenyReason, U256};
use serde_json::{Value, json};
use std::sync::Arc;

sol! {
    function balanceOf(address account) external view returns (uint256);
    function transfer(address to, uint256 value) external returns (bool);
    function take(address target, bytes data, uint256 from) external;
    function aim(address to) external;
    function loot() external view returns (uint256);
    function create() external returns (address child);
    function carry(address target, bytes data, uint256 from, address friend) external returns (uint256 out);
    function bury(address target, bytes data, uint256 from, uint256 calls) external;
}

/// The balance of the owner of the rival's token: the secret.
const SECRET: u64 = 1_000_000;

async fn scene(mined_trace: MinedTrace) -> (Chain, Address) {
    let chain = chain_with(PolicySettings {
        mined_trace,
        ..PolicySettings::default()
    })
    .await;
    if mined_trace != MinedTrace::Off {
        chain
            .world
            .node
            .set_block_gate(Arc::new(BlockValidator::new(&chain.world.sends)));
        chain.world.node.refresh_head().await.unwrap();
    }
    let latch = chain.own("Latch").await;
    (chain, latch)
}

impl Chain {
    async fn nonce(&self) -> u64 {
        self.world.node.mined_nonce(self.wallet).await.unwrap()
    }

    async fn raw(&self, nonce: u64, to: Option<Address>, input: impl Into<Bytes>) -> (Answer, B256) {
        let (raw, hash) = signed(&account(0), nonce, to, 0, input.into());
        (self.ask("eth_sendRawTransaction", json!([raw])).await, hash)
    }

    /// The theft: it waits in the pool for a block in which no trace has run.
    async fn steal(&self, latch: Address) -> B256 {
        let data = balanceOfCall {
            account: account(3).address(),
        }
        .abi_encode()
        .into();
        let target = self.theirs;
        self.steal_by(latch, |from| takeCall { target, data, from }.abi_encode())
            .await
    }

    /// A call of `take` that steals from a block on: it is authorized before that block, and mined in it or later.
    async fn steal_by(&self, latch: Address, take: impl FnOnce(U256) -> Vec<u8>) -> B256 {
        let (nonce, head) = (self.nonce().await, self.world.node.head().unwrap().number);
        let take = take(U256::from(head + 3));
        self.world.anvil("evm_setAutomine", json!([false])).await;
        let (raw, hash) = signed(&account(0), nonce, Some(latch), 0, take.into());
        let answer = self.ask("eth_sendRawTransaction", json!([raw])).await;
        assert_eq!(answer.body["result"], json!(hash), "it behaves: {}", answer.text);
        self.world.anvil("anvil_dropAllTransactions", json!([])).await;
        self.world.anvil("anvil_mine", json!(["0x4"])).await;
        assert_eq!(
            self.world.bare("eth_sendRawTransaction", json!([raw])).await["result"],
            json!(hash)
        );
        self.world.anvil("evm_mine", json!([])).await;
        self.world.anvil("evm_setAutomine", json!([true])).await;
        self.world.mined(head + 5).await;
        hash
    }

    /// Asserts that no method shows the transaction to its sender.
    async fn assert_withheld(&self, hash: B256, emitter: Address) {
        self.world.fixture.clock.pass(2);
        let bare = self.world.bare("eth_getTransactionReceipt", json!([hash])).await["result"].clone();
        assert_eq!(bare["status"], json!("0x1"), "the attack is mined and succeeds");
        let (number, hash_of_block) = (&bare["blockNumber"], &bare["blockHash"]);
        for (method, params) in [
            ("eth_getTransactionReceipt", json!([hash])),
            ("eth_getTransactionByHash", json!([hash])),
            ("eth_getTransactionByBlockNumberAndIndex", json!([number, "0x0"])),
            (
                "eth_getTransactionByBlockHashAndIndex",
                json!([hash_of_block, bare["transactionIndex"]]),
            ),
        ] {
            let shown = self.ask(method, params).await;
            let is_shown =
                shown.body["result"]["hash"] == json!(hash) || shown.body["result"]["transactionHash"] == json!(hash);
            assert!(shown.status == 200 && !is_shown, "{method}: {}", shown.text);
            if method != "eth_getTransactionByBlockNumberAndIndex" {
                assert_eq!(shown.body["result"], Value::Null, "{method}");
            }
        }
        for method in ["eth_getBlockReceipts", "eth_getBlockByNumber", "eth_getBlockByHash"] {
            let block = if method == "eth_getBlockByHash" {
                hash_of_block
            } else {
                number
            };
            let params = if method == "eth_getBlockReceipts" {
                json!([block])
            } else {
                json!([block, true])
            };
            let shown = self.ask(method, params).await;
            assert_eq!(shown.status, 200, "{method}: {}", shown.text);
            assert!(!shown.text.contains(&format!("{hash:#x}")), "{method}: {}", shown.text);
        }
        let logs = self
            .ask(
                "eth_getLogs",
                json!([{"address": emitter, "fromBlock": number, "toBlock": number}]),
            )
            .await;
        assert!(!logs.text.contains(&format!("{hash:#x}")), "{}", logs.text);
        let trace = self
            .ask("debug_traceTransaction", json!([hash, {"tracer": "callTracer"}]))
            .await;
        trace.assert_denied();
    }

    async fn loot(&self, latch: Address) -> Answer {
        let data = Bytes::from(lootCall {}.abi_encode());
        self.ask("eth_call", json!([{"to": latch, "data": data}, "latest"]))
            .await
    }

    async fn violations(&self) -> usize {
        let records = self.world.fixture.records();
        let is_violation = |record: &&Record| match record {
            Record::Security(event) => event.kind == SecurityKind::MinedTraceViolation,
            _ => false,
        };
        records.iter().filter(is_violation).count()
    }
}

fn number(value: u64) -> Value {
    json!(Bytes::from(U256::from(value).abi_encode()))
}

/// The attack succeeds without the rule.
#[tokio::test]
async fn hd2_without_the_rule_the_loot_is_read() {
    let (chain, latch) = scene(MinedTrace::Off).await;
    chain.steal(latch).await;
    assert_eq!(chain.loot(latch).await.body["result"], number(SECRET));
}

/// With the rule, nobody sees what the theft wrote or emitted, nothing is quarantined, and its sender can send no more,
/// until an administrator clears both.
#[tokio::test]
async fn hd2_a_theft_in_the_block_is_found_before_anybody_reads() {
    let (chain, latch) = scene(MinedTrace::Quarantine).await;
    let hash = chain.steal(latch).await;
    assert_eq!(chain.violations().await, 1);
    assert_eq!(chain.loot(latch).await.body["result"], number(0));
    // An administrator sees no more, nor does a read of the slot or the receipt of the thief reveal it.
    let org = chain.world.fixture.feed.pin().snapshot.contract(latch).unwrap().org;
    let boss = chain.world.person("boss", org, &["*"], &[gw_types::Claim::Admin]).await;
    let granted = chain.world.fixture.feed.pin().snapshot.contract(latch).unwrap().id;
    chain
        .world
        .fixture
        .change(async |tx| tx.create_grant(NewGrant::full(granted, boss.group)).await.unwrap())
        .await;
    let slot = json!([latch, B256::ZERO, "latest"]);
    let read = chain
        .world
        .ask(Some(&boss), "eth_getStorageAt", slot.clone())
        .send()
        .await;
    assert_eq!(read.body["result"], json!(B256::ZERO), "{}", read.text);
    chain.assert_withheld(hash, latch).await;
    // A call through another contract does not reveal it either.
    let forwarder = chain.own("Forwarder").await;
    sol! { function forward(address target, bytes data) external payable returns (bytes); }
    let through = forwardCall {
        target: latch,
        data: lootCall {}.abi_encode().into(),
    }
    .abi_encode();
    let through = chain
        .ask(
            "eth_call",
            json!([{"to": forwarder, "data": Bytes::from(through)}, "latest"]),
        )
        .await;
    assert!(
        through.status == 200 && !through.text.contains(&format!("{SECRET:064x}")),
        "{}",
        through.text
    );
    // The sender may still read, but not send.
    let nothing = transferCall {
        to: account(1).address(),
        value: U256::ZERO,
    }
    .abi_encode();
    let (answer, _) = chain.raw(chain.nonce().await, Some(chain.mine), nothing.clone()).await;
    chain.assert_denied(answer, DenyReason::TraceMismatch).await;
    let call = json!([{"to": chain.mine, "data": "0x18160ddd"}, "latest"]);
    assert_eq!(chain.ask("eth_call", call).await.status, 200);
    // A colleague cannot relay a send of the sender either.
    let colleague = chain.world.person("colleague", org, &["*"], &[]).await;
    chain.world.link(&chain.caller, chain.wallet).await;
    let (raw, _) = signed(
        &account(0),
        chain.nonce().await,
        Some(chain.mine),
        0,
        nothing.clone().into(),
    );
    chain
        .world
        .ask(Some(&colleague), "eth_sendRawTransaction", json!([raw]))
        .send()
        .await
        .assert_denied();
    // An administrator clears it.
    let reads = chain.world.fixture.store.read();
    let suspended = reads.list_suspensions().await.unwrap();
    assert!(reads.list_quarantines().await.unwrap().is_empty(), "nothing is closed");
    assert_eq!(suspended.len(), 1);
    let name = chain
        .world
        .fixture
        .feed
        .pin()
        .snapshot
        .user(chain.caller.id)
        .unwrap()
        .external_id
        .clone();
    let suspension = (
        &suspended[0].external_id,
        suspended[0].tx_hash,
        suspended[0].reason.as_str(),
    );
    assert_eq!(suspension, (&name, hash, "cross_org"));
    let convicted = reads.list_convictions().await.unwrap();
    let rival = chain
        .world
        .fixture
        .feed
        .pin()
        .snapshot
        .contract(chain.theirs)
        .unwrap()
        .org;
    assert_eq!((convicted.len(), &convicted[0].wronged), (1, &vec![rival]));
    chain
        .world
        .fixture
        .change(async |tx| {
            tx.clear_suspension(suspended[0].id, "a test").await.unwrap();
            tx.clear_conviction(convicted[0].id, None, "a test").await.unwrap();
        })
        .await;
    assert_eq!(chain.loot(latch).await.body["result"], number(SECRET));
    let receipt = chain.ask("eth_getTransactionReceipt", json!([hash])).await;
    assert_eq!(
        (
            &receipt.body["result"]["status"],
            &receipt.body["result"]["logs"][0]["address"]
        ),
        (&json!("0x1"), &json!(latch))
    );
    let (answer, sent) = chain.raw(chain.nonce().await, Some(chain.mine), nothing).await;
    assert_eq!(answer.body["result"], json!(sent), "{}", answer.text);
}

/// RT2a, HD28: no method shows the loot to the thief or to a paid accomplice: not as a balance, not as an output, not
/// as an event.
#[tokio::test]
async fn rt2a_no_method_shows_the_loot() {
    let (chain, _) = scene(MinedTrace::Quarantine).await;
    let courier = chain.own("Courier").await;
    let probe = chain.own("Probe").await;
    let funds = json!([courier, "0x8ac7230489e80000"]);
    chain.world.anvil("anvil_setBalance", funds).await;
    let org = chain.world.fixture.feed.pin().snapshot.contract(courier).unwrap().org;
    let friend = chain.world.person("friend", org, &["*"], &[]).await;
    let pocket = account(2).address();
    chain.world.link(&friend, pocket).await;
    // The denials below are for the violation, not for a missing grant.
    let granted = chain.world.fixture.feed.pin().snapshot.contract(probe).unwrap().id;
    chain
        .world
        .fixture
        .change(async |tx| tx.create_grant(NewGrant::full(granted, friend.group)).await.unwrap())
        .await;
    let shown = chain.ask("eth_getBalance", json!([chain.wallet, "latest"])).await;
    assert_ne!(shown.body["result"], json!("0x0"), "before");
    let data: Bytes = balanceOfCall {
        account: account(3).address(),
    }
    .abi_encode()
    .into();
    let target = chain.theirs;
    let hash = chain
        .steal_by(courier, |from| {
            carryCall {
                target,
                data,
                from,
                friend: pocket,
            }
            .abi_encode()
        })
        .await;
    assert_eq!(chain.violations().await, 1);
    chain.assert_withheld(hash, courier).await;
    let balance = |account| Bytes::from(balanceOfCall { account }.abi_encode());
    for (person, wallet) in [(&chain.caller, chain.wallet), (&friend, pocket)] {
        let ask = async |method: &str, params: Value| chain.world.ask(Some(person), method, params).send().await;
        let actual = chain.world.bare("eth_getBalance", json!([wallet, "latest"])).await["result"].clone();
        let before = json!([wallet, format!("{:#x}", chain.world.node.head().unwrap().number - 1)]);
        let before = chain.world.bare("eth_getBalance", before).await["result"].clone();
        let shown = ask("eth_getBalance", json!([wallet, "latest"])).await;
        assert!(
            actual != before && shown.body["result"] == before,
            "{}: {actual}, {before}",
            shown.text
        );
        let probed = ask("eth_call", json!([{"to": probe, "data": balance(wallet)}, "latest"])).await;
        let before: U256 = serde_json::from_value(before).unwrap();
        assert_eq!(
            probed.body["result"],
            json!(Bytes::from(before.abi_encode())),
            "{}",
            probed.text
        );
        // Whether the wallet can pay must reveal no more: it can pay what it has without the loot.
        for (value, pays) in [(before, true), (before + U256::from(1), false)] {
            let call = json!([{"from": wallet, "to": Address::repeat_byte(0x55), "value": value}]);
            let answer = ask("eth_estimateGas", call).await;
            assert_eq!(answer.body["result"].is_string(), pays, "{}", answer.text);
        }
    }
    // A colleague who sent nothing can still use the contracts.
    let call = json!([{"to": probe, "data": balance(Address::ZERO)}, "latest"]);
    assert_eq!(
        chain.world.ask(Some(&friend), "eth_call", call).send().await.status,
        200
    );
}

/// RT2c, HD28, HD36: if the trace cannot be read to its end, the logs are withheld with the rest.
#[tokio::test]
async fn rt2c_an_unreadable_trace_withholds_its_logs() {
    let (chain, _) = scene(MinedTrace::Quarantine).await;
    let courier = chain.own("Courier").await;
    let data: Bytes = balanceOfCall {
        account: account(3).address(),
    }
    .abi_encode()
    .into();
    let target = chain.theirs;
    let calls = U256::from(10_100);
    let hash = chain
        .steal_by(courier, |from| {
            buryCall {
                target,
                data,
                from,
                calls,
            }
            .abi_encode()
        })
        .await;
    assert_eq!(chain.violations().await, 1);
    chain.assert_withheld(hash, courier).await;
    assert!(chain.world.fixture.feed.pin().snapshot.is_suspended(chain.caller.id));
    let convictions = chain.world.fixture.store.read().list_convictions().await.unwrap();
    assert_eq!(
        (convictions[0].reason.as_str(), convictions[0].wronged.len()),
        ("trace_depth_exceeded", 0),
        "super clears"
    );
}

/// RT20, HD37: an administrator deletes the sender while the theft is pending. The theft is validated all the same, as
/// one of a user without rights, and a user who enrolls again under the same name is suspended.
#[tokio::test]
async fn rt20_a_deleted_sender_is_found_all_the_same() {
    let (chain, latch) = scene(MinedTrace::Quarantine).await;
    let user = chain.caller.id;
    let name = chain
        .world
        .fixture
        .feed
        .pin()
        .snapshot
        .user(user)
        .unwrap()
        .external_id
        .clone();
    let (nonce, head) = (chain.nonce().await, chain.world.node.head().unwrap().number);
    let data = balanceOfCall {
        account: account(3).address(),
    }
    .abi_encode()
    .into();
    let take = takeCall {
        target: chain.theirs,
        data,
        from: U256::from(head + 3),
    }
    .abi_encode();
    chain.world.anvil("evm_setAutomine", json!([false])).await;
    let (raw, hash) = signed(&account(0), nonce, Some(latch), 0, take.into());
    let answer = chain.ask("eth_sendRawTransaction", json!([raw])).await;
    assert_eq!(answer.body["result"], json!(hash), "{}", answer.text);
    chain.world.anvil("anvil_dropAllTransactions", json!([])).await;
    chain.world.anvil("anvil_mine", json!(["0x4"])).await;
    chain
        .world
        .fixture
        .change(async |tx| tx.delete_user(user).await.unwrap())
        .await;
    // Past the gateway: anybody with the signed bytes can send them.
    chain.world.bare("eth_sendRawTransaction", json!([raw])).await;
    chain.world.anvil("evm_mine", json!([])).await;
    chain.world.mined(head + 5).await;
    assert_eq!(chain.violations().await, 1);
    let snapshot = chain.world.fixture.feed.pin().snapshot;
    assert_eq!(snapshot.convictions(hash).len(), 1);
    assert!(snapshot.withheld_of(latch, u64::MAX).next().is_some());
    let suspensions = chain.world.fixture.store.read().list_suspensions().await.unwrap();
    assert_eq!((suspensions.len(), &suspensions[0].external_id), (1, &name));
}

/// With `Alert` the violation is reported, and nothing else changes.
#[tokio::test]
async fn hd2_an_alert_withholds_nothing() {
    let (chain, latch) = scene(MinedTrace::Alert).await;
    chain.steal(latch).await;
    assert_eq!(chain.loot(latch).await.body["result"], number(SECRET));
    assert_eq!(chain.violations().await, 1);
}

/// Honest sends suspend nobody: payments, deployments, and calls of contracts that were deployed in the same block or
/// the one before.
#[tokio::test]
async fn hd2_honest_sends_pass() {
    let (chain, latch) = scene(MinedTrace::Quarantine).await;
    let nonce = chain.nonce().await;
    let send = async |nonce, to, input: Vec<u8>| {
        let (answer, hash) = chain.raw(nonce, to, input).await;
        assert_eq!(answer.body["result"], json!(hash), "{}", answer.text);
    };
    send(nonce, Some(account(1).address()), Vec::new()).await;
    // Deployed and called in one block: the trace of the call sees no code there.
    chain.world.anvil("evm_setAutomine", json!([false])).await;
    let factory = chain.wallet.create(nonce + 1);
    send(nonce + 1, None, artifact("Factory").0.to_vec()).await;
    send(nonce + 2, Some(factory), createCall {}.abi_encode()).await;
    chain.world.anvil("evm_mine", json!([])).await;
    chain.world.anvil("evm_setAutomine", json!([true])).await;
    chain.world.node.refresh_head().await.unwrap();
    // Another call, before the contract is registered.
    send(
        nonce + 3,
        Some(latch),
        takeCall {
            target: chain.mine,
            data: lootCall {}.abi_encode().into(),
            from: U256::MAX,
        }
        .abi_encode(),
    )
    .await;
    let reads = chain.world.fixture.store.read();
    // Anvil answers before the transaction is mined.
    for _ in 0..250 {
        chain.world.node.refresh_head().await.unwrap();
        if reads.watched_sends(u64::MAX).await.unwrap().is_empty() {
            break;
        }
        tokio::time::sleep(std::time::Duration::from_millis(20)).await;
    }
    assert_eq!(chain.violations().await, 0);
    assert!(reads.list_suspensions().await.unwrap().is_empty() && reads.list_quarantines().await.unwrap().is_empty());
    assert!(
        reads.watched_sends(u64::MAX).await.unwrap().is_empty(),
        "every send is found in its block"
    );
}

/// HD2: with `DEPLOYMENTS=approved`, code that is not approved cannot be deployed through the gateway.
#[tokio::test]
async fn hd2_only_approved_code_is_deployed() {
    let chain = chain_with(PolicySettings {
        deployments: Deployments::Approved,
        ..PolicySettings::default()
    })
    .await;
    let (code, nonce) = (artifact("Latch").0, chain.nonce().await);
    let (answer, _) = chain.raw(nonce, None, code.to_vec()).await;
    chain.assert_denied(answer, DenyReason::CodehashMismatch).await;
    assert_eq!(chain.nonce().await, nonce);
    let (hash, size) = (keccak256(&code), u32::try_from(code.len()).unwrap());
    chain
        .world
        .fixture
        .change(async |tx| tx.approve_code(hash, size, "latch".into()).await.unwrap())
        .await;
    let (answer, hash) = chain.raw(nonce, None, code.to_vec()).await;
    assert_eq!(answer.body["result"], json!(hash), "{}", answer.text);
    // An existing contract cannot deploy other code.
    let factory = chain.own("Factory").await;
    let (answer, _) = chain.raw(nonce + 1, Some(factory), createCall {}.abi_encode()).await;
    chain.assert_denied(answer, DenyReason::CodehashMismatch).await;
}

/// HD38: somebody changes the target of a contract in front of an honest transaction, which then enters another
/// organization's contract. The transaction is withheld, but its sender may still send. A sender whose code checks the
/// block number is suspended as before.
#[tokio::test]
async fn hd38_a_change_by_others_in_front_suspends_nobody() {
    let (chain, latch) = scene(MinedTrace::Quarantine).await;
    let world = &chain.world;
    // A contract that everybody may call and configure.
    let switch = world.deploy(&artifact("Switch").0).await;
    let shared = SharedInfraInput {
        name: "switch".into(),
        description: String::new(),
        codehash: None,
        implementation_codehash: None,
    };
    world
        .fixture
        .change(async |tx| tx.create_shared_infra(switch, shared.clone()).await.unwrap())
        .await;
    let rival = world.fixture.feed.pin().snapshot.contract(chain.theirs).unwrap().org;
    let framer = world.person("framer", rival, &["*"], &[]).await;
    world.link(&framer, account(6).address()).await;
    let (nonce, head) = (chain.nonce().await, world.node.head().unwrap().number);
    let ask = balanceOfCall {
        account: account(3).address(),
    }
    .abi_encode();
    world.anvil("evm_setAutomine", json!([false])).await;
    let (answer, hash) = chain.raw(nonce, Some(switch), ask).await;
    assert_eq!(
        answer.body["result"],
        json!(hash),
        "it calls nobody yet: {}",
        answer.text
    );
    let aim = TxEip1559 {
        chain_id: 31337,
        nonce: 0,
        gas_limit: 100_000,
        max_fee_per_gas: 100_000_000_000,
        max_priority_fee_per_gas: 90_000_000_000,
        to: TxKind::Call(switch),
        input: aimCall { to: chain.theirs }.abi_encode().into(),
        ..TxEip1559::default()
    };
    let (raw, aim_hash) = signed_with(&account(6), aim);
    let answer = world
        .ask(Some(&framer), "eth_sendRawTransaction", json!([raw]))
        .send()
        .await;
    assert_eq!(answer.body["result"], json!(aim_hash), "{}", answer.text);
    let aim_hash = json!(aim_hash);
    world.anvil("evm_mine", json!([])).await;
    world.anvil("evm_setAutomine", json!([true])).await;
    world.mined(head + 1).await;
    let index = async |hash: Value| {
        world.bare("eth_getTransactionByHash", json!([hash])).await["result"]["transactionIndex"].clone()
    };
    assert_eq!(
        (index(aim_hash).await, index(json!(hash)).await),
        (json!("0x0"), json!("0x1"))
    );
    assert_eq!(
        chain.violations().await,
        1,
        "the attack: it entered the rival's contract"
    );
    assert_eq!(world.fixture.feed.pin().snapshot.convictions(hash).len(), 1);
    assert!(!world.fixture.feed.pin().snapshot.is_suspended(chain.caller.id));
    assert!(world.fixture.store.read().list_suspensions().await.unwrap().is_empty());
    chain.steal(latch).await;
    assert!(world.fixture.feed.pin().snapshot.is_suspended(chain.caller.id));
}

/// HD38: an administrator removes a grant while a send that it permitted is pending. The send did what its trace had
/// shown: nothing is withheld, nobody is suspended. The next send needs the newest rights.
#[tokio::test]
async fn hd38_a_grant_that_ends_before_the_block_convicts_nobody() {
    let (chain, _) = scene(MinedTrace::Quarantine).await;
    let world = &chain.world;
    let (nonce, head) = (chain.nonce().await, world.node.head().unwrap().number);
    let give = || {
        transferCall {
            to: account(3).address(),
            value: U256::ZERO,
        }
        .abi_encode()
    };
    world.anvil("evm_setAutomine", json!([false])).await;
    let (answer, hash) = chain.raw(nonce, Some(chain.mine), give()).await;
    assert_eq!(answer.body["result"], json!(hash), "{}", answer.text);
    let (id, group) = (
        world.fixture.feed.pin().snapshot.contract(chain.mine).unwrap().id,
        chain.caller.group,
    );
    world
        .fixture
        .change(async |tx| tx.delete_grant(id, group).await.unwrap())
        .await;
    world.anvil("anvil_mine", json!(["0x3", "0x1"])).await;
    world.anvil("evm_setAutomine", json!([true])).await;
    world.mined(head + 3).await;
    assert_eq!(
        world.bare("eth_getTransactionReceipt", json!([hash])).await["result"]["status"],
        json!("0x1")
    );
    assert_eq!(chain.violations().await, 0);
    assert!(!world.fixture.feed.pin().snapshot.is_suspended(chain.caller.id));
    assert!(world.fixture.store.read().list_withheld().await.unwrap().is_empty());
    let (answer, _) = chain.raw(nonce + 1, Some(chain.mine), give()).await;
    chain.assert_denied(answer, DenyReason::ContractNotPermitted).await;
}

/// A block that cannot be validated is not shown: the head stays below it.
#[tokio::test]
async fn hd2_a_block_without_validation_is_no_head() {
    let (chain, latch) = scene(MinedTrace::Quarantine).await;
    let node = &chain.world.node;
    chain.world.anvil("evm_setAutomine", json!([false])).await;
    let before = node.head().unwrap().number;
    let nothing = transferCall {
        to: account(1).address(),
        value: U256::ZERO,
    }
    .abi_encode();
    chain.raw(chain.nonce().await, Some(chain.mine), nothing).await;
    // The policy is stale, so nothing can be evaluated.
    chain.world.fixture.make_policy_stale();
    chain.world.anvil("evm_mine", json!([])).await;
    assert!(matches!(
        node.refresh_head().await,
        Err(gw_node::NodeError::NotValidated(_))
    ));
    assert_eq!(node.head().unwrap().number, before);
    // The policy is fresh again.
    chain.world.link(&chain.caller, Address::repeat_byte(0x55)).await;
    node.refresh_head().await.unwrap();
    assert_eq!(node.head().unwrap().number, before + 1);
    chain.world.anvil("evm_setAutomine", json!([true])).await;
    chain.steal(latch).await;
    let seen = node.head().unwrap().number;
    // After a restart, sends in blocks without validation are validated before there is a head.
    let restarted = gw_node::Node::connect(&gw_node::NodeConfig::new(chain.world.url()).unwrap())
        .await
        .unwrap();
    restarted.set_block_gate(Arc::new(BlockValidator::new(&chain.world.sends)));
    assert!(restarted.head().is_none());
    restarted.refresh_head().await.unwrap();
    assert!(restarted.head().unwrap().number >= seen);
}

/// HD2, HD22: the gateway may crash before it gets the hash of a transaction that the node signed. The transaction is
/// then found by its nonce.
#[tokio::test]
async fn hd2_hd22_a_send_without_a_hash_is_validated_after_a_restart() {
    let (chain, latch) = scene(MinedTrace::Quarantine).await;
    let (nonce, head) = (chain.nonce().await, chain.world.node.head().unwrap().number);
    let data = balanceOfCall {
        account: account(3).address(),
    }
    .abi_encode()
    .into();
    let take = Bytes::from(
        takeCall {
            target: chain.theirs,
            data,
            from: U256::ZERO,
        }
        .abi_encode(),
    );
    let sent =
        json!([{"from": chain.wallet, "to": latch, "input": take, "nonce": U256::from(nonce), "gas": "0x7a1200"}]);
    chain.world.anvil("eth_sendTransaction", sent).await;
    chain.world.mined(head + 1).await;
    // The nonce was used long before the head, and later nonces after it.
    chain.world.anvil("anvil_mine", json!(["0x2d"])).await;
    for _ in 0..2 {
        let sent = json!([{"from": chain.wallet, "to": chain.wallet}]);
        chain.world.anvil("eth_sendTransaction", sent).await;
    }
    chain.world.mined(head + 0x2d + 2).await;
    assert_eq!(
        chain.loot(latch).await.body["result"],
        number(SECRET),
        "the attack: the send is not watched"
    );

    let (org, user) = (
        chain.world.fixture.feed.pin().snapshot.contract(latch).unwrap().org,
        chain.caller.id,
    );
    let external_id = chain
        .world
        .fixture
        .feed
        .pin()
        .snapshot
        .user(user)
        .unwrap()
        .external_id
        .clone();
    let watch = Some(NewWatch {
        sender: chain.wallet,
        nonce,
        external_id,
        orgs: vec![org],
        is_named: false,
        authorized_runs: None,
    });
    let start = SendStart {
        user,
        org,
        tx_hash: None,
        visible_to: Vec::new(),
        reservations: Vec::new(),
        watch,
    };
    drop(
        chain
            .world
            .fixture
            .change(async |tx| tx.start_send(start.clone()).await.unwrap())
            .await,
    );
    let restarted = gw_node::Node::connect(&gw_node::NodeConfig::new(chain.world.url()).unwrap())
        .await
        .unwrap();
    restarted.set_block_gate(Arc::new(BlockValidator::new(&chain.world.sends)));
    restarted.refresh_head().await.unwrap();
    assert_eq!(chain.violations().await, 1);
    assert_eq!(chain.loot(latch).await.body["result"], number(0));
    // A nonce that is not used yet has no block.
    let block = restarted
        .block_of_nonce(chain.wallet, nonce + 100, restarted.head().unwrap().number)
        .await
        .unwrap();
    assert_eq!(block, None);
}
