//! Linking of contract wallets on a real node, and sessions that administrators end.

use crate::{
    authorization::family,
    harness::{Engine, Gateway, Response, init_code, key},
    world::World,
};
use alloy_primitives::{Address, B256, U256, hex, keccak256};
use alloy_signer::SignerSync as _;
use serde_json::{Value, json};
use std::time::Duration;

async fn linked_addresses(gw: &Gateway, token: &str) -> Vec<String> {
    let listed = gw.as_user(token, "GET", "/eth/addresses", None).await.expect(200);
    listed["addresses"]
        .as_array()
        .unwrap()
        .iter()
        .map(|row| row["address"].as_str().unwrap().to_owned())
        .collect()
}

/// Resets the time of the last check of the one linked contract wallet, so that the gateway checks it at its next
/// start.
fn expire_wallet_check(gw: &Gateway) {
    assert_eq!(gw.execute_sql("UPDATE contract_wallet_proofs SET checked_at=0"), 1);
}

/// LK-4, HD10: a contract wallet is linked if it confirms the signature (EIP-1271). The gateway repeats the check
/// daily.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn lk4_hd10_a_contract_wallet_is_linked_while_it_confirms_the_signature() {
    let mut gw = Gateway::start_with(Engine::Sqlite, &[]).await;
    let token = gw.login("did:example:alice").await;
    let owner = key(1);
    let wallet = gw
        .send_to_node(
            &key(0),
            None,
            &init_code("Wallet", owner.address().into_word().as_slice()),
        )
        .await
        .1
        .unwrap();
    let challenge = gw
        .as_user(&token, "POST", "/eth/link/challenge", None)
        .await
        .expect(200);
    let text = challenge["message"].as_str().unwrap().as_bytes();
    let proof = |signer: usize| {
        let signature = hex::encode_prefixed(key(signer).sign_message_sync(text).unwrap().as_bytes());
        json!({"address": wallet, "nonce": challenge["nonce"], "signature": signature})
    };
    let wrong_signer = gw
        .as_user(&token, "POST", "/eth/link/verify", Some(proof(2)))
        .await
        .expect(400);
    assert_eq!(wrong_signer["error"], "signature verification failed");
    gw.as_user(&token, "POST", "/eth/link/verify", Some(proof(1)))
        .await
        .expect(200);
    let address = format!("{wallet:#x}");
    assert_eq!(linked_addresses(&gw, &token).await, std::slice::from_ref(&address));

    // The repeated check succeeds.
    gw.process.kill();
    expire_wallet_check(&gw);
    gw.restart().await;
    tokio::time::sleep(Duration::from_secs(1)).await;
    assert_eq!(linked_addresses(&gw, &token).await, [address]);

    // After the wallet's owner changed, the repeated check fails and the link ends.
    let data = [
        &keccak256("setOwner(address)")[..4],
        key(2).address().into_word().as_slice(),
    ]
    .concat();
    gw.send_to_node(&key(0), Some(wallet), &data).await;
    gw.process.kill();
    expire_wallet_check(&gw);
    gw.restart().await;
    for _ in 0..100 {
        if linked_addresses(&gw, &token).await.is_empty() {
            let events = gw.admin("GET", "/audit-logs?limit=50", None).await.expect(200);
            assert!(
                events.to_string().contains("no longer confirms"),
                "the audit log has the reason: {events}"
            );
            return;
        }
        tokio::time::sleep(Duration::from_millis(100)).await;
    }
    panic!("the link was not removed within ten seconds, although the wallet no longer confirms it");
}

/// Requests a challenge and responds to it with the bytes that `sign` returns for the message.
async fn verify_link(gw: &Gateway, token: &str, wallet: Address, sign: impl FnOnce(&[u8]) -> Vec<u8>) -> Response {
    let challenge = gw.as_user(token, "POST", "/eth/link/challenge", None).await.expect(200);
    let signature = hex::encode_prefixed(sign(challenge["message"].as_str().unwrap().as_bytes()));
    let body = json!({"address": wallet, "nonce": challenge["nonce"], "signature": signature});
    gw.as_user(token, "POST", "/eth/link/verify", Some(body)).await
}

/// RTS11, RT1a: only its owner can link a contract wallet that was deployed through the gateway. After its registration
/// was deleted, a wallet contract cannot be used as an oracle about other contracts.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn rts11_rt1a_a_wallet_deployed_through_the_gateway_is_linked_and_a_deleted_one_is_no_oracle() {
    let w = World::start(Engine::Sqlite).await;
    let signed_by = |signer: usize| move |text: &[u8]| key(signer).sign_message_sync(text).unwrap().as_bytes().to_vec();
    let owner = key(4);
    let init = init_code("Wallet", owner.address().into_word().as_slice());
    let wallet = w.gw.deploy(&w.ops.token, &w.ops.key, init).await;
    verify_link(&w.gw, &w.ops.token, wallet, signed_by(5)).await.expect(400);
    verify_link(&w.gw, &w.trader.token, wallet, signed_by(4))
        .await
        .expect(400);
    verify_link(&w.gw, &w.ops.token, wallet, signed_by(4)).await.expect(200);
    assert!(
        linked_addresses(&w.gw, &w.ops.token)
            .await
            .contains(&format!("{wallet:#x}"))
    );

    let oracle =
        w.gw.deploy(&w.ops.token, &w.ops.key, init_code("OracleWallet", &[]))
            .await;
    let path = format!("/api/v1/admin/orgs/{}/contracts/{oracle}", w.meridian);
    w.gw.as_user(&w.admin.token, "DELETE", &path, None).await.expect(200);
    // The signature encodes the question "is the balance at least zero?", which the contract would confirm.
    let words = [
        U256::ZERO,
        U256::from_be_slice(w.erc20.as_slice()),
        U256::from(128),
        U256::ZERO,
        U256::ZERO,
    ];
    let question: Vec<u8> = words.iter().flat_map(|word| word.to_be_bytes::<32>()).collect();
    let refused = verify_link(&w.gw, &w.ops.token, oracle, |_| question).await.expect(400);
    assert_eq!(refused["error"], "signature verification failed");
}

/// Spec/80 section 11: administrators end sessions of a user, a single one or all.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn spec_80_11_administrators_end_a_users_logins() {
    let gw = Gateway::start_with(Engine::Sqlite, &[]).await;
    let did = "did:example:bob";
    let (first, second, third) = (
        gw.login_pair(did).await,
        gw.login_pair(did).await,
        gw.login_pair(did).await,
    );
    let access = |pair: &Value| pair["access_token"].as_str().unwrap().to_owned();
    let user = gw.admin("GET", "/users?search=did:example:bob", None).await.expect(200);
    let user = user["data"][0]["id"].as_str().unwrap().to_owned();
    let path = format!("/users/{user}/sessions");
    let listed = gw.admin("GET", &path, None).await.expect(200);
    assert!(!listed.to_string().contains("eyJ"), "no tokens: {listed}");
    let sessions = listed["data"].as_array().unwrap();
    assert_eq!(
        (listed["total"].as_u64(), &sessions[0]["provider"]),
        (Some(sessions.len() as u64), &json!("mock"))
    );
    assert!(sessions.len() >= 3);

    let sid = |pair: &Value| family(&access(pair));
    gw.admin("DELETE", &format!("{path}/{}", sid(&first)), None)
        .await
        .expect(200);
    gw.as_user(&access(&first), "GET", "/api/v1/me/orgs", None)
        .await
        .expect(401);
    gw.as_user(&access(&second), "GET", "/api/v1/me/orgs", None)
        .await
        .expect(200);
    gw.admin("DELETE", &format!("{path}/{}", sid(&first)), None)
        .await
        .expect(404);
    gw.admin("DELETE", &format!("{path}/nonsense"), None).await.expect(400);
    gw.admin("DELETE", &format!("{path}/{}", B256::ZERO), None)
        .await
        .expect(400);

    gw.admin("DELETE", &path, None).await.expect(200);
    for pair in [&second, &third] {
        gw.as_user(&access(pair), "GET", "/api/v1/me/orgs", None)
            .await
            .expect(401);
        let refresh = json!({"refresh_token": pair["refresh_token"]});
        gw.request("POST", "/refresh", &[], Some(refresh)).await.expect(401);
    }
    assert_eq!(gw.admin("GET", &path, None).await.expect(200)["total"], 0);
    // RTS10: a login within the same second is not affected.
    let new_token = gw.login(did).await;
    gw.as_user(&new_token, "GET", "/api/v1/me/orgs", None).await.expect(200);
}
