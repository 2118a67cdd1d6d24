//! An administrator is a viewer (HD12, HD30): what lists, matches or accepts an address answers for a hidden one as it
//! does for a random one.

use crate::{
    harness::{Answer, Engine, key},
    world::{World, balance_of, group},
};
use alloy_primitives::Address;
use serde_json::{Value, json};
use std::time::Duration;

/// An address that nobody has to do with.
const STRANGER: &str = "0x00a329c0648769a73afac7f9381e08fb43dbea72";

impl World {
    /// An administrative call of Meridian's administrator.
    async fn as_admin(&self, method: &str, path: &str, body: Option<Value>) -> Answer {
        self.gw
            .as_user(&self.admin.token, method, &format!("/api/v1/admin{path}"), body)
            .await
    }
}

fn hex(address: Address) -> String {
    format!("{address:#x}")
}

/// RT3 (HD30): a wallet was found by its nibbles in 399 searches. Whole values only, and an address only if it is Full.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn rt3_a_user_search_finds_no_wallet() {
    let w = World::start(Engine::Sqlite).await;
    let search = async |term: &str| {
        w.as_admin("GET", &format!("/users?search={term}"), None)
            .await
            .expect(200)
    };
    let nobody = search(STRANGER).await;
    assert_eq!(nobody["total"], 0);

    let wallet = hex(w.analyst.address());
    for part in 1..=wallet.len() {
        let (hidden, random) = (search(&wallet[..part]).await, search(&STRANGER[..part]).await);
        assert_eq!(hidden, random, "the first {part} characters of a member's wallet");
    }
    assert_eq!(search(&wallet[2..]).await, nobody, "without 0x");
    assert_eq!(
        search(&wallet.to_uppercase().replace("0X", "0x")).await,
        nobody,
        "in capitals"
    );
    assert_eq!(search(&wallet[10..30]).await, nobody, "the middle");

    // One's own wallet is Full; people are found by their whole name, within scope.
    let own = search(&hex(w.admin.address())).await;
    assert_eq!(
        (&own["total"], &own["data"][0]["external_id"]),
        (&json!(1), &json!(w.admin.did))
    );
    assert_eq!(search(w.analyst.did).await["total"], 1);
    assert_eq!(search(&w.analyst.did[..12]).await, nobody);
    assert_eq!(search(w.trader.did).await, nobody, "another bank's");
    let by_super =
        w.gw.admin("GET", &format!("/users?search={wallet}"), None)
            .await
            .expect(200);
    assert_eq!(by_super["data"][0]["external_id"], w.analyst.did);

    // The term is in the record, as a digest that only who holds the key can compare with a guess.
    for _ in 0..200 {
        let path = format!(
            "/logs?external_id={}&method=GET%20/api/v1/admin/users&limit=1000",
            w.admin.did
        );
        let logs = w.gw.admin("GET", &path, None).await.expect(200);
        let rows = logs["data"].as_array().unwrap();
        if rows.len() > wallet.len() * 2 {
            let text = logs.to_string();
            assert!(
                !text.contains(&wallet[2..]) && !text.contains(&STRANGER[2..]),
                "in clear"
            );
            for row in rows {
                let digest = row["request_params"]["search"][0].as_str().unwrap();
                assert!(digest.starts_with("hmac-sha256:"), "{row}");
            }
            return;
        }
        tokio::time::sleep(Duration::from_millis(50)).await;
    }
    panic!("the searches were not recorded");
}

/// RT10 (HD30, HD40): asked about a member's wallet, access/check answers as for an address of nobody.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn rt10_an_access_check_confirms_no_wallet() {
    let w = World::start(Engine::Sqlite).await;
    // A second wallet, and a group that lists everything: the verdict has the most to stand on.
    w.gw.link(&w.analyst.token, &key(4)).await;
    let wide = json!({"allowed_methods": ["*"], "claims": ["deploy"]});
    w.gw.admin(
        "PUT",
        &format!("/orgs/{}/groups/{}/access", w.meridian, w.analysts),
        Some(wide),
    )
    .await
    .expect(200);
    let methods = [
        "eth_call",
        "eth_estimateGas",
        "eth_createAccessList",
        "debug_traceCall",
        "eth_sendTransaction",
        "eth_sendRawTransaction",
        "eth_getBalance",
        "eth_getTransactionCount",
        "eth_getCode",
        "eth_getStorageAt",
        "eth_getProof",
        "eth_getLogs",
    ];
    let wallets = [
        w.analyst.address(),
        key(4).address(),
        w.ops.address(),
        w.trader.address(),
        w.outsider.address(),
    ];
    let ask = async |of: &str, method: &str, more: Value| {
        let mut body = json!({"user_external_id": of, "org_id": w.meridian, "method": method});
        body.as_object_mut().unwrap().extend(more.as_object().unwrap().clone());
        let said = w.as_admin("POST", "/access/check", Some(body)).await;
        // The name of the request is the one thing that may differ.
        let mut told = said.json();
        told.as_object_mut().unwrap().remove("correlation_id");
        (said.status, told)
    };
    for method in methods {
        let random = ask(w.analyst.did, method, json!({"target_address": STRANGER})).await;
        assert!(matches!(random.0, 200 | 400), "{method}: {}", random.1);
        for wallet in wallets {
            let hidden = ask(w.analyst.did, method, json!({"target_address": wallet})).await;
            assert_eq!(hidden, random, "{method} of {wallet}");
        }
    }
    // Nor as the sender of a call, or within its data.
    for (method, about) in [
        ("eth_call", "from"),
        ("eth_sendTransaction", "from"),
        ("eth_call", "data"),
    ] {
        let call = |wallet: Address| match about {
            "from" => json!({"params": [{"from": wallet, "to": w.erc20, "data": balance_of(w.ops.address())}]}),
            _ => json!({"params": [{"to": w.erc20, "data": balance_of(wallet)}]}),
        };
        let random = ask(w.analyst.did, method, call(STRANGER.parse().unwrap())).await;
        for wallet in wallets {
            let hidden = ask(w.analyst.did, method, call(wallet)).await;
            assert_eq!(hidden, random, "{method} {about} {wallet}");
        }
    }
}

/// RTO5: for those who may know them, all of a user's wallets are recognized.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn rto5_an_access_check_recognizes_every_wallet() {
    let w = World::start(Engine::Sqlite).await;
    w.gw.link(&w.admin.token, &key(4)).await;
    let wallets = [w.admin.address(), key(4).address()];
    for method in ["eth_getBalance", "eth_getTransactionCount"] {
        for wallet in wallets {
            let body = json!({"user_external_id": w.admin.did, "org_id": w.meridian, "method": method, "target_address": wallet});
            let of_super =
                w.gw.admin("POST", "/access/check", Some(body.clone()))
                    .await
                    .expect(200);
            let of_self = w.as_admin("POST", "/access/check", Some(body)).await.expect(200);
            for said in [of_super, of_self] {
                assert_eq!(
                    said["explanation"]["targets"][0]["reached_by"], "own_address",
                    "{method} {wallet}: {said}"
                );
                assert_eq!(said["explanation"]["plan"], "forward", "{said}");
            }
        }
    }
    for from in wallets {
        let params = json!([{"from": from, "to": w.erc20, "data": balance_of(from)}]);
        let body =
            json!({"user_external_id": w.admin.did, "org_id": w.meridian, "method": "eth_call", "params": params});
        let said = w.gw.admin("POST", "/access/check", Some(body)).await.expect(200);
        assert_eq!(said["allowed"], true, "{from}: {said}");
    }
}

/// RT13 (HD30): a collision names no wallet to an organization's administrator, and neither does its place in the list.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn rt13_collisions_name_no_wallet() {
    let w = World::start(Engine::Sqlite).await;
    // Two of the bank's members and a stranger hold a wallet each with somebody else.
    w.gw.link(&w.ops.token, &w.analyst.key).await;
    w.gw.link(&w.outsider.token, &w.unverified.key).await;
    w.gw.link(&w.analyst.token, &w.admin.key).await;
    let seen = w.as_admin("GET", "/eth-addresses/collisions", None).await.expect(200);
    let row = |address: String, dids: [&str; 2]| json!({"eth_address": address, "dids": dids, "link_types": ["user", "user"]});
    let private = || "[PRIVATE]".to_owned();
    let expected = json!([
        row(private(), ["[PRIVATE]", w.unverified.did]),
        // One's own is Full.
        row(hex(w.admin.address()), [w.admin.did, w.analyst.did]),
        row(private(), [w.analyst.did, w.ops.did]),
    ]);
    assert_eq!(seen, json!({"collisions": expected, "count": 3}));
    let all = w.gw.admin("GET", "/eth-addresses/collisions", None).await.expect(200);
    assert!(
        all.to_string().contains(&hex(w.analyst.address())),
        "the super token sees links: {all}"
    );
}

/// HD12, HD30: links, notes and audit values.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn hd30_nothing_of_the_admin_api_names_a_hidden_wallet() {
    let w = World::start(Engine::Sqlite).await;
    let (wallet, own) = (hex(w.analyst.address()), hex(w.admin.address()));
    let member = format!("/users/{}", w.analyst.user_id);
    let note = json!({"note": format!("pays from {wallet}, with {own}"), "metadata": {"wallet": wallet}});
    let noted = w.as_admin("PUT", &member, Some(note)).await.expect(200);
    assert_eq!(noted["note"], format!("pays from [PRIVATE], with {own}"));
    assert_eq!(noted["metadata"]["wallet"], "[PRIVATE]");
    for path in [
        member.clone(),
        "/users".to_owned(),
        format!("/users?org_id={}", w.meridian),
        format!("{member}/linked-addresses"),
        format!("{member}/effective-permissions?org=meridian"),
        "/audit-logs?limit=1000".to_owned(),
        format!("/audit-logs?org_id={}&limit=1000", w.meridian),
        "/logs?limit=1000".to_owned(),
        "/sessions".to_owned(),
        format!("{member}/sessions"),
        format!("{member}/rpc-urls"),
        "/eth-addresses/collisions".to_owned(),
        format!("/orgs/{}/contracts", w.meridian),
        format!("/orgs/{}/groups", w.meridian),
    ] {
        let page = w.as_admin("GET", &path, None).await;
        page.expect(200);
        assert!(
            !page.body.to_lowercase().contains(&wallet[2..]),
            "{path}: {}",
            page.body
        );
    }
    // What the organization registered stays in clear.
    let contracts = w
        .as_admin("GET", &format!("/orgs/{}/contracts", w.meridian), None)
        .await
        .expect(200);
    assert_eq!(contracts["data"][0]["address"], hex(w.erc20));

    // Revoking a link is super's alone: whoever may be refused elsewhere learns nothing from the refusal (HD32).
    let because = || Some(json!({"reason": "stolen"}));
    let hidden = w
        .as_admin("DELETE", &format!("{member}/linked-addresses/{wallet}"), because())
        .await;
    let random = w
        .as_admin("DELETE", &format!("{member}/linked-addresses/{STRANGER}"), because())
        .await;
    assert_eq!(
        (hidden.status, &hidden.json()["error"]),
        (random.status, &random.json()["error"])
    );
    assert_eq!(hidden.status, 403);
    let links = w
        .as_admin("GET", &format!("{member}/linked-addresses"), None)
        .await
        .expect(200);
    assert_eq!(links["addresses"][0]["address"], "[PRIVATE]");
    let id = links["addresses"][0]["id"].as_str().unwrap();
    w.as_admin("DELETE", &format!("{member}/linked-addresses/{id}"), because())
        .await
        .expect(403);
    w.gw.admin("DELETE", &format!("{member}/linked-addresses/{id}"), because())
        .await
        .expect(200);
    let left =
        w.gw.admin("GET", &format!("{member}/linked-addresses"), None)
            .await
            .expect(200);
    assert_eq!(left["addresses"], json!([]));
}

/// HD30: registering and claiming answer for a member's wallet as for an address of nobody.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn hd30_registering_confirms_no_wallet() {
    let w = World::start(Engine::Sqlite).await;
    let hash = format!("0x{}", "11".repeat(32));
    let other = group(&w.gw, &w.volta, "volta-more", false, json!([]), json!([])).await;
    assert!(!other.is_empty());
    for (path, body) in [
        ("contracts", json!({"name": "x"})),
        ("contracts", json!({"name": "x", "deployment_tx_hash": hash})),
        ("contracts/claim", json!({"name": "x", "deployment_tx_hash": hash})),
    ] {
        let ask = async |address: &str| {
            let mut body = body.clone();
            body["address"] = json!(address);
            let said = w
                .as_admin("POST", &format!("/orgs/{}/{path}", w.meridian), Some(body))
                .await;
            (said.status, said.json()["error"].clone())
        };
        let random = ask(STRANGER).await;
        assert_eq!(random.0, 400);
        for wallet in [w.analyst.address(), w.trader.address(), w.admin.address()] {
            assert_eq!(ask(&hex(wallet)).await, random, "{path} {wallet}");
        }
    }
}

/// RTO6: the demo token takes the way of every send, and is the administrator's organization's.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn rto6_a_demo_token_is_deployed_through_the_gateway() {
    let w = World::start(Engine::Sqlite).await;
    let deploy = async |body: Value| w.as_admin("POST", "/dev/deploy-demo-erc20", Some(body)).await;
    let denied = deploy(json!({})).await.expect(403);
    assert_eq!(
        denied["error"], "the send is denied: method_not_allowed",
        "no group of theirs lists sends"
    );
    let groups =
        w.gw.admin("GET", &format!("/orgs/{}/groups?search=admins", w.meridian), None)
            .await
            .expect(200);
    let admins = groups["data"][0]["group"]["id"].as_str().unwrap();
    let access = format!("/orgs/{}/groups/{admins}/access", w.meridian);
    w.gw.admin("PUT", &access, Some(json!({"allowed_methods": ["*"]})))
        .await
        .expect(200);

    let made = deploy(json!({"name": "Gold", "org_id": w.meridian})).await.expect(200);
    assert_eq!(
        (&made["name"], &made["registered"]),
        (&json!("Gold"), &json!(true)),
        "{made}"
    );
    let address = made["address"].as_str().unwrap();
    let found = w
        .as_admin("GET", &format!("/orgs/{}/contracts/{address}", w.meridian), None)
        .await
        .expect(200);
    assert_eq!(
        (&found["name"], &found["deployed_by_user_id"]),
        (&json!("Gold"), &json!(w.admin.user_id)),
        "{found}"
    );
    let own = json!([{"to": address, "data": balance_of(w.admin.address())}, "latest"]);
    assert_eq!(
        w.gw.result(&w.admin.token, "eth_call", own).await,
        format!("0x{:064x}", 10_u128.pow(24))
    );
    let entries =
        w.gw.admin("GET", "/audit-logs?resource_type=contract&limit=10", None)
            .await
            .expect(200);
    assert!(entries.to_string().contains(address), "{entries}");

    // Neither another bank's, nor by a token that has no wallet.
    deploy(json!({"org_id": w.volta})).await.expect(403);
    w.gw.admin("POST", "/dev/deploy-demo-erc20", Some(json!({"org_id": w.meridian})))
        .await
        .expect(403);
}
