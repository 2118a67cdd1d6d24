//! The organization that a request names bounds the view (HD39), by the rules of `/rpc`.

use crate::{
    chain::{ChainMaker, Naive, policy},
    world::{Response, TestCaller, World},
};
use axum::body::Body;
use gw_explorer::Impersonation;
use gw_policy::{
    PolicySettings, Viewer,
    testing::{NOW, org_id, user_id},
};
use gw_types::{B256, OrgId};
use http::{Request, StatusCode, header};

/// Requests a path with these values of `X-Org-Id`.
async fn get(world: &World, who: TestCaller, orgs: &[&str], path: &str) -> Response {
    let mut request = Request::builder().uri(format!("/api/v1/explorer{path}"));
    if let TestCaller::User(name) = who {
        request = request.header(header::AUTHORIZATION, format!("Bearer {}", world.token(name)));
    }
    for org in orgs {
        request = request.header("x-org-id", *org);
    }
    let mut request = request.body(Body::empty()).unwrap();
    if let TestCaller::RootAs(name) = who {
        request.extensions_mut().insert(Impersonation {
            target: user_id(name),
            impersonator: user_id("root"),
            org: org_id("a"),
        });
    }
    world.send(request).await
}

fn hashes(response: &Response) -> Vec<String> {
    assert_eq!(response.status, StatusCode::OK, "{}", response.text);
    let rows = response.json()["data"].as_array().unwrap().clone();
    rows.iter()
        .map(|row| row["hash"].as_str().unwrap().to_owned())
        .collect()
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn hd39_a_named_organization_bounds_the_view() {
    let chain = ChainMaker::new(321).blocks(1, B256::ZERO, 24);
    let snapshot = policy(&chain)
        .user("dana")
        .member("a/staff")
        .member("b/staff")
        .snapshot();
    let mut world = World::with(snapshot, PolicySettings::SPEC).await;
    world.append(chain.clone()).await;
    world.follow().await;
    let (snapshot, settings, dana) = (world.snapshot(), world.settings(), TestCaller::User("dana"));
    let expected = |org: Option<&str>| -> Vec<String> {
        let viewer = Viewer::new(&snapshot, Some(user_id("dana")), NOW, &settings).scoped_to_org(org.map(org_id));
        let shown = Naive::newest_first(&chain)
            .into_iter()
            .filter(|tx| tx.is_shown(&viewer));
        shown
            .map(|tx| format!("0x{}", hex::encode(tx.data.transaction.hash)))
            .collect()
    };
    let (a, b) = (org_id("a").to_string(), org_id("b").to_string());
    let list = "/transactions?limit=100";
    let all = hashes(&get(&world, dana, &[], list).await);
    let in_a = hashes(&get(&world, dana, &[&a], list).await);
    let in_b = hashes(&get(&world, dana, &[&b, &b], list).await);
    assert_eq!((&all, &in_a), (&expected(None), &expected(Some("a"))));
    assert_eq!(in_b, expected(Some("b")));
    assert!(in_a.len() < all.len() && in_b.len() < all.len() && in_a != in_b);
    // A row of `b` is not found in `a`.
    let of_b = in_b.iter().find(|hash| !in_a.contains(hash)).unwrap();
    let path = format!("/transactions/{of_b}");
    assert_eq!(get(&world, dana, &[&a], &path).await.status, StatusCode::NOT_FOUND);
    assert_eq!(get(&world, dana, &[], &path).await.status, StatusCode::OK);
    // A cursor belongs to the organization, too.
    let page = get(&world, dana, &[&a], "/transactions?limit=1").await.json();
    let next = format!("/transactions?limit=1&cursor={}", page["next_cursor"].as_str().unwrap());
    assert_eq!(hashes(&get(&world, dana, &[&a], &next).await), in_a[1..2]);
    for orgs in [&[][..], &[b.as_str()]] {
        assert_eq!(get(&world, dana, orgs, &next).await.status, StatusCode::BAD_REQUEST);
    }
    // The record is filed under the organization (HD12).
    let _earlier = world.fixture.access_records();
    let _answer = get(&world, dana, &[&a], list).await;
    let _answer = get(&world, dana, &[], list).await;
    let orgs: Vec<Option<OrgId>> = world
        .fixture
        .access_records()
        .iter()
        .map(|record| record.org_id)
        .collect();
    assert_eq!(orgs, [Some(org_id("a")), None]);
}

/// Unknown, foreign and malformed organizations have one answer.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn hd39_an_organization_of_others_is_not_found() {
    let world = World::random(322, PolicySettings::SPEC).await;
    let (a, b, unknown) = (
        org_id("a").to_string(),
        org_id("b").to_string(),
        OrgId::fixed(77).to_string(),
    );
    let alice = TestCaller::User("alice");
    let denied = get(&world, alice, &[&unknown], "/blocks").await;
    assert_eq!(denied.status, StatusCode::NOT_FOUND, "{}", denied.text);
    for (who, org) in [
        (alice, b.as_str()),
        (alice, "bank"),
        (alice, ""),
        (TestCaller::Nobody, &a),
    ] {
        for path in ["/blocks", "/transactions", "/viewable-addresses?wallet=x"] {
            assert_eq!(get(&world, who, &[org], path).await, denied, "{who:?} {org} {path}");
        }
    }
    for (who, orgs) in [
        (alice, [a.as_str(), b.as_str()]),
        (TestCaller::RootAs("alice"), [b.as_str(), b.as_str()]),
    ] {
        let two = get(&world, who, &orgs, "/blocks").await;
        assert_eq!(two.status, StatusCode::BAD_REQUEST, "{who:?}");
        assert!(two.text.contains("name different organizations"), "{}", two.text);
    }
    for who in [alice, TestCaller::RootAs("alice")] {
        assert_eq!(get(&world, who, &[&a], "/blocks").await.status, StatusCode::OK);
    }
}
