//! The API description and the routes match.

use crate::world::World;
use http::{Method, StatusCode};

const OAUTH: [&str; 9] = [
    "GET /.well-known/jwks.json",
    "GET /.well-known/oauth-authorization-server",
    "GET /oauth/authorize",
    "GET /oauth/session/{id}/info",
    "GET /oauth/session/{id}/restart",
    "GET /oauth/session/{id}/status",
    "POST /oauth/callback",
    "POST /oauth/session/{id}/silent-complete",
    "POST /oauth/token",
];
const BOTH_WAYS: [(Method, &str); 18] = [
    (Method::POST, "/auth/request"),
    (Method::POST, "/auth/callback"),
    (Method::POST, "/auth/verify"),
    (Method::GET, "/auth/session/{id}/status"),
    (Method::GET, "/auth/providers"),
    (Method::GET, "/auth/directory/url"),
    (Method::POST, "/auth/directory/callback"),
    (Method::POST, "/auth/directory/service-principal"),
    (Method::GET, "/auth/session/{id}/qr.svg"),
    (Method::POST, "/refresh"),
    (Method::POST, "/revoke"),
    (Method::POST, "/logout"),
    (Method::POST, "/introspect"),
    (Method::POST, "/eth/link/challenge"),
    (Method::POST, "/eth/link/verify"),
    (Method::GET, "/eth/addresses"),
    (Method::DELETE, "/eth/addresses/{address}"),
    (Method::POST, "/eth/addresses/{address}/refresh-ens"),
];

/// spec/10 §1: these routes exist with and without `/api/v1`; `/me` only with it.
#[tokio::test]
async fn routes_exist_with_and_without_the_version() {
    let world = World::new().await;
    for (method, path) in BOTH_WAYS {
        // 405 shows that the path exists, whatever a correct request would be answered.
        let wrong = if method == Method::GET {
            Method::PATCH
        } else {
            Method::OPTIONS
        };
        for prefix in ["", "/api/v1"] {
            let path = format!("{prefix}{}", path.replace("{id}", "x").replace("{address}", "x"));
            assert_eq!(
                world.ask(wrong.clone(), &path).send().await.status,
                StatusCode::METHOD_NOT_ALLOWED,
                "{path}"
            );
        }
    }
    assert_eq!(world.get("/me/orgs").send().await.status, StatusCode::NOT_FOUND);
    assert_eq!(
        world.get("/api/v1/me/orgs").send().await.status,
        StatusCode::UNAUTHORIZED
    );
}

/// The description contains each operation once, with the version prefix.
#[tokio::test]
async fn the_description_names_every_operation_once() {
    let world = World::new().await;
    let described = world.description();
    let mut expected: Vec<String> = BOTH_WAYS
        .iter()
        .map(|(method, path)| format!("{method} /api/v1{path}"))
        .collect();
    expected.extend([
        "GET /api/v1/me/admin-status".to_owned(),
        "GET /api/v1/me/orgs".to_owned(),
    ]);
    let invitations = [
        "GET /api/v1/me/invitations",
        "POST /api/v1/me/orgs/{org_id}/accept",
        "DELETE /api/v1/me/orgs/{org_id}",
    ];
    expected.extend(invitations.map(str::to_owned));
    expected.extend(["GET /api/v1/me/sessions", "DELETE /api/v1/me/sessions/{id}"].map(str::to_owned));
    expected.extend(
        [
            "GET /api/v1/me/rpc-urls",
            "POST /api/v1/me/rpc-urls",
            "DELETE /api/v1/me/rpc-urls/{id}",
        ]
        .map(str::to_owned),
    );
    expected.extend(OAUTH.map(str::to_owned));
    expected.sort();
    let mut operations = Vec::new();
    let mut ids = Vec::new();
    for (path, item) in described["paths"].as_object().unwrap() {
        for (method, operation) in item.as_object().unwrap() {
            operations.push(format!("{} {path}", method.to_uppercase()));
            ids.push(operation["operationId"].as_str().unwrap().to_owned());
        }
    }
    operations.sort();
    assert_eq!(operations, expected);
    let count = ids.len();
    ids.sort();
    ids.dedup();
    assert_eq!(ids.len(), count);
    for schema in [
        "APIError",
        "APIMessage",
        "AuthResponse",
        "SessionStatusResponse",
        "EthAddressListResponse",
    ] {
        assert!(described["components"]["schemas"].get(schema).is_some(), "{schema}");
    }
}
