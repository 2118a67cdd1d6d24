//! A membership is not consent (HD32, HD40, decision 62): the limited rights that an organization gets by adding a DID
//! to one of its groups.

use crate::{
    harness::{Engine, Gateway, Response},
    world::{World, group},
};
use alloy_primitives::{Bytes, U256};
use serde_json::{Value, json};

const EVERYTHING: [&str; 4] = [
    "eth_call",
    "eth_sendRawTransaction",
    "eth_getBalance",
    "eth_estimateGas",
];

/// The other bank: its administrator, and a group to which it adds users.
struct Rival<'w> {
    w: &'w World,
    token: String,
    group: String,
}

impl<'w> Rival<'w> {
    async fn new(w: &'w World) -> Self {
        let admins = group(&w.gw, &w.volta, "bosses", true, json!(EVERYTHING), json!([])).await;
        let body = json!({"did": "did:test:boss", "group_id": admins});
        w.gw.admin("POST", &format!("/orgs/{}/memberships/by-did", w.volta), Some(body))
            .await
            .expect(201);
        let group = group(&w.gw, &w.volta, "takers", false, json!(EVERYTHING), json!(["deploy"])).await;
        Self {
            w,
            token: w.gw.login("did:test:boss").await,
            group,
        }
    }

    async fn as_admin(&self, method: &str, path: &str, body: Option<Value>) -> Response {
        self.w
            .gw
            .as_user(&self.token, method, &format!("/api/v1/admin{path}"), body)
            .await
    }

    /// Adds a DID to the rival's group without the user's consent.
    async fn add_member(&self, did: &str) -> Value {
        let body = json!({"did": did, "group_id": self.group});
        self.as_admin(
            "POST",
            &format!("/orgs/{}/memberships/by-did", self.w.volta),
            Some(body),
        )
        .await
        .expect(201)
    }
}

async fn as_meridian_admin(w: &World, method: &str, path: &str, body: Option<Value>) -> Response {
    w.gw.as_user(&w.admin.token, method, &format!("/api/v1/admin{path}"), body)
        .await
}

async fn as_self(gw: &Gateway, token: &str, method: &str, path: &str) -> Response {
    gw.as_user(token, method, &format!("/api/v1/me{path}"), None).await
}

fn ids(rows: &Value) -> Vec<&str> {
    rows.as_array()
        .unwrap()
        .iter()
        .map(|row| row["id"].as_str().unwrap())
        .collect()
}

/// RT11 (HD32): an organization that adds a DID cannot read or overwrite the notes of another organization, cannot list
/// the user's sessions, links, URLs or permissions, and does not make the user's payments ambiguous.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn rt11_an_invitation_opens_nothing_of_a_person_who_belongs_elsewhere() {
    let w = World::start(Engine::Sqlite).await;
    let rival = Rival::new(&w).await;
    let ops = format!("/users/{}", w.ops.user_id);
    let note = json!({"note": "CANARY-NOTE", "metadata": {"file": "CANARY-FILE"}});
    as_meridian_admin(&w, "PUT", &ops, Some(note)).await.expect(200);
    let session_count = async || rival.as_admin("GET", "/sessions", None).await.expect(200)["total"].clone();
    let before = session_count().await;
    rival.add_member(w.ops.did).await;

    let shown_user = rival.as_admin("GET", &ops, None).await;
    assert!(
        !shown_user.body.contains("CANARY"),
        "another organization's note: {}",
        shown_user.body
    );
    let listed = rival.as_admin("GET", &format!("/users?org_id={}", w.volta), None).await;
    assert!(!listed.body.contains("CANARY"), "{}", listed.body);
    let searched = rival
        .as_admin("GET", &format!("/users?search={:#x}", w.ops.address()), None)
        .await;
    assert!(
        !searched.body.contains(w.ops.did),
        "found by a wallet: {}",
        searched.body
    );
    rival
        .as_admin("PUT", &ops, Some(json!({"note": "mine", "metadata": {}})))
        .await
        .expect(200);
    let meridian_view = as_meridian_admin(&w, "GET", &ops, None).await.expect(200);
    assert_eq!(
        (&meridian_view["note"], &meridian_view["metadata"]["file"]),
        (&json!("CANARY-NOTE"), &json!("CANARY-FILE"))
    );
    for path in [
        "/sessions",
        "/linked-addresses",
        "/rpc-urls",
        "/effective-permissions?org=volta",
    ] {
        let response = rival.as_admin("GET", &format!("{ops}{path}"), None).await;
        assert_eq!(response.status, 403, "{path}: {}", response.body);
    }
    assert_eq!(session_count().await, before, "logins of the other bank's clients");

    // The user still has one organization: a payment need not name it.
    w.gw.send(
        &w.ops.token,
        &w.ops.key,
        Some(w.analyst.address()),
        U256::from(1),
        Bytes::new(),
    )
    .await;
    let orgs = as_self(&w.gw, &w.ops.token, "GET", "/orgs").await.expect(200);
    assert_eq!(ids(&orgs["organizations"]), [w.meridian.as_str()]);
    // The ban of the user's own bank stays in force.
    as_meridian_admin(&w, "PUT", &ops, Some(json!({"banned": true})))
        .await
        .expect(200);
    let call = json!([{"to": w.erc20, "data": "0x18160ddd"}, "latest"]);
    assert_eq!(
        w.gw.rpc(&w.ops.token, "eth_call", call).await.status,
        404,
        "banned in the one organization"
    );
    let shown = as_meridian_admin(&w, "GET", &ops, None).await.expect(200);
    assert_eq!(shown["banned"], json!(true));
    as_meridian_admin(&w, "PUT", &ops, Some(json!({"banned": false})))
        .await
        .expect(200);
    w.gw.send(
        &w.ops.token,
        &w.ops.key,
        Some(w.analyst.address()),
        U256::from(1),
        Bytes::new(),
    )
    .await;
}

/// RT11 (HD32): an expired membership gives the organization's administrators no rights over the user.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn rt11_an_ended_membership_is_no_scope() {
    let w = World::start(Engine::Sqlite).await;
    let user = format!("/users/{}", w.analyst.user_id);
    as_meridian_admin(&w, "GET", &format!("{user}/sessions"), None)
        .await
        .expect(200);
    let expire = "UPDATE memberships SET expires_at = 1 \
                 WHERE user_id = (SELECT id FROM users WHERE external_id = 'did:test:analyst')";
    assert_eq!(w.gw.execute_sql(expire), 1);
    let response =
        w.gw.as_user(&w.admin.token, "GET", &format!("/api/v1/admin{user}/sessions"), None)
            .await;
    assert_eq!(response.status, 403, "{}", response.body);
}

/// RT24 (HD40): an administrator gets the same responses about a DID whether it is new, belongs to no organization, or
/// is a member of another bank.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn rt24_no_answer_tells_whether_a_did_banks_elsewhere() {
    let w = World::start(Engine::Sqlite).await;
    let rival = Rival::new(&w).await;
    let mut transcripts: Vec<(String, Vec<(u16, String)>)> = Vec::new();
    for did in ["did:test:nobody-yet", w.outsider.did, w.analyst.did] {
        let created = rival.add_member(did).await;
        let (user, membership) = (
            created["user_id"].as_str().unwrap(),
            created["membership"]["id"].as_str().unwrap(),
        );
        let path = format!("/users/{user}");
        let mut responses = vec![(201, created.to_string())];
        for (method, path, body) in [
            ("GET", path.clone(), None),
            ("PUT", path.clone(), Some(json!({"kyc": true}))),
            ("GET", path.clone(), None),
            (
                "PUT",
                path.clone(),
                Some(json!({"kyc": false, "banned": true, "note": "n"})),
            ),
            ("GET", path.clone(), None),
            ("PUT", path.clone(), Some(json!({"banned": false}))),
            ("GET", format!("{path}/memberships"), None),
            ("GET", format!("{path}/sessions"), None),
            ("GET", format!("{path}/linked-addresses"), None),
            ("GET", format!("{path}/effective-permissions?org=volta"), None),
            ("DELETE", format!("{path}/sessions"), None),
            ("GET", format!("/users?group_id={}", rival.group), None),
            (
                "POST",
                format!("{path}/memberships"),
                Some(json!({"group_id": rival.group})),
            ),
            ("DELETE", path.clone(), None),
            ("GET", path.clone(), None),
        ] {
            let response = rival.as_admin(method, &path, body).await;
            responses.push((response.status, response.body));
        }
        // Only the ids, the DID and the times may differ.
        for (_, text) in &mut responses {
            *text = text
                .replace(user, "USER")
                .replace(membership, "MEMBERSHIP")
                .replace(did, "DID");
            *text = without_times(text);
        }
        transcripts.push((did.to_owned(), responses));
    }
    for (did, responses) in &transcripts[1..] {
        for (n, (response, first)) in responses.iter().zip(&transcripts[0].1).enumerate() {
            assert_eq!(response, first, "answer {n} about {did}");
        }
    }
}

/// The JSON text without members whose names end in `_at`, and without correlation ids.
fn without_times(text: &str) -> String {
    let mut value: Value = serde_json::from_str(text).unwrap_or(Value::Null);
    fn strip(value: &mut Value) {
        match value {
            Value::Object(members) => {
                members.retain(|name, _| !name.ends_with("_at") && name != "correlation_id");
                members.values_mut().for_each(strip);
            }
            Value::Array(rows) => rows.iter_mut().for_each(strip),
            _ => {}
        }
    }
    strip(&mut value);
    value.to_string()
}

/// RT24 (HD32): an organization's ban and KYC mark apply in this organization only, whether the user joined it before
/// or after the other one.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn rt24_a_ban_or_kyc_mark_of_one_organization_binds_there_only() {
    let w = World::start(Engine::Sqlite).await;
    let rival = Rival::new(&w).await;
    let did = "did:test:newcomer";
    // The rival bans the user before her bank adds her.
    let created = rival.add_member(did).await;
    let path = format!("/users/{}", created["user_id"].as_str().unwrap());
    rival
        .as_admin("PUT", &path, Some(json!({"banned": true})))
        .await
        .expect(200);
    let body = json!({"did": did, "group_id": w.analysts});
    as_meridian_admin(
        &w,
        "POST",
        &format!("/orgs/{}/memberships/by-did", w.meridian),
        Some(body),
    )
    .await
    .expect(201);
    // The KYC mark of her bank is sufficient there.
    as_meridian_admin(&w, "PUT", &path, Some(json!({"kyc": true})))
        .await
        .expect(200);
    let token = w.gw.login(did).await;
    let block = w.gw.rpc(&token, "eth_getBlockByNumber", json!(["latest", false])).await;
    assert_eq!(block.status, 200, "she works at her bank: {}", block.body);
    let code = json!([w.erc20, "latest"]);
    // In the rival's organization she stays banned, also if she names it in the path.
    let (path, bearer) = (format!("/rpc/{}", w.volta), format!("Bearer {token}"));
    let call = json!({"jsonrpc": "2.0", "id": 1, "method": "eth_getBalance", "params": code});
    let at_rival =
        w.gw.request("POST", &path, &[("authorization", &bearer)], Some(call))
            .await;
    assert_eq!(at_rival.status, 404);
    // A KYC mark of the rival has no effect at the bank.
    rival.add_member(w.unverified.did).await;
    let unverified = format!("/users/{}", w.unverified.user_id);
    rival
        .as_admin("PUT", &unverified, Some(json!({"kyc": true})))
        .await
        .expect(200);
    let read =
        w.gw.rpc(
            &w.unverified.token,
            "eth_getBalance",
            json!([w.unverified.address(), "latest"]),
        )
        .await;
    let (_, raw) =
        w.gw.sign(&w.unverified.key, Some(w.ops.address()), U256::from(1), Bytes::new())
            .await;
    let send =
        w.gw.rpc(&w.unverified.token, "eth_sendRawTransaction", json!([raw]))
            .await;
    assert_eq!(send.status, 404, "{} {}", read.body, send.body);
}

/// RT24 (HD32): an organization that adds a deployer's DID to a group cannot claim the deployer's contracts.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn rt24_an_invitation_claims_no_contract() {
    let w = World::start(Engine::Sqlite).await;
    let rival = Rival::new(&w).await;
    // A member of Meridian deploys a contract without the gateway.
    let raw =
        w.gw.sign(&w.ops.key, None, U256::ZERO, crate::harness::init_code("Probe", &[]))
            .await;
    w.gw.node("eth_sendRawTransaction", json!([raw.1])).await;
    w.gw.wait_until_mined(&w.ops.token, raw.0).await;
    let receipt = w.gw.node("eth_getTransactionReceipt", json!([raw.0])).await;
    let body = json!({"address": receipt["contractAddress"], "deployment_tx_hash": raw.0, "name": "mine"});
    let claim = format!("/orgs/{}/contracts/claim", w.volta);
    rival.add_member(w.ops.did).await;
    rival.as_admin("POST", &claim, Some(body.clone())).await.expect(400);
    // Nor after the deployer accepted: the contract is older than the membership. The node's clock is a little ahead.
    tokio::time::sleep(std::time::Duration::from_secs(4)).await;
    as_self(&w.gw, &w.ops.token, "POST", &format!("/orgs/{}/accept", w.volta))
        .await
        .expect(200);
    rival.as_admin("POST", &claim, Some(body.clone())).await.expect(400);
    let own_claim = format!("/orgs/{}/contracts/claim", w.meridian);
    as_meridian_admin(&w, "POST", &own_claim, Some(body)).await.expect(201);
}

/// HD32, decision 62: the user accepts an invitation by the accept route or by the first call that names the
/// organization, the platform administrator confirms it, or the user declines it.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn hd32_an_invitation_is_accepted_by_the_persons_own_act() {
    let w = World::start(Engine::Sqlite).await;
    let rival = Rival::new(&w).await;
    let balance = json!({"jsonrpc": "2.0", "id": 1, "method": "eth_getBalance",
        "params": [w.ops.address(), "latest"]});
    let invitations = async |token: &str| {
        let listed = as_self(&w.gw, token, "GET", "/invitations").await.expect(200);
        ids(&listed["data"]).into_iter().map(str::to_owned).collect::<Vec<_>>()
    };
    for (persona, way) in [
        (&w.ops, "route"),
        (&w.analyst, "name"),
        (&w.unverified, "super"),
        (&w.admin, "decline"),
    ] {
        assert!(invitations(&persona.token).await.is_empty(), "{way}");
        let created = rival.add_member(persona.did).await;
        assert_eq!(created["membership"]["status"], json!("pending"), "{way}");
        assert_eq!(
            invitations(&persona.token).await,
            std::slice::from_ref(&w.volta),
            "{way}"
        );
        let user = format!("/users/{}", persona.user_id);
        rival
            .as_admin("GET", &format!("{user}/linked-addresses"), None)
            .await
            .expect(403);
        let membership = created["membership"]["id"].as_str().unwrap();
        match way {
            "route" => drop(
                as_self(&w.gw, &persona.token, "POST", &format!("/orgs/{}/accept", w.volta))
                    .await
                    .expect(200),
            ),
            "name" => {
                let bearer = format!("Bearer {}", persona.token);
                let headers = [("authorization", bearer.as_str()), ("x-org-id", w.volta.as_str())];
                w.gw.request("POST", "/rpc", &headers, Some(balance.clone()))
                    .await
                    .expect(200);
            }
            "super" => {
                let confirm = format!("{user}/memberships/{membership}/confirm");
                rival.as_admin("POST", &confirm, None).await.expect(403);
                w.gw.admin("POST", &confirm, None).await.expect(200);
            }
            _ => drop(
                as_self(&w.gw, &persona.token, "DELETE", &format!("/orgs/{}", w.volta))
                    .await
                    .expect(200),
            ),
        }
        assert!(invitations(&persona.token).await.is_empty(), "{way}");
        let listed = rival.as_admin("GET", &format!("{user}/linked-addresses"), None).await;
        assert_eq!(
            listed.status,
            if way == "decline" { 403 } else { 200 },
            "{way}: {}",
            listed.body
        );
        if way != "decline" {
            let shown = rival
                .as_admin("GET", &format!("{user}/memberships"), None)
                .await
                .expect(200);
            assert_eq!(shown[0]["membership"]["status"], json!("active"), "{way}");
        }
        // Without a pending invitation there is nothing to accept.
        as_self(&w.gw, &persona.token, "POST", &format!("/orgs/{}/accept", w.volta))
            .await
            .expect(404);
    }
    let entries =
        w.gw.admin("GET", "/audit-logs?limit=100", None)
            .await
            .expect(200)
            .to_string();
    assert!(entries.contains("pending"), "the acceptance is audited: {entries}");
}

/// HD32: a user without another organization becomes a member at once. The organization can administer the user from
/// their next login on.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn hd32_a_user_without_organization_becomes_a_member_at_once() {
    let w = World::start(Engine::Sqlite).await;
    let rival = Rival::new(&w).await;
    w.gw.admin(
        "PUT",
        &format!("/users/{}", w.outsider.user_id),
        Some(json!({"kyc": true})),
    )
    .await
    .expect(200);
    rival.add_member(w.outsider.did).await;
    let links = format!("/users/{}/linked-addresses", w.outsider.user_id);
    rival.as_admin("GET", &links, None).await.expect(403);
    let params = json!([w.outsider.address(), "latest"]);
    assert_eq!(
        w.gw.rpc(&w.outsider.token, "eth_getBalance", params).await.status,
        200,
        "the membership is in force at once"
    );
    w.gw.login(w.outsider.did).await;
    rival.as_admin("GET", &links, None).await.expect(200);
}

/// RT17 (HD40): the response does not show whether another organization registered an address.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn rt17_by_address_answers_alike_for_foreign_and_unknown() {
    let w = World::start(Engine::Sqlite).await;
    let rival = Rival::new(&w).await;
    let foreign = rival
        .as_admin("GET", &format!("/contracts/by-address/{}", w.erc20), None)
        .await;
    let unknown = rival
        .as_admin(
            "GET",
            "/contracts/by-address/0x00000000000000000000000000000000000000aa",
            None,
        )
        .await;
    assert_eq!(
        (foreign.status, without_times(&foreign.body)),
        (unknown.status, without_times(&unknown.body))
    );
    assert_eq!(foreign.status, 404);
}

/// RT26 (HD40): whether a rule with a literal address is accepted does not depend on the members' wallets.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn rt26_no_rule_tells_whether_an_address_is_a_members_wallet() {
    let w = World::start(Engine::Sqlite).await;
    let grants = format!("/orgs/{}/contracts/{}/grants", w.meridian, w.erc20);
    let staff = group(&w.gw, &w.meridian, "staff", false, json!(["eth_getLogs"]), json!([])).await;
    let rule = |address: &str| {
        let transfer = "0xddf252ad1be2c89b69c2b068fc378daa952ba7f163c4a11628f55a4df523b3ef";
        json!({"group_id": staff, "event_rules": [{"topic0": transfer, "name": "Transfer",
            "param_rules": [{"index": 0, "must_be": address}]}]})
    };
    let wallet = format!("{:#x}", w.analyst.address());
    let stranger = "0x00000000000000000000000000000000000000aa";
    let with_wallet = as_meridian_admin(&w, "POST", &grants, Some(rule(&wallet))).await;
    let with_stranger = as_meridian_admin(&w, "POST", &grants, Some(rule(stranger))).await;
    assert_eq!(
        (with_wallet.status, without_times(&with_wallet.body)),
        (with_stranger.status, without_times(&with_stranger.body))
    );
    as_meridian_admin(&w, "POST", &grants, Some(rule(&format!("{:#x}", w.erc20))))
        .await
        .expect(201);
}
