//! Attacks on the admin API (HD7, HD18, HD20, HD30, HD40), repeated as they were found.

use crate::{
    harness::{Engine, Response, key},
    world::{Persona, World, balance_of, group, member},
};
use alloy_primitives::{Address, Bytes, U256, hex};
use serde_json::{Value, json};
use std::time::Duration;
use tokio::{
    io::{AsyncReadExt, AsyncWriteExt},
    net::TcpStream,
};

impl World {
    async fn group_id(&self, slug: &str) -> String {
        let groups = self
            .gw
            .admin("GET", &format!("/orgs/{}/groups?search={slug}", self.meridian), None)
            .await;
        groups.expect(200)["data"][0]["group"]["id"]
            .as_str()
            .unwrap()
            .to_owned()
    }

    /// Adds a DID to one of Meridian's groups and returns the user's id.
    async fn add_member(&self, did: &str, group: &str) -> String {
        let by_did = format!("/orgs/{}/memberships/by-did", self.meridian);
        let created = self
            .gw
            .admin("POST", &by_did, Some(json!({"did": did, "group_id": group})))
            .await
            .expect(201);
        created["user_id"].as_str().unwrap().to_owned()
    }
}

/// The body without the members that may differ between two requests.
fn comparable_body(answer: &Response) -> Value {
    let mut body = answer.json();
    if let Some(members) = body.as_object_mut() {
        members.remove("correlation_id");
    }
    if let Some(explanation) = body.get_mut("explanation") {
        // These describe the membership of the user and its grants.
        explanation["groups"] = Value::Null;
        explanation["targets"] = Value::Null;
    }
    body
}

/// Code that discloses the caller, the transaction's origin and the caller's balance, inverted so that no address mask
/// matches them: in an event and as its return or revert data.
fn disclosing_code(fails: bool) -> Vec<u8> {
    let mut code = hex::decode("33195f52321960205233316040526060").unwrap();
    code.extend(hex::decode("5fa060605f").unwrap());
    code.push(if fails { 0xfd } else { 0xf3 });
    code
}

/// Init code that deploys `code`.
fn init_code_for(code: &[u8]) -> Bytes {
    let mut init = vec![
        0x60,
        u8::try_from(code.len()).unwrap(),
        0x80,
        0x60,
        0x09,
        0x5f,
        0x39,
        0x5f,
        0xf3,
    ];
    init.extend(code);
    init.into()
}

/// HD7: an administrator can deploy the code that a dry-run calls, and code sees its caller. A dry-run therefore runs
/// from the zero address: the response is the same for each member, with any wallets or none.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn hd7_a_dry_run_tells_code_nothing_of_the_member() {
    let w = World::start(Engine::Sqlite).await;
    let ops = w.group_id("ops").await;
    let second = member(&w.gw, &w.meridian, &ops, "did:test:second", 6, true).await;
    let walletless = w.add_member("did:test:walletless", &ops).await;
    w.gw.admin("PUT", &format!("/users/{walletless}"), Some(json!({"kyc": true})))
        .await
        .expect(200);
    w.gw.login("did:test:walletless").await;
    let mut calls = Vec::new();
    for fails in [false, true] {
        let spy =
            w.gw.deploy(&w.ops.token, &w.ops.key, init_code_for(&disclosing_code(fails)))
                .await;
        let dynamic_payload = format!("/orgs/{}/contracts/{spy}/events-allow-dynamic-payload", w.meridian);
        w.gw.admin(
            "PUT",
            &dynamic_payload,
            Some(json!({"events_allow_dynamic_payload": true})),
        )
        .await
        .expect(200);
        let grants = format!("/orgs/{}/contracts/{spy}/grants", w.meridian);
        w.gw.admin("POST", &grants, Some(json!({"group_id": ops})))
            .await
            .expect(201);
        calls.push(json!([{"to": spy, "data": "0x01"}]));
    }
    // Init code runs, too.
    for fails in [false, true] {
        calls.push(json!([{"data": hex::encode_prefixed(disclosing_code(fails))}]));
    }
    let path = format!("/orgs/{}/dry-run", w.meridian);
    let dry_run = async |did: &str, method: &str, params: &Value| {
        w.as_admin(
            "POST",
            &path,
            Some(json!({"user_did": did, "rpc": {"method": method, "params": params}})),
        )
        .await
    };
    for params in &calls {
        for method in ["eth_sendTransaction", "eth_call"] {
            let first = dry_run(w.ops.did, method, params).await;
            assert_eq!(first.status, 200, "{method} {params}: {}", first.body);
            for did in [second.did, "did:test:walletless"] {
                let response = dry_run(did, method, params).await;
                assert_eq!(
                    (first.status, comparable_body(&first)),
                    (response.status, comparable_body(&response)),
                    "{method} {params}"
                );
            }
            for wallet in [&w.ops, &second] {
                let masked: Vec<u8> = wallet.address().iter().map(|byte| !byte).collect();
                assert!(
                    !first.body.contains(&hex::encode(masked)),
                    "{method} {params}: {}",
                    first.body
                );
            }
        }
    }
    // In the member's own call the code sees the member's address.
    let call = json!([{"from": w.ops.address(), "to": calls[0][0]["to"], "data": "0x01"}, "latest"]);
    let result = w.gw.result(&w.ops.token, "eth_call", call).await;
    let masked: Vec<u8> = w.ops.address().iter().map(|byte| !byte).collect();
    assert!(
        result.as_str().unwrap().contains(&hex::encode(masked)),
        "the attack works on code: {result}"
    );

    // A member's signed transaction runs from the zero address, too. One that needs the signer's funds is refused.
    let spy: Address = calls[0][0]["to"].as_str().unwrap().parse().unwrap();
    let mut bodies = Vec::new();
    for key in [&w.ops.key, &second.key] {
        let (_, raw) = w.gw.sign(key, Some(spy), U256::ZERO, Bytes::from_static(&[1])).await;
        let answer = dry_run(w.ops.did, "eth_sendRawTransaction", &json!([raw])).await;
        assert_eq!(answer.status, 200, "{}", answer.body);
        bodies.push(comparable_body(&answer));
        let (_, raw) = w.gw.sign(key, Some(spy), U256::from(1), Bytes::from_static(&[1])).await;
        dry_run(w.ops.did, "eth_sendRawTransaction", &json!([raw]))
            .await
            .expect(400);
    }
    assert_eq!(bodies[0], bodies[1], "the response does not depend on the signer");
}

/// C4: only the platform administrator can end an administrator's rights, by any route. The organization's
/// administrators can still write notes about a fellow administrator.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn c4_no_administrator_takes_a_fellows_powers() {
    let w = World::start(Engine::Sqlite).await;
    let (admins, methods) = (w.group_id("admins").await, json!(["eth_call"]));
    let claimed = group(&w.gw, &w.meridian, "claimed", false, methods.clone(), json!(["admin"])).await;
    let readers = group(&w.gw, &w.meridian, "readers", false, methods, json!([])).await;
    let flag = json!({"is_org_readonly_admin": true});
    w.gw.admin("PUT", &format!("/orgs/{}/groups/{readers}", w.meridian), Some(flag))
        .await
        .expect(200);
    for (did, group) in [
        ("did:test:fellow", &admins),
        ("did:test:claimed", &claimed),
        ("did:test:reader", &readers),
    ] {
        let user_id = w.add_member(did, group).await;
        let user = format!("/users/{user_id}");
        let token = w.gw.login(did).await;
        let in_org = format!("{user}?org_id={}", w.meridian);
        w.gw.admin("PUT", &in_org, Some(json!({"kyc": true}))).await.expect(200);
        for path in [&user, &in_org] {
            w.as_admin("PUT", path, Some(json!({"banned": true}))).await.expect(403);
            w.as_admin("PUT", path, Some(json!({"kyc": false}))).await.expect(403);
        }
        w.as_admin("DELETE", &user, None).await.expect(403);
        let memberships = w
            .as_admin("GET", &format!("{user}/memberships"), None)
            .await
            .expect(200);
        let membership = memberships[0]["membership"]["id"].as_str().unwrap();
        w.as_admin("DELETE", &format!("{user}/memberships/{membership}"), None)
            .await
            .expect(403);
        let by_did = format!("/orgs/{}/memberships/by-did", w.meridian);
        w.as_admin("DELETE", &by_did, Some(json!({"did": did, "group_id": group})))
            .await
            .expect(403);
        let listed =
            w.gw.as_user(&token, "GET", "/api/v1/admin/orgs", None)
                .await
                .expect(200);
        assert_eq!(
            listed["data"][0]["id"],
            json!(w.meridian),
            "{did} is still an administrator"
        );
        // Updates that change no right are accepted, also if they repeat the current marks.
        let update = json!({"note": "on leave", "banned": false, "kyc": true});
        assert_eq!(
            w.as_admin("PUT", &user, Some(update)).await.expect(200)["note"],
            "on leave"
        );
        w.gw.admin("PUT", &in_org, Some(json!({"banned": true})))
            .await
            .expect(200);
        w.as_admin("PUT", &user, Some(json!({"banned": false})))
            .await
            .expect(403);
    }
    // They cannot ban themselves either. Plain members they can ban.
    w.as_admin(
        "PUT",
        &format!("/users/{}", w.admin.user_id),
        Some(json!({"banned": true})),
    )
    .await
    .expect(403);
    w.as_admin(
        "PUT",
        &format!("/users/{}", w.analyst.user_id),
        Some(json!({"banned": true})),
    )
    .await
    .expect(200);

    // A group that gives a member administrator rights cannot be deleted or lose its flag.
    let groups = format!("/orgs/{}/groups", w.meridian);
    let (path, unflagged) = (format!("{groups}/{readers}"), json!({"is_org_readonly_admin": false}));
    w.as_admin("DELETE", &path, None).await.expect(403);
    w.as_admin("PUT", &path, Some(unflagged.clone())).await.expect(403);
    w.as_admin(
        "POST",
        &format!("{groups}/batch-delete"),
        Some(json!({"group_ids": [readers]})),
    )
    .await
    .expect(403);
    assert_eq!(
        w.as_admin("PUT", &path, Some(json!({"description": "auditors"})))
            .await
            .expect(200)["description"],
        "auditors"
    );
    let empty = group(&w.gw, &w.meridian, "empty", false, json!(["eth_call"]), json!([])).await;
    let path = format!("{groups}/{empty}");
    w.as_admin("PUT", &path, Some(json!({"is_org_readonly_admin": true})))
        .await
        .expect(200);
    w.as_admin("PUT", &path, Some(unflagged)).await.expect(200);
    w.as_admin("PUT", &path, Some(json!({"is_org_readonly_admin": true})))
        .await
        .expect(200);
    w.as_admin("DELETE", &path, None).await.expect(200);

    // The role filter `member` does not list read-only administrators.
    let members = w
        .as_admin("GET", "/users?role=member", None)
        .await
        .expect(200)
        .to_string();
    assert!(
        members.contains(w.ops.did) && !members.contains("did:test:reader"),
        "{members}"
    );
}

/// HD40: only the platform administrator changes slugs. Otherwise an administrator could test whether another
/// organization uses a slug.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn hd40_a_slug_tells_no_other_organization() {
    let w = World::start(Engine::Sqlite).await;
    let path = format!("/orgs/{}", w.meridian);
    let put = async |body: Value| w.as_admin("PUT", &path, Some(body)).await;
    let (taken, free) = (
        put(json!({"slug": "volta"})).await,
        put(json!({"slug": "nobody"})).await,
    );
    assert_eq!(taken.expect(403)["error"], free.expect(403)["error"]);
    // An update may repeat the current slug.
    put(json!({"slug": "meridian", "name": "Meridian"})).await.expect(200);
    assert_eq!(
        w.gw.admin("PUT", &path, Some(json!({"slug": "volta"}))).await.status,
        409
    );
    w.gw.admin("PUT", &path, Some(json!({"slug": "meridian-bank"})))
        .await
        .expect(200);
}

/// HD18, HD40: no row number depends on the activity of other organizations.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn hd40_rows_count_nothing_of_others() {
    let w = World::start(Engine::Sqlite).await;
    let groups = format!("/orgs/{}/groups", w.meridian);
    let create_group = async |slug: &str| {
        w.as_admin("POST", &groups, Some(json!({"name": slug, "slug": slug})))
            .await
            .expect(201);
    };
    let call = async |caller: &Persona| w.gw.rpc(&caller.token, "eth_maxPriorityFeePerGas", json!([])).await;
    create_group("one").await;
    call(&w.ops).await;
    for n in 0..5 {
        call(&w.trader).await;
        let slug = format!("volta-{n}");
        let body = json!({"name": slug, "slug": slug});
        w.gw.admin("POST", &format!("/orgs/{}/groups", w.volta), Some(body))
            .await
            .expect(201);
    }
    create_group("two").await;
    call(&w.ops).await;
    let audit = async || w.as_admin("GET", "/audit-logs?limit=1000", None).await.expect(200);
    let ids = |list: &Value| {
        list.as_array()
            .unwrap()
            .iter()
            .map(|row| row["id"].as_i64().unwrap())
            .collect::<Vec<_>>()
    };
    let unsealed = audit().await;
    let expected: Vec<i64> = (1..=i64::try_from(unsealed.as_array().unwrap().len()).unwrap())
        .rev()
        .collect();
    assert_eq!(
        ids(&unsealed),
        expected,
        "the organization's own sequence, without gaps"
    );
    let platform_entries = w.gw.admin("GET", "/audit-logs?limit=1000", None).await.expect(200);
    assert!(
        ids(&platform_entries).is_sorted_by(|newer, older| newer > older),
        "the platform administrator reads the platform's sequence"
    );
    assert!(platform_entries.as_array().unwrap().len() > expected.len());

    // Sealing does not change the ids of rows.
    let mut logs = Value::Null;
    for _ in 0..1200 {
        logs = w
            .as_admin(
                "GET",
                &format!("/logs?external_id={}&method=eth_maxPriorityFeePerGas", w.ops.did),
                None,
            )
            .await
            .expect(200);
        let sealed = audit()
            .await
            .as_array()
            .unwrap()
            .iter()
            .all(|row| row["entry_hash"].is_string());
        if sealed && logs["total"].as_u64() >= Some(2) {
            break;
        }
        tokio::time::sleep(Duration::from_millis(50)).await;
    }
    assert_eq!(
        (ids(&audit().await), &logs["total"]),
        (expected, &json!(2)),
        "the rows are sealed and keep their ids"
    );
    let platform_rows = format!("/logs?external_id={}&method=eth_maxPriorityFeePerGas", w.ops.did);
    let platform_rows = w.gw.admin("GET", &platform_rows, None).await.expect(200);
    for (row, platform_row) in logs["data"]
        .as_array()
        .unwrap()
        .iter()
        .zip(platform_rows["data"].as_array().unwrap())
    {
        assert_eq!(row["entry_hash"], platform_row["entry_hash"]);
        assert!(
            row.get("policy_epoch").is_none() && platform_row["policy_epoch"].is_u64(),
            "{row} {platform_row}"
        );
        assert_ne!(row["id"], platform_row["id"]);
        let first = &row["entry_hash"].as_str().unwrap()[..13];
        assert_eq!(
            row["id"].as_i64(),
            i64::from_str_radix(first, 16).ok(),
            "the id depends on the entry's hash only"
        );
    }
}

/// HD30, HD40, B15: neither the access log nor a test request shows that an address is another organization's contract.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn hd30_a_foreign_contract_reads_as_an_unregistered_one() {
    let w = World::start(Engine::Sqlite).await;
    let foreign =
        w.gw.deploy(&w.ops.token, &w.ops.key, init_code_for(&disclosing_code(false)))
            .await;
    w.gw.admin("DELETE", &format!("/orgs/{}/contracts/{foreign}", w.meridian), None)
        .await
        .expect(200);
    let body = json!({"address": foreign, "name": "theirs"});
    w.gw.admin("POST", &format!("/orgs/{}/contracts", w.volta), Some(body))
        .await
        .expect(201);
    let unregistered = Address::repeat_byte(0x77);
    let mut errors = Vec::new();
    for target in [foreign, unregistered] {
        let call = json!([{"to": target, "data": balance_of(unregistered)}, "latest"]);
        w.gw.rpc(&w.ops.token, "eth_call", call.clone()).await;
        let body = json!({"jwt_token": w.ops.token, "method": "eth_call", "org_id": w.meridian, "params": call});
        let response = w
            .as_admin("POST", "/test-request", Some(body.clone()))
            .await
            .expect(403);
        errors.push(response["error"].clone());
        let platform_view = w.gw.admin("POST", "/test-request", Some(body)).await.expect(403);
        let expected = if target == foreign {
            "(foreign_org)"
        } else {
            "(unregistered)"
        };
        assert!(
            platform_view["error"].as_str().unwrap().ends_with(expected),
            "the platform administrator sees the exact reason: {platform_view}"
        );
    }
    assert_eq!(errors[0], errors[1]);
    let path = |reason: &str| format!("/logs?external_id={}&method=eth_call{reason}", w.ops.did);
    let rows = async |reason: &str| w.as_admin("GET", &path(reason), None).await.expect(200);
    let mut logs = Value::Null;
    for _ in 0..200 {
        logs = rows("").await;
        // Two calls and their test requests.
        if logs["total"].as_u64() >= Some(6) {
            break;
        }
        tokio::time::sleep(Duration::from_millis(50)).await;
    }
    let reasons: Vec<_> = logs["data"]
        .as_array()
        .unwrap()
        .iter()
        .map(|row| row["denial_reason"].clone())
        .collect();
    assert!(
        reasons.len() >= 6 && reasons.iter().all(|reason| reason == "unregistered"),
        "{logs}"
    );
    assert_eq!(rows("&denial_reason=unregistered").await["total"], logs["total"]);
    for reason in [
        "&denial_reason=foreign_org",
        "&denial_reason=cross_org",
        "&denial_reason=org_mismatch",
    ] {
        assert_eq!(rows(reason).await["total"], 0, "{reason}");
    }
    let platform_view =
        w.gw.admin("GET", &path("&denial_reason=foreign_org"), None)
            .await
            .expect(200);
    assert_eq!(
        platform_view["total"], 3,
        "the platform administrator sees the exact reason: {platform_view}"
    );
}

/// A request of which only the first half of the body was sent.
struct HalfSent {
    stream: TcpStream,
    rest: String,
}

impl HalfSent {
    async fn new(w: &World, token: &str, method: &str, path: &str, body: &Value) -> Self {
        let mut stream = TcpStream::connect(w.gw.url.trim_start_matches("http://"))
            .await
            .unwrap();
        let body = body.to_string();
        let (first, rest) = body.split_at(body.len() / 2);
        let head = format!(
            "{method} /api/v1/admin{path} HTTP/1.1\r\nhost: localhost\r\nauthorization: Bearer {token}\r\n\
             content-type: application/json\r\ncontent-length: {}\r\nconnection: close\r\n\r\n{first}",
            body.len()
        );
        stream.write_all(head.as_bytes()).await.unwrap();
        Self {
            stream,
            rest: rest.to_owned(),
        }
    }

    /// Sends the rest of the body and returns the response status.
    async fn finish(mut self) -> u16 {
        self.stream.write_all(self.rest.as_bytes()).await.unwrap();
        let mut answer = String::new();
        self.stream.read_to_string(&mut answer).await.unwrap();
        answer.split(' ').nth(1).unwrap().parse().unwrap()
    }
}

/// HD20, 80 §2 rule 3: a request is authorized when its body is complete. A request that an administrator began before
/// they were banned, removed or logged out has no effect.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn hd20_a_half_sent_mutation_ends_with_its_senders_rights() {
    let w = World::start(Engine::Sqlite).await;
    let admins = w.group_id("admins").await;
    let groups = format!("/orgs/{}/groups", w.meridian);
    let user = format!("/users/{}", w.analyst.user_id);
    let call = json!({"user_external_id": w.analyst.did, "org_slug": "meridian", "method": "eth_call"});
    for event in ["banned", "removed", "logged out", "stays"] {
        let did = format!("did:test:half-{}", event.replace(' ', "-"));
        let id = w.add_member(&did, &admins).await;
        let token = w.gw.login(&did).await;
        let slug = json!({"name": event, "slug": event.replace(' ', "-")});
        let requests = vec![
            HalfSent::new(&w, &token, "POST", &groups, &slug).await,
            HalfSent::new(&w, &token, "PUT", &user, &json!({"note": event})).await,
            HalfSent::new(&w, &token, "POST", "/access/check", &call).await,
        ];
        // The gateway has accepted the requests and waits for the rest of their bodies.
        tokio::time::sleep(Duration::from_millis(300)).await;
        match event {
            "banned" => drop(
                w.gw.admin("PUT", &format!("/users/{id}"), Some(json!({"banned": true})))
                    .await
                    .expect(200),
            ),
            "removed" => {
                let by_did = format!("/orgs/{}/memberships/by-did", w.meridian);
                let body = json!({"did": did, "group_id": admins});
                w.gw.admin("DELETE", &by_did, Some(body)).await.expect(200);
            }
            "logged out" => drop(
                w.gw.admin("DELETE", &format!("/users/{id}/sessions"), None)
                    .await
                    .expect(200),
            ),
            _ => {}
        }
        for request in requests {
            let status = request.finish().await;
            let expected: &[u16] = if event == "stays" { &[200, 201] } else { &[401, 403] };
            assert!(expected.contains(&status), "{event}: {status}");
        }
    }
    let listed = w.gw.admin("GET", &groups, None).await.expect(200).to_string();
    assert!(
        listed.contains("\"stays\"") && !listed.contains("banned") && !listed.contains("removed"),
        "{listed}"
    );
    assert!(!listed.contains("logged-out"), "{listed}");
    assert_eq!(w.as_admin("GET", &user, None).await.expect(200)["note"], "stays");
}

/// HD40: links of hidden wallets do not show an administrator a member's activity in other organizations.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn hd40_links_tell_of_no_activity_elsewhere() {
    let w = World::start(Engine::Sqlite).await;
    let links = format!("/users/{}/linked-addresses", w.trader.user_id);
    // The trader is a member of both banks and has linked a wallet.
    w.add_member(w.trader.did, &w.analysts).await;
    w.gw.login(w.trader.did).await;
    let list_links = async || w.as_admin("GET", &links, None).await.expect(200)["addresses"].clone();
    let before = list_links().await;
    assert_eq!(before.as_array().unwrap().len(), 1, "{before}");
    let row = &before[0];
    assert_eq!(
        (&row["address"], &row["link_type"]),
        (&json!("[PRIVATE]"), &json!("user"))
    );
    for field in ["verified_at", "created_at"] {
        let text = row[field].as_str().unwrap();
        assert!(
            text.contains("T00:00:00"),
            "the time is rounded to the day: {field} {text}"
        );
    }
    // A send in the other bank links its sender address.
    let (hash, raw) =
        w.gw.sign(&key(6), Some(Address::repeat_byte(0x77)), U256::from(1), Bytes::new())
            .await;
    let body = json!({"jsonrpc": "2.0", "id": 1, "method": "eth_sendRawTransaction", "params": [raw]});
    let sent =
        w.gw.as_user(&w.trader.token, "POST", &format!("/rpc/{}", w.volta), Some(body))
            .await
            .expect(200);
    assert_eq!(sent["result"], json!(hash), "{sent}");
    let mut platform_rows = Value::Null;
    for _ in 0..100 {
        platform_rows = w.gw.admin("GET", &links, None).await.expect(200)["addresses"].clone();
        if platform_rows.as_array().unwrap().len() == 2 {
            break;
        }
        tokio::time::sleep(Duration::from_millis(50)).await;
    }
    assert!(
        platform_rows.to_string().contains("\"system\""),
        "the platform administrator sees the link: {platform_rows}"
    );
    assert_eq!(list_links().await, before);
}

/// The fields that an administrator can write are limited in size, and so is a page of a list.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn records_and_pages_are_bounded() {
    let w = World::start(Engine::Sqlite).await;
    let big = json!({"k": "x".repeat(16 * 1024)});
    let (user, contract) = (
        format!("/users/{}", w.analyst.user_id),
        format!("/orgs/{}/contracts/{}", w.meridian, w.erc20),
    );
    let access = format!("/orgs/{}/groups/{}/access", w.meridian, w.analysts);
    for (path, body) in [
        (user.clone(), json!({"metadata": big})),
        (contract, json!({"metadata": big})),
        (format!("/orgs/{}", w.meridian), json!({"settings": big})),
        (
            access.clone(),
            json!({"allowed_methods": ["eth_call"], "rpc_api_key": "k".repeat(5000)}),
        ),
        (
            access.clone(),
            json!({"allowed_methods": ["eth_call"], "rpc_api_key": "a\r\nX-Other: b"}),
        ),
        (
            access.clone(),
            json!({"allowed_methods": ["eth_call"], "rpc_api_key": "a\u{0}b"}),
        ),
    ] {
        for answer in [
            w.as_admin("PUT", &path, Some(body.clone())).await,
            w.gw.admin("PUT", &path, Some(body)).await,
        ] {
            assert_eq!(answer.status, 400, "{path}: {}", answer.body);
        }
    }
    // A page of large records has fewer rows; the total does not change.
    let full = json!({"k": "x".repeat(15 * 1024)});
    for n in 0..220 {
        let body = json!({"metadata": full, "note": n.to_string()});
        w.as_admin("PUT", &user, Some(body)).await.expect(200);
    }
    let page = w
        .as_admin("GET", "/audit-logs?limit=1000&resource_type=user", None)
        .await;
    let (rows, total) = (
        page.expect(200).as_array().unwrap().len(),
        page.headers["x-total-count"].to_str().unwrap(),
    );
    assert!(page.body.len() < 5 * 1024 * 1024, "{}", page.body.len());
    assert!(
        rows > 100 && u64::try_from(rows).unwrap() < total.parse().unwrap(),
        "{rows} of {total}"
    );
    let rest = w
        .as_admin(
            "GET",
            &format!("/audit-logs?limit=1000&resource_type=user&offset={rows}"),
            None,
        )
        .await;
    assert_eq!(
        rows + rest.expect(200).as_array().unwrap().len(),
        total.parse::<usize>().unwrap()
    );
}

/// C4, spec/80 §2: a read-only administrator of one organization who administers another one can change nothing in the
/// first, even for a user who is a member of both.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn c4_powers_in_one_organization_change_nothing_in_another() {
    let w = World::start(Engine::Sqlite).await;
    // The trader of Volta is a member of Meridian, too, and created a URL there.
    w.add_member(w.trader.did, &w.analysts).await;
    let request = json!({"org_id": w.meridian, "scope": "all"});
    let trader = w.gw.login(w.trader.did).await;
    let url =
        w.gw.as_user(&trader, "POST", "/api/v1/me/rpc-urls", Some(request))
            .await
            .expect(201);
    let readers = group(&w.gw, &w.meridian, "readers", false, json!(["eth_call"]), json!([])).await;
    let flag = json!({"is_org_readonly_admin": true});
    w.gw.admin("PUT", &format!("/orgs/{}/groups/{readers}", w.meridian), Some(flag))
        .await
        .expect(200);
    let heads = group(&w.gw, &w.volta, "heads", true, json!(["eth_chainId"]), json!([])).await;
    let by_did = format!("/orgs/{}/memberships/by-did", w.volta);
    let both = json!({"did": "did:test:both", "group_id": heads});
    w.gw.admin("POST", &by_did, Some(both)).await.expect(201);
    w.add_member("did:test:both", &readers).await;
    let both = w.gw.login("did:test:both").await;
    let path = format!("/api/v1/admin/users/{}/rpc-urls", w.trader.user_id);
    let listed = w.gw.as_user(&both, "GET", &path, None).await.expect(200);
    assert_eq!(listed["data"][0]["id"], url["id"], "{listed}");
    let revoked =
        w.gw.as_user(
            &both,
            "DELETE",
            &format!("{path}/{}", url["id"].as_str().unwrap()),
            None,
        )
        .await;
    assert_eq!(
        revoked.expect(403)["error"],
        "mutating actions are restricted for read-only admins"
    );
}
