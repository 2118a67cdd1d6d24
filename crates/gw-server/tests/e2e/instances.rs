//! Two instances on one PostgreSQL and one Redis are one gateway (HD24, 85 §6).

use crate::harness::{Engine, Gateway, MAX_POLLS, key};
use alloy_primitives::hex;
use alloy_signer::SignerSync as _;
use gw_testkit::RedisServer;
use serde_json::json;
use std::time::Duration;

const PER_MINUTE: usize = 40;

/// Settings that instances must share.
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

/// Requests the path until the response has this status. A change by another instance takes effect with a short delay.
async fn wait_for_status(gw: &Gateway, token: &str, path: &str, status: u16) {
    let mut last = 0;
    for _ in 0..MAX_POLLS {
        last = gw.as_user(token, "GET", path, None).await.status;
        if last == status {
            return;
        }
        tokio::time::sleep(Duration::from_millis(50)).await;
    }
    panic!("{path} still responds with {last} instead of {status}");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn hd24_two_instances_are_one_gateway() {
    let Some(mut redis) = RedisServer::start().unwrap() else {
        println!("NOT RUN: no Redis, as GW_SKIP_REDIS asks");
        return;
    };
    let settings = shared(&redis.url());
    let settings: Vec<_> = settings.iter().map(|(name, value)| (*name, value.as_str())).collect();
    let first = Gateway::start_with(Engine::Postgres, &settings).await;
    let second = first.start_second_instance().await;

    // A login is opened on the first instance, completed on the second one, once, and polled on the first one.
    let opened = first
        .request("POST", "/auth/request", &[], Some(json!({})))
        .await
        .expect(200);
    let session_id = opened["session_id"].as_str().unwrap();
    let callback = format!("/auth/callback?session={session_id}");
    let tokens = second
        .raw("POST", &callback, &[], Some("mock.did:example:alice"))
        .await
        .expect(200);
    first
        .raw("POST", &callback, &[], Some("mock.did:example:alice"))
        .await
        .expect(401);
    let polled = first
        .request("GET", &format!("/api/v1/auth/session/{session_id}/status"), &[], None)
        .await
        .expect(200);
    assert_eq!(polled["completed"], true, "{polled}");
    let token = polled["tokens"]["access_token"].as_str().unwrap();
    for gw in [&first, &second] {
        wait_for_status(gw, token, "/api/v1/me/orgs", 200).await;
    }

    // A refresh token can be used once, on either instance.
    let refresh = json!({"refresh_token": tokens["refresh_token"]});
    second
        .request("POST", "/refresh", &[], Some(refresh.clone()))
        .await
        .expect(200);
    first.request("POST", "/refresh", &[], Some(refresh)).await.expect(401);

    // A challenge of one instance is answered to the other one.
    let challenge = first
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
    second
        .as_user(token, "POST", "/eth/link/verify", Some(proof))
        .await
        .expect(200);

    // Decision 22: administrators see the sessions of all instances, with the exact reason and without tokens.
    let failed = first
        .request("POST", "/auth/request", &[], Some(json!({})))
        .await
        .expect(200);
    let path = format!("/auth/callback?session={}", failed["session_id"].as_str().unwrap());
    second.raw("POST", &path, &[], Some("nonsense")).await.expect(400);
    let listed = second.admin("GET", "/sessions", None).await;
    assert!(
        !listed.body.contains("token") && !listed.body.contains("ey"),
        "{}",
        listed.body
    );
    let listed = listed.expect(200);
    assert_eq!(listed["total"], 2, "{listed}");
    // The list has handles that cannot be polled (HD34) and are the same on both instances.
    assert!(!listed.to_string().contains(session_id), "{listed}");
    let session_with = |completed: bool| {
        listed["sessions"]
            .as_array()
            .unwrap()
            .iter()
            .find(|s| s["completed"] == completed)
            .cloned()
            .unwrap()
    };
    let completed_session = session_with(true);
    assert_eq!(
        (&completed_session["completed"], &completed_session["did"]),
        (&json!(true), &json!("did:example:alice")),
        "{completed_session}"
    );
    let failed_session = session_with(false);
    assert_eq!(
        (
            &failed_session["completed"],
            &failed_session["failed"],
            &failed_session["reason"]
        ),
        (&json!(false), &json!(true), &json!("the proof is unreadable")),
        "{failed_session}"
    );
    let failed_only = first.admin("GET", "/sessions?state=failed", None).await.expect(200);
    assert_eq!(failed_only["total"], 1, "{failed_only}");
    let path = format!("/sessions/{}", failed_session["id"].as_str().unwrap());
    second.admin("DELETE", &path, None).await.expect(200);
    first.admin("DELETE", &path, None).await.expect(404);

    // Rate limits are shared: requests to alternating instances have one count.
    let mut allowed = 0;
    for gw in [&first, &second].into_iter().cycle().take(2 * PER_MINUTE) {
        let answer = gw.request("POST", "/introspect", &[], Some(json!({}))).await;
        match answer.status {
            400 => allowed += 1,
            429 => break,
            status => panic!("{status}: {}", answer.body),
        }
    }
    assert!(
        allowed < PER_MINUTE,
        "{allowed} requests were allowed in addition to the logins above"
    );
    first
        .request("POST", "/auth/request", &[], Some(json!({})))
        .await
        .expect(429);
    second
        .request("POST", "/auth/request", &[], Some(json!({})))
        .await
        .expect(429);

    // Without the cache logins are 503, each instance counts rate limits by itself, and everything else works.
    redis.stop();
    second
        .request("POST", "/auth/request", &[], Some(json!({})))
        .await
        .expect(503);
    let called = second.rpc(token, "eth_chainId", json!([])).await;
    assert_eq!(called.status, 200, "{}", called.body);
    second.admin("GET", "/sessions", None).await.expect(503);
    let mut state = json!(null);
    for _ in 0..MAX_POLLS {
        state = second.request("GET", "/ready", &[], None).await.expect(200)["dependencies"]["cache"].clone();
        if state == "down" {
            break;
        }
        tokio::time::sleep(Duration::from_millis(100)).await;
    }
    assert_eq!(state, "down");
    redis.start_again().unwrap();
    let mut status = 0;
    for _ in 0..MAX_POLLS {
        status = second
            .request("POST", "/auth/request", &[], Some(json!({})))
            .await
            .status;
        if status == 200 {
            break;
        }
        tokio::time::sleep(Duration::from_millis(200)).await;
    }
    assert_eq!(status, 200, "logins work again without a restart");
}

/// HD24, decision 12: a second instance does not start without a shared cache.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn hd24_a_second_instance_without_redis_does_not_start() {
    let first = Gateway::start_with(Engine::Postgres, &[]).await;
    let temporary = tempfile::tempdir().unwrap();
    let directory = temporary.path().display().to_string();
    let port = gw_testkit::port::reserve().to_string();
    let settings = [("DATA_DIR", directory.as_str()), ("PORT", &port)];
    let (code, output) = first.run_command_with(&settings, &["serve"]);
    assert_eq!(code, Some(78), "{output}");
    assert!(output.contains("REDIS_URL"), "{output}");
}
