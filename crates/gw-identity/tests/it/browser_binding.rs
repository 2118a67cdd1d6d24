//! A login belongs to the browser that began it (HD34): no other browser completes it or learns of it.

use crate::{
    browser::{EVIL, STRANGER, authorize, flow_of_browser, is_pending, open_from, prove},
    world::{PAGE, Setup, World},
};
use gw_testkit::fixture::BASE_URL;
use http::{Method, StatusCode};
use serde_json::json;

/// HD34: a client at the same address as the browser that opened a login gets nothing.
#[tokio::test]
async fn rts2_hd34_the_address_of_a_browser_collects_nothing() {
    let world = World::new().await;
    for headers in [
        &[("origin", BASE_URL)][..],
        &[("sec-fetch-site", "same-origin")],
        &[("sec-fetch-mode", "cors")],
    ] {
        let login = open_from(&world, PAGE, headers).await;
        world.prove(&login, "nonsense").await;
        assert!(
            is_pending(&world.poll(&login, PAGE, &[]).await),
            "the reason is a fact of the session"
        );
        world.prove(&login, "proof:did:test:alice").await;
        assert!(is_pending(&world.poll(&login, PAGE, &[]).await), "{headers:?}");
        assert!(
            is_pending(&world.poll(&login, PAGE, &[("x-login-secret", "guess")]).await),
            "{headers:?}"
        );
        let own = world.poll(&login, STRANGER, &[("x-login-secret", &login.secret)]).await;
        assert_eq!(own.body["completed"], true, "{headers:?}");
    }
}

/// HD34, HD19: a program that is not a browser may poll from the address that opened the login; a wrong secret is
/// rejected even there.
#[tokio::test]
async fn rts2_hd34_a_wrong_secret_is_refused_from_the_right_address() {
    let world = World::new().await;
    let login = open_from(&world, PAGE, &[]).await;
    world.prove(&login, "proof:did:test:alice").await;
    for (name, value) in [
        ("x-login-secret", "guess"),
        ("cookie", "pp_login=guess"),
        ("cookie", "__Host-pp_login=guess"),
    ] {
        assert!(is_pending(&world.poll(&login, PAGE, &[(name, value)]).await), "{name}");
    }
    assert!(is_pending(&world.poll(&login, STRANGER, &[]).await));
    assert_eq!(world.poll(&login, PAGE, &[]).await.body["completed"], true);
}

/// HD34: the handle that an administrator sees does not allow polling, but can end the session.
#[tokio::test]
async fn rts2_hd34_a_listed_session_is_a_handle_that_collects_nothing() {
    let world = World::new().await;
    let login = open_from(&world, PAGE, &[]).await;
    let sessions = world.sessions();
    let listed = sessions.list().await.unwrap();
    let [view] = listed.as_slice() else {
        panic!("{listed:?}")
    };
    assert_ne!(view.id.to_string(), login.id);
    world.prove(&login, "proof:did:test:alice").await;
    let by_handle = world.get(&format!("/auth/session/{}/status", view.id)).send().await;
    assert_eq!(by_handle.status, StatusCode::UNAUTHORIZED, "{}", by_handle.body);
    let view_by_id = sessions.find_view(view.id).await.unwrap().expect("known by its handle");
    assert_eq!(view_by_id.id, view.id, "and called the same when it is done");
    assert_eq!(
        sessions.find_view(login.id.parse().unwrap()).await.unwrap(),
        None,
        "the id is no handle"
    );
    assert!(sessions.end(view.id).await.unwrap());
    assert_eq!(world.poll(&login, PAGE, &[]).await.status, StatusCode::UNAUTHORIZED);
}

/// HD34: a link to a sign-in that another browser began shows nothing to sign: no request, no code, no silent
/// completion.
#[tokio::test]
async fn rts3_hd34_a_session_begun_elsewhere_shows_nothing() {
    let world = World::new().await;
    let alice = world.log_in("alice").await;
    let flow = flow_of_browser(
        &world,
        STRANGER,
        &[("authorization", &format!("Bearer {}", alice.access))],
    )
    .await;
    let path = |what: &str| format!("/oauth/session/{}/{what}", flow.id);
    let qr = format!("/auth/session/{}/qr.svg", flow.login);
    let other = (403, "this sign-in was started in another browser");
    for headers in [&[][..], &[("x-login-secret", "guess")], &[("cookie", "pp_login=guess")]] {
        let ask = |method, path: &str| {
            headers
                .iter()
                .fold(world.ask(method, path), |ask, (name, value)| ask.header(name, value))
        };
        for from in [PAGE, STRANGER] {
            assert_eq!(
                ask(Method::GET, &path("info")).from(from).send().await.refusal(),
                other,
                "{headers:?}"
            );
            assert_eq!(
                ask(Method::GET, &qr).from(from).send().await.refusal(),
                other,
                "{headers:?}"
            );
            let silent = ask(Method::POST, &path("silent-complete"))
                .from(from)
                .bearer(&alice.access);
            assert_eq!(silent.send().await.refusal(), other, "{headers:?}");
        }
    }
    let own = world
        .get(&path("info"))
        .header("x-login-secret", &flow.secret)
        .send()
        .await;
    assert_eq!(own.status, StatusCode::OK, "{}", own.body);
    assert_eq!(
        (&own.body["client_id"], &own.body["did"]),
        (&json!("explorer"), &json!("did:test:alice"))
    );
    assert_eq!(
        world
            .get(&qr)
            .header("x-login-secret", &flow.secret)
            .send()
            .await
            .status,
        StatusCode::OK
    );
}

/// HD34: the page can show which user continues to which application, for every wallet that logged in.
#[tokio::test]
async fn rts3_hd34_a_completed_session_says_who_goes_on() {
    let world = World::new().await;
    let flow = flow_of_browser(&world, PAGE, &[]).await;
    let info = || {
        world
            .get(&format!("/oauth/session/{}/info", flow.id))
            .header("x-login-secret", &flow.secret)
            .send()
    };
    assert_eq!(info().await.body.get("did"), None);
    prove(&world, &flow, "bob").await;
    let info_body = info().await.body;
    assert_eq!(
        (&info_body["client_id"], &info_body["did"]),
        (&json!("explorer"), &json!("did:test:bob"))
    );
}

/// HD34: a foreign page opens nothing on behalf of its visitor, and uses up none of the visitor's limits.
#[tokio::test]
async fn rts8_hd34_a_foreign_page_opens_nothing_and_uses_up_nothing() {
    let world = World::with(Setup {
        per_minute: 3,
        ..Setup::default()
    })
    .await;
    let refused = (403, "origin not allowed");
    for _ in 0..5 {
        for (name, value) in [("origin", EVIL), ("sec-fetch-site", "cross-site"), ("origin", "null")] {
            for (method, path) in [
                (Method::POST, "/auth/request"),
                (Method::POST, "/api/v1/auth/request"),
                (Method::POST, "/auth/verify"),
                (
                    Method::GET,
                    "/api/v1/auth/directory/url?redirect_uri=https://gate.example/",
                ),
                (Method::POST, "/api/v1/introspect"),
                // Failures of an application are counted (spec/10 §9).
                (Method::POST, "/oauth/token"),
            ] {
                let answer = world.ask(method, path).header(name, value).send().await;
                assert_eq!(answer.refusal(), refused, "{name} {path}");
            }
            let started = world.get(&authorize()).header(name, value).send().await;
            assert_eq!(started.status, StatusCode::FORBIDDEN, "{name}");
            // A wallet may be a foreign web page: its proofs are accepted, and counted by its origin.
            world
                .ask(Method::POST, "/auth/callback?session=x")
                .header(name, value)
                .body("x")
                .send()
                .await;
        }
    }
    for path in [authorize(), authorize()] {
        let embedded = world
            .get(&path)
            .header("sec-fetch-site", "cross-site")
            .header("sec-fetch-mode", "navigate");
        assert_eq!(
            embedded.header("sec-fetch-dest", "iframe").send().await.status,
            StatusCode::FORBIDDEN
        );
    }
    let navigated = world
        .get(&authorize())
        .header("sec-fetch-site", "cross-site")
        .header("sec-fetch-mode", "navigate");
    assert_eq!(
        navigated.header("sec-fetch-dest", "document").send().await.status,
        StatusCode::OK
    );
    assert_eq!(
        world
            .ask(Method::POST, "/auth/request")
            .header("origin", BASE_URL)
            .send()
            .await
            .status,
        StatusCode::OK
    );
    let proof = world
        .ask(Method::POST, "/auth/callback?session=x")
        .body("x")
        .send()
        .await;
    assert_eq!(proof.status, StatusCode::UNAUTHORIZED, "not counted out by a page's");
}

/// HD34: polls without the secret do not use up the owner's limit, wherever they come from.
#[tokio::test]
async fn rts8_hd34_foreign_polls_leave_the_owners_alone() {
    let world = World::new().await;
    let login = open_from(&world, PAGE, &[("origin", BASE_URL)]).await;
    let flow = flow_of_browser(&world, PAGE, &[]).await;
    let oauth = format!("/oauth/session/{}/status", flow.id);
    let mut stopped = false;
    for _ in 0..700 {
        stopped |= world.poll(&login, PAGE, &[]).await.status == StatusCode::TOO_MANY_REQUESTS;
        world.poll(&login, STRANGER, &[]).await;
        world.get(&oauth).send().await;
    }
    assert!(stopped, "they have a limit all the same");
    let own = world.poll(&login, PAGE, &[("x-login-secret", &login.secret)]).await;
    assert_eq!(own.status, StatusCode::OK, "{}", own.body);
    let own = world.get(&oauth).header("x-login-secret", &flow.secret).send().await;
    assert_eq!(own.status, StatusCode::OK, "{}", own.body);
}
