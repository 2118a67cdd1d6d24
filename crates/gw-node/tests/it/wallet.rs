//! What contract wallets say (ERC-1271), asked as a real node runs them and judged by policy (LK-4, HD10, HD26).

use crate::{anvil::send, connect};
use alloy_primitives::{Bytes, U256, keccak256};
use alloy_signer::SignerSync as _;
use alloy_signer_local::PrivateKeySigner;
use alloy_sol_types::SolValue as _;
use gw_evm::wire::{TraceScope, UpstreamCall};
use gw_node::{Budget, NoTrace, Node, Traced};
use gw_policy::{
    Knobs,
    access::{TraceFacts, WalletAnswer, WalletQuestion, WalletTrace, judge_wallet_signature},
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

fn key(n: u8) -> PrivateKeySigner {
    PrivateKeySigner::from_bytes(&B256::repeat_byte(n)).unwrap()
}

fn signed(by: &PrivateKeySigner) -> Vec<u8> {
    by.sign_hash_sync(&HASH).unwrap().as_bytes().to_vec()
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

async fn asked(node: &Node, question: &WalletQuestion) -> WalletTrace {
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
        Ok(Traced::Trace(trace)) => Some(trace),
        Ok(Traced::Refused(_)) | Err(NoTrace::Unusable(_) | NoTrace::Unsupported | NoTrace::Node(_)) => None,
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

async fn says(node: &Node, snapshot: &Snapshot, user: &str, wallet: Address, signature: &[u8]) -> WalletAnswer {
    let question = WalletQuestion {
        wallet,
        hash: HASH,
        signature: signature.to_vec(),
    };
    let traced = asked(node, &question).await;
    judge_wallet_signature(snapshot, user_id(user), &question, &traced, NOW, &Knobs::default())
}

/// A bank with a treasury, its rival, and somebody who belongs to nobody.
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

/// LK-4: a contract wallet's yes, its noes, and what is no contract. It was made past the gateway and looks at nothing.
#[tokio::test]
async fn lk4_contract_wallets_answer_for_themselves() {
    let anvil = anvil();
    let node = connect(anvil.url()).await;
    let (owner, snapshot) = (key(7), people().snapshot());
    let wallet = deploy(&node, &init_code!("Wallet"), owner.address()).await;
    let says = async |at, signature: &[u8]| says(&node, &snapshot, "stranger", at, signature).await;
    assert_eq!(says(wallet, &signed(&owner)).await, YES);
    for (signature, why) in [
        (signed(&key(8)), "another key"),
        (Vec::new(), "nothing"),
        (vec![1; 8000], "too much"),
    ] {
        assert_eq!(says(wallet, &signature).await, WalletAnswer::No, "{why}");
    }
    for nothing in [
        owner.address(),
        Address::repeat_byte(9),
        Address::ZERO,
        Address::with_last_byte(1),
    ] {
        assert_eq!(
            says(nothing, &signed(&owner)).await,
            WalletAnswer::No,
            "no contract at {nothing}"
        );
    }
    for (mood, why) in [(1, "it reverts"), (2, "it burns all gas"), (3, "too many bytes")] {
        send(
            &node,
            Some(wallet),
            &calldata("setMood(uint256)", B256::with_last_byte(mood)),
        )
        .await;
        assert_eq!(says(wallet, &signed(&owner)).await, WalletAnswer::No, "{why}");
    }
    // HD15: an account that lent its address to this very contract.
    let lent = format!(r#"["{:#x}","0xef0100{wallet:x}"]"#, owner.address());
    let set_code = UpstreamCall {
        method: "anvil_setCode".into(),
        params: lent,
    };
    node.call(&set_code, Budget::Forward).await.unwrap();
    assert_eq!(says(owner.address(), &signed(&owner)).await, WalletAnswer::No);
}

/// What [`OracleWallet`] looks at.
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

/// The signature that asks whether a fact about the target is at least `bound`.
fn is_at_least(fact: Fact, target: Address, bound: u64) -> Vec<u8> {
    let number = U256::from(fact as u8);
    let data = Bytes::copy_from_slice(keccak256("secret()").first_chunk::<4>().unwrap());
    (number, target, data, U256::from(bound)).abi_encode_params()
}

/// RT1a, RT1b, RT19: whoever links a wallet of their own making asks it about anything on the chain, bit by bit. The wallet
/// is nobody's code here, be it that its registration was lost or that it was made where nobody registers it.
#[tokio::test]
async fn rt19_rt1a_hd26_a_hostile_wallet_tells_nothing_but_its_own() {
    let anvil = anvil();
    let node = connect(anvil.url()).await;
    let secret = deploy(&node, &init_code!("Secret"), Address::ZERO).await;
    let wallet = deploy(&node, &init_code!("OracleWallet"), Address::ZERO).await;
    let payee = Address::repeat_byte(0xaa);
    let fund = |of: Address| UpstreamCall {
        method: "anvil_setBalance".into(),
        params: format!(r#"["{of:#x}","0x10"]"#),
    };
    for address in [secret, payee] {
        node.call(&fund(address), Budget::Forward).await.unwrap();
    }
    let theirs = people().org("rival").contract("secret").at(secret).grant("members");
    let worlds = [
        ("registered", theirs.clone(), true),
        ("deleted", theirs.clone().retired(), false),
        ("quarantined", theirs.clone().quarantined_at(secret), false),
        (
            "reserved",
            people().user("mallory").org("rival").reservation_at(secret),
            false,
        ),
        ("nobody's", people(), false),
    ];
    let of_others = [
        Fact::Balance,
        Fact::CodeHash,
        Fact::CodeSize,
        Fact::Code,
        Fact::StaticCall,
        Fact::DelegateCall,
    ];
    for (name, world, is_reached) in worlds {
        let snapshot = world.snapshot();
        for fact in of_others {
            let question = is_at_least(fact, secret, 0);
            // Who reaches the contract may ask it anyway: the yes is a true one, and the noes are the judgement's.
            let insider = says(&node, &snapshot, "mallory", wallet, &question).await;
            assert_eq!(
                insider,
                if is_reached { YES } else { WalletAnswer::No },
                "{name} {fact:?}"
            );
            for user in ["alice", "stranger", "nobody at all"] {
                assert_eq!(
                    says(&node, &snapshot, user, wallet, &question).await,
                    WalletAnswer::No,
                    "{name} {fact:?}"
                );
            }
        }
    }
    let snapshot = theirs.snapshot();
    for fact in [Fact::Balance, Fact::Call, Fact::CodeHash, Fact::CodeSize] {
        let question = is_at_least(fact, payee, 0);
        assert_eq!(
            says(&node, &snapshot, "alice", wallet, &question).await,
            WalletAnswer::No,
            "a wallet: {fact:?}"
        );
    }
    let creation = is_at_least(Fact::Creation, Address::ZERO, 1);
    assert_eq!(
        says(&node, &snapshot, "alice", wallet, &creation).await,
        WalletAnswer::No
    );
    // What is the wallet's own, the attacker put there.
    for fact in [Fact::OwnStorage, Fact::OwnBalance] {
        let own = async |bound| {
            says(
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
    // Nor does somebody else's registered contract become a wallet, or one whose registration was deleted.
    for world in [
        people().org("rival").contract("w").at(wallet).grant("members"),
        people().contract("w").at(wallet).retired(),
    ] {
        let own = is_at_least(Fact::OwnStorage, Address::ZERO, 1);
        assert_eq!(
            says(&node, &world.snapshot(), "alice", wallet, &own).await,
            WalletAnswer::No
        );
    }
}

/// A proxy and the code behind it, as wallets are deployed.
async fn safe(node: &Arc<Node>, owner: &PrivateKeySigner) -> (Address, Address) {
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

/// RTS11: a contract wallet that was deployed through the gateway is its organization's contract, and is linked by who
/// reaches it and holds its key.
#[tokio::test]
async fn rts11_hd10_a_registered_wallet_is_linked_by_who_reaches_it_and_holds_its_key() {
    let anvil = anvil();
    let node = connect(anvil.url()).await;
    let owner = key(7);
    let (safe, singleton) = safe(&node, &owner).await;
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
    let ask =
        async |world: &World, user: &str, by: u8| says(&node, &world.snapshot(), user, safe, &signed(&key(by))).await;
    assert_eq!(ask(&registered, "alice", 7).await, yes);
    assert_eq!(
        ask(&registered, "bob", 8).await,
        WalletAnswer::No,
        "a colleague without its key"
    );
    assert_eq!(
        ask(&registered, "carol", 7).await,
        WalletAnswer::No,
        "a colleague who does not reach it"
    );
    assert_eq!(
        ask(&registered, "mallory", 7).await,
        WalletAnswer::No,
        "a member of another organization"
    );
    assert_eq!(
        ask(&registered, "stranger", 7).await,
        WalletAnswer::No,
        "a member of none"
    );

    // The code it runs: registered and reached, or everybody's and pinned.
    let alone = people().org("bank").contract("safe").at(safe).grant("treasury");
    assert_eq!(
        ask(&alone, "alice", 7).await,
        WalletAnswer::No,
        "it runs code that nobody registered"
    );
    let foreign = people()
        .org("rival")
        .contract("singleton")
        .at(singleton)
        .grant("members");
    let foreign = foreign.org("bank").contract("safe").at(safe).grant("treasury");
    assert_eq!(
        ask(&foreign, "alice", 7).await,
        WalletAnswer::No,
        "it runs another organization's code"
    );
    assert_eq!(
        ask(&alone.clone().shared_at(singleton, None), "alice", 7).await,
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
        ask(&alone.clone().shared_at(singleton, pin(code)), "alice", 7).await,
        yes
    );
    assert_eq!(
        ask(&alone.shared_at(singleton, pin(HASH)), "alice", 7).await,
        WalletAnswer::No,
        "another pin"
    );

    // Rights on functions hold here too.
    let narrow = bank().contract("safe").at(safe).grant("treasury");
    let other = narrow.clone().functions([function("owner()", [])]);
    assert_eq!(ask(&other, "alice", 7).await, WalletAnswer::No);
    let this = narrow.functions([function("isValidSignature(bytes32,bytes)", [])]);
    assert_eq!(ask(&this, "alice", 7).await, yes);

    // Closed, deleted, or its reader gone.
    assert_eq!(
        ask(&registered.clone().quarantined_at(safe), "alice", 7).await,
        WalletAnswer::No
    );
    assert_eq!(
        ask(&registered.clone().quarantined_at(singleton), "alice", 7).await,
        WalletAnswer::No
    );
    assert_eq!(ask(&registered.clone().retired(), "alice", 7).await, WalletAnswer::No);
    assert_eq!(
        ask(&registered.user("alice").banned(), "alice", 7).await,
        WalletAnswer::No
    );
}
