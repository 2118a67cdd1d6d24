//! Validation of blocks (HD2, HD27, HD28, HD36) on real nodes, against attackers who fill blocks, wait for a block, or
//! read before the validation.

use crate::{
    real_reads::{Chain, chain_on},
    world::{Answer, World, account, artifact, real_on, scripted, signed},
};
use alloy_primitives::hex;
use alloy_sol_types::{SolCall, SolValue, sol};
use gw_audit::{Record, SecurityKind};
use gw_node::{HealthCheckConfig, Node, NodeConfig, NodeError};
use gw_policy::PolicySettings;
use gw_rpc::BlockValidator;
use gw_store::record::{NewWatch, SendStart};
use gw_testkit::{Anvil, FakeNode, anvil::AnvilOptions, fake_node::NodeReply};
use gw_types::{Address, B256, Bytes, U256};
use serde_json::{Value, json};
use std::{sync::Arc, time::Duration};

sol! {
    function balanceOf(address account) external view returns (uint256);
    function transfer(address to, uint256 value) external returns (bool);
    function take(address target, bytes data, uint256 from) external;
    function make(uint256 from) external;
    function copy(address from) external;
    function kept() external view returns (uint256);
    contract Flooding {
        function take(address target, bytes data, uint256 from, uint256 calls) external;
    }
}

/// A chain with a block validator, where tests decide when blocks are mined.
async fn scene(extra: &[&str]) -> Scene {
    let extra = extra.iter().map(|argument| (*argument).to_owned()).collect();
    let anvil = Anvil::start(&AnvilOptions {
        extra,
        ..AnvilOptions::default()
    });
    let chain = chain_on(real_on(anvil, PolicySettings::default()).await).await;
    chain
        .world
        .node
        .set_block_gate(Arc::new(BlockValidator::new(&chain.world.sends)));
    chain.world.node.refresh_head().await.unwrap();
    Scene(chain)
}

/// A chain with a block validator.
struct Scene(Chain);

impl core::ops::Deref for Scene {
    type Target = Chain;
    fn deref(&self) -> &Chain {
        &self.0
    }
}

impl Scene {
    async fn next_nonce(&self) -> u64 {
        self.world.node.mined_nonce(self.wallet).await.unwrap()
    }

    fn head(&self) -> u64 {
        self.world.node.head().unwrap().number
    }

    async fn mining(&self, automatic: bool) {
        self.world.anvil("evm_setAutomine", json!([automatic])).await;
    }

    /// Sends through the gateway. Returns the signed bytes and their hash.
    async fn sends(&self, nonce: u64, to: Option<Address>, input: impl Into<Bytes>) -> (String, B256) {
        let (raw, hash) = signed(&account(0), nonce, to, 0, input.into());
        let answer = self.ask("eth_sendRawTransaction", json!([raw])).await;
        assert_eq!(answer.body["result"], json!(hash), "{}", answer.text);
        (raw, hash)
    }

    /// Sends transactions that stay out of `blocks` blocks and are mined in the next one.
    async fn sends_late(&self, sends: &[(Address, Vec<u8>)], blocks: u64) -> Vec<B256> {
        self.mining(false).await;
        let first = self.next_nonce().await;
        let mut signed_sends = Vec::new();
        for (nonce, (to, input)) in (first..).zip(sends) {
            signed_sends.push(self.sends(nonce, Some(*to), input.clone()).await);
        }
        // The transactions leave the pool, as if others paid more for a while.
        self.world.anvil("anvil_dropAllTransactions", json!([])).await;
        self.world.anvil("anvil_mine", json!([format!("{blocks:#x}")])).await;
        for (raw, hash) in &signed_sends {
            assert_eq!(
                self.world.bare("eth_sendRawTransaction", json!([raw])).await["result"],
                json!(hash)
            );
        }
        self.world.anvil("evm_mine", json!([])).await;
        signed_sends.into_iter().map(|(_, hash)| hash).collect()
    }

    /// The input of a call that reads the rival's secret from block `from` on.
    fn theft(&self, from: u64) -> Vec<u8> {
        let data = balanceOfCall {
            account: account(3).address(),
        }
        .abi_encode()
        .into();
        takeCall {
            target: self.theirs,
            data,
            from: U256::from(from),
        }
        .abi_encode()
    }

    async fn reads(&self, to: Address, call: impl SolCall) -> Answer {
        self.ask(
            "eth_call",
            json!([{"to": to, "data": Bytes::from(call.abi_encode())}, "latest"]),
        )
        .await
    }

    /// Another instance over the same store, as after a restart.
    async fn restarted(&self, config: impl FnOnce(NodeConfig) -> NodeConfig) -> Arc<Node> {
        let hour = Duration::from_secs(3600);
        let rarely = HealthCheckConfig {
            head: hour,
            probe: hour,
            ..HealthCheckConfig::default()
        };
        let rarely = NodeConfig::new(self.world.url()).unwrap().with_health_checks(rarely);
        let node = Node::connect(&config(rarely)).await.unwrap();
        node.set_block_gate(Arc::new(BlockValidator::new(&self.world.sends)));
        assert!(
            node.head().is_none(),
            "there is no head before the first block is validated"
        );
        node
    }

    async fn suspended(&self) -> usize {
        self.world.fixture.store.read().list_suspensions().await.unwrap().len()
    }

    /// The accounts with withheld changes. None of them is quarantined.
    async fn withheld(&self) -> Vec<Address> {
        let reads = self.world.fixture.store.read();
        assert!(reads.list_quarantines().await.unwrap().is_empty());
        reads
            .list_withheld()
            .await
            .unwrap()
            .into_iter()
            .map(|withheld| withheld.address)
            .collect()
    }

    async fn awaited(&self) -> usize {
        self.world
            .fixture
            .store
            .read()
            .watched_sends(u64::MAX)
            .await
            .unwrap()
            .len()
    }

    fn org_of(&self, contract: Address) -> Option<gw_types::OrgId> {
        self.world
            .fixture
            .feed
            .pin()
            .snapshot
            .contract(contract)
            .map(|contract| contract.org)
    }
}

/// HD36: 64 sends whose block is larger than any answer that the gateway accepts in one piece do not stop the head, nor
/// does a restart that validates the block again.
#[tokio::test]
async fn rt22_hd36_a_block_full_of_zeros_stops_nobody() {
    let chain = scene(&["--gas-limit", "300000000"]).await;
    let late = chain.own("Late").await;
    chain.mining(false).await;
    let (first, before) = (chain.next_nonce().await, chain.head());
    let zeros = [makeCall { from: U256::MAX }.abi_encode(), vec![0; 65_300]].concat();
    for nonce in first..first + 64 {
        chain.sends(nonce, Some(late), zeros.clone()).await;
    }
    chain.world.anvil("evm_mine", json!([])).await;
    let block = chain.world.bare("eth_getBlockByNumber", json!(["latest", true])).await;
    assert_eq!(block["result"]["transactions"].as_array().unwrap().len(), 64);
    assert!(block.to_string().len() > 8 << 20, "the block is what the attack needs");
    let restarted = chain.restarted(|config| config).await;
    chain.world.node.refresh_head().await.unwrap();
    assert_eq!(chain.head(), before + 1);
    let org = chain.org_of(chain.mine).unwrap();
    let other = chain.world.person("other", org, &["*"], &[]).await;
    let balance = json!([chain.wallet, "latest"]);
    assert_eq!(
        chain
            .world
            .ask(Some(&other), "eth_getBalance", balance)
            .send()
            .await
            .status,
        200
    );
    restarted.refresh_head().await.unwrap();
    assert_eq!(restarted.head().unwrap().number, before + 1);
    assert_eq!(
        (chain.awaited().await, chain.suspended().await),
        (0, 0),
        "all are validated and violate nothing"
    );
}

/// HD36: a send whose trace is too large counts as a violation, and its block is released. A restart comes to the same
/// result.
#[tokio::test]
async fn rt22_hd36_a_trace_too_large_is_a_violation_and_its_block_is_released() {
    let chain = scene(&[]).await;
    let late = chain.own("Late").await;
    chain.mining(false).await;
    let nonce = chain.next_nonce().await;
    let (_, small) = chain.sends(nonce, Some(account(1).address()), Vec::new()).await;
    let (_, large) = chain
        .sends(
            nonce + 1,
            Some(late),
            [makeCall { from: U256::ZERO }.abi_encode(), vec![0; 60_000]].concat(),
        )
        .await;
    chain.world.anvil("evm_mine", json!([])).await;
    // Both are validated by an instance that accepts no trace as long as the second one.
    for _ in 0..2 {
        let restarted = chain.restarted(|config| config.with_largest_trace(100_000)).await;
        restarted.refresh_head().await.unwrap();
        assert!(restarted.head().is_some());
    }
    let reads = chain.world.fixture.store.read();
    let suspended = reads.list_suspensions().await.unwrap();
    assert_eq!(
        suspended
            .iter()
            .map(|suspension| suspension.tx_hash)
            .collect::<Vec<_>>(),
        [large],
        "not {small}"
    );
    assert_eq!(chain.awaited().await, 0);
    // The state diff and the receipt show what it changed and created.
    let created = late.create(1);
    assert_eq!(chain.org_of(created), None, "the created contract is not registered");
    let withheld = chain.withheld().await;
    assert!(withheld.contains(&late) && withheld.contains(&created), "{withheld:?}");
}

/// HD28: the changes are withheld, too, if the trace cannot be read to its end.
#[tokio::test]
async fn rt2c_hd28_calls_without_number_hide_no_event() {
    let chain = scene(&["--gas-limit", "300000000"]).await;
    let flood = chain.own("Flood").await;
    let from = U256::from(chain.head() + 3);
    let data = balanceOfCall {
        account: account(3).address(),
    }
    .abi_encode()
    .into();
    let take = Flooding::takeCall {
        target: chain.theirs,
        data,
        from,
        calls: U256::from(10_100),
    }
    .abi_encode();
    let hash = chain.sends_late(&[(flood, take)], 4).await[0];
    let receipt = chain.world.bare("eth_getTransactionReceipt", json!([hash])).await;
    assert_eq!(
        receipt["result"]["logs"][0]["address"],
        json!(flood),
        "the attack emits the event"
    );
    chain.world.node.refresh_head().await.unwrap();
    assert_eq!(chain.suspended().await, 1);
    assert!(
        chain.withheld().await.contains(&flood.create(1)),
        "{:?}",
        chain.withheld().await
    );
    assert_eq!(
        chain.org_of(flood.create(1)),
        None,
        "the created contract is not registered"
    );
    let logs = chain
        .ask("eth_getLogs", json!([{"address": flood, "fromBlock": "0x0"}]))
        .await;
    assert!(!logs.text.contains(&format!("{:064x}", 1_000_000)), "{}", logs.text);
}

/// HD27: a contract that only the mined run creates belongs to the sender's organization before anybody reads at that
/// block.
#[tokio::test]
async fn rt1b_hd27_a_contract_created_only_by_the_mined_run_is_registered() {
    let chain = scene(&[]).await;
    let late = chain.own("Late").await;
    let make = makeCall {
        from: U256::from(chain.head() + 3),
    }
    .abi_encode();
    chain.sends_late(&[(late, make)], 4).await;
    let created = late.create(1);
    assert_eq!(chain.org_of(created), None, "no trace showed it");
    chain.world.node.refresh_head().await.unwrap();
    assert_eq!(chain.org_of(created), chain.org_of(late));
    let snapshot = chain.world.fixture.feed.pin().snapshot;
    assert_eq!(snapshot.contract(created).unwrap().deployer, Some(chain.caller.id));
    assert_eq!(
        (chain.suspended().await, chain.awaited().await),
        (0, 0),
        "it violates nothing"
    );
    drop(snapshot);
    // Its deployer uses it like any other contract of theirs.
    sol! { function text() external view returns (uint256); }
    assert_eq!(
        chain.reads(created, textCall {}).await.body["result"],
        json!(Bytes::from(U256::from(42).abi_encode()))
    );
}

/// HD27: a deployment with a nonce gap before it has no reservation.
#[tokio::test]
async fn rt19_hd27_a_deployment_behind_a_gap_is_registered() {
    let chain = scene(&[]).await;
    let nonce = chain.next_nonce().await;
    let created = chain.wallet.create(nonce + 1);
    chain.sends(nonce + 1, None, artifact("Note").0.to_vec()).await;
    assert!(
        chain.world.fixture.feed.pin().snapshot.reservations(created).is_empty(),
        "HD14"
    );
    chain.mining(false).await;
    chain.sends(nonce, Some(account(1).address()), Vec::new()).await;
    chain.world.anvil("evm_mine", json!([])).await;
    chain.world.node.refresh_head().await.unwrap();
    assert_eq!(chain.org_of(created), chain.org_of(chain.mine));
}

/// HD14: a block that left the chain registers nothing; a block that comes back registers its contracts again.
#[tokio::test]
async fn rt1b_hd14_a_reorganization_undoes_registrations_by_validation() {
    let chain = scene(&[]).await;
    let late = chain.own("Late").await;
    chain.mining(false).await;
    let id = chain.world.bare("evm_snapshot", json!([])).await["result"].clone();
    let (raw, _) = chain
        .sends(
            chain.next_nonce().await,
            Some(late),
            makeCall { from: U256::ZERO }.abi_encode(),
        )
        .await;
    chain.world.anvil("evm_mine", json!([])).await;
    chain.world.node.refresh_head().await.unwrap();
    let created = late.create(1);
    assert_eq!(chain.org_of(created), chain.org_of(late));
    assert_eq!(chain.world.bare("evm_revert", json!([id])).await["result"], json!(true));
    chain.world.anvil("anvil_dropAllTransactions", json!([])).await;
    chain.world.anvil("anvil_mine", json!(["0x2", "0x7"])).await;
    chain.world.node.refresh_head().await.unwrap();
    assert_eq!(chain.org_of(created), None, "the contract is gone");
    assert_eq!(chain.awaited().await, 1, "the send is watched again");
    chain.world.bare("eth_sendRawTransaction", json!([raw])).await;
    chain.world.anvil("evm_mine", json!([])).await;
    chain.world.node.refresh_head().await.unwrap();
    assert_eq!((chain.org_of(created), chain.awaited().await), (chain.org_of(late), 0));
}

/// HD28: a caller who polls for the receipt gets it only after the validation of its block, however quickly they poll.
#[tokio::test]
async fn rt2b_hd28_nothing_of_a_block_leaves_before_its_validation() {
    /// The parameters by transaction, block number and contract.
    type Params = fn(B256, u64, Address) -> Value;
    let reads: [(&str, Params); 4] = [
        ("eth_getTransactionReceipt", |hash, _, _| json!([hash])),
        (
            "eth_getLogs",
            |_, _, latch| json!([{"address": latch, "fromBlock": "0x0", "toBlock": "latest"}]),
        ),
        ("eth_getLogs", |_, number, latch| {
            json!([{"address": latch, "fromBlock": format!("{number:#x}"),
                "toBlock": format!("{number:#x}")}])
        }),
        ("eth_getBlockReceipts", |_, number, _| json!([format!("{number:#x}")])),
    ];
    for (method, params) in reads {
        let chain = scene(&[]).await;
        let latch = chain.own("Latch").await;
        let steal = chain.theft(chain.head() + 3);
        let hash = chain.sends_late(&[(latch, steal)], 4).await[0];
        let number = chain.head() + 5;
        let secret = format!("{:064x}", 1_000_000);
        let receipt = chain.world.bare("eth_getTransactionReceipt", json!([hash])).await;
        assert!(
            receipt.to_string().contains(&secret),
            "the bare node reveals the secret"
        );
        let answer = chain.ask(method, params(hash, number, latch)).await;
        assert!(!answer.text.contains(&secret), "{method}: {}", answer.text);
    }
}

/// HD28: a block that is named by its hash and not followed yet is validated before its logs are shown.
#[tokio::test]
async fn rt2b_hd28_a_block_named_by_its_hash_is_validated_first() {
    let chain = scene(&[]).await;
    let latch = chain.own("Latch").await;
    let steal = chain.theft(chain.head() + 3);
    let hash = chain.sends_late(&[(latch, steal)], 4).await[0];
    let receipt = chain.world.bare("eth_getTransactionReceipt", json!([hash])).await;
    let block = &receipt["result"]["blockHash"];
    let answer = chain
        .ask("eth_getLogs", json!([{"address": latch, "blockHash": block}]))
        .await;
    assert!(!answer.text.contains(&format!("{:064x}", 1_000_000)), "{}", answer.text);
    assert_eq!(chain.suspended().await, 1);
}

/// HD28: a block that replaces the followed head needs validation like one above it.
#[tokio::test]
async fn rt2b_hd28_a_block_on_another_branch_is_validated_first() {
    let chain = scene(&[]).await;
    let latch = chain.own("Latch").await;
    chain.mining(false).await;
    let head = chain.head();
    let (raw, hash) = chain
        .sends(chain.next_nonce().await, Some(latch), chain.theft(head + 3))
        .await;
    chain.world.anvil("anvil_dropAllTransactions", json!([])).await;
    let id = chain.world.bare("evm_snapshot", json!([])).await["result"].clone();
    chain.world.anvil("anvil_mine", json!(["0x5"])).await;
    chain.world.node.refresh_head().await.unwrap();
    assert_eq!(chain.head(), head + 5);
    assert_eq!(chain.world.bare("evm_revert", json!([id])).await["result"], json!(true));
    chain.world.anvil("anvil_mine", json!(["0x2", "0x7"])).await;
    chain.world.bare("eth_sendRawTransaction", json!([raw])).await;
    chain.world.anvil("evm_mine", json!([])).await;
    let secret = format!("{:064x}", 1_000_000);
    let receipt = chain.world.bare("eth_getTransactionReceipt", json!([hash])).await;
    assert!(
        receipt.to_string().contains(&secret),
        "the bare node reveals the secret"
    );
    assert_eq!(
        receipt["result"]["blockNumber"],
        json!(format!("{:#x}", head + 3)),
        "below the followed head"
    );
    let answer = chain.ask("eth_getTransactionReceipt", json!([hash])).await;
    assert!(!answer.text.contains(&secret), "{}", answer.text);
    // When its branch becomes the followed one, the send is found there.
    chain.world.bare("anvil_mine", json!(["0x5"])).await;
    chain.world.node.refresh_head().await.unwrap();
    let answer = chain.ask("eth_getTransactionReceipt", json!([hash])).await;
    assert!(!answer.text.contains(&secret), "{}", answer.text);
    assert_eq!(chain.suspended().await, 1);
}

/// HD28: stolen state that another send of the same block copies is found at its new place.
#[tokio::test]
async fn rt2c_hd28_tainted_state_copied_in_the_same_block_is_withheld() {
    let chain = scene(&[]).await;
    let (latch, copier) = (chain.own("Latch").await, chain.own("Copier").await);
    let steal = chain.theft(chain.head() + 3);
    let copy = copyCall { from: latch }.abi_encode();
    chain.sends_late(&[(latch, steal), (copier, copy)], 4).await;
    chain.world.node.refresh_head().await.unwrap();
    let withheld = chain.withheld().await;
    assert!(withheld.contains(&latch) && withheld.contains(&copier), "{withheld:?}");
    let kept = chain.reads(copier, keptCall {}).await;
    assert_eq!(
        kept.body["result"],
        json!(Bytes::from(U256::ZERO.abi_encode())),
        "{}",
        kept.text
    );
}

/// HD2: a call of code is accepted only with the next nonce, so that the traced state is the state in which it runs.
#[tokio::test]
async fn rt21_a_call_of_code_behind_a_gap_is_refused() {
    let chain = scene(&[]).await;
    let nonce = chain.next_nonce().await;
    let nothing = transferCall {
        to: account(1).address(),
        value: U256::ZERO,
    }
    .abi_encode();
    let ask = async |nonce, to: Option<Address>, input: Vec<u8>| {
        let (raw, hash) = signed(&account(0), nonce, to, 0, input.into());
        (chain.ask("eth_sendRawTransaction", json!([raw])).await, json!(hash))
    };
    let (answer, _) = ask(nonce + 1, Some(chain.mine), nothing.clone()).await;
    assert_eq!(answer.error(), (400, -32602), "{}", answer.text);
    assert!(answer.text.contains("in its turn"), "{}", answer.text);
    // With the next nonce, also behind pending transactions, it is accepted.
    chain.mining(false).await;
    for nonce in [nonce, nonce + 1] {
        let (answer, hash) = ask(nonce, Some(chain.mine), nothing.clone()).await;
        assert_eq!(answer.body["result"], hash, "{}", answer.text);
    }
    // Payments and deployments may have a nonce gap before them.
    for (nonce, to, input) in [
        (nonce + 3, Some(account(1).address()), Vec::new()),
        (nonce + 4, None, artifact("Note").0.to_vec()),
    ] {
        let (answer, hash) = ask(nonce, to, input).await;
        assert_eq!(answer.body["result"], hash, "{}", answer.text);
    }
}

/// A scripted node whose account 0 has used nonce 0, and a watched send with that nonce that has no hash.
async fn with_watched_nonce() -> (World, FakeNode) {
    let (world, fake) = scripted().await;
    let bank = world.fixture.create_org("bank").await;
    let caller = world.person("caller", bank, &["*"], &[]).await;
    let external_id = world
        .fixture
        .feed
        .pin()
        .snapshot
        .user(caller.id)
        .unwrap()
        .external_id
        .clone();
    let watch = Some(NewWatch {
        sender: account(0).address(),
        nonce: 0,
        external_id,
        orgs: vec![bank],
        is_named: false,
        authorized_runs: None,
    });
    let start = SendStart {
        user: caller.id,
        org: bank,
        tx_hash: None,
        visible_to: Vec::new(),
        reservations: Vec::new(),
        watch,
    };
    drop(
        world
            .fixture
            .change(async |tx| tx.start_send(start.clone()).await.unwrap())
            .await,
    );
    world.node.set_block_gate(Arc::new(BlockValidator::new(&world.sends)));
    fake.set_result("eth_getTransactionCount", json!("0x1"));
    (world, fake)
}

/// Replies `older` to a nonce at a block before the head, and a used nonce at the head.
fn nonce_replies(older: NodeReply) -> impl FnMut(&Value) -> NodeReply + Send + 'static {
    move |params| match &params[1] {
        Value::String(number) if number != "0x64" => older.clone(),
        _ => NodeReply::Result(json!("0x1")),
    }
}

async fn suspensions(world: &World) -> usize {
    world.fixture.store.read().list_suspensions().await.unwrap().len()
}

async fn awaited_sends(world: &World) -> usize {
    world.fixture.store.read().watched_sends(u64::MAX).await.unwrap().len()
}

/// The address of a report about a send that the node does not show.
fn not_found(record: &Record) -> Option<Option<Address>> {
    match record {
        Record::Security(event) if event.kind == SecurityKind::MinedSendNotFound => Some(event.address),
        _ => None,
    }
}

/// Moves the time of the runtime past the pause after a failed attempt.
async fn pass_pause() {
    tokio::time::pause();
    tokio::time::advance(Duration::from_secs(11)).await;
    tokio::time::resume();
}

/// HD36: only a transaction that the node shows can suspend a sender. If the node does not show which transaction used
/// the nonce of a send, the block waits; after five minutes of attempts the send is reported, and nobody is suspended.
#[tokio::test]
async fn hd36_a_send_that_the_node_cannot_find_convicts_nobody() {
    for older in [
        NodeReply::Error(-32000, "missing trie node", Value::Null),
        NodeReply::Error(-32601, "no such method", Value::Null),
        NodeReply::Result(json!("soon")),
    ] {
        let (world, fake) = with_watched_nonce().await;
        fake.script("eth_getTransactionCount", nonce_replies(older.clone()));
        for _ in 0..29 {
            let polled = world.node.refresh_head().await;
            assert!(
                matches!(polled, Err(NodeError::NotValidated(_))),
                "{older:?}: {polled:?}"
            );
            assert_eq!(
                (suspensions(&world).await, awaited_sends(&world).await),
                (0, 1),
                "{older:?}"
            );
            pass_pause().await;
        }
        world.node.refresh_head().await.unwrap();
        assert_eq!(
            (suspensions(&world).await, awaited_sends(&world).await),
            (0, 0),
            "{older:?}"
        );
        let records = world.fixture.records();
        let reported: Vec<_> = records.iter().filter_map(not_found).collect();
        assert_eq!(reported, [Some(account(0).address())], "{older:?}");
    }
}

/// HD28: `pending` reveals no balance and no created contract of a block that is not validated yet.
#[tokio::test]
async fn hd28_pending_reveals_nothing_of_a_block_before_validation() {
    let chain = scene(&[]).await;
    let (wallet, other) = (chain.wallet, account(1));
    chain.world.link(&chain.caller, other.address()).await;
    let balance =
        async |tag: &str| chain.ask("eth_getBalance", json!([other.address(), tag])).await.body["result"].clone();
    let nonce = async |address: Address| {
        chain
            .ask("eth_getTransactionCount", json!([address, "pending"]))
            .await
            .body["result"]
            .clone()
    };
    let (before, first) = (balance("latest").await, chain.next_nonce().await);
    chain.mining(false).await;
    // A block that the gateway has not validated yet.
    let pay = json!([{"from": account(3).address(), "to": other.address(), "value": "0x1"}]);
    chain.world.bare("eth_sendTransaction", pay).await;
    chain.world.anvil("evm_mine", json!([])).await;
    let mined_balance = chain
        .world
        .bare("eth_getBalance", json!([other.address(), "latest"]))
        .await["result"]
        .clone();
    assert_ne!(mined_balance, before, "the payment is mined");
    assert_eq!(balance("pending").await, before);
    // The owner's next nonce is shown, but not the nonces that code running as the wallet used.
    chain.sends(first, Some(account(2).address()), Vec::new()).await;
    assert_eq!(nonce(wallet).await, json!(format!("{:#x}", first + 1)));
    let delegated = format!("0xef0100{}", hex::encode(chain.mine));
    chain.world.anvil("anvil_setCode", json!([wallet, delegated])).await;
    assert_eq!(nonce(wallet).await, json!(format!("{first:#x}")));
}
