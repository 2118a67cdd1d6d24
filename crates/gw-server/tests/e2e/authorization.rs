//! The authorization table: the status of every admin route of the API description for each kind of caller. A route
//! without a request in this file fails the test. A change of authorization changes a line of the snapshot.

use crate::{
    harness::{ADMIN_TOKEN, Engine, Response},
    openapi::Described,
    world::{World, group, org},
};
use base64::{Engine as _, engine::general_purpose::URL_SAFE_NO_PAD};
use serde_json::{Value, json};
use std::{
    fmt::Write,
    sync::atomic::{AtomicU32, Ordering},
};

/// An organization and its objects that the requests of a route address. It is created anew for each route, and again
/// for the platform administrator.
struct Fixture {
    org: String,
    group: String,
    did: String,
    user: String,
    membership: String,
    address: String,
    contract: String,
    shared: String,
    /// The hash of approved code.
    approved: String,
    hold: String,
    tenant: String,
}

/// Numbers the names that must be unique.
static NEXT: AtomicU32 = AtomicU32::new(0);

/// Spec/80 §12.7: routes with POST that change nothing and leave no audit entry.
const EXEMPT: [&str; 4] = [
    "/api/v1/admin/orgs/{org_id}/contracts/sync-check",
    "/api/v1/admin/orgs/{org_id}/groups/batch-delete-preview",
    "/api/v1/admin/test-request",
    "/api/v1/admin/access/check",
];

const UNKNOWN: &str = "99999999-9999-4999-8999-999999999999";

impl Fixture {
    async fn create(w: &World, n: usize) -> Self {
        let org = org(&w.gw, &format!("Victim {n}"), &format!("victim-{n}")).await;
        let admins = group(&w.gw, &org, "admins", true, json!(["eth_call"]), json!([])).await;
        let by_did = format!("/orgs/{org}/memberships/by-did");
        let body = json!({"did": w.admin.did, "group_id": admins});
        w.gw.admin("POST", &by_did, Some(body)).await.expect(201);
        let group = group(&w.gw, &org, "staff", false, json!(["eth_call"]), json!([])).await;
        let did = format!("did:test:victim{n}");
        let created =
            w.gw.admin("POST", &by_did, Some(json!({"did": did, "group_id": group})))
                .await
                .expect(201);
        let address = format!("0x{:040x}", 0xc0de_0000 + n);
        let body = json!({"address": address, "name": "victim", "metadata": {"token_type": "ERC20"}});
        let contract =
            w.gw.admin("POST", &format!("/orgs/{org}/contracts"), Some(body))
                .await
                .expect(201);
        let tenant = json!({"tenant_id": format!("00000000-0000-4000-8000-{n:012}"), "label": "victim"});
        let tenant = w.gw.admin("POST", "/directory-tenants", Some(tenant)).await.expect(201);
        let shared = format!("0x{:040x}", 0x5a5a_0000 + n);
        let tag = json!({"address": shared, "name": "victim"});
        w.gw.admin("POST", "/shared-infrastructure", Some(tag))
            .await
            .expect(201);
        let code = json!({"name": "victim", "creation_code": shared});
        let code = w.gw.admin("POST", "/approved-code", Some(code)).await.expect(201);
        let hold = json!({"org_id": org, "reason": "victim"});
        let hold = w.gw.admin("POST", "/legal-holds", Some(hold)).await.expect(201);
        let text = |value: &Value| value.as_str().unwrap().to_owned();
        Self {
            org,
            group,
            did,
            user: text(&created["user_id"]),
            membership: text(&created["membership"]["id"]),
            address,
            contract: text(&contract["id"]),
            shared,
            approved: text(&code["hash"]),
            hold: text(&hold["id"]),
            tenant: text(&tenant["id"]),
        }
    }

    /// Logs in the fixture's user. Returns the id of the session as administrators see it.
    async fn log_in(&self, w: &World) -> String {
        let opened =
            w.gw.request("POST", "/auth/request", &[], Some(json!({})))
                .await
                .expect(200);
        let proof = json!({"jwz_token": format!("mock.{}", self.did), "session_id": opened["session_id"]});
        w.gw.request("POST", "/auth/verify", &[], Some(proof)).await.expect(200);
        let listed = w.gw.admin("GET", "/sessions?state=completed", None).await.expect(200);
        let newest = listed["sessions"]
            .as_array()
            .unwrap()
            .iter()
            .rev()
            .find(|session| session["did"] == self.did);
        newest.unwrap()["id"].as_str().unwrap().to_owned()
    }

    fn disclosure_request(&self) -> Value {
        json!({"org_id": self.org, "target_user_id": self.user, "requester_did": "did:test:grantee", "reason": "test",
            "scope": {"methods": ["activity_logs"]}})
    }

    /// Requests a disclosure of the user's data, which the user approves if `is_approved`. Returns the ids of the
    /// request and of its grant.
    async fn disclose(&self, w: &World, is_approved: bool) -> (String, String) {
        let body = self.disclosure_request();
        let created = w.gw.admin("POST", "/disclosure/requests", Some(body)).await.expect(201);
        let request = created["id"].as_str().unwrap().to_owned();
        if !is_approved {
            return (request, String::new());
        }
        let path = format!("/api/v1/me/disclosure/requests/{request}/approve");
        let token = w.gw.login(&self.did).await;
        let approved = w.gw.as_user(&token, "POST", &path, Some(json!({}))).await.expect(200);
        (request, approved["grant"]["id"].as_str().unwrap().to_owned())
    }

    /// The path with this fixture's ids, and a valid body.
    async fn request(&self, w: &World, method: &str, path: &str) -> (String, Option<Value>) {
        let mut group = self.group.clone();
        if path.contains("/grants/{group_id}") {
            let body = json!({"group_id": self.group, "functions": null});
            let grants = format!("/orgs/{}/contracts/{}/grants", self.org, self.address);
            let granted = w.gw.admin("POST", &grants, Some(body)).await;
            assert!(matches!(granted.status, 201 | 409), "{}", granted.body);
        }
        let body = match (method, path.trim_start_matches("/api/v1/admin")) {
            ("POST", "/test-request") => Some(json!({"method": "eth_chainId", "org_id": self.org})),
            ("POST", "/access/check") => {
                Some(json!({"method": "eth_call", "org_id": self.org, "user_external_id": self.did}))
            }
            ("POST", "/orgs/{org_id}/dry-run") => {
                Some(json!({"user_did": self.did, "rpc": {"method": "eth_getBalance", "params": [self.address]}}))
            }
            ("POST", "/impersonate/{did}/in/{org_id}/rpc") => {
                Some(json!({"method": "eth_getBalance", "params": [self.address]}))
            }
            ("POST", "/dev/deploy-demo-erc20") => Some(json!({"org_id": self.org})),
            ("POST", "/orgs") => Some(json!({"name": "New", "slug": format!("new-{}", self.org)})),
            ("POST", "/directory-tenants") => Some(json!({"tenant_id": self.org, "label": "new"})),
            ("PUT", "/directory-tenants/{id}") => Some(json!({"label": "changed", "disabled": true})),
            ("POST", "/shared-infrastructure") => {
                Some(json!({"address": self.shared.replace("5a5a", "6b6b"), "name": "new"}))
            }
            ("PUT", "/shared-infrastructure/{address}") => Some(json!({"name": "renamed"})),
            ("POST", "/approved-code") => {
                Some(json!({"name": "new", "creation_code": self.shared.replace("0x", "0x6b")}))
            }
            ("POST", "/disclosure/requests") => Some(self.disclosure_request()),
            ("POST", "/disclosure/grants/{grant_id}/revoke") => Some(json!({"reason": "test"})),
            ("POST", "/legal-holds") => Some(json!({"stream": "security", "reason": "test"})),
            ("POST", "/legal-holds/{id}/lift") => Some(json!({"reason": "test"})),
            ("POST", "/system/eth-call-tracing") => Some(json!({"enabled": true, "reason": "test"})),
            ("POST", "/system/intra-org-grant-tracing") => Some(json!({"enabled": false, "reason": "test"})),
            (
                "POST",
                "/mined/convictions/{id}/clear" | "/mined/suspensions/{id}/clear" | "/mined/quarantines/{id}/clear",
            ) => Some(json!({"reason": "looked at"})),
            ("PUT", "/orgs/{org_id}") => Some(json!({"name": "Renamed"})),
            ("PUT", "/orgs/{org_id}/webhook") => Some(json!({"url": "https://bank.example/hook"})),
            ("POST", "/orgs/{org_id}/groups") => Some(json!({"name": "more", "slug": "more"})),
            ("PUT", "/orgs/{org_id}/groups/{group_id}") => Some(json!({"description": "changed"})),
            ("PUT", "/orgs/{org_id}/groups/{group_id}/access") => Some(json!({"allowed_methods": ["eth_getLogs"]})),
            ("POST", "/orgs/{org_id}/groups/batch-delete" | "/orgs/{org_id}/groups/batch-delete-preview") => {
                Some(json!({"group_ids": [self.group]}))
            }
            ("PUT", "/users/{user_id}") => Some(json!({"kyc": true})),
            ("POST", "/users/{user_id}/memberships") => {
                let slug = format!("group-{}", NEXT.fetch_add(1, Ordering::Relaxed));
                group = crate::world::group(&w.gw, &self.org, &slug, false, json!([]), json!([])).await;
                Some(json!({"group_id": group}))
            }
            ("POST", "/orgs/{org_id}/memberships/by-did") => {
                Some(json!({"did": format!("{}-new", self.did), "group_id": self.group}))
            }
            ("DELETE", "/orgs/{org_id}/memberships/by-did") => Some(json!({"did": self.did, "group_id": self.group})),
            ("DELETE", "/users/{user_id}/linked-addresses/{address}") => Some(json!({"reason": "test"})),
            ("POST", "/orgs/{org_id}/contracts/claim") => {
                Some(json!({"address": self.address, "deployment_tx_hash": format!("0x{}", "11".repeat(32))}))
            }
            ("POST", "/orgs/{org_id}/contracts/sync-delete") => Some(json!({"contract_ids": [self.contract]})),
            ("POST", "/orgs/{org_id}/contracts/batch-move") => {
                let slug = format!("moved-{}", NEXT.fetch_add(1, Ordering::Relaxed));
                Some(json!({"contract_ids": [self.contract], "new_group": {"name": slug, "slug": slug}}))
            }
            ("POST", "/orgs/{org_id}/contracts") => {
                Some(json!({"address": self.address.replace("c0de", "beef"), "name": "n"}))
            }
            ("PUT", "/orgs/{org_id}/contracts/{address}") => Some(json!({"name": "renamed"})),
            ("PUT", "/orgs/{org_id}/contracts/{address}/abi") => Some(json!({"abi": "[]"})),
            ("PUT", "/orgs/{org_id}/contracts/{address}/visibleto-unlock") => {
                Some(json!({"allow_visibleto_unlock": true}))
            }
            ("PUT", "/orgs/{org_id}/contracts/{address}/trusted-router") => Some(json!({"trusted_router": true})),
            ("PUT", "/orgs/{org_id}/contracts/{address}/events-allow-dynamic-payload") => {
                Some(json!({"events_allow_dynamic_payload": true}))
            }
            ("POST", "/orgs/{org_id}/contracts/{address}/grants") => Some(json!({"group_id": self.group})),
            ("PUT", "/orgs/{org_id}/contracts/{address}/grants/{group_id}") => Some(json!({"functions": []})),
            _ => None,
        };
        let (request, grant) = if path.contains("/disclosure/") {
            self.disclose(w, path.contains("{grant_id}")).await
        } else {
            Default::default()
        };
        if path.contains("/webhook") && method != "PUT" {
            let webhook = format!("/orgs/{}/webhook", self.org);
            let body = json!({"url": "https://bank.example/hook"});
            w.gw.admin("PUT", &webhook, Some(body)).await.expect(200);
        }
        let mut url = UNKNOWN.to_owned();
        if path.contains("/rpc-urls/{id}") {
            let token = w.gw.login(&self.did).await;
            let created =
                w.gw.as_user(&token, "POST", "/api/v1/me/rpc-urls", Some(json!({})))
                    .await
                    .expect(201);
            url = created["id"].as_str().unwrap().to_owned();
        }
        let session = match path.trim_start_matches("/api/v1/admin") {
            "/users/{user_id}/sessions/{session_id}" => family(&w.gw.login(&self.did).await),
            path if path.contains("{session_id}") => self.log_in(w).await,
            _ => String::new(),
        };
        // Only a pending membership can be confirmed.
        let (mut user, mut membership) = (self.user.clone(), self.membership.clone());
        if path.ends_with("/confirm") {
            let did = format!("{}-{}", self.did, NEXT.fetch_add(1, Ordering::Relaxed));
            let join = format!("/api/v1/admin/orgs/{}/memberships/by-did", self.org);
            let body = json!({"did": did, "group_id": self.group});
            let created =
                w.gw.as_user(&w.admin.token, "POST", &join, Some(body))
                    .await
                    .expect(201);
            user = created["user_id"].as_str().unwrap().to_owned();
            membership = created["membership"]["id"].as_str().unwrap().to_owned();
        }
        let path = path
            .replace(
                "/directory-tenants/{id}",
                &format!("/directory-tenants/{}", self.tenant),
            )
            .replace(
                "/shared-infrastructure/{address}",
                &format!("/shared-infrastructure/{}", self.shared),
            )
            .replace("/approved-code/{hash}", &format!("/approved-code/{}", self.approved))
            .replace("/legal-holds/{id}", &format!("/legal-holds/{}", self.hold))
            .replace("/rpc-urls/{id}", &format!("/rpc-urls/{url}"))
            .replace("{request_id}", &request)
            .replace("{grant_id}", &grant)
            .replace("{report_type}", "activity_summary")
            .replace("{session_id}", &session)
            .replace("{org_id}", &self.org)
            .replace("{did}", &self.did)
            .replace("{group_id}", &group)
            .replace("{user_id}", &user)
            .replace("{membership_id}", &membership)
            .replace("{address}", &self.address);
        let query = match path.as_str() {
            path if path.ends_with("/effective-permissions") => "?org=meridian".to_owned(),
            path if path.ends_with("/check-access") => {
                format!("?requester_did=did:test:grantee&target_user_did={}", self.did)
            }
            path if path.ends_with("/disclosure/counters") => format!("?org_id={}", self.org),
            "/api/v1/admin/disclosure/requests" | "/api/v1/admin/disclosure/grants" if method == "GET" => {
                format!("?org_id={}", self.org)
            }
            _ => String::new(),
        };
        (format!("{path}{query}"), body)
    }
}

/// The token family, claim `sid`, of an access token.
pub(crate) fn family(access: &str) -> String {
    let claims = URL_SAFE_NO_PAD.decode(access.split('.').nth(1).unwrap()).unwrap();
    let claims: Value = serde_json::from_slice(&claims).unwrap();
    claims["sid"].as_str().unwrap().to_owned()
}

async fn call_as(w: &World, caller: &str, method: &str, path: &str, body: Option<Value>) -> Response {
    let bearer = match caller {
        "user" => format!("Bearer {}", w.outsider.token),
        "other admin" => format!("Bearer {}", w.trader.token),
        "org admin" => format!("Bearer {}", w.admin.token),
        _ => String::new(),
    };
    let headers: Vec<(&str, &str)> = match caller {
        "super" => vec![
            ("x-admin-token", ADMIN_TOKEN),
            ("x-correlation-id", "authorization-table"),
        ],
        "anonymous" => vec![("x-correlation-id", "authorization-table")],
        _ => vec![("authorization", &bearer), ("x-correlation-id", "authorization-table")],
    };
    w.gw.request(method, path, &headers, body).await
}

/// House style 27, spec/80 §1-§3, §12.7: the status of each admin route for each caller, and the audit entries that
/// each mutation leaves.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn admin_routes_by_caller() {
    let w = World::start(Engine::Sqlite).await;
    // The trader becomes administrator of the other bank.
    let admins = group(&w.gw, &w.volta, "volta-admins", true, json!(["eth_call"]), json!([])).await;
    let body = json!({"did": w.trader.did, "group_id": admins});
    w.gw.admin("POST", &format!("/orgs/{}/memberships/by-did", w.volta), Some(body))
        .await
        .expect(201);

    let description = w.gw.request("GET", "/openapi.json", &[], None).await.expect(200);
    let described = Described::by(&w.gw).await;
    let mut table = String::from("anonymous | user | other admin | org admin | super | audit entries left by super\n");
    let mut number = 0;
    for (path, operations) in description["paths"].as_object().unwrap() {
        if !path.starts_with("/api/v1/admin") {
            continue;
        }
        for method in ["get", "post", "put", "delete"] {
            if operations.get(method).is_none() {
                continue;
            }
            let method = method.to_uppercase();
            let mut row = Vec::new();
            number += 1;
            let fixture = Fixture::create(&w, number).await;
            for caller in ["anonymous", "user", "other admin"] {
                let (concrete, body) = fixture.request(&w, &method, path).await;
                let answer = call_as(&w, caller, &method, &concrete, body.clone()).await;
                described.check(&method, path, &answer);
                row.push(answer.status.to_string());
                if caller == "other admin" && path.contains("{org_id}") {
                    // Spec/80 §3 rule 1: the responses for an unknown and for a foreign organization are byte-equal.
                    let unknown = concrete.replace(&fixture.org, UNKNOWN);
                    let absent = call_as(&w, caller, &method, &unknown, body).await;
                    assert_eq!(
                        (answer.status, answer.body),
                        (absent.status, absent.body),
                        "{method} {path}"
                    );
                }
            }
            let (concrete, body) = fixture.request(&w, &method, path).await;
            let answer = call_as(&w, "org admin", &method, &concrete, body).await;
            described.check(&method, path, &answer);
            row.push(answer.status.to_string());
            number += 1;
            let fixture = Fixture::create(&w, number).await;
            let (concrete, body) = fixture.request(&w, &method, path).await;
            let before = w.gw.admin("GET", "/audit-logs?limit=1", None).await.expect(200)[0]["id"]
                .as_i64()
                .unwrap();
            let answer = call_as(&w, "super", &method, &concrete, body).await;
            described.check(&method, path, &answer);
            row.push(answer.status.to_string());
            let entries = w.gw.admin("GET", "/audit-logs?limit=50", None).await.expect(200);
            let mut audit_entries: Vec<String> = entries
                .as_array()
                .unwrap()
                .iter()
                .filter(|e| e["id"].as_i64().unwrap() > before)
                .map(|e| {
                    format!(
                        "{} {}",
                        e["action"].as_str().unwrap(),
                        e["resource_type"].as_str().unwrap()
                    )
                })
                .collect();
            audit_entries.sort();
            writeln!(
                table,
                "{} | {} | {method} {path}",
                row.join(" | "),
                audit_entries.join(", ")
            )
            .unwrap();
            assert!(
                !row.iter().any(|status| status.starts_with('5')),
                "{method} {path}: {row:?}"
            );
            if method != "GET" && row[4].starts_with('2') && !EXEMPT.contains(&path.as_str()) {
                assert!(
                    !audit_entries.is_empty(),
                    "spec/80 §12: {method} {path} leaves no audit entry"
                );
            } else {
                assert!(
                    audit_entries.is_empty(),
                    "{method} {path} failed or reads, and leaves {audit_entries:?}"
                );
            }
        }
    }
    insta::with_settings!({snapshot_path => "snapshots", prepend_module_to_snapshot => false}, {
        insta::assert_snapshot!("authorization", table);
    });
}
