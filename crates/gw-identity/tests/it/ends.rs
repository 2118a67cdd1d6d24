//! What a logout, a removal, a decline or a stolen token ends (HD20, HD32, HD34, HD35), each tested as an attack.

use crate::{
    browser::{entry, is_pending, log_in_by_page, mint, open_from, urls},
    oauth_flow::{Flow, brought, redeem},
    world::{Answer, PAGE, Tokens, World, ask, did},
};
use axum::body::Body;
use futures_util::stream::{self, StreamExt as _};
use gw_store::record::{NewGroup, NewMembership, NewOrganization, NewUser, UserPatch};
use gw_testkit::fixture::BASE_URL;
use gw_types::{GroupId, OrgId};
use http::{Method, Request, StatusCode};
use serde_json::{Value, json};
use std::convert::Infallible;

/// An organization and its group of clients.
async fn bank(world: &World, slug: &str) -> (OrgId, GroupId) {
    let mut tx = world.fixture.begin().await;
    let new = NewOrganization {
        slug: slug.to_owned(),
        name: slug.to_uppercase(),
        ..NewOrganization::default()
    };
    let org = tx.create_organization(new).await.unwrap().id;
    let group = tx
        .create_group(NewGroup::plain(org, "clients", "Clients"))
        .await
        .unwrap()
        .id;
    tx.commit().await.unwrap();
    (org, group)
}

/// An administrator puts Alice into a group.
async fn offer(world: &World, group: GroupId) {
    let mut tx = world.fixture.begin().await;
    let user = match tx.read().find_user_by_external_id(&did("alice")).await.unwrap() {
        Some(user) => user,
        None => {
            let new = NewUser {
                external_id: did("alice"),
                kyc: false,
                auth_tenant_id: None,
                groups: Vec::new(),
            };
            tx.create_user(new).await.unwrap()
        }
    };
    tx.offer_membership(NewMembership {
        user: user.id,
        group,
        expires_at: None,
    })
    .await
    .unwrap();
    tx.commit().await.unwrap();
}

async fn waiting(world: &World, alice: &Tokens) -> Vec<(String, bool)> {
    let invitations = world
        .get("/api/v1/me/invitations")
        .bearer(&alice.access)
        .send()
        .await
        .body;
    let rows = invitations["data"].as_array().unwrap().iter();
    rows.map(|row| {
        (
            row["id"].as_str().unwrap().to_owned(),
            row["in_force"].as_bool().unwrap(),
        )
    })
    .collect()
}

async fn has_accepted(world: &World, org: OrgId) -> bool {
    let user = world.user("alice").await.unwrap();
    world
        .fixture
        .store
        .read()
        .organizations_of(user.id)
        .await
        .unwrap()
        .contains(&org)
}

async fn refreshed(world: &World, tokens: &Tokens) -> Tokens {
    let answer = world.post("/refresh", tokens.as_refresh()).send().await;
    assert_eq!(answer.status, StatusCode::OK, "{}", answer.body);
    Tokens::from_body(&answer.body)
}

/// HD32, decision 62: a new invitation followed by a refresh or login does not take back a user who declined or left.
#[tokio::test]
async fn hd32_who_declined_or_left_is_not_taken_back() {
    let world = World::new().await;
    let (org, group) = bank(&world, "bank").await;
    for way in ["declined", "left"] {
        let mut alice = world.log_in("alice").await;
        offer(&world, group).await;
        if way == "left" {
            let accept = world
                .ask(Method::POST, &format!("/api/v1/me/orgs/{org}/accept"))
                .bearer(&alice.access);
            assert_eq!(accept.send().await.status, StatusCode::OK);
        }
        let path = format!("/api/v1/me/orgs/{org}");
        let left = world.ask(Method::DELETE, &path).bearer(&alice.access).send().await;
        assert_eq!(left.status, StatusCode::OK, "{way}: {}", left.body);
        offer(&world, group).await;
        assert_eq!(
            waiting(&world, &alice).await,
            [(org.to_string(), false)],
            "{way}: not in force"
        );
        alice = refreshed(&world, &alice).await;
        world.log_in("alice").await;
        assert!(!has_accepted(&world, org).await, "{way}");
        assert_eq!(waiting(&world, &alice).await, [(org.to_string(), false)], "{way}");
        let accept = world
            .ask(Method::POST, &format!("/api/v1/me/orgs/{org}/accept"))
            .bearer(&alice.access);
        assert_eq!(accept.send().await.status, StatusCode::OK);
        assert!(has_accepted(&world, org).await, "{way}: by her own act");
        let left = world.ask(Method::DELETE, &path).bearer(&alice.access).send().await;
        assert_eq!(left.status, StatusCode::OK, "{way}: {}", left.body);
    }
}

/// HD32: of two invitations the first is in force, and neither a login nor a refresh accepts one of them.
#[tokio::test]
async fn hd32_of_two_that_wait_a_login_chooses_none() {
    let world = World::new().await;
    let (first, firsts) = bank(&world, "first").await;
    let (second, seconds) = bank(&world, "second").await;
    offer(&world, firsts).await;
    world.fixture.clock.pass(1);
    offer(&world, seconds).await;
    let alice = refreshed(&world, &world.log_in("alice").await).await;
    let mut both = [(first.to_string(), true), (second.to_string(), false)];
    both.sort_unstable();
    let mut invitations = waiting(&world, &alice).await;
    invitations.sort_unstable();
    assert_eq!(invitations, both);
    assert!(!has_accepted(&world, first).await && !has_accepted(&world, second).await);
}

/// A code that a silent sign-in with this login gave to an application.
async fn silent_code(world: &World, tokens: &Tokens) -> String {
    let flow = Flow::opened_by(world, &tokens.access).await;
    let done = flow
        .silent(world)
        .bearer(&tokens.access)
        .header("x-login-secret", &flow.secret)
        .send()
        .await;
    brought(&done.body["redirect_url"])["code"].clone()
}

/// HD35, TK-5: reuse of a refresh token ends the whole login and everything it made, as a logout does.
#[tokio::test]
async fn hd35_tk5_reuse_ends_the_whole_login() {
    let world = World::new().await;
    let (_, other) = log_in_by_page(&world, "alice").await;
    for way in ["reuse of the page's", "reuse of the application's", "logout"] {
        let (wallet, page) = log_in_by_page(&world, "alice").await;
        let before = urls(&world).await;
        assert_eq!(mint(&world, &page).await.status, StatusCode::CREATED);
        let application = Tokens::from_body(&redeem(&world, &silent_code(&world, &page).await, &[]).await.body);
        let unredeemed = silent_code(&world, &page).await;
        match way {
            "logout" => drop(
                world
                    .post("/api/v1/logout", json!({}))
                    .bearer(&page.access)
                    .send()
                    .await,
            ),
            way => {
                let stolen = if way.contains("page") { &page } else { &application };
                refreshed(&world, stolen).await;
                world.fixture.clock.pass(11);
                let shown = world.post("/refresh", stolen.as_refresh()).send().await;
                assert_eq!(shown.refusal(), (401, "refresh token revoked"), "{way}");
            }
        }
        for tokens in [&wallet, &page, &application] {
            assert_eq!(entry(&world, tokens).await, StatusCode::UNAUTHORIZED, "{way}");
            let again = world.post("/refresh", tokens.as_refresh()).send().await;
            assert_eq!(again.status, StatusCode::UNAUTHORIZED, "{way}");
        }
        assert_eq!(
            redeem(&world, &unredeemed, &[]).await.refusal(),
            (400, "invalid_grant"),
            "{way}"
        );
        assert_eq!(urls(&world).await, before, "{way}");
        assert_eq!(
            entry(&world, &other).await,
            StatusCode::OK,
            "{way}: another login stays"
        );
    }
}

/// Headers that only browsers send, one at a time.
const OF_BROWSERS: [(&str, &str); 5] = [
    ("origin", BASE_URL),
    ("sec-fetch-site", "same-origin"),
    ("sec-fetch-mode", "navigate"),
    ("cookie", "pp_access=x"),
    ("cookie", "theme=dark"),
];

/// HD34: a script behind the victim's address opens a sign-in. The victim's browser gets nothing of it to sign, nor
/// does any client without the secret.
#[tokio::test]
async fn hd34_a_script_fixes_no_sign_in_of_a_browser() {
    let world = World::new().await;
    let flow = Flow::open(&world, &[]).await;
    let other = (403, "this sign-in was started in another browser");
    let paths = [
        format!("/oauth/session/{}/info", flow.id),
        format!("/auth/session/{}/qr.svg", flow.login),
    ];
    for path in &paths {
        for (name, value) in OF_BROWSERS {
            assert_eq!(
                world.get(path).header(name, value).send().await.refusal(),
                other,
                "{path} {name}"
            );
        }
        assert_eq!(
            world.get(path).send().await.refusal(),
            other,
            "{path}: a script has the secret"
        );
        let own = world
            .get(path)
            .header("x-login-secret", &flow.secret)
            .header("origin", BASE_URL)
            .send()
            .await;
        assert_eq!(own.status, StatusCode::OK, "{path}");
    }
    flow.prove(&world, "proof:did:test:alice").await;
    for header in OF_BROWSERS {
        let status = flow.status(&world, PAGE, &[header]).await;
        assert_eq!(
            status.body,
            json!({ "completed": false }),
            "{header:?}: no code for a browser that did not begin it"
        );
    }
    let tokens = format!("/api/v1/auth/session/{}/status", flow.login);
    assert!(
        is_pending(&world.get(&tokens).send().await),
        "nor the page's tokens by the address alone"
    );
}

/// HD34: a browser gets nothing of a login that a script opened at its address.
#[tokio::test]
async fn hd34_a_browser_collects_nothing_of_a_scripts_login() {
    let world = World::new().await;
    let login = open_from(&world, PAGE, &[]).await;
    let qr = format!("/auth/session/{}/qr.svg", login.id);
    for (name, value) in OF_BROWSERS {
        let drawn = world.get(&qr).header(name, value).send().await;
        assert_eq!(
            drawn.refusal(),
            (403, "this sign-in was started in another browser"),
            "{name}"
        );
    }
    assert_eq!(
        world.get(&qr).send().await.status,
        StatusCode::OK,
        "HD19: the script itself"
    );
    world.prove(&login, "proof:did:test:alice").await;
    for header in OF_BROWSERS {
        assert!(is_pending(&world.poll(&login, PAGE, &[header]).await), "{header:?}");
    }
    assert_eq!(world.poll(&login, PAGE, &[]).await.body["completed"], true);
}

/// HD35: a logout that names another login's refresh token ends both that one and the caller's own.
#[tokio::test]
async fn hd35_a_logout_ends_the_callers_login_and_the_one_named() {
    let world = World::new().await;
    for by in ["bearer", "cookie", "neither", "bearer, nonsense named"] {
        let (own, _) = log_in_by_page(&world, "alice").await;
        let (named, _) = log_in_by_page(&world, "alice").await;
        let body = match by {
            "bearer, nonsense named" => json!({ "refresh_token": "nonsense" }),
            _ => named.as_refresh(),
        };
        let logout = world.post("/api/v1/logout", body);
        let answer = match by {
            "cookie" => logout
                .header("cookie", &format!("pp_access={}", own.access))
                .header("origin", BASE_URL),
            "neither" => logout,
            _ => logout.bearer(&own.access),
        };
        let answer = answer.send().await;
        assert_eq!(answer.status, StatusCode::OK, "{by}: {}", answer.body);
        let over = |ended: bool| {
            if ended {
                StatusCode::UNAUTHORIZED
            } else {
                StatusCode::OK
            }
        };
        assert_eq!(entry(&world, &own).await, over(by != "neither"), "{by}");
        assert_eq!(entry(&world, &named).await, over(!by.contains("nonsense")), "{by}");
    }
    let nobody = world
        .post("/api/v1/logout", json!({ "refresh_token": "nonsense" }))
        .send()
        .await;
    assert_eq!(nobody.refusal(), (401, "invalid token"));
}

/// Sends the head and half of the body, then runs `meanwhile`, then sends the rest of the body.
async fn half_sent(
    world: &World,
    path: &str,
    tokens: &Tokens,
    body: &Value,
    meanwhile: impl Future<Output = ()>,
) -> Answer {
    let text = body.to_string();
    let (first, rest) = text.split_at(text.len() / 2);
    let (first, rest) = (first.to_owned(), rest.to_owned());
    let (go, wait) = tokio::sync::oneshot::channel::<()>();
    let parts = stream::once(async { Ok::<_, Infallible>(first) });
    let parts = parts.chain(stream::once(async move {
        let _ = wait.await;
        Ok(rest)
    }));
    let request = Request::post(path).header("authorization", format!("Bearer {}", tokens.access));
    let request = request.body(Body::from_stream(parts)).unwrap();
    let asking = tokio::spawn(ask(world.app.clone(), request, PAGE.parse().unwrap()));
    // The head is authorized by now, and the server waits for the body.
    tokio::time::sleep(std::time::Duration::from_millis(100)).await;
    assert!(!asking.is_finished());
    meanwhile.await;
    go.send(()).unwrap();
    asking.await.unwrap()
}

/// HD20, 80 section 2 rule 3: a caller who has lost the right when the body has arrived is rejected, whenever the
/// request began.
#[tokio::test]
async fn hd20_a_request_is_judged_when_its_body_has_come() {
    let world = World::new().await;
    let (org, group) = bank(&world, "bank").await;
    let url = json!({ "name": "phone", "org_id": org });
    let link = json!({ "nonce": "n", "address": format!("0x{}", "11".repeat(20)), "signature": "0x00" });
    for (path, body) in [("/api/v1/me/rpc-urls", &url), ("/api/v1/eth/link/verify", &link)] {
        for way in ["ban", "logout", "removal"] {
            if way == "removal" && path.contains("link") {
                continue;
            }
            let (_, alice) = log_in_by_page(&world, "alice").await;
            let user = world.user("alice").await.unwrap();
            let ban = async |banned| {
                let mut tx = world.fixture.begin().await;
                tx.update_user(
                    user.id,
                    UserPatch {
                        banned: Some(banned),
                        ..UserPatch::default()
                    },
                )
                .await
                .unwrap();
                tx.commit().await.unwrap();
            };
            let mut tx = world.fixture.begin().await;
            let new = NewMembership {
                user: user.id,
                group,
                expires_at: None,
            };
            let held = match tx.read().find_membership_of(user.id, group).await.unwrap() {
                Some(held) => held,
                None => tx.add_membership(new).await.unwrap(),
            };
            tx.commit().await.unwrap();
            let meanwhile = async {
                match way {
                    "ban" => ban(true).await,
                    "logout" => drop(
                        world
                            .post("/api/v1/logout", json!({}))
                            .bearer(&alice.access)
                            .send()
                            .await,
                    ),
                    _ => {
                        let mut tx = world.fixture.begin().await;
                        tx.remove_membership(held.id).await.unwrap();
                        tx.commit().await.unwrap();
                    }
                }
            };
            let answer = half_sent(&world, path, &alice, body, meanwhile).await;
            let expected = match way {
                "ban" => (403, "account is banned"),
                "logout" => (401, "token revoked"),
                _ => (400, "`org_id`: not one of your organizations"),
            };
            assert_eq!(answer.refusal(), expected, "{path} {way}");
            assert_eq!(urls(&world).await, 0, "{path} {way}");
            world.fixture.clock.pass(1);
            ban(false).await;
        }
    }
}
