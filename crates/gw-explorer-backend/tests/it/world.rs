//! A backend in front of a scripted gateway, and a browser that keeps its cookies.

use crate::scripted_gateway::ScriptedGateway;
use axum::{Router, body::Body};
use gw_explorer_backend::{Backend, BackendConfig, ProxyConfig, Readiness, SignInConfig, Source, router};
use gw_http::{AllowedOrigins, Correlate, Origin, TrustedProxies};
use gw_types::{
    Secret,
    testing::{ManualClock, SeededEntropy},
};
use http::{HeaderMap, Request};
use http_body_util::BodyExt as _;
use std::{collections::BTreeMap, sync::Arc};
use tokio_util::task::TaskTracker;
use tower::ServiceExt as _;
use url::Url;

pub(crate) const ORIGIN: &str = "https://explorer.example";

pub(crate) struct World {
    pub(crate) gateway: ScriptedGateway,
    pub(crate) clock: ManualClock,
    pub(crate) tasks: TaskTracker,
    pub(crate) readiness: Readiness,
    pub(crate) router: Router,
}

impl World {
    /// With sign-in and a backend key.
    pub(crate) async fn new() -> Self {
        Self::with(|_| {}).await
    }

    pub(crate) async fn with(change: impl FnOnce(&mut ProxyConfig)) -> Self {
        let gateway = ScriptedGateway::start().await;
        let mut proxy = ProxyConfig {
            gateway: gateway.url.parse().unwrap(),
            admin: gateway.url.parse().unwrap(),
            backend_key: Some(Secret::new("the-backend-key")),
            sign_in: Some(SignInConfig {
                public_url: "https://gate.example".parse().unwrap(),
                client_id: "explorer".to_owned(),
                client_secret: Secret::new("s3cret +%/=&:x"),
                redirect_uri: format!("{ORIGIN}/api/auth/callback").parse().unwrap(),
                frontend: None,
            }),
        };
        change(&mut proxy);
        Self::with_source(gateway, Source::Proxy(Box::new(proxy)))
    }

    pub(crate) fn with_source(gateway: ScriptedGateway, source: Source) -> Self {
        let config = BackendConfig {
            source,
            origins: Arc::new(AllowedOrigins {
                base: Origin::from_url(ORIGIN).unwrap(),
                frontend: None,
                listed: vec![Origin::from_url("https://listed.example").unwrap()],
                any_localhost: false,
            }),
            proxies: TrustedProxies::default(),
            production: true,
        };
        let (clock, tasks) = (ManualClock::default(), TaskTracker::new());
        let entropy = Arc::new(SeededEntropy::default());
        let shared = Arc::clone(&entropy) as _;
        let backend = Backend::new(config, Arc::new(clock.clone()), shared, tasks.clone()).unwrap();
        let readiness = backend.readiness().clone();
        Self {
            gateway,
            clock,
            tasks,
            readiness,
            router: router(backend).layer(Correlate::new(entropy)),
        }
    }

    pub(crate) async fn send(&self, method: &str, target: &str, headers: &[(&str, &str)], body: &str) -> Answer {
        let mut request = Request::builder().method(method).uri(target);
        for (name, value) in headers {
            request = request.header(*name, *value);
        }
        let request = request.body(Body::from(body.to_owned())).unwrap();
        let (parts, body) = self.router.clone().oneshot(request).await.unwrap().into_parts();
        let body = body.collect().await.unwrap().to_bytes();
        Answer {
            status: parts.status.as_u16(),
            headers: parts.headers,
            body: String::from_utf8(body.to_vec()).unwrap(),
        }
    }

    pub(crate) async fn get(&self, target: &str) -> Answer {
        self.send("GET", target, &[], "").await
    }
}

#[derive(Clone, Debug)]
pub(crate) struct Answer {
    pub(crate) status: u16,
    pub(crate) headers: HeaderMap,
    pub(crate) body: String,
}

impl Answer {
    #[track_caller]
    pub(crate) fn expect(self, status: u16) -> Self {
        assert_eq!(self.status, status, "{}", self.body);
        self
    }

    pub(crate) fn header(&self, name: &str) -> Option<&str> {
        self.headers.get(name).map(|value| value.to_str().unwrap())
    }

    pub(crate) fn json(&self) -> serde_json::Value {
        serde_json::from_str(&self.body).unwrap_or_else(|error| panic!("{error}: {}", self.body))
    }

    pub(crate) fn set_cookies(&self) -> Vec<&str> {
        let values = self.headers.get_all("set-cookie").iter();
        values.map(|value| value.to_str().unwrap()).collect()
    }
}

/// A browser: keeps cookies and sends them, with the Origin of the explorer's own pages for requests that change data.
#[derive(Clone, Debug, Default)]
pub(crate) struct Browser {
    pub(crate) cookies: BTreeMap<String, String>,
}

impl Browser {
    pub(crate) async fn get(&mut self, world: &World, target: &str) -> Answer {
        self.send(world, "GET", target, &[], "").await
    }

    pub(crate) async fn post(&mut self, world: &World, target: &str, body: &str) -> Answer {
        self.send(world, "POST", target, &[("origin", ORIGIN)], body).await
    }

    pub(crate) async fn send(
        &mut self,
        world: &World,
        method: &str,
        target: &str,
        headers: &[(&str, &str)],
        body: &str,
    ) -> Answer {
        let cookie = self.header();
        let mut all = vec![("cookie", cookie.as_str())];
        all.extend(headers);
        let answer = world.send(method, target, &all, body).await;
        self.keep(&answer);
        answer
    }

    pub(crate) fn header(&self) -> String {
        let pairs: Vec<_> = self
            .cookies
            .iter()
            .map(|(name, value)| format!("{name}={value}"))
            .collect();
        pairs.join("; ")
    }

    pub(crate) fn keep(&mut self, answer: &Answer) {
        for cookie in answer.set_cookies() {
            let (pair, attributes) = cookie.split_once(';').unwrap();
            let (name, value) = pair.split_once('=').unwrap();
            if attributes.contains("Max-Age=0") {
                self.cookies.remove(name);
            } else {
                self.cookies.insert(name.to_owned(), value.to_owned());
            }
        }
    }

    /// Steps 1 and 2. Returns the address at the gateway and the state.
    pub(crate) async fn begin(&mut self, world: &World, login: &str) -> (Url, String) {
        let answer = self.get(world, login).await.expect(302);
        let url: Url = answer.header("location").unwrap().parse().unwrap();
        let state = url
            .query_pairs()
            .find(|(name, _)| name == "state")
            .unwrap()
            .1
            .into_owned();
        (url, state)
    }

    /// Signs in. The session's tokens are those of [`ScriptedGateway::tokens`] number `n`.
    pub(crate) async fn sign_in(&mut self, world: &World, n: u32, expires_in: u32) {
        let (_, state) = self.begin(world, "/api/auth/login").await;
        world.gateway.tokens("/oauth/token", n, expires_in);
        let answer = self
            .get(world, &format!("/api/auth/callback?code=the-code&state={state}"))
            .await;
        answer.expect(302);
        world.gateway.take_one();
    }
}
