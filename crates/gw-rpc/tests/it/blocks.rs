//! How a block is judged and let in (HD2, HD27, HD28, HD36): on real nodes, against those who fill blocks, wait for them, or
//! are quicker than the judgement.

use crate::{
    real_reads::{Chain, chain_on},
    world::{Answer, account, artifact, real_on, scripted, signed},
};
use alloy_primitives::hex;
use alloy_sol_types::{SolCall, SolValue, sol};
use gw_node::{Node, NodeConfig, NodeError, Upkeep};
use gw_policy::Knobs;
use gw_rpc::MinedGate;
use gw_store::record::{NewWatch, SendStart};
use gw_testkit::{Anvil, anvil::AnvilOptions, fake_node::Reply};
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

/// The gate stands; nothing is mined unless a test says so.
async fn scene(extra: &[&str]) -> Scene {
    let extra = extra.iter().map(|argument| (*argument).to_owned()).collect();
    let anvil = Anvil::start(&AnvilOptions {
        extra,
        ..AnvilOptions::default()
    });
    let chain = chain_on(real_on(anvil, Knobs::default()).await).await;
    chain.world.node.guard(Arc::new(MinedGate::new(&chain.world.sends)));
    chain.world.node.refresh_head().await.unwrap();
    Scene(chain)
}

/// A chain whose gate stands.
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

    /// Sends through the gateway; what was sent and its hash.
    async fn sends(&self, nonce: u64, to: Option<Address>, input: impl Into<Bytes>) -> (String, B256) {
        let (raw, hash) = signed(&account(0), nonce, to, 0, input.into());
        let answer = self.ask("eth_sendRawTransaction", json!([raw])).await;
        assert_eq!(answer.body["result"], json!(hash), "{}", answer.text);
        (raw, hash)
    }

    /// Sends what lies in the pool while `blocks` go by, and is mined in the one after them.
    async fn sends_late(&self, sends: &[(Address, Vec<u8>)], blocks: u64) -> Vec<B256> {
        self.mining(false).await;
        let first = self.next_nonce().await;
        let mut sent = Vec::new();
        for (nonce, (to, input)) in (first..).zip(sends) {
            sent.push(self.sends(nonce, Some(*to), input.clone()).await);
        }
        // Others pay more for a while.
        self.world.anvil("anvil_dropAllTransactions", json!([])).await;
        self.world.anvil("anvil_mine", json!([format!("{blocks:#x}")])).await;
        for (raw, hash) in &sent {
            assert_eq!(
                self.world.bare("eth_sendRawTransaction", json!([raw])).await["result"],
                json!(hash)
            );
        }
        self.world.anvil("evm_mine", json!([])).await;
        sent.into_iter().map(|(_, hash)| hash).collect()
    }

    /// What reads the rival's secret from block `from` on.
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

    /// Another instance over the same store: what a restart finds.
    async fn restarted(&self, config: impl FnOnce(NodeConfig) -> NodeConfig) -> Arc<Node> {
        let hour = Duration::from_secs(3600);
        let rarely = Upkeep {
            head: hour,
            probe: hour,
            ..Upkeep::default()
        };
        let rarely = NodeConfig::new(self.world.url()).unwrap().with_upkeep(rarely);
        let node = Node::connect(&config(rarely)).await.unwrap();
        node.guard(Arc::new(MinedGate::new(&self.world.sends)));
        assert!(node.head().is_none(), "nothing is read before the gate has let it in");
        node
    }

    async fn suspended(&self) -> usize {
        self.world.store.read().list_suspensions().await.unwrap().len()
    }

    /// The accounts of whose changes any are withheld. Nothing is closed for them.
    async fn withheld(&self) -> Vec<Address> {
        let reads = self.world.store.read();
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
        self.world.store.read().watched_sends(u64::MAX).await.unwrap().len()
    }

    fn org_of(&self, contract: Address) -> Option<gw_types::OrgId> {
        self.world
            .feed
            .pin()
            .snapshot
            .contract(contract)
            .map(|contract| contract.org)
    }
}

/// HD36: 64 sends whose block is larger than any answer the gateway would take in one piece stop nobody, nor does a restart
/// that meets them again.
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
        "all were looked at, and did no harm"
    );
}

/// HD36: a trace that cannot be taken is convicted, and its block let in; a restart meets it with the same end.
#[tokio::test]
async fn rt22_hd36_a_trace_too_large_is_convicted_and_its_block_let_in() {
    let chain = scene(&[]).await;
    let late = chain.own("Late").await;
    chain.mining(false).await;
    let nonce = chain.next_nonce().await;
    let (_, quiet) = chain.sends(nonce, Some(account(1).address()), Vec::new()).await;
    let (_, loud) = chain
        .sends(
            nonce + 1,
            Some(late),
            [makeCall { from: U256::ZERO }.abi_encode(), vec![0; 60_000]].concat(),
        )
        .await;
    chain.world.anvil("evm_mine", json!([])).await;
    // Both are met by one that takes no trace as long as the second one's.
    for _ in 0..2 {
        let small = chain.restarted(|config| config.with_largest_trace(100_000)).await;
        small.refresh_head().await.unwrap();
        assert!(small.head().is_some());
    }
    let reads = chain.world.store.read();
    let suspended = reads.list_suspensions().await.unwrap();
    assert_eq!(
        suspended.iter().map(|one| one.tx_hash).collect::<Vec<_>>(),
        [loud],
        "not {quiet}"
    );
    assert_eq!(chain.awaited().await, 0);
    // As far as the diff and the receipt tell: what it wrote and what it made are known.
    let made = late.create(1);
    assert_eq!(chain.org_of(made), None, "what it made is not there");
    let withheld = chain.withheld().await;
    assert!(withheld.contains(&late) && withheld.contains(&made), "{withheld:?}");
}

/// HD28: what it changed is withheld too where the trace cannot be read to its end.
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
        "the tale was told"
    );
    chain.world.node.refresh_head().await.unwrap();
    assert_eq!(chain.suspended().await, 1);
    assert!(
        chain.withheld().await.contains(&flood.create(1)),
        "{:?}",
        chain.withheld().await
    );
    assert_eq!(chain.org_of(flood.create(1)), None, "what it made is not there");
    let logs = chain
        .ask("eth_getLogs", json!([{"address": flood, "fromBlock": "0x0"}]))
        .await;
    assert!(!logs.text.contains(&format!("{:064x}", 1_000_000)), "{}", logs.text);
}

/// HD27: what only the mined run made is the sender's organization's before anybody reads at that block.
#[tokio::test]
async fn rt1b_hd27_what_only_the_mined_run_makes_is_registered() {
    let chain = scene(&[]).await;
    let late = chain.own("Late").await;
    let make = makeCall {
        from: U256::from(chain.head() + 3),
    }
    .abi_encode();
    chain.sends_late(&[(late, make)], 4).await;
    let made = late.create(1);
    assert_eq!(chain.org_of(made), None, "no trace showed it");
    chain.world.node.refresh_head().await.unwrap();
    assert_eq!(chain.org_of(made), chain.org_of(late));
    let snapshot = chain.world.feed.pin().snapshot;
    assert_eq!(snapshot.contract(made).unwrap().deployer, Some(chain.caller.id));
    assert_eq!(
        (chain.suspended().await, chain.awaited().await),
        (0, 0),
        "it harmed nobody"
    );
    drop(snapshot);
    // For its maker it is like any contract of theirs.
    sol! { function text() external view returns (uint256); }
    assert_eq!(
        chain.reads(made, textCall {}).await.body["result"],
        json!(Bytes::from(U256::from(42).abi_encode()))
    );
}

/// HD27: a deployment whose nonce left a gap was never reserved.
#[tokio::test]
async fn rt19_hd27_a_deployment_behind_a_gap_is_registered() {
    let chain = scene(&[]).await;
    let nonce = chain.next_nonce().await;
    let made = chain.wallet.create(nonce + 1);
    chain.sends(nonce + 1, None, artifact("Note").0.to_vec()).await;
    assert!(chain.world.feed.pin().snapshot.reservations(made).is_empty(), "HD14");
    chain.mining(false).await;
    chain.sends(nonce, Some(account(1).address()), Vec::new()).await;
    chain.world.anvil("evm_mine", json!([])).await;
    chain.world.node.refresh_head().await.unwrap();
    assert_eq!(chain.org_of(made), chain.org_of(chain.mine));
}

/// HD14: what left the chain gave nobody anything; what comes back gives it again.
#[tokio::test]
async fn rt1b_hd14_a_reorganization_takes_back_what_the_gate_registered() {
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
    let made = late.create(1);
    assert_eq!(chain.org_of(made), chain.org_of(late));
    assert_eq!(chain.world.bare("evm_revert", json!([id])).await["result"], json!(true));
    chain.world.anvil("anvil_dropAllTransactions", json!([])).await;
    chain.world.anvil("anvil_mine", json!(["0x2", "0x7"])).await;
    chain.world.node.refresh_head().await.unwrap();
    assert_eq!(chain.org_of(made), None, "it is not there");
    assert_eq!(chain.awaited().await, 1, "and waited for again");
    chain.world.bare("eth_sendRawTransaction", json!([raw])).await;
    chain.world.anvil("evm_mine", json!([])).await;
    chain.world.node.refresh_head().await.unwrap();
    assert_eq!((chain.org_of(made), chain.awaited().await), (chain.org_of(late), 0));
}

/// HD28: whoever polls for the receipt finds the block judged, however quick they are.
#[tokio::test]
async fn rt2b_hd28_nothing_of_a_block_leaves_before_it_is_judged() {
    /// The parameters by transaction, block number and contract.
    type Params = fn(B256, u64, Address) -> Value;
    let ways: [(&str, Params); 4] = [
        ("eth_getTransactionReceipt", |hash, _, _| json!([hash])),
        (
            "eth_getLogs",
            |_, _, latch| json!([{"address": latch, "fromBlock": "0x0", "toBlock": "latest"}]),
        ),
        (
            "eth_getLogs",
            |_, number, latch| json!([{"address": latch, "fromBlock": format!("{number:#x}"), "toBlock": format!("{number:#x}")}]),
        ),
        ("eth_getBlockReceipts", |_, number, _| json!([format!("{number:#x}")])),
    ];
    for (method, params) in ways {
        let chain = scene(&[]).await;
        let latch = chain.own("Latch").await;
        let steal = chain.theft(chain.head() + 3);
        let hash = chain.sends_late(&[(latch, steal)], 4).await[0];
        let number = chain.head() + 5;
        let secret = format!("{:064x}", 1_000_000);
        let receipt = chain.world.bare("eth_getTransactionReceipt", json!([hash])).await;
        assert!(receipt.to_string().contains(&secret), "the node tells it");
        let answer = chain.ask(method, params(hash, number, latch)).await;
        assert!(!answer.text.contains(&secret), "{method}: {}", answer.text);
    }
}

/// The same by the hash of the block, which nobody has followed yet.
#[tokio::test]
async fn rt2b_hd28_a_block_named_by_its_hash_is_judged_first() {
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

/// HD28: a block that took the place of the followed head is as unjudged as one above it.
#[tokio::test]
async fn rt2b_hd28_a_block_beside_the_head_is_judged_first() {
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
    assert!(receipt.to_string().contains(&secret), "the node tells it");
    assert_eq!(
        receipt["result"]["blockNumber"],
        json!(format!("{:#x}", head + 3)),
        "below the followed head"
    );
    let answer = chain.ask("eth_getTransactionReceipt", json!([hash])).await;
    assert!(!answer.text.contains(&secret), "{}", answer.text);
    // Once its branch is the followed one, it is found there.
    chain.world.bare("anvil_mine", json!(["0x5"])).await;
    chain.world.node.refresh_head().await.unwrap();
    let answer = chain.ask("eth_getTransactionReceipt", json!([hash])).await;
    assert!(!answer.text.contains(&secret), "{}", answer.text);
    assert_eq!(chain.suspended().await, 1);
}

/// HD28: what was stolen and carried on in one block is found where it was carried to.
#[tokio::test]
async fn rt2c_hd28_loot_carried_on_in_the_same_block_is_found() {
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

/// HD2: code is called in its turn only, so that what was judged is what runs next.
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
    // In its turn, and behind others that wait, it is taken.
    chain.mining(false).await;
    for nonce in [nonce, nonce + 1] {
        let (answer, hash) = ask(nonce, Some(chain.mine), nothing.clone()).await;
        assert_eq!(answer.body["result"], hash, "{}", answer.text);
    }
    // Payments and deployments may lie ahead.
    for (nonce, to, input) in [
        (nonce + 3, Some(account(1).address()), Vec::new()),
        (nonce + 4, None, artifact("Note").0.to_vec()),
    ] {
        let (answer, hash) = ask(nonce, to, input).await;
        assert_eq!(answer.body["result"], hash, "{}", answer.text);
    }
}

/// HD36: an answer that is none holds the head back; a node that says it keeps no state that old does not.
#[tokio::test]
async fn rt22_hd36_a_garbled_answer_is_no_lost_state() {
    let (world, fake) = scripted().await;
    let bank = world.org("bank").await;
    let caller = world.person("caller", bank, &["*"], &[]).await;
    let external_id = world.feed.pin().snapshot.user(caller.id).unwrap().external_id.clone();
    let watch = Some(NewWatch {
        sender: account(0).address(),
        nonce: 0,
        external_id,
        orgs: vec![bank],
        is_named: false,
        judged: None,
    });
    let (user, org) = (caller.id, bank);
    let left = SendStart {
        user,
        org,
        tx_hash: None,
        visible_to: Vec::new(),
        reservations: Vec::new(),
        watch,
    };
    drop(
        world
            .change(async |tx| tx.start_send(left.clone()).await.unwrap())
            .await,
    );
    world.node.guard(Arc::new(MinedGate::new(&world.sends)));
    let used_at = |older: Reply| {
        move |params: &Value| match &params[1] {
            Value::String(number) if number != "0x64" => older.clone(),
            _ => Reply::Result(json!("0x1")),
        }
    };
    fake.script("eth_getTransactionCount", used_at(Reply::Result(json!("soon"))));
    for _ in 0..2 {
        assert!(matches!(
            world.node.refresh_head().await,
            Err(NodeError::NotValidated(_))
        ));
    }
    assert!(world.store.read().list_suspensions().await.unwrap().is_empty());
    fake.script(
        "eth_getTransactionCount",
        used_at(Reply::Error(-32000, "missing trie node", Value::Null)),
    );
    world.node.refresh_head().await.unwrap();
    assert_eq!(
        world.store.read().list_suspensions().await.unwrap().len(),
        1,
        "nobody can look at it any more"
    );
    assert!(world.store.read().watched_sends(u64::MAX).await.unwrap().is_empty());
}

/// HD28: `pending` tells nothing of a block that nobody judged yet, whose balances and created contracts it may hold.
#[tokio::test]
async fn hd28_pending_tells_nothing_of_an_unjudged_block() {
    let chain = scene(&[]).await;
    let (wallet, other) = (chain.wallet, account(1));
    chain.world.link(&chain.caller, other.address()).await;
    let balance =
        async |tag: &str| chain.ask("eth_getBalance", json!([other.address(), tag])).await.body["result"].clone();
    let nonce =
        async |of: Address| chain.ask("eth_getTransactionCount", json!([of, "pending"])).await.body["result"].clone();
    let (before, first) = (balance("latest").await, chain.next_nonce().await);
    chain.mining(false).await;
    // A block that the gateway has not looked at yet.
    let pay = json!([{"from": account(3).address(), "to": other.address(), "value": "0x1"}]);
    chain.world.bare("eth_sendTransaction", pay).await;
    chain.world.anvil("evm_mine", json!([])).await;
    let there = chain
        .world
        .bare("eth_getBalance", json!([other.address(), "latest"]))
        .await["result"]
        .clone();
    assert_ne!(there, before, "planted");
    assert_eq!(balance("pending").await, before);
    // Its owner's next nonce is told; not what code made of it that runs as the wallet.
    chain.sends(first, Some(account(2).address()), Vec::new()).await;
    assert_eq!(nonce(wallet).await, json!(format!("{:#x}", first + 1)));
    let delegated = format!("0xef0100{}", hex::encode(chain.mine));
    chain.world.anvil("anvil_setCode", json!([wallet, delegated])).await;
    assert_eq!(nonce(wallet).await, json!(format!("{first:#x}")));
}
