//! A membership is not consent (HD32, HD40, decision 62): what an organization may do by putting a DID into a group.

use crate::{
    harness::{Answer, Engine, Gateway},
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

/// The other bank: an administrator of its own, and a group for whoever it takes in.
struct Rival<'w> {
    w: &'w World,
    token: String,
    group: String,
}

impl<'w> Rival<'w> {
    async fn of(w: &'w World) -> Self {
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

    async fn asks(&self, method: &str, path: &str, body: Option<Value>) -> Answer {
        self.w
            .gw
            .as_user(&self.token, method, &format!("/api/v1/admin{path}"), body)
            .await
    }

    /// Puts a DID into the group, as nobody but the rival wants it.
    async fn takes(&self, did: &str) -> Value {
        let body = json!({"did": did, "group_id": self.group});
        self.asks(
            "POST",
            &format!("/orgs/{}/memberships/by-did", self.w.volta),
            Some(body),
        )
        .await
        .expect(201)
    }
}

async fn meridian_asks(w: &World, method: &str, path: &str, body: Option<Value>) -> Answer {
    w.gw.as_user(&w.admin.token, method, &format!("/api/v1/admin{path}"), body)
        .await
}

async fn me(gw: &Gateway, token: &str, method: &str, path: &str) -> Answer {
    gw.as_user(token, method, &format!("/api/v1/me{path}"), None).await
}

fn ids(rows: &Value) -> Vec<&str> {
    rows.as_array()
        .unwrap()
        .iter()
        .map(|row| row["id"].as_str().unwrap())
        .collect()
}

/// RT11 (HD32): a membership made by DID reads and overwrites no note of another organization, lists no session, link or
/// view of the person, and makes no payment ambiguous.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn rt11_an_invitation_opens_nothing_of_a_person_who_belongs_elsewhere() {
    let w = World::start(Engine::Sqlite).await;
    let rival = Rival::of(&w).await;
    let ops = format!("/users/{}", w.ops.user_id);
    let note = json!({"note": "CANARY-NOTE", "metadata": {"file": "CANARY-FILE"}});
    meridian_asks(&w, "PUT", &ops, Some(note)).await.expect(200);
    let logins = async || rival.asks("GET", "/sessions", None).await.expect(200)["total"].clone();
    let before = logins().await;
    rival.takes(w.ops.did).await;

    let seen = rival.asks("GET", &ops, None).await;
    assert!(
        !seen.body.contains("CANARY"),
        "another organization's note: {}",
        seen.body
    );
    let listed = rival.asks("GET", &format!("/users?org_id={}", w.volta), None).await;
    assert!(!listed.body.contains("CANARY"), "{}", listed.body);
    let searched = rival
        .asks("GET", &format!("/users?search={:#x}", w.ops.address()), None)
        .await;
    assert!(
        !searched.body.contains(w.ops.did),
        "found by a wallet: {}",
        searched.body
    );
    rival
        .asks("PUT", &ops, Some(json!({"note": "mine", "metadata": {}})))
        .await
        .expect(200);
    let kept = meridian_asks(&w, "GET", &ops, None).await.expect(200);
    assert_eq!(
        (&kept["note"], &kept["metadata"]["file"]),
        (&json!("CANARY-NOTE"), &json!("CANARY-FILE"))
    );
    for path in [
        "/sessions",
        "/linked-addresses",
        "/rpc-urls",
        "/effective-permissions?org=volta",
    ] {
        let asked = rival.asks("GET", &format!("{ops}{path}"), None).await;
        assert_eq!(asked.status, 403, "{path}: {}", asked.body);
    }
    assert_eq!(logins().await, before, "logins of the other bank's clients");

    // One organization still: a payment needs no name.
    w.gw.send(
        &w.ops.token,
        &w.ops.key,
        Some(w.analyst.address()),
        U256::from(1),
        Bytes::new(),
    )
    .await;
    let mine = me(&w.gw, &w.ops.token, "GET", "/orgs").await.expect(200);
    assert_eq!(ids(&mine["organizations"]), [w.meridian.as_str()]);
    // And the own bank's ban is nobody's to stop.
    meridian_asks(&w, "PUT", &ops, Some(json!({"banned": true})))
        .await
        .expect(200);
    let call = json!([{"to": w.erc20, "data": "0x18160ddd"}, "latest"]);
    assert_eq!(
        w.gw.rpc(&w.ops.token, "eth_call", call).await.status,
        404,
        "banned in the one organization"
    );
    let shown = meridian_asks(&w, "GET", &ops, None).await.expect(200);
    assert_eq!(shown["banned"], json!(true));
    meridian_asks(&w, "PUT", &ops, Some(json!({"banned": false})))
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

/// RT11 (HD32): a membership that ended gives its organization's administrators nothing over the person.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn rt11_an_ended_membership_is_no_scope() {
    let w = World::start(Engine::Sqlite).await;
    let user = format!("/users/{}", w.analyst.user_id);
    meridian_asks(&w, "GET", &format!("{user}/sessions"), None)
        .await
        .expect(200);
    let ended = "UPDATE memberships SET expires_at = 1 \
                 WHERE user_id = (SELECT id FROM users WHERE external_id = 'did:test:analyst')";
    assert_eq!(w.gw.in_database(ended), 1);
    let asked =
        w.gw.as_user(&w.admin.token, "GET", &format!("/api/v1/admin{user}/sessions"), None)
            .await;
    assert_eq!(asked.status, 403, "{}", asked.body);
}

/// RT24 (HD40): what an administrator is answered about a DID is the same whether it is new, belongs to nobody, or banks
/// elsewhere.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn rt24_no_answer_tells_whether_a_did_banks_elsewhere() {
    let w = World::start(Engine::Sqlite).await;
    let rival = Rival::of(&w).await;
    let mut told: Vec<(String, Vec<(u16, String)>)> = Vec::new();
    for did in ["did:test:nobody-yet", w.outsider.did, w.analyst.did] {
        let made = rival.takes(did).await;
        let (user, membership) = (
            made["user_id"].as_str().unwrap(),
            made["membership"]["id"].as_str().unwrap(),
        );
        let path = format!("/users/{user}");
        let mut answers = vec![(201, made.to_string())];
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
            let said = rival.asks(method, &path, body).await;
            answers.push((said.status, said.body));
        }
        // Nothing but the names themselves and the moments differs.
        for (_, text) in &mut answers {
            *text = text
                .replace(user, "USER")
                .replace(membership, "MEMBERSHIP")
                .replace(did, "DID");
            *text = without_moments(text);
        }
        told.push((did.to_owned(), answers));
    }
    for (did, answers) in &told[1..] {
        for (n, (said, first)) in answers.iter().zip(&told[0].1).enumerate() {
            assert_eq!(said, first, "answer {n} about {did}");
        }
    }
}

/// `2026-11-22T15:45:42.123456Z` and the like, and correlation ids, taken out.
fn without_moments(text: &str) -> String {
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

/// RT24 (HD32): an organization's ban and KYC mark bind there and nowhere else, enrolled before or after.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn rt24_a_ban_or_kyc_mark_of_one_organization_binds_there_only() {
    let w = World::start(Engine::Sqlite).await;
    let rival = Rival::of(&w).await;
    let did = "did:test:newcomer";
    // Before her bank enrols her.
    let made = rival.takes(did).await;
    let path = format!("/users/{}", made["user_id"].as_str().unwrap());
    rival
        .asks("PUT", &path, Some(json!({"banned": true})))
        .await
        .expect(200);
    let body = json!({"did": did, "group_id": w.analysts});
    meridian_asks(
        &w,
        "POST",
        &format!("/orgs/{}/memberships/by-did", w.meridian),
        Some(body),
    )
    .await
    .expect(201);
    // Verified by her bank: enough there.
    meridian_asks(&w, "PUT", &path, Some(json!({"kyc": true})))
        .await
        .expect(200);
    let token = w.gw.login(did).await;
    let block = w.gw.rpc(&token, "eth_getBlockByNumber", json!(["latest", false])).await;
    assert_eq!(block.status, 200, "she works at her bank: {}", block.body);
    let code = json!([w.erc20, "latest"]);
    // The rival's organization is shut to her, the name of it gives nothing.
    let (path, bearer) = (format!("/rpc/{}", w.volta), format!("Bearer {token}"));
    let asked = json!({"jsonrpc": "2.0", "id": 1, "method": "eth_getBalance", "params": code});
    let at_rival =
        w.gw.request("POST", &path, &[("authorization", &bearer)], Some(asked))
            .await;
    assert_eq!(at_rival.status, 404);
    // A KYC mark of the rival is none at the bank.
    rival.takes(w.unverified.did).await;
    let unverified = format!("/users/{}", w.unverified.user_id);
    rival
        .asks("PUT", &unverified, Some(json!({"kyc": true})))
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
    let sent =
        w.gw.rpc(&w.unverified.token, "eth_sendRawTransaction", json!([raw]))
            .await;
    assert_eq!(sent.status, 404, "{} {}", read.body, sent.body);
}

/// RT24 (HD32): who put a deployer's DID into a group claims nothing of what the deployer made.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn rt24_an_invitation_claims_no_contract() {
    let w = World::start(Engine::Sqlite).await;
    let rival = Rival::of(&w).await;
    // Past the gateway, by a wallet of Meridian's.
    let raw =
        w.gw.sign(&w.ops.key, None, U256::ZERO, crate::harness::init_code("Probe", &[]))
            .await;
    w.gw.node("eth_sendRawTransaction", json!([raw.1])).await;
    w.gw.mined(&w.ops.token, raw.0).await;
    let receipt = w.gw.node("eth_getTransactionReceipt", json!([raw.0])).await;
    let body = json!({"address": receipt["contractAddress"], "deployment_tx_hash": raw.0, "name": "mine"});
    let claim = format!("/orgs/{}/contracts/claim", w.volta);
    rival.takes(w.ops.did).await;
    rival.asks("POST", &claim, Some(body.clone())).await.expect(400);
    // Not after they came either: it was made before. (The node's clock runs a little ahead.)
    tokio::time::sleep(std::time::Duration::from_secs(4)).await;
    me(&w.gw, &w.ops.token, "POST", &format!("/orgs/{}/accept", w.volta))
        .await
        .expect(200);
    rival.asks("POST", &claim, Some(body.clone())).await.expect(400);
    let own = format!("/orgs/{}/contracts/claim", w.meridian);
    meridian_asks(&w, "POST", &own, Some(body)).await.expect(201);
}

/// HD32, decision 62: an invitation is accepted by the person's own act, by the first use of the organization by name, or
/// confirmed by super; or it is declined.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn hd32_an_invitation_is_accepted_by_the_persons_own_act() {
    let w = World::start(Engine::Sqlite).await;
    let rival = Rival::of(&w).await;
    let balance = json!({"jsonrpc": "2.0", "id": 1, "method": "eth_getBalance",
        "params": [w.ops.address(), "latest"]});
    let invitations = async |token: &str| {
        let found = me(&w.gw, token, "GET", "/invitations").await.expect(200);
        ids(&found["invitations"])
            .into_iter()
            .map(str::to_owned)
            .collect::<Vec<_>>()
    };
    for (persona, way) in [
        (&w.ops, "route"),
        (&w.analyst, "name"),
        (&w.unverified, "super"),
        (&w.admin, "decline"),
    ] {
        assert!(invitations(&persona.token).await.is_empty(), "{way}");
        let made = rival.takes(persona.did).await;
        assert_eq!(made["membership"]["status"], json!("pending"), "{way}");
        assert_eq!(
            invitations(&persona.token).await,
            std::slice::from_ref(&w.volta),
            "{way}"
        );
        let user = format!("/users/{}", persona.user_id);
        rival
            .asks("GET", &format!("{user}/linked-addresses"), None)
            .await
            .expect(403);
        let membership = made["membership"]["id"].as_str().unwrap();
        match way {
            "route" => drop(
                me(&w.gw, &persona.token, "POST", &format!("/orgs/{}/accept", w.volta))
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
                rival.asks("POST", &confirm, None).await.expect(403);
                w.gw.admin("POST", &confirm, None).await.expect(200);
            }
            _ => drop(
                me(&w.gw, &persona.token, "DELETE", &format!("/orgs/{}", w.volta))
                    .await
                    .expect(200),
            ),
        }
        assert!(invitations(&persona.token).await.is_empty(), "{way}");
        let listed = rival.asks("GET", &format!("{user}/linked-addresses"), None).await;
        assert_eq!(
            listed.status,
            if way == "decline" { 403 } else { 200 },
            "{way}: {}",
            listed.body
        );
        if way != "decline" {
            let shown = rival
                .asks("GET", &format!("{user}/memberships"), None)
                .await
                .expect(200);
            assert_eq!(shown[0]["membership"]["status"], json!("active"), "{way}");
        }
        // Who was not asked, or has left, accepts nothing.
        me(&w.gw, &persona.token, "POST", &format!("/orgs/{}/accept", w.volta))
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

/// HD32: who belongs to nobody else is taken in at once, and is the organization's to administer from their next login on.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn hd32_who_belongs_to_nobody_else_is_taken_in_at_once() {
    let w = World::start(Engine::Sqlite).await;
    let rival = Rival::of(&w).await;
    w.gw.admin(
        "PUT",
        &format!("/users/{}", w.outsider.user_id),
        Some(json!({"kyc": true})),
    )
    .await
    .expect(200);
    rival.takes(w.outsider.did).await;
    let links = format!("/users/{}/linked-addresses", w.outsider.user_id);
    rival.asks("GET", &links, None).await.expect(403);
    let own = json!([w.outsider.address(), "latest"]);
    assert_eq!(
        w.gw.rpc(&w.outsider.token, "eth_getBalance", own).await.status,
        200,
        "at once"
    );
    w.gw.login(w.outsider.did).await;
    rival.asks("GET", &links, None).await.expect(200);
}

/// RT17 (HD40): whether another organization registered an address is not told.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn rt17_by_address_answers_alike_for_foreign_and_unknown() {
    let w = World::start(Engine::Sqlite).await;
    let rival = Rival::of(&w).await;
    let foreign = rival
        .asks("GET", &format!("/contracts/by-address/{}", w.erc20), None)
        .await;
    let unknown = rival
        .asks(
            "GET",
            "/contracts/by-address/0x00000000000000000000000000000000000000aa",
            None,
        )
        .await;
    assert_eq!(
        (foreign.status, without_moments(&foreign.body)),
        (unknown.status, without_moments(&unknown.body))
    );
    assert_eq!(foreign.status, 404);
}

/// RT26 (HD40): a rule with a literal address is taken or refused whatever wallets the members have.
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
    let of_wallet = meridian_asks(&w, "POST", &grants, Some(rule(&wallet))).await;
    let of_stranger = meridian_asks(&w, "POST", &grants, Some(rule(stranger))).await;
    assert_eq!(
        (of_wallet.status, without_moments(&of_wallet.body)),
        (of_stranger.status, without_moments(&of_stranger.body))
    );
    meridian_asks(&w, "POST", &grants, Some(rule(&format!("{:#x}", w.erc20))))
        .await
        .expect(201);
}
