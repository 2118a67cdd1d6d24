//! Correlation, security headers, cross-origin reads.

use crate::http_context::{BASE, World, send};
use axum::{Router, http::HeaderValue, response::IntoResponse, routing::get};
use gw_http::{ApiError, Correlate, Cors, SecureHeaders, route_not_found};
use std::sync::Arc;

async fn fine() -> impl IntoResponse {
    "fine"
}

async fn refused() -> ApiError {
    ApiError::forbidden("no")
}

async fn cached() -> impl IntoResponse {
    ([("cache-control", "max-age=60")], "asset")
}

fn app(world: &World, production: bool) -> Router {
    Router::new()
        .route("/fine", get(fine))
        .route("/refused", get(refused))
        .route("/cached", get(cached))
        .fallback(route_not_found)
        .layer(Cors::new(Arc::clone(&world.http_context.origins)))
        .layer(SecureHeaders::new(production))
        .layer(Correlate::new(Arc::clone(&world.http_context.entropy)))
}

/// 70 rule 1: the id is in every answer, and in the body of errors.
#[tokio::test]
async fn audit_rule_1_the_correlation_id_is_in_every_answer() {
    let app = app(&World::new(), true);
    let named = send(&app, "127.0.0.1", "GET", "/refused", &[("x-request-id", "mine-1")]).await;
    assert_eq!(named.headers["x-correlation-id"], "mine-1");
    assert_eq!(
        named.body,
        serde_json::json!({ "error": "no", "code": "forbidden", "correlation_id": "mine-1" })
    );
    for path in ["/fine", "/refused", "/nowhere"] {
        let answer = send(&app, "127.0.0.1", "GET", path, &[]).await;
        let id = answer.headers["x-correlation-id"].to_str().unwrap();
        assert_eq!(id, "07070707-0707-4707-8707-070707070707", "{path}");
        if answer.status != 200 {
            assert_eq!(answer.body["correlation_id"], id, "{path}");
        }
    }
}

/// 85 §5: the headers of every answer, errors and preflights included; HSTS in production.
#[tokio::test]
async fn edge_every_answer_carries_the_security_headers() {
    let world = World::new();
    for (production, hsts) in [(true, 1), (false, 0)] {
        let app = app(&world, production);
        for (method, path) in [
            ("GET", "/fine"),
            ("GET", "/refused"),
            ("GET", "/nowhere"),
            ("POST", "/fine"),
        ] {
            let answer = send(&app, "127.0.0.1", method, path, &[]).await;
            assert_eq!(answer.headers["x-content-type-options"], "nosniff", "{path}");
            assert_eq!(answer.headers["referrer-policy"], "no-referrer", "{path}");
            assert_eq!(answer.headers["cache-control"], "no-store", "{path}");
            assert_eq!(
                answer.headers.get_all("strict-transport-security").iter().count(),
                hsts,
                "{path}"
            );
        }
        let cached = send(&app, "127.0.0.1", "GET", "/cached", &[]).await;
        assert_eq!(
            cached.headers["cache-control"], "max-age=60",
            "what a handler chose stays"
        );
    }
}

/// 85 §11.7: unlisted origins get no CORS header; own and listed ones get credentials.
#[tokio::test]
async fn edge_cors_gives_unlisted_origins_nothing() {
    let app = app(&World::new(), true);
    let allow = |headers: &axum::http::HeaderMap| -> Vec<String> {
        headers
            .keys()
            .map(|name| name.as_str().to_owned())
            .filter(|name| name.starts_with("access-control"))
            .collect()
    };
    let preflight = |origin: &'static str| {
        let app = app.clone();
        async move {
            let headers = [("origin", origin), ("access-control-request-method", "POST")];
            send(&app, "127.0.0.1", "OPTIONS", "/fine", &headers).await
        }
    };
    for foreign in [
        "https://evil.example",
        "null",
        "http://gate.example",
        "https://gate.example.evil.example",
    ] {
        assert_eq!(
            allow(&preflight(foreign).await.headers),
            Vec::<String>::new(),
            "{foreign}"
        );
        let read = send(&app, "127.0.0.1", "GET", "/fine", &[("origin", foreign)]).await;
        assert_eq!(allow(&read.headers), Vec::<String>::new(), "{foreign}");
        assert_eq!(read.headers["vary"], "origin");
    }
    for own in [BASE, "https://explorer.example"] {
        let answer = preflight(own).await;
        assert_eq!(
            answer.headers["access-control-allow-origin"],
            HeaderValue::from_static(own)
        );
        assert_eq!(answer.headers["access-control-allow-credentials"], "true");
        assert!(
            answer.headers["access-control-allow-headers"]
                .to_str()
                .unwrap()
                .contains("x-admin-token")
        );
        let read = send(&app, "127.0.0.1", "GET", "/refused", &[("origin", own)]).await;
        assert_eq!(
            read.headers["access-control-allow-origin"],
            HeaderValue::from_static(own),
            "errors too"
        );
    }
}
