//! Linked addresses.

use crate::world::{Answer, Setup, Tokens, World, did};
use alloy_signer::SignerSync as _;
use alloy_signer_local::PrivateKeySigner;
use gw_audit::SecurityKind;
use gw_identity::{ChainUnavailable, Ens};
use gw_store::record::{
    CreationKind, NewContract, NewGrant, NewGroup, NewMembership, NewOrganization, NewReservation, SendStart,
};
use gw_types::{Address, B256, Seconds};
use http::{Method, StatusCode};
use serde_json::json;

fn wallet(n: u8) -> PrivateKeySigner {
    PrivateKeySigner::from_bytes(&B256::repeat_byte(n)).unwrap()
}

struct Challenge {
    nonce: String,
    message: String,
}

async fn challenge(world: &World, tokens: &Tokens) -> Challenge {
    let answer = world
        .ask(Method::POST, "/eth/link/challenge")
        .bearer(&tokens.access)
        .send()
        .await;
    assert_eq!(answer.status, StatusCode::OK, "{}", answer.body);
    let text = |name: &str| answer.body[name].as_str().unwrap().to_owned();
    Challenge {
        nonce: text("nonce"),
        message: text("message"),
    }
}

async fn answer(world: &World, tokens: &Tokens, nonce: &str, address: &str, signature: &str) -> Answer {
    let body = json!({ "nonce": nonce, "address": address, "signature": signature });
    world
        .post("/api/v1/eth/link/verify", body)
        .bearer(&tokens.access)
        .send()
        .await
}

/// Signs a new challenge with the wallet and submits it.
async fn link(world: &World, tokens: &Tokens, wallet: &PrivateKeySigner) -> Answer {
    let challenge = challenge(world, tokens).await;
    let signature = sign(wallet, &challenge.message);
    answer(
        world,
        tokens,
        &challenge.nonce,
        &wallet.address().to_checksum(None),
        &signature,
    )
    .await
}

fn sign(wallet: &PrivateKeySigner, message: &str) -> String {
    format!(
        "0x{}",
        hex::encode(wallet.sign_message_sync(message.as_bytes()).unwrap().as_bytes())
    )
}

async fn listed(world: &World, tokens: &Tokens) -> Vec<String> {
    let answer = world.get("/eth/addresses").bearer(&tokens.access).send().await;
    let addresses = answer.body["addresses"].as_array().unwrap();
    addresses
        .iter()
        .map(|entry| entry["address"].as_str().unwrap().to_owned())
        .collect()
}

fn lower(address: Address) -> String {
    format!("{address:#x}")
}

/// LK-1 to LK-3: a signed challenge links the address.
#[tokio::test]
async fn lk2_a_signed_challenge_links_the_address() {
    let world = World::new().await;
    let alice = world.log_in("alice").await;
    world.fixture.security_events();
    let wallet = wallet(1);
    let linked = link(&world, &alice, &wallet).await;
    assert_eq!(linked.status, StatusCode::OK);
    assert_eq!(
        linked.body,
        json!({ "address": lower(wallet.address()), "message": "address linked" })
    );
    let list = world.get("/eth/addresses").bearer(&alice.access).send().await;
    assert_eq!(
        list.body,
        json!({ "addresses": [{ "address": lower(wallet.address()), "verified_at": "2023-11-14T22:13:20Z" }] })
    );
    let events = world.fixture.security_events();
    assert_eq!(events.len(), 1);
    assert_eq!(events[0].kind, SecurityKind::EthAddressLinked);
    assert_eq!(events[0].address, Some(wallet.address()));
    let user = world.user("alice").await.unwrap();
    let snapshot = world.fixture.http.policy.pin().unwrap();
    assert_eq!(snapshot.links_of(user.id).len(), 1, "known to policy before the answer");
}

/// LK-1: the text binds site, DID, nonce and chain.
#[tokio::test]
async fn lk1_the_challenge_names_what_it_is_for() {
    let world = World::new().await;
    let alice = world.log_in("alice").await;
    let challenge = challenge(&world, &alice).await;
    assert_eq!(challenge.nonce.len(), 32);
    assert!(challenge.message.starts_with("gate.example asks you to link"));
    for part in [
        "DID: did:test:alice\n",
        &format!("Nonce: {}\n", challenge.nonce),
        "Chain ID: 31337\n",
    ] {
        assert!(challenge.message.contains(part), "{part}");
    }
}

/// LK-2: the rejections, in their order.
#[tokio::test]
async fn lk2_refusals_in_their_order() {
    let world = World::new().await;
    let (alice, bob) = (world.log_in("alice").await, world.log_in("bob").await);
    let wallet = wallet(1);
    let open = challenge(&world, &alice).await;
    let address = lower(wallet.address());
    let signature = sign(&wallet, &open.message);

    let malformed = world
        .post("/eth/link/verify", json!({ "nonce": open.nonce }))
        .bearer(&alice.access)
        .send()
        .await;
    assert_eq!(malformed.refusal(), (400, "missing field `address`"));
    let refused = answer(&world, &alice, "00", "nonsense", "00").await;
    assert_eq!(refused.refusal(), (400, "invalid or expired nonce"));
    let refused = answer(&world, &bob, &open.nonce, "nonsense", "00").await;
    assert_eq!(refused.refusal(), (403, "challenge does not belong to this user"));
    let refused = answer(&world, &alice, &open.nonce, "nonsense", "00").await;
    assert_eq!(refused.refusal(), (400, "invalid ethereum address format"));
    let refused = answer(&world, &alice, &open.nonce, &lower(Address::repeat_byte(9)), &signature).await;
    assert_eq!(refused.refusal(), (400, "signature verification failed"));
    assert_eq!(
        answer(&world, &alice, &open.nonce, &address, &signature).await.status,
        StatusCode::OK
    );
    assert_eq!(listed(&world, &bob).await, Vec::<String>::new());
}

/// D6: only success consumes a challenge; five wrong signatures destroy it; other users cannot.
#[tokio::test]
async fn d6_five_failures_burn_a_challenge_and_success_consumes_it() {
    let world = World::new().await;
    let (alice, bob) = (world.log_in("alice").await, world.log_in("bob").await);
    let wallet = wallet(1);
    let address = lower(wallet.address());

    let open = challenge(&world, &alice).await;
    let signature = sign(&wallet, &open.message);
    for _ in 0..4 {
        answer(&world, &alice, &open.nonce, &address, "00").await;
        answer(&world, &bob, &open.nonce, &address, "00").await;
    }
    assert_eq!(
        answer(&world, &alice, &open.nonce, &address, &signature).await.status,
        StatusCode::OK
    );
    let again = answer(&world, &alice, &open.nonce, &address, &signature).await;
    assert_eq!(again.refusal(), (400, "invalid or expired nonce"), "used");

    world.fixture.clock.pass(120);
    let open = challenge(&world, &alice).await;
    let signature = sign(&wallet, &open.message);
    for _ in 0..5 {
        let refused = answer(&world, &alice, &open.nonce, &address, "00").await;
        assert_eq!(refused.refusal(), (400, "signature verification failed"));
    }
    let burnt = answer(&world, &alice, &open.nonce, &address, &signature).await;
    assert_eq!(burnt.refusal(), (400, "invalid or expired nonce"), "burnt");
}

/// LK-1: a challenge is valid for five minutes.
#[tokio::test]
async fn lk1_a_challenge_lasts_five_minutes() {
    let world = World::new().await;
    let tokens = world.log_in("alice").await;
    let wallet = wallet(1);
    let open = challenge(&world, &tokens).await;
    let signature = sign(&wallet, &open.message);
    world.fixture.clock.pass(300);
    let late = answer(&world, &tokens, &open.nonce, &lower(wallet.address()), &signature).await;
    assert_eq!(late.refusal(), (400, "invalid or expired nonce"));
}

/// LK-5, LK-6, decision 23: a second DID may link the same address; a security event reports it without naming the
/// first DID.
#[tokio::test]
async fn lk6_a_second_did_is_a_collision() {
    let world = World::new().await;
    let (alice, bob) = (world.log_in("alice").await, world.log_in("bob").await);
    let wallet = wallet(1);
    link(&world, &alice, &wallet).await;
    world.fixture.security_events();
    assert_eq!(link(&world, &bob, &wallet).await.status, StatusCode::OK);
    let events = world.fixture.security_events();
    let kinds: Vec<_> = events.iter().map(|event| event.kind).collect();
    assert_eq!(
        kinds,
        [SecurityKind::EthAddressLinked, SecurityKind::EthAddressLinkedCollision]
    );
    assert_eq!(events[1].count, Some(1));
    assert_eq!(events[1].address, Some(wallet.address()));
    assert_eq!(events[1].external_id, Some(did("bob")));
}

/// HD10 and LK-2: registered addresses and links that an administrator revoked get the same error.
#[tokio::test]
async fn hd10_lk2_registered_and_revoked_addresses_are_refused_alike() {
    let world = World::new().await;
    let alice = world.log_in("alice").await;
    let user = world.user("alice").await.unwrap();
    let (registered, revoked) = (wallet(1), wallet(2));
    let mut tx = world.fixture.begin().await;
    let org = NewOrganization {
        slug: "bank".to_owned(),
        name: "Bank".to_owned(),
        ..NewOrganization::default()
    };
    let org = tx.create_organization(org).await.unwrap();
    tx.create_contract(NewContract::plain(org.id, registered.address(), "Squatted"))
        .await
        .unwrap();
    tx.commit().await.unwrap();
    link(&world, &alice, &revoked).await;
    let mut tx = world.fixture.begin().await;
    tx.revoke_link(user.id, revoked.address(), "compromised").await.unwrap();
    tx.commit().await.unwrap();

    let (one, other) = (
        link(&world, &alice, &registered).await,
        link(&world, &alice, &revoked).await,
    );
    assert_eq!(one.refusal(), (403, "address cannot be linked"));
    assert_eq!(other.refusal(), one.refusal());
    assert_eq!(listed(&world, &alice).await, Vec::<String>::new());
}

/// D6: a rejection after a correct signature does not consume the challenge.
#[tokio::test]
async fn d6_only_success_consumes_a_challenge() {
    let world = World::new().await;
    let alice = world.log_in("alice").await;
    let user = world.user("alice").await.unwrap();
    let wallet = wallet(1);
    link(&world, &alice, &wallet).await;
    let mut tx = world.fixture.begin().await;
    tx.revoke_link(user.id, wallet.address(), "by mistake").await.unwrap();
    tx.commit().await.unwrap();
    let open = challenge(&world, &alice).await;
    let (address, signature) = (lower(wallet.address()), sign(&wallet, &open.message));
    for _ in 0..2 {
        let refused = answer(&world, &alice, &open.nonce, &address, &signature).await;
        assert_eq!(refused.refusal(), (403, "address cannot be linked"));
    }
}

/// LK-5: unlinking one's own address, and linking it again.
#[tokio::test]
async fn lk5_unlink_and_link_again() {
    let world = World::new().await;
    let (alice, bob) = (world.log_in("alice").await, world.log_in("bob").await);
    let wallet = wallet(1);
    link(&world, &alice, &wallet).await;
    world.fixture.security_events();
    let delete = |tokens: &Tokens, address: &str| {
        world
            .ask(Method::DELETE, &format!("/api/v1/eth/addresses/{address}"))
            .bearer(&tokens.access)
    };
    let address = lower(wallet.address());
    assert_eq!(
        delete(&alice, "nonsense").send().await.refusal(),
        (400, "invalid ethereum address format")
    );
    assert_eq!(
        delete(&bob, &address).send().await.refusal(),
        (404, "address not found")
    );
    let ended = delete(&alice, &address).send().await;
    assert_eq!(
        (ended.status, &ended.body),
        (StatusCode::OK, &json!({ "message": "address unlinked" }))
    );
    assert_eq!(world.event_kinds(), [SecurityKind::EthAddressUnlinked]);
    assert_eq!(listed(&world, &alice).await, Vec::<String>::new());
    assert_eq!(
        delete(&alice, &address).send().await.refusal(),
        (404, "address not found")
    );
    assert_eq!(link(&world, &alice, &wallet).await.status, StatusCode::OK);
    assert_eq!(listed(&world, &alice).await, [address]);
}

/// All link routes need a token and are limited to ten requests a minute.
#[tokio::test]
async fn links_need_a_token_and_are_limited_per_subject() {
    let world = World::new().await;
    for (method, path) in [
        (Method::POST, "/eth/link/challenge"),
        (Method::POST, "/eth/link/verify"),
        (Method::GET, "/eth/addresses"),
        (
            Method::DELETE,
            "/eth/addresses/0x0000000000000000000000000000000000000001",
        ),
    ] {
        let answer = world.ask(method, path).send().await;
        assert_eq!(answer.refusal(), (401, "missing Authorization header"), "{path}");
    }
    let (alice, bob) = (world.log_in("alice").await, world.log_in("bob").await);
    for _ in 0..10 {
        challenge(&world, &alice).await;
    }
    let refused = world
        .ask(Method::POST, "/eth/link/challenge")
        .bearer(&alice.access)
        .send()
        .await;
    assert_eq!(refused.refusal(), (429, "rate limit exceeded"));
    challenge(&world, &bob).await;
}

/// LK-4: if the address's key did not sign, a contract at the address may accept the signature.
#[tokio::test]
async fn lk4_a_contract_wallet_answers_for_its_address() {
    let world = World::new().await;
    let alice = world.log_in("alice").await;
    let contract = Address::repeat_byte(0xc0);
    let says = |accepts| world.chain.wallets.lock().unwrap().insert(contract, accepts);
    let open = challenge(&world, &alice).await;
    let hand_in = async |signature: &str| answer(&world, &alice, &open.nonce, &lower(contract), signature).await;

    let nobody = hand_in("0x1234").await;
    assert_eq!(
        nobody.refusal(),
        (400, "signature verification failed"),
        "no contract there"
    );
    says(Ok(false));
    assert_eq!(
        hand_in("0x1234").await.refusal(),
        (400, "signature verification failed")
    );
    says(Err(ChainUnavailable));
    assert_eq!(hand_in("0x1234").await.refusal(), (503, "node unavailable"));
    says(Ok(true));
    assert_eq!(
        hand_in("not hex").await.refusal(),
        (400, "signature verification failed")
    );
    assert_eq!(
        hand_in(&"00".repeat(9000)).await.refusal(),
        (400, "signature verification failed")
    );
    let linked = hand_in("0x1234").await;
    assert_eq!(
        linked.body,
        json!({ "address": lower(contract), "message": "address linked" })
    );
    let user = world.user("alice").await.unwrap();
    let snapshot = world.fixture.http.policy.pin().unwrap();
    let link = snapshot.links_of(user.id)[0];
    assert!(link.contract_wallet, "HD10: takes part in nothing that is sent there");
}

/// HD26: a wallet that says yes counts as no because of what it read. Every "no" gets the same answer.
#[tokio::test]
async fn rt1a_hd26_a_wallet_that_looks_around_is_refused_like_a_wrong_signature() {
    let world = World::new().await;
    let alice = world.log_in("alice").await;
    let (contract, other) = (Address::repeat_byte(0xc0), Address::repeat_byte(0xc1));
    world.chain.wallets.lock().unwrap().insert(contract, Ok(true));
    let open = challenge(&world, &alice).await;
    let hand_in = async || answer(&world, &alice, &open.nonce, &lower(contract), "0x1234").await;
    world.chain.looked_at.lock().unwrap().push(other);
    let refused = hand_in().await;
    assert_eq!(refused.refusal(), (400, "signature verification failed"));
    world.chain.wallets.lock().unwrap().insert(contract, Ok(false));
    let wrong = hand_in().await;
    assert_eq!(
        (wrong.refusal(), &wrong.body["code"]),
        (refused.refusal(), &refused.body["code"]),
        "the same but for the correlation id"
    );
    world.chain.wallets.lock().unwrap().insert(contract, Ok(true));
    world.chain.looked_at.lock().unwrap().clear();
    assert_eq!(hand_in().await.status, StatusCode::OK);
}

/// RTS11, HD10: a registered contract can be linked only by a member who has access to it; once its registration is
/// deleted, by nobody.
#[tokio::test]
async fn rts11_hd10_a_registered_contract_is_linked_by_who_reaches_it() {
    let world = World::new().await;
    let (alice, mallory) = (world.log_in("alice").await, world.log_in("mallory").await);
    let user = world.user("alice").await.unwrap();
    let (contract, deleted) = (Address::repeat_byte(0xc0), Address::repeat_byte(0xc1));
    world
        .chain
        .wallets
        .lock()
        .unwrap()
        .extend([(contract, Ok(true)), (deleted, Ok(true))]);
    let mut tx = world.fixture.begin().await;
    let org = tx
        .create_organization(NewOrganization {
            slug: "bank".into(),
            ..Default::default()
        })
        .await
        .unwrap();
    let group = tx
        .create_group(NewGroup::plain(org.id, "treasury", "Treasury"))
        .await
        .unwrap();
    tx.add_membership(NewMembership {
        user: user.id,
        group: group.id,
        expires_at: None,
    })
    .await
    .unwrap();
    for address in [contract, deleted] {
        let made = tx
            .create_contract(NewContract::plain(org.id, address, "safe"))
            .await
            .unwrap();
        tx.create_grant(NewGrant::full(made.id, group.id)).await.unwrap();
        if address == deleted {
            tx.delete_contract(made.id, None).await.unwrap();
        }
    }
    tx.commit().await.unwrap();
    for (who, address, status) in [
        (&mallory, contract, StatusCode::BAD_REQUEST),
        (&mallory, deleted, StatusCode::BAD_REQUEST),
        (&alice, deleted, StatusCode::BAD_REQUEST),
        (&alice, contract, StatusCode::OK),
    ] {
        let open = challenge(&world, who).await;
        let verified = answer(&world, who, &open.nonce, &lower(address), "0x1234").await;
        assert_eq!(verified.status, status, "{address}");
    }
    assert_eq!(listed(&world, &alice).await, [lower(contract)]);
    let snapshot = world.fixture.http.policy.pin().unwrap();
    assert!(
        snapshot.links_of(user.id)[0].contract_wallet,
        "HD10: takes part in nothing that is sent there"
    );
}

/// LK-4, HD14: a contract that was deployed through the gateway and is not registered yet belongs to its organization.
#[tokio::test]
async fn lk4_a_reserved_address_is_no_wallet() {
    let world = World::new().await;
    let alice = world.log_in("alice").await;
    let user = world.user("alice").await.unwrap();
    let contract = Address::repeat_byte(0xc0);
    world.chain.wallets.lock().unwrap().insert(contract, Ok(true));
    let open = challenge(&world, &alice).await;
    let hand_in = async || answer(&world, &alice, &open.nonce, &lower(contract), "0x1234").await;
    let mut tx = world.fixture.begin().await;
    let org = tx
        .create_organization(NewOrganization {
            slug: "bank".into(),
            ..Default::default()
        })
        .await
        .unwrap();
    let reservation = NewReservation {
        address: contract,
        kind: CreationKind::Plain,
        sender: Address::repeat_byte(1),
        nonce: 0,
        expires_at: world.fixture.http.now().plus(Seconds(1800)),
    };
    let (tx_hash, visible_to, watch) = (Some(B256::repeat_byte(7)), Vec::new(), None);
    let start = SendStart {
        user: user.id,
        org: org.id,
        tx_hash,
        visible_to,
        reservations: vec![reservation],
        watch,
    };
    let rows = tx.start_send(start).await.unwrap();
    tx.commit().await.unwrap();
    assert_eq!(hand_in().await.refusal(), (400, "signature verification failed"));
    let mut tx = world.fixture.begin().await;
    tx.refuse_send(rows).await.unwrap();
    tx.commit().await.unwrap();
    assert_eq!(hand_in().await.status, StatusCode::OK, "without the reservation");
}

/// LK-8: only the caller's own addresses, and only if ENS lookups are configured.
#[tokio::test]
async fn lk8_names_are_looked_up_for_own_addresses_where_one_can() {
    let without = World::new().await;
    let alice = without.log_in("alice").await;
    let wallet = wallet(1);
    link(&without, &alice, &wallet).await;
    let path = |address: Address| format!("/eth/addresses/{}/refresh-ens", lower(address));
    let ask = async |world: &World, tokens: &Tokens, address| {
        world
            .ask(Method::POST, &path(address))
            .bearer(&tokens.access)
            .send()
            .await
    };
    assert_eq!(
        ask(&without, &alice, wallet.address()).await.refusal(),
        (503, "ENS is not configured")
    );
    let foreign = ask(&without, &alice, Address::repeat_byte(9)).await;
    assert_eq!(foreign.refusal(), (404, "address not found"));

    // No server listens on this port.
    let ens = Ens::new("http://127.0.0.1:9".parse().unwrap()).unwrap();
    let away = World::with(Setup {
        ens: Some(ens),
        ..Setup::default()
    })
    .await;
    let alice = away.log_in("alice").await;
    link(&away, &alice, &wallet).await;
    assert_eq!(
        ask(&away, &alice, wallet.address()).await.refusal(),
        (503, "ENS temporarily unavailable")
    );
}
