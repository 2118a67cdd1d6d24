//! Contract wallets and names, on a real node; logins that administrators end.

use crate::{
    authorization::family,
    harness::{Answer, Engine, Gateway, init_code, key},
    world::World,
};
use alloy_primitives::{Address, B256, U256, hex, keccak256};
use alloy_signer::SignerSync as _;
use serde_json::{Value, json};
use std::time::Duration;

async fn linked(gw: &Gateway, token: &str) -> Vec<String> {
    let listed = gw.as_user(token, "GET", "/eth/addresses", None).await.expect(200);
    listed["addresses"]
        .as_array()
        .unwrap()
        .iter()
        .map(|row| row["address"].as_str().unwrap().to_owned())
        .collect()
}

/// Lets a day pass for what the gateway remembers of contract wallets. Their check is due at the next start then.
fn a_day_passes(gw: &Gateway) {
    assert_eq!(gw.in_database("UPDATE contract_wallet_proofs SET checked_at=0"), 1);
}

/// LK-4, HD10: a contract wallet is linked by its own word, which is asked for again every day.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn lk4_hd10_a_contract_wallet_is_linked_while_it_says_so() {
    let mut gw = Gateway::start_with(Engine::Sqlite, &[]).await;
    let token = gw.login("did:example:alice").await;
    let owner = key(1);
    let wallet = gw
        .past(
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
    let answer = |signer: usize| {
        let signature = hex::encode_prefixed(key(signer).sign_message_sync(text).unwrap().as_bytes());
        json!({"address": wallet, "nonce": challenge["nonce"], "signature": signature})
    };
    let stranger = gw
        .as_user(&token, "POST", "/eth/link/verify", Some(answer(2)))
        .await
        .expect(400);
    assert_eq!(stranger["error"], "signature verification failed");
    gw.as_user(&token, "POST", "/eth/link/verify", Some(answer(1)))
        .await
        .expect(200);
    let address = format!("{wallet:#x}");
    assert_eq!(linked(&gw, &token).await, std::slice::from_ref(&address));

    // Asked again, it still says yes.
    gw.process.kill();
    a_day_passes(&gw);
    gw.restart().await;
    tokio::time::sleep(Duration::from_secs(1)).await;
    assert_eq!(linked(&gw, &token).await, [address]);

    // The wallet has another owner now: whose it was ends with it.
    let data = [
        &keccak256("setOwner(address)")[..4],
        key(2).address().into_word().as_slice(),
    ]
    .concat();
    gw.past(&key(0), Some(wallet), &data).await;
    gw.process.kill();
    a_day_passes(&gw);
    gw.restart().await;
    for _ in 0..100 {
        if linked(&gw, &token).await.is_empty() {
            let events = gw.admin("GET", "/audit-logs?limit=50", None).await.expect(200);
            assert!(
                events.to_string().contains("no longer confirms"),
                "the reason is kept: {events}"
            );
            return;
        }
        tokio::time::sleep(Duration::from_millis(100)).await;
    }
    panic!("the link stands though its wallet says no");
}

/// The answer to a fresh challenge: a signature by `signer`, or these bytes.
async fn hand_in(gw: &Gateway, token: &str, wallet: Address, sign: impl FnOnce(&[u8]) -> Vec<u8>) -> Answer {
    let challenge = gw.as_user(token, "POST", "/eth/link/challenge", None).await.expect(200);
    let signature = hex::encode_prefixed(sign(challenge["message"].as_str().unwrap().as_bytes()));
    let body = json!({"address": wallet, "nonce": challenge["nonce"], "signature": signature});
    gw.as_user(token, "POST", "/eth/link/verify", Some(body)).await
}

/// RTS11, RT1a: a contract wallet that was deployed through the gateway is linked by its owner, and by nobody else; one
/// whose registration its deployer deleted is no oracle.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn rts11_rt1a_a_wallet_deployed_through_the_gateway_is_linked_and_a_deleted_one_is_no_oracle() {
    let w = World::start(Engine::Sqlite).await;
    let by = |signer: usize| move |text: &[u8]| key(signer).sign_message_sync(text).unwrap().as_bytes().to_vec();
    let owner = key(4);
    let init = init_code("Wallet", owner.address().into_word().as_slice());
    let wallet = w.gw.deploy(&w.ops.token, &w.ops.key, init).await;
    hand_in(&w.gw, &w.ops.token, wallet, by(5)).await.expect(400);
    hand_in(&w.gw, &w.trader.token, wallet, by(4)).await.expect(400);
    hand_in(&w.gw, &w.ops.token, wallet, by(4)).await.expect(200);
    assert!(linked(&w.gw, &w.ops.token).await.contains(&format!("{wallet:#x}")));

    let oracle =
        w.gw.deploy(&w.ops.token, &w.ops.key, init_code("OracleWallet", &[]))
            .await;
    let path = format!("/api/v1/admin/orgs/{}/contracts/{oracle}", w.meridian);
    w.gw.as_user(&w.admin.token, "DELETE", &path, None).await.expect(200);
    // "Is its balance at least nothing?" is a true yes.
    let words = [
        U256::ZERO,
        U256::from_be_slice(w.erc20.as_slice()),
        U256::from(128),
        U256::ZERO,
        U256::ZERO,
    ];
    let question: Vec<u8> = words.iter().flat_map(|word| word.to_be_bytes::<32>()).collect();
    let refused = hand_in(&w.gw, &w.ops.token, oracle, |_| question).await.expect(400);
    assert_eq!(refused["error"], "signature verification failed");
}

/// Spec/80 section 11: the logins of one user, ended one by one or all at once.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn spec_80_11_administrators_end_a_users_logins() {
    let gw = Gateway::start_with(Engine::Sqlite, &[]).await;
    let did = "did:example:bob";
    let (one, two, three) = (
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
    let sessions = listed["sessions"].as_array().unwrap();
    assert_eq!(
        (listed["total"].as_u64(), &sessions[0]["provider"]),
        (Some(sessions.len() as u64), &json!("mock"))
    );
    assert!(sessions.len() >= 3);

    let sid = |pair: &Value| family(&access(pair));
    gw.admin("DELETE", &format!("{path}/{}", sid(&one)), None)
        .await
        .expect(200);
    gw.as_user(&access(&one), "GET", "/api/v1/me/orgs", None)
        .await
        .expect(401);
    gw.as_user(&access(&two), "GET", "/api/v1/me/orgs", None)
        .await
        .expect(200);
    gw.admin("DELETE", &format!("{path}/{}", sid(&one)), None)
        .await
        .expect(404);
    gw.admin("DELETE", &format!("{path}/nonsense"), None).await.expect(400);
    gw.admin("DELETE", &format!("{path}/{}", B256::ZERO), None)
        .await
        .expect(400);

    gw.admin("DELETE", &path, None).await.expect(200);
    for pair in [&two, &three] {
        gw.as_user(&access(pair), "GET", "/api/v1/me/orgs", None)
            .await
            .expect(401);
        let refresh = json!({"refresh_token": pair["refresh_token"]});
        gw.request("POST", "/refresh", &[], Some(refresh)).await.expect(401);
    }
    assert_eq!(gw.admin("GET", &path, None).await.expect(200)["total"], 0);
    // RTS10: in the same second.
    let again = gw.login(did).await;
    gw.as_user(&again, "GET", "/api/v1/me/orgs", None).await.expect(200);
}
