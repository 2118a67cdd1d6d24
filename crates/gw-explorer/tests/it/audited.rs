//! Rows that are shown only under audit (K10), and what the answers about rows of others cost and name.

use crate::{
    chain::{ChainMaker, Naive},
    world::{EVERYBODY, TestCaller, World},
};
use gw_audit::{SecurityEvent, SecurityKind};
use gw_policy::{
    PolicySettings,
    testing::{address_of, did},
};
use gw_types::B256;
use http::StatusCode;
use serde_json::Value;

const ROOT: TestCaller = TestCaller::User("root");
const PRIVATE: &str = "[PRIVATE]";

fn path(kind: &str, name: &str) -> String {
    format!("/{kind}/0x{}", hex::encode(address_of(name)))
}

/// K10: each answer with transactions that only the setting shows leaves a security event, which is written before the
/// answer leaves.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn k10_each_revealing_answer_leaves_a_security_event() {
    let list = async |world: &World| world.get(ROOT, "/transactions?limit=100").await.json()["data"].clone();
    let without = list(&World::random(311, PolicySettings::SPEC).await).await;
    let without = without.as_array().unwrap();
    for is_enabled in [true, false] {
        let settings = PolicySettings {
            org_admin_view_user_txs: is_enabled,
            ..PolicySettings::SPEC
        };
        let world = World::random(311, settings).await;
        let _earlier = world.fixture.records();
        let events = || -> Vec<SecurityEvent> {
            let events = world.fixture.security_events().into_iter();
            events
                .filter(|event| event.kind == SecurityKind::AuditedRowsShown)
                .collect()
        };
        let shown = list(&world).await;
        let is_new = |row: &&Value| without.iter().all(|other| other["hash"] != row["hash"]);
        let kept: Vec<&Value> = shown.as_array().unwrap().iter().filter(is_new).collect();
        // A side that is a utility is printed, and keeps no row (HD9).
        let is_masked = |row: &&Value| (row["from"] == PRIVATE || row["to"] == PRIVATE) && row["value"] != "";
        assert!(kept.iter().all(is_masked), "{kept:?}");
        let written = events();
        assert_eq!(
            (!kept.is_empty(), written.len()),
            (is_enabled, usize::from(is_enabled)),
            "{written:?}"
        );
        if let Some(event) = written.first() {
            assert_eq!(event.count, Some(kept.len() as u64));
            assert_eq!(event.external_id, Some(did("root")));
            assert_eq!(event.reason.as_deref(), Some("GET /api/v1/explorer/transactions"));
            assert!(event.ip_address.is_some());
        }
        // Answers without such rows leave none, whoever gets them.
        for (who, path) in [
            (ROOT, "/blocks"),
            (ROOT, "/transactions?before=0"),
            (TestCaller::User("alice"), "/transactions?limit=100"),
            (TestCaller::Nobody, "/transactions?limit=100"),
        ] {
            assert_eq!(world.get(who, path).await.status, StatusCode::OK);
            assert_eq!(events(), [], "{who:?} {path}");
        }
    }
}

/// R18, K12: a log shows the hash of its transaction by the rule of the transfer: if the transaction is shown with it.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn r18_a_log_shows_the_hash_of_a_shown_transaction_only() {
    let chain = ChainMaker::new(312).blocks(1, B256::ZERO, 24);
    let world = World::loaded(chain.clone(), PolicySettings::SPEC).await;
    let (snapshot, settings) = (world.snapshot(), world.settings());
    let (mut shown, mut hidden) = (0, 0);
    for who in EVERYBODY {
        let viewer = who.viewer(&snapshot, &settings);
        let expected = Naive::newest_first(&chain).into_iter().flat_map(|tx| {
            let hash = if tx.is_shown(&viewer) {
                format!("0x{}", hex::encode(tx.data.transaction.hash))
            } else {
                PRIVATE.to_owned()
            };
            vec![hash; tx.shown_logs(&viewer).len()]
        });
        let expected: Vec<String> = expected.collect();
        let hashes = world.walk(who, "/logs", "data", 50).await.texts("txHash");
        assert_eq!(hashes, expected, "{who:?}");
        hidden += hashes.iter().filter(|hash| *hash == PRIVATE).count();
        shown += hashes.iter().filter(|hash| *hash != PRIVATE).count();
    }
    assert!(shown > 10 && hidden > 3, "{shown} {hidden}");
}

/// spec/30 section 8: a hidden hash costs the same reads as a missing one. Nothing of the hidden row is read: here it
/// could not be.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn hd40_nothing_of_a_hidden_transaction_or_token_is_read() {
    let world = World::random(313, PolicySettings::SPEC).await;
    let carol = TestCaller::User("carol");
    let seen = world.walk(carol, "/transactions", "data", 100).await.texts("hash");
    let all = world.chain.iter().flat_map(|block| &block.transactions);
    let all: Vec<String> = all
        .map(|data| format!("0x{}", hex::encode(data.transaction.hash)))
        .collect();
    let hidden: Vec<&String> = all.iter().filter(|hash| !seen.contains(hash)).collect();
    assert!(hidden.len() > 3);
    let quoted: Vec<String> = hidden
        .iter()
        .map(|hash| format!("x'{}'", hash.trim_start_matches("0x")))
        .collect();
    let quoted = quoted.join(", ");
    world
        .tamper(&format!(
            "UPDATE transactions SET from_address = x'00' WHERE hash IN ({quoted})"
        ))
        .await;
    world
        .tamper(&format!(
            "UPDATE tokens SET total_supply = x'00' WHERE address = x'{}'",
            hex::encode(address_of("a-token"))
        ))
        .await;
    for hash in hidden {
        let response = world.get(carol, &format!("/transactions/{hash}")).await;
        assert_eq!(response.status, StatusCode::NOT_FOUND, "{}", response.text);
        let found = world.get(carol, &format!("/search/suggestions?q={hash}")).await;
        assert_eq!((found.status, found.text.as_str()), (StatusCode::OK, "[]"));
        for rows in ["internal", "transfers", "logs"] {
            let rows = world.get(carol, &format!("/transactions/{hash}/{rows}")).await;
            assert_eq!((rows.status, rows.text.as_str()), (StatusCode::OK, "[]"));
        }
    }
    let token = world.get(carol, &path("tokens", "a-token")).await;
    assert_eq!(token.status, StatusCode::NOT_FOUND, "{}", token.text);
}

/// HD9: precompiles and shared infrastructure show balance and code, as on `/rpc`, and own no lists and counts.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn hd9_utilities_show_their_account_and_no_lists() {
    let world = World::random(314, PolicySettings::SPEC).await;
    let (shared, precompile) = (path("addresses", "infra"), format!("/addresses/0x{:040x}", 4));
    for who in EVERYBODY {
        for (address, code) in [(&shared, "\"0x01\""), (&precompile, "\"0x\"")] {
            let answer = async |rest: &str| world.get(who, &format!("{address}/{rest}")).await;
            assert_eq!(answer("balance").await.text, "\"0x4d\"", "{who:?}");
            assert_eq!(answer("code").await.text, code, "{who:?}");
            assert_eq!(answer("is-contract").await.status, StatusCode::OK, "{who:?}");
            for list in ["stats", "transactions", "transfers", "internal", "logs", "balances"] {
                assert_eq!(answer(list).await.status, StatusCode::NOT_FOUND, "{who:?} {list}");
            }
        }
        let contract = world.get(who, &format!("{shared}/contract")).await;
        assert_eq!(contract.status, StatusCode::OK, "{who:?}: {}", contract.text);
        let hidden = world
            .get(TestCaller::Nobody, &format!("{}/code", path("addresses", "wild")))
            .await;
        assert_eq!(hidden.status, StatusCode::NOT_FOUND);
    }
}
