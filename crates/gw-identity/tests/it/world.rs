//! The identity API of one instance on a fixture.

use axum::{Router, body::Body, extract::ConnectInfo};
use futures_util::future::BoxFuture;
use gw_audit::SecurityKind;
use gw_cache::Cache;
use gw_evm::trace::{Account, Frame, FrameKind, Outcome, Trace};
use gw_http::{Amr, Correlate};
use gw_identity::{
    AuthorizationRequest, Chain, ChainUnavailable, Ens, IdentityConfig, IdentityParts, IdentityState, LoginSessions,
    Nullifier, ProofError, ProofVerifier, VerifiedLogin,
    oauth::{Clients, OauthConfig},
    router,
};
use gw_journal::Reservation;
use gw_policy::{
    Sealed,
    access::{TraceFacts, WalletQuestion, WalletTrace},
};
use gw_store::record::User;
use gw_testkit::{Fixture, FixtureConfig, fixture::BASE_URL};
use gw_types::{Address, Bytes, ExternalId, Seconds, Secret, Timestamp};
use gw_zk::circuit::Circuit;
use http::{HeaderMap, Method, Request, StatusCode, header};
use http_body_util::BodyExt as _;
use serde_json::{Value, json};
use std::{
    collections::BTreeMap,
    net::{IpAddr, SocketAddr},
    num::NonZeroU32,
    sync::{Arc, Mutex},
};
use tokio_util::task::TaskTracker;
use tower::ServiceExt as _;

pub(crate) const PAGE: &str = "198.51.100.1";
pub(crate) const WALLET: &str = "203.0.113.9";

/// The settings of a [`World`].
pub(crate) struct Setup {
    pub(crate) production: bool,
    pub(crate) verifier_id: Option<&'static str>,
    pub(crate) per_minute: u32,
    pub(crate) frontend: Option<&'static str>,
    pub(crate) verifier: Arc<dyn ProofVerifier>,
    pub(crate) auto_kyc: bool,
    /// A PostgreSQL store instead of a file.
    pub(crate) database: Option<String>,
    /// A shared cache instead of the one in the process.
    pub(crate) cache: Option<String>,
    pub(crate) oauth_clients: String,
    pub(crate) require_pkce: bool,
    pub(crate) allow_mock: bool,
    pub(crate) introspect_require_client: bool,
    /// ENS lookups, if configured.
    pub(crate) ens: Option<Ens>,
}

impl Default for Setup {
    fn default() -> Self {
        Self {
            production: true,
            verifier_id: Some("did:test:verifier"),
            per_minute: 1000,
            frontend: None,
            verifier: Arc::new(TrustingVerifier),
            auto_kyc: false,
            database: None,
            cache: None,
            oauth_clients: crate::oauth_flow::CLIENTS.clone(),
            require_pkce: false,
            allow_mock: false,
            introspect_require_client: false,
            ens: None,
        }
    }
}

/// A chain with scripted contract wallets; other addresses have no contract.
#[derive(Debug, Default)]
pub(crate) struct TestChain {
    pub(crate) wallets: Mutex<BTreeMap<Address, Result<bool, ChainUnavailable>>>,
    /// Addresses that every wallet reads besides itself.
    pub(crate) looked_at: Mutex<Vec<Address>>,
}

impl Chain for TestChain {
    fn id(&self) -> Option<u64> {
        Some(31337)
    }

    fn trace_wallet<'a>(
        &'a self,
        question: &'a WalletQuestion,
    ) -> BoxFuture<'a, Result<WalletTrace, ChainUnavailable>> {
        let accepts = self.wallets.lock().unwrap().get(&question.wallet).copied().transpose();
        Box::pin(std::future::ready(
            accepts.map(|accepts| self.execution(question, accepts)),
        ))
    }
}

impl TestChain {
    /// The trace of a wallet that reads only itself and `looked_at`. Without an answer there is no contract.
    fn execution(&self, question: &WalletQuestion, accepts: Option<bool>) -> WalletTrace {
        let word = |yes: bool| {
            let mut word = [0; 32];
            word[..4].copy_from_slice(if yes { &[0x16, 0x26, 0xba, 0x7e] } else { &[0xff; 4] });
            Bytes::copy_from_slice(&word)
        };
        let request = question.request();
        let output = accepts.map(word).unwrap_or_default();
        let top = Frame {
            kind: FrameKind::Call,
            from: request.from.unwrap(),
            to: request.to,
            input: request.input,
            output: output.clone(),
            value: Default::default(),
            gas: None,
            gas_used: None,
            error: None,
            depth: 0,
            parent: None,
            failed: false,
            undone: false,
            logs: Vec::new(),
        };
        let code = |present: bool| {
            if present {
                Bytes::from_static(&[0x5f])
            } else {
                Bytes::new()
            }
        };
        let looked_at = self
            .looked_at
            .lock()
            .unwrap()
            .iter()
            .map(|address| (*address, code(true)))
            .collect::<Vec<_>>();
        let touched = looked_at
            .into_iter()
            .chain([(question.wallet, code(accepts.is_some()))]);
        let touched = touched
            .map(|(address, code)| {
                (
                    address,
                    Account {
                        code,
                        ..Account::default()
                    },
                )
            })
            .collect();
        let top_end = Outcome {
            output,
            ..Outcome::default()
        };
        let trace = Trace {
            frames: vec![top],
            touched,
            changes: None,
            top: top_end,
        };
        let facts = TraceFacts {
            coinbase: Address::ZERO,
            number: 0,
            time: Timestamp::from_secs(0),
        };
        WalletTrace {
            trace: Some(Sealed::new(trace)),
            facts,
        }
    }
}

pub(crate) struct World {
    pub(crate) fixture: Fixture,
    pub(crate) app: Router,
    pub(crate) chain: Arc<TestChain>,
    /// Work that outlives its request.
    pub(crate) tasks: TaskTracker,
    description: Value,
    held_room: Mutex<Vec<Reservation>>,
    cache: Cache,
}

impl World {
    pub(crate) async fn new() -> Self {
        Self::with(Setup::default()).await
    }

    pub(crate) async fn with(setup: Setup) -> Self {
        let fixture = Fixture::start_with(FixtureConfig {
            database: setup.database,
            frontend: setup.frontend,
            production: setup.production,
            ..FixtureConfig::default()
        })
        .await;
        let config = IdentityConfig {
            base_url: BASE_URL.to_owned(),
            verifier_id: setup.verifier_id.map(|did| ExternalId::new(did).unwrap()),
            auto_kyc: setup.auto_kyc,
            access_ttl: Seconds(300),
            refresh_ttl: Seconds(7 * 86_400),
            auth_per_minute: NonZeroU32::new(setup.per_minute).unwrap(),
            networks: vec!["idp:main".to_owned()],
            auth_circuits: vec![Circuit::AuthV2],
            introspect_require_client: setup.introspect_require_client,
            humanity: None,
            humanity_verify_url: Some("https://verify.example".to_owned()),
            vault_secret: Secret::new("the refresh secret"),
            personal_urls: true,
            oauth: OauthConfig {
                clients: Clients::parse(&setup.oauth_clients, "", setup.production).unwrap(),
                require_pkce: setup.require_pkce,
                login_page: "/login".to_owned(),
                allow_mock: setup.allow_mock,
            },
        };
        let cache = match setup.cache {
            Some(url) => Cache::connect(&Secret::new(url), Arc::clone(&fixture.http.clock))
                .await
                .unwrap(),
            None => Cache::in_process(Arc::clone(&fixture.http.clock)),
        };
        let tasks = TaskTracker::new();
        let chain = Arc::new(TestChain::default());
        let parts = IdentityParts {
            http_context: Arc::clone(&fixture.http),
            store: fixture.store.clone(),
            cache: cache.clone(),
            journal: Arc::clone(&fixture.journal),
            policy_settings: Arc::default(),
            chain: Arc::clone(&chain) as Arc<dyn Chain>,
            ens: setup.ens,
            verifier: setup.verifier,
            tasks: tasks.clone(),
        };
        let state = IdentityState::new(config, parts);
        let (app, description) = router(state).split_for_parts();
        let description = serde_json::to_value(description).unwrap();
        let app = app.layer(Correlate::new(Arc::clone(&fixture.entropy)));
        Self {
            fixture,
            app,
            chain,
            tasks,
            description,
            held_room: Mutex::default(),
            cache,
        }
    }

    /// A request from the page's address.
    pub(crate) fn ask(&self, method: Method, path: &str) -> Ask<'_> {
        let request = Request::builder().method(method).uri(path);
        Ask {
            world: self,
            request,
            peer: PAGE,
            body: Body::empty(),
        }
    }

    pub(crate) fn get(&self, path: &str) -> Ask<'_> {
        self.ask(Method::GET, path)
    }

    pub(crate) fn post(&self, path: &str, body: Value) -> Ask<'_> {
        self.ask(Method::POST, path).body(body.to_string())
    }

    /// Opens a login session from the page.
    pub(crate) async fn open_login(&self) -> Login {
        let answer = self
            .ask(Method::POST, "/auth/request")
            .header("origin", BASE_URL)
            .send()
            .await;
        assert_eq!(answer.status, StatusCode::OK, "{}", answer.body);
        Login::from_answer(&answer)
    }

    /// Logs `name` in as a wallet does.
    pub(crate) async fn log_in(&self, name: &str) -> Tokens {
        let login = self.open_login().await;
        let answer = self.prove(&login, &format!("proof:did:test:{name}")).await;
        assert_eq!(answer.status, StatusCode::OK, "{}", answer.body);
        Tokens::from_body(&answer.body)
    }

    /// Sends a proof for a session from the wallet's address.
    pub(crate) async fn prove(&self, login: &Login, proof: &str) -> Answer {
        let path = format!("/auth/callback?session={}", login.id);
        self.ask(Method::POST, &path)
            .from(WALLET)
            .body(proof.to_owned())
            .send()
            .await
    }

    /// Polls a session from `peer` with these headers.
    pub(crate) async fn poll(&self, login: &Login, peer: &'static str, headers: &[(&str, &str)]) -> Answer {
        let path = format!("/api/v1/auth/session/{}/status", login.id);
        headers
            .iter()
            .fold(self.get(&path).from(peer), |ask, (name, value)| ask.header(name, value))
            .send()
            .await
    }

    /// The sessions as administrators see them.
    pub(crate) fn sessions(&self) -> LoginSessions {
        LoginSessions::new(self.cache.clone(), &Secret::new("the refresh secret"))
    }

    pub(crate) async fn user(&self, name: &str) -> Option<User> {
        self.fixture
            .store
            .read()
            .find_user_by_external_id(&did(name))
            .await
            .unwrap()
    }

    /// The kinds of the security events since the last call.
    pub(crate) fn event_kinds(&self) -> Vec<SecurityKind> {
        self.fixture
            .security_events()
            .into_iter()
            .map(|event| event.kind)
            .collect()
    }

    /// Takes all room of the journal, or gives it back.
    pub(crate) fn fill_journal(&self, full: bool) {
        let mut held = self.held_room.lock().unwrap();
        held.clear();
        if full {
            held.extend(std::iter::from_fn(|| self.fixture.journal.reserve(1).ok()));
        }
    }

    /// The API description.
    pub(crate) fn description(&self) -> &Value {
        &self.description
    }
}

/// A request under construction.
pub(crate) struct Ask<'a> {
    world: &'a World,
    request: http::request::Builder,
    peer: &'static str,
    body: Body,
}

impl Ask<'_> {
    pub(crate) fn from(self, peer: &'static str) -> Self {
        Self { peer, ..self }
    }

    pub(crate) fn header(self, name: &str, value: &str) -> Self {
        Self {
            request: self.request.header(name, value),
            ..self
        }
    }

    pub(crate) fn bearer(self, token: &str) -> Self {
        self.header("authorization", &format!("Bearer {token}"))
    }

    pub(crate) fn body(self, body: impl Into<String>) -> Self {
        Self {
            body: Body::from(body.into()),
            ..self
        }
    }

    pub(crate) async fn send(self) -> Answer {
        let request = self.request.body(self.body).unwrap();
        ask(self.world.app.clone(), request, self.peer.parse().unwrap()).await
    }
}

/// Sends a request from `peer`.
pub(crate) async fn ask(app: Router, mut request: Request<Body>, peer: IpAddr) -> Answer {
    request
        .extensions_mut()
        .insert(ConnectInfo(SocketAddr::new(peer, 4711)));
    let (parts, body) = app.oneshot(request).await.unwrap().into_parts();
    let bytes = body.collect().await.unwrap().to_bytes();
    let body = serde_json::from_slice(&bytes).unwrap_or(Value::Null);
    Answer {
        status: parts.status,
        headers: parts.headers,
        body,
        text: String::from_utf8_lossy(&bytes).into_owned(),
    }
}

pub(crate) struct Answer {
    pub(crate) status: StatusCode,
    pub(crate) headers: HeaderMap,
    pub(crate) body: Value,
    /// The body as text.
    pub(crate) text: String,
}

impl Answer {
    /// The status and the text of an error.
    pub(crate) fn refusal(&self) -> (u16, &str) {
        (self.status.as_u16(), self.body["error"].as_str().unwrap_or_default())
    }

    pub(crate) fn cookies(&self) -> Vec<&str> {
        self.headers
            .get_all(header::SET_COOKIE)
            .iter()
            .map(|value| value.to_str().unwrap())
            .collect()
    }
}

pub(crate) struct Login {
    pub(crate) id: String,
    pub(crate) secret: String,
    /// Empty if no cookie was set.
    pub(crate) cookie: String,
}

impl Login {
    pub(crate) fn from_answer(answer: &Answer) -> Self {
        Self {
            id: answer.body["session_id"].as_str().unwrap().to_owned(),
            secret: answer.headers["x-login-secret"].to_str().unwrap().to_owned(),
            cookie: answer.cookies().first().copied().unwrap_or_default().to_owned(),
        }
    }

    /// The headers that the opener sends with a poll.
    pub(crate) fn shown(&self) -> [(&str, &str); 1] {
        [("x-login-secret", &self.secret)]
    }
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Tokens {
    pub(crate) access: String,
    pub(crate) refresh: String,
}

impl Tokens {
    pub(crate) fn from_body(body: &Value) -> Self {
        let text = |name: &str| {
            body[name]
                .as_str()
                .unwrap_or_else(|| panic!("no {name} in {body}"))
                .to_owned()
        };
        Self {
            access: text("access_token"),
            refresh: text("refresh_token"),
        }
    }

    pub(crate) fn as_refresh(&self) -> Value {
        json!({ "refresh_token": self.refresh })
    }
}

/// Accepts `proof:<did>` without a check; other texts stand for the ways in which a proof can fail.
#[derive(Debug)]
pub(crate) struct TrustingVerifier;

impl ProofVerifier for TrustingVerifier {
    fn verify<'a>(
        &'a self,
        token: &'a str,
        _: &'a AuthorizationRequest,
        _: Timestamp,
    ) -> BoxFuture<'a, Result<VerifiedLogin, ProofError>> {
        let proved = match token.strip_prefix("proof:") {
            Some(name) => {
                // `<name>#<number>`: a proof with a nullifier.
                let (name, number) = name
                    .split_once('#')
                    .map_or((name, None), |(name, number)| (name, Some(number)));
                let nullifier = number.map(|value| Nullifier {
                    session: "1".into(),
                    value: value.into(),
                });
                Ok(VerifiedLogin {
                    subject: ExternalId::new(name).unwrap(),
                    amr: Amr::Zk,
                    nullifier,
                })
            }
            None => Err(match token {
                "unreadable" => ProofError::Unreadable,
                "no humanity" => ProofError::HumanityMissing,
                "no network" => ProofError::NetworkNotSupported,
                "no resolver" => ProofError::ResolverFault,
                _ => ProofError::Failed,
            }),
        };
        Box::pin(std::future::ready(proved))
    }
}

pub(crate) fn did(name: &str) -> ExternalId {
    ExternalId::new(&format!("did:test:{name}")).unwrap()
}
