//! Signature checks of contract wallets (ERC-1271), traced by a real node and evaluated by policy (LK-4, HD10, HD26).

use crate::{anvil::send, connect};
use alloy_primitives::{Bytes, U256, keccak256};
use alloy_signer::SignerSync as _;
use alloy_signer_local::PrivateKeySigner;
use alloy_sol_types::SolValue as _;
use gw_evm::wire::{TraceScope, UpstreamCall};
use gw_node::{NoTrace, Node, RequestBudget, TraceResult};
use gw_policy::{
    PolicySettings,
    access::{TraceFacts, WalletAnswer, WalletQuestion, WalletTrace, evaluate_wallet_signature},
    snapshot::{CodePin, Snapshot},
    testing::{NOW, World, function, org_id, user_id, world},
};
use gw_testkit::anvil::anvil;
use gw_types::{Address, B256};
use std::sync::Arc;

const HASH: B256 = B256::repeat_byte(3);
const YES: WalletAnswer = WalletAnswer::Yes { owner: None };

fn artifact(text: &str) -> String {
    let artifact: serde_json::Value = serde_json::from_str(text).unwrap();
    artifact.get("bytecode").unwrap().as_str().unwrap().to_owned()
}

macro_rules! init_code {
    ($name:literal) => {
        artifact(include_str!(concat!(
            "../../../../contracts/artifacts/",
            $name,
            ".json"
        )))
    };
}

fn key(byte: u8) -> PrivateKeySigner {
    PrivateKeySigner::from_bytes(&B256::repeat_byte(byte)).unwrap()
}

fn signature_of(signer: &PrivateKeySigner) -> Vec<u8> {
    signer.sign_hash_sync(&HASH).unwrap().as_bytes().to_vec()
}

fn calldata(function: &str, argument: B256) -> String {
    format!(
        "0x{}{}",
        hex::encode(keccak256(function).first_chunk::<4>().unwrap()),
        hex::encode(argument)
    )
}

async fn deploy(node: &Node, code: &str, argument: Address) -> Address {
    send(node, None, &format!("{code}{:x}", argument.into_word()))
        .await
        .unwrap()
}

async fn wallet_trace(node: &Node, question: &WalletQuestion) -> WalletTrace {
    node.refresh_head().await.unwrap();
    let head = node.head().unwrap().block;
    let trace = match node
        .trace(
            &question.request(),
            head.pin(),
            TraceScope::Read,
            &gw_policy::snapshot::VisibleState::default(),
        )
        .await
    {
        Ok(TraceResult::Trace(trace)) => Some(trace),
        Ok(TraceResult::Refused(_)) | Err(NoTrace::Unusable(_) | NoTrace::Unsupported | NoTrace::Node(_)) => None,
    };
    WalletTrace {
        trace,
        facts: TraceFacts {
            coinbase: head.coinbase,
            number: head.number,
            time: NOW,
        },
    }
}

async fn check(node: &Node, snapshot: &Snapshot, user: &str, wallet: Address, signature: &[u8]) -> WalletAnswer {
    let question = WalletQuestion {
        wallet,
        hash: HASH,
        signature: signature.to_vec(),
    };
    let trace = wallet_trace(node, &question).await;
    evaluate_wallet_signature(
        snapshot,
        user_id(user),
        &question,
        &trace,
        NOW,
        &PolicySettings::default(),
    )
}

/// A bank with a treasury, a rival organization, and a user without an organization.
fn people() -> World {
    world()
        .org("rival")
        .group("members")
        .org("bank")
        .group("treasury")
        .group("others")
        .user("alice")
        .member("treasury")
        .user("bob")
        .member("treasury")
        .user("carol")
        .member("others")
        .user("mallory")
        .member("rival/members")
        .user("stranger")
}

/// LK-4: a wallet that was deployed without the gateway accepts its owner's signature and rejects others; addresses
/// without a contract reject all.
#[tokio::test]
async fn lk4_contract_wallets_verify_their_owners_signature() {
    let anvil = anvil();
    let node = connect(anvil.url()).await;
    let (owner, snapshot) = (key(7), people().snapshot());
    let wallet = deploy(&node, &init_code!("Wallet"), owner.address()).await;
    let check = async |address, signature: &[u8]| check(&node, &snapshot, "stranger", address, signature).await;
    assert_eq!(check(wallet, &signature_of(&owner)).await, YES);
    for (signature, reason) in [(signature_of(&key(8)), "another key"), (Vec::new(), "empty")] {
        assert_eq!(check(wallet, &signature).await, WalletAnswer::No, "{reason}");
    }
    // The node rejects the call before it runs (intrinsic gas): that links nobody, and proves nothing about the wallet.
    assert_eq!(check(wallet, &[1; 8000]).await, WalletAnswer::Unknown, "too long");
    for non_contract in [
        owner.address(),
        Address::repeat_byte(9),
        Address::ZERO,
        Address::with_last_byte(1),
    ] {
        assert_eq!(
            check(non_contract, &signature_of(&owner)).await,
            WalletAnswer::No,
            "no contract at {non_contract}"
        );
    }
    for (mood, reason) in [(1, "it reverts"), (2, "it burns all gas"), (3, "too many bytes")] {
        send(
            &node,
            Some(wallet),
            &calldata("setMood(uint256)", B256::with_last_byte(mood)),
        )
        .await;
        assert_eq!(check(wallet, &signature_of(&owner)).await, WalletAnswer::No, "{reason}");
    }
    // HD15: an account that delegates to this contract.
    let delegation_params = format!(r#"["{:#x}","0xef0100{wallet:x}"]"#, owner.address());
    let set_code = UpstreamCall {
        method: "anvil_setCode".into(),
        params: delegation_params,
    };
    node.call(&set_code, RequestBudget::Forward).await.unwrap();
    assert_eq!(check(owner.address(), &signature_of(&owner)).await, WalletAnswer::No);
}

/// The facts that `OracleWallet` can read.
#[derive(Clone, Copy, Debug)]
enum Fact {
    Balance,
    CodeHash,
    CodeSize,
    Code,
    StaticCall,
    DelegateCall,
    Call,
    Creation,
    OwnStorage,
    OwnBalance,
}

/// A signature that makes the wallet check whether a fact about the target is at least `bound`.
fn is_at_least(fact: Fact, target: Address, bound: u64) -> Vec<u8> {
    let number = U256::from(fact as u8);
    let data = Bytes::copy_from_slice(keccak256("secret()").first_chunk::<4>().unwrap());
    (number, target, data, U256::from(bound)).abi_encode_params()
}

/// RT1a, RT1b, RT19: a user who links a wallet of their own making could use it to read anything on the chain, bit by
/// bit. The wallet's own code is unregistered here, because its registration was lost or it was deployed without the
/// gateway.
#[tokio::test]
async fn rt19_rt1a_hd26_a_hostile_wallet_tells_nothing_but_its_own() {
    let anvil = anvil();
    let node = connect(anvil.url()).await;
    let secret = deploy(&node, &init_code!("Secret"), Address::ZERO).await;
    let wallet = deploy(&node, &init_code!("OracleWallet"), Address::ZERO).await;
    let payee = Address::repeat_byte(0xaa);
    let set_balance = |address: Address| UpstreamCall {
        method: "anvil_setBalance".into(),
        params: format!(r#"["{address:#x}","0x10"]"#),
    };
    for address in [secret, payee] {
        node.call(&set_balance(address), RequestBudget::Forward).await.unwrap();
    }
    let rival_contract = people().org("rival").contract("secret").at(secret).grant("members");
    let worlds = [
        ("registered", rival_contract.clone(), true),
        ("deleted", rival_contract.clone().retired(), false),
        ("quarantined", rival_contract.clone().quarantined_at(secret), false),
        (
            "reserved",
            people().user("mallory").org("rival").reservation_at(secret),
            false,
        ),
        ("unregistered", people(), false),
    ];
    let foreign_facts = [
        Fact::Balance,
        Fact::CodeHash,
        Fact::CodeSize,
        Fact::Code,
        Fact::StaticCall,
        Fact::DelegateCall,
    ];
    for (name, world, is_reached) in worlds {
        let snapshot = world.snapshot();
        for fact in foreign_facts {
            let question = is_at_least(fact, secret, 0);
            // A user who may access the contract may read it anyway, so their answer is the true one.
            let insider = check(&node, &snapshot, "mallory", wallet, &question).await;
            assert_eq!(
                insider,
                if is_reached { YES } else { WalletAnswer::No },
                "{name} {fact:?}"
            );
            for user in ["alice", "stranger", "nobody at all"] {
                assert_eq!(
                    check(&node, &snapshot, user, wallet, &question).await,
                    WalletAnswer::No,
                    "{name} {fact:?}"
                );
            }
        }
    }
    let snapshot = rival_contract.snapshot();
    for fact in [Fact::Balance, Fact::Call, Fact::CodeHash, Fact::CodeSize] {
        let question = is_at_least(fact, payee, 0);
        assert_eq!(
            check(&node, &snapshot, "alice", wallet, &question).await,
            WalletAnswer::No,
            "a wallet: {fact:?}"
        );
    }
    let creation = is_at_least(Fact::Creation, Address::ZERO, 1);
    assert_eq!(
        check(&node, &snapshot, "alice", wallet, &creation).await,
        WalletAnswer::No
    );
    // The wallet's own state was chosen by its maker, so the answer reveals nothing.
    for fact in [Fact::OwnStorage, Fact::OwnBalance] {
        let own = async |bound| {
            check(
                &node,
                &snapshot,
                "alice",
                wallet,
                &is_at_least(fact, Address::ZERO, bound),
            )
            .await
        };
        assert_eq!((own(1).await, own(2).await), (YES, WalletAnswer::No), "{fact:?}");
    }
    // A registered contract of another organization is no wallet, and neither is one whose registration was deleted.
    for world in [
        people().org("rival").contract("w").at(wallet).grant("members"),
        people().contract("w").at(wallet).retired(),
    ] {
        let own = is_at_least(Fact::OwnStorage, Address::ZERO, 1);
        assert_eq!(
            check(&node, &world.snapshot(), "alice", wallet, &own).await,
            WalletAnswer::No
        );
    }
}

/// Deploys a proxy wallet with its implementation; returns both addresses.
async fn deploy_safe(node: &Arc<Node>, owner: &PrivateKeySigner) -> (Address, Address) {
    let singleton = deploy(node, &init_code!("SafeSingleton"), Address::ZERO).await;
    let safe = deploy(node, &init_code!("SafeProxy"), singleton).await;
    send(
        node,
        Some(safe),
        &calldata("setup(address)", owner.address().into_word()),
    )
    .await;
    (safe, singleton)
}

/// RTS11: a contract wallet deployed through the gateway is its organization's contract. It can be linked by a user who
/// may access it and holds its key.
#[tokio::test]
async fn rts11_hd10_a_registered_wallet_is_linked_by_a_user_with_access_and_its_key() {
    let anvil = anvil();
    let node = connect(anvil.url()).await;
    let owner = key(7);
    let (safe, singleton) = deploy_safe(&node, &owner).await;
    let bank = || {
        people()
            .org("bank")
            .contract("singleton")
            .at(singleton)
            .grant("treasury")
    };
    let registered = bank().contract("safe").at(safe).grant("treasury");
    let yes = WalletAnswer::Yes {
        owner: Some(org_id("bank")),
    };
    let check_as = async |world: &World, user: &str, key_byte: u8| {
        check(&node, &world.snapshot(), user, safe, &signature_of(&key(key_byte))).await
    };
    assert_eq!(check_as(&registered, "alice", 7).await, yes);
    assert_eq!(
        check_as(&registered, "bob", 8).await,
        WalletAnswer::No,
        "a colleague without its key"
    );
    assert_eq!(
        check_as(&registered, "carol", 7).await,
        WalletAnswer::No,
        "a colleague without access to it"
    );
    assert_eq!(
        check_as(&registered, "mallory", 7).await,
        WalletAnswer::No,
        "a member of another organization"
    );
    assert_eq!(
        check_as(&registered, "stranger", 7).await,
        WalletAnswer::No,
        "a member of none"
    );

    // The implementation must be registered with access for the user, or shared and pinned.
    let safe_only = people().org("bank").contract("safe").at(safe).grant("treasury");
    assert_eq!(
        check_as(&safe_only, "alice", 7).await,
        WalletAnswer::No,
        "its implementation is not registered"
    );
    let foreign = people()
        .org("rival")
        .contract("singleton")
        .at(singleton)
        .grant("members");
    let foreign = foreign.org("bank").contract("safe").at(safe).grant("treasury");
    assert_eq!(
        check_as(&foreign, "alice", 7).await,
        WalletAnswer::No,
        "its implementation is another organization's contract"
    );
    assert_eq!(
        check_as(&safe_only.clone().shared_at(singleton, None), "alice", 7).await,
        WalletAnswer::No,
        "without a pin"
    );
    let code = node.code_pair(singleton).await.unwrap().unwrap().code;
    let pin = |code| {
        Some(CodePin {
            code,
            implementation: None,
        })
    };
    assert_eq!(
        check_as(&safe_only.clone().shared_at(singleton, pin(code)), "alice", 7).await,
        yes
    );
    assert_eq!(
        check_as(&safe_only.shared_at(singleton, pin(HASH)), "alice", 7).await,
        WalletAnswer::No,
        "another pin"
    );

    // Function rules apply here, too.
    let safe_granted = bank().contract("safe").at(safe).grant("treasury");
    let other_function = safe_granted.clone().functions([function("owner()", [])]);
    assert_eq!(check_as(&other_function, "alice", 7).await, WalletAnswer::No);
    let this_function = safe_granted.functions([function("isValidSignature(bytes32,bytes)", [])]);
    assert_eq!(check_as(&this_function, "alice", 7).await, yes);

    // Quarantined, deleted, or the user is banned.
    assert_eq!(
        check_as(&registered.clone().quarantined_at(safe), "alice", 7).await,
        WalletAnswer::No
    );
    assert_eq!(
        check_as(&registered.clone().quarantined_at(singleton), "alice", 7).await,
        WalletAnswer::No
    );
    assert_eq!(
        check_as(&registered.clone().retired(), "alice", 7).await,
        WalletAnswer::No
    );
    assert_eq!(
        check_as(&registered.user("alice").banned(), "alice", 7).await,
        WalletAnswer::No
    );
}
