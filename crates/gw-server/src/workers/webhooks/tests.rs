//! Deliveries to real HTTP receivers on this machine.

use super::*;
use axum::{
    Router,
    extract::State,
    http::{HeaderMap, StatusCode, header::LOCATION},
    response::{IntoResponse as _, Response},
    routing::post,
};
use base64::{Engine as _, engine::general_purpose::STANDARD};
use gw_crypto::webhook_secret_text;
use gw_http::DeliveryNetworks;
use gw_store::record::{WebhookEventType, WebhookStatus};
use gw_testkit::Fixture;
use gw_types::{SealedWebhookSecret, Secret};
use serde_json::Value;
use std::{collections::VecDeque, net::SocketAddr, sync::Mutex};

/// What the receiver does with a delivery.
#[derive(Clone, Copy, Debug)]
enum Answer {
    Status(u16),
    Redirect,
    Hang,
    /// A body that never ends.
    Endless,
}

#[derive(Debug, Default)]
struct Received {
    deliveries: Vec<(HeaderMap, String)>,
    /// Deliveries to the target of the redirect.
    redirected: usize,
    answers: VecDeque<Answer>,
}

type Shared = Arc<Mutex<Received>>;

async fn receive(State(shared): State<Shared>, headers: HeaderMap, body: String) -> Response {
    let answer = {
        let mut received = shared.lock().unwrap();
        received.deliveries.push((headers, body));
        received.answers.pop_front().unwrap_or(Answer::Status(204))
    };
    match answer {
        Answer::Status(status) => StatusCode::from_u16(status).unwrap().into_response(),
        Answer::Redirect => (StatusCode::TEMPORARY_REDIRECT, [(LOCATION, "/elsewhere")]).into_response(),
        Answer::Hang => std::future::pending().await,
        Answer::Endless => {
            let chunks =
                futures_util::stream::repeat_with(|| Ok::<_, std::io::Error>(Bytes::from_static(&[b'x'; 4096])));
            axum::body::Body::from_stream(chunks).into_response()
        }
    }
}

async fn receiver(answers: impl IntoIterator<Item = Answer>) -> (SocketAddr, Shared) {
    let shared = Shared::default();
    shared.lock().unwrap().answers.extend(answers);
    let elsewhere = |State(shared): State<Shared>| async move { shared.lock().unwrap().redirected += 1 };
    let routes = Router::new()
        .route("/hook", post(receive))
        .route("/elsewhere", post(elsewhere).get(elsewhere))
        .with_state(Arc::clone(&shared));
    let listener = tokio::net::TcpListener::bind("127.0.0.1:0").await.unwrap();
    let address = listener.local_addr().unwrap();
    tokio::spawn(async move { axum::serve(listener, routes).await });
    (address, shared)
}

fn cipher() -> KeyCipher {
    KeyCipher::new(&Secret::new("11".repeat(32))).unwrap()
}

fn secret() -> WebhookSecret {
    WebhookSecret::new([9; 32])
}

fn sealed(fixture: &Fixture, org: OrgId) -> SealedWebhookSecret {
    cipher().seal_webhook_secret(org, &secret(), &*fixture.entropy).unwrap()
}

fn deliverer(fixture: &Fixture) -> Arc<WebhookDeliverer> {
    let networks = Arc::new(DeliveryNetworks::new(Vec::new(), false));
    Arc::new(WebhookDeliverer {
        store: fixture.store.clone(),
        cipher: Arc::new(cipher()),
        clock: Arc::new(fixture.clock.clone()),
        client: DeliveryClient::new(&networks).unwrap(),
    })
}

/// An organization with a webhook at `receiver` and `events` test events.
async fn org(fixture: &Fixture, slug: &str, receiver: SocketAddr, events: usize) -> OrgId {
    let org = fixture.create_org(slug).await;
    let secret = sealed(fixture, org);
    fixture
        .change(async |tx| {
            tx.set_webhook(org, &format!("http://{receiver}/hook"), Some(secret))
                .await
                .unwrap();
            for _ in 0..events {
                tx.add_webhook_test(org).await.unwrap();
            }
        })
        .await;
    org
}

/// Delivers what is due.
async fn deliver_due(worker: &Arc<WebhookDeliverer>) {
    let (mut deliveries, mut busy) = (JoinSet::new(), HashMap::new());
    let end = CancellationToken::new();
    worker.start_deliveries(&mut deliveries, &mut busy, &end).await.unwrap();
    while let Some(ended) = deliveries.join_next().await {
        ended.unwrap();
    }
}

async fn status(fixture: &Fixture, org: OrgId) -> WebhookStatus {
    fixture.store.read().find_webhook(org).await.unwrap().unwrap()
}

/// Verifies a delivery as a receiver does, from the text of the secret.
fn verify(headers: &HeaderMap, body: &str) {
    use hmac::{Hmac, KeyInit, Mac};
    let text = |name: &str| headers[name].to_str().unwrap();
    let secret = webhook_secret_text(&secret());
    let key = STANDARD
        .decode(secret.expose().strip_prefix("whsec_").unwrap())
        .unwrap();
    let signature = STANDARD
        .decode(text("webhook-signature").strip_prefix("v1,").unwrap())
        .unwrap();
    let mut mac = <Hmac<sha2::Sha256> as KeyInit>::new_from_slice(&key).unwrap();
    mac.update(format!("{}.{}.{body}", text("webhook-id"), text("webhook-timestamp")).as_bytes());
    mac.verify_slice(&signature).unwrap();
}

#[tokio::test]
async fn a_delivery_is_signed_and_repeated_until_the_receiver_accepts_it() {
    let fixture = Fixture::start().await;
    let (address, received) = receiver([Answer::Status(500), Answer::Status(200)]).await;
    let org = org(&fixture, "bank", address, 1).await;
    let worker = deliverer(&fixture);
    deliver_due(&worker).await;
    let failed = status(&fixture, org).await;
    assert_eq!((failed.waiting, failed.webhook.last_success_at), (1, None));
    assert_eq!(failed.webhook.last_failure.unwrap().1, DeliveryFailure::Status(500));
    deliver_due(&worker).await;
    assert_eq!(received.lock().unwrap().deliveries.len(), 1, "the pause is not over");
    fixture.clock.pass(5);
    deliver_due(&worker).await;
    let delivered = status(&fixture, org).await;
    assert_eq!(delivered.waiting, 0);
    assert_eq!(delivered.webhook.last_success_at, Some(fixture.clock.now()));
    let deliveries = std::mem::take(&mut received.lock().unwrap().deliveries);
    assert_eq!(deliveries.len(), 2);
    for (headers, body) in &deliveries {
        verify(headers, body);
        assert_eq!(headers["content-type"], "application/json");
        let body: Value = serde_json::from_str(body).unwrap();
        assert_eq!(body["id"], headers["webhook-id"].to_str().unwrap());
        assert_eq!(body["type"], WebhookEventType::Test.as_str());
        let data = json!({"org_id": org, "request_id": null, "grant_id": null, "status": null});
        assert_eq!(body["data"], data);
    }
    let (first, second) = (&deliveries[0], &deliveries[1]);
    assert_eq!(
        (&first.0["webhook-id"], &first.1),
        (&second.0["webhook-id"], &second.1),
        "a receiver knows repeats"
    );
    assert_ne!(first.0["webhook-timestamp"], second.0["webhook-timestamp"]);
}

/// Rule 2xx: a redirect is a failure, and nothing is sent to its target.
#[tokio::test]
async fn a_redirect_is_not_followed() {
    let fixture = Fixture::start().await;
    let (address, received) = receiver([Answer::Redirect]).await;
    let org = org(&fixture, "bank", address, 1).await;
    deliver_due(&deliverer(&fixture)).await;
    let failed = status(&fixture, org).await.webhook.last_failure;
    assert_eq!(failed.unwrap().1, DeliveryFailure::Status(307));
    let received = received.lock().unwrap();
    assert_eq!((received.deliveries.len(), received.redirected), (1, 0));
}

/// A receiver that never answers is given up after ten seconds, and one with an endless body delays nothing.
#[tokio::test]
async fn a_slow_receiver_delays_no_other_organization() {
    let fixture = Fixture::start().await;
    let (slow, _) = receiver([Answer::Hang]).await;
    let (endless, _) = receiver([Answer::Endless]).await;
    let slow = org(&fixture, "slow", slow, 1).await;
    let endless = org(&fixture, "endless", endless, 1).await;
    let worker = deliverer(&fixture);
    let (mut deliveries, mut busy) = (JoinSet::new(), HashMap::new());
    let end = CancellationToken::new();
    worker.start_deliveries(&mut deliveries, &mut busy, &end).await.unwrap();
    let first = deliveries.join_next_with_id().await.unwrap().unwrap();
    assert_eq!(busy[&first.0], endless, "the other one is still waited for");
    assert_eq!(status(&fixture, endless).await.waiting, 0, "the body is not read");
    assert_eq!(status(&fixture, slow).await.webhook.last_failure, None);
    deliveries.join_next().await.unwrap().unwrap();
    let failed = status(&fixture, slow).await.webhook.last_failure;
    assert_eq!(failed.unwrap().1, DeliveryFailure::Timeout);
}

/// The webhook was changed to an address that only this network reaches, past the API.
#[tokio::test]
async fn a_delivery_to_a_private_address_is_refused() {
    let fixture = Fixture::start().await;
    let org = org(&fixture, "bank", "10.0.0.1:80".parse().unwrap(), 1).await;
    deliver_due(&deliverer(&fixture)).await;
    let failed = status(&fixture, org).await.webhook.last_failure;
    assert_eq!(failed.unwrap().1, DeliveryFailure::AddressNotAllowed);
}

/// Two instances at once: each event is delivered once.
#[tokio::test]
async fn two_workers_deliver_an_event_once() {
    let fixture = Fixture::start().await;
    let (address, received) = receiver([]).await;
    let org = org(&fixture, "bank", address, 4).await;
    let (one, two) = (deliverer(&fixture), deliverer(&fixture));
    tokio::join!(deliver_due(&one), deliver_due(&two));
    assert_eq!(received.lock().unwrap().deliveries.len(), 4);
    assert_eq!(status(&fixture, org).await.waiting, 0);
}

/// A secret that no key opens signs nothing.
#[tokio::test]
async fn nothing_is_delivered_without_the_secret() {
    let fixture = Fixture::start().await;
    let (address, received) = receiver([]).await;
    let org = org(&fixture, "bank", address, 1).await;
    let foreign = sealed(&fixture, OrgId::fixed(7));
    fixture
        .change(async |tx| {
            tx.set_webhook(org, &format!("http://{address}/hook"), Some(foreign))
                .await
                .unwrap();
        })
        .await;
    deliver_due(&deliverer(&fixture)).await;
    assert!(received.lock().unwrap().deliveries.is_empty());
    assert_eq!(status(&fixture, org).await.waiting, 1);
}

/// The whole worker: it delivers, and ends when it is told to.
#[tokio::test]
async fn the_worker_delivers_and_ends() {
    let fixture = Fixture::start().await;
    let (address, received) = receiver([]).await;
    let org = org(&fixture, "bank", address, 12).await;
    let end = CancellationToken::new();
    let worker = Arc::into_inner(deliverer(&fixture)).unwrap();
    let running = tokio::spawn(worker.run(end.clone()));
    while status(&fixture, org).await.waiting > 0 {
        tokio::task::yield_now().await;
    }
    assert_eq!(received.lock().unwrap().deliveries.len(), 12);
    end.cancel();
    running.await.unwrap();
}

#[test]
fn failed_attempts_are_repeated_with_growing_pauses_for_a_day() {
    let created_at = Timestamp::from_secs(1_700_000_000);
    let mut event = WebhookEvent {
        id: WebhookEventId::fixed(1),
        org: OrgId::fixed(1),
        kind: WebhookEventType::Test,
        request: None,
        grant: None,
        status: None,
        created_at,
        attempts: 0,
    };
    let (mut now, mut pauses) = (created_at, Vec::new());
    while let Some(next) = next_attempt(&event, now) {
        pauses.push(next.secs() - now.secs());
        now = next;
        event.attempts += 1;
    }
    assert_eq!(pauses[..6], [5, 30, 300, 1800, 3600, 3600]);
    let age = now.secs() - created_at.secs();
    assert!((23 * 3600..=24 * 3600).contains(&age), "{age}");
}
