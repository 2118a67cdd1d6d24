//! Sends against a real node: deployment, transfer, sharing, relays, upgrades.

use crate::world::{Answer, World, account, artifact, real, signed};
use alloy_sol_types::{SolCall, SolValue, sol};
use gw_testkit::TestUser;
use gw_types::{Address, B256, Bytes, Claim, DenyReason, OrgId, U256};
use serde_json::{Value, json};

sol! {
    function balanceOf(address account) external view returns (uint256);
    function transfer(address to, uint256 value) external returns (bool);
    function create() external returns (address child);
}

const SEND: &str = "eth_sendRawTransaction";

async fn send(world: &World, person: &TestUser, raw: &str) -> Answer {
    world.ask(Some(person), SEND, json!([raw])).send().await
}

async fn deployer(world: &World) -> (OrgId, TestUser) {
    let bank = world.fixture.create_org("bank").await;
    let alice = world.person("alice", bank, &["*"], &[Claim::Deploy]).await;
    world.link(&alice, account(0).address()).await;
    (bank, alice)
}

async fn receipt(world: &World, person: &TestUser, hash: B256) -> Value {
    world.result(person, "eth_getTransactionReceipt", json!([hash])).await
}

/// The path of a typical client: deploy, read, transfer, read the own write, share it.
#[tokio::test]
async fn a_token_from_its_deployment_to_a_shared_transfer() {
    let (world, _anvil) = real().await;
    let (bank, alice) = deployer(&world).await;
    let stranger = world.person("stranger", bank, &["*"], &[]).await;
    let arguments = ("Token".to_owned(), "T".to_owned(), U256::from(1_000u64)).abi_encode_params();
    let code = Bytes::from([artifact("DemoERC20").0.to_vec(), arguments].concat());
    let (raw, hash) = signed(&account(0), 0, None, 0, code);
    let answer = send(&world, &alice, &raw).await;
    assert_eq!(answer.body["result"], json!(hash), "{}", answer.text);
    world.mined(1).await;

    // R1, HD14: the deployer reaches the reserved address; the server registers what was mined.
    let token = account(0).address().create(0);
    let mined = receipt(&world, &alice, hash).await;
    assert_eq!(mined["contractAddress"], json!(token), "{mined}");
    assert_eq!(receipt(&world, &stranger, hash).await, Value::Null);
    world
        .contract(bank, token, Some(&artifact("DemoERC20").1), &[alice.group])
        .await;

    let transfer = |value| {
        Bytes::from(
            transferCall {
                to: account(1).address(),
                value: U256::from(value),
            }
            .abi_encode(),
        )
    };
    let (raw, hash) = signed(&account(0), 1, Some(token), 0, transfer(5u64));
    let shared =
        json!({"jsonrpc": "2.0", "id": 1, "method": SEND, "params": [raw], "visibleTo": ["did:test:stranger"]});
    let answer = world.raw(shared.to_string()).by(&alice).send().await;
    assert_eq!(answer.body["result"], json!(hash), "{}", answer.text);
    world.mined(2).await;
    assert_eq!(receipt(&world, &alice, hash).await["status"], "0x1");
    let call = balanceOfCall {
        account: account(1).address(),
    }
    .abi_encode();
    let balance = world
        .result(
            &alice,
            "eth_call",
            json!([{"to": token, "data": Bytes::from(call)}, "latest"]),
        )
        .await;
    assert_eq!(
        balance,
        json!(Bytes::from(U256::from(5u64).abi_encode())),
        "decision 41: own writes are read"
    );
    // R28: sharing shows this transaction to the recipient, and nothing else.
    assert_eq!(receipt(&world, &stranger, hash).await["status"], "0x1");
    let denied = world
        .ask(
            Some(&stranger),
            "eth_call",
            json!([{"to": token, "data": "0x18160ddd"}]),
        )
        .send()
        .await;
    denied.assert_denied();
    // W7: the same bytes again.
    let answer = send(&world, &alice, &raw).await;
    assert_eq!(
        (answer.status, &answer.body["error"]),
        (200, &json!({"code": -32000, "message": "nonce too low"})),
        "{}",
        answer.text
    );
}

/// HD15: an execution error in the trace is the node's answer, not a tracing failure; nothing is forwarded.
#[tokio::test]
async fn hd15_a_sender_without_funds_is_told_so() {
    let (world, _anvil) = real().await;
    let (_, alice) = deployer(&world).await;
    let poor: alloy_signer_local::PrivateKeySigner = format!("0x{}", "42".repeat(32)).parse().unwrap();
    let (raw, _) = signed(&poor, 0, Some(Address::repeat_byte(5)), 1, Bytes::new());
    let answer = send(&world, &alice, &raw).await;
    let error = json!({"code": -32000, "message": "insufficient funds for gas * price + value"});
    assert_eq!((answer.status, &answer.body["error"]), (200, &error), "{}", answer.text);
    let (intents, _, calls) = world.sends_recorded();
    assert_eq!((intents.len(), calls.len()), (0, 1));
}

/// X1, X7: a send is checked by its whole trace: a creation at runtime needs the claim, and its address is reserved.
#[tokio::test]
async fn x7_runtime_creations_need_the_claim_and_are_reserved() {
    let (world, _anvil) = real().await;
    let (bank, alice) = deployer(&world).await;
    let bob = world.person("bob", bank, &["*"], &[]).await;
    world.link(&bob, account(1).address()).await;
    let factory = world.deploy(&artifact("Factory").0).await;
    world.contract(bank, factory, None, &[alice.group, bob.group]).await;
    let create = Bytes::from(createCall {}.abi_encode());
    let (raw, _) = signed(&account(1), 0, Some(factory), 0, create.clone());
    send(&world, &bob, &raw).await.assert_denied();
    assert_eq!(
        world.fixture.access_records().pop().unwrap().denial_reason,
        Some(DenyReason::DeployClaimRequired)
    );
    let (raw, hash) = signed(&account(0), 0, Some(factory), 0, create);
    assert_eq!(send(&world, &alice, &raw).await.body["result"], json!(hash));
    let reserved = world.fixture.store.read().open_reservations(Some(hash)).await.unwrap();
    assert_eq!(
        reserved.iter().map(|row| row.address).collect::<Vec<_>>(),
        [factory.create(1)]
    );
}

/// HD13: a nonce more than 64 above the pending one would outlive its signer's rights.
#[tokio::test]
async fn hd13_a_nonce_far_ahead_is_refused() {
    let (world, _anvil) = real().await;
    let (_, alice) = deployer(&world).await;
    let to = Some(Address::repeat_byte(5));
    let (near, hash) = signed(&account(0), 64, to, 1, Bytes::new());
    assert_eq!(send(&world, &alice, &near).await.body["result"], json!(hash));
    let (far, _) = signed(&account(0), 65, to, 1, Bytes::new());
    assert_eq!(send(&world, &alice, &far).await.error(), (400, -32602));
}

/// HD13: another user's claimed transaction is not relayed, a leaked creation never.
#[tokio::test]
async fn hd13_a_leaked_creation_is_not_relayed() {
    let (world, _anvil) = real().await;
    let (bank, alice) = deployer(&world).await;
    let rival = world.person("rival", bank, &["*"], &[Claim::Deploy]).await;
    let (raw, hash) = signed(&account(0), 0, None, 0, artifact("Child").0);
    send(&world, &rival, &raw).await.assert_denied();
    assert_eq!(
        world.fixture.access_records().pop().unwrap().denial_reason,
        Some(DenyReason::SenderNotOwned)
    );
    assert_eq!(send(&world, &alice, &raw).await.body["result"], json!(hash));
}

/// U2: every write to a proxy's implementation slot is an upgrade, in any function.
#[tokio::test]
async fn u2_writing_an_implementation_slot_needs_the_upgrade_claim() {
    let (world, _anvil) = real().await;
    let (bank, alice) = deployer(&world).await;
    let upgrader = world.person("upgrader", bank, &["*"], &[Claim::Upgrade]).await;
    world.link(&upgrader, account(1).address()).await;
    // ADDRESS PUSH32 <ERC-1967 implementation slot> SSTORE: it writes an own contract into the slot (RT30).
    let slot: Bytes = "0x360894a13ba1a3210667c828492db98dca3e2076cc3735a920a3ca505d382bbc"
        .parse()
        .unwrap();
    let runtime = [&[0x30, 0x7f][..], &slot, &[0x55, 0x00]].concat();
    let size = u8::try_from(runtime.len()).unwrap();
    let init = [
        &[0x60, size, 0x60, 0x0b, 0x5f, 0x39, 0x60, size, 0x5f, 0xf3, 0x00][..],
        &runtime,
    ]
    .concat();
    let proxy = world.deploy(&init).await;
    world.contract(bank, proxy, None, &[alice.group, upgrader.group]).await;
    let poke = Bytes::from_static(&[1, 2, 3, 4]);
    let (raw, _) = signed(&account(0), 0, Some(proxy), 0, poke.clone());
    send(&world, &alice, &raw).await.assert_denied();
    assert_eq!(
        world.fixture.access_records().pop().unwrap().denial_reason,
        Some(DenyReason::UpgradeClaimRequired)
    );
    let (raw, hash) = signed(&account(1), 0, Some(proxy), 0, poke);
    assert_eq!(send(&world, &upgrader, &raw).await.body["result"], json!(hash));
}
