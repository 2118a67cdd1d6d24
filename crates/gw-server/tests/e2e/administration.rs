//! Attacks on the administration (HD7, HD18, HD20, HD30, HD40), each as it was carried out.

use crate::{
    harness::{Answer, Engine, key},
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
    async fn asks(&self, method: &str, path: &str, body: Option<Value>) -> Answer {
        self.gw
            .as_user(&self.admin.token, method, &format!("/api/v1/admin{path}"), body)
            .await
    }

    async fn group_named(&self, slug: &str) -> String {
        let groups = self
            .gw
            .admin("GET", &format!("/orgs/{}/groups?search={slug}", self.meridian), None)
            .await;
        groups.expect(200)["data"][0]["group"]["id"]
            .as_str()
            .unwrap()
            .to_owned()
    }

    /// Somebody new in one of Meridian's groups.
    async fn joins(&self, did: &str, group: &str) -> String {
        let by_did = format!("/orgs/{}/memberships/by-did", self.meridian);
        let made = self
            .gw
            .admin("POST", &by_did, Some(json!({"did": did, "group_id": group})))
            .await
            .expect(201);
        made["user_id"].as_str().unwrap().to_owned()
    }
}

/// The body without what differs between two requests.
fn same(answer: &Answer) -> Value {
    let mut body = answer.json();
    if let Some(members) = body.as_object_mut() {
        members.remove("correlation_id");
    }
    if let Some(explanation) = body.get_mut("explanation") {
        // Whose membership it is, and what it holds.
        explanation["groups"] = Value::Null;
        explanation["targets"] = Value::Null;
    }
    body
}

/// Code that prints, past every mask for addresses, who called it, who began the transaction, and what the caller holds:
/// in an event, and as its outcome.
fn telltale(fails: bool) -> Vec<u8> {
    let mut code = hex::decode("33195f52321960205233316040526060").unwrap();
    code.extend(hex::decode("5fa060605f").unwrap());
    code.push(if fails { 0xfd } else { 0xf3 });
    code
}

/// Init code that makes a contract of it.
fn making(code: &[u8]) -> Bytes {
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

/// HD7: the code that a dry-run calls is the administrator's own and sees its caller. It runs from nobody's address:
/// the answer is the same for every member, whatever wallets they have, and for one without any.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn hd7_a_dry_run_tells_code_nothing_of_the_member() {
    let w = World::start(Engine::Sqlite).await;
    let ops = w.group_named("ops").await;
    let second = member(&w.gw, &w.meridian, &ops, "did:test:second", 6, true).await;
    let walletless = w.joins("did:test:walletless", &ops).await;
    w.gw.admin("PUT", &format!("/users/{walletless}"), Some(json!({"kyc": true})))
        .await
        .expect(200);
    w.gw.login("did:test:walletless").await;
    let mut called = Vec::new();
    for fails in [false, true] {
        let spy = w.gw.deploy(&w.ops.token, &w.ops.key, making(&telltale(fails))).await;
        let open = format!("/orgs/{}/contracts/{spy}/events-allow-dynamic-payload", w.meridian);
        w.gw.admin("PUT", &open, Some(json!({"events_allow_dynamic_payload": true})))
            .await
            .expect(200);
        let grants = format!("/orgs/{}/contracts/{spy}/grants", w.meridian);
        w.gw.admin("POST", &grants, Some(json!({"group_id": ops})))
            .await
            .expect(201);
        called.push(json!([{"to": spy, "data": "0x01"}]));
    }
    // The init code itself is code that runs.
    for fails in [false, true] {
        called.push(json!([{"data": hex::encode_prefixed(telltale(fails))}]));
    }
    let path = format!("/orgs/{}/dry-run", w.meridian);
    let dry = async |did: &str, method: &str, params: &Value| {
        w.asks(
            "POST",
            &path,
            Some(json!({"user_did": did, "rpc": {"method": method, "params": params}})),
        )
        .await
    };
    for params in &called {
        for method in ["eth_sendTransaction", "eth_call"] {
            let one = dry(w.ops.did, method, params).await;
            assert_eq!(one.status, 200, "{method} {params}: {}", one.body);
            for other in [second.did, "did:test:walletless"] {
                let other = dry(other, method, params).await;
                assert_eq!(
                    (one.status, same(&one)),
                    (other.status, same(&other)),
                    "{method} {params}"
                );
            }
            for wallet in [&w.ops, &second] {
                let masked: Vec<u8> = wallet.address().iter().map(|byte| !byte).collect();
                assert!(
                    !one.body.contains(&hex::encode(masked)),
                    "{method} {params}: {}",
                    one.body
                );
            }
        }
    }
    // The member themself runs it as themself: what is hidden is the administrator's view.
    let own = json!([{"from": w.ops.address(), "to": called[0][0]["to"], "data": "0x01"}, "latest"]);
    let seen = w.gw.result(&w.ops.token, "eth_call", own).await;
    let masked: Vec<u8> = w.ops.address().iter().map(|byte| !byte).collect();
    assert!(
        seen.as_str().unwrap().contains(&hex::encode(masked)),
        "the attack works on code: {seen}"
    );

    // A signed transaction of the member's runs so too; what needs the signer's funds is not answered.
    let spy: Address = called[0][0]["to"].as_str().unwrap().parse().unwrap();
    let mut said = Vec::new();
    for key in [&w.ops.key, &second.key] {
        let (_, raw) = w.gw.sign(key, Some(spy), U256::ZERO, Bytes::from_static(&[1])).await;
        let answer = dry(w.ops.did, "eth_sendRawTransaction", &json!([raw])).await;
        assert_eq!(answer.status, 200, "{}", answer.body);
        said.push(same(&answer));
        let (_, raw) = w.gw.sign(key, Some(spy), U256::from(1), Bytes::from_static(&[1])).await;
        dry(w.ops.did, "eth_sendRawTransaction", &json!([raw]))
            .await
            .expect(400);
    }
    assert_eq!(said[0], said[1], "whoever signed it");
}

/// C4: an administrator's powers end by super's act only, in whatever way they would be taken; what is noted of
/// them stays the organization's.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn c4_no_administrator_takes_a_fellows_powers() {
    let w = World::start(Engine::Sqlite).await;
    let (admins, methods) = (w.group_named("admins").await, json!(["eth_call"]));
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
        let fellow = w.joins(did, group).await;
        let user = format!("/users/{fellow}");
        let token = w.gw.login(did).await;
        let in_org = format!("{user}?org_id={}", w.meridian);
        w.gw.admin("PUT", &in_org, Some(json!({"kyc": true}))).await.expect(200);
        for path in [&user, &in_org] {
            w.asks("PUT", path, Some(json!({"banned": true}))).await.expect(403);
            w.asks("PUT", path, Some(json!({"kyc": false}))).await.expect(403);
        }
        w.asks("DELETE", &user, None).await.expect(403);
        let memberships = w.asks("GET", &format!("{user}/memberships"), None).await.expect(200);
        let held = memberships[0]["membership"]["id"].as_str().unwrap();
        w.asks("DELETE", &format!("{user}/memberships/{held}"), None)
            .await
            .expect(403);
        let by_did = format!("/orgs/{}/memberships/by-did", w.meridian);
        w.asks("DELETE", &by_did, Some(json!({"did": did, "group_id": group})))
            .await
            .expect(403);
        let listed =
            w.gw.as_user(&token, "GET", "/api/v1/admin/orgs", None)
                .await
                .expect(200);
        assert_eq!(listed["data"][0]["id"], json!(w.meridian), "{did} administers still");
        // What changes no power goes on; a form that repeats what holds changes none.
        let noted = json!({"note": "on leave", "banned": false, "kyc": true});
        assert_eq!(w.asks("PUT", &user, Some(noted)).await.expect(200)["note"], "on leave");
        w.gw.admin("PUT", &in_org, Some(json!({"banned": true})))
            .await
            .expect(200);
        w.asks("PUT", &user, Some(json!({"banned": false}))).await.expect(403);
    }
    // Themselves included; and plain members are theirs to ban as ever.
    w.asks(
        "PUT",
        &format!("/users/{}", w.admin.user_id),
        Some(json!({"banned": true})),
    )
    .await
    .expect(403);
    w.asks(
        "PUT",
        &format!("/users/{}", w.analyst.user_id),
        Some(json!({"banned": true})),
    )
    .await
    .expect(200);

    // A group is no way around it: as long as somebody has the powers by it, it stays what it is.
    let groups = format!("/orgs/{}/groups", w.meridian);
    let (path, unflagged) = (format!("{groups}/{readers}"), json!({"is_org_readonly_admin": false}));
    w.asks("DELETE", &path, None).await.expect(403);
    w.asks("PUT", &path, Some(unflagged.clone())).await.expect(403);
    w.asks(
        "POST",
        &format!("{groups}/batch-delete"),
        Some(json!({"group_ids": [readers]})),
    )
    .await
    .expect(403);
    assert_eq!(
        w.asks("PUT", &path, Some(json!({"description": "auditors"})))
            .await
            .expect(200)["description"],
        "auditors"
    );
    let empty = group(&w.gw, &w.meridian, "empty", false, json!(["eth_call"]), json!([])).await;
    let path = format!("{groups}/{empty}");
    w.asks("PUT", &path, Some(json!({"is_org_readonly_admin": true})))
        .await
        .expect(200);
    w.asks("PUT", &path, Some(unflagged)).await.expect(200);
    w.asks("PUT", &path, Some(json!({"is_org_readonly_admin": true})))
        .await
        .expect(200);
    w.asks("DELETE", &path, None).await.expect(200);

    // Read-only administrators are no plain members.
    let members = w.asks("GET", "/users?role=member", None).await.expect(200).to_string();
    assert!(
        members.contains(w.ops.did) && !members.contains("did:test:reader"),
        "{members}"
    );
}

/// HD40: an administrator learns of no slug whether another organization has it: slugs are super's to change.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn hd40_a_slug_tells_no_other_organization() {
    let w = World::start(Engine::Sqlite).await;
    let own = format!("/orgs/{}", w.meridian);
    let put = async |body: Value| w.asks("PUT", &own, Some(body)).await;
    let (taken, free) = (
        put(json!({"slug": "volta"})).await,
        put(json!({"slug": "nobody"})).await,
    );
    assert_eq!(taken.expect(403)["error"], free.expect(403)["error"]);
    // The own one is no change.
    put(json!({"slug": "meridian", "name": "Meridian"})).await.expect(200);
    assert_eq!(
        w.gw.admin("PUT", &own, Some(json!({"slug": "volta"}))).await.status,
        409
    );
    w.gw.admin("PUT", &own, Some(json!({"slug": "meridian-bank"})))
        .await
        .expect(200);
}

/// HD18, HD40: no number of a row counts what other organizations do.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn hd40_rows_count_nothing_of_others() {
    let w = World::start(Engine::Sqlite).await;
    let contracts = format!("/orgs/{}/groups", w.meridian);
    let make = async |slug: &str| {
        w.asks("POST", &contracts, Some(json!({"name": slug, "slug": slug})))
            .await
            .expect(201);
    };
    let call = async |who: &Persona| w.gw.rpc(&who.token, "eth_maxPriorityFeePerGas", json!([])).await;
    make("one").await;
    call(&w.ops).await;
    for n in 0..5 {
        call(&w.trader).await;
        let slug = format!("volta-{n}");
        let body = json!({"name": slug, "slug": slug});
        w.gw.admin("POST", &format!("/orgs/{}/groups", w.volta), Some(body))
            .await
            .expect(201);
    }
    make("two").await;
    call(&w.ops).await;
    let audit = async || w.asks("GET", "/audit-logs?limit=1000", None).await.expect(200);
    let ids = |list: &Value| {
        list.as_array()
            .unwrap()
            .iter()
            .map(|row| row["id"].as_i64().unwrap())
            .collect::<Vec<_>>()
    };
    let waiting = audit().await;
    let own: Vec<i64> = (1..=i64::try_from(waiting.as_array().unwrap().len()).unwrap())
        .rev()
        .collect();
    assert_eq!(ids(&waiting), own, "the organization's own sequence, without gaps");
    let all = w.gw.admin("GET", "/audit-logs?limit=1000", None).await.expect(200);
    assert!(
        ids(&all).is_sorted_by(|newer, older| newer > older),
        "super reads the platform's"
    );
    assert!(all.as_array().unwrap().len() > own.len());

    // Sealed rows have the ids they had while they waited.
    let mut logs = Value::Null;
    for _ in 0..1200 {
        logs = w
            .asks(
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
        (own, &json!(2)),
        "all are sealed"
    );
    let as_super = format!("/logs?external_id={}&method=eth_maxPriorityFeePerGas", w.ops.did);
    let as_super = w.gw.admin("GET", &as_super, None).await.expect(200);
    for (shown, whole) in logs["data"]
        .as_array()
        .unwrap()
        .iter()
        .zip(as_super["data"].as_array().unwrap())
    {
        assert_eq!(shown["entry_hash"], whole["entry_hash"]);
        assert!(
            shown.get("policy_epoch").is_none() && whole["policy_epoch"].is_u64(),
            "{shown} {whole}"
        );
        assert_ne!(shown["id"], whole["id"]);
        let first = &shown["entry_hash"].as_str().unwrap()[..13];
        assert_eq!(
            shown["id"].as_i64(),
            i64::from_str_radix(first, 16).ok(),
            "by the entry's hash alone"
        );
    }
}

/// HD30, HD40, B15: neither the log nor a test tells which address is another organization's contract.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn hd30_a_foreign_contract_reads_as_an_unregistered_one() {
    let w = World::start(Engine::Sqlite).await;
    let foreign = w.gw.deploy(&w.ops.token, &w.ops.key, making(&telltale(false))).await;
    w.gw.admin("DELETE", &format!("/orgs/{}/contracts/{foreign}", w.meridian), None)
        .await
        .expect(200);
    let body = json!({"address": foreign, "name": "theirs"});
    w.gw.admin("POST", &format!("/orgs/{}/contracts", w.volta), Some(body))
        .await
        .expect(201);
    let nobodys = Address::repeat_byte(0x77);
    let mut tested = Vec::new();
    for target in [foreign, nobodys] {
        let call = json!([{"to": target, "data": balance_of(nobodys)}, "latest"]);
        w.gw.rpc(&w.ops.token, "eth_call", call.clone()).await;
        let body = json!({"jwt_token": w.ops.token, "method": "eth_call", "org_id": w.meridian, "params": call});
        let said = w.asks("POST", "/test-request", Some(body.clone())).await.expect(403);
        tested.push(said["error"].clone());
        let whole = w.gw.admin("POST", "/test-request", Some(body)).await.expect(403);
        let expected = if target == foreign {
            "(foreign_org)"
        } else {
            "(unregistered)"
        };
        assert!(
            whole["error"].as_str().unwrap().ends_with(expected),
            "super is told: {whole}"
        );
    }
    assert_eq!(tested[0], tested[1]);
    let of = |reason: &str| format!("/logs?external_id={}&method=eth_call{reason}", w.ops.did);
    let rows = async |reason: &str| w.asks("GET", &of(reason), None).await.expect(200);
    let mut all = Value::Null;
    for _ in 0..200 {
        all = rows("").await;
        // Each call, and each test of it.
        if all["total"].as_u64() >= Some(6) {
            break;
        }
        tokio::time::sleep(Duration::from_millis(50)).await;
    }
    let reasons: Vec<_> = all["data"]
        .as_array()
        .unwrap()
        .iter()
        .map(|row| row["denial_reason"].clone())
        .collect();
    assert!(
        reasons.len() >= 6 && reasons.iter().all(|reason| reason == "unregistered"),
        "{all}"
    );
    assert_eq!(rows("&denial_reason=unregistered").await["total"], all["total"]);
    for reason in [
        "&denial_reason=foreign_org",
        "&denial_reason=cross_org",
        "&denial_reason=org_mismatch",
    ] {
        assert_eq!(rows(reason).await["total"], 0, "{reason}");
    }
    let whole =
        w.gw.admin("GET", &of("&denial_reason=foreign_org"), None)
            .await
            .expect(200);
    assert_eq!(whole["total"], 3, "super is told: {whole}");
}

/// A request whose body stops half-way.
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

    /// The status, once the rest is sent.
    async fn finish(mut self) -> u16 {
        self.stream.write_all(self.rest.as_bytes()).await.unwrap();
        let mut answer = String::new();
        self.stream.read_to_string(&mut answer).await.unwrap();
        answer.split(' ').nth(1).unwrap().parse().unwrap()
    }
}

/// HD20, 80 §2 rule 3: who is judged is who is there when the body is: what an administrator began before they were
/// banned, removed or logged out has no effect.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn hd20_a_half_sent_mutation_ends_with_its_senders_rights() {
    let w = World::start(Engine::Sqlite).await;
    let admins = w.group_named("admins").await;
    let groups = format!("/orgs/{}/groups", w.meridian);
    let user = format!("/users/{}", w.analyst.user_id);
    let call = json!({"user_external_id": w.analyst.did, "org_slug": "meridian", "method": "eth_call"});
    for way in ["banned", "removed", "logged out", "stays"] {
        let did = format!("did:test:half-{}", way.replace(' ', "-"));
        let id = w.joins(&did, &admins).await;
        let token = w.gw.login(&did).await;
        let slug = json!({"name": way, "slug": way.replace(' ', "-")});
        let half = vec![
            HalfSent::new(&w, &token, "POST", &groups, &slug).await,
            HalfSent::new(&w, &token, "PUT", &user, &json!({"note": way})).await,
            HalfSent::new(&w, &token, "POST", "/access/check", &call).await,
        ];
        // They are in, and wait for the rest.
        tokio::time::sleep(Duration::from_millis(300)).await;
        match way {
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
        for half in half {
            let status = half.finish().await;
            let expected: &[u16] = if way == "stays" { &[200, 201] } else { &[401, 403] };
            assert!(expected.contains(&status), "{way}: {status}");
        }
    }
    let made = w.gw.admin("GET", &groups, None).await.expect(200).to_string();
    assert!(
        made.contains("\"stays\"") && !made.contains("banned") && !made.contains("removed"),
        "{made}"
    );
    assert!(!made.contains("logged-out"), "{made}");
    assert_eq!(w.asks("GET", &user, None).await.expect(200)["note"], "stays");
}

/// HD40: an administrator learns of no activity elsewhere from the links of wallets that are hidden from them.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn hd40_links_tell_of_no_activity_elsewhere() {
    let w = World::start(Engine::Sqlite).await;
    let links = format!("/users/{}/linked-addresses", w.trader.user_id);
    // The trader is in both banks, and proved a wallet.
    w.joins(w.trader.did, &w.analysts).await;
    w.gw.login(w.trader.did).await;
    let seen = async || w.asks("GET", &links, None).await.expect(200)["addresses"].clone();
    let before = seen().await;
    assert_eq!(before.as_array().unwrap().len(), 1, "{before}");
    let row = &before[0];
    assert_eq!(
        (&row["address"], &row["link_type"]),
        (&json!("[PRIVATE]"), &json!("user"))
    );
    for time in ["verified_at", "created_at"] {
        let text = row[time].as_str().unwrap();
        assert!(text.contains("T00:00:00"), "no more than the day: {time} {text}");
    }
    // A send at the other bank links the wallet it came from.
    let (hash, raw) =
        w.gw.sign(&key(6), Some(Address::repeat_byte(0x77)), U256::from(1), Bytes::new())
            .await;
    let body = json!({"jsonrpc": "2.0", "id": 1, "method": "eth_sendRawTransaction", "params": [raw]});
    let sent =
        w.gw.as_user(&w.trader.token, "POST", &format!("/rpc/{}", w.volta), Some(body))
            .await
            .expect(200);
    assert_eq!(sent["result"], json!(hash), "{sent}");
    let mut all = Value::Null;
    for _ in 0..100 {
        all = w.gw.admin("GET", &links, None).await.expect(200)["addresses"].clone();
        if all.as_array().unwrap().len() == 2 {
            break;
        }
        tokio::time::sleep(Duration::from_millis(50)).await;
    }
    assert!(all.to_string().contains("\"system\""), "super sees the link: {all}");
    assert_eq!(seen().await, before);
}

/// What an administrator fills records with has an end, and so has a page of a list.
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
            w.asks("PUT", &path, Some(body.clone())).await,
            w.gw.admin("PUT", &path, Some(body)).await,
        ] {
            assert_eq!(answer.status, 400, "{path}: {}", answer.body);
        }
    }
    // Many full records are a page of fewer rows, and the total stays.
    let full = json!({"k": "x".repeat(15 * 1024)});
    for n in 0..220 {
        let body = json!({"metadata": full, "note": n.to_string()});
        w.asks("PUT", &user, Some(body)).await.expect(200);
    }
    let page = w.asks("GET", "/audit-logs?limit=1000&resource_type=user", None).await;
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
        .asks(
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

/// C4, spec/80 §2: who reads in one organization and administers another one changes nothing in the first, whoever is in both.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn c4_powers_in_one_organization_change_nothing_in_another() {
    let w = World::start(Engine::Sqlite).await;
    // The trader of Volta is in Meridian, too, and made a URL there.
    w.joins(w.trader.did, &w.analysts).await;
    let here = json!({"org_id": w.meridian, "scope": "all"});
    let trader = w.gw.login(w.trader.did).await;
    let url =
        w.gw.as_user(&trader, "POST", "/api/v1/me/rpc-urls", Some(here))
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
    w.joins("did:test:both", &readers).await;
    let both = w.gw.login("did:test:both").await;
    let path = format!("/api/v1/admin/users/{}/rpc-urls", w.trader.user_id);
    let listed = w.gw.as_user(&both, "GET", &path, None).await.expect(200);
    assert_eq!(listed["rpc_urls"][0]["id"], url["id"], "{listed}");
    let ended =
        w.gw.as_user(
            &both,
            "DELETE",
            &format!("{path}/{}", url["id"].as_str().unwrap()),
            None,
        )
        .await;
    assert_eq!(
        ended.expect(403)["error"],
        "mutating actions are restricted for read-only admins"
    );
}
