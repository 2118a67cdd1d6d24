//! The shared cache is unavailable (85 §6 rule 4): logins wait, operations that do not need it still work, limits hold.

use crate::world::{Answer, PAGE, Setup, World};
use gw_testkit::RedisServer;
use http::{Method, StatusCode};
use serde_json::json;
use std::time::{Duration, Instant};

fn is_away(answer: &Answer) {
    assert_eq!(answer.status, StatusCode::SERVICE_UNAVAILABLE, "{}", answer.body);
    assert!(answer.headers.contains_key("retry-after"), "{}", answer.body);
    assert!(
        answer.body["error"]
            .as_str()
            .unwrap()
            .ends_with("temporarily unavailable"),
        "{}",
        answer.body
    );
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn ops_6_4_logins_are_503_and_tokens_go_on() {
    let Some(mut server) = RedisServer::start().unwrap() else {
        println!("NOT RUN: no Redis, as GW_SKIP_REDIS asks");
        return;
    };
    let world = World::with(Setup {
        cache: Some(server.url()),
        ..Setup::default()
    })
    .await;
    let login = world.open_login().await;
    let alice = world.log_in("alice").await;
    let challenge = world
        .post("/eth/link/challenge", json!({}))
        .bearer(&alice.access)
        .send()
        .await;

    server.stop();
    let start = Instant::now();
    is_away(&world.ask(Method::POST, "/auth/request").send().await);
    assert!(start.elapsed() < Duration::from_secs(2), "after {:?}", start.elapsed());
    is_away(&world.prove(&login, "proof:did:test:alice").await);
    is_away(&world.prove(&login, "nonsense").await);
    is_away(&world.poll(&login, PAGE, &login.shown()).await);
    is_away(
        &world
            .post("/eth/link/challenge", json!({}))
            .bearer(&alice.access)
            .send()
            .await,
    );
    let answer = json!({ "address": "0x00", "signature": "0x00", "nonce": challenge.body["nonce"] });
    is_away(
        &world
            .post("/eth/link/verify", answer)
            .bearer(&alice.access)
            .send()
            .await,
    );

    let refreshed = world.post("/refresh", alice.as_refresh()).send().await;
    assert_eq!(refreshed.status, StatusCode::OK, "{}", refreshed.body);
    assert_eq!(
        world.get("/eth/addresses").bearer(&alice.access).send().await.status,
        StatusCode::OK
    );
    assert_eq!(world.get("/api/v1/auth/providers").send().await.status, StatusCode::OK);
    // Counted in the process: ten a minute per subject.
    let mut last = StatusCode::OK;
    for _ in 0..10 {
        last = world
            .post("/eth/link/challenge", json!({}))
            .bearer(&alice.access)
            .send()
            .await
            .status;
    }
    assert_eq!(last, StatusCode::TOO_MANY_REQUESTS);

    server.start_again().unwrap();
    let end = Instant::now() + Duration::from_secs(15);
    while world.ask(Method::POST, "/auth/request").send().await.status != StatusCode::OK {
        assert!(Instant::now() < end, "still away");
        tokio::time::sleep(Duration::from_millis(50)).await;
    }
    let gone = world.poll(&login, PAGE, &[]).await;
    assert_eq!(
        gone.refusal(),
        (401, "session not found or expired"),
        "the new server knows nothing of it"
    );
    world.log_in("alice").await;
}
