//! Grants of disclosure through the real binary (spec/50): on every surface at once, as far as the grant goes, and not
//! longer.

use crate::{
    explorer::{explorer_database, wait_until_synced},
    harness::{Engine, on_both_engines},
    world::{Persona, World, member, transfer},
};
use alloy_primitives::{Bytes, U256};
use serde_json::{Value, json};
use tempfile::TempDir;

const REQUESTS: &str = "/api/v1/me/disclosure/requests";
const EXPLORER: &str = "/api/v1/explorer";

/// A bank whose ops paid the trader of another bank, and an auditor who is a member of the bank without any rights.
struct Scene {
    w: World,
    auditor: Persona,
    /// The hash of the payment.
    payment: String,
    _directory: TempDir,
}

impl Scene {
    async fn start(engine: Engine) -> Self {
        let directory = tempfile::tempdir().unwrap();
        let database = explorer_database(engine, &directory);
        let w = World::start_with(engine, &[("EXPLORER_DATABASE_URL", &database)]).await;
        let auditor = member(&w.gw, &w.meridian, &w.analysts, "did:test:auditor", 6, true).await;
        let to = w.trader.address();
        let payment =
            w.gw.send(&w.ops.token, &w.ops.key, Some(to), U256::from(77_001), Bytes::new())
                .await
                .to_string();
        w.gw.send(
            &w.ops.token,
            &w.ops.key,
            Some(w.erc20),
            U256::ZERO,
            transfer(w.analyst.address(), 3),
        )
        .await;
        wait_until_synced(&w.gw).await;
        Self {
            w,
            auditor,
            payment,
            _directory: directory,
        }
    }

    /// Requests the transactions of ops for the auditor; returns the id of the request.
    async fn request(&self, scope: Value) -> String {
        let body = json!({
            "org_id": self.w.meridian, "target_user_id": self.w.ops.user_id, "requester_did": self.auditor.did,
            "reason": "yearly audit", "scope": scope,
        });
        let request = self.w.as_admin("POST", "/disclosure/requests", Some(body)).await;
        request.expect(201)["id"].as_str().unwrap().to_owned()
    }

    async fn as_owner(&self, path: &str, body: Value) -> Value {
        let answer = self.w.gw.as_user(&self.w.ops.token, "POST", path, Some(body)).await;
        answer.expect(200)
    }

    async fn preview(&self, request: &str, body: Value) -> Value {
        self.as_owner(&format!("{EXPLORER}/request/{request}/preview"), body)
            .await
    }

    async fn approve(&self, request: &str, body: Value) -> String {
        let approved = self.as_owner(&format!("{REQUESTS}/{request}/approve"), body).await;
        approved["grant"]["id"].as_str().unwrap().to_owned()
    }

    async fn revoke(&self, request: &str) {
        self.as_owner(&format!("{REQUESTS}/{request}/revoke"), json!({})).await;
    }

    /// Requests a route of the explorer as the auditor.
    async fn auditor_gets(&self, path: &str) -> crate::harness::Response {
        let path = format!("{EXPLORER}{path}");
        self.w.gw.as_user(&self.auditor.token, "GET", &path, None).await
    }

    /// Requests the transactions of ops under the grant, as the auditor.
    async fn page(&self, grant: &str) -> crate::harness::Response {
        let addresses = self.auditor_gets("/viewable-addresses").await.expect(200);
        let disclosed = addresses["disclosed_addresses"].as_array().unwrap();
        let id = disclosed
            .iter()
            .find(|address| address["grant_id"] == json!(grant))
            .map_or("00000000000000000000000000000000", |address| {
                address["address_id"].as_str().unwrap()
            });
        self.auditor_gets(&format!("/grant/{grant}/{id}/transactions?limit=100"))
            .await
    }

    /// Whether `/rpc` and the explorer show the payment to the auditor; both must say the same.
    async fn auditor_sees_the_payment(&self) -> bool {
        let hash = json!([self.payment]);
        let by_rpc = self
            .w
            .gw
            .result(&self.auditor.token, "eth_getTransactionByHash", hash)
            .await;
        let row = self.auditor_gets(&format!("/transactions/{}", self.payment)).await;
        let list = self.auditor_gets("/transactions?limit=100").await.expect(200);
        assert_eq!(!by_rpc.is_null(), row.status == 200, "{by_rpc} {}", row.body);
        assert_eq!(!by_rpc.is_null(), list.to_string().contains(&self.payment), "{list}");
        !by_rpc.is_null()
    }
}

on_both_engines!(
    ds8_ds23_ds27_a_grant_counts_on_every_surface_until_it_is_revoked,
    ds22_below_full_nothing_real_is_reachable,
    a_preview_shows_what_the_grant_will_show,
);

/// spec/50 section 8, rules 23 and 27.
async fn ds8_ds23_ds27_a_grant_counts_on_every_surface_until_it_is_revoked(engine: Engine) {
    let scene = Scene::start(engine).await;
    assert!(!scene.auditor_sees_the_payment().await);
    let full = json!({"methods": ["transaction_history"], "disclosure_level": "full"});
    let request = scene.request(full.clone()).await;
    assert!(!scene.auditor_sees_the_payment().await, "nothing is granted yet");
    let grant = scene.approve(&request, json!({})).await;
    assert!(scene.auditor_sees_the_payment().await);
    let page = scene.page(&grant).await.expect(200);
    assert_eq!(page["transactions"][1]["tx_hash"], json!(scene.payment), "{page}");
    assert_eq!(page["transactions"][1]["value"], json!("77001"));
    scene.revoke(&request).await;
    assert!(
        !scene.auditor_sees_the_payment().await,
        "revocation binds the next read"
    );
    let revoked = scene.page(&grant).await;
    assert_eq!(
        (revoked.status, &revoked.json()["error"]),
        (403, &json!("grant has been revoked"))
    );
    // A narrower grant: the payment is outside of its addresses.
    let request = scene.request(full).await;
    let scope = json!({"scope": {"addresses": [scene.w.erc20]}});
    let grant = scene.approve(&request, scope).await;
    assert!(!scene.auditor_sees_the_payment().await, "outside of the scope");
    let page = scene.page(&grant).await.expect(200);
    assert!(!page.to_string().contains(&scene.payment), "{page}");
    assert!(!page["transactions"].as_array().unwrap().is_empty());
}

/// Rule 22: searched in every answer that the auditor can get.
async fn ds22_below_full_nothing_real_is_reachable(engine: Engine) {
    let scene = Scene::start(engine).await;
    let hex = |text: String| text.trim_start_matches("0x").to_lowercase();
    let canaries = [
        hex(scene.w.ops.address().to_string()),
        hex(scene.w.trader.address().to_string()),
        hex(scene.payment.clone()),
        scene.w.trader.did.to_owned(),
        "77001".to_owned(),
    ];
    for level in ["pseudonymous", "redacted"] {
        let scope = json!({"methods": ["transaction_history"], "disclosure_level": level});
        let request = scene.request(scope).await;
        let grant = scene.approve(&request, json!({})).await;
        let page = scene.page(&grant).await;
        assert!(page.expect(200)["transactions"].as_array().unwrap().len() >= 2);
        let mut answers = vec![page];
        for path in [
            "/viewable-addresses",
            "/transactions?limit=100",
            "/transfers?limit=100",
            "/logs?limit=100",
            "/accounts",
            "/blocks?limit=100",
            "/tx-history",
            "/stats",
        ] {
            answers.push(scene.auditor_gets(path).await);
        }
        let list = scene.auditor_gets("/transactions?limit=100").await.expect(200);
        assert!(
            list["data"].as_array().unwrap().len() >= 2,
            "the feed has the disclosed rows, masked: {list}"
        );
        for row in list["data"].as_array().unwrap() {
            answers.push(
                scene
                    .auditor_gets(&format!("/blocks/{}/transactions", row["blockNumber"]))
                    .await,
            );
        }
        for answer in answers {
            let body = answer.body.to_lowercase();
            for canary in &canaries {
                assert!(!body.contains(canary), "{level}: {canary} in {body}");
            }
        }
        let by_rpc = scene
            .w
            .gw
            .rpc(&scene.auditor.token, "eth_getBlockByNumber", json!(["latest", true]))
            .await;
        for canary in &canaries[..2] {
            assert!(!by_rpc.body.to_lowercase().contains(canary), "{level}: {}", by_rpc.body);
        }
        scene.revoke(&request).await;
    }
}

/// At the levels full and redacted, the preview has the same rows as the grant. At the level pseudonymous, it has
/// aliases of its own.
async fn a_preview_shows_what_the_grant_will_show(engine: Engine) {
    let scene = Scene::start(engine).await;
    let transactions = |preview: &Value| preview["addresses"][0]["transactions"].clone();
    for level in ["full", "pseudonymous", "redacted"] {
        let scope = json!({"methods": ["transaction_history", "activity_logs"], "disclosure_level": "full"});
        let request = scene.request(scope).await;
        let narrowed = json!({"scope": {"disclosure_level": level, "methods": ["transaction_history"]}});
        let preview = scene.preview(&request, narrowed.clone()).await;
        assert_eq!(preview["requester_did"], json!(scene.auditor.did));
        assert_eq!(
            (&preview["discloses_transactions"], &preview["discloses_activity"]),
            (&json!(true), &json!(false)),
            "{preview}"
        );
        assert!(!scene.auditor_sees_the_payment().await, "a preview grants nothing");
        let grant = scene.approve(&request, narrowed).await;
        let page = scene.page(&grant).await.expect(200);
        let shown = page["transactions"].as_array().unwrap();
        assert_eq!(preview["addresses"][0]["transaction_count"], json!(shown.len()));
        if level == "pseudonymous" {
            let names = transactions(&preview);
            assert!(names[0]["from"].as_str().unwrap().starts_with("Address-"), "{names}");
            assert_ne!(names[0]["from"], shown[0]["from"], "aliases of a preview are its own");
        } else {
            assert_eq!(transactions(&preview), page["transactions"], "{level}");
        }
        // A request that was decided has no preview, and that of another owner is not shown.
        let path = format!("{EXPLORER}/request/{request}/preview");
        let gw = &scene.w.gw;
        let decided = gw.as_user(&scene.w.ops.token, "POST", &path, None).await;
        assert_eq!(decided.status, 400, "{}", decided.body);
        for token in [&scene.auditor.token, &scene.w.admin.token] {
            gw.as_user(token, "POST", &path, None).await.expect(403);
        }
        gw.request("POST", &path, &[], None).await.expect(401);
        scene.revoke(&request).await;
    }
}
