//! Two instances on one PostgreSQL and one Redis are one gateway (HD24, 85 §6).

use crate::harness::{Engine, Gateway, key};
use alloy_primitives::hex;
use alloy_signer::SignerSync as _;
use gw_testkit::RedisServer;
use serde_json::json;
use std::time::Duration;

const PER_MINUTE: usize = 40;

/// Secrets that instances must share.
fn shared(redis: &str) -> Vec<(&'static str, String)> {
    vec![
        ("REDIS_URL", redis.to_owned()),
        ("JWT_SECRET", "access-secret-0123456789abcdef0123456789".to_owned()),
        (
            "JWT_REFRESH_SECRET",
            "refresh-secret-0123456789abcdef0123456789".to_owned(),
        ),
        ("RPC_API_KEY_ENCRYPTION_KEY", "ab".repeat(32)),
        ("RATE_LIMIT_AUTH", format!("{PER_MINUTE}/min")),
    ]
}

/// Asks until the answer has this status: another instance's change is in force a moment later.
async fn until(gw: &Gateway, token: &str, path: &str, status: u16) {
    let mut last = 0;
    for _ in 0..100 {
        last = gw.as_user(token, "GET", path, None).await.status;
        if last == status {
            return;
        }
        tokio::time::sleep(Duration::from_millis(50)).await;
    }
    panic!("{path} still answers {last}");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn hd24_two_instances_are_one_gateway() {
    let Some(mut redis) = RedisServer::start().unwrap() else {
        println!("NOT RUN: no Redis, as GW_SKIP_REDIS asks");
        return;
    };
    let settings = shared(&redis.url());
    let settings: Vec<_> = settings.iter().map(|(name, value)| (*name, value.as_str())).collect();
    let one = Gateway::start_with(Engine::Postgres, &settings).await;
    let two = one.beside().await;

    // A login opened on one is completed on the other, once, and polled where it was opened.
    let opened = one
        .request("POST", "/auth/request", &[], Some(json!({})))
        .await
        .expect(200);
    let session = opened["session_id"].as_str().unwrap();
    let callback = format!("/auth/callback?session={session}");
    let tokens = two
        .raw("POST", &callback, &[], Some("mock.did:example:alice"))
        .await
        .expect(200);
    one.raw("POST", &callback, &[], Some("mock.did:example:alice"))
        .await
        .expect(401);
    let polled = one
        .request("GET", &format!("/api/v1/auth/session/{session}/status"), &[], None)
        .await
        .expect(200);
    assert_eq!(polled["completed"], true, "{polled}");
    let token = polled["tokens"]["access_token"].as_str().unwrap();
    for gw in [&one, &two] {
        until(gw, token, "/api/v1/me/orgs", 200).await;
    }

    // A refresh token serves once, whoever is asked.
    let refresh = json!({"refresh_token": tokens["refresh_token"]});
    two.request("POST", "/refresh", &[], Some(refresh.clone()))
        .await
        .expect(200);
    one.request("POST", "/refresh", &[], Some(refresh)).await.expect(401);

    // A challenge given by one is answered to the other.
    let challenge = one
        .as_user(token, "POST", "/eth/link/challenge", None)
        .await
        .expect(200);
    let wallet = key(1);
    let signature = wallet
        .sign_message_sync(challenge["message"].as_str().unwrap().as_bytes())
        .unwrap();
    let proof = json!({
        "address": wallet.address(), "nonce": challenge["nonce"],
        "signature": hex::encode_prefixed(signature.as_bytes()),
    });
    two.as_user(token, "POST", "/eth/link/verify", Some(proof))
        .await
        .expect(200);

    // Decision 22: administrators see the sessions of all instances, with the exact reason and without tokens.
    let failed = one
        .request("POST", "/auth/request", &[], Some(json!({})))
        .await
        .expect(200);
    let path = format!("/auth/callback?session={}", failed["session_id"].as_str().unwrap());
    two.raw("POST", &path, &[], Some("nonsense")).await.expect(400);
    let listed = two.admin("GET", "/sessions", None).await;
    assert!(
        !listed.body.contains("token") && !listed.body.contains("ey"),
        "{}",
        listed.body
    );
    let listed = listed.expect(200);
    assert_eq!(listed["total"], 2, "{listed}");
    // By handles that poll nothing (HD34), the same on both.
    assert!(!listed.to_string().contains(session), "{listed}");
    let of = |completed: bool| {
        listed["sessions"]
            .as_array()
            .unwrap()
            .iter()
            .find(|s| s["completed"] == completed)
            .cloned()
            .unwrap()
    };
    let done = of(true);
    assert_eq!(
        (&done["completed"], &done["did"]),
        (&json!(true), &json!("did:example:alice")),
        "{done}"
    );
    let refused = of(false);
    assert_eq!(
        (&refused["completed"], &refused["failed"], &refused["reason"]),
        (&json!(false), &json!(true), &json!("the proof is unreadable")),
        "{refused}"
    );
    let failed_only = one.admin("GET", "/sessions?state=failed", None).await.expect(200);
    assert_eq!(failed_only["total"], 1, "{failed_only}");
    let path = format!("/sessions/{}", refused["id"].as_str().unwrap());
    two.admin("DELETE", &path, None).await.expect(200);
    one.admin("DELETE", &path, None).await.expect(404);

    // Limits are shared: asked in turn, both stop at the same count.
    let mut allowed = 0;
    for gw in [&one, &two].into_iter().cycle().take(2 * PER_MINUTE) {
        let answer = gw.request("POST", "/introspect", &[], Some(json!({}))).await;
        match answer.status {
            400 => allowed += 1,
            429 => break,
            other => panic!("{other}: {}", answer.body),
        }
    }
    assert!(allowed < PER_MINUTE, "{allowed} and the logins above");
    one.request("POST", "/auth/request", &[], Some(json!({})))
        .await
        .expect(429);
    two.request("POST", "/auth/request", &[], Some(json!({})))
        .await
        .expect(429);

    // Without the cache logins are 503, the limit is counted here, and everything else goes on.
    redis.stop();
    two.request("POST", "/auth/request", &[], Some(json!({})))
        .await
        .expect(503);
    let called = two.rpc(token, "eth_chainId", json!([])).await;
    assert_eq!(called.status, 200, "{}", called.body);
    two.admin("GET", "/sessions", None).await.expect(503);
    let mut state = json!(null);
    for _ in 0..100 {
        state = two.request("GET", "/ready", &[], None).await.expect(200)["dependencies"]["cache"].clone();
        if state == "down" {
            break;
        }
        tokio::time::sleep(Duration::from_millis(100)).await;
    }
    assert_eq!(state, "down");
    redis.start_again().unwrap();
    let mut status = 0;
    for _ in 0..150 {
        status = two.request("POST", "/auth/request", &[], Some(json!({}))).await.status;
        if status == 200 {
            break;
        }
        tokio::time::sleep(Duration::from_millis(200)).await;
    }
    assert_eq!(status, 200, "logins come back by themselves");
}

/// HD24, decision 12: without a cache that they share, a second instance does not start.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn hd24_a_second_instance_without_redis_does_not_start() {
    let one = Gateway::start_with(Engine::Postgres, &[]).await;
    let place = tempfile::tempdir().unwrap();
    let directory = place.path().display().to_string();
    let port = crate::harness::free_port().to_string();
    let settings = [("DATA_DIR", directory.as_str()), ("PORT", &port)];
    let (code, said) = one.command_with(&settings, &["serve"]);
    assert_eq!(code, Some(78), "{said}");
    assert!(said.contains("REDIS_URL"), "{said}");
}
