//! Grants of disclosure (spec/40 section 4).

use crate::{
    chain::{Naive, policy, snapshot},
    world::{Engine, TestAliases, TestCaller, World},
};
use gw_chain_store::BlockData;
use gw_explorer::{Aliases as _, Grant, GrantStatus, GrantedAddress};
use gw_policy::{
    PolicySettings, Snapshot,
    snapshot::DisclosureScope,
    testing::{NOW, user_id},
    visibility::explorer::{AddressText, AddressVisibility},
};
use gw_types::{Address, DisclosureGrantId, Level, Timestamp};
use http::StatusCode;

fn grant(byte: u8, status: GrantStatus, level: Level) -> Grant {
    Grant {
        id: DisclosureGrantId::fixed(u128::from(byte)),
        status,
        level,
        methods: vec!["transactions".to_owned()],
        addresses: vec![GrantedAddress {
            id: "a1".to_owned(),
            address: Address::repeat_byte(0xaa),
            pseudonym: Some("Address-ABCD".to_owned()),
        }],
        counterparties: None,
        row_times: None,
        validity: NOW..NOW,
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_grant_is_shown_to_its_grantee_only() {
    let world = World::random(41, PolicySettings::SPEC).await;
    let (alice, bob) = (TestCaller::User("alice"), TestCaller::User("bob"));
    let path = |byte: u8, rest: &str| format!("/grant/{}/{rest}", DisclosureGrantId::fixed(u128::from(byte)));
    let routes = ["resolve/a1", "a1/transactions", "activity"];
    let unknown = world.get(alice, &path(9, "resolve/a1")).await;
    assert_eq!(unknown.status, StatusCode::NOT_FOUND, "{}", unknown.text);
    for route in routes {
        assert_eq!(world.get(alice, &path(9, route)).await, unknown, "without grants");
        assert_eq!(world.get(alice, &format!("/grant/x/{route}")).await, unknown);
        let anonymous = world.get(TestCaller::Nobody, &path(1, route)).await;
        assert_eq!(anonymous.status, StatusCode::UNAUTHORIZED, "{}", anonymous.text);
    }
    let grants = [
        grant(1, GrantStatus::Active, Level::Full),
        grant(2, GrantStatus::Active, Level::Pseudonymous),
        grant(3, GrantStatus::Revoked, Level::Full),
        grant(4, GrantStatus::Expired, Level::Full),
    ];
    *world.grants.0.lock().unwrap() = grants.map(|grant| (user_id("alice"), grant)).into();
    for byte in 1..=4 {
        for route in routes {
            assert_eq!(world.get(bob, &path(byte, route)).await, unknown, "not the grantee");
            let under_impersonation = world.get(TestCaller::RootAs("alice"), &path(byte, route)).await;
            assert_eq!(under_impersonation, unknown, "HD7");
            if byte > 2 {
                let ended = world.get(alice, &path(byte, route)).await;
                assert_eq!(ended.status, StatusCode::FORBIDDEN, "{}", ended.text);
            }
        }
    }
    let full = world.get(alice, &path(1, "resolve/a1")).await.json();
    assert_eq!(full["real_address"], format!("0x{}", "aa".repeat(20)));
    assert_eq!(full["disclosure_level"], "full");
    assert_eq!(full["scope_methods"], serde_json::json!(["transactions"]));
    let alias = world.get(alice, &path(2, "resolve/a1")).await;
    assert!(!alias.text.contains(&"aa".repeat(20)), "{}", alias.text);
    assert_eq!(alias.json()["pseudonym"], "Address-ABCD");
    assert_eq!(world.get(alice, &path(1, "resolve/a2")).await, unknown);
    let activity = world.get(alice, &path(1, "activity")).await;
    assert_eq!(
        activity.status,
        StatusCode::FORBIDDEN,
        "the grant does not disclose activity"
    );
}

/// The world in which `carol` disclosed her wallet to `alice` for organization `a`.
fn disclosing(chain: &[BlockData], level: Level) -> Snapshot {
    let built = policy(chain).org("a").user("carol").disclosed_to("alice", level);
    built.snapshot()
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
