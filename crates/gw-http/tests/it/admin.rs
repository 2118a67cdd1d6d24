//! The gates of the admin API (80 §1).

use crate::http_context::{ADMIN_TOKEN, Answer, BANK, FUND, OPERATOR_TOKEN, World, send};
use axum::{Json, Router, extract::FromRef, routing::get};
use gw_http::{AdminCaller, ApiError, HttpContext, TrustedProxies, admin::guard};
use gw_types::OrgId;
use serde_json::{Value, json};
use std::sync::Arc;

const INSIDE: &str = "10.1.2.3";
const OUTSIDE: &str = "198.51.100.1";

#[derive(Clone)]
struct State(Arc<HttpContext>);

impl FromRef<State> for Arc<HttpContext> {
    fn from_ref(state: &State) -> Self {
        Self::clone(&state.0)
    }
}

async fn whoami(caller: AdminCaller) -> Json<Value> {
    let orgs = |may: &dyn Fn(OrgId) -> bool| [BANK, FUND].map(may);
    Json(json!({
        "super": caller.is_super(),
        "reads": orgs(&|org| caller.may_read(org)),
        "writes": orgs(&|org| caller.may_write(org)),
    }))
}

async fn super_only(caller: AdminCaller) -> Result<Json<Value>, ApiError> {
    caller.require_super()?;
    Ok(Json(json!({})))
}

async fn people_only(caller: AdminCaller) -> Result<Json<Value>, ApiError> {
    let admin = caller.require_user()?;
    Ok(Json(json!({ "who": admin.user.external_id })))
}

fn app(world: &World) -> Router {
    let state = State(Arc::clone(&world.http_context));
    let router = Router::new()
        .route("/who", get(whoami))
        .route("/super", get(super_only))
        .route("/people", get(people_only))
        .with_state(state);
    guard(router, Arc::clone(&world.http_context))
}

async fn ask(app: &Router, path: &str, headers: &[(&str, &str)]) -> Answer {
    send(app, INSIDE, "GET", path, headers).await
}

/// Gates 3 to 6: the error texts, in their order.
#[tokio::test]
async fn admin_gates_5_and_6_refuse_in_their_words() {
    let world = World::new();
    let app = app(&world);
    for (name, refusal) in [
        ("nobody", (403, "insufficient permissions")),
        ("former", (403, "insufficient permissions")),
        ("banned", (403, "user is banned")),
        ("unknown", (401, "user not found")),
        ("revoked", (401, "token revoked")),
    ] {
        let bearer = format!("Bearer {}", world.token(name));
        let answer = ask(&app, "/who", &[("authorization", &bearer)]).await;
        assert_eq!(answer.refusal(), refusal, "{name}");
    }
    let stale = format!("Bearer {}", world.token("flagged"));
    world.clock.pass(305);
    for bearer in [stale.as_str(), "Bearer a.b.c"] {
        let answer = ask(&app, "/who", &[("authorization", bearer)]).await;
        assert_eq!(answer.refusal(), (401, "invalid or expired token"), "{bearer}");
    }
    for headers in [&[][..], &[("authorization", "Basic eDp5")]] {
        assert_eq!(
            ask(&app, "/who", headers).await.refusal(),
            (401, "admin authentication required")
        );
    }
}

/// 80 §2: what each kind of caller may read and write.
#[tokio::test]
async fn admin_2_principals_and_their_scope() {
    let world = World::new();
    let app = app(&world);
    for (name, reads, writes) in [
        ("flagged", [true, false], [true, false]),
        ("claimed", [true, false], [true, false]),
        ("reader", [false, true], [false, false]),
    ] {
        let bearer = format!("Bearer {}", world.token(name));
        let answer = ask(&app, "/who", &[("authorization", &bearer)]).await;
        assert_eq!(
            answer.body,
            json!({ "super": false, "reads": reads, "writes": writes }),
            "{name}"
        );
        assert_eq!(
            ask(&app, "/super", &[("authorization", &bearer)]).await.refusal(),
            (403, "insufficient permissions")
        );
        assert_eq!(ask(&app, "/people", &[("authorization", &bearer)]).await.status, 200);
    }
    let by_token = ask(&app, "/who", &[("x-admin-token", ADMIN_TOKEN)]).await;
    assert_eq!(
        by_token.body,
        json!({ "super": true, "reads": [true, true], "writes": [true, true] })
    );
    assert_eq!(ask(&app, "/super", &[("x-admin-token", ADMIN_TOKEN)]).await.status, 200);
    assert_eq!(
        ask(&app, "/super", &[("x-admin-token", OPERATOR_TOKEN)]).await.status,
        403
    );
    for token in [ADMIN_TOKEN, OPERATOR_TOKEN] {
        assert_eq!(ask(&app, "/people", &[("x-admin-token", token)]).await.status, 403);
    }
}

/// Gate 4: a wrong admin token is rejected although a valid JWT is sent with it.
#[tokio::test]
async fn admin_gate_4_decides_alone() {
    let world = World::new();
    let app = app(&world);
    let bearer = format!("Bearer {}", world.token("flagged"));
    for wrong in [
        "",
        "wrong",
        "the admin token of thirty-two char",
        &ADMIN_TOKEN.to_uppercase(),
    ] {
        let answer = ask(&app, "/who", &[("x-admin-token", wrong), ("authorization", &bearer)]).await;
        assert_eq!(answer.refusal(), (401, "invalid or missing X-Admin-Token"), "{wrong}");
    }
    let twice = [("x-admin-token", ADMIN_TOKEN), ("x-admin-token", "wrong")];
    assert_eq!(ask(&app, "/who", &twice).await.status, 401);
}

/// Gate 3: ten wrong tokens lock the address out for a minute, even with the right token; other addresses are not
/// affected.
#[tokio::test]
async fn admin_gate_3_wrong_tokens_lock_the_address() {
    let world = World::new();
    let app = app(&world);
    for _ in 0..10 {
        assert_eq!(ask(&app, "/who", &[("x-admin-token", "wrong")]).await.status, 401);
    }
    let locked = ask(&app, "/who", &[("x-admin-token", ADMIN_TOKEN)]).await;
    assert_eq!(locked.status, 429);
    assert!((1..=61).contains(&locked.headers["retry-after"].to_str().unwrap().parse::<u32>().unwrap()));
    let other = send(&app, "10.1.2.4", "GET", "/who", &[("x-admin-token", ADMIN_TOKEN)]).await;
    assert_eq!(other.status, 200);
    world.clock.pass(60);
    assert_eq!(ask(&app, "/who", &[("x-admin-token", ADMIN_TOKEN)]).await.status, 200);
}

/// Gate 3: only ten wrong tokens within a minute lock an address.
#[tokio::test]
async fn admin_gate_3_forgets_after_a_minute() {
    let world = World::new();
    let app = app(&world);
    for _ in 0..3 {
        for _ in 0..9 {
            assert_eq!(ask(&app, "/who", &[("x-admin-token", "wrong")]).await.status, 401);
        }
        world.clock.pass(60);
    }
    assert_eq!(ask(&app, "/who", &[("x-admin-token", ADMIN_TOKEN)]).await.status, 200);
}

/// Rule 1.1: an empty ADMIN_API_TOKEN matches nothing.
#[tokio::test]
async fn admin_rule_1_1_an_empty_token_opens_nothing() {
    let empty = || gw_types::Secret::new("");
    let world = World::new();
    let gate = gw_http::AdminGate::new(empty(), Some(empty()), Some(empty()), true);
    let http_context = Arc::try_unwrap(world.http_context).unwrap();
    let world = World {
        http_context: Arc::new(HttpContext {
            admin: gate,
            ..http_context
        }),
        clock: world.clock,
    };
    let answer = ask(&app(&world), "/who", &[("x-admin-token", "")]).await;
    assert_eq!(answer.refusal(), (401, "invalid or missing X-Admin-Token"));
}

/// Gate 1, HD16, rule 1.2: external requests get no answer from any route below the guard, known or not, with or
/// without a token.
#[tokio::test]
async fn admin_gate_1_hd16_nothing_answers_outside() {
    let world = World::new();
    let app = app(&world);
    let right = ("x-admin-token", ADMIN_TOKEN);
    let text = "available from localhost / private network only";
    for path in ["/who", "/super", "/nowhere"] {
        let answer = send(&app, OUTSIDE, "GET", path, &[right]).await;
        assert_eq!(answer.refusal(), (403, text), "{path}");
    }
    let claimed = send(&app, INSIDE, "GET", "/who", &[right, ("x-forwarded-for", INSIDE)]).await;
    assert_eq!(claimed.refusal(), (403, text), "a forwarding header from anybody else");

    let behind = World::with(TrustedProxies::new(vec!["10.9.0.0/16".parse().unwrap()]));
    let app = self::app(&behind);
    for (client, status) in [(INSIDE, 200), (OUTSIDE, 403)] {
        let answer = send(&app, "10.9.0.1", "GET", "/who", &[right, ("x-forwarded-for", client)]).await;
        assert_eq!(answer.status, status, "{client}");
    }
}

/// Decision 4: the dashboard's cookie counts for own and listed pages only.
#[tokio::test]
async fn decision_4_the_cookie_opens_the_admin_api_to_our_pages_only() {
    let world = World::new();
    let app = app(&world);
    let cookie = format!("pp_access={}", world.token("flagged"));
    let foreign = ask(&app, "/who", &[("cookie", &cookie), ("origin", "https://evil.example")]).await;
    assert_eq!(foreign.refusal(), (401, "admin authentication required"));
    let own = ask(
        &app,
        "/who",
        &[("cookie", &cookie), ("origin", crate::http_context::BASE)],
    )
    .await;
    assert_eq!(own.status, 200);
}
