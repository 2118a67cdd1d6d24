//! The canary scan: a member of one bank makes private transactions, then each other caller reads every method and
//! every route. No response, header, log line or metric may contain a private value (spec/30 I2, HD12, HD17 PU-3). A
//! response may repeat a value of its own request; `noninterference` covers requests that contain the secrets by
//! comparing two worlds.

use crate::{
    explorer::{explorer_database, wait_until_synced},
    harness::{ADMIN_TOKEN, Engine, PROCESS_OUTPUT, Response, init_code},
    world::{self, Persona, World, balance_of, grant, group, transfer},
};
use alloy_primitives::{Address, B256, Bytes, U256};
use alloy_signer_local::PrivateKeySigner;
use alloy_sol_types::{SolCall, SolValue};
use serde_json::{Value, json};
use std::collections::BTreeMap;

/// A private value.
struct Canary {
    name: &'static str,
    /// In lower case.
    text: String,
}

/// The private values on the chain.
struct Business {
    wallet: Address,
    recipient: Address,
    vault: Address,
    hash: B256,
    block: String,
    block_hash: B256,
}

const SUM: u64 = 0x00ca_9a51_e5ca_9a51;
const GROUP: &str = "kanarien-gruppe";
const KEY: &str = "kanarien-schluessel-0123456789abcdef";
const NOTE: &str = "kanarien-notiz";
const TITLE: &str = "kanarien-vertrag";

/// Adds a member to Meridian, whose values are the canaries. No other user has the wallet.
async fn add_member(w: &World, group: &str) -> Persona {
    let did = "did:test:kanarienvogel";
    let path = format!("/orgs/{}/memberships/by-did", w.meridian);
    let created =
        w.gw.admin("POST", &path, Some(json!({"did": did, "group_id": group})))
            .await
            .expect(201);
    let user_id = created["user_id"].as_str().unwrap().to_owned();
    w.gw.admin("PUT", &format!("/users/{user_id}"), Some(json!({"kyc": true})))
        .await
        .expect(200);
    // A note is its organization's own (HD32).
    w.gw.as_user(
        &w.admin.token,
        "PUT",
        &format!("/api/v1/admin/users/{user_id}"),
        Some(json!({"note": NOTE})),
    )
    .await
    .expect(200);
    let (token, key) = (
        w.gw.login(did).await,
        PrivateKeySigner::from_slice(&[0x7b; 32]).unwrap(),
    );
    w.gw.node("anvil_setBalance", json!([key.address(), "0xde0b6b3a7640000"]))
        .await;
    w.gw.link(&token, &key).await;
    Persona {
        did,
        user_id,
        token,
        key,
    }
}

/// The member deploys a token and makes a payment with it. The group gets an upstream key.
async fn do_business(w: &World, member: &Persona, group: &str) -> Business {
    let supply = U256::MAX;
    let constructor = ("Private Dollar".to_owned(), "Kanarientoken".to_owned(), supply).abi_encode_params();
    let vault =
        w.gw.deploy(&member.token, &member.key, init_code("DemoERC20", &constructor))
            .await;
    let recipient = PrivateKeySigner::from_slice(&[0x5c; 32]).unwrap().address();
    let hash =
        w.gw.send(
            &member.token,
            &member.key,
            Some(vault),
            U256::ZERO,
            transfer(recipient, SUM),
        )
        .await;
    let receipt = w.gw.node("eth_getTransactionReceipt", json!([hash])).await;
    let contract = format!("/orgs/{}/contracts/{vault}", w.meridian);
    w.gw.admin("PUT", &contract, Some(json!({"name": TITLE})))
        .await
        .expect(200);
    grant(&w.gw, &w.meridian, vault, group, Value::Null).await;
    let access = json!({"allowed_methods": ["*"], "claims": ["deploy"], "rpc_api_key": KEY});
    w.gw.admin(
        "PUT",
        &format!("/orgs/{}/groups/{group}/access", w.meridian),
        Some(access),
    )
    .await
    .expect(200);
    Business {
        wallet: member.address(),
        recipient,
        vault,
        hash,
        block: receipt["blockNumber"].as_str().unwrap().to_owned(),
        block_hash: receipt["blockHash"].as_str().unwrap().parse().unwrap(),
    }
}

fn symbol() -> Bytes {
    world::symbolCall {}.abi_encode().into()
}

/// Every read method, about each address, block and transaction of the private business.
fn questions(b: &Business) -> Vec<(&'static str, Value)> {
    let mut calls = vec![
        ("eth_accounts", json!([])),
        ("eth_coinbase", json!([])),
        ("eth_syncing", json!([])),
        ("eth_gasPrice", json!([])),
        ("eth_feeHistory", json!(["0x10", "latest", [10, 50]])),
        ("eth_getTransactionByHash", json!([b.hash])),
        ("eth_getTransactionReceipt", json!([b.hash])),
        ("debug_traceTransaction", json!([b.hash, {"tracer": "callTracer"}])),
        ("eth_getBlockByHash", json!([b.block_hash, true])),
        ("eth_getBlockByHash", json!([b.block_hash, false])),
        ("eth_getBlockReceipts", json!([b.block_hash])),
        ("eth_getBlockTransactionCountByHash", json!([b.block_hash])),
        ("eth_getTransactionByBlockHashAndIndex", json!([b.block_hash, "0x0"])),
        ("eth_getTransactionBySenderAndNonce", json!([b.wallet, "0x1"])),
        ("eth_getLogs", json!([{"blockHash": b.block_hash, "address": b.vault}])),
        ("eth_getLogs", json!([{"fromBlock": "0x0", "address": [b.vault]}])),
        ("eth_getLogs", json!([{"fromBlock": "0x0"}])),
        ("eth_getRawTransactionByHash", json!([b.hash])),
        ("trace_transaction", json!([b.hash])),
    ];
    for tag in [b.block.as_str(), "latest"] {
        calls.push(("eth_getBlockByNumber", json!([tag, true])));
        calls.push(("eth_getBlockReceipts", json!([tag])));
        calls.push(("eth_getTransactionByBlockNumberAndIndex", json!([tag, "0x0"])));
        calls.push(("eth_getBlockTransactionCountByNumber", json!([tag])));
        for address in [b.wallet, b.recipient, b.vault] {
            for method in ["eth_getBalance", "eth_getTransactionCount"] {
                calls.push((method, json!([address, tag])));
            }
            calls.push(("eth_getStorageAt", json!([address, "0x0", tag])));
            calls.push(("eth_getProof", json!([address, [], tag])));
        }
        for data in [balance_of(b.recipient), balance_of(b.wallet), symbol()] {
            let call = json!({"to": b.vault, "data": data});
            calls.push(("eth_call", json!([call, tag])));
            calls.push(("eth_estimateGas", json!([call])));
            calls.push(("eth_createAccessList", json!([call, tag])));
            calls.push(("debug_traceCall", json!([call, tag, {"tracer": "callTracer"}])));
        }
    }
    calls
}

/// Every GET route of the API description, about the member and their bank.
async fn pages(w: &World, member: &Persona, b: &Business, group: &str) -> Vec<String> {
    let described = w.gw.request("GET", "/openapi.json", &[], None).await.expect(200);
    let paths = described["paths"]
        .as_object()
        .unwrap()
        .iter()
        .filter(|(_, operations)| operations.get("get").is_some());
    let mut pages: Vec<String> = paths
        .map(|(path, _)| {
            path.replace("{org_id}", &w.meridian)
                .replace("{org}", &w.meridian)
                .replace("{group_id}", group)
                .replace("{user_id}", &member.user_id)
                .replace("{did}", member.did)
                .replace(
                    "/shared-infrastructure/{address}",
                    &format!("/shared-infrastructure/{}", b.vault),
                )
                .replace("{address}", &b.vault.to_string())
        })
        .filter(|path| !path.contains('{'))
        .collect();
    pages.extend(
        [
            "/metrics",
            "/ready",
            "/health",
            "/",
            "/rpc",
            "/api/v1/admin/users?search=kanarien",
        ]
        .map(String::from),
    );
    pages.push(format!("/api/v1/admin/users?search={}", b.wallet));
    pages
}

fn full_text(answer: &Response) -> String {
    let headers = answer
        .headers
        .iter()
        .map(|(name, value)| format!("{name}: {}\n", String::from_utf8_lossy(value.as_bytes())));
    (headers.collect::<String>() + &answer.body).to_ascii_lowercase()
}

/// The canaries that `text` contains and `question` does not.
fn leaked<'a>(canaries: &'a [Canary], text: &str, question: &str) -> impl Iterator<Item = &'a Canary> {
    let (text, question) = (text.to_ascii_lowercase(), question.to_ascii_lowercase());
    canaries
        .iter()
        .filter(move |canary| text.contains(&canary.text) && !question.contains(&canary.text))
}

/// All requests of the scan and the canaries to look for.
struct Scan<'a> {
    w: &'a World,
    canaries: &'a [Canary],
    questions: Vec<(&'static str, Value)>,
    pages: Vec<String>,
}

impl Scan<'_> {
    /// Sends all requests as one caller. Returns, for each canary met, the first response that contains it.
    async fn run(&self, headers: &[(&str, &str)]) -> BTreeMap<&'static str, String> {
        let mut met = BTreeMap::new();
        let mut check = |answer: &Response, question: String| {
            assert!(answer.status < 500, "{question}: {}", answer.body);
            for canary in leaked(self.canaries, &full_text(answer), &question) {
                met.entry(canary.name)
                    .or_insert_with(|| format!("{question}: {}", full_text(answer)));
            }
        };
        for (method, params) in &self.questions {
            let body = json!({"jsonrpc": "2.0", "id": 1, "method": method, "params": params}).to_string();
            check(
                &self.w.gw.raw("POST", "/rpc", headers, Some(&body)).await,
                format!("{method}{params}"),
            );
        }
        for page in &self.pages {
            check(&self.w.gw.raw("GET", page, headers, None).await, page.clone());
        }
        met
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn i2_nobody_meets_a_canary() {
    let directory = tempfile::tempdir().unwrap();
    let output = directory.path().join("lines");
    let sealing = "11".repeat(32);
    let database = explorer_database(Engine::Sqlite, &directory);
    let extra = [
        ("EXPLORER_DATABASE_URL", database.as_str()),
        ("LOG_LEVEL", "trace"),
        ("AUDIT_LOG_PARAMS", "true"),
        ("RPC_API_KEY_ENCRYPTION_KEY", &sealing),
        (PROCESS_OUTPUT, output.to_str().unwrap()),
    ];
    let w = World::start_with(Engine::Sqlite, &extra).await;
    let group_id = group(&w.gw, &w.meridian, GROUP, false, json!(["*"]), json!(["deploy"])).await;
    let member = add_member(&w, &group_id).await;
    let b = do_business(&w, &member, &group_id).await;
    let created =
        w.gw.as_user(
            &member.token,
            "POST",
            "/api/v1/me/rpc-urls",
            Some(json!({"scope": "all"})),
        )
        .await
        .expect(201);
    let secret = created["url"].as_str().unwrap().rsplit_once('/').unwrap().1.to_owned();

    let hex = |bytes: &[u8]| alloy_primitives::hex::encode(bytes);
    let canary = |name, text: &str| Canary {
        name,
        text: text.to_ascii_lowercase(),
    };
    let canaries = [
        canary("the wallet", &hex(b.wallet.as_slice())),
        canary("the recipient", &hex(b.recipient.as_slice())),
        canary("the sum", &format!("{SUM:x}")),
        canary("the contract", &hex(b.vault.as_slice())),
        canary("the transaction", &hex(b.hash.as_slice())),
        canary("the token's symbol", &hex(b"Kanarientoken")),
        canary("the name of the contract", TITLE),
        canary("the group", GROUP),
        canary("the note", NOTE),
        canary("the DID", member.did),
        canary("the upstream key", KEY),
        canary("the secret of the URL", &secret),
        canary("the token", &member.token),
    ];
    wait_until_synced(&w.gw).await;
    let scan = Scan {
        w: &w,
        canaries: &canaries,
        questions: questions(&b),
        pages: pages(&w, &member, &b, &group_id).await,
    };
    let bearer = |token: &str| format!("Bearer {token}");

    // The scan works: the owner meets the canaries, and the bank's administrator meets the administered ones, but no
    // wallet and no key.
    let owner = scan.run(&[("authorization", &bearer(&member.token))]).await;
    for name in [
        "the recipient",
        "the sum",
        "the contract",
        "the transaction",
        "the token's symbol",
    ] {
        assert!(
            owner.contains_key(name),
            "{name} is not met by its owner: {:?}",
            owner.keys()
        );
    }
    // The code of the contract contains its deployer's wallet as an immutable value. The administrator may read it.
    let is_code = |page: &String| page.ends_with("/code") || page.ends_with("/contract");
    let without_code = Scan {
        pages: scan.pages.iter().filter(|page| !is_code(page)).cloned().collect(),
        questions: scan.questions.clone(),
        ..scan
    };
    let administrator = without_code.run(&[("authorization", &bearer(&w.admin.token))]).await;
    for name in [
        "the contract",
        "the transaction",
        "the name of the contract",
        "the group",
        "the note",
    ] {
        assert!(
            administrator.contains_key(name),
            "{name} is not met by the administrator: {:?}",
            administrator.keys()
        );
    }
    for name in [
        "the wallet",
        "the recipient",
        "the upstream key",
        "the secret of the URL",
        "the token",
    ] {
        assert_eq!(administrator.get(name), None, "the administrator meets {name}");
    }

    // The other callers, with every method and claim: the other bank, its administrator, colleagues, anonymous callers.
    let wide = json!({"allowed_methods": ["*"], "claims": ["deploy"]});
    w.gw.admin(
        "PUT",
        &format!("/orgs/{}/groups/{}/access", w.meridian, w.analysts),
        Some(wide),
    )
    .await
    .expect(200);
    for (slug, is_admin, methods) in [("wide", false, "*"), ("volta-admins", true, "eth_call")] {
        let claims = if is_admin { json!([]) } else { json!(["deploy"]) };
        let group = group(&w.gw, &w.volta, slug, is_admin, json!([methods]), claims).await;
        let body = json!({"did": w.trader.did, "group_id": group});
        w.gw.admin("POST", &format!("/orgs/{}/memberships/by-did", w.volta), Some(body))
            .await
            .expect(201);
    }
    for caller in [&w.outsider, &w.trader, &w.analyst, &w.ops, &w.unverified] {
        assert_eq!(
            scan.run(&[("authorization", &bearer(&caller.token))]).await,
            BTreeMap::new(),
            "{}",
            caller.did
        );
    }
    assert_eq!(scan.run(&[]).await, BTreeMap::new(), "anonymous");
    w.gw.admin(
        "PUT",
        &format!("/users/{}", w.ops.user_id),
        Some(json!({"banned": true})),
    )
    .await
    .expect(200);
    assert_eq!(
        scan.run(&[("authorization", &bearer(&w.ops.token))]).await,
        BTreeMap::new(),
        "banned"
    );

    // The platform administrator meets no secret. The log lines contain neither secrets nor private business.
    let platform = scan.run(&[("x-admin-token", ADMIN_TOKEN)]).await;
    for name in ["the upstream key", "the secret of the URL", "the token"] {
        assert_eq!(platform.get(name), None, "{name}");
    }
    let log = std::fs::read_to_string(&output).unwrap();
    assert!(log.contains("/rpc"), "the process writes log lines");
    for line in log.lines() {
        let names: Vec<_> = leaked(&canaries, line, "").map(|canary| canary.name).collect();
        assert!(
            names.is_empty() && !line.contains(ADMIN_TOKEN),
            "a log line contains {names:?}: {line}"
        );
    }
}
