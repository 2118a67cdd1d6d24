//! What grants of disclosure add to lists and searches, and the records of these reads (spec/30 basis 9, spec/50 rule
//! 39).

use crate::{
    chain::{Naive, policy, snapshot},
    grants::{disclosing, grant_to_alice, rows_of_wallet, wallet},
    world::{Engine, TestAliases, TestCaller, World},
};
use gw_audit::DisclosureAction;
use gw_explorer::Aliases as _;
use gw_policy::{
    PolicySettings,
    snapshot::DisclosureScope,
    testing::user_id,
    visibility::explorer::{AddressText, AddressVisibility},
};
use gw_types::{Address, Level, Timestamp};
use http::StatusCode;
use serde_json::json;
use std::sync::atomic::Ordering;

const ALICE: TestCaller = TestCaller::User("alice");

/// HD5, rule 22: a grantee who guesses the hash of a disclosed transaction that is shown without it learns nothing,
/// also not from the own events.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn hd5_the_search_for_a_hash_that_is_not_shown_leaves_no_read() {
    let world = World::random(44, PolicySettings::SPEC).await;
    let reads = || std::mem::take(&mut *world.grants.reads.lock().unwrap());
    let searches = async |level| {
        world.set_policy(Some(disclosing(&world.chain, level)));
        let (mut found, mut recorded) = (0, 0);
        for row in rows_of_wallet(&world.chain) {
            let hash = row.data.transaction.hash;
            let answer = world.get(ALICE, &format!("/search/suggestions?q={hash:#x}")).await;
            let is_found = !answer.json().as_array().unwrap().is_empty();
            let is_recorded = !reads().is_empty();
            assert!(is_found || !is_recorded, "{level:?} {hash}");
            found += usize::from(is_found);
            recorded += usize::from(is_recorded);
        }
        (found, recorded)
    };
    let (by_full, recorded) = searches(Level::Full).await;
    let (by_alias, _) = searches(Level::Pseudonymous).await;
    assert!(by_alias < by_full && recorded > 0, "{by_alias} {by_full} {recorded}");
}

/// Rule 39: a feed that shows more because of a grant is recorded as a read under it, with the disclosed addresses, and
/// is not sent if the read cannot be recorded. Without a grant, and where the viewer sees the same without it, there is
/// no read.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn ds39_a_feed_that_needs_a_grant_is_recorded() {
    let world = World::random(44, PolicySettings::SPEC).await;
    let reads = || std::mem::take(&mut *world.grants.reads.lock().unwrap());
    let feeds = ["/transactions?limit=100", "/transfers?limit=100", "/blocks"];
    for feed in feeds {
        world.get(ALICE, feed).await;
    }
    assert_eq!(reads(), [], "without a grant");
    for level in [Level::Full, Level::Pseudonymous, Level::Redacted] {
        let disclosed = disclosing(&world.chain, level);
        let id = grant_to_alice(&disclosed);
        world.set_policy(Some(disclosed));
        assert_eq!(world.get(ALICE, feeds[0]).await.status, StatusCode::OK);
        let recorded = reads();
        let [read] = recorded.as_slice() else {
            panic!("{level:?}: {recorded:?}")
        };
        assert_eq!((read.action, read.grant_id), (DisclosureAction::FeedReveal, id));
        assert_eq!(
            (read.owner_id, read.viewer_id),
            (user_id("carol"), Some(user_id("alice")))
        );
        assert_eq!(read.addresses, [wallet()], "{level:?}");
        assert!(read.ip_address.is_some());
        // The owner, and others, look by their own rights.
        for other in [TestCaller::User("carol"), TestCaller::User("bob"), TestCaller::Nobody] {
            world.get(other, feeds[0]).await;
        }
        assert_eq!(reads(), [], "{level:?}");
        world.grants.is_full.store(true, Ordering::SeqCst);
        let refused = world.get(ALICE, feeds[0]).await;
        assert_eq!(
            (refused.status, &refused.json()["error"]),
            (StatusCode::SERVICE_UNAVAILABLE, &json!("audit unavailable"))
        );
        assert_eq!(world.get(ALICE, "/sync/status").await.status, StatusCode::OK);
        world.grants.is_full.store(false, Ordering::SeqCst);
        reads();
    }
}

fn text(address: Address, shown: AddressVisibility) -> String {
    match shown.text {
        AddressText::Private => "[PRIVATE]".to_owned(),
        AddressText::Alias(grant) => TestAliases.alias(grant, address).unwrap(),
        AddressText::Clear => format!("0x{}", hex::encode(address)),
    }
}

/// Basis 9, R2, R15, I4, I6: the rows behind a grant of each level are those of the policy core, with its aliases and
/// without the hashes that it hides; they are gone with the request after the grant.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn r15_i6_a_grant_adds_the_rows_of_its_level_until_it_ends() {
    let alice = TestCaller::User("alice");
    let levels = [Level::Full, Level::Pseudonymous, Level::Redacted];
    for (level, is_last) in levels.into_iter().zip([false, true, false]) {
        let engine = Engine::first_or_last(is_last);
        let world = World::random_on(engine, 42, PolicySettings::SPEC).await;
        let before = world.walk(alice, "/transactions", "data", 5).await;
        let disclosed = disclosing(&world.chain, level);
        world.set_policy(Some(disclosed.clone()));
        let settings = world.settings();
        let viewer = alice.viewer(&disclosed, &settings);
        let all = Naive::newest_first(&world.chain);
        let (mut rows, mut transfers, mut frames, mut hidden_hashes) = (Vec::new(), 0, 0, 0);
        for tx in &all {
            transfers += tx.shown_transfers(&viewer).len() as u64;
            frames += tx.shown_frames(&viewer).len();
            let Some(shown) = viewer.transaction_entry(&tx.entry()) else {
                continue;
            };
            let transaction = &tx.data.transaction;
            let hash = format!("0x{}", hex::encode(transaction.hash));
            let by_hash = world.get(alice, &format!("/transactions/{hash}")).await.status;
            let hash = if shown.survival.shows_hash() {
                assert_eq!(by_hash, StatusCode::OK, "{level:?}");
                hash
            } else {
                hidden_hashes += 1;
                assert_eq!(by_hash, StatusCode::NOT_FOUND, "{level:?}: spec/50 rule 22");
                "[PRIVATE]".to_owned()
            };
            let to = transaction.to.zip(shown.to).map(|(to, shown)| text(to, shown));
            rows.push((hash, text(transaction.from, shown.from), to));
        }
        let list = world.walk(alice, "/transactions", "data", 5).await;
        let listed: Vec<_> = (list.rows.iter())
            .map(|row| {
                let member = |name: &str| row[name].as_str().map(str::to_owned);
                (member("hash").unwrap(), member("from").unwrap(), member("to"))
            })
            .collect();
        assert_eq!(listed, rows, "{level:?}");
        assert_eq!(list.total, Some(rows.len() as u64), "{level:?}");
        assert!(list.rows.len() > before.rows.len(), "{level:?}: the grant adds rows");
        assert_eq!(hidden_hashes > 0, level != Level::Full, "{level:?}");
        assert_eq!(
            world.walk(alice, "/transfers", "data", 5).await.total,
            Some(transfers),
            "{level:?}"
        );
        let mut listed_frames = 0;
        for block in &world.chain {
            let path = format!("/blocks/{}/internal", block.block.number);
            listed_frames += world.walk(alice, &path, "data", 5).await.rows.len();
        }
        assert_eq!(listed_frames, frames, "{level:?}");
        let carol = hex::encode(gw_policy::testing::address_of("carol-w"));
        // The calldata of a row that alice sees without the grant may name anybody.
        let known: Vec<_> = before.rows.iter().map(|row| &row["hash"]).collect();
        let mut added = list.rows.iter().filter(|row| !known.contains(&&row["hash"]));
        let is_named = added.any(|row| row.to_string().contains(&carol));
        assert_eq!(is_named, level == Level::Full, "{level:?}: I2");
        world.set_policy(Some(snapshot(&world.chain)));
        assert_eq!(
            world.walk(alice, "/transactions", "data", 5).await.rows,
            before.rows,
            "I6"
        );
    }
}

/// The rows of the list of transactions, and its total.
async fn shown(world: &World, caller: TestCaller) -> (Vec<serde_json::Value>, Option<u64>) {
    let list = world.walk(caller, "/transactions", "data", 7).await;
    (list.rows, list.total)
}

/// Spec/50 rules 23, 24 and 27, R7: a grant with dates, other sides or classes of data shows the rows that it covers,
/// and no other: list, total and pages are those of the policy core.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn ds23_ds24_a_restricted_grant_shows_exactly_the_rows_that_it_covers() {
    let alice = TestCaller::User("alice");
    for is_last in [false, true] {
        let world = World::random_on(Engine::first_or_last(is_last), 43, PolicySettings::SPEC).await;
        let before = shown(&world, alice).await;
        let grant = |level| policy(&world.chain).org("a").user("carol").disclosed_to("alice", level);
        world.set_policy(Some(grant(Level::Full).snapshot()));
        let all = shown(&world, alice).await;
        assert!(all.1 > before.1);
        let times: Vec<Timestamp> = (world.chain.iter())
            .map(|block| Timestamp::from_secs(block.block.timestamp))
            .collect();
        let middle = times[times.len() / 2];
        let wallet = gw_policy::testing::address_of("carol-w");
        let of_carol = Naive::newest_first(&world.chain);
        let other = of_carol.iter().find_map(|tx| {
            let transaction = &tx.data.transaction;
            let is_hers = transaction.from == wallet && transaction.to.is_some_and(|to| to != wallet);
            transaction.to.filter(|_| is_hers)
        });
        let restrictions: [(&str, DisclosureScope); 6] = [
            ("first half", scope(Level::Full, Some((times[0], middle)), None, None)),
            (
                "one block",
                scope(Level::Pseudonymous, Some((middle, middle)), None, None),
            ),
            (
                "other side",
                scope(Level::Full, None, other.map(|other| vec![other]), None),
            ),
            (
                "other side in the first half",
                scope(
                    Level::Redacted,
                    Some((times[0], middle)),
                    other.map(|other| vec![other]),
                    None,
                ),
            ),
            (
                "transactions",
                scope(Level::Full, None, None, Some("transaction_history")),
            ),
            ("activity", scope(Level::Full, None, None, Some("activity_logs"))),
        ];
        for (name, restriction) in restrictions {
            let snapshot = grant(Level::Full)
                .with_disclosures(|grant| grant.scope = restriction.clone())
                .snapshot();
            world.set_policy(Some(snapshot.clone()));
            let settings = world.settings();
            let viewer = alice.viewer(&snapshot, &settings);
            let rows = Naive::newest_first(&world.chain);
            let expected = rows.iter().filter(|tx| tx.is_shown(&viewer)).count();
            let transfers: usize = rows.iter().map(|tx| tx.shown_transfers(&viewer).len()).sum();
            let frames: usize = rows.iter().map(|tx| tx.shown_frames(&viewer).len()).sum();
            let listed = shown(&world, alice).await;
            assert_eq!((listed.0.len(), listed.1), (expected, Some(expected as u64)), "{name}");
            let listed_transfers = world.walk(alice, "/transfers", "data", 5).await.total;
            assert_eq!(listed_transfers, Some(transfers as u64), "{name}");
            let mut listed_frames = 0;
            for block in &world.chain {
                let path = format!("/blocks/{}/internal", block.block.number);
                listed_frames += world.walk(alice, &path, "data", 5).await.rows.len();
            }
            assert_eq!(listed_frames, frames, "{name}");
            match name {
                "activity" => assert_eq!(listed, before, "rule 24"),
                "transactions" => assert_eq!(listed.1, all.1),
                _ => assert!(listed.1 >= before.1 && listed.1 < all.1, "{name}: {:?}", listed.1),
            }
        }
        // Rule 27: per row the highest level counts, of the grants that cover the row.
        let both = policy(&world.chain)
            .org("a")
            .user("carol")
            .disclosed_to("alice", Level::Redacted)
            .disclosed_within("alice", scope(Level::Full, Some((times[0], middle)), None, None))
            .snapshot();
        world.set_policy(Some(both));
        let listed = shown(&world, alice).await;
        assert_eq!(listed.1, all.1);
        let wallet = format!("{wallet:#x}");
        let (mut in_range, mut outside) = (0, 0);
        for row in &listed.0 {
            let time = Timestamp::from_secs(row["blockTimestamp"].as_i64().unwrap());
            let is_named = row["from"] == wallet.as_str() || row["to"] == wallet.as_str();
            let known = before.0.iter().any(|known| known["hash"] == row["hash"]);
            in_range += usize::from(is_named && !known && time <= middle);
            outside += usize::from(is_named && !known && time > middle);
        }
        assert!(in_range > 0 && outside == 0, "{in_range} {outside}");
    }
}

fn scope(
    level: Level,
    dates: Option<(Timestamp, Timestamp)>,
    addresses: Option<Vec<Address>>,
    class: Option<&str>,
) -> DisclosureScope {
    DisclosureScope {
        level,
        dates,
        addresses,
        methods: class.map(|class| vec![class.to_owned()]),
    }
}
