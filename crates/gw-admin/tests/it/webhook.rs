//! The webhook of an organization: its secret is shown once, and only the organization's administrators manage it.

use crate::world::{Caller, World};
use gw_store::record::{AccessInput, NewGroup};
use gw_types::OrgId;
use http::{Method, StatusCode};
use serde_json::{Value, json};

const URL: &str = "https://bank.example/hook";

fn path(org: OrgId) -> String {
    format!("/orgs/{org}/webhook")
}

async fn set(world: &World, caller: Caller<'_>, org: OrgId, body: Value) -> crate::world::Response {
    world.ask(caller, Method::PUT, &path(org), Some(body)).await
}

#[tokio::test]
async fn the_secret_of_a_webhook_is_shown_once() {
    let world = World::start().await;
    let (org, token) = world.org_with_admin("bank").await;
    let admin = Caller::User(&token);
    let missing = world.get(admin, &path(org)).await;
    assert_eq!(
        (missing.status, &*missing.json()["error"].to_string()),
        (StatusCode::NOT_FOUND, "\"webhook not found\"")
    );
    let created = set(&world, admin, org, json!({"url": URL})).await;
    assert_eq!(created.status, StatusCode::OK, "{}", created.text);
    let secret = created.json()["secret"].as_str().unwrap().to_owned();
    assert!(secret.starts_with("whsec_") && secret.len() == 6 + 44, "{secret}");
    let read = world.get(admin, &path(org)).await;
    let mut expected = created.json();
    expected.as_object_mut().unwrap().remove("secret");
    assert_eq!(read.json(), expected);
    assert_eq!((&read.json()["url"], &read.json()["waiting"]), (&json!(URL), &json!(0)));
    assert_eq!(read.json()["last_failure"], Value::Null);

    let moved = set(&world, admin, org, json!({"url": "https://bank.example/new"})).await;
    assert_eq!(moved.json()["url"], "https://bank.example/new");
    assert_eq!(moved.json().get("secret"), None, "the secret stays");
    let rotated = set(&world, admin, org, json!({"url": URL, "rotate_secret": true})).await;
    let new = rotated.json()["secret"].as_str().unwrap().to_owned();
    assert_ne!(new, secret);

    let tested = world
        .ask(admin, Method::POST, &format!("{}/test", path(org)), None)
        .await;
    assert_eq!(tested.status, StatusCode::ACCEPTED, "{}", tested.text);
    assert!(tested.json()["id"].is_string());
    assert_eq!(world.get(admin, &path(org)).await.json()["waiting"], 1);
    let deleted = world.ask(admin, Method::DELETE, &path(org), None).await;
    assert_eq!(deleted.status, StatusCode::OK, "{}", deleted.text);
    for (method, path) in [
        (Method::GET, path(org)),
        (Method::DELETE, path(org)),
        (Method::POST, format!("{}/test", path(org))),
    ] {
        assert_eq!(
            world.ask(admin, method, &path, None).await.status,
            StatusCode::NOT_FOUND,
            "{path}"
        );
    }
}

#[tokio::test]
async fn only_administrators_of_the_organization_manage_its_webhook() {
    let world = World::start().await;
    let (org, token) = world.org_with_admin("bank").await;
    let (foreign, rival) = world.org_with_admin("rival").await;
    let group = NewGroup {
        is_org_readonly_admin: true,
        ..NewGroup::plain(org, "readers", "readers")
    };
    let reader = world.fixture.create_user("reader", group, AccessInput::default()).await;
    let plain = NewGroup::plain(org, "staff", "staff");
    let member = world.fixture.create_user("member", plain, AccessInput::default()).await;
    set(&world, Caller::User(&token), org, json!({"url": URL})).await;
    let requests = |org: OrgId| {
        [
            (Method::GET, path(org), None),
            (Method::PUT, path(org), Some(json!({"url": "https://evil.example"}))),
            (Method::POST, format!("{}/test", path(org)), None),
            (Method::DELETE, path(org), None),
        ]
    };
    for (method, path, body) in requests(org) {
        let status = async |caller| {
            let answer = world.ask(caller, method.clone(), &path, body.clone()).await;
            (answer.status, answer.text)
        };
        assert_eq!(status(Caller::Nobody).await.0, StatusCode::UNAUTHORIZED, "{method}");
        assert_eq!(
            status(Caller::User(&member.token)).await.0,
            StatusCode::FORBIDDEN,
            "{method}"
        );
        let expected = if method == Method::GET {
            StatusCode::OK
        } else {
            StatusCode::FORBIDDEN
        };
        assert_eq!(status(Caller::User(&reader.token)).await.0, expected, "{method}");
        // Another organization's administrator gets the answer for an unknown organization.
        let denied = status(Caller::User(&rival)).await;
        assert_eq!(denied.0, StatusCode::FORBIDDEN, "{method}");
        let unknown = OrgId::fixed(99).to_string();
        let unknown = path.replace(&org.to_string(), &unknown);
        let answer = world
            .ask(Caller::User(&rival), method.clone(), &unknown, body.clone())
            .await;
        assert_eq!(denied, (answer.status, answer.text), "{method}");
    }
    let stored = world.get(Caller::User(&token), &path(org)).await.json();
    assert_eq!(
        (&stored["url"], &stored["waiting"]),
        (&json!(URL), &json!(0)),
        "nothing changed"
    );
    assert_eq!(world.get(Caller::Super, &path(org)).await.status, StatusCode::OK);
    assert_eq!(
        world.get(Caller::Super, &path(foreign)).await.status,
        StatusCode::NOT_FOUND
    );
}

#[tokio::test]
async fn a_webhook_has_an_https_address_outside_of_private_networks() {
    let world = World::start().await;
    let (org, token) = world.org_with_admin("bank").await;
    for url in [
        "",
        "bank.example",
        "http://bank.example/hook",
        "https://user:word@bank.example/hook",
        "https://bank.example/hook#part",
        "https://10.0.0.1/hook",
        "https://127.0.0.1/hook",
        "https://[::ffff:169.254.169.254]/hook",
    ] {
        let refused = set(&world, Caller::User(&token), org, json!({"url": url})).await;
        assert_eq!(refused.status, StatusCode::BAD_REQUEST, "{url}: {}", refused.text);
        assert!(
            refused.json()["error"].as_str().unwrap().starts_with("url must "),
            "{}",
            refused.text
        );
    }
    assert_eq!(
        world.get(Caller::User(&token), &path(org)).await.status,
        StatusCode::NOT_FOUND
    );
}
