//! Grants of disclosure (spec/40 section 4).

use crate::{
    chain::{Naive, policy, snapshot},
    world::{Engine, Response, TestCaller, World, grant_names},
};
use gw_audit::DisclosureAction;
use gw_chain_store::BlockData;
use gw_explorer::ActivityCall;
use gw_policy::{
    PolicySettings, Snapshot,
    disclosure::alias::Side,
    snapshot::DisclosureGrant,
    testing::{NOW, address_of, did, user_id, world},
};
use gw_types::{Address, B256, DisclosureGrantId, Level, Timestamp};
use http::StatusCode;
use serde_json::json;
use std::sync::atomic::Ordering;

const ALICE: TestCaller = TestCaller::User("alice");
const BOB: TestCaller = TestCaller::User("bob");

/// The id of the only grant to alice.
pub(crate) fn grant_to_alice(snapshot: &Snapshot) -> DisclosureGrantId {
    let [grant] = snapshot.disclosures_to(&did("alice")) else {
        panic!("one grant")
    };
    grant.id
}

pub(crate) fn wallet() -> Address {
    address_of("carol-w")
}

fn address_id() -> String {
    grant_names().address_id(wallet()).to_string()
}

/// The transactions of the wallet, the newest first, without those that are withheld from everybody (HD28).
pub(crate) fn rows_of_wallet(chain: &[BlockData]) -> Vec<Naive<'_>> {
    let withheld: Vec<B256> = snapshot(chain).withheld_transactions().collect();
    let mut rows = Naive::newest_first(chain);
    rows.retain(|tx| {
        let transaction = &tx.data.transaction;
        let has_wallet = transaction.from == wallet() || transaction.to == Some(wallet());
        has_wallet && !withheld.contains(&transaction.hash)
    });
    rows
}

/// Rules 18 and 19: the form of ids, then the credentials, then whose the grant is, then how it ended.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn ds18_ds19_a_grant_is_shown_to_its_grantee_only() {
    let world = World::random(41, PolicySettings::SPEC).await;
    let disclosed = disclosing(&world.chain, Level::Full);
    let id = grant_to_alice(&disclosed);
    let address = address_id();
    let routes = [
        format!("resolve/{address}"),
        format!("{address}/transactions"),
        "activity".to_owned(),
    ];
    let path = |id: DisclosureGrantId, route: &str| format!("/grant/{id}/{route}");
    let unknown = world.get(ALICE, &path(id, &routes[0])).await;
    assert_eq!(
        (unknown.status, &unknown.json()["error"]),
        (StatusCode::NOT_FOUND, &json!("grant not found"))
    );
    for route in &routes {
        assert_eq!(world.get(ALICE, &path(id, route)).await, unknown, "without grants");
    }
    world.set_policy(Some(disclosed));
    for route in &routes {
        let malformed = world.get(TestCaller::Nobody, &format!("/grant/x/{route}")).await;
        assert_eq!(malformed.status, StatusCode::BAD_REQUEST, "{}", malformed.text);
        let anonymous = world.get(TestCaller::Nobody, &path(id, route)).await;
        assert_eq!(anonymous.status, StatusCode::UNAUTHORIZED, "{}", anonymous.text);
        assert_eq!(anonymous.json()["error"], "authentication required");
        // Not the owner, not an administrator, and not under impersonation (HD7).
        for caller in ["bob", "carol", "root"]
            .map(TestCaller::User)
            .into_iter()
            .chain([TestCaller::RootAs("alice")])
        {
            assert_eq!(world.get(caller, &path(id, route)).await, unknown, "{caller:?} {route}");
        }
    }
    for route in ["resolve/x", "x/transactions", "resolve/0123"] {
        let malformed = world.get(TestCaller::Nobody, &path(id, route)).await;
        assert_eq!(malformed.status, StatusCode::BAD_REQUEST, "{route}");
    }
    let foreign = "0".repeat(32);
    for route in [format!("resolve/{foreign}"), format!("{foreign}/transactions")] {
        let answer = world.get(ALICE, &path(id, &route)).await;
        assert_eq!(answer.status, StatusCode::NOT_FOUND);
        assert_eq!(answer.json()["error"], "address not found for this grant");
    }
    let resolved = world.get(ALICE, &path(id, &routes[0])).await.json();
    assert_eq!(resolved["real_address"], format!("{:#x}", wallet()));
    assert_eq!(
        (&resolved["disclosure_level"], resolved.get("pseudonym")),
        (&json!("full"), None)
    );
    let activity = world.get(ALICE, &path(id, "activity")).await;
    assert_eq!(activity.json()["error"], "grant scope does not include activity_logs");
    type End = fn(&mut DisclosureGrant);
    let revoked: End = |grant| grant.revoked_at = Some(NOW);
    let expired: End = |grant| grant.expires_at = NOW;
    for (end, text) in [(revoked, "grant has been revoked"), (expired, "grant has expired")] {
        let ended = disclosing_with(&world.chain, Level::Full, end);
        world.set_policy(Some(ended));
        for route in &routes {
            let answer = world.get(ALICE, &path(id, route)).await;
            if route == "activity" {
                assert_eq!(answer, unknown, "rule 19");
            } else {
                assert_eq!(
                    (answer.status, &answer.json()["error"]),
                    (StatusCode::FORBIDDEN, &json!(text))
                );
            }
        }
        assert_eq!(
            world.get(ALICE, "/viewable-addresses").await.json()["disclosed_addresses"],
            json!([])
        );
    }
}

/// Rules 21 to 23 and 32: the page has each row of the address once, by cursor, as its level says, without membership
/// (rule 26); below Full it shows no address and no hash.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn ds21_ds22_ds23_ds32_the_page_of_an_address_has_its_rows_at_the_level_of_the_grant() {
    for (level, is_last) in [
        (Level::Full, false),
        (Level::Pseudonymous, true),
        (Level::Redacted, false),
    ] {
        let world = World::random_on(Engine::first_or_last(is_last), 44, PolicySettings::SPEC).await;
        let disclosed = disclosing(&world.chain, level);
        let path = format!("/grant/{}/{}/transactions", grant_to_alice(&disclosed), address_id());
        world.set_policy(Some(disclosed.clone()));
        let expected = rows_of_wallet(&world.chain);
        assert!(expected.len() > 3, "the world has rows");
        let list = world.walk(ALICE, &path, "transactions", 2).await;
        assert_eq!(list.rows.len(), expected.len(), "{level:?}");
        let names = grant_names();
        let mine = address_of("alice-w");
        for (row, tx) in list.rows.iter().zip(&expected) {
            let transaction = &tx.data.transaction;
            let name = |address: Address| {
                let side = if address == wallet() {
                    Side::Disclosed
                } else if address == mine {
                    Side::Own
                } else {
                    Side::Other
                };
                names.party(level, side, address).to_string()
            };
            assert_eq!(row["from"], name(transaction.from));
            assert_eq!(row.get("to").cloned(), transaction.to.map(|to| json!(name(to))));
            assert_eq!(row["block_number"], tx.number);
            let is_full = level == Level::Full;
            let hash = is_full.then(|| json!(format!("{:#x}", transaction.hash)));
            assert_eq!(row.get("tx_hash").cloned(), hash);
            let value = if is_full {
                transaction.value.to_string()
            } else {
                "hidden".to_owned()
            };
            assert_eq!(row["value"], value);
            if !is_full {
                let text = row.to_string().to_lowercase();
                for secret in [Some(transaction.from), transaction.to].into_iter().flatten() {
                    assert!(!text.contains(&hex::encode(secret)), "{text}");
                }
            }
        }
        let labels = world.get(ALICE, &path).await.json()["address_labels"].clone();
        assert_eq!(
            labels.as_object().unwrap().is_empty(),
            level != Level::Pseudonymous,
            "{labels}"
        );
        let shown = world.get(ALICE, "/viewable-addresses").await.json();
        let [address] = shown["disclosed_addresses"].as_array().unwrap().as_slice() else {
            panic!("{shown}")
        };
        assert_eq!(
            address["address"],
            names.party(level, Side::Disclosed, wallet()).to_string()
        );
        assert_eq!(
            (&address["address_id"], &address["owner_did"]),
            (&json!(address_id()), &json!(did("carol").as_str()))
        );
        let reads = world.grants.reads.lock().unwrap();
        let pages = reads
            .iter()
            .filter(|read| read.action == DisclosureAction::ViewTransactions);
        let rows: u64 = pages.filter_map(|read| read.record_count).sum();
        assert!(rows >= list.rows.len() as u64, "every page is recorded");
        assert!(
            reads
                .iter()
                .all(|read| read.viewer_id == Some(user_id("alice")) && read.owner_id == user_id("carol"))
        );
    }
}

/// Rule 31: a cursor continues the page of its grant, address and grantee only, and ends with the rows.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn ds31_a_cursor_is_one_of_its_grant_and_address() {
    let world = World::random(49, PolicySettings::SPEC).await;
    let disclosed = disclosing(&world.chain, Level::Full);
    let path = |snapshot: &Snapshot, address: Address| {
        let id = grant_names().address_id(address);
        format!("/grant/{}/{id}/transactions", grant_to_alice(snapshot))
    };
    let own = path(&disclosed, wallet());
    world.set_policy(Some(disclosed));
    let first = world.get(ALICE, &format!("{own}?limit=1")).await.json();
    let cursor = first["next_cursor"].as_str().unwrap().to_owned();
    let next = world.get(ALICE, &format!("{own}?limit=1&cursor={cursor}")).await;
    assert_eq!(next.status, StatusCode::OK, "{}", next.text);
    let all = world.get(ALICE, &format!("{own}?limit=100")).await.json();
    assert_eq!(all.get("next_cursor"), None, "absent at the end");
    let altered: String = cursor.chars().rev().collect();
    let refuses = async |path: &str, cursor: &str| {
        let refused = world.get(ALICE, &format!("{path}?cursor={cursor}")).await;
        assert_eq!(
            (refused.status, &refused.json()["error"]),
            (StatusCode::BAD_REQUEST, &json!("invalid pagination cursor")),
            "{path} {cursor}"
        );
    };
    for cursor in [altered.as_str(), "x", ""] {
        refuses(&own, cursor).await;
    }
    let built = policy(&world.chain).org("a").user("carol");
    let to_bob = built.disclosed_to("bob", Level::Full).snapshot();
    let [grant] = to_bob.disclosures_to(&did("bob")) else {
        panic!("one grant")
    };
    let other_grant = format!("/grant/{}/{}/transactions", grant.id, address_id());
    world.set_policy(Some(to_bob.clone()));
    assert_eq!(world.get(BOB, &other_grant).await.status, StatusCode::OK);
    let refused = world.get(BOB, &format!("{other_grant}?cursor={cursor}")).await;
    assert_eq!(
        (refused.status, &refused.json()["error"]),
        (StatusCode::BAD_REQUEST, &json!("invalid pagination cursor"))
    );
}

/// Spec/50 section 10: with a time bucket, a grant below Full shows rounded times and no blocks, and does not find them
/// by `before` either.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn ds22_a_time_bucket_hides_blocks() {
    let world = World::random(51, PolicySettings::SPEC)
        .await
        .with_grant_time_bucket(3600);
    for level in [Level::Redacted, Level::Pseudonymous, Level::Full] {
        let disclosed = disclosing(&world.chain, level);
        let path = format!("/grant/{}/{}/transactions", grant_to_alice(&disclosed), address_id());
        world.set_policy(Some(disclosed));
        let page = world.get(ALICE, &format!("{path}?limit=100")).await.json();
        let rows = page["transactions"].as_array().unwrap();
        assert!(!rows.is_empty());
        let is_full = level == Level::Full;
        for row in rows {
            assert_eq!(row["block_number"] != 0, is_full, "{row}");
            assert!(is_full || row["block_timestamp"].as_i64().unwrap() % 3600 == 0, "{row}");
        }
        let before = world.get(ALICE, &format!("{path}?before=20")).await.status;
        assert_eq!(before == StatusCode::OK, is_full, "{level:?}: {before}");
    }
}

/// Rule 29: the addresses of a grant are listed in the order of their ids. In the order of the addresses, the first
/// alias of one grant would be the first of every other.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn ds29_the_order_of_disclosed_addresses_says_nothing_about_them() {
    let mut built = world()
        .org("a")
        .group("staff")
        .user("alice")
        .member("a/staff")
        .user("dora");
    let wallets: Vec<String> = (0..12).map(|number| format!("dora-w{number}")).collect();
    for wallet in &wallets {
        built = built.link(wallet);
    }
    let explorer = World::with(
        built.disclosed_to("alice", Level::Pseudonymous).snapshot(),
        PolicySettings::SPEC,
    )
    .await;
    let answer = explorer.get(ALICE, "/viewable-addresses").await.json();
    let listed: Vec<&str> = (answer["disclosed_addresses"].as_array().unwrap().iter())
        .map(|row| row["address_id"].as_str().unwrap())
        .collect();
    assert_eq!(listed.len(), wallets.len());
    assert!(listed.is_sorted(), "{listed:?}");
    let mut addresses: Vec<Address> = wallets.iter().map(|wallet| address_of(wallet)).collect();
    addresses.sort();
    let by_address: Vec<String> = (addresses.iter())
        .map(|address| grant_names().address_id(*address).to_string())
        .collect();
    assert_ne!(listed, by_address, "the two orders differ in this world");
}

/// Rule 20: without a token, `wallet` is needed, and it gives no rights.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn ds20_viewable_addresses_without_a_token_are_none() {
    let world = World::random(50, PolicySettings::SPEC).await;
    world.set_policy(Some(disclosing(&world.chain, Level::Full)));
    let refused = world.get(TestCaller::Nobody, "/viewable-addresses").await;
    assert_eq!(refused.status, StatusCode::BAD_REQUEST, "{}", refused.text);
    for address in [address_of("alice-w"), wallet()] {
        let wallet = format!("{address:#x}");
        let answer = world
            .get(TestCaller::Nobody, &format!("/viewable-addresses?wallet={wallet}"))
            .await;
        assert_eq!(
            answer.json(),
            json!({"own_addresses": [], "disclosed_addresses": [], "viewer_wallet": wallet})
        );
    }
}

/// Rules 23 and 24: dates and addresses of the scope limit the page, and so do the classes.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn ds23_ds24_the_scope_limits_the_page() {
    let world = World::random(45, PolicySettings::SPEC).await;
    let rows = rows_of_wallet(&world.chain);
    let page = async |change: &dyn Fn(&mut DisclosureGrant)| {
        let disclosed = disclosing_with(&world.chain, Level::Full, change);
        let path = format!("/grant/{}/{}/transactions", grant_to_alice(&disclosed), address_id());
        world.set_policy(Some(disclosed));
        world.get(ALICE, &format!("{path}?limit=100")).await
    };
    let count = |answer: &Response| answer.json()["transactions"].as_array().unwrap().len();
    assert_eq!(
        count(&page(&|_| {}).await),
        rows.len(),
        "without the withheld one (HD28)"
    );
    let middle = rows[rows.len() / 2].time;
    let until = page(&|grant| grant.scope.dates = Some((Timestamp::from_micros(1), middle))).await;
    assert_eq!(count(&until), rows.iter().filter(|tx| tx.time <= middle).count());
    let since = page(&|grant| grant.scope.dates = Some((middle, middle))).await;
    assert_eq!(count(&since), rows.iter().filter(|tx| tx.time == middle).count());
    let other = rows.iter().find_map(|tx| {
        let transaction = &tx.data.transaction;
        let sides = [Some(transaction.from), transaction.to];
        sides.into_iter().flatten().find(|side| *side != wallet())
    });
    let other = other.unwrap();
    let with = page(&|grant| grant.scope.addresses = Some(vec![other])).await;
    let expected = rows
        .iter()
        .filter(|tx| tx.data.transaction.from == other || tx.data.transaction.to == Some(other));
    assert_eq!(count(&with), expected.count());
    let none = page(&|grant| grant.scope.addresses = Some(vec![Address::repeat_byte(0x99)])).await;
    assert_eq!(count(&none), 0);
    let activity = page(&|grant| grant.scope.methods = Some(vec!["activity_logs".to_owned()])).await;
    assert_eq!(activity.status, StatusCode::FORBIDDEN);
    assert_eq!(
        activity.json()["error"],
        "grant scope does not include transaction_history"
    );
}

/// Rules 19 and 39: a revocation binds the next page, and what cannot be recorded is not shown.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn ds19_ds39_a_page_needs_the_grant_and_the_journal() {
    let world = World::random(46, PolicySettings::SPEC).await;
    let disclosed = disclosing(&world.chain, Level::Full);
    let id = grant_to_alice(&disclosed);
    let path = format!("/grant/{id}/{}/transactions?limit=1", address_id());
    world.set_policy(Some(disclosed.clone()));
    let first = world.get(ALICE, &path).await.json();
    let next = format!("{path}&cursor={}", first["next_cursor"].as_str().unwrap());
    assert_eq!(world.get(ALICE, &next).await.status, StatusCode::OK);
    world.grants.is_full.store(true, Ordering::SeqCst);
    for path in [
        next.as_str(),
        "/viewable-addresses",
        &format!("/grant/{id}/resolve/{}", address_id()),
    ] {
        let refused = world.get(ALICE, path).await;
        assert_eq!(
            (refused.status, &refused.json()["error"]),
            (StatusCode::SERVICE_UNAVAILABLE, &json!("audit unavailable"))
        );
    }
    world.grants.is_full.store(false, Ordering::SeqCst);
    world.set_policy(Some(disclosing_with(&world.chain, Level::Full, |grant| {
        grant.revoked_at = Some(NOW)
    })));
    assert_eq!(world.get(ALICE, &next).await.json()["error"], "grant has been revoked");
    world.set_policy(Some(snapshot(&world.chain)));
    assert_eq!(world.get(ALICE, &next).await.json()["error"], "grant not found");
}

/// The preview shows the owner the rows of the grant, but does not tell which addresses are the grantee's. Other
/// viewers and impersonating administrators get 404. In this test, the id in the path names the grantee.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn ds22_a_preview_does_not_tell_which_addresses_are_the_grantees() {
    let world = World::random(48, PolicySettings::SPEC).await;
    let disclosed = disclosing(&world.chain, Level::Pseudonymous);
    let id = grant_to_alice(&disclosed);
    world.set_policy(Some(disclosed));
    let preview = async |who| world.post_as(who, "/request/alice/preview").await;
    let mine = address_of("alice-w");
    let rows = rows_of_wallet(&world.chain);
    let is_mine = |address: Option<Address>| address == Some(mine);
    assert!(
        rows.iter()
            .take(10)
            .any(|tx| is_mine(Some(tx.data.transaction.from)) || is_mine(tx.data.transaction.to)),
        "the newest rows have a transaction with the grantee"
    );
    let page = format!("/grant/{id}/{}/transactions?limit=10", address_id());
    let page = world.get(ALICE, &page).await.text;
    assert!(page.contains("\"Mine\""), "{page}");
    let previewed = preview(TestCaller::User("carol")).await;
    assert_eq!(previewed.status, StatusCode::OK, "{}", previewed.text);
    assert!(!previewed.text.contains("Mine"), "{}", previewed.text);
    let external = grant_names().party(Level::Pseudonymous, Side::Other, mine).to_string();
    let own = previewed.json()["addresses"][0].clone();
    assert_eq!(own["address"], format!("{:#x}", wallet()));
    assert_eq!(own["transactions"].to_string(), {
        let shown: serde_json::Value = serde_json::from_str(&page).unwrap();
        shown["transactions"].to_string().replace("Mine", &external)
    });
    assert_eq!(own["transaction_count"], json!(rows.len()));
    for (who, status) in [
        (TestCaller::User("alice"), StatusCode::NOT_FOUND),
        (TestCaller::RootAs("carol"), StatusCode::NOT_FOUND),
        (TestCaller::Nobody, StatusCode::UNAUTHORIZED),
    ] {
        assert_eq!(preview(who).await.status, status, "{who:?}");
    }
}

/// Rule 25.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn ds25_the_activity_has_method_status_and_time() {
    let world = World::random(47, PolicySettings::SPEC).await;
    let methods = |grant: &mut DisclosureGrant| grant.scope.methods = Some(vec!["activity_logs".to_owned()]);
    let disclosed = disclosing_with(&world.chain, Level::Redacted, methods);
    let path = format!("/grant/{}/activity", grant_to_alice(&disclosed));
    world.set_policy(Some(disclosed));
    *world.grants.calls.lock().unwrap() = ["eth_call", "eth_getLogs", "eth_call"]
        .map(|method| ActivityCall {
            method: method.to_owned(),
            status_code: 404,
            time: NOW,
        })
        .into();
    let page = world.get(ALICE, &format!("{path}?limit=1&offset=1")).await.json();
    let call = json!({"method": "eth_getLogs", "status_code": 404, "timestamp": NOW.to_rfc3339()});
    assert_eq!(page, json!({"logs": [call], "total": 3, "limit": 1, "offset": 1}));
    assert_eq!(world.get(ALICE, &path).await.json()["limit"], 25);
    let read = world.grants.reads.lock().unwrap().first().cloned().unwrap();
    assert_eq!((read.action, read.record_count), (DisclosureAction::ViewLogs, Some(1)));
}

/// The world in which `carol` disclosed her wallet to `alice` for organization `a`.
pub(crate) fn disclosing(chain: &[BlockData], level: Level) -> Snapshot {
    disclosing_with(chain, level, |_| {})
}

pub(crate) fn disclosing_with(chain: &[BlockData], level: Level, change: impl Fn(&mut DisclosureGrant)) -> Snapshot {
    let built = policy(chain).org("a").user("carol").disclosed_to("alice", level);
    built.with_disclosures(change).snapshot()
}
