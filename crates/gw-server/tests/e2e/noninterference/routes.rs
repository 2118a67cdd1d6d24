//! Requests to every route of the API description, with each planted value for parameters that accept it.

use super::seed::{BOTH, MARKED, NOBODY, OWNER, PAWN, TRADER, UNKNOWN, WORDS, recipient, third_wallet, wallets};
use gw_types::B256;
use serde_json::{Value, json};
use std::collections::{BTreeMap, BTreeSet};

/// A request. `<name>` in its path or body is replaced by the value of this name in each world.
#[derive(Clone, Debug)]
pub(super) struct RequestTemplate {
    pub(super) method: String,
    /// The path as in the API description.
    pub(super) route: String,
    pub(super) path: String,
    pub(super) body: Option<Value>,
    pub(super) form: bool,
}

impl RequestTemplate {
    pub(super) fn get(path: &str) -> Self {
        Self {
            method: "GET".into(),
            route: path.into(),
            path: path.into(),
            body: None,
            form: false,
        }
    }

    pub(super) fn rpc(path: &str, method: &str, params: &Value) -> Self {
        let body = json!({"jsonrpc": "2.0", "id": 1, "method": method, "params": params});
        Self {
            method: "POST".into(),
            route: path.into(),
            path: path.into(),
            body: Some(body),
            form: false,
        }
    }

    /// The names that the request uses, with their values. The response may contain these values.
    pub(super) fn used_names<'n>(
        &self,
        names: &'n BTreeMap<&'static str, String>,
    ) -> impl Iterator<Item = (&'static str, &'n str)> + use<'n> {
        let text = format!(
            "{}{}",
            self.path,
            self.body.as_ref().map(Value::to_string).unwrap_or_default()
        );
        names
            .iter()
            .filter(move |(name, _)| text.contains(&format!("<{name}>")))
            .map(|(name, value)| (*name, value.as_str()))
    }
}

/// One request for each admin route and all other requests, for roles that administer nothing.
pub(super) fn thinned(questions: &[RequestTemplate]) -> Vec<RequestTemplate> {
    let mut covered = BTreeSet::new();
    let first = |question: &&RequestTemplate| {
        !question.path.starts_with("/api/v1/admin") || covered.insert((question.method.clone(), question.route.clone()))
    };
    questions.iter().filter(first).cloned().collect()
}

/// Routes that are tested although they are not in the API description.
pub(super) const UNDESCRIBED: [&str; 7] = [
    "/",
    "/login",
    "/login/style.css",
    "/login/script.js",
    "/openapi.json",
    "/auth/directory/callback",
    "/rpc/u/unknown-secret",
];

/// Routes of the API description that are not tested here, and why.
pub(super) const LEFT_OUT: [(&str, &str); 3] = [
    ("/rpc", "its methods are tested one by one"),
    ("/rpc/{org_id}", "likewise"),
    ("/rpc/u/{secret}", "likewise, with the secrets of personal URLs"),
];

/// Routes that are not tested here: the gateways of this test have no explorer. `gw-explorer` compares two worlds for
/// each of them.
const EXPLORER: &str = "/api/v1/explorer/";

const DIDS: [&str; 6] = [OWNER, MARKED, BOTH, PAWN, NOBODY, "did:test:never-heard-of"];

/// The values of a path parameter.
fn parameter(path: &str, name: &str) -> Vec<String> {
    let words = |words: &[&str]| words.iter().map(|word| (*word).to_owned()).collect();
    match name {
        "org_id" => words(&["<meridian>", "<volta>"]),
        "user_id" => words(&["<owner>", "<marked>", "<both>", "<pawn>", "<nobody>"]),
        "group_id" => words(&["<m_ops>", "<m_secret>", "<v_spare>"]),
        "address" => {
            let [left, right] = wallets();
            let mut values = vec![left.to_string(), right.to_string(), third_wallet().to_string()];
            values.extend(["<vault>".into(), "<maybe>".into()]);
            values
        }
        "did" => words(&DIDS),
        "membership_id" | "session_id" | "secret" | "request_id" | "grant_id" => words(&[UNKNOWN]),
        "report_type" => words(&["activity_summary"]),
        "id" if path.contains("rpc-urls") => words(&["<owner_url>", "<marked_url>"]),
        "id" => words(&[UNKNOWN]),
        "hash" => vec![B256::ZERO.to_string()],
        _ => panic!("no values for the parameter `{name}` of {path}: add them here"),
    }
}

/// The values of a query parameter.
fn query(path: &str, name: &str) -> Vec<String> {
    let words = |words: &[&str]| words.iter().map(|word| (*word).to_owned()).collect();
    match name {
        "search" => {
            let [left, right] = wallets().map(|wallet| wallet.to_string());
            let mut values: Vec<String> = words(&DIDS);
            values.extend([
                left[..8].to_owned(),
                left,
                right,
                third_wallet().to_string(),
                recipient().to_string(),
            ]);
            values.extend(["<vault>".into(), "<maybe>".into(), "planted".into()]);
            values.extend(WORDS.map(String::from));
            values
        }
        "org_id" => words(&["<meridian>", "<volta>"]),
        "org" => words(&["meridian", "volta"]),
        "group_id" => words(&["<m_ops>", "<m_secret>"]),
        "external_id" | "actor_id" | "requester_did" | "target_user_did" => words(&DIDS),
        "target_user_id" => words(&["<owner>", "<marked>", "<both>", "<pawn>", "<nobody>"]),
        "status" => words(&["approved", "expired"]),
        "disclosure_level" => words(&["full"]),
        "resource_id" => words(&["<owner>", "<marked>", "<vault>", "<maybe>", "<m_secret>"]),
        "resource_type" => words(&["user", "contract", "membership", "rpc_url"]),
        "role" => words(&["admin"]),
        "action" => words(&["create", "update"]),
        "state" => words(&["completed", "pending"]),
        "method" => words(&["eth_sendRawTransaction"]),
        "correlation_id" => words(&["planted"]),
        "status_code" => words(&["200"]),
        "outcome" => words(&["allowed"]),
        "denial_reason" => words(&["banned", "foreign_org", "unregistered"]),
        "include_system" | "dry_run" | "confirm" | "envelope" => words(&["true"]),
        "cursor" => words(&["planted"]),
        "limit" | "offset" => words(&["1"]),
        "from" | "to" | "created_after" | "created_before" | "date_from" | "date_to" => {
            words(&["2026-01-01T00:00:00Z"])
        }
        "session" | "oauth_session" | "state_id" => words(&[UNKNOWN]),
        "redirect_uri" => words(&["https://explorer.example/callback"]),
        "client_id" => words(&["explorer"]),
        "response_type" => words(&["code"]),
        "code_challenge" => words(&["E9Melhoa2OwvFrEMTJguCHaoeK1t8URWbuGJSstw-cM"]),
        "code_challenge_method" => words(&["S256"]),
        _ => panic!("no values for the query parameter `{name}` of {path}: add them here"),
    }
}

/// The bodies for a route that takes one.
fn bodies(method: &str, path: &str) -> Option<Vec<Value>> {
    let [left, right] = wallets();
    let about = |call: Value| {
        [OWNER, MARKED, BOTH, PAWN, NOBODY]
            .map(|did| (did, call.clone()))
            .into_iter()
    };
    let reads = || {
        vec![
            ("eth_getBalance", json!([left, "latest"])),
            ("eth_call", json!([{"to": "<vault>", "data": "0x18160ddd"}, "latest"])),
            ("eth_call", json!([{"to": "<maybe>", "data": "0x85bb7d69"}, "latest"])),
            ("eth_getTransactionByHash", json!(["<acted>"])),
            ("eth_getLogs", json!([{"address": "<vault>", "fromBlock": "0x0"}])),
        ]
    };
    let hash = format!("0x{}", "11".repeat(32));
    let bodies = match (method, path.trim_start_matches("/api/v1")) {
        ("POST", "/admin/access/check") => {
            let call = |method: &str| json!({"method": method, "params": []});
            let mut bodies = Vec::new();
            for slug in ["meridian", "volta"] {
                for (did, _) in about(call("eth_call")) {
                    for target in [
                        json!(left),
                        json!(right),
                        json!("<vault>"),
                        json!("<maybe>"),
                        Value::Null,
                    ] {
                        let body = json!({"method": "eth_call", "org_slug": slug, "user_external_id": did,
                            "target_address": target, "function_selector": "0x70a08231"});
                        bodies.push(body);
                    }
                    bodies.push(
                        json!({"method": "eth_getBalance", "params": [left, "latest"], "org_slug": slug,
                        "user_external_id": did}),
                    );
                }
            }
            bodies
        }
        ("POST", "/admin/impersonate/{did}/in/{org_id}/rpc") => reads()
            .into_iter()
            .map(|(method, params)| json!({"method": method, "params": params}))
            .collect(),
        ("POST", "/admin/orgs/{org_id}/dry-run") => {
            let mut bodies = Vec::new();
            for (method, params) in reads() {
                for did in DIDS {
                    bodies.push(json!({"user_did": did, "rpc": {"method": method, "params": params}}));
                }
            }
            bodies
        }
        ("POST", "/admin/test-request") => vec![json!({"method": "eth_getBalance", "params": [left, "latest"]})],
        ("POST", "/admin/dev/deploy-demo-erc20") => vec![json!({"org_id": "<meridian>"})],
        ("POST", "/admin/disclosure/requests") => ["<owner>", "<marked>", "<both>", "<pawn>", "<nobody>"]
            .map(|user| {
                json!({"target_user_id": user, "requester_did": TRADER, "org_id": "<meridian>", "reason": "audit",
                    "scope": {"addresses": [left]}})
            })
            .into(),
        ("POST", "/admin/disclosure/grants/{grant_id}/revoke") => vec![json!({"reason": "done"})],
        ("POST", "/me/disclosure/grants") => [OWNER, MARKED, NOBODY]
            .map(|did| json!({"grantee_did": did, "reason": "audit"}))
            .into(),
        (
            "POST",
            "/me/disclosure/grants/{grant_id}/revoke"
            | "/me/disclosure/requests/{request_id}/approve"
            | "/me/disclosure/requests/{request_id}/reject"
            | "/me/disclosure/requests/{request_id}/revoke",
        ) => vec![json!({"reason": "done"})],
        ("POST", "/admin/directory-tenants") => vec![json!({"tenant_id": UNKNOWN, "label": "new"})],
        ("PUT", "/admin/directory-tenants/{id}") => vec![json!({"label": "changed"})],
        (
            "POST",
            "/admin/mined/convictions/{id}/clear"
            | "/admin/mined/quarantines/{id}/clear"
            | "/admin/mined/suspensions/{id}/clear",
        ) => vec![json!({"reason": "looked at"})],
        ("POST", "/admin/orgs") => ["meridian", "planted"]
            .map(|slug| json!({"name": "N", "slug": slug}))
            .into(),
        ("PUT", "/admin/orgs/{org_id}") => vec![json!({"name": "Renamed"}), json!({"slug": "meridian"})],
        ("PUT", "/admin/orgs/{org_id}/webhook") => vec![
            json!({"url": "https://bank.example/hook"}),
            json!({"url": "https://bank.example/hook", "rotate_secret": true}),
        ],
        ("POST", "/admin/orgs/{org_id}/contracts") => {
            let at = |address: Value| json!({"address": address, "name": "mine"});
            let proof = |hash: &str| json!({"address": "<maybe>", "name": "mine", "deployment_tx_hash": hash});
            let mut bodies: Vec<_> = [json!(left), json!(right), json!("<vault>"), json!("<maybe>")]
                .map(at)
                .into();
            bodies.extend(["<tx>", "<acted>", hash.as_str()].map(proof));
            bodies
        }
        ("POST", "/admin/orgs/{org_id}/contracts/claim") => {
            let claim = |address: &str| json!({"address": address, "deployment_tx_hash": "<tx>", "name": "mine"});
            ["<vault>", "<maybe>"].map(claim).into()
        }
        ("POST", "/admin/orgs/{org_id}/contracts/sync-check") => vec![Value::Null],
        ("POST", "/admin/orgs/{org_id}/contracts/sync-delete") => vec![json!({"contract_ids": ["<maybe_contract>"]})],
        ("POST", "/admin/orgs/{org_id}/contracts/batch-move") => vec![
            json!({"contract_ids": ["<maybe_contract>"], "target_group_id": "<m_secret>"}),
            json!({"contract_ids": ["<probe_contract>"], "target_group_id": "<m_ops>"}),
        ],
        ("PUT", "/admin/orgs/{org_id}/contracts/{address}") => vec![json!({"name": "renamed"})],
        ("PUT", "/admin/orgs/{org_id}/contracts/{address}/abi") => vec![json!({"abi": "[]"}), json!({"abi": null})],
        ("PUT", "/admin/orgs/{org_id}/contracts/{address}/visibleto-unlock") => {
            vec![json!({"allow_visibleto_unlock": true})]
        }
        ("PUT", "/admin/orgs/{org_id}/contracts/{address}/trusted-router") => vec![json!({"trusted_router": true})],
        ("PUT", "/admin/orgs/{org_id}/contracts/{address}/events-allow-dynamic-payload") => {
            vec![json!({"events_allow_dynamic_payload": true})]
        }
        ("POST", "/admin/orgs/{org_id}/contracts/{address}/grants") => {
            let rule = |address: Value| {
                json!({"group_id": "<v_spare>", "functions": [{"selector": "0x70a08231",
                    "param_rules": [{"index": 0, "must_be": address}]}]})
            };
            let mut bodies: Vec<_> = [json!(left), json!(right), json!("<vault>"), json!("<maybe>")]
                .map(rule)
                .into();
            bodies.extend(["<m_ops>", "<m_secret>", "<v_spare>"].map(|group| json!({"group_id": group})));
            bodies
        }
        ("PUT", "/admin/orgs/{org_id}/contracts/{address}/grants/{group_id}") => vec![json!({"functions": []})],
        ("POST", "/admin/orgs/{org_id}/groups") => ["planted-group", "ops"]
            .map(|slug| json!({"name": slug, "slug": slug}))
            .into(),
        ("POST", "/admin/orgs/{org_id}/groups/batch-delete" | "/admin/orgs/{org_id}/groups/batch-delete-preview") => {
            ["<m_secret>", "<m_ops>"]
                .map(|group| json!({"group_ids": [group]}))
                .into()
        }
        ("PUT", "/admin/orgs/{org_id}/groups/{group_id}") => vec![json!({"description": "changed"})],
        ("PUT", "/admin/orgs/{org_id}/groups/{group_id}/access") => vec![json!({"allowed_methods": ["eth_call"]})],
        ("POST" | "DELETE", "/admin/orgs/{org_id}/memberships/by-did") => {
            let mut bodies: Vec<Value> = DIDS.map(|did| json!({"did": did, "group_id": "<v_spare>"})).into();
            bodies.push(json!({"did": OWNER, "group_id": "<m_secret>"}));
            bodies
        }
        ("POST", "/admin/shared-infrastructure") => vec![json!({"address": "<maybe>", "name": "new"})],
        ("PUT", "/admin/shared-infrastructure/{address}") => vec![json!({"name": "renamed"})],
        ("POST", "/admin/legal-holds") => {
            vec![
                json!({"org_id": "<meridian>", "reason": "test"}),
                json!({"stream": "access", "reason": "test"}),
            ]
        }
        ("POST", "/admin/legal-holds/{id}/lift") => vec![json!({"reason": "test"})],
        ("POST", "/admin/approved-code") => vec![json!({"name": "new", "creation_code": "0x6080"})],
        ("POST", "/admin/system/eth-call-tracing" | "/admin/system/intra-org-grant-tracing") => {
            vec![json!({"enabled": true, "reason": "test"})]
        }
        ("PUT", "/admin/users/{user_id}") => vec![
            json!({"kyc": true}),
            json!({"banned": true}),
            json!({"banned": false, "note": WORDS[0], "metadata": {"wallet": left}}),
        ],
        ("DELETE", "/admin/users/{user_id}/linked-addresses/{address}") => vec![json!({"reason": "test"})],
        ("POST", "/admin/users/{user_id}/memberships") => {
            ["<m_ops>", "<v_spare>"].map(|group| json!({"group_id": group})).into()
        }
        ("POST", "/auth/callback" | "/oauth/callback") => vec![json!("not a token")],
        ("POST", "/auth/directory/callback") => {
            vec![json!({"code": "c", "redirect_uri": "https://explorer.example/callback", "state": "s"})]
        }
        ("POST", "/auth/directory/service-principal") => vec![json!({"access_token": "x"})],
        ("POST", "/auth/request") => vec![json!({})],
        ("POST", "/auth/verify") => vec![json!({"jwz_token": "none", "session_id": UNKNOWN})],
        ("POST", "/eth/link/verify") => [left, right, third_wallet()]
            .map(|address| json!({"address": address, "nonce": "00", "signature": format!("0x{}", "22".repeat(65))}))
            .into(),
        ("POST", "/introspect") => vec![json!("token=nonsense")],
        ("POST", "/logout") => vec![json!({"refresh_token": "nonsense"})],
        ("POST", "/me/rpc-urls") => vec![
            json!({"scope": "contracts", "contracts": ["<vault>"]}),
            json!({"scope": "contracts", "contracts": ["<maybe>"]}),
            json!({"scope": "contracts", "contracts": [left]}),
            json!({"scope": "contracts", "contracts": [right]}),
            json!({"org_id": "<meridian>"}),
        ],
        ("POST", "/refresh") => vec![json!({"refresh_token": "nonsense"})],
        ("POST", "/revoke") => vec![json!({"refresh_token": "nonsense"})],
        ("POST", "/oauth/token") => vec![json!({"grant_type": "authorization_code", "client_id": "explorer",
            "client_secret": "nonsense", "code": "nonsense", "redirect_uri": "https://explorer.example/callback"})],
        _ => return None,
    };
    Some(bodies)
}

/// The path with each combination of values of its parameters.
fn paths(path: &str) -> Vec<String> {
    let Some((before, after)) = path.split_once('{') else {
        return vec![path.to_owned()];
    };
    let (name, after) = after.split_once('}').unwrap();
    let mut combinations = Vec::new();
    for rest in paths(after) {
        for value in parameter(path, name) {
            combinations.push(format!("{before}{value}{rest}"));
        }
    }
    combinations
}

/// The names of an operation's query parameters, and those of the required ones.
fn query_parameters(operation: &Value) -> (Vec<&str>, Vec<&str>) {
    let parameters = operation["parameters"]
        .as_array()
        .into_iter()
        .flatten()
        .filter(|parameter| parameter["in"] == "query");
    let (mut names, mut required) = (Vec::new(), Vec::new());
    for parameter in parameters {
        let name = parameter["name"].as_str().unwrap();
        names.push(name);
        if parameter["required"] == true {
            required.push(name);
        }
    }
    (names, required)
}

/// The requests for the described routes: with `reads` those that change nothing, otherwise the others, deletions last.
///
/// # Panics
/// If this file has no values for a parameter or no body for a route: a new route needs its requests.
pub(super) fn requests(description: &Value, reads: bool) -> Vec<RequestTemplate> {
    let mut requests = Vec::new();
    let methods: &[&str] = if reads {
        &["get"]
    } else {
        &["put", "post", "patch", "delete"]
    };
    for method in methods {
        for (path, operations) in description["paths"].as_object().unwrap() {
            let Some(operation) = operations.get(method) else {
                continue;
            };
            if LEFT_OUT.iter().any(|(excluded, _)| excluded == path) || path.starts_with(EXPLORER) {
                continue;
            }
            let method = method.to_uppercase();
            let content = operation["requestBody"]["content"].as_object();
            let form = content.is_some_and(|kinds| !kinds.contains_key("application/json"));
            let bodies = match content {
                None => vec![None],
                Some(_) => {
                    let bodies = bodies(&method, path);
                    let bodies =
                        bodies.unwrap_or_else(|| panic!("no body for the route {method} {path}: add one here"));
                    bodies
                        .into_iter()
                        .map(|body| Some(body).filter(|body| !body.is_null()))
                        .collect()
                }
            };
            let (names, required) = query_parameters(operation);
            let value = |name: &str, n: usize| format!("{name}={}", query(path, name)[n]);
            let required: Vec<String> = required.iter().map(|name| value(name, 0)).collect();
            let mut queries = vec![required.join("&")];
            if reads {
                for name in names {
                    let values = query(path, name);
                    let variants = (0..values.len()).map(|n| {
                        let other_parameters = required
                            .iter()
                            .filter(|parameter| !parameter.starts_with(&format!("{name}=")));
                        other_parameters
                            .cloned()
                            .chain([value(name, n)])
                            .collect::<Vec<_>>()
                            .join("&")
                    });
                    queries.extend(variants);
                }
            }
            for concrete in paths(path) {
                for query in &queries {
                    let path_and_query = if query.is_empty() {
                        concrete.clone()
                    } else {
                        format!("{concrete}?{query}")
                    };
                    for body in &bodies {
                        requests.push(RequestTemplate {
                            method: method.clone(),
                            route: path.clone(),
                            path: path_and_query.clone(),
                            body: body.clone(),
                            form,
                        });
                    }
                }
            }
        }
    }
    if reads {
        let get = RequestTemplate::get;
        requests.extend(UNDESCRIBED.map(get));
        requests.push(get(&format!("/api/v1/admin/users?search={TRADER}")));
    }
    // The caller knows the user ids of invited users afterwards, so invitations come late. Requests that end the
    // caller's own session come last.
    let order = |question: &RequestTemplate| match question.path.as_str() {
        path if path.ends_with("/logout") || path.ends_with("/revoke") => 2,
        // The member names of this response are ids, which must be paired from other lists before.
        path if path.contains("memberships/by-did") || path.ends_with("/grant-summary") => 1,
        _ => 0,
    };
    requests.sort_by_key(order);
    requests
}
