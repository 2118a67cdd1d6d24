//! The canary scan: one bank's member does private business, everybody else looks everywhere, and no answer, header, log
//! line or metric holds what they may not see (spec/30 I2, HD12, HD17 PU-3). An answer may repeat its question here;
//! `noninterference` asks with the secrets in the question, and compares two worlds.

use crate::{
    harness::{ADMIN_TOKEN, Answer, Engine, KEEP_LINES, init_code},
    world::{self, Persona, World, balance_of, grant, group, transfer},
};
use alloy_primitives::{Address, B256, Bytes, U256};
use alloy_signer_local::PrivateKeySigner;
use alloy_sol_types::{SolCall, SolValue};
use serde_json::{Value, json};
use std::collections::BTreeMap;

/// A value that not everybody may see, in lower case.
struct Canary {
    what: &'static str,
    text: String,
}

/// The chain's part of it: who did what.
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

/// A member of Meridian with a wallet nobody else has.
async fn bird(w: &World, group: &str) -> Persona {
    let did = "did:test:kanarienvogel";
    let joins = format!("/orgs/{}/memberships/by-did", w.meridian);
    let made =
        w.gw.admin("POST", &joins, Some(json!({"did": did, "group_id": group})))
            .await
            .expect(201);
    let user_id = made["user_id"].as_str().unwrap().to_owned();
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

/// A bird with a token of its own: deploys it, pays somebody out of it, in a group with a key of its own.
async fn do_business(w: &World, bird: &Persona, group: &str) -> Business {
    let supply = U256::MAX;
    let constructor = ("Private Dollar".to_owned(), "Kanarientoken".to_owned(), supply).abi_encode_params();
    let vault =
        w.gw.deploy(&bird.token, &bird.key, init_code("DemoERC20", &constructor))
            .await;
    let recipient = PrivateKeySigner::from_slice(&[0x5c; 32]).unwrap().address();
    let hash =
        w.gw.send(
            &bird.token,
            &bird.key,
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
        wallet: bird.address(),
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

/// Every read there is, of everything the business touched.
fn questions(b: &Business) -> Vec<(&'static str, Value)> {
    let mut asked = vec![
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
        asked.push(("eth_getBlockByNumber", json!([tag, true])));
        asked.push(("eth_getBlockReceipts", json!([tag])));
        asked.push(("eth_getTransactionByBlockNumberAndIndex", json!([tag, "0x0"])));
        asked.push(("eth_getBlockTransactionCountByNumber", json!([tag])));
        for address in [b.wallet, b.recipient, b.vault] {
            for method in ["eth_getBalance", "eth_getTransactionCount"] {
                asked.push((method, json!([address, tag])));
            }
            asked.push(("eth_getStorageAt", json!([address, "0x0", tag])));
            asked.push(("eth_getProof", json!([address, [], tag])));
        }
        for data in [balance_of(b.recipient), balance_of(b.wallet), symbol()] {
            let call = json!({"to": b.vault, "data": data});
            asked.push(("eth_call", json!([call, tag])));
            asked.push(("eth_estimateGas", json!([call])));
            asked.push(("eth_createAccessList", json!([call, tag])));
            asked.push(("debug_traceCall", json!([call, tag, {"tracer": "callTracer"}])));
        }
    }
    asked
}

/// Every GET of the API description, about the bird and its bank.
async fn pages(w: &World, bird: &Persona, b: &Business, group: &str) -> Vec<String> {
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
                .replace("{user_id}", &bird.user_id)
                .replace("{did}", bird.did)
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

fn texts(answer: &Answer) -> String {
    let headers = answer
        .headers
        .iter()
        .map(|(name, value)| format!("{name}: {}\n", String::from_utf8_lossy(value.as_bytes())));
    (headers.collect::<String>() + &answer.body).to_ascii_lowercase()
}

/// The names of what stands in `text` and did not stand in the question.
fn found<'a>(canaries: &'a [Canary], text: &str, question: &str) -> impl Iterator<Item = &'a Canary> {
    let (text, question) = (text.to_ascii_lowercase(), question.to_ascii_lowercase());
    canaries
        .iter()
        .filter(move |canary| text.contains(&canary.text) && !question.contains(&canary.text))
}

/// Where somebody who looks everywhere meets each canary.
struct Scan<'a> {
    w: &'a World,
    canaries: &'a [Canary],
    questions: Vec<(&'static str, Value)>,
    pages: Vec<String>,
}

impl Scan<'_> {
    async fn of(&self, headers: &[(&str, &str)]) -> BTreeMap<&'static str, String> {
        let mut met = BTreeMap::new();
        let mut note = |answer: &Answer, question: String| {
            assert!(answer.status < 500, "{question}: {}", answer.body);
            for canary in found(self.canaries, &texts(answer), &question) {
                met.entry(canary.what)
                    .or_insert_with(|| format!("{question}: {}", texts(answer)));
            }
        };
        for (method, params) in &self.questions {
            let body = json!({"jsonrpc": "2.0", "id": 1, "method": method, "params": params}).to_string();
            note(
                &self.w.gw.raw("POST", "/rpc", headers, Some(&body)).await,
                format!("{method}{params}"),
            );
        }
        for page in &self.pages {
            note(&self.w.gw.raw("GET", page, headers, None).await, page.clone());
        }
        met
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn i2_nobody_meets_a_canary() {
    let place = tempfile::tempdir().unwrap();
    let lines = place.path().join("lines");
    let sealing = "11".repeat(32);
    let extra = [
        ("LOG_LEVEL", "trace"),
        ("AUDIT_LOG_PARAMS", "true"),
        ("RPC_API_KEY_ENCRYPTION_KEY", &sealing),
        (KEEP_LINES, lines.to_str().unwrap()),
    ];
    let w = World::start_with(Engine::Sqlite, &extra).await;
    let place = group(&w.gw, &w.meridian, GROUP, false, json!(["*"]), json!(["deploy"])).await;
    let bird = bird(&w, &place).await;
    let b = do_business(&w, &bird, &place).await;
    let made =
        w.gw.as_user(
            &bird.token,
            "POST",
            "/api/v1/me/rpc-urls",
            Some(json!({"scope": "all"})),
        )
        .await
        .expect(201);
    let secret = made["url"].as_str().unwrap().rsplit_once('/').unwrap().1.to_owned();

    let hex = |bytes: &[u8]| alloy_primitives::hex::encode(bytes);
    let canary = |what, text: &str| Canary {
        what,
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
        canary("the DID", bird.did),
        canary("the upstream key", KEY),
        canary("the secret of the URL", &secret),
        canary("the token", &bird.token),
    ];
    let scan = Scan {
        w: &w,
        canaries: &canaries,
        questions: questions(&b),
        pages: pages(&w, &bird, &b, &place).await,
    };
    let by = |token: &str| format!("Bearer {token}");

    // The scan meets what is there to be met: their owner meets the birds, and the bank's administrator what is
    // administered; nobody's wallet, nobody's key.
    let owner = scan.of(&[("authorization", &by(&bird.token))]).await;
    for what in [
        "the recipient",
        "the sum",
        "the contract",
        "the transaction",
        "the token's symbol",
    ] {
        assert!(
            owner.contains_key(what),
            "{what} is not met by its owner: {:?}",
            owner.keys()
        );
    }
    let administrator = scan.of(&[("authorization", &by(&w.admin.token))]).await;
    for what in [
        "the contract",
        "the transaction",
        "the name of the contract",
        "the group",
        "the note",
    ] {
        assert!(
            administrator.contains_key(what),
            "{what} is not met by the administrator: {:?}",
            administrator.keys()
        );
    }
    for what in [
        "the wallet",
        "the recipient",
        "the upstream key",
        "the secret of the URL",
        "the token",
    ] {
        assert_eq!(administrator.get(what), None, "the administrator meets {what}");
    }

    // The others, with everything a group can be given: another bank and its administrator, colleagues, nobody.
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
    for who in [&w.outsider, &w.trader, &w.analyst, &w.ops, &w.unverified] {
        assert_eq!(
            scan.of(&[("authorization", &by(&who.token))]).await,
            BTreeMap::new(),
            "{}",
            who.did
        );
    }
    assert_eq!(scan.of(&[]).await, BTreeMap::new(), "nobody");
    w.gw.admin(
        "PUT",
        &format!("/users/{}", w.ops.user_id),
        Some(json!({"banned": true})),
    )
    .await
    .expect(200);
    assert_eq!(
        scan.of(&[("authorization", &by(&w.ops.token))]).await,
        BTreeMap::new(),
        "banned"
    );

    // A super administrator meets no secret; who reads the lines meets neither secrets nor business.
    let everything = scan.of(&[("x-admin-token", ADMIN_TOKEN)]).await;
    for what in ["the upstream key", "the secret of the URL", "the token"] {
        assert_eq!(everything.get(what), None, "{what}");
    }
    let said = std::fs::read_to_string(&lines).unwrap();
    assert!(said.contains("/rpc"), "lines are written");
    for line in said.lines() {
        let told: Vec<_> = found(&canaries, line, "").map(|canary| canary.what).collect();
        assert!(
            told.is_empty() && !line.contains(ADMIN_TOKEN),
            "a line tells {told:?}: {line}"
        );
    }
}
