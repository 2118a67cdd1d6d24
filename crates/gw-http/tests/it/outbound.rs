//! The client of other services, in front of a real socket.

use axum::{Router, response::Redirect, routing::get};
use bytes::Bytes;
use gw_http::{AnswerLimits, ConnectionPool, HttpClient, OutboundError};
use http::{Request, Response};
use http_body_util::Full;
use std::time::Duration;
use tokio::net::TcpListener;

const LIMITS: AnswerLimits = AnswerLimits {
    bytes: 8,
    deadline: Duration::from_secs(10),
};

fn client(https_only: bool) -> HttpClient {
    let pool = ConnectionPool {
        connect_timeout: Duration::from_secs(1),
        idle_per_host: 1,
        https_only,
    };
    HttpClient::new(pool).unwrap()
}

async fn exchange(client: &HttpClient, url: &str, limits: AnswerLimits) -> Result<Response<Bytes>, OutboundError> {
    let request = Request::get(url).body(Full::default()).unwrap();
    client.exchange(request, limits).await
}

/// House rule 24: every answer of another service has a size limit and a deadline, and redirects are not followed.
#[tokio::test]
async fn rule_24_an_answer_has_its_limits() {
    let router = Router::new()
        .route("/fits", get(async || "12345678"))
        .route("/large", get(async || "123456789"))
        .route("/never", get(std::future::pending::<()>))
        .route("/moved", get(async || Redirect::temporary("/fits")));
    let listener = TcpListener::bind(("127.0.0.1", 0)).await.unwrap();
    let base = format!("http://{}", listener.local_addr().unwrap());
    tokio::spawn(async move { axum::serve(listener, router).await });
    let at = |path: &str| format!("{base}{path}");
    let any = client(false);

    assert_eq!(
        exchange(&any, &at("/fits"), LIMITS).await.unwrap().into_body(),
        "12345678"
    );
    let large = exchange(&any, &at("/large"), LIMITS).await;
    assert!(matches!(large, Err(OutboundError::Answer(_))), "{large:?}");
    let short = AnswerLimits {
        deadline: Duration::from_millis(1),
        ..LIMITS
    };
    let never = exchange(&any, &at("/never"), short).await;
    assert!(matches!(never, Err(OutboundError::Timeout)), "{never:?}");
    assert_eq!(exchange(&any, &at("/moved"), LIMITS).await.unwrap().status(), 307);
    let plain = exchange(&client(true), &at("/fits"), LIMITS).await;
    assert!(matches!(plain, Err(OutboundError::Unreachable(_))), "{plain:?}");
}
