//! Two applications, and the steps of the authorization code flow.

use crate::world::{Answer, Ask, WALLET, World};
use gw_store::record::UserPatch;
use gw_testkit::fixture::BASE_URL;
use http::{Method, StatusCode};
use serde_json::Value;
use std::{collections::BTreeMap, sync::LazyLock};

pub(crate) const STRANGER: &str = "192.0.2.77";

pub(crate) const CALLBACK: &str = "https://gate.example/cb?x=1";

pub(crate) const STATE: &str = "a&b=c d#\u{f6}";

/// RFC 7636 appendix B.
pub(crate) const VERIFIER: &str = "dBjftJeZ4CVP-mB92K27uhbUJU1p1r_wW1gFWFOEjXk";

pub(crate) const CHALLENGE: &str = "E9Melhoa2OwvFrEMTJguCHaoeK1t8URWbuGJSstw-cM";

/// Two applications; the first one's secret is being rotated.
pub(crate) static CLIENTS: LazyLock<String> = LazyLock::new(|| {
    let hash = |secret: &str| bcrypt::hash_with_salt(secret, 10, [7; 16]).unwrap().to_string();
    format!(
        "explorer:{}|{}, reports:{}",
        hash("old secret"),
        hash("new secret"),
        hash("third+secret")
    )
});

pub(crate) fn query(pairs: &[(&str, &str)]) -> String {
    form_urlencoded::Serializer::new(String::new())
        .extend_pairs(pairs)
        .finish()
}

/// A valid request with changes; an empty value removes a parameter.
pub(crate) fn authorize_path(changes: &[(&str, &str)]) -> String {
    let mut all: BTreeMap<&str, &str> = BTreeMap::from([
        ("client_id", "explorer"),
        ("redirect_uri", CALLBACK),
        ("state", STATE),
        ("response_type", "code"),
    ]);
    all.extend(changes.iter().copied());
    all.retain(|_, value| !value.is_empty());
    format!("/oauth/authorize?{}", query(&all.into_iter().collect::<Vec<_>>()))
}

/// An OAuth session and its login session.
pub(crate) struct Flow {
    pub(crate) id: String,
    pub(crate) login: String,
    pub(crate) secret: String,
    pub(crate) callback: String,
}

impl Flow {
    pub(crate) async fn open(world: &World, changes: &[(&str, &str)]) -> Self {
        Self::from_answer(&world.get(&authorize_path(changes)).send().await)
    }

    pub(crate) async fn opened_by(world: &World, token: &str) -> Self {
        Self::from_answer(&world.get(&authorize_path(&[])).bearer(token).send().await)
    }

    pub(crate) fn from_answer(answer: &Answer) -> Self {
        assert_eq!(answer.status, StatusCode::OK, "{}", answer.body);
        let text = |name: &str| answer.body[name].as_str().unwrap().to_owned();
        let url = answer.body["auth_request"]["body"]["callbackUrl"].as_str().unwrap();
        Self {
            id: text("oauth_session_id"),
            login: text("auth_session_id"),
            secret: answer.headers["x-login-secret"].to_str().unwrap().to_owned(),
            callback: url.strip_prefix(BASE_URL).unwrap().to_owned(),
        }
    }

    pub(crate) async fn prove(&self, world: &World, proof: &str) -> Answer {
        world
            .ask(Method::POST, &self.callback)
            .from(WALLET)
            .body(proof)
            .send()
            .await
    }

    pub(crate) async fn status(&self, world: &World, peer: &'static str, headers: &[(&str, &str)]) -> Answer {
        let ask = world.get(&format!("/oauth/session/{}/status", self.id)).from(peer);
        headers
            .iter()
            .fold(ask, |ask, (name, value)| ask.header(name, value))
            .send()
            .await
    }

    pub(crate) fn silent<'a>(&self, world: &'a World) -> Ask<'a> {
        world.ask(Method::POST, &format!("/oauth/session/{}/silent-complete", self.id))
    }
}

/// The parameters that a redirect URL delivers to the application.
pub(crate) fn brought(url: &Value) -> BTreeMap<String, String> {
    let url = url.as_str().unwrap_or_else(|| panic!("no address in {url}"));
    let (place, query) = url.split_once('?').unwrap();
    assert_eq!(place, "https://gate.example/cb");
    form_urlencoded::parse(query.as_bytes()).into_owned().collect()
}

/// A code for `name` from a new flow.
pub(crate) async fn code_for(world: &World, name: &str, changes: &[(&str, &str)]) -> String {
    let flow = Flow::open(world, changes).await;
    let answer = flow.prove(world, &format!("proof:did:test:{name}")).await;
    assert_eq!(answer.status, StatusCode::OK, "{}", answer.body);
    brought(&answer.body["redirect_url"])["code"].clone()
}

pub(crate) fn exchange<'a>(world: &'a World, pairs: &[(&str, &str)]) -> Ask<'a> {
    let form = "application/x-www-form-urlencoded";
    world
        .ask(Method::POST, "/oauth/token")
        .from(STRANGER)
        .header("content-type", form)
        .body(query(pairs))
}

/// A valid exchange of `code` with changes.
pub(crate) async fn redeem(world: &World, code: &str, changes: &[(&str, &str)]) -> Answer {
    let mut all: BTreeMap<&str, &str> = BTreeMap::from([
        ("grant_type", "authorization_code"),
        ("client_id", "explorer"),
        ("client_secret", "new secret"),
        ("redirect_uri", CALLBACK),
        ("code", code),
    ]);
    all.extend(changes.iter().copied());
    all.retain(|_, value| !value.is_empty());
    exchange(world, &all.into_iter().collect::<Vec<_>>()).send().await
}

pub(crate) async fn is_active(world: &World, token: &str) -> bool {
    let answer = world
        .ask(Method::POST, "/introspect")
        .body(format!("token={token}"))
        .send()
        .await;
    answer.body["active"] == true
}

pub(crate) async fn ban(world: &World, name: &str) {
    let user = world.user(name).await.unwrap();
    let mut tx = world.fixture.begin().await;
    tx.update_user(
        user.id,
        UserPatch {
            banned: Some(true),
            ..UserPatch::default()
        },
    )
    .await
    .unwrap();
    tx.commit().await.unwrap();
}
