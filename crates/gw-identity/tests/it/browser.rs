//! What browsers and wallets do in these tests: they open sessions, log in, log out and make personal URLs.

use crate::world::{Answer, Login, PAGE, Tokens, WALLET, World};
use gw_testkit::fixture::BASE_URL;
use http::{Method, StatusCode};
use serde_json::json;

pub(crate) const STRANGER: &str = "192.0.2.77";

pub(crate) const EVIL: &str = "https://evil.example";

pub(crate) const CALLBACK: &str = "https://gate.example/cb";

pub(crate) fn authorize() -> String {
    let pairs = [
        ("client_id", "explorer"),
        ("redirect_uri", CALLBACK),
        ("state", "the state"),
        ("response_type", "code"),
    ];
    let query = form_urlencoded::Serializer::new(String::new())
        .extend_pairs(pairs)
        .finish();
    format!("/oauth/authorize?{query}")
}

pub(crate) fn peer(text: String) -> &'static str {
    Box::leak(text.into_boxed_str())
}

pub(crate) async fn open_from(world: &World, peer: &'static str, headers: &[(&str, &str)]) -> Login {
    let ask = world.ask(Method::POST, "/auth/request").from(peer);
    let answer = headers
        .iter()
        .fold(ask, |ask, (name, value)| ask.header(name, value))
        .send()
        .await;
    assert_eq!(answer.status, StatusCode::OK, "{}", answer.body);
    Login::from_answer(&answer)
}

pub(crate) fn is_pending(answer: &Answer) -> bool {
    answer.status == StatusCode::OK && answer.body == json!({ "completed": false }) && answer.cookies().is_empty()
}

pub(crate) struct Flow {
    pub(crate) id: String,
    pub(crate) login: String,
    pub(crate) secret: String,
    pub(crate) callback: String,
}

/// A browser begins the flow; returns the ids and the secret that it got.
pub(crate) async fn flow_of_browser(world: &World, from: &'static str, headers: &[(&str, &str)]) -> Flow {
    let ask = world.get(&authorize()).from(from).header("origin", BASE_URL);
    let answer = headers
        .iter()
        .fold(ask, |ask, (name, value)| ask.header(name, value))
        .send()
        .await;
    assert_eq!(answer.status, StatusCode::OK, "{}", answer.body);
    let url = answer.body["auth_request"]["body"]["callbackUrl"].as_str().unwrap();
    Flow {
        id: answer.body["oauth_session_id"].as_str().unwrap().to_owned(),
        login: answer.body["auth_session_id"].as_str().unwrap().to_owned(),
        secret: answer.headers["x-login-secret"].to_str().unwrap().to_owned(),
        callback: url.strip_prefix(BASE_URL).unwrap().to_owned(),
    }
}

pub(crate) async fn prove(world: &World, flow: &Flow, name: &str) {
    let proof = format!("proof:did:test:{name}");
    let answer = world
        .ask(Method::POST, &flow.callback)
        .from(WALLET)
        .body(proof)
        .send()
        .await;
    assert_eq!(answer.status, StatusCode::OK, "{}", answer.body);
}

/// Logs in through a page. Returns the wallet's tokens and the page's.
pub(crate) async fn log_in_by_page(world: &World, name: &str) -> (Tokens, Tokens) {
    let login = open_from(world, PAGE, &[("origin", BASE_URL)]).await;
    let wallet = Tokens::from_body(&world.prove(&login, &format!("proof:did:test:{name}")).await.body);
    let polled = world
        .poll(&login, PAGE, &[("x-login-secret", &login.secret), ("origin", BASE_URL)])
        .await;
    (wallet, Tokens::from_body(&polled.body["tokens"]))
}

pub(crate) async fn entry(world: &World, tokens: &Tokens) -> StatusCode {
    world.get("/api/v1/me/orgs").bearer(&tokens.access).send().await.status
}

pub(crate) async fn urls(world: &World) -> usize {
    let user = world.user("alice").await.unwrap();
    world
        .fixture
        .store
        .read()
        .list_personal_urls(user.id, world.fixture.http.now())
        .await
        .unwrap()
        .len()
}

pub(crate) async fn mint(world: &World, tokens: &Tokens) -> Answer {
    world
        .post("/api/v1/me/rpc-urls", json!({ "name": "phone" }))
        .bearer(&tokens.access)
        .send()
        .await
}
