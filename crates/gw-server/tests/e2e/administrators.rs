//! An administrator is a viewer (HD12, HD30): routes that list, match or accept an address respond to a hidden address
//! exactly as to a random one.

use crate::{
    harness::{Engine, key},
    world::{World, balance_of, group},
};
use alloy_primitives::Address;
use serde_json::{Value, json};
use std::time::Duration;

/// An address that no user has linked and no organization has registered.
const STRANGER: &str = "0x00a329c0648769a73afac7f9381e08fb43dbea72";

fn hex(address: Address) -> String {
    format!("{address:#x}")
}

/// RT3 (HD30): with prefix matching, a wallet was found nibble by nibble in 399 searches. A search matches whole values
/// only, and an address only if the searcher sees it in full.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn rt3_a_user_search_finds_no_wallet() {
    let w = World::start(Engine::Sqlite).await;
    let search = async |term: &str| {
        w.as_admin("GET", &format!("/users?search={term}"), None)
            .await
            .expect(200)
    };
    let no_match = search(STRANGER).await;
    assert_eq!(no_match["total"], 0);

    let wallet = hex(w.analyst.address());
    for part in 1..=wallet.len() {
        let (hidden, random) = (search(&wallet[..part]).await, search(&STRANGER[..part]).await);
        assert_eq!(hidden, random, "the first {part} characters of a member's wallet");
    }
    assert_eq!(search(&wallet[2..]).await, no_match, "without 0x");
    assert_eq!(
        search(&wallet.to_uppercase().replace("0X", "0x")).await,
        no_match,
        "in capitals"
    );
    assert_eq!(search(&wallet[10..30]).await, no_match, "the middle");

    // The own wallet is visible in full. Users in scope are found by their complete DID.
    let own_wallet = search(&hex(w.admin.address())).await;
    assert_eq!(
        (&own_wallet["total"], &own_wallet["data"][0]["external_id"]),
        (&json!(1), &json!(w.admin.did))
    );
    assert_eq!(search(w.analyst.did).await["total"], 1);
    assert_eq!(search(&w.analyst.did[..12]).await, no_match);
    assert_eq!(search(w.trader.did).await, no_match, "a member of another bank");
    let platform_result =
        w.gw.admin("GET", &format!("/users?search={wallet}"), None)
            .await
            .expect(200);
    assert_eq!(platform_result["data"][0]["external_id"], w.analyst.did);

    // The record holds a keyed digest of the term: a guess can be checked only with the key.
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
                "a wallet is in the log in clear text"
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

/// RT10 (HD30, HD40): for a member's wallet, access/check gives the same response as for an unknown address.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn rt10_an_access_check_confirms_no_wallet() {
    let w = World::start(Engine::Sqlite).await;
    // A second wallet and a group with all methods: the decision could depend on as much as possible.
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
    let check = async |did: &str, method: &str, members: Value| {
        let mut body = json!({"user_external_id": did, "org_id": w.meridian, "method": method});
        body.as_object_mut()
            .unwrap()
            .extend(members.as_object().unwrap().clone());
        let response = w.as_admin("POST", "/access/check", Some(body)).await;
        // Only the correlation id may differ.
        let mut verdict = response.json();
        verdict.as_object_mut().unwrap().remove("correlation_id");
        (response.status, verdict)
    };
    for method in methods {
        let random = check(w.analyst.did, method, json!({"target_address": STRANGER})).await;
        assert!(matches!(random.0, 200 | 400), "{method}: {}", random.1);
        for wallet in wallets {
            let hidden = check(w.analyst.did, method, json!({"target_address": wallet})).await;
            assert_eq!(hidden, random, "{method} of {wallet}");
        }
    }
    // The same holds for the sender of a call and for an address in its data.
    for (method, member) in [
        ("eth_call", "from"),
        ("eth_sendTransaction", "from"),
        ("eth_call", "data"),
    ] {
        let call = |wallet: Address| match member {
            "from" => json!({"params": [{"from": wallet, "to": w.erc20, "data": balance_of(w.ops.address())}]}),
            _ => json!({"params": [{"to": w.erc20, "data": balance_of(wallet)}]}),
        };
        let random = check(w.analyst.did, method, call(STRANGER.parse().unwrap())).await;
        for wallet in wallets {
            let hidden = check(w.analyst.did, method, call(wallet)).await;
            assert_eq!(hidden, random, "{method} {member} {wallet}");
        }
    }
}

/// RTO5: the user and the platform administrator may see the user's wallets: access/check recognizes each of them.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn rto5_an_access_check_recognizes_every_wallet() {
    let w = World::start(Engine::Sqlite).await;
    w.gw.link(&w.admin.token, &key(4)).await;
    let wallets = [w.admin.address(), key(4).address()];
    for method in ["eth_getBalance", "eth_getTransactionCount"] {
        for wallet in wallets {
            let body = json!({"user_external_id": w.admin.did, "org_id": w.meridian, "method": method,
                "target_address": wallet});
            let to_platform =
                w.gw.admin("POST", "/access/check", Some(body.clone()))
                    .await
                    .expect(200);
            let to_user = w.as_admin("POST", "/access/check", Some(body)).await.expect(200);
            for response in [to_platform, to_user] {
                assert_eq!(
                    response["explanation"]["targets"][0]["reached_by"], "own_address",
                    "{method} {wallet}: {response}"
                );
                assert_eq!(response["explanation"]["plan"], "forward", "{response}");
            }
        }
    }
    for from in wallets {
        let params = json!([{"from": from, "to": w.erc20, "data": balance_of(from)}]);
        let body =
            json!({"user_external_id": w.admin.did, "org_id": w.meridian, "method": "eth_call", "params": params});
        let response = w.gw.admin("POST", "/access/check", Some(body)).await.expect(200);
        assert_eq!(response["allowed"], true, "{from}: {response}");
    }
}

/// RT13 (HD30): the list of collisions discloses no wallet to an organization's administrator, neither by its rows nor
/// by their order.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn rt13_collisions_name_no_wallet() {
    let w = World::start(Engine::Sqlite).await;
    // Two of the bank's members and a user of no bank each link a wallet of another user.
    w.gw.link(&w.ops.token, &w.analyst.key).await;
    w.gw.link(&w.outsider.token, &w.unverified.key).await;
    w.gw.link(&w.analyst.token, &w.admin.key).await;
    let visible = w.as_admin("GET", "/eth-addresses/collisions", None).await.expect(200);
    let row = |address: String, dids: [&str; 2]| {
        json!({"eth_address": address, "dids": dids,
        "link_types": ["user", "user"]})
    };
    let private = || "[PRIVATE]".to_owned();
    let expected = json!([
        row(private(), ["[PRIVATE]", w.unverified.did]),
        // The own wallet is visible in full.
        row(hex(w.admin.address()), [w.admin.did, w.analyst.did]),
        row(private(), [w.analyst.did, w.ops.did]),
    ]);
    assert_eq!(visible, json!({"collisions": expected, "count": 3}));
    let platform_view = w.gw.admin("GET", "/eth-addresses/collisions", None).await.expect(200);
    assert!(
        platform_view.to_string().contains(&hex(w.analyst.address())),
        "the platform administrator sees linked wallets: {platform_view}"
    );
}

/// HD12, HD30: links, notes and audit values disclose no hidden wallet.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn hd30_the_admin_api_discloses_no_hidden_wallet() {
    let w = World::start(Engine::Sqlite).await;
    let (wallet, own_wallet) = (hex(w.analyst.address()), hex(w.admin.address()));
    let member = format!("/users/{}", w.analyst.user_id);
    let note = json!({"note": format!("pays from {wallet}, with {own_wallet}"), "metadata": {"wallet": wallet}});
    let updated = w.as_admin("PUT", &member, Some(note)).await.expect(200);
    assert_eq!(updated["note"], format!("pays from [PRIVATE], with {own_wallet}"));
    assert_eq!(updated["metadata"]["wallet"], "[PRIVATE]");
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
    // Contracts that the organization registered stay in clear text.
    let contracts = w
        .as_admin("GET", &format!("/orgs/{}/contracts", w.meridian), None)
        .await
        .expect(200);
    assert_eq!(contracts["data"][0]["address"], hex(w.erc20));

    // Only the platform administrator revokes a link. The refusal is the same for each address and discloses nothing
    // (HD32).
    let revocation = || Some(json!({"reason": "stolen"}));
    let hidden = w
        .as_admin("DELETE", &format!("{member}/linked-addresses/{wallet}"), revocation())
        .await;
    let random = w
        .as_admin("DELETE", &format!("{member}/linked-addresses/{STRANGER}"), revocation())
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
    w.as_admin("DELETE", &format!("{member}/linked-addresses/{id}"), revocation())
        .await
        .expect(403);
    w.gw.admin("DELETE", &format!("{member}/linked-addresses/{id}"), revocation())
        .await
        .expect(200);
    let remaining =
        w.gw.admin("GET", &format!("{member}/linked-addresses"), None)
            .await
            .expect(200);
    assert_eq!(remaining["addresses"], json!([]));
}

/// HD30: registering and claiming a contract give the same response for a member's wallet as for an unknown address.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn hd30_registering_confirms_no_wallet() {
    let w = World::start(Engine::Sqlite).await;
    let hash = format!("0x{}", "11".repeat(32));
    let rival_group = group(&w.gw, &w.volta, "volta-more", false, json!([]), json!([])).await;
    assert!(!rival_group.is_empty());
    for (path, body) in [
        ("contracts", json!({"name": "x"})),
        ("contracts", json!({"name": "x", "deployment_tx_hash": hash})),
        ("contracts/claim", json!({"name": "x", "deployment_tx_hash": hash})),
    ] {
        let register = async |address: &str| {
            let mut body = body.clone();
            body["address"] = json!(address);
            let response = w
                .as_admin("POST", &format!("/orgs/{}/{path}", w.meridian), Some(body))
                .await;
            (response.status, response.json()["error"].clone())
        };
        let random = register(STRANGER).await;
        assert_eq!(random.0, 400);
        for wallet in [w.analyst.address(), w.trader.address(), w.admin.address()] {
            assert_eq!(register(&hex(wallet)).await, random, "{path} {wallet}");
        }
    }
}

/// RTO6: the demo token is deployed by an ordinary send through the gateway and registered for the administrator's
/// organization.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn rto6_a_demo_token_is_deployed_through_the_gateway() {
    let w = World::start(Engine::Sqlite).await;
    let deploy = async |body: Value| w.as_admin("POST", "/dev/deploy-demo-erc20", Some(body)).await;
    let denied = deploy(json!({})).await.expect(403);
    assert_eq!(
        denied["error"], "the send is denied: method_not_allowed",
        "no group of the administrator lists sends"
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

    let deployed = deploy(json!({"name": "Gold", "org_id": w.meridian})).await.expect(200);
    assert_eq!(
        (&deployed["name"], &deployed["registered"]),
        (&json!("Gold"), &json!(true)),
        "{deployed}"
    );
    let address = deployed["address"].as_str().unwrap();
    let contract = w
        .as_admin("GET", &format!("/orgs/{}/contracts/{address}", w.meridian), None)
        .await
        .expect(200);
    assert_eq!(
        (&contract["name"], &contract["deployed_by_user_id"]),
        (&json!("Gold"), &json!(w.admin.user_id)),
        "{contract}"
    );
    let call = json!([{"to": address, "data": balance_of(w.admin.address())}, "latest"]);
    assert_eq!(
        w.gw.result(&w.admin.token, "eth_call", call).await,
        format!("0x{:064x}", 10_u128.pow(24))
    );
    let entries =
        w.gw.admin("GET", "/audit-logs?resource_type=contract&limit=10", None)
            .await
            .expect(200);
    assert!(entries.to_string().contains(address), "{entries}");

    // Refused: an organization that the caller does not administer, and the platform admin token, which has no wallet.
    deploy(json!({"org_id": w.volta})).await.expect(403);
    w.gw.admin("POST", "/dev/deploy-demo-erc20", Some(json!({"org_id": w.meridian})))
        .await
        .expect(403);
}
