//! HD28, HD40 on a real node: changes of a convicted transaction are shown to nobody, and no answer depends on them.
//! The attack runs on two chains that differ only in a secret; every caller gets the same answers on both, by every
//! method.

use crate::{
    real_reads::{Chain, chain},
    world::{account, artifact, signed},
};
use alloy_primitives::keccak256;
use alloy_sol_types::{SolCall, SolValue, sol};
use gw_audit::{Record, SecurityKind};
use gw_rpc::BlockValidator;
use gw_store::record::NewGrant;
use gw_testkit::TestUser;
use gw_types::{Address, B256, Bytes, Claim, OrgId, U256};
use serde_json::{Value, json};
use std::sync::Arc;

sol! {
    function balanceOf(address account) external view returns (uint256);
    function transfer(address to, uint256 value) external returns (bool);
    function siphon(address target, bytes data, uint256 from, address[] wallets, address[] boxes) external;
    function kept() external view returns (uint256);
    function keep(uint256 what) external;
    function loot() external view returns (uint256);
    function forward(address target, bytes data) external payable returns (bytes);
}

/// The number of bits that each attack leaks.
const BITS: usize = 4;

/// The chain after the attack.
struct Scene {
    chain: Chain,
    bank: OrgId,
    siphon: Address,
    /// Open contracts of the thief's own organization; the last one belongs to another organization.
    boxes: Vec<Address>,
    /// The wallets of the thief's accomplice, then one of an honest user of the robbed organization.
    wallets: Vec<Address>,
    children: Vec<Address>,
    probe: Address,
    colleague: TestUser,
    boss: TestUser,
    victim: TestUser,
    other: TestUser,
    hash: B256,
    /// The snapshot of the chain before the block of the attack, and the signed transaction.
    before: (Value, String),
    /// Another user's transaction after it in the same block, which emits an event, and its token.
    behind: (B256, Address),
    block: u64,
}

/// The thief reads `secret` in a block and leaks its bits by the accounts that the transaction touches.
async fn robbed(secret: u64) -> Scene {
    let chain = chain().await;
    let world = &chain.world;
    world.node.set_block_gate(Arc::new(BlockValidator::new(&world.sends)));
    world.node.refresh_head().await.unwrap();
    let snapshot = world.fixture.feed.pin().snapshot;
    let (bank, rival) = [chain.mine, chain.theirs]
        .map(|address| snapshot.contract(address).unwrap().org)
        .into();
    let third = world.fixture.create_org("third").await;
    let colleague = world.person("colleague", bank, &["*"], &[Claim::Deploy]).await;
    let boss = world.person("boss", bank, &["*"], &[Claim::Admin]).await;
    let victim = world.person("victim", rival, &["*"], &[]).await;
    let other = world.person("other", third, &["*"], &[]).await;
    let supply = ("Vault".to_owned(), "V".to_owned(), U256::from(secret)).abi_encode_params();
    let vault = world.deploy(&[artifact("DemoERC20").0.to_vec(), supply].concat()).await;
    world.contract(rival, vault, None, &[victim.group]).await;
    let siphon = chain.own("Siphon").await;
    let probe = chain.own("Probe").await;
    let mut boxes = Vec::new();
    for _ in 0..BITS {
        boxes.push(chain.own("Box").await);
    }
    for contract in boxes.iter().chain([&siphon, &probe]) {
        let id = world.fixture.feed.pin().snapshot.contract(*contract).unwrap().id;
        world
            .fixture
            .change(async |tx| {
                for group in [colleague.group, boss.group] {
                    tx.create_grant(NewGrant::full(id, group)).await.unwrap();
                }
            })
            .await;
    }
    let drop_box = world.deploy(&artifact("Box").0).await;
    world
        .contract(third, drop_box, Some(&artifact("Box").1), &[other.group])
        .await;
    boxes.push(drop_box);
    let (code, abi) = artifact("DemoERC20");
    let token = ("Token".to_owned(), "T".to_owned(), U256::ZERO).abi_encode_params();
    let token = world.deploy(&[code.to_vec(), token].concat()).await;
    world.contract(third, token, Some(&abi), &[other.group]).await;
    world.link(&other, account(2).address()).await;
    let mut wallets: Vec<Address> = (4..6).map(|number| account(number).address()).collect();
    // A wallet without any funds, and an honest user's.
    wallets.extend([Address::repeat_byte(0x71), account(6).address()]);
    for wallet in &wallets[..3] {
        world.link(&colleague, *wallet).await;
    }
    world.link(&victim, wallets[3]).await;
    world
        .anvil("anvil_setBalance", json!([siphon, "0x8ac7230489e80000"]))
        .await;
    let note = keccak256(artifact("Note").0);
    let children = (0..BITS)
        .map(|salt| siphon.create2(B256::from(U256::from(salt)), note))
        .collect();
    let (nonce, head) = (
        world.node.mined_nonce(chain.wallet).await.unwrap(),
        world.node.head().unwrap().number,
    );
    let data = balanceOfCall {
        account: account(3).address(),
    }
    .abi_encode()
    .into();
    let from = U256::from(head + 3);
    let call = siphonCall {
        target: vault,
        data,
        from,
        wallets: wallets.clone(),
        boxes: boxes.clone(),
    }
    .abi_encode();
    world.anvil("evm_setAutomine", json!([false])).await;
    let (raw, hash) = signed(&account(0), nonce, Some(siphon), 0, call.into());
    let answer = chain.ask("eth_sendRawTransaction", json!([raw])).await;
    assert_eq!(answer.body["result"], json!(hash), "it behaves: {}", answer.text);
    world.anvil("anvil_dropAllTransactions", json!([])).await;
    world.anvil("anvil_mine", json!(["0x4"])).await;
    let before = (
        world.bare("evm_snapshot", json!([])).await["result"].clone(),
        raw.clone(),
    );
    assert_eq!(
        world.bare("eth_sendRawTransaction", json!([raw])).await["result"],
        json!(hash)
    );
    let transfer = transferCall {
        to: token,
        value: U256::ZERO,
    }
    .abi_encode();
    let (behind, behind_hash) = signed(&account(2), 0, Some(token), 0, transfer.into());
    assert_eq!(
        world.bare("eth_sendRawTransaction", json!([behind])).await["result"],
        json!(behind_hash)
    );
    world.anvil("evm_mine", json!([])).await;
    world.anvil("evm_setAutomine", json!([true])).await;
    let (block, behind) = (head + 5, (behind_hash, token));
    world.mined(block).await;
    let receipt = world.bare("eth_getTransactionReceipt", json!([hash])).await;
    assert_eq!(
        receipt["result"]["status"],
        json!("0x1"),
        "the attack is mined and succeeds"
    );
    Scene {
        chain,
        bank,
        siphon,
        boxes,
        wallets,
        children,
        probe,
        colleague,
        boss,
        victim,
        other,
        hash,
        before,
        behind,
        block,
    }
}

impl Scene {
    /// The answers of every method about every address, for every caller.
    async fn answers(&self) -> Vec<(String, String)> {
        let world = &self.chain.world;
        let people: [(&str, Option<&TestUser>); 6] = [
            ("thief", Some(&self.chain.caller)),
            ("colleague", Some(&self.colleague)),
            ("boss", Some(&self.boss)),
            ("victim", Some(&self.victim)),
            ("other", Some(&self.other)),
            ("nobody", None),
        ];
        // Hashes and times of blocks differ between the two chains anyway, so they are replaced.
        let mut block_values = Vec::new();
        for number in 0..=self.block {
            let block = world
                .bare("eth_getBlockByNumber", json!([format!("{number:#x}"), false]))
                .await;
            block_values.extend(["hash", "timestamp"].map(|name| block["result"][name].to_string()));
        }
        let mut answers = Vec::new();
        for (label, person) in people {
            let own = match label {
                "thief" => self.chain.wallet,
                "victim" => self.wallets[3],
                _ => self.wallets[0],
            };
            for (method, params) in self.calls(own) {
                // A second passes, so that rate limits do not apply.
                world.fixture.clock.pass(1);
                let answer = world.ask(person, &method, params.clone()).send().await;
                let text = block_values
                    .iter()
                    .fold(answer.text, |text, value| text.replace(value, "a block's"));
                answers.push((
                    format!("{label} {method} {params}"),
                    format!("{} {text}", answer.status),
                ));
            }
        }
        answers
    }

    fn calls(&self, own: Address) -> Vec<(String, Value)> {
        let hex = |call: Vec<u8>| Bytes::from(call);
        let latest = "latest";
        let mut calls = Vec::new();
        let mut ask = |method: &str, params: Value| calls.push((method.to_owned(), params));
        let utilities = [Address::ZERO, Address::with_last_byte(4)];
        let alone = [self.siphon, self.chain.wallet];
        for address in self
            .wallets
            .iter()
            .chain(&self.boxes)
            .chain(&self.children)
            .chain(&utilities)
            .chain(&alone)
        {
            ask("eth_getBalance", json!([address, latest]));
            ask("eth_getTransactionCount", json!([address, latest]));
            ask("eth_getCode", json!([address, latest]));
            ask("eth_getStorageAt", json!([address, B256::ZERO, latest]));
            ask("eth_getProof", json!([address, [B256::ZERO], latest]));
            for call in [keptCall {}.abi_encode(), lootCall {}.abi_encode()] {
                ask("eth_call", json!([{"to": address, "data": hex(call)}, latest]));
            }
            let balance_of = balanceOfCall { account: *address }.abi_encode();
            ask("eth_call", json!([{"to": self.probe, "data": hex(balance_of)}, latest]));
            ask("eth_estimateGas", json!([{"from": own, "to": address, "value": "0x1"}]));
            ask(
                "eth_getLogs",
                json!([{"address": address, "fromBlock": "0x0", "toBlock": latest}]),
            );
            ask(
                "debug_traceCall",
                json!([{"from": own, "to": address, "value": "0x1"}, latest, {"tracer": "callTracer"}]),
            );
        }
        for address in &self.boxes {
            let keep = hex(keepCall { what: U256::from(9) }.abi_encode());
            ask("eth_estimateGas", json!([{"from": own, "to": address, "data": keep}]));
            ask(
                "eth_createAccessList",
                json!([{"from": own, "to": address, "data": keep}]),
            );
        }
        let (behind, token) = self.behind;
        ask("eth_getTransactionReceipt", json!([behind]));
        ask(
            "eth_getLogs",
            json!([{"address": token, "fromBlock": "0x0", "toBlock": latest}]),
        );
        let number = format!("{:#x}", self.block);
        ask("eth_getTransactionReceipt", json!([self.hash]));
        ask("eth_getTransactionByHash", json!([self.hash]));
        ask("eth_getTransactionByBlockNumberAndIndex", json!([number, "0x0"]));
        ask("eth_getBlockReceipts", json!([number]));
        ask("eth_getBlockTransactionCountByNumber", json!([number]));
        ask("debug_traceTransaction", json!([self.hash, {"tracer": "callTracer"}]));
        calls
    }

    /// The number of violations since the last call of this function.
    async fn violations(&self) -> usize {
        let records = self.chain.world.fixture.records();
        let is_violation = |record: &&Record| match record {
            Record::Security(event) => event.kind == SecurityKind::MinedTraceViolation,
            _ => false,
        };
        records.iter().filter(is_violation).count()
    }

    async fn actual_balance(&self, address: Address) -> Value {
        self.chain
            .world
            .bare("eth_getBalance", json!([address, "latest"]))
            .await["result"]
            .clone()
    }

    /// Sends as this user, and returns the receipt that the user is shown.
    async fn sends(&self, person: &TestUser, key: usize, to: Address, value: u64, input: Vec<u8>) -> Value {
        let world = &self.chain.world;
        let nonce = world.node.mined_nonce(account(key).address()).await.unwrap();
        let head = world.node.head().unwrap().number;
        let (raw, hash) = signed(&account(key), nonce, Some(to), value, input.into());
        world.fixture.clock.pass(2);
        let answer = world
            .ask(Some(person), "eth_sendRawTransaction", json!([raw]))
            .send()
            .await;
        assert_eq!(answer.body["result"], json!(hash), "{}", answer.text);
        world.mined(head + 1).await;
        world
            .ask(Some(person), "eth_getTransactionReceipt", json!([hash]))
            .send()
            .await
            .body["result"]
            .clone()
    }
}

/// HD28: nobody learns anything from the payments, writes and creations of the attack, from its call of another
/// organization's open contract, or from its payments to the beneficiary and a precompile.
#[tokio::test]
async fn hd28_hd40_no_answer_depends_on_a_convicted_transaction() {
    // The two secrets also differ in the amount of gas and the number of events.
    let (first_scene, second_scene) = (robbed(0b0001).await, robbed(0b1110).await);
    for (bit, address) in first_scene.wallets.iter().enumerate() {
        assert_ne!(
            first_scene.actual_balance(*address).await,
            second_scene.actual_balance(*address).await,
            "the attack leaks bit {bit}"
        );
    }
    for address in [Address::ZERO, Address::with_last_byte(4)] {
        assert_ne!(
            first_scene.actual_balance(address).await,
            second_scene.actual_balance(address).await,
            "the attack leaks all of it"
        );
    }
    let gas = async |scene: &Scene| {
        scene
            .chain
            .world
            .bare("eth_getTransactionReceipt", json!([scene.hash]))
            .await["result"]["gasUsed"]
            .clone()
    };
    assert_ne!(gas(&first_scene).await, gas(&second_scene).await);
    let index = async |scene: &Scene| {
        let receipt = scene
            .chain
            .world
            .bare("eth_getTransactionReceipt", json!([scene.behind.0]))
            .await;
        assert_eq!(receipt["result"]["transactionIndex"], json!("0x1"));
        receipt["result"]["logs"][0]["logIndex"].clone()
    };
    assert_ne!(
        index(&first_scene).await,
        index(&second_scene).await,
        "the number of events leaks"
    );
    assert_eq!(
        (first_scene.violations().await, second_scene.violations().await),
        (1, 1)
    );
    let (first_answers, second_answers) = (first_scene.answers().await, second_scene.answers().await);
    let differ: Vec<_> = first_answers
        .iter()
        .zip(&second_answers)
        .filter(|(answer, other_answer)| answer != other_answer)
        .collect();
    assert!(
        differ.is_empty(),
        "{} of {} differ: {differ:#?}",
        differ.len(),
        first_answers.len()
    );
    // The equal answers are results, not denials.
    let good = |caller: &str, method: &str, address: Address| {
        let prefix = format!("{caller} {method} [\"{address:#x}\"");
        let answer = first_answers
            .iter()
            .find(|(call, _)| call.to_lowercase().starts_with(&prefix.to_lowercase()));
        answer.map(|(_, answer)| answer.clone()).unwrap()
    };
    assert!(
        good("victim", "eth_getBalance", first_scene.wallets[3]).contains("0x21e19e0c9bab2400000"),
        "as before it was paid"
    );
    assert!(good("colleague", "eth_getBalance", first_scene.wallets[2]).contains("\"0x0\""));
    assert!(
        good("colleague", "eth_getCode", first_scene.boxes[0]).contains("0x60"),
        "open as ever"
    );
    assert!(good("colleague", "eth_getCode", first_scene.children[0]).contains("\"0x\""));
    let receipt = format!("other eth_getTransactionReceipt [\"{:#x}\"]", first_scene.behind.0);
    let receipt = first_answers
        .iter()
        .find(|(call, _)| *call == receipt)
        .map(|(_, answer)| answer)
        .unwrap();
    assert!(receipt.contains("\"logIndex\":\"0x0\""), "{receipt}");
    // Lists for administrators reveal nothing either: changes outside of the sender's side are listed only for their
    // owner.
    for scene in [&first_scene, &second_scene] {
        let rows = scene.chain.world.fixture.store.read().list_withheld().await.unwrap();
        let listed_orgs: Vec<_> = rows.iter().filter_map(|row| row.org).collect();
        assert!(
            !listed_orgs.contains(&scene.bank) && listed_orgs.len() == 1,
            "{listed_orgs:?}"
        );
        let snapshot = scene.chain.world.fixture.feed.pin().snapshot;
        assert!(scene.children.iter().all(|child| snapshot.contract(*child).is_none()));
    }
}

/// HD28: a user who was paid by a thief can still send and is not convicted; nor is a user of a contract that the thief
/// wrote to, unless they use the written state.
#[tokio::test]
async fn hd28_hd38_honest_users_can_continue() {
    let scene = robbed(0b1010).await;
    let payee = account(1).address();
    let receipt = scene.sends(&scene.victim, 6, payee, 5, Vec::new()).await;
    assert_eq!(receipt["status"], json!("0x1"), "{receipt}");
    let (token, world) = (scene.chain.mine, &scene.chain.world);
    let id = world.fixture.feed.pin().snapshot.contract(token).unwrap().id;
    let colleague = &scene.colleague;
    world
        .fixture
        .change(async |tx| tx.create_grant(NewGrant::full(id, colleague.group)).await.unwrap())
        .await;
    let nothing = transferCall {
        to: payee,
        value: U256::ZERO,
    }
    .abi_encode();
    let receipt = scene.sends(colleague, 5, token, 0, nothing).await;
    assert_eq!(receipt["status"], json!("0x1"), "{receipt}");
    assert_eq!(scene.violations().await, 1);
    // Their later payment is visible.
    let shown = world
        .ask(
            Some(&scene.victim),
            "eth_getBalance",
            json!([scene.wallets[3], "latest"]),
        )
        .send()
        .await;
    assert_ne!(shown.body["result"], json!("0x21e19e0c9bab2400000"));
    // The contracts of the bank stay open to its users; changes based on the loot are withheld with it.
    let read = async |to: Address| {
        let call = json!([{"to": to, "data": Bytes::from(keptCall {}.abi_encode())}, "latest"]);
        scene.chain.world.ask(Some(colleague), "eth_call", call).send().await
    };
    let zero = json!(Bytes::from(U256::ZERO.abi_encode()));
    assert_eq!(read(scene.boxes[1]).await.body["result"], zero);
    let receipt = scene
        .sends(
            colleague,
            5,
            scene.boxes[1],
            0,
            keepCall { what: U256::from(7) }.abi_encode(),
        )
        .await;
    assert_eq!(
        (receipt, read(scene.boxes[1]).await.body["result"].clone()),
        (Value::Null, zero)
    );
    assert_eq!(scene.violations().await, 1, "one more violation");
    assert_eq!(
        world.fixture.store.read().list_suspensions().await.unwrap().len(),
        1,
        "the thief alone"
    );
    // After an administrator clears the convictions, all of it is visible, and the created contracts are registered.
    let convicted = world.fixture.store.read().list_convictions().await.unwrap();
    world
        .fixture
        .change(async |tx| {
            for conviction in &convicted {
                tx.clear_conviction(conviction.id, None, "a test").await.unwrap();
            }
        })
        .await;
    assert_eq!(
        read(scene.boxes[1]).await.body["result"],
        json!(Bytes::from(U256::from(7).abi_encode()))
    );
    assert_eq!(
        world
            .fixture
            .feed
            .pin()
            .snapshot
            .contract(scene.children[1])
            .map(|contract| contract.org),
        Some(scene.bank)
    );
}

/// HD14: changes that left the chain are withheld no more; changes that come back are withheld again. The store holds
/// the withheld changes.
#[tokio::test]
async fn hd28_withheld_changes_follow_the_chain() {
    let scene = robbed(0b0101).await;
    let world = &scene.chain.world;
    let shown = async |address: Address| {
        let answer = world
            .ask(Some(&scene.colleague), "eth_getBalance", json!([address, "latest"]))
            .send()
            .await;
        answer.body["result"].clone()
    };
    let (paid, rows) = (scene.wallets[2], async || {
        world.fixture.store.read().list_withheld().await.unwrap().len()
    });
    let row_count = rows().await;
    assert!(row_count > 0);
    assert_eq!(
        (scene.actual_balance(paid).await, shown(paid).await),
        (json!("0x1"), json!("0x0"))
    );
    let (before, raw) = &scene.before;
    assert_eq!(world.bare("evm_revert", json!([before])).await["result"], json!(true));
    world.anvil("anvil_dropAllTransactions", json!([])).await;
    world.anvil("anvil_mine", json!(["0x2", "0x7"])).await;
    world.node.refresh_head().await.unwrap();
    assert_eq!(
        (rows().await, scene.actual_balance(paid).await, shown(paid).await),
        (0, json!("0x0"), json!("0x0"))
    );
    // Another user pays the wallet meanwhile.
    let (gift, _) = signed(&account(1), 0, Some(paid), 7, Bytes::new());
    world.bare("eth_sendRawTransaction", json!([gift])).await;
    world.mined(scene.block + 2).await;
    assert_eq!(shown(paid).await, json!("0x7"));
    assert_eq!(
        world.bare("eth_sendRawTransaction", json!([raw])).await["result"],
        json!(scene.hash)
    );
    world.mined(scene.block + 3).await;
    assert_eq!(
        (scene.actual_balance(paid).await, shown(paid).await),
        (json!("0x8"), json!("0x7"))
    );
    assert_eq!(rows().await, row_count);
    let receipt = world
        .ask(
            Some(&scene.chain.caller),
            "eth_getTransactionReceipt",
            json!([scene.hash]),
        )
        .send()
        .await;
    assert_eq!(receipt.body["result"], Value::Null);
}

/// HD38: the payee's wallet is delegated between the trace of an honest payment and its block. The payer is not
/// suspended.
#[tokio::test]
async fn hd38_a_payer_is_not_suspended_for_the_payees_delegation() {
    let scene = robbed(0b1010).await;
    let world = &scene.chain.world;
    let payee = account(6).address();
    let rival = world
        .fixture
        .feed
        .pin()
        .snapshot
        .contract(scene.chain.theirs)
        .unwrap()
        .org;
    // The delegate is a contract of the robbed organization, which the payee may enter and the payer may not.
    let (code, abi) = artifact("Siphon");
    let pocket = world.deploy(&code).await;
    world.contract(rival, pocket, Some(&abi), &[scene.victim.group]).await;
    world.anvil("evm_setAutomine", json!([false])).await;
    let (raw, hash) = signed(&account(5), 0, Some(payee), 7, Bytes::new());
    world.fixture.clock.pass(2);
    let answer = world
        .ask(Some(&scene.colleague), "eth_sendRawTransaction", json!([raw]))
        .send()
        .await;
    assert_eq!(answer.body["result"], json!(hash), "{}", answer.text);
    world
        .anvil("anvil_setCode", json!([payee, format!("0xef0100{pocket:x}")]))
        .await;
    let head = world.node.head().unwrap().number;
    world.anvil("evm_mine", json!([])).await;
    world.mined(head + 1).await;
    assert_eq!(
        world.bare("eth_getTransactionReceipt", json!([hash])).await["result"]["status"],
        json!("0x1")
    );
    let suspended = world.fixture.store.read().list_suspensions().await.unwrap();
    assert_eq!(suspended.len(), 1, "the thief alone");
    assert!(!world.fixture.feed.pin().snapshot.is_suspended(scene.colleague.id));
    // HD29: the reads of the late code count for the payer, so the transaction is shown to nobody.
    assert_eq!(scene.violations().await, 2, "the theft and this one");
    let receipt = world
        .ask(Some(&scene.colleague), "eth_getTransactionReceipt", json!([hash]))
        .send()
        .await;
    assert_eq!(receipt.body["result"], Value::Null, "{}", receipt.text);
}
