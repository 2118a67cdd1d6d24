//! Directory logins against a certified OpenID provider with the directory's claims (spec/10 section 6).

use crate::{
    harness::{Engine, Gateway, Http, Response, on_both_engines, send},
    world::{group, org},
};
use gw_testkit::directory::{CLIENT, DirectoryServer, MACHINE, MACHINE_OID, MACHINE_ROLE, REDIRECT, TENANTS, audience};
use http_body_util::Full;
use serde_json::{Value, json};
use std::{collections::BTreeMap, time::Duration};
use url::{Url, form_urlencoded};

on_both_engines! {
    ds2_ds9_people_log_in_while_their_tenant_is_allowed,
    ds5_ds7_machines_log_in_with_their_own_tokens,
}

const PERSON: &str = "99999999-dddd-4ddd-8ddd-999999999999";

struct World {
    directory: DirectoryServer,
    gw: Gateway,
}

impl World {
    async fn start(engine: Engine, extra: &[(&str, &str)]) -> Self {
        let directory = DirectoryServer::start();
        let mut settings = vec![
            ("DIRECTORY_AUTHORITY_HOST", directory.authority()),
            ("DIRECTORY_TENANT_ID", TENANTS[0]),
            ("DIRECTORY_CLIENT_ID", CLIENT.0),
            ("DIRECTORY_CLIENT_SECRET", CLIENT.1),
        ];
        settings.extend(extra);
        let gw = Gateway::start_with(engine, &settings).await;
        let world = Self { directory, gw };
        for _ in 0..100 {
            if world.providers().await == json!(["idp", "directory"]) {
                return world;
            }
            tokio::time::sleep(Duration::from_millis(100)).await;
        }
        panic!("the directory was not available within ten seconds");
    }

    async fn providers(&self) -> Value {
        self.gw
            .request("GET", "/api/v1/auth/providers", &[], None)
            .await
            .expect(200)["providers"]
            .clone()
    }

    /// Adds a tenant to the list of allowed tenants. Returns the id of the entry.
    async fn allow(&self, tenant: &str, members: Value) -> String {
        let mut body = json!({ "tenant_id": tenant, "label": "bank" });
        body.as_object_mut()
            .unwrap()
            .extend(members.as_object().unwrap().clone());
        let created = self
            .gw
            .admin("POST", "/directory-tenants", Some(body))
            .await
            .expect(201);
        created["id"].as_str().unwrap().to_owned()
    }

    /// Begins a login as the gateway's own page does. Returns the response with state and URL, and the secret in the
    /// cookie.
    async fn begin(&self) -> (Value, String) {
        let redirect: String = form_urlencoded::byte_serialize(REDIRECT.as_bytes()).collect();
        let path = format!("/api/v1/auth/directory/url?redirect_uri={redirect}");
        let answer = self
            .gw
            .request("GET", &path, &[("sec-fetch-site", "same-origin")], None)
            .await;
        let cookie = cookies(&answer).remove("pp_directory").expect("a cookie");
        (answer.expect(200), cookie)
    }

    /// Begins a login as a client that is no browser.
    async fn begin_as_tool(&self) -> Value {
        let redirect: String = form_urlencoded::byte_serialize(REDIRECT.as_bytes()).collect();
        let path = format!("/api/v1/auth/directory/url?redirect_uri={redirect}");
        self.gw.request("GET", &path, &[], None).await.expect(200)
    }

    /// Logs `oid` in at the directory. Returns the query parameters of the redirect back to the application.
    async fn authorize_at_directory(&self, url: &str, oid: &str) -> BTreeMap<String, String> {
        let mut browser = Browser {
            http: &self.gw.http,
            cookies: BTreeMap::new(),
        };
        browser.follow(&format!("{url}&login_hint={oid}")).await
    }

    async fn callback(&self, code: &str, state: &str, headers: &[(&str, &str)]) -> Response {
        let body = json!({ "code": code, "state": state, "redirect_uri": REDIRECT });
        self.gw
            .request("POST", "/api/v1/auth/directory/callback", headers, Some(body))
            .await
    }

    /// A complete login of a person in a browser.
    async fn log_in(&self, oid: &str) -> Response {
        let (begun, secret) = self.begin().await;
        let returned = self.authorize_at_directory(begun["url"].as_str().unwrap(), oid).await;
        let cookie = format!("pp_directory={secret}");
        let origin = self.gw.url.clone();
        self.callback(
            &returned["code"],
            &returned["state"],
            &[("origin", &origin), ("cookie", &cookie)],
        )
        .await
    }

    /// An access token of the directory for the machine's service principal.
    async fn machine_token(&self, tenant: &str, audience: &str) -> String {
        let form = form_urlencoded::Serializer::new(String::new())
            .append_pair("grant_type", "client_credentials")
            .append_pair("client_id", MACHINE.0)
            .append_pair("client_secret", MACHINE.1)
            .append_pair("resource", audience)
            .append_pair("scope", "user_impersonation")
            .finish();
        self.directory_token(tenant, form).await["access_token"]
            .as_str()
            .unwrap()
            .to_owned()
    }

    async fn directory_token(&self, tenant: &str, form: String) -> Value {
        let request = http::Request::post(format!("{}/{tenant}/v2.0/token", self.directory.authority()))
            .header("content-type", "application/x-www-form-urlencoded")
            .body(Full::new(form.into()))
            .unwrap();
        send(&self.gw.http, request).await.expect(200)
    }

    async fn log_in_machine(&self, token: &str) -> Response {
        let body = json!({ "access_token": token });
        self.gw
            .request("POST", "/api/v1/auth/directory/service-principal", &[], Some(body))
            .await
    }

    async fn user(&self, oid: &str) -> Value {
        let users = self
            .gw
            .admin("GET", &format!("/users?search=directory:{oid}"), None)
            .await
            .expect(200);
        users["data"][0].clone()
    }
}

/// A browser at the directory, which follows redirects with its cookies until it reaches the redirect URI of the login.
struct Browser<'a> {
    http: &'a Http,
    cookies: BTreeMap<String, String>,
}

impl Browser<'_> {
    async fn follow(&mut self, url: &str) -> BTreeMap<String, String> {
        let mut url = Url::parse(url).unwrap();
        for _ in 0..8 {
            let jar: Vec<String> = self
                .cookies
                .iter()
                .map(|(name, value)| format!("{name}={value}"))
                .collect();
            let request = http::Request::get(url.as_str()).header("cookie", jar.join("; "));
            let answer = send(self.http, request.body(Full::default()).unwrap()).await;
            assert!(
                (300..400).contains(&answer.status),
                "{url}: {} {}",
                answer.status,
                answer.body
            );
            self.cookies.extend(cookies(&answer));
            url = url.join(answer.headers["location"].to_str().unwrap()).unwrap();
            if url.as_str().starts_with(REDIRECT) {
                return url
                    .query_pairs()
                    .map(|(name, value)| (name.into_owned(), value.into_owned()))
                    .collect();
            }
        }
        panic!("the directory did not redirect back to the application within eight redirects");
    }
}

fn cookies(answer: &Response) -> BTreeMap<String, String> {
    let headers = answer
        .headers
        .get_all("set-cookie")
        .iter()
        .map(|value| value.to_str().unwrap());
    headers
        .filter_map(|text| text.split(';').next()?.split_once('='))
        .map(|(name, value)| (name.to_owned(), value.to_owned()))
        .collect()
}

#[track_caller]
fn assert_refused(answer: &Response, status: u16, text: &str) {
    assert_eq!(
        (answer.status, answer.json()["error"].as_str().unwrap_or_default()),
        (status, text)
    );
}

async fn ds2_ds9_people_log_in_while_their_tenant_is_allowed(engine: Engine) {
    let w = World::start(engine, &[]).await;
    let gw = &w.gw;
    assert_refused(&w.log_in(PERSON).await, 403, "tenant is not authorized");
    let bank = org(gw, "Meridian Bank", "meridian").await;
    let staff = group(
        gw,
        &bank,
        "staff",
        false,
        json!(["eth_call", "eth_sendRawTransaction"]),
        json!([]),
    )
    .await;
    let tenant_id = w.allow(TENANTS[0], json!({ "auto_provision": false })).await;
    assert_refused(&w.log_in(PERSON).await, 403, "account is not provisioned");
    let provisioning = json!({ "auto_provision": true, "default_org_id": bank, "default_group_id": staff });
    let tenant = format!("/directory-tenants/{tenant_id}");
    gw.admin("PUT", &tenant, Some(provisioning)).await.expect(200);

    let answer = w.log_in(PERSON).await;
    let tokens = answer.expect(200);
    let token = tokens["access_token"].as_str().unwrap();
    assert_eq!(tokens["token_type"], "Bearer");
    let login_cookies = cookies(&answer);
    assert_eq!(
        (
            login_cookies["pp_access"].as_str(),
            login_cookies["pp_directory"].as_str()
        ),
        (token, ""),
        "TK-9, decision 4"
    );
    let user = w.user(PERSON).await;
    assert_eq!(
        (&user["auth_tenant_id"], &user["kyc"]),
        (&json!(TENANTS[0]), &json!(false))
    );
    assert_eq!(user["groups"][0]["slug"], "staff");
    let orgs = gw.as_user(token, "GET", "/api/v1/me/orgs", None).await.expect(200);
    assert!(orgs.to_string().contains("meridian"), "{orgs}");
    gw.result(token, "eth_chainId", json!([])).await;
    // DS-9: without KYC writes stay denied, although the group lists them.
    let gated = gw.rpc(token, "eth_sendRawTransaction", json!(["0x00"])).await;
    assert_ne!(gated.status, 200, "{}", gated.body);

    // TK-5, TK-8: disabling and enabling the tenant take effect at the next request.
    let refresh = async |pair: &Value| {
        gw.request(
            "POST",
            "/api/v1/refresh",
            &[],
            Some(json!({ "refresh_token": pair["refresh_token"] })),
        )
        .await
    };
    gw.admin("PUT", &tenant, Some(json!({ "disabled": true })))
        .await
        .expect(200);
    assert_refused(
        &gw.as_user(token, "GET", "/api/v1/me/orgs", None).await,
        403,
        "tenant is not authorized",
    );
    assert_refused(&refresh(&tokens).await, 403, "tenant is not authorized");
    assert_refused(&w.log_in(PERSON).await, 403, "tenant is not authorized");
    assert_eq!(gw.rpc(token, "eth_chainId", json!([])).await.status, 404);
    gw.admin("PUT", &tenant, Some(json!({ "disabled": false })))
        .await
        .expect(200);
    gw.as_user(token, "GET", "/api/v1/me/orgs", None).await.expect(200);
    let tokens = refresh(&tokens).await.expect(200);
    let token = tokens["access_token"].as_str().unwrap();

    // DS-9: deleting the tenant bans its users.
    let deleted = gw.admin("DELETE", &tenant, None).await.expect(200);
    assert_eq!(deleted["message"], "tenant deleted; users banned: 1");
    assert_refused(
        &gw.as_user(token, "GET", "/api/v1/me/orgs", None).await,
        403,
        "account is banned",
    );
    assert_eq!(gw.rpc(token, "eth_chainId", json!([])).await.status, 404);
    assert_refused(&refresh(&tokens).await, 403, "account is banned");
    assert_refused(&w.log_in(PERSON).await, 403, "tenant is not authorized");
    w.allow(TENANTS[0], json!({})).await;
    assert_refused(&w.log_in(PERSON).await, 403, "account is banned");
}

async fn ds5_ds7_machines_log_in_with_their_own_tokens(engine: Engine) {
    let extra = [("DIRECTORY_SP_ROLE", MACHINE_ROLE), ("DIRECTORY_SP_CLIENTS", MACHINE.0)];
    let w = World::start(engine, &extra).await;
    let own_token = w.machine_token(TENANTS[0], &audience()).await;
    assert_refused(&w.log_in_machine(&own_token).await, 403, "tenant is not authorized");
    w.allow(TENANTS[0], json!({})).await;
    let tokens = w.log_in_machine(&own_token).await.expect(200);
    let token = tokens["access_token"].as_str().unwrap();
    w.gw.result(token, "eth_chainId", json!([])).await;
    let user = w.user(MACHINE_OID).await;
    assert_eq!(user["external_id"], format!("directory:{MACHINE_OID}"));
    assert_eq!(
        (&user["auth_tenant_id"], &user["kyc"]),
        (&json!(TENANTS[0]), &json!(false))
    );
    let refresh = json!({ "refresh_token": tokens["refresh_token"] });
    w.gw.request("POST", "/api/v1/refresh", &[], Some(refresh))
        .await
        .expect(200);

    // The same service principal in another tenant.
    let elsewhere = w.machine_token(TENANTS[1], &audience()).await;
    assert_refused(&w.log_in_machine(&elsewhere).await, 403, "tenant is not authorized");
    w.allow(TENANTS[1], json!({})).await;
    assert_refused(
        &w.log_in_machine(&elsewhere).await,
        403,
        "account belongs to another tenant",
    );

    // Refused: a token for another service, a person's tokens, and text that is no token.
    let failed = "directory authentication failed";
    let other_audience = w
        .machine_token(TENANTS[0], "api://99999999-0000-4000-8000-000000000000")
        .await;
    assert_refused(&w.log_in_machine(&other_audience).await, 401, failed);
    let (access, id_token) = person_tokens(&w).await;
    assert_refused(&w.log_in_machine(&access).await, 401, failed);
    assert_refused(&w.log_in_machine(&id_token).await, 401, failed);
    assert_refused(&w.log_in_machine("a.b.c").await, 401, failed);
    assert_refused(
        &w.log_in_machine(own_token.get(..own_token.len() - 4).unwrap()).await,
        401,
        failed,
    );
    assert_eq!(w.log_in_machine(" ").await.status, 400);
}

/// A person's access token for the service and their id token, obtained from the directory without the gateway.
async fn person_tokens(w: &World) -> (String, String) {
    const VERIFIER: &str = "abcdefghijklmnopqrstuvwxyzabcdefghijklmnopqrstuvwxyz";
    const CHALLENGE: &str = "I3jTFKmOI5T-yXt4CqWHBKZnt9uhdpRzxJT0qz9n4jY";
    let mut url = Url::parse(&format!("{}/{}/v2.0/auth", w.directory.authority(), TENANTS[0])).unwrap();
    url.query_pairs_mut()
        .append_pair("client_id", CLIENT.0)
        .append_pair("response_type", "code")
        .append_pair("redirect_uri", REDIRECT)
        .append_pair("scope", "openid user_impersonation")
        .append_pair("resource", &audience())
        .append_pair("nonce", "n")
        .append_pair("code_challenge", CHALLENGE)
        .append_pair("code_challenge_method", "S256");
    let returned = w.authorize_at_directory(url.as_str(), PERSON).await;
    let form = form_urlencoded::Serializer::new(String::new())
        .append_pair("grant_type", "authorization_code")
        .append_pair("client_id", CLIENT.0)
        .append_pair("client_secret", CLIENT.1)
        .append_pair("code", &returned["code"])
        .append_pair("redirect_uri", REDIRECT)
        .append_pair("code_verifier", VERIFIER)
        .append_pair("resource", &audience())
        .finish();
    let tokens = w.directory_token(TENANTS[0], form).await;
    let text = |name: &str| tokens[name].as_str().unwrap().to_owned();
    (text("access_token"), text("id_token"))
}

/// DS-2, DS-3: a state can be used once, by the browser that began the login, with the redirect URI of the login.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn ds2_a_state_is_bound_to_its_browser_and_redirect() {
    let w = World::start(Engine::Sqlite, &[]).await;
    w.allow(TENANTS[0], json!({})).await;
    let begin = async |query: &str| {
        w.gw.request("GET", &format!("/api/v1/auth/directory/url{query}"), &[], None)
            .await
    };
    for query in ["", "?redirect_uri="] {
        assert_refused(&begin(query).await, 400, "redirect_uri query parameter required");
    }
    for query in [
        "?redirect_uri=https://evil.example/",
        "?redirect_uri=%2Fcallback",
        "?redirect_uri=javascript:x",
    ] {
        assert_refused(&begin(query).await, 400, "redirect_uri is not allowed");
    }
    let (begun, secret) = w.begin().await;
    let url = Url::parse(begun["url"].as_str().unwrap()).unwrap();
    let query: BTreeMap<_, _> = url.query_pairs().into_owned().collect();
    assert_eq!(
        (query["scope"].as_str(), query["code_challenge_method"].as_str()),
        ("openid profile email", "S256")
    );
    assert_eq!(query["state"], begun["state"].as_str().unwrap());

    let own_cookie = format!("pp_directory={secret}");
    let origin = w.gw.url.clone();
    let invalid = "invalid or expired state token";
    // A browser without the secret is refused, and the attempt consumes the state.
    let returned = w.authorize_at_directory(url.as_str(), PERSON).await;
    let (code, state) = (returned["code"].clone(), returned["state"].clone());
    for headers in [
        vec![("origin", origin.as_str())],
        vec![("origin", origin.as_str()), ("cookie", own_cookie.as_str())],
    ] {
        assert_refused(&w.callback(&code, &state, &headers).await, 400, invalid);
    }
    let (begun, _) = w.begin().await;
    let wrong_headers = [("origin", origin.as_str()), ("cookie", own_cookie.as_str())];
    let returned = w.authorize_at_directory(begun["url"].as_str().unwrap(), PERSON).await;
    assert_refused(
        &w.callback(&returned["code"], &returned["state"], &wrong_headers).await,
        400,
        invalid,
    );
    assert_refused(&w.callback("code", "no such state", &[]).await, 400, invalid);

    // A login that a browser began can be completed only with its secret (HD34).
    let (begun, _) = w.begin().await;
    let returned = w.authorize_at_directory(begun["url"].as_str().unwrap(), PERSON).await;
    assert_refused(
        &w.callback(&returned["code"], &returned["state"], &[]).await,
        400,
        invalid,
    );
    // A client that is no browser may complete its own login. The code can be used once.
    let begun = w.begin_as_tool().await;
    let returned = w.authorize_at_directory(begun["url"].as_str().unwrap(), PERSON).await;
    w.callback(&returned["code"], &returned["state"], &[]).await.expect(200);
    assert_refused(
        &w.callback(&returned["code"], &returned["state"], &[]).await,
        400,
        invalid,
    );
    let begun = w.begin_as_tool().await;
    let answer = w
        .callback(&returned["code"], begun["state"].as_str().unwrap(), &[])
        .await;
    assert_refused(&answer, 401, "directory authentication failed");

    // A redirect URI other than that of the login is refused.
    let begun = w.begin_as_tool().await;
    let body = json!({ "code": "c", "state": begun["state"], "redirect_uri": "http://localhost:1/" });
    let answer =
        w.gw.request("POST", "/api/v1/auth/directory/callback", &[], Some(body))
            .await;
    assert_refused(&answer, 400, "redirect_uri is not allowed");
    for body in [json!({}), json!({ "code": "", "state": "s", "redirect_uri": REDIRECT })] {
        let answer =
            w.gw.request("POST", "/api/v1/auth/directory/callback", &[], Some(body))
                .await;
        assert_eq!(answer.status, 400, "{}", answer.body);
    }
}

/// DS-6, RTS12: an unknown key is looked up at once, however many unknown keys tokens named before. A key that the
/// directory does not have is not looked up again for five minutes.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn ds6_the_directory_rotates_its_keys() {
    let w = World::start(Engine::Sqlite, &[]).await;
    w.allow(TENANTS[0], json!({})).await;
    let rotate = async || {
        let request = http::Request::get(format!("{}/rotate", w.directory.authority()))
            .body(Full::default())
            .unwrap();
        assert_eq!(send(&w.gw.http, request).await.status, 200);
    };
    let before = w.machine_token(TENANTS[0], &audience()).await;
    w.log_in_machine(&before).await.expect(200);
    rotate().await;
    let after = w.machine_token(TENANTS[0], &audience()).await;
    w.log_in_machine(&before).await.expect(200);
    w.log_in_machine(&after).await.expect(200);
    assert_refused(&w.log_in_machine(&before).await, 401, "directory authentication failed");
    w.log_in(PERSON).await.expect(200);
    rotate().await;
    let newest = w.machine_token(TENANTS[0], &audience()).await;
    w.log_in_machine(&newest).await.expect(200);
    assert_refused(&w.log_in_machine(&after).await, 401, "directory authentication failed");
    w.log_in_machine(&newest).await.expect(200);
}

/// DS-1: an unreachable directory is not listed as a provider and its routes are 503. Without a configured directory
/// the routes are 404.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn ds1_an_unreachable_directory_is_not_listed() {
    let settings = [
        ("DIRECTORY_AUTHORITY_HOST", "http://127.0.0.1:9"),
        ("DIRECTORY_TENANT_ID", "organizations"),
        ("DIRECTORY_CLIENT_ID", CLIENT.0),
        ("DIRECTORY_CLIENT_SECRET", CLIENT.1),
    ];
    let gw = Gateway::start_with(Engine::Sqlite, &settings).await;
    let routes = [
        (
            "GET",
            format!("/api/v1/auth/directory/url?redirect_uri={REDIRECT}"),
            None,
        ),
        (
            "POST",
            "/api/v1/auth/directory/service-principal".to_owned(),
            Some(json!({ "access_token": "a.b.c" })),
        ),
    ];
    for (method, path, body) in &routes {
        assert_refused(
            &gw.request(method, path, &[], body.clone()).await,
            503,
            "directory unavailable",
        );
    }
    let response = gw.request("GET", "/api/v1/auth/providers", &[], None).await.expect(200);
    assert_eq!(response["providers"], json!(["idp"]));

    let gw = Gateway::start_with(Engine::Sqlite, &[]).await;
    for (method, path, body) in &routes {
        assert_eq!(gw.request(method, path, &[], body.clone()).await.status, 404);
    }
}
