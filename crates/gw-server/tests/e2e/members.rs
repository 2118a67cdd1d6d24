//! Unknown members of request bodies and unknown query parameters (HD33, decision 61), and `null` for lists (RTO1), for
//! every route of the API description.

use crate::{
    explorer::{explorer_database, wait_until_synced},
    harness::{ADMIN_TOKEN, Engine, Response},
    openapi::Described,
    world::World,
};
use serde_json::{Value, json};

/// OAuth requires these routes to ignore unknown parameters (RFC 6749 sections 3.1 and 3.2, RFC 7662 section 2.1).
const OPEN_QUERIES: [&str; 2] = ["/oauth/authorize", "/oauth/token"];
const OPEN_BODIES: [&str; 3] = [
    "/oauth/token",
    "/api/v1/introspect",
    // The body is an ABI, and the caller does not own the contract.
    "/api/v1/explorer/addresses/{address}/abi",
];

/// Without a configured directory these routes are 404 for any body.
const ABSENT: [&str; 2] = [
    "/api/v1/auth/directory/callback",
    "/api/v1/auth/directory/service-principal",
];

/// An operation of the API description.
struct Route {
    method: String,
    path: String,
    /// The path with ids of the [`World`] in place of its parameters.
    concrete: String,
    /// The description of the request body.
    body: Option<Value>,
}

/// Every operation outside `/rpc` (decision 39).
fn routes(w: &World, described: &Value) -> Vec<Route> {
    let mut routes = Vec::new();
    for (path, operations) in described["paths"].as_object().unwrap() {
        if path.starts_with("/rpc") {
            continue;
        }
        for (method, operation) in operations.as_object().unwrap() {
            let id = "99999999-9999-4999-8999-999999999999";
            let mut concrete = path
                .replace("{org_id}", &w.meridian)
                .replace("{user_id}", &w.analyst.user_id)
                .replace("{group_id}", &w.analysts)
                .replace("{did}", w.analyst.did)
                .replace("{address}", &w.erc20.to_string());
            while let (Some(open), Some(close)) = (concrete.find('{'), concrete.find('}')) {
                concrete.replace_range(open..=close, id);
            }
            concrete += match path.as_str() {
                "/api/v1/auth/callback" => "?session=99999999-9999-4999-8999-999999999999",
                "/oauth/callback" => "?session=99999999-9999-4999-8999-999999999999&oauth_session=x",
                _ => "",
            };
            let body = operation.get("requestBody").cloned();
            routes.push(Route {
                method: method.to_uppercase(),
                path: path.clone(),
                concrete,
                body,
            });
        }
    }
    routes
}

async fn call_route(w: &World, route: &Route, query: &str, body: Option<Value>) -> Response {
    let bearer = format!("Bearer {}", w.admin.token);
    let is_of_grantee = |end| route.path.contains("/disclosure/grants/") && route.path.ends_with(end);
    let needs_user = route.path.ends_with("/dry-run")
        || route.path.contains("/impersonate/")
        || ["/logs", "/summary", "/{report_type}"].into_iter().any(is_of_grantee);
    let header = match route.path.starts_with("/api/v1/admin") && !needs_user {
        true => ("x-admin-token", ADMIN_TOKEN),
        false => ("authorization", bearer.as_str()),
    };
    let separator = if route.concrete.contains('?') { '&' } else { '?' };
    let path = if query.is_empty() {
        route.concrete.clone()
    } else {
        format!("{}{separator}{query}", route.concrete)
    };
    w.gw.request(&route.method, &path, &[header], body).await
}

/// HD33: each route refuses unknown members and parameters. Before, a grant with `function` instead of `functions`
/// allowed every function.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn hd33_every_route_refuses_what_it_does_not_know() {
    let directory = tempfile::tempdir().unwrap();
    let database = explorer_database(Engine::Sqlite, &directory);
    let w = World::start_with(Engine::Sqlite, &[("EXPLORER_DATABASE_URL", &database)]).await;
    wait_until_synced(&w.gw).await;
    let described = w.gw.request("GET", "/openapi.json", &[], None).await.expect(200);
    let responses = Described::by(&w.gw).await;
    let mut faults = Vec::new();
    for route in routes(&w, &described) {
        let mut check = |kind: &str, name: &str, answer: Response| {
            responses.check(&route.method, &route.path, &answer);
            let body = serde_json::from_str::<Value>(&answer.body).ok();
            let text = body
                .as_ref()
                .and_then(|body| body["error"].as_str())
                .unwrap_or_default();
            if answer.status != 400 || !text.contains(&format!("unknown {kind} `{name}`")) {
                faults.push(format!(
                    "{} {} ({kind}): {} {}",
                    route.method, route.path, answer.status, answer.body
                ));
            }
        };
        if !OPEN_QUERIES.contains(&route.path.as_str()) {
            check(
                "query parameter",
                "unexpected",
                call_route(&w, &route, "unexpected=1", route.body.as_ref().map(|_| json!({}))).await,
            );
        }
        let accepts_unknown = OPEN_BODIES.contains(&route.path.as_str()) || ABSENT.contains(&route.path.as_str());
        if route.body.is_some() && !accepts_unknown {
            check(
                "member",
                "unexpected",
                call_route(&w, &route, "", Some(json!({"unexpected": 1}))).await,
            );
        }
    }
    assert!(faults.is_empty(), "{}", faults.join("\n"));
}

/// HD33: unknown members inside of bodies are refused, too. The error suggests the nearest known name.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn hd33_a_misspelt_member_widens_no_right() {
    let w = World::start(Engine::Sqlite).await;
    let grants = format!("/orgs/{}/contracts/{}/grants", w.meridian, w.erc20);
    let grant = format!("{grants}/{}", w.analysts);
    let access = format!("/orgs/{}/groups/{}/access", w.meridian, w.analysts);
    let moves = format!("/orgs/{}/contracts/batch-move", w.meridian);
    let topic0 = format!("0x{}", "11".repeat(32));
    let param = |rule: Value| json!({"functions": [{"selector": "0x70a08231", "param_rules": [rule]}]});
    let event = |rule: Value| json!({"event_rules": [{"topic0": topic0, "param_rules": [rule]}]});
    let before = w.gw.admin("GET", &grants, None).await.expect(200);
    for (method, path, body, member, suggestion) in [
        (
            "POST",
            &grants,
            json!({"group_id": w.analysts, "function": []}),
            "function",
            "functions",
        ),
        ("PUT", &grant, json!({"event_rule": []}), "event_rule", "event_rules"),
        (
            "PUT",
            &grant,
            json!({"functions": [{"selector": "0x70a08231", "param_rule": []}]}),
            "param_rule",
            "param_rules",
        ),
        (
            "PUT",
            &grant,
            param(json!({"index": 0, "must_be": "self", "mustbe": 1})),
            "mustbe",
            "must_be",
        ),
        (
            "PUT",
            &grant,
            param(json!({"index": 0, "must_be": {"op": "org", "values": []}})),
            "values",
            "value",
        ),
        (
            "PUT",
            &grant,
            event(json!({"index": 0, "must_be": "self", "indx": 1})),
            "indx",
            "index",
        ),
        (
            "PUT",
            &grant,
            json!({"event_rules": [{"topic0": topic0, "topic": 1}]}),
            "topic",
            "topic0",
        ),
        (
            "PUT",
            &grant,
            json!({"event_rules": {"wildcards": true}}),
            "wildcards",
            "wildcard",
        ),
        (
            "PUT",
            &grant,
            json!({"event_rules": {"rules": [{"topic0": topic0, "topic1": 1}]}}),
            "topic1",
            "topic0",
        ),
        (
            "PUT",
            &access,
            json!({"allowed_method": ["eth_call"]}),
            "allowed_method",
            "allowed_methods",
        ),
        (
            "POST",
            &moves,
            json!({"contract_ids": [], "new_group": {"name": "x", "slug": "x", "acces": {}}}),
            "acces",
            "access",
        ),
        (
            "POST",
            &moves,
            json!({"contract_ids": [], "new_group": {"name": "x", "slug": "x", "access": {"claim": []}}}),
            "claim",
            "claims",
        ),
    ] {
        let response = w.gw.admin(method, path, Some(body.clone())).await.expect(400);
        let text = response["error"].as_str().unwrap();
        assert!(
            text.ends_with(&format!("unknown member `{member}`: did you mean `{suggestion}`?")),
            "{body}: {text}"
        );
    }
    assert_eq!(
        w.gw.admin("GET", &grants, None).await.expect(200),
        before,
        "nothing was changed"
    );
    // Old clients send `parent_id`: it is accepted.
    let group = json!({"name": "old", "slug": "old", "parent_id": null});
    w.gw.admin("POST", &format!("/orgs/{}/groups", w.meridian), Some(group))
        .await
        .expect(201);
}

/// RTO1: `null` is accepted as the empty list, because Go clients encode an empty slice as `null`.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn rto1_null_is_the_empty_list_in_every_body() {
    let w = World::start(Engine::Sqlite).await;
    let described = w.gw.request("GET", "/openapi.json", &[], None).await.expect(200);
    let mut checked = 0;
    for route in routes(&w, &described) {
        let schema = route
            .body
            .iter()
            .find_map(|body| body.pointer("/content/application~1json/schema/$ref"));
        let Some(name) = schema.and_then(Value::as_str).and_then(|path| path.strip_prefix('#')) else {
            continue;
        };
        for (member, kind) in described.pointer(name).unwrap()["properties"]
            .as_object()
            .into_iter()
            .flatten()
        {
            if kind["type"] != "array"
                && !kind["type"]
                    .as_array()
                    .is_some_and(|kinds| kinds.contains(&json!("array")))
            {
                continue;
            }
            checked += 1;
            let response = call_route(&w, &route, "", Some(json!({member: null}))).await;
            assert!(
                !response.body.contains("invalid type"),
                "{} {} `{member}`: {}",
                route.method,
                route.path,
                response.body
            );
        }
    }
    assert!(checked > 10, "the description has too few lists: {checked}");

    // A client sends this body when it sets the access of a group.
    let access = format!("/orgs/{}/groups/{}/access", w.meridian, w.analysts);
    let body = json!({"allowed_methods": ["eth_call"], "claims": null, "denied_methods": null});
    let access_set = w.gw.admin("PUT", &access, Some(body)).await.expect(200);
    assert_eq!(
        (&access_set["allowed_methods"], &access_set["claims"]),
        (&json!(["eth_call"]), &json!([]))
    );
    // Where `null` differs from the empty list, it keeps its meaning.
    let grant = format!("/orgs/{}/contracts/{}/grants/{}", w.meridian, w.erc20, w.analysts);
    let updated =
        w.gw.admin("PUT", &grant, Some(json!({"functions": null, "event_rules": null})))
            .await
            .expect(200);
    assert_eq!(
        (&updated["functions"], &updated["event_rules"]),
        (&Value::Null, &Value::Null),
        "F1: every function"
    );
}

/// RFC 9457: every route outside `/rpc` and OAuth answers an error as problem details to a client that accepts them.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn every_route_has_its_errors_as_problem_details() {
    let w = World::start(Engine::Sqlite).await;
    let document = w.gw.request("GET", "/openapi.json", &[], None).await.expect(200);
    let responses = Described::by(&w.gw).await;
    let mut checked = 0;
    for route in routes(&w, &document) {
        if OPEN_QUERIES.contains(&route.path.as_str()) {
            continue;
        }
        let separator = if route.concrete.contains('?') { '&' } else { '?' };
        let path = format!("{}{separator}unexpected=1", route.concrete);
        let headers = [("x-admin-token", ADMIN_TOKEN), ("accept", "application/problem+json")];
        let answer = w.gw.request(&route.method, &path, &headers, None).await;
        responses.check(&route.method, &route.path, &answer);
        let (name, body) = (format!("{} {}", route.method, route.path), answer.json());
        assert_eq!(
            answer.headers["content-type"], "application/problem+json",
            "{name}: {body}"
        );
        assert_eq!(
            (&body["type"], &body["status"]),
            (&json!("about:blank"), &json!(answer.status)),
            "{name}"
        );
        assert!(
            body["title"].is_string() && body["detail"].is_string() && body["code"].is_string(),
            "{name}"
        );
        assert!(
            body["correlation_id"].is_string() && body.get("error").is_none(),
            "{name}: {body}"
        );
        checked += 1;
    }
    assert!(checked > 100, "{checked}");
}
