//! Shared infrastructure and toggles of tracing, against a real node (X6, X8, X9, D3, HD9).

use crate::world::{Answer, World, account, artifact, real};
use alloy_primitives::keccak256;
use alloy_sol_types::{SolCall, SolValue, sol};
use gw_policy::snapshot::SystemToggle;
use gw_store::record::SharedInfraInput;
use gw_testkit::{Anvil, TestUser};
use gw_types::{Address, B256, Bytes, DenyReason, Seconds, U256};
use serde_json::{Value, json};

sol! {
    function balanceOf(address account) external view returns (uint256);
    function forward(address target, bytes data) external payable returns (bytes);
}

/// An unregistered utility, a token of the caller's organization, and one of another organization.
struct Chain {
    world: World,
    _anvil: Anvil,
    caller: TestUser,
    utility: Address,
    mine: Address,
    theirs: Address,
}

async fn chain() -> Chain {
    let (world, anvil) = real().await;
    let (bank, rival) = (
        world.fixture.create_org("bank").await,
        world.fixture.create_org("rival").await,
    );
    let caller = world.person("caller", bank, &["*"], &[]).await;
    world.link(&caller, account(0).address()).await;
    let token = {
        let arguments = ("Token".to_owned(), "T".to_owned(), U256::from(1_000_000u64)).abi_encode_params();
        [artifact("DemoERC20").0.to_vec(), arguments].concat()
    };
    let (mine, theirs) = (world.deploy(&token).await, world.deploy(&token).await);
    let utility = world.deploy(&artifact("Forwarder").0).await;
    world.contract(bank, mine, None, &[caller.group]).await;
    world.contract(rival, theirs, None, &[]).await;
    Chain {
        world,
        _anvil: anvil,
        caller,
        utility,
        mine,
        theirs,
    }
}

impl Chain {
    async fn ask(&self, method: &str, params: Value) -> Answer {
        self.world.ask(Some(&self.caller), method, params).send().await
    }

    /// The utility queries `target` for an account's balance.
    async fn through(&self, target: Address) -> Answer {
        let inner = balanceOfCall {
            account: account(3).address(),
        }
        .abi_encode()
        .into();
        let call = forwardCall { target, data: inner }.abi_encode();
        self.ask(
            "eth_call",
            json!([{"to": self.utility, "data": Bytes::from(call)}, "latest"]),
        )
        .await
    }

    async fn state(&self) -> [Answer; 2] {
        let code = self.ask("eth_getCode", json!([self.utility, "latest"])).await;
        [code, self.ask("eth_getBalance", json!([self.utility, "latest"])).await]
    }

    async fn tag(&self, codehash: Option<B256>) {
        let input = SharedInfraInput {
            name: "a utility".to_owned(),
            description: String::new(),
            codehash,
            implementation_codehash: None,
        };
        self.world
            .fixture
            .change(async |tx| tx.create_shared_infra(self.utility, input).await.unwrap())
            .await;
    }

    async fn last_reason(&self) -> Option<DenyReason> {
        self.world.fixture.access_records().last().unwrap().denial_reason
    }
}

fn has_result(answer: &Answer) -> bool {
    answer.status == 200 && answer.body.get("result").is_some()
}

#[tokio::test]
async fn x6_everybody_may_call_a_tagged_utility() {
    let chain = chain().await;
    chain.through(chain.mine).await.assert_denied();
    assert_eq!(chain.last_reason().await, Some(DenyReason::Unregistered));
    let pair = chain.world.node.code_pair(chain.utility).await.unwrap().unwrap();
    assert_eq!(pair.implementation, None);
    chain.tag(Some(pair.code)).await;
    let answer = chain.through(chain.mine).await;
    assert!(has_result(&answer), "{}", answer.text);
    assert!(chain.state().await.iter().all(has_result));
    // HD9: the exemption covers that address alone.
    chain.through(chain.theirs).await.assert_denied();
    assert_eq!(chain.last_reason().await, Some(DenyReason::CrossOrg));
    // Logs stay denied.
    chain
        .ask("eth_getLogs", json!([{"address": chain.utility}]))
        .await
        .assert_denied();
}

/// D3, spec/80 §9: code that differs from the pin voids the tag, for the call that finds it and for later ones. The
/// audit log has an entry, and a new pin restores the tag.
#[tokio::test]
async fn d3_changed_code_voids_the_tag_until_it_is_pinned_anew() {
    let chain = chain().await;
    let pair = chain.world.node.code_pair(chain.utility).await.unwrap().unwrap();
    chain.tag(Some(pair.code)).await;
    assert!(has_result(&chain.through(chain.mine).await));
    let evil = artifact("DemoERC20").0;
    chain.world.anvil("anvil_setCode", json!([chain.utility, evil])).await;
    chain.world.anvil("anvil_mine", json!([])).await;
    chain.world.node.refresh_head().await.unwrap();
    // The first call that finds the code is denied for it, before the tag is void; reads without a trace are denied,
    // too.
    chain.through(chain.mine).await.assert_denied();
    assert_eq!(chain.last_reason().await, Some(DenyReason::CodehashMismatch));
    let [code, balance] = chain.state().await;
    code.assert_denied();
    assert_eq!(balance.body["result"], json!("0x0"));
    chain.world.settle().await;
    let row = chain
        .world
        .fixture
        .store
        .read()
        .find_shared_infra(chain.utility)
        .await
        .unwrap()
        .unwrap();
    assert_eq!(row.broken_codehash, Some(keccak256(&evil)));
    assert!(chain.world.fixture.feed.pin().snapshot.shared(chain.utility).is_none());
    let entries = chain.world.fixture.store.outbox(0, 1000).await.unwrap();
    let pin_entries = entries
        .iter()
        .filter(|row| row.entry.actor_external_id.as_deref() == Some("system:code-pins"));
    assert_eq!(pin_entries.count(), 1, "one entry, however many calls find it");
    let pin = chain.world.node.code_pair(chain.utility).await.unwrap().unwrap();
    chain
        .world
        .fixture
        .change(async |tx| tx.pin_shared_infra(chain.utility, pin.code, None).await.unwrap())
        .await;
    assert!(chain.world.fixture.feed.pin().snapshot.shared(chain.utility).is_some());
    assert!(has_result(&chain.state().await[0]));
}

/// HD9: a proxy's pin is the pair of its code and its implementation's.
#[tokio::test]
async fn hd9_a_proxy_is_pinned_with_its_implementation() {
    let chain = chain().await;
    // ERC-1167, in front of the utility.
    let code = [
        "363d3d373d3d3d363d73",
        &format!("{:x}", chain.utility),
        "5af43d82803e903d91602b57fd5bf3",
    ]
    .concat();
    let proxy = Address::repeat_byte(0x77);
    chain
        .world
        .anvil("anvil_setCode", json!([proxy, format!("0x{code}")]))
        .await;
    chain.world.anvil("anvil_mine", json!([])).await;
    chain.world.node.refresh_head().await.unwrap();
    let pair = chain.world.node.code_pair(proxy).await.unwrap().unwrap();
    let behind = chain.world.node.code_pair(chain.utility).await.unwrap().unwrap();
    assert_eq!(pair.implementation, Some(behind.code));
    assert_eq!(
        chain.world.node.code_pair(Address::repeat_byte(0x99)).await.unwrap(),
        None,
        "no code"
    );
    let ask = async || {
        let inner = balanceOfCall {
            account: account(3).address(),
        }
        .abi_encode()
        .into();
        let call = Bytes::from(
            forwardCall {
                target: chain.mine,
                data: inner,
            }
            .abi_encode(),
        );
        chain
            .ask("eth_call", json!([{"to": proxy, "data": call}, "latest"]))
            .await
    };
    let tag = |implementation_codehash| SharedInfraInput {
        name: "a proxy".to_owned(),
        description: String::new(),
        codehash: Some(pair.code),
        implementation_codehash,
    };
    let half = tag(None);
    chain
        .world
        .fixture
        .change(async |tx| tx.create_shared_infra(proxy, half).await.unwrap())
        .await;
    ask().await.assert_denied();
    let whole = tag(pair.implementation);
    chain
        .world
        .fixture
        .change(async |tx| tx.update_shared_infra(proxy, whole).await.unwrap())
        .await;
    let answer = ask().await;
    assert!(has_result(&answer), "{}", answer.text);
    chain
        .world
        .anvil("anvil_setCode", json!([chain.utility, artifact("DemoERC20").0]))
        .await;
    chain.world.anvil("anvil_mine", json!([])).await;
    chain.world.node.refresh_head().await.unwrap();
    ask().await.assert_denied();
}

/// X9: while tracing of `eth_call` is off, the node answers a plain call; tracing comes back by itself.
#[tokio::test]
async fn x9_untraced_calls_are_answered_by_the_node_until_the_toggle_ends() {
    let chain = chain().await;
    let balance = Bytes::from(
        balanceOfCall {
            account: account(3).address(),
        }
        .abi_encode(),
    );
    let call = json!([{"to": chain.mine, "data": balance}, "latest"]);
    let traced = chain.ask("eth_call", call.clone()).await;
    let toggle = SystemToggle::EthCallTracing;
    let end = chain.world.fixture.clock.now_plus(Seconds(60));
    chain
        .world
        .fixture
        .change(async |tx| tx.set_toggle(toggle, false, "test".to_owned(), end).await.unwrap())
        .await;
    let untraced = chain.ask("eth_call", call.clone()).await;
    assert_eq!(traced.body["result"], untraced.body["result"], "{}", untraced.text);
    let trace = |records: Vec<gw_audit::AccessRecord>| records.last().unwrap().trace_kind;
    assert_eq!(trace(chain.world.fixture.access_records()), None);
    chain.world.fixture.clock.pass(61);
    assert!(has_result(&chain.ask("eth_call", call).await));
    assert!(trace(chain.world.fixture.access_records()).is_some(), "re-armed");
}
