//! Mock logins, in builds that contain them.

use crate::world::{Setup, Tokens, World};
use gw_identity::{MockVerifier, NoVerifier};
use gw_policy::{access::admin, snapshot::Organization};
use gw_types::ExternalId;
use http::StatusCode;
use serde_json::json;
use std::sync::Arc;

async fn world() -> World {
    let verifier = Arc::new(MockVerifier::before(Arc::new(NoVerifier)));
    World::with(Setup {
        production: false,
        verifier,
        ..Setup::default()
    })
    .await
}

async fn mock_login(world: &World, token: &str) -> Result<Tokens, (u16, String)> {
    let login = world.open_login().await;
    let answer = world.prove(&login, token).await;
    if answer.status == StatusCode::OK {
        return Ok(Tokens::from_body(&answer.body));
    }
    let (status, text) = answer.refusal();
    Err((status, text.to_owned()))
}

fn administers_default(world: &World, name: &str) -> bool {
    let snapshot = world.fixture.http.policy.pin().unwrap();
    let user = snapshot.user_by_external(&ExternalId::new(name).unwrap()).unwrap().id;
    admin::status(&snapshot, user, world.fixture.http.now())
        .full
        .contains(&Organization::DEFAULT)
}

/// MK-1, MK-3, decision 24: created mock users administer the default organization.
#[tokio::test]
async fn mk1_mk3_decision_24_created_mock_users_are_administrators() {
    let world = world().await;
    for (token, name) in [
        ("mock.did:example:alice", "did:example:alice"),
        ("mock.jwz.token.did:example:b.o.b", "did:example:b.o.b"),
    ] {
        let tokens = mock_login(&world, token).await.unwrap();
        let claims = world
            .fixture
            .http
            .tokens
            .access(&tokens.access, world.fixture.http.now())
            .unwrap();
        assert_eq!((claims.subject.as_str(), claims.amr.as_str()), (name, "mock"));
        assert!(administers_default(&world, name), "{name}");
    }
}

/// MK-3: test DIDs get no admin claim; decision 24: existing users keep what they have.
#[tokio::test]
async fn mk3_decision_24_test_dids_and_existing_users_gain_nothing() {
    let world = world().await;
    mock_login(&world, "mock.did:test:alice").await.unwrap();
    assert!(!administers_default(&world, "did:test:alice"));

    let mut tx = world.fixture.begin().await;
    let external_id = ExternalId::new("did:example:known").unwrap();
    let new = gw_store::record::NewUser {
        external_id,
        kyc: false,
        auth_tenant_id: None,
        groups: Vec::new(),
    };
    tx.create_user(new).await.unwrap();
    tx.commit().await.unwrap();
    mock_login(&world, "mock.did:example:known").await.unwrap();
    assert!(!administers_default(&world, "did:example:known"));
}

/// MK-1: a mock token without a valid name is unreadable; other tokens go to the real verifier.
#[tokio::test]
async fn mk1_other_tokens() {
    let world = world().await;
    for token in ["mock.", "mock.jwz.token.", "mock.alice", "mock.directory:5a1c"] {
        assert_eq!(
            mock_login(&world, token).await,
            Err((400, "invalid token format".to_owned())),
            "{token}"
        );
    }
    assert_eq!(
        mock_login(&world, "a.b.c").await,
        Err((401, "verification failed".to_owned()))
    );
}

/// MK-3: bans apply.
#[tokio::test]
async fn mk3_bans_apply_to_mock_users() {
    let world = world().await;
    mock_login(&world, "mock.did:test:alice").await.unwrap();
    let user = world.user("alice").await.unwrap();
    let mut tx = world.fixture.begin().await;
    let ban = gw_store::record::UserPatch {
        banned: Some(true),
        ..Default::default()
    };
    tx.update_user(user.id, ban).await.unwrap();
    tx.commit().await.unwrap();
    assert_eq!(
        mock_login(&world, "mock.did:test:alice").await,
        Err((403, "account is banned".to_owned()))
    );
}

/// MK-4: an OAuth session is completed without a wallet if mock logins are enabled.
#[tokio::test]
async fn mk4_an_oauth_session_completes_without_a_wallet() {
    let open = async |world: &World| {
        let path =
            "/oauth/authorize?client_id=explorer&redirect_uri=https://gate.example/cb&state=s&response_type=code";
        let answer = world.get(path).send().await;
        answer.body["oauth_session_id"]
            .as_str()
            .unwrap_or_else(|| panic!("{}", answer.body))
            .to_owned()
    };
    let complete = async |world: &World, id: &str, body: serde_json::Value| {
        world
            .post(&format!("/oauth/session/{id}/mock-complete"), body)
            .send()
            .await
    };
    let off = World::with(Setup {
        production: false,
        ..Setup::default()
    })
    .await;
    let id = open(&off).await;
    assert_eq!(
        complete(&off, &id, json!({})).await.refusal(),
        (403, "mock login is disabled")
    );

    let verifier = Arc::new(MockVerifier::before(Arc::new(NoVerifier)));
    let world = World::with(Setup {
        production: false,
        verifier,
        allow_mock: true,
        ..Setup::default()
    })
    .await;
    let id = open(&world).await;
    assert_eq!(
        complete(&world, &"A".repeat(43), json!({})).await.status,
        StatusCode::NOT_FOUND
    );
    let done = complete(&world, &id, json!({ "did": "did:test:alice" })).await;
    assert_eq!(
        (done.status, &done.body),
        (StatusCode::OK, &json!({ "ok": true, "did": "did:test:alice" }))
    );
    assert_eq!(
        complete(&world, &id, json!({})).await.refusal(),
        (409, "session already completed")
    );
    let status = world.get(&format!("/oauth/session/{id}/status")).send().await;
    assert!(
        status.body["redirect_url"]
            .as_str()
            .unwrap()
            .starts_with("https://gate.example/cb?code=")
    );
    let unnamed = open(&world).await;
    assert_eq!(complete(&world, &unnamed, json!({})).await.body["ok"], true);
}
